//! Verdicts on the limits of the file.

use std::collections::BTreeMap;

use trunkline_experiment::{Axis, Figure, Limit, Operator};
use trunkline_metrics::Estimate;
use trunkline_metrics::figures::FigureKind;
use trunkline_store::StoredPoint;

use crate::answer;
use crate::limited::{self, whose};
use crate::units::Readable as _;
use crate::view::{Side, View, axis_name, counted, is_cut_short, over_repetitions, point_name, shown_on};

/// One limit on one side.
pub(crate) struct Verdict<'a> {
    pub(crate) limit: &'a Limit,
    pub(crate) figure: &'static FigureKind,
    /// Who must keep the limit.
    pub(crate) whose: String,
    /// One per point, in order.
    pub(crate) points: Vec<PointVerdict>,
    /// Whether less was measured than the file asks for.
    is_unfinished: bool,
}

/// One limit at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PointVerdict {
    /// The point's index.
    pub(crate) point: u32,
    pub(crate) outcome: Outcome,
    /// The measurements.
    pub(crate) estimate: Option<Estimate>,
    /// True if the confidence interval reaches across the bound, or a repetition did not measure the figure.
    pub(crate) uncertain: bool,
    /// True if the figure is beyond the E-model's range.
    pub(crate) outside_model: bool,
}

impl PointVerdict {
    /// The sign of a figure that is beyond the E-model's range.
    pub(crate) fn mark(&self) -> &'static str {
        if self.outside_model { "?" } else { "" }
    }
}

/// How a limit fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    Broken,
    /// There is nothing to judge.
    NotMeasured,
    /// There are no members at this point: a sweep may start at none.
    NotApplicable,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::Broken => "broken",
            Outcome::NotMeasured => "not measured",
            Outcome::NotApplicable => "does not apply",
        }
    }

    /// A sign that needs no colour.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Outcome::Holds => "✓",
            Outcome::Broken => "✗",
            Outcome::NotMeasured | Outcome::NotApplicable => "–",
        }
    }
}

