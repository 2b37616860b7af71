//! What must hold of URP for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::{Address, Duration, Ecn, Time};

use super::wire::{self, Body, Packet};
use super::{UrpConfig, UrpEndpoint};
use crate::conversation::{Conversation as _, Message};
use crate::endpoint::Endpoint as _;

const NEAR: Address = Address { host: 0, port: 1 };
const FAR: Address = Address { host: 1, port: 2 };

/// Checks URP on arbitrary bytes and panics where it breaks its word:
/// 1. what the codec takes, it writes again as the same bytes;
/// 2. an endpoint survives any packets, of which the checksum is made right so that they get that far, and keeps to the
///    contract: its next timeout is later than its last input.
///
/// The bytes are packets one after the other, each behind a byte with its length.
#[doc(hidden)]
pub fn fuzz_urp(data: &[u8]) {
    let config = UrpConfig { block: 16, window: 7, ..UrpConfig::default() };
    let ends = [UrpEndpoint::connect(NEAR, FAR, config), UrpEndpoint::listen(FAR, NEAR, config)];
    let mut now = Time::ZERO;
    let mut ends = ends.map(|end| end.expect("the configuration is in range"));
    let mut written = Vec::new();
    let mut rest = data;
    while let Some((&length, behind)) = rest.split_first() {
        let (packet, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let mut packet = packet.to_vec();
        if packet.len() >= wire::HEADER_LENGTH {
            wire::seal(&mut packet);
        }
        if let Ok(parsed) = Packet::decode(&packet) {
            parsed.encode(&mut written);
            assert_eq!(written, packet, "{parsed:?}");
        }
        now += Duration::from_millis(u64::from(length));
        for (end, from) in ends.iter_mut().zip([FAR, NEAR]) {
            end.handle_packet(now, from, Ecn::NotCapable, &packet);
            settle(end, now);
            if length.is_multiple_of(4) {
                // Refused while it is not open.
                let _ = end.send(now, Message::piece(&packet));
                settle(end, now);
            }
            end.handle_timeout(now);
            settle(end, now);
        }
    }
}

/// Drains an endpoint as a driver does.
fn settle(end: &mut UrpEndpoint, now: Time) {
    let mut packet = Vec::new();
    let mut packets = 0;
    while let Some(transmit) = end.poll_transmit(now, &mut packet) {
        let Packet { body, .. } = Packet::decode(&packet).expect("it can be read");
        // A control envelope takes two bytes of a circuit, however few here.
        let least = if matches!(body, Body::Data { .. }) { 1 } else { 2 };
        assert_eq!(transmit.size.count() as usize, (packet.len() - wire::HEADER_LENGTH).max(least));
        packets += 1;
        assert!(packets < 100, "sends without end");
    }
    while end.poll_event().is_some() {}
    end.receive(&mut Vec::new());
    assert!(end.next_timeout().is_none_or(|next| next > now));
}
