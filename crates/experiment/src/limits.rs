//! What counts as good enough: `"flow.voice.latency.p999" = "< 150 ms"`; of one of several sinks
//! `"flow.voice.sink.c.latency.p999" = "< 150 ms"`; of a flow that is made for several hosts, every one by itself
//! `"flow.up.each.loss" = "< 1 %"`, or one `"flow.up-7.loss" = "< 1 %"`; of a bundle `"bundle.trunk.throughput" = "> 1 Mbit/s"`; of its
//! connections over one transport `"bundle.trunk.udp.loss.max" = "< 1 %"`.

mod grain;
pub(crate) mod stored;

use core::ops::Range;
use core::str::FromStr;
use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline_core::{Bytes, Duration, QuantityError, Rate, Ratio};
use trunkline_metrics::figures::{self, FigureKind, LimitKey, Quantity};
use trunkline_metrics::{FlowMeta, Measured, RepetitionSummary};

use crate::alike::{self, Counts};
use crate::model::{Figure, Limit, Operator, Scenario, Single, Subject};
use crate::problem::{Remark, enumerate, suggestion};
use crate::read::MOST_REMARKS;
use crate::sweep::flattened;
use crate::tree::{Entry, Item, Node, Table};

pub use grain::Grain;

/// A figure that a limit can name.
#[derive(Clone, Copy)]
pub struct Limited {
    /// The figure.
    pub figure: &'static FigureKind,
    /// Its name behind that of what has it.
    pub limit: LimitKey,
}

fn limited(
    figures: impl Iterator<Item = &'static FigureKind> + Clone,
) -> impl Iterator<Item = Limited> + Clone {
    figures.filter_map(|figure| Some(Limited { figure, limit: figure.limit? }))
}

/// Every figure of a flow that a limit can name.
pub fn of_flows() -> impl Iterator<Item = Limited> + Clone {
    limited(figures::of_flows())
}

/// Those of them that each of several sinks has by itself.
pub fn of_sinks() -> impl Iterator<Item = Limited> + Clone {
    of_flows().filter(|known| known.figure.is_of_sinks())
}

/// Every figure of a bundle as a whole that a limit can name.
pub fn of_bundles() -> impl Iterator<Item = Limited> + Clone {
    limited(figures::of_bundles().filter(|figure| figure.is_of_bundles()))
}

/// The same of a bundle's connections over one transport. Each is taken of every connection first.
pub fn of_connections() -> impl Iterator<Item = Limited> + Clone {
    limited(figures::of_bundles().filter(|figure| figure.is_of_connections()))
}

/// The signs, the longer ones first.
pub(crate) const OPERATORS: &[(&str, Operator)] =
    &[("<=", Operator::AtMost), (">=", Operator::AtLeast), ("<", Operator::Less), (">", Operator::Greater)];

impl Operator {
    /// Returns true if `value` is good enough for `bound`.
    pub fn holds(&self, value: f64, bound: f64) -> bool {
        match self {
            Operator::Less => value < bound,
            Operator::AtMost => value <= bound,
            Operator::Greater => value > bound,
            Operator::AtLeast => value >= bound,
        }
    }
}

impl Limit {
    /// The figure that the limit is about, in one repetition.
    pub fn figure(&self, of: &RepetitionSummary) -> Figure {
        let (members, value) = match &self.subject {
            Subject::Single { flow, single, metric } => {
                let Some(flow) = of.flows.get(*flow) else { return Figure::NotMeasured };
                let value = match single {
                    Single::Each => self.worst(flow.each.iter().map(|one| metric.value(one))),
                    Single::Number(number) => match flow.each.get(*number as usize - 1) {
                        Some(one) => metric.value(one),
                        None => return Figure::NotApplicable,
                    },
                };
                (flow.members, value)
            }
            Subject::Flow { flow, sink, metric } => {
                let Some(flow) = of.flows.get(*flow) else { return Figure::NotMeasured };
                let at = |sink: &String| {
                    metric.value_of_sink(flow.sinks.iter().find(|summary| summary.sink == *sink)?)
                };
                (flow.members, sink.as_ref().map_or_else(|| metric.value(flow), at))
            }
            Subject::Bundle { bundle, metric } => {
                let Some(bundle) = of.bundles.get(*bundle) else { return Figure::NotMeasured };
                (bundle.members, metric.value_of_bundle(bundle))
            }
            Subject::Class { bundle, transport, metric } => {
                let Some(bundle) = of.bundles.get(*bundle) else { return Figure::NotMeasured };
                match bundle.classes.iter().find(|class| class.transport == *transport) {
                    Some(class) => (class.members, metric.value_of_connections(class)),
                    None => return Figure::NotApplicable,
                }
            }
        };
        match members {
            0 => Figure::NotApplicable,
            _ => value.map_or(Figure::NotMeasured, Figure::Value),
        }
    }
}

