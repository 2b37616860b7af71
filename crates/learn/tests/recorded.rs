//! Links that are described from their ordinary traffic, in virtual time: what the description claims is true of the link.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use trunkline_core::{Duration, Rate, Seed, Time};
use trunkline_learn::import::{self, Clocks, Learned, Side, Written, describe};
use trunkline_learn::{
    Bucket, JitterShape, Link, Loss, Observations, ObservedFlow, Packet, Queue, Replay, Way,
};
use trunkline_metrics::{Fate, Record};

/// Messages of a stored trace are packets; those of a transport that cuts them wait in its buffer, not in the queue of a link.
#[test]
fn a_trace_of_messages_larger_than_a_packet_is_refused() {
    let path = std::env::temp_dir().join(format!("trunkline-learn-{}.parquet", std::process::id()));
    std::fs::write(&path, b"PAR1").unwrap();
    let of = |payload: u32| {
        import::from_files(std::slice::from_ref(&path), Clocks::Apart, &|_, take| {
            for n in 0..400u32 {
                let sent = Time::from_nanos(u64::from(n) * 20_000_000);
                let received = Some(sent + Duration::from_millis(10));
                take(&Record {
                    member: 0,
                    channel: 0,
                    sequence: n,
                    due: sent,
                    sent: Some(sent),
                    received,
                    reflected: None,
                    payload,
                    fate: Fate::Received,
                });
            }
            Ok(())
        })
    };
    let (packets, messages) = (of(1_472), of(8_192));
    std::fs::remove_file(&path).unwrap();
    assert!(packets.is_ok(), "{:?}", packets.err());
    let refused = messages.err().unwrap().to_string();
    assert!(refused.contains("messages of up to 8192 B, which are not packets"), "{refused}");
}

/// Packets of random sizes between these, at random times with this mean gap in milliseconds, for 20 s.
fn load(sizes: (u32, u32), gap: f64, seed: u64) -> Vec<Packet> {
    let mut stream = Seed::new(seed, 0).stream("load");
    let mut at = 0.0;
    let mut packets = Vec::new();
    while at < 20e9 {
        at -= (1.0 - stream.unit()).ln() * gap * 1e6;
        let bytes = sizes.0 + stream.below(u64::from(sizes.1 - sizes.0) + 1) as u32;
        packets.push(Packet { sent: Time::from_nanos(at as u64), bytes, delay: None });
    }
    packets
}

fn forward(packets: Vec<Packet>) -> Observations {
    let flow = ObservedFlow { name: "load".to_owned(), way: Way::Forward, packets };
    Observations { flows: vec![flow], clock_error: None }
}

fn over(link: &Link, packets: Vec<Packet>) -> Learned {
    let replay = Replay::new(&forward(packets), Way::Forward, &[0.0..30.0]).unwrap();
    let flows = replay.over(link, 5).unwrap();
    let flows = flows.into_iter().map(|flow| ObservedFlow { way: Way::Forward, ..flow }).collect();
    describe("a test".to_owned(), &Observations { flows, clock_error: None }, Clocks::Same)
}

/// A key's value and its evidence.
fn known<'l>(side: &'l Side, key: &str) -> Option<(&'l str, &'l str)> {
    side.known.iter().find(|known| known.key == key).map(|known| match &known.value {
        Written::Text(text) | Written::Toml(text) => (text.as_str(), known.evidence.as_str()),
        Written::File(_) => unreachable!(),
    })
}

fn between(evidence: &str) -> (&str, &str) {
    let (low, rest) = evidence.split_once(", from ").unwrap().1.split_once(" to ").unwrap();
    let end = rest.find(" (").into_iter().chain(rest.find([';', ':'])).min().unwrap_or(rest.len());
    (low, &rest[..end])
}

/// Asserts that the rate's interval contains the truth, that the value lies in it, and that it is not wider than a share.
fn assert_rate(learned: &Learned, truth: f64, share: f64) {
    let (value, evidence) = known(&learned.forward, "rate").unwrap();
    let bits = |text: &str| text.parse::<Rate>().unwrap().bits_per_second() as f64;
    let (low, high) = between(evidence);
    let (value, low, high) = (bits(value), bits(low), bits(high));
    assert!(low <= truth && truth <= high, "{truth}: {evidence}");
    assert!(low <= value && value <= high && low < high, "{value}: {evidence}");
    assert!((value / truth - 1.0).abs() <= share, "{value} for {truth}: {evidence}");
}

