//! What must hold of a relay for any frames: run by the fuzzer, by its corpus in the tests, and by proptest.

use std::collections::BTreeSet;

use trunkline_core::{Ecn, Port, Seed, Time};
use trunkline_experiment::Experiment;

use super::header::{self, Header};
use super::{CoreConfig, RelayCore, Stations, too_big};
use crate::checksum::checksum;
use crate::device::{Frame, Layer};

const MTU: u32 = 100;
/// What waits there is marked at once.
const FILE: &str = r#"name = "any frames"
duration = "1 s"
[hosts]
a = {}
b = {}
[link.l]
between = ["a", "b"]
rate = "1 Mbit/s"
mtu = "100 B"
queue = { kind = "fq-codel", ce-threshold = "1 ns" }
"#;

/// Reads the data as packets, each behind a byte for the time and the way and one for its length, sends them through a link
/// as they are and in Ethernet frames, and panics where something of this is broken:
/// 1. headers lie within their frame, and say the same at both layers;
/// 2. a mark changes the ECN field alone and keeps a right checksum right;
/// 3. the answer to what is too big is a packet back to the sender, intact, within its limit, and never answered itself;
/// 4. what enters comes out once, unchanged but for a mark, or is dropped.
#[doc(hidden)]
pub fn fuzz_frames(data: &[u8]) {
    let packets = packets(data);
    for (_, packet) in &packets {
        let bare = Header::read(Layer::Ip, packet);
        let framed = ethernet(packet);
        let header = Header::read(Layer::Ethernet, &framed);
        assert_eq!((bare.key, bare.ecn, bare.urgency), (header.key, header.ecn, header.urgency));
        check(Layer::Ip, packet, &bare);
        check(Layer::Ethernet, &framed, &header);
    }
    pass(Layer::Ip, &packets);
    let framed = |(lead, packet): &(u8, &[u8])| (*lead, ethernet(packet));
    pass(Layer::Ethernet, &packets.iter().map(framed).collect::<Vec<_>>());
}

fn packets(mut data: &[u8]) -> Vec<(u8, &[u8])> {
    let mut packets = Vec::new();
    while let Some((&[lead, length], rest)) = data.split_first_chunk() {
        let (packet, rest) = rest.split_at(rest.len().min(length.into()));
        packets.push((lead, packet));
        data = rest;
    }
    packets
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    let kind = if packet.first().is_some_and(|byte| byte >> 4 == 6) { [0x86, 0xDD] } else { [0x08, 0] };
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &kind[..], packet].concat()
}

fn check(layer: Layer, frame: &[u8], header: &Header) {
    assert!(header.network <= header.transport && header.transport <= frame.len(), "{header:?}");
    let sum = |frame: &[u8]| checksum(&[&frame[header.network..header.transport]]);
    let mut marked = frame.to_vec();
    let has_marked = header::mark(layer, &mut marked);
    if let Some(key) = header.key {
        assert_eq!(has_marked, header.ecn != Ecn::CongestionExperienced);
        let read = Header::read(layer, &marked);
        assert_eq!(read, Header { ecn: Ecn::CongestionExperienced, ..*header });
        if key.addresses[0].is_ipv4() && sum(frame) == 0 {
            assert_eq!(sum(&marked), 0);
        }
    }
    let mut answer = Vec::new();
    if too_big::answer(frame, header, MTU, &mut answer) {
        let back = Header::read(layer, &answer);
        let mut addresses = header.key.expect("nobody answers what is not of IP").addresses;
        addresses.reverse();
        assert_eq!(back.key.map(|key| key.addresses), Some(addresses));
        let ip = &answer[back.network..];
        if addresses[0].is_ipv4() {
            assert!(ip.len() <= 576 && usize::from(u16::from_be_bytes([ip[2], ip[3]])) == ip.len());
            assert_eq!((checksum(&[&ip[..20]]), checksum(&[&ip[20..]])), (0, 0));
        } else {
            assert!(ip.len() <= 1280 && usize::from(u16::from_be_bytes([ip[4], ip[5]])) == ip.len() - 40);
            assert_eq!(checksum(&[&ip[8..40], &ip[4..6], &[0, 58], &ip[40..]]), 0);
        }
        assert!(!too_big::answer(&answer, &back, MTU, &mut Vec::new()), "errors are not answered");
    }
}

/// Sends frames through a link.
fn pass(layer: Layer, frames: &[(u8, impl AsRef<[u8]>)]) {
    let experiment = Experiment::parse(FILE, "any.toml", &()).expect("the file is right");
    let medium = experiment.points.first().scenario.build_links(Seed::new(7, 0)).remove(0);
    let mut relay = RelayCore::new(CoreConfig { medium, layer, stations: Stations::Two, mtus: vec![MTU; 2] });
    let mut sent = [BTreeSet::new(), BTreeSet::new()];
    let mut now = 0;
    for (lead, frame) in frames {
        let (way, bytes) = (usize::from(lead & 1), frame.as_ref().to_vec());
        now += u64::from(lead >> 1) * 10_000;
        let mut marked = bytes.clone();
        header::mark(layer, &mut marked);
        sent[way].extend([bytes.clone(), marked]);
        relay.take(Port(way as u16), Frame { at: Time::from_nanos(now), bytes });
        relay.run(Time::from_nanos(now));
    }
    relay.run(Time::from_nanos(now + 60_000_000_000));
    let mut out = [Vec::new(), Vec::new()];
    for (port, out) in (0..).map(Port).zip(&mut out) {
        relay.leaving(port, usize::MAX, out);
    }
    let counters = relay.counters();
    for (way, port) in counters.ports.iter().enumerate() {
        let entered = frames.iter().filter(|(lead, _)| usize::from(lead & 1) == way).count() as u64;
        let dropped: u64 = port.medium.dropped.iter().sum();
        assert_eq!((port.offered.packets, port.delivered.packets + dropped), (entered, entered));
        assert_eq!((port.waiting.packets, port.waiting.bytes.count()), (0, 0));
        // Among them there are answers to what came from the other end.
        let there = out[1 - way].iter().filter(|frame| sent[way].contains(&frame.bytes)).count() as u64;
        let answers = out[1 - way].len() as u64 - there;
        assert_eq!(there, port.delivered.packets, "as it entered");
        assert!(answers <= counters.ports[1 - way].medium.dropped.iter().sum());
    }
}
