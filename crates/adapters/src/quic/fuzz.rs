//! What must hold for both ends whatever becomes of their packets.

use std::collections::VecDeque;

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_transport::{Close, Conversation as _, Endpoint as _, Message};

use super::{Encapsulation, Identity, Mode, QuicConfig, QuicEndpoint};

const ADDRESSES: [Address; 2] = [Address { host: 0, port: 40_001 }, Address { host: 1, port: 7_001 }];
/// What all messages consist of.
const FILL: u8 = 0xA5;

/// Lets two ends talk while the bytes decide what becomes of their packets, and panics where an end breaks its word: it
/// survives, hands over nothing but what was sent, comes to rest, and its next timeout is later than its last input.
///
/// There are no UDP headers, so that damage reaches the engine. The first byte is the mode; then come operations: a byte
/// for which, whose highest bit is the end, and their arguments. Keys are new every time, so what damage to encrypted
/// bytes does may differ.
#[doc(hidden)]
pub fn fuzz_quic(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let mode = Mode::ALL[usize::from(bytes.next().unwrap_or(0)) % Mode::ALL.len()];
    let config =
        QuicConfig { mode, encapsulation: Encapsulation::UdpPayload, window: 4000, ..QuicConfig::default() };
    let possible = "the configuration is in range";
    let identity = Identity::new([1; 32]).expect("any secret makes an identity");
    let [near, far] = ADDRESSES;
    let mut ends = [
        QuicEndpoint::connect(near, far, &config, identity.fingerprint(), 1).expect(possible),
        QuicEndpoint::listen(far, &config, &identity, 2).expect(possible),
    ];
    // Packets under way from each end.
    let mut flying = [VecDeque::new(), VecDeque::new()];
    let mut now = Time::ZERO;
    for (end, flying) in ends.iter_mut().zip(&mut flying) {
        settle(end, now, flying);
    }
    while let Some(operation) = bytes.next() {
        let from = usize::from(operation >> 7);
        let to = 1 - from;
        let mut argument = || bytes.next().unwrap_or(0);
        let arrives = match operation % 8 {
            0 => flying[from].pop_front(),
            1 => {
                flying[from].pop_front();
                None
            }
            2 => flying[from].front().cloned(),
            3 => flying[from].pop_front().map(|mut packet: Vec<u8>| {
                let at = usize::from(u16::from_be_bytes([argument(), argument()])) % packet.len().max(1);
                packet[at] = argument();
                packet
            }),
            4 => flying[from].pop_front().map(|mut packet| {
                packet.truncate(usize::from(argument()) * 5);
                packet
            }),
            5 => Some((0..argument()).map(|_| argument()).collect()),
            6 => {
                now += Duration::from_millis(u64::from(argument()));
                ends[from].handle_timeout(now);
                None
            }
            _ => {
                match argument() {
                    255 => ends[from].close(now, Close::Abort),
                    254 => ends[from].close(now, Close::Graceful),
                    // Refused while it is not open.
                    length => drop(ends[from].send(now, Message::new(&vec![FILL; usize::from(length) * 8]))),
                }
                None
            }
        };
        if let Some(packet) = arrives {
            ends[to].handle_packet(now, ADDRESSES[from], Ecn::NotCapable, &packet);
        }
        for (end, flying) in ends.iter_mut().zip(&mut flying) {
            settle(end, now, flying);
        }
    }
}

/// Drains an endpoint as a driver does.
fn settle(end: &mut QuicEndpoint, now: Time, flying: &mut VecDeque<Vec<u8>>) {
    let (mut packet, mut received) = (Vec::new(), Vec::new());
    let mut packets = 0;
    loop {
        while end.poll_transmit(now, &mut packet).is_some() {
            packets += 1;
            assert!(packets < 10_000, "sends without end");
            if flying.len() < 64 {
                flying.push_back(packet.clone());
            }
        }
        while end.poll_event().is_some() {}
        if end.receive(&mut received).is_none() {
            break;
        }
    }
    assert!(received.iter().all(|&byte| byte == FILL), "hands over what was not sent");
    assert!(end.next_timeout().is_none_or(|next| next > now));
}
