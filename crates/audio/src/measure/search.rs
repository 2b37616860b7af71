//! Where the sent audio is in the received: roughly for the whole, then in many places.

use super::spectrum::Correlator;

/// The part of the sent audio by which the delay is looked for, and how far either way.
const SECTION: usize = 1 << 20;
const FARTHEST: usize = 1 << 21;

/// Windows that are followed through the recording, at most.
const WINDOWS: usize = 256;

/// How long they are, and how far from the expected place they are looked for, in seconds.
const WINDOW: f64 = 0.25;
const REACH: f64 = 0.06;

/// How alike a window must be, from 0 to 1, to be believed.
const ALIKE: f64 = 0.6;

/// Of places that are nearly as good as the best, the nearest to the expected one is taken: a tone fits everywhere.
const NEARLY: f64 = 0.98;

/// The delay in samples at which two signals are most alike, and how alike: at most 1, less than 0 if the sign is opposite.
pub(super) fn delay(sent: &[f32], received: &[f32]) -> (i64, f64) {
    let loudest = sent.iter().fold(0.0f32, |most, sample| most.max(sample.abs()));
    let first = sent.iter().position(|sample| sample.abs() > loudest / 100.0).unwrap_or(0);
    let section = &sent[first..sent.len().min(first + SECTION)];
    let begin = first.saturating_sub(FARTHEST).min(received.len());
    let searched = &received[begin..received.len().min(first + section.len() + FARTHEST)];
    let mut correlator = Correlator::<f32>::new(section.len() + searched.len());
    let best = correlator
        .correlate(section, searched)
        .fold((0, 0.0f32), |best, (lag, value)| if value.abs() > best.1.abs() { (lag, value) } else { best });
    let lag = best.0;
    let offset = begin as i64 - first as i64;
    (lag + offset, likeness(section, searched, lag))
}

/// A window of the sent audio that was found in the received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Its middle, in samples of the sent audio.
    pub(super) middle: f64,
    /// How much later it is in the received audio, in samples.
    pub(super) delay: f64,
    /// How much louder.
    pub(super) gain: f64,
}

/// Follows windows through the recording, beginning with a delay; `sent` and `received` have this sample rate.
pub(super) fn follow(sample_rate: u32, sent: &[f32], received: &[f32], delay: i64) -> Vec<Window> {
    let length = ((f64::from(sample_rate) * WINDOW) as usize).clamp(64, sent.len().max(64));
    let reach = (f64::from(sample_rate) * REACH) as i64;
    let starts = || (0..sent.len().saturating_sub(length) + 1).step_by(length);
    let energy = |start: usize| sum(&sent[start..start + length], |sample| sample * sample);
    let loudest = starts().map(energy).fold(0.0, f64::max);
    let stride = starts().len().div_ceil(WINDOWS);
    let mut correlator = Correlator::<f64>::new(2 * length + 2 * reach as usize);
    let (mut windows, mut expected): (Vec<Window>, i64) = (Vec::new(), delay);
    for start in starts().step_by(stride) {
        let window = &sent[start..start + length];
        if energy(start) <= loudest * 1e-4 {
            continue;
        }
        let begin = start as i64 + expected - reach;
        let end = begin + (length as i64 + 2 * reach);
        if begin < 0 || end > received.len() as i64 {
            continue;
        }
        let searched = &received[begin as usize..end as usize];
        if let Some((lag, gain)) = found(&mut correlator, window, searched, reach) {
            let offset = begin - start as i64;
            expected = libm::round(lag) as i64 + offset;
            windows.push(Window { middle: (start + length / 2) as f64, delay: lag + offset as f64, gain });
        }
    }
    windows
}

/// Where a window is within what is searched, and how loud.
fn found(
    correlator: &mut Correlator<f64>,
    window: &[f32],
    searched: &[f32],
    expected: i64,
) -> Option<(f64, f64)> {
    let wide = |samples: &[f32]| samples.iter().map(|sample| f64::from(*sample)).collect::<Vec<f64>>();
    let values: Vec<f64> = correlator
        .correlate(&wide(window), &wide(searched))
        .filter(|(lag, _)| (0..=2 * expected).contains(lag))
        .map(|(_, value)| value)
        .collect();
    let best = values.iter().fold(0.0, |best: f64, value| best.max(value.abs()));
    let is_peak = |lag: usize| {
        let at = |lag: usize| values.get(lag).map_or(0.0, |value| value.abs());
        at(lag) >= NEARLY * best && at(lag) >= at(lag.wrapping_sub(1)) && at(lag) >= at(lag + 1)
    };
    let lag =
        (0..values.len()).filter(|&lag| is_peak(lag)).min_by_key(|&lag| lag.abs_diff(expected as usize))?;
    if likeness(window, searched, lag as i64).abs() < ALIKE {
        return None;
    }
    let there = &searched[lag..lag + window.len()];
    let gain = product(window, there) / product(window, window).max(f64::MIN_POSITIVE);
    Some((lag as f64 + vertex(&values, lag), gain))
}

/// How far the vertex of the parabola through a peak and its neighbours is from it.
fn vertex(values: &[f64], lag: usize) -> f64 {
    let Some(&[before, peak, after]) = lag.checked_sub(1).and_then(|first| values.get(first..first + 3))
    else {
        return 0.0;
    };
    let bend = before - 2.0 * peak + after;
    if bend == 0.0 { 0.0 } else { ((before - after) / (2.0 * bend)).clamp(-0.5, 0.5) }
}

/// The correlation coefficient of `a` and `b` from `lag` on, over what they have in common.
fn likeness(a: &[f32], b: &[f32], lag: i64) -> f64 {
    let skip = |by: i64| usize::try_from(by).unwrap_or(0);
    let (a, b) = (a.get(skip(-lag)..).unwrap_or_default(), b.get(skip(lag)..).unwrap_or_default());
    let common = a.len().min(b.len());
    let (a, b) = (&a[..common], &b[..common]);
    product(a, b) / libm::sqrt(product(a, a) * product(b, b)).max(f64::MIN_POSITIVE)
}

/// The sum of the products of two signals.
pub(super) fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn sum(samples: &[f32], of: impl Fn(f64) -> f64) -> f64 {
    samples.iter().map(|sample| of(f64::from(*sample))).sum()
}
