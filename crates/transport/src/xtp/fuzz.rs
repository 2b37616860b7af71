//! What must hold of XTP for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::{Address, Duration, Ecn, Time};

use super::wire::{Body, HEADER_LENGTH, Options, Packet, ParseError};
use super::{
    Acknowledge, ErrorControl, FlowControl, Meaning, Open, XtpConfig, XtpDatagrams, XtpEndpoint,
    XtpGroupConfig, XtpGroupReceiver, XtpGroupSender, XtpTransactions,
};
use crate::conversation::{Close, Message};
use crate::endpoint::Endpoint;

const NEAR: Address = Address { host: 0, port: 1 };
const FAR: Address = Address { host: 1, port: 2 };
const GROUP: Address = Address { host: 9, port: 2 };

/// An end, and the packets that are under way to it.
type End = (Box<dyn Endpoint>, Vec<Vec<u8>>);

/// Checks XTP on arbitrary bytes and panics where it breaks its word:
/// 1. what the codec reads, it writes again as the same packet;
/// 2. two ends of any service survive packets of each other that were lost, repeated and changed, their checksums made
///    right so that they get that far, and keep to the contract: they come to rest, and their next timeout is later than
///    their last input.
///
/// The first bytes choose service and options; after them each byte is what happens next, and some take more bytes.
#[doc(hidden)]
pub fn fuzz_xtp(data: &[u8]) {
    fuzz_packet(data);
    let Some((&[service, choice], mut script)) = data.split_first_chunk() else { return };
    let mut ends = ends(service, choice).map(|end| (end, Vec::<Vec<u8>>::new()));
    let mut now = Time::ZERO;
    for side in 0..2 {
        settle(&mut ends, side, now);
    }
    let mut next = move || {
        let (&byte, rest) = script.split_first()?;
        script = rest;
        Some(byte)
    };
    while let Some(operation) = next() {
        let side = usize::from(operation & 1);
        let (end, waiting) = &mut ends[side];
        match operation >> 1 & 7 {
            // Time passes, and timers are served.
            0 => {
                now += Duration::from_millis(u64::from(next().unwrap_or(1)) * 4);
                end.handle_timeout(now);
            }
            1 => {
                let length = usize::from(next().unwrap_or(0)) * 8;
                let _ = end.send(now, Message::new(&vec![operation; length]));
            }
            2 => while end.receive(&mut Vec::new()).is_some() {},
            3 if operation >> 4 == 15 => {
                end.close(now, if next() == Some(0) { Close::Abort } else { Close::Graceful });
            }
            // The oldest packet under way is lost.
            3 => drop(waiting.pop()),
            kind => {
                let mut packet = match kind {
                    // Again and again, or once.
                    4 => waiting.first().cloned().unwrap_or_default(),
                    _ if waiting.is_empty() => Vec::new(),
                    _ => waiting.remove(0),
                };
                if kind >= 6 && !packet.is_empty() {
                    let at = usize::from(next().unwrap_or(0)) % packet.len();
                    packet[at] = next().unwrap_or(0);
                    if kind == 7 {
                        packet.truncate(usize::from(next().unwrap_or(0)));
                    }
                    packet = mended(&packet);
                }
                end.handle_packet(now, [FAR, NEAR][side], Ecn::NotCapable, &packet);
            }
        }
        settle(&mut ends, side, now);
    }
}

/// Checks the codec on arbitrary bytes.
pub(super) fn fuzz_packet(data: &[u8]) {
    match Packet::parse(data) {
        Ok(packet) => {
            let mut written = Vec::new();
            packet.emit(&mut written);
            let again = Packet::parse(&written).expect("what was written can be read");
            assert_eq!(again, packet);
            assert_eq!(written.len(), data.len());
            if let Body::Data { tag, .. } = packet.body {
                assert_eq!(tag.is_some(), packet.header.options.has(Options::BTAG));
            }
        }
        Err(ParseError::Checksum) => {
            // The fuzzer will not guess checksums: show it what lies behind them.
            let mended = mended(data);
            assert_ne!(Packet::parse(&mended), Err(ParseError::Checksum));
            fuzz_packet(&mended);
        }
        Err(_) => {}
    }
}

