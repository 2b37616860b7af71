//! Ranges of numbers, and the range of a number.

use core::ops::Range;

/// Ranges of numbers that do not overlap, such as the ids of the members of flows.
///
/// They take memory by their number, not by their lengths: the flow of one of a hundred thousand members is found in the
/// nearest cache, which a table of all ids would not fit.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Without empty ones, in ascending order, and where each stands among those that were given.
    ranges: Vec<(Range<u32>, u32)>,
    /// The lowest number.
    first: u32,
    /// By step of 2^`shift` numbers from the lowest on, the first range that ends behind its beginning. There are about as many
    /// steps as ranges.
    steps: Vec<u32>,
    shift: u32,
}

impl Ranges {
    /// The place of the range with this number.
    #[inline]
    pub fn find(&self, number: u32) -> Option<usize> {
        let step = number.checked_sub(self.first)? >> self.shift;
        let ranges = self.ranges.get(*self.steps.get(step as usize)? as usize..)?;
        let (range, place) = ranges.iter().find(|(range, _)| number < range.end)?;
        (range.start <= number).then_some(*place as usize)
    }
}

impl FromIterator<Range<u32>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<u32>>>(ranges: I) -> Ranges {
        let mut ranges: Vec<(Range<u32>, u32)> =
            ranges.into_iter().zip(0..).filter(|(range, _)| !range.is_empty()).collect();
        ranges.sort_unstable_by_key(|(range, _)| range.start);
        let (Some((lowest, _)), Some((highest, _))) = (ranges.first(), ranges.last()) else {
            return Ranges::default();
        };
        let (first, numbers) = (lowest.start, highest.end - lowest.start);
        let shift = (numbers / ranges.len() as u32).max(1).ilog2();
        let begins = (0..=(numbers - 1) >> shift).map(|step| first + (step << shift));
        let steps =
            begins.map(|begin| ranges.partition_point(|(range, _)| range.end <= begin) as u32).collect();
        Ranges { ranges, first, steps, shift }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_found_in_its_range(
            first in prop_oneof![Just(0u32), 0u32..1 << 31],
            lengths in prop::collection::vec((0u32..5, prop_oneof![4 => 0u32..6, 1 => 0u32..1_000_000]), 0..40),
            backwards in any::<bool>(),
        ) {
            let mut end = first;
            let mut ranges = Vec::new();
            for (gap, length) in lengths {
                let start = end + if gap < 4 { 0 } else { gap };
                end = start + length;
                ranges.push(start..end);
            }
            if backwards {
                ranges.reverse();
            }
            let found: Ranges = ranges.iter().cloned().collect();
            let edges = ranges.iter().flat_map(|range| [range.start, range.start + 1, range.end, range.end + 1]);
            for number in edges.chain([0, first, u32::MAX]).flat_map(|edge| [edge.saturating_sub(1), edge]) {
                prop_assert_eq!(found.find(number), ranges.iter().position(|range| range.contains(&number)));
            }
        }
    }
}
