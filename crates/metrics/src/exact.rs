//! Exact percentiles of a stored trace of any length, in bounded memory.
//!
//! ```
//! use trunkline_core::Duration;
//! use trunkline_metrics::{PercentileSelector, SelectError};
//!
//! fn median(trace: &[u64]) -> Result<Vec<Duration>, SelectError> {
//!     let count = trace.len() as u64;
//!     let mut selector = PercentileSelector::new(count, &[count.div_ceil(2)]);
//!     while selector.wants_pass() {
//!         for &value in trace {
//!             selector.push(Duration::from_nanos(value));
//!         }
//!         selector.end_pass()?;
//!     }
//!     Ok(selector.values())
//! }
//! assert_eq!(median(&[5, 1, 4]), Ok(vec![Duration::from_nanos(4)]));
//! ```

use trunkline_core::Duration;

use crate::percentile::PerMille;
use crate::summary::{DelaySummary, FlowSummary};

/// Selects values by rank from a stream that can be read several times.
///
/// The first pass counts values in buckets of 1/8,192 of their size or less. The second looks only into the buckets that
/// hold a wanted rank: it keeps their values if they are few, or else counts them in finer buckets, and so on until a
/// bucket is one nanosecond wide. Two passes are usual: they are enough where no bucket of interest holds more than
/// 65,536 values, and below 134 ms in any case; 64-bit values need at most five (more only for more than 512 ranks).
/// Memory: 4 MB for the first pass, then at most 512 KiB for each wanted rank and 32 MiB altogether.
#[derive(Clone, Debug)]
pub struct PercentileSelector {
    count: u64,
    /// The wanted ranks, in the order in which they were asked for.
    ranks: Vec<u64>,
    pushed: u64,
    phase: Phase,
}

/// Why a selection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// A pass did not have the promised number of values.
    #[error(
        "a pass over the trace gave {found} values where {expected} were announced; read the whole trace in every pass"
    )]
    Count {
        /// What [`PercentileSelector::new`] was told.
        expected: u64,
        /// What came.
        found: u64,
    },
    /// A later pass gave other values than an earlier one.
    #[error("two passes over the trace gave different values; read the same trace in every pass")]
    Changed,
    /// The selection is not finished, or was made for other ranks.
    #[error("the selection is not finished for the requested percentiles")]
    Unfinished,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Counting in logarithmic buckets.
    Coarse(Vec<u64>),
    /// Looking into intervals, sorted and apart.
    Fine(Vec<Interval>),
}

/// A range of values in which wanted ranks lie.
#[derive(Clone, Debug)]
struct Interval {
    low: u64,
    /// It is 2^width values wide.
    width: u32,
    /// How many values of the stream are smaller.
    below: u64,
    /// How many values of the stream it holds.
    holds: u64,
    /// Wanted ranks in it, increasing.
    ranks: Vec<u64>,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    /// One value wide: it is known.
    Known,
    /// Values, to be sorted.
    Kept { values: Vec<u64>, sorted: bool },
    /// Counts in 2^shift wide parts.
    Counted { counts: Vec<u64>, shift: u32 },
}

/// Bits of a value that a coarse bucket tells.
const COARSE_BITS: u32 = 14;
/// Bits that a pass over an interval adds.
const FINE_BITS: u32 = 13;
/// Most values kept of one interval.
const KEEP: u64 = 65_536;
/// Most values and counts of all intervals together.
const ROOM: u64 = 1 << 22;

impl PercentileSelector {
    /// Selects the values at `ranks` (from 1, clamped to 1..=`count`) of the `count` values that each pass will push.
    pub fn new(count: u64, ranks: &[u64]) -> PercentileSelector {
        let ranks: Vec<u64> = ranks.iter().map(|rank| (*rank).clamp(1, count.max(1))).collect();
        let phase = if count == 0 || ranks.is_empty() {
            Phase::Fine(Vec::new())
        } else {
            Phase::Coarse(vec![0; coarse(u64::MAX) + 1])
        };
        PercentileSelector { count, ranks, pushed: 0, phase }
    }

