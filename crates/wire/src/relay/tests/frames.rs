//! What happens to frames on their way, one thing at a time.

use core::net::IpAddr;

use proptest::prelude::*;
use trunkline_core::{Destination, Ecn, FlowId, Port, Time};

use super::{Log, Seen, at, config, ipv4, leaving, medium_between, number, relay};
use crate::checksum::checksum;
use crate::device::{Frame, Layer};
use crate::relay::flows::{Flows, MOST};
use crate::relay::fuzz::fuzz_frames;
use crate::relay::header::{self, Header};
use crate::relay::{CoreConfig, FlowKey, Hop, LINK_DOWN, RelayCore, Stations};

fn ipv6(next: u8, extensions: &[u8], transport: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    packet[4..6].copy_from_slice(&((extensions.len() + transport.len()) as u16).to_be_bytes());
    for host in [1, 2] {
        packet.extend([0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    [&packet, extensions, transport].concat()
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), packet].concat()
}

#[test]
fn headers_are_read_behind_options_extensions_and_ethernet() {
    let udp = [0x1B, 0x58, 0x1B, 0x59, 0, 8, 0, 0];
    let header = Header::read(Layer::Ip, &ipv4(88, 0b1011_1000 | 1, 0, 100));
    let key = header.key.unwrap();
    assert_eq!((key.ports, key.protocol), ([27 * 256 + 88, 27 * 256 + 200], 17));
    assert_eq!((header.transport, header.ecn, header.urgency, header.indivisible), (20, Ecn::Ect1, 2, true));
    // Hop-by-hop options of 16 bytes, then a routing header of 8.
    let extensions = [[43, 1, 0, 0, 0, 0, 0, 0], [0; 8], [17, 0, 0, 0, 0, 0, 0, 0]].concat();
    let packet = ipv6(0, &extensions, &udp);
    for (layer, frame, network) in
        [(Layer::Ip, packet.clone(), 0), (Layer::Ethernet, ethernet(0x86DD, &packet), 14)]
    {
        let header = Header::read(layer, &frame);
        let key = header.key.unwrap();
        assert_eq!((key.ports, key.protocol), ([7000, 7001], 17));
        assert_eq!((header.network, header.transport), (network, network + 64));
        assert_eq!(header.size(&frame).count(), 72);
    }
    // Fragments go with the first, which has no ports of its own therefore.
    let fragment = ipv6(44, &[17, 0, 0, 1, 0, 0, 0, 9], &udp);
    assert_eq!(Header::read(Layer::Ip, &fragment).key.unwrap().ports, [0; 2]);
    // Options that are cut into two fragments stand in the first only.
    let keys = [[0, 1, 17, 0], [8, 0, 0xAB, 0xCD]].map(|[offset, more, first, second]| {
        let fragment = ipv6(44, &[60, 0, offset, more, 0, 0, 0, 9], &[first, second, 0, 0, 0, 0, 0, 0]);
        Header::read(Layer::Ip, &fragment).key
    });
    assert_eq!((keys[0].map(|key| key.ports), keys[0]), (Some([0; 2]), keys[1]));
    let liar = ethernet(0x0800, &packet);
    assert_eq!(Header::read(Layer::Ethernet, &liar).key, None);
    let arp = ethernet(0x0806, &[0; 28]);
    let header = Header::read(Layer::Ethernet, &arp);
    assert_eq!((header.key, header.transport, header.size(&arp).count()), (None, 42, 28));
}

proptest! {
    #[test]
    fn any_bytes_are_frames(steps in prop::collection::vec((any::<u8>(), 0..8u8, prop::collection::vec(any::<u8>(), 0..90)), 0..20)) {
        // Mostly headers of a kind, to get further than their first byte.
        const STARTS: [&[u8]; 8] = [&[], &[0x45], &[0x4F, 2], &[0x60], &[0x60, 0x20, 0, 0, 0, 0, 0], &[0x60, 0, 0, 0, 0, 0, 44],
            &[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 1], &[0x60, 0, 0, 0, 0, 0, 58]];
        let step = |(lead, start, rest): (u8, u8, Vec<u8>)| {
            let frame = [STARTS[usize::from(start)], &rest].concat();
            [&[lead, frame.len() as u8][..], &frame].concat()
        };
        fuzz_frames(&steps.into_iter().flat_map(step).collect::<Vec<u8>>());
    }

    #[test]
    fn a_mark_keeps_the_checksum_right(class in any::<u8>(), number in any::<u32>(), flow in any::<u8>()) {
        let mut packet = ipv4(flow, class, number, 60);
        // Something of the header differs from packet to packet.
        packet[4..6].copy_from_slice(&(number as u16).to_be_bytes());
        packet[10..12].fill(0);
        let sum = checksum(&[&packet[..20]]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        prop_assert_eq!(header::mark(Layer::Ip, &mut packet), class & 3 != 3);
        prop_assert_eq!(packet[1], class | 3);
        prop_assert_eq!(checksum(&[&packet[..20]]), 0);
        let mut packet = ipv6(17, &[], &[0; 8]);
        packet[1] = class << 4;
        prop_assert_eq!(header::mark(Layer::Ip, &mut packet), class & 3 != 3);
        prop_assert_eq!(Header::read(Layer::Ip, &packet).ecn, Ecn::CongestionExperienced);
    }

    #[test]
    fn flows_keep_their_numbers(picks in prop::collection::vec((0u16..3000, any::<bool>()), 1..4000)) {
        let mut flows = Flows::default();
        let mut known = std::collections::BTreeMap::new();
        for (now, (port, swapped)) in (0..).map(Time::from_nanos).zip(picks) {
            let host = |n: u8| IpAddr::from([198, 18, 0, n]);
            let mut key = FlowKey { addresses: [host(1), host(2)], ports: [port, 7000], protocol: 17 };
            if swapped {
                key.addresses.reverse();
                key.ports.reverse();
            }
            let (flow, backward) = flows.classify(now, Some(&key));
            prop_assert!(flow.0 > 0 && (flow.0 as usize) < MOST);
            let (number, first) = *known.entry(port).or_insert((flow, swapped ^ backward));
            // With fewer flows than numbers nobody loses his.
            if known.len() < MOST {
                prop_assert_eq!((flow, swapped ^ backward), (number, first));
            }
        }
        prop_assert_eq!(flows.classify(Time::MAX, None), (FlowId(0), false));
    }
}

#[test]
fn two_flows_never_share_a_number_while_both_are_heard() {
    let mut flows = Flows::default();
    let key = |port| FlowKey { addresses: [IpAddr::from([10, 0, 0, 1]); 2], ports: [port, 1], protocol: 6 };
    // Far more flows than numbers, of which one goes on all the time.
    let (own, _) = flows.classify(Time::ZERO, Some(&key(9)));
    for (now, port) in (0..).zip(10..20_000) {
        let now = Time::from_nanos(now);
        assert_ne!(flows.classify(now, Some(&key(port))).0, own);
        assert_eq!(flows.classify(now, Some(&key(9))).0, own);
    }
}

#[test]
fn stations_are_learnt_by_what_they_send() {
    let mut stations = Stations::Learnt([([2, 0, 0, 0, 0, 7], Port(3))].into());
    let mut destination = |from: u16, to: [u8; 6], sender: [u8; 6]| {
        let frame = [&to[..], &sender, &[8, 0]].concat();
        stations.destination(Port(from), &frame, &Header::read(Layer::Ethernet, &frame))
    };
    let [a, b] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
    assert_eq!(destination(0, b, a), Destination::Everyone, "nobody knows b");
    assert_eq!(destination(1, a, b), Destination::Port(Port(0)));
    assert_eq!(destination(0, b, a), Destination::Port(Port(1)));
    assert_eq!(destination(0, [0xFF; 6], a), Destination::Everyone);
    assert_eq!(destination(2, [2, 0, 0, 0, 0, 7], a), Destination::Port(Port(3)), "planned");
    assert_eq!(destination(0, b, a), Destination::Port(Port(1)));
    assert_eq!(destination(1, b, a), Destination::Nobody, "it stands there itself");
}

#[test]
fn stations_are_found_by_the_sender_s_routes() {
    let hop = |from, to: &str, prefix, next| Hop {
        from: Port(from),
        to: to.parse().unwrap(),
        prefix,
        next: Port(next),
    };
    let mut stations = Stations::Routed(vec![
        hop(0, "198.18.0.2", 32, 1),
        hop(0, "198.18.0.3", 32, 2),
        hop(0, "2001:2::2", 128, 1),
        hop(0, "198.18.5.0", 24, 2),
    ]);
    let mut destination = |from: u16, to: [u8; 4]| {
        let mut packet = ipv4(0, 0, 0, 40);
        packet[16..20].copy_from_slice(&to);
        stations.destination(Port(from), &packet, &Header::read(Layer::Ip, &packet))
    };
    assert_eq!(destination(0, [198, 18, 0, 2]), Destination::Port(Port(1)));
    assert_eq!(destination(0, [198, 18, 5, 77]), Destination::Port(Port(2)), "behind another station");
    assert_eq!(destination(1, [198, 18, 0, 2]), Destination::Nobody, "another's route");
    assert_eq!(destination(0, [198, 18, 6, 1]), Destination::Nobody);
    assert_eq!(destination(0, [224, 0, 0, 251]), Destination::Everyone);
    let six = ipv6(17, &[], &[0; 8]);
    let header = Header::read(Layer::Ip, &six);
    assert_eq!(stations.destination(Port(0), &six, &header), Destination::Port(Port(1)));
}

/// Copies come out of a switch at different times, or are dropped at one of its outputs: each packet has crossed the line once.
#[test]
fn packets_for_everyone_count_once() {
    let lan = "medium = \"ethernet\"\nrate = \"100 Mbit/s\"\n[link.l.station.d]\nrate = \"1 Mbit/s\"\nswitch-buffer = \"20 packets\"";
    let stations = Stations::Learnt([].into());
    let medium = medium_between("\"a\", \"b\", \"c\", \"d\"", lan);
    let mut relay =
        RelayCore::new(CoreConfig { medium, layer: Layer::Ethernet, stations, mtus: vec![1500; 4] });
    for number in 0..60 {
        let bytes = ethernet(0x0800, &ipv4(1, 0, number, 1000));
        relay.take(Port(0), Frame { at: at(10), bytes });
    }
    relay.run(at(10_000_000));
    let counters = relay.counters();
    let transmitted: u64 = counters
        .flows
        .iter()
        .flat_map(|flow| flow.directions)
        .map(|direction| direction.transmitted.count())
        .sum();
    let line = &counters.ports[0].medium;
    assert!(line.dropped.iter().sum::<u64>() > 30, "{:?}", line.dropped);
    assert_eq!(transmitted, line.transmitted.count());
}

/// Offers one frame and hands out what leaves at both ports within a second.
fn pass(relay: &mut RelayCore, port: u16, bytes: Vec<u8>) -> [Vec<Frame>; 2] {
    relay.take(Port(port), Frame { at: at(10), bytes });
    relay.run(at(1_000_000));
    [leaving(relay, 0), leaving(relay, 1)]
}

#[test]
fn a_packet_comes_out_at_the_other_end_when_it_should() {
    let mut relay = relay("rate = \"8 Mbit/s\"\ndelay = \"5 ms\"");
    let packet = ipv4(1, 0, 7, 1000);
    let [none, there] = pass(&mut relay, 0, packet.clone());
    assert!(none.is_empty());
    // 1000 bytes take 1 ms.
    assert_eq!(there, [Frame { at: at(6_010), bytes: packet }]);
    let counters = relay.counters();
    let port = &counters.ports[0];
    assert_eq!((port.offered.packets, port.delivered.bytes.count(), port.waiting.packets), (1, 1000, 0));
    let flow = &counters.flows[1].directions[0];
    assert_eq!((flow.delivered.packets, flow.transit_max.as_nanos()), (1, 6_000_000));
    assert_eq!(relay.next_event(), None);
}

#[test]
fn what_is_too_big_is_answered_with_the_mtu() {
    for (packet, transport) in [(ipv4(1, 0, 0, 1600), 20), (ipv6(17, &[], &[0; 1600]), 40)] {
        let mut relay = relay("rate = \"1 Gbit/s\"");
        let sent = packet.clone();
        let [answers, there] = pass(&mut relay, 0, packet);
        assert!(there.is_empty());
        let [Frame { bytes, .. }] = &answers[..] else { panic!("{} answers", answers.len()) };
        let (ip, icmp) = bytes.split_at(transport);
        let header = Header::read(Layer::Ip, bytes);
        let mut addresses = Header::read(Layer::Ip, &sent).key.unwrap().addresses;
        addresses.reverse();
        assert_eq!(header.key.unwrap().addresses, addresses);
        // RFC 4443 section 2.4 and RFC 1812 section 4.3.2.3: as much of the packet as fits.
        let (back, most) = if transport == 20 { (&icmp[8..], 576) } else { (&icmp[8..], 1280) };
        assert_eq!((bytes.len(), back), (most, &sent[..most - transport - 8]));
        if transport == 20 {
            assert_eq!(icmp[..2], [3, 4]);
            assert_eq!(icmp[4..8], [0, 0, 0x05, 0xDC]);
            assert_eq!((checksum(&[ip]), checksum(&[icmp])), (0, 0));
        } else {
            assert_eq!(icmp[..2], [2, 0]);
            assert_eq!(icmp[4..8], [0, 0, 0x05, 0xDC]);
            let length = (icmp.len() as u16).to_be_bytes();
            assert_eq!(checksum(&[&ip[8..], &length, &[0, 58], icmp]), 0);
        }
    }
}

#[test]
fn nobody_is_told_of_what_may_be_cut_of_errors_and_of_groups() {
    let mut relay = relay("rate = \"1 Gbit/s\"");
    let mut divisible = ipv4(1, 0, 0, 1600);
    divisible[6] = 0;
    let mut error = ipv4(1, 0, 0, 1600);
    (error[9], error[20]) = (1, 3);
    let mut group = ipv4(1, 0, 0, 1600);
    group[16] = 224;
    for packet in [divisible, error, group] {
        assert_eq!(pass(&mut relay, 0, packet), [vec![], vec![]]);
    }
    assert_eq!(relay.counters().ports[0].medium.offered, 3);
}

#[test]
fn an_answer_goes_back_over_ethernet() {
    let mut config = config("rate = \"1 Gbit/s\"");
    config.layer = Layer::Ethernet;
    let mut relay = RelayCore::new(config);
    let [answers, _] = pass(&mut relay, 0, ethernet(0x0800, &ipv4(1, 0, 0, 1600)));
    assert_eq!(answers[0].bytes[..14], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
}

#[test]
fn a_queue_s_mark_is_written_into_the_packet() {
    // A threshold of nothing: whoever waits is marked.
    let keys = "rate = \"1 Mbit/s\"\nqueue = { kind = \"fq-codel\", ce-threshold = \"1 ns\" }";
    let mut relay = relay(keys);
    for number in 0..3 {
        relay.take(Port(0), Frame { at: at(10), bytes: ipv4(1, 2, number, 500) });
    }
    relay.run(at(1_000_000));
    let marked: Vec<bool> = leaving(&mut relay, 1)
        .iter()
        .map(|frame| {
            assert_eq!(checksum(&[&frame.bytes[..20]]), 0);
            frame.bytes[1] & 3 == 3
        })
        .collect();
    assert_eq!(marked, [false, true, true]);
    assert_eq!(relay.counters().flows[1].directions[0].marked, 2);
}

#[test]
fn errors_spare_the_headers_and_copies_are_equal() {
    let mut relay = relay("rate = \"1 Gbit/s\"\ncorrupt = \"100 %\"\nduplicate = \"100 %\"");
    for round in 1..=50 {
        let packet = ipv4(1, 0, 0, 60);
        relay.take(Port(0), Frame { at: at(round * 1_000), bytes: packet.clone() });
        relay.run(at(round * 1_000 + 500));
        let there = leaving(&mut relay, 1);
        let [one, other] = &there[..] else { panic!("{} copies", there.len()) };
        assert_eq!(one, other);
        let differ = one.bytes.iter().zip(&packet).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
        assert_eq!((differ, &one.bytes[..20]), (1, &packet[..20]));
    }
    let port = &relay.counters().ports[0];
    assert_eq!((port.medium.corrupted, port.delivered.packets, port.waiting.packets), (50, 100, 0));
}

#[test]
fn while_a_link_is_down_what_arrives_at_either_end_is_lost() {
    let mut relay = relay("rate = \"1 Gbit/s\"\ndelay = \"10 ms\"");
    let log = Log::default();
    relay.set_capture(Some(Box::new(log.clone())));
    let mut step = |time: u64, up: bool, arrives: Option<u32>| {
        if let Some(number) = arrives {
            relay.take(Port(0), Frame { at: at(time), bytes: ipv4(1, 0, number, 100) });
        }
        relay.run(at(time));
        let left: Vec<u32> = leaving(&mut relay, 1).iter().map(|frame| number(&frame.bytes)).collect();
        relay.set_up(up);
        left
    };
    assert_eq!(step(1_000, true, Some(0)), [0u32; 0]);
    assert_eq!(step(8_000, true, Some(1)), [0u32; 0]);
    // 0 has arrived just before; 1 is on its way, 2 comes while it is down, 3 after it.
    assert_eq!(step(12_000, false, None), [0]);
    assert_eq!(step(13_000, false, Some(2)), [0u32; 0]);
    assert_eq!(step(19_000, true, None), [0u32; 0]);
    assert_eq!(step(20_000, true, Some(3)), [0u32; 0]);
    assert_eq!(step(40_000, true, None), [3]);
    let lost = log.take().into_iter().filter(|seen| matches!(seen, Seen::Dropped(_, Port(0), _, LINK_DOWN)));
    assert_eq!((lost.count(), relay.counters().ports[0].cut), (2, 2));
}
