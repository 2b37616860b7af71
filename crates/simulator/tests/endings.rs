//! Conversations that end before the run does.

mod support;

use support::{experiment, flow, simulate};
use trunkline_core::Rate;

/// The sink falls silent, the transport gives up after a while, and a source that sends as fast as it may has nothing any
/// more that would hold it back: it ends with its conversation, and the run goes on.
#[test]
fn a_saturating_source_ends_with_its_conversation() {
    for transport in ["tcp", "sctp", "quic", "urp", "dccp", "xtp"] {
        let flows = format!(
            "[flow.bulk]\nfrom = \"a\"\nto = [{{ host = \"b\", fail = \"200 ms\" }}]\ntransport = \"{transport}\"\n\
             source = {{ kind = \"bulk\", message = \"1 KiB\" }}\n"
        );
        let text = experiment("", &flows).text.replace("\"10 s\"", "\"1 h\"");
        let counts = flow(&simulate(&support::parse(&text)), "bulk").counts;
        assert!((1..counts.sent).contains(&counts.received), "{transport}: {counts:?}");
    }
}

/// If nothing comes back, a connection is never made. Messages that the source wanted to send meanwhile were refused, not lost,
/// as if the other end had refused it from the first moment on.
#[test]
fn a_flow_that_is_never_connected_is_refused_from_its_start_on() {
    for transport in ["tcp", "sctp", "quic", "dccp", "xtp"] {
        let flows = format!(
            "[flow.voice]\nfrom = \"a\"\nto = \"b\"\nstart = \"1 s\"\ncount = 2\ntransport = \"{transport}\"\n\
             playout = \"40 ms\"\nsource = {{ kind = \"voice\", samples = 160 }}\n"
        );
        let summary = simulate(&experiment("loss = \"100 %\"", &flows));
        let flow = flow(&summary, "voice");
        assert_eq!((flow.counts.sent, flow.counts.refused), (0, 900), "{transport}: {:?}", flow.counts);
        assert_eq!(flow.transport_counters["connections-not-made"], 2, "{transport}");
        assert_eq!(flow.quality.as_ref().map(|quality| quality.ppl.value()), Some(1.0), "{transport}");
    }
}

/// A connection that is made only in the drain time comes too late for every message: the source has ended by then.
#[test]
fn a_flow_that_is_connected_in_the_drain_time_is_refused_too() {
    for transport in ["tcp", "sctp", "quic", "dccp", "xtp"] {
        let flows = format!(
            "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ncount = 2\ntransport = \"{transport}\"\n\
             source = {{ kind = \"voice\", samples = 160 }}\n"
        );
        let text = experiment("", &flows).text.replace("\"10 s\"", "\"1 s\"\ndrain = \"9 s\"");
        let summary = simulate(&support::parse(&text.replace("\"10 ms\"", "\"800 ms\"")));
        let flow = flow(&summary, "voice");
        assert_eq!((flow.counts.sent, flow.counts.refused), (0, 100), "{transport}: {:?}", flow.counts);
        assert_eq!(flow.transport_counters["connections-not-made"], 2, "{transport}");
        let (offered, user) = (flow.throughput.offered.bits_per_second(), flow.throughput.user);
        assert!(offered.abs_diff(128_000) < 3_000 && user == Rate::ZERO, "{transport}: {offered}");
    }
}

/// The measurement ends with another flow, in whose drain time the connection is made: messages due by then were refused.
#[test]
fn a_flow_that_is_connected_after_an_early_end_is_refused_until_then() {
    let summary = simulate(&support::parse(
        "name = \"test\"\nduration = \"10 s\"\ndrain = \"5 s\"\nuntil = \"short\"\n[hosts]\na = {}\nb = {}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"800 ms\"\n\
         [flow.short]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         source = { kind = \"bulk\", message = \"1 KB\", interval = \"100 ms\", bytes = \"10 KB\" }\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nsource = { kind = \"voice\", samples = 160 }\n",
    ));
    let counts = flow(&summary, "voice").counts;
    assert!(counts.sent == 0 && (45..=50).contains(&counts.refused), "{counts:?}");
}

/// A file without links is for `live`, which uses the network as it is. The simulator has no network of its own.
#[test]
fn a_file_without_links_is_not_simulated() {
    let text = "name = \"test\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
                transport = \"udp\"\nsource = { kind = \"voice\", samples = 160 }\n";
    let scenario = support::parse(text).points.first().scenario.clone();
    let refused = trunkline_simulator::check(&scenario).unwrap_err().to_string();
    assert!(refused.contains("no link leads from `a` to `b`; add a `[link.NAME]`"), "{refused}");
}
