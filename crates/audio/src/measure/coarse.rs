//! Roughly where the sent audio is in the received one, and whether it could as well be elsewhere.
//!
//! Short windows of the sent audio are looked for in the received one, by their normalised correlation: so a window that
//! decays is not found where the sound is louder. Each has several places where it may be. A line through them says where
//! the whole is, and how fast the clocks run apart; whatever has no place on it does not count. Of lines that explain the
//! windows equally well, as those of a tone do, the one counts on which the recordings as a whole are most alike.

use super::interpolate::Interpolator;
use super::product;
use super::spectrum::Correlator;

/// How far the delay is looked for either way, in seconds.
const FARTHEST: f64 = 43.0;
/// A window, in seconds.
const WINDOW: f64 = 0.25;
/// Most windows that are looked for.
const WINDOWS: usize = 12;
/// Most places of a window.
const PLACES: usize = 8;
/// A place is worth a look if the window is so much as likely there as where it is most likely.
const WORTH: f64 = 0.5;
/// Places that are nearer to each other than this are one, in seconds.
const APART: f64 = 0.001;
/// A place is on a line that is not further away than this, in seconds.
const NEAR: f64 = 0.0005;
/// The fastest clock: 2000 ppm.
const FASTEST: f64 = 2e-3;
/// Lines that explain windows so much worse than the best are worth a look at the whole.
const AS_GOOD: f64 = 0.03;
/// So many of them.
const LINES: usize = 48;
/// Most lines that explain some windows best.
const RANKED: usize = 6;
/// What is not alike by less than this share of the energy is an exact match at a lower rate.
const EXACT: f64 = 0.005;
/// So many lags of the recordings as a whole are looked at.
const LAGS: usize = 24;
/// Lines that are less alike by so much may still be the best at the full rate: what lies between samples is softened.
const SOFTENED: f64 = 0.1;
/// Less alike than this is looked at once more: at a higher rate, and as a part.
pub(super) const PLAIN: f64 = 0.5;
/// A part is believed if its windows are so much alike; if there are few of them, which may be alike by chance, more.
const PART_ALIKE: f64 = 0.6;
const FEW_ALIKE: f64 = 0.85;
/// Fewer windows than this are few.
const FEW: usize = 3;
/// Windows softer than this share of the loudest are passed over: 40 dB.
pub(super) const AUDIBLE: f64 = 1e-4;
/// What is softer than this share of the loudest is not found: 60 dB.
const FLOOR: f64 = 1e-6;

/// What a sample of the sent audio is in the received: `delay + drift * n` samples later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) delay: f64,
    pub(super) drift: f64,
}

impl Line {
    pub(super) fn delay_of(self, n: f64) -> f64 {
        self.delay + self.drift * n
    }

    /// The line of samples that are counted from an earlier one.
    fn counted_from(self, first: f64) -> Line {
        Line { delay: self.delay - first - self.drift * first, ..self }
    }

    /// The line from what is found back to what was sought.
    fn reversed(self) -> Line {
        let stretch = 1.0 + self.drift;
        Line { delay: -self.delay / stretch, drift: -self.drift / stretch }
    }
}

/// Where the sent audio roughly is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Coarse {
    pub(super) line: Line,
    /// Whether its sign is the opposite.
    pub(super) inverted: bool,
    /// How alike the windows are on the line, from 0 to 1.
    pub(super) likeness: f64,
    /// Other lines that are nearly as good at this rate, with their signs: which is best is seen at the full rate.
    pub(super) others: Vec<(Line, bool)>,
}

impl Coarse {
    /// The same place, if the sent audio begins so many samples earlier than it is known to.
    fn counted_from(self, first: f64) -> Coarse {
        let others =
            self.others.into_iter().map(|(line, inverted)| (line.counted_from(first), inverted)).collect();
        Coarse { line: self.line.counted_from(first), others, ..self }
    }

    /// The place of the received audio in the sent, if this is that of the sent in the received; or the reverse.
    fn reversed(self) -> Coarse {
        let others = self.others.into_iter().map(|(line, inverted)| (line.reversed(), inverted)).collect();
        Coarse { line: self.line.reversed(), others, ..self }
    }
}

/// A channel at a lower sample rate.
pub(super) struct Thin {
    samples: Vec<f32>,
    /// Samples of the channel for one of these.
    step: f64,
    rate: f64,
}

