//! Overload that a run is too short to show: latency that still rises when the sources stop.
//!
//! Where more is offered than a queue can send on, every message waits longer than the one before: in a FIFO the latency
//! grows by the surplus, 6 ms in each second if 0.6 % too much is offered. A queue with room hides that until it is full. A
//! short run then keeps limits that a longer run of the same load would break.
//!
//! Each repetition gives the mean latency of a flow's messages in each quarter of the time in which they were sent. A rise
//! is reported if it goes on through the whole run (each of the last three quarters adds at least half of what the last two add on
//! average) and the one-sided confidence bound of that average is above [`LEAST`].

use trunkline_metrics::{FlowSummary, estimate, student_t};

/// The smallest rise that is reported, in seconds of latency per second of the run: an overload of 0.03 %. It is above what
/// clocks of different hosts are apart, at most 0.01 to 0.02 %.
const LEAST: f64 = 0.000_3;

/// Quarters with fewer messages than this have no mean.
const FEWEST: usize = 3;

/// A flow whose latency still rises at the end of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rising {
    /// Its name.
    pub flow: String,
    /// Growth of its mean latency in the last half of the run, in seconds per second.
    pub per_second: f64,
}

/// A flow of which most messages had not arrived when the run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// Its name.
    pub flow: String,
    /// Their share of the messages due, from 0 to 1: the mean over the repetitions.
    pub share: f64,
}

/// Mean latencies of one flow in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quarters {
    /// By quarter of the time in which it sent, in seconds.
    means: [f64; 4],
    /// The length of a quarter in seconds.
    length: f64,
}

impl Quarters {
    /// Those of a flow; `None` if it sent too little.
    pub(crate) fn of(flow: &FlowSummary) -> Option<Quarters> {
        let sent = |sample: Option<&(trunkline_core::Time, _)>| sample.map(|(sent, _)| sent.as_secs_f64());
        let (first, last) = (sent(flow.latency_over_time.first())?, sent(flow.latency_over_time.last())?);
        let length = (last - first) / 4.0;
        let (mut sums, mut counts) = ([0.0; 4], [0usize; 4]);
        for (sent, latency) in &flow.latency_over_time {
            let quarter = ((sent.as_secs_f64() - first) / length) as usize;
            sums[quarter.min(3)] += latency.as_secs_f64();
            counts[quarter.min(3)] += 1;
        }
        let enough = length > 0.0 && counts.iter().all(|count| *count >= FEWEST);
        enough.then(|| Quarters { means: core::array::from_fn(|n| sums[n] / counts[n] as f64), length })
    }

    /// By how much each quarter lies above the one before, in seconds per second.
    fn rises(&self) -> [f64; 3] {
        core::array::from_fn(|n| (self.means[n + 1] - self.means[n]) / self.length)
    }
}

/// The rise of a flow over its repetitions, with this confidence; `None` if none is certain.
pub(crate) fn rise(repetitions: &[Quarters], confidence: f64) -> Option<f64> {
    let rises: Vec<[f64; 3]> = repetitions.iter().map(Quarters::rises).collect();
    let growths: Vec<f64> = rises.iter().map(|[_, third, last]| (third + last) / 2.0).collect();
    let growth = (growths.len() >= 2).then(|| estimate(&growths))?;
    let n = growths.len() as f64;
    let bound = growth.mean - student_t(confidence, n - 1.0)? * growth.standard_deviation / n.sqrt();
    let mean = |place: usize| rises.iter().map(|of| of[place]).sum::<f64>() / n;
    let goes_on = (0..3).all(|place| mean(place) >= growth.mean / 2.0);
    (goes_on && bound > LEAST).then_some(growth.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Duration, Time};

    /// A flow that sends each millisecond for a second, with latencies in milliseconds by the time in seconds.
    fn flow(latency: impl Fn(f64) -> f64) -> Quarters {
        let sample = |n: u64| {
            let sent = Time::from_nanos(n * 1_000_000);
            (sent, Duration::from_secs_f64(latency(sent.as_secs_f64()) / 1000.0))
        };
        let latency_over_time = (0..1000).map(sample).collect();
        Quarters::of(&FlowSummary { latency_over_time, ..FlowSummary::default() }).expect("it sends enough")
    }

    #[test]
    fn a_steady_rise_is_the_overload() {
        // 2 % more than the line takes: 20 ms in a second.
        let found = rise(&[flow(|t| 5.0 + 20.0 * t), flow(|t| 6.0 + 20.0 * t)], 0.95).unwrap();
        assert!((found - 0.02).abs() < 1e-4, "{found}");
    }

    #[test]
    fn what_ends_before_the_run_does_is_no_hidden_overload() {
        for (what, latency) in [
            ("steady", (|_| 5.0) as fn(f64) -> f64),
            ("a queue that is full after a half", |t| 5.0 + 20.0 * t.min(0.5)),
            ("a step when another flow begins", |t| if t > 0.7 { 40.0 } else { 5.0 }),
            ("a sawtooth", |t| 5.0 + 40.0 * ((t * 1.7) % 1.0)),
            ("a queue that drains", |t| 50.0 - 20.0 * t),
            ("clocks that are 100 ppm apart", |t| 5.0 + 0.1 * t),
        ] {
            assert_eq!(rise(&[flow(latency), flow(latency)], 0.95), None, "{what}");
        }
    }

    #[test]
    fn a_rise_that_chance_explains_is_not_reported() {
        // +20, -10 and +5 ms in a second.
        let repetitions = [flow(|t| 50.0 + 20.0 * t), flow(|t| 50.0 - 10.0 * t), flow(|t| 50.0 + 5.0 * t)];
        assert_eq!(rise(&repetitions, 0.95), None);
        assert_eq!(rise(&repetitions[..1], 0.95), None, "one repetition shows nothing");
        assert_eq!(rise(&[], 0.95), None);
    }

    /// A queue that grows by 30 ms in a second, and by chance more or less in one quarter of a repetition.
    #[test]
    fn an_overload_is_seen_through_the_chance_of_a_single_quarter() {
        let noisy = |by: f64| flow(move |t| 5.0 + 30.0 * t + if (0.5..0.75).contains(&t) { by } else { 0.0 });
        let repetitions = [noisy(4.0), noisy(-4.0), noisy(8.0)];
        let found = rise(&repetitions, 0.95).unwrap_or_default();
        assert!((found - 0.03).abs() < 0.005, "{found}");
    }

    #[test]
    fn a_slight_overload_is_reported() {
        // 0.08 % more than the line takes.
        let found = rise(&[flow(|t| 5.0 + 0.8 * t), flow(|t| 6.0 + 0.8 * t)], 0.95).unwrap_or_default();
        assert!((found - 0.000_8).abs() < 1e-5, "{found}");
    }

    #[test]
    fn a_flow_that_sent_little_has_no_quarters() {
        let latency_over_time = (0..8).map(|n| (Time::from_nanos(n), Duration::from_millis(n))).collect();
        let few = FlowSummary { latency_over_time, ..FlowSummary::default() };
        assert_eq!(Quarters::of(&few), None);
        assert_eq!(Quarters::of(&FlowSummary::default()), None);
        let at_once = (0..100).map(|n| (Time::ZERO, Duration::from_millis(n))).collect();
        assert_eq!(Quarters::of(&FlowSummary { latency_over_time: at_once, ..FlowSummary::default() }), None);
    }
}
