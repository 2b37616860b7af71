//! Random delay on an idle path, and its memory.

use crate::estimate::statistics::{Interval, bootstrap, mean, quantile, sorted};
use crate::link::{Jitter, JitterShape};

/// Less than this is the resolution of clocks and schedulers, not the path's.
const NEGLIGIBLE: f64 = 50e-6;
/// Correlation between neighbours from which on there is a memory.
const MIN_CORRELATION: f64 = 0.15;

/// The random part of the delays of idle packets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Varying {
    pub(crate) jitter: Jitter,
    /// The mean of the random delay.
    pub(crate) mean: Interval,
}

/// Models delays in seconds beyond the base delay, given with their times in order. `negligible` is what the transmission of
/// our other packets explains.
pub(crate) fn model(delays: &[(f64, f64)], negligible: f64) -> Option<Varying> {
    let values: Vec<f64> = delays.iter().map(|(_, delay)| *delay).collect();
    let ordered = sorted(&values);
    let spread = quantile(&ordered, 0.9) - quantile(&ordered, 0.1);
    if values.len() < 50 || spread < NEGLIGIBLE.max(negligible) {
        return None;
    }
    let average = mean(&values);
    let deviation = mean(&values.iter().map(|value| (value - average).powi(2)).collect::<Vec<_>>()).sqrt();
    let shapes = [
        JitterShape::Exponential(average),
        JitterShape::Uniform(quantile(&ordered, 0.995)),
        JitterShape::Normal(average, deviation),
    ];
    let shape =
        shapes.into_iter().min_by(|a, b| distance(&ordered, *a).total_cmp(&distance(&ordered, *b)))?;
    // Delays of a second are resampled together.
    let mut blocks: Vec<Vec<f64>> = Vec::new();
    let mut second = f64::NEG_INFINITY;
    for &(at, delay) in delays {
        if at - second >= 1.0 {
            second = at;
            blocks.push(Vec::new());
        }
        blocks.last_mut()?.push(delay);
    }
    let interval = bootstrap(&blocks, |blocks| Some(mean(&blocks.concat())))?;
    Some(Varying { jitter: Jitter { shape, memory: memory(delays, &ordered) }, mean: interval })
}

/// The distance of the quantiles from those of a distribution, on average.
fn distance(ordered: &[f64], shape: JitterShape) -> f64 {
    let shares = (1..100).map(|percent| f64::from(percent) / 100.0);
    mean(&shares.map(|share| (quantile(ordered, share) - inverse(shape, share)).abs()).collect::<Vec<_>>())
}

/// The quantile of a distribution.
fn inverse(shape: JitterShape, share: f64) -> f64 {
    match shape {
        JitterShape::Exponential(mean) => -mean * (1.0 - share).ln(),
        JitterShape::Uniform(max) => max * share,
        JitterShape::Normal(mean, deviation) => (mean + deviation * normal(share)).max(0.0),
    }
}

/// The quantile of the standard normal distribution, to 0.0005 (Hastings 1955, Abramowitz and Stegun 26.2.23).
fn normal(share: f64) -> f64 {
    let tail = share.min(1.0 - share).max(1e-12);
    let t = (-2.0 * tail.ln()).sqrt();
    let z = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    if share < 0.5 { -z } else { z }
}