fn assert_delay(learned: &Learned, truth: f64, within: f64) {
    let (value, evidence) = known(&learned.forward, "delay").unwrap();
    let seconds = |text: &str| text.parse::<Duration>().unwrap().as_nanos() as f64 / 1e9;
    let (low, high) = between(evidence);
    assert!(seconds(low) <= truth && truth <= seconds(high), "{truth}: {evidence}");
    assert!(seconds(low) <= seconds(value) && seconds(value) <= seconds(high), "{value}: {evidence}");
    assert!((seconds(value) - truth).abs() <= within, "{value} for {truth}: {evidence}");
}

const MIXED: (u32, u32) = (228, 1428);

#[test]
fn losses_before_the_line_do_not_raise_the_rate() {
    for (queue, gap) in [
        (Queue::FifoPackets(100.0), 1.0),
        (Queue::FifoBytes(60e3), 1.2),
        (Queue::Codel(0.005), 1.4),
        (Queue::Pie(0.015), 1.5),
        (Queue::FqCodel(0.005), 1.5),
    ] {
        for sizes in [MIXED, (1000, 1000)] {
            let learned = over(&Link::line(4e6, 0.03, queue), load(sizes, gap, 3));
            assert_rate(&learned, 4e6, 0.002);
            assert_delay(&learned, 0.03, 1e-4);
            // None of these links loses packets at random.
            let loss = known(&learned.forward, "loss");
            assert!(loss.is_none(), "{queue:?} {sizes:?}: {loss:?}");
            let (_, evidence) = known(&learned.forward, "queue").unwrap();
            let is_fifo = matches!(queue, Queue::FifoPackets(_) | Queue::FifoBytes(_));
            assert!(
                evidence.contains(if is_fifo { "tail drop" } else { "active queue" }),
                "{queue:?}: {evidence}"
            );
        }
    }
}

#[test]
fn a_shaper_with_a_fast_line_behind_it_has_its_own_rate_and_delay() {
    for (line, rate, gap) in [(10e6, 2e6, 2.0), (20e6, 5e6, 1.0)] {
        let bucket = Bucket { shapes: true, rate, burst: 40e3 };
        let queue = Queue::FifoPackets(100.0);
        let link = Link { bucket: Some(bucket), ..Link::line(line, 0.03, queue) };
        let learned = over(&link, load(MIXED, gap, 4));
        assert_rate(&learned, rate, 0.005);
        assert_delay(&learned, 0.03, 5e-4);
    }
}

#[test]
fn losses_behind_the_line_used_it() {
    for loss in [0.01, 0.1] {
        let queue = Queue::FifoBytes(200e3);
        let link = Link { loss: Loss::Random(loss), ..Link::line(4e6, 0.03, queue) };
        // With a queue that is full all the time, and with one that never is.
        for gap in [1.4, 1.7] {
            let learned = over(&link, load(MIXED, gap, 6));
            assert_rate(&learned, 4e6, 0.001);
            if gap < 1.5 {
                assert!(
                    known(&learned.forward, "queue").unwrap().1.contains("tail drop"),
                    "{loss} {:?}",
                    learned.forward
                );
            } else {
                let (value, _) = known(&learned.forward, "loss").unwrap();
                let value: f64 = value.trim_end_matches(" %").parse().unwrap();
                assert!((value / 100.0 / loss - 1.0).abs() < 0.5, "{value} % for {loss}");
            }
        }
    }
}

