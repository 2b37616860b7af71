//! Messages in packets that the network dropped: they are lost, however long others take to arrive.

use std::collections::BTreeMap;

use trunkline_core::{Packet, Seed, Time};
use trunkline_experiment::{Flow, Scenario};
use trunkline_flows::Found;
use trunkline_metrics::{Measured, Recorder};
use trunkline_transport::framing::Key;

use crate::conversation::{Conversation, Side};
use crate::transports;

/// Reads dropped packets with conversations of its own, which receive nothing else.
pub(crate) struct Drops {
    seed: Seed,
    /// By flow of the file, once something of it was dropped.
    readers: BTreeMap<usize, Vec<Conversation>>,
    scratch: Vec<u8>,
}

/// True if a dropped packet of a flow is a lost message: nothing repeats it, and every packet is read by itself.
pub(crate) fn are_messages(flow: &Flow, conversation: &Conversation) -> bool {
    let features = conversation.near.endpoint.features();
    let is_datagram = features.message_oriented && !features.reliable && !features.connection_oriented;
    is_datagram && !flow.is_multicast() && flow.to.len() == 1
}

impl Drops {
    pub(crate) fn new(seed: Seed) -> Drops {
        Drops { seed, readers: BTreeMap::new(), scratch: Vec::new() }
    }

    /// Reports the messages of a dropped packet.
    pub(crate) fn record(
        &mut self,
        now: Time,
        (scenario, key): (&Scenario, Key),
        index: usize,
        packet: &Packet,
        recorder: &mut dyn Recorder,
    ) {
        let meta = &scenario.flows[index].meta;
        if packet.backward && meta.measured != Measured::RoundTrip {
            return; // no message of which the latency is measured
        }
        let make =
            || transports::conversations(scenario, index, meta.members, key, self.seed).unwrap_or_default();
        let readers = self.readers.entry(index).or_insert_with(make);
        let place = if readers.len() == 1 { 0 } else { (packet.flow.0 - meta.first.0) as usize };
        let Some(conversation) = readers.get_mut(place) else { return };
        let end = conversation.end(if packet.backward { Side::Near } else { Side::Far(packet.sink) });
        end.endpoint.handle_packet(now, packet.from, packet.ecn, &packet.bytes);
        while end.endpoint.poll_event().is_some() {}
        while end.reader.receive(end.endpoint.as_mut(), &mut self.scratch) {
            end.reader.messages(&mut self.scratch, |found| {
                if let Found::Message(header, _) = found {
                    recorder.dropped(header.flow, header.channel, header.sequence);
                }
            });
        }
    }
}
