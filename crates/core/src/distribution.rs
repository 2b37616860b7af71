//! Distributions of sizes and intervals: the set that the CM Toolset offered (constant, exponential, two-valued), and
//! uniform, normal, Pareto, empirical and trace-driven ones.

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
    /// Normal, of which only what is not negative is drawn (truncated at 0), rounded to the nearest whole number.
    Normal {
        /// The mean of the whole normal distribution; that of the draws is larger the more of it is below 0.
        mean: u64,
        /// Its standard deviation.
        deviation: u64,
    },
    /// Pareto between two values (bounded, or truncated, Pareto), rounded to the nearest whole number: the probability of
    /// more than x falls as x to the power of minus `shape`.
    Pareto {
        /// The smallest, above 0.
        min: u64,
        /// The largest, at least `min`.
        max: u64,
        /// Above 0; the smaller, the heavier the tail.
        shape: f64,
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
    /// Each of these values alike, whatever was drawn before.
    Empirical(Arc<[u64]>),
    /// These values in their order, then again from the first.
    Trace(Arc<[u64]>),
}

/// A distribution being drawn from: its stream and, for a trace, the place in it.
#[derive(Clone, Debug)]
pub struct Sampler {
    distribution: Distribution,
    stream: Stream,
    next: usize,
    /// Of a normal distribution: the share of it that is below 0.
    negative: f64,
}

/// No draw of a normal distribution lies further from its mean, in deviations: of 53 random bits none comes so far.
const FARTHEST: u64 = 9;

impl Distribution {
    /// The mean value.
    pub fn mean(&self) -> f64 {
        let of = |values: &[u64]| {
            values.iter().map(|&value| value as f64).sum::<f64>() / values.len().max(1) as f64
        };
        match self {
            Distribution::Constant(value) => *value as f64,
            Distribution::Uniform { min, max } => (*min as f64 + *max as f64) / 2.0,
            Distribution::Exponential { mean } => *mean as f64,
            Distribution::Normal { mean, deviation } => truncated_mean(*mean as f64, *deviation as f64),
            Distribution::Pareto { min, max, shape } => pareto_mean(*min as f64, *max as f64, *shape),
            Distribution::Bivalue { first, second, probability } => {
                *first as f64 * probability + *second as f64 * (1.0 - probability)
            }
            Distribution::Empirical(values) | Distribution::Trace(values) => of(values),
        }
    }

    /// The smallest value that can be drawn.
    pub fn min(&self) -> u64 {
        match self {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { min, .. } | Distribution::Pareto { min, .. } => *min,
            Distribution::Exponential { .. } => 0,
            Distribution::Normal { mean, deviation } => {
                mean.saturating_sub(deviation.saturating_mul(FARTHEST))
            }
            Distribution::Bivalue { first, second, .. } => *first.min(second),
            Distribution::Empirical(values) | Distribution::Trace(values) => {
                values.iter().copied().min().unwrap_or(0)
            }
        }
    }

    /// The largest value that can be drawn.
    pub fn max(&self) -> u64 {
        match self {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { max, .. } | Distribution::Pareto { max, .. } => *max,
            Distribution::Exponential { mean } => mean.saturating_mul(64),
            Distribution::Normal { mean, deviation } => {
                mean.saturating_add(deviation.saturating_mul(FARTHEST))
            }
            Distribution::Bivalue { first, second, .. } => *first.max(second),
            Distribution::Empirical(values) | Distribution::Trace(values) => {
                values.iter().copied().max().unwrap_or(0)
            }
        }
    }

    /// Starts drawing with a stream of its own.
    pub fn sampler(&self, stream: Stream) -> Sampler {
        Sampler { negative: self.negative(), distribution: self.clone(), stream, next: 0 }
    }

    /// Its values in ascending order.
    pub fn quantiles(&self) -> Quantiles {
        let distribution = match self {
            Distribution::Empirical(values) | Distribution::Trace(values) => {
                let mut values = values.to_vec();
                values.sort_unstable();
                Distribution::Empirical(values.into())
            }
            other => other.clone(),
        };
        Quantiles { negative: self.negative(), distribution }
    }