/// The same packet with the right length and checksum.
pub(super) fn mended(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet.len() < HEADER_LENGTH {
        return packet;
    }
    let length = (packet.len() - HEADER_LENGTH) as u32;
    packet[12..16].copy_from_slice(&length.to_be_bytes());
    let covered = if packet[8] & 0x40 != 0 { HEADER_LENGTH } else { packet.len() };
    packet[16..18].fill(0);
    let check = !crate::checksum::sum(0, &packet[..covered]);
    packet[16..18].copy_from_slice(&check.to_be_bytes());
    packet
}

/// Two ends that talk with each other.
fn ends(service: u8, choice: u8) -> [Box<dyn Endpoint>; 2] {
    const POSSIBLE: &str = "every choice is a possible configuration";
    let bit = |n: u8| choice >> n & 1 == 1;
    let unreliable = bit(0);
    let config = XtpConfig {
        open: if bit(1) { Open::Implicit } else { Open::Handshake },
        error_control: if unreliable { ErrorControl::None } else { ErrorControl::Selective },
        fast_nak: bit(2),
        flow_control: match (unreliable, bit(3)) {
            (_, false) => FlowControl::Window,
            (false, true) => FlowControl::Reserved,
            (true, true) => FlowControl::None,
        },
        acknowledge: if bit(4) { Acknowledge::Every(1) } else { Acknowledge::Every(3) },
        meaning: if bit(5) { Meaning::Delivered } else { Meaning::Arrived },
        checksum: bit(6),
        keep_alive: bit(7).then_some(Duration::from_millis(500)),
        max_packet: 160,
        send_buffer: 3000,
        receive_buffer: 1000,
        patience: Some(Duration::from_secs(5)),
        ..XtpConfig::default()
    };
    let group = match unreliable {
        true => XtpGroupConfig::unacknowledged(GROUP),
        false => XtpGroupConfig::reliable(GROUP),
    };
    match service % 5 {
        0 => [
            Box::new(XtpEndpoint::connect(NEAR, FAR, &config, 1).expect(POSSIBLE)),
            Box::new(XtpEndpoint::listen(FAR, &config, 2).expect(POSSIBLE)),
        ],
        1 | 2 => [(NEAR, FAR, 1), (FAR, NEAR, 2)].map(|(local, peer, seed)| -> Box<dyn Endpoint> {
            Box::new(XtpDatagrams::new(local, peer, &config, service % 5 == 2, seed).expect(POSSIBLE))
        }),
        3 => [
            Box::new(XtpTransactions::connect(NEAR, FAR, &config, 1).expect(POSSIBLE)),
            Box::new(XtpTransactions::listen(FAR, NEAR, &config, 2).expect(POSSIBLE)),
        ],
        _ => [
            Box::new(XtpGroupSender::new(NEAR, &group, 1).expect(POSSIBLE)),
            Box::new(XtpGroupReceiver::new(FAR, &group, 2).expect(POSSIBLE)),
        ],
    }
}

/// Drains an end as a driver does; its packets are under way to the other.
fn settle(ends: &mut [End; 2], side: usize, now: Time) {
    let [(near, to_near), (far, to_far)] = ends;
    let (end, under_way) = if side == 0 { (near, to_far) } else { (far, to_near) };
    let mut packet = Vec::new();
    let mut packets = 0;
    while let Some(transmit) = end.poll_transmit(now, &mut packet) {
        assert!(Packet::parse(&packet).is_ok(), "{packet:02x?}");
        assert!(transmit.size.count() as usize > packet.len());
        if under_way.len() < 64 {
            under_way.push(packet.clone());
        }
        packets += 1;
        assert!(packets < 10_000, "sends without end");
    }
    while end.poll_event().is_some() {}
    assert!(end.next_timeout().is_none_or(|at| at > now), "a timeout that is not later than now");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::fuzz_xtp;

    proptest! {
        #![proptest_config(cases(2000))]
        #[test]
        fn any_script_is_survived(data in prop::collection::vec(any::<u8>(), 0..400)) {
            fuzz_xtp(&data);
        }
    }
}
