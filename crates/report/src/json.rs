//! Everything as JSON, for programs.

use serde_json::{Map, Value, json};
use trunkline_metrics::Estimate;
use trunkline_store::StoredRun;

use crate::bundles::{FIGURES, Row, rows};
use crate::media::{Medium, media};
use crate::metric::{Definition, METRICS, Metric};
use crate::units::Quantity;
use crate::verdict::{Outcome, Verdict, headline};
use crate::view::{Side, Subject, View, counted, is_cut_short, over_repetitions, value_on};

/// The version of what [`json`] returns: it grows when a key changes its meaning or goes away, not when one is added.
const FORMAT: u32 = 1;

/// The run as JSON, beside its counterpart on the other backend if that is given and comes from the same experiment
/// file. Base units throughout: seconds, bits per second, shares from 0 to 1, bytes, counts; each figure names its own.
///
/// - `format`: 1.
/// - `name`, `text`: the experiment's name and file.
/// - `runs`: what each run is (`id`, `backend`, `status`, `started`, `seed`, `machine` ...), with its `headline` and
///   `outcome` (`holds`, `broken`, `not-measured`, or null without limits). The first is the one asked for.
/// - `axes`: what was swept: `key`, `values` as written, `numbers`, `unit`.
/// - `limits`: `key`, `condition`, `bound` and per run `outcome`, `worst` and every point's `outcome` (also `not-applicable`, where there
///   are no members), `mean`, `ci95`,
///   `uncertain`.
/// - `points`: `index`, `values` by swept key, and per run the number of `repetitions` behind the figures, whether it
///   was `cut_short`, its `flows` with `figures` by name (`mean`, `sd`, `ci95`, `repetitions`) and `sinks` (if there are
///   several, those that fare worst first, with `figures` of their own), its `bundles` with `transport` (null for a bundle
///   as a whole), `flows`, `members` and `figures`, its `links`, and its `media` with `station`
///   (null for a medium as a whole) and `figures` by name.
/// - `figures`: name, unit, definition and source of each figure of a flow; `bundle_figures`: of a bundle.
pub fn json(run: &StoredRun, counterpart: Option<&StoredRun>) -> Value {
    let view = View::new(run, counterpart);
    json!({
        "format": FORMAT,
        "name": run.info.name,
        "text": run.text,
        "runs": view.sides.iter().map(|side| of_run(&view, side)).collect::<Vec<_>>(),
        "axes": run.axes,
        "limits": run.limits.iter().map(|limit| {
            json!({
                "key": limit.key,
                "condition": limit.condition,
                "figure": crate::limited::Limited::from(limit).id,
                "bound": limit.bound,
                "runs": view.sides.iter().map(|side| of_verdict(side, &Verdict::of(limit, &view, side))).collect::<Vec<_>>(),
            })
        }).collect::<Vec<_>>(),
        "points": view.points().iter().map(|point| {
            let values: Map<String, Value> = view.axes().iter().enumerate()
                .map(|(i, axis)| (axis.key.clone(), value_on(point, view.axes(), i).into()))
                .collect();
            json!({
                "index": point.index,
                "values": values,
                "runs": view.sides.iter().map(|side| of_point(&view, side, point.index)).collect::<Vec<_>>(),
            })
        }).collect::<Vec<_>>(),
        "figures": METRICS.iter().map(|m| described(m.id, m.name, m.quantity, m.definition())).collect::<Map<_, _>>(),
        "bundle_figures": FIGURES.iter().map(|f| described(f.id, f.name, f.quantity, f.definition())).collect::<Map<_, _>>(),
    })
}

fn described(id: &str, name: &str, quantity: Quantity, definition: &Definition) -> (String, Value) {
    let described = json!({
        "name": name,
        "unit": quantity.base_unit(),
        "definition": definition.text,
        "source": definition.source,
    });
    (id.to_owned(), described)
}

fn of_run(view: &View, side: &Side) -> Value {
    let headline = headline(view, side);
    let mut run = serde_json::to_value(side.info()).unwrap_or_default();
    if let Value::Object(run) = &mut run {
        run.insert("headline".to_owned(), headline.text.into());
        run.insert("outcome".to_owned(), headline.outcome.map_or(Value::Null, |o| outcome(o).into()));
    }
    run
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "holds",
        Outcome::Broken => "broken",
        Outcome::NotMeasured => "not-measured",
        Outcome::NotApplicable => "not-applicable",
    }
}