    /// The share of a normal distribution that is below 0.
    fn negative(&self) -> f64 {
        match self {
            Distribution::Normal { mean, deviation } if *deviation > 0 => {
                standard_normal(-(*mean as f64) / *deviation as f64)
            }
            _ => 0.0,
        }
    }
}

/// The values of a distribution in ascending order: the value that is not exceeded with a given probability. Makes draws of it
/// that depend on each other (a Gaussian copula) as well as independent ones.
#[derive(Clone, Debug)]
pub struct Quantiles {
    /// Sorted if it is empirical; never a trace, which has an order of its own.
    distribution: Distribution,
    negative: f64,
}

impl Quantiles {
    /// The value that is not exceeded with the probability `share`, from 0 to below 1.
    pub fn at(&self, share: f64) -> u64 {
        let place = |length: u64| (share * length as f64) as u64;
        match &self.distribution {
            Distribution::Constant(value) => *value,
            Distribution::Uniform { min, max } => {
                let width = max.saturating_sub(*min);
                min.saturating_add(place(width.saturating_add(1)).min(width))
            }
            Distribution::Exponential { mean } => {
                let value = libm::round(-libm::log1p(-share) * *mean as f64) as u64;
                value.min(mean.saturating_mul(64))
            }
            Distribution::Normal { mean, deviation } => {
                normal(*mean, *deviation, self.negative, share).min(self.distribution.max())
            }
            Distribution::Pareto { min, max, shape } => pareto(*min, *max, *shape, share),
            Distribution::Bivalue { first, second, probability } => {
                let (less, more) = (*first.min(second), *first.max(second));
                let of_less = if first <= second { *probability } else { 1.0 - probability };
                if share < of_less { less } else { more }
            }
            Distribution::Empirical(values) | Distribution::Trace(values) => {
                let last = values.len().saturating_sub(1);
                values.get((place(values.len() as u64) as usize).min(last)).copied().unwrap_or(0)
            }
        }
    }
}

impl Sampler {
    /// Draws from another distribution from now on, with the same stream.
    pub fn change(&mut self, distribution: Distribution) {
        if self.distribution != distribution {
            self.negative = distribution.negative();
            (self.distribution, self.next) = (distribution, 0);
        }
    }

    /// Its stream, where it is now.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The next value. Each takes at most one number of the stream, so that streams stay aligned.
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
            Distribution::Normal { mean, deviation } => {
                normal(*mean, *deviation, self.negative, self.stream.unit()).min(self.distribution.max())
            }
            Distribution::Pareto { min, max, shape } => pareto(*min, *max, *shape, self.stream.unit()),
            Distribution::Bivalue { first, second, probability } => {
                if self.stream.chance(*probability) {
                    *first
                } else {
                    *second
                }
            }
            Distribution::Empirical(values) => {
                let place = self.stream.below(values.len() as u64) as usize;
                values.get(place).copied().unwrap_or(0)
            }
            Distribution::Trace(values) => {
                let Some(value) = values.get(self.next % values.len().max(1)) else { return 0 };
                self.next = (self.next + 1) % values.len();
                *value
            }
        }
    }
}

/// The value of a normal distribution at a share of what is not negative.
fn normal(mean: u64, deviation: u64, negative: f64, share: f64) -> u64 {
    let share = negative + share * (1.0 - negative);
    // To a whole number that is not negative, whatever the last bits say.
    libm::round(mean as f64 + deviation as f64 * normal_quantile(share)) as u64
}

/// The value of a Pareto distribution between two values at a share of it.
fn pareto(min: u64, max: u64, shape: f64, share: f64) -> u64 {
    let least = libm::pow(min as f64 / max as f64, shape);
    let exceeded = 1.0 - share * (1.0 - least);
    (libm::round(min as f64 * libm::pow(exceeded, -1.0 / shape)) as u64).clamp(min, max)
}

/// The standard normal distribution function.
pub fn standard_normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
}

/// The mean of what is not negative of a normal distribution.
fn truncated_mean(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean;
    }
    let below = -mean / deviation;
    let density = libm::exp(-0.5 * below * below) / libm::sqrt(core::f64::consts::TAU);
    mean + deviation * density / (1.0 - standard_normal(below))
}

