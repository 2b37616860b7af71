//! A confidence bound for means of values with a long tail.

use libm::{erfc, exp, log, sqrt};

/// Points of the quadrature.
const POINTS: u32 = 256;
/// Halvings of the interval with the bound: to a billionth of it.
const HALVINGS: u32 = 30;

/// The upper confidence bound of the mean of a log-normal distribution from which these values are, wrong with probability
/// `error` (Krishnamoorthy and Mathew 2003): the quantile 1 - `error` of their generalized pivotal quantity, here by
/// quadrature instead of random numbers. Student's bound is too low for such values, because few of them are in the tail.
///
/// `None` with fewer than two values, or if one is not above 0. Infinite where the values allow any mean.
pub fn lognormal_mean_bound(values: &[f64], error: f64) -> Option<f64> {
    let is_usable = values.len() >= 2 && values.iter().all(|value| *value > 0.0 && value.is_finite());
    if !(is_usable && error > 0.0 && error < 1.0) {
        return None;
    }
    let n = values.len() as f64;
    let degrees = n - 1.0;
    let logs: Vec<f64> = values.iter().map(|value| log(*value)).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / degrees;
    if variance <= 0.0 {
        return Some(exp(mean));
    }
    // Given the observed variance, the true one is degrees x variance / chi-square; given that, the mean of the logarithms is
    // normal around the observed one. The grid is over the logarithm of chi-square around its mode.
    let width = sqrt(2.0 / degrees);
    let (left, right) = (8.0 * width + 60.0 / degrees, 8.0 * width);
    let step = (left + right) / f64::from(POINTS - 1);
    let mut total = 0.0;
    let mut points = Vec::with_capacity(POINTS as usize);
    for point in 0..POINTS {
        let x = f64::from(point) * step - left;
        let weight = exp(degrees / 2.0 * (x - (exp(x) - 1.0)));
        if weight > 1e-18 {
            let of_logs = variance / exp(x);
            total += weight;
            points.push((weight, of_logs / 2.0, sqrt(of_logs / n)));
        }
    }
    // The probability that the mean is larger than `exp(mean + above)`.
    let tail = |above: f64| {
        let each = points.iter().map(|(weight, half, deviation)| {
            weight * erfc((above - half) / deviation / core::f64::consts::SQRT_2) / 2.0
        });
        each.sum::<f64>() / total
    };
    let mut high = sqrt(variance);
    while tail(high) > error {
        high *= 2.0;
        if high > 700.0 {
            return Some(f64::INFINITY);
        }
    }
    let mut low = if tail(0.0) < error { -high } else { 0.0 };
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if tail(middle) > error { low = middle } else { high = middle }
    }
    Some(exp(mean + high))
}

#[cfg(test)]
mod tests {
    use trunkline_core::Seed;

    use super::lognormal_mean_bound;
    use crate::{estimate, student_t};

    /// A standard normal number.
    fn normal(random: &mut trunkline_core::Stream) -> f64 {
        let (radius, angle) = (libm::sqrt(-2.0 * libm::log(1.0 - random.unit())), random.unit());
        radius * libm::cos(core::f64::consts::TAU * angle)
    }

    #[test]
    fn the_bound_is_the_quantile_of_the_pivotal_quantity() {
        let values = [1.2, 0.7, 2.9, 1.1, 0.4];
        let n = values.len() as f64;
        let logs = estimate(&values.map(libm::log));
        let mut random = Seed::new(3, 1).stream("pivot");
        let pivot = |random: &mut trunkline_core::Stream| {
            let chi_square: f64 = (0..4).map(|_| normal(random).powi(2)).sum();
            let variance = (n - 1.0) * logs.standard_deviation.unwrap().powi(2) / chi_square;
            logs.mean - normal(random) * libm::sqrt(variance / n) + variance / 2.0
        };
        let mut pivots: Vec<f64> = (0..100_000).map(|_| pivot(&mut random)).collect();
        pivots.sort_by(f64::total_cmp);
        for error in [0.2, 0.05, 0.0125] {
            let expected = pivots[((1.0 - error) * 100_000.0) as usize];
            let found = libm::log(lognormal_mean_bound(&values, error).unwrap());
            // Three standard errors of the simulated quantile are less.
            assert!((found - expected).abs() < 0.02 + 0.05 * expected.abs(), "{error}: {found} {expected}");
        }
    }

    #[test]
    fn the_bound_is_students_where_the_spread_is_small() {
        for n in [2_u8, 3, 5, 40] {
            let values: Vec<f64> = (0..n).map(|i| 10.0 + 1e-5 * f64::from(i % 3)).collect();
            let all = estimate(&values);
            let reach = student_t(0.99, f64::from(n) - 1.0).unwrap() * all.standard_deviation.unwrap();
            let student = all.mean + reach / f64::from(n).sqrt();
            let found = lognormal_mean_bound(&values, 0.01).unwrap();
            let off = (found - student) / (student - all.mean);
            assert!((-0.001..0.001).contains(&off), "{n}: {found} {student}");
        }
    }

    #[test]
    fn what_the_bound_cannot_be_computed_from_has_none() {
        assert_eq!(lognormal_mean_bound(&[1.0], 0.05), None);
        assert_eq!(lognormal_mean_bound(&[1.0, 0.0], 0.05), None);
        assert_eq!(lognormal_mean_bound(&[1.0, -1.0], 0.05), None);
        assert_eq!(lognormal_mean_bound(&[1.0, 2.0], 0.0), None);
        assert!((lognormal_mean_bound(&[3.0, 3.0], 0.05).unwrap() - 3.0).abs() < 1e-12);
        assert_eq!(lognormal_mean_bound(&[1.0, 1e9], 0.001), Some(f64::INFINITY));
    }
}