impl Limit {
    /// True if the limit's figure in a repetition is extrapolated beyond the range in which the E-model holds.
    pub fn is_outside_model(&self, of: &RepetitionSummary) -> bool {
        let (flow, single, metric) = match &self.subject {
            Subject::Single { flow, single, metric } => (flow, Some(single), metric),
            Subject::Flow { flow, metric, .. } => (flow, None, metric),
            Subject::Bundle { .. } | Subject::Class { .. } => return false,
        };
        let Some(flow) = of.flows.get(*flow) else { return false };
        match single {
            None => flow.is_outside_model(metric),
            Some(Single::Each) => flow.each.iter().any(|one| one.is_outside_model(metric)),
            Some(Single::Number(number)) => {
                flow.each.get(*number as usize - 1).is_some_and(|one| one.is_outside_model(metric))
            }
        }
    }

    /// The figure that breaks the limit most or is nearest to it; `None` if one was not measured.
    fn worst(&self, figures: impl Iterator<Item = Option<f64>>) -> Option<f64> {
        let worse: fn(f64, f64) -> f64 = match self.operator {
            Operator::Less | Operator::AtMost => f64::max,
            Operator::Greater | Operator::AtLeast => f64::min,
        };
        figures.reduce(|worst, figure| Some(worse(worst?, figure?))).flatten()
    }
}

/// Reads the limits of a file, each with the place of its key.
pub(crate) fn read(root: &Table, remarks: &mut Vec<Remark>) -> Vec<(Range<usize>, Limit)> {
    let mut limits = Vec::new();
    for (key, key_span, node) in flattened(root, "limits", remarks) {
        if remarks.len() >= MOST_REMARKS {
            break;
        }
        let (subject, known) = match target(&key, root) {
            Ok(target) => target,
            Err(message) => {
                remarks.push(Remark::new(key_span, message));
                continue;
            }
        };
        let Some(text) = node.text() else {
            let message =
                format!("the limit of `{key}` must be a text such as `< 1 %`, not {}", node.describe());
            remarks.push(Remark::new(node.span.clone(), message));
            continue;
        };
        let read = condition(text, known).and_then(|(operator, bound)| {
            decides(operator, bound, known.figure).map_err(|why| format!("`{}` {why}", text.trim()))?;
            Ok((operator, bound))
        });
        match read {
            Ok((operator, bound)) => {
                limits.push((key_span, Limit { key, condition: text.to_owned(), subject, operator, bound }));
            }
            Err(problem) => {
                remarks.push(Remark::new(node.span.clone(), format!("the limit of `{key}`: {problem}")));
            }
        }
    }
    limits
}

