//! Every way to be wrong that we know, with the exact sentence.

mod common;

use common::{Beside, wav};
use trunkline_experiment::{Experiment, Files, FilesError, TRANSPORTS};
use trunkline_network::medium;

/// A valid file. Each case replaces a piece of it.
const GOOD: &str = r#"name = "good"
duration = "10 s"

[hosts]
a = {}
b = {}
c = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = "fifo"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }

[flow.bulk]
from = "a"
to = "b"
transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }
"#;

struct Fixtures;

impl Files for Fixtures {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        match path {
            "text.wav" => Ok(b"hello".to_vec()),
            "float.wav" => Ok(wav(3, 8000, 32, 100)),
            "cd.wav" => Ok(wav(1, 44_100, 16, 100)),
            "cut.wav" => Ok(wav(1, 8000, 16, 100)[..100].to_vec()),
            "empty.trace" => Ok(b"# nothing\n".to_vec()),
            "hosts/bad.toml" => Ok(b"doc = 5\nsend-message = \"11 s\"\nsend-mesage = \"1 s\"\n".to_vec()),
            "hosts/broken.toml" => Ok(b"# one line\nx = [1,\n".to_vec()),
            "bad.trace" => Ok(b"10 ms\n20 parsecs\n".to_vec()),
            _ => Beside.read(path),
        }
    }
}

