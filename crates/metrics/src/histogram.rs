//! Counts of numbers to three significant digits.

use core::ops::RangeInclusive;

/// The buckets of HdrHistogram at three significant digits: 2,048 of one number each, then 1,024 for each power of two.
/// It grows with the largest number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram(Vec<u64>);

/// Each power of two has 2^BITS buckets.
const BITS: u32 = 10;

impl Histogram {
    /// Counts a number.
    #[inline]
    pub(crate) fn record(&mut self, number: u64) {
        let bucket = bucket(number);
        match self.0.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.grow(bucket),
        }
    }

    /// The numbers of each bucket that is not empty, in ascending order, and their count.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = (RangeInclusive<u64>, u64)> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, &count)| (range(bucket), count))
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.0.resize(bucket + 1, 0);
        self.0[bucket] += 1;
    }
}

#[inline]
fn bucket(number: u64) -> usize {
    let shift = (number >> BITS | 1).ilog2();
    ((shift << BITS) as u64 + (number >> shift)) as usize
}

fn range(bucket: usize) -> RangeInclusive<u64> {
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = (bucket as u64 - (shift << BITS) as u64) << shift;
    low..=low + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_buckets_are_those_of_hdr_histogram(
            numbers in prop::collection::vec((0u64..1 << 48, 0u32..48).prop_map(|(number, bits)| number >> bits), 1..100),
        ) {
            let mut ours = Histogram::default();
            let mut theirs = hdrhistogram::Histogram::<u64>::new(3).unwrap();
            for number in numbers {
                ours.record(number);
                theirs.record(number).unwrap();
            }
            let ours: Vec<_> = ours.recorded().map(|(range, count)| {
                let median = range.start() + (range.end() - range.start()).div_ceil(2);
                (*range.end(), median, count)
            }).collect();
            let theirs: Vec<_> = theirs.iter_recorded().map(|bucket| {
                let highest = bucket.value_iterated_to();
                (highest, theirs.median_equivalent(highest), bucket.count_at_value())
            }).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
