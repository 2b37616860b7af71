//! The packets of a direction by the times at which they entered and left.

use crate::{Observations, Way};

/// A packet that arrived. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) sent: f64,
    pub(super) received: f64,
    pub(super) bytes: f64,
}

impl Passage {
    pub(super) fn delay(&self) -> f64 {
        self.received - self.sent
    }
}

/// All packets of a direction.
#[derive(Debug, Default)]
pub(super) struct Passages {
    /// Those that arrived, in the order of arrival.
    pub(super) arrived: Vec<Passage>,
    /// All in the order of sending: when, and the place in `by_sending` at which those that arrived later begin; `true` if lost.
    pub(super) all: Vec<(f64, bool)>,
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
        for packet in &packets[..last] {
            let sent = packet.sent.as_nanos() as f64;
            passages.all.push((sent, packet.delay.is_none()));
            passages.sizes = (passages.sizes.0.min(packet.bytes), passages.sizes.1.max(packet.bytes));
            if let Some(delay) = packet.delay {
                let received = sent + delay as f64;
                passages.by_sending.push(Passage { sent, received, bytes: f64::from(packet.bytes) });
            }
        }
        passages.arrived = passages.by_sending.clone();
        // Packets of one moment, as offloading makes them, stay in the order of sending.
        passages.arrived.sort_by(|a, b| a.received.total_cmp(&b.received));
        passages
    }
}