/// (what is replaced, by what, the headlines)
const CASES: &[(&str, &str, &[&str])] = &[
    (
        r#"samples = 80"#,
        r#"talk = "1 s""#,
        &[r#"x.toml:19:10: `talk` needs `silence`: how long it is silent after a talk spurt"#],
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
        &[r#"x.toml:2:1: the key `name` stands here again"#],
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
            r#"x.toml:2:9: `until` waits for the flow `bulk`, whose source goes on to the end of the run; give the source an end, such as a number of `messages`"#,
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
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "tcp", send-timeout = "40 ms" }
source = { kind = "bulk", bytes = "1 MB", transfers = 10 }"#,
        &[
            r#"x.toml:24:44: the source `bulk` would wait for good if a message were given up; leave `send-timeout` out"#,
        ],
    ),
    (
        r#"source = { kind = "bulk", message = "8 KiB" }"#,
        r#"source = { kind = "bulk", transfers = 10 }"#,
        &[r#"x.toml:25:10: `transfers` needs the volume of one; give it `bytes` or `messages`"#],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "interactive", message = "1 B", answer = "70000 B" }"#,
        &[
            r#"x.toml:19:10: an answer of 70000 B is larger than the 65467 B that one over `udp` may have"#,
            r#"x.toml:19:10: an answer of 70000 B makes a packet of 70068 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "interactive", message = "1 B", answer = "2000 B" }"#,
        &[
            r#"x.toml:19:10: an answer of 2000 B makes a packet of 2068 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"a = {}
"#,
        r#"a = {}
"a b" = {}
"#,
        &[r#"x.toml:6:1: the name `a b` must consist of letters a to z, digits, `-` and `_`"#],
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
        &[r#"x.toml:10:11: the link would join `a` to itself; name two hosts"#],
    ),
    (
        r#"between = ["a", "b"]"#,
        r#"between = ["a", "bb"]"#,
        &[r#"x.toml:10:17: `between` names the unknown host `bb`; known are `a`, `b` and `c`"#],
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
        &[r#"x.toml:11:8: `rate` must be a rate from 1 bit/s to 1000 Gbit/s, not the number 2000000"#],
    ),
    (
        r#"rate = "2 Mbit/s""#,
        r#"# no rate"#,
        &[
            r#"x.toml:9:1: the key `rate` is missing in [link.trunk]; expected a rate from 1 bit/s to 1000 Gbit/s"#,
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
            r#"x.toml:19:10: a message of 80 B makes a packet of 148 B with all headers, which link `trunk` would drop: its MTU is 100 B"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"medium = "ring""#,
        &[r#"x.toml:12:10: `medium` cannot be the text `ring`; known are {media}"#],
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
        r#"jitter = { kind = "normal", mean = "1 ms" }"#,
        &[
            r#"x.toml:12:19: the kind of a distribution cannot be the text `normal`; known are `constant`, `exponential`, `uniform`, `bivalue` and `trace`"#,
        ],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "uniform", min = "2 ms", max = "1 ms" }"#,
        &[r#"x.toml:12:10: the distribution of `jitter` has a `min` above its `max`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"jitter = { kind = "uniform", min = "1 ms", max = "2 ms", mean = "1 ms" }"#,
        &[
            r#"x.toml:12:58: unknown key `mean` of a distribution of kind `uniform`; known are `min` and `max`"#,
        ],
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
            r#"x.toml:12:35: `bad.trace` is wrong in line 2: `20 parsecs` has the unknown unit `parsecs`; expected a duration such as `20 ms` (units: ns, us, ms, s, min, h)"#,
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
        &[r#"x.toml:13:26: unknown key `size` in the queue `fifo`; known are `kind` and `limit`"#],
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
            r#"x.toml:13:14: unknown key `between` in the direction `backward` of [link.trunk]; known are `rate`, `delay`, `mtu`, `overhead`, `queue`, `loss`, `jitter`, `reorder`, `reorder-by`, `duplicate` and `corrupt`"#,
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
        &[r#"x.toml:17:6: no path leads from `a` to `c`; join them by a `[link.NAME]`"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "x"
to = "b"
transport = "udp""#,
        &[r#"x.toml:16:8: `from` names the unknown host `x`; known are `a`, `b` and `c`"#],
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
        &[r#"x.toml:18:9: there is no link for the text `tronk`; did you mean `trunk`?"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = "b"
path = ["trunk", "trunk"]
transport = "udp""#,
        &[r#"x.toml:18:8: the path ends at `a`, not at `b`"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = "dtls""#,
        &[r#"x.toml:18:13: there is no transport `dtls`; known are {transports}"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "urp", window = 8, block = "2 KiB" }"#,
        &[
            r#"x.toml:18:38: `window` must be a whole number from 1 to 7, not `8`"#,
            r#"x.toml:18:49: `block` must be a size from 16 B to 1 KiB, not `2 KiB`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "dccp", congestion-control = "ccid-5", checksum-coverage = "64 B" }"#,
        &[
            r#"x.toml:18:51: `congestion-control`: `ccid-5` is not one of its words; did you mean `ccid-2`?"#,
            r#"x.toml:18:81: `checksum-coverage` must be a size from 0 B to 56 B, not `64 B`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "dccp", when-full = "drop-oldest" }
source = { kind = "bulk", message = "1000 B" }"#,
        &[
            r#"x.toml:24:42: the source `bulk` sends as fast as the transport takes it, and this one takes all and drops it; leave `when-full` out or give the source an `interval`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "dccp", encapsulation = "udp" }
source = { kind = "bulk", message = "1400 B" }"#,
        &[
            r#"x.toml:25:10: a message of 1400 B makes a packet of up to 1508 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "rtp", payload = "pcma", channels = 0, session-bandwidth = "999 bit/s" }"#,
        &[
            r#"x.toml:18:39: `payload`: `pcma` is not one of its words; did you mean `pcmu`?"#,
            r#"x.toml:18:58: `channels` must be a whole number from 1 to 255, not `0`"#,
            r#"x.toml:18:81: `session-bandwidth` must be a rate from 1 kbit/s to 1000 Gbit/s, not `999 bit/s`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = "rtp"
source = { kind = "bulk", message = "1421 B", interval = "10 ms" }"#,
        &[
            r#"x.toml:25:10: a message of 1421 B makes a packet of 1501 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "xtp", error-control = "some", every = 0 }"#,
        &[
            r#"x.toml:18:45: `error-control`: `some` is not one of its words; known are `selective` and `none`"#,
            r#"x.toml:18:61: `every` must be a whole number from 1 to 1000000, not `0`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "xtp", error-control = "none", flow-control = "none" }
source = { kind = "bulk", message = "1000 B" }"#,
        &[
            r#"x.toml:24:68: the source `bulk` sends as fast as the transport takes it, and this one takes all; give it a `rate` or leave `flow-control` out"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"transport = { kind = "xtp", max-data = "1449 B" }"#,
        &[
            r#"x.toml:24:40: data of 1449 B make packets of 1501 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "sctp", lifetime = "40 ms", retransmissions = 2, window = "4 KiB" }"#,
        &[r#"x.toml:18:80: `window` must be a size from 8 KiB to 1 GiB, not `4 KiB`"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "sctp", lifetime = "40 ms", retransmissions = 2 }"#,
        &[
            r#"x.toml:18:68: a message has either a `lifetime` or a number of `retransmissions`; leave one out"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        "transport = { kind = \"sctp\", streams = 2 }\nframing = \"none\"",
        &[r#"x.toml:18:40: without a header every message must arrive, in its order; leave `streams` out"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "quic", mode = "message", congestion-control = "bbr" }"#,
        &[
            r#"x.toml:18:37: `mode`: `message` is not one of its words; known are `stream`, `streams` and `datagrams`"#,
            r#"x.toml:18:69: `congestion-control`: `bbr` is not one of its words; known are `cubic` and `new-reno`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "quic", mode = "datagrams" }
source = { kind = "bulk", message = "1400 B" }"#,
        &[
            r#"x.toml:25:10: a message of 1400 B makes a packet of up to 1506 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"transport = { kind = "quic", mode = "streams" }
framing = "none""#,
        &[
            r#"x.toml:24:37: without a header every message must arrive, in its order, which mode `streams` does not promise; leave `mode` out"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "urp", window = "768 B" }"#,
        &[r#"x.toml:18:38: `window` must be a whole number from 1 to 7, not the text `768 B`"#],
    ),
    (
        r#"delay = "20 ms""#,
        r#"mtu = "261 B"
[flow.blocks]
from = "a"
to = "b"
transport = "urp"
source = "bulk"
[link.other]
between = ["a", "c"]
rate = "1 Mbit/s""#,
        &[
            r#"x.toml:16:13: blocks of 256 B make packets of 262 B with all headers, which link `trunk` would drop: its MTU is 261 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "udp", window = "1 KiB" }"#,
        &[
            r#"x.toml:18:29: unknown key `window` in the transport `udp`; known are `kind`, `buffer` and `ecn`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", mss = "1461 B" }"#,
        &[
            r#"x.toml:18:35: segments of 1461 B make packets of 1501 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = "udp"
channels = 0"#,
        &[r#"x.toml:19:12: `channels` must be a whole number from 1 to 65535, not `0`"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = "udp"
count = 100001"#,
        &[r#"x.toml:19:9: `count` must be a whole number from 0 to 100000, not `100001`"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = "udp"
count = 1.5"#,
        &[r#"x.toml:19:9: `count` must be a whole number from 0 to 100000, not the number 1.5"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = "udp"
reflect = "yes""#,
        &[r#"x.toml:19:11: `reflect` must be `true` or `false`, not the text `yes`"#],
    ),
    (
        r#"transport = "udp"
"#,
        r#"transport = "udp"
[flow.voice.extra]
x = 1
[flow.other]
from = "a"
to = "b"
transport = "udp"
"#,
        &[
            r#"x.toml:15:1: the key `source` is missing in [flow.voice]; expected one of `voice`, `bulk`, `mpuke`, `interactive`, `ipuke` and `load`"#,
            r#"x.toml:19:13: unknown key `extra` in [flow.voice]; known are `from`, `to`, `transport`, `source`, `channels`, `count`, `reflect`, `playout`, `start`, `priority`, `framing`, `audio` and `path`"#,
        ],
    ),
    (
        r#"samples = 80"#,
        r#"samples = 7"#,
        &[r#"x.toml:19:38: `samples` must be a whole number from 8 to 4096, not `7`"#],
    ),
    (
        r#"samples = 80"#,
        r#"samples = 4096"#,
        &[
            r#"x.toml:19:10: a message of 4096 B makes a packet of 4164 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"samples = 80"#,
        r#"phase = "rnd""#,
        &[
            r#"x.toml:19:36: `phase`: `rnd` is not one of its words; known are `random`, `spread` and `together`"#,
        ],
    ),
    (r#"samples = 80"#, r#"file = "none.wav""#, &[r#"x.toml:19:35: `none.wav` does not exist"#]),
    (
        r#"samples = 80"#,
        r#"file = "text.wav""#,
        &[r#"x.toml:19:35: `text.wav` is not a WAV file (it does not begin with `RIFF` and `WAVE`)"#],
    ),
    (
        r#"samples = 80"#,
        r#"file = "float.wav""#,
        &[
            r#"x.toml:19:35: `float.wav` is not PCM but IEEE float (format 3); convert it with `sox in.wav -e signed-integer -b 16 out.wav`"#,
        ],
    ),
    (
        r#"samples = 80"#,
        r#"file = "cd.wav""#,
        &[
            r#"x.toml:19:35: `cd.wav` has a sample rate of 44100 Hz; expected 8000 Hz: convert it with `sox in.wav -r 8000 out.wav`"#,
        ],
    ),
    (
        r#"samples = 80"#,
        r#"file = "cut.wav""#,
        &[
            r#"x.toml:19:35: `cut.wav` is truncated: its data chunk announces 200 bytes, but the file has only 56 of them (144 are missing)"#,
        ],
    ),
    (
        r#"samples = 80"#,
        r#"file = """#,
        &[r#"x.toml:19:35: `file` must be the path of a file, not an empty text"#],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#""interactive""#,
        &[r#"x.toml:19:10: the source `interactive` waits for answers; set `reflect = true`"#],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#""bulk""#,
        &[
            r#"x.toml:19:10: a message of 8192 B makes a packet of 8260 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
            r#"x.toml:19:10: the source `bulk` sends as fast as the transport takes it, and `udp` has no flow control; give it an `interval` or use {flow control}"#,
        ],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#"{ kind = "load", message = "70000 B", interval = "1 ms" }"#,
        &[r#"x.toml:19:10: a message of 70000 B is larger than the 65467 B that one over `udp` may have"#],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#"{ kind = "load", message = "1433 B", interval = "1 ms" }"#,
        &[
            r#"x.toml:19:10: a message of 1433 B makes a packet of 1501 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#""load""#,
        &[
            r#"x.toml:19:10: the key `interval` is missing in the source `load`; expected a duration from 0 s to 60 min or a distribution of durations"#,
        ],
    ),
    (
        r#"[flow.voice]"#,
        r#"[link.second]
between = ["b", "a"]
rate = "1 Mbit/s"

[flow.voice]"#,
        &[
            r#"x.toml:21:6: several shortest paths lead from `a` to `b`; choose one: `path = ["trunk"]` or `path = ["second"]`"#,
            r#"x.toml:27:6: several shortest paths lead from `a` to `b`; choose one: `path = ["trunk"]` or `path = ["second"]`"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.cont" = [1]
[flow.bulk]"#,
        &[r#"x.toml:22:1: there is no key `flow.voice.cont`; did you mean `flow.voice.count`?"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.count" = []
[flow.bulk]"#,
        &[r#"x.toml:22:22: the sweep of `flow.voice.count` is empty; give it at least one value"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.count" = 3
[flow.bulk]"#,
        &[r#"x.toml:22:22: the sweep of `flow.voice.count` must be a list of values, not the number 3"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.count" = [1, 2, -3]
[flow.bulk]"#,
        &[r#"x.toml:22:29: `count` must be a whole number from 0 to 100000, not `-3`"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.source.samples" = [80, 160, 2000]
[flow.bulk]"#,
        &[
            r#"x.toml:22:41: a message of 2000 B makes a packet of 2068 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.bulk.transport" = ["tcp", "udp"]
[flow.bulk]"#,
        &[
            r#"x.toml:22:33: a message of 8192 B makes a packet of 8260 B with all headers, which link `trunk` would drop: its MTU is 1500 B"#,
            r#"x.toml:22:33: the source `bulk` sends as fast as the transport takes it, and `udp` has no flow control; give it an `interval` or use {flow control}"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
seed = [1, 2]
[flow.bulk]"#,
        &[r#"x.toml:22:1: `seed` is one for all points and cannot be swept"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.transport.window" = ["1 KiB"]
[flow.bulk]"#,
        &[
            r#"x.toml:22:1: there is no key `flow.voice.transport.window`; behind `flow.voice.transport` there are `buffer`, `ecn` and `kind`"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limits]
"flow.vocie.loss" = "< 1 %"
[flow.bulk]"#,
        &[r#"x.toml:22:1: there is no flow `vocie`; did you mean `voice`?"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limits]
"flow.voice.lost" = "< 1 %"
[flow.bulk]"#,
        &[r#"x.toml:22:1: a flow has no figure `lost`; did you mean `loss`?"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limits]
"flow.voice.loss" = "< 1 ms"
[flow.bulk]"#,
        &[
            r#"x.toml:22:21: the limit of `flow.voice.loss`: `1 ms` has the unknown unit `ms`; expected a share from `0 %` to `100 %` (or 0 to 1)"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limits]
"flow.voice.latency.p99" = "1 ms"
[flow.bulk]"#,
        &[
            r#"x.toml:22:28: the limit of `flow.voice.latency.p99`: `1 ms` does not begin with `<`, `<=`, `>` or `>=`"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limits]
"flow.voice.fairness" = "> 1 %"
[flow.bulk]"#,
        &[
            r#"x.toml:22:25: the limit of `flow.voice.fairness`: `1 %` is not a number; expected one of at least 0, without a unit"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limits]
"voice.loss" = "< 1 %"
[flow.bulk]"#,
        &[
            r#"x.toml:22:1: `voice.loss` is not `flow.NAME.FIGURE`; the figures are `loss`, `late`, `loss-and-late`, `latency.mean`, `latency.p50`, `latency.p90`, `latency.p99`, `latency.p999`, `latency.max`, `jitter.mean-absolute-deviation`, `jitter.interarrival`, `jitter.pdv-p999`, `throughput`, `voice-channels` and `fairness`"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limits]
"flow.voice.loss" = 1
[flow.bulk]"#,
        &[r#"x.toml:22:21: the limit of `flow.voice.loss` must be a text such as `< 1 %`, not the number 1"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[limit]
"flow.voice.loss" = "< 1 %"
[flow.bulk]"#,
        &[r#"x.toml:21:2: unknown key `limit`; did you mean `limits`?"#],
    ),
];

fn headlines(text: &str) -> Vec<String> {
    match Experiment::parse(text, "x.toml", &Fixtures) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|problem| problem.headline()).collect(),
    }
}

/// Puts the names of the registries in place of `{media}` and the like: they grow.
fn with_names(line: &str) -> String {
    let transports = || TRANSPORTS.iter();
    line.replace("{media}", &listed(medium::KINDS.iter().map(|kind| kind.name), "and"))
        .replace("{transports}", &listed(transports().map(|features| features.name), "and"))
        .replace(
            "{flow control}",
            &listed(
                transports()
                    .filter(|features| features.flow_control || features.congestion_control)
                    .map(|features| features.name),
                "or",
            ),
        )
}

/// `` `a`, `b` and `c` ``
fn listed<'n>(names: impl Iterator<Item = &'n str>, word: &str) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let all = names.join(", ");
    match all.rfind(", ") {
        Some(last) => format!("{} {word} {}", &all[..last], &all[last + 2..]),
        None => all,
    }
}

#[test]
fn the_file_without_a_mistake_is_accepted() {
    assert_eq!(headlines(GOOD), Vec::<String>::new());
}

#[test]
fn every_mistake_is_told_in_one_sentence_at_its_place() {
    let mut differing = String::new();
    for (from, to, expected) in CASES {
        assert!(GOOD.contains(from), "the case replaces nothing: {from}");
        let text = GOOD.replacen(from, to, 1);
        let found = headlines(&text);
        let expected: Vec<String> = expected.iter().map(|line| with_names(line)).collect();
        if found != expected {
            differing += &format!("(r#\"{from}\"#, r#\"{to}\"#, &[\n");
            for line in found {
                differing += &format!("    r#\"{line}\"#,\n");
            }
            differing += "]),\n";
        }
    }
    assert!(differing.is_empty(), "these cases give now:\n{differing}");
}

#[test]
fn a_missing_kind_is_told_with_those_that_there_are() {
    let found = headlines(&GOOD.replacen(r#"queue = "fifo""#, r#"queue = { limit = "64 KiB" }"#, 1));
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert!(found.starts_with("x.toml:13:9: the key `kind` is missing in `queue`; expected one of `fifo`, "));
    let kinds = trunkline_network::queue::KINDS;
    assert!(kinds.iter().all(|kind| found.contains(&format!("`{}`", kind.name))), "{found}");
}

#[test]
fn what_a_transport_does_not_promise_is_told_with_those_that_do() {
    for (from, to, expected) in [
        (
            "transport = \"udp\"",
            "transport = \"udp\"\nframing = \"none\"",
            "x.toml:19:11: without a header every message must arrive, in its order, which `udp` does not promise; use ",
        ),
        (
            "\"voice\", samples = 80",
            "\"bulk\", message = \"1 KiB\", bytes = \"1 MB\", transfers = 10",
            "x.toml:19:10: the source `bulk` would wait for good if an answer were lost, and `udp` does not repair loss; use ",
        ),
    ] {
        let found = headlines(&GOOD.replacen(from, to, 1));
        assert!(found.iter().any(|line| line.starts_with(expected) && line.contains("`tcp`")), "{found:?}");
    }
}

#[test]
fn a_profile_is_named_as_seen_from_the_experiment_file() {
    let text = GOOD.replacen("a = {}", "a = { profile = \"hosts/bad.toml\" }", 1);
    let problems = Experiment::parse(&text, "study/x.toml", &Fixtures).unwrap_err();
    let last = problems.iter().last().unwrap();
    assert_eq!((&*last.file, last.line), ("study/hosts/bad.toml", 3));
    assert!(last.to_string().ends_with("3 | send-mesage = \"1 s\"\n  | ^^^^^^^^^^^"), "{last}");
}

#[test]
fn an_empty_file_lacks_what_every_file_has() {
    assert_eq!(
        headlines(""),
        [
            "x.toml:1:1: the experiment has no flows; add a table `[flow.NAME]`",
            "x.toml:1:1: the key `duration` is missing before the first table; expected a duration from 1 ms to 168 h",
            "x.toml:1:1: the key `name` is missing before the first table; expected a text",
        ]
    );
}

#[test]
fn a_problem_is_shown_with_its_line_and_place() {
    let text = GOOD.replacen("queue = \"fifo\"", "quee = \"fifo\"", 1);
    let problems = Experiment::parse(&text, "x.toml", &Fixtures).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "x.toml:13:1: unknown key `quee` in [link.trunk]; did you mean `queue`?\n\
         13 | quee = \"fifo\"\n   | ^^^^"
    );
}

#[test]
fn columns_count_characters_not_bytes() {
    let text = GOOD.replacen("rate = \"2 Mbit/s\"", "\"ра\" = 1", 1);
    let found = headlines(&text);
    assert!(found.iter().any(|line| line.contains(":11:1: unknown key `ра`")), "{found:?}");
    let text =
        GOOD.replacen("source = { kind = \"voice\"", "source = { file = \"ääää\", kindd = \"voice\"", 1);
    let found = headlines(&text);
    assert!(found.iter().any(|line| line.starts_with("x.toml:19:10:")), "{found:?}");
}
