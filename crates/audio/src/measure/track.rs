//! Follows the delay through a recording, window by window, to thousandths of a sample.

use core::ops::Range;

use super::coarse::{AUDIBLE, Coarse, Line};
use super::line::straight;
pub(super) use super::line::{median, theil_sen};
use super::path::{Knot, Path, Piece};
use super::product;
use super::search::{ALIKE, Curve, FAR_ALIKE, NEAR_SAMPLES, Place, Search, margin, missed};

/// Length of a window, in seconds.
const WINDOW: f64 = 0.085;
/// From the beginning of a window to that of the next, in seconds.
const STEP: f64 = 0.0425;
/// So many windows, at most: in long recordings they are further apart.
const WINDOWS: usize = 1024;
/// How far from the expected place a window is looked for first, in seconds.
const REACH: f64 = 0.06;
/// How far it is looked for if it is not found there, in seconds.
const FAR: f64 = 1.0;
/// So many windows are looked for that far.
const FAR_WINDOWS: usize = 64;
/// Lags either way by which a place is improved.
const FINE: i64 = 6;
/// How often that is done: a window is blurred by what the delay changes within it.
const ROUNDS: usize = 3;
/// The fastest change of the delay that is no jump, in samples per sample.
const FASTEST: f64 = 3e-3;
/// The smallest jump, in samples.
const JUMP: f64 = 3.0;
/// Knots on either side that smooth one.
const SMOOTH: usize = 4;

/// A window that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) knot: Knot,
    /// How far it may be from the truth by noise that is another in each sample, in samples.
    pub(super) error: f64,
    /// How far if all of what differs moves the phase, as codecs of speech do: one that has moved it in one window has done so in
    /// the next, and neither scatter nor the number of windows shows it.
    pub(super) most_moved: f64,
    /// How alike it is there, from 0 to 1.
    pub(super) likeness: f64,
}

/// The delay of every sample, and how well it is known.
pub(super) struct Track {
    pub(super) path: Path,
    /// The line through it that most of it lies on, and by how much it and its slope may be off.
    pub(super) line: Line,
    pub(super) errors: Line,
    /// The places that the path was made of.
    pub(super) knots: Vec<Knot>,
    /// The sign is the opposite.
    pub(super) inverted: bool,
    /// The share of the windows with something to hear in the received audio that were found.
    pub(super) share: f64,
}

impl Track {
    /// The same, if each sample is known to be on a line.
    pub(super) fn exactly(self, line: Line) -> Track {
        let errors = Line { delay: 0.0, drift: 0.0 };
        Track { path: Path::Line(line), line, errors, knots: Vec::new(), ..self }
    }
}

/// Follows the delay from a rough line on.
pub(super) fn follow(
    sample_rate: u32,
    sent: &[f32],
    received: &[f32],
    coarse: &Coarse,
    span: &Range<usize>,
    gain: f64,
) -> Option<Track> {
    let windows = Windows::new(sample_rate, sent, span, coarse.inverted);
    let mut path = Path::Line(coarse.line);
    let mut found = windows.seek(&path, received, gain);
    let signed = windows.sign * gain;
    if found.is_empty() {
        return None;
    }
    for round in 0..ROUNDS {
        path = course(sent, received, &found, signed, (round > 0, windows.length()));
        found = windows.improve(&path, received, &found);
    }
    let share = found.len() as f64 / windows.heard(&path, received, gain).max(found.len()) as f64;
    let found = trusted(found);
    let knots: Vec<Knot> = found.iter().map(|found| found.knot).collect();
    let starts: Vec<f64> = pieces(&found).iter().map(|piece| piece.from).collect();
    let (line, errors) = straight(&found, &starts, span);
    let bent = course(sent, received, &found, signed, (true, windows.length()));
    // A line is the simpler explanation, unless the course explains more.
    let path = Path::Line(line);
    let (of_line, of_bent) =
        (path.within(sent.len(), received.len()), bent.within(sent.len(), received.len()));
    let both = of_line.start.min(of_bent.start)..of_line.end.max(of_bent.end);
    let unexplained = |path: &Path| {
        unexplained(&sent[both.clone()], &path.warp(received, both.start as i64..both.end as i64))
    };
    let (of_line, of_course) = (unexplained(&path), unexplained(&bent));
    let path = if of_line <= of_course * SIMPLER + NOTHING { path } else { bent };
    Some(Track { path, line, errors, knots, inverted: coarse.inverted, share })
}