#[test]
fn limits_in_packets_are_told_from_limits_in_bytes() {
    for limit in [20.0, 25.0, 100.0] {
        let learned = over(&Link::line(2e6, 0.017, Queue::FifoPackets(limit)), load(MIXED, 2.0, 7));
        let (value, evidence) = known(&learned.forward, "queue").unwrap();
        assert_eq!(value, format!("{{ kind = \"fifo\", limit = \"{limit} packets\" }}"), "{evidence}");
    }
    let learned = over(&Link::line(2e6, 0.017, Queue::FifoBytes(20e3)), load(MIXED, 2.0, 7));
    let (value, evidence) = known(&learned.forward, "queue").unwrap();
    let bytes: f64 = value.split('"').nth(3).unwrap().trim_end_matches(" B").parse().unwrap();
    assert!((bytes / 20e3 - 1.0).abs() < 0.02, "{value}: {evidence}");
    assert!(!evidence.contains("one size"), "{evidence}");
    // With one size it cannot be told, and both figures agree.
    let learned = over(&Link::line(2e6, 0.017, Queue::FifoPackets(30.0)), load((1500, 1500), 5.0, 7));
    let (value, evidence) = known(&learned.forward, "queue").unwrap();
    assert!(value.contains("\"45000 B\"") && evidence.contains("45 KB or 30 packets"), "{value}: {evidence}");
    assert!(evidence.contains("packets had one size"), "{evidence}");
}

#[test]
fn time_of_transmission_is_not_jitter() {
    // One packet of either size each 20 ms: never a queue.
    let packets = (0..1000_u64).map(|n| {
        let bytes = if n * n % 7 < 3 { 128 } else { 1428 };
        Packet { sent: Time::from_nanos(n * 20_000_000), bytes, delay: None }
    });
    let learned = over(&Link::line(5e6, 0.03, Queue::FifoPackets(100.0)), packets.collect());
    assert!(known(&learned.forward, "jitter").is_none(), "{:?}", learned.forward);
    assert_rate(&learned, 5e6, 0.001);
    assert_delay(&learned, 0.03, 1e-5);
}

#[test]
fn packets_that_wait_for_the_one_before_show_no_jitter() {
    // Four channels, 0.4 ms apart, on a line that needs 2.3 ms for each packet.
    let packets = (0..8000_u64).map(|n| Packet {
        sent: Time::from_nanos(n / 4 * 20_000_000 + n % 4 * 400_000),
        bytes: 146,
        delay: None,
    });
    let learned = over(&Link::line(512e3, 0.017, Queue::FifoPackets(100.0)), packets.collect());
    assert!(known(&learned.forward, "jitter").is_none(), "{:?}", learned.forward);
}

#[test]
fn jitter_keeps_its_size_and_its_kind() {
    for (shape, kind, key, expected) in [
        (JitterShape::Exponential(4e-3), "exponential", "mean", 4e6),
        (JitterShape::Uniform(10e-3), "uniform", "max", 10e6),
        (JitterShape::Normal(8e-3, 2e-3), "normal", "deviation", 2e6),
    ] {
        let jitter = trunkline_learn::Jitter { shape, memory: None };
        let link = Link { jitter: Some(jitter), ..Link::line(5e6, 0.03, Queue::FifoPackets(100.0)) };
        let learned = over(&link, load(MIXED, 8.0, 8));
        let (value, evidence) = known(&learned.forward, "jitter").unwrap();
        assert!(value.contains(&format!("\"{kind}\"")), "{value}: {evidence}");
        let found = value.split_once(&format!("{key} = \"")).unwrap().1.split('"').next().unwrap();
        let found: Duration = found.parse().unwrap();
        assert!((found.as_nanos() as f64 / expected - 1.0).abs() < 0.15, "{value}: {evidence}");
    }
}

/// A FIFO with a limit in packets whose rate alternates every 5 s.
fn alternating(packets: &mut [Packet], limit: usize) {
    let (mut free, mut leaving) = (0.0, Vec::<f64>::new());
    for packet in packets {
        let sent = packet.sent.as_nanos() as f64;
        // Those that have not begun.
        leaving.retain(|begins| *begins > sent);
        if leaving.len() >= limit {
            continue;
        }
        let begins = f64::max(sent, free);
        let rate = if ((begins / 5e9) as u64).is_multiple_of(2) { 1e6 } else { 4e6 };
        free = begins + f64::from(packet.bytes) * 8e9 / rate;
        leaving.push(begins);
        packet.delay = Some((free - sent + 17e6) as i64);
    }
}

/// Packets of one size with a gap in microseconds, from a time in milliseconds on.
fn paced(from: u64, gap: u64, count: u64, bytes: u32) -> impl Iterator<Item = Packet> {
    let sent = move |n| Time::from_nanos(from * 1_000_000 + n * gap * 1_000);
    (0..count).map(move |n| Packet { sent: sent(n), bytes, delay: None })
}

