//! Messages in datagrams that a link of the wire dropped: they are lost, however long others take to arrive.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::FlowId;
use trunkline_core::rtp::RtpPacket;
use trunkline_experiment::{Flow, Scenario};
use trunkline_metrics::{Measured, Recorder};
use trunkline_transport::framing::{Header, Key, MessageKind, decode_message};
use trunkline_wire::OnDrop;

/// Dropped messages that are kept: 120 MB. If there are more, the further ones count as lost at the end of the run.
const MAX_MESSAGES: usize = 10_000_000;

/// Collects the messages of dropped datagrams.
#[derive(Clone, Debug)]
pub(super) struct Drops {
    key: Key,
    /// The ids of the flows of which a dropped datagram is a lost message, in order, and whether their answers are measured.
    flows: Arc<[(Range<u32>, bool)]>,
    messages: Arc<Mutex<Vec<Message>>>,
    max: usize,
}

/// A message in a dropped datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    flow: FlowId,
    channel: u16,
    sequence: u32,
}

impl Drops {
    /// Drops of a run whose messages have this key.
    pub(super) fn new(key: Key, scenario: &Scenario) -> Drops {
        let wanted = |flow: &Flow| {
            let ids = flow.meta.first.0..flow.meta.first.0 + flow.meta.ids();
            are_messages(flow).then(|| (ids, flow.meta.measured == Measured::RoundTrip))
        };
        let flows = scenario.flows.iter().filter_map(wanted).collect();
        Drops { key, flows, messages: Arc::default(), max: MAX_MESSAGES }
    }

    /// What collects them.
    pub(super) fn collector(&self) -> OnDrop {
        let drops = self.clone();
        Arc::new(move |datagram| {
            if let Some(header) = message(datagram, drops.key).filter(|header| drops.wants(header)) {
                let Header { flow, channel, sequence, .. } = header;
                let mut messages = drops.messages.lock().unwrap_or_else(PoisonError::into_inner);
                if messages.len() < drops.max {
                    messages.push(Message { flow, channel, sequence });
                }
            }
        })
    }

    /// True for a message of a flow that repeats nothing, on a way that is measured.
    fn wants(&self, header: &Header) -> bool {
        let id = header.flow.0;
        let place = self.flows.partition_point(|(ids, _)| ids.end <= id);
        self.flows.get(place).is_some_and(|(ids, answers)| {
            ids.contains(&id) && (*answers || header.kind != MessageKind::Reflected)
        })
    }

    /// Reports them. After everything that was sent has been recorded.
    pub(super) fn record(&self, recorder: &mut dyn Recorder) {
        let messages = core::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        for Message { flow, channel, sequence } in messages {
            recorder.dropped(flow, channel, sequence);
        }
    }
}

/// True if a dropped datagram of a flow is a lost message: nothing repeats it, and each datagram is read by itself.
fn are_messages(flow: &Flow) -> bool {
    let features = flow.transport.features();
    features.message_oriented && !features.reliable && !features.connection_oriented && !flow.is_multicast()
}

/// The message in a datagram: of UDP itself, or of RTP.
fn message(datagram: &[u8], key: Key) -> Option<Header> {
    let header = |payload| decode_message(payload, key).ok().map(|(header, _)| header);
    header(datagram).or_else(|| header(RtpPacket::decode(datagram)?.payload))
}

#[cfg(test)]
mod tests {
    use trunkline_core::rtp::RtpHeader;
    use trunkline_core::{Duration, Time};
    use trunkline_experiment::Experiment;
    use trunkline_metrics::Observation;
    use trunkline_transport::framing::{HEADER_LENGTH, Place};

    use super::*;

    const TEXT: &str = r#"
name = "drops"
duration = "1 s"
[hosts]
a = {}
b = {}
[link.l]
between = ["a", "b"]
rate = "1 Mbit/s"
[flow.one-way]
from = "a"
to = "b"
transport = "udp"
source = "voice"
[flow.both]
from = "a"
to = "b"
count = 2
transport = "rtp"
source = "voice"
reflect = true
[flow.repeated]
from = "a"
to = "b"
transport = "sctp"
source = "voice"
"#;

    /// Dropped messages, as they are reported.
    #[derive(Default)]
    struct Log(Vec<(u32, u16, u32)>);

    impl Recorder for Log {
        fn record(&mut self, _: Time, _: FlowId, _: Observation) {}

        fn dropped(&mut self, flow: FlowId, channel: u16, sequence: u32) {
            self.0.push((flow.0, channel, sequence));
        }
    }

    #[test]
    fn messages_that_nothing_repeats_are_reported_each_where_it_is_measured() {
        let experiment =
            Experiment::parse(TEXT, "drops.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
        let key = Key(7);
        let drops = Drops { max: 4, ..Drops::new(key, &experiment.points.first().scenario) };
        let collect = drops.collector();
        let message = |flow, sequence, kind| {
            let mut message = vec![0; HEADER_LENGTH + 20];
            let header = Header {
                key,
                length: 20,
                place: Place::Before,
                flow: FlowId(flow),
                sequence,
                channel: 3,
                kind,
                late: Duration::ZERO,
                sent: Time::ZERO,
                reflected: Time::ZERO,
            };
            header.encode(&mut message);
            message
        };
        let in_rtp = |payload: &[u8]| {
            let header = RtpHeader { marker: false, payload_type: 0, sequence: 1, timestamp: 2, ssrc: 3 };
            let mut packet = Vec::new();
            RtpPacket::new(header, payload).encode(&mut packet);
            packet
        };
        let (forward, back) = (MessageKind::Forward, MessageKind::Reflected);
        collect(&message(0, 1, forward));
        collect(&message(0, 2, back));
        collect(&in_rtp(&message(2, 3, forward)));
        collect(&in_rtp(&message(2, 4, back)));
        collect(&message(3, 5, forward));
        collect(&message(9, 6, forward));
        collect(b"another program's datagram, which is as long as one of ours");
        // As many as are kept, and one more.
        collect(&message(0, 7, forward));
        collect(&message(0, 8, forward));
        let mut log = Log::default();
        drops.record(&mut log);
        assert_eq!(log.0, [(0, 3, 1), (2, 3, 3), (2, 3, 4), (0, 3, 7)]);
    }
}
