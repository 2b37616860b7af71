//! Where messages come from: a member of a flow, and what waits for its transport.
//!
//! With 10,000 members every field that is touched per message is a line fetched into the cache: what a message needs
//! stands in the 64 bytes of [`Member`], the rest in boxes that exist only while they are needed.

use std::collections::VecDeque;

use trunkline_core::{Duration, FlowId, Time};
use trunkline_experiment::Scenario;
use trunkline_traffic::Source;
use trunkline_transport::framing::Header;

/// A member of a flow.
pub(crate) struct Member {
    pub(crate) source: Box<dyn Source>,
    sequences: Sequences,
    /// What the transport did not take yet.
    pub(crate) queue: Option<Box<SendQueue>>,
    pub(crate) source_scheduled: Time,
    pub(crate) id: FlowId,
    /// Index of the flow in the scenario.
    pub(crate) flow: u32,
    /// Index of its conversation.
    pub(crate) conversation: u32,
}

/// Messages so far, per channel.
enum Sequences {
    One(u32),
    Many(Box<[u32]>),
}

/// What tells a message from all others of its member.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    pub(crate) channel: u16,
    pub(crate) sequence: u32,
    pub(crate) due: Time,
    /// Whether its sink is to answer it.
    pub(crate) asks: bool,
}

/// Messages that wait for the transport, in order.
#[derive(Default)]
pub(crate) struct SendQueue {
    pub(crate) messages: VecDeque<Waiting>,
    /// Since when the first of them is the next to go.
    pub(crate) head_since: Time,
    /// How far the first of them is handed over, on a host where that takes time.
    pub(crate) handing: Option<Handing>,
}

/// A message that is being handed over. It has been reported as sent.
pub(crate) struct Handing {
    pub(crate) header: Header,
    /// How many of its bytes the transport has.
    pub(crate) handed: usize,
    pub(crate) waits_for: WaitsFor,
}

/// What a message waits for that is being handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// Its event.
    Event,
    /// Room in the transport.
    Room,
    /// That the burst before has left the network.
    Burst,
}

/// A message that waits: header room and payload.
pub(crate) struct Waiting {
    pub(crate) name: Name,
    pub(crate) bytes: Vec<u8>,
}

impl Member {
    /// A member that has sent nothing yet.
    pub(crate) fn new(
        source: Box<dyn Source>,
        id: FlowId,
        channels: u16,
        flow: u32,
        conversation: u32,
    ) -> Member {
        let sequences = match channels {
            0 | 1 => Sequences::One(0),
            _ => Sequences::Many(vec![0; usize::from(channels)].into()),
        };
        Member { source, sequences, queue: None, source_scheduled: Time::MAX, id, flow, conversation }
    }

    /// The next sequence number of a channel.
    pub(crate) fn next_sequence(&mut self, channel: u16) -> u32 {
        let counter = match &mut self.sequences {
            Sequences::One(counter) => counter,
            Sequences::Many(counters) => &mut counters[usize::from(channel)],
        };
        let sequence = *counter;
        *counter = counter.wrapping_add(1);
        sequence
    }

    /// Whether a message waits for the transport.
    pub(crate) fn is_waiting(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.messages.is_empty())
    }
}

/// How long a message of this flow may wait for its transport.
pub(crate) fn send_timeout(scenario: &Scenario, flow: u32) -> Option<Duration> {
    scenario.flows[flow as usize].transport.send_timeout()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_one_cache_line() {
        assert!(size_of::<Member>() <= 64, "{} bytes", size_of::<Member>());
    }
}
