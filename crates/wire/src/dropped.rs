//! The datagrams that links drop, for a caller that wants to know which.

use std::sync::Arc;

use trunkline_core::{PacketId, Port, Time};

use crate::device::Layer;
use crate::relay::{Capture, datagram};

/// Takes the payload of each datagram of UDP or UDP-Lite that a link drops. Called by the relays' threads.
pub type OnDrop = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// A capture that looks at drops only.
pub(crate) struct Drops {
    pub(crate) layer: Layer,
    pub(crate) on_drop: OnDrop,
}

impl Capture for Drops {
    fn arrived(&mut self, _: Time, _: Port, _: PacketId, _: &[u8]) {}

    fn delivered(&mut self, _: Time, _: Port, _: PacketId, _: &[u8]) {}

    fn dropped(&mut self, _: Time, _: Port, _: PacketId, frame: &[u8], _: &'static str) {
        if let Some(payload) = datagram(self.layer, frame) {
            (self.on_drop)(payload);
        }
    }

    fn passed(&mut self, _: Time) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An IPv4 packet of this protocol with a header of eight bytes and this payload.
    fn packet(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet.extend([0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0]);
        packet.extend(payload);
        packet
    }

    #[test]
    fn payloads_of_whole_datagrams_are_shown() {
        const MORE_FRAGMENTS: u16 = 0x2000;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        let on_drop: OnDrop = Arc::new(move |payload: &[u8]| seen.lock().unwrap().push(payload.to_vec()));
        let mut drops = Drops { layer: Layer::Ip, on_drop };
        let mut drop_one = |frame: &[u8]| drops.dropped(Time::ZERO, Port(0), PacketId(0), frame, "overflow");
        drop_one(&packet(17, 0, b"udp"));
        drop_one(&packet(136, 0, b"udp-lite"));
        drop_one(&packet(6, 0, b"tcp"));
        drop_one(&packet(17, MORE_FRAGMENTS, b"part"));
        drop_one(&packet(17, 0, b"")[..24]);
        drop_one(b"no packet");
        assert_eq!(*shown.lock().unwrap(), [b"udp".to_vec(), b"udp-lite".to_vec()]);
    }
}
