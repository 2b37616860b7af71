//! Messages in packets that the network dropped: they are lost, however long others take to arrive.

use std::collections::BTreeMap;

use trunkline_core::{FlowId, Packet, Seed, Time};
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

/// True if a dropped packet of a flow is a lost message of certain sinks: nothing repeats it, every packet is read by itself, and no
/// link makes copies, of which one may be dropped.
pub(crate) fn are_messages(scenario: &Scenario, flow: &Flow, conversation: &Conversation) -> bool {
    let features = conversation.near.endpoint.features();
    let is_datagram = features.message_oriented && !features.reliable && !features.connection_oriented;
    let mut steps = flow.to.iter().flat_map(|sink| &sink.forward);
    let copies = flow.is_multicast() && steps.any(|step| scenario.links[step.link].between.len() > 2);
    is_datagram && !copies && !flow.to.is_empty()
}

impl Drops {
    pub(crate) fn new(seed: Seed) -> Drops {
        Drops { seed, readers: BTreeMap::new(), scratch: Vec::new() }
    }

    /// Reports the messages of a dropped packet as lost at these sinks, but for those that have left: to them it was under way.
    pub(crate) fn record(
        &mut self,
        now: Time,
        (scenario, key): (&Scenario, Key),
        index: usize,
        (packet, sinks): (&Packet, &[u16]),
        recorder: &mut dyn Recorder,
    ) {
        let Flow { meta, to, .. } = &scenario.flows[index];
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
                let Found::Message(header, _) = found else { return };
                if packet.backward {
                    return recorder.dropped(header.flow, header.channel, header.sequence);
                }
                let is_due = |sink: &&u16| {
                    let sink = &to[usize::from(**sink)];
                    sink.has_joined(header.sent) && sink.leave.is_none_or(|leave| now < Time::ZERO + leave)
                };
                for sink in sinks.iter().filter(is_due) {
                    let id = FlowId(header.flow.0 + u32::from(*sink) * meta.members);
                    recorder.dropped(id, header.channel, header.sequence);
                }
            });
        }
    }
}
