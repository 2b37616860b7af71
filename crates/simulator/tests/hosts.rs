//! What hosts that cost something do to messages, messages without headers, and runs that end with a flow.

mod support;

use support::{flow, parse, simulate};
use trunkline_core::Duration;
use trunkline_metrics::{FlowSummary, RepetitionSummary};

/// Requests and answers over URP between hosts with these keys, 10 ms apart on a line of 8 Mbit/s.
fn requests(host: &str, message: u32) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"1 h\"\nuntil = \"probe\"\nseed = 7\n[hosts]\na = {{ {host} }}\nb = {{ {host} }}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n\
         [flow.probe]\nfrom = \"a\"\nto = \"b\"\nreflect = true\nframing = \"none\"\n\
         transport = {{ kind = \"urp\", block = \"1024 B\" }}\n\
         source = {{ kind = \"ipuke\", message = \"{message} B\", answer = \"4 B\", messages = 100 }}\n"
    )))
}

/// The round trip of all but the first message, which also opens the circuit.
fn round_trip(summary: &RepetitionSummary) -> f64 {
    let probe = flow(summary, "probe");
    assert_eq!((probe.counts.received, probe.counts.lost), (100, 0));
    latency(probe).p50.as_secs_f64() * 1e3
}

fn latency(flow: &FlowSummary) -> trunkline_metrics::DelaySummary {
    flow.latency.expect("messages arrived")
}

/// Within the microseconds by which a histogram may be off (0.1 %).
fn about(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.002, "{found} ms, expected {expected} ms");
}

#[test]
fn without_headers_only_payload_and_trailers_are_on_the_line() {
    // 100 B and a trailer of 6 at 1 us each, 10 ms; the answer's 4 and 6, another 10 ms.
    about(round_trip(&requests("", 100)), 20.0 + 0.106 + 0.010);
}

#[test]
fn every_kind_of_work_delays_the_message_that_needs_it() {
    let plain = 20.0 + 0.106 + 0.010;
    about(round_trip(&requests("send-message = \"3 ms\"", 100)), plain + 2.0 * 3.0);
    about(round_trip(&requests("receive-message = \"2 ms\"", 100)), plain + 2.0 * 2.0);
    about(round_trip(&requests("send-byte = \"10 us\"", 100)), plain + 1.06 + 0.10);
    // Each way an ECHO of 2 us comes first, and takes its millisecond too while the message comes in.
    about(round_trip(&requests("receive-packet = \"1 ms\"", 100)), 20.0 + 2.0 * (0.002 + 2.0));
    // At the pace of the line bytes are read while they come in.
    about(round_trip(&requests("receive-byte = \"1 us\"", 100)), plain);
}

#[test]
fn bursts_one_at_a_time_cross_the_network_one_after_the_other() {
    let bursts = "stream-block = \"64 B\", stream-block-gap = \"1 ms\", one-burst-at-a-time = true";
    about(round_trip(&requests(bursts, 64)), 20.0 + 0.070 + 0.010);
    // Two bursts more: each waits until the one before is at the other end, 10 ms, and 1 ms more.
    about(round_trip(&requests(bursts, 130)), 20.0 + 0.136 + 0.010 + 2.0 * (10.0 + 1.0));
    let together = "stream-block = \"64 B\", stream-block-gap = \"1 ms\"";
    about(round_trip(&requests(together, 130)), 20.0 + 0.008 + 0.010 + 2.0 * 1.0);
}

#[test]
fn a_burst_that_is_lost_does_not_hold_its_interface_for_ever() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"1 h\"\nuntil = \"probe\"\nseed = 7\n\
         [hosts]\na = { stream-block = \"64 B\", one-burst-at-a-time = true }\nb = {}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"8 Mbit/s\"\nloss = \"5 %\"\n\
         [flow.probe]\nfrom = \"a\"\nto = \"b\"\nreflect = true\nframing = \"none\"\n\
         transport = { kind = \"urp\", timeout = \"50 ms\" }\n\
         source = { kind = \"ipuke\", message = \"500 B\", answer = \"4 B\", messages = 200, timeout = \"60 s\" }\n",
    ));
    let probe = flow(&summary, "probe");
    assert_eq!((probe.counts.received, probe.counts.lost), (200, 0));
    assert!(probe.transport_counters["retransmissions"] > 0);
}

#[test]
fn a_busy_host_holds_a_bulk_transfer_to_its_own_pace() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"1 h\"\nuntil = \"bulk\"\nseed = 7\n\
         [hosts]\na = { receive-packet = \"1 ms\" }\nb = { receive-byte = \"4 us\" }\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"100 Mbit/s\"\n\
         [flow.bulk]\nfrom = \"a\"\nto = \"b\"\nframing = \"none\"\n\
         transport = { kind = \"urp\", block = \"1000 B\", window = 7 }\n\
         source = { kind = \"mpuke\", message = \"1000 B\", bytes = \"1 MB\", transfers = 4 }\n",
    ));
    let transfers = flow(&summary, "bulk").transfers.expect("transfers were made");
    assert_eq!((transfers.completed, transfers.kept), (4, 2));
    // b reads 1,006 bytes in 4.024 ms, while a takes the last acknowledgement in 1 ms.
    let rate = transfers.rate_mean.bits_per_second() as f64 / 8.0;
    assert!((rate / (1000.0 / 4.024e-3) - 1.0).abs() < 0.01, "{rate} B/s");
}

