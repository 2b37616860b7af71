//! Which of several nearly equal places is the right one, and whether that can be known at all.
//!
//! A string or a tone is alike at every period. So each place that may be meant is tried at the full sample rate, window by
//! window: by how much of each window it leaves unexplained. A gap or a concealment is unexplained everywhere and does not
//! count. Places that explain most windows as well as the best one are a doubt, even if the ends of the recording favour one.

use core::ops::Range;

use super::coarse::{Coarse, Line};
use super::path::{Knot, Path};
use super::product;
use super::search::{Energies, Search, margin};
use super::spectrum::Correlator;
use super::track::{Windows, median, theil_sen};

/// Most windows that are tried.
const WINDOWS: usize = 24;
/// A window is looked for so far from the line, in seconds.
const REACH: f64 = 0.001;
/// The number of other roughly found places that are tried.
const OTHERS: usize = 12;
/// The longest period of the sent audio that is tried, in seconds.
const LONGEST_PERIOD: f64 = 0.05;
/// Most periods that are tried.
const PERIODS: usize = 4;
/// The distance from a place with rivals all others are compared at the full rate, in seconds.
const AROUND: f64 = 1.0;
/// Length of the sent audio that is compared there, in seconds.
const SECTION: f64 = 1.0;
/// Most places around it that are tried.
const PEAKS: usize = 8;
/// A period is one if the audio is so much like itself after it.
const REPEATS: f64 = 0.7;
/// The number of rounds in which the periods around a better place are tried.
const ROUNDS: usize = 6;
/// A place is worse for certain if it leaves so much more unexplained: the logarithm of the ratio.
const WORSE: f64 = 0.15;
/// The number of standard errors by which it must be more.
const SURE: f64 = 4.0;
/// The logarithm of a ratio that is large in a single window.
const MUCH: f64 = 0.7;
/// And of one that is small.
const LITTLE: f64 = 0.2;
/// Fewest windows with such a ratio that count.
const SOME: usize = 3;
/// The ends of a recording, in seconds.
const ENDS: f64 = 10.0;
/// What is softer than this share of all that is around it is not compared: 60 dB.
const SILENT: f64 = 1e-6;
/// Places nearer than this are the same, in samples.
const SAME: f64 = 1.5;
/// A window this much alike says where the line is.
const ALIKE: f64 = 0.6;

/// Where a channel is, and the nearest other place that explains it as well.
pub(super) struct Decision {
    pub(super) coarse: Coarse,
    pub(super) rival: Option<Rival>,
    /// How much louder it is there, as a factor.
    pub(super) gain: f64,
}

/// Another place that explains a recording as well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rival {
    /// Its additional delay, in samples.
    pub(super) later: f64,
    /// True if its sign is the opposite.
    pub(super) flips: bool,
}

/// Decides between the places of `coarse`, and the periods around them.
pub(super) fn decide(
    sample_rate: u32,
    sent: &[f32],
    heard: &[f32],
    coarse: &Coarse,
    span: &Range<usize>,
) -> Decision {
    let trials = Trials::new(sample_rate, sent, heard, span);
    let mut tried = vec![trials.of(coarse.line, coarse.inverted)];
    let mut best = 0;
    for &(line, inverted) in coarse.others.iter().take(OTHERS) {
        trials.add(line, inverted, &mut tried, &mut best);
    }
    let periods = trials.periods();
    for _ in 0..ROUNDS {
        let (line, inverted, before) = (tried[best].line, tried[best].inverted, best);
        for &(period, flips) in &periods {
            for by in [period, -period] {
                let line = Line { delay: line.delay + by, ..line };
                trials.add(line, inverted != flips, &mut tried, &mut best);
            }
        }
        if best == before {
            break;
        }
    }
    let mut as_good = rivals_of(best, &tried);
    if !as_good.is_empty() {
        // Steps of one period do not reach a place at which several periods of an uneven sound nearly meet.
        for (line, inverted) in trials.peaks(tried[best].line) {
            trials.add(line, inverted, &mut tried, &mut best);
        }
        as_good = rivals_of(best, &tried);
    }
    let rivals = as_good.iter().map(|n| Rival {
        later: trials.middle(tried[*n].line) - trials.middle(tried[best].line),
        flips: tried[*n].inverted != tried[best].inverted,
    });
    let rival = rivals.min_by(|a, b| a.later.abs().total_cmp(&b.later.abs()));
    let decided = match rival {
        Some(rival) => trials.by_the_ends(as_good.iter().chain([&best]).map(|n| &tried[*n]), rival),
        None => (tried[best].line, tried[best].inverted),
    };
    let coarse = Coarse { line: decided.0, inverted: decided.1, ..coarse.clone() };
    Decision { coarse, rival, gain: tried[best].gain }
}

