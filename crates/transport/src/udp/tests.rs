use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

const NEAR: Address = Address { host: 0, port: 4000 };
const FAR: Address = Address { host: 1, port: 5000 };

fn pair(config: UdpConfig) -> (UdpEndpoint, UdpEndpoint) {
    (UdpEndpoint::new(NEAR, FAR, config), UdpEndpoint::new(FAR, NEAR, config))
}

fn datagram(from: &mut UdpEndpoint, payload: &[u8]) -> Vec<u8> {
    from.send(Time::ZERO, Message::new(payload)).unwrap();
    let mut packet = Vec::new();
    from.poll_transmit(Time::ZERO, &mut packet).unwrap();
    packet
}

fn counter(endpoint: &UdpEndpoint, name: &str) -> u64 {
    let mut value = None;
    endpoint.counters(&mut |counter, count| {
        if counter == name {
            value = Some(count);
        }
    });
    value.unwrap()
}

#[test]
fn the_checksum_is_that_of_rfc_768() {
    // Computed by hand: pseudo-header 0a00 0001 0a00 0101 0011 000c, header 0fa0 1388 000c 0000, data 0102 03ff.
    let words = [0x0a00u32, 0x0001, 0x0a00, 0x0101, 0x0011, 12, 4000, 5000, 12, 0, 0x0102, 0x03ff];
    let sum: u32 = words.iter().sum();
    let expected = !(((sum >> 16) + (sum & 0xFFFF)) as u16);
    let packet = datagram(&mut pair(UdpConfig::default()).0, &[1, 2, 3, 0xff]);
    assert_eq!(packet[..6], [0x0f, 0xa0, 0x13, 0x88, 0, 12]);
    assert_eq!(packet[6..8], expected.to_be_bytes());
}

#[test]
fn the_size_counts_both_headers() {
    let (mut near, _) = pair(UdpConfig::default());
    near.send(Time::ZERO, Message::new(&[0; 80])).unwrap();
    let mut packet = vec![1, 2, 3];
    let transmit = near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    assert_eq!((transmit.size, transmit.to, packet.len()), (Bytes(108), FAR, 88));
    assert_eq!(near.poll_transmit(Time::ZERO, &mut packet), None);
    assert!(packet.is_empty());
}

#[test]
fn ecn_reaches_the_receiver() {
    let (mut near, mut far) = pair(UdpConfig::default());
    let packet = datagram(&mut near, b"x");
    far.handle_packet(Time::ZERO, NEAR, Ecn::CongestionExperienced, &packet);
    let received = far.receive(&mut Vec::new()).unwrap();
    assert_eq!(received, Received { length: 1, ecn: Ecn::CongestionExperienced });
}

#[test]
fn datagrams_are_sent_with_the_ecn_field_of_the_endpoint() {
    for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1] {
        let (mut near, _) = pair(UdpConfig { ecn, ..UdpConfig::default() });
        near.send(Time::ZERO, Message::new(b"x")).unwrap();
        assert_eq!(near.poll_transmit(Time::ZERO, &mut Vec::new()).unwrap().ecn, ecn);
    }
}

#[test]
fn the_largest_message_passes_and_a_larger_one_is_refused() {
    let (mut near, mut far) =
        pair(UdpConfig { send_buffer: 100, receive_buffer: 100, ..UdpConfig::default() });
    let packet = datagram(&mut near, &[5; MAX_MESSAGE]);
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    assert_eq!(far.receive(&mut Vec::new()).unwrap().length, 65_507);
    let refused = near.send(Time::ZERO, Message::new(&[5; MAX_MESSAGE + 1]));
    assert_eq!(refused, Err(SendError::TooLarge { limit: 65_507 }));
}

#[test]
fn bad_packets_are_counted_by_cause() {
    let (mut near, mut far) = pair(UdpConfig::default());
    let good = datagram(&mut near, b"payload");
    let mut no_checksum = good.clone();
    no_checksum[6..8].fill(0);
    let stranger = Address { host: 2, port: 4000 };
    let stray = datagram(&mut UdpEndpoint::new(stranger, FAR, UdpConfig::default()), b"x");
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &good[..7]);
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &good[..12]);
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &no_checksum);
    far.handle_packet(Time::ZERO, stranger, Ecn::NotCapable, &stray);
    assert_eq!(far.receive(&mut Vec::new()), None);
    assert_eq!(far.poll_event(), None);
    let counts =
        ["malformed", "checksum-errors", "strays", "packets-received"].map(|name| counter(&far, name));
    assert_eq!(counts, [2, 1, 1, 0]);
}