/// Sends these packets over a line with a FIFO of a limit in bytes, 10 ms of propagation and further delays, which keep their order. A
/// further delay depends on the time at which a packet would arrive.
fn delayed(packets: &mut [Packet], rate: f64, limit: f64, mut further: impl FnMut(f64) -> f64) {
    packets.sort_by_key(|packet| packet.sent);
    let (mut free, mut last, mut leaving) = (0.0, 0.0, Vec::<(f64, f64)>::new());
    for packet in packets {
        let (sent, bytes) = (packet.sent.as_nanos() as f64, f64::from(packet.bytes));
        leaving.retain(|(left, _)| *left > sent);
        let waiting: f64 = leaving.iter().map(|(_, bytes)| bytes).sum();
        if free > sent && waiting + bytes > limit {
            continue;
        }
        free = f64::max(sent, free) + bytes * 8e9 / rate;
        leaving.push((free, bytes));
        let arrives = free + 10e6;
        last = f64::max(last, arrives + further(arrives));
        packet.delay = Some((last - sent) as i64);
    }
}

/// The limit of a FIFO in bytes.
fn limit(learned: &Learned) -> f64 {
    let (value, evidence) = known(&learned.forward, "queue").unwrap();
    let bytes = value.split('"').nth(3).unwrap().trim_end_matches(" B");
    bytes.parse().unwrap_or_else(|_| panic!("{value}: {evidence}"))
}

fn unknown<'l>(side: &'l Side, key: &str) -> &'l str {
    &side.unknown.iter().find(|unknown| unknown.key == key).unwrap().why
}

#[test]
fn packets_dropped_in_front_of_a_shaper_have_not_used_it() {
    // More than twice the shaper's rate: after the first burst, a packet is lost before nearly each that arrives.
    let link = Link {
        bucket: Some(Bucket { shapes: true, rate: 1.5e6, burst: 15e3 }),
        ..Link::line(3e6, 0.01, Queue::FifoBytes(20e3))
    };
    let packets = paced(0, 1000, 4000, 528).chain(paced(5000, 2400, 2000, 328)).collect();
    let learned = over(&link, packets);
    assert_rate(&learned, 1.5e6, 0.005);
    assert!((limit(&learned) / 20e3 - 1.0).abs() < 0.05, "{:?}", known(&learned.forward, "queue"));
    assert_delay(&learned, 0.01, 5e-4);
}

#[test]
fn jitter_does_not_hide_a_saturated_line() {
    for (mean, seconds) in [(0.3e6, 3), (1e6, 3), (1e6, 10)] {
        let mut packets: Vec<Packet> = paced(0, 1000, 1000 * seconds, 528)
            .chain(paced(1000 * seconds + 2000, 20_000, 500, 200))
            .collect();
        let mut stream = Seed::new(12, 0).stream("jitter");
        delayed(&mut packets, 3e6, 20e3, |_| -mean * (1.0 - stream.unit()).ln());
        let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
        assert_rate(&learned, 3e6, 0.02);
        assert!((limit(&learned) / 20e3 - 1.0).abs() < 0.1, "{:?}", known(&learned.forward, "queue"));
        assert!(known(&learned.forward, "loss").is_none(), "{mean}: {:?}", known(&learned.forward, "loss"));
    }
}

#[test]
fn packets_that_a_stall_holds_up_are_not_a_faster_line() {
    let mut packets: Vec<Packet> = paced(0, 7040, 800, 528)
        .chain(paced(7600, 20_000, 15, 52))
        .chain(paced(8000, 20_000, 400, 200))
        .collect();
    // The receiver stops twice for 60 ms.
    delayed(&mut packets, 4e5, 20e3, |at| match at {
        1.5e9..1.56e9 => 1.56e9 - at + (at - 1.5e9) * 1e-3,
        4.1e9..4.16e9 => 4.16e9 - at + (at - 4.1e9) * 1e-3,
        _ => 0.0,
    });
    let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
    assert!(known(&learned.forward, "jitter").is_none(), "{:?}", known(&learned.forward, "jitter"));
    assert_rate(&learned, 4e5, 0.005);
    assert_delay(&learned, 0.01, 1e-4);
}

