//! Runs beside each other.

mod common;

use common::{SHORT, TestServer};
use serde_json::json;
use trunkline_server::api;

#[test]
fn two_runs_are_compared_point_by_point() {
    let server = TestServer::start();
    let first = server.measured();
    // The points in the other order, and a slower link.
    let other = SHORT.replace("[1, 2]", "[2, 1, 3]").replace("delay = \"20 ms\"", "delay = \"30 ms\"");
    let second = server.wait(&server.run(&other))["run"].as_u64().unwrap();

    let reply = server.get(&format!("/api/v1/compare?run={first}&with={second}"));
    let compared: api::Comparison = serde_json::from_value(reply.json()).unwrap();
    assert_eq!((compared.run.id, compared.with.id, compared.same_experiment), (first, second, false));
    assert_eq!(compared.unmatched.len(), 1, "{:?}", compared.unmatched);
    let of = |point: u32, metric: &str| {
        compared.rows.iter().find(|row| row.a_point == point && row.metric == metric).unwrap()
    };
    for (a, b) in [(0, 1), (1, 0)] {
        let row = of(a, "latency_mean");
        assert_eq!((row.b_point, row.flow.as_str(), row.unit.as_str()), (b, "voice", "s"));
        assert!((row.difference - 0.01).abs() < 1e-3, "{row:?}");
        assert!((row.b.mean - row.a.mean - row.difference).abs() < 1e-12 && row.a.repetitions == 2);
        assert!(row.telling && row.significant.is_some() && row.confidence.is_some());
        assert!(!row.label.is_empty());
    }
    let defined = |metric: &str| compared.definitions.iter().any(|one| one.metric.as_deref() == Some(metric));
    assert!(compared.rows.iter().all(|row| defined(&row.metric)));

    let same = server.get(&format!("/api/v1/compare?run={first}&with={first}")).json();
    assert_eq!(same["same_experiment"], true);
    assert!(same["rows"].as_array().unwrap().iter().all(|row| row["difference"] == 0.0));
}

#[test]
fn a_run_that_is_not_there_is_told_and_every_figure_has_a_definition() {
    let server = TestServer::start();
    assert_eq!(server.get("/api/v1/compare?run=1&with=2").status, 404);
    assert_eq!(server.get("/api/v1/compare?run=1").status, 400);
    let definitions: Vec<api::Definition> =
        serde_json::from_value(server.get("/api/v1/definitions").json()).unwrap();
    let p999 = definitions.iter().find(|one| one.metric.as_deref() == Some("latency_p999")).unwrap();
    assert!(p999.text.contains("nearest rank") && p999.source.contains("RFC 2330"));
    assert!(definitions.iter().any(|one| one.metric.is_none()));
    assert!(definitions.iter().all(|one| !one.title.is_empty() && !one.text.is_empty()));
    assert_eq!(json!(definitions.len() > 60), true);
}
