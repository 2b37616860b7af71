//! Brings a received recording back to the time, the level and the channels of the sent one.

use std::borrow::Cow;

use super::interpolate::Interpolator;
use super::search::{self, Window, product};
use super::{Alignment, CompareError, Recording};

/// Sent and received audio side by side.
pub(super) struct Aligned {
    pub(super) alignment: Alignment,
    /// One of each sent channel, in their order.
    pub(super) pairs: Vec<Pair>,
}

/// A channel as it was sent, and as it was received at the same time and level.
pub(super) struct Pair {
    pub(super) channel: usize,
    pub(super) gain: f64,
    pub(super) sent: Vec<f32>,
    pub(super) received: Vec<f32>,
}

/// Less alike than this is chance.
const RELATED: f64 = 0.1;

/// How near to a whole sample counts as one.
const WHOLE: f64 = 0.02;

/// What a sample of the sent audio is in the received: `delay + drift * n` samples later.
#[derive(Clone, Copy, Debug)]
struct Line {
    delay: f64,
    drift: f64,
}

pub(super) fn align(sent: &Recording, received: &Recording) -> Result<Aligned, CompareError> {
    let step = f64::from(received.sample_rate) / f64::from(sent.sample_rate);
    let heard: Vec<Cow<'_, [f32]>> = received.channels.iter().map(|channel| at_rate(channel, step)).collect();
    let energy = |channel: &[f32]| product(channel, channel);
    let (loudest, _) = most(sent.channels.iter().map(|channel| energy(channel)));
    let loudest = &sent.channels[loudest];
    let delays: Vec<(i64, f64)> = heard.iter().map(|channel| search::delay(loudest, channel)).collect();
    let (channel, _) = most(delays.iter().map(|(_, likeness)| likeness.abs()));
    let (delay, likeness) = delays[channel];
    let windows = search::follow(sent.sample_rate, loudest, &heard[channel], delay);
    if windows.is_empty() && likeness.abs() < RELATED {
        return Err(CompareError::Unrelated);
    }
    let line = Line::through(&windows, delay).refined(&windows, loudest, &heard[channel]);

    let frames = sent.frames() as f64;
    let length = heard.iter().map(|channel| channel.len()).min().unwrap_or(0) as f64;
    // Places in the received audio from 0 to its last sample.
    let first = (libm::ceil(-line.delay / (1.0 + line.drift)).max(0.0)) as usize;
    let end = libm::floor((length - 1.0 - line.delay) / (1.0 + line.drift)).min(frames - 1.0) + 1.0;
    let compared = first..(end.max(0.0) as usize).max(first);
    if compared.is_empty() {
        return Err(CompareError::Unrelated);
    }
    let interpolator = Interpolator::new(1.0);
    let moved = |channel: &Cow<'_, [f32]>| -> Vec<f32> {
        compared.clone().map(|n| interpolator.at(channel, line.at(n as f64))).collect()
    };
    let sent_parts: Vec<&[f32]> = sent.channels.iter().map(|channel| &channel[compared.clone()]).collect();
    let moved: Vec<Vec<f32>> = heard.iter().map(moved).collect();
    let rate = f64::from(sent.sample_rate);
    let wander = windows.iter().map(|window| (window.delay - line.delay_of(window.middle)).abs());
    Ok(Aligned {
        alignment: Alignment {
            delay: line.delay_of(compared.start as f64) / rate,
            drift: line.drift * 1e6,
            wander: wander.fold(0.0, f64::max) / rate,
            compared: compared.len() as f64 / rate,
        },
        pairs: pairs(sent.sample_rate, &sent_parts, moved),
    })
}

/// A channel at another sample rate, of which `step` samples are one.
fn at_rate(channel: &[f32], step: f64) -> Cow<'_, [f32]> {
    if step == 1.0 {
        return channel.into();
    }
    let interpolator = Interpolator::new(step);
    let samples = (channel.len() as f64 / step) as usize;
    (0..samples).map(|n| interpolator.at(channel, n as f64 * step)).collect()
}

impl Line {
    /// The line that most windows lie on, whatever the others do: its slope is the median of the slopes between any two
    /// (Theil 1950, Sen 1968).
    fn through(windows: &[Window], delay: i64) -> Line {
        let slopes = windows.iter().enumerate().flat_map(|(n, a)| {
            windows[n + 1..].iter().map(move |b| (b.delay - a.delay) / (b.middle - a.middle))
        });
        let drift = median(slopes.collect()).unwrap_or(0.0);
        let delays = windows.iter().map(|window| window.delay - drift * window.middle).collect();
        Line { delay: median(delays).unwrap_or(delay as f64), drift }
    }

