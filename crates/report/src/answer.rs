//! The answer of a run in figures, where its limits do not give one.

use std::collections::BTreeSet;

use trunkline_metrics::Measured;
use trunkline_metrics::figures::{self, FigureKind};
use trunkline_store::StoredPoint;

use crate::limited;
use crate::units::Readable as _;
use crate::view::{Side, View, counted, over_repetitions, point_name};

/// The share of audio that is not heard in time from which on a call is unusable: with 5 %, G.711 has an R-factor below 50 (ITU-T G.107 with
/// the Bpl of G.113, Appendix I).
const UNUSABLE: f64 = 0.05;
/// Figures that judge all audio that was not heard in time.
const OF_ALL: [&str; 5] = ["affected", "not_in_time", "mos", "r", "underflows"];
/// Its parts: a figure, its word, and the figures that judge it.
const PARTS: [(&str, &str, &[&str]); 4] = [
    ("loss", "lost", &["loss", "loss_and_late", "undelivered"]),
    ("late", "late", &["late", "loss_and_late"]),
    ("refused_share", "refused", &["refused_share", "undelivered"]),
    ("unfinished_share", "unfinished", &["unfinished_share", "undelivered"]),
];

/// The largest latency of a flow with audio, or of any flow if none has audio, and the largest share of audio that was not heard in
/// time. `None` if nothing was received.
pub(crate) fn largest(view: &View, side: &Side) -> Option<String> {
    let affected = figures::flow("affected");
    let audio = audible(view, side);
    let mut text = format!("Largest: {}", largest_latency(view, side)?);
    if let Some((flow, point, value)) = worst(view, side, &audio, affected).filter(|(.., value)| *value > 0.0)
    {
        let (value, unheard) = (affected.quantity.show(value), unheard(side, flow, point));
        text += &format!("; {value} of {flow} is {unheard}{}", at_point(view, point));
    }
    Some(text + ".")
}

/// `voice round-trip latency p99 is 302 ms at bulk.count = 4`.
pub(crate) fn largest_latency(view: &View, side: &Side) -> Option<String> {
    let latency = figures::flow("latency_p99");
    let audio = audible(view, side);
    let flows = if audio.is_empty() { &view.flows } else { &audio };
    let (flow, point, value) = worst(view, side, flows, latency)?;
    let (way, value) = (way(side, flow, latency), latency.quantity.show(value));
    Some(format!("{flow} {way}{} is {value}{}", latency.name, at_point(view, point)))
}

/// A sentence on audio that nobody can listen to although the limits hold, because none is about it; empty without such audio.
pub(crate) fn unusable(view: &View, side: &Side) -> String {
    let open = audible(view, side).into_iter().flat_map(|flow| {
        let open = unlimited(view, flow).into_iter();
        open.filter_map(move |(figure, word)| Some((figure, word, worst(view, side, &[flow], figure)?)))
    });
    match open.max_by(|(.., a), (.., b)| a.2.total_cmp(&b.2)) {
        Some((figure, word, (flow, point, value))) if value >= UNUSABLE => format!(
            " But {} of {flow} is {}{}, and no limit is about that.",
            figure.quantity.show(value),
            word.map_or_else(|| unheard(side, flow, point), str::to_owned),
            at_point(view, point)
        ),
        _ => String::new(),
    }
}

/// The figures of a flow's unheard audio that no limit is about, with their words; empty if limits are about all of it.
fn unlimited(view: &View, flow: &str) -> Vec<(&'static FigureKind, Option<&'static str>)> {
    let of_flow = view.limits().iter().filter(|limit| limited::name(limit, view) == flow);
    let limited: Vec<&str> = of_flow.map(|limit| limited::figure(limit).id).collect();
    let is_limited = |figures: &[&str]| limited.iter().any(|id| figures.contains(id));
    let open = PARTS.iter().filter(|(.., judges)| !is_limited(judges));
    let open: Vec<_> = open.map(|(figure, word, _)| (figures::flow(figure), Some(*word))).collect();
    if is_limited(&OF_ALL) {
        Vec::new()
    } else if open.len() == PARTS.len() {
        vec![(figures::flow("affected"), None)]
    } else {
        open
    }
}

/// The reasons why audio of a flow was not heard in time at a point: `lost or late`, `late, refused or unfinished`.
fn unheard(side: &Side, flow: &str, point: u32) -> String {
    let has = |figure: &FigureKind| {
        let values = side.flow(point, flow).into_iter().map(|summary| figure.value(summary));
        over_repetitions(values).is_some_and(|share| share.mean > 0.0)
    };
    let mut words: Vec<&str> =
        PARTS.iter().filter(|(figure, ..)| has(figures::flow(figure))).map(|(_, word, _)| *word).collect();
    match words.pop() {
        Some(last @ ("refused" | "unfinished")) if words.is_empty() => last.to_owned(),
        Some(last @ ("refused" | "unfinished")) => format!("{} or {last}", words.join(", ")),
        _ => "lost or late".to_owned(),
    }
}

/// ` at bulk.count = 4`; empty where nothing is swept.
pub(crate) fn at_point(view: &View, index: u32) -> String {
    let point = view.points().iter().find(|point| point.index == index);
    let name = point.map(|point| point_name(point, view.axes())).filter(|name| !name.is_empty());
    name.map_or_else(String::new, |name| format!(" at {name}"))
}

/// `round-trip ` before the name of a latency that is one.
pub(crate) fn way(side: &Side, flow: &str, figure: &FigureKind) -> &'static str {
    let mut summaries = side.run.points.iter().flat_map(counted).flat_map(|summary| &summary.flows);
    let measured = summaries.find(|one| one.flow == flow).map(|one| one.measured);
    let is_one = figure.id.starts_with("latency") && measured == Some(Measured::RoundTrip);
    if is_one { "round-trip " } else { "" }
}

