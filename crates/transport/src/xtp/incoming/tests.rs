use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

const LENGTH: usize = 600;

/// The stream's bytes: each tells its place.
fn byte(at: usize) -> u8 {
    (at * 7 + at / 256) as u8
}

fn data(from: usize, length: usize) -> Vec<u8> {
    (from..(from + length).min(LENGTH)).map(byte).collect()
}

#[derive(Clone, Debug)]
enum Operation {
    Take(usize, usize),
    Read,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let take = (0..LENGTH, 1..80usize).prop_map(|(from, length)| Operation::Take(from, length));
    prop::collection::vec(prop_oneof![6 => take, 1 => Just(Operation::Read)], 0..120)
}

proptest! {
    #![proptest_config(cases(300))]

    /// Against a plain model: which bytes are here.
    #[test]
    fn what_is_here_is_reported_and_read_in_order(
        operations in operations(), capacity in 1..500usize, max_spans in 1..20usize,
    ) {
        let mut incoming = Incoming::new(capacity, max_spans, 50);
        let mut here = [false; LENGTH];
        let mut read = Vec::new();
        for operation in operations {
            match operation {
                Operation::Take(from, length) => {
                    let data = data(from, length);
                    let taken = incoming.take(from as u64, &data);
                    let fits = from + data.len() <= read.len() + capacity;
                    if matches!(taken, Taken::InOrder | Taken::NewGap | Taken::BehindGap) {
                        here[from..from + data.len()].fill(true);
                    } else if taken == Taken::Old {
                        prop_assert!(here[from..from + data.len()].iter().all(|&here| here));
                    } else {
                        prop_assert!(!fits || incoming.spans().len() == max_spans, "{} to {}", from, from + data.len());
                    }
                }
                Operation::Read => {
                    incoming.read(&mut read);
                }
            }
            let rseq = here.iter().position(|&here| !here).unwrap_or(LENGTH);
            prop_assert_eq!(incoming.rseq(), rseq as u64);
            let mut reported = [false; LENGTH];
            reported[..rseq].fill(true);
            let mut last = rseq as u64;
            for span in incoming.spans() {
                prop_assert!(span.left > last && span.right > span.left, "{:?}", incoming.spans());
                last = span.right;
                reported[span.left as usize..span.right as usize].fill(true);
            }
            prop_assert_eq!(reported, here);
        }
        incoming.read(&mut read);
        let expected: Vec<u8> = (0..incoming.rseq() as usize).map(byte).collect();
        prop_assert_eq!(read, expected);
    }

    /// The allocation never shrinks, and what it allows is taken.
    #[test]
    fn what_is_allocated_has_room(steps in prop::collection::vec((1..200usize, any::<bool>()), 1..60), capacity in 1..900usize) {
        let mut incoming = Incoming::new(capacity, 8, 100);
        let (mut sent, mut alloc, mut read) = (0u64, capacity as u64, Vec::new());
        for (length, reads) in steps {
            let length = (length as u64).min(alloc - sent);
            if length > 0 {
                prop_assert_eq!(incoming.take(sent, &vec![1; length as usize]), Taken::InOrder);
                sent += length;
            }
            if reads {
                incoming.read(&mut read);
            }
            let next = incoming.allocate();
            prop_assert!(next >= alloc && next <= read.len() as u64 + capacity as u64);
            alloc = next;
        }
        // Once everything was read, at least half of the buffer is open, or a packet's worth.
        incoming.read(&mut read);
        prop_assert!(incoming.allocate() >= sent + (capacity as u64 / 2).min(100));
    }
}

#[test]
fn an_unrepaired_stream_goes_on_and_counts_what_it_lost() {
    let mut incoming = Incoming::new(100, 8, 50);
    incoming.set_repaired(false);
    let mut read = Vec::new();
    assert_eq!(incoming.take(0, b"one"), Taken::InOrder);
    assert_eq!(incoming.take(10, b"two"), Taken::InOrder);
    assert_eq!(incoming.take(3, b"late"), Taken::Old);
    assert_eq!((incoming.read(&mut read), incoming.rseq(), incoming.lost()), (6, 13, 7));
    assert!(incoming.finish(20) && incoming.is_finished());
    assert_eq!((read, incoming.lost()), (b"onetwo".to_vec(), 14));
}

#[test]
fn an_end_that_contradicts_what_is_here_is_refused() {
    let mut incoming = Incoming::new(100, 8, 50);
    incoming.take(10, b"behind a gap");
    assert!(!incoming.finish(12), "data from behind it are here");
    assert!(!incoming.finish(u64::MAX));
    assert!(incoming.finish(30) && !incoming.finish(31), "it does not move");
    assert_eq!(incoming.take(25, b"beyond the end"), Taken::Old);
}

#[test]
fn a_delivery_is_due_when_everything_before_was_read_and_once() {
    let mut incoming = Incoming::new(100, 8, 50);
    incoming.take(0, b"abc");
    incoming.promise_delivery(3);
    assert!(!incoming.delivery_is_due());
    incoming.read(&mut Vec::new());
    assert!(incoming.delivery_is_due() && !incoming.delivery_is_due());
}
