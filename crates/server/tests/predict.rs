//! Predictions through the API: short simulations that end when nobody waits for them.

mod common;

use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use common::{SHORT, TestServer, long};
use serde_json::{Value, json};
use trunkline_server::api;

const PREDICT: &str = "/api/v1/predict";

fn predicted(server: &TestServer, body: &Value) -> api::Prediction {
    let reply = server.post(PREDICT, body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_value(reply.json()).unwrap_or_else(|error| panic!("{error}"))
}

/// More than a server simulates within any budget here.
fn heavy() -> String {
    long().replace("1 Mbit/s", "1 Gbit/s").replace("[1, 2]", "[2000, 2001]")
}

#[test]
fn a_prediction_has_the_figures_of_a_run_and_is_not_stored() {
    let server = TestServer::start();
    let found = predicted(&server, &json!({ "text": SHORT, "point": 1, "budget_ms": 10_000 }));
    assert!(found.whole, "{} of {} s", found.simulated_s, found.length_s);
    assert_eq!((found.point, found.length_s), (1, 3.0));
    assert_eq!(found.points.iter().map(|point| &*point.values[0]).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(found.report.points[0].values["flow.voice.count"], "2");
    assert_eq!(found.report.limits[0].runs[0].outcome, api::LimitOutcome::Holds);
    assert_eq!(server.get("/api/v1/runs").json()["total"], 0);

    let once = SHORT.replace("repetitions = 2", "repetitions = 1").replace("[1, 2]", "[2]");
    let job = server.wait(&server.run(&once));
    let run = server.get(&format!("/api/v1/runs/{}/json", job["run"])).json();
    let measured = &run["points"][0]["runs"][0];
    let own = serde_json::to_value(&found.report.points[0].runs[0]).unwrap();
    for figure in ["sent", "received", "lost", "latency_mean", "latency_max", "late"] {
        let [run, own] = [measured, &own].map(|side| &side["flows"][0]["figures"][figure]);
        assert_eq!(run, own, "{figure}");
    }
    assert_eq!(measured["links"], own["links"]);
}

#[test]
fn a_prediction_takes_its_budget_at_most_and_says_how_far_it_came() {
    let server = TestServer::start();
    let begun = Instant::now();
    let found = predicted(&server, &json!({ "text": heavy() }));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(!found.whole && found.took_ms >= 90.0, "{found:?}");
    assert!(found.simulated_s < found.length_s, "{} of {}", found.simulated_s, found.length_s);
    assert!(found.report.points[0].runs[0].flows[0].figures["sent"].mean > 0.0);
}

#[test]
fn a_simulation_ends_when_its_client_is_gone() {
    let server = TestServer::start();
    let body = json!({ "text": heavy(), "budget_ms": 10_000 }).to_string();
    let begun = Instant::now();
    // Each would take ten seconds, and they are simulated one after the other.
    for _ in 0..8 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let length = body.len();
        let head = format!(
            "POST {PREDICT} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    predicted(&server, &json!({ "text": SHORT }));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn what_is_too_large_or_wrong_is_refused() {
    let server = TestServer::start();
    let many = |count: u32| SHORT.replace("[1, 2]", &format!("[{count}]"));
    for (body, status, why) in [
        (json!({ "text": many(6_000) }), 409, "large"),
        (json!({ "text": many(100_000), "budget_ms": 1_000 }), 409, "large"),
        (json!({ "text": SHORT, "point": 2 }), 400, "2 points"),
        (json!({ "text": SHORT, "budget_ms": 0 }), 400, "budget_ms"),
        (json!({ "text": SHORT, "budget_ms": 10_001 }), 400, "budget_ms"),
        (json!({ "text": "name = " }), 400, "line 1"),
        (json!({ "text": SHORT.split("[flow").next() }), 400, "no flows"),
        (json!({ "text": SHORT, "backend": "live" }), 400, "backend"),
    ] {
        let reply = server.post(PREDICT, &body);
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
        assert!(reply.text().contains(why), "{}", reply.text());
    }
    // By request, what is large is simulated.
    let asked = predicted(&server, &json!({ "text": many(6_000), "budget_ms": 500 }));
    assert!(asked.simulated_s > 0.0);
}

#[test]
fn nothing_is_predicted_beside_a_measurement_in_real_time() {
    let place = tempfile::tempdir().unwrap();
    // A far end that never answers.
    let program = place.path().join("silent");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = TestServer::start_in(place.path(), |options| options.program.clone_from(&program));
    let job = server.post("/api/v1/runs", &json!({ "text": SHORT, "backend": "live" }));
    assert_eq!(job.status, 201, "{}", job.text());
    let refused = server.post(PREDICT, &json!({ "text": SHORT }));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.text().contains("real time"), "{}", refused.text());
    // It was predicted before it began, for whoever watches it.
    let id = job.json()["job"].as_str().unwrap().to_owned();
    let until = Instant::now() + Duration::from_secs(30);
    let latencies: Vec<api::PredictedLatency> = loop {
        let told = server.get(&format!("/api/v1/jobs/{id}/prediction")).json();
        if told.as_array().is_some_and(|told| !told.is_empty()) || Instant::now() > until {
            break serde_json::from_value(told).unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(latencies.iter().map(|one| one.values.join("")).collect::<Vec<_>>(), ["1", "2"]);
    assert!(
        latencies.iter().all(|one| one.flow == "voice" && 0.02 < one.least_s && one.least_s <= one.most_s)
    );
    server.post(&format!("/api/v1/jobs/{id}/stop"), &json!({}));
    server.wait(&job.json());
    predicted(&server, &json!({ "text": SHORT }));
}
