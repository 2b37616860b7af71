//! The line that a delay follows as two clocks run apart, and how well it is known.

use core::ops::Range;

use super::coarse::Line;
use super::path::Knot;
use super::track::{Found, WHOLE};

/// The line that most windows lie on, whatever the others do, and how far it and its slope may be off: twice the standard
/// errors. `starts`: where the pieces begin between which the delay jumps. They have one slope, and each its own level; the line has
/// that of the longest.
pub(super) fn straight(found: &[Found], starts: &[f64], span: &Range<usize>) -> (Line, Line) {
    let piece = |knot: &Knot| starts.partition_point(|start| *start <= knot.at).saturating_sub(1);
    let found = without_jumps(found, starts.len().max(1), piece);
    let knots: Vec<Knot> = found.iter().map(|found| found.knot).collect();
    let rough = Line::through(slope(&found, piece), &knots);
    let off = |knot: &Knot| knot.delay - rough.delay_of(knot.at);
    let scatter = median(knots.iter().map(|knot| off(knot).abs()).collect()).unwrap_or(0.0) * 1.4826;
    let near = |found: &&Found| off(&found.knot).abs() <= 0.01 + 4.0 * scatter.max(found.error);
    let kept: Vec<&Found> = found.iter().filter(near).collect();
    let weigh = |found: &&Found| Weighted {
        knot: found.knot,
        weight: 1.0 / (found.error * found.error + scatter * scatter + 1e-8),
        most_moved: found.most_moved,
        piece: piece(&found.knot),
    };
    let kept: Vec<Weighted> = kept.iter().map(weigh).collect();
    let Fit { line, x, w, xx, middles } = fit(kept.iter(), rough.drift);
    // Windows that overlap are not independent.
    let shared = 1.5;
    let of_drift = if kept.len() > 2 { 2.0 * shared / libm::sqrt(xx) } else { f64::INFINITY };
    let of_middle = 2.0 * shared / libm::sqrt(w);
    let begin = if of_drift.is_finite() { of_drift * x } else { 0.0 };
    let parts = of_parts(&kept, line);
    // What differs may be all phase: at the worst, earlier on one side of the middle, and later on the other.
    let phase = |n: &Weighted| n.weight * n.most_moved;
    let of_phase =
        kept.iter().map(|n| phase(n) * (n.knot.at - middles[n.piece]).abs()).sum::<f64>() / xx.max(1.0);
    let moved = kept.iter().map(phase).sum::<f64>() / w + of_phase * x;
    let errors = Line {
        delay: libm::hypot(of_middle, begin).max(parts.delay).max(moved),
        drift: of_drift.max(parts.drift).max(of_phase),
    };
    (snapped(line, of_drift, span), errors)
}

/// A window's place, and how much it counts.
#[derive(Clone, Copy, Debug)]
struct Weighted {
    knot: Knot,
    weight: f64,
    most_moved: f64,
    piece: usize,
}

/// The windows of a piece beside those of the longest, where they would be without the jumps between.
fn without_jumps(found: &[Found], pieces: usize, piece: impl Fn(&Knot) -> usize + Copy) -> Vec<Found> {
    let slope = slope(found, piece);
    let levels_of = |n: usize| -> Vec<f64> {
        let own = found.iter().filter(|found| piece(&found.knot) == n);
        own.map(|found| found.knot.delay - slope * found.knot.at).collect()
    };
    let longest = (0..pieces).max_by_key(|n| levels_of(*n).len()).unwrap_or(0);
    let levels: Vec<f64> = (0..pieces).map(|n| median(levels_of(n)).unwrap_or(0.0)).collect();
    let moved = |found: &Found| {
        let delay = found.knot.delay - (levels[piece(&found.knot)] - levels[longest]);
        Found { knot: Knot { delay, ..found.knot }, ..*found }
    };
    found.iter().map(moved).collect()
}

/// The median of the slopes within the pieces.
fn slope(found: &[Found], piece: impl Fn(&Knot) -> usize + Copy) -> f64 {
    let knots: Vec<Knot> = found.iter().map(|found| found.knot).collect();
    median(slopes(&knots, |a, b| piece(a) == piece(b))).unwrap_or(0.0)
}

/// The line that fits best by weighted least squares, if every piece has its own level.
struct Fit {
    line: Line,
    /// The mean place, the sum of the weights, and that of the weighted squares of places from the means of their pieces.
    x: f64,
    w: f64,
    xx: f64,
    /// The mean places of the pieces.
    middles: Vec<f64>,
}

