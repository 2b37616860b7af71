//! Who listens to a run hears of each repetition by itself what its traces keep.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use trunkline_core::{Bytes, Duration, Time};
use trunkline_experiment::Experiment;
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_metrics::{Record, RepetitionSummary};
use trunkline_runner::{Hear, Observer, Plan, RepetitionTap, Request, Tap, TappedRepetition};
use trunkline_store::{Backend, Status, Store, read_trace};

const SWEEP: &str = r#"
name = "tapped"
duration = "2 s"
repetitions = 2
[hosts]
a = {}
b = {}
[link.trunk]
between = ["a", "b"]
rate = "256 kbit/s"
loss = "1 %"
[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }
[flow.load]
from = "a"
to = "b"
transport = "udp"
source = { kind = "load", message = "500 B", interval = "20 ms" }
[sweep]
"flow.voice.channels" = [1, 2, 3]
"#;

struct Silent;

impl Observer for Silent {
    fn planned(&self, _: &Plan) {}
    fn advanced(&self, _: Duration) {}
    fn repetition_done(&self) {}
    fn point_done(&self) {}
    fn warning(&self, message: &str) {
        panic!("unexpected: {message}");
    }
}

/// What was heard of one repetition.
#[derive(Debug, Default)]
struct Heard {
    values: Vec<String>,
    flows: Vec<String>,
    records: Mutex<Vec<(usize, Record)>>,
    backlogs: Mutex<Vec<(Time, String, u64)>>,
}

/// Listens to all points but the one in the middle.
#[derive(Debug, Default)]
struct Listener {
    repetitions: Mutex<BTreeMap<(u32, u32), Arc<Heard>>>,
    finished: Mutex<Vec<(u32, u32, u64)>>,
}

struct Ear(Arc<Heard>);

impl Tap for Listener {
    fn repetition(&self, tapped: &TappedRepetition<'_>) -> Option<Box<dyn RepetitionTap>> {
        let heard = Arc::new(Heard {
            values: tapped.values.to_vec(),
            flows: tapped.flows.iter().map(|flow| flow.name.clone()).collect(),
            ..Heard::default()
        });
        let key = (tapped.point, tapped.repetition);
        (tapped.point != 1).then(|| {
            let again = self.repetitions.lock().unwrap().insert(key, heard.clone());
            assert!(again.is_none(), "{key:?} began twice");
            Box::new(Ear(heard)) as Box<dyn RepetitionTap>
        })
    }

    fn finished(&self, point: u32, repetition: u32, summary: &RepetitionSummary) {
        self.finished.lock().unwrap().push((point, repetition, summary.flows[0].counts.sent));
    }
}

impl RepetitionTap for Ear {
    fn record(&self, flow: usize, record: &Record) {
        self.0.records.lock().unwrap().push((flow, *record));
    }

    fn backlog(&self, at: Time, link: &str, direction: &str, bytes: Bytes, packets: u64) {
        assert_eq!(bytes > Bytes::ZERO, packets > 0);
        self.0.backlogs.lock().unwrap().push((at, format!("{link} {direction}"), packets));
    }
}

#[test]
fn without_a_listener_queues_are_looked_at_as_often_as_is_kept() {
    let text = SWEEP.replace("duration = \"2 s\"\nrepetitions = 2", "duration = \"20 s\"\nrepetitions = 1");
    let text = text.replace("[1, 2, 3]", "[3]");
    let experiment =
        Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let live = LiveOptions::new(FarEnd::Thread);
    let request = Request {
        experiment: &experiment,
        file: Path::new("test.toml"),
        backend: Backend::Sim,
        jobs: 1,
        live: &live,
        wire: None,
        hear: Hear::nothing(),
        tap: None,
        kernels: None,
        fleet: None,
    };
    let outcome = trunkline_runner::run(&store, request, &Silent, &AtomicBool::new(false)).unwrap();
    let run = store.run(outcome.run.id).unwrap();
    let summary = run.points[0].repetitions[0].summary.as_ref().unwrap();
    let link = summary.links.iter().find(|link| link.link == "trunk a>b").unwrap();
    let kept = &link.backlog_over_time;
    // 400 of the 20 s, and the drain time.
    assert!(kept.len() > 300 && kept.len() <= 401, "{} kept", kept.len());
    assert!(kept.windows(2).all(|pair| pair[1].0.since(pair[0].0) >= Duration::from_millis(50)), "{kept:?}");
    assert!(kept.iter().any(|(_, waiting)| *waiting > Bytes::ZERO));
}

#[test]
fn each_repetition_is_heard_by_itself() {
    let experiment =
        Experiment::parse(SWEEP, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let live = LiveOptions::new(FarEnd::Thread);
    let listener = Listener::default();
    let request = Request {
        experiment: &experiment,
        file: Path::new("test.toml"),
        backend: Backend::Sim,
        jobs: 2,
        live: &live,
        wire: None,
        hear: Hear::nothing(),
        tap: Some(&listener),
        kernels: None,
        fleet: None,
    };
    let outcome = trunkline_runner::run(&store, request, &Silent, &AtomicBool::new(false)).unwrap();
    assert_eq!(outcome.run.status, Status::Complete);
    let run = store.run(outcome.run.id).unwrap();

    let heard = listener.repetitions.into_inner().unwrap();
    assert_eq!(heard.keys().copied().collect::<Vec<_>>(), [(0, 0), (0, 1), (2, 0), (2, 1)]);
    for ((point, repetition), heard) in heard {
        assert_eq!(heard.values, [(point + 1).to_string()]);
        assert_eq!(heard.flows, ["voice", "load"]);
        let stored = &run.points[point as usize].repetitions[repetition as usize];
        let records = heard.records.lock().unwrap();
        for (flow, (_, trace)) in stored.traces.iter().enumerate() {
            let mut of_flow = records.iter().filter(|(index, _)| *index == flow).map(|(_, record)| record);
            read_trace(trace, &mut |record| assert_eq!(Some(record), of_flow.next())).unwrap();
            assert_eq!(of_flow.next(), None);
        }
        assert!(records.len() >= 300, "{} records", records.len());
        let backlogs = heard.backlogs.lock().unwrap();
        assert!(backlogs.iter().any(|(_, direction, packets)| direction == "trunk a>b" && *packets > 0));
        let times: Vec<_> =
            backlogs.iter().filter(|(_, d, _)| d == "trunk b>a").map(|(at, ..)| *at).collect();
        assert!(times.is_sorted() && times.len() > 100 && times.len() < 1000, "{} looks", times.len());
    }
    // What waited is kept, whether or not anybody listened.
    for summary in
        run.points.iter().flat_map(|point| &point.repetitions).filter_map(|one| one.summary.as_ref())
    {
        let link = summary.links.iter().find(|link| link.link == "trunk a>b").unwrap();
        let kept = &link.backlog_over_time;
        assert!(kept.is_sorted_by_key(|(at, _)| *at) && kept.len() > 50 && kept.len() <= 800, "{kept:?}");
        let most = kept.iter().map(|(_, waiting)| *waiting).max().unwrap();
        assert!(most > Bytes::ZERO && most <= link.backlog_max, "{most:?} of {:?}", link.backlog_max);
    }
    let mut finished = listener.finished.into_inner().unwrap();
    finished.sort_unstable();
    let all = |point: u32| (0..2).map(move |repetition| (point, repetition, u64::from(point + 1) * 200));
    assert_eq!(finished, (0..3).flat_map(all).collect::<Vec<_>>());
}
