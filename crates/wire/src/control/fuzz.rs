//! What must hold of the socket for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::{Bytes, Destination, Packet, PacketId, Port, Seed, Time};
use trunkline_experiment::Experiment;
use trunkline_network::{Medium, Outcome};

use super::server::converse;
use super::{ControlledLink, Controller, Drive, Reply};
use crate::relay::{Change, RelayCounters, RelayEnded};

const FILE: &str = r#"name = "any requests"
duration = "1 s"
[hosts]
a = {}
b = {}
[link.trunk]
between = ["a", "b"]
rate = "8 Mbit/s"
queue = { kind = "fifo", limit = "10 packets" }
"#;
const WAITING: u64 = 5;

/// Takes the data for what a client sends and panics where this is broken:
/// 1. every line is answered by one, which is a [`Reply`], until one is of HTTP, which has one answer with its length, or
///    the bytes are none of either;
/// 2. whatever is set, no packet gets lost uncounted.
#[doc(hidden)]
pub fn fuzz_control(data: &[u8]) {
    let experiment = Experiment::parse(FILE, "any.toml", &()).expect("the file is right");
    let seed = Seed::new(1, 0);
    let medium = experiment.points.first().scenario.build_links(seed).remove(0);
    let link = Arc::new(Link(Mutex::new((medium, Outcome::default()))));
    link.fill();
    let drive = Arc::clone(&link) as Arc<dyn Drive>;
    let links = vec![ControlledLink { name: "trunk".into(), stations: vec!["a".into(), "b".into()], drive }];
    let controller = Controller::new("any", experiment, Box::new(()), seed, links);
    let mut answers = Vec::new();
    // A client that sends no requests is left alone.
    let _ = converse(&mut &data[..], &mut answers, &controller);
    let answers = String::from_utf8(answers).expect("answers are text");
    let (replies, http) = answers
        .split_at(answers.find("HTTP/1.1 ").filter(|at| is_line(&answers, *at)).unwrap_or(answers.len()));
    assert!(replies.lines().count() <= data.iter().filter(|byte| **byte == b'\n').count());
    for reply in replies.lines() {
        let reply: Reply = serde_json::from_str(reply).expect("a reply");
        assert!(!matches!(reply, Reply::Refused(why) if why.is_empty()), "refused without a reason");
    }
    if let Some((header, body)) = http.split_once("\r\n\r\n") {
        let length = header.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
        assert!(body.is_empty() || length == body.len().to_string(), "{http}");
    } else {
        assert_eq!(http, "");
    }
    link.drain();
}

fn is_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// A link whose time stands still.
struct Link(Mutex<(Box<dyn Medium>, Outcome)>);

impl Link {
    fn with<R>(&self, work: impl FnOnce(&mut dyn Medium, &mut Outcome) -> R) -> R {
        let (medium, out) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut **medium, out)
    }

    fn fill(&self) {
        for id in 1..=WAITING {
            let to = Destination::Port(Port(1));
            let packet = Packet { id: PacketId(id), size: Bytes(1000), to, ..Packet::default() };
            self.with(|medium, out| medium.offer(Time::ZERO, Port(0), packet, out));
        }
    }

    fn drain(&self) {
        self.with(|medium, out| {
            medium.advance(Time::MAX, out);
            let counters = medium.counters(Port(0));
            let gone = counters.delivered + counters.dropped.iter().sum::<u64>();
            assert_eq!((counters.offered, gone), (WAITING, WAITING + counters.copied));
        });
    }
}

impl Drive for Link {
    fn counters(&self) -> Result<RelayCounters, RelayEnded> {
        Ok(RelayCounters::default())
    }

    fn change(&self, change: Change) -> Result<(), RelayEnded> {
        self.with(|medium, out| change(Time::ZERO, medium, out));
        Ok(())
    }

    fn set_up(&self, _: bool) -> Result<(), RelayEnded> {
        Ok(())
    }
}
