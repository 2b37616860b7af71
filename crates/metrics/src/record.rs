//! From what drivers observe to one record per message.

use core::ops::Range;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use trunkline_core::{Bytes, Duration, FlowId, Time};

use crate::connection::ConnectionSample;
use crate::limited::SendLimit;
use crate::quality::Listening;
use crate::summary::{LinkSummary, Measured, MediumSummary, StallSummary};
use crate::voice_path::{VoiceEvent, VoicePath};

/// Takes what a driver observes. Only drivers record; pure code returns facts.
pub trait Recorder {
    /// Records `what` for the flow's member, at the driver's time `at`.
    fn record(&mut self, at: Time, flow: FlowId, what: Observation);

    /// Takes the payload of a message right after its `Received`, for what wants to keep it (the received audio); a
    /// duplicate comes again. Called for every message of a flow whose [`FlowMeta::keeps_payload`](crate::FlowMeta::keeps_payload) is set.
    fn payload(&mut self, _flow: FlowId, _channel: u16, _sequence: u32, _payload: &[u8]) {}

    /// The network dropped a packet with this message, as only a driver that carries every packet knows. The message may
    /// still arrive: in a copy, or repaired.
    fn dropped(&mut self, _flow: FlowId, _channel: u16, _sequence: u32) {}

    /// The measurement ends at `at`, before the planned end, because the flow that it lasts for is over: what arrives later
    /// is drained, and counts in no throughput of a source that goes on to the end.
    fn end_measurement(&mut self, _at: Time) {}
}

/// Records nothing.
impl Recorder for () {
    fn record(&mut self, _: Time, _: FlowId, _: Observation) {}
}

/// Records with both.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        self.0.record(at, flow, what);
        self.1.record(at, flow, what);
    }
    fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        self.0.payload(flow, channel, sequence, payload);
        self.1.payload(flow, channel, sequence, payload);
    }
    fn dropped(&mut self, flow: FlowId, channel: u16, sequence: u32) {
        self.0.dropped(flow, channel, sequence);
        self.1.dropped(flow, channel, sequence);
    }
    fn end_measurement(&mut self, at: Time) {
        self.0.end_measurement(at);
        self.1.end_measurement(at);
    }
}

/// What a driver saw of one message. Times are on the source's clock unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The transport took the message.
    Sent {
        /// The channel within the flow.
        channel: u16,
        /// The channel's message count from 0.
        sequence: u32,
        /// When the source wanted it sent.
        due: Time,
        /// Payload, without the measurement header.
        payload: Bytes,
    },
    /// The sender gave the message up: the transport would not take it before the send timeout, or it was too large.
    Refused {
        /// The channel within the flow.
        channel: u16,
        /// The channel's message count from 0.
        sequence: u32,
        /// When the source wanted it sent.
        due: Time,
        /// Payload, without the measurement header.
        payload: Bytes,
    },
    /// The message has arrived where its latency is measured: at the sink (one way), or back at the source (round
    /// trip).
    Received {
        /// The channel within the flow.
        channel: u16,
        /// The channel's message count from 0.
        sequence: u32,
        /// When it was sent, from its header.
        sent: Time,
        /// When the reflector had it, on the reflector's clock; [`Time::ZERO`] if it was not reflected.
        reflected: Time,
        /// Payload, without the measurement header.
        payload: Bytes,
    },
    /// The answer that ends a transfer has come back to the source (at the time of this observation).
    Transferred {
        /// The channel within the flow.
        channel: u16,
        /// When the first message of the transfer was produced.
        began: Time,
        /// Its payload.
        bytes: Bytes,
    },
    /// Samples found no room in a channel's A/D FIFO; the first of them came at the time of this observation.
    Overflowed {
        /// The channel within the flow.
        channel: u16,
        /// How many.
        samples: u32,
    },
    /// Bytes arrived that are no message of this run (wrong key, cut, corrupted): counted, never delivered.
    Stray {
        /// How many bytes.
        bytes: Bytes,
    },
    /// Live only: how long after `due` the send call was made, and how long it took, in nanoseconds.
    SendCall {
        /// Start of the call minus due time.
        error_nanos: u64,
        /// Duration of the call.
        took_nanos: u64,
    },
}