/// The places that explain the windows as well as the best one.
fn rivals_of(best: usize, tried: &[Trial]) -> Vec<usize> {
    (0..tried.len()).filter(|n| *n != best && is_rival(&tried[best], &tried[*n])).collect()
}

/// A place, and the logarithm of what each window leaves unexplained there.
#[derive(Clone, Debug)]
struct Trial {
    line: Line,
    inverted: bool,
    missed: Vec<f64>,
    /// The place of each window.
    delays: Vec<Option<f64>>,
    gain: f64,
}

struct Trials<'s> {
    sent: &'s [f32],
    /// The part of it that may have been received.
    span: Range<usize>,
    heard: &'s [f32],
    /// For the same sign and for the opposite.
    windows: [Windows<'s>; 2],
    reach: i64,
    longest: i64,
    around: usize,
    section: usize,
    ends: usize,
}

impl<'s> Trials<'s> {
    fn new(sample_rate: u32, sent: &'s [f32], heard: &'s [f32], span: &Range<usize>) -> Trials<'s> {
        let windows = [false, true].map(|inverted| {
            let mut windows = Windows::new(sample_rate, sent, span, inverted);
            // As many within the received audio, if that is a part.
            let within = windows.starts.len() as f64 * (heard.len() as f64 / span.len() as f64).min(1.0);
            let every = (libm::ceil(within) as usize).div_ceil(WINDOWS).max(1);
            windows.starts = windows.starts.iter().copied().step_by(every).collect();
            windows
        });
        let samples = |seconds: f64| (seconds * f64::from(sample_rate)) as i64;
        Trials {
            sent,
            span: span.clone(),
            heard,
            windows,
            reach: samples(REACH).max(4),
            longest: samples(LONGEST_PERIOD).max(8),
            around: samples(AROUND) as usize,
            section: samples(SECTION).max(1) as usize,
            ends: samples(ENDS) as usize,
        }
    }

    fn middle(&self, line: Line) -> f64 {
        line.delay_of(self.span.start as f64 + self.span.len() as f64 / 2.0)
    }

    /// Tries a place, unless it is one that was tried.
    fn add(&self, line: Line, inverted: bool, tried: &mut Vec<Trial>, best: &mut usize) {
        let is_same = |a: Line, b: Line| {
            let apart = |at: f64| (a.delay_of(at) - b.delay_of(at)).abs();
            apart(self.span.start as f64) < SAME && apart(self.span.end as f64) < SAME
        };
        if tried.iter().any(|other| other.inverted == inverted && is_same(other.line, line)) {
            return;
        }
        let trial = self.of(line, inverted);
        if tried.iter().any(|other| other.inverted == inverted && is_same(other.line, trial.line)) {
            return;
        }
        let (mean, _) = difference(&trial, &tried[*best]);
        tried.push(trial);
        if mean > 0.0 {
            *best = tried.len() - 1;
        }
    }

    /// Tries a place: the line is brought to where most windows near it are.
    fn of(&self, line: Line, inverted: bool) -> Trial {
        let (_, knots) = self.probe(line, inverted);
        let mut line = line;
        if knots.len() > 2 {
            line = theil_sen(&knots);
        }
        let (windows, _) = self.probe(line, inverted);
        let energies: Vec<Option<Energies>> =
            windows.iter().map(|window| window.map(|(_, energies)| energies)).collect();
        let gain = gain(&energies).max(f64::MIN_POSITIVE);
        let delays = windows.iter().map(|window| window.map(|(delay, _)| delay)).collect();
        Trial { line, inverted, missed: unexplained(&energies, gain), delays, gain }
    }

    fn probe(&self, line: Line, inverted: bool) -> (Vec<Option<(f64, Energies)>>, Vec<Knot>) {
        let windows = &self.windows[usize::from(inverted)];
        let (path, margin) = (Path::Line(line), margin(self.reach));
        let (mut all, mut knots) = (Vec::new(), Vec::new());
        for &start in &windows.starts {
            let at = windows.middle(start);
            let there = start as f64 + line.delay_of(at);
            if there < 0.0 || there + windows.length() as f64 > self.heard.len() as f64 {
                all.push(None);
                continue;
            }
            let span = start as i64 - margin..(start + windows.length()) as i64 + margin;
            let curve = windows.curve(start, &path.warp(self.heard, span), self.reach);
            let place = curve.near(self.reach);
            all.push(place.map(|place| (line.delay_of(at) + place.lag, curve.energies(place.lag))));
            knots.extend(
                place
                    .filter(|place| place.likeness >= ALIKE)
                    .map(|place| Knot { at, delay: line.delay_of(at) + place.lag }),
            );
        }
        (all, knots)
    }

    /// Of places that explain the windows equally well, the one that explains the ends of the recording best; or one so many
    /// steps of the rival from it.
    fn by_the_ends<'t>(&self, places: impl Iterator<Item = &'t Trial>, step: Rival) -> (Line, bool) {
        let explained = |(line, inverted): (Line, bool)| self.common(line, inverted);
        let places = places.map(|trial| (trial.line, trial.inverted));
        let places = places.map(|place| (explained(place), place));
        let Some((mut most, mut place)) = places.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return (Line { delay: 0.0, drift: 0.0 }, false);
        };
        let mut steps = 1i64;
        while steps != 0 {
            let moved = |by: i64| {
                let line: Line = Line { delay: place.0.delay + by as f64 * step.later, ..place.0 };
                (line, place.1 != (step.flips && by % 2 != 0))
            };
            let tried = [steps, -steps].map(|by| (explained(moved(by)), moved(by)));
            match tried.into_iter().find(|(explained, _)| *explained > most * (1.0 + 1e-9)) {
                Some(better) => {
                    (most, place) = better;
                    steps *= 2;
                }
                None => steps /= 2,
            }
        }
        place
    }

    /// How much of the first and the last seconds of the sent audio a place explains.
    fn common(&self, line: Line, inverted: bool) -> f64 {
        let Range { start, end } = self.span;
        let ends = self.ends.min(self.span.len());
        let sign = if inverted { -1.0 } else { 1.0 };
        let explained = |part: Range<usize>| {
            let warped = Path::Line(line).warp(self.heard, part.start as i64..part.end as i64);
            sign * product(&self.sent[part], &warped)
        };
        explained(start..start + ends) + explained((end - ends).max(start + ends)..end)
    }

    /// The places around a line where its loudest section is most alike at the full rate, the most alike first, with their
    /// signs.
    fn peaks(&self, around: Line) -> Vec<(Line, bool)> {
        let length = self.section.min(self.span.len());
        let energy = |start: &usize| {
            let section = &self.sent[*start..*start + length];
            product(section, section)
        };
        let starts = (self.span.start..=self.span.end - length).step_by((length / 2).max(1));
        let Some(start) = starts.max_by(|a, b| energy(a).total_cmp(&energy(b))) else { return Vec::new() };
        let reach = self.around as i64;
        let span = start as i64 - reach..(start + length) as i64 + reach;
        let there = Path::Line(around).warp(self.heard, span);
        let squares: Vec<f64> = core::iter::once(0.0)
            .chain(there.iter().scan(0.0, |sum, sample| {
                *sum += f64::from(*sample) * f64::from(*sample);
                Some(*sum)
            }))
            .collect();
        let loudest = squares.last().copied().unwrap_or(0.0);
        let mut correlator = Correlator::<f32>::new(length + there.len());
        let alike: Vec<f64> = correlator
            .correlate(&self.sent[start..start + length], &there)
            .filter(|(lag, _)| (0..=2 * reach).contains(lag))
            .map(|(lag, common)| {
                let own = squares[lag as usize + length] - squares[lag as usize];
                f64::from(common) / libm::sqrt(own.max(loudest * SILENT)).max(f64::MIN_POSITIVE)
            })
            .collect();
        let at = |n: usize| alike[n].abs();
        let is_peak = |n: &usize| at(*n) >= at(n - 1) && at(*n) >= at(n + 1);
        let mut peaks: Vec<usize> = (1..alike.len().saturating_sub(1)).filter(is_peak).collect();
        peaks.sort_by(|a, b| at(*b).total_cmp(&at(*a)));
        peaks.truncate(PEAKS);
        let place = |n: usize| Line { delay: around.delay + (n as i64 - reach) as f64, ..around };
        peaks.into_iter().map(|n| (place(n), alike[n] < 0.0)).collect()
    }

    /// After how many samples the sent audio is like itself, the most alike first, and whether with the opposite sign.
    fn periods(&self) -> Vec<(f64, bool)> {
        let windows = &self.windows[0];
        let mut search = Search::new(windows, self.sent, self.longest);
        let mut mean = vec![0.0; 2 * self.longest as usize + 1];
        let mut count = 0;
        for curve in windows.starts.iter().filter_map(|start| search.curve(*start, *start as i64, 0)) {
            count += 1;
            mean.iter_mut().enumerate().for_each(|(n, mean)| *mean += curve.whole(n));
        }
        let middle = self.longest as usize;
        let at = |lag: usize| mean.get(middle + lag).copied().unwrap_or(0.0) / f64::from(count.max(1));
        // What is near belongs to the peak in the middle.
        let valley = (1..middle).find(|lag| at(*lag) < REPEATS.min(at(lag + 1))).unwrap_or(middle);
        let is_peak = |lag: &usize| {
            let here = at(*lag).abs();
            here >= REPEATS && here >= at(lag - 1).abs() && here >= at(lag + 1).abs()
        };
        let mut periods: Vec<usize> = (valley.max(2)..middle).filter(is_peak).collect();
        // Of nearly equal ones the shortest: the others are multiples of it.
        periods.sort_by_key(|lag| (-libm::floor(at(*lag).abs() * 50.0 + 0.5) as i64, *lag));
        periods.truncate(PERIODS);
        periods.into_iter().map(|lag| (lag as f64, at(lag) < 0.0)).collect()
    }
}

