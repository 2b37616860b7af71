//! UDP-Lite between simulated hosts: damage that the checksum does not cover is delivered. And MPTCP, which is not simulated.

mod support;

use support::{GoOn, Log, experiment, flow, simulate};
use trunkline_core::{Duration, Seed};
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

/// A damaged measurement header is not believed: its message is lost, and never another one or one of another time.
#[test]
fn damage_of_the_measurement_header_invents_no_message() {
    let transports = [
        "{ kind = \"udp-lite\", checksum-coverage = \"8 B\" }",
        "{ kind = \"udp-lite\", checksum-coverage = \"0 B\" }",
        "{ kind = \"dccp\", checksum-coverage = \"0 B\" }",
        "{ kind = \"xtp\", checksum = false, error-control = \"none\" }",
    ];
    for (transport, message) in
        transports.iter().flat_map(|transport| [20, 160].map(|size| (transport, size)))
    {
        let source = format!("{{ kind = \"load\", message = \"{message} B\", interval = \"5 ms\" }}");
        let text =
            format!("[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {source}\n");
        let experiment = experiment("corrupt = \"10 %\"", &text);
        let summary = simulate(&experiment);
        let voice = flow(&summary, "voice");
        let (counts, latency) = (&voice.counts, voice.latency.as_ref().unwrap());
        let of = format!("{transport}, {message} B: {counts:?}, {latency:?}");
        assert_eq!((counts.duplicate, counts.reordered), (0, 0), "{of}");
        assert!(latency.min > Duration::from_millis(10), "{of}");
        // Losses slow DCCP down: messages wait.
        if !transport.contains("dccp") {
            assert!((1700..=2000).contains(&counts.due()) && counts.lost < 200, "{of}");
            assert!(latency.max <= latency.min + Duration::from_millis(1), "{of}");
        }
    }
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