fn fit<'k>(knots: impl Iterator<Item = &'k Weighted> + Clone, otherwise: f64) -> Fit {
    let pieces = knots.clone().map(|one| one.piece + 1).max().unwrap_or(1);
    // Of each piece the weight, and the weighted sums of places and delays.
    let mut sums = vec![[0.0; 3]; pieces];
    for Weighted { knot, weight, piece, .. } in knots.clone() {
        let terms = [*weight, weight * knot.at, weight * knot.delay];
        sums[*piece].iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    let middles: Vec<f64> = sums.iter().map(|[w, wx, _]| wx / w).collect();
    let (mut xx, mut xy) = (0.0, 0.0);
    for Weighted { knot, weight, piece, .. } in knots {
        let [w, _, wy] = sums[*piece];
        xx += weight * (knot.at - middles[*piece]) * (knot.at - middles[*piece]);
        xy += weight * (knot.at - middles[*piece]) * (knot.delay - wy / w);
    }
    let drift = if xx > 0.0 { xy / xx } else { otherwise };
    let [w, wx, wy] = sums.iter().fold([0.0; 3], |[w, x, y], sum| [w + sum[0], x + sum[1], y + sum[2]]);
    let (x, y) = (wx / w, wy / w);
    Fit { line: Line { delay: y - drift * x, drift }, x, w, xx, middles }
}

/// Parts of a recording of which each is left out in turn.
const PARTS: usize = 8;
/// Student's t for so many parts, less one, at 95 % on both sides.
const T_OF_PARTS: f64 = 2.365;
/// Fewest windows in a part.
const OF_PART: usize = 3;

/// How far the line may be off as its parts say: by the jackknife over parts (Quenouille 1956, Tukey 1958). A codec that moves the phase
/// of each note by itself shifts neighbouring windows alike. Their scatter around a line is small then, and says nothing of the
/// line; but the line is another one without some of the notes. Nothing of a recording that is too short for parts.
fn of_parts(kept: &[Weighted], line: Line) -> Line {
    let none = Line { delay: 0.0, drift: 0.0 };
    let (Some(first), Some(last)) = (kept.first(), kept.last()) else { return none };
    if kept.len() < PARTS * OF_PART {
        return none;
    }
    let length = (last.knot.at - first.knot.at) / PARTS as f64;
    let part = |knot: &Knot| (((knot.at - first.knot.at) / length) as usize).min(PARTS - 1);
    let without = |left_out: usize| {
        let others = kept.iter().filter(move |one| part(&one.knot) != left_out);
        fit(others, line.drift).line
    };
    let lines: Vec<Line> = (0..PARTS).map(without).collect();
    let error = |of: fn(&Line) -> f64| {
        let mean = lines.iter().map(of).sum::<f64>() / PARTS as f64;
        let squares: f64 = lines.iter().map(|line| (of(line) - mean) * (of(line) - mean)).sum();
        T_OF_PARTS * libm::sqrt(squares * (PARTS - 1) as f64 / PARTS as f64)
    };
    Line { delay: error(|line| line.delay), drift: error(|line| line.drift) }
}

/// A line that is a whole number of samples, but for what cannot be measured, is that.
fn snapped(line: Line, of_drift: f64, span: &Range<usize>) -> Line {
    let moves = (line.drift * span.len() as f64).abs();
    let middle = line.delay_of(span.start as f64 + span.len() as f64 / 2.0);
    let whole = libm::round(middle);
    match line.drift.abs() <= of_drift && moves < 2.0 * WHOLE && (middle - whole).abs() < WHOLE {
        true => Line { delay: whole, drift: 0.0 },
        false => line,
    }
}

/// The slope is the median of the slopes between any two (Theil 1950, Sen 1968).
pub(super) fn theil_sen(knots: &[Knot]) -> Line {
    Line::through(median(slopes(knots, |_, _| true)).unwrap_or(0.0), knots)
}

/// The slopes between any two that belong together; of many, every so many-th is taken.
fn slopes(knots: &[Knot], belong: impl Fn(&Knot, &Knot) -> bool) -> Vec<f64> {
    let every: Vec<&Knot> = knots.iter().step_by(knots.len().div_ceil(256).max(1)).collect();
    let belong = &belong;
    let pairs = every.iter().enumerate().flat_map(|(n, a)| every[n + 1..].iter().map(move |b| (*a, *b)));
    pairs.filter(|(a, b)| belong(a, b)).map(|(a, b)| (b.delay - a.delay) / (b.at - a.at)).collect()
}

impl Line {
    /// The line of a slope that half of the places lie above.
    fn through(drift: f64, knots: &[Knot]) -> Line {
        let delays = knots.iter().map(|knot| knot.delay - drift * knot.at).collect();
        Line { delay: median(delays).unwrap_or(0.0), drift }
    }
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((upper + lower) / 2.0)
}
