use std::collections::BTreeSet;

use super::*;

const PAGE: &str = include_str!("../../../../docs/metrics.md");

#[test]
fn ids_are_unique_among_the_figures_of_one_kind() {
    let mut ids = BTreeSet::new();
    for figure in all() {
        let of = [is_of_flows, is_of_bundles, is_of_links, is_of_media].map(|is_of| is_of(figure));
        assert_eq!(of.iter().filter(|is_of| **is_of).count(), 1, "{} is of one kind", figure.id);
        assert!(ids.insert((of, figure.id)), "{} twice", figure.id);
    }
    let ids: BTreeSet<_> = definitions().map(|definition| definition.id).collect();
    assert_eq!(ids.len(), definitions().count());
}

#[test]
fn every_figure_has_a_definition_of_the_glossary() {
    for figure in all() {
        assert!(definitions().any(|known| known == figure.definition), "{}", figure.id);
    }
}

#[test]
fn limits_have_names_of_their_own_in_files_and_in_stored_runs() {
    let kinds: [&[&'static FigureKind]; 4] = [
        &of_flows().collect::<Vec<_>>(),
        &of_flows().filter(|figure| figure.is_of_sinks()).collect::<Vec<_>>(),
        &of_bundles().filter(|figure| figure.is_of_bundles()).collect::<Vec<_>>(),
        &of_bundles().filter(|figure| figure.is_of_connections()).collect::<Vec<_>>(),
    ];
    for figures in kinds {
        let limits: Vec<LimitKey> = figures.iter().filter_map(|figure| figure.limit).collect();
        let keys: BTreeSet<_> = limits.iter().map(|limit| limit.key).collect();
        let stored: BTreeSet<_> = limits.iter().map(LimitKey::stored).collect();
        assert_eq!((keys.len(), stored.len()), (limits.len(), limits.len()));
    }
    assert!(of_links().chain(of_media()).all(|figure| figure.limit.is_none()), "nobody reads such limits");
}

#[test]
fn ranks_are_of_flows_and_count_from_one() {
    let ranks: BTreeSet<u8> = of_flows().filter_map(|figure| figure.rank).collect();
    assert!(ranks.iter().copied().eq(1..=12), "{ranks:?}");
    assert_eq!(all().filter(|figure| figure.rank.is_some()).count(), ranks.len());
}

#[test]
fn a_flow_without_messages_has_no_figures_but_counts() {
    let flow = FlowSummary::default();
    let counted = [Quantity::Count, Quantity::Bytes];
    for figure in of_flows().filter(|figure| !counted.contains(&figure.quantity)) {
        assert_eq!(figure.value(&flow), None, "{}", figure.id);
    }
}

#[test]
fn what_is_no_number_is_no_figure() {
    let broken = FlowSummary { fairness: Some(f64::NAN), ..FlowSummary::default() };
    assert_eq!(flow("fairness").value(&broken), None);
}

#[test]
fn ids_in_code_are_found_among_the_figures_of_their_kind() {
    const P99: &FigureKind = flow("latency_p99");
    assert_eq!((P99.id, P99.name), ("latency_p99", "latency p99"));
    assert_eq!(bundle("throughput_user").name, "user throughput, all flows");
    assert_ne!(bundle("throughput_user"), flow("throughput_user"));
    assert_eq!(link("sojourn_p50").quantity, Quantity::Time);
}

#[test]
#[should_panic(expected = "no figure has this id")]
fn an_unknown_id_is_never_another_figure() {
    flow("latency_p9");
}

#[test]
fn the_page_has_the_definitions_of_the_table() {
    let written = documented(PAGE).unwrap_or_else(|problem| panic!("docs/metrics.md: {problem}"));
    assert!(written == PAGE, "docs/metrics.md is not what the table says; run `cargo xtask generate`");
    for figure in all() {
        let anchors = PAGE.matches(&format!("{}\"></a>`{}`", figure.id, figure.id.replace('-', "_"))).count();
        assert!(anchors > 0, "docs/metrics.md has no anchor of {}", figure.id);
    }
}

#[test]
fn a_page_without_a_definition_or_with_one_that_is_unknown_is_refused() {
    let unknown = documented("x\n<!-- definition: nothing -->\n<!-- end of definition -->\n");
    assert_eq!(unknown, Err(DocumentError::Unknown { line: 2, id: "nothing".to_owned() }));
    let open = documented("<!-- definition: loss -->\n");
    assert_eq!(open, Err(DocumentError::Open { line: 1, id: "loss".to_owned() }));
    assert_eq!(documented("x\n"), Err(DocumentError::Blocks { id: "message", blocks: 0 }));
}

#[test]
fn one_value_alone_has_no_standard_deviation() {
    use crate::summary::{DelaySummary, RobustDelay, TransferSummary};
    for count in [1, 2] {
        let (minimum_ratio, loaded_ratio) = (5.0, 5.0);
        let kept = RobustDelay { minimum_kept: count, loaded_kept: count, ..Default::default() };
        let robust = RobustDelay { minimum_ratio, loaded_ratio, ..kept };
        let latency = Some(DelaySummary { count, ..Default::default() });
        let sink = SinkSummary {
            sink: "far".to_owned(),
            counts: crate::summary::Counts { sent: 1, ..Default::default() },
            latency,
            ..SinkSummary::default()
        };
        let summary = FlowSummary {
            members: 1,
            latency,
            jitter: Some(crate::summary::JitterSummary::default()),
            transfers: Some(TransferSummary { kept: count, ..Default::default() }),
            robust: Some(robust),
            sinks: vec![sink],
            ..FlowSummary::default()
        };
        for id in [
            "latency_standard_deviation",
            "jitter_standard_deviation",
            "transfer_rate_standard_deviation",
            "robust_minimum_standard_deviation",
            "robust_minimum_ratio",
            "robust_loaded_standard_deviation",
            "robust_loaded_ratio",
        ] {
            assert_eq!(flow(id).value(&summary).is_some(), count > 1, "{id} of {count}");
        }
        let of_sink = flow("latency_standard_deviation").value_at(&summary, "far");
        assert_eq!(of_sink.is_some(), count > 1, "of {count} at a sink");
    }
}

#[test]
fn equal_delays_have_no_ratio_to_their_deviation() {
    use crate::summary::RobustDelay;
    let robust =
        Some(RobustDelay { minimum_kept: 9, loaded_kept: 10, loaded_ratio: 0.6, ..Default::default() });
    let summary = FlowSummary { members: 1, robust, ..FlowSummary::default() };
    let ratios = ["robust_minimum_ratio", "robust_loaded_ratio"].map(|id| flow(id).value(&summary));
    assert_eq!(ratios, [None, Some(0.6)]);
}

#[test]
fn a_bundle_of_which_nothing_was_due_has_no_active_time() {
    let active = |active| {
        bundle("active").value_of_bundle(&BundleSummary { members: 2, active, ..Default::default() })
    };
    assert_eq!(active(trunkline_core::Duration::ZERO), None);
    assert_eq!(active(trunkline_core::Duration::from_secs(2)), Some(2.0));
}

#[test]
fn parts_of_a_flow_are_its_sinks_or_the_flows_that_it_is_made_as() {
    let delay = Some(crate::summary::DelaySummary { count: 2, ..Default::default() });
    let sink = SinkSummary {
        sink: "far".to_owned(),
        counts: crate::summary::Counts { sent: 1, ..Default::default() },
        latency: delay,
        latency_from_due: delay,
        mean_absolute_deviation: Some(trunkline_core::Duration::ZERO),
        ..SinkSummary::default()
    };
    let single = FlowSummary { flow: "up-7".to_owned(), fairness: Some(0.5), ..FlowSummary::default() };
    let whole = FlowSummary { members: 1, sinks: vec![sink], each: vec![single], ..FlowSummary::default() };
    for figure in of_flows() {
        assert_eq!(figure.value_at(&whole, "far").is_some(), figure.is_of_sinks(), "{}", figure.id);
        assert_eq!(figure.value_at(&whole, "nowhere"), None, "{}", figure.id);
    }
    assert_eq!(flow("fairness").value_at(&whole, "up-7"), Some(0.5));
    let none = FlowSummary { members: 0, ..whole };
    assert!(of_flows().all(|figure| figure.value_at(&none, "far").is_none()), "a flow of no members");
}
