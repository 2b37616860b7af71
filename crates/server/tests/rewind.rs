//! Bad moments through the API: their causes, from what the runs recorded.

#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

mod common;

use common::TestServer;
use serde_json::{Value, json};
use trunkline_server::api;

/// A call and two uploads over a slow line.
const UPLOADS: &str = r#"
name = "uploads"
duration = "4 s"
seed = 7

[hosts]
berlin = {}
ottawa = {}

[link.trunk]
between = ["berlin", "ottawa"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = { kind = "fifo", limit = "64 KiB" }

[flow.voice]
from = "berlin"
to = "ottawa"
transport = "udp"
source = { kind = "voice", samples = 80 }
reflect = true

[flow.bulk]
from = "berlin"
to = "ottawa"
transport = "tcp"
source = { kind = "bulk", message = "8 KiB" }
start = "1 s"
count = 2

[sweep]
"flow.bulk.count" = [1, 2]
"#;

/// A call alone over a line that is described.
fn call(link: &str) -> String {
    format!(
        "name = \"call\"\nduration = \"4 s\"\nseed = 7\n\n[hosts]\nberlin = {{}}\nottawa = {{}}\n\n[link.trunk]\n\
         between = [\"berlin\", \"ottawa\"]\n{link}\n[flow.voice]\nfrom = \"berlin\"\nto = \"ottawa\"\n\
         transport = \"udp\"\nsource = {{ kind = \"voice\", samples = 80 }}\nreflect = true\n"
    )
}

struct Stored {
    server: TestServer,
    base: String,
    /// Sent and latency of all messages of the call.
    points: Vec<(f64, f32)>,
}

impl Stored {
    fn run(text: &str, point: u32) -> Stored {
        let server = TestServer::start();
        let job = server.wait(&server.run(text));
        let base = format!("/api/v1/runs/{}/points/{point}/repetitions/0/flows/voice", job["run"]);
        let body = server.get(&format!("{base}/latency")).body;
        let n = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
        let t = |i: usize| f64::from_le_bytes(body[5 + 8 * i..13 + 8 * i].try_into().unwrap());
        let latency = |i: usize| {
            let at = 5 + 8 * n + 4 * i;
            f32::from_le_bytes(body[at..at + 4].try_into().unwrap())
        };
        let points = (0..n).map(|i| (t(i), latency(i))).collect();
        Stored { server, base, points }
    }

    fn worst(&self) -> (f64, f32) {
        *self.points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    }

    fn rewind(&self, (at, latency): (f64, f32)) -> api::Rewind {
        let reply = self.server.get(&format!("{}/rewind?at={at}&latency={latency}", self.base));
        assert_eq!(reply.status, 200, "{}", reply.text());
        serde_json::from_value(reply.json()).unwrap()
    }

    /// The sentence about the worst message.
    fn said(&self) -> String {
        let found = self.rewind(self.worst());
        assert_eq!(found.note, None);
        found.sentence
    }
}

/// The first number before this text.
fn number(text: &str, before: &str) -> f64 {
    let end = text.find(before).unwrap_or_else(|| panic!("no `{before}` in `{text}`"));
    text[..end].rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn uploads_fill_the_queue_and_three_remedies_are_tried() {
    let stored = Stored::run(UPLOADS, 1);
    let worst = stored.worst();
    let found = stored.rewind(worst);
    let said = &found.sentence;
    assert_eq!(found.note, None, "{said}");
    assert!(said.contains("of it in the queue of `trunk` (berlin>ottawa), "), "{said}");
    assert!(said.contains("% of it from ") && said.contains("bulk") && said.contains("grew to"), "{said}");
    assert!(number(said, " % of it from") >= 80.0, "{said}");
    assert!((number(said, " ms:") / 1e3 - f64::from(worst.1)).abs() < 1e-3, "{said}: {worst:?}");
    let sum: f64 = found.parts.iter().map(|part| part.seconds).sum();
    assert!((sum - f64::from(worst.1)).abs() < 1e-6, "{sum} of {worst:?}: {:?}", found.parts);
    assert_eq!(found.parts[0].name, "queue of `trunk` (berlin>ottawa)");

    // What waited is at most the limit, and nearly that.
    let queue = found.queues.iter().find(|queue| queue.link == "trunk berlin>ottawa").unwrap();
    let flow = |name: &str| &queue.flows.iter().find(|one| one.flow == name).unwrap().bytes;
    let most = flow("bulk").iter().zip(flow("voice")).map(|(bulk, voice)| bulk + voice).max().unwrap();
    assert!((40_000..=67_100).contains(&most), "{most}");
    assert_eq!(found.t.len(), flow("bulk").len());
    assert_eq!(found.connections.len(), 2);
    assert_eq!(found.connections[1].member, "bulk.2");
    assert!(
        found
            .connections
            .iter()
            .all(|one| !one.t.is_empty() && one.window.iter().any(|window| *window > 20_000))
    );

    // The windows of the first connection are kept for those who have no simulator, such as a saved file.
    let over_time = stored.base.replace("flows/voice", "over-time");
    let over_time: api::OverTime = serde_json::from_value(stored.server.get(&over_time).json()).unwrap();
    let bulk = over_time.flows.iter().find(|one| one.flow == "bulk").unwrap();
    let known: Vec<_> = bulk.sampled.iter().zip(&bulk.window).collect();
    let first = &found.connections[0];
    assert!(first.t.iter().zip(&first.window).all(|sample| known.contains(&sample)), "{known:?} {first:?}");
    assert!(over_time.stalls.is_empty(), "a simulation does not stall");

    let remedies = found.remedies.unwrap();
    assert_eq!(
        remedies.names,
        ["fifo, as it was", "fq-codel", "fifo, at most 6 KiB", "priority to other flows"]
    );
    let p99 = |point: usize| {
        let body = json!({ "text": remedies.text, "point": point, "budget_ms": 10_000 });
        let found = stored.server.post("/api/v1/predict", &body).json();
        assert_eq!(found["points"].as_array().map(Vec::len), Some(4), "{}", remedies.text);
        figure(&found, "latency_p99")
    };
    let before = p99(0);
    assert!((1..4).all(|point| p99(point) < before / 2.0), "{before}: {:?}", [p99(1), p99(2), p99(3)]);
}

fn figure(prediction: &Value, name: &str) -> f64 {
    let flows = &prediction["report"]["points"][0]["runs"][0]["flows"];
    flows[0]["figures"][name]["mean"].as_f64().unwrap_or_else(|| panic!("{prediction}"))
}

#[test]
fn what_the_queue_dropped_is_said_of_a_lost_message() {
    let stored = Stored::run(&UPLOADS.replace("64 KiB", "3 packets"), 1);
    let address = format!("{}/latency", stored.base);
    let body = stored.server.get(&address).body;
    let lost = f64::from_le_bytes(body[body.len() - 8..].try_into().unwrap());
    let found: api::Rewind =
        serde_json::from_value(stored.server.get(&format!("{}/rewind?at={lost}", stored.base)).json())
            .unwrap();
    let said = &found.sentence;
    assert!(said.starts_with("lost: dropped at `trunk` (berlin>ottawa), queue full, "), "{said}");
    assert!(found.events.iter().any(|one| !one.mark
        && one.link == "trunk berlin>ottawa"
        && one.cause == "queue-full"
        && one.member.starts_with("bulk.")));
    assert!(found.remedies.is_some());
}

#[test]
fn an_interruption_of_the_line_is_no_full_queue() {
    let steps = r#"rate = { kind = "steps", steps = [["0 s", "1 Mbit/s"], ["1 s", "1 bit/s"], ["1400 ms", "1 Mbit/s"]] }"#;
    let stored = Stored::run(&call(&format!("{steps}\ndelay = \"10 ms\"\n")), 0);
    // The first packet is on the line all the time; what comes later waits behind it.
    let said = stored.said();
    assert!(said.contains("slow transmission over `trunk` (berlin>ottawa), which delivered it "), "{said}");
    let later = stored.points.iter().find(|(sent, _)| *sent > 1.1).unwrap();
    let said = stored.rewind(*later).sentence;
    assert!(said.contains("an interruption of `trunk` (berlin>ottawa), which sent nothing for "), "{said}");
    assert!((280.0..=310.0).contains(&number(&said, " ms of the")), "{said}");
}

#[test]
fn jitter_on_the_way_back_is_that_of_the_other_direction() {
    let link = "rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\n[link.trunk.backward]\n\
                jitter = { kind = \"uniform\", min = \"0 ms\", max = \"80 ms\" }\n";
    let said = Stored::run(&call(link), 0).said();
    assert!(said.contains("jitter of `trunk` (ottawa>berlin), which delivered it "), "{said}");
    assert!((40.0..=80.0).contains(&number(&said, " ms later")), "{said}");
}

#[test]
fn a_line_without_disturbance_delays_nothing() {
    let stored = Stored::run(&call("rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n"), 0);
    let found = stored.rewind(stored.worst());
    assert!(found.sentence.contains("nothing delayed it"), "{}", found.sentence);
    assert!(found.remedies.is_none());
    let wrong = stored.server.get(&format!("{}/rewind?at=NaN", stored.base));
    assert_eq!(wrong.status, 400, "{}", wrong.text());
}
