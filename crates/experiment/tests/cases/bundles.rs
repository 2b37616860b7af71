//! Mistakes in bundles.

use super::Case;

/// The mistakes.
pub(crate) const BUNDLES: &[Case] = &[
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flow = ["voice"]
[flow.bulk]"#,
        &[
            r#"x.toml:21:1: the key `flows` is missing in [bundle.trunk]; expected a list of names of flows"#,
            r#"x.toml:22:1: unknown key `flow` in [bundle.trunk]; did you mean `flows`?"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flows = "voice"
[flow.bulk]"#,
        &[r#"x.toml:22:9: `flows` must be a list of names of flows, not the text `voice`"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flows = []
[flow.bulk]"#,
        &[r#"x.toml:22:9: the bundle has no flows; name at least one"#],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flows = ["voice", "blk", 5, "voice"]
[flow.bulk]"#,
        &[
            r#"x.toml:22:19: `flows` names the unknown flow `blk`; did you mean `bulk`?"#,
            r#"x.toml:22:26: `flows` must name flows, not the number 5"#,
            r#"x.toml:22:29: the flow `voice` is listed twice"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle]
both.flows = ["bulk", "voice"]
one.flows = ["voice"]
[flow.bulk]"#,
        &[
            r#"x.toml:23:14: the flow `voice` is in the bundle `both` already; a flow is in one bundle at most"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flows = ["nowhere", "voice"]
[flow.nowhere]
from = "a"
to = []
transport = "udp"
source = "voice"
[flow.bulk]"#,
        &[
            r#"x.toml:22:10: a flow of a bundle has one sink, but `nowhere` has no sink"#,
            r#"x.toml:22:21: both flows use `udp`, but latency is a round trip in `voice` and one way in `nowhere`; set `reflect` in both, or in neither"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flows = ["there", "voice", "bulk"]
[flow.there]
from = "a"
to = "b"
transport = "udp"
source = "voice"
reflect = true
[flow.bulk]"#,
        &[
            r#"x.toml:22:19: both flows use `udp`, but latency is a round trip in `there` and one way in `voice`; set `reflect` in both, or in neither"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flows = ["voice", "bulk"]
[limits]
"bundle.trnk.fairness" = "> 0.9"
"bundle.trunk.fairnes" = "> 0.9"
"bundle.trunk.loss" = "< 1 %"
"bundle.trunk.loss.max" = "< 1 %"
"bundle.trunk.udp.loss" = "< 1 %"
"bundle.trunk.udp.loss.mean" = "< 1 ms"
[flow.bulk]"#,
        &[
            r#"x.toml:24:1: there is no bundle `trnk`; did you mean `trunk`?"#,
            r#"x.toml:25:1: a bundle has no figure `fairnes`; did you mean `fairness`?"#,
            r#"x.toml:26:1: `loss` is a figure of connections, not of the whole bundle: name their transport, `bundle.trunk.TRANSPORT.loss`"#,
            r#"x.toml:27:1: `loss.max` is a figure of connections, not of the whole bundle: name their transport, `bundle.trunk.TRANSPORT.loss.max`"#,
            r#"x.toml:28:1: a transport of a bundle has no figure `loss`; known: `fairness`, `throughput.mean`, `throughput.min`, `throughput.max`, `loss.mean`, `loss.min`, `loss.max`, `unfinished.mean`, `unfinished.min`, `unfinished.max`, `refused.mean`, `refused.min`, `refused.max`, `latency.mean.mean`, `latency.mean.min`, `latency.mean.max`, `latency.p999.mean`, `latency.p999.min` and `latency.p999.max`"#,
            r#"x.toml:29:32: the limit of `bundle.trunk.udp.loss.mean`: `1 ms` has the unknown unit `ms`; expected a share from `0 %` to `100 %` (or 0 to 1)"#,
        ],
    ),
    (
        r#"[flow.bulk]"#,
        r#"[bundle.trunk]
flows = ["voice"]
[limits]
"bundle.trunk.upd.loss.max" = "< 1 %"
"bundle.trunk.tcp.fairness" = "> 0.9"
[flow.bulk]"#,
        &[
            r#"x.toml:24:1: the bundle `trunk` has no transport `upd`; did you mean `udp`?"#,
            r#"x.toml:25:1: the bundle `trunk` has no transport `tcp`; known: `udp`"#,
        ],
    ),
];