/// One message's row in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The member of the flow, from 0. Where a flow has several sinks, the members as the second sink has them follow those
    /// as the first has them.
    pub member: u32,
    /// The channel within the member, from 0.
    pub channel: u16,
    /// The channel's message count from 0.
    pub sequence: u32,
    /// When the source wanted it sent.
    pub due: Time,
    /// When the transport took it; `None` if it never did.
    pub sent: Option<Time>,
    /// When it arrived where latency is measured; `None` if it did not.
    pub received: Option<Time>,
    /// When the reflector had it, on the reflector's clock; `None` if it was not reflected.
    pub reflected: Option<Time>,
    /// Payload bytes.
    pub payload: u32,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Fate {
    /// Arrived, in time.
    Received = 0,
    /// Arrived after its playout deadline.
    Late = 1,
    /// Not received by the end of the run plus the drain time, over a transport that may lose it.
    Lost = 2,
    /// A further copy of a message that has its own record.
    Duplicate = 3,
    /// The sender gave it up; it never left.
    Refused = 4,
    /// Not received by the end of the run plus the drain time, over a transport that would still have delivered it.
    Unfinished = 5,
}

/// Takes records as they are settled, roughly in the order of arrival; the lost ones at the end. A message has two
/// records only if it arrived after having been given up as lost, and then the later one counts (see
/// [`Meter`](crate::Meter)).
pub trait TraceSink {
    /// Takes one record of the flow with this index in the experiment file.
    fn write(&mut self, flow: usize, record: &Record);

    /// Takes something that a listener of the flow with this index hears, when it is known how long it has lasted.
    fn event(&mut self, _flow: usize, _event: &VoiceEvent) {}
}

/// Keeps no trace.
impl TraceSink for () {
    fn write(&mut self, _: usize, _: &Record) {}
}

/// How long a source goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// Until its volume is sent: the active time ends at the last arrival.
    Volume,
    /// To the end of the run: the active time ends there. Throughput counts what was delivered in that time, so that it never
    /// exceeds what a link carries.
    Run,
}

/// What a recorder needs to know of a flow before the first observation.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowMeta {
    /// Its name in the file.
    pub name: String,
    /// The transport's name.
    pub transport: String,
    /// The id of its member 0; the others follow, and after them all members again for each further sink. What is observed
    /// of a message is observed for each sink by itself.
    pub first: FlowId,
    /// How many members it has.
    pub members: u32,
    /// Its sinks' hosts; none if its messages go nowhere.
    pub sinks: Vec<String>,
    /// Channels per member.
    pub channels: u16,
    /// What its latencies are.
    pub measured: Measured,
    /// When the measurement ends, without the drain time.
    pub ends: Time,
    /// By sink, the time that nothing on its way can save: the propagation delay of the path there, and of the path back
    /// where latency is that of a round trip. Empty where it is not known.
    pub propagation: Vec<Duration>,
    /// Largest difference of the path's delay between two moments without a queue, over all sinks: where delays change over time or
    /// jitter has a memory. Independent jitter of each packet is not in it.
    pub wander: Duration,
    /// By sink, whether the transport delivers there all that it takes, however late: what has not arrived at the end is
    /// then unfinished, not lost.
    pub reliable: Vec<bool>,
    /// Time in which each sink is there. Empty if all are there all the time.
    pub presence: Vec<Range<Time>>,
    /// The most that its conversations may have under way, where that is set.
    pub send_limit: Option<SendLimit>,
    /// Whether its source sends as fast as its transport takes it.
    pub is_greedy: bool,
    /// True if its sinks answer messages with others of their own size, whose arrivals are recorded: latency is that of a round
    /// trip.
    pub is_answered: bool,
    /// How long its source goes on, which decides when its active time ends.
    pub lasting: Lasting,
    /// Playout delay, if it has a playout: a message is late if it is received after the first received message of its
    /// channel plus this plus the difference of their due times.
    pub playout: Option<Duration>,
    /// Whether its payload is audio, of as many bytes for every moment.
    pub carries_audio: bool,
    /// Whether somebody keeps the payload.
    pub keeps_payload: bool,
    /// Its FIFOs, if it has any.
    pub voice_path: Option<VoicePath>,
    /// What is known of its listeners, if it is speech in one direction that is played.
    pub listening: Option<Listening>,
}

