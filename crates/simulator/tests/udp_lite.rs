//! UDP-Lite between simulated hosts: damage that the checksum does not cover is delivered. And MPTCP, which is not simulated.

mod support;

use support::{GoOn, Log, experiment, flow, simulate};
use trunkline_core::Seed;
use trunkline_metrics::RepetitionSummary;

/// Voice of 160 bytes over a link that damages one bit of every fifth packet.
fn damaged(transport: &str) -> RepetitionSummary {
    let voice = format!(
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n\
         source = {{ kind = \"voice\", samples = 160 }}\n"
    );
    simulate(&experiment("corrupt = \"20 %\"", &voice))
}

#[test]
fn only_damage_within_the_coverage_is_lost() {
    let lost = |transport| {
        let summary = damaged(transport);
        let voice = flow(&summary, "voice");
        let counters = &voice.transport_counters;
        let found = counters["checksum-errors"] + counters["malformed"];
        assert_eq!(voice.counts.sent - voice.counts.received, found, "{transport}");
        found as f64 / voice.counts.sent as f64
    };
    let [udp, whole, header] =
        ["\"udp\"", "\"udp-lite\"", "{ kind = \"udp-lite\", checksum-coverage = \"40 B\" }"].map(lost);
    assert!((0.15..0.25).contains(&udp), "{udp}");
    assert!((0.15..0.25).contains(&whole), "{whole}");
    // 48 bytes of 208 are covered.
    let share = header / whole;
    assert!((0.1..0.4).contains(&share), "{header} of {whole}");
}

#[test]
fn mptcp_is_refused_with_what_to_use_instead() {
    let voice = "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"mptcp\"\n\
                 source = { kind = \"voice\", samples = 160 }\n";
    let experiment = experiment("", voice);
    let scenario = &experiment.points.first().scenario;
    let refused =
        trunkline_simulator::run(scenario, Seed::new(7, 0), &mut Log::default(), &mut GoOn).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("`voice`") && text.ends_with("which the simulator does not have; use `tcp`"),
        "{text}"
    );
}
