//! Watching: what is told, to how many, and to who comes back.

#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

mod common;

use common::{SHORT, TestServer, Told, long};
use serde_json::{Value, json};
use trunkline_server::api;

fn events_of(begun: &Value) -> String {
    format!("/api/v1/events?job={}", begun["job"].as_str().unwrap())
}

fn named<'t>(told: &'t [Told], name: &str) -> Vec<&'t Told> {
    told.iter().filter(|event| event.name == name).collect()
}

#[test]
fn every_repetition_is_told_and_the_end_is_the_last() {
    let server = TestServer::start();
    let begun = server.run(SHORT);
    let told: Vec<Told> = server.watch(&events_of(&begun), None).collect();
    let repetitions = named(&told, "repetition");
    assert_eq!(repetitions.len(), 4);
    for event in &repetitions {
        let done: api::RepetitionDone = serde_json::from_value(event.data.clone()).unwrap();
        assert!(done.figures["voice"]["latency_mean"].as_f64().unwrap() > 0.02);
    }
    let job: api::Job = serde_json::from_value(named(&told, "job").last().unwrap().data.clone()).unwrap();
    assert_eq!((job.state, job.progress.repetitions_done), (api::JobState::Done, 4));
    assert_eq!(
        (told.last().unwrap().name.as_str(), &told.last().unwrap().data),
        ("end", &json!({ "state": "done" }))
    );
    // Somebody who comes when all is over hears of it too.
    let late: Vec<Told> = server.watch(&events_of(&begun), None).collect();
    assert_eq!(named(&late, "repetition").len(), 4);
    assert_eq!(late.last().unwrap().name, "end");
}

#[test]
fn who_comes_back_misses_nothing() {
    let server = TestServer::start();
    let begun = server.run(SHORT);
    server.wait(&begun);
    let all: Vec<Told> = server.watch(&events_of(&begun), None).filter(|event| event.id.is_some()).collect();
    let ids: Vec<u64> = all.iter().map(|event| event.id.as_ref().unwrap().parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
    for (place, event) in all.iter().enumerate() {
        let rest = server.watch(&events_of(&begun), event.id.as_deref());
        let rest: Vec<_> = rest.filter_map(|event| event.id).collect();
        assert_eq!(rest, all[place + 1..].iter().map(|event| event.id.clone().unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn several_watch_and_see_records_as_they_are_measured() {
    let server = TestServer::start();
    let begun = server.run(&long());
    let mut watchers = [server.watch(&events_of(&begun), None), server.watch(&events_of(&begun), None)];
    for watcher in &mut watchers {
        let mut seen = 0;
        let mut last = None;
        for event in watcher.filter(|event| event.name == "records").take(5) {
            let records: api::Records = serde_json::from_value(event.data).unwrap();
            assert_eq!(records.flows, ["voice"]);
            assert_eq!(records.shown, records.t.len() as u64);
            assert_eq!(records.t.len(), records.latency.len());
            assert!(records.shown <= records.counted && records.shown <= 2001);
            assert!(last.is_none_or(|last| last < records.seq));
            assert!(records.queues.iter().all(|queue| queue.link == "trunk"));
            last = Some(records.seq);
            seen += 1;
        }
        assert_eq!(seen, 5);
    }
    // One that does not read holds nobody up.
    let sleeper = server.watch(&events_of(&begun), None);
    let path = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap());
    let before = server.get(&path).json()["progress"]["repetitions_done"].as_u64().unwrap();
    server.wait_until(&path, |job| job["progress"]["repetitions_done"].as_u64().unwrap() > before + 3);
    drop(sleeper);
    server.post(&format!("{path}/stop"), &json!({}));
    assert_eq!(watchers[0].by_ref().last().unwrap().data, json!({ "state": "stopped" }));
}

#[test]
fn all_jobs_can_be_watched_at_once() {
    let server = TestServer::start();
    let mut watcher = server.watch("/api/v1/events", None);
    let begun = server.run(SHORT);
    let is_done = |event: &Told| event.data["id"] == begun["job"] && event.data["state"] == "done";
    assert!(watcher.any(|event| is_done(&event)));
    assert_eq!(server.get("/api/v1/events?job=none").status, 404);
}
