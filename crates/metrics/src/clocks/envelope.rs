//! The least of many bounds, each of which grows with the distance from its moment.

use std::collections::VecDeque;

use trunkline_core::{Duration, Time};

/// Upper bounds `value + slope * |t - at|`, and the least of them at any time.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    /// In nanoseconds per second.
    slope: u32,
    /// Those that are the least somewhere, by time.
    bounds: VecDeque<(Time, i128)>,
}

/// The oldest go: what is remembered suffices for hours.
const MOST_BOUNDS: usize = 16_384;

impl Envelope {
    pub(super) fn new(slope: u32) -> Envelope {
        Envelope { slope, bounds: VecDeque::new() }
    }

    /// Adds a bound; times do not decrease.
    pub(super) fn add(&mut self, at: Time, value: i128) {
        while let Some(&(last, bound)) = self.bounds.back() {
            let between = rise(self.slope, at.since(last));
            if value >= bound + between {
                // Nowhere below the last.
                return;
            }
            if bound < value + between {
                break;
            }
            // The last is nowhere below this one.
            self.bounds.pop_back();
        }
        if self.bounds.len() == MOST_BOUNDS {
            self.bounds.pop_front();
        }
        self.bounds.push_back((at, value));
    }

    /// The least bound at `time`. None lies within another's reach, so it is one of the two neighbours'.
    pub(super) fn at(&self, time: Time) -> i128 {
        let later = self.bounds.partition_point(|&(at, _)| at <= time);
        let before = later.checked_sub(1).and_then(|place| self.bounds.get(place));
        let values = before.into_iter().chain(self.bounds.get(later)).map(|&(at, value)| {
            let apart = if at <= time { time.since(at) } else { at.since(time) };
            value + rise(self.slope, apart)
        });
        values.min().unwrap_or(i128::MAX / 4)
    }
}

/// How much a bound of this slope, in nanoseconds per second, rises in a time: rounded up.
pub(super) fn rise(slope: u32, elapsed: Duration) -> i128 {
    let rise = u128::from(elapsed.as_nanos()) * u128::from(slope);
    rise.div_ceil(1_000_000_000) as i128
}