fn of_verdict(side: &Side, verdict: &Verdict) -> Value {
    json!({
        "run": side.info().id,
        "outcome": outcome(verdict.outcome()),
        "worst": verdict.worst().map(|worst| worst.point),
        "points": verdict.points.iter().map(|p| json!({
            "point": p.point,
            "outcome": outcome(p.outcome),
            "uncertain": p.uncertain,
            "mean": p.estimate.map(|e| e.mean),
            "ci95": p.estimate.and_then(|e| e.confidence95),
        })).collect::<Vec<_>>(),
    })
}

fn of_estimate(estimate: Estimate) -> Value {
    json!({
        "mean": estimate.mean,
        "sd": estimate.standard_deviation,
        "ci95": estimate.confidence95,
        "repetitions": estimate.repetitions,
    })
}

fn of_point(view: &View, side: &Side, index: u32) -> Value {
    let point = side.point(index);
    let flows = view.flows.iter().filter_map(|flow| {
        let summaries = side.flow(index, flow);
        let first = summaries.first()?;
        let figures = |subject: Subject| -> Map<String, Value> {
            let figure =
                |m: &Metric| Some((m.id.to_owned(), of_estimate(side.estimate_of(index, subject, m)?)));
            METRICS.iter().filter_map(figure).collect()
        };
        let sinks = side.sinks(index, flow).into_iter();
        Some(json!({
            "flow": flow,
            "transport": first.transport,
            "members": first.members,
            "channels": first.channels,
            "measured": first.measured,
            "codec": first.quality.as_ref().map(|quality| &quality.codec),
            "percentiles_exact": summaries.iter().filter_map(|s| s.latency).all(|l| l.exact),
            "figures": figures(Subject::flow(flow)),
            "sinks": sinks.map(|s| json!({ "sink": s.sink, "figures": figures(s) })).collect::<Vec<_>>(),
        }))
    });
    json!({
        "run": side.info().id,
        "backend": side.info().backend,
        "repetitions": point.map_or(0, |p| counted(p).count()),
        "cut_short": point.is_some_and(is_cut_short),
        "flows": flows.collect::<Vec<_>>(),
        "bundles": rows(side, index).iter().map(of_bundle).collect::<Vec<_>>(),
        "links": side.links(index).into_iter().map(|link| of_link(side, index, link)).collect::<Vec<_>>(),
        "media": media(side, index).iter().map(of_medium).collect::<Vec<_>>(),
    })
}

fn of_bundle(row: &Row) -> Value {
    let figures = row.figures().map(|(figure, estimate)| (figure.id.to_owned(), of_estimate(estimate)));
    json!({
        "bundle": row.bundle,
        "flows": row.flows,
        "transport": row.class.map(|class| class.transport.as_str()),
        "measured": row.class.map(|class| class.measured),
        "members": row.members,
        "figures": figures.collect::<Map<_, _>>(),
    })
}

fn of_link(side: &Side, index: u32, link: &str) -> Value {
    let all = side.link(index, link);
    let over = |of: &dyn Fn(&trunkline_metrics::LinkSummary) -> f64| {
        over_repetitions(all.iter().map(|l| Some(of(l)))).map(of_estimate)
    };
    let over_any = |of: &dyn Fn(&trunkline_metrics::LinkSummary) -> Option<trunkline_core::Duration>| {
        over_repetitions(all.iter().map(|l| of(l).map(|time| time.as_secs_f64()))).map(of_estimate)
    };
    json!({
        "link": link,
        "utilisation": over(&|l| l.utilisation.value()),
        "offered": over(&|l| l.offered as f64),
        "delivered": over(&|l| l.delivered as f64),
        "sojourn_mean": over(&|l| l.sojourn_mean.as_secs_f64()),
        "sojourn_p50": over_any(&|l| l.sojourn_p50),
        "sojourn_p99": over_any(&|l| l.sojourn_p99),
        "sojourn_p999": over_any(&|l| l.sojourn_p999),
        "sojourn_max": over(&|l| l.sojourn_max.as_secs_f64()),
        "backlog_max": over(&|l| l.backlog_max.count() as f64),
        "backlog_packets_max": over(&|l| l.backlog_packets_max as f64),
        "dropped": all.iter().map(|l| json!(l.dropped)).collect::<Vec<_>>(),
        "marked": all.iter().map(|l| json!(l.marked)).collect::<Vec<_>>(),
    })
}

fn of_medium(medium: &Medium) -> Value {
    let figures: Map<String, Value> = medium
        .figures
        .iter()
        .map(|figure| (figure.name.replace('-', "_"), figure.estimate.map_or(Value::Null, of_estimate)))
        .collect();
    json!({ "medium": medium.name, "station": medium.station, "figures": figures })
}
