//! Brings each channel of a received recording back to the time and the level of the sent one that it is.

use std::borrow::Cow;

use super::coarse::{self, Coarse, Line, Thin};
use super::decide::{Decision, decide};
use super::interpolate::Interpolator;
use super::path::Path;
use super::track::{self, Track, median};
use super::{Alignment, CompareError, Doubt, Recording, product};

/// A channel as it was sent, and as it was received at the same time and level.
pub(super) struct Pair {
    pub(super) channel: usize,
    pub(super) gain: f64,
    pub(super) alignment: Alignment,
    pub(super) sent: Vec<f32>,
    pub(super) received: Vec<f32>,
    pub(super) identical: bool,
}

impl Pair {
    /// The share of the energy that is not what was sent.
    fn unlike(&self) -> f64 {
        let common = product(&self.sent, &self.received);
        let energy = product(&self.sent, &self.sent) * product(&self.received, &self.received);
        1.0 - common * common / energy.max(f64::MIN_POSITIVE)
    }
}

/// Sample rates at which the delay is looked for: the lower, the faster. The next is tried if nothing is found.
const RATES: [f64; 3] = [4_000.0, 16_000.0, f64::INFINITY];

/// Less alike than this is chance.
const RELATED: f64 = 0.25;
/// Less alike than this is looked at once more, at a higher rate.
const PLAIN: f64 = 0.5;

/// A channel is taken to be where it was if it is so much alike there.
const SELF: f64 = 0.9;

/// The share of the windows, or of the energy, of which the half must be what was sent.
const FAINT: f64 = 0.5;

/// Aligns all channels, each for itself.
pub(super) fn align(sent: &Recording, received: &Recording) -> Result<Vec<Pair>, CompareError> {
    let step = f64::from(received.sample_rate) / f64::from(sent.sample_rate);
    let heard: Vec<Cow<'_, [f32]>> = received.channels.iter().map(|channel| at_rate(channel, step)).collect();
    let sought = Sought::new(sent, &heard);
    let matched = sought.matched();
    if matched.iter().all(Option::is_none) {
        return Err(CompareError::Unrelated);
    }
    let mut pairs: Vec<Option<Pair>> = Vec::with_capacity(matched.len());
    for (channel, matched) in sent.channels.iter().zip(&matched) {
        let aligned = matched
            .as_ref()
            .and_then(|(to, coarse)| aligned(sent.sample_rate, channel, &heard[*to], coarse, *to));
        pairs.push(aligned);
    }
    let Some(usual) = loudest(&pairs) else { return Err(CompareError::Unrelated) };
    // What was sent silently, or has no likeness, is compared with what is left, when the others are.
    let mut left: Vec<usize> =
        (0..heard.len()).filter(|to| !pairs.iter().flatten().any(|pair| pair.channel == *to)).rev().collect();
    let pair = |(pair, channel): (Option<Pair>, &Vec<f32>)| {
        pair.unwrap_or_else(|| {
            let to = left.pop().unwrap_or(0);
            unrelated(sent.sample_rate, channel, &heard[to], usual, to)
        })
    };
    Ok(pairs.into_iter().zip(&sent.channels).map(pair).collect())
}

/// The alignment of the channel that is best known.
fn loudest(pairs: &[Option<Pair>]) -> Option<Alignment> {
    let energy = |pair: &&Pair| product(&pair.sent, &pair.sent);
    let loudest = pairs.iter().flatten().max_by(|a, b| energy(a).total_cmp(&energy(b)))?;
    Some(loudest.alignment)
}

/// Channels at the rates at which they are looked for.
struct Sought<'r> {
    sent: &'r Recording,
    heard: &'r [Cow<'r, [f32]>],
}

/// Where each sent channel is: the received channel, and roughly when.
type Matched = Vec<Option<(usize, Coarse)>>;

