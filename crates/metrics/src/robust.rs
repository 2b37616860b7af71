//! Hawley's robust estimates of delay.

use trunkline_core::Duration;

use crate::moments::Moments;
use crate::summary::RobustDelay;

/// How many points are dropped at either end.
const ENDS: usize = 10;

/// The estimates of Hawley 1989 sections 4.2.1 (minimum) and 4.3.1 (loaded mean) over delays in the order of arrival;
/// `None` of fewer than two points between the first and last ten. Deviations are sample deviations.
pub fn robust_delay(delays: &[Duration]) -> Option<RobustDelay> {
    let considered = &delays[..delays.len().min(RobustDelay::CAPACITY)];
    let points = considered.get(ENDS..considered.len().checked_sub(ENDS)?)?;
    if points.len() < 2 {
        return None;
    }
    let all = moments(points, f64::INFINITY);

    let first_threshold = threshold(&all, 1.0);
    let once = moments(points, first_threshold);
    // A point is gone for good once removed, even if the second threshold should lie above the first.
    let second_threshold = threshold(&once, 1.0);
    let twice = moments(points, second_threshold.min(first_threshold));

    let loaded_threshold = threshold(&all, 8.0);
    let loaded = moments(points, loaded_threshold);

    let removed = |kept: &Moments| points.len() as u64 - kept.count();
    Some(RobustDelay {
        minimum: twice.mean(),
        minimum_kept: twice.count(),
        minimum_removed: removed(&twice),
        minimum_threshold: nanos(second_threshold),
        minimum_standard_deviation: twice.standard_deviation(),
        minimum_ratio: ratio(&twice),
        loaded: loaded.mean(),
        loaded_kept: loaded.count(),
        loaded_removed: removed(&loaded),
        loaded_threshold: nanos(loaded_threshold),
        loaded_standard_deviation: loaded.standard_deviation(),
        loaded_ratio: ratio(&loaded),
    })
}

/// Mean over standard deviation; 0 where that is 0.
fn ratio(moments: &Moments) -> f64 {
    let deviation = moments.standard_deviation_nanos();
    if deviation > 0.0 { moments.mean_nanos() / deviation } else { 0.0 }
}

fn moments(points: &[Duration], at_most: f64) -> Moments {
    let mut moments = Moments::default();
    points.iter().filter(|point| point.as_nanos() as f64 <= at_most).for_each(|&point| moments.add(point));
    moments
}

/// Mean plus `deviations` standard deviations, in nanoseconds.
fn threshold(moments: &Moments, deviations: f64) -> f64 {
    moments.mean_nanos() + deviations * moments.standard_deviation_nanos()
}

fn nanos(value: f64) -> Duration {
    Duration::from_nanos(libm::round(value) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten absurd points, `points`, ten absurd points.
    fn between_ends(points: &[u64]) -> Vec<Duration> {
        let ends = [999_999_999u64; ENDS];
        ends.iter().chain(points).chain(&ends).map(|&p| Duration::from_nanos(p)).collect()
    }

    #[test]
    fn outliers_are_removed_twice_for_the_minimum() {
        // x1 = 200, s1 = sqrt(90000 + 9 * 100^2 ... / 9): 9 points of 100 and one of 1100: mean 200, deviations
        // 9 * 100^2 + 900^2 = 900000, s1 = sqrt(100000) = 316.2; threshold 516.2 removes 1100.
        // Then nine points of 100: x2 = 100, s2 = 0, threshold 100 removes nothing.
        let mut points = vec![100u64; 9];
        points.push(1100);
        let robust = robust_delay(&between_ends(&points)).unwrap();
        assert_eq!(robust.minimum, Duration::from_nanos(100));
        assert_eq!((robust.minimum_kept, robust.minimum_removed), (9, 1));
        assert_eq!(robust.minimum_threshold, Duration::from_nanos(100));
        assert_eq!(robust.minimum_ratio, 0.0);
        // The loaded estimate keeps all: 200 + 8 * 316.2 = 2730.
        assert_eq!(
            (robust.loaded, robust.loaded_kept, robust.loaded_removed),
            (Duration::from_nanos(200), 10, 0)
        );
        assert_eq!(robust.loaded_threshold, Duration::from_nanos(2730));
        assert_eq!(robust.loaded_standard_deviation, Duration::from_nanos(316));
        assert!((robust.loaded_ratio - 200.0 / 100_000f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn the_second_pass_uses_the_deviation_of_what_the_first_left() {
        // 10, 12 eight times each, 20 twice, 500 once (n = 19).
        let mut points = [10u64, 12].repeat(8);
        points.extend([20, 20, 500]);
        // First: mean 716/19 = 37.68, s1 112.2: removes 500. Second, of 18: mean 216/18 = 12, deviations
        // 8 * 4 + 0 + 2 * 64 = 160, s2 = sqrt(160/17) = 3.07: 15.07 removes both 20s.
        // Left: mean 11, deviations 16, s3 = sqrt(16/15) = 1.033.
        let robust = robust_delay(&between_ends(&points)).unwrap();
        assert_eq!((robust.minimum_kept, robust.minimum_removed), (16, 3));
        assert_eq!(robust.minimum, Duration::from_nanos(11));
        assert_eq!(robust.minimum_threshold, Duration::from_nanos(15));
        assert!((robust.minimum_ratio - 11.0 / (16.0f64 / 15.0).sqrt()).abs() < 1e-9);
        assert_eq!(robust.minimum_standard_deviation, Duration::from_nanos(1));
    }

    #[test]
    fn the_loaded_estimate_removes_only_what_is_far_beyond() {
        // 199 points of 50 and one of 5,000,050: mean 25,050; s1 = 5e6 / sqrt(200); 8 s1 = 2.83e6 is below it.
        let mut points = vec![50u64; 199];
        points.push(5_000_050);
        let robust = robust_delay(&between_ends(&points)).unwrap();
        assert_eq!(
            (robust.loaded, robust.loaded_kept, robust.loaded_removed),
            (Duration::from_nanos(50), 199, 1)
        );
    }

    #[test]
    fn too_few_points_have_no_estimate() {
        assert_eq!(robust_delay(&[]), None);
        assert_eq!(robust_delay(&between_ends(&[5])), None);
        assert_eq!(robust_delay(&between_ends(&[])[1..]), None);
        assert!(robust_delay(&between_ends(&[5, 6])).is_some());
    }

    #[test]
    fn only_the_first_points_are_considered() {
        let mut delays = vec![Duration::from_nanos(7); RobustDelay::CAPACITY];
        delays.extend([Duration::from_secs(9); 100]);
        let robust = robust_delay(&delays).unwrap();
        assert_eq!(robust.loaded, Duration::from_nanos(7));
        assert_eq!(robust.loaded_kept, RobustDelay::CAPACITY as u64 - 20);
    }
}
