//! Runs through the API: begun, watched, stopped, resumed, shown, marked, taken elsewhere and removed.

#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

mod common;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::{Duration, Instant};

use common::{SHORT, TestServer, long};
use serde_json::{Value, json};
use trunkline_server::api;
use trunkline_testkit::real_time::in_real_time;

#[test]
fn a_run_is_begun_and_its_results_are_shown() {
    let server = TestServer::start();
    let body = json!({ "text": SHORT, "file_name": "short.toml", "backend": "sim", "tags": ["a tag"] });
    let begun = server.post("/api/v1/runs", &body);
    assert_eq!(begun.status, 201, "{}", begun.text());
    let job = server.wait(&begun.json());
    assert_eq!(job["state"], "done");
    assert_eq!(job["kind"], "run");
    assert_eq!(job["progress"]["repetitions_done"], 4);
    assert_eq!(job["progress"]["points_done"], 2);
    assert_eq!(job["progress"]["fraction"], 1.0);
    let id = job["run"].as_u64().unwrap();

    let reply = server.get(&format!("/api/v1/runs/{id}"));
    // As the document describes it, in every part.
    let run: api::Run = serde_json::from_value(reply.json()).unwrap();
    let report: api::Report = serde_json::from_value(run.figures).unwrap();
    assert_eq!(
        (run.info.summary.status, run.info.summary.tags),
        (api::Status::Complete, vec!["a tag".to_owned()])
    );
    assert!(run.info.summary.file.ends_with("files/short.toml"), "{}", run.info.summary.file);
    assert_eq!(run.text, SHORT);
    assert_eq!(run.points[1].values, ["2"]);
    assert_eq!(run.points[1].repetitions[1].traces[0].flow, "voice");
    assert_eq!(report.points[0].runs[0].flows[0].figures["latency_mean"].repetitions, 2);
    assert_eq!(report.limits[0].runs[0].outcome, api::LimitOutcome::Holds);
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
    let server = TestServer::start();
    let text = SHORT.replace("rate = \"1 Mbit/s\"", "rate = \"fast\"");
    let reply = server.post("/api/v1/runs", &json!({ "text": text, "backend": "sim" }));
    assert_eq!(reply.status, 400);
    let error = reply.json()["error"].clone();
    assert_eq!(error["kind"], "input");
    assert_eq!(error["problems"][0]["line"], 13, "{error}");
    assert_eq!(error["problems"][0]["column"], 8);
    assert_eq!(error["problems"][0]["end_column"], 14);
    assert_eq!(error["problems"][0].get("file"), None);
    assert!(server.get("/api/v1/runs").json()["runs"].as_array().unwrap().is_empty());

    for body in [
        json!({ "text": SHORT, "backend": "wire" }),
        json!({ "text": SHORT, "backend": "sim", "file_name": "../up.toml" }),
        json!({ "text": SHORT, "backend": "sim", "tags": [" "] }),
        json!({ "text": SHORT, "backend": "sim", "hear": ["flow.voice.1=/tmp/elsewhere.wav"] }),
        json!({ "text": SHORT, "backend": "moon" }),
        json!({ "text": SHORT }),
        json!({ "text": SHORT, "backend": "sim", "more": 1 }),
    ] {
        let reply = server.post("/api/v1/runs", &body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        assert_eq!(reply.json()["error"]["kind"], "input");
    }
    let not_json = server.ask("POST", "/api/v1/runs", &[("content-type", "text/plain")], Some(b"{}"));
    assert_eq!(not_json.status, 415);
}

#[test]
fn an_example_is_run_and_resumed_where_its_files_are_not() {
    let server = TestServer::start();
    let examples = server.get("/api/v1/examples").json();
    let example = |example: &&Value| example["name"] == "voice-beside-bulk";
    let text = examples.as_array().unwrap().iter().find(example).unwrap()["text"].as_str().unwrap();
    let begun = server.run(&text.replace("repetitions = 3", "repetitions = 1000"));
    let path = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap());
    server.wait_until(&path, |job| job["progress"]["repetitions_done"].as_u64() > Some(0));
    server.post(&format!("{path}/stop"), &json!({}));
    server.wait(&begun);
    let resumed = server.post(&format!("/api/v1/runs/{}/resume", begun["run"]), &json!({}));
    assert_eq!(resumed.status, 201, "{}", resumed.text());
    let resumed = resumed.json();
    server.post(&format!("/api/v1/jobs/{}/stop", resumed["job"].as_str().unwrap()), &json!({}));
    assert_eq!(server.wait(&resumed)["state"], "stopped");
}