/// The mean of a Pareto distribution between two values.
fn pareto_mean(min: f64, max: f64, shape: f64) -> f64 {
    if min >= max {
        return min;
    }
    let share = 1.0 - libm::pow(min / max, shape);
    // Near a shape of 1 the difference of the powers loses its digits: there it is a logarithm.
    let exponent = 1.0 - shape;
    let ratio = libm::log(max / min);
    let integral = match exponent * ratio {
        small if libm::fabs(small) < 1e-9 => ratio,
        _ => libm::expm1(exponent * ratio) / exponent,
    };
    shape * min * integral / share
}

/// The value that a standard normal variable stays below with a probability from 0 to 1: Wichura's algorithm AS 241 (PPND16,
/// Applied Statistics 37, 1988), right to some 16 digits.
pub fn normal_quantile(probability: f64) -> f64 {
    let centred = probability - 0.5;
    if libm::fabs(centred) <= 0.425 {
        let r = 0.180_625 - centred * centred;
        return centred * ratio(r, &CENTRE);
    }
    let tail = if centred < 0.0 { probability } else { 1.0 - probability };
    // 2^-54 lies below what 53 bits can say.
    let r = libm::sqrt(-libm::log(tail.max(f64::EPSILON / 4.0)));
    let quantile = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &TAIL) };
    if centred < 0.0 { -quantile } else { quantile }
}

/// Numerator and denominator of a rational function, the constant first.
type Coefficients = ([f64; 8], [f64; 8]);

fn ratio(r: f64, (numerator, denominator): &Coefficients) -> f64 {
    let value = |of: &[f64; 8]| of.iter().rev().fold(0.0, |sum, coefficient| sum * r + coefficient);
    value(numerator) / value(denominator)
}

const CENTRE: Coefficients = (
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_545,
    ],
);

const MIDDLE: Coefficients = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);

