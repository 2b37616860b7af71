//! From what talkers and listeners observe to the recorder.

use std::collections::BTreeMap;

use trunkline_core::{FlowId, Time};
use trunkline_experiment::Flow;
use trunkline_flows::{Observer, Reader, oversize_counter};
use trunkline_metrics::{Observation, Recorder};
use trunkline_transport::framing::Header;

use crate::conversation::{End, Presence, Side};
use crate::covered::Covered;
use crate::hosts::Hosts;

/// Counters of flows beside those of their transports, by flow and name.
pub(crate) type Counted = BTreeMap<(u32, String), u64>;

/// Records what a talker observes, once for each sink that its messages are for.
pub(crate) struct Sending<'a> {
    pub(crate) recorder: &'a mut dyn Recorder,
    pub(crate) flow: &'a Flow,
    /// The flow's index in the scenario.
    pub(crate) index: u32,
    pub(crate) counted: &'a mut Counted,
    pub(crate) covered: &'a mut Covered,
    /// At the first sink.
    pub(crate) reader: &'a mut Reader,
    pub(crate) first: Presence,
    /// At the other sinks.
    pub(crate) others: &'a [End],
}

impl Observer for Sending<'_> {
    fn observe(&mut self, at: Time, id: FlowId, what: Observation, _: Option<&[u8]>) {
        let counts = |sink: usize, Presence { is_awaited, is_away }| match what {
            Observation::Sent { .. } => is_awaited,
            // A refused message is missing at each sink that listened when it was due, and at one that has failed unnoticed.
            Observation::Refused { due, .. } => {
                (is_awaited || !is_away) && self.flow.to.get(sink).is_none_or(|sink| sink.has_joined(due))
            }
            _ => sink == 0,
        };
        if counts(0, self.first) {
            self.recorder.record(at, id, what);
        }
        for (place, sink) in (1..).zip(self.others) {
            if counts(place, sink.presence) {
                self.recorder.record(at, FlowId(id.0 + place as u32 * self.flow.meta.members), what);
            }
        }
    }

    fn oversize(&mut self, largest: usize) {
        *self.counted.entry((self.index, oversize_counter(largest))).or_insert(0) += 1;
    }

    fn covering(&mut self, header: &Header, message: &[u8]) {
        if self.flow.meta.keeps_payload {
            let covered = self.flow.cover().of(header.sequence).place(message.len()).length();
            self.covered.keep(header, covered, message);
        }
    }

    fn unframed(&mut self, header: &Header) {
        self.reader.expect(header);
    }
}

/// Records what is observed of messages that have come to an end.
pub(crate) struct Receiving<'a> {
    pub(crate) recorder: &'a mut dyn Recorder,
    pub(crate) hosts: &'a mut Hosts,
    pub(crate) covered: &'a Covered,
    pub(crate) flow: &'a Flow,
    pub(crate) side: Side,
}

impl Observer for Receiving<'_> {
    fn observe(&mut self, at: Time, id: FlowId, what: Observation, payload: Option<&[u8]>) {
        let Observation::Received { channel, sequence, sent, reflected, payload: length } = what else {
            return self.recorder.record(at, id, what);
        };
        let meta = &self.flow.meta;
        let sink = (id.0 - meta.first.0) / meta.members;
        if self.flow.to.get(sink as usize).is_some_and(|sink| !sink.has_joined(sent)) {
            return; // it was sent to the others
        }
        let reader = match self.side {
            Side::Far(sink) => self.flow.to[usize::from(sink)].host,
            Side::Near => self.flow.from,
        };
        let sent = self.hosts.measured([self.flow.from, reader], sent, at);
        let received = Observation::Received { channel, sequence, sent, reflected, payload: length };
        self.recorder.record(at, id, received);
        if let Some(payload) = payload {
            let member = FlowId(meta.first.0 + (id.0 - meta.first.0) % meta.members);
            let whole = self.covered.uncovered(member, channel, sequence, payload);
            self.recorder.payload(id, channel, sequence, &whole);
        }
    }

    /// Only sending finds messages too large.
    fn oversize(&mut self, _: usize) {}
}