impl<'r> Sought<'r> {
    fn new(sent: &'r Recording, heard: &'r [Cow<'r, [f32]>]) -> Sought<'r> {
        Sought { sent, heard }
    }

    fn matched(&self) -> Matched {
        let mut matched: Matched = vec![None; self.sent.channels.len()];
        for rate in
            RATES.iter().filter(|rate| **rate == RATES[0] || **rate < 4.0 * f64::from(self.sent.sample_rate))
        {
            self.match_at(*rate, &mut matched);
            if (0..matched.len()).all(|n| matched[n].is_some() || is_silent(&self.sent.channels[n])) {
                break;
            }
        }
        matched
    }

    /// Finds channels that have not been found at a lower rate.
    fn match_at(&self, rate: f64, matched: &mut Matched) {
        let thin = |channel: &[f32]| {
            (!is_silent(channel)).then(|| Thin::new(channel, f64::from(self.sent.sample_rate), rate))
        };
        let open: Vec<usize> = (0..matched.len()).filter(|n| matched[*n].is_none()).collect();
        let taken = |matched: &Matched, to: usize| matched.iter().flatten().any(|(other, _)| *other == to);
        let sent: Vec<Option<Thin>> = self
            .sent
            .channels
            .iter()
            .enumerate()
            .map(|(n, channel)| thin(channel).filter(|_| open.contains(&n)))
            .collect();
        let heard: Vec<Option<Thin>> = self
            .heard
            .iter()
            .enumerate()
            .map(|(n, channel)| thin(channel).filter(|_| !taken(matched, n)))
            .collect();
        let find = |from: usize, to: usize| coarse::find(sent[from].as_ref()?, heard[to].as_ref()?);
        let is_last = rate.is_infinite();
        let least = if is_last { RELATED } else { PLAIN };
        // Most channels are where they were.
        let mut all: Vec<(f64, usize, usize, Coarse)> = Vec::new();
        for &n in &open {
            if let Some(coarse) = find(n, n) {
                match coarse.likeness >= SELF {
                    true => matched[n] = Some((n, coarse)),
                    false => all.push((coarse.likeness + 1e-6, n, n, coarse)),
                }
            }
        }
        for &from in open.iter().filter(|n| matched[**n].is_none()).collect::<Vec<_>>() {
            for to in (0..self.heard.len()).filter(|to| *to != from && !taken(matched, *to)) {
                all.extend(find(from, to).map(|coarse| (coarse.likeness, from, to, coarse)));
            }
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (likeness, from, to, coarse) in all {
            if likeness >= least && matched[from].is_none() && !taken(matched, to) {
                matched[from] = Some((to, coarse));
            }
        }
    }
}

fn is_silent(channel: &[f32]) -> bool {
    channel.iter().all(|sample| *sample == 0.0)
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

/// Follows one channel.
fn aligned(sample_rate: u32, sent: &[f32], heard: &[f32], coarse: &Coarse, channel: usize) -> Option<Pair> {
    let Decision { coarse, rival, gain } = decide(sample_rate, sent, heard, coarse);
    let track = track::follow(sample_rate, sent, heard, &coarse, gain)?;
    let compared = track.path.within(sent.len(), heard.len());
    if compared.is_empty() {
        return None;
    }
    let rate = f64::from(sample_rate);
    let Track { path, line, errors, knots, share } = track;
    let jumps = path.jumps();
    let wander = knots.iter().map(|knot| (knot.delay - line.delay_of(knot.at)).abs()).fold(0.0, f64::max);
    let alignment = Alignment {
        delay: path.delay(compared.start as f64) / rate,
        delay_error: errors.delay / rate,
        drift: line.drift * 1e6,
        drift_error: errors.drift * 1e6,
        wander: wander / rate,
        jumps: jumps.len() as u32,
        jump_time: jumps.iter().map(|(_, by)| by.abs()).sum::<f64>() / rate,
        compared: compared.len() as f64 / rate,
        likeness: coarse.likeness,
        doubt: None,
    };
    let is_exact = path.is_whole() && is_exact(sent, heard, &path);
    let alignment = match is_exact {
        true => Alignment { delay_error: 0.0, drift_error: 0.0, wander: 0.0, ..alignment },
        false => alignment,
    };
    let mut pair = pair(sample_rate, sent, heard, (&path, compared), alignment, channel);
    pair.identical = is_exact && pair.gain == 1.0 && pair.sent == pair.received;
    pair.alignment.doubt = match rival {
        _ if is_exact => None,
        Some(rival) => Some(Doubt::Periodic { later: rival.later / rate, flips: rival.flips }),
        None if share < FAINT || pair.unlike() > FAINT => Some(Doubt::Faint),
        None => None,
    };
    Some(pair)
}

/// Whether all that was sent has arrived without the least difference, and nothing else has: then the ends are certain too.
fn is_exact(sent: &[f32], heard: &[f32], path: &Path) -> bool {
    let moved = path.warp(heard, 0..sent.len() as i64);
    let (own, common) = (product(sent, sent), product(sent, &moved));
    let gain = common / own.max(f64::MIN_POSITIVE);
    let off: f64 =
        sent.iter().zip(&moved).map(|(s, r)| f64::from(*r) - gain * f64::from(*s)).map(|off| off * off).sum();
    let explained = gain * gain * own;
    let others = product(heard, heard) - product(&moved, &moved);
    off <= EXACT * explained && others.abs() <= EXACT * explained
}

/// Differences 100 dB below the sound are those of the numbers.
const EXACT: f64 = 1e-10;

/// A channel that is not found, when the others are.
fn unrelated(sample_rate: u32, sent: &[f32], heard: &[f32], usual: Alignment, channel: usize) -> Pair {
    let rate = f64::from(sample_rate);
    let line = Line { delay: usual.delay * rate, drift: usual.drift / 1e6 };
    let path = Path::Line(line);
    let compared = path.within(sent.len(), heard.len());
    let doubt = if is_silent(sent) { None } else { Some(Doubt::Unrelated) };
    let alignment = Alignment { likeness: 0.0, doubt, ..usual };
    pair(sample_rate, sent, heard, (&path, compared), alignment, channel)
}

fn pair(
    sample_rate: u32,
    sent: &[f32],
    heard: &[f32],
    (path, compared): (&Path, core::ops::Range<usize>),
    alignment: Alignment,
    channel: usize,
) -> Pair {
    let moved = path.warp(heard, compared.start as i64..compared.end as i64);
    let sent = &sent[compared];
    let gain = gain((sample_rate / 50).max(1) as usize, sent, &moved);
    let received = moved.iter().map(|sample| (f64::from(*sample) / gain) as f32).collect();
    Pair { channel, gain, alignment, sent: sent.to_vec(), received, identical: false }
}

/// How loud `heard` is against `sent`, as most of their windows say: gaps do not make a recording softer.
fn gain(window: usize, sent: &[f32], heard: &[f32]) -> f64 {
    let parts = || sent.chunks(window).zip(heard.chunks(window)).map(|(a, b)| (product(a, a), product(a, b)));
    let loudest = parts().map(|(energy, _)| energy).fold(0.0, f64::max);
    let gains =
        parts().filter(|(energy, _)| *energy > loudest * 1e-4).map(|(energy, common)| common / energy);
    median(gains.collect()).filter(|gain| gain.abs() > 1e-6).unwrap_or(1.0)
}