#[test]
fn a_run_is_stopped_and_resumed() {
    let server = TestServer::start();
    let begun = server.run(&long());
    let id = begun["run"].as_u64().expect("it has its turn at once");
    let path = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap());
    server.wait_until(&path, |job| job["progress"]["repetitions_done"].as_u64() > Some(2));
    let run = server.get(&format!("/api/v1/runs/{id}")).json();
    assert_eq!(run["info"]["status"], "running");
    assert_eq!(run["info"]["job"], begun["job"]);
    assert_eq!(server.post(&format!("/api/v1/runs/{id}/resume"), &json!({})).status, 409);
    assert_eq!(server.post(&format!("/api/v1/runs/{id}/stop"), &json!({})).status, 202);
    let job = server.wait(&begun);
    assert_eq!(job["state"], "stopped");

    let before = server.get(&format!("/api/v1/runs/{id}")).json()["info"].clone();
    assert_eq!(before["status"], "partial");
    assert_eq!(server.post(&format!("/api/v1/runs/{id}/stop"), &json!({})).status, 409);
    let resumed = server.post(&format!("/api/v1/runs/{id}/resume"), &json!({}));
    assert_eq!(resumed.status, 201, "{}", resumed.text());
    let resumed = resumed.json();
    let path = format!("/api/v1/jobs/{}", resumed["job"].as_str().unwrap());
    server.wait_until(&path, |job| job["progress"]["repetitions_done"].as_u64() > Some(2));
    assert_eq!(server.get(&path).json()["run"], id);
    server.post(&format!("{path}/stop"), &json!({}));
    server.wait(&resumed);
    let after = server.get(&format!("/api/v1/runs/{id}")).json()["info"].clone();
    assert!(after["repetitions_done"].as_u64() > before["repetitions_done"].as_u64(), "{before} {after}");
    assert_eq!(after["key"], before["key"]);
}

#[test]
fn a_server_that_ends_keeps_what_its_jobs_have_measured() {
    in_real_time(|| {
        let place = tempfile::tempdir().unwrap();
        let mut server = TestServer::start_in(place.path(), |_| ());
        let begun = server.run(&long());
        let id = begun["run"].as_u64().unwrap();
        let path = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap());
        server.wait_until(&path, |job| job["progress"]["repetitions_done"].as_u64() > Some(2));
        let watching = server.watch(&format!("/api/v1/events?job={}", begun["job"].as_str().unwrap()), None);
        let since = Instant::now();
        server.end().unwrap();
        assert!(since.elapsed() < Duration::from_secs(30));
        drop(watching);

        let again = TestServer::start_in(place.path(), |_| ());
        let run = again.get(&format!("/api/v1/runs/{id}")).json()["info"].clone();
        assert_eq!(run["status"], "partial");
        assert!(run["repetitions_done"].as_u64() > Some(2));
        assert_eq!(again.get(&path).status, 404, "jobs end with their server");
        assert_eq!(again.post(&format!("/api/v1/runs/{id}/resume"), &json!({})).status, 201);
    });
}

