//! Slopes, and the bounds above which they are growth.

use std::fmt;

/// The values that are sampled, and the growth per hour that is allowed.
const VALUES: [(&str, f64); 3] = [("resident KiB", 2048.0), ("descriptors", 2.0), ("threads", 1.0)];
/// Descriptors and threads that may be there at rest at the end and were not after the warm-up.
const SPARE: f64 = 2.0;

/// The values of a process at one moment, in the order of [`VALUES`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Since the beginning.
    pub(super) seconds: f64,
    pub(super) counts: [f64; 3],
}

/// The development of a value.
#[derive(Debug)]
pub(super) struct Verdict {
    what: &'static str,
    start: f64,
    end: f64,
    /// Per hour.
    slope: f64,
    bound: f64,
    has_grown: bool,
}

impl Verdict {
    /// Judges each value by its samples under load after the warm-up, and by two moments at rest.
    pub(super) fn of_all<'s>(
        samples: &'s [Sample],
        start: &'s Sample,
        end: &'s Sample,
    ) -> impl Iterator<Item = Verdict> + 's {
        VALUES.iter().enumerate().map(move |(index, &(what, bound))| {
            let points: Vec<(f64, f64)> =
                samples.iter().map(|sample| (sample.seconds / 3600.0, sample.counts[index])).collect();
            let (start, end, slope) = (start.counts[index], end.counts[index], slope(&points));
            // Memory at rest depends on when the allocator has last returned pages.
            let stays = index > 0 && end - start > SPARE;
            Verdict { what, start, end, slope, bound, has_grown: slope > bound || stays }
        })
    }

    pub(super) fn problem(&self, process: &str) -> Option<String> {
        let Verdict { what, start, end, slope, .. } = self;
        self.has_grown.then(|| format!("{process}: {what} grew from {start} to {end}, by {slope:.1} an hour"))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { what, start, end, slope, bound, has_grown } = self;
        let verdict = if *has_grown { "GROWTH" } else { "ok" };
        write!(f, "{what:<18} {start:>9} {end:>9} {slope:>12.1} {bound:>12.0}  {verdict}")
    }
}

/// The slope of Theil and Sen: the median of the slopes between all pairs, which bursts of load hardly change.
fn slope(points: &[(f64, f64)]) -> f64 {
    let pairs = points.iter().enumerate().flat_map(|(index, from)| {
        points[index + 1..].iter().map(move |to| (to.1 - from.1) / (to.0 - from.0))
    });
    let mut slopes: Vec<f64> = pairs.filter(|slope| slope.is_finite()).collect();
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_ten_seconds(count: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..540).map(|number| f64::from(number) / 360.0).map(|hours| (hours, count(hours))).collect()
    }

    #[test]
    fn bursts_are_no_growth_and_a_leak_below_them_is() {
        let burst = |hours: f64| if ((hours * 60.0) as u64).is_multiple_of(5) { 500.0 } else { 0.0 };
        assert!(slope(&every_ten_seconds(burst)).abs() < 1.0);
        let leak = slope(&every_ten_seconds(|hours| burst(hours) + 30.0 * hours));
        assert!((25.0..35.0).contains(&leak), "{leak}");
        assert_eq!(slope(&[]), 0.0);
    }

    #[test]
    fn what_stays_at_rest_is_growth_even_if_it_is_rare() {
        let at = |seconds, descriptors| Sample { seconds, counts: [1000.0, descriptors, 5.0] };
        let samples = [at(0.0, 10.0), at(3600.0, 10.0), at(7200.0, 10.0)];
        let grown = |end| {
            let verdicts = Verdict::of_all(&samples, &samples[0], &end);
            verdicts.filter_map(|verdict| verdict.problem("agent")).collect::<Vec<_>>()
        };
        assert_eq!(grown(at(7200.0, 12.0)), Vec::<String>::new());
        assert_eq!(grown(at(7200.0, 13.0)), ["agent: descriptors grew from 10 to 13, by 0.0 an hour"]);
    }
}
