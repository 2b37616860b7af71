//! The packets of a direction by the times at which they entered and left.

use crate::{Observations, Way};

/// A packet that arrived. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) sent: f64,
    pub(super) received: f64,
    pub(super) bytes: f64,
    /// Its place among all packets in the order of sending.
    pub(super) place: usize,
}

impl Passage {
    pub(super) fn delay(&self) -> f64 {
        self.received - self.sent
    }
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: f64,
    pub(super) bytes: f64,
    pub(super) is_lost: bool,
}

/// All packets of a direction.
#[derive(Debug, Default)]
pub(super) struct Passages {
    /// Those that arrived, in the order of arrival.
    pub(super) arrived: Vec<Passage>,
    /// All in the order of sending.
    pub(super) all: Vec<Sent>,
    /// Those that arrived, in the order of sending.
    pub(super) by_sending: Vec<Passage>,
    pub(super) sizes: (u32, u32),
}

impl Passages {
    /// Packets that were lost after the last one that arrived may still have been on their way: they do not count.
    pub(super) fn of(observations: &Observations, way: Way) -> Passages {
        let packets = observations.packets(way);
        let last = packets.iter().rposition(|packet| packet.delay.is_some()).map_or(0, |last| last + 1);
        let mut passages = Passages { sizes: (u32::MAX, 0), ..Passages::default() };
        for (place, packet) in packets[..last].iter().enumerate() {
            let (sent, bytes) = (packet.sent.as_nanos() as f64, f64::from(packet.bytes));
            passages.all.push(Sent { at: sent, bytes, is_lost: packet.delay.is_none() });
            passages.sizes = (passages.sizes.0.min(packet.bytes), passages.sizes.1.max(packet.bytes));
            if let Some(delay) = packet.delay {
                passages.by_sending.push(Passage { sent, received: sent + delay as f64, bytes, place });
            }
        }
        passages.arrived = passages.by_sending.clone();
        // Packets of one moment, as offloading makes them, stay in the order of sending.
        passages.arrived.sort_by(|a, b| a.received.total_cmp(&b.received));
        passages
    }

    /// True if sizes differ by so much that a limit in packets and one in bytes do.
    pub(super) fn has_sizes(&self) -> bool {
        f64::from(self.sizes.0) < 0.5 * f64::from(self.sizes.1)
    }
}