impl Thin {
    /// About so many samples per second, or all there are.
    pub(super) fn new(channel: &[f32], sample_rate: f64, rate: f64) -> Thin {
        let step = (sample_rate / rate).max(1.0);
        let interpolator = Interpolator::new(step);
        let count = (channel.len() as f64 / step) as usize;
        let samples = (0..count).map(|n| interpolator.at(channel, n as f64 * step)).collect();
        Thin { samples, step, rate: sample_rate / step }
    }

    /// Without silence at its ends, and the number of samples that this leaves out before it.
    fn without_silence(&self) -> (Thin, usize) {
        let loudest = self.samples.iter().fold(0.0f32, |most, sample| most.max(sample.abs()));
        let is_sound = |sample: &f32| {
            f64::from(*sample) * f64::from(*sample) > f64::from(loudest) * f64::from(loudest) * FLOOR
        };
        let first = self.samples.iter().position(is_sound).unwrap_or(0);
        let end = self.samples.iter().rposition(is_sound).map_or(0, |last| last + 1);
        (Thin { samples: self.samples[first..end.max(first)].to_vec(), ..*self }, first)
    }
}

/// A place where a window may be.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// How much later than it was sent, in samples.
    lag: f64,
    /// How alike, from -1 to 1.
    likeness: f64,
}

/// A window and its places.
struct Sought {
    middle: f64,
    places: Vec<Place>,
}

/// A line, and how well it explains the windows, from 0 to 1; less than 0 if the sign is opposite.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    line: Line,
    score: f64,
    /// How well it explains them if an exact match counts for more than several fair ones.
    rank: f64,
}

/// Finds `sent` in `received`, or the reverse: what was received may be a part of what was sent, in which most windows of the
/// latter have no place. Both have the same rate.
pub(super) fn find(sent: &Thin, received: &Thin) -> Option<Coarse> {
    let whole = find_windows(sent, received, false).map(|(coarse, _)| coarse);
    if whole.as_ref().is_some_and(|coarse| coarse.likeness >= PLAIN) {
        return whole;
    }
    let is_there = |(coarse, windows): &(Coarse, usize)| {
        coarse.likeness >= if *windows < FEW { FEW_ALIKE } else { PART_ALIKE }
    };
    let (part, first) = received.without_silence();
    let part = find_windows(&part, sent, true).filter(is_there);
    let part = part.map(|(coarse, _)| coarse.counted_from(first as f64 * sent.step).reversed());
    match (whole, part) {
        (Some(whole), Some(part)) if whole.likeness >= part.likeness => Some(whole),
        (whole, part) => part.or(whole),
    }
}

/// Finds windows of `sent` in `received`, and says how many there are. `is_part`: of which there may be more, and louder.
fn find_windows(sent: &Thin, received: &Thin, is_part: bool) -> Option<(Coarse, usize)> {
    let lags = whole(sent, received, is_part);
    let sought = seek(sent, received, *lags.first()?);
    let mut candidates = candidates(&sought, sent.rate);
    let best = candidates.first()?.score.abs();
    let refined = |candidate: Candidate| refined(sent, received, candidate, is_part);
    let ranked = ranked(sent, &candidates, refined);
    let plain = lags.iter().map(|lag| Line { delay: *lag as f64, drift: 0.0 });
    let plain = plain.map(|line| Candidate::new(&sought, line, NEAR * sent.rate));
    candidates.splice(0..0, plain);
    let mut looked: Vec<(f64, Candidate)> = Vec::new();
    // The best lag of the whole is always looked at: it may explain fewer windows, but the louder ones.
    let is_good =
        |(n, candidate): &(usize, &Candidate)| *n == 0 || candidate.score.abs() >= best * (1.0 - AS_GOOD);
    for (_, candidate) in candidates.iter().enumerate().filter(is_good) {
        let is_other = |(_, known): &(f64, Candidate)| is_other(sent, known.line, candidate.line);
        if looked.len() < LINES && looked.iter().all(is_other) {
            looked.push(refined(*candidate));
        }
    }
    looked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (likeness, Candidate { line, score, .. }) = *looked.first()?;
    let coarse = Coarse {
        line: scaled(line, sent.step),
        inverted: score < 0.0,
        likeness: best.max(score.abs()),
        others: ranked
            .iter()
            .chain(looked[1..].iter().filter(|(other, _)| *other >= likeness * (1.0 - SOFTENED)))
            .map(|(_, other)| (scaled(other.line, sent.step), other.score < 0.0))
            .collect(),
    };
    Some((coarse, sought.len()))
}