impl<'a> Verdict<'a> {
    pub(crate) fn of(limit: &'a Limit, view: &View<'a>, side: &Side<'a>) -> Verdict<'a> {
        let figures = |point: u32| side.point(point).into_iter().flat_map(counted).map(|s| limit.figure(s));
        let judged = |index: u32| {
            let verdict = judge(limit, index, &figures(index).collect::<Vec<_>>());
            // An interrupted repetition shows figures, but it is no evidence for or against a limit.
            let is_cut_short = side.point(index).is_some_and(is_cut_short);
            let outcome = if is_cut_short { Outcome::NotMeasured } else { verdict.outcome };
            let outside_model =
                side.is_outside_model(index, limited::name(limit, view), limited::figure(limit));
            PointVerdict { outcome, uncertain: verdict.uncertain && !is_cut_short, outside_model, ..verdict }
        };
        let points = view.points().iter().map(|point| judged(point.index)).collect();
        let is_unfinished = side.is_unfinished();
        Verdict { limit, figure: limited::figure(limit), whose: whose(limit, view), points, is_unfinished }
    }

    /// Over all points: broken if it is broken anywhere; holds only if it was measured and holds wherever it applies, in a
    /// run that is finished; does not apply if it applies at no point.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.points.iter().any(|p| p.outcome == Outcome::Broken) {
            Outcome::Broken
        } else if self.is_unfinished || self.points.is_empty() || self.count(Outcome::NotMeasured) > 0 {
            Outcome::NotMeasured
        } else if self.count(Outcome::Holds) == 0 {
            Outcome::NotApplicable
        } else {
            Outcome::Holds
        }
    }

    /// The outcome in words.
    pub(crate) fn word(&self) -> &'static str {
        let is_shown = |p: &PointVerdict| p.outcome == Outcome::NotMeasured && p.estimate.is_some();
        match self.outcome() {
            Outcome::NotMeasured if self.count(Outcome::Holds) > 0 => "holds so far",
            Outcome::NotMeasured if self.points.iter().any(is_shown) => "cut short",
            outcome => outcome.word(),
        }
    }

    /// The point that is farthest on the wrong side, or nearest to it.
    pub(crate) fn worst(&self) -> Option<&PointVerdict> {
        let wrong_way = |p: &PointVerdict| {
            let mean = p.estimate.map_or(f64::NEG_INFINITY, |e| e.mean);
            if is_upper_bound(self.limit.operator) { mean } else { -mean }
        };
        let measured = self.points.iter().filter(|p| p.estimate.is_some());
        // The first of equals, so that a limit that never mattered points at the first point.
        measured.reduce(|worst, p| if wrong_way(p) > wrong_way(worst) { p } else { worst })
    }

    /// `voice latency p99 is 302 ms at bulk.count = 4`, where it fares worst; `None` if it was not measured.
    fn key_figure(&self, view: &View, side: &Side) -> Option<String> {
        let worst = self.worst()?;
        let at = answer::at_point(view, worst.point);
        let value = self.figure.quantity.show(worst.estimate?.mean);
        let way = answer::way(side, limited::name(self.limit, view), self.figure);
        let whose = match self.whose.strip_prefix("each ") {
            Some(name) => format!("the worst {name}"),
            None => self.whose.clone(),
        };
        Some(format!("{whose} {way}{} is {value}{at}", self.figure.name))
    }

    /// How many times the bound is exceeded at the worst point, or the figure is short of it. Infinite for a bound of zero.
    fn excess(&self) -> f64 {
        let mean = self.worst().and_then(|worst| worst.estimate).map_or(0.0, |estimate| estimate.mean);
        let (more, less) = if is_upper_bound(self.limit.operator) {
            (mean, self.limit.bound)
        } else {
            (self.limit.bound, mean)
        };
        more.abs() / less.abs()
    }

    /// The draws of learned paths in which it holds at all other values of the sweep, and all draws; `None` without draws.
    pub(crate) fn draws(&self, view: &View) -> Option<(usize, usize)> {
        let draws = by_axes(view, |axis| axis.is_draws());
        let holds = |points: &&Vec<u32>| {
            let here = || self.points.iter().filter(|p| points.contains(&p.point));
            here().any(|p| p.outcome == Outcome::Holds)
                && here().all(|p| matches!(p.outcome, Outcome::Holds | Outcome::NotApplicable))
        };
        view.axes().iter().any(Axis::is_draws).then(|| (draws.values().filter(holds).count(), draws.len()))
    }

    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.points.iter().filter(|p| p.outcome == outcome).count()
    }

    /// Which points have this outcome: `all 4 points`, `bulk.count = 0, 1, 2`, `7 of 64 points`.
    pub(crate) fn where_(&self, outcome: Outcome, view: &View) -> String {
        let indices: Vec<u32> =
            self.points.iter().filter(|p| p.outcome == outcome).map(|p| p.point).collect();
        points_phrase(&indices, view)
    }
}

/// The points by their values on some axes.
fn by_axes(view: &View, of: impl Fn(&Axis) -> bool) -> BTreeMap<Vec<usize>, Vec<u32>> {
    let mut groups: BTreeMap<Vec<usize>, Vec<u32>> = BTreeMap::new();
    for point in view.points() {
        let choice = point.choice.iter().zip(view.axes()).filter(|(_, axis)| of(axis));
        groups.entry(choice.map(|(chosen, _)| *chosen).collect()).or_default().push(point.index);
    }
    groups
}

/// `19 of 20 draws`; if something else is swept too, `bulk.count = 1: 20 of 20 draws; bulk.count = 2: 19 of 20 draws`.
fn draws_phrase(indices: &[u32], view: &View) -> String {
    if view.is_drawn_only() {
        return view.at_points(indices.len()).trim_start_matches("in ").to_owned();
    }
    let axes: Vec<Axis> = view.axes().iter().filter(|axis| !axis.is_draws()).cloned().collect();
    let phrase = |(choice, points): (Vec<usize>, Vec<u32>)| {
        let point = StoredPoint { index: 0, choice, repetitions: Vec::new() };
        let there = points.iter().filter(|point| indices.contains(point)).count();
        format!("{}: {there} of {} draws", point_name(&point, &axes), points.len())
    };
    by_axes(view, |axis| !axis.is_draws()).into_iter().map(phrase).collect::<Vec<_>>().join("; ")
}

