//! Which of many things is due first.

use trunkline_core::Time;

/// A time for each of a fixed number of things, [`Time::MAX`] for none, and the earliest of them at hand.
///
/// A binary tree in which every node has the earlier time of its two children; setting one takes a step for each level,
/// and nothing stale is left behind.
#[derive(Debug)]
pub(super) struct Earliest {
    /// The root at 1, the children of `n` at `2 n` and `2 n + 1`, the things from `leaves` on.
    times: Vec<Time>,
    leaves: usize,
}

impl Earliest {
    pub(super) fn new(count: usize) -> Earliest {
        let leaves = count.next_power_of_two();
        Earliest { times: vec![Time::MAX; 2 * leaves], leaves }
    }

    pub(super) fn set(&mut self, index: usize, time: Time) {
        let mut node = self.leaves + index;
        self.times[node] = time;
        while node > 1 {
            node /= 2;
            self.times[node] = self.times[2 * node].min(self.times[2 * node + 1]);
        }
    }

    /// The earliest time.
    pub(super) fn time(&self) -> Time {
        self.times[1]
    }

    /// Whose it is; the first one's of several.
    pub(super) fn index(&self) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.times[node + 1] < self.times[node]);
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_earliest_is_that_of_a_plain_search(
            count in 1usize..40,
            steps in prop::collection::vec((0usize..40, 0u64..50), 0..100),
        ) {
            let (mut earliest, mut plain) = (Earliest::new(count), vec![Time::MAX; count]);
            for (index, time) in steps {
                let time = if time == 0 { Time::MAX } else { Time::from_nanos(time) };
                earliest.set(index % count, time);
                plain[index % count] = time;
                let (first, least) = plain.iter().enumerate().min_by_key(|(_, time)| **time).unwrap();
                prop_assert_eq!((earliest.index(), earliest.time()), (first, *least));
            }
        }
    }
}
