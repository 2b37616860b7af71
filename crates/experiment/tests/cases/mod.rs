//! Mistakes and what is said of them: what is replaced in the good file, by what, and the lines that must be told.

/// What is replaced, by what, and what is said.
pub(crate) type Case = (&'static str, &'static str, &'static [&'static str]);

mod bundles;
mod more;
mod sinks;

pub(crate) use bundles::BUNDLES;
pub(crate) use more::MORE;
pub(crate) use sinks::SINKS;

/// (what is replaced, by what, the headlines)
pub(crate) const CASES: &[Case] = &[
    (
        r#"samples = 80"#,
        r#"talk = "1 s""#,
        &[r#"x.toml:19:35: `talk` needs `silence`: how long it is silent after a talk spurt"#],
    ),
    (
        r#"source = { kind = "bulk", message = "8 KiB" }"#,
        r#"source = "bulk"
audio = true"#,
        &[r#"x.toml:26:9: the source `bulk` carries no audio that could be written"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[link.other]
between = ["c", "b"]
rate = "1 Mbit/s"
[flow.bulk]
path = ["other"]"#,
        &[r#"x.toml:25:9: the path is at `a` here, and `other` joins `c` and `b`"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"between = ["a", "b"]
peak-rate = "1 Mbit/s""#,
        &[r#"x.toml:11:13: `peak-rate` needs `committed-rate`; without it, it has no effect"#],
    ),
    (
        r#"name = "good""#,
        r#"# no name"#,
        &[r#"x.toml:1:1: the key `name` is missing before the first table; expected a text"#],
    ),
    (
        r#"name = "good""#,
        r#"nmae = "good""#,
        &[
            r#"x.toml:1:1: the key `name` is missing before the first table; expected a text"#,
            r#"x.toml:1:1: unknown key `nmae`; did you mean `name`?"#,
        ],
    ),
    (r#"name = "good""#, r#"name = 5"#, &[r#"x.toml:1:8: `name` must be a text, not the number 5"#]),
    (
        r#"name = "good""#,
        r#"name = "good"
repetitions = 0"#,
        &[r#"x.toml:2:15: `repetitions` must be a whole number from 1 to 1000, not `0`"#],
    ),
    (
        r#"name = "good""#,
        r#"name = "good"
repetitions = 1001"#,
        &[r#"x.toml:2:15: `repetitions` must be a whole number from 1 to 1000, not `1001`"#],
    ),
    (
        r#"name = "good""#,
        r#"name = "good"
seed = -1"#,
        &[r#"x.toml:2:8: `seed` must be a whole number from 0 to 9223372036854775807, not `-1`"#],
    ),
    (
        r#"name = "good""#,
        r#"name = "good"
name = "again""#,
        &[r#"x.toml:2:1: duplicate key `name`"#],
    ),
    (
        r#"name = "good""#,
        r#"name = "good"#,
        &[r#"x.toml:1:13: not TOML: invalid basic string, expected `"`"#],
    ),
    (
        r#"duration = "10 s""#,
        r#"duration = 10"#,
        &[r#"x.toml:2:12: `duration` must be a duration from 1 ms to 168 h, not the number 10"#],
    ),
    (
        r#"duration = "10 s""#,
        r#"duration = "10""#,
        &[
            r#"x.toml:2:12: `duration`: `10` has no unit; expected a duration such as `20 ms` (units: ns, us, ms, s, min, h)"#,
        ],
    ),
    (
        r#"duration = "10 s""#,
        r#"duration = "10 parsecs""#,
        &[
            r#"x.toml:2:12: `duration`: `10 parsecs` has the unknown unit `parsecs`; expected a duration such as `20 ms` (units: ns, us, ms, s, min, h)"#,
        ],
    ),
    (
        r#"duration = "10 s""#,
        r#"duration = "0 s""#,
        &[r#"x.toml:2:12: `duration` must be a duration from 1 ms to 168 h, not `0 s`"#],
    ),
    (
        r#"duration = "10 s""#,
        r#"duration = 2026-01-01"#,
        &[r#"x.toml:2:12: `duration` must be a duration from 1 ms to 168 h, not a date or time of day"#],
    ),
    (
        r#"a = {}
"#,
        r#"a = { profil = "x" }
"#,
        &[r#"x.toml:5:7: unknown key `profil` in [hosts.a]; did you mean `profile`?"#],
    ),
    (
        r#"a = {}
"#,
        r#"a = { profile = "nowhere.toml", send-message = "1" }
"#,
        &[
            r#"x.toml:5:17: `nowhere.toml` does not exist"#,
            r#"x.toml:5:48: `send-message`: `1` has no unit; expected a duration such as `20 ms` (units: ns, us, ms, s, min, h)"#,
        ],
    ),
    (
        r#"a = {}
b = {}
"#,
        r#"a = { profile = "hosts/bad.toml" }
b = { profile = "hosts/broken.toml", profil = 1 }
"#,
        &[
            r#"x.toml:6:38: unknown key `profil` in [hosts.b]; did you mean `profile`?"#,
            r#"hosts/bad.toml:1:7: `doc` must be a text, not the number 5"#,
            r#"hosts/bad.toml:2:16: `send-message` must be a duration from 0 s to 10 s, not `11 s`"#,
            r#"hosts/bad.toml:3:1: unknown key `send-mesage` in a profile of hosts; did you mean `send-message`?"#,
            r#"hosts/broken.toml:2:8: not TOML: unclosed array, expected `]`"#,
        ],
    ),
    (
        r#"a = {}
"#,
        r#"a = { profile = 5 }
"#,
        &[r#"x.toml:5:17: `profile` must be the path of a file, not the number 5"#],
    ),
    (
        r#"name = "good""#,
        r#"name = "good"
until = "voise""#,
        &[r#"x.toml:2:9: `until` names the unknown flow `voise`; did you mean `voice`?"#],
    ),
    (
        r#"name = "good""#,
        r#"name = "good"
until = 1"#,
        &[r#"x.toml:2:9: `until` must name a flow, not the number 1"#],
    ),
    (
        r#"name = "good""#,
        r#"name = "good"
until = "bulk""#,
        &[
            r#"x.toml:2:9: `until` waits for the flow `bulk`, whose source never ends before the run does; limit the source, for example with a number of `messages`"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[flow.none]
from = "a"
to = "b"
transport = "udp"
source = { kind = "interactive", messages = 3 }
reflect = true
count = 0
[sweep]
until = ["none"]
[flow.bulk]"#,
        &[r#"x.toml:29:10: `until` waits for the flow `none`, which has no members"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"between = ["a", "b"]
jitter = "5 ms""#,
        &[
            r#"x.toml:11:10: `jitter` is a delay that varies, and 5 ms would be the same for each packet; add it to `delay`, or write the range of the jitter, such as `{ kind = "uniform", min = "0 ms", max = "5 ms" }`"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[flow.bulk]
start = "10 s""#,
        &[
            r#"x.toml:22:9: the flow `bulk` would start at 10 s, but sending ends at 10 s, which is the run's `duration`; start it earlier"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "tcp", send-timeout = "40 ms" }
source = { kind = "bulk", bytes = "1 MB", transfers = 10 }"#,
        &[
            r#"x.toml:24:44: the source `bulk` would wait forever if a message were abandoned; omit `send-timeout`"#,
        ],
    ),
    (
        r#"source = { kind = "bulk", message = "8 KiB" }"#,
        r#"source = { kind = "bulk", transfers = 10 }"#,
        &[r#"x.toml:25:39: `transfers` needs the volume of one; give it `bytes` or `messages`"#],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "interactive", message = "1 B", answer = "70000 B" }"#,
        &[
            r#"x.toml:19:60: `answer`: an answer of 70000 B makes a packet of 70028 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
            r#"x.toml:19:60: an answer of 70000 B is larger than the 65507 B that one over `udp` may have"#,
        ],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "interactive", message = "1 B", answer = "2000 B" }"#,
        &[
            r#"x.toml:19:60: `answer`: an answer of 2000 B makes a packet of 2028 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"a = {}
"#,
        r#"a = {}
"a b" = {}
"#,
        &[r#"x.toml:6:1: the name `a b` must consist of ASCII letters, digits, `-` and `_`"#],
    ),
    (
        r#"a = {}
"#,
        r#"a = 1
"#,
        &[r#"x.toml:5:5: `hosts.a` must be a table, not the number 1"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"between = ["a", "a"]"#,
        &[r#"x.toml:10:17: the link would join `a` to itself; name every host once"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"between = ["a", "bb"]"#,
        &[r#"x.toml:10:17: `between` names the unknown host `bb`; known: `a`, `b` and `c`"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"between = ["a"]"#,
        &[r#"x.toml:10:11: `between` must be the names of two hosts such as `["a", "b"]`, not a list of 1"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"between = "a""#,
        &[r#"x.toml:10:11: `between` must be the names of two hosts such as `["a", "b"]`, not the text `a`"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"# nothing"#,
        &[
            r#"x.toml:9:1: the key `between` is missing in [link.trunk]; expected the names of two hosts such as `["a", "b"]`"#,
        ],
    ),
    (
        r#"rate = "2 Mbit/s""#,
        r#"rate = "0 bit/s""#,
        &[r#"x.toml:11:8: `rate` must be a rate from 1 bit/s to 1000 Gbit/s, not `0 bit/s`"#],
    ),
    (
        r#"rate = "2 Mbit/s""#,
        r#"rate = "2 ms""#,
        &[
            r#"x.toml:11:8: `rate`: `2 ms` has the unknown unit `ms`; expected a rate such as `10 Mbit/s` (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
        ],
    ),
    (
        r#"rate = "2 Mbit/s""#,
        r#"rate = 2000000"#,
        &[
            r#"x.toml:11:8: `rate` must be a rate from 1 bit/s to 1000 Gbit/s or a series of them over time, not the number 2000000"#,
        ],
    ),
    (
        r#"rate = "2 Mbit/s""#,
        r#"# no rate"#,
        &[
            r#"x.toml:9:1: the key `rate` is missing in [link.trunk]; expected a rate from 1 bit/s to 1000 Gbit/s or a series of them over time"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"delay = "-1 ms""#,
        &[
            r#"x.toml:12:9: `delay`: `-1 ms` is negative; expected a duration such as `20 ms` (units: ns, us, ms, s, min, h)"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"mtu = "60 B""#,
        &[r#"x.toml:12:7: `mtu` must be a size from 68 B to 65535 B, not `60 B`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"mtu = "100 B""#,
        &[
            r#"x.toml:19:38: `samples`: a message of 80 B makes a packet of 108 B with all headers, which link `trunk` would drop: its `mtu` is 100 B"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"medium = "ring""#,
        &[r#"x.toml:12:10: `medium` cannot be the text `ring`; known: {media}"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"loss = "101 %""#,
        &[
            r#"x.toml:12:8: `loss`: `101 %` is out of range; expected a share from `0 %` to `100 %` (or 0 to 1)"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"loss = "bernouli""#,
        &[r#"x.toml:12:8: there is no loss `bernouli`; did you mean `bernoulli`?"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"loss = { kind = "gilbert-elliott", to-bad = "1 %" }"#,
        &[
            r#"x.toml:12:8: the key `to-good` is missing in the loss `gilbert-elliott`; expected a share from `0 %` to `100 %` (or 0 to 1)"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"loss = { kind = "bursts", good = "1 s", bad = "0 s" }"#,
        &[r#"x.toml:12:47: `bad` must be a duration from 1 us to 24 h, not `0 s`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter-memory = "100 ms""#,
        &[r#"x.toml:12:17: `jitter-memory` needs `jitter`; without it, it has no effect"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"forward = { jitter = { kind = "trace", file = "good.trace" }, jitter-memory = "100 ms" }"#,
        &[
            r#"x.toml:12:79: `jitter-memory` has no effect on the values of a `trace`, which have an order of their own; omit it, or draw them with `kind = "empirical"`"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"reorder-by = "25 ms""#,
        &[r#"x.toml:12:14: `reorder-by` needs `reorder`; without it, it has no effect"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"committed-rate = "1 Mbit/s"
peak-rate = "500 kbit/s""#,
        &[
            r#"x.toml:13:13: `peak-rate` is 500 kbit/s; it must be at least as high as `committed-rate`, which is 1 Mbit/s"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"shape-peak-rate = "1 Mbit/s""#,
        &[r#"x.toml:12:19: `shape-peak-rate` needs `shape-rate`; without it, it has no effect"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"shape-rate = "1 Mbit/s"
shape-peak-rate = "500 kbit/s""#,
        &[
            r#"x.toml:13:19: `shape-peak-rate` is 500 kbit/s; it must be higher than `shape-rate`, which is 1 Mbit/s"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"medium = "atm"
pcr = "1 Mbit/s"
scr = "2 Mbit/s""#,
        &[r#"x.toml:13:7: `pcr` is 1 Mbit/s; it must be at least as high as `scr`, which is 2 Mbit/s"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"loss = true"#,
        &[r#"x.toml:12:8: `loss` must be a share, a word or a table, not `true`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "exponential" }"#,
        &[r#"x.toml:12:10: the distribution of `jitter` lacks the key `mean`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "gaussian", mean = "1 ms" }"#,
        &[
            r#"x.toml:12:19: the kind of a distribution cannot be the text `gaussian`; known: `constant`, `exponential`, `uniform`, `normal`, `pareto`, `bivalue`, `empirical` and `trace`"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "normal", mean = "1 ms" }"#,
        &[r#"x.toml:12:10: the distribution of `jitter` lacks the key `deviation`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "uniform", min = "2 ms", max = "1 ms" }"#,
        &[r#"x.toml:12:10: the distribution of `jitter` has a `min` above its `max`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "uniform", min = "1 ms", max = "2 ms", mean = "1 ms" }"#,
        &[r#"x.toml:12:58: unknown key `mean` of a distribution of kind `uniform`; known: `min` and `max`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "trace", file = "none.trace" }"#,
        &[r#"x.toml:12:35: `none.trace` does not exist"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "trace", file = "empty.trace" }"#,
        &[r#"x.toml:12:35: `empty.trace` holds no values; one per line is expected"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "trace", file = "bad.trace" }"#,
        &[
            r#"x.toml:12:35: `bad.trace` has an error in line 2: `20 parsecs` has the unknown unit `parsecs`; expected a duration such as `20 ms` (units: ns, us, ms, s, min, h)"#,
        ],
    ),
    (
        r#"queue = "fifo""#,
        r#"queue = "fofo""#,
        &[r#"x.toml:13:9: there is no queue `fofo`; did you mean `fifo`?"#],
    ),
    (
        r#"queue = "fifo""#,
        r#"queue = { kind = "fifo", limit = "64" }"#,
        &[r#"x.toml:13:34: `limit`: `64` has no unit; expected a limit such as `100 packets` or `64 KiB`"#],
    ),
    (
        r#"queue = "fifo""#,
        r#"queue = { kind = "fifo", limit = "0 packets" }"#,
        &[
            r#"x.toml:13:34: `limit`: `0 packets` is not a whole number of packets above 0; expected a limit such as `100 packets` or `64 KiB`"#,
        ],
    ),
    (
        r#"queue = "fifo""#,
        r#"queue = { kind = "fifo", size = "64 KiB" }"#,
        &[r#"x.toml:13:26: unknown key `size` in the queue `fifo`; known: `kind` and `limit`"#],
    ),
    (
        r#"queue = "fifo""#,
        r#"backward = { delay = "x" }"#,
        &[
            r#"x.toml:13:22: `delay`: `x` does not start with a number; expected a duration such as `20 ms` (units: ns, us, ms, s, min, h)"#,
        ],
    ),
    (
        r#"queue = "fifo""#,
        r#"backward = { between = ["a", "b"] }"#,
        &[
            r#"x.toml:13:14: unknown key `between` in the direction `backward` of [link.trunk]; known: `rate`, `delay`, `mtu`, `overhead`, `shape-rate`, `shape-burst`, `shape-peak-rate`, `shape-peak-burst`, `committed-rate`, `committed-burst`, `peak-rate`, `peak-burst`, `policing`, `queue`, `loss`, `jitter`, `jitter-memory`, `reorder`, `reorder-by`, `duplicate` and `corrupt`"#,
        ],
    ),
    (
        r#"queue = "fifo""#,
        r#"forward = 1"#,
        &[r#"x.toml:13:11: `forward` must be a table, not the number 1"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = "a"
transport = "udp""#,
        &[r#"x.toml:17:6: the flow would go from `a` to itself; name another host"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = "c"
transport = "udp""#,
        &[r#"x.toml:17:6: no path leads from `a` to `c`; connect them with a `[link.NAME]`"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "x"
to = "b"
transport = "udp""#,
        &[r#"x.toml:16:8: `from` names the unknown host `x`; known: `a`, `b` and `c`"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"to = "b"
transport = "udp""#,
        &[r#"x.toml:15:1: the key `from` is missing in [flow.voice]; expected the name of a host"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = "b"
path = ["tronk"]
transport = "udp""#,
        &[r#"x.toml:18:9: there is no link `tronk`; did you mean `trunk`?"#],
    ),
];
