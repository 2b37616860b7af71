//! How the clocks of two hosts are related: the offset at any moment, with a bound that holds whatever the network does.
//!
//! A host asks another for the time ([`Exchange`]). Neither the request nor the reply arrives before it was sent, so with
//! `o(t)` for what the peer's clock shows beyond ours when ours shows `t`,
//!
//! ```text
//! replied - returned  <=  o  <=  received - sent
//! ```
//!
//! for moments between `sent` and `returned`, however unequal the ways there and back are: the width is the round trip.
//! (RFC 5905 calls half of it the delay's share of the *maximum error*, and like it we let an error grow with time.) Clocks
//! run at rates that differ by at most [`Rates::most_difference`], which carries every such bound to other moments: it
//! widens by that rate. What bounds the offset at a moment are all exchanges before and after it together, so figures
//! that are computed afterwards are the most exact ones.
//!
//! How far the rates may differ is a matter of which clocks these are ([`Turning`]). `CLOCK_MONOTONIC_RAW` runs as its
//! crystal does; `CLOCK_MONOTONIC` is turned by time servers, by up to a tenth while they set a clock right, and between
//! two exchanges nobody can see for how long.
//!
//! Most exchanges wait in queues, a few do not: the envelope of all bounds is as narrow as the fastest of them allow. This
//! takes clocks that do not step, as monotonic ones are. Where steps are possible ([`Rates::steps`]), an exchange says
//! nothing about what lies beyond its neighbours, and between two exchanges either may hold: the bound is that of both.
//!
//! ```
//! use trunkline_core::Time;
//! use trunkline_metrics::clocks::{Exchange, Offsets, Rates};
//!
//! let mut offsets = Offsets::new(Rates::default());
//! let at = Time::from_nanos;
//! // Our clock, the peer's, which is 5 us ahead, the peer's, ours: 20 us there and 30 us back.
//! offsets.observe(Exchange { sent: at(0), received: at(25_000), replied: at(26_000), returned: at(51_000) });
//! let offset = offsets.at(at(51_000)).unwrap();
//! assert_eq!(offset.estimate, 0);
//! assert!(offset.bound.as_nanos() >= 5_000 && offset.bound.as_nanos() < 25_100);
//! ```

mod envelope;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Time};

use envelope::Envelope;

/// One question for the time and its answer: `sent` and `returned` on our clock, `received` and `replied` on the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the question left.
    pub sent: Time,
    /// When it arrived.
    pub received: Time,
    /// When the answer left.
    pub replied: Time,
    /// When it arrived.
    pub returned: Time,
}

/// What is known of two clocks beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// How much faster or slower the peer's may run, in nanoseconds per second of ours: 1000 are 1 ppm.
    pub most_difference: u32,
    /// Whether a clock may step.
    pub steps: Steps,
}

impl Rates {
    /// What is known of clocks that do not step, by what is done to them.
    pub fn between(ours: Turning, theirs: Turning) -> Rates {
        const SECOND: u64 = 1_000_000_000;
        // Widest while ours runs slow and theirs fast.
        let (slowest, fastest) = (SECOND - ours.most(), SECOND + theirs.most());
        let most = ((fastest - slowest) * SECOND).div_ceil(slowest);
        Rates { most_difference: u32::try_from(most).unwrap_or(u32::MAX), steps: Steps::Never }
    }
}

impl Default for Rates {
    /// Two clocks that nobody turns: about 1200 ppm; no steps.
    fn default() -> Rates {
        Rates::between(Turning::Never, Turning::Never)
    }
}

/// Whether somebody sets a clock right by letting it run fast or slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turning {
    /// Nobody does, as with `CLOCK_MONOTONIC_RAW`: it runs as its crystal does.
    Never,
    /// Time servers do, as with `CLOCK_MONOTONIC` and `CLOCK_REALTIME`.
    #[default]
    Possible,
}

impl Turning {
    /// That of a clock that is free of it or not.
    pub const fn of(is_free: bool) -> Turning {
        if is_free { Turning::Never } else { Turning::Possible }
    }

    /// How far the clock may run from true time, in nanoseconds per second.
    const fn most(self) -> u64 {
        match self {
            // Crystals are within 100 ppm, and what a system takes for the frequency of its own is within 500 ppm: by more no
            // time server can discipline it.
            Turning::Never => 600_000,
            // Besides, Linux can be told to run by 10 % and 500 ppm too fast or too slow, and by 500 ppm while it
            // adjusts; chrony stays below.
            Turning::Possible => 110_000_000,
        }
    }
}

/// Whether a clock may step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Not as long as a host is up, as with monotonic clocks. A contradiction shows that the peer has started again.
    Never,
    /// At most once between two exchanges, as `CLOCK_REALTIME` when somebody sets it.
    Possible,
}

/// What an exchange has taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// A bound.
    Bound,
    /// That a clock has stepped: what was known holds no more.
    Step,
    /// Nothing: no clocks can give these times.
    Impossible,
}

/// An offset between two clocks: the peer's minus ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// In nanoseconds: the middle of what is possible.
    pub estimate: i64,
    /// It is no further from the truth than this.
    pub bound: Duration,
}

