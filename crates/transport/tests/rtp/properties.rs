//! Voice over any path: never corrupt, never twice, and counts that add up.

use proptest::prelude::*;
use trunkline_core::{Duration, Seed};
use trunkline_testkit::cases::cases;
use trunkline_testkit::pair::{Pair, Path, Side};
use trunkline_transport::Close;

use super::ends;

fn path() -> impl Strategy<Value = Path> {
    (0..200u64, 0.0..0.5, 0.0..0.3, 0.0..0.3, 0.0..0.3).prop_map(
        |(latency, loss, duplicate, reorder, corrupt)| Path {
            loss,
            duplicate,
            reorder,
            corrupt,
            ..Path::with_latency(Duration::from_millis(latency))
        },
    )
}

/// The `number`th message: no two are alike.
fn message(number: usize, length: usize) -> Vec<u8> {
    let mut message = (number as u32).to_be_bytes().to_vec();
    message.resize(4 + length, number as u8);
    message
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn nothing_is_corrupt_nothing_comes_twice_and_counts_add_up(
        seed: u64, out in path(), back in path(), interval in 1..40u64,
        lengths in prop::collection::vec(0..400usize, 1..300),
    ) {
        let (near, far) = ends(seed);
        let mut pair = Pair::new(near, far, [out, back], Seed::new(seed, 0));
        let mut received = Vec::new();
        for (number, &length) in lengths.iter().enumerate() {
            prop_assert_eq!(pair.send(Side::Near, &message(number, length)), Ok(()));
            pair.drive_for(Duration::from_millis(interval));
            received.extend(pair.receive_all(Side::Far));
        }
        pair.close(Side::Near, Close::Graceful);
        pair.drive();
        received.extend(pair.receive_all(Side::Far));

        let mut was_received = vec![false; lengths.len()];
        for bytes in &received {
            let number = u32::from_be_bytes(*bytes.first_chunk().expect("every message has a number")) as usize;
            prop_assert_eq!(bytes, &message(number, lengths[number]));
            prop_assert!(!core::mem::replace(&mut was_received[number], true), "{} came twice", number);
        }
        for from in Side::BOTH {
            let path = pair.path_counters(from);
            let at = from.other();
            let handed_on = if at == Side::Far { received.len() as u64 } else { 0 };
            let others = [
                "checksum-errors", "malformed", "strays", "duplicates", "out-of-sequence", "on-probation",
                "control-received", "after-close",
            ];
            let counted: u64 = others.iter().map(|name| pair.counter(at, name)).sum();
            prop_assert_eq!(handed_on + counted, path.sent - path.lost + path.duplicated);
            prop_assert_eq!(pair.counter(from, "packets-sent"), path.sent);
            // A bit of UDP's own length shows before its checksum does.
            let damaged = pair.counter(at, "checksum-errors") + pair.counter(at, "malformed");
            prop_assert!(damaged >= path.corrupted);
        }
        let sent = lengths.len() as u64 + pair.counter(Side::Near, "control-sent");
        prop_assert_eq!(pair.path_counters(Side::Near).sent, sent);
    }
}
