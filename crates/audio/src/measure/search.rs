//! Looks for a window of the sent audio in the received, and says how alike it is at each lag.

use super::spectrum::Correlator;
use super::track::Windows;

/// How alike a window must be, from 0 to 1, to be believed; and far away.
pub(super) const ALIKE: f64 = 0.6;
pub(super) const FAR_ALIKE: f64 = 0.85;
/// What is softer than this share of the loudest is not found: 60 dB.
const FLOOR: f64 = 1e-6;
/// The taps that a lag between lags is made of.
const TAPS: i64 = 24;

/// Looks for windows by their correlation with what is around them.
pub(super) struct Search<'w> {
    windows: &'w Windows<'w>,
    warped: &'w [f32],
    reach: i64,
    correlator: Correlator<f32>,
    shape: Vec<f32>,
}

impl<'w> Search<'w> {
    pub(super) fn new(windows: &'w Windows<'w>, warped: &'w [f32], reach: i64) -> Search<'w> {
        let correlator = Correlator::new(2 * windows.length() + 2 * reach as usize);
        let shape = windows.weights.iter().map(|w| *w as f32).collect();
        Search { windows, warped, reach, correlator, shape }
    }

    /// How alike a window is, from -1 to 1, at every lag within reach of the expected one. It was sent at `start`, and would be
    /// at `from` in what is searched.
    pub(super) fn curve(&mut self, start: usize, from: i64, expected: i64) -> Option<Curve> {
        let Windows { sent, weights, sign, .. } = self.windows;
        let length = weights.len();
        let begin = from + expected - self.reach;
        let end = from + expected + self.reach + length as i64;
        if begin < 0 || end > self.warped.len() as i64 {
            return None;
        }
        let searched = &self.warped[begin as usize..end as usize];
        let sent = &sent[start..start + length];
        let weighted: Vec<f32> = sent.iter().zip(weights).map(|(s, w)| (*w * f64::from(*s)) as f32).collect();
        let own: f64 = sent.iter().zip(&weighted).map(|(s, w)| f64::from(*s) * f64::from(*w)).sum();
        let squares: Vec<f32> = searched.iter().map(|r| r * r).collect();
        let scale = self.correlator.scale();
        let mut values = |a: &[f32], b: &[f32]| -> Vec<f64> {
            let lags = 0..=2 * self.reach;
            let all = self.correlator.correlate(a, b).filter(|(lag, _)| lags.contains(lag));
            all.map(|(_, value)| f64::from(value) * scale).collect()
        };
        let common = values(&weighted, searched).into_iter().map(|common| sign * common);
        let common: Vec<f64> = common.collect();
        let heard = values(&self.shape, &squares);
        Some(Curve::new(common.into_iter().zip(heard).collect(), own, self.reach))
    }

    /// Where a window is, near an expected lag, or far from it if it is clearly there instead; and how alike it is there.
    pub(super) fn find(&mut self, start: usize, from: i64, expected: i64, gain: f64) -> Option<Place> {
        let curve = self.curve(start, from, expected)?;
        let near = curve.near(NEAR_SAMPLES).filter(|place| place.likeness >= ALIKE);
        let best = curve.best();
        let is_elsewhere = |near: &Place| {
            best.likeness >= FAR_ALIKE
                && missed(near.likeness) > ELSEWHERE * curve.energies(best.lag).missed(gain)
        };
        let place = match near {
            Some(near) if !is_elsewhere(&near) => near,
            _ if best.likeness >= FAR_ALIKE => best,
            near => near?,
        };
        Some(Place { lag: place.lag + expected as f64, ..place })
    }
}

/// A window is elsewhere if so many times as much of it is missed where it is expected.
const ELSEWHERE: f64 = 4.0;
/// A window is where it is expected if it is not further away, in samples.
pub(super) const NEAR_SAMPLES: i64 = 12;

/// The share of a window's energy that is not explained at a place where it is so much alike; what differs by less than 60 dB
/// is the same.
pub(super) fn missed(likeness: f64) -> f64 {
    1.0 - likeness.max(0.0) * likeness.max(0.0) + 1e-6
}

/// A place where a window may be, in samples from the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) lag: f64,
    pub(super) likeness: f64,
}

/// The energy of a window as it was sent and as it was received, and what is common to both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Energies {
    pub(super) own: f64,
    pub(super) common: f64,
    pub(super) heard: f64,
}

impl Energies {
    /// The share of the window that is not explained if it is louder by a factor; what differs by less than 60 dB is the same.
    pub(super) fn missed(self, gain: f64) -> f64 {
        let expected = gain * gain * self.own;
        (self.heard + expected - 2.0 * gain * self.common).max(0.0) / expected + 1e-6
    }
}

/// How alike a window is at each lag.
pub(super) struct Curve {
    /// What is common, and the energy that is heard, at each lag from `-reach` on.
    lags: Vec<(f64, f64)>,
    own: f64,
    reach: i64,
    floor: f64,
}

impl Curve {
    pub(super) fn new(lags: Vec<(f64, f64)>, own: f64, reach: i64) -> Curve {
        let floor = lags.iter().map(|(_, heard)| *heard).fold(0.0, f64::max) * FLOOR;
        Curve { lags, own, reach, floor }
    }

