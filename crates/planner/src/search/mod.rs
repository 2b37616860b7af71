//! Which value to try next, given what became of those before: bisection as a state machine that measures nothing.
//!
//! Values are whole numbers. Seen in the direction of the goal, values are expected to keep the limits up to an edge and to
//! break them behind it. A [`Search`] brackets the edge, narrows the bracket to the precision, and at last tries one
//! value far on either side of it, because bisection alone would never see that the expectation is wrong. Values that
//! could not be decided are left between two narrowed edges: the last that was kept and the first that was broken.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The largest value that keeps the limits: small values do.
    Maximise,
    /// The smallest value that keeps the limits: large values do.
    Minimise,
}

/// What became of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was shown to keep the limits.
    Kept,
    /// It was shown to break one.
    Broken,
    /// Neither was shown.
    Undecided,
}

/// How near to each other the last value kept and the first one broken must come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// At most so far apart, at least 1.
    Step(u64),
    /// At most so large a share of the smaller one apart, of values that are best written in multiples of `unit`.
    Share {
        /// Above 0.
        share: f64,
        /// At least 1. What is less than a thousandth of it counts as nothing.
        unit: u64,
    },
}

/// Where the search begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At a value, with steps that double until the edge is bracketed.
    At(u64),
    /// At both ends of the range.
    Ends,
}

/// What is known of the edge; "behind" is in the direction of the goal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// The best value that was shown to keep the limits, with none before it that was shown to break them.
    pub kept: Option<u64>,
    /// The first value that was shown to break them.
    pub broken: Option<u64>,
    /// The first and the last value between the two that were tried and not decided.
    pub undecided: Option<(u64, u64)>,
    /// Values behind a broken one that were shown to keep the limits: the response is not monotone.
    pub kept_behind: Vec<u64>,
}

/// A search for one edge. Ask [`Search::next_value`], measure, [`Search::tell`], and again, until there is no next.
#[derive(Clone, Debug)]
pub struct Search {
    goal: Goal,
    range: RangeInclusive<u64>,
    begin: Begin,
    precision: Precision,
    told: BTreeMap<u64, Verdict>,
    pending: Option<u64>,
    /// Which of the two values far from the edge were asked for: behind it, before it.
    controls: [bool; 2],
    /// Values between which the edge is expected: they are tried first.
    expected: Option<[Option<u64>; 2]>,
}

impl Search {
    /// A search within a range that is not empty.
    pub fn new(goal: Goal, range: RangeInclusive<u64>, begin: Begin, precision: Precision) -> Search {
        let told = BTreeMap::new();
        Search { goal, range, begin, precision, told, pending: None, controls: [false; 2], expected: None }
    }

    /// The same search, which begins with these values: the last one that is expected to keep the limits and the first one
    /// that is expected to break one. What is expected decides nothing: if it is wrong, the search widens from there.
    pub fn expecting(self, kept: Option<u64>, broken: Option<u64>) -> Search {
        let any = kept.or(broken).is_some();
        Search { expected: any.then_some([kept, broken]), ..self }
    }

    /// The same search, which tries no values far from the edge.
    pub fn without_controls(self) -> Search {
        Search { controls: [true; 2], ..self }
    }

    /// The value to try now, always one that was not told yet; `None` when all is known that was asked for.
    pub fn next_value(&mut self) -> Option<u64> {
        if self.pending.is_none() {
            self.pending = self.first().or_else(|| self.bracket()).or_else(|| self.narrow());
        }
        if self.pending.is_none() {
            self.pending = self.control();
        }
        self.pending
    }

    /// What became of a value.
    pub fn tell(&mut self, value: u64, verdict: Verdict) {
        self.told.insert(value, verdict);
        self.pending = None;
    }

    /// What is known until now. Nothing is claimed of a value that was not told.
    pub fn edge(&self) -> Edge {
        let told = self.in_order();
        let first_broken = told.iter().position(|(_, verdict)| *verdict == Verdict::Broken);
        let (before, behind) = told.split_at(first_broken.unwrap_or(told.len()));
        let last_kept = before.iter().rposition(|(_, verdict)| *verdict == Verdict::Kept);
        let between = &before[last_kept.map_or(0, |place| place + 1)..];
        let value = |(value, _): &(u64, Verdict)| *value;
        let kept_behind = behind.iter().filter(|(_, verdict)| *verdict == Verdict::Kept);
        Edge {
            kept: last_kept.map(|place| value(&before[place])),
            broken: behind.first().map(value),
            undecided: between.first().map(value).zip(between.last().map(value)),
            kept_behind: kept_behind.map(value).collect(),
        }
    }

    /// What was told, in the direction of the goal.
    fn in_order(&self) -> Vec<(u64, Verdict)> {
        let told = self.told.iter().map(|(value, verdict)| (*value, *verdict));
        match self.goal {
            Goal::Maximise => told.collect(),
            Goal::Minimise => told.rev().collect(),
        }
    }

    /// The ends of the range in the direction of the goal.
    fn ends(&self) -> (u64, u64) {
        match self.goal {
            Goal::Maximise => (*self.range.start(), *self.range.end()),
            Goal::Minimise => (*self.range.end(), *self.range.start()),
        }
    }