/// The bound of a rate that is not known.
fn at_least(learned: &Learned) -> f64 {
    let (value, evidence) = known(&learned.forward, "rate").unwrap();
    assert_eq!(value, "1000 Mbit/s", "{evidence}");
    let bound = evidence.split_once("at least ").unwrap().1.split(',').next().unwrap();
    bound.parse::<Rate>().unwrap().bits_per_second() as f64
}

#[test]
fn a_stall_and_jitter_do_not_raise_the_lower_bound_of_the_rate() {
    // 85 % of the line, and a receiver that stops for 120 ms.
    let mut packets: Vec<Packet> = paced(0, 1690, 4000, 528).collect();
    delayed(&mut packets, 3e6, 20e3, |at| if (2e9..2.12e9).contains(&at) { 2.12e9 - at } else { 0.0 });
    let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
    let bound = at_least(&learned);
    assert!((2.2e6..=3e6).contains(&bound), "{bound}");
    let mut packets: Vec<Packet> = paced(0, 1690, 4000, 528).collect();
    let mut stream = Seed::new(13, 0).stream("jitter");
    delayed(&mut packets, 3e6, 20e3, |_| 60e6 * stream.unit());
    let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
    let bound = at_least(&learned);
    assert!((2.2e6..=3e6).contains(&bound), "{bound}");
}

#[test]
fn sizes_explain_delays_although_packets_may_have_waited() {
    // Packets of two sizes in turn. Those of one of them may have waited for the others.
    for (rate, gaps, sizes, slowest) in
        [(500e3, [5_000, 15_000], [200, 60], 175e3), (3e6, [2_400, 2_400], [328, 128], 900e3)]
    {
        let period = gaps[0] + gaps[1];
        let mut packets: Vec<Packet> = paced(0, period, 1000, sizes[0]).collect();
        packets.extend(
            paced(0, period, 1000, sizes[1])
                .map(|packet| Packet { sent: packet.sent + Duration::from_micros(gaps[0]), ..packet }),
        );
        delayed(&mut packets, rate, 20e3, |_| 0.0);
        let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
        assert!(known(&learned.forward, "jitter").is_none(), "{:?}", known(&learned.forward, "jitter"));
        assert_rate(&learned, rate, 0.001);
        let (_, evidence) = known(&learned.forward, "rate").unwrap();
        assert!(
            between(evidence).0.parse::<Rate>().unwrap().bits_per_second() as f64 <= slowest,
            "{evidence}"
        );
        assert!(evidence.contains("always waited for others"), "{evidence}");
        assert_delay(&learned, 0.01, 1e-4);
    }
}

