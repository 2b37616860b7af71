//! Who wants to know is told what waits in the queues, and nothing else changes by it.

mod support;

use support::{GoOn, Log, parse, run};
use trunkline_core::{Bytes, Duration, Time};
use trunkline_experiment::{Progress, Supervisor};

/// 1,000 B every 10 ms over a link that needs 20 ms for each: after 1 s, 50 of 100 wait.
const OVERLOAD: &str = r#"
name = "overload"
duration = "1 s"
[hosts]
a = {}
b = {}
[link.trunk]
between = ["a", "b"]
rate = "411.2 kbit/s"
queue = { kind = "fifo", limit = "1000 packets" }
[flow.load]
from = "a"
to = "b"
transport = "udp"
source = { kind = "load", message = "1000 B", interval = "10 ms" }
"#;

/// Keeps what it is told.
struct Watching {
    interval: Duration,
    seen: Vec<Look>,
}

/// When, which direction of which link, and what waited.
type Look = (Time, String, Bytes, u64);

impl Supervisor for Watching {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }

    fn backlog_interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn backlog(&mut self, at: Time, link: &str, direction: &str, bytes: Bytes, packets: u64) {
        self.seen.push((at, format!("{link} {direction}"), bytes, packets));
    }
}

fn watched(interval: Duration) -> (Watching, Log, trunkline_metrics::DriverOutcome) {
    let experiment = parse(OVERLOAD);
    let (mut log, mut watching) = (Log::default(), Watching { interval, seen: Vec::new() });
    let outcome = run(&experiment.points.first().scenario, 7, &mut log, &mut watching);
    (watching, log, outcome)
}

#[test]
fn queues_are_looked_at_in_every_interval() {
    let (watching, ..) = watched(Duration::from_millis(100));
    let forward = watching.seen.iter().filter(|seen| seen.1 == "trunk a>b");
    let (during, after): (Vec<&Look>, Vec<&Look>) =
        forward.partition(|seen| seen.0 <= Time::ZERO + Duration::from_secs(1));
    assert_eq!(
        during.iter().map(|seen| seen.0.as_nanos() / 1_000_000).collect::<Vec<_>>(),
        (0..=10).map(|n| n * 100).collect::<Vec<_>>()
    );
    // Twice as much comes as goes.
    for (n, (_, _, bytes, packets)) in (0_u64..).zip(during) {
        assert!(packets.abs_diff(n * 5) <= 1, "{packets} packets wait at {n}00 ms");
        assert_eq!(bytes.count() % packets.max(&1), 0, "packets of one size");
        assert_eq!(*packets > 0, *bytes > Bytes::ZERO);
    }
    assert!(!after.is_empty() && after.iter().all(|seen| seen.3 < 51), "it drains");
    assert!(watching.seen.iter().any(|seen| seen.1 == "trunk b>a" && seen.3 == 0));
}

#[test]
fn looking_changes_nothing() {
    let experiment = parse(OVERLOAD);
    let mut log = Log::default();
    let outcome = run(&experiment.points.first().scenario, 7, &mut log, &mut GoOn);
    for interval in [Duration::from_nanos(1), Duration::from_micros(333), Duration::from_secs(10)] {
        let (watching, seen, watched) = watched(interval);
        assert!(!watching.seen.is_empty());
        assert_eq!(format!("{:?}", seen.0), format!("{:?}", log.0));
        assert_eq!(watched, outcome);
    }
}

/// Nothing happens between two events, so nothing is told twice.
#[test]
fn an_idle_link_is_looked_at_once_between_events() {
    let (watching, log, _) = watched(Duration::from_nanos(1));
    // A message is an event at its source, in the queue, and at its end, and one for each link besides.
    assert!(
        watching.seen.len() < 20 * log.0.len(),
        "{} looks, {} observations",
        watching.seen.len(),
        log.0.len()
    );
}
