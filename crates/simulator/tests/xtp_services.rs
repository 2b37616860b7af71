//! What XTP does beside streams to one sink, many channels on one stream, and priorities.

mod support;

use support::{experiment, flow, parse, simulate};
use trunkline_core::Duration;
use trunkline_metrics::FlowSummary;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// The one flow of voice of an experiment with this link.
fn one(link: &str, transport: &str, rest: &str) -> FlowSummary {
    let text = format!(
        "[flow.it]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n\
         source = {{ kind = \"voice\", samples = 160 }}\n{rest}\n"
    );
    flow(&simulate(&experiment(link, &text)), "it").clone()
}

fn mean(flow: &FlowSummary) -> Duration {
    flow.latency.unwrap_or_else(|| panic!("nothing of {} arrived", flow.flow)).mean
}

#[test]
fn datagrams_are_lost_and_acknowledged_ones_repeated() {
    let lossy = "loss = \"5 %\"";
    let plain = one(lossy, "{ kind = \"xtp\", service = \"datagram\" }", "");
    assert!((10..50).contains(&plain.counts.lost), "{:?}", plain.counts);
    let again = "{ kind = \"xtp\", service = \"acknowledged-datagram\", wait = \"100 ms\" }";
    let acknowledged = one(lossy, again, "");
    assert_eq!((acknowledged.counts.sent, acknowledged.counts.lost), (500, 0));
    assert!(acknowledged.transport_counters["retransmissions"] > 10);
    // One that is repeated arrives behind its successors: nothing waits for it.
    assert!(acknowledged.counts.reordered > 10, "{:?}", acknowledged.counts);
    assert_eq!(acknowledged.latency.unwrap().p50, plain.latency.unwrap().p50);
}

#[test]
fn a_transaction_is_a_request_and_its_answer() {
    let transaction = "{ kind = \"xtp\", service = \"transaction\", wait = \"100 ms\" }";
    for (link, lost) in [("", false), ("loss = \"5 %\"", true)] {
        let it = one(link, transaction, "reflect = true");
        assert_eq!((it.counts.sent, it.counts.received), (500, 500), "{link}");
        assert_eq!(it.transport_counters["transactions"], 1000, "500 at each end");
        assert_eq!(it.transport_counters["retransmissions"] > 10, lost);
    }
}

#[test]
fn many_channels_share_a_stream_in_each_direction() {
    let flows = ["there", "back"].map(|name| {
        let (from, to) = if name == "there" { ("a", "b") } else { ("b", "a") };
        format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = \"xtp\"\nchannels = 24\n\
             source = {{ kind = \"voice\", samples = 160 }}\n"
        )
    });
    let link =
        "[link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"5 Mbit/s\"\ndelay = \"10 ms\"\nloss = \"1 %\"\n";
    let head = "name = \"test\"\nduration = \"10 s\"\n[hosts]\na = {}\nb = {}\n";
    let summary = simulate(&parse(&format!("{head}{link}{}", flows.concat())));
    for name in ["there", "back"] {
        let flow = flow(&summary, name);
        assert!(support::nearly(flow.counts.sent, 24 * 500) && flow.counts.lost == 0, "{:?}", flow.counts);
    }
}

#[test]
fn urgent_packets_go_first_at_every_queue() {
    let measured = |queue: &str| {
        let voice = |name: &str, priority: u32| {
            format!(
                "[flow.{name}]\nfrom = \"a\"\nto = \"b\"\npriority = {priority}\n\
                 transport = {{ kind = \"xtp\", service = \"datagram\" }}\n\
                 source = {{ kind = \"voice\", samples = 160 }}\n"
            )
        };
        let bulk = "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\npriority = 9\ntransport = \"xtp\"\n\
                    source = { kind = \"bulk\", message = \"1000 B\" }\n";
        let flows = voice("urgent", 1) + &voice("patient", 10) + bulk;
        let summary = simulate(&experiment(&format!("queue = \"{queue}\""), &flows));
        ["urgent", "patient"].map(|name| mean(flow(&summary, name)))
    };
    let [urgent, patient] = measured("fifo");
    assert!(urgent > MS(200) && patient > MS(200), "behind 64 KiB of bulk: {urgent} and {patient}");
    let [urgent, patient] = measured("priority");
    assert!(urgent < MS(30), "behind at most the packet that is being sent: {urgent}");
    assert!(patient > MS(200), "{patient}");
}