    fn first(&self) -> Option<u64> {
        let (near, far) = self.ends();
        let values = match (self.expected, self.begin) {
            (Some(expected), _) => expected.map(|value| value.filter(|value| self.range.contains(value))),
            (None, Begin::At(value)) => [Some(value.clamp(*self.range.start(), *self.range.end())), None],
            (None, Begin::Ends) => [Some(near), Some(far)],
        };
        values.into_iter().flatten().find(|value| !self.told.contains_key(value))
    }

    /// A value on the side of the edge that has none yet.
    fn bracket(&self) -> Option<u64> {
        let told = self.in_order();
        let ((near, far), edge) = (self.ends(), self.edge());
        let (nearest, farthest) = (told.first()?.0, told.last()?.0);
        if edge.kept.is_none() && nearest != near {
            return Some(self.outward(farthest, nearest, near));
        }
        (edge.broken.is_none() && farthest != far).then(|| self.outward(nearest, farthest, far))
    }

    /// The next value towards `end` while the edge is not bracketed: twice the value or half of it. From where the edge is
    /// expected the steps begin small, each twice as far as all before.
    fn outward(&self, other: u64, value: u64, end: u64) -> u64 {
        let doubled = self.doubled(value, end);
        if self.expected.is_none() {
            return doubled;
        }
        let step = value.abs_diff(other).max(self.tolerance(value)).saturating_mul(2);
        match end > value {
            true => value.saturating_add(step).min(doubled),
            false => value.saturating_sub(step).max(doubled),
        }
    }

    /// Twice the value or half of it, whichever lies towards `end`; from nothing to a unit.
    fn doubled(&self, value: u64, end: u64) -> u64 {
        let (nothing, unit) = match self.precision {
            Precision::Step(_) => (1, 1),
            Precision::Share { unit, .. } => (nothing(unit), unit.max(1)),
        };
        match end > value {
            true if value < nothing => unit.min(end),
            true => value.saturating_mul(2).min(end),
            false if value / 2 < nothing => end,
            false => (value / 2).max(end),
        }
    }

    /// A value between the two last on either side of what is not decided, while they are too far apart.
    fn narrow(&self) -> Option<u64> {
        let Edge { kept, broken, undecided, .. } = self.edge();
        let (first, last) = undecided.unzip();
        let gap = |from: Option<u64>, to: Option<u64>| self.between(from?, to?);
        gap(kept, first.or(broken)).or_else(|| gap(last.or(kept), broken))
    }

    /// A value far behind the edge, then one far before it.
    fn control(&mut self) -> Option<u64> {
        let Edge { kept, broken, .. } = self.edge();
        let nearest = self.in_order().first()?.0;
        let behind = |search: &Search| Some(search.doubled(broken?, search.ends().1));
        // A search that began next to the edge has tried nothing before it.
        let before = |search: &Search| match kept? {
            kept if kept == nearest => Some(search.doubled(kept, search.ends().0)),
            kept => search.between(nearest, kept),
        };
        for (place, value) in [behind(self), before(self)].into_iter().enumerate() {
            let asked = core::mem::replace(&mut self.controls[place], true);
            if let Some(value) = value.filter(|value| !asked && !self.told.contains_key(value)) {
                return Some(value);
            }
        }
        None
    }

    /// A value strictly between two that are farther apart than the precision asks for.
    fn between(&self, a: u64, b: u64) -> Option<u64> {
        let (low, high) = (a.min(b), a.max(b));
        if high - low <= self.tolerance(low) {
            return None;
        }
        match self.precision {
            Precision::Step(step) => {
                let steps = (high - low) / step.max(1);
                Some(low + step.max(1) * (steps / 2).max(1))
            }
            Precision::Share { unit, .. } => {
                // Where several doublings lie between them, halve the factor instead of the distance.
                let middle = match low > 0 && high / low >= 4 {
                    true => ((low as f64).sqrt() * (high as f64).sqrt()) as u64,
                    false => low + (high - low) / 2,
                };
                let quantum = round_number(unit.max(1), self.tolerance(middle) / 2);
                let rounded = (middle + quantum / 2) / quantum * quantum;
                let inside = |value: &u64| low < *value && *value < high;
                [rounded, middle].into_iter().find(inside)
            }
        }
    }

    /// How far apart an edge may be left whose smaller side is `low`.
    fn tolerance(&self, low: u64) -> u64 {
        match self.precision {
            Precision::Step(step) => step.max(1),
            Precision::Share { share, unit } => ((low.max(nothing(unit)) as f64 * share) as u64).max(1),
        }
    }
}

/// What is less counts as nothing.
fn nothing(unit: u64) -> u64 {
    (unit / 1000).max(1)
}

/// The largest of a unit's decimal multiples and parts (of a binary unit: binary parts) that is at most `most`; at
/// least 1. What is a multiple of it is written with few digits.
fn round_number(unit: u64, most: u64) -> u64 {
    let mut number = unit;
    while number.checked_mul(10).is_some_and(|larger| larger <= most) {
        number *= 10;
    }
    while number > most.max(1) {
        number = match number {
            _ if number.is_multiple_of(10) => number / 10,
            _ if number.is_multiple_of(2) => number / 2,
            _ => 1,
        };
    }
    number
}