/// Names a set of points as shortly as possible.
pub(crate) fn points_phrase(indices: &[u32], view: &View) -> String {
    const LISTED: usize = 8;
    let all = view.points().len();
    let points = || view.points().iter().filter(|p| indices.contains(&p.index));
    match (indices.len(), view.axes()) {
        (0, _) => "none".to_owned(),
        (_, []) => "the only point".to_owned(),
        (n, axes) if axes.iter().any(Axis::is_draws) && (n < all || view.is_drawn_only()) => {
            let others: usize =
                axes.iter().filter(|axis| !axis.is_draws()).map(|axis| axis.values.len()).product();
            if others <= LISTED { draws_phrase(indices, view) } else { format!("{n} of {all} points") }
        }
        (n, _) if n == all && n > 1 => format!("all {n} points"),
        (n, [axis]) if n <= LISTED => {
            let values: Vec<String> = points().map(|p| shown_on(p, view.axes(), 0)).collect();
            // A table's own commas are not those between values.
            let between = if values.iter().any(|value| value.contains(',')) { "; " } else { ", " };
            format!("{} = {}", axis_name(axis), values.join(between))
        }
        (1, axes) => points().map(|p| point_name(p, axes)).collect(),
        (n, _) => format!("{n} of {all} points"),
    }
}

/// The verdict in one sentence.
pub(crate) struct Headline {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) text: String,
    /// The worst figure of a limit that is broken.
    pub(crate) key_figure: Option<String>,
}

/// The headline of one side. That of a part of a run says which part it is.
pub(crate) fn headline(view: &View, side: &Side) -> Headline {
    let headline = of_own_points(view, side);
    match side.part() {
        Some(part) => Headline { text: format!("{part}: {}", headline.text), ..headline },
        None => headline,
    }
}

fn of_own_points(view: &View, side: &Side) -> Headline {
    let points = view.points().len();
    let measured = view.points().iter().filter(|p| side.point(p.index).is_some_and(has_data)).count();
    if measured == 0 {
        let is_empty = side.part().is_some() && side.info().wanted() == 0;
        let text =
            if is_empty { "No repetition belongs to it." } else { "Nothing was measured to the end yet." };
        let text = text.to_owned();
        return Headline { outcome: Some(Outcome::NotMeasured), text, key_figure: None };
    }
    let verdicts: Vec<Verdict> = view.limits().iter().map(|limit| Verdict::of(limit, view, side)).collect();
    if verdicts.is_empty() {
        let info = side.info();
        let measured = match (measured, points) {
            _ if side.is_unfinished() => {
                format!("{} of {} repetitions", info.repetitions_done, info.wanted())
            }
            (1, 1) => "One point".to_owned(),
            (n, all) if n == all => format!("All {all} points"),
            (n, all) => format!("{n} of {all} points"),
        };
        let largest = answer::largest(view, side).filter(|_| !side.is_unfinished());
        let largest = largest.map_or_else(String::new, |largest| format!(" {largest}"));
        let text = format!("{measured} measured; the file sets no limits.{largest}");
        return Headline { outcome: None, text, key_figure: None };
    }
    let of_outcome = |outcome| verdicts.iter().filter(|v| v.outcome() == outcome).count();
    let broken: Vec<&Verdict> = verdicts.iter().filter(|v| v.outcome() == Outcome::Broken).collect();
    let limits = verdicts.len();
    if let Some(first) = broken.first() {
        let passing = view.points().iter().filter(|p| all_hold(&verdicts, p.index)).count();
        let hold = match limits {
            1 => "The limit holds".to_owned(),
            2 => "Both limits hold".to_owned(),
            n => format!("All {n} limits hold"),
        };
        let mut text = match broken.len() {
            _ if view.is_drawn_only() => format!("{hold} {}", view.at_points(passing)),
            1 if limits == 1 => "The limit is broken".to_owned(),
            2 if limits == 2 => "Both limits are broken".to_owned(),
            n if n == limits => format!("All {n} limits are broken"),
            n => format!("{n} of {limits} limits {} broken", if n == 1 { "is" } else { "are" }),
        };
        if view.is_swept() {
            if !view.is_drawn_only() {
                let hold = match limits {
                    1 => "it holds",
                    2 => "both hold",
                    _ => "all hold",
                };
                text += &format!("; {hold} {}", view.at_points(passing));
            }
            text += if side.is_unfinished() { " so far" } else { "" };
        }
        let farthest = broken.iter().map(|verdict| verdict.excess());
        let farthest =
            farthest.enumerate().reduce(|worst, other| if other.1 > worst.1 { other } else { worst });
        let first = farthest.and_then(|(place, _)| broken.get(place)).unwrap_or(first);
        let key_figure = first.key_figure(view, side);
        if let Some(figure) = &key_figure {
            text += &format!(". Worst: {figure} (limit {})", first.limit.condition);
        }
        return Headline { outcome: Some(Outcome::Broken), text: text + ".", key_figure };
    }
    if side.is_unfinished() {
        let info = side.info();
        let wanted = info.wanted();
        let judged = verdicts.iter().any(|v| v.count(Outcome::Holds) > 0);
        let text = format!(
            "{}: {} of {wanted} repetitions were measured.",
            if judged { "No limit is broken so far" } else { "No limit can be judged" },
            info.repetitions_done,
        );
        return Headline { outcome: Some(Outcome::NotMeasured), text, key_figure: None };
    }
    let unknown = of_outcome(Outcome::NotMeasured);
    if unknown > 0 {
        let text = format!(
            "No limit is broken, but {} could not be judged{}.",
            if unknown == 1 { "one".to_owned() } else { unknown.to_string() },
            if points > 1 { " at every point" } else { "" }
        );
        return Headline { outcome: Some(Outcome::NotMeasured), text, key_figure: None };
    }
    let holding = of_outcome(Outcome::Holds);
    let hold = match (holding, limits) {
        (0, _) => {
            let text = "No limit applies: the flows that they name have no members.".to_owned();
            return Headline { outcome: Some(Outcome::NotApplicable), text, key_figure: None };
        }
        (1, 1) => "The limit holds".to_owned(),
        (2, 2) => "Both limits hold".to_owned(),
        (n, all) if n == all => format!("All {n} limits hold"),
        (n, all) => {
            format!("{n} of {all} limits {}, and no other applies,", if n == 1 { "holds" } else { "hold" })
        }
    };
    let hold = if points == 1 { hold.trim_end_matches(',').to_owned() } else { hold };
    let at = match view.points().iter().filter(|p| all_hold(&verdicts, p.index)).count() {
        _ if points == 1 => ".".to_owned(),
        passing if passing == points => format!(" {}.", view.at_points(passing)),
        passing => {
            let elsewhere = if limits == 1 { "It does not apply" } else { "None applies" };
            format!(
                " {}. {elsewhere} at the other{}.",
                view.at_points(passing),
                if points - passing == 1 { "" } else { "s" }
            )
        }
    };
    let text = format!("{hold}{at}{}", answer::unusable(view, side));
    Headline { outcome: Some(Outcome::Holds), text, key_figure: None }
}