#[test]
fn a_full_receive_buffer_drops_and_counts() {
    let (mut near, mut far) = pair(UdpConfig { receive_buffer: 250, ..UdpConfig::default() });
    for _ in 0..4 {
        let packet = datagram(&mut near, &[0; 100]);
        far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    }
    assert_eq!([counter(&far, "packets-received"), counter(&far, "receive-buffer-full")], [2, 2]);
}

#[test]
fn steady_exchange_keeps_its_buffers() {
    let (mut near, mut far) = pair(UdpConfig::default());
    let (mut packet, mut received) = (Vec::new(), Vec::new());
    let mut capacities = None;
    for round in 0..1000 {
        for _ in 0..3 {
            near.send(Time::ZERO, Message::new(&[7; 160])).unwrap();
        }
        while near.poll_transmit(Time::ZERO, &mut packet).is_some() {
            far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
        }
        received.clear();
        while far.receive(&mut received).is_some() {}
        assert_eq!(received.len(), 480);
        let now = (near.outgoing.capacity(), far.incoming.capacity());
        if round == 10 {
            capacities = Some(now);
        }
        assert!(round <= 10 || capacities == Some(now));
    }
}

#[test]
fn after_a_graceful_close_what_was_taken_is_sent() {
    let (mut near, _) = pair(UdpConfig::default());
    near.send(Time::ZERO, Message::new(b"last")).unwrap();
    near.close(Time::ZERO, Close::Graceful);
    assert_eq!(near.send(Time::ZERO, Message::new(b"more")), Err(SendError::Closed(CloseReason::Local)));
    assert_eq!(near.poll_event(), None);
    assert!(near.poll_transmit(Time::ZERO, &mut Vec::new()).is_some());
    assert_eq!(near.poll_event(), Some(Event::Closed(CloseReason::Local)));
    assert_eq!(near.poll_event(), None);
}

#[test]
fn for_a_socket_packets_are_payloads_and_as_large_on_the_network() {
    let config = UdpConfig { encapsulation: Encapsulation::UdpPayload, ..UdpConfig::default() };
    let (mut near, mut far) = pair(config);
    near.send(Time::ZERO, Message::new(b"payload")).unwrap();
    let mut packet = Vec::new();
    let transmit = near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    assert_eq!((packet.as_slice(), transmit.size), (b"payload".as_slice(), Bytes(35)));
    far.handle_packet(Time::ZERO, Address { host: 9, ..NEAR }, Ecn::NotCapable, &packet);
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    assert_eq!([counter(&far, "packets-received"), counter(&far, "strays")], [1, 1]);
}

#[test]
fn udp_lite_delivers_damage_that_it_does_not_cover_and_no_other() {
    let config = UdpConfig { variant: Variant::Lite { coverage: Some(3) }, ..UdpConfig::default() };
    let (mut near, mut far) = pair(config);
    assert_eq!(near.features(), &features::UDP_LITE_PARTIAL);
    let good = datagram(&mut near, b"payload");
    for bit in 0..good.len() * 8 {
        let mut packet = good.clone();
        packet[bit / 8] ^= 1 << (bit % 8);
        far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
        let mut message = Vec::new();
        let expected = (bit / 8 >= 8 + 3).then(|| packet[8..].to_vec());
        assert_eq!(far.receive(&mut message).map(|_| message), expected, "bit {bit}");
    }
    // Coverages that cannot be are malformed, whatever the checksum says.
    let counts = ["packets-received", "checksum-errors", "malformed"].map(|name| counter(&far, name));
    assert_eq!(counts.iter().sum::<u64>(), good.len() as u64 * 8);
    assert_eq!(counts[0], 4 * 8);
}

#[test]
fn udp_lite_counts_what_is_covered_too_little() {
    let end = |local, peer, coverage| {
        let variant = Variant::Lite { coverage: Some(coverage) };
        UdpEndpoint::new(local, peer, UdpConfig { variant, ..UdpConfig::default() })
    };
    let packet = datagram(&mut end(NEAR, FAR, 3), b"payload");
    let mut far = end(FAR, NEAR, 4);
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    assert_eq!([counter(&far, "packets-received"), counter(&far, "covered-too-little")], [0, 1]);
}

