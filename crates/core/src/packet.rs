//! What links carry, and who is who.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::quantity::Bytes;
use crate::time::Time;

/// One flow of a point: the place of a flow's member in the expanded experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(pub u32);

/// A packet's number within a run, unique per run; a duplicate made by a link keeps its original's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

/// One attachment of a medium. A link has ports 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// Whom a packet is for on the medium that carries it. A link between two hosts does not ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Destination {
    /// The station at this port.
    Port(Port),
    /// All stations but the one that sends it.
    #[default]
    Everyone,
    /// A station that does not exist: it takes its time on the medium and is delivered nowhere.
    Nobody,
}

/// One end of a conversation, as an endpoint sees it: a host of the experiment and a port number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The host's index in the experiment.
    pub host: u16,
    /// The transport's port number.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {} port {}", self.host, self.port)
    }
}

/// The ECN field of a packet (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ecn {
    /// The transport does not understand ECN: queues drop instead of marking.
    #[default]
    NotCapable,
    /// Capable, ECT(0).
    Ect0,
    /// Capable and low-latency (L4S), ECT(1), RFC 9331.
    Ect1,
    /// Congestion was experienced: some queue marked it.
    CongestionExperienced,
}

impl Ecn {
    /// The field in the last two bits of IPv4's type of service and of IPv6's traffic class.
    pub const fn of_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::CongestionExperienced,
        }
    }

    /// Those two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotCapable => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::CongestionExperienced => 3,
        }
    }
}

/// What a link carries: a packet of the network layer with everything that a queue may ask of it.
///
/// The bytes are the transport's (for UDP: UDP header and payload); `size` is what counts on the link, network
/// header included, and a link adds its own framing to it. Buffers come from and return to the driver's pool, so
/// that no packet costs an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Its number in the run.
    pub id: PacketId,
    /// The flow it belongs to: the key by which fair queues sort. Computed once, at the source.
    pub flow: FlowId,
    /// Bytes at the network layer, headers included, without the link's framing.
    pub size: Bytes,
    /// The ECN field; queues mark it in place.
    pub ecn: Ecn,
    /// Urgency for priority queues: smaller is more urgent; 0 where nothing is said.
    pub priority: u16,
    /// True on the way from a sink of the flow back to its source (acknowledgements, reflected messages).
    pub backward: bool,
    /// Which sink of the flow it goes to or, backward, comes from.
    pub sink: u16,
    /// Whether it goes to all sinks of the flow or, backward, to the source and all other sinks.
    pub group: bool,
    /// How many links of its path it has crossed.
    pub hop: u8,
    /// Whom it is for on the medium that it is on; set by the driver at every hop.
    pub to: Destination,
    /// Where it entered that medium; set by media that pass packets on within themselves.
    pub entered: Port,
    /// Bytes that it has taken of the line where it entered that medium, with the medium's framing; none before its
    /// transmission. Set by the medium, cleared by the driver at every hop.
    pub on_line: Bytes,
    /// When it joined the queue in which it waits now; set by the link.
    pub enqueued: Time,
    /// Who sent it, by the transport's address.
    pub from: Address,
    /// How many of the first bytes are headers below the transport, where `bytes` holds a frame of a real network: noise
    /// spares them.
    pub headers: u16,
    /// The transport's bytes.
    pub bytes: Vec<u8>,
}