#[test]
fn simulations_share_the_cores_and_others_wait() {
    let server = TestServer::start();
    let jobs: Vec<Value> = (0..6).map(|_| server.run(&long())).collect();
    let states = |server: &TestServer| -> Vec<String> {
        let all = server.get("/api/v1/jobs").json();
        all.as_array().unwrap().iter().rev().map(|job| job["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(states(&server), ["running", "running", "running", "running", "waiting", "waiting"]);
    let stop =
        |job: &Value| server.post(&format!("/api/v1/jobs/{}/stop", job["job"].as_str().unwrap()), &json!({}));
    // One that waits is gone at once.
    assert_eq!(stop(&jobs[5]).json()["state"], "stopped");
    stop(&jobs[0]);
    server.wait(&jobs[0]);
    let path = format!("/api/v1/jobs/{}", jobs[4]["job"].as_str().unwrap());
    server.wait_until(&path, |job| job["state"] == "running");
    for job in &jobs[1..5] {
        stop(job);
    }
    for job in &jobs[1..5] {
        assert_eq!(server.wait(job)["state"], "stopped");
    }
}

#[test]
fn runs_are_listed_page_by_page_and_by_what_they_are() {
    let server = TestServer::start();
    let ids = [server.measured(), server.measured(), server.measured()];
    let list = |query: &str| server.get(&format!("/api/v1/runs{query}")).json();
    let numbers = |list: &Value| -> Vec<u64> {
        list["runs"].as_array().unwrap().iter().map(|run| run["id"].as_u64().unwrap()).collect()
    };
    let first = list("?limit=2");
    assert_eq!(
        (numbers(&first), &first["total"], &first["next"]),
        (vec![ids[2], ids[1]], &json!(3), &json!(ids[1]))
    );
    let second = list(&format!("?limit=2&before={}", ids[1]));
    assert_eq!((numbers(&second), &second["next"]), (vec![ids[0]], &Value::Null));

    for run in second["runs"].as_array().unwrap() {
        assert_eq!(run["answer"]["outcome"], "holds", "{run}");
        assert!(run["answer"]["figure"].as_str().unwrap().starts_with("voice latency p99 is "), "{run}");
    }

    let tag = format!("/api/v1/runs/{}/tags/for%20the%20paper", ids[1]);
    assert_eq!(server.ask("PUT", &tag, &[], None).status, 204);
    assert_eq!(numbers(&list("?tag=for%20the%20paper")), [ids[1]]);
    assert_eq!(server.ask("DELETE", &tag, &[], None).status, 204);
    assert!(numbers(&list("?tag=for%20the%20paper")).is_empty());

    assert_eq!(numbers(&list("?name=SHO&backend=sim&status=complete")).len(), 3);
    assert!(numbers(&list("?backend=live")).is_empty());
    assert!(numbers(&list("?until=2020-01-01T00:00:00Z")).is_empty());
    assert_eq!(numbers(&list("?since=2020-01-01T00:00:00Z")).len(), 3);
    for wrong in ["?limit=0", "?limit=1001", "?backend=moon", "?since=yesterday", "?colour=red"] {
        assert_eq!(server.get(&format!("/api/v1/runs{wrong}")).status, 400, "{wrong}");
    }
}

/// An archive of a run with another description.
fn described(archive: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut entries = tar::Archive::new(archive);
    let mut run: Value =
        serde_json::from_reader(entries.entries().unwrap().next().unwrap().unwrap()).unwrap();
    change(&mut run);
    let text = serde_json::to_vec(&run).unwrap();
    let mut changed = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    changed.append_data(&mut header, "run.json", text.as_slice()).unwrap();
    changed.into_inner().unwrap()
}

#[test]
fn an_imported_run_reads_no_file_outside_of_the_servers_folder() {
    let (here, there) = (TestServer::start(), TestServer::start());
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "only mine").unwrap();
    let exported = here.get(&format!("/api/v1/runs/{}/export", here.measured()));
    let tar = [("content-type", "application/x-tar")];
    for named in [secret.to_str().unwrap(), "secret", "/dev/zero"] {
        let archive = described(&exported.body, |run| {
            let run = &mut run["run"];
            run["info"]["status"] = "partial".into();
            run["info"]["key"] = format!("{:032x}", named.len()).into();
            run["info"]["file"] = outside.path().join("x.toml").to_str().unwrap().into();
            let from = "[link.trunk]\n";
            let to = format!("[link.trunk]\nmedium = \"trace\"\nfile = \"{named}\"\n");
            run["text"] =
                run["text"].as_str().unwrap().replacen(from, &to, 1).replace("rate = ", "# ").into();
        });
        let imported = there.ask("POST", "/api/v1/runs/import", &tar, Some(&archive));
        assert_eq!(imported.status, 200, "{named}: {}", imported.text());
        let id = imported.json()["run"].clone();
        let resumed = there.post(&format!("/api/v1/runs/{id}/resume"), &json!({}));
        assert_eq!(resumed.status, 400, "{named}: {}", resumed.text());
        let why = resumed.json()["error"].to_string();
        assert!(why.contains("is outside") || why.contains("does not exist"), "{named}: {why}");
        assert!(!why.contains("only mine"), "{why}");
    }
}

#[test]
fn a_run_is_taken_elsewhere_and_removed() {
    let (here, there) = (TestServer::start(), TestServer::start());
    let id = here.measured();
    let exported = here.get(&format!("/api/v1/runs/{id}/export"));
    assert_eq!(exported.status, 200);
    assert_eq!(exported.header("content-disposition"), Some("attachment; filename=\"1-short-sim.tar\""));
    let tar = [("content-type", "application/x-tar")];
    let imported = there.ask("POST", "/api/v1/runs/import", &tar, Some(&exported.body));
    assert_eq!(imported.json(), json!({ "run": 1, "new": true }));
    let again = there.ask("POST", "/api/v1/runs/import", &tar, Some(&exported.body));
    assert_eq!(again.json(), json!({ "run": 1, "new": false }));
    let strip = |server: &TestServer| {
        let mut run = server.get("/api/v1/runs/1/json").json();
        run["runs"][0].as_object_mut().unwrap().remove("directory");
        run
    };
    assert_eq!(strip(&there), strip(&here));

    let broken = there.ask("POST", "/api/v1/runs/import", &tar, Some(b"no archive"));
    assert_eq!((broken.status, broken.json()["error"]["kind"].as_str().unwrap()), (400, "input"));
    assert_eq!(there.ask("POST", "/api/v1/runs/import", &[], Some(&exported.body)).status, 415);

    assert_eq!(here.ask("DELETE", &format!("/api/v1/runs/{id}"), &[], None).status, 204);
    let gone = here.get(&format!("/api/v1/runs/{id}"));
    assert_eq!((gone.status, gone.json()["error"]["kind"].as_str().unwrap()), (404, "not-found"));
    assert_eq!(here.ask("DELETE", &format!("/api/v1/runs/{id}"), &[], None).status, 404);
}

#[test]
fn results_come_as_report_tables_figures_and_traces() {
    let server = TestServer::start();
    let id = server.measured();
    let report = server.get(&format!("/api/v1/runs/{id}/report"));
    assert!(report.text().starts_with("<!DOCTYPE html>") || report.text().starts_with("<!doctype html>"));
    // What stands in a run that somebody else has made gets at nothing here.
    assert!(report.header("content-security-policy").unwrap().contains("sandbox"));

    let csv = server.get(&format!("/api/v1/runs/{id}/csv?table=repetitions"));
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert_eq!(csv.text().lines().count(), 5, "{}", csv.text());
    let archive = server.get(&format!("/api/v1/runs/{id}/csv"));
    let mut entries = tar::Archive::new(archive.body.as_slice());
    assert!(entries.entries().unwrap().any(|entry| entry.unwrap().path().unwrap().ends_with("sweep.csv")));
    assert_eq!(server.get(&format!("/api/v1/runs/{id}/csv?table=none")).status, 404);

    let figures = server.get(&format!("/api/v1/runs/{id}/figures")).json();
    let name = figures[0]["name"].as_str().unwrap();
    let svg = server.get(&format!("/api/v1/runs/{id}/figures/{name}.svg"));
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    assert!(svg.text().contains("<svg"));
    let png = server.get(&format!("/api/v1/runs/{id}/figures/{name}.png"));
    assert_eq!(png.body.starts_with(b"\x89PNG"), trunkline_report::DRAWS_PNG);
    for wrong in ["none.svg", "none", &format!("{name}.bmp")] {
        assert_eq!(server.get(&format!("/api/v1/runs/{id}/figures/{wrong}")).status, 404, "{wrong}");
    }

    let flow = format!("/api/v1/runs/{id}/points/1/repetitions/0/flows/voice");
    let parquet = server.get(&format!("{flow}/trace.parquet"));
    assert!(parquet.body.starts_with(b"PAR1") && parquet.body.ends_with(b"PAR1"));
    let latency = server.get(&format!("{flow}/latency")).body;
    let (points, lost) = unpacked(&latency);
    let sent = 2 * 200;
    assert_eq!(points.len() + lost, sent, "two members send a packet every 10 ms for 2 s");
    assert!(points.iter().all(|(t, latency)| (0.0..2.0).contains(t) && (0.02..0.1).contains(latency)));
    let (part, _) = unpacked(&server.get(&format!("{flow}/latency?from=0.5&to=1")).body);
    assert!(part.iter().all(|(t, _)| (0.5..1.0).contains(t)) && (80..=100).contains(&part.len()));
    let cdf: api::Cdf = serde_json::from_value(server.get(&format!("{flow}/cdf?points=11")).json()).unwrap();
    assert_eq!((cdf.p.len(), cdf.p[10]), (11, 1.0));
    assert!(cdf.value.is_sorted());
    for wrong in
        ["latency?from=2&to=1", "latency?buckets=0", "latency?from=NaN", "cdf?points=1", "cdf?points=x"]
    {
        assert_eq!(server.get(&format!("{flow}/{wrong}")).status, 400, "{wrong}");
    }
    let of_repetition = format!("/api/v1/runs/{id}/points/1/repetitions/0/over-time");
    let over_time: api::OverTime = serde_json::from_value(server.get(&of_repetition).json()).unwrap();
    let [voice] = over_time.flows.as_slice() else { panic!("{over_time:?}") };
    let bits: f64 = voice.throughput.iter().map(|rate| rate * 0.1).sum();
    assert_eq!((voice.flow.as_str(), bits.round() as usize), ("voice", points.len() * 80 * 8));
    assert!((voice.t[3] - 0.3).abs() < 1e-9 && voice.sampled.is_empty() && voice.window.is_empty());
    assert_eq!(voice.throughput.last(), Some(&0.0), "{voice:?}");
    assert!(over_time.queues.is_empty(), "nothing waits on an idle line: {over_time:?}");
    let none = format!("/api/v1/runs/{id}/points/9/repetitions/0/over-time");
    assert_eq!(server.get(&none).status, 404);
    let none = format!("/api/v1/runs/{id}/points/9/repetitions/0/flows/voice/latency");
    assert_eq!(server.get(&none).status, 404);
    assert_eq!(server.get(&format!("/api/v1/runs/{id}/files/..%2F..%2Ftrunkline.db")).status, 404);
}

#[test]
fn a_run_has_the_sound_of_its_flows_with_audio_and_so_has_its_file() {
    let server = TestServer::start();
    let voice = "from = \"a\"\nto = \"b\"\ntransport = \"udp\"\naudio = true\nsource = { kind = \"voice\", samples = 80 }\n";
    let text = format!(
        "name = \"sound\"\nduration = \"2 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
         rate = \"72 kbit/s\"\nqueue = {{ kind = \"fifo\", limit = \"4 KB\" }}\n[flow.plain]\n{voice}[flow.played]\n\
         playback = {{ kind = \"fifo\", fill = 160 }}\n{voice}[flow.silent]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         source = {{ kind = \"audio\", blocks = 1 }}\n"
    );
    let job = server.wait(&server.run(&text));
    assert_eq!(job["state"], "done", "{job}");
    let id = job["run"].as_u64().unwrap();
    let of = |flow: &str, what: &str| {
        server.get(&format!("/api/v1/runs/{id}/points/0/repetitions/0/flows/{flow}/{what}"))
    };
    let pieces: api::Pieces = serde_json::from_value(of("plain", "pieces").json()).unwrap();
    assert!(pieces.duration > 1.5 && !pieces.lost.is_empty(), "{pieces:?}");
    for of_what in ["sent", "heard"] {
        let wav = of("plain", &format!("sound.wav?of={of_what}")).body;
        assert_eq!(
            (&wav[..4], wav.len()),
            (&b"RIFF"[..], 44 + 2 * (pieces.duration * 8000.0).round() as usize)
        );
    }
    // The place in the sound is that of the message: its pauses are left out.
    let (points, _) = unpacked(&of("plain", "latency").body);
    let moment = |at: f64, latency: f64| {
        let reply = of("plain", &format!("moment?at={at}&latency={latency}"));
        serde_json::from_value::<api::Moment>(reply.json()).unwrap()
    };
    let places: Vec<f64> =
        points.iter().step_by(10).map(|(at, latency)| moment(*at, f64::from(*latency)).position).collect();
    assert!(places.is_sorted() && places.len() > 5, "{places:?}");
    assert!(
        places
            .iter()
            .all(|place| *place < pieces.duration && (place * 100.0 - (place * 100.0).round()).abs() < 1e-6),
        "{places:?}"
    );
    let is_lost = |place: f64| pieces.lost.iter().any(|[from, to]| (*from..*to).contains(&(place + 1e-6)));
    assert!(!places.iter().any(|place| is_lost(*place)));
    for wrong in ["moment", "moment?at=NaN", "moment?at=x"] {
        assert_eq!(of("plain", wrong).status, 400, "{wrong}");
    }
    for wrong in ["pieces", "sound.wav", "moment?at=1"] {
        let reply = of("silent", wrong);
        assert_eq!(reply.status, 404);
        assert!(reply.text().contains("it takes a flow with the source `voice`"), "{}", reply.text());
    }
    // The reserve of a FIFO is its playout delay.
    let played: api::Pieces = serde_json::from_value(of("played", "pieces").json()).unwrap();
    assert_eq!((played.playout, pieces.playout), (Some(0.02), None));
    let run = server.get(&format!("/api/v1/runs/{id}")).json();
    let run: api::Run = serde_json::from_value(run).unwrap();
    let sound = |flow: &str| api::FlowSound { flow: flow.into(), members: 1, channels: 1 };
    assert_eq!(run.points[0].repetitions[0].sounds, [sound("plain"), sound("played")]);
    let (html, held) = saved(&server, id);
    assert_eq!(html.matches("data:audio/wav").count(), 2);
    let flow = format!("/runs/{id}/points/0/repetitions/0/flows/plain");
    assert_eq!(
        held[&format!("{flow}/sound.wav?member=0&channel=0&of=sent")],
        of("plain", "sound.wav?of=sent").body
    );
    assert!(html.contains(&format!("data-path=\"{flow}/sound.wav?member=0&amp;channel=0&amp;of=heard\"")));
    let run: api::Run = serde_json::from_slice(&held[&format!("/runs/{id}")]).unwrap();
    assert_eq!(run.points[0].repetitions[0].sounds, [sound("plain"), sound("played")]);
    assert!(run.points[0].repetitions[0].audio.is_empty());
    let note = String::from_utf8_lossy(&held["/saved"]).into_owned();
    assert!(
        note.contains("Its audio is the first channel of each flow") && !note.contains("too long"),
        "{note}"
    );
    // A dot of the chart has its place there too.
    let moments: Value = serde_json::from_slice(&held[&format!("{flow}/moments")]).unwrap();
    let number = |of: &Value| of.as_f64();
    for ((at, latency), position) in points.iter().step_by(10).zip(&places) {
        let is_it = |place: &usize| {
            number(&moments["sent"][*place]) == Some(*at)
                && number(&moments["latency"][*place]).map(|own| own as f32) == Some(*latency)
        };
        let place = (0..moments["sent"].as_array().unwrap().len()).find(is_it);
        let found = place.map(|place| moments["position"][place].as_f64().unwrap());
        assert!(found.is_some_and(|found| (found - position).abs() < 1e-9), "{found:?} {position}");
    }
    assert!(!server.get(&format!("/api/v1/runs/{id}/report")).text().contains("data:audio/wav"));
    // What waited is kept without anybody looking on.
    let over_time = format!("/api/v1/runs/{id}/points/0/repetitions/0/over-time");
    let over_time: api::OverTime = serde_json::from_value(server.get(&over_time).json()).unwrap();
    assert_eq!(over_time.queues.iter().map(|queue| queue.link.as_str()).collect::<Vec<_>>(), ["trunk a>b"]);
    assert!(over_time.queues[0].bytes.iter().max() > Some(&1000), "{over_time:?}");
}

#[test]
fn the_documentation_begins_with_its_introduction() {
    let server = TestServer::start();
    let introduction = server.get("/docs/introduction.html");
    assert_eq!(introduction.status, 200);
    for address in ["/docs", "/docs/"] {
        assert_eq!(server.get(address).body, introduction.body);
    }
}

#[test]
fn every_picture_and_link_of_a_documented_study_is_served() {
    let server = TestServer::start();
    let page = server.get("/docs/studies/hawley1989.html");
    let html = String::from_utf8(page.body).unwrap();
    let addresses =
        html.split("src=\"").chain(html.split("href=\"")).filter_map(|rest| rest.split('"').next());
    let own: Vec<&str> = addresses.filter(|address| address.starts_with("/docs/")).collect();
    assert_eq!(own.iter().filter(|address| address.ends_with(".svg")).count(), 2, "{own:?}");
    for address in own {
        let address = address.split('#').next().unwrap();
        assert_eq!(server.get(address).status, 200, "{address}");
    }
}

#[test]
fn a_saved_run_has_what_its_page_asks_for_and_says_what_is_left_out() {
    let server = TestServer::start();
    let run = |name: &str, duration: &str, repetitions: u32, count: u32, sweep: &str| {
        let job = server.wait(&server.run(&format!(
            "name = \"{name}\"\nduration = \"{duration}\"\nrepetitions = {repetitions}\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
             count = {count}\nsource = {{ kind = \"voice\", samples = 80 }}\n{sweep}"
        )));
        assert_eq!(job["state"], "done", "{job}");
        job["run"].as_u64().unwrap()
    };
    let id = run("</script><b>a", "1 s", 2, 1, "");
    let (html, held) = saved(&server, id);
    assert!(!html.contains("</script><b>") && html.contains("&lt;/script&gt;&lt;b&gt;a"));
    assert!(html.contains("default-src 'none'; script-src 'sha256-"));
    for repetition in 0..2 {
        let of = format!("/runs/{id}/points/0/repetitions/{repetition}");
        for what in ["over-time", "flows/voice/latency"] {
            let answer = server.get(&format!("/api/v1{of}/{what}")).body;
            assert_eq!(held[&format!("{of}/{what}")], answer, "{what}");
        }
        let cdf: api::Cdf = serde_json::from_slice(&held[&format!("{of}/flows/voice/cdf")]).unwrap();
        assert_eq!(cdf.p.last(), Some(&1.0));
    }
    assert!(serde_json::from_slice::<Vec<api::Definition>>(&held["/definitions"]).unwrap().len() > 50);
    let whole: api::Run = serde_json::from_slice(&held[&format!("/runs/{id}")]).unwrap();
    assert_eq!(
        (whole.info.summary.name.as_str(), whole.info.summary.directory.as_str()),
        ("</script><b>a", "")
    );
    assert!(!String::from_utf8_lossy(&held["/saved"]).contains("repetitions"));

    // Many repetitions, and many messages.
    let values: Vec<String> = (1..=20).map(|value| value.to_string()).collect();
    let sweep = format!("[sweep]\n\"flow.voice.count\" = [{}]\n", values.join(", "));
    for (name, duration, of_point) in [("short", "100 ms", 12), ("many", "5 s", 1)] {
        let id = run(name, duration, 12, 1, &sweep);
        let (_, held) = saved(&server, id);
        let whole: api::Run = serde_json::from_slice(&held[&format!("/runs/{id}")]).unwrap();
        let traced =
            |point: &api::RunPoint| point.repetitions.iter().map(|one| one.traces.len()).sum::<usize>();
        assert!(whole.points.iter().all(|point| traced(point) == of_point), "{name}");
        let note = String::from_utf8_lossy(&held["/saved"]);
        assert_eq!(note.contains("20 of 240 repetitions"), of_point == 1, "{note}");
    }
    let id = run("long", "60 s", 1, 10, "");
    let (_, held) = saved(&server, id);
    let latency = &held[&format!("/runs/{id}/points/0/repetitions/0/flows/voice/latency")];
    let count = u32::from_le_bytes(latency[..4].try_into().unwrap());
    assert!(latency[4] == 0 && (20_000..=50_000).contains(&count), "{count}");
    assert!(String::from_utf8_lossy(&held["/saved"]).contains("up to 50000 messages"));
}

#[test]
fn a_saved_run_has_a_part_of_a_long_call_and_says_which_and_names_no_folder() {
    let server = TestServer::start();
    let job = server.wait(&server.run(
        "name = \"long\"\nduration = \"300 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
         rate = \"1 Mbit/s\"\nloss = \"1 %\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\naudio = true\n\
         source = { kind = \"voice\", samples = 80 }\n",
    ));
    assert_eq!(job["state"], "done", "{job}");
    let id = job["run"].as_u64().unwrap();
    let store = trunkline_store::Store::open(&server.folder.join("store")).unwrap();
    let mut run = store.run(id).unwrap();
    run.info.file = "/home/ann/secret/calls.toml".into();
    let html = trunkline_server::saved_run(&store, &run, None, &server.folder.join("files")).unwrap();
    let held = unpack(&html);
    let folder = server.folder.to_string_lossy();
    assert!(html.contains("trunkline run calls.toml --on sim") && !html.contains("/home/ann"));
    assert!(!html.contains(&*folder));
    for (path, answer) in &held {
        let answer = String::from_utf8_lossy(answer);
        assert!(!answer.contains("/home/ann") && !answer.contains(&*folder), "{path}");
    }
    let flow = format!("/runs/{id}/points/0/repetitions/0/flows/voice");
    let pieces = |answer: &[u8]| serde_json::from_slice::<api::Pieces>(answer).unwrap();
    let whole = pieces(&server.get(&format!("/api/v1{flow}/pieces")).body);
    let part = pieces(&held[&format!("{flow}/pieces?member=0&channel=0")]);
    let [from, to] = part.part.unwrap();
    assert!((to - from - part.duration).abs() < 1e-6 && (40.0..60.0).contains(&part.duration), "{part:?}");
    // No other part of this length lacks more.
    let lacking = |from: f64| -> f64 {
        let inside = |[start, end]: &[f64; 2]| (end.min(from + part.duration) - start.max(from)).max(0.0);
        whole.lost.iter().map(inside).sum()
    };
    let most =
        (0..(whole.duration - part.duration) as usize).map(|start| lacking(start as f64)).fold(0.0, f64::max);
    let lost: f64 = part.lost.iter().map(|[start, end]| end - start).sum();
    assert!(lost > most - 1e-6 && (lost - lacking(from)).abs() < 1e-6, "{lost} {most}");
    assert!(html.contains(&format!("voice, channel 1, {from:.1} s to {to:.1} s of {:.1} s", whole.duration)));
    assert!(
        String::from_utf8_lossy(&held["/saved"]).contains("the part with the most lost and late packets")
    );
}

#[test]
fn a_saved_run_has_the_sound_of_other_playout_delays_as_the_server_makes_it() {
    let server = TestServer::start();
    let job = server.wait(&server.run(
        "name = \"late\"\nduration = \"2 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
         rate = \"1 Mbit/s\"\nloss = \"2 %\"\njitter = { kind = \"exponential\", mean = \"20 ms\" }\n[flow.voice]\n\
         from = \"a\"\nto = \"b\"\ntransport = \"udp\"\naudio = true\nplayout = \"40 ms\"\n\
         source = { kind = \"voice\", samples = 80 }\n",
    ));
    assert_eq!(job["state"], "done", "{job}");
    let id = job["run"].as_u64().unwrap();
    let (_, held) = saved(&server, id);
    let flow = format!("/runs/{id}/points/0/repetitions/0/flows/voice");
    let delays: Vec<u64> = serde_json::from_slice(&held[&format!("{flow}/playouts")]).unwrap();
    assert_eq!(delays, [0, 10, 20, 30, 50, 60, 80, 120, 200, 320]);
    let mut late = Vec::new();
    for delay in delays {
        let of = format!("member=0&channel=0&playout_ms={delay}");
        for what in
            [format!("sound.wav?{of}&of=sent"), format!("sound.wav?{of}&of=heard"), format!("pieces?{of}")]
        {
            let answer = server.get(&format!("/api/v1{flow}/{what}")).body;
            assert_eq!(held[&format!("{flow}/{what}")], answer, "{what}");
        }
        let pieces: api::Pieces = serde_json::from_slice(&held[&format!("{flow}/pieces?{of}")]).unwrap();
        late.push(pieces.late.iter().map(|[from, to]| to - from).sum::<f64>());
    }
    assert!(late.is_sorted_by(|a, b| a >= b) && late[0] > 0.3 && late[9] == 0.0, "{late:?}");
    let pieces: api::Pieces =
        serde_json::from_slice(&held[&format!("{flow}/pieces?member=0&channel=0")]).unwrap();
    assert_eq!(pieces.playout, Some(0.04));
    assert!(!String::from_utf8_lossy(&held["/saved"]).contains("playout"));
}

/// A saved run, and the answers in it.
fn saved(server: &TestServer, id: u64) -> (String, BTreeMap<String, Vec<u8>>) {
    let reply = server.get(&format!("/api/v1/runs/{id}/saved.html"));
    assert!(reply.header("content-disposition").unwrap().starts_with("attachment"));
    let html = reply.text();
    let held = unpack(&html);
    (html, held)
}

/// The answers in a saved run.
fn unpack(html: &str) -> BTreeMap<String, Vec<u8>> {
    assert!(html.len() < 5_000_000);
    let (_, packed) = html.split_once("<script id=\"saved\" type=\"application/octet-stream\">").unwrap();
    let packed = data_encoding::BASE64.decode(packed.split_once("</script>").unwrap().0.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    let (length, rest) = bytes.split_at(4);
    let (index, bodies) = rest.split_at(u32::from_le_bytes(length.try_into().unwrap()) as usize);
    let places: Vec<(String, usize, usize, Option<String>)> = serde_json::from_slice(index).unwrap();
    let mut held: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (path, from, to, base) in places {
        let mut body = bodies[from..to].to_vec();
        if let Some(base) = base {
            body.iter_mut().zip(&held[&base]).for_each(|(own, base)| *own ^= base);
        }
        held.insert(path, body);
    }
    held
}

/// The points of a latency answer, and how many messages were lost.
fn unpacked(bytes: &[u8]) -> (Vec<(f64, f32)>, usize) {
    let count = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let n = count(0);
    assert_eq!(bytes[4], 1, "so few are all of them");
    let at = |i: usize| f64::from_le_bytes(bytes[5 + 8 * i..13 + 8 * i].try_into().unwrap());
    let values = 5 + 8 * n;
    let value = |i: usize| f32::from_le_bytes(bytes[values + 4 * i..values + 4 + 4 * i].try_into().unwrap());
    let lost = count(values + 4 * n);
    assert_eq!(bytes.len(), values + 4 * n + 4 + 8 * lost);
    ((0..n).map(|i| (at(i), value(i))).collect(), lost)
}