    /// Corrects what is left of a sample, by the waveform itself: least squares, linear in the change of delay and drift.
    fn refined(mut self, windows: &[Window], sent: &[f32], received: &[f32]) -> Line {
        let length = sent.len() as f64;
        let half =
            windows.windows(2).map(|pair| (pair[1].middle - pair[0].middle) / 2.0).fold(2048.0, f64::min);
        let interpolator = Interpolator::new(1.0);
        let gain = median(windows.iter().map(|window| window.gain).collect()).unwrap_or(1.0);
        for _ in 0..ROUNDS {
            // The normal equations of the two changes.
            let (mut aa, mut ab, mut bb, mut ae, mut be) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for window in
                windows.iter().filter(|window| (window.delay - self.delay_of(window.middle)).abs() < 1.0)
            {
                let span = (window.middle - half).max(0.0) as usize
                    ..((window.middle + half) as usize).min(sent.len());
                let read = |n: f64| f64::from(interpolator.at(received, self.at(n)));
                let (mut before, mut here) = (read(span.start as f64 - 1.0), read(span.start as f64));
                for n in span {
                    let after = read(n as f64 + 1.0);
                    let (slope, t) = ((after - before) / 2.0, n as f64 / length);
                    let error = gain * f64::from(sent[n]) - here;
                    aa += slope * slope;
                    ab += slope * slope * t;
                    bb += slope * slope * t * t;
                    ae += slope * error;
                    be += slope * error * t;
                    (before, here) = (here, after);
                }
            }
            let determinant = aa * bb - ab * ab;
            if determinant <= aa * bb * 1e-9 || determinant.is_nan() {
                break;
            }
            self.delay += ((ae * bb - be * ab) / determinant).clamp(-0.5, 0.5);
            self.drift += ((aa * be - ab * ae) / determinant).clamp(-0.5, 0.5) / length;
        }
        let whole = libm::round(self.delay);
        let moves = (self.drift * length).abs();
        if moves < WHOLE && (self.delay + self.drift * length / 2.0 - whole).abs() < WHOLE {
            return Line { delay: whole, drift: 0.0 };
        }
        self
    }

    fn delay_of(self, n: f64) -> f64 {
        self.delay + self.drift * n
    }

    fn at(self, n: f64) -> f64 {
        n + self.delay_of(n)
    }
}

/// Enough to come within a thousandth of a sample.
const ROUNDS: usize = 4;

/// Finds out which channel is which, the most alike first, and how loud it is.
fn pairs(sample_rate: u32, sent: &[&[f32]], moved: Vec<Vec<f32>>) -> Vec<Pair> {
    let norm = |samples: &[f32]| libm::sqrt(product(samples, samples)).max(f64::MIN_POSITIVE);
    let norms: Vec<f64> = moved.iter().map(|samples| norm(samples)).collect();
    let mut likeness = Vec::new();
    for (from, a) in sent.iter().enumerate() {
        let a_norm = norm(a);
        for (to, b) in moved.iter().enumerate() {
            let alike = (product(a, b) / (a_norm * norms[to])).abs();
            // Of channels that are alike, each is itself.
            likeness.push((if from == to { alike + 1e-6 } else { alike }, from, to));
        }
    }
    likeness.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut of = vec![None; sent.len()];
    let mut taken = vec![false; moved.len()];
    for (_, from, to) in likeness {
        if of[from].is_none() && !taken[to] {
            (of[from], taken[to]) = (Some(to), true);
        }
    }
    let window = (sample_rate / 50).max(1) as usize;
    let pair = |(from, to): (usize, Option<usize>)| {
        let channel = to.expect("there are as many received channels as sent ones");
        let (sent, heard) = (sent[from], &moved[channel]);
        let gain = gain(window, sent, heard);
        let received = heard.iter().map(|sample| (f64::from(*sample) / gain) as f32).collect();
        Pair { channel, gain, sent: sent.to_vec(), received }
    };
    of.into_iter().enumerate().map(pair).collect()
}

/// How loud `heard` is against `sent`, as most of their windows say: gaps do not make a recording softer.
fn gain(window: usize, sent: &[f32], heard: &[f32]) -> f64 {
    let parts = || sent.chunks(window).zip(heard.chunks(window)).map(|(a, b)| (product(a, a), product(a, b)));
    let loudest = parts().map(|(energy, _)| energy).fold(0.0, f64::max);
    let gains =
        parts().filter(|(energy, _)| *energy > loudest * 1e-4).map(|(energy, common)| common / energy);
    median(gains.collect()).filter(|gain| gain.abs() > 1e-6).unwrap_or(1.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((upper + lower) / 2.0)
}

/// The first of the largest values, and where it is.
fn most(values: impl Iterator<Item = f64>) -> (usize, f64) {
    values.enumerate().fold((0, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best })
}
