//! The figures of a plan: the region that keeps the limits, or each limit's figure against the searched key.

use trunkline_report::chart::{
    Axis, Bound, Chart, Datum, Entry, Frame, Kind, Look, Panel, Scale, Series, Theme, Tick, render,
};

use crate::plan::Plan;
use crate::run::{Answer, Found, Trial};
use crate::search::{Goal, Verdict};
use crate::text;

/// The layout of a file of its own.
const FILE: Frame = Frame { width: 680.0, plot_height: 320.0, columns: 1, theme: Theme::Print, labels: true };

/// Every figure as an SVG file: a name that says what it shows, without extension, and its text. For a PNG file see
/// [`trunkline_report::chart::png`].
pub fn svg(plan: &Plan, found: &Found) -> Vec<(String, String)> {
    let drawn = |(id, chart): (String, Chart)| (id.clone(), render(&chart, FILE, &id));
    figures(plan, found).into_iter().map(drawn).collect()
}

/// The figures with their names.
pub(crate) fn figures(plan: &Plan, found: &Found) -> Vec<(String, Chart)> {
    match (plan.axes.first(), found.answers.first()) {
        (Some(_), _) => region(plan, found).map(|chart| ("region".to_owned(), chart)).into_iter().collect(),
        (None, Some(answer)) => of_limits(plan, found, answer),
        (None, None) => Vec::new(),
    }
}

/// The edge against the first axis of numbers: a pair of lines, kept and broken, for every combination of the others.
fn region(plan: &Plan, found: &Found) -> Option<Chart> {
    let along = plan.axes.iter().position(|axis| axis.numbers.is_some()).unwrap_or(0);
    let axis = plan.axes.get(along)?;
    let others_of = |answer: &Answer| {
        let mut choice = answer.choice.clone();
        choice.get(along).is_some().then(|| choice.remove(along));
        choice
    };
    let (kept_side, side, words) = match plan.goal {
        Goal::Maximise => (Kind::Below, "below the solid line", ["largest kept", "smallest broken"]),
        Goal::Minimise => (Kind::Above, "above the solid line", ["smallest kept", "largest broken"]),
    };
    let (mut series, mut legend) = (Vec::new(), Vec::new());
    let mut others: Vec<Vec<usize>> = found.answers.iter().map(others_of).collect();
    others.sort_unstable();
    others.dedup();
    for (hue, other) in others.iter().enumerate() {
        let answers: Vec<&Answer> =
            found.answers.iter().filter(|answer| others_of(answer) == *other).collect();
        let choice = answers.first().map_or(&[][..], |answer| answer.choice.as_slice());
        let label = text::combination(&plan.axes, choice, |place| place != along);
        if !label.is_empty() {
            legend.push(Entry { label: label.clone(), look: look(Some(hue), false) });
        }
        for dashed in [true, false] {
            let data = answers.iter().filter_map(|answer| {
                let chosen = *answer.choice.get(along)?;
                let value = if dashed { answer.edge.broken } else { answer.edge.kept }?;
                let what = if dashed { "broken" } else { "kept" };
                Some(Datum {
                    x: axis
                        .numbers
                        .as_ref()
                        .map_or(Some(chosen as f64), |numbers| numbers.get(chosen).copied())?,
                    y: plan.key.number(value),
                    half_width: None,
                    label: format!(
                        "{}: {} {what}",
                        text::combination(&plan.axes, &answer.choice, |_| true),
                        plan.key.written(value)
                    ),
                })
            });
            let mut data: Vec<Datum> = data.collect();
            data.sort_by(|a, b| a.x.total_cmp(&b.x));
            // Several regions on top of each other would tell nothing.
            if !dashed && others.len() == 1 && axis.numbers.is_some() {
                series.push(Series { look: look(Some(hue), false), kind: kept_side, data: data.clone() });
            }
            // Between words there is nothing that a line could pass through.
            let kind = if axis.numbers.is_some() { Kind::Markers } else { Kind::Points };
            series.push(Series { look: look(Some(hue), dashed), kind, data });
        }
    }
    let only = (others.len() == 1).then_some(0);
    for (word, dashed) in words.into_iter().zip([false, true]) {
        legend.push(Entry { label: word.to_owned(), look: look(only, dashed) });
    }
    let x_scale = match &axis.numbers {
        Some(numbers) => Scale::of_sweep(numbers),
        None => Scale::Words((0..axis.values.len()).map(|value| text::chosen(axis, value)).collect()),
    };
    if let Some((own, entry)) = own(plan, along, &x_scale, others.len()) {
        series.push(own);
        legend.push(entry);
    }
    // With room above the highest of them, so that something of a region above it is seen.
    let values: Vec<f64> = series.iter().flat_map(|series| &series.data).map(|datum| datum.y * 1.1).collect();
    let (key, against) = (text::short(plan.key.key()), text::short(&axis.key));
    (!values.is_empty()).then(|| Chart {
        title: format!("Region that keeps the limits: {key} against {against}"),
        description: format!(
            "For each {against}, the edge of {key}: the limits are kept {side} and broken beyond the dashed \
            line."
        ),
        x: Axis {
            label: with_unit(&against, text::unit(&axis.key, &axis.unit)),
            scale: x_scale,
            ticks: axis.numbers.as_ref().map(|numbers| {
                let tick = |at: &f64| Tick { at: *at, label: at.to_string() };
                numbers.iter().map(tick).collect()
            }),
        },
        y: Axis {
            label: with_unit(&key, text::unit(plan.key.key(), plan.key.unit())),
            scale: Scale::of_quantity(values.into_iter()),
            ticks: None,
        },
        legend,
        panels: vec![Panel { series, ..Panel::default() }],
    })
}

