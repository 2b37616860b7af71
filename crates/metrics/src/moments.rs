//! Mean and standard deviation of durations, in integers.

use trunkline_core::Duration;

/// Durations beyond this (three days) are counted as this, so that the squares of four billion of them keep within 128
/// bits.
pub(crate) const LONGEST: u64 = 1 << 48;

/// Count, sum and sum of squares of durations in nanoseconds.
///
/// The sums are exact integers: mean and deviation do not depend on the order of the values, and nothing cancels, as
/// it would in a floating-point sum of squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    /// Adds one value.
    #[inline]
    pub fn add(&mut self, value: Duration) {
        self.add_number(value.as_nanos());
    }

    /// Adds a number that is no duration; what is said of nanoseconds then holds of its unit.
    #[inline]
    pub(crate) fn add_number(&mut self, value: u64) {
        let value = u128::from(value.min(LONGEST));
        self.count += 1;
        self.sum += value;
        self.squares = self.squares.saturating_add(value * value);
    }

    /// Adds all that `other` has.
    pub(crate) fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// How many values were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the values in nanoseconds.
    pub(crate) fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded to the nearest nanosecond; zero of no values.
    pub fn mean(&self) -> Duration {
        let n = u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from((self.sum + n / 2) / n).unwrap_or(u64::MAX))
    }

    /// The mean in nanoseconds; zero of no values.
    pub(crate) fn mean_nanos(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The sample standard deviation (divisor n - 1), rounded to the nearest nanosecond; zero of fewer than two values.
    pub fn standard_deviation(&self) -> Duration {
        Duration::from_nanos(libm::round(self.standard_deviation_nanos()) as u64)
    }

    /// The sample standard deviation in nanoseconds; zero of fewer than two values.
    pub(crate) fn standard_deviation_nanos(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // With sum = n q + r, the squared deviations from the mean add up to (squares - n q^2 - 2 q r) - r^2 / n: the
        // bracket is an exact integer, and neither term of it leaves 128 bits as sum^2 would.
        let n = u128::from(self.count);
        let (q, r) = (self.sum / n, self.sum % n);
        let from_q = self.squares.saturating_sub((n * q).saturating_mul(q)).saturating_sub(2 * q * r);
        let deviations = from_q as f64 - (r * r) as f64 / n as f64;
        libm::sqrt(deviations.max(0.0) / (self.count - 1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        for &value in values {
            moments.add(Duration::from_nanos(value));
        }
        moments
    }

    #[test]
    fn a_textbook_sample() {
        let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(moments.mean(), Duration::from_nanos(5));
        // Squared deviations add up to 32; 32 / 7 is 4.571.
        assert!((moments.standard_deviation_nanos() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn few_values_have_no_deviation() {
        assert_eq!(of(&[]).mean(), Duration::ZERO);
        assert_eq!(of(&[]).standard_deviation(), Duration::ZERO);
        assert_eq!(of(&[7]).standard_deviation(), Duration::ZERO);
    }

    #[test]
    fn a_small_deviation_far_from_zero_is_kept() {
        // A naive sum of squares in f64 gives zero or nonsense here.
        let hour = 3_600_000_000_000;
        let moments = of(&[hour, hour + 2, hour + 4]);
        assert_eq!(moments.standard_deviation(), Duration::from_nanos(2));
    }

    #[test]
    fn absurd_values_do_not_overflow() {
        let moments = of(&[u64::MAX; 100_000]);
        assert_eq!(moments.mean(), Duration::from_nanos(LONGEST));
        let _ = moments.standard_deviation();
    }

    proptest! {
        #[test]
        fn agree_with_two_passes(values in prop::collection::vec(0u64..10_000_000_000, 2..200)) {
            let n = values.len() as f64;
            let mean = values.iter().map(|&v| v as f64).sum::<f64>() / n;
            let deviations = values.iter().map(|&v| (v as f64 - mean) * (v as f64 - mean)).sum::<f64>();
            let expected = (deviations / (n - 1.0)).sqrt();
            let moments = of(&values);
            prop_assert!((moments.mean_nanos() - mean).abs() <= 1e-9 * mean.max(1.0));
            prop_assert!((moments.standard_deviation_nanos() - expected).abs() <= 1e-6 * expected.max(1.0));
        }
    }
}
