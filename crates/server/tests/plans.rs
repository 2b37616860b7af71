//! Plans and probes as jobs, each of which ends in an experiment file.

mod common;

use std::sync::Arc;

use common::{SHORT, TestServer, long};
use serde_json::{Value, json};
use trunkline_server::api;

fn stop(server: &TestServer, job: &Value) {
    let path = format!("/api/v1/jobs/{}/stop", job["job"].as_str().expect("as the API describes it"));
    assert!(server.post(&path, &json!({})).status < 300);
}

fn result(server: &TestServer, job: &Value) -> Value {
    server
        .get(&format!("/api/v1/jobs/{}/result", job["job"].as_str().expect("as the API describes it")))
        .json()
}

fn is_valid(server: &TestServer, text: &Value) {
    let checked = server.post("/api/v1/check", &json!({ "text": text })).json();
    assert_eq!(checked["problems"], json!([]), "{text}");
}

#[test]
fn a_plan_ends_in_the_file_with_its_answer() {
    let server = TestServer::start();
    let body =
        json!({ "text": SHORT, "maximise": "flow.voice.count", "between": ["1", "30"], "backend": "sim" });
    let begun = server.post("/api/v1/plan", &body);
    assert_eq!(begun.status, 201, "{}", begun.text());
    let job = server.wait(&begun.json());
    assert_eq!((&job["state"], &job["kind"]), (&json!("done"), &json!("plan")), "{job}");
    let found: api::PlanResult = serde_json::from_value(result(&server, &begun.json())).unwrap();
    let answer = &found.plan.answers[0];
    let (kept, broken) = (answer.kept.as_ref().unwrap().number, answer.broken.as_ref().unwrap().number);
    assert!(kept >= 2.0 && broken > kept, "{answer:?}");
    let text = found.experiment.unwrap();
    assert!(text.contains(&format!("count = {kept}\n")), "{text}");
    assert!(!text.contains("\"flow.voice.count\" ="), "{text}");
    is_valid(&server, &json!(text));
    // All measurements are a run like any other.
    let run = server.get(&format!("/api/v1/runs/{}", found.run));
    assert_eq!(run.json()["info"]["status"], "complete");
    assert_eq!(job["run"], found.run);
}

#[test]
fn a_plan_can_be_watched_while_it_measures() {
    let server = TestServer::start();
    let body = json!({ "text": long(), "maximise": "flow.voice.count", "backend": "sim" });
    let begun = server.post("/api/v1/plan", &body).json();
    let mut events =
        server.watch(&format!("/api/v1/events?job={}", begun["job"].as_str().expect("a job")), None);
    // Those without a record have samples of queues only.
    let records = events
        .find(|event| event.name == "records" && event.data["counted"].as_u64() > Some(0))
        .expect("records");
    assert_eq!(records.data["flows"], json!(["voice"]));
    stop(&server, &begun);
    assert_eq!(server.wait(&begun)["state"], "stopped");
}

#[test]
fn an_example_with_files_is_planned_where_these_are_not() {
    let server = TestServer::start();
    let examples = server.get("/api/v1/examples").json();
    let examples = examples.as_array().expect("a list");
    let example =
        examples.iter().find(|example| example["name"] == "voice-beside-bulk").expect("it is listed");
    let text = example["text"].as_str().expect("its text");
    let limits = format!("{text}\n[limits]\n\"flow.bulk.throughput\" = \"> 1 bit/s\"\n");
    let text = if text.contains("[limits]") { text } else { &limits };
    let body = json!({ "text": text, "maximise": "link.trunk.delay", "between": ["1 ms", "9 ms"], "backend": "sim" });
    let begun = server.post("/api/v1/plan", &body);
    assert_eq!(begun.status, 201, "{}", begun.text());
    stop(&server, &begun.json());
    server.wait(&begun.json());
}

#[test]
fn a_plan_that_is_stopped_keeps_what_it_has() {
    let server = TestServer::start();
    let body = json!({ "text": long(), "maximise": "flow.voice.count", "backend": "sim" });
    let begun = server.post("/api/v1/plan", &body);
    assert_eq!(begun.status, 201, "{}", begun.text());
    let begun = begun.json();
    let path = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap());
    let job = server.wait_until(&path, |job| job["progress"]["repetitions_done"].as_u64() > Some(0));
    // Not known while it probes.
    let left = &job["progress"]["left_s"];
    assert!(left.is_null() || left.as_f64() > Some(0.0), "{job}");
    stop(&server, &begun);
    let job = server.wait(&begun);
    assert_eq!(job["state"], "stopped");
    assert_eq!(result(&server, &begun)["stopped"], true);
    let run = server.get(&format!("/api/v1/runs/{}", job["run"])).json();
    assert_eq!(run["info"]["status"], "partial");
}

