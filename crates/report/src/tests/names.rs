//! Figures have one name, in the documentation, in JSON and in CSV; what was not measured has no value in any of them.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_metrics::figures::{of_bundles, of_flows, of_links};
use trunkline_store::{Backend, StoredRun};

use crate::{Screen, csv, fixtures, html, json, terminal};

const DOCUMENTED: &str = include_str!("../../../../docs/metrics.md");

/// Documented names by the object that has the figure, with the unit of each.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for line in DOCUMENTED.lines().filter(|line| line.starts_with("> | <a id=")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].split('`').nth(1).expect("a name");
        for owner in cells[4].split(", ") {
            let known = all.entry(owner.to_owned()).or_default().insert(name.to_owned(), cells[3].to_owned());
            assert_eq!(known, None, "{owner}: {name}");
        }
    }
    all
}

/// The column of a figure in CSV files.
fn column((name, unit): (&String, &String)) -> String {
    let suffix = match unit.as_str() {
        "s" => "_s",
        "bit/s" => "_bit_per_s",
        "B" => "_bytes",
        "share" | "count" | "number" => "",
        other => panic!("{name} is in {other}"),
    };
    format!("{name}{suffix}")
}

/// The columns of a file of a run, behind those that identify a row.
fn columns(run: &StoredRun, file: &str, identifying: &[&str]) -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    csv(run, directory.path()).unwrap();
    let mut reader = ::csv::Reader::from_path(directory.path().join(file)).unwrap();
    let all = reader.headers().unwrap().iter().map(str::to_owned);
    let axes: BTreeSet<String> = run.axes.iter().map(|axis| axis.key.clone()).collect();
    let of_numbers = |column: &str| axes.iter().any(|axis| column.starts_with(&format!("{axis} [")));
    all.filter(|column| {
        !["run", "backend", "point"].contains(&column.as_str())
            && !identifying.contains(&column.as_str())
            && !axes.contains(column)
            && !of_numbers(column)
    })
    .collect()
}

fn keys(of: &serde_json::Value) -> BTreeSet<String> {
    of.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn documented_names_are_those_of_json_and_of_csv() {
    let (run, documented) = (fixtures::swept(Backend::Sim), documented());
    let of = |owners: &[&str]| -> BTreeMap<String, String> {
        owners.iter().flat_map(|owner| documented[*owner].clone()).collect()
    };
    let names = |owners: &[&str]| of(owners).into_keys().collect::<BTreeSet<String>>();
    let in_csv = |owners: &[&str]| of(owners).iter().map(column).collect::<BTreeSet<String>>();
    let value = json(&run, None);

    assert_eq!(keys(&value["figures"]), names(&["flow"]));
    let fixed = ["repetition", "partial", "flow", "transport", "members", "channels", "measured"];
    let fixed = [&fixed[..], &["percentiles", "codec", "outside_e_model"]].concat();
    assert_eq!(columns(&run, "repetitions.csv", &fixed), in_csv(&["flow"]));
    assert_eq!(columns(&run, "sinks.csv", &["repetition", "flow", "sink"]), in_csv(&["sink"]));

    let bundles = ["bundle", "transport of a bundle"];
    assert_eq!(keys(&value["bundle_figures"]), names(&bundles));
    let fixed = ["repetition", "bundle", "transport", "members"];
    assert_eq!(columns(&run, "bundles.csv", &fixed), in_csv(&bundles));

    assert_eq!(keys(&value["link_figures"]), names(&["link"]));
    assert_eq!(columns(&run, "links.csv", &["repetition", "link"]), in_csv(&["link"]));
    let of_link = keys(&value["points"][0]["runs"][0]["links"][0]);
    let counted = ["link", "dropped", "marked"].map(str::to_owned).into();
    assert_eq!(of_link.difference(&counted).cloned().collect::<BTreeSet<_>>(), names(&["link"]));
    assert_eq!(
        [of_flows().count(), of_bundles().count(), of_links().count()],
        [names(&["flow"]), names(&bundles), names(&["link"])].map(|names| names.len())
    );

    let ring = fixtures::ring();
    let in_json = keys(&json(&ring, None)["medium_figures"]);
    let directory = tempfile::tempdir().unwrap();
    csv(&ring, directory.path()).unwrap();
    let mut reader = ::csv::Reader::from_path(directory.path().join("media.csv")).unwrap();
    let place = reader.headers().unwrap().iter().position(|column| column == "figure").unwrap();
    let rows = reader.records().map(|row| row.unwrap()[place].to_owned());
    assert_eq!(rows.collect::<BTreeSet<_>>(), in_json);
    assert!(in_json.len() > 4 && in_json.is_subset(&names(&["medium"])), "{in_json:?}");
}

#[test]
fn what_was_not_measured_has_no_value() {
    let mut run = fixtures::ring();
    let summaries = run.points.iter_mut().flat_map(|point| &mut point.repetitions);
    for summary in summaries.filter_map(|repetition| repetition.summary.as_mut()) {
        let figures = summary.media.iter_mut().flat_map(|medium| &mut medium.figures);
        figures.filter(|(name, _)| name == "token-rotation-mean").for_each(|(_, amount)| *amount = None);
    }
    let value = json(&run, None);
    let of_ring = &value["points"][3]["runs"][0]["media"][0]["figures"];
    assert_eq!(of_ring["token_rotation_mean"], serde_json::Value::Null);
    assert!(of_ring["token_rotations"]["mean"].is_number());
    assert_eq!(value["medium_figures"]["token_rotation_mean"]["unit"], "s");
    let text = terminal(&run, Screen::default());
    assert!(text.contains("token rotation mean") && text.contains('–'), "{text}");
    assert!(html(&run, None).contains("token rotation mean"));
    let directory = tempfile::tempdir().unwrap();
    csv(&run, directory.path()).unwrap();
    let rows = std::fs::read_to_string(directory.path().join("media.csv")).unwrap();
    let mut of_rotation = rows.lines().filter(|row| row.contains(",token_rotation_mean,"));
    assert!(of_rotation.clone().count() > 0 && of_rotation.all(|row| row.ends_with(",s,")), "{rows}");
}

#[test]
fn a_single_repetition_has_no_standard_deviation() {
    let mut run = fixtures::lone();
    run.points.iter_mut().for_each(|point| point.repetitions.truncate(1));
    let value = json(&run, None);
    let flow = &value["points"][0]["runs"][0]["flows"][0]["figures"]["sent"];
    assert!(flow["mean"].is_number() && flow["sd"].is_null() && flow["ci95"].is_null(), "{flow}");
    let directory = tempfile::tempdir().unwrap();
    csv(&run, directory.path()).unwrap();
    let mut reader = ::csv::Reader::from_path(directory.path().join("sweep.csv")).unwrap();
    let place = reader.headers().unwrap().iter().position(|column| column == "sd").unwrap();
    assert!(reader.records().all(|row| row.unwrap()[place].is_empty()));
}