/// Where the file itself stands in the region, if that is within the axis: a marker of its own.
fn own(plan: &Plan, along: usize, x: &Scale, hue: usize) -> Option<(Series, Entry)> {
    let (at, value) = (plan.own.get(along).copied().flatten()?, plan.key.now()?);
    let is_within = match *x {
        Scale::Linear { min, max } | Scale::Log { min, max } => (min..=max).contains(&at),
        _ => false,
    };
    let key = &plan.axes.get(along)?.key;
    let unit = [" ", text::unit(key, &plan.axes.get(along)?.unit)].concat();
    let label = format!("as in the file: {}, {at}{}", plan.key.written(value), unit.trim_end());
    let look = Look { hue: Some(hue), dashed: false, marked: true, lined: false };
    let datum = Datum { x: at, y: plan.key.number(value), half_width: None, label: label.clone() };
    is_within.then(|| (Series { look, kind: Kind::Points, data: vec![datum] }, Entry { label, look }))
}

/// Each limit's figure at the values that were tried.
fn of_limits(plan: &Plan, found: &Found, answer: &Answer) -> Vec<(String, Chart)> {
    let key = text::short(plan.key.key());
    let numbers: Vec<f64> = answer.trials.iter().map(|trial| plan.key.number(trial.value)).collect();
    let tick = |trial: &Trial| Tick {
        at: plan.key.number(trial.value),
        label: plan.key.written(trial.value).trim_end_matches(plan.key.unit()).trim_end().to_owned(),
    };
    let ticks: Vec<Tick> = answer.trials.iter().map(tick).collect();
    let chart = |(place, limit): (usize, &trunkline_experiment::Limit)| {
        let judged = || answer.trials.iter().filter_map(|trial| Some((trial, trial.limits.get(place)?)));
        let means = judged().filter_map(|(_, judged)| Some(judged.estimate?.mean));
        let (unit, factor) = trunkline_report::limit_unit(limit, means.fold(limit.bound, f64::max));
        let name = limit_name(limit);
        let of_verdict = |hue: usize, verdict: Verdict| Series {
            look: Look { hue: Some(hue), dashed: false, marked: true, lined: false },
            kind: Kind::Points,
            data: judged()
                .filter(|(_, judged)| judged.verdict == verdict)
                .filter_map(|(trial, judged)| {
                    Some(Datum {
                        x: plan.key.number(trial.value),
                        y: judged.estimate?.mean * factor,
                        half_width: judged.half_width.map(|half| half * factor),
                        label: format!(
                            "{key} = {}: {name} {}",
                            plan.key.written(trial.value),
                            text::figure(limit, judged)
                        ),
                    })
                })
                .collect(),
        };
        let verdicts =
            [("kept", Verdict::Kept), ("broken", Verdict::Broken), ("not decided", Verdict::Undecided)];
        let series: Vec<(Series, &str)> = verdicts
            .iter()
            .enumerate()
            .map(|(hue, (word, verdict))| (of_verdict(hue, *verdict), *word))
            .collect();
        let bound = Bound { at: limit.bound * factor, label: text::limit(limit) };
        let ends = series.iter().flat_map(|(series, _)| &series.data);
        let ends: Vec<f64> = ends.map(|d| d.y + d.half_width.unwrap_or(0.0)).chain([bound.at]).collect();
        Chart {
            title: format!("{name} against {key}"),
            description: format!(
                "{name} at each tried {key}: mean, and the confidence bound of the verdict."
            ),
            x: Axis {
                label: with_unit(&key, text::unit(plan.key.key(), plan.key.unit())),
                scale: Scale::of_sweep(&numbers),
                ticks: Some(ticks.clone()),
            },
            y: Axis {
                label: with_unit(&name, unit),
                scale: Scale::of_quantity(ends.into_iter()),
                ticks: None,
            },
            legend: series
                .iter()
                .filter(|(series, _)| !series.data.is_empty())
                .map(|(series, word)| Entry { label: (*word).to_owned(), look: series.look })
                .collect(),
            panels: vec![Panel {
                title: String::new(),
                series: series.into_iter().map(|(series, _)| series).collect(),
                bounds: vec![bound],
            }],
        }
    };
    let charts = found.limits.iter().enumerate().map(|(place, limit)| {
        (format!("{}-{place}", limit_name(limit).replace('.', "-")), chart((place, limit)))
    });
    charts
        .filter(|(_, chart)| chart.panels.iter().flat_map(|panel| &panel.series).any(|s| !s.data.is_empty()))
        .collect()
}

/// `voice.loss`
fn limit_name(limit: &trunkline_experiment::Limit) -> String {
    text::short(&limit.key)
}

fn with_unit(label: &str, unit: &str) -> String {
    if unit.is_empty() { label.to_owned() } else { format!("{label}, {unit}") }
}

/// Solid with filled markers: kept; dashed with hollow ones: broken.
fn look(hue: Option<usize>, dashed: bool) -> Look {
    Look { hue, dashed, marked: true, lined: true }
}