/// The windows of which not much more is unexplained than of most: those with a gap or a concealment in them say less of where
/// they are.
fn trusted(mut found: Vec<Found>) -> Vec<Found> {
    let usual = median(found.iter().map(|found| missed(found.likeness)).collect()).unwrap_or(0.0);
    found.retain(|found| missed(found.likeness) <= (UNTRUSTED * usual).max(PLAIN));
    found
}

/// A window is not trusted of which so many times the usual share is unexplained, and at least so much.
const UNTRUSTED: f64 = 8.0;
const PLAIN: f64 = 0.003;

/// A line may leave so many times as much unexplained as a course, and so much more of the energy.
const SIMPLER: f64 = 1.1;
const NOTHING: f64 = 1e-9;

/// The share of the sent audio that the received does not explain.
fn unexplained(sent: &[f32], received: &[f32]) -> f64 {
    let common = product(sent, received);
    let energy = product(sent, sent) * product(received, received);
    1.0 - common * common / energy.max(f64::MIN_POSITIVE)
}

/// How near to whole samples counts as whole.
pub(super) const WHOLE: f64 = 0.02;

/// The part of the sent audio that may lie within the received, if it is somewhere near one of these lines.
pub(super) fn span(
    sample_rate: u32,
    lines: impl Iterator<Item = Line>,
    sent: usize,
    received: usize,
) -> Range<usize> {
    let far = (f64::from(sample_rate) * FAR) as usize;
    let parts = lines.map(|line| Path::Line(line).within(sent, received)).filter(|part| !part.is_empty());
    let all = parts.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..sent);
    all.start.saturating_sub(far)..sent.min(all.end + far)
}

/// The windows of the sent audio, within a part of it.
pub(super) struct Windows<'s> {
    sample_rate: f64,
    pub(super) sent: &'s [f32],
    pub(super) sign: f64,
    /// Hann's.
    pub(super) weights: Vec<f64>,
    pub(super) starts: Vec<usize>,
}

