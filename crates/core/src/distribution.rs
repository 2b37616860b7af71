//! Distributions of sizes and intervals: the set that the CM Toolset offered (constant, exponential, two-valued) and
//! uniform and trace-driven ones.

use std::sync::Arc;

use crate::random::Stream;

/// A distribution over whole numbers: nanoseconds for intervals, bytes for sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(u64),
    /// Every whole number from `min` to `max` alike.
    Uniform {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Exponential with this mean, rounded to the nearest whole number and cut at 64 times the mean (a share of
    /// 1.6e-28 of the draws).
    Exponential {
        /// The mean.
        mean: u64,
    },
    /// One value with a probability, else the other (Lamont et al. 1998 section 5.2.2).
    Bivalue {
        /// Drawn with the probability.
        first: u64,
        /// Drawn otherwise.
        second: u64,
        /// The probability of `first`.
        probability: f64,
    },
    /// These values in their order, then again from the first.
    Trace(Arc<[u64]>),
}

/// A distribution being drawn from: its stream and, for a trace, the place in it.
#[derive(Clone, Debug)]
pub struct Sampler {
    distribution: Distribution,
    stream: Stream,
    next: usize,
}

impl Distribution {
    /// The mean value.
    pub fn mean(&self) -> f64 {
        match self {
            Distribution::Constant(value) => *value as f64,
            Distribution::Uniform { min, max } => (*min as f64 + *max as f64) / 2.0,
            Distribution::Exponential { mean } => *mean as f64,
            Distribution::Bivalue { first, second, probability } => {
                *first as f64 * probability + *second as f64 * (1.0 - probability)
            }
            Distribution::Trace(values) if values.is_empty() => 0.0,
            Distribution::Trace(values) => {
                values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64
            }
        }
    }

    /// The largest value that can be drawn.
    pub fn max(&self) -> u64 {
        match self {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { max, .. } => *max,
            Distribution::Exponential { mean } => mean.saturating_mul(64),
            Distribution::Bivalue { first, second, .. } => *first.max(second),
            Distribution::Trace(values) => values.iter().copied().max().unwrap_or(0),
        }
    }

    /// Starts drawing with a stream of its own.
    pub fn sampler(&self, stream: Stream) -> Sampler {
        Sampler { distribution: self.clone(), stream, next: 0 }
    }
}

impl Sampler {
    /// Draws from another distribution from now on, with the same stream.
    pub fn change(&mut self, distribution: Distribution) {
        if self.distribution != distribution {
            (self.distribution, self.next) = (distribution, 0);
        }
    }

    /// The next value.
    pub fn draw(&mut self) -> u64 {
        match &self.distribution {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { min, max } => {
                min.saturating_add(self.stream.below(max.saturating_sub(*min).saturating_add(1)))
            }
            Distribution::Exponential { mean } => {
                let drawn = libm::round(self.stream.exponential(*mean as f64)) as u64;
                drawn.min(mean.saturating_mul(64))
            }
            Distribution::Bivalue { first, second, probability } => {
                if self.stream.chance(*probability) {
                    *first
                } else {
                    *second
                }
            }
            Distribution::Trace(values) => {
                let Some(value) = values.get(self.next % values.len().max(1)) else { return 0 };
                self.next = (self.next + 1) % values.len();
                *value
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    fn mean_of(distribution: &Distribution) -> f64 {
        let mut sampler = distribution.sampler(Seed::new(1, 0).stream("distribution"));
        (0..100_000).map(|_| sampler.draw() as f64).sum::<f64>() / 100_000.0
    }

    #[test]
    fn drawn_means_match_the_stated_ones() {
        for distribution in [
            Distribution::Constant(80),
            Distribution::Uniform { min: 10, max: 30 },
            Distribution::Exponential { mean: 1_000_000 },
            Distribution::Bivalue { first: 1_000_000, second: 0, probability: 0.7 },
            Distribution::Trace(vec![1, 2, 6].into()),
        ] {
            let (drawn, stated) = (mean_of(&distribution), distribution.mean());
            assert!((drawn - stated).abs() <= stated * 0.02, "{distribution:?}: drew {drawn}");
        }
    }

    #[test]
    fn a_trace_repeats_in_order() {
        let mut sampler = Distribution::Trace(vec![3, 1].into()).sampler(Seed::new(1, 0).stream("t"));
        assert_eq!([sampler.draw(), sampler.draw(), sampler.draw()], [3, 1, 3]);
    }
}
