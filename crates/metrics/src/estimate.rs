//! A figure over repetitions.

use statrs::distribution::{Beta, ContinuousCDF as _, StudentsT};

use crate::summary::Estimate;

/// Mean, sample standard deviation and 95 % confidence interval (Student's t with n - 1 degrees of freedom) of a figure
/// measured in several repetitions. The values must be finite.
pub fn estimate(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    if values.is_empty() {
        return Estimate::default();
    }
    let mean = values.iter().sum::<f64>() / n;
    let repetitions = u32::try_from(values.len()).unwrap_or(u32::MAX);
    if values.len() < 2 {
        return Estimate { mean, standard_deviation: None, confidence95: None, repetitions };
    }
    let squares: f64 = values.iter().map(|&value| (value - mean) * (value - mean)).sum();
    let standard_deviation = libm::sqrt(squares / (n - 1.0));
    let confidence95 = student_t(0.975, n - 1.0).map(|t| t * standard_deviation / libm::sqrt(n));
    Estimate { mean, standard_deviation: Some(standard_deviation), confidence95, repetitions }
}

/// A quantile of Student's t with so many degrees of freedom, rounded to nine decimals: the last bits of the library's
/// result depend on the logarithm that the build happens to link, and results must be the same on any machine. `None`
/// unless the probability lies between 0 and 1 and there is at least a part of a degree of freedom.
pub fn student_t(probability: f64, degrees: f64) -> Option<f64> {
    let inside = probability > 0.0 && probability < 1.0;
    let quantile = StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| inside)?.inverse_cdf(probability);
    Some(libm::round(quantile * 1e9) / 1e9)
}

/// The one-sided confidence bounds of a probability of which `events` of `of` independent trials were seen, below and above,
/// each wrong with probability `error` at most (Clopper and Pearson 1934). Rounded as [`student_t`] is, to twelve decimals.
/// They are 0 and 1 without trials, or unless the error lies between 0 and 1.
pub fn binomial_bounds(events: u64, of: u64, error: f64) -> (f64, f64) {
    let inside = error > 0.0 && error < 1.0;
    let quantile = |a: u64, b: u64, probability: f64| {
        let quantile = Beta::new(a as f64, b as f64).ok().filter(|_| inside)?.inverse_cdf(probability);
        Some(libm::round(quantile * 1e12) / 1e12)
    };
    let others = of.saturating_sub(events);
    let below = quantile(events, others + 1, error).filter(|_| events > 0);
    let above = quantile(events + 1, others, 1.0 - error).filter(|_| others > 0);
    (below.unwrap_or(0.0), above.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_counts_are_those_of_the_printed_tables() {
        for (events, of, error, below, above) in [
            // Clopper and Pearson's chart in figures, 95 % on both sides.
            (3, 20, 0.025, 0.0321, 0.3789),
            (10, 100, 0.025, 0.0490, 0.1762),
            // None of n: 1 - error^(1/n).
            (0, 300, 0.05, 0.0, 0.009936),
            (300, 300, 0.05, 0.990064, 1.0),
            (0, 0, 0.05, 0.0, 1.0),
        ] {
            let found = binomial_bounds(events, of, error);
            assert!((found.0 - below).abs() < 5e-5 && (found.1 - above).abs() < 5e-5, "{events}: {found:?}");
        }
        let (below, above) = binomial_bounds(500, 1_000_000, 0.01);
        assert!(
            (below / 4.491e-4 - 1.0).abs() < 2e-3 && (above / 5.548e-4 - 1.0).abs() < 2e-3,
            "{below} {above}"
        );
    }

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (degrees, t) in
            [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (9.0, 2.2622), (29.0, 2.0452), (999.0, 1.9623)]
        {
            let found = student_t(0.975, degrees).unwrap();
            assert!((found - t).abs() < 0.00005, "{degrees}: {found}");
        }
    }

    #[test]
    fn five_repetitions() {
        // Deviations from 12: squares add up to 10, sd = sqrt(2.5); half-width 2.7764 * sd / sqrt(5) = 1.9632.
        let estimate = estimate(&[10.0, 11.0, 12.0, 13.0, 14.0]);
        assert_eq!((estimate.mean, estimate.repetitions), (12.0, 5));
        assert!((estimate.standard_deviation.unwrap() - 2.5f64.sqrt()).abs() < 1e-15);
        assert!((estimate.confidence95.unwrap() - 1.96324).abs() < 1e-5);
    }

    #[test]
    fn one_repetition_has_no_deviation_and_no_interval() {
        let one = estimate(&[3.5]);
        assert_eq!(
            (one.mean, one.standard_deviation, one.confidence95, one.repetitions),
            (3.5, None, None, 1)
        );
        assert_eq!(estimate(&[]), Estimate::default());
    }

    #[test]
    fn equal_repetitions_have_an_interval_of_no_width() {
        assert_eq!(estimate(&[0.0, 0.0, 0.0]).confidence95, Some(0.0));
    }
}
