//! What a receiver counts, against the RFC's example and against a computation that knows every packet.

use std::collections::BTreeSet;

use proptest::prelude::*;
use trunkline_core::{Duration, Time};
use trunkline_testkit::cases::cases;

use crate::rtp::receiver::{MAX_MISORDER, Receiver, Verdict, round_trip};
use crate::rtp::rtcp::ReportBlock;
use crate::rtp::wire::RtpHeader;

fn header(sequence: u16, timestamp: u32) -> RtpHeader {
    RtpHeader { marker: false, payload_type: 0, sequence, timestamp, ssrc: 1 }
}

fn receiver() -> Receiver {
    Receiver::new(1, 8000, 1, Time::ZERO)
}

/// Takes packets with these numbers, one every 20 ms.
fn numbers(receiver: &mut Receiver, numbers: impl IntoIterator<Item = u16>) -> Vec<Verdict> {
    let mut now = Time::ZERO;
    let mut place = |number: u16| {
        now += Duration::from_millis(20);
        receiver.data(now, &header(number, u32::from(number) * 160))
    };
    numbers.into_iter().map(&mut place).collect()
}

#[test]
fn the_round_trip_of_the_figure_in_section_6_4_1() {
    let block = ReportBlock { last_report: 0xB705_2000, delay: 0x0005_4000, ..ReportBlock::default() };
    assert_eq!(round_trip(0xB710_8000, &block), Some(Duration::from_millis(6125)));
    assert_eq!(round_trip(0xB705_2000, &block), None, "before it was sent");
    assert_eq!(round_trip(0xB710_8000, &ReportBlock::default()), None, "answers no report");
}

#[test]
fn loss_is_the_difference_of_two_reports() {
    let mut receiver = receiver();
    // Of the first ten, two are missing: 2/10 are 51/256.
    numbers(&mut receiver, [65_530, 65_531, 65_533, 65_534, 65_535, 0, 2, 3]);
    let block = receiver.block(Time::ZERO).unwrap();
    assert_eq!((block.fraction_lost, block.lost, block.highest), (51, 2, 0x0001_0003));
    assert_eq!(receiver.block(Time::ZERO), None, "nothing new");
    // Of the next four, none; one that was missing comes late, and one comes twice.
    numbers(&mut receiver, [1, 4, 5, 6, 6, 7]);
    let block = receiver.block(Time::ZERO).unwrap();
    assert_eq!((block.fraction_lost, block.lost), (0, 0));
    numbers(&mut receiver, [7, 7]);
    let reception = receiver.reception().unwrap();
    assert_eq!((reception.expected, reception.received, reception.lost), (14, 16, -2));
}

#[test]
fn a_jump_is_believed_when_the_next_packet_confirms_it() {
    use Verdict::{Duplicate, New, OutOfSequence};
    let mut receiver = receiver();
    let verdicts = numbers(&mut receiver, [1, 2, 30_000, 3, 30_001, 30_002, 30_003, 30_003]);
    // 30,000 and 30,001 do not follow each other as packets: 3 came between them.
    assert_eq!(verdicts, [New, New, OutOfSequence, New, OutOfSequence, New, New, Duplicate]);
    let reception = receiver.reception().unwrap();
    assert_eq!((reception.received, reception.expected), (3, 2), "counted anew");
}

#[test]
fn how_far_a_packet_may_be_from_the_others() {
    use Verdict::{New, OutOfSequence};
    assert_eq!(numbers(&mut receiver(), [0, 2999, 5999]), [New, New, OutOfSequence]);
    let late = 10_000 - MAX_MISORDER;
    assert_eq!(numbers(&mut receiver(), [10_000, late + 1, late]), [New, New, OutOfSequence]);
}

#[test]
fn a_source_on_probation_must_come_in_sequence() {
    use Verdict::{New, OnProbation};
    let mut receiver = Receiver::new(1, 8000, 2, Time::ZERO);
    assert_eq!(numbers(&mut receiver, [5, 7, 9, 10]), [OnProbation, OnProbation, OnProbation, New]);
    assert_eq!(receiver.reception().unwrap().expected, 1, "counts from the packet that was handed on");
}

#[test]
fn jitter_forgets_a_sixteenth_per_packet() {
    let mut receiver = receiver();
    // One packet is 160 periods late, and the next is on time.
    for (number, late) in [(0u16, 0), (1, 20), (2, 0)] {
        let now = Time::ZERO + Duration::from_millis(u64::from(number) * 20 + late);
        receiver.data(now, &header(number, u32::from(number) * 160));
    }
    // 160/16 = 10, then 10 + (160 - 10)/16 = 19.4.
    assert_eq!(receiver.reception().unwrap().jitter, 19);
}

proptest! {
    #![proptest_config(cases(256))]

    /// Jitter in integers stays within a period of the formula in section 6.4.1 in real numbers, whatever the clocks'
    /// difference, which may be beyond what 32 bits hold.
    #[test]
    fn jitter_is_the_formula_of_section_6_4_1(offset: u32, delays in prop::collection::vec(0..400_000_000u64, 1..200)) {
        let mut receiver = receiver();
        let mut expected = 0.0;
        let mut before: Option<i64> = None;
        for (number, &delay) in delays.iter().enumerate() {
            let sent = number as u64 * 20_000_000;
            let arrival = sent + delay;
            let timestamp = (number as u32 * 160).wrapping_add(offset);
            // Packets may overtake each other: their times are not in order, but a receiver's are.
            let now = Time::from_nanos(arrival + number as u64 * 400_000_000);
            receiver.data(now, &header(number as u16, timestamp));
            let transit = (now.as_nanos() * 8 / 1_000_000) as i64 - number as i64 * 160;
            if let Some(before) = before.replace(transit) {
                expected += ((transit - before).abs() as f64 - expected) / 16.0;
            }
        }
        let jitter = f64::from(receiver.reception().unwrap().jitter);
        prop_assert!((jitter - expected).abs() <= 1.5, "{jitter} and {expected}");
    }

    /// Counts and verdicts, for any losses, duplicates and delays of up to a thousand packets, against sets of numbers
    /// that never go round.
    #[test]
    fn counts_are_those_of_one_who_knows_every_packet(
        first: u16, fates in prop::collection::vec((0..10u8, 0..500u64), 1..3000),
    ) {
        let mut arrivals: Vec<(u64, u64)> = Vec::new();
        for (number, &(fate, delay)) in (1000u64..).zip(&fates) {
            let number = number + u64::from(first);
            match fate {
                0 => {}
                1 => arrivals.extend([(number, number), (number + delay, number)]),
                2 => arrivals.push((number + delay, number)),
                _ => arrivals.push((number, number)),
            }
        }
        // Numbers go up by one per packet at most, so nothing is later than 500 packets.
        arrivals.sort_unstable();
        let mut receiver = receiver();
        let (mut seen, mut highest) = (BTreeSet::new(), 0);
        for (count, &(_, number)) in (1..).zip(&arrivals) {
            let verdict = receiver.data(Time::ZERO, &header(number as u16, 0));
            let expected = if seen.insert(number) { Verdict::New } else { Verdict::Duplicate };
            prop_assert_eq!(verdict, expected, "packet {}", number);
            highest = highest.max(number);
            let reception = receiver.reception().unwrap();
            let base = arrivals[0].1;
            prop_assert_eq!(reception.received, count);
            prop_assert_eq!(reception.expected, highest - base + 1);
            prop_assert_eq!(u64::from(reception.highest), highest - (base & !0xFFFF));
        }
    }
}
