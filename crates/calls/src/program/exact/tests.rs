use proptest::prelude::*;
use trunkline_audio::pipeline::Packing;
use trunkline_core::Time;

use super::*;

fn stream(channels: u16, per_channel: bool) -> Stream {
    let packing = Packing { per_channel, ..Packing::default() };
    Stream { channels, sample_rate: 8_000, block_frames: 400, packing, ..Stream::default() }
}

fn part(sequence: u32, first_channel: u16, channels: u16) -> Arrived {
    Arrived { at: Time::ZERO, sequence, captured: Time::ZERO, first_channel, channels, origin: Origin::Sent }
}

/// A block of one channel that says where it belongs.
fn block(sequence: u32) -> Vec<f32> {
    (0..400).map(|frame| (sequence % 1_000) as f32 + frame as f32 / 512.0).collect()
}

/// What comes out of an [`Order`] for blocks of one channel that come in this order.
fn ordered(sequences: &[u32]) -> (Vec<Vec<f32>>, Counters) {
    let (mut order, mut out) = (Order::new(&stream(1, false)), Vec::new());
    for &sequence in sequences {
        order.take(&part(sequence, 0, 1), &block(sequence), &mut |block| out.push(block));
    }
    order.release(true, &mut |block| out.push(block));
    (out, order.counters)
}

proptest! {
    /// The window is a second, which is 20 blocks: what is moved by less is put back, also where numbers wrap.
    #[test]
    fn what_is_reordered_within_a_second_is_put_in_order(
        first in prop_oneof![Just(0u32), Just(u32::MAX - 30), any::<u32>()],
        late_by in proptest::collection::vec(0usize..18, 80),
    ) {
        let mut order: Vec<usize> = (0..80).collect();
        order.sort_by_key(|&n| n + late_by[n]);
        let sequences: Vec<u32> = order.iter().map(|&n| first.wrapping_add(n as u32)).collect();
        let (out, counters) = ordered(&sequences);
        let expected: Vec<Vec<f32>> = (0..80).map(|n| block(first.wrapping_add(n))).collect();
        prop_assert!(out == expected);
        prop_assert_eq!((counters.played, counters.missing, counters.late), (80, 0, 0));
    }

    /// Whatever is missing: the rest is where it belongs, and silence of the same length where it was.
    #[test]
    fn silence_stands_for_what_is_missing(kept in proptest::collection::vec(any::<bool>(), 1..120)) {
        let present: Vec<u32> = (0..).zip(&kept).filter(|(_, kept)| **kept).map(|(n, _)| n).collect();
        let (out, counters) = ordered(&present);
        let (Some(&first), Some(&last)) = (present.first(), present.last()) else {
            prop_assert!(out.is_empty());
            return Ok(());
        };
        let expected: Vec<Vec<f32>> =
            (first..=last).map(|n| if kept[n as usize] { block(n) } else { vec![0.0; 400] }).collect();
        prop_assert!(out == expected);
        prop_assert_eq!(counters.played, present.len() as u64);
        prop_assert_eq!(counters.missing, u64::from(last - first + 1) - counters.played);
    }
}

#[test]
fn what_comes_again_or_too_late_or_from_far_away_changes_nothing() {
    let mut sequences: Vec<u32> = (1..60).filter(|n| *n != 5).collect();
    sequences.extend([5, 5, 0, 59, 60, 60, 70_000_000, 61]);
    let (out, counters) = ordered(&sequences);
    let expected: Vec<Vec<f32>> = (1..62).map(|n| if n == 5 { vec![0.0; 400] } else { block(n) }).collect();
    assert!(out == expected);
    assert_eq!((counters.played, counters.missing, counters.refused), (60, 1, 1));
    // Blocks 5, once, and 0 came too late; 59 and 60 were written when they came again, and 5 had come.
    assert_eq!((counters.late, counters.duplicate), (2, 3));
}

