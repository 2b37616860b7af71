//! Captures of what the simulator does with packets on a known link give the link back.

use proptest::prelude::*;
use trunkline_core::{Duration, Rate, Ratio, Time};

use super::super::description::Written;
use super::super::estimate::Clocks;
use super::*;
use crate::{Link, Loss, Observations, ObservedFlow, Packet, Queue, Replay, Way};

/// A pcap file with nanoseconds and a snap length of 96 B: an IPv4 header, UDP, and the packet's number.
fn pcap(packets: &mut [(u64, Way, u32, u32)]) -> Vec<u8> {
    packets.sort();
    let mut file = Vec::from(0xa1b2_3c4d_u32.to_le_bytes());
    [2_u16, 4].iter().for_each(|half| file.extend(half.to_le_bytes()));
    [0_u32, 0, 96, 101].iter().for_each(|word| file.extend(word.to_le_bytes()));
    for &mut (at, way, number, bytes) in packets {
        let mut packet = vec![0x45, 0];
        packet.extend((bytes as u16).to_be_bytes());
        packet.extend((number as u16).to_be_bytes());
        packet.extend([0x40, 0, 64, 17, 0, 0]);
        let (from, to) = if way == Way::Forward { (1, 2) } else { (2, 1) };
        packet.extend([10, 0, 0, from, 10, 0, 0, to]);
        packet.extend([0x13, from, 0x13, to]);
        packet.extend((bytes as u16 - 20).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(number.to_be_bytes());
        packet.resize(bytes.min(96) as usize, 0);
        let words = [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, packet.len() as u32, bytes];
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(packet);
    }
    file
}

/// Two captures of these packets, the second with a clock that is ahead.
fn captures(observations: &Observations, ahead: u64) -> [Vec<u8>; 2] {
    let mut files = [Vec::new(), Vec::new()];
    let mut number = 0;
    for flow in &observations.flows {
        let (sender, receiver) = if flow.way == Way::Forward { (0, 1) } else { (1, 0) };
        for packet in &flow.packets {
            number += 1;
            let of = |end: usize, at: u64| {
                (at + 1_000_000_000 + if end == 1 { ahead } else { 0 }, flow.way, number, packet.bytes)
            };
            files[sender].push(of(sender, packet.sent.as_nanos()));
            if let Some(delay) = packet.delay {
                files[receiver].push(of(receiver, packet.sent.as_nanos().saturating_add_signed(delay)));
            }
        }
    }
    files.map(|mut packets| pcap(&mut packets))
}

/// Five seconds of thin traffic, then three of 1.4 times the rate, then two of thin traffic; each way.
fn observed(links: [&Link; 2], seed: u64) -> Observations {
    let mut flows = Vec::new();
    for (way, link) in Way::ALL.into_iter().zip(links) {
        let mut packets = Vec::new();
        let packet = |ns: u64, bytes| Packet { sent: Time::from_nanos(ns), bytes, delay: None };
        packets.extend((0..250).map(|n| packet(n * 20_000_000, 200)));
        let gap = (1228.0 * 8e9 / (1.4 * link.rate)) as u64;
        packets.extend((0..3_000_000_000 / gap).map(|n| packet(5_000_000_000 + n * gap, 1228)));
        packets.extend((0..150).map(|n| packet(9_000_000_000 + n * 20_000_000, 200)));
        let planned = Observations {
            flows: vec![ObservedFlow { name: "load".to_owned(), way, packets }],
            clock_error: None,
        };
        let replay = Replay::new(&planned, way, &[0.0..13.0]).unwrap();
        flows.extend(replay.over(link, seed).unwrap().into_iter().map(|flow| ObservedFlow { way, ..flow }));
    }
    Observations { flows, clock_error: None }
}

fn learned(files: &[Vec<u8>; 2], clocks: Clocks) -> Learned {
    let [mut first, mut second] = [&files[0][..], &files[1][..]];
    let sources = [Source { name: "a.pcap", from: &mut first }, Source { name: "b.pcap", from: &mut second }];
    both_ends(sources, clocks).unwrap()
}

fn value(side: &super::super::Side, key: &str) -> Option<String> {
    side.known.iter().find(|known| known.key == key).map(|known| match &known.value {
        Written::Text(text) | Written::Toml(text) => text.clone(),
        Written::File(_) => String::new(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_known_link_is_learned_from_captures_of_both_ends(
        megabits in 2.0..30.0_f64,
        back in 2.0..30.0_f64,
        delay in 1.0..60.0_f64,
        queue_ms in 30.0..200.0_f64,
        loss in prop::sample::select(vec![0.0, 0.01, 0.03]),
        ahead in 0_u64..5_000_000_000,
        seed in any::<u64>(),
    ) {
        let limit = megabits * 1e3 / 8.0 * queue_ms;
        let lossy = if loss > 0.0 { Loss::Random(loss) } else { Loss::None };
        let there = Link { loss: lossy, ..Link::line(megabits * 1e6, delay / 1e3, Queue::FifoBytes(limit)) };
        let here = Link::line(back * 1e6, delay / 1e3, Queue::FifoBytes(1e9));
        let observations = observed([&there, &here], seed);
        let files = captures(&observations, ahead);
        let learned = learned(&files, Clocks::Apart);
        let rate: Rate = value(&learned.forward, "rate").unwrap().parse().unwrap();
        prop_assert!((rate.bits_per_second() as f64 / megabits / 1e6 - 1.0).abs() < 0.03, "{rate} for {megabits} Mbit/s");
        let rate: Rate = value(&learned.backward, "rate").unwrap().parse().unwrap();
        prop_assert!((rate.bits_per_second() as f64 / back / 1e6 - 1.0).abs() < 0.03, "{rate} for {back} Mbit/s");
        let base: Duration = value(&learned.both, "delay").unwrap().parse().unwrap();
        prop_assert!((base.as_nanos() as f64 / 1e6 - delay).abs() < 0.5, "{base} for {delay} ms");
        let queue = value(&learned.forward, "queue").unwrap_or_default();
        let bytes: f64 = queue.split('"').nth(3).unwrap_or_default().trim_end_matches(" B").parse().unwrap_or(0.0);
        prop_assert!((bytes / limit - 1.0).abs() < 0.1, "{queue} for {limit} B");
        // Losses without a full queue, within what chance makes of them at four deviations.
        let tried = 3_000.0_f64.min(400.0);
        match value(&learned.forward, "loss") {
            Some(text) => {
                let share = text.parse::<Ratio>().map(Ratio::value);
                prop_assert!(share.is_ok_and(|share| (share - loss).abs() < 4.0 * (loss.max(1e-3) / tried).sqrt()), "{text} for {loss}: {:?}", learned.forward);
            }
            None => prop_assert!(loss < 0.02, "no loss seen of {loss}"),
        }
        // On one clock, the delays of both directions are known.
        let same = captures(&observations, 0);
        let learned = self::learned(&same, Clocks::Same);
        for side in [&learned.forward, &learned.backward] {
            let base: Duration = value(side, "delay").unwrap().parse().unwrap();
            prop_assert!((base.as_nanos() as f64 / 1e6 - delay).abs() < 0.5, "{base} for {delay} ms");
        }
    }
}

#[test]
fn the_drift_of_the_second_clock_is_removed() {
    let link = Link::line(1e7, 0.02, Queue::FifoBytes(100_000.0));
    let mut observations = observed([&link, &link], 7);
    // What arrives at the second end is seen later and later, and what leaves it too: 100 ppm.
    for packet in observations.flows.iter_mut().flat_map(|flow| {
        let sign = if flow.way == Way::Forward { 1 } else { -1 };
        flow.packets.iter_mut().map(move |packet| (packet, sign))
    }) {
        let (packet, sign) = packet;
        let by = sign * (packet.sent.as_nanos() / 10_000) as i64;
        packet.delay = packet.delay.map(|delay| delay + by);
    }
    let text = learned(&captures(&observations, 0), Clocks::Apart).to_toml("a", "today");
    assert!(text.contains("The second clock drifts by 100.") || text.contains("drifts by 99."), "{text}");
    let base = text.lines().find_map(|line| line.strip_prefix("delay = ")).unwrap().trim_matches('"');
    let base: Duration = base.parse().unwrap();
    assert!((base.as_nanos() as f64 / 1e6 - 20.0).abs() < 0.2, "{text}");
}

#[test]
fn an_idle_path_has_bounds_and_placeholders() {
    let link = Link::line(1e7, 0.01, Queue::FifoBytes(1e6));
    let packets = (0..400).map(|n| Packet {
        sent: Time::from_nanos(n * 20_000_000),
        bytes: 200,
        delay: Some(10_160_000),
    });
    let flow = |way| ObservedFlow { name: "thin".to_owned(), way, packets: packets.clone().collect() };
    let observations =
        Observations { flows: vec![flow(Way::Forward), flow(Way::Backward)], clock_error: None };
    let text = learned(&captures(&observations, 7_000_000_000), Clocks::Apart).to_toml("a", "today");
    assert!(text.contains("a capture that never filled the queue"), "{text}");
    assert!(text.contains("The rate is at least 80 kbit/s"), "{text} {link:?}");
    assert!(text.contains("0 of 400 packets were lost without a full queue: below 0.75 % (95 %)"), "{text}");
}

/// Packets whose delays differ by 5 ms are not near the smallest, however far the clocks are apart.
#[test]
fn the_difference_of_two_clocks_makes_no_packet_near_the_smallest_delay() {
    let packets = (0..400_u64).map(|n| Packet {
        sent: Time::from_nanos(n * 20_000_000),
        bytes: 200,
        delay: Some(10_160_000 + (n % 50) as i64 * 5_000_000),
    });
    let flow = |way| ObservedFlow { name: "thin".to_owned(), way, packets: packets.clone().collect() };
    let observations =
        Observations { flows: vec![flow(Way::Forward), flow(Way::Backward)], clock_error: None };
    let text = learned(&captures(&observations, 7_000_000_000), Clocks::Apart).to_toml("a", "today");
    assert!(text.contains("8 of 400 packets were within 0.1 ms of it"), "{text}");
}

/// A download of 300 ms has fewer busy periods than an interval of 95 % needs.
#[test]
fn a_few_busy_periods_do_not_give_an_interval_of_95_percent() {
    let link = Link::line(1e7, 0.01, Queue::FifoBytes(1e9));
    let of = |millis: u64| {
        let gap = (1228.0 * 8e9 / (1.4 * link.rate)) as u64;
        let packet = |n| Packet { sent: Time::from_nanos(1_000_000_000 + n * gap), bytes: 1228, delay: None };
        let packets = (0..millis * 1_000_000 / gap).map(packet).collect();
        let planned = Observations {
            flows: vec![ObservedFlow { name: "load".to_owned(), way: Way::Forward, packets }],
            clock_error: None,
        };
        let replay = Replay::new(&planned, Way::Forward, &[0.0..60.0]).unwrap();
        let flows =
            replay.over(&link, 1).unwrap().into_iter().map(|flow| ObservedFlow { way: Way::Forward, ..flow });
        let observations = Observations { flows: flows.collect(), clock_error: None };
        learned(&captures(&observations, 0), Clocks::Same).to_toml("a", "today")
    };
    let short = of(300);
    assert!(short.contains("fewer than six periods do not give an interval of 95 %"), "{short}");
    let long = of(3_000);
    assert!(long.contains(" (95 %) in ") && !long.contains("fewer than six"), "{long}");
}

#[test]
fn one_direction_has_no_delay_and_says_why() {
    let packets = (0..400).map(|n| Packet {
        sent: Time::from_nanos(n * 20_000_000),
        bytes: 200,
        delay: Some(10_160_000),
    });
    let flow = ObservedFlow { name: "thin".to_owned(), way: Way::Forward, packets: packets.collect() };
    let learned =
        learned(&captures(&Observations { flows: vec![flow], clock_error: None }, 5), Clocks::Apart);
    let text = learned.to_toml("a", "today");
    assert!(text.contains("# delay: the clocks of the two ends differ by an unknown offset"), "{text}");
    assert!(learned.warnings[0].contains("The direction `backward` is unknown"), "{:?}", learned.warnings);
}

#[test]
fn damaged_captures_are_used_as_far_as_they_go() {
    let link = Link::line(1e7, 0.01, Queue::FifoBytes(1e6));
    let [first, mut second] = captures(&observed([&link, &link], 1), 0);
    second.truncate(second.len() / 2 + 3);
    let learned = learned(&[first.clone(), second], Clocks::Apart);
    assert!(
        learned.warnings.iter().any(|w| w.starts_with("`b.pcap` is damaged or cut off: the file ends")),
        "{:?}",
        learned.warnings
    );
    assert!(value(&learned.forward, "rate").is_some());
    let problem = |bytes: &[u8]| {
        let mut from = bytes;
        one_end(Source { name: "x", from: &mut from }).unwrap_err().to_string()
    };
    assert_eq!(problem(b""), "is empty");
    assert_eq!(problem(b"RIFF0000WAVE"), "is not a capture: it begins like neither pcap nor pcapng");
    assert_eq!(problem(&first[..24]), "is a capture without packets");
    assert!(
        problem(&first[..60]).starts_with("is a capture without a whole packet: the file ends"),
        "{}",
        problem(&first[..60])
    );
    assert!(problem(&first).contains("capture at both ends, and name both files"), "{}", problem(&first));
    // A length that no packet has reserves nothing.
    let mut huge = first[..24].to_vec();
    huge.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
    assert!(problem(&huge).contains("claims 2147483647 captured bytes"), "{}", problem(&huge));
}
