//! The rest of them.

use super::Case;

/// Mistakes in what the first list does not reach.
pub(crate) const MORE: &[Case] = &[
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80, fifo = 40 }
audio = true
playback = { kind = "fifo", depth = 79 }"#,
        &[r#"x.toml:21:37: `depth` is 79; expected at least the 80 samples of a packet"#],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80, fifo = 40 }
audio = true
playback = "fifo""#,
        &[
            r#"x.toml:19:49: `fifo` is 40; expected at least the 80 `samples` of a packet"#,
            r#"x.toml:20:9: audio from a `fifo` cannot be written: its packets differ in length"#,
        ],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80 }
playback = "fifo"
playout = "40 ms""#,
        &[
            r#"x.toml:21:11: a flow is played either after a `playout` or through the FIFO of a `playback`; omit one"#,
        ],
    ),
    (
        r#"source = { kind = "bulk", message = "8 KiB" }"#,
        r#"source = { kind = "bulk", message = "8 KiB" }
playback = { kind = "fifo", depth = 160, fill = 161 }"#,
        &[r#"x.toml:26:12: the source `bulk` sends no audio that could be played"#],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80, fifo = 2000 }
playback = { kind = "fifo", depth = 160, fill = 161 }"#,
        &[r#"x.toml:20:49: `fill` is 161, and the FIFO holds 160 samples; lower it or raise `depth`"#],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "sctp", window = "64 KiB" }
source = { kind = "bulk", message = "40 KiB" }"#,
        &[
            r#"x.toml:24:39: a message of 40960 B is too large for `sctp`, which takes messages of up to 32768 B, half of its `window`"#,
        ],
    ),
    (
        "a = {}",
        r#"a = { run = "iperf3 -s" }"#,
        &[r#"x.toml:5:13: `run` needs a `kernel` on which the program runs"#],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80 }
codec = "g711""#,
        &[
            r#"x.toml:20:9: `codec` needs a `playout` or a `playback`: a flow that is not played has no listener"#,
        ],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80 }
playout = "40 ms"
reflect = true
codec = { kind = "other", ie = 11, bpl = 19 }"#,
        &[r#"x.toml:22:9: `codec` is for speech in one direction, to a host; this flow has no listener"#],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80 }
playout = "40 ms"
codec = "g729a""#,
        &[
            r#"x.toml:21:9: the source `voice` sends G.711; expected `g711`, `g711-plc` or `other`, or the source `load`"#,
        ],
    ),
    (
        r#"source = { kind = "bulk", message = "8 KiB" }"#,
        r#"source = { kind = "bulk", message = "8 KiB" }
playout = "40 ms"
codec = "g729a""#,
        &[r#"x.toml:27:9: `codec` needs a source with its own rate, which `bulk` does not have"#],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80 }
playout = "40 ms"
codec = { kind = "other", ie = 41 }"#,
        &[
            r#"x.toml:21:9: the key `bpl` is missing in the codec `other`; expected a number from 1 to 40"#,
            r#"x.toml:21:32: `ie` must be a number from 0 to 40, not `41`"#,
        ],
    ),
    (
        r#"source = { kind = "voice", samples = 80 }"#,
        r#"source = { kind = "voice", samples = 80, fifo = 2000 }"#,
        &[
            r#"x.toml:19:49: `fifo`: a message of 2000 B makes a packet of 2028 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
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
        &[r#"x.toml:18:13: there is no transport `dtls`; known: {transports}"#],
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
            r#"x.toml:18:51: `congestion-control`: `ccid-5` is not a known value; did you mean `ccid-2`?"#,
            r#"x.toml:18:81: `checksum-coverage` must be a size from 0 B to 56 B, not `64 B`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "dccp", when-full = "drop-oldest" }
source = { kind = "bulk", message = "1000 B" }"#,
        &[
            r#"x.toml:24:42: the source `bulk` sends as fast as the transport allows, but this one takes all and drops it; leave `when-full` out or give the source an `interval`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "dccp", encapsulation = "udp" }
source = { kind = "bulk", message = "1440 B" }"#,
        &[
            r#"x.toml:25:37: `message`: a message of 1440 B makes a packet of up to 1508 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "rtp", payload = "pcma", channels = 0, session-bandwidth = "999 bit/s" }"#,
        &[
            r#"x.toml:18:39: `payload`: `pcma` is not a known value; did you mean `pcmu`?"#,
            r#"x.toml:18:58: `channels` must be a whole number from 1 to 255, not `0`"#,
            r#"x.toml:18:81: `session-bandwidth` must be a rate from 1 kbit/s to 1000 Gbit/s, not `999 bit/s`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = "rtp"
source = { kind = "bulk", message = "1461 B", interval = "10 ms" }"#,
        &[
            r#"x.toml:25:37: `message`: a message of 1461 B makes a packet of 1501 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "xtp", error-control = "some", every = 0 }"#,
        &[
            r#"x.toml:18:45: `error-control`: `some` is not a known value; known: `selective` and `none`"#,
            r#"x.toml:18:61: `every` must be a whole number from 1 to 1000000, not `0`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "xtp", error-control = "none", flow-control = "none" }
source = { kind = "bulk", message = "1000 B" }"#,
        &[
            r#"x.toml:24:68: the source `bulk` sends as fast as the transport allows, but this one takes all; give it a `rate` or leave `flow-control` out"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"transport = { kind = "xtp", max-data = "1449 B" }"#,
        &[
            r#"x.toml:24:40: `max-data`: data of 1449 B make packets of 1501 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
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
        &[r#"x.toml:18:40: without a header every message must arrive in order; omit `streams`"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "sctp", engine = "kernel", streams = 2 }"#,
        &[r#"x.toml:18:59: `engine = "kernel"` has no `streams` to choose; leave one of them out"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", engine = "classic", window = "64 KiB" }"#,
        &[
            r#"x.toml:18:29: unknown key `engine` in the transport `tcp`; the simulator has one TCP: leave the key out, or for a TCP of the 1990s set `profile = "solaris-2.5"` or `profile = "bsd-reno"`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", sack = false, recovery = "rack" }"#,
        &[
            r#"x.toml:18:54: RACK needs selective acknowledgements: leave `sack = false` out, or set `recovery = "dupack"`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", sack = false, tail-loss-probe = true }"#,
        &[
            r#"x.toml:18:61: tail loss probes need selective acknowledgements: leave `sack = false` out, or set `tail-loss-probe = false`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", congestion-control = "bbr", pacing = "never" }"#,
        &[
            r#"x.toml:18:66: this congestion control paces: leave `pacing = "never"` out, or choose another `congestion-control`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", congestion-control = "dctcp", ecn = "off" }"#,
        &[
            r#"x.toml:18:65: this congestion control needs marks: leave `ecn = "off"` out, or choose another `congestion-control`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", nodelay = true, cork = true }"#,
        &[
            r#"x.toml:18:52: `cork` collects small messages, which `nodelay = true` forbids; leave one of them out"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", window = "64 KiB", autotuning = true }"#,
        &[r#"x.toml:18:61: `window` fixes the buffers, which `autotuning` lets grow; leave one of them out"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", keep-alive-probes = 3 }"#,
        &[
            r#"x.toml:18:49: without `keep-alive` nothing is probed; give it, or leave `keep-alive-probes` out"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", rto-min = "2 s", rto-max = "1 s" }"#,
        &[r#"x.toml:18:39: an `rto-min` of 2 s is longer than the `rto-max` of 1 s"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", profile = "dos" }"#,
        &[
            r#"x.toml:18:39: `profile`: `dos` is not a known value; known: `linux`, `windows`, `apple`, `solaris-2.5` and `bsd-reno`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "quic", mode = "message", congestion-control = "bbr" }"#,
        &[
            r#"x.toml:18:37: `mode`: `message` is not a known value; known: `stream`, `streams` and `datagrams`"#,
            r#"x.toml:18:69: `congestion-control`: `bbr` is not a known value; known: `cubic` and `new-reno`"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "quic", mode = "datagrams" }
source = { kind = "bulk", message = "1440 B" }"#,
        &[
            r#"x.toml:25:37: `message`: a message of 1440 B makes a packet of up to 1506 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"transport = { kind = "quic", mode = "streams" }
framing = "none""#,
        &[
            r#"x.toml:24:37: without a header every message must arrive in order, which mode `streams` does not guarantee; omit `mode`"#,
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
            r#"x.toml:16:13: `block`: blocks of 256 B make packets of 262 B with all headers, which link `trunk` would drop: its `mtu` is 261 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "udp", window = "1 KiB" }"#,
        &[r#"x.toml:18:29: unknown key `window` in the transport `udp`; known: `kind`, `buffer` and `ecn`"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "tcp", mss = "1461 B" }"#,
        &[
            r#"x.toml:18:35: `mss`: segments of 1461 B make packets of 1501 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
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
            r#"x.toml:15:1: the key `source` is missing in [flow.voice]; expected one of {sources}"#,
            r#"x.toml:19:13: unknown key `extra` in [flow.voice]; known: `from`, `to`, `transport`, `source`, `channels`, `count`, `reflect`, `playout`, `start`, `stagger`, `priority`, `effort`, `framing`, `audio`, `path`, `playback` and `codec`"#,
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
            r#"x.toml:19:38: `samples`: a message of 4096 B makes a packet of 4124 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"samples = 80"#,
        r#"phase = "rnd""#,
        &[r#"x.toml:19:36: `phase`: `rnd` is not a known value; known: `random`, `spread` and `together`"#],
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
            r#"x.toml:19:35: `cd.wav` has a sample rate of 44100 Hz; expected 8000 Hz: convert it with `sox in.wav -r 8000 -b 16 out.wav`"#,
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
        &[r#"x.toml:19:10: the source `interactive` waits for replies; set `reflect = true`"#],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#""bulk""#,
        &[
            r#"x.toml:19:10: a message of 8192 B makes a packet of 8220 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
            r#"x.toml:19:10: the source `bulk` sends as fast as the transport allows, but `udp` has no flow control; give it an `interval` or use {flow control}"#,
        ],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#"{ kind = "load", message = "70000 B", interval = "1 ms" }"#,
        &[r#"x.toml:19:37: a message of 70000 B is larger than the 65507 B that one over `udp` may have"#],
    ),
    (
        r#"{ kind = "voice", samples = 80 }"#,
        r#"{ kind = "load", message = "1473 B", interval = "1 ms" }"#,
        &[
            r#"x.toml:19:37: `message`: a message of 1473 B makes a packet of 1501 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
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
        &[r#"x.toml:22:1: unknown key `flow.voice.cont`; did you mean `flow.voice.count`?"#],
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
"flow.voice.count" = [1, 2, 1]
[flow.bulk]"#,
        &[r#"x.toml:22:29: the sweep of `flow.voice.count` has the value `1` twice; leave one out"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.count" = 3
[flow.bulk]"#,
        &[
            r#"x.toml:22:22: the sweep of `flow.voice.count` must be a list of values such as `[1, 2, 5]`, or a range such as `{ from = 1, to = 9, step = 2 }`, not the number 3"#,
        ],
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
            r#"x.toml:22:41: `samples`: a message of 2000 B makes a packet of 2028 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.bulk.transport" = ["tcp", "udp"]
[flow.bulk]"#,
        &[
            r#"x.toml:22:33: `message`: a message of 8192 B makes a packet of 8220 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
            r#"x.toml:22:33: the source `bulk` sends as fast as the transport allows, but `udp` has no flow control; give it an `interval` or use {flow control}"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
seed = [1, 2]
[flow.bulk]"#,
        &[r#"x.toml:22:1: `seed` applies to all points and cannot be swept"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[sweep]
"flow.voice.transport.window" = ["1 KiB"]
[flow.bulk]"#,
        &[
            r#"x.toml:22:1: unknown key `flow.voice.transport.window`; known in `flow.voice.transport`: `buffer`, `ecn` and `kind`"#,
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
"flow.voice.sink.b.loss" = "< 1 %"
[flow.bulk]"#,
        &[r#"x.toml:22:1: the flow `voice` does not have several sinks; omit `sink.b.`"#],
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
            r#"x.toml:22:1: `voice.loss` is neither `flow.NAME.FIGURE` nor `bundle.NAME.FIGURE` nor `bundle.NAME.TRANSPORT.FIGURE`; the figures of a flow are `throughput`, `throughput.answers`, `voice-channels`, `fairness`, `loss`, `late`, `loss-and-late`, `unfinished`, `refused`, `undelivered`, `not-in-time`, `affected`, `latency.mean`, `latency.p50`, `latency.p90`, `latency.p99`, `latency.p999`, `latency.max`, `jitter.mean-absolute-deviation`, `jitter.interarrival`, `jitter.pdv-p999`, `start-up.mean`, `start-up.max`, `margin.mean`, `margin.min`, `margin.p001`, `margin.p01`, `underflows`, `silence`, `silence.longest`, `capture-overflows`, `playback-overflows`, `samples-lost`, `mos`, `r`, `mouth-to-ear` and `ppl`"#,
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
    (
        r#"rate = "2 Mbit/s""#,
        r#"medium = "trace"
file = "sorted.down""#,
        &[
            r#"x.toml:12:8: `sorted.down` has an error in line 3: 2 ms is before the 3 ms above it; sort the lines"#,
        ],
    ),
    (
        r#"rate = "2 Mbit/s""#,
        r#"medium = "trace"
file = "none.down""#,
        &[r#"x.toml:12:8: `none.down` does not exist"#],
    ),
    (
        r#"rate = "2 Mbit/s""#,
        r#"medium = "trace""#,
        &[
            r#"x.toml:9:1: the key `file` is missing in [link.trunk]; expected the path of a packet-delivery trace"#,
        ],
    ),
];
