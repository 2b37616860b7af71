//! URP between simulated hosts: what its window, its blocks and its recovery come to on a link.

mod support;

use support::{flow, parse, simulate};
use trunkline_metrics::RepetitionSummary;

/// Bulk over URP for a while, on a link with these keys.
fn bulk(transport: &str, link: &str) -> RepetitionSummary {
    bulk_for(30, transport, link)
}

fn bulk_for(seconds: u32, transport: &str, link: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"{seconds} s\"\ndrain = \"20 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\n{link}\n[flow.bulk]\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"urp\"{transport} }}\nsource = {{ kind = \"bulk\", message = \"4096 B\" }}\n"
    )))
}

/// User throughput in bytes per second.
fn stream_rate(summary: &RepetitionSummary) -> f64 {
    flow(summary, "bulk").throughput.user.bits_per_second() as f64 / 8.0
}

#[test]
fn a_window_each_round_trip() {
    for (transport, block, window) in
        [("", 256.0, 3.0), (", block = \"1024 B\", window = 7", 1024.0, 7.0), (", window = 1", 256.0, 1.0)]
    {
        // Only whole messages count, and the slowest takes 1.6 s for one.
        let summary = bulk_for(400, transport, "rate = \"100 Mbit/s\"\ndelay = \"50 ms\"");
        // The last block of a window is acknowledged a round trip, the serialisation of a block and that of an ECHO after
        // the first of it left.
        let round_trip = 0.1 + (block + 6.0 + 2.0) * 8.0 / 1e8;
        let law = window * block / round_trip;
        let rate = stream_rate(&summary);
        assert!((0.99..1.01).contains(&(rate / law)), "{transport}: {rate} B/s, the law says {law}");
        let counters = &flow(&summary, "bulk").transport_counters;
        assert_eq!((counters["retransmissions"], counters["timeouts"]), (0, 0), "{transport}");
    }
}

#[test]
fn trailers_and_framing_are_what_a_full_link_loses() {
    // A T1 without its framing bits, and 8 bytes around every packet.
    for (transport, block) in [(", window = 7", 256.0), (", block = \"512 B\", window = 7", 512.0)] {
        let summary = bulk(transport, "rate = \"1536 kbit/s\"\noverhead = \"8 B\"");
        let law = 192_000.0 * block / (block + 6.0 + 8.0);
        let rate = stream_rate(&summary);
        assert!((0.995..1.005).contains(&(rate / law)), "{transport}: {rate} B/s, the law says {law}");
        assert!(summary.links[0].utilisation.value() > 0.995, "{:?}", summary.links[0]);
    }
}

#[test]
fn a_bad_link_loses_no_message() {
    let bad = "loss = \"2 %\"\ncorrupt = \"1 %\"\nduplicate = \"2 %\"\nreorder = \"2 %\"";
    let summary = bulk(", timeout = \"200 ms\"", &format!("rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n{bad}"));
    let bulk = flow(&summary, "bulk");
    assert!(bulk.counts.sent > 100, "{:?}", bulk.counts);
    assert_eq!((bulk.counts.lost, bulk.counts.duplicate), (0, 0));
    let counters = &bulk.transport_counters;
    for name in ["retransmissions", "rejects-sent", "timeouts", "checksum-errors", "late-packets"] {
        assert!(counters[name] > 0, "{name} in {counters:?}");
    }
}

#[test]
fn every_member_has_a_circuit_and_answers_come_back() {
    let summary = simulate(&support::experiment(
        "",
        "[flow.typing]\nfrom = \"a\"\nto = \"b\"\ntransport = \"urp\"\nreflect = true\ncount = 3\n\
         source = { kind = \"interactive\", message = \"20 B\" }\n",
    ));
    let typing = flow(&summary, "typing");
    // The message with its header, and the trailer of 6 bytes, there and back, at 1 Mbit/s and 10 ms; behind two others at most, and
    // behind their ECHOs.
    let alone = 2 * (26 * 8 * 1000 + 10_000_000);
    let latency = typing.latency.expect("messages were received");
    assert!(latency.min.as_nanos() >= alone, "{latency:?}");
    assert!(latency.max.as_nanos() <= alone + 6 * 28 * 8 * 1000, "{latency:?}");
    assert!(typing.counts.received > 3 * 450, "{:?}", typing.counts);
}

#[test]
fn a_low_water_mark_lets_a_full_window_run_dry() {
    let rate = |low_water: &str| {
        let transport = format!(", block = \"1024 B\", window = 7{low_water}");
        stream_rate(&bulk(&transport, "rate = \"1 Mbit/s\"\ndelay = \"50 ms\""))
    };
    // Seven blocks of 1,030 bytes at 8 us each, and a round trip until the last is acknowledged.
    let cycle = 7.0 * 1030.0 * 8e-6 + 0.1 + 2.0 * 8e-6;
    let law = 7.0 * 1024.0 / cycle;
    let dry = rate(", low-water = 0");
    assert!((0.99..1.01).contains(&(dry / law)), "{dry} B/s, the law says {law}");
    // Sliding, the eighth block leaves when the first is acknowledged.
    let sliding = 7.0 * 1024.0 / (1030.0 * 8e-6 + 0.1 + 2.0 * 8e-6);
    let slid = rate("");
    assert!((0.99..1.01).contains(&(slid / sliding)), "{slid} B/s, the law says {sliding}");
    assert_eq!(rate(", low-water = 6"), slid, "one less than the window is the same as none");
}

#[test]
fn a_block_leaves_in_packets_of_the_size_told() {
    let link = "rate = \"1536 kbit/s\"\noverhead = \"8 B\"";
    let summary = bulk(", block = \"1024 B\", window = 7, packet = \"256 B\"", link);
    // Four packets, each with its framing; the trailer rides on the last.
    let law = 192_000.0 * 1024.0 / (1024.0 + 6.0 + 4.0 * 8.0);
    let rate = stream_rate(&summary);
    assert!((0.995..1.005).contains(&(rate / law)), "{rate} B/s, the law says {law}");
}
