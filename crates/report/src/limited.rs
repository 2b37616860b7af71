//! What limits are about, as tables and figures call it.

use trunkline_experiment::{Limit, Single, Subject};
use trunkline_metrics::figures::FigureKind;

use crate::view::{View, sink_name};

/// The figure of a limit.
pub(crate) fn figure(limit: &Limit) -> &'static FigureKind {
    match &limit.subject {
        Subject::Flow { metric, .. }
        | Subject::Single { metric, .. }
        | Subject::Bundle { metric, .. }
        | Subject::Class { metric, .. } => metric,
    }
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
pub(crate) fn name<'a>(limit: &'a Limit, view: &View<'a>) -> &'a str {
    let rest = limit.key.split_once('.').map_or(&*limit.key, |(_, rest)| rest);
    let is_named = |flow: &&&str| rest.strip_prefix(**flow).is_some_and(|after| after.starts_with('.'));
    let of_flow = matches!(limit.subject, Subject::Flow { .. } | Subject::Single { .. });
    let flows = of_flow.then_some(&view.flows).into_iter().flatten();
    let known = flows.filter(is_named).max_by_key(|flow| flow.len());
    known.copied().unwrap_or_else(|| rest.split_once('.').map_or(rest, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use trunkline_experiment::Operator;
    use trunkline_metrics::figures::bundle;

    use super::*;
    use crate::{Screen, fixtures, html, terminal};

    fn limit(key: &str, subject: Subject) -> Limit {
        let (key, condition) = (key.to_owned(), "< 1".to_owned());
        Limit { key, condition, subject, operator: Operator::Less, bound: 1.0 }
    }

    #[test]
    fn a_limit_on_a_bundle_is_judged_and_named() {
        let mut run = fixtures::bundles();
        let metric = bundle("connection_loss_max");
        let tcp = Subject::Class { bundle: 0, transport: "tcp".to_owned(), metric };
        run.limits = vec![
            limit("bundle.atlantic.tcp.loss.max", tcp),
            limit("bundle.atlantic.fairness", Subject::Bundle { bundle: 0, metric: bundle("fairness") }),
        ];
        // Of the worst connection all is lost; where there are no transfers nothing can be.
        let page = terminal(&run, Screen::default());
        assert!(page.contains("atlantic → tcp loss of a connection, largest < 1  ✗ broken"), "{page}");
        assert!(page.contains("atlantic fairness (Jain) < 1") && page.contains("✓ holds"), "{page}");
        assert!(html(&run, None).contains("1 of 2 limits is broken"));
    }
}