impl Windows<'_> {
    pub(super) fn new<'s>(
        sample_rate: u32,
        sent: &'s [f32],
        span: &Range<usize>,
        inverted: bool,
    ) -> Windows<'s> {
        let rate = f64::from(sample_rate);
        let length = ((rate * WINDOW) as usize).min(span.len()).max(16);
        let step = ((rate * STEP) as usize).max(span.len() / WINDOWS).max(1);
        let turn = core::f64::consts::TAU / length as f64;
        let weights: Vec<f64> = (0..length).map(|n| 0.5 - 0.5 * libm::cos(turn * (n as f64 + 0.5))).collect();
        let energy = |start: usize| -> f64 {
            let samples = sent[start..start + length].iter();
            samples.zip(&weights).map(|(s, w)| w * f64::from(*s) * f64::from(*s)).sum()
        };
        let all = (span.start..(span.end + 1).saturating_sub(length)).step_by(step);
        let energies: Vec<(usize, f64)> = all.map(|start| (start, energy(start))).collect();
        let loudest = energies.iter().map(|(_, energy)| *energy).fold(0.0, f64::max);
        let audible = energies.into_iter().filter(|(_, energy)| *energy > loudest * AUDIBLE);
        let starts = audible.map(|(start, _)| start).collect();
        Windows { sample_rate: rate, sent, sign: if inverted { -1.0 } else { 1.0 }, weights, starts }
    }

    pub(super) fn length(&self) -> usize {
        self.weights.len()
    }

    pub(super) fn middle(&self, start: usize) -> f64 {
        start as f64 + self.length() as f64 / 2.0
    }

    /// The number of windows with something to hear in the received audio.
    fn heard(&self, path: &Path, received: &[f32], gain: f64) -> usize {
        let energies = self.starts.iter().map(|start| {
            let own = &self.sent[*start..*start + self.length()];
            let from = libm::round(*start as f64 + path.delay(self.middle(*start)));
            let is_within = from >= 0.0 && from + self.length() as f64 <= received.len() as f64;
            let heard = if is_within { &received[from as usize..][..self.length()] } else { &[] };
            (product(own, own), product(heard, heard))
        });
        energies.filter(|(own, heard)| *heard > gain * gain * own * AUDIBLE).count()
    }

    /// Looks for every window near where the one before was, and for some of those that are not there far away.
    fn seek(&self, line: &Path, received: &[f32], gain: f64) -> Vec<Found> {
        let far = (self.sample_rate * FAR) as i64;
        let reach = (self.sample_rate * REACH) as i64;
        let begin = -far;
        let warped = line.warp(received, begin..self.sent.len() as i64 + far);
        let mut near_search = Search::new(self, &warped, reach);
        let mut far_search = Search::new(self, &warped, far);
        let (mut expected, mut tried, mut found, mut recent) = (0.0f64, 0, Vec::new(), Vec::new());
        for &start in &self.starts {
            let from = start as i64 - begin;
            let there = start as f64 + line.delay(self.middle(start)) + expected;
            if there < 0.0 || there + self.length() as f64 > received.len() as f64 {
                continue;
            }
            let mut place = near_search.find(start, from, libm::round(expected) as i64, gain);
            if place.is_none() && tried < FAR_WINDOWS {
                tried += 1;
                place = far_search.find(start, from, 0, gain).filter(|place| place.likeness >= FAR_ALIKE);
            }
            let Some(Place { lag, likeness }) = place else { continue };
            let at = self.middle(start);
            found.push(Found {
                knot: Knot { at, delay: line.delay(at) + lag },
                error: 1.0,
                most_moved: 0.0,
                likeness,
            });
            recent.push(lag);
            expected = next_expected(expected, &recent);
        }
        found
    }

    /// Brings each window to where it is most alike, within some samples of the course through all of them.
    fn improve(&self, path: &Path, received: &[f32], found: &[Found]) -> Vec<Found> {
        let margin = margin(FINE);
        let mut improved = Vec::with_capacity(found.len());
        for window in found {
            let start = (window.knot.at - self.length() as f64 / 2.0) as usize;
            let span = start as i64 - margin..(start + self.length()) as i64 + margin;
            let warped = path.warp(received, span);
            if let Some((lag, most_moved, likeness)) = self.peak(start, &warped) {
                // Of a window under Hann's three eighths count (Cramer and Rao).
                let error = most_moved / libm::sqrt(0.375 * self.length() as f64);
                let delay = path.delay(window.knot.at) + lag;
                improved.push(Found { knot: Knot { delay, ..window.knot }, error, most_moved, likeness });
            }
        }
        improved
    }

    /// How alike a window is at each lag up to `reach` either way, and between: `warped` begins `margin(reach)` before it.
    pub(super) fn curve(&self, start: usize, warped: &[f32], reach: i64) -> Curve {
        let sent = &self.sent[start..start + self.length()];
        let own: f64 = sent.iter().zip(&self.weights).map(|(s, w)| w * f64::from(*s) * f64::from(*s)).sum();
        let at = |from: usize| {
            let (mut common, mut heard) = (0.0, 0.0);
            for ((s, r), w) in sent.iter().zip(&warped[from..]).zip(&self.weights) {
                let (s, r) = (f64::from(*s), f64::from(*r));
                common += w * s * r;
                heard += w * r * r;
            }
            (self.sign * common, heard)
        };
        let lags: Vec<(f64, f64)> = (0..=2 * margin(reach) as usize).map(at).collect();
        Curve::new(lags, own, margin(reach))
    }

    /// Where a window is most alike, between samples, how far what differs can move that, and how alike it is.
    fn peak(&self, start: usize, warped: &[f32]) -> Option<(f64, f64, f64)> {
        let curve = self.curve(start, warped, FINE);
        let Place { lag, likeness } = curve.near(FINE)?;
        if likeness < ALIKE || lag.abs() >= FINE as f64 {
            return None;
        }
        // The sharper the peak and the less noise, the better it is known.
        let bend = (2.0 * likeness - curve.alike(lag - 0.5) - curve.alike(lag + 0.5)) / 0.25 / likeness;
        let noise = (1.0 / (likeness * likeness) - 1.0).max(LEAST_NOISE);
        Some((lag, libm::sqrt(noise / bend.max(1e-9)), likeness))
    }
}

