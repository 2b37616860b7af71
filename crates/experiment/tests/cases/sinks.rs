//! Mistakes in flows with several sinks or none, and in the services of XTP.

use super::Case;

/// The mistakes.
pub(crate) const SINKS: &[Case] = &[
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
transport = "udp""#,
        &[
            r#"x.toml:15:1: the key `to` is missing in [flow.voice]; expected the name of a host, or a list of them"#,
        ],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = ["b", "d", { join = "1 s" }, { host = "c", jion = "1 s" }]
transport = "udp""#,
        &[
            r#"x.toml:17:12: `to` names the unknown host `d`; known: `a`, `b` and `c`"#,
            r#"x.toml:17:17: the key `host` is missing in a sink of `to`; expected the name of a host"#,
            r#"x.toml:17:49: unknown key `jion` in a sink; did you mean `join`?"#,
        ],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = "d"
transport = { kind = "xtp", service = "datagram", rate = "1 Mbit/s" }"#,
        &[
            r#"x.toml:17:6: `to` names the unknown host `d`; known: `a`, `b` and `c`"#,
            r#"x.toml:18:58: the service `datagram` has no `rate`; leave it out"#,
        ],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = ["b", "a"]
transport = "udp""#,
        &[r#"x.toml:17:12: the flow would go from `a` to itself; name another host"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = ["b", { host = "b" }]
transport = "udp""#,
        &[r#"x.toml:17:12: `b` is already a sink of the flow"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = ["b", "c"]
transport = "udp""#,
        &[r#"x.toml:17:12: no path leads from `a` to `c`; connect them with a `[link.NAME]`"#],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = ["b", "c"]
path = ["trunk"]
transport = "udp""#,
        &[
            r#"x.toml:18:8: `path` is for one sink; several sinks are reached over the shortest paths, so omit it"#,
        ],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = { host = "b", join = "2 s", leave = "1 s" }
transport = "udp""#,
        &[r#"x.toml:17:42: `leave` must be later than `join`, which is 2 s"#],
    ),
    (
        r#"[flow.bulk]
from = "a"
to = "b""#,
        r#"[link.branch]
between = ["b", "c"]
rate = "2 Mbit/s"
[flow.bulk]
from = "a"
to = ["b", "c"]"#,
        &[
            r#"x.toml:27:13: `tcp` reaches one sink; for several use `udp`, or `xtp` with `service = "multicast"` or `"reliable-multicast"`"#,
        ],
    ),
    (
        r#"to = "b"
transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"to = [{ host = "b", join = "1 s" }]
transport = { kind = "tcp", window = "32 KiB" }"#,
        &[
            r#"x.toml:23:6: `tcp` is a conversation of two hosts, which no other host can join or leave; omit `join` and `leave`, or use `udp`"#,
        ],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "c"
to = []
transport = "udp""#,
        &[r#"x.toml:17:6: no link leaves `c`; connect it to another host with a `[link.NAME]`"#],
    ),
    (
        r#"[flow.voice]
from = "a"
to = "b"
transport = "udp""#,
        r#"[link.other]
between = ["a", "c"]
rate = "2 Mbit/s"
[flow.voice]
from = "a"
to = []
transport = "udp""#,
        &[
            r#"x.toml:20:6: `trunk` and `other` leave `a`; say which one carries the packets, such as `path = ["trunk"]`"#,
        ],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = []
path = ["trunk", "trunk"]
transport = "udp""#,
        &[r#"x.toml:18:8: a flow without sinks crosses one link that leaves `a`: `trunk`"#],
    ),
    (
        r#"to = "b"
transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"to = []
transport = { kind = "tcp", window = "32 KiB" }"#,
        &[
            r#"x.toml:24:13: `tcp` waits for a peer, and the flow has no sink; use `udp`, or name a host in `to`"#,
        ],
    ),
    (
        r#"from = "a"
to = "b"
transport = "udp""#,
        r#"from = "a"
to = []
reflect = true
transport = "udp""#,
        &[r#"x.toml:17:6: no host would reply; name a host"#],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "xtp", service = "reliable-multicast" }
framing = "none""#,
        &[
            r#"x.toml:19:11: without a header, receivers cannot find where the messages of a multicast begin; omit `framing`"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "xtp", service = "datagram", open = "implicit", wait = "1 s", slot = "1 ms" }"#,
        &[
            r#"x.toml:18:58: the service `datagram` has no `open`; leave it out"#,
            r#"x.toml:18:77: the service `datagram` has no `wait`; leave it out"#,
            r#"x.toml:18:91: the service `datagram` has no `slot`; leave it out"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "xtp", service = "transaction" }"#,
        &[r#"x.toml:18:39: a transaction is a request and its reply; set `reflect = true`"#],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"transport = { kind = "xtp", service = "transaction", window = "8000 B" }
reflect = true"#,
        &[r#"x.toml:24:63: a message of 8192 B does not fit into the `window` of 8000 B"#],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }
source = { kind = "bulk", message = "8 KiB" }"#,
        r#"transport = { kind = "xtp", service = "reliable-multicast" }
reflect = true
source = { kind = "bulk", message = "1409 B" }"#,
        &[
            r#"x.toml:26:37: `message`: a message of 1409 B makes a packet of 1501 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "xtp", service = "reliable-multicast", quorum = 2 }"#,
        &[r#"x.toml:18:70: a `quorum` of 2 is more than the 1 sinks that there are"#],
    ),
    (
        r#"transport = { kind = "tcp", window = "32 KiB" }"#,
        r#"transport = { kind = "xtp", service = "datagram" }"#,
        &[
            r#"x.toml:25:10: the source `bulk` sends as fast as the transport allows, but the service `datagram` of `xtp` has no flow control; give it an `interval` or use {flow control}"#,
            r#"x.toml:25:37: `message`: a message of 8192 B makes a packet of 8284 B with all headers, which link `trunk` would drop: its `mtu` is 1500 B"#,
        ],
    ),
    (
        r#"transport = "udp""#,
        r#"transport = { kind = "xtp", service = "acknowledged-datagram", max-data = "100 B" }"#,
        &[r#"x.toml:18:75: a message of 80 B makes data of 120 B, more than the 100 B of `max-data`"#],
    ),
];
