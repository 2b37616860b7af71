//! Quantiles, intervals by resampling, and a minimiser.

use trunkline_core::Seed;
use trunkline_core::Stream;

/// A value with an interval that is meant to contain the truth in 90 % of the cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// A value that is known exactly.
    pub fn exact(value: f64) -> Interval {
        Interval { value, low: value, high: value }
    }

    /// Returns true if the interval contains this value.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The interval, wide enough for a relative error.
    pub(crate) fn at_least(self, relative: f64) -> Interval {
        let by = self.value.abs() * relative;
        Interval { low: self.low.min(self.value - by), high: self.high.max(self.value + by), ..self }
    }
}

/// The quantile of sorted values, by linear interpolation; 0 of none.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The median of any values.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The interval of `estimate` by resampling blocks of values that belong together.
pub(crate) fn bootstrap<T: Clone>(blocks: &[T], estimate: impl Fn(&[T]) -> Option<f64>) -> Option<Interval> {
    const DRAWS: usize = 200;
    let value = estimate(blocks)?;
    let mut stream = Seed::new(1, 0).stream("bootstrap");
    let mut draws = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        draws.extend(estimate(&resampled(blocks, &mut stream)));
    }
    let draws = sorted(&draws);
    Some(Interval { value, low: quantile(&draws, 0.05).min(value), high: quantile(&draws, 0.95).max(value) })
}

fn resampled<T: Clone>(blocks: &[T], stream: &mut Stream) -> Vec<T> {
    let count = blocks.len() as u64;
    (0..count).map(|_| blocks[stream.below(count) as usize].clone()).collect()
}

/// Minimises a function of a few parameters by the simplex method of Nelder and Mead (1965), from `start` with a simplex
/// of these `steps`. Returns the best parameters and their value.
pub(crate) fn minimise(
    start: &[f64],
    steps: &[f64],
    evaluations: usize,
    mut value: impl FnMut(&[f64]) -> f64,
) -> (Vec<f64>, f64) {
    let dimensions = start.len();
    let mut simplex: Vec<(Vec<f64>, f64)> = Vec::with_capacity(dimensions + 1);
    let first = value(start);
    simplex.push((start.to_vec(), first));
    for (axis, step) in steps.iter().enumerate().take(dimensions) {
        let mut point = start.to_vec();
        point[axis] += step;
        let of = value(&point);
        simplex.push((point, of));
    }
    let mut left = evaluations.saturating_sub(dimensions + 1);
    while left > 0 && dimensions > 0 {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let centre: Vec<f64> = (0..dimensions)
            .map(|axis| {
                simplex[..dimensions].iter().map(|(point, _)| point[axis]).sum::<f64>() / dimensions as f64
            })
            .collect();
        let (best, second, (worst, worst_value)) =
            (simplex[0].1, simplex[dimensions - 1].1, simplex[dimensions].clone());
        let towards = |by: f64| -> Vec<f64> {
            centre.iter().zip(&worst).map(|(centre, worst)| centre + by * (centre - worst)).collect()
        };
        let reflected = towards(1.0);
        let of_reflected = value(&reflected);
        left -= 1;
        let replacement = if of_reflected < best && left > 0 {
            let expanded = towards(2.0);
            let of_expanded = value(&expanded);
            left -= 1;
            Some(if of_expanded < of_reflected { (expanded, of_expanded) } else { (reflected, of_reflected) })
        } else if of_reflected < second || left == 0 {
            Some((reflected, of_reflected)).filter(|(_, of)| *of < worst_value)
        } else {
            let contracted = towards(if of_reflected < worst_value { 0.5 } else { -0.5 });
            let of_contracted = value(&contracted);
            left -= 1;
            Some((contracted, of_contracted)).filter(|(_, of)| *of < worst_value.min(of_reflected))
        };
        match replacement {
            Some(better) => simplex[dimensions] = better,
            None => {
                let best = simplex[0].0.clone();
                for (point, of) in simplex.iter_mut().skip(1).take(left) {
                    for (own, best) in point.iter_mut().zip(&best) {
                        *own = best + 0.5 * (*own - best);
                    }
                    *of = value(point);
                    left = left.saturating_sub(1);
                }
            }
        }
    }
    simplex.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_else(|| (start.to_vec(), first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_a_curved_valley_is_found() {
        // Rosenbrock's function: its minimum is at (1, 1).
        let rosenbrock = |x: &[f64]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let (at, value) = minimise(&[-1.2, 1.0], &[0.5, 0.5], 400, rosenbrock);
        assert!(value < 1e-6 && (at[0] - 1.0).abs() < 1e-2 && (at[1] - 1.0).abs() < 1e-2, "{at:?} {value}");
    }

    #[test]
    fn no_more_evaluations_than_allowed() {
        let mut count = 0;
        minimise(&[5.0, 5.0, 5.0], &[1.0; 3], 37, |x| {
            count += 1;
            x.iter().map(|x| x * x).sum()
        });
        assert!(count <= 38, "{count}");
    }

    #[test]
    fn the_interval_of_a_mean_covers_it() {
        let mut stream = Seed::new(3, 0).stream("values");
        let mut inside = 0;
        for _ in 0..200 {
            let values: Vec<f64> = (0..50).map(|_| stream.unit()).collect();
            let interval = bootstrap(&values, |values| Some(mean(values))).unwrap();
            inside += u32::from(interval.contains(0.5));
        }
        assert!((165..=195).contains(&inside), "{inside} of 200");
    }
}