/// Why a flow with members does not have a figure, if it has not.
fn never_known(metric: &FigureKind, flow: &FlowMeta) -> Option<&'static str> {
    let playback = flow.voice_path.and_then(|path| path.playback);
    match metric.id {
        "capture_overflows" if flow.voice_path.is_none_or(|path| !path.captures) => {
            Some("this flow has no A/D FIFO (`fifo` of the source `voice`)")
        }
        "samples_lost" if flow.voice_path.is_none() => {
            Some("this flow has neither an A/D FIFO (`fifo` of the source `voice`) nor a `playback`")
        }
        "capture_overflows" | "samples_lost" => None,
        _ if flow.measured == Measured::Nothing => Some("the messages of this flow have no sink"),
        "late" | "loss_and_late" | "not_in_time" if flow.playout.is_none() => {
            Some("without a `playout` no message is late")
        }
        "mos" | "r" | "mouth_to_ear" | "ppl" if flow.listening.is_none() => Some(
            "quality is that of speech in one direction that is played; this flow needs a `playout` or a `playback`, the source \
             `voice` or a `codec`, and no `reflect`",
        ),
        "throughput_answers" if !flow.is_answered => {
            Some("answers are counted in flows with `reflect` whose source has an `answer`")
        }
        "affected" if !flow.carries_audio => Some("this flow carries no audio"),
        "fairness" if flow.members == 1 && flow.sinks.len() < 2 => Some("this flow has only one member"),
        _ if VOICE_PATH.contains(&metric) && playback.is_none() => Some("this flow has no `playback`"),
        _ => None,
    }
}

/// Figures of a D/A FIFO.
const VOICE_PATH: &[&FigureKind] = &[
    figures::flow("start_up_mean"),
    figures::flow("start_up_max"),
    figures::flow("margin_mean"),
    figures::flow("margin_min"),
    figures::flow("margin_p001"),
    figures::flow("margin_p01"),
    figures::flow("underflows"),
    figures::flow("silence"),
    figures::flow("silence_longest"),
    figures::flow("playback_overflows"),
];

/// The limits, with a remark on each that no point of the experiment can measure, or that names a transport which its bundle has
/// at no point.
pub(crate) fn checked<S: Iterator<Item = Arc<Scenario>>>(
    limits: Vec<(Range<usize>, Limit)>,
    points: impl Fn() -> S,
    remarks: &mut Vec<Remark>,
) -> Vec<Limit> {
    for (key_span, limit) in &limits {
        if let Subject::Single { flow, single: Single::Number(number), .. } = &limit.subject {
            let most = points().filter_map(|scenario| Some(scenario.flows.get(*flow)?.each.len())).max();
            if most.is_some_and(|most| most < *number as usize) {
                let most = most.unwrap_or_default();
                let name = points().find_map(|scenario| Some(scenario.flows.get(*flow)?.meta.name.clone()));
                let name = name.unwrap_or_default();
                let known = match most {
                    1 => format!("`{name}-1` only"),
                    most => format!("`{name}-1` to `{name}-{most}`"),
                };
                let message =
                    format!("`{}`: there is no `{name}-{number}`; the flow stands for {known}", limit.key);
                remarks.push(Remark::new(key_span.clone(), message));
            }
        }
        if let Subject::Single { flow, metric, .. } | Subject::Flow { flow, metric, .. } = &limit.subject {
            // Limits do not apply to a flow without members.
            let mut reasons = points().filter_map(|scenario| {
                let flow = scenario.flows.get(*flow).filter(|flow| flow.meta.members > 0)?;
                Some(never_known(metric, &flow.meta))
            });
            let first = reasons.next().flatten();
            if let Some(why) = first.filter(|_| reasons.all(|reason| reason.is_some())) {
                remarks
                    .push(Remark::new(key_span.clone(), format!("`{}` is never measured: {why}", limit.key)));
            }
        }
        let Subject::Class { bundle, transport, metric } = &limit.subject else { continue };
        let (mut name, mut known, mut most) = (String::new(), BTreeSet::new(), 0);
        for scenario in points() {
            let Some(bundle) = scenario.bundles.get(*bundle) else { continue };
            name.clone_from(&bundle.name);
            let flows = bundle.flows.iter().map(|flow| &scenario.flows[*flow].meta);
            known.extend(flows.clone().map(|flow| flow.transport.clone()));
            let of_it = flows.filter(|flow| flow.transport == *transport);
            most = most.max(of_it.map(|flow| flow.members).sum());
        }
        if !known.contains(transport) {
            let nearest = suggestion(transport, known.iter().map(String::as_str));
            let message = format!("the bundle `{name}` has no transport `{transport}`{nearest}");
            remarks.push(Remark::new(key_span.clone(), message));
        } else if metric.id == "fairness" && most == 1 {
            let message = format!(
                "`{}` is never measured: the bundle `{name}` has only one connection of `{transport}`",
                limit.key
            );
            remarks.push(Remark::new(key_span.clone(), message));
        }
    }
    limits.into_iter().map(|(_, limit)| limit).collect()
}