impl FlowMeta {
    /// How many ids it has: one for each member and sink.
    pub fn ids(&self) -> u32 {
        self.members.saturating_mul(u32::try_from(self.sinks.len().max(1)).unwrap_or(u32::MAX))
    }

    /// When the measurement at the sink of the id in this place ends: with the run, or when the sink leaves.
    pub(crate) fn end_of_id(&self, place: usize, end_of_run: Time) -> Time {
        let sink = place / (self.members.max(1) as usize);
        self.presence.get(sink).map_or(end_of_run, |there| there.end.min(end_of_run))
    }

    /// The id of a member as a sink has it.
    pub fn id(&self, member: u32, sink: u16) -> FlowId {
        FlowId(self.first.0 + u32::from(sink) * self.members + member)
    }
}

/// Flows to be counted together: a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleMeta {
    /// Its name in the file.
    pub name: String,
    /// Its flows, by their indices in the file.
    pub flows: Vec<usize>,
}

/// What a driver hands back beside its observations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverOutcome {
    /// How long the measurement lasted, without drain time: virtual time in `sim`.
    pub duration: Duration,
    /// One per link and direction.
    pub links: Vec<LinkSummary>,
    /// What only some kinds of media have to tell, per medium and per station.
    pub media: Vec<MediumSummary>,
    /// What the stall probe saw.
    pub stalls: Option<StallSummary>,
    /// CPU time of all our processes together.
    pub cpu: Option<Duration>,
    /// One per flow of the file, in its order.
    pub flows: Vec<FlowOutcome>,
    /// True if it was stopped before the end.
    pub partial: bool,
    /// The output of programs on hosts.
    #[serde(skip)]
    pub consoles: Vec<Console>,
}

/// The output of the programs on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// The host's name.
    pub host: String,
    /// The text.
    pub text: String,
}

/// What a driver knows of a flow beside its messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowOutcome {
    /// Counters of the transport by name, summed over the members.
    pub transport_counters: BTreeMap<String, u64>,
    /// What the flow's packets took on their path's first link, forward; `None` where nobody sees that link.
    pub network: Option<OnNetwork>,
    /// The sockets between which its messages went; none in `sim`.
    #[serde(skip)]
    pub sockets: Vec<SocketPair>,
    /// What was seen at the sink was brought from another clock to the source's: no such time is further from the truth
    /// than this. `None` where both ends had the same clock.
    pub clock_error: Option<Duration>,
    /// Every message of a dropped packet was reported: what else has not arrived may still arrive.
    pub knows_drops: bool,
    /// Samples of the sending end of its first TCP connection, in the order of time; empty for other transports.
    #[serde(with = "crate::connection::columns", skip_serializing_if = "Vec::is_empty")]
    pub connection: Vec<ConnectionSample>,
}

/// The sockets of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketPair {
    /// The IP protocol number.
    pub protocol: u8,
    /// That of the source. Ports are 0 where the protocol has none.
    pub near: SocketAddr,
    /// That of the sink.
    pub far: SocketAddr,
}

/// Bytes on a link, with that link's framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnNetwork {
    /// What was transmitted until then, which is when the measurement ended or soon after.
    pub measured: Bytes,
    /// When that was read.
    pub until: Time,
    /// What was transmitted until the end of the drain time.
    pub all: Bytes,
}

impl OnNetwork {
    /// End of the time over which that is counted, for a flow whose active time ends at `end`.
    pub(crate) fn until(&self, lasting: Lasting, end: Time) -> Time {
        if lasting == Lasting::Volume { end } else { self.until.max(end) }
    }

    /// What counts of a flow that goes on for so long.
    pub(crate) fn of(&self, lasting: Lasting) -> Bytes {
        match lasting {
            Lasting::Volume => self.all,
            Lasting::Run => self.measured,
        }
    }
}
