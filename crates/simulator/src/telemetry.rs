//! Samples the state of TCP connections at regular times.

use trunkline_core::{Bytes, Duration, Rate, Time};
use trunkline_experiment::{Scenario, Supervisor};
use trunkline_metrics::{ConnectionOverTime, ConnectionSample, Retransmissions};
use trunkline_transport::tcp::TcpFigures;

use crate::conversation::Conversation;

/// The shortest interval between two samples.
const SHORTEST: Duration = Duration::from_millis(1);

/// The largest number of connections that are sampled with `each`.
const EACH: usize = 256;

/// Samples of the first connection of each of the first TCP flows.
pub(crate) struct Telemetry {
    /// [`Time::MAX`] without TCP.
    next: Time,
    connections: Vec<Sampled>,
}

struct Sampled {
    flow: usize,
    conversation: usize,
    over_time: ConnectionOverTime,
}

impl Telemetry {
    /// With `each`, samples each connection of each flow, and more of them.
    pub(crate) fn new(scenario: &Scenario, conversations: &[Conversation], each: bool) -> Telemetry {
        let mut connections: Vec<Sampled> = Vec::new();
        for (place, conversation) in conversations.iter().enumerate() {
            if connections.len() == if each { EACH } else { ConnectionOverTime::FLOWS } {
                break;
            }
            let flow = conversation.flow as usize;
            let is_first = each || connections.last().is_none_or(|last| last.flow != flow);
            if is_first && conversation.near.endpoint.tcp_figures().is_some() {
                let over_time = ConnectionOverTime::new(scenario.duration + scenario.drain, SHORTEST);
                connections.push(Sampled { flow, conversation: place, over_time });
            }
        }
        let next = if connections.is_empty() { Time::MAX } else { Time::ZERO };
        Telemetry { next, connections }
    }

    /// Returns true if a sample is due before the event at `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next < now
    }

    /// Samples the connections at all times that were due before `now`: as they have been since the last event. What is due
    /// at `now` waits for the events of that time.
    #[cold]
    pub(crate) fn sample(&mut self, now: Time, conversations: &[Conversation]) {
        for sampled in &mut self.connections {
            while sampled.over_time.next() < now {
                sampled.record(sampled.over_time.next(), conversations);
            }
        }
        self.next =
            self.connections.iter().map(|sampled| sampled.over_time.next()).min().unwrap_or(Time::MAX);
    }

    /// Samples the connections at the end of the run.
    pub(crate) fn sample_last(&mut self, end: Time, conversations: &[Conversation]) {
        for sampled in &mut self.connections {
            sampled.record(end, conversations);
        }
    }

    /// Reports the samples of each connection.
    pub(crate) fn tell(
        &self,
        scenario: &Scenario,
        conversations: &[Conversation],
        supervisor: &mut dyn Supervisor,
    ) {
        for sampled in &self.connections {
            let first = scenario.flows[sampled.flow].meta.first;
            let member = conversations[sampled.conversation].member.unwrap_or(first);
            supervisor.connection(member, sampled.over_time.samples());
        }
    }

    /// The samples of a flow; empty for flows that are not sampled.
    pub(crate) fn samples(&self, flow: usize) -> Vec<ConnectionSample> {
        let sampled = self.connections.iter().find(|sampled| sampled.flow == flow);
        sampled.map_or_else(Vec::new, |sampled| sampled.over_time.samples().to_vec())
    }
}

impl Sampled {
    fn record(&mut self, at: Time, conversations: &[Conversation]) {
        match conversations[self.conversation].near.endpoint.tcp_figures() {
            Some(figures) => self.over_time.record(at, of(at, &figures)),
            None => self.over_time.skip(at),
        }
    }
}

fn of(at: Time, figures: &TcpFigures) -> ConnectionSample {
    let bits = |bytes: u64| Rate::from_bits_per_second(bytes.saturating_mul(8));
    ConnectionSample {
        at,
        congestion_window: Bytes(figures.congestion_window),
        slow_start_threshold: figures.slow_start_threshold.map(Bytes),
        in_flight: Bytes(figures.bytes_in_flight),
        smoothed_round_trip: figures.smoothed_round_trip,
        pacing_rate: Some(figures.pacing_rate).filter(|rate| *rate > 0).map(bits),
        retransmissions: Retransmissions {
            all: figures.retransmissions,
            fast: Some(figures.fast),
            rack: Some(figures.rack),
            tail_probe: Some(figures.tail_probes),
            timeout: Some(figures.timeouts),
            spurious: Some(figures.spurious),
        },
    }
}
