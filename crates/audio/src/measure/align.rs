//! Brings each channel of a received recording back to the time and the level of the sent one that it is.

use core::ops::Range;
use std::borrow::Cow;

use super::coarse::{self, AUDIBLE, Coarse, Line, PLAIN, Thin};
use super::decide::{Decision, Rival, decide};
use super::excerpt::Excerpt;
use super::interpolate::Interpolator;
use super::path::Path;
use super::timbre;
use super::track::{self, Track, median};
use super::{Alignment, CompareError, Doubt, Jump, Recording, events, product};

/// A channel as it was sent, and as it was received at the same time and level.
pub(super) struct Pair {
    pub(super) channel: usize,
    pub(super) gain: f64,
    pub(super) alignment: Alignment,
    pub(super) jumps: Vec<Jump>,
    pub(super) sent: Vec<f32>,
    pub(super) received: Vec<f32>,
    pub(super) identical: bool,
}

impl Pair {
    /// Takes off the end in which nothing was received; returns its length in seconds.
    pub(super) fn cut_silent_end(&mut self, sample_rate: u32) -> f64 {
        let end = events::end(sample_rate, &self.sent, &self.received);
        let cut = (self.sent.len() - end) as f64 / f64::from(sample_rate);
        self.sent.truncate(end);
        self.received.truncate(end);
        self.alignment.compared -= cut;
        cut
    }

    /// The share of the energy that is not what was sent, where something was received.
    fn unlike(&self, sample_rate: u32) -> f64 {
        let window = (sample_rate / 50).max(1) as usize;
        let parts = self.sent.chunks(window).zip(self.received.chunks(window));
        let energies = parts.map(|(s, r)| [product(s, s), product(s, r), product(r, r)]);
        let heard = energies.filter(|[own, _, heard]| *heard > own * AUDIBLE);
        let [own, common, heard] =
            heard.fold([0.0; 3], |sum, part| core::array::from_fn(|n| sum[n] + part[n]));
        1.0 - common * common / (own * heard).max(f64::MIN_POSITIVE)
    }
}

/// Sample rates at which the delay is looked for: the lower, the faster. The next is tried if nothing is found.
const RATES: [f64; 3] = [4_000.0, 16_000.0, f64::INFINITY];

/// Less alike than this is chance.
const RELATED: f64 = 0.25;

/// Less alike than this is chance for what has the same spectrum.
const MATCHED: f64 = 0.6;

/// Places nearer than this are the same, in samples.
const SAME_PLACE: f64 = 2.0;

/// A channel is taken to be where it was if it is so much alike there.
const SELF: f64 = 0.9;

/// The share of the windows, or of the energy, of which the half must be what was sent.
const FAINT: f64 = 0.5;

/// An inversion changes less of the energy than this. What resonates looks inverted half a period beside its place.
const TURNED: f64 = 0.1;