const TAIL: Coefficients = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_7e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    fn drawn(distribution: &Distribution) -> Vec<u64> {
        let mut sampler = distribution.sampler(Seed::new(1, 0).stream("distribution"));
        (0..200_000).map(|_| sampler.draw()).collect()
    }

    fn mean_of(distribution: &Distribution) -> f64 {
        let drawn = drawn(distribution);
        drawn.iter().map(|value| *value as f64).sum::<f64>() / drawn.len() as f64
    }

    #[test]
    fn drawn_means_match_the_stated_ones() {
        for distribution in [
            Distribution::Constant(80),
            Distribution::Uniform { min: 10, max: 30 },
            Distribution::Exponential { mean: 1_000_000 },
            Distribution::Normal { mean: 1_000_000, deviation: 250_000 },
            Distribution::Normal { mean: 1_000_000, deviation: 0 },
            // A good part of it is negative, and not drawn.
            Distribution::Normal { mean: 1_000_000, deviation: 2_000_000 },
            Distribution::Normal { mean: 0, deviation: 1_000_000 },
            Distribution::Pareto { min: 1_000, max: 1_000_000, shape: 1.2 },
            Distribution::Pareto { min: 1_000, max: 1_000_000, shape: 1.0 },
            Distribution::Pareto { min: 1_000, max: 100_000, shape: 3.0 },
            Distribution::Pareto { min: 500, max: 500, shape: 2.0 },
            Distribution::Bivalue { first: 1_000_000, second: 0, probability: 0.7 },
            Distribution::Empirical(vec![1, 2, 2, 7].into()),
            Distribution::Trace(vec![1, 2, 6].into()),
        ] {
            let (drawn, stated) = (mean_of(&distribution), distribution.mean());
            assert!(
                (drawn - stated).abs() <= stated * 0.02,
                "{distribution:?}: drew {drawn}, stated {stated}"
            );
        }
    }

    /// Shares that must lie below some values, by the distribution functions (normal: Abramowitz and Stegun, table 26.1).
    #[test]
    fn shares_of_the_draws_are_those_of_the_distribution() {
        let normal = Distribution::Normal { mean: 10_000_000, deviation: 1_000_000 };
        let pareto = Distribution::Pareto { min: 1_000, max: 1_000_000, shape: 1.5 };
        let below = |x: f64| (1.0 - libm::pow(1_000.0 / x, 1.5)) / (1.0 - libm::pow(1_000.0, -1.5));
        for (distribution, value, share) in [
            (&normal, 10_000_000.0, 0.5),
            (&normal, 11_000_000.0, 0.841_344_75),
            (&normal, 8_000_000.0, 0.022_750_13),
            (&normal, 12_326_348.0, 0.99),
            (&pareto, 2_000.0, below(2_000.0)),
            (&pareto, 10_000.0, below(10_000.0)),
            (&pareto, 100_000.0, below(100_000.0)),
        ] {
            let drawn = drawn(distribution);
            let found =
                drawn.iter().filter(|drawn| **drawn as f64 <= value).count() as f64 / drawn.len() as f64;
            // Three standard deviations of a share of so many draws.
            let sure = 3.0 * (share * (1.0 - share) / drawn.len() as f64).sqrt();
            assert!((found - share).abs() <= sure, "{distribution:?} below {value}: {found}, not {share}");
        }
    }

    #[test]
    fn values_by_share_are_distributed_as_draws() {
        for distribution in [
            Distribution::Constant(80),
            Distribution::Uniform { min: 10, max: 30 },
            Distribution::Exponential { mean: 1_000_000 },
            Distribution::Normal { mean: 1_000_000, deviation: 2_000_000 },
            Distribution::Pareto { min: 1_000, max: 1_000_000, shape: 1.2 },
            Distribution::Bivalue { first: 1_000_000, second: 0, probability: 0.7 },
            Distribution::Empirical(vec![7, 2, 1, 2].into()),
        ] {
            let quantiles = distribution.quantiles();
            let values: Vec<u64> =
                (0..20_000).map(|n| quantiles.at((f64::from(n) + 0.5) / 20_000.0)).collect();
            assert!(values.is_sorted(), "{distribution:?}");
            let mean = values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64;
            assert!(
                (mean - distribution.mean()).abs() <= distribution.mean() * 0.002,
                "{distribution:?}: {mean}"
            );
            for share in [0.0, 1.0 - f64::EPSILON / 2.0] {
                let value = quantiles.at(share);
                assert!(
                    (distribution.min()..=distribution.max()).contains(&value),
                    "{distribution:?}: {value}"
                );
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (probability, quantile) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.975, 1.959_963_984_540_054),
            (0.001, -3.090_232_306_167_813_5),
            (1e-12, -7.034_483_825_301_131),
        ] {
            assert!((normal_quantile(probability) - quantile).abs() < 1e-12, "{probability}");
        }
        for x in [-6.0, -2.5, -0.3, 0.0, 1.0, 4.0] {
            assert!((normal_quantile(standard_normal(x)) - x).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn no_draw_is_larger_than_the_largest_or_less_than_nothing() {
        for distribution in [
            Distribution::Normal { mean: 5, deviation: 1_000 },
            Distribution::Normal { mean: u64::MAX / 2, deviation: u64::MAX / 4 },
            Distribution::Pareto { min: 1, max: u64::MAX, shape: 0.01 },
            Distribution::Pareto { min: 7, max: 9, shape: 100.0 },
            Distribution::Empirical(vec![4, 9].into()),
        ] {
            let (drawn, most) = (drawn(&distribution), distribution.max());
            assert!(drawn.iter().all(|value| *value <= most), "{distribution:?}");
        }
        // All that is stated of the values themselves: each of them comes, and no other.
        let mut values = drawn(&Distribution::Empirical(vec![4, 9, 9, 1].into()));
        values.sort_unstable();
        values.dedup();
        assert_eq!(values, [1, 4, 9]);
    }

    #[test]
    fn every_draw_takes_at_most_one_number() {
        for distribution in [
            Distribution::Normal { mean: 5, deviation: 1_000 },
            Distribution::Pareto { min: 1, max: 90, shape: 1.0 },
            Distribution::Empirical(vec![4, 9].into()),
        ] {
            let mut sampler = distribution.sampler(Seed::new(1, 0).stream("t"));
            sampler.draw();
            let mut stream = Seed::new(1, 0).stream("t");
            stream.bits();
            assert_eq!(sampler.stream, stream, "{distribution:?}");
        }
    }

    #[test]
    fn a_trace_repeats_in_order() {
        let mut sampler = Distribution::Trace(vec![3, 1].into()).sampler(Seed::new(1, 0).stream("t"));
        assert_eq!([sampler.draw(), sampler.draw(), sampler.draw()], [3, 1, 3]);
    }
}
