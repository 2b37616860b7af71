//! What was measured of one configuration.

use core::fmt;

use trunkline_core::{Duration, Rate};
use trunkline_metrics::PerMille;

use crate::units::ms;

/// What one measurement of a configuration found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// What became of its blocks.
    pub trace: Trace,
    /// What the bulk transfers reached meanwhile, if there were any.
    pub bulk: Option<Bulk>,
}

/// The rates of bulk transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bulk {
    /// To the reflector.
    pub there: Rate,
    /// From the reflector.
    pub back: Rate,
}

/// The round trips of consecutive blocks, in the order in which they were due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// From when a block was due to when all of it was back; `None` of one of which something did not come back before the
    /// measurement ended.
    pub round_trips: Vec<Option<Duration>>,
}

/// `round trip 21.4 ms, p99 23.1 ms; 1 of 198 lost`
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match RoundTrips::of(core::iter::once(self)) {
            Some(RoundTrips { blocks, lost, median, p99, .. }) => {
                write!(f, "round trip {}, p99 {}; {lost} of {blocks} lost", ms(median), ms(p99))
            }
            None => write!(f, "nothing of {} blocks came back", self.round_trips.len()),
        }
    }
}

/// Round trips in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// Blocks sent.
    pub blocks: u64,
    /// Blocks that did not come back.
    pub lost: u64,
    /// The fastest.
    pub fastest: Duration,
    /// The median.
    pub median: Duration,
    /// 99 % are at most this.
    pub p99: Duration,
    /// The slowest.
    pub slowest: Duration,
    /// Jitter: mean absolute deviation from the mean.
    pub deviation: Duration,
}

impl RoundTrips {
    /// Of all blocks of several traces; `None` if none came back.
    pub fn of<'t>(traces: impl Iterator<Item = &'t Trace>) -> Option<RoundTrips> {
        let (mut all, mut blocks) = (Vec::new(), 0);
        for trace in traces {
            blocks += trace.round_trips.len() as u64;
            all.extend(trace.round_trips.iter().flatten().map(|round_trip| round_trip.as_nanos()));
        }
        all.sort_unstable();
        let (first, last) = (*all.first()?, *all.last()?);
        let count = all.len() as u64;
        let rank = |per_mille: u16| Duration::from_nanos(all[PerMille(per_mille).rank(count) as usize - 1]);
        let mean = all.iter().map(|nanos| u128::from(*nanos)).sum::<u128>() / u128::from(count);
        let apart: u128 = all.iter().map(|nanos| u128::from(*nanos).abs_diff(mean)).sum();
        Some(RoundTrips {
            blocks,
            lost: blocks - count,
            fastest: Duration::from_nanos(first),
            median: rank(500),
            p99: rank(990),
            slowest: Duration::from_nanos(last),
            deviation: Duration::from_nanos((apart / u128::from(count)) as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_said_in_a_line() {
        let trace = |round_trips: &[Option<u64>]| Trace {
            round_trips: round_trips.iter().map(|ms| ms.map(Duration::from_millis)).collect(),
        };
        let some = trace(&[Some(20), None, Some(21), Some(120)]);
        assert_eq!(some.to_string(), "round trip 21.0 ms, p99 120 ms; 1 of 4 lost");
        assert_eq!(trace(&[None, None]).to_string(), "nothing of 2 blocks came back");
    }
}