/// Aligns all channels, each for itself.
pub(super) fn align(sent: &Recording, received: &Recording) -> Result<Vec<Pair>, CompareError> {
    let step = f64::from(received.sample_rate) / f64::from(sent.sample_rate);
    let heard: Vec<Cow<'_, [f32]>> = received.channels.iter().map(|channel| at_rate(channel, step)).collect();
    let sought = Sought::new(sent, &heard);
    let matched = sought.matched();
    let mut pairs: Vec<Option<Pair>> = Vec::with_capacity(matched.len());
    for (channel, matched) in sent.channels.iter().zip(&matched) {
        let aligned = matched
            .as_ref()
            .and_then(|(to, coarse)| aligned(sent.sample_rate, channel, &heard[*to], coarse, *to));
        pairs.push(aligned);
    }
    for n in 0..pairs.len() {
        if pairs[n].is_none() && !is_silent(&sent.channels[n]) {
            pairs[n] = sought.by_timbre(n, &pairs);
        }
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
        let is_lower = |rate: &&f64| **rate == RATES[0] || **rate < 4.0 * f64::from(self.sent.sample_rate);
        for rate in RATES.iter().filter(|rate| is_lower(rate) || rate.is_infinite()) {
            self.match_at(*rate, &mut matched);
            if (0..matched.len()).all(|n| matched[n].is_some() || is_silent(&self.sent.channels[n])) {
                break;
            }
        }
        matched
    }

    /// Finds a channel that is not found as it was sent, by what of it has passed through a narrow band.
    fn by_timbre(&self, from: usize, pairs: &[Option<Pair>]) -> Option<Pair> {
        let (sample_rate, sent) = (self.sent.sample_rate, &self.sent.channels[from]);
        let is_free = |to: &usize| !pairs.iter().flatten().any(|pair| pair.channel == *to);
        let order = core::iter::once(from).chain((0..self.heard.len()).filter(|to| *to != from));
        order.filter(|to| *to < self.heard.len() && is_free(to) && !is_silent(&self.heard[*to])).find_map(
            |to| {
                let (heard, matched) = (&self.heard[to], timbre::matched(sample_rate, sent, &self.heard[to]));
                let coarse = RATES.iter().find_map(|rate| {
                    let thin = |channel: &[f32]| Thin::new(channel, f64::from(sample_rate), *rate);
                    coarse::find(&thin(&matched), &thin(heard)).filter(|coarse| coarse.likeness >= MATCHED)
                })?;
                by_what_is_left(sample_rate, (sent, &matched), heard, &coarse, to)
            },
        )
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
    let followed = Followed::new(sample_rate, sent, heard, coarse)?;
    let excerpt = Excerpt::at(sent, heard, followed.middle());
    let followed = match &excerpt {
        Some(excerpt) => Followed { track: followed.track.exactly(excerpt.line()), ..followed },
        None => followed,
    };
    let mut pair = followed.pair(sample_rate, sent, heard, channel);
    pair.identical = excerpt.is_some() && pair.gain == 1.0 && pair.sent == pair.received;
    let rate = f64::from(sample_rate);
    let most = if followed.track.inverted { TURNED } else { FAINT };
    let is_faint = followed.track.share < FAINT || pair.unlike(sample_rate) > most;
    pair.alignment.doubt = match &excerpt {
        // The ends are certain too.
        Some(excerpt) if excerpt.is_whole(sent) => None,
        Some(excerpt) if excerpt.is_unchanged => excerpt
            .other(sent, heard)
            .map(|later| Doubt::Periodic { later: later as f64 / rate, flips: false }),
        _ => followed.doubt(sample_rate, sent, heard).or(is_faint.then_some(Doubt::Faint)),
    };
    Some(pair)
}

/// Follows one channel by what of it has passed through a narrow band: `matched` is that. Filters may move what they let through, so
/// the delay is doubted.
fn by_what_is_left(
    sample_rate: u32,
    (sent, matched): (&[f32], &[f32]),
    heard: &[f32],
    coarse: &Coarse,
    channel: usize,
) -> Option<Pair> {
    let followed = Followed::new(sample_rate, matched, heard, coarse)?;
    let left = followed.pair(sample_rate, matched, heard, channel);
    if followed.track.share < FAINT || left.unlike(sample_rate) > FAINT {
        return None;
    }
    let mut pair = followed.pair(sample_rate, sent, heard, channel);
    pair.alignment.doubt = followed.periodic(sample_rate).or(Some(Doubt::Faint));
    Some(pair)
}

/// A channel whose delay is known at each sample.
struct Followed {
    track: Track,
    rival: Option<Rival>,
    /// Other places, with their signs.
    others: Vec<(Line, bool)>,
    likeness: f64,
    compared: Range<usize>,
}

impl Followed {
    fn new(sample_rate: u32, sent: &[f32], heard: &[f32], coarse: &Coarse) -> Option<Followed> {
        let lines = coarse.others.iter().map(|(line, _)| *line).chain([coarse.line]);
        let span = track::span(sample_rate, lines, sent.len(), heard.len());
        let Decision { coarse, rival, gain } = decide(sample_rate, sent, heard, coarse, &span);
        let track = track::follow(sample_rate, sent, heard, &coarse, &span, gain)?;
        let compared = track.path.within(sent.len(), heard.len());
        let Coarse { likeness, others, .. } = coarse;
        (!compared.is_empty()).then_some(Followed { track, rival, others, likeness, compared })
    }

    /// The delay in the middle of what is compared, in samples.
    fn middle(&self) -> f64 {
        self.track.path.delay(self.middle_of_sent())
    }

    /// Another delay that fits nearly as well.
    fn periodic(&self, sample_rate: u32) -> Option<Doubt> {
        let Rival { later, flips } = self.rival?;
        Some(Doubt::Periodic { later: later / f64::from(sample_rate), flips })
    }

    /// Such a delay, unless it fits because the received sound lacks a part of the spectrum: without that it fits no more.
    fn doubt(&self, sample_rate: u32, sent: &[f32], heard: &[f32]) -> Option<Doubt> {
        let (doubt, rival) = (self.periodic(sample_rate)?, self.rival?);
        let matched = timbre::matched(sample_rate, sent, heard);
        let Track { line, inverted, .. } = self.track;
        let other = (Line { delay: line.delay + rival.later, ..line }, inverted != rival.flips);
        let others = core::iter::once(other).chain(self.others.iter().copied()).collect();
        let coarse = Coarse { line, inverted, likeness: self.likeness, others };
        let lines = coarse.others.iter().map(|(line, _)| *line).chain([line]);
        let span = track::span(sample_rate, lines, sent.len(), heard.len());
        let decision = decide(sample_rate, &matched, heard, &coarse, &span);
        let apart =
            decision.coarse.line.delay_of(self.middle_of_sent()) - line.delay_of(self.middle_of_sent());
        let is_same = apart.abs() < SAME_PLACE && decision.coarse.inverted == inverted;
        (decision.rival.is_some() || !is_same).then_some(doubt)
    }

    fn middle_of_sent(&self) -> f64 {
        (self.compared.start + self.compared.len() / 2) as f64
    }

    fn pair(&self, sample_rate: u32, sent: &[f32], heard: &[f32], channel: usize) -> Pair {
        let rate = f64::from(sample_rate);
        let Track { path, line, errors, knots, .. } = &self.track;
        let compared = path.within(sent.len(), heard.len());
        let begin = compared.start as f64;
        let delay = path.delay(begin);
        // The line of the drift, through the delay that is told.
        let expected = |at: f64| delay + line.delay_of(at) - line.delay_of(begin);
        let wander = knots.iter().map(|knot| (knot.delay - expected(knot.at)).abs()).fold(0.0, f64::max);
        let alignment = Alignment {
            delay: delay / rate,
            delay_error: errors.delay / rate,
            drift: line.drift * 1e6,
            drift_error: errors.drift * 1e6,
            wander: wander / rate,
            compared: compared.len() as f64 / rate,
            likeness: self.likeness,
            doubt: None,
        };
        pair(sample_rate, sent, heard, (path, compared), alignment, channel)
    }
}

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
    let rate = f64::from(sample_rate);
    let jumps = path.jumps().into_iter().map(|(at, by)| Jump { at: at / rate, by: by / rate }).collect();
    Pair { channel, gain, alignment, jumps, sent: sent.to_vec(), received, identical: false }
}

/// How loud `heard` is against `sent`, as most of their windows say: gaps do not make a recording softer.
fn gain(window: usize, sent: &[f32], heard: &[f32]) -> f64 {
    let parts = || sent.chunks(window).zip(heard.chunks(window));
    let energies = parts().map(|(a, b)| [product(a, a), product(b, b)]);
    let loudest = energies.fold([0.0; 2], |most, here| core::array::from_fn(|n| f64::max(most[n], here[n])));
    let is_audible = |(a, b): &(&[f32], &[f32])| {
        product(a, a) > loudest[0] * AUDIBLE && product(b, b) > loudest[1] * AUDIBLE
    };
    let gains = parts().filter(is_audible).map(|(a, b)| product(a, b) / product(a, a));
    median(gains.collect()).filter(|gain| gain.abs() > 1e-6).unwrap_or(1.0)
}