#[test]
fn parts_of_a_block_are_put_together() {
    let (mut order, mut out) = (Order::new(&stream(2, true)), Vec::new());
    for sequence in 0..30 {
        for channel in [1, 0] {
            // The first channel of block 3 is missing.
            if (sequence, channel) != (3, 0) {
                let samples = vec![f32::from(channel) + sequence as f32; 400];
                order.take(&part(sequence, channel, 1), &samples, &mut |block| out.push(block));
            }
        }
    }
    order.release(true, &mut |block| out.push(block));
    assert_eq!((order.counters.played, order.counters.missing), (59, 1));
    for (sequence, block) in out.iter().enumerate() {
        let first = if sequence == 3 { 0.0 } else { sequence as f32 };
        assert!(block.chunks(2).all(|frame| frame == [first, sequence as f32 + 1.0]), "{sequence}");
    }
    assert_eq!(out.len(), 30);
}

#[test]
fn a_part_that_does_not_fit_is_refused() {
    let mut order = Order::new(&stream(2, true));
    for (first, channels, samples) in [(0, 0, 0), (1, 2, 800), (u16::MAX, 1, 400), (0, 1, 399), (0, 2, 400)] {
        order.take(&part(0, first, channels), &vec![0.0; samples], &mut |_| {});
    }
    assert_eq!((order.counters.refused, order.held.len()), (5, 0));
}

#[test]
fn a_recording_is_whole_if_all_is_there_that_was_sent() {
    let counters = |played, missing| Counters { played, missing, ..Counters::default() };
    let sender = |blocks, left_out| Sending { blocks, left_out, ..Sending::default() };
    let gone = || End::Gone("the client has ended".to_owned());
    assert_eq!(wholeness(counters(10, 0), &sender(Some(10), 0), &gone()), Ok(()));
    let stopped = wholeness(counters(10, 0), &sender(None, 0), &End::Stopped).unwrap_err();
    assert!(stopped.contains("the receiver stopped before the sender had sent everything"), "{stopped}");
    for (counters, sender, why) in [
        (counters(10, 0), sender(None, 0), "did not report how much it sent"),
        // The first or the last ones.
        (counters(7, 0), sender(Some(10), 0), "3 of 10 packets are missing"),
        (counters(8, 2), sender(Some(10), 0), "2 of 10 packets are missing"),
        (counters(10, 0), sender(Some(10), 4), "the sender lost 4 blocks"),
    ] {
        let told = wholeness(counters, &sender, &gone()).unwrap_err();
        assert!(told.contains(why), "{told}");
    }
}

/// Of 10 blocks the first, one between and the last are missing. The sender waits for counts of all of them.
#[test]
fn what_is_missing_is_counted_when_all_was_sent_and_nothing_more_comes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    for reliable in [false, true] {
        let place = Place::File(folder.path().join(format!("reliable-{reliable}.wav")));
        let mut recording = Recording::create(&place, &stream(1, false)).unwrap();
        for sequence in [1, 2, 4, 5, 6, 7, 8] {
            recording.take(&Arrived { at: at(1_000), ..part(sequence, 0, 1) }, &block(sequence));
        }
        recording.settle(&Sending::default(), at(5_000), reliable);
        let sender = Sending { blocks: Some(10), ..Sending::default() };
        recording.settle(&sender, at(5_050), reliable);
        recording.settle(&sender, at(5_549), reliable);
        assert!(recording.counters().turns() < 10);
        recording.settle(&sender, at(5_550), reliable);
        let Counters { played, missing, .. } = recording.counters();
        // A reliable transport may still bring them.
        assert_eq!((played, missing) == (7, 3), !reliable, "{played} {missing}");
        recording.finish(&sender, &End::Done);
        assert_eq!((recording.counters().played, recording.counters().missing), (7, 3));
        assert!(recording.outcome.clone().unwrap_err().contains("3 of 10 packets are missing"));
    }
}