/// The lines that explain some windows best, each at the place near it where the whole is most alike.
fn ranked(
    sent: &Thin,
    candidates: &[Candidate],
    refined: impl Fn(Candidate) -> (f64, Candidate),
) -> Vec<(f64, Candidate)> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.sort_by(|a, b| b.rank.total_cmp(&a.rank).then(a.line.drift.abs().total_cmp(&b.line.drift.abs())));
    let mut ranked: Vec<(f64, Candidate)> = Vec::new();
    for candidate in sorted {
        if ranked.len() >= RANKED {
            break;
        }
        if ranked.iter().all(|(_, known)| is_other(sent, known.line, candidate.line)) {
            ranked.push(refined(*candidate));
        }
    }
    ranked
}

fn scaled(line: Line, step: f64) -> Line {
    Line { delay: line.delay * step, drift: line.drift }
}

/// Whether two lines are further apart than a place is broad, in the middle or at the end.
fn is_other(sent: &Thin, a: Line, b: Line) -> bool {
    let apart = |at: f64| (a.delay_of(at) - b.delay_of(at)).abs() > APART * sent.rate / 2.0;
    let length = sent.samples.len() as f64;
    apart(length / 2.0) || apart(length)
}

/// The lags at which the recordings as a whole are most alike, the best first: by the heights of the peaks between samples. A part is
/// not where the sound is alike, but louder.
fn whole(sent: &Thin, received: &Thin, is_part: bool) -> Vec<i64> {
    let farthest = (FARTHEST * sent.rate) as usize;
    let loudest = sent.samples.iter().fold(0.0f32, |most, sample| most.max(sample.abs()));
    let Some(first) = sent.samples.iter().position(|sample| sample.abs() > loudest / 100.0) else {
        return Vec::new();
    };
    let section = &sent.samples[first..sent.samples.len().min(first + 2 * farthest)];
    let begin = first.saturating_sub(farthest).min(received.samples.len());
    let end = received.samples.len().min(first + section.len() + farthest);
    let searched = &received.samples[begin..end];
    let mut correlator = Correlator::<f32>::new(section.len() + searched.len());
    let (from, mut values): (Vec<i64>, Vec<f64>) =
        correlator.correlate(section, searched).map(|(lag, value)| (lag, f64::from(value).abs())).unzip();
    if is_part {
        let squares = running_squares(searched);
        let last = squares.len() as i64 - 1;
        let until = |n: i64| squares[n.clamp(0, last) as usize];
        for (lag, value) in from.iter().zip(&mut values) {
            let there = until(lag + section.len() as i64) - until(*lag);
            *value /= libm::sqrt(there.max(until(last) * FLOOR)).max(f64::MIN_POSITIVE);
        }
    }
    let height = |n: usize| {
        let off = vertex(&values, n);
        values[n] - (values[n - 1] - values[n + 1]) * off / 4.0
    };
    let is_peak = |n: &usize| values[*n] > 0.0 && values[*n] >= values[n - 1] && values[*n] >= values[n + 1];
    let mut peaks: Vec<(f64, i64)> = (1..values.len().saturating_sub(1))
        .filter(is_peak)
        .map(|n| (height(n), from[n] + begin as i64 - first as i64))
        .collect();
    peaks.sort_by(|a, b| b.0.total_cmp(&a.0));
    peaks.truncate(LAGS);
    peaks.into_iter().map(|(_, lag)| lag).collect()
}

/// The energy of all samples before each, and of all.
fn running_squares(samples: &[f32]) -> Vec<f64> {
    let sums = samples.iter().scan(0.0, |sum, sample| {
        *sum += f64::from(*sample) * f64::from(*sample);
        Some(*sum)
    });
    core::iter::once(0.0).chain(sums).collect()
}

