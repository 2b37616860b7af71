//! What limits are about, as tables and figures call it.

use trunkline_experiment::{BundleMetric, ClassMetric, Limit, Over, Single, Subject};

use crate::bundles::{BundleFigure, figure};
use crate::metric::{Definition, Metric, limited};
use crate::units::Quantity;
use crate::view::{View, sink_name};

/// The figure of a limit: of a flow or of a bundle.
pub(crate) struct Limited {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) definition: &'static Definition,
}

impl From<&Limit> for Limited {
    fn from(limit: &Limit) -> Limited {
        match &limit.subject {
            Subject::Flow { metric, .. } | Subject::Single { metric, .. } => limited(*metric).into(),
            Subject::Bundle { metric, .. } => of_bundle(*metric).into(),
            Subject::Class { metric, .. } => of_class(*metric).into(),
        }
    }
}

impl From<&'static Metric> for Limited {
    fn from(metric: &'static Metric) -> Limited {
        let &Metric { id, name, quantity, .. } = metric;
        Limited { id, name, quantity, definition: metric.definition() }
    }
}

impl From<&'static BundleFigure> for Limited {
    fn from(figure: &'static BundleFigure) -> Limited {
        let &BundleFigure { id, name, quantity, .. } = figure;
        Limited { id, name, quantity, definition: figure.definition() }
    }
}

fn of_bundle(metric: BundleMetric) -> &'static BundleFigure {
    figure(match metric {
        BundleMetric::Throughput => "throughput_user",
        BundleMetric::NetworkThroughput => "throughput_network",
        BundleMetric::Fairness => "fairness",
    })
}

fn of_class(metric: ClassMetric) -> &'static BundleFigure {
    let (id, over) = match metric {
        ClassMetric::Throughput(over) => ("connection_throughput", over),
        ClassMetric::Loss(over) => ("connection_loss", over),
        ClassMetric::Unfinished(over) => ("connection_unfinished", over),
        ClassMetric::Refused(over) => ("connection_refused", over),
        ClassMetric::LatencyMean(over) => ("connection_latency_mean", over),
        ClassMetric::LatencyP999(over) => ("connection_latency_p999", over),
        ClassMetric::Fairness => ("fairness", Over::Mean),
    };
    figure(&match over {
        Over::Mean => id.to_owned(),
        Over::Min => format!("{id}_min"),
        Over::Max => format!("{id}_max"),
    })
}

/// Who must keep a limit: `voice`, `programme → far`, `trunk`, `trunk → udp`.
pub(crate) fn whose(limit: &Limit, view: &View) -> String {
    let name = name(limit, view);
    match &limit.subject {
        Subject::Flow { sink: Some(part), .. } | Subject::Class { transport: part, .. } => {
            sink_name(name, part)
        }
        Subject::Flow { sink: None, .. } | Subject::Bundle { .. } => name.to_owned(),
        Subject::Single { single: Single::Each, .. } => format!("each {name}"),
        Subject::Single { single: Single::Number(_), .. } => {
            limit.key.split('.').nth(1).unwrap_or(name).to_owned()
        }
    }
}

/// The name of the flow or the bundle that a limit is about. The key says it; an index into the file would say nothing
/// where no summary names what stands there.
fn name<'a>(limit: &'a Limit, view: &View<'a>) -> &'a str {
    let rest = limit.key.split_once('.').map_or(&*limit.key, |(_, rest)| rest);
    let is_named = |flow: &&&str| rest.strip_prefix(**flow).is_some_and(|after| after.starts_with('.'));
    let of_flow = matches!(limit.subject, Subject::Flow { .. } | Subject::Single { .. });
    let flows = of_flow.then_some(&view.flows).into_iter().flatten();
    let known = flows.filter(is_named).max_by_key(|flow| flow.len());
    known.copied().unwrap_or_else(|| rest.split_once('.').map_or(rest, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use trunkline_experiment::{Figure, Operator};

    use super::*;
    use crate::{Screen, fixtures, html, terminal};

    fn limit(key: &str, subject: Subject) -> Limit {
        let (key, condition) = (key.to_owned(), "< 1".to_owned());
        Limit { key, condition, subject, operator: Operator::Less, bound: 1.0 }
    }

    #[test]
    fn limits_and_tables_read_the_same_figures_of_bundles() {
        let run = fixtures::bundles();
        let summary = run.points[3].repetitions[0].summary.as_ref().unwrap();
        let bundle = &summary.bundles[0];
        for metric in [BundleMetric::Throughput, BundleMetric::NetworkThroughput, BundleMetric::Fairness] {
            let value = limit("bundle.atlantic.x", Subject::Bundle { bundle: 0, metric }).figure(summary);
            assert_eq!(Some(value), of_bundle(metric).of_bundle(bundle).map(Figure::Value), "{metric:?}");
        }
        let figures =
            [ClassMetric::Throughput, ClassMetric::Loss, ClassMetric::LatencyMean, ClassMetric::LatencyP999];
        let all = figures.iter().flat_map(|figure| [Over::Mean, Over::Min, Over::Max].map(figure));
        for metric in all.chain([ClassMetric::Fairness]) {
            let transport = "tcp".to_owned();
            let value = limit("", Subject::Class { bundle: 0, transport, metric }).figure(summary);
            let shown = of_class(metric).of_class(&bundle.classes[1]);
            assert_eq!(Some(value), shown.map(Figure::Value), "{metric:?}");
        }
    }

    #[test]
    fn a_limit_on_a_bundle_is_judged_and_named() {
        let mut run = fixtures::bundles();
        let metric = ClassMetric::Loss(Over::Max);
        let tcp = Subject::Class { bundle: 0, transport: "tcp".to_owned(), metric };
        run.limits = vec![
            limit("bundle.atlantic.tcp.loss.max", tcp),
            limit("bundle.atlantic.fairness", Subject::Bundle { bundle: 0, metric: BundleMetric::Fairness }),
        ];
        // Of the worst connection all is lost; where there are no transfers nothing can be.
        let page = terminal(&run, Screen::default());
        assert!(page.contains("atlantic → tcp loss of a connection, largest < 1  ✗ broken"), "{page}");
        assert!(page.contains("atlantic fairness (Jain) < 1") && page.contains("✓ holds"), "{page}");
        assert!(html(&run, None).contains("1 of 2 limits is broken"));
    }
}