/// The gain of most windows that are about as much alike as the most alike: the others say nothing of it where the
/// delay jumps, or where something is missing.
fn gain(energies: &[Option<Energies>]) -> f64 {
    let alike =
        |energies: &Energies| energies.common.max(0.0) * energies.common / energies.own / energies.heard;
    let most = energies.iter().flatten().map(alike).fold(0.0, f64::max);
    let kept = energies.iter().flatten().filter(|energies| alike(energies) >= most / 2.0);
    median(kept.map(|energies| energies.common / energies.own).collect()).unwrap_or(0.0)
}

/// The logarithm of the share of each window that is not explained, all being as much louder as most are: a place where the
/// sound is alike, but louder than elsewhere, is not the right one.
fn unexplained(windows: &[Option<Energies>], gain: f64) -> Vec<f64> {
    let share = |energies: &Energies| libm::log(energies.missed(gain).min(1.0));
    windows.iter().map(|energies| energies.as_ref().map_or(0.0, share)).collect()
}

/// The differences between what `b` and `a` leave unexplained of each window that lies within the received audio at either.
fn differences(a: &Trial, b: &Trial) -> Vec<f64> {
    let is_there = |n: &usize| a.delays[*n].is_some() || b.delays[*n].is_some();
    (0..a.missed.len()).filter(is_there).map(|n| b.missed[n] - a.missed[n]).collect()
}