/// Looks for windows of the sent audio, spread over all of it; at least at one lag that is given.
fn seek(sent: &Thin, received: &Thin, whole: i64) -> Vec<Sought> {
    let length = ((WINDOW * sent.rate) as usize).min(sent.samples.len()).min(received.samples.len()).max(1);
    let starts: Vec<usize> = (0..=sent.samples.len() - length).step_by((length / 2).max(1)).collect();
    let energy =
        |start: usize| product(&sent.samples[start..start + length], &sent.samples[start..start + length]);
    let energies: Vec<f64> = starts.iter().map(|start| energy(*start)).collect();
    let loudest = energies.iter().copied().fold(0.0, f64::max);
    let stretch = starts.len().div_ceil(WINDOWS);
    let squares = running_squares(&received.samples);
    let heard = |at: usize| squares[at + length] - squares[at];
    let most_heard = (0..=received.samples.len() - length).map(heard).fold(0.0, f64::max);
    let farthest = (FARTHEST * sent.rate) as usize;
    let reach = length + 2 * farthest.min(received.samples.len());
    let mut correlator = Correlator::<f32>::new(2 * length + reach.min(received.samples.len()));
    let mut sought = Vec::new();
    for (starts, energies) in starts.chunks(stretch).zip(energies.chunks(stretch)) {
        let loudest_here = energies.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let Some((start, own)) = loudest_here.map(|(n, energy)| (starts[n], *energy)) else { continue };
        if own <= loudest * AUDIBLE {
            continue;
        }
        let begin = start.saturating_sub(farthest).min(received.samples.len() - length);
        let end = received.samples.len().min(start + length + farthest).max(begin + length);
        let searched = &received.samples[begin..end];
        let scale = correlator.scale();
        let window = &sent.samples[start..start + length];
        let values: Vec<f64> = correlator
            .correlate(window, searched)
            .filter(|(lag, _)| (0..=(searched.len() - length) as i64).contains(lag))
            .map(|(lag, value)| {
                let there = heard(begin + lag as usize).max(most_heard * FLOOR);
                f64::from(value) * scale / libm::sqrt(own * there)
            })
            .collect();
        let offset = begin as i64 - start as i64;
        let places = places(&values, (APART * sent.rate) as usize, whole - offset, -offset);
        let places = places.into_iter().map(|place| Place { lag: place.lag + offset as f64, ..place });
        sought.push(Sought { middle: (start + length / 2) as f64, places: places.collect() });
    }
    sought
}

/// The highest peaks, those of a window that begins later or earlier by so much or by nothing, and no two within `apart`.
fn places(values: &[f64], apart: usize, whole: i64, none: i64) -> Vec<Place> {
    let best = values.iter().fold(0.0, |best: f64, value| best.max(value.abs()));
    let at = |n: usize| values.get(n).map_or(0.0, |value: &f64| value.abs());
    let mut peaks: Vec<usize> = (0..values.len())
        .filter(|&n| at(n) >= WORTH * best && at(n) >= at(n.wrapping_sub(1)) && at(n) >= at(n + 1))
        .collect();
    let near = |lag: i64| peaks.iter().copied().min_by_key(|peak| (*peak as i64 - lag).unsigned_abs());
    let known: Vec<usize> = near(whole).into_iter().collect();
    // Of those that are nearly equal, the nearest to that lag or to none: a tone has them everywhere.
    let rank = |n: usize| libm::floor(20.0 * at(n) / best.max(f64::MIN_POSITIVE)) as i64;
    let nearest = |n: usize| {
        let lag = n as i64;
        (lag - whole).unsigned_abs().min((lag - none).unsigned_abs())
    };
    peaks.sort_by_key(|n| (-rank(*n), nearest(*n)));
    let mut kept: Vec<usize> = known;
    for peak in peaks {
        if kept.len() >= PLACES {
            break;
        }
        if kept.iter().all(|other| peak.abs_diff(*other) > apart) {
            kept.push(peak);
        }
    }
    let place = |n: usize| Place { lag: n as f64 + vertex(values, n), likeness: values[n] };
    kept.into_iter().map(place).collect()
}