/// What a key names, and the figure with the unit of its bound.
fn target(key: &str, root: &Table) -> Result<(Subject, Limited), String> {
    let named = |section: &str| {
        let rest = key.strip_prefix(section)?.strip_prefix('.')?;
        let entries = root.node(section).and_then(Node::table).map(|table| &*table.0).unwrap_or_default();
        rest.split_once('.').map(|(name, figure)| (name, figure, entries))
    };
    let place = |section: &str, name: &str, entries: &[Entry]| {
        entries.iter().position(|entry| &*entry.key == name).ok_or_else(|| {
            let names = entries.iter().map(|entry| &*entry.key);
            format!("there is no {section} `{name}`{}", suggestion(name, names))
        })
    };
    if let Some((name, figure, flows)) = named("flow") {
        let hosts = alike::counts(root);
        let is_known = flows.iter().any(|entry| &*entry.key == name);
        if let Some((flow, number)) = single(name, flows, &hosts).filter(|_| !is_known) {
            let known = find("a flow", figure, of_flows())?;
            let single = Single::Number(number);
            return Ok((Subject::Single { flow, single, metric: known.figure }, known));
        }
        let flow = place("flow", name, flows)?;
        return of_flow(flow, &flows[flow], figure, &hosts);
    }
    if let Some((name, figure, bundles)) = named("bundle") {
        return of_bundle(place("bundle", name, bundles)?, name, figure);
    }
    Err(format!(
        "`{key}` is neither `flow.NAME.FIGURE` nor `bundle.NAME.FIGURE` nor `bundle.NAME.TRANSPORT.FIGURE`; the figures of \
         a flow are {}",
        enumerate(of_flows().map(|known| known.limit.key))
    ))
}

/// The flow and the number that `up-7` means, if `up` is made for each of several hosts.
fn single(name: &str, flows: &[Entry], hosts: &Counts) -> Option<(usize, u32)> {
    let (written, number) = name.rsplit_once('-')?;
    let number = number.parse().ok().filter(|parsed: &u32| *parsed > 0 && parsed.to_string() == number)?;
    let flow = flows.iter().position(|entry| &*entry.key == written)?;
    alike::count_of_flow(flows[flow].node.table()?, hosts)?;
    Some((flow, number))
}

/// A figure of a flow, of each that it is made as, or of the sink that it names.
fn of_flow(index: usize, entry: &Entry, figure: &str, hosts: &Counts) -> Result<(Subject, Limited), String> {
    let flow = &entry.key;
    if let Some(figure) = figure.strip_prefix("each.") {
        if entry.node.table().and_then(|table| alike::count_of_flow(table, hosts)).is_none() {
            return Err(format!("the flow `{flow}` does not expand to several flows; omit `each.`"));
        }
        let known = find("a flow", figure, of_flows())?;
        let subject = Subject::Single { flow: index, single: Single::Each, metric: known.figure };
        return Ok((subject, known));
    }
    let (sink, figure) = match figure.strip_prefix("sink.").and_then(|rest| rest.split_once('.')) {
        Some((sink, figure)) => (Some(sink), figure),
        None => (None, figure),
    };
    if let Some(sink) = sink {
        let sinks = sinks(&entry.node, hosts);
        if sinks.len() < 2 {
            return Err(format!("the flow `{flow}` does not have several sinks; omit `sink.{sink}.`"));
        }
        if !sinks.iter().any(|known| known == sink) {
            let known = sinks.iter().map(String::as_str);
            return Err(format!("the flow `{flow}` has no sink `{sink}`{}", suggestion(sink, known)));
        }
    }
    let known = match sink {
        Some(_) => find("a sink", figure, of_sinks())?,
        None => find("a flow", figure, of_flows())?,
    };
    let subject = Subject::Flow { flow: index, sink: sink.map(str::to_owned), metric: known.figure };
    Ok((subject, known))
}