    /// Whether another pass over all values is needed.
    pub fn wants_pass(&self) -> bool {
        match &self.phase {
            Phase::Coarse(_) => true,
            Phase::Fine(intervals) => intervals.iter().any(|interval| !interval.is_done()),
        }
    }

    /// Takes the next value of this pass, in any order.
    #[inline]
    pub fn push(&mut self, value: Duration) {
        let value = value.as_nanos();
        self.pushed += 1;
        match &mut self.phase {
            Phase::Coarse(counts) => counts[coarse(value)] += 1,
            Phase::Fine(intervals) => {
                let after = intervals.partition_point(|interval| interval.low <= value);
                if let Some(interval) = after.checked_sub(1).and_then(|index| intervals.get_mut(index)) {
                    interval.push(value);
                }
            }
        }
    }

    /// Ends a pass.
    pub fn end_pass(&mut self) -> Result<(), SelectError> {
        let found = std::mem::take(&mut self.pushed);
        if found != self.count {
            return Err(SelectError::Count { expected: self.count, found });
        }
        let mut ranks = self.ranks.clone();
        ranks.sort_unstable();
        ranks.dedup();
        let mut next = Vec::new();
        match &mut self.phase {
            Phase::Coarse(counts) => {
                let bucket = |index: usize| coarse_range(index);
                split(&ranks, 0, counts, bucket, &mut next)?;
            }
            Phase::Fine(intervals) => {
                for interval in intervals.drain(..) {
                    interval.refine(&mut next)?;
                }
            }
        }
        let room = ROOM / next.len().max(1) as u64;
        for interval in next.iter_mut().filter(|interval| matches!(interval.inside, Inside::Known)) {
            interval.prepare(room.min(KEEP), room);
        }
        self.phase = Phase::Fine(next);
        Ok(())
    }

    /// The selected values, in the order of the ranks given; empty before [`PercentileSelector::wants_pass`] says that no
    /// pass is needed, and of no values.
    pub fn values(&self) -> Vec<Duration> {
        let Phase::Fine(intervals) = &self.phase else { return Vec::new() };
        if self.wants_pass() {
            return Vec::new();
        }
        let value = |&rank: &u64| {
            let interval = intervals.iter().find(|interval| interval.ranks.contains(&rank))?;
            interval.value(rank).map(Duration::from_nanos)
        };
        self.ranks.iter().filter_map(value).collect()
    }
}

impl Interval {
    fn is_done(&self) -> bool {
        match &self.inside {
            Inside::Known => true,
            Inside::Kept { sorted, .. } => *sorted,
            Inside::Counted { .. } => false,
        }
    }

    /// Chooses how the next pass looks into it: `keep` values may be kept, or `room` parts counted.
    fn prepare(&mut self, keep: u64, room: u64) {
        self.inside = if self.width == 0 {
            Inside::Known
        } else if self.holds <= keep {
            Inside::Kept { values: Vec::with_capacity(self.holds as usize), sorted: false }
        } else {
            let bits = self.width.min(FINE_BITS).min(room.max(2).ilog2());
            Inside::Counted { counts: vec![0; 1 << bits], shift: self.width - bits }
        };
    }

    fn push(&mut self, value: u64) {
        let offset = value - self.low;
        if u128::from(offset) >> self.width > 0 {
            return;
        }
        match &mut self.inside {
            // More values than were counted before: the stream has changed, which the end of the pass will tell.
            Inside::Kept { values, sorted: false } if values.len() as u64 <= self.holds => values.push(value),
            Inside::Counted { counts, shift } => counts[(offset >> *shift) as usize] += 1,
            Inside::Known | Inside::Kept { .. } => {}
        }
    }