#[test]
fn a_delay_that_most_packets_have_is_not_jitter() {
    // A few packets take a shorter path, or a longer one.
    for (few, most, expected) in
        [(0.0, 3e6, "3 ms more than the fastest"), (30e6, 0.0, "0 s more than the fastest")]
    {
        let mut packets = load((200, 200), 20.0, 15);
        delayed(&mut packets, 10e6, 20e3, |at| if at < 1e9 { few } else { most });
        let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
        assert!(known(&learned.forward, "jitter").is_none(), "{:?}", known(&learned.forward, "jitter"));
        let why = unknown(&learned.forward, "jitter");
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn a_policer_is_recognised() {
    let overload = |gap| paced(0, gap, 3_000_000 / gap, 528).chain(paced(5000, 20_000, 1500, 200)).collect();
    for (rate, burst, line, packets) in [
        (1.5e6, 15e3, 10e6, overload(1000)),
        (1e6, 3e3, 10e6, overload(3000)),
        (2e6, 20e3, 50e6, load(MIXED, 2.5, 16)),
    ] {
        let bucket = Some(Bucket { shapes: false, rate, burst });
        let learned = over(&Link { bucket, ..Link::line(line, 0.01, Queue::FifoBytes(60e3)) }, packets);
        let Some((value, evidence)) = known(&learned.forward, "committed-rate") else {
            panic!("{rate} {:#?}", learned.forward)
        };
        let bits = |text: &str| text.parse::<Rate>().unwrap().bits_per_second() as f64;
        let (low, high) = between(evidence);
        assert!(bits(low) <= rate && rate <= bits(high), "{rate}: {evidence}");
        assert!((bits(value) / rate - 1.0).abs() < 0.01, "{rate}: {evidence}");
        let (value, evidence) = known(&learned.forward, "committed-burst").unwrap();
        let bytes: f64 = value.trim_end_matches(" B").parse().unwrap();
        assert!((bytes - burst).abs() <= 1428.0, "{value}: {evidence}");
        assert!(known(&learned.forward, "loss").is_none(), "{:?}", known(&learned.forward, "loss"));
        assert!(
            !learned.warnings.iter().any(|warning| warning.contains("losses differ")),
            "{:?}",
            learned.warnings
        );
    }
}

#[test]
fn losses_that_differ_between_packets_are_not_claimed_to_be_independent() {
    // Half of the packets of the first seconds, or of the large ones, or of none in particular.
    for (kind, differs) in [("times", true), ("sizes", true), ("none", false), ("bursts", false)] {
        let mut stream = Seed::new(14, 0).stream("loss");
        let mut is_bad = false;
        let mut packets: Vec<Packet> = paced(0, 4_000, 3000, 528).collect();
        for (packet, n) in packets.iter_mut().zip(0..) {
            packet.bytes = if n * n % 7 < 3 { 128 } else { 528 };
            is_bad = stream.unit() < if is_bad { 0.8 } else { 0.02 };
            let is_lost = match kind {
                "times" => n < 1500 && stream.unit() < 0.5,
                "sizes" => packet.bytes > 500 && stream.unit() < 0.5,
                "bursts" => is_bad,
                _ => stream.unit() < 0.1,
            };
            packet.delay = (!is_lost).then_some(10_000_000 + i64::from(packet.bytes) * 1000);
        }
        let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
        assert!(known(&learned.forward, "committed-rate").is_none(), "{:?}", learned.forward);
        let (_, evidence) = known(&learned.forward, "loss").unwrap();
        assert_eq!(evidence.contains("95 %"), !differs, "{kind}: {evidence}");
        let warning = learned.warnings.iter().find(|warning| warning.contains("losses differ"));
        assert_eq!(warning.is_some(), differs, "{kind}: {warning:?}");
        assert!(warning.is_none_or(|warning| warning.contains(kind)), "{kind}: {warning:?}");
    }
}

#[test]
fn a_limit_does_not_depend_on_a_rate_that_changes() {
    for sizes in [MIXED, (1000, 1000)] {
        let mut packets = load(sizes, 2.4, 9);
        alternating(&mut packets, 100);
        let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
        let (value, evidence) = known(&learned.forward, "queue").unwrap();
        let is_right =
            if sizes == MIXED { value.contains("100 packets") } else { value.contains("100000 B") };
        assert!(is_right && !evidence.contains("354 KB"), "{value}: {evidence}");
        assert!(known(&learned.forward, "loss").is_none(), "{:?}", known(&learned.forward, "loss"));
        let (value, evidence) = known(&learned.forward, "rate").unwrap();
        assert!(value == "4 Mbit/s" && evidence.contains("from 1 Mbit/s to 4 Mbit/s"), "{value}: {evidence}");
    }
}

#[test]
fn the_value_lies_in_its_range_although_one_period_is_different() {
    // One busy period in which something else took a fifth of the line.
    let mut packets: Vec<Packet> = (0..20_000_u64)
        .map(|n| Packet { sent: Time::from_nanos(n * 1_000_000), bytes: 1000, delay: None })
        .collect();
    let mut free = 0.0;
    for (packet, n) in packets.iter_mut().zip(0..) {
        let sent = packet.sent.as_nanos() as f64;
        let takes = if (5000..5150).contains(&n) { 1.25 } else { 1.0 };
        free = f64::max(sent, free) + 8e9 * 1000.0 / 7.9e6 * takes;
        packet.delay = Some((free - sent + 10e6) as i64);
    }
    let learned = describe("a test".to_owned(), &forward(packets), Clocks::Same);
    assert_rate(&learned, 7.9e6, 0.002);
}

#[test]
fn packets_that_arrive_as_they_were_sent_show_no_rate() {
    // A call of 20 ms packets: the path becomes longer, or its delay wanders, or varies by more than the gap between packets.
    for kind in 0..3 {
        let mut stream = Seed::new(11, kind).stream("delay");
        let (mut last, mut wander) = (0, 0.0);
        let packets = (0..1500_u64).map(|n| {
            let sent = n * 20_000_000;
            wander = 0.99 * wander + 3e6 * (stream.unit() - 0.5);
            let delay = match kind {
                0 => {
                    if n < 600 {
                        30e6
                    } else {
                        80e6
                    }
                }
                1 => 80e6 + wander * 3.0,
                _ => 30e6 + 60e6 * stream.unit(),
            };
            // In order.
            last = (sent + delay as u64).max(last + 80_000);
            Packet { sent: Time::from_nanos(sent), bytes: 200, delay: Some((last - sent) as i64) }
        });
        let observations = forward(packets.collect());
        let smallest = observations.flows[0].packets.iter().filter_map(|packet| packet.delay).min().unwrap();
        let learned = describe("a test".to_owned(), &observations, Clocks::Same);
        let (value, evidence) = known(&learned.forward, "rate").unwrap();
        assert_eq!(value, "1000 Mbit/s", "{kind}: {evidence}");
        let (value, evidence) = known(&learned.forward, "delay").unwrap();
        let delay = value.parse::<Duration>().unwrap().as_nanos() as f64;
        assert!((delay / smallest as f64 - 1.0).abs() < 0.01, "{kind}: {value}: {evidence}");
    }
}

/// A capture (pcap, raw IP) of TCP packets: time, from the client, number of the first byte, payload, time stamp and its echo.
fn capture(mut packets: Vec<(u64, bool, u32, u32, u32, u32)>) -> Vec<u8> {
    packets.sort();
    let mut file = Vec::from(0xa1b2_3c4d_u32.to_le_bytes());
    [2_u16, 4].iter().for_each(|half| file.extend(half.to_le_bytes()));
    [0_u32, 0, 96, 101].iter().for_each(|word| file.extend(word.to_le_bytes()));
    for (at, is_client, sequence, acknowledged, payload, stamps) in packets {
        let length = 52 + payload as u16;
        let (from, to) = if is_client { (1, 2) } else { (2, 1) };
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to, 0x13, from, 0x13, to]);
        packet.extend(sequence.to_be_bytes());
        packet.extend(acknowledged.to_be_bytes());
        packet.extend([0x80, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
        // The value, of a client, and its echo, of the server.
        let (value, echo) = if is_client { (stamps, 1) } else { (1, stamps) };
        packet.extend(value.to_be_bytes());
        packet.extend(u32::to_be_bytes(echo));
        packet.resize(length.min(96) as usize, 0);
        let words =
            [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, packet.len() as u32, length.into()];
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(packet);
    }
    file
}

#[test]
fn packets_that_are_sent_again_use_the_line_too() {
    const MS: u64 = 1_000_000;
    // A download at 1.1 times 5 Mbit/s. Each 40th packet is lost in front of the line, and sent again 300 ms later.
    let mut sent: Vec<(u64, u32, bool)> = Vec::new();
    for n in 0..1500_u32 {
        let (at, is_lost) = (100 * MS + u64::from(n) * 2_180_000, n % 40 == 39);
        sent.push((at, n, is_lost));
        if is_lost {
            sent.push((at + 300 * MS + 1, n, false));
        }
    }
    sent.sort();
    // A request, which the server acknowledges after 20 ms.
    let mut packets = vec![(0, true, 0, 1, 100, 0), (20 * MS, false, 1, 100, 0, 0)];
    let mut free = 0;
    for (at, n, _) in sent.into_iter().filter(|(_, _, is_lost)| !is_lost) {
        free = free.max(at) + 1500 * 8 * 200;
        let arrives = free + 10 * MS;
        let echo = ((at - 10 * MS) / MS) as u32;
        packets.push((arrives, false, 1 + n * 1448, 100, 1448, echo));
    }
    // The client's time stamps.
    let last = packets.iter().map(|packet| packet.0).max().unwrap_or_default();
    packets.extend((1..last / MS).map(|ms| (ms * MS, true, 100, 1, 0, ms as u32)));
    let file = capture(packets);
    let mut from = &file[..];
    let source = trunkline_learn::import::capture::Source { name: "a.pcap", from: &mut from };
    let learned = trunkline_learn::import::capture::one_end(source).unwrap();
    let backward = Learned { forward: learned.backward.clone(), ..learned };
    assert_rate(&backward, 5e6, 0.002);
}