/// The correlation time: that of the delays' normal scores, which fall as exp(-t / memory), from pairs of neighbours.
fn memory(delays: &[(f64, f64)], ordered: &[f64]) -> Option<f64> {
    let score = |delay: f64| {
        let rank = ordered.partition_point(|&other| other < delay) as f64 + 0.5;
        normal(rank / ordered.len() as f64)
    };
    let scores: Vec<(f64, f64)> = delays.iter().map(|&(at, delay)| (at, score(delay))).collect();
    let variance = mean(&scores.iter().map(|(_, score)| score * score).collect::<Vec<_>>());
    // Products of pairs by their distance: those that an octave of distances has together.
    let mut octaves: Vec<(f64, f64, f64)> = vec![(0.0, 0.0, 0.0); 16];
    for (index, &(at, one)) in scores.iter().enumerate() {
        for &(then, other) in scores[index + 1..].iter().take(40) {
            let lag = then - at;
            // Packets closer than that arrive together, because none overtakes another.
            if lag < 1e-3 {
                continue;
            }
            let octave = ((lag / 1e-3).log2() as usize).min(15);
            let entry = &mut octaves[octave];
            *entry = (entry.0 + lag, entry.1 + one * other, entry.2 + 1.0);
        }
    }
    let points = octaves.iter().filter(|(_, _, count)| *count >= 30.0);
    let points: Vec<(f64, f64, f64)> = points
        .map(|(lag, product, count)| (lag / count, product / count / variance.max(1e-12), *count))
        .collect();
    let first = points.first()?;
    if first.1 < MIN_CORRELATION {
        return None;
    }
    // It falls with the lag, so that it has ended at the first octave without it. Few pairs have some by chance.
    let is_above_noise = |(_, r, count): &(f64, f64, f64)| *r >= f64::max(0.2, 3.0 / count.sqrt());
    let points: Vec<(f64, f64)> =
        points.into_iter().take_while(is_above_noise).map(|(lag, r, _)| (lag, r)).collect();
    // Of the lags at which the correlation is well above noise: lags over -ln(correlation).
    let useful: Vec<f64> = points.iter().filter(|(_, r)| *r < 0.95).map(|(lag, r)| -lag / r.ln()).collect();
    match useful.is_empty() {
        true => points.last().map(|(lag, r)| -lag / r.min(0.98).ln()),
        false => Some(quantile(&sorted(&useful), 0.5)),
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::Seed;

    use super::*;

    fn delays(memory: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut stream = Seed::new(seed, 0).stream("jitter");
        let (mut at, mut state) = (0.0, 0.0);
        (0..3_000)
            .map(|_| {
                let gap = stream.exponential(0.01);
                at += gap;
                let kept = if memory > 0.0 { (-gap / memory).exp() } else { 0.0 };
                state = kept * state + (1.0 - kept * kept).sqrt() * normal(stream.unit());
                // The same rank of an exponential distribution.
                let share = 0.5 * (1.0 + libm_erf(state / std::f64::consts::SQRT_2));
                (at, -0.003 * (1.0 - share).max(1e-12).ln())
            })
            .collect()
    }

    /// The error function, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
    fn libm_erf(x: f64) -> f64 {
        let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
        let poly = t
            * (0.254_829_592
                + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
        (1.0 - poly * (-x * x).exp()) * x.signum()
    }

    #[test]
    fn exponential_jitter_is_found_with_its_memory() {
        for seed in 0..10 {
            for memory in [0.0, 0.1] {
                let found = model(&delays(memory, seed), 0.0).unwrap();
                assert!(matches!(found.jitter.shape, JitterShape::Exponential(_)), "{found:?}");
                assert!((found.mean.value / 0.003 - 1.0).abs() < 0.35, "{found:?}");
                match found.jitter.memory {
                    None => assert!(memory == 0.0),
                    Some(found) => assert!(memory > 0.0 && (0.5..2.0).contains(&(found / memory)), "{found}"),
                }
            }
        }
    }

    #[test]
    fn few_pairs_far_apart_have_no_memory_by_chance() {
        for seed in 0..40 {
            let mut stream = Seed::new(seed, 0).stream("jitter");
            let (mut at, mut last) = (0.0, 0.0);
            let mut delays = Vec::new();
            for n in 0..90 {
                // Pairs of packets, of which the second cannot overtake the first.
                at += if n % 2 == 0 { stream.exponential(0.8) } else { 0.0015 };
                last = f64::max(at + 0.005 + 0.001 * normal(stream.unit()), last);
                delays.push((at, last - at));
            }
            let memory = model(&delays, 0.0).unwrap().jitter.memory;
            assert!(memory.is_none_or(|memory| memory < 0.02), "{seed}: {memory:?}");
        }
    }

    #[test]
    fn a_constant_delay_has_no_jitter() {
        let constant: Vec<(f64, f64)> = (0..200).map(|n| (f64::from(n), 1e-6 * f64::from(n % 3))).collect();
        assert_eq!(model(&constant, 0.0), None);
    }
}
