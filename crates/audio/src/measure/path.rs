//! The delay of every sample of a recording: a smooth course, with jumps.

use super::coarse::Line;
use super::interpolate::Interpolator;

/// The delay at a place of the sent audio; both in samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knot {
    pub(super) at: f64,
    pub(super) delay: f64,
}

/// A stretch without a jump.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    /// Where it begins.
    pub(super) from: f64,
    /// In their order, one at least.
    pub(super) knots: Vec<Knot>,
}

/// The delay of every sample.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Path {
    /// It changes as two clocks run apart.
    Line(Line),
    /// It changes in any way.
    Pieces(Vec<Piece>),
}

impl Path {
    /// The delay at a place.
    pub(super) fn delay(&self, at: f64) -> f64 {
        match self {
            Path::Line(line) => line.delay_of(at),
            Path::Pieces(pieces) => {
                let piece = pieces.partition_point(|piece| piece.from <= at).saturating_sub(1);
                pieces.get(piece).map_or(0.0, |piece| piece.delay(at))
            }
        }
    }

    /// Reads the received audio where the samples of the sent are. What is not there is silent.
    pub(super) fn warp(&self, received: &[f32], samples: impl Iterator<Item = i64>) -> Vec<f32> {
        let interpolator = Interpolator::same_rate();
        samples.map(|n| interpolator.at(received, n as f64 + self.delay(n as f64))).collect()
    }

    /// The samples of `length` that lie within a received recording of `heard` samples.
    pub(super) fn within(&self, length: usize, heard: usize) -> core::ops::Range<usize> {
        let is_there = |n: &usize| {
            let at = *n as f64 + self.delay(*n as f64);
            (-0.5..heard as f64 - 0.5).contains(&at)
        };
        let Some(first) = (0..length).find(is_there) else { return 0..0 };
        let last = (first..length).rfind(is_there).unwrap_or(first);
        first..last + 1
    }

    /// Every jump: where it is, and by how much the delay grows.
    pub(super) fn jumps(&self) -> Vec<(f64, f64)> {
        let Path::Pieces(pieces) = self else { return Vec::new() };
        let jump = |pair: &[Piece]| {
            let at = pair[1].from;
            (at, pair[1].delay(at) - pair[0].delay(at))
        };
        pieces.windows(2).map(jump).collect()
    }
}

impl Piece {
    /// Cubic between the knots, straight beyond them.
    fn delay(&self, at: f64) -> f64 {
        let after = self.knots.partition_point(|knot| knot.at <= at);
        let knot = |n: usize| self.knots[n];
        let slope = |a: Knot, b: Knot| (b.delay - a.delay) / (b.at - a.at);
        if self.knots.len() < 2 {
            return self.knots.first().map_or(0.0, |knot| knot.delay);
        }
        let last = self.knots.len() - 1;
        if after == 0 {
            return knot(0).delay + slope(knot(0), knot(1)) * (at - knot(0).at);
        }
        if after > last {
            return knot(last).delay + slope(knot(last - 1), knot(last)) * (at - knot(last).at);
        }
        let (a, b) = (knot(after - 1), knot(after));
        let width = b.at - a.at;
        let of_a = if after == 1 { slope(a, b) } else { slope(knot(after - 2), b) };
        let of_b = if after == last { slope(a, b) } else { slope(a, knot(after + 1)) };
        let x = (at - a.at) / width;
        // Hermite's cubic, with the slopes of Catmull and Rom.
        let rest = 1.0 - x;
        a.delay * (1.0 + 2.0 * x) * rest * rest
            + b.delay * x * x * (3.0 - 2.0 * x)
            + width * x * rest * (of_a * rest - of_b * x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knots(delay: impl Fn(f64) -> f64) -> Vec<Knot> {
        (0..20).map(|n| f64::from(n) * 100.0).map(|at| Knot { at, delay: delay(at) }).collect()
    }

    #[test]
    fn a_smooth_course_is_followed() {
        let course = |at: f64| 3.0 + 0.001 * at + 2e-6 * at * at;
        let path = Path::Pieces(vec![Piece { from: 0.0, knots: knots(course) }]);
        for at in (150..1750).step_by(7) {
            let off = path.delay(f64::from(at)) - course(f64::from(at));
            assert!(off.abs() < 1e-9, "{off} at {at}");
        }
    }

    #[test]
    fn a_jump_is_where_it_is() {
        let pieces =
            vec![Piece { from: 0.0, knots: knots(|_| 10.0) }, Piece { from: 730.0, knots: knots(|_| 250.0) }];
        let path = Path::Pieces(pieces);
        assert_eq!((path.delay(729.0), path.delay(730.0)), (10.0, 250.0));
        assert_eq!(path.jumps(), [(730.0, 240.0)]);
    }

    #[test]
    fn what_lies_outside_is_not_compared() {
        let path = |delay| Path::Line(Line { delay, drift: 0.0 });
        assert_eq!(path(0.0).within(100, 100), 0..100);
        assert_eq!(path(-30.0).within(100, 100), 30..100);
        assert_eq!(path(30.0).within(100, 100), 0..70);
        assert_eq!(path(300.0).within(100, 100), 0..0);
    }
}