/// What differs by less than 50 dB is as much the interpolation as the recording.
const LEAST_NOISE: f64 = 1e-5;

/// Where the next window is expected: where the last one was that was not elsewhere, or where the last few agree to be. So
/// a gap, which makes some windows fit elsewhere, does not lead the others away.
fn next_expected(expected: f64, recent: &[f64]) -> f64 {
    let is_near = |a: f64, b: f64| (a - b).abs() <= NEAR_SAMPLES as f64;
    let last = recent.last().copied().unwrap_or(expected);
    let agree = recent.iter().rev().take(LASTING).filter(|lag| is_near(**lag, last)).count();
    if is_near(last, expected) || agree == LASTING { last } else { expected }
}

/// The course through the windows: smooth where it may be, with jumps between.
fn course(
    sent: &[f32],
    received: &[f32],
    found: &[Found],
    gain: f64,
    (is_fine, window): (bool, usize),
) -> Path {
    let mut pieces = pieces(found);
    if is_fine && pieces.len() > 1 {
        part(sent, received, &mut pieces, gain);
        without_cut_windows(&mut pieces, window as f64 / 2.0);
    }
    for piece in &mut pieces {
        piece.knots = if is_fine { smoothed(&piece.knots) } else { piece.knots.clone() };
        let whole = piece.knots.first().map_or(0.0, |knot| libm::round(knot.delay));
        if piece.knots.iter().all(|knot| (knot.delay - whole).abs() < WHOLE) {
            piece.knots.iter_mut().for_each(|knot| knot.delay = whole);
        }
    }
    part(sent, received, &mut pieces, gain);
    Path::Pieces(pieces)
}

/// Lets each piece but the first begin where the delay jumps.
fn part(sent: &[f32], received: &[f32], pieces: &mut [Piece], gain: f64) {
    for n in 1..pieces.len() {
        pieces[n].from = seam(sent, received, &pieces[n - 1..=n], gain);
    }
}

/// Leaves out the windows with a jump in them, which are not quite where the others are; `half`: of their length.
fn without_cut_windows(pieces: &mut [Piece], half: f64) {
    let ends: Vec<f64> = pieces[1..].iter().map(|piece| piece.from).chain([f64::INFINITY]).collect();
    for (piece, end) in pieces.iter_mut().zip(ends) {
        let is_whole = |knot: &&Knot| knot.at - half >= piece.from && knot.at + half <= end;
        let whole: Vec<Knot> = piece.knots.iter().filter(is_whole).copied().collect();
        if !whole.is_empty() {
            piece.knots = whole;
        }
    }
}

/// Parts the windows where the delay jumps. A window that is alone with its delay does not count, and neither do some that are
/// less alike than most.
fn pieces(found: &[Found]) -> Vec<Piece> {
    let jumps = |a: &Knot, b: &Knot| (b.delay - a.delay).abs() > JUMP + FASTEST * (b.at - a.at).abs();
    let usual = median(found.iter().map(|found| found.likeness).collect()).unwrap_or(0.0);
    let mut groups: Vec<Vec<Found>> = Vec::new();
    for window in found {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|last| !jumps(&last.knot, &window.knot)) => {
                group.push(*window)
            }
            _ => groups.push(vec![*window]),
        }
    }
    let most = groups.iter().map(Vec::len).max().unwrap_or(0);
    groups.retain(|group| {
        let alike = group.iter().map(|found| found.likeness).sum::<f64>() / group.len() as f64;
        group.len() == most || group.len() >= LASTING && alike >= usual - UNLIKE
    });
    let mut pieces: Vec<Piece> = Vec::new();
    for group in groups {
        let knots: Vec<Knot> = group.iter().map(|found| found.knot).collect();
        match pieces.last_mut() {
            // On either side of what did not count it goes on.
            Some(piece) if !jumps(&piece.knots[piece.knots.len() - 1], &knots[0]) => {
                piece.knots.extend(knots)
            }
            _ => pieces.push(Piece { from: knots[0].at, knots }),
        }
    }
    if let Some(first) = pieces.first_mut() {
        first.from = f64::NEG_INFINITY;
    }
    pieces
}