/// Lines through the places, the best first.
fn candidates(sought: &[Sought], rate: f64) -> Vec<Candidate> {
    let mut lines: Vec<Line> = Vec::new();
    for (n, a) in sought.iter().enumerate() {
        lines.extend(a.places.iter().map(|place| Line { delay: place.lag, drift: 0.0 }));
        for b in &sought[n + 1..] {
            for (from, to) in a.places.iter().flat_map(|from| b.places.iter().map(move |to| (from, to))) {
                let drift = (to.lag - from.lag) / (b.middle - a.middle);
                if drift.abs() <= FASTEST && from.likeness * to.likeness > 0.0 {
                    lines.push(Line { delay: from.lag - drift * a.middle, drift });
                }
            }
        }
    }
    let mut candidates: Vec<Candidate> =
        lines.into_iter().map(|line| Candidate::new(sought, line, NEAR * rate)).collect();
    // Of equals, the one that drifts least.
    candidates.sort_by(|a, b| {
        b.score.abs().total_cmp(&a.score.abs()).then(a.line.drift.abs().total_cmp(&b.line.drift.abs()))
    });
    candidates
}

impl Candidate {
    fn new(sought: &[Sought], line: Line, near: f64) -> Candidate {
        let (score, rank) = score(sought, line, near);
        Candidate { line, score, rank }
    }
}

/// How alike the windows are on a line, on the average, less than 0 if the sign is opposite; and its rank.
fn score(sought: &[Sought], line: Line, near: f64) -> (f64, f64) {
    let on_line = |sign: f64| -> (f64, f64) {
        let best = |window: &Sought| {
            let expected = line.delay_of(window.middle);
            let there = window.places.iter().filter(|place| (place.lag - expected).abs() <= near.max(1.0));
            // Of equals, the nearest: a line in the middle of its places is better than one beside them.
            let off = |place: &Place| (place.lag - expected).abs() / near.max(1.0);
            there.map(|place| sign * place.likeness * (1.0 - 0.02 * off(place))).fold(0.0, f64::max)
        };
        let count = sought.len().max(1) as f64;
        sought.iter().map(best).fold((0.0, 0.0), |(score, rank), alike: f64| {
            let exact = -libm::log((1.0 - alike * alike).max(0.0) + EXACT);
            (score + alike / count, rank + exact / count)
        })
    };
    let (same, opposite) = (on_line(1.0), on_line(-1.0));
    if opposite.0 > same.0 { (-opposite.0, opposite.1) } else { same }
}

/// The line near a candidate on which the recordings as a whole are most alike, and how alike.
fn refined(sent: &Thin, received: &Thin, candidate: Candidate, is_part: bool) -> (f64, Candidate) {
    let moved = |by: f64| Line { delay: candidate.line.delay + by, ..candidate.line };
    (-4..=4)
        .map(|quarter| moved(f64::from(quarter) / 4.0))
        .map(|line| {
            let alike = alike(sent, received, line, is_part) * candidate.score.signum();
            (alike, Candidate { line, ..candidate })
        })
        .fold((f64::NEG_INFINITY, candidate), |best, next| if next.0 > best.0 { next } else { best })
}

/// How alike the recordings are on a line: their correlation coefficient, whatever does not overlap; of a part, that with what is
/// there.
fn alike(sent: &Thin, received: &Thin, line: Line, is_part: bool) -> f64 {
    let (mut common, mut there, samples) = (0.0, 0.0, &received.samples);
    for (n, sample) in sent.samples.iter().enumerate() {
        let at = n as f64 + line.delay_of(n as f64);
        if at < 0.0 {
            continue;
        }
        let (whole, part) = (at as usize, (at - libm::floor(at)) as f32);
        let Some(&[before, after]) = samples.get(whole..whole + 2) else { continue };
        common += f64::from(*sample) * f64::from(before + part * (after - before));
        there += f64::from(before) * f64::from(before);
    }
    let all = product(samples, samples);
    let energy = product(&sent.samples, &sent.samples) * if is_part { there.max(all * FLOOR) } else { all };
    common / libm::sqrt(energy).max(f64::MIN_POSITIVE)
}

/// How far the vertex of the parabola through a peak and its neighbours is from it.
fn vertex(values: &[f64], peak: usize) -> f64 {
    let Some(&[before, here, after]) = peak.checked_sub(1).and_then(|first| values.get(first..first + 3))
    else {
        return 0.0;
    };
    let bend = before - 2.0 * here + after;
    if bend == 0.0 { 0.0 } else { ((before - after) / (2.0 * bend)).clamp(-0.5, 0.5) }
}
