//! Additional delays: independent of each other, or with memory in time.

use trunkline_core::distribution::{Quantiles, Sampler, normal_quantile, standard_normal};
use trunkline_core::{Distribution, Duration, Stream, Time};

use super::Impairments;

/// Draws the additional delay of every packet.
#[derive(Debug)]
pub(super) enum Jitter {
    /// Each by itself.
    Independent(Sampler),
    /// Each like the one before, the more so the less time is between them.
    Correlated(Correlated),
}

/// An Ornstein-Uhlenbeck process: a standard normal variable at any time, sampled exactly at the times of packets, and
/// the delay that has the same rank in the distribution of delays.
#[derive(Debug)]
pub(super) struct Correlated {
    distribution: Distribution,
    quantiles: Quantiles,
    memory: Duration,
    stream: Stream,
    /// The variable, and as of when; `None` before the first packet.
    last: Option<(Time, f64)>,
}

impl Jitter {
    pub(super) fn new(impairments: &Impairments, stream: Stream) -> Jitter {
        let distribution = distribution(impairments);
        match impairments.jitter_memory {
            None => Jitter::Independent(distribution.sampler(stream)),
            Some(memory) => {
                let quantiles = distribution.quantiles();
                Jitter::Correlated(Correlated { distribution, quantiles, memory, stream, last: None })
            }
        }
    }

    /// Draws from other values from now on; the stream goes on where it is.
    pub(super) fn change(&mut self, impairments: &Impairments) {
        let to = distribution(impairments);
        match (&mut *self, impairments.jitter_memory) {
            (Jitter::Independent(sampler), None) => sampler.change(to),
            (Jitter::Correlated(own), Some(memory)) => {
                own.memory = memory;
                if own.distribution != to {
                    (own.quantiles, own.distribution) = (to.quantiles(), to);
                }
            }
            (Jitter::Independent(sampler), Some(_)) => {
                *self = Jitter::new(impairments, sampler.stream().clone())
            }
            (Jitter::Correlated(own), None) => *self = Jitter::new(impairments, own.stream.clone()),
        }
    }

    /// The delay of the packet at `now`, which comes after the ones before.
    #[inline]
    pub(super) fn draw(&mut self, now: Time) -> Duration {
        match self {
            Jitter::Independent(sampler) => Duration::from_nanos(sampler.draw()),
            Jitter::Correlated(correlated) => correlated.draw(now),
        }
    }
}

impl Correlated {
    fn draw(&mut self, now: Time) -> Duration {
        // Of 53 random bits some are 0, whose quantile is endless.
        let fresh = normal_quantile(self.stream.unit().max(f64::EPSILON / 4.0));
        let value = match self.last {
            None => fresh,
            Some((at, value)) => {
                let apart = now.since(at).as_nanos() as f64 / self.memory.as_nanos().max(1) as f64;
                // What is new of a variance of 1: 1 - exp(-2 apart), without a difference of nearly equal numbers.
                value * libm::exp(-apart) + fresh * libm::sqrt(-libm::expm1(-2.0 * apart))
            }
        };
        self.last = Some((self.last.map_or(now, |(at, _)| at.max(now)), value));
        let below = standard_normal(value).min(1.0 - f64::EPSILON / 2.0);
        Duration::from_nanos(self.quantiles.at(below))
    }
}

fn distribution(impairments: &Impairments) -> Distribution {
    impairments.jitter.clone().unwrap_or(Distribution::Constant(0))
}