/// The flows with audio that was due.
fn audible<'a>(view: &View<'a>, side: &Side) -> Vec<&'a str> {
    let summaries = side.run.points.iter().flat_map(counted).flat_map(|summary| &summary.flows);
    let audible: BTreeSet<&str> =
        summaries.filter(|flow| flow.affected.is_some()).map(|flow| flow.flow.as_str()).collect();
    view.flows.iter().copied().filter(|name| audible.contains(name)).collect()
}

/// The flow and the point at which a figure is largest, and its mean there.
fn worst<'a>(
    view: &View,
    side: &Side,
    flows: &[&'a str],
    figure: &FigureKind,
) -> Option<(&'a str, u32, f64)> {
    let of_point = |point: &'_ StoredPoint, name: &'a str| {
        let own = counted(point).filter_map(|summary| summary.flows.iter().find(|flow| flow.flow == name));
        Some((name, point.index, over_repetitions(own.map(|flow| figure.value(flow)))?.mean))
    };
    let points = side.run.points.iter().filter(|point| view.run().info.has(point.index));
    let all = points.flat_map(|point| flows.iter().filter_map(move |name| of_point(point, name)));
    all.max_by(|a, b| a.2.total_cmp(&b.2))
}

#[cfg(test)]
mod tests {
    use trunkline_core::Ratio;
    use trunkline_experiment::Subject;
    use trunkline_metrics::figures;
    use trunkline_store::{Backend, StoredRun};

    use crate::{Screen, fixtures, terminal};

    /// A run in which this share of a call is not heard in time.
    fn affected(mut run: StoredRun, share: f64) -> StoredRun {
        let repetitions = run.points.iter_mut().flat_map(|point| &mut point.repetitions);
        for flow in repetitions.filter_map(|one| one.summary.as_mut()).flat_map(|summary| &mut summary.flows)
        {
            flow.affected = (flow.flow == "voice").then(|| Ratio::new(share).unwrap_or_default());
        }
        run
    }

    fn first_line(run: &StoredRun) -> String {
        terminal(run, Screen::default()).lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn without_limits_the_largest_latency_of_audio_is_the_answer() {
        let mut run = affected(fixtures::swept(Backend::Sim), 0.25);
        run.limits.clear();
        let line = first_line(&run);
        assert!(line.contains("sets no limits. Largest: voice round-trip latency p99 is "), "{line}");
        assert!(
            line.contains(" ms at bulk.count = ") && line.contains("; 25 % of voice is lost or late"),
            "{line}"
        );
        let line = first_line(&affected(run, 0.0));
        assert!(line.contains("Largest: voice") && !line.contains("lost or late"), "{line}");
    }

    #[test]
    fn limits_that_hold_do_not_praise_audio_that_nobody_can_listen_to() {
        let mut run = affected(fixtures::single(Backend::Sim), 0.25);
        run.limits.retain(|limit| limit.key.contains("latency"));
        for limit in &mut run.limits {
            limit.bound = 10.0;
        }
        let line = first_line(&run);
        assert!(line.ends_with("But 25 % of voice is lost or late, and no limit is about that."), "{line}");
        assert!(!first_line(&affected(run.clone(), 0.01)).contains("But"));
        run.limits = fixtures::limits();
        for limit in &mut run.limits {
            limit.bound = 10.0;
        }
        assert!(!first_line(&run).contains("But"), "a limit is on loss, and nothing is late");
        for flow in run.points.iter_mut().flat_map(|point| &mut point.repetitions).flat_map(|one| {
            one.summary.iter_mut().flat_map(|summary| &mut summary.flows).filter(|flow| flow.flow == "voice")
        }) {
            flow.late = Ratio::new(0.4).unwrap_or_default();
        }
        let line = first_line(&run);
        assert!(line.ends_with("But 40 % of voice is late, and no limit is about that."), "{line}");
    }

    /// A run in which this share of a call was refused, and the rest had not arrived.
    fn refused(share: f64) -> StoredRun {
        let mut run = affected(fixtures::single(Backend::Sim), share);
        for flow in run.points.iter_mut().flat_map(|point| &mut point.repetitions).flat_map(|one| {
            one.summary.iter_mut().flat_map(|summary| &mut summary.flows).filter(|flow| flow.flow == "voice")
        }) {
            (flow.loss, flow.late) = (Ratio::ZERO, Ratio::ZERO);
            (flow.refused, flow.unfinished) = (flow.affected.unwrap_or_default(), Ratio::ONE);
        }
        run
    }

    #[test]
    fn what_was_refused_or_had_not_arrived_is_not_called_lost() {
        let mut run = refused(0.25);
        run.limits.clear();
        let line = first_line(&run);
        assert!(line.contains("25 % of voice is refused or unfinished"), "{line}");
    }

    #[test]
    fn limits_are_about_the_parts_that_they_judge() {
        let mut run = refused(0.25);
        run.limits.truncate(1);
        run.limits[0].bound = 10.0;
        for (figure, open) in [
            ("undelivered", None),
            ("loss_and_late", Some("But 100 % of voice is unfinished, and no limit is about that.")),
            ("unfinished_share", Some("But 25 % of voice is refused, and no limit is about that.")),
        ] {
            run.limits[0].subject = Subject::Flow { flow: 0, sink: None, metric: figures::flow(figure) };
            let line = first_line(&run);
            assert_eq!(line.contains("But"), open.is_some(), "{figure}: {line}");
            assert!(line.ends_with(open.unwrap_or_default()), "{figure}: {line}");
        }
    }
}
