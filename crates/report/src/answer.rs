//! The answer of a run in figures, where its limits do not give one.

use trunkline_metrics::figures::{self, FigureKind};
use trunkline_metrics::{FlowSummary, Measured};

use crate::limited;
use crate::units::Readable as _;
use crate::view::{Side, View, point_name};

/// The share of lost and late audio from which on a call is unusable: with 5 %, G.711 has an R-factor below 50 (ITU-T G.107 with
/// the Bpl of G.113, Appendix I).
const UNUSABLE: f64 = 0.05;
/// Figures that judge lost and late audio.
const OF_AUDIO: [&str; 9] =
    ["affected", "loss", "late", "loss_and_late", "mos", "r", "underflows", "undelivered", "not_in_time"];

/// The largest latency of a flow with audio, or of any flow if none has audio, and the largest share of audio that was lost or
/// late. `None` if nothing was received.
pub(crate) fn largest(view: &View, side: &Side) -> Option<String> {
    let (latency, affected) = (figures::flow("latency_p99"), figures::flow("affected"));
    let audio = audible(view, side);
    let flows = if audio.is_empty() { &view.flows } else { &audio };
    let (flow, point, value) = worst(view, side, flows, latency)?;
    let way = way(side, flow, latency);
    let value = latency.quantity.show(value);
    let mut text = format!("Largest: {flow} {way}{} is {value}{}", latency.name, at_point(view, point));
    if let Some((flow, point, value)) = worst(view, side, &audio, affected).filter(|(.., value)| *value > 0.0)
    {
        let value = affected.quantity.show(value);
        text += &format!("; {value} of {flow} is lost or late{}", at_point(view, point));
    }
    Some(text + ".")
}

/// A sentence on audio that nobody can listen to although the limits hold, because none is about it; empty without such audio.
pub(crate) fn unusable(view: &View, side: &Side) -> String {
    let is_limited = |name: &str| {
        let of_audio = |figure: &FigureKind| OF_AUDIO.contains(&figure.id);
        view.limits()
            .iter()
            .any(|limit| limited::name(limit, view) == name && of_audio(limited::figure(limit)))
    };
    let open: Vec<&str> = audible(view, side).into_iter().filter(|name| !is_limited(name)).collect();
    let affected = figures::flow("affected");
    match worst(view, side, &open, affected) {
        Some((flow, point, value)) if value >= UNUSABLE => format!(
            " But {} of {flow} is lost or late{}, and no limit is about that.",
            affected.quantity.show(value),
            at_point(view, point)
        ),
        _ => String::new(),
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
    let is_round_trip = |one: &&FlowSummary| one.measured == Measured::RoundTrip;
    let all = || side.run.points.iter().flat_map(|point| side.flow(point.index, flow));
    if figure.id.starts_with("latency") && all().any(|one| is_round_trip(&one)) { "round-trip " } else { "" }
}

/// The flows with audio that was due.
fn audible<'a>(view: &View<'a>, side: &Side) -> Vec<&'a str> {
    let points = || view.points().iter().map(|point| point.index);
    let is_audio = |name: &&&str| points().any(|at| side.flow(at, name).iter().any(|f| f.affected.is_some()));
    view.flows.iter().filter(is_audio).copied().collect()
}

/// The flow and the point at which a figure is largest, and its mean there.
fn worst<'a>(
    view: &View,
    side: &Side,
    flows: &[&'a str],
    figure: &FigureKind,
) -> Option<(&'a str, u32, f64)> {
    let points = || view.points().iter().map(|point| point.index);
    let of = |flow: &'a str| {
        points().filter_map(move |at| Some((flow, at, side.estimate(at, flow, figure)?.mean)))
    };
    flows.iter().flat_map(|flow| of(flow)).max_by(|a, b| a.2.total_cmp(&b.2))
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
        assert!(!first_line(&run).contains("But"), "the limit on loss is about it");
    }
}
