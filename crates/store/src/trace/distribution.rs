//! How the latencies of a trace are distributed.

use std::path::Path;

use trunkline_core::Duration;
use trunkline_metrics::Fate;

use super::read::{Course, read_courses};
use super::series::scattered;
use crate::StoreError;

/// A cumulative distribution of latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cdf {
    /// Over how many messages: each that arrived, once.
    pub count: u64,
    /// Whether all of them were ordered. If not, some [`Cdf::EXACT_UP_TO`] drawn from them were; least and greatest are
    /// exact always.
    pub is_exact: bool,
    /// From the least to the greatest, in equal steps of probability; none of no messages.
    pub points: Vec<CdfPoint>,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CdfPoint {
    /// The share of messages, from 0 to 1, whose latency is at most `latency`.
    pub share: f64,
    /// By nearest rank: the latency of a message.
    pub latency: Duration,
}

impl Cdf {
    /// Up to so many latencies are ordered: 32 MiB of them.
    pub const EXACT_UP_TO: usize = 4 << 20;
}

/// Reads the distribution of the latencies of the trace at `path` in `points` points, at least two.
///
/// # Errors
/// If the trace cannot be read, or is damaged.
pub fn latency_cdf(path: &Path, points: usize) -> Result<Cdf, StoreError> {
    let mut drawn = Drawn::new(Cdf::EXACT_UP_TO);
    read_courses(
        path,
        |_| true,
        |Course { sent, received, fate, .. }| {
            if let (Some(sent), Some(received)) = (sent, received)
                && fate != Fate::Duplicate
            {
                drawn.push(received.since(sent).as_nanos());
            }
        },
    )?;
    Ok(drawn.cdf(points))
}

/// Latencies in bounded memory: whenever there are too many, each stays with even chances, and so does what follows.
struct Drawn {
    nanos: Vec<u64>,
    most: usize,
    count: u64,
    /// A number stays if it is 0 under this mask: all at first.
    mask: u64,
    least: u64,
    greatest: u64,
}

impl Drawn {
    fn new(most: usize) -> Drawn {
        Drawn { nanos: Vec::new(), most, count: 0, mask: 0, least: u64::MAX, greatest: 0 }
    }

    #[inline]
    fn push(&mut self, nanos: u64) {
        self.count += 1;
        self.least = self.least.min(nanos);
        self.greatest = self.greatest.max(nanos);
        if scattered(self.count) & self.mask != 0 {
            return;
        }
        if self.nanos.len() == self.most {
            self.mask = self.mask << 1 | 1;
            let mut number = 0;
            self.nanos.retain(|_| {
                number += 1;
                scattered(!number) & 1 == 0
            });
        }
        self.nanos.push(nanos);
    }

    fn cdf(mut self, points: usize) -> Cdf {
        let is_exact = self.mask == 0;
        if self.count == 0 {
            return Cdf { count: 0, is_exact, points: Vec::new() };
        }
        self.nanos.sort_unstable();
        let last = points.max(2) - 1;
        let point = |step: usize| {
            let share = step as f64 / last as f64;
            let rank = (share * self.nanos.len() as f64).ceil() as usize;
            let nanos = match step {
                0 => self.least,
                step if step == last => self.greatest,
                // What was drawn may be nothing, of the few that there are.
                _ => self.nanos.get(rank.saturating_sub(1)).copied().unwrap_or(self.greatest),
            };
            CdfPoint { share, latency: Duration::from_nanos(nanos) }
        };
        Cdf { count: self.count, is_exact, points: (0..=last).map(point).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: impl Iterator<Item = u64>, most: usize) -> Drawn {
        let mut drawn = Drawn::new(most);
        values.for_each(|value| drawn.push(value));
        drawn
    }

    #[test]
    fn few_are_ordered_exactly() {
        let cdf = drawn([30, 10, 20, 40].into_iter(), 10).cdf(5);
        let points: Vec<_> = cdf.points.iter().map(|p| (p.share, p.latency.as_nanos())).collect();
        assert_eq!(points, [(0.0, 10), (0.25, 10), (0.5, 20), (0.75, 30), (1.0, 40)]);
        assert!(cdf.is_exact && cdf.count == 4);
        assert_eq!(drawn([].into_iter(), 10).cdf(5), Cdf { count: 0, is_exact: true, points: Vec::new() });
        assert_eq!(drawn([7].into_iter(), 10).cdf(0).points.len(), 2);
    }

    #[test]
    fn many_are_drawn_evenly_whatever_their_period() {
        // Four channels in turn, each with a latency of its own: as the rows of a trace are.
        let cdf = drawn((0..1_000_000).map(|n| n % 4 * 1000), 20_000).cdf(1001);
        assert!(!cdf.is_exact && cdf.count == 1_000_000);
        for (channel, expected) in [(0, 0.25), (1, 0.5), (2, 0.75)] {
            let at_most = cdf.points.iter().filter(|p| p.latency.as_nanos() <= channel * 1000);
            let share = at_most.map(|p| p.share).fold(0.0, f64::max);
            assert!((share - expected).abs() < 0.02, "{share} of {expected}");
        }
    }
}
