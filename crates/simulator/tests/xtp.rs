//! XTP streams between simulated hosts: what its mechanisms do to voice and to bulk.

mod support;

use support::{experiment, flow, simulate};
use trunkline_metrics::FlowSummary;

/// The one flow of an experiment with this link and this flow.
fn one(link: &str, transport: &str, source: &str) -> FlowSummary {
    let text = format!("[flow.it]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {source}\n");
    flow(&simulate(&experiment(link, &text)), "it").clone()
}

const VOICE: &str = "{ kind = \"voice\", samples = 160 }";
const BULK: &str = "{ kind = \"bulk\", message = \"1000 B\" }";
const LOSSY: &str = "loss = \"5 %\"";

#[test]
fn reliable_voice_arrives_whole_and_unreliable_voice_in_time() {
    let reliable = one(LOSSY, "\"xtp\"", VOICE);
    assert!(support::nearly(reliable.counts.sent, 500) && reliable.counts.lost == 0, "{:?}", reliable.counts);
    assert!(reliable.transport_counters["retransmissions"] > 10);
    let unreliable = one(LOSSY, "{ kind = \"xtp\", error-control = \"none\" }", VOICE);
    assert!((5..60).contains(&unreliable.counts.lost), "{:?}", unreliable.counts);
    assert_eq!(unreliable.transport_counters["retransmissions"], 0);
    let latest = |summary: &FlowSummary| summary.latency.expect("messages were received").max;
    assert!(latest(&unreliable) < latest(&reliable), "waiting for repairs takes longer than going on");
}

#[test]
fn acknowledgements_come_as_often_as_they_are_asked_for() {
    let controls = |options: &str| {
        let summary = one("", &format!("{{ kind = \"xtp\"{options} }}"), VOICE);
        assert_eq!(summary.counts.lost, 0);
        summary.transport_counters["control-packets-sent"]
    };
    let (every, tenth) = (controls(""), controls(", every = 10"));
    assert!((495..=510).contains(&every), "{every}");
    assert!((49..=60).contains(&tenth), "{tenth}");
    let never = ", acknowledge = \"never\", error-control = \"none\", flow-control = \"none\"";
    assert!(controls(never) <= 4, "only what opens and closes");
}

#[test]
fn bulk_fills_the_link_and_keeps_to_its_rate() {
    let full = one("", "\"xtp\"", BULK);
    assert!(full.throughput.user.bits_per_second() > 850_000, "{:?}", full.throughput);
    let limited = one("", "{ kind = \"xtp\", rate = \"400 kbit/s\" }", BULK);
    let rate = limited.throughput.user.bits_per_second();
    assert!((350_000..=400_000).contains(&rate), "{rate} bit/s");
}
