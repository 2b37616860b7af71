//! A run while it is measured, for whoever watches: records as they are settled, and what waits in the queues.

use std::fmt::Debug;

use trunkline_core::{Bytes, Duration, Time};
use trunkline_experiment::{Progress, Supervisor};
use trunkline_metrics::{FlowMeta, Record, RepetitionSummary, TraceSink, VoiceEvent};
use trunkline_store::RepetitionWriter;

/// Listens to a run. Called from several threads: simulated repetitions are measured at once.
///
/// What it does takes the time of the measurement: whoever has more to do than to count hands copies to a thread of its
/// own.
pub trait Tap: Sync + Debug {
    /// A repetition begins. What is returned is told what happens in it, and dropped at its end; `None` if nobody looks.
    fn repetition(&self, tapped: &TappedRepetition<'_>) -> Option<Box<dyn RepetitionTap>>;

    /// A repetition was measured to its end and stored, whether or not anybody looked. `point` is its index in the stored run.
    fn finished(&self, _point: u32, _repetition: u32, _summary: &RepetitionSummary) {}
}

/// A repetition that begins.
#[derive(Clone, Copy, Debug)]
pub struct TappedRepetition<'r> {
    /// The point's index in the stored run.
    pub point: u32,
    /// Counted from 0.
    pub repetition: u32,
    /// The point's value on each axis, as in the file.
    pub values: &'r [String],
    /// The flows, in the file's order: records name them by their index here.
    pub flows: &'r [FlowMeta],
}

/// Is told what happens in one repetition. All times are since the start of its sources.
pub trait RepetitionTap: Send + Sync {
    /// A message of the flow with this index is settled: roughly in the order of arrival, the lost ones at the end
    /// ([`TraceSink`]). In `sim` much faster than it would happen.
    fn record(&self, flow: usize, record: &Record);

    /// At `at` so much waited in the queue of a link, for one of its
    /// [directions](trunkline_experiment::Scenario::directions). At most every 10 ms of the backend's time (`wire`: 50 ms) and
    /// 5,000 times in a repetition; never in `live`, whose queues nobody sees.
    fn backlog(&self, at: Time, link: &str, direction: &str, bytes: Bytes, packets: u64);
}

/// Queues are looked at no more often.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
/// And no more often in one repetition.
const MOST_LOOKS: u64 = 5_000;
/// Number of intervals of a repetition for which the largest backlog of a queue is kept.
const KEPT_OF_QUEUE: usize = 400;
/// Number of directions of links whose backlog is kept: the first ones.
const QUEUES_KEPT: usize = 64;

/// Traces that pass every record on.
pub(crate) struct TappedTraces<'t> {
    pub(crate) traces: &'t mut RepetitionWriter,
    pub(crate) tap: &'t dyn RepetitionTap,
}

impl TraceSink for TappedTraces<'_> {
    fn write(&mut self, flow: usize, record: &Record) {
        self.traces.write(flow, record);
        self.tap.record(flow, record);
    }

    fn event(&mut self, flow: usize, event: &VoiceEvent) {
        self.traces.event(flow, event);
    }
}

/// A supervisor that records the backlog of queues over time, and passes it on to a tap.
pub(crate) struct QueueWatch<'t> {
    supervisor: &'t mut (dyn Supervisor + Send),
    tap: Option<&'t dyn RepetitionTap>,
    interval: Duration,
    /// The interval of which the most is kept.
    kept: Duration,
    queues: Vec<Queue>,
    /// The time of the current look, and how many queues it has told of.
    look: (Time, usize),
}

/// A direction of a link.
struct Queue {
    link: String,
    direction: String,
    over_time: Vec<(Time, Bytes)>,
}

impl<'t> QueueWatch<'t> {
    /// For a repetition of this length.
    pub(crate) fn new(
        supervisor: &'t mut (dyn Supervisor + Send),
        tap: Option<&'t dyn RepetitionTap>,
        length: Duration,
        is_simulated: bool,
    ) -> QueueWatch<'t> {
        let kept = SHORTEST_INTERVAL.max(length / KEPT_OF_QUEUE as u64);
        // On the wire, a look takes time of the measurement: without anybody who looks on, only what is kept is asked for.
        let is_often = tap.is_some() || is_simulated;
        let interval = if is_often { SHORTEST_INTERVAL.max(length / MOST_LOOKS) } else { kept };
        QueueWatch { supervisor, tap, interval, kept, queues: Vec::new(), look: (Time::ZERO, 0) }
    }

    /// Adds the backlog over time to the summary of each link.
    pub(crate) fn attach(self, summary: &mut RepetitionSummary) {
        for queue in self.queues {
            let name = format!("{} {}", queue.link, queue.direction);
            let link = summary.links.iter_mut().find(|link| link.link == name);
            if let Some(link) = link
                && queue.over_time.iter().any(|(_, waiting)| *waiting > Bytes::ZERO)
            {
                link.backlog_over_time = queue.over_time;
            }
        }
    }

    fn keep(&mut self, at: Time, link: &str, direction: &str, bytes: Bytes) {
        let place = if self.look.0 == at { self.look.1 } else { 0 };
        self.look = (at, place + 1);
        let is_it = |queue: &Queue| queue.link == link && queue.direction == direction;
        // Every look has them in the same order, unless one is missing.
        let known = match self.queues.get(place) {
            Some(queue) if is_it(queue) => Some(place),
            _ if place >= QUEUES_KEPT => return,
            _ => self.queues.iter().position(is_it),
        };
        let Some(place) = known else {
            if self.queues.len() < QUEUES_KEPT {
                let (link, direction) = (link.to_owned(), direction.to_owned());
                self.queues.push(Queue { link, direction, over_time: vec![(at, bytes)] });
            }
            return;
        };
        let over_time = &mut self.queues[place].over_time;
        let is_full = over_time.len() >= 2 * KEPT_OF_QUEUE;
        if let Some((_, most)) = over_time.last_mut().filter(|(from, _)| at.since(*from) < self.kept) {
            *most = (*most).max(bytes);
        } else if !is_full {
            over_time.push((at, bytes));
        }
    }
}

impl Supervisor for QueueWatch<'_> {
    fn progress(&mut self, done: Duration) -> Progress {
        self.supervisor.progress(done)
    }

    fn measured(&mut self, at: Duration) {
        self.supervisor.measured(at);
    }

    fn warning(&mut self, message: &str) {
        self.supervisor.warning(message);
    }

    fn backlog_interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn backlog(&mut self, at: Time, link: &str, direction: &str, bytes: Bytes, packets: u64) {
        self.keep(at, link, direction, bytes);
        if let Some(tap) = self.tap {
            tap.backlog(at, link, direction, bytes, packets);
        }
    }
}