/// By how much more `b` leaves unexplained than `a`, and the standard error of that.
fn difference(a: &Trial, b: &Trial) -> (f64, f64) {
    let each = differences(a, b);
    let count = each.len().max(1) as f64;
    let mean = each.iter().sum::<f64>() / count;
    let square = each.iter().map(|each| (each - mean) * (each - mean)).sum::<f64>();
    (mean, libm::sqrt(square / count / (count - 1.0).max(1.0)))
}

/// True if `b` finds the windows elsewhere than `a`, and explains them as well.
fn is_rival(a: &Trial, b: &Trial) -> bool {
    let apart = a.delays.iter().zip(&b.delays).filter_map(|(a, b)| Some((a.as_ref()? - b.as_ref()?).abs()));
    let is_other = a.inverted != b.inverted || median(apart.collect()).is_some_and(|apart| apart > SAME);
    is_other && !is_worse(a, b)
}

/// True if `b` is worse than `a` for certain: a little in most windows, or much in
/// some and much better in hardly any, or much in most.
fn is_worse(a: &Trial, b: &Trial) -> bool {
    let (mean, error) = difference(a, b);
    let each = differences(a, b);
    let worse = each.iter().filter(|each| **each > MUCH).count();
    let sum = |sign: f64| each.iter().map(|each| (sign * each).max(0.0)).sum::<f64>();
    let in_some = worse >= SOME.max(each.len() / 8) && sum(1.0) >= 4.0 * sum(-1.0);
    let usual = median(each).unwrap_or(0.0);
    // Where it jumps, either place explains its part, and only that.
    let by_a = (0..a.missed.len()).filter(|n| a.missed[*n] < -MUCH);
    let by_a: Vec<f64> = by_a.map(|n| b.missed[n]).collect();
    let is_elsewhere = usual > MUCH || by_a.len() >= SOME && median(by_a).unwrap_or(0.0) > -LITTLE;
    is_elsewhere || mean >= WORSE && (in_some || mean >= SURE * error && usual >= WORSE / 2.0)
}