    /// How alike at a lag, which may lie between samples.
    pub(super) fn alike(&self, lag: f64) -> f64 {
        let at = lag + self.reach as f64;
        let common = between(&self.lags, at, |(common, _)| *common);
        let heard = line_between(&self.lags, at);
        common / libm::sqrt(self.own * heard.max(self.floor)).max(f64::MIN_POSITIVE)
    }

    /// What a window and the received audio have in common at a lag, and what each has.
    pub(super) fn energies(&self, lag: f64) -> Energies {
        let at = lag + self.reach as f64;
        let common = between(&self.lags, at, |(common, _)| *common);
        Energies { own: self.own.max(f64::MIN_POSITIVE), common, heard: line_between(&self.lags, at) }
    }

    pub(super) fn whole(&self, n: usize) -> f64 {
        let Some((common, heard)) = self.lags.get(n) else { return 0.0 };
        common / libm::sqrt(self.own * heard.max(self.floor)).max(f64::MIN_POSITIVE)
    }

    /// The peaks whose lags are not further than `within` from 0, of those the highest `count`; between samples.
    fn peaks(&self, within: i64, count: usize) -> Vec<Place> {
        let middle = self.reach as usize;
        let from = (self.reach - within).max(1) as usize;
        let to = (self.reach + within).min(2 * self.reach - 1).max(0) as usize;
        let is_peak = |n: &usize| {
            self.whole(*n) > 0.0 && self.whole(*n) >= self.whole(n - 1) && self.whole(*n) >= self.whole(n + 1)
        };
        let mut peaks: Vec<usize> = (from..=to).filter(is_peak).collect();
        peaks.sort_by(|a, b| {
            self.whole(*b).total_cmp(&self.whole(*a)).then(a.abs_diff(middle).cmp(&b.abs_diff(middle)))
        });
        peaks.truncate(count);
        peaks.into_iter().map(|n| self.summit(n as f64 - self.reach as f64)).collect()
    }

    /// The peak near the expected place: of those that are nearly as good as the best, the nearest.
    pub(super) fn near(&self, within: i64) -> Option<Place> {
        let peaks = self.peaks(within, 6);
        let best = peaks.iter().map(|place| missed(place.likeness)).fold(f64::INFINITY, f64::min);
        let good = peaks.into_iter().filter(|place| missed(place.likeness) <= 2.0 * best + 1e-4);
        good.min_by(|a, b| a.lag.abs().total_cmp(&b.lag.abs()))
    }

    /// The highest peak within reach.
    fn best(&self) -> Place {
        let peaks = self.peaks(self.reach, 3).into_iter();
        peaks.max_by(|a, b| a.likeness.total_cmp(&b.likeness)).unwrap_or(Place { lag: 0.0, likeness: 0.0 })
    }

    fn summit(&self, near: f64) -> Place {
        let (lag, likeness) = summit(near, &|lag| self.alike(lag));
        Place { lag, likeness: likeness.clamp(-1.0, 1.0) }
    }
}

/// The samples that are needed on either side of a window to look for it up to `reach` away.
pub(super) fn margin(reach: i64) -> i64 {
    reach + TAPS
}

/// Where a peak near a place is highest, and how high: by the parabola through three points, ever nearer.
fn summit(near: f64, alike: &dyn Fn(f64) -> f64) -> (f64, f64) {
    let (mut at, mut width) = (near, 0.5);
    for _ in 0..6 {
        let (before, here, after) = (alike(at - width), alike(at), alike(at + width));
        let bend = before - 2.0 * here + after;
        if bend < 0.0 {
            at += (width * (before - after) / (2.0 * bend)).clamp(-width, width);
        }
        width /= 2.0;
    }
    (at, alike(at))
}

/// A value between samples: a sinc under Hann's window.
fn between(values: &[(f64, f64)], at: f64, of: impl Fn(&(f64, f64)) -> f64) -> f64 {
    let nearest = libm::round(at);
    let value = |n: i64| usize::try_from(n).ok().and_then(|n| values.get(n)).map_or(0.0, &of);
    if (nearest - at).abs() < 1e-9 {
        return value(nearest as i64);
    }
    let pi = core::f64::consts::PI;
    let (nearest, part) = (nearest as i64, at - nearest);
    // From one tap to the next the sine changes its sign, and the window turns by a fixed angle.
    let (turn, begin) = (pi / (TAPS as f64 + 1.0), part + TAPS as f64);
    let (step_sin, step_cos) = (libm::sin(turn), libm::cos(turn));
    let (mut sin, mut cos) = (libm::sin(begin * turn), libm::cos(begin * turn));
    let sine = libm::sin(pi * part);
    (-TAPS..=TAPS)
        .map(|tap| {
            let window = 0.5 + 0.5 * cos;
            (sin, cos) = (sin * step_cos - cos * step_sin, cos * step_cos + sin * step_sin);
            let sign = if tap % 2 == 0 { 1.0 } else { -1.0 };
            value(nearest + tap) * window * sign * sine / (pi * (part - tap as f64))
        })
        .sum()
}

/// The energy that is heard between samples, which changes slowly.
fn line_between(values: &[(f64, f64)], at: f64) -> f64 {
    let whole = libm::floor(at).max(0.0);
    let value = |n: f64| values.get(n as usize).map_or(0.0, |(_, heard)| *heard);
    value(whole) + (at - whole) * (value(whole + 1.0) - value(whole))
}