/// A figure of a bundle, or of its connections over the transport that it names. Which transports it has is known only
/// when its flows have been read.
fn of_bundle(bundle: usize, name: &str, figure: &str) -> Result<(Subject, Limited), String> {
    if let Some(known) = of_bundles().find(|known| known.limit.key == figure) {
        return Ok((Subject::Bundle { bundle, metric: known.figure }, known));
    }
    let is_whole_or_begins = |key: &str| key == figure || key.starts_with(&format!("{figure}."));
    if of_connections().any(|known| is_whole_or_begins(known.limit.key)) {
        return Err(format!(
            "`{figure}` is a figure of connections, not of the whole bundle: name their transport, \
             `bundle.{name}.TRANSPORT.{figure}`"
        ));
    }
    let Some((transport, figure)) = figure.split_once('.') else {
        return Err(find("a bundle", figure, of_bundles()).err().unwrap_or_default());
    };
    let known = find("a transport of a bundle", figure, of_connections())?;
    let subject = Subject::Class { bundle, transport: transport.to_owned(), metric: known.figure };
    Ok((subject, known))
}

fn find(of: &str, figure: &str, all: impl Iterator<Item = Limited> + Clone) -> Result<Limited, String> {
    all.clone().find(|known| known.limit.key == figure).ok_or_else(|| {
        let names = all.map(|known| known.limit.key);
        format!("{of} has no figure `{figure}`{}", suggestion(figure, names))
    })
}

/// The hosts in the list of a flow's sinks; none if it has one sink without a list.
fn sinks(flow: &Node, hosts: &Counts) -> Vec<String> {
    let Some(Item::Array(sinks)) = flow.table().and_then(|flow| flow.node("to")).map(|to| &to.item) else {
        return Vec::new();
    };
    let names = sinks.iter().filter_map(|sink| sink.text().or_else(|| sink.table()?.node("host")?.text()));
    let each = |name: &str| match hosts.get(name) {
        Some(count) => (1..=*count).map(|number| alike::numbered(name, number)).collect(),
        None => vec![name.to_owned()],
    };
    names.flat_map(each).collect()
}

/// Checks that the limit can both hold and break; otherwise says why it cannot, and the figure's range.
fn decides(operator: Operator, bound: f64, figure: &FigureKind) -> Result<(), String> {
    let (least, greatest) = figure.range();
    let outcome = match [least, greatest].map(|value| operator.holds(value, bound)) {
        [true, true] => "always holds",
        [false, false] => "can never hold",
        _ => return Ok(()),
    };
    let range = match (figure.quantity, greatest.is_finite()) {
        (Quantity::Share, _) => "from 0 % to 100 %".to_owned(),
        (_, true) => format!("from {least} to {greatest}"),
        (_, false) => format!("{least} or more"),
    };
    Err(format!("{outcome}; expected a bound within the range of the figure, {range}"))
}

/// `< 150 ms`
fn condition(text: &str, known: Limited) -> Result<(Operator, f64), String> {
    let text = text.trim();
    let signs = OPERATORS.iter().find_map(|(sign, operator)| Some((operator, text.strip_prefix(sign)?)));
    let Some((operator, value)) = signs else {
        return Err(format!("`{text}` does not begin with `<`, `<=`, `>` or `>=`"));
    };
    let value = value.trim();
    let (magnitude, sign) = match value.strip_prefix('-').filter(|_| known.limit.is_signed) {
        Some(magnitude) => (magnitude.trim(), -1.0),
        None => (value, 1.0),
    };
    let bound = match known.figure.quantity {
        Quantity::Share => quantity::<Ratio>(magnitude)?.value(),
        Quantity::Time => quantity::<Duration>(magnitude)?.as_secs_f64(),
        Quantity::Rate => quantity::<Rate>(magnitude)?.bits_per_second() as f64,
        Quantity::Bytes => quantity::<Bytes>(magnitude)?.count() as f64,
        Quantity::Count | Quantity::Number => {
            let number = magnitude.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| {
                format!("`{value}` is not a number; expected one of at least 0, without a unit")
            })?
        }
    };
    Ok((*operator, sign * bound))
}

fn quantity<T: FromStr<Err = QuantityError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: QuantityError| e.to_string())
}