/// A jump is one if so many windows in a row are elsewhere: a gap touches three.
const LASTING: usize = 4;
/// Some windows elsewhere than the others are taken to be there if they are not less alike than most by so much.
const UNLIKE: f64 = 0.15;

/// Every knot on the parabola that fits it and its neighbours best.
fn smoothed(knots: &[Knot]) -> Vec<Knot> {
    let of = |n: usize| {
        let around = &knots[n.saturating_sub(SMOOTH)..knots.len().min(n + SMOOTH + 1)];
        if around.len() < 5 {
            return knots[n];
        }
        let reach = around.iter().map(|knot| (knot.at - knots[n].at).abs()).fold(1.0, f64::max) * 1.1;
        // The normal equations of 1, x and x², weighted by Tukey's biweight.
        let (mut m, mut v) = ([[0.0; 3]; 3], [0.0; 3]);
        for knot in around {
            let x = (knot.at - knots[n].at) / reach;
            let weight = (1.0 - x * x) * (1.0 - x * x);
            let powers = [1.0, x, x * x];
            for row in 0..3 {
                for column in 0..3 {
                    m[row][column] += weight * powers[row] * powers[column];
                }
                v[row] += weight * powers[row] * knot.delay;
            }
        }
        Knot { delay: solve(m, v).unwrap_or(knots[n].delay), ..knots[n] }
    };
    (0..knots.len()).map(of).collect()
}

/// The first unknown of three equations (Cramer's rule).
fn solve(m: [[f64; 3]; 3], v: [f64; 3]) -> Option<f64> {
    let determinant = |m: [[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let whole = determinant(m);
    let mut first = m;
    for row in 0..3 {
        first[row][0] = v[row];
    }
    (whole.abs() > 1e-12).then(|| determinant(first) / whole)
}

/// Where between two pieces the delay jumps: where the one explains the received audio up to there, and the other from there on.
/// If the delay becomes shorter, what was left out begins there, and neither explains that. `gain` has the sign.
fn seam(sent: &[f32], received: &[f32], pieces: &[Piece], gain: f64) -> f64 {
    let (Some(last), Some(first)) = (pieces[0].knots.last(), pieces[1].knots.first()) else { return 0.0 };
    let span = last.at as i64..(first.at as i64).max(last.at as i64 + 1);
    let left_out = (libm::round(last.delay - first.delay).max(0.0) as usize).min(span.clone().count());
    let errors = |piece: &Piece| -> Vec<f64> {
        let path = Path::Pieces(vec![Piece { from: f64::NEG_INFINITY, knots: piece.knots.clone() }]);
        let warped = path.warp(received, span.clone());
        let sample = |n: i64| sent.get(n as usize).copied().map_or(0.0, f64::from);
        span.clone().zip(&warped).map(|(n, r)| f64::from(*r) - gain * sample(n)).map(|e| e * e).collect()
    };
    let (before, after) = (errors(&pieces[0]), errors(&pieces[1]));
    let mut sum: f64 = after[left_out..].iter().sum();
    let (mut best, mut at) = (sum, 0);
    for (n, (before, after)) in before.iter().zip(&after[left_out..]).enumerate() {
        sum += before - after;
        if sum < best {
            (best, at) = (sum, n + 1);
        }
    }
    (span.start + at as i64) as f64
}
