//! Messages in datagrams that a link of the wire dropped: they are lost, however long others take to arrive.

use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::FlowId;
use trunkline_core::rtp::RtpPacket;
use trunkline_experiment::{Flow, Scenario};
use trunkline_metrics::{Measured, Recorder};
use trunkline_transport::framing::{Header, Key, MessageKind, decode_message};
use trunkline_wire::OnDrop;

/// Collects the messages of dropped datagrams.
#[derive(Clone, Debug)]
pub(super) struct Drops {
    key: Key,
    messages: Arc<Mutex<Vec<Message>>>,
}

/// A message in a dropped datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    flow: FlowId,
    channel: u16,
    sequence: u32,
    is_answer: bool,
}

impl Drops {
    /// Of a run whose messages have this key.
    pub(super) fn new(key: Key) -> Drops {
        Drops { key, messages: Arc::default() }
    }

    /// What collects them.
    pub(super) fn collector(&self) -> OnDrop {
        let Drops { key, messages } = self.clone();
        Arc::new(move |datagram| {
            if let Some(header) = message(datagram, key) {
                let Header { flow, channel, sequence, kind, .. } = header;
                let is_answer = kind == MessageKind::Reflected;
                let message = Message { flow, channel, sequence, is_answer };
                messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            }
        })
    }

    /// Reports those of flows that repeat nothing. After everything that was sent has been recorded.
    pub(super) fn record(&self, scenario: &Scenario, recorder: &mut dyn Recorder) {
        let messages = core::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        for Message { flow: id, channel, sequence, is_answer } in messages {
            let of_id =
                |flow: &&Flow| (flow.meta.first.0..flow.meta.first.0 + flow.meta.ids()).contains(&id.0);
            let Some(flow) = scenario.flows.iter().find(of_id).filter(|flow| are_messages(flow)) else {
                continue;
            };
            if !is_answer || flow.meta.measured == Measured::RoundTrip {
                recorder.dropped(id, channel, sequence);
            }
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
        let drops = Drops::new(key);
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
        let mut log = Log::default();
        drops.record(&experiment.points[0].scenario, &mut log);
        assert_eq!(log.0, [(0, 3, 1), (2, 3, 3), (2, 3, 4)]);
    }
}