#[test]
fn a_plan_that_makes_no_sense_begins_nothing() {
    let server = TestServer::start();
    let no_limits = SHORT.split("[limits]").next().unwrap();
    for (body, told) in [
        (json!({ "text": SHORT, "backend": "sim" }), "exactly one of `maximise` and `minimise`"),
        (json!({ "text": SHORT, "maximise": "flow.voice.cont", "backend": "sim" }), "did you mean"),
        (json!({ "text": no_limits, "maximise": "flow.voice.count", "backend": "sim" }), "[limits]"),
        (
            json!({ "text": "x", "maximise": "flow.voice.count", "backend": "sim" }),
            "the experiment file has an error in line 1",
        ),
        (
            json!({ "text": SHORT, "maximise": "flow.voice.count", "backend": "sim", "confidence": "much" }),
            "confidence",
        ),
        (json!({ "text": SHORT, "maximise": "flow.voice.count", "backend": "wire" }), "wires"),
    ] {
        let reply = server.post("/api/v1/plan", &body);
        assert_eq!(reply.status, 400, "{}", reply.text());
        let message = reply.json()["error"]["message"].to_string();
        assert!(message.contains(told), "{told}: {message}");
    }
    assert_eq!(server.get("/api/v1/jobs").json(), json!([]));
}

/// A reflector on loopback, ended when dropped.
struct Reflector {
    port: u16,
    stop: Arc<trunkline_calls::Stop>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Reflector {
    fn start() -> Reflector {
        let address = ([127, 0, 0, 1], 0).into();
        let options = trunkline_calls::ServerOptions { address, ..Default::default() };
        let server = trunkline_calls::Server::bind(options, ()).expect("it can be started");
        let port = server.local_address().expect("it listens").port();
        let stop = Arc::new(trunkline_calls::Stop::new().expect("it can be started"));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.serve(&seen).map(drop).expect("it serves"));
        Reflector { port, stop, thread: Some(thread) }
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.stop.stop();
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn a_probe_ends_in_an_experiment_of_what_it_recommends() {
    let (server, reflector) = (TestServer::start(), Reflector::start());
    let body = json!({
        "host": "127.0.0.1", "port": reflector.port, "budget_s": 3, "use": "rehearsal", "channels": 2, "rate": 48000,
    });
    let begun = server.post("/api/v1/probe", &body);
    assert_eq!(begun.status, 201, "{}", begun.text());
    let job = server.wait(&begun.json());
    assert_eq!((&job["state"], &job["kind"]), (&json!("done"), &json!("probe")), "{job}");
    let found: api::AdviceResult = serde_json::from_value(result(&server, &begun.json())).unwrap();
    assert_eq!(found.advice.recommendations.len(), 1);
    let text = json!(found.experiment.unwrap());
    is_valid(&server, &text);
    let drawn = server.post("/api/v1/drawing", &json!({ "text": text })).json();
    assert_eq!(drawn["drawing"]["flows"][0]["name"], "rehearsal");
    assert_eq!(drawn["drawing"]["flows"][0]["transport"], found.advice.recommendations[0].best.transport);
}

#[test]
fn a_probe_stops_when_it_is_told_and_one_to_nobody_fails_with_the_reason() {
    let (server, reflector) = (TestServer::start(), Reflector::start());
    let body = |port: u16, budget: u32| json!({ "host": "127.0.0.1", "port": port, "budget_s": budget, "channels": 1, "rate": 48000 });
    let begun = server.post("/api/v1/probe", &body(reflector.port, 3600)).json();
    let path = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap());
    server.wait_until(&path, |job| job["progress"]["fraction"].as_f64() > Some(0.0));
    stop(&server, &begun);
    assert_eq!(server.wait(&begun)["state"], "stopped");

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let begun = server.post("/api/v1/probe", &body(nobody, 2)).json();
    let job = server.wait(&begun);
    assert_eq!(job["state"], "failed");
    assert!(job["error"].as_str().unwrap().contains(&nobody.to_string()), "{job}");
}