/// By how much the peer's clock runs faster than ours, as a share; 1e-6 is 1 ppm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// The middle of what is possible.
    pub estimate: f64,
    /// It is no further from the truth than this.
    pub bound: f64,
}

/// The offset of a peer's clock over time, from exchanges in the order of their return.
#[derive(Clone, Debug)]
pub struct Offsets {
    rates: Rates,
    /// Between steps, in their order; the last is added to.
    eras: VecDeque<Era>,
}

/// A time without a step.
#[derive(Clone, Debug)]
struct Era {
    /// Our clock's time at the first and the last exchange's return.
    first: Time,
    last: Time,
    upper: Envelope,
    lower: Envelope,
}

/// Beyond this (146 years) a clock's reading is not one.
const LATEST: u64 = 1 << 62;

/// What is remembered of the past: the oldest eras go.
const MOST_ERAS: usize = 1024;

impl Offsets {
    /// Nothing is known yet.
    pub fn new(rates: Rates) -> Offsets {
        Offsets { rates, eras: VecDeque::new() }
    }

    /// Takes an exchange, which returned no earlier than those before it.
    pub fn observe(&mut self, exchange: Exchange) -> Observed {
        let Exchange { sent, received, replied, returned } = exchange;
        let in_order = sent <= returned && received <= replied;
        let is_late = self.eras.back().is_some_and(|era| returned < era.last);
        if !in_order || is_late || [returned, replied].iter().any(|time| time.as_nanos() >= LATEST) {
            return Observed::Impossible;
        }
        // When the question arrived we cannot say, but between `sent` and `returned`.
        let unsure = self.drift(returned.since(sent));
        let upper = difference(received, sent) + unsure;
        let lower = difference(replied, returned) - unsure;
        if lower > upper {
            return Observed::Impossible;
        }
        let (is_first, contradicts) = match self.eras.back() {
            None => (true, false),
            Some(era) => {
                let (known_lower, known_upper) = self.of(era, returned);
                (false, lower > known_upper || upper < known_lower)
            }
        };
        if is_first || contradicts || self.rates.steps == Steps::Possible {
            if self.eras.len() == MOST_ERAS {
                self.eras.pop_front();
            }
            let slope = self.rates.most_difference;
            self.eras.push_back(Era {
                first: returned,
                last: returned,
                upper: Envelope::new(slope),
                lower: Envelope::new(slope),
            });
        }
        if let Some(era) = self.eras.back_mut() {
            era.last = returned;
            era.upper.add(returned, upper);
            era.lower.add(returned, -lower);
        }
        if contradicts { Observed::Step } else { Observed::Bound }
    }

    /// The offset when our clock shows `time`; `None` while nothing was observed. Where steps are possible it holds up to the latest
    /// exchange: of what comes after it nobody knows.
    pub fn at(&self, time: Time) -> Option<Offset> {
        let (lower, upper) = self.range(time)?;
        let estimate = lower + (upper - lower) / 2;
        let bound = (upper - estimate).max(estimate - lower);
        // Both fit, unless a clock is so old that there is nothing to say.
        let estimate = i64::try_from(estimate).ok()?;
        Some(Offset { estimate, bound: Duration::from_nanos(u64::try_from(bound).unwrap_or(u64::MAX)) })
    }

    /// The skew between two moments of our clock, on the average; `None` while nothing was observed, and for no time.
    pub fn skew(&self, from: Time, to: Time) -> Option<Skew> {
        let elapsed = to.since(from).as_nanos() as f64;
        let ((lower, upper), (later_lower, later_upper)) = self.range(from).zip(self.range(to))?;
        if elapsed == 0.0 {
            return None;
        }
        let (least, most) = ((later_lower - upper) as f64 / elapsed, (later_upper - lower) as f64 / elapsed);
        let known = f64::from(self.rates.most_difference) / 1e9;
        let (least, most) = (least.clamp(-known, known), most.clamp(-known, known));
        Some(Skew { estimate: f64::midpoint(least, most), bound: (most - least) / 2.0 })
    }

    /// What the offset may be at `time`.
    fn range(&self, time: Time) -> Option<(i128, i128)> {
        // The eras that surround the moment, or the one it is in.
        let later = self.eras.partition_point(|era| era.first <= time);
        let before = later.checked_sub(1).and_then(|place| self.eras.get(place));
        let after = self.eras.get(later);
        match (before, after) {
            (Some(era), _) if time <= era.last => Some(self.of(era, time)),
            (Some(before), Some(after)) => {
                let ((a, b), (c, d)) = (self.of(before, time), self.of(after, time));
                Some((a.min(c), b.max(d)))
            }
            (Some(era), None) | (None, Some(era)) => Some(self.of(era, time)),
            (None, None) => None,
        }
    }

    fn of(&self, era: &Era, time: Time) -> (i128, i128) {
        (-era.lower.at(time), era.upper.at(time))
    }

    /// How far the clocks drift apart in this time at most, rounded up.
    fn drift(&self, elapsed: Duration) -> i128 {
        envelope::rise(self.rates.most_difference, elapsed)
    }
}

fn difference(theirs: Time, ours: Time) -> i128 {
    i128::from(theirs.as_nanos()) - i128::from(ours.as_nanos())
}