#[test]
fn a_run_ends_with_its_flow_and_the_others_with_it() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"1 h\"\ndrain = \"1 s\"\nuntil = \"probe\"\nseed = 7\n[hosts]\na = {}\nb = {}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
         [flow.probe]\nfrom = \"a\"\nto = \"b\"\nreflect = true\ntransport = \"udp\"\n\
         source = { kind = \"interactive\", messages = 50, think = \"100 ms\" }\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n",
    ));
    assert_eq!(flow(&summary, "probe").counts.received, 50);
    let seconds = summary.duration.as_secs_f64();
    assert!((5.9..6.3).contains(&seconds), "50 times 121 ms, found {seconds} s");
    let voice = flow(&summary, "voice");
    assert!(voice.counts.sent.abs_diff((seconds * 100.0) as u64) <= 1, "{:?}", voice.counts);
    assert_eq!(voice.counts.lost, 0, "the drain time lets the last ones arrive");
    assert!(latency(voice).max < Duration::from_millis(20));
}

#[test]
fn datagrams_are_handed_over_whole() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"1 s\"\nseed = 7\n[hosts]\n\
         a = { stream-block = \"64 B\", stream-block-gap = \"1 ms\", one-burst-at-a-time = true, send-message = \"1 ms\" }\n\
         b = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"8 Mbit/s\"\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 160 }\n\
         count = 2\n",
    ));
    let voice = flow(&summary, "voice");
    assert_eq!((voice.counts.sent, voice.counts.received), (100, 100), "{:?}", voice.counts);
    assert_eq!(voice.stray.count(), 0);
}

/// Two sources of 100 B each 10 ms, of which the line takes 160 packets of 128 B in a second, from a host with these keys.
fn crowded(host: &str, pace: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"1 min\"\nseed = 7\n[hosts]\na = {{ {host} }}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"163.84 kbit/s\"\nqueue = {{ kind = \"fifo\", limit = \"40 packets\" }}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\ncount = 2\n\
         source = {{ kind = \"bulk\", message = \"100 B\", interval = \"10 ms\", messages = 1600, {pace} }}\n"
    )))
}

#[test]
fn a_full_send_buffer_blocks_its_process_and_drops_nothing() {
    let dropped = flow(&crowded("", "catch-up = true"), "voice").counts.lost;
    assert!(dropped > 500, "{dropped} of 3200 were lost");
    // 256 B a packet: five of them wait for the line, and one is on it.
    for pace in ["catch-up = true", "catch-up = false"] {
        let summary = crowded("send-buffer = \"1280 B\", send-buffer-block = \"256 B\"", pace);
        let voice = flow(&summary, "voice");
        assert_eq!((voice.counts.received, voice.counts.lost), (3200, 0), "{pace}");
        let waited = latency(voice).max.as_secs_f64() / 6.25e-3;
        assert!((11.0..=11.1).contains(&waited), "{pace}: {waited} packets");
        assert!((voice.throughput.active.as_secs_f64() - 20.0).abs() < 0.1, "{}", voice.throughput.active);
    }
}

#[test]
fn members_start_one_after_the_other() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"1 min\"\nseed = 7\n[hosts]\na = {}\nb = {}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\ncount = 3\nstart = \"1 s\"\nstagger = \"8 s\"\n\
         source = { kind = \"bulk\", message = \"100 B\", interval = \"10 ms\", messages = 101 }\n",
    ));
    // The third begins at 17 s and is over a second later; the first began at 1 s.
    let active = flow(&summary, "voice").throughput.active.as_secs_f64();
    assert!((17.0..17.01).contains(&active), "{active} s");
}

#[test]
fn a_run_that_ends_with_a_flow_ends_though_a_bulk_transfer_waits() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"1 h\"\nuntil = \"probe\"\nseed = 7\n[hosts]\na = {}\nb = {}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
         [flow.bulk]\nfrom = \"a\"\nto = \"b\"\n\
         transport = { kind = \"tcp\", window = \"8 KiB\" }\nsource = { kind = \"bulk\", message = \"1 KiB\" }\ncount = 4\n\
         [flow.probe]\nfrom = \"a\"\nto = \"b\"\nreflect = true\ntransport = \"udp\"\n\
         source = { kind = \"interactive\", think = \"1 s\", messages = 3 }\n",
    ));
    assert_eq!(flow(&summary, "probe").counts.received, 3);
    assert!(flow(&summary, "bulk").counts.received > 0);
}

/// Answers of 1000 B to requests of 64 B: their throughput is that of the answers, or unknown where they are not measured.
#[test]
fn the_throughput_of_answers_is_theirs() {
    for (reflect, measured) in [(true, true), (false, false)] {
        let summary = simulate(&support::experiment(
            "",
            &format!(
                "[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = {reflect}\n\
                 source = {{ kind = \"interactive\", message = \"64 B\", answer = \"1000 B\", think = \"50 ms\" }}\n"
            ),
        ));
        let throughput = flow(&summary, "f").throughput;
        let user = throughput.user.bits_per_second() as f64;
        let answers = throughput.answers.map(|answers| answers.bits_per_second() as f64);
        assert_eq!(answers.is_some(), measured, "reflect = {reflect}: {answers:?}");
        assert!(user > 4000.0 && answers.is_none_or(|answers| (answers / user - 1000.0 / 64.0).abs() < 0.1));
    }
}