fn has_data(point: &StoredPoint) -> bool {
    point.repetitions.iter().any(|r| r.summary.is_some())
}

/// Returns true if every limit that applies at a point holds there, and at least one applies.
fn all_hold(verdicts: &[Verdict], point: u32) -> bool {
    let here = || verdicts.iter().flat_map(|v| v.points.iter().filter(|p| p.point == point));
    here().any(|p| p.outcome == Outcome::Holds)
        && here().all(|p| matches!(p.outcome, Outcome::Holds | Outcome::NotApplicable))
}

fn judge(limit: &Limit, point: u32, figures: &[Figure]) -> PointVerdict {
    let value = |figure: &Figure| if let Figure::Value(value) = figure { Some(*value) } else { None };
    let estimate = over_repetitions(figures.iter().map(value));
    let meets = |value: f64| limit.operator.holds(value, limit.bound);
    let outcome = match estimate {
        _ if !figures.is_empty() && figures.iter().all(|f| *f == Figure::NotApplicable) => {
            Outcome::NotApplicable
        }
        None => Outcome::NotMeasured,
        Some(e) if meets(e.mean) => Outcome::Holds,
        Some(_) => Outcome::Broken,
    };
    let estimate = estimate.filter(|_| outcome != Outcome::NotApplicable);
    let reaches_across = estimate
        .and_then(|e| Some((e.mean, e.confidence95?)))
        .is_some_and(|(mean, half)| meets(mean - half) != meets(mean + half));
    // Of repetitions in which nothing arrived, say, nothing is known.
    let is_partly_measured = estimate.is_some() && figures.contains(&Figure::NotMeasured);
    let uncertain = reaches_across || is_partly_measured;
    PointVerdict { point, outcome, estimate, uncertain, outside_model: false }
}

fn is_upper_bound(operator: Operator) -> bool {
    matches!(operator, Operator::Less | Operator::AtMost)
}
