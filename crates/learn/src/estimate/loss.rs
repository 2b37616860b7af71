//! Loss on an idle path: of each packet by itself, or in bursts.

use crate::estimate::statistics::{Interval, minimise};
use crate::link::Loss;

/// Losses from which on bursts and independent losses can be distinguished.
const MIN_LOST: usize = 10;
/// Twice the gain in log-likelihood that a second parameter must bring (1 % by the chi-squared distribution).
const GAIN: f64 = 6.6;

/// Loss of idle packets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lost {
    pub(crate) model: Loss,
    /// The share of packets lost.
    pub(crate) share: Interval,
    /// The mean length of a burst in seconds, if there are bursts.
    pub(crate) burst: Option<Interval>,
    pub(crate) packets: usize,
    pub(crate) lost: usize,
}

/// Models the fates of packets, given with their times in order: `true` if lost.
pub(crate) fn model(fates: &[(f64, bool)]) -> Lost {
    let packets = fates.len();
    let lost = fates.iter().filter(|(_, lost)| *lost).count();
    let runs = fates.chunk_by(|one, next| one.1 == next.1).filter(|run| run[0].1).count();
    let share = wilson(lost, packets, runs, Z90);
    let mut found = Lost { model: Loss::None, share, burst: None, packets, lost };
    if lost == 0 {
        return found;
    }
    found.model = Loss::Random(share.value);
    if lost < MIN_LOST {
        return found;
    }
    let independent = -log_likelihood(fates, share.value, f64::INFINITY);
    let of = |x: &[f64]| -log_likelihood(fates, logistic(x[0]), x[1].exp());
    let start = [(share.value / (1.0 - share.value).max(1e-9)).ln(), (1.0 / 0.01f64).ln()];
    let (best, value) = [0.0, 2.0, -2.0]
        .map(|shift| minimise(&[start[0], start[1] + shift], &[0.3, 0.7], 120, of))
        .into_iter()
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((start.to_vec(), f64::MAX));
    let (share, speed) = (logistic(best[0]), best[1].exp());
    if 2.0 * (independent - value) < GAIN || speed > 1e5 {
        return found;
    }
    // The share of time in the bad state is good^-1 over the sum of both speeds.
    let (good, bad) = (1.0 / (share * speed), 1.0 / ((1.0 - share) * speed));
    found.model = Loss::Bursts { good, bad };
    let profile = |of: &dyn Fn(f64) -> f64, from: f64| {
        // The ends of the interval: where the log-likelihood has fallen by half of 2.71 (90 %, one parameter).
        [-1.0, 1.0].map(|direction| {
            let mut step = 0.02;
            let mut at = from;
            while of(at + direction * step) - value < 1.35 && step < 5.0 {
                at += direction * step;
                step *= 1.3;
            }
            at + direction * step * 0.5
        })
    };
    let [low, high] = profile(&|x| of(&[best[0], x]), best[1]);
    let length = |speed: f64| 1.0 / ((1.0 - share) * speed.exp());
    found.burst = Some(Interval { value: bad, low: length(high), high: length(low) });
    // Bursts are what is counted, not packets: there are fewer of them.
    let [low, high] = profile(&|x| of(&[x, best[1]]), best[0]);
    found.share = Interval { value: share, low: logistic(low), high: logistic(high) };
    found
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Log-likelihood of the fates if packets are lost in the bad state of a chain in continuous time, with this share of time
/// in it and this speed of forgetting.
fn log_likelihood(fates: &[(f64, bool)], share: f64, speed: f64) -> f64 {
    let stationary = |bad: bool| if bad { share } else { 1.0 - share };
    let mut sum = 0.0;
    let mut before: Option<(f64, bool)> = None;
    for &(at, lost) in fates {
        let chance = match before {
            None => stationary(lost),
            Some((then, was)) => {
                let memory = if speed.is_finite() { (-speed * (at - then)).exp() } else { 0.0 };
                stationary(lost) * (1.0 - memory) + if lost == was { memory } else { 0.0 }
            }
        };
        sum += chance.max(1e-300).ln();
        before = Some((at, lost));
    }
    sum
}

/// The quantiles of the normal distribution for intervals of 90 % and 95 %.
pub(crate) const Z90: f64 = 1.645;
pub(crate) const Z95: f64 = 1.96;

/// The share with its interval by Wilson (1927): not empty even if nothing or everything was lost. It counts as many packets as
/// would tell as much if each were lost by itself. In a chain of two states, the variance of the share is `2 L (1 - p) - 1` times
/// that of independent losses, where `L` is the mean length of a run of losses (Klotz 1973, Annals of Statistics 1, 373-379).
pub(crate) fn wilson(lost: usize, packets: usize, runs: usize, z: f64) -> Interval {
    let share = lost as f64 / packets.max(1) as f64;
    let run = lost as f64 / runs.max(1) as f64;
    let n = packets.max(1) as f64 / (2.0 * run * (1.0 - share) - 1.0).max(1.0);
    let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    Interval { value: share, low: (centre - half).max(0.0).min(share), high: (centre + half).min(1.0) }
}

#[cfg(test)]
mod tests {
    use trunkline_core::Seed;

    use super::*;

    /// Runs of ten packets back to back, and single ones between them.
    fn times() -> Vec<f64> {
        let mut stream = Seed::new(5, 0).stream("times");
        let mut times = Vec::new();
        let mut at = 0.0;
        while at < 40.0 {
            at += stream.exponential(0.01);
            let run = if stream.unit() < 0.05 { 10 } else { 1 };
            times.extend((0..run).map(|n| at + 1e-4 * f64::from(n)));
            at += 1e-3;
        }
        times
    }

    #[test]
    fn independent_loss_is_not_taken_for_bursts() {
        let mut bursts = 0;
        for seed in 0..50 {
            let mut stream = Seed::new(seed, 0).stream("loss");
            let fates: Vec<(f64, bool)> = times().into_iter().map(|at| (at, stream.unit() < 0.02)).collect();
            let found = model(&fates);
            bursts += u32::from(!matches!(found.model, Loss::Random(_)));
        }
        assert!(bursts <= 3, "{bursts} of 50");
    }

    #[test]
    fn bursts_in_time_are_found_with_their_length() {
        let (mut right, mut inside) = (0, 0);
        for seed in 0..50 {
            let mut stream = Seed::new(seed, 0).stream("loss");
            let (mut bad, mut until) = (false, 0.0);
            let fates: Vec<(f64, bool)> = times()
                .into_iter()
                .map(|at| {
                    while at >= until {
                        until += stream.exponential(if bad { 2.0 } else { 0.03 });
                        bad = !bad;
                    }
                    (at, bad)
                })
                .collect();
            let found = model(&fates);
            right += u32::from(matches!(found.model, Loss::Bursts { .. }));
            inside += u32::from(found.burst.is_some_and(|burst| burst.contains(0.03)));
        }
        assert!(right >= 48, "{right} of 50");
        assert!((40..=50).contains(&inside), "{inside} of 50");
    }

    /// Shares of packets in a chain of two states, and losses by themselves: as many intervals contain the truth as should.
    #[test]
    fn the_interval_of_a_share_allows_for_bursts() {
        for burst in [1.0 / 0.98, 3.0, 8.0] {
            let inside = (0..400)
                .filter(|&seed| {
                    let mut stream = Seed::new(seed, 0).stream("chain");
                    let to_bad = 0.02 / 0.98 / burst;
                    let (mut bad, mut lost, mut runs) = (stream.unit() < 0.02, 0, 0);
                    for _ in 0..6_000 {
                        let was = bad;
                        bad = stream.unit() < if was { 1.0 - 1.0 / burst } else { to_bad };
                        lost += usize::from(bad);
                        runs += usize::from(bad && !was);
                    }
                    wilson(lost, 6_000, runs, Z95).contains(0.02)
                })
                .count();
            assert!((360..=396).contains(&inside), "{inside} of 400 with bursts of {burst}");
        }
    }

    #[test]
    fn nothing_lost_gives_an_upper_bound() {
        let found = model(&[(0.0, false); 1_000]);
        assert_eq!(found.model, Loss::None);
        assert!(found.share.value == 0.0 && (0.002..0.004).contains(&found.share.high), "{found:?}");
    }
}
