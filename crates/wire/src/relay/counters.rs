//! What a relay has counted.

use core::net::IpAddr;

use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_network::MediumCounters;

/// A relay's counters at one moment; a rate is the difference of two of them over that of their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelayCounters {
    /// When they were read, by the wire's clock.
    pub at: Time,
    /// Whether the link is up.
    pub up: bool,
    /// By port: of packets that entered there.
    pub ports: Vec<PortCounters>,
    /// Of every flow seen lately; the first is that of all packets that are not of IP.
    pub flows: Vec<FlowCounters>,
    /// How many flows have given their number away, and are no longer among them.
    pub flows_forgotten: u64,
}

/// Of packets that entered at one port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortCounters {
    /// What the medium counted.
    pub medium: MediumCounters,
    /// What entered, delivered or not.
    pub offered: Volume,
    /// What came out elsewhere, duplicates too.
    pub delivered: Volume,
    /// What waits in the medium: for transmission, or for its turn.
    pub waiting: Volume,
    /// Frames lost before the relay read them: it was too late, and the device's buffer full.
    pub overflowed: u64,
    /// Frames lost while the link was down.
    pub cut: u64,
    /// Frames for this port's station that the kernel did not take.
    pub refused: u64,
}

/// Of one flow: packets between two addresses, of one protocol, with these port numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowCounters {
    /// Its number on this link, by which queues know it. A number is given to another flow when its own has been silent.
    pub flow: FlowId,
    /// Who is who; `None` for packets that are not of IP.
    pub key: Option<FlowKey>,
    /// From the end that sent the first packet to the other, and back.
    pub directions: [FlowDirection; 2],
}

/// What tells flows apart (the five-tuple).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// The sender and the receiver of the first packet.
    pub addresses: [IpAddr; 2],
    /// Their port numbers; zero where the protocol has none, and in fragments.
    pub ports: [u16; 2],
    /// The IP protocol number.
    pub protocol: u8,
}

/// One direction of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDirection {
    /// What entered the link.
    pub offered: Volume,
    /// What came out.
    pub delivered: Volume,
    /// Bytes on the line of what was transmitted, with the link's framing, whether it came out or not, each packet once.
    pub transmitted: Bytes,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked "congestion experienced" by the link.
    pub marked: u64,
    /// Sum over packets that came out of their time from end to end of the link: waiting, transmission, propagation.
    pub transit_total: Duration,
    /// The longest of these times.
    pub transit_max: Duration,
}

impl FlowDirection {
    /// Packets that are in the medium.
    pub fn waiting(&self) -> u64 {
        self.offered.packets.saturating_sub(self.delivered.packets + self.dropped)
    }
}

/// Packets and their bytes at the network layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes, network header included.
    pub bytes: Bytes,
}

impl Volume {
    #[inline]
    pub(crate) fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size;
    }

    #[inline]
    pub(crate) fn remove(&mut self, size: Bytes) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = Bytes(self.bytes.count().saturating_sub(size.count()));
    }
}