#[test]
fn a_datagram_to_a_group_reaches_its_members_and_each_answers_by_itself() {
    const GROUP: Address = Address { host: 9, port: FAR.port };
    const OTHER: Address = Address { host: 3, ..FAR };
    let mut near = UdpEndpoint::to_group(NEAR, GROUP, UdpConfig::default());
    let mut members =
        [FAR, OTHER].map(|at| (at, UdpEndpoint::in_group(at, GROUP, NEAR, UdpConfig::default())));
    let packet = datagram(&mut near, b"question");
    for (at, member) in &mut members {
        member.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
        let mut received = Vec::new();
        assert!(member.receive(&mut received).is_some());
        assert_eq!(received, b"question");
        let answer = datagram(member, b"answer");
        near.handle_packet(Time::ZERO, *at, Ecn::NotCapable, &answer);
        assert!(near.receive(&mut Vec::new()).is_some(), "from {at}");
    }
    // Outside the group, and from another than the one that sends there.
    let mut stranger = UdpEndpoint::new(FAR, NEAR, UdpConfig::default());
    stranger.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    assert_eq!(counter(&stranger, "checksum-errors"), 1);
    let packet = datagram(&mut UdpEndpoint::to_group(OTHER, GROUP, UdpConfig::default()), b"question");
    members[0].1.handle_packet(Time::ZERO, OTHER, Ecn::NotCapable, &packet);
    assert_eq!(counter(&members[0].1, "strays"), 1);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn one_flipped_bit_is_always_found(payload in prop::collection::vec(any::<u8>(), 0..100), bit: usize) {
        let (mut near, mut far) = pair(UdpConfig::default());
        let mut packet = datagram(&mut near, &payload);
        let bit = bit % (packet.len() * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
        prop_assert_eq!(far.receive(&mut Vec::new()), None);
    }

    #[test]
    fn no_packet_makes_it_panic(packet in prop::collection::vec(any::<u8>(), 0..40)) {
        for variant in [Variant::Udp, Variant::Lite { coverage: None }, Variant::Lite { coverage: Some(9) }] {
            let (_, mut far) = pair(UdpConfig { variant, ..UdpConfig::default() });
            far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
        }
    }

    #[test]
    fn messages_come_out_in_order_with_their_borders(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..30), burst in 1..8usize,
    ) {
        let (mut near, mut far) = pair(UdpConfig::default());
        let (mut packet, mut received) = (Vec::new(), Vec::new());
        for burst in payloads.chunks(burst) {
            for payload in burst {
                near.send(Time::ZERO, Message::new(payload)).unwrap();
            }
            while near.poll_transmit(Time::ZERO, &mut packet).is_some() {
                far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
            }
            for _ in 0..2 {
                let mut message = Vec::new();
                received.extend(far.receive(&mut message).map(|_| message));
            }
        }
        let mut message = Vec::new();
        while far.receive(&mut message).is_some() {
            received.push(core::mem::take(&mut message));
        }
        prop_assert_eq!(received, payloads);
    }
}

/// Sending and receiving at once is the same as with a store in between.
#[test]
fn at_once_is_the_same_as_one_after_the_other() {
    for variant in [Variant::Udp, Variant::Lite { coverage: Some(4) }] {
        let config = UdpConfig { variant, ecn: Ecn::Ect0, receive_buffer: 100, ..UdpConfig::default() };
        let ((mut near, mut far), (mut near_now, mut far_now)) = (pair(config), pair(config));
        for length in [0, 1, 80, 65_507, 65_508] {
            let message = vec![7; length];
            let (mut packet, mut packet_now) = (Vec::new(), vec![1, 2, 3]);
            let transmit = near
                .send(Time::ZERO, Message::new(&message))
                .map(|()| near.poll_transmit(Time::ZERO, &mut packet).unwrap());
            assert_eq!(near_now.send_now(Message::new(&message), &mut packet_now), Some(transmit));
            assert_eq!(packet, packet_now);
            for flipped in [None, Some(0), Some(4), Some(7)] {
                let mut packet = packet.clone();
                if let Some(byte) = flipped.and_then(|byte: usize| packet.get_mut(byte)) {
                    *byte ^= 1;
                }
                let mut received = Vec::new();
                far.handle_packet(Time::ZERO, NEAR, Ecn::Ect0, &packet);
                let read = far.receive(&mut received).map(|_| received);
                let range = far_now.receive_now(NEAR, &packet).unwrap();
                assert_eq!(range.map(|range| packet[range].to_vec()), read);
            }
        }
        for name in ["packets-sent", "packets-received", "checksum-errors", "malformed", "strays"] {
            assert_eq!(counter(&near, name), counter(&near_now, name), "{name}");
            assert_eq!(counter(&far, name), counter(&far_now, name), "{name}");
        }
        // Waiting datagrams come first.
        near_now.send(Time::ZERO, Message::new(b"x")).unwrap();
        assert_eq!(near_now.send_now(Message::new(b"y"), &mut Vec::new()), None);
        let packet = datagram(&mut near, b"x");
        far_now.handle_packet(Time::ZERO, NEAR, Ecn::Ect0, &packet);
        assert_eq!(far_now.receive_now(NEAR, &packet), None);
        near_now.close(Time::ZERO, Close::Abort);
        let closed = Err(SendError::Closed(CloseReason::Local));
        assert_eq!(near_now.send_now(Message::new(b"y"), &mut Vec::new()), Some(closed));
    }
}
