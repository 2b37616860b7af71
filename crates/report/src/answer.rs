//! The answer of a run in figures, where its limits do not give one.

use std::collections::BTreeSet;

use trunkline_metrics::Measured;
use trunkline_metrics::figures::{self, FigureKind};
use trunkline_store::StoredPoint;

use crate::limited;
use crate::units::Readable as _;
use crate::view::{Side, View, counted, over_repetitions, point_name};

/// The share of lost and late audio from which on a call is unusable: with 5 %, G.711 has an R-factor below 50 (ITU-T G.107 with
/// the Bpl of G.113, Appendix I).
const UNUSABLE: f64 = 0.05;
/// Figures that judge both lost and late audio; those that judge lost audio only; and that of late audio.
const OF_BOTH: [&str; 6] = ["affected", "loss_and_late", "not_in_time", "mos", "r", "underflows"];
const OF_LOST: [&str; 2] = ["loss", "undelivered"];
const OF_LATE: &str = "late";

/// The largest latency of a flow with audio, or of any flow if none has audio, and the largest share of audio that was lost or
/// late. `None` if nothing was received.
pub(crate) fn largest(view: &View, side: &Side) -> Option<String> {
    let affected = figures::flow("affected");
    let audio = audible(view, side);
    let mut text = format!("Largest: {}", largest_latency(view, side)?);
    if let Some((flow, point, value)) = worst(view, side, &audio, affected).filter(|(.., value)| *value > 0.0)
    {
        let value = affected.quantity.show(value);
        text += &format!("; {value} of {flow} is lost or late{}", at_point(view, point));
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
    let open = audible(view, side).into_iter().filter_map(|flow| {
        let (figure, word) = unlimited(view, flow)?;
        let (_, point, value) = worst(view, side, &[flow], figure)?;
        Some((flow, figure, word, point, value))
    });
    match open.max_by(|a, b| a.4.total_cmp(&b.4)) {
        Some((flow, figure, word, point, value)) if value >= UNUSABLE => format!(
            " But {} of {flow} is {word}{}, and no limit is about that.",
            figure.quantity.show(value),
            at_point(view, point)
        ),
        _ => String::new(),
    }
}

/// The figure of a flow's unheard audio that no limit is about, in a word; `None` if all of it has limits.
fn unlimited(view: &View, flow: &str) -> Option<(&'static FigureKind, &'static str)> {
    let of_flow = view.limits().iter().filter(|limit| limited::name(limit, view) == flow);
    let limited: Vec<&str> = of_flow.map(|limit| limited::figure(limit).id).collect();
    let is_limited = |figures: &[&str]| limited.iter().any(|id| figures.contains(id));
    match (is_limited(&OF_LOST), is_limited(&[OF_LATE])) {
        _ if is_limited(&OF_BOTH) => None,
        (true, true) => None,
        (true, false) => Some((figures::flow(OF_LATE), "late")),
        (false, true) => Some((figures::flow("loss"), "lost")),
        (false, false) => Some((figures::flow("affected"), "lost or late")),
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
}