    /// What is known of it after a pass: itself, or the parts of it in which its ranks lie.
    fn refine(mut self, into: &mut Vec<Interval>) -> Result<(), SelectError> {
        match &mut self.inside {
            Inside::Known => into.push(self),
            Inside::Kept { values, sorted } => {
                if values.len() as u64 != self.holds {
                    return Err(SelectError::Changed);
                }
                values.sort_unstable();
                *sorted = true;
                into.push(self);
            }
            Inside::Counted { counts, shift } => {
                if counts.iter().sum::<u64>() != self.holds {
                    return Err(SelectError::Changed);
                }
                let (low, shift) = (self.low, *shift);
                let part = |index: usize| (low + ((index as u64) << shift), shift);
                split(&self.ranks, self.below, counts, part, into)?;
            }
        }
        Ok(())
    }

    fn value(&self, rank: u64) -> Option<u64> {
        match &self.inside {
            Inside::Known => Some(self.low),
            Inside::Kept { values, .. } => {
                values.get(usize::try_from(rank.checked_sub(self.below + 1)?).ok()?).copied()
            }
            Inside::Counted { .. } => None,
        }
    }
}

/// Finds the buckets that hold `ranks` (increasing), given that `below` values are smaller than all buckets.
fn split(
    ranks: &[u64],
    mut below: u64,
    counts: &[u64],
    bucket: impl Fn(usize) -> (u64, u32),
    into: &mut Vec<Interval>,
) -> Result<(), SelectError> {
    let mut ranks = ranks;
    for (index, &holds) in counts.iter().enumerate() {
        let inside = ranks.partition_point(|&rank| rank <= below + holds);
        if inside > 0 {
            let (low, width) = bucket(index);
            into.push(Interval {
                low,
                width,
                below,
                holds,
                ranks: ranks[..inside].to_vec(),
                inside: Inside::Known,
            });
            ranks = &ranks[inside..];
        }
        below += holds;
    }
    if ranks.is_empty() { Ok(()) } else { Err(SelectError::Changed) }
}

/// The coarse bucket of a value: its highest set bit and the 13 bits behind it.
fn coarse(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(COARSE_BITS);
    // Values with more than 14 bits have the 14th set after the shift, so that buckets of different shifts do not meet.
    (u64::from(shift) << (COARSE_BITS - 1)) as usize + (value >> shift) as usize
}

/// The lowest value of a coarse bucket, and the logarithm of its width.
fn coarse_range(bucket: usize) -> (u64, u32) {
    let half = 1usize << (COARSE_BITS - 1);
    let shift = (bucket / half).saturating_sub(1);
    (((bucket - shift * half) as u64) << shift, shift as u32)
}

impl DelaySummary {
    /// A selector of this summary's percentiles: stream all values of the trace through it, pass by pass.
    pub fn selector(&self) -> PercentileSelector {
        PercentileSelector::new(self.count, &self.selector_ranks())
    }

    /// Replaces the percentiles by those that the finished [`DelaySummary::selector`] found, and says that they are
    /// exact.
    pub fn set_exact(&mut self, selector: &PercentileSelector) -> Result<(), SelectError> {
        let same = selector.count == self.count && selector.ranks == self.selector_ranks();
        match selector.values()[..] {
            [p50, p90, p99, p999] if same => {
                (self.p50, self.p90, self.p99, self.p999) = (p50, p90, p99, p999);
                self.exact = true;
                Ok(())
            }
            _ => Err(SelectError::Unfinished),
        }
    }

    fn selector_ranks(&self) -> [u64; 4] {
        PerMille::SUMMARY.map(|percentile| percentile.rank(self.count))
    }
}

impl FlowSummary {
    /// Replaces the percentiles of latency, and the PDV that follows from them, by those that the finished selector of
    /// `latency` found in the flow's trace.
    pub fn set_exact_latency(&mut self, selector: &PercentileSelector) -> Result<(), SelectError> {
        let latency = self.latency.as_mut().ok_or(SelectError::Unfinished)?;
        latency.set_exact(selector)?;
        if let Some(jitter) = &mut self.jitter {
            jitter.pdv_p999 = latency.p999 - latency.min;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
