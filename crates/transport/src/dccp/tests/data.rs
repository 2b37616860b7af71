use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::super::seq::Seq;
use super::super::sequences::Sequences;
use super::*;
use crate::addressing::ipv4_of;

/// RFC 3390 counts data, not headers: three packets of Ethernet's size, four of 980 bytes.
#[test]
fn the_initial_window_counts_what_packets_carry() {
    for (max_packet, window) in [(1500, 3), (980, 4), (9000, 2)] {
        let mut wire = Wire::open(&DccpConfig { max_packet, ..DccpConfig::default() });
        for _ in 0..10 {
            wire.send(From::Near, b"message").unwrap();
        }
        assert_eq!(wire.packets(From::Near).len(), window, "packets of {max_packet} bytes");
    }
}

/// One message from near to far, as the packet that carries it.
fn packet_of(wire: &mut Wire, message: &[u8]) -> Vec<u8> {
    wire.send(From::Near, message).unwrap();
    let packets = wire.packets(From::Near);
    assert_eq!(packets.len(), 1);
    packets.into_iter().next().unwrap()
}

fn header_length(packet: &[u8]) -> usize {
    usize::from(packet[4]) * 4
}

#[test]
fn damage_outside_the_coverage_passes_and_inside_it_does_not() {
    let config = DccpConfig { checksum_coverage: 3, min_checksum_coverage: 3, ..DccpConfig::default() };
    for at in 0..20 {
        let mut wire = Wire::open(&config);
        let mut packet = packet_of(&mut wire, &[7; 20]);
        let start = header_length(&packet);
        packet[start + at] ^= 0x10;
        wire.carry(From::Near, &packet);
        let mut damaged = vec![7; 20];
        damaged[at] ^= 0x10;
        let expected = if at < 8 { Vec::new() } else { vec![damaged] };
        assert_eq!(wire.received(From::Far), expected, "byte {at}");
        assert_eq!(counter(&wire.far, "checksum-errors"), u64::from(at < 8));
    }
}

#[test]
fn the_data_checksum_finds_what_the_coverage_leaves_out() {
    let config = DccpConfig {
        checksum_coverage: 1,
        min_checksum_coverage: 1,
        data_checksum: true,
        ..DccpConfig::default()
    };
    let mut wire = Wire::open(&config);
    for _ in 0..10 {
        wire.send(From::Near, &[1; 50]).unwrap();
        wire.settle();
    }
    assert_eq!(wire.received(From::Far).len(), 10);
    let mut packet = packet_of(&mut wire, &[7; 20]);
    *packet.last_mut().unwrap() ^= 1;
    let before = wire.near.sender.packets_per_round_trip();
    wire.carry(From::Near, &packet);
    assert!(wire.received(From::Far).is_empty());
    assert_eq!(counter(&wire.far, "data-checksum-errors"), 1);
    // The packet was received and its data was not: the sender is told, and reacts as to a mark.
    let answer = wire.packets(From::Far);
    let options = read(&answer[0]).options;
    assert!(Options::new(options).any(|option| option == Opt::DataDropped(&[0x80 | 3 << 4])));
    wire.carry(From::Far, &answer[0]);
    assert_eq!(wire.near.sender.packets_per_round_trip(), before / 2);
}

/// In the payload of UDP, nothing else of DCCP covers the options.
#[test]
fn a_data_checksum_that_was_changed_into_another_option_is_missed() {
    let config =
        DccpConfig { encapsulation: Encapsulation::UdpPayload, data_checksum: true, ..DccpConfig::default() };
    let mut wire = Wire::open(&config);
    wire.send(From::Near, &[1; 50]).unwrap();
    wire.settle();
    assert_eq!(wire.received(From::Far).len(), 1);
    let mut packet = packet_of(&mut wire, &[7; 20]);
    let option = packet.windows(2).position(|two| two == [44, 6]).expect("it has a Data Checksum");
    packet[option] = 45;
    *packet.last_mut().unwrap() ^= 1;
    wire.carry(From::Near, &packet);
    assert!(wire.received(From::Far).is_empty());
    assert_eq!(counter(&wire.far, "data-checksum-errors"), 1);
}

#[test]
fn less_coverage_than_agreed_on_is_refused_and_reported() {
    let mut wire = Wire::open(&DccpConfig::default());
    let packet = packet_of(&mut wire, &[7; 20]);
    let whole = read(&packet);
    let mut partial = Vec::new();
    let header = Header { coverage: 2, ..whole.header };
    encode(&header, whole.options, whole.data, PSEUDO_HEADER, &mut partial);
    wire.carry(From::Near, &partial);
    assert!(wire.received(From::Far).is_empty());
    assert_eq!(counter(&wire.far, "coverage-refused"), 1);
    let answer = wire.packets(From::Far);
    let options = read(&answer[0]).options;
    assert!(Options::new(options).any(|option| option == Opt::DataDropped(&[0x80])));
}

#[test]
fn a_full_receive_buffer_is_reported_and_slows_the_sender() {
    let config = DccpConfig { receive_buffer: 1000, ..DccpConfig::default() };
    let mut wire = Wire::open(&config);
    for _ in 0..3 {
        wire.send(From::Near, &[1; 300]).unwrap();
        wire.settle();
    }
    wire.wait(Duration::from_millis(300));
    let slow = packet_of(&mut wire, &[1; 300]);
    wire.carry(From::Near, &slow);
    let mut answers = wire.packets(From::Far);
    let has = |packets: &[Vec<u8>], option: &Opt<'_>| {
        packets.iter().any(|packet| Options::new(read(packet).options).any(|other| other == *option))
    };
    assert!(has(&answers, &Opt::SlowReceiver));
    assert!(has(&answers, &Opt::DataDropped(&[0x80 | 2 << 4])));
    assert_eq!(counter(&wire.far, "receive-buffer-full"), 1);
    let before = wire.near.sender.packets_per_round_trip();
    for packet in answers.drain(..) {
        wire.carry(From::Far, &packet);
    }
    assert_eq!(wire.near.sender.packets_per_round_trip(), before - 1);
}

#[test]
fn marks_count_as_losses_and_need_both_ends() {
    for (ecn, sent) in [(true, Ecn::Ect0), (false, Ecn::NotCapable)] {
        let mut wire = Wire::open(&DccpConfig { ecn, ..DccpConfig::default() });
        wire.send(From::Near, b"x").unwrap();
        let mut packet = Vec::new();
        let transmit = wire.near.poll_transmit(wire.now, &mut packet).unwrap();
        assert_eq!(transmit.ecn, sent);
        if ecn {
            let before = wire.near.sender.packets_per_round_trip();
            wire.now += Duration::from_millis(10);
            wire.far.handle_packet(wire.now, NEAR, Ecn::CongestionExperienced, &packet);
            let received = wire.far.receive(&mut Vec::new()).unwrap();
            assert_eq!(received, Received { length: 1, ecn: Ecn::CongestionExperienced });
            wire.settle();
            assert_eq!(wire.near.sender.packets_per_round_trip(), before / 2);
            assert_eq!(counter(&wire.far, "congestion-marks"), 1);
        }
    }
}

#[test]
fn a_burst_of_loss_beyond_the_window_is_recovered_from() {
    for ccid in Ccid::ALL {
        let config = DccpConfig { ccid, sequence_window: 32, lifetime: None, ..DccpConfig::default() };
        let mut wire = Wire::open(&config);
        // So many packets vanish that the next one is beyond the window.
        for _ in 0..60 {
            wire.near.sequences.advance();
            wire.near.sent.push(wire.now, false, 0);
        }
        wire.send(From::Near, b"one").unwrap();
        wire.wait(Duration::from_secs(3));
        assert_eq!(counter(&wire.far, "sequence-invalid"), 1, "{ccid:?}");
        assert_eq!(counter(&wire.far, "syncs-sent"), 1, "{ccid:?}");
        wire.send(From::Near, b"two").unwrap();
        wire.wait(Duration::from_secs(3));
        assert_eq!(wire.received(From::Far), [b"two"], "{ccid:?}");
    }
}

#[test]
fn short_numbers_wrap() {
    let config = DccpConfig { short_sequence_numbers: true, ..DccpConfig::default() };
    let mut wire = Wire::new(&config);
    let first = Seq::new(0xABCD_EFFF_FFF0);
    wire.near.sequences = Sequences::new(first);
    wire.near.sent = Sent::new(first);
    wire.settle();
    for n in 0..100u8 {
        wire.send(From::Near, &[n]).unwrap();
        let packets = wire.packets(From::Near);
        assert!(!read(&packets[0]).header.long);
        for packet in packets {
            wire.carry(From::Near, &packet);
        }
        wire.wait(Duration::from_millis(250));
    }
    assert_eq!(wire.received(From::Far), (0..100).map(|n| vec![n]).collect::<Vec<_>>());
    assert!(wire.near.sequences.gss.value() > 0xABCD_F000_0000);
}

#[test]
fn a_one_way_flow_keeps_its_ack_vectors_short() {
    let mut wire = Wire::open(&DccpConfig::default());
    let mut longest = 0;
    for n in 0..2000 {
        // As much as congestion control lets out, and no more.
        let _ = wire.send(From::Near, &[1; 100]);
        // Every seventh packet is lost, so that vectors have many runs.
        for (at, packet) in wire.packets(From::Near).into_iter().enumerate() {
            if (n + at) % 7 != 3 {
                wire.carry(From::Near, &packet);
            }
        }
        wire.now += Duration::from_millis(10);
        for packet in wire.packets(From::Far) {
            longest = longest.max(read(&packet).options.len());
            wire.carry(From::Far, &packet);
        }
        let now = wire.now;
        wire.near.handle_timeout(now);
        wire.far.handle_timeout(now);
        wire.received(From::Far);
    }
    assert!((8..60).contains(&longest), "{longest} bytes of options");
}

#[test]
fn packets_are_as_large_as_they_say_and_no_larger_than_the_path_allows() {
    for (encapsulation, beside) in
        [(Encapsulation::Ip, 20), (Encapsulation::Udp, 20), (Encapsulation::UdpPayload, 28)]
    {
        let config = DccpConfig { encapsulation, data_checksum: true, ..DccpConfig::default() };
        let mut wire = Wire::open(&config);
        let limit = wire.near.max_message();
        for _ in 0..30 {
            wire.send(From::Near, &vec![1; limit]).unwrap();
            wire.send(From::Far, &vec![2; limit]).unwrap();
        }
        let mut largest = 0;
        for _ in 0..200 {
            wire.now += Duration::from_millis(10);
            let now = wire.now;
            for from in [From::Near, From::Far] {
                let mut packets = Vec::new();
                drain(wire.end(from), now, &mut Vec::new(), |transmit, bytes| {
                    assert_eq!(transmit.size.count(), bytes.len() as u64 + beside);
                    largest = largest.max(transmit.size.count());
                    packets.push(bytes.clone());
                });
                for packet in packets {
                    wire.carry(from, &packet);
                }
                wire.end(from).handle_timeout(now);
            }
        }
        assert_eq!([wire.received(From::Near).len(), wire.received(From::Far).len()], [30; 2]);
        assert!((1484..=1500).contains(&largest), "{encapsulation:?}: {largest}");
        let too_large = wire.send(From::Near, &vec![1; limit + 1]);
        assert_eq!(too_large, Err(SendError::TooLarge { limit }));
    }
}

#[test]
fn timestamps_are_echoed_with_the_time_that_has_passed() {
    let mut wire = Wire::open(&DccpConfig::default());
    let packet = packet_of(&mut wire, b"x");
    let whole = read(&packet);
    let mut options = whole.options.to_vec();
    Opt::Timestamp(12_345).write(&mut options);
    let mut stamped = Vec::new();
    encode(&whole.header, &options, whole.data, PSEUDO_HEADER, &mut stamped);
    wire.carry(From::Near, &stamped);
    wire.now += Duration::from_millis(3);
    wire.send(From::Far, b"y").unwrap();
    let answer = wire.packets(From::Far);
    let echo = Opt::TimestampEcho { echo: 12_345, elapsed: 300 };
    let found = answer.iter().flat_map(|packet| Options::new(read(packet).options));
    assert_eq!(found.filter(|option| *option == echo).count(), 1);
}

#[test]
fn strangers_are_strays() {
    let mut wire = Wire::open(&DccpConfig::default());
    let packet = packet_of(&mut wire, b"x");
    let whole = read(&packet);
    let stranger = Address { host: 2, port: NEAR.port };
    let mut forged = Vec::new();
    let addresses = [stranger, FAR].map(|end| ipv4_of(end.host).into());
    encode(&whole.header, whole.options, whole.data, Some(addresses), &mut forged);
    let now = wire.now;
    wire.far.handle_packet(now, stranger, Ecn::NotCapable, &forged);
    let mut elsewhere = Vec::new();
    let header = Header { destination: 9, ..whole.header };
    encode(&header, whole.options, whole.data, PSEUDO_HEADER, &mut elsewhere);
    wire.carry(From::Near, &elsewhere);
    assert_eq!(counter(&wire.far, "strays"), 2);
    assert!(wire.received(From::Far).is_empty());
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn forged_packets_change_nothing(
        kind in 0u8..10, ahead in 1000u64..1 << 47, ack_ahead in 1u64..1 << 47, code: u8, right_ack: bool,
    ) {
        let mut wire = Wire::open(&DccpConfig { sequence_window: 100, ..DccpConfig::default() });
        for _ in 0..5 {
            wire.send(From::Near, b"real").unwrap();
            wire.settle();
        }
        wire.received(From::Far);
        wire.events(From::Far);
        // The attacker knows the ports, and guesses numbers outside of the windows.
        let sequence = wire.far.sequences.gsr.plus(ahead).value();
        let gss = wire.far.sequences.gss;
        let ack = if right_ack { gss } else { gss.plus(ack_ahead) }.value();
        let data = [0; 3];
        let body = match kind {
            0 => Body::Request { service: 0 },
            1 => Body::Response { ack, service: 0 },
            2 => Body::Data,
            3 => Body::Ack { ack },
            4 => Body::DataAck { ack },
            5 => Body::CloseReq { ack },
            6 => Body::Close { ack },
            7 => Body::Reset { ack, code, data },
            8 => Body::Sync { ack },
            _ => Body::SyncAck { ack },
        };
        let header =
            Header { source: NEAR.port, destination: FAR.port, ccval: 0, coverage: 0, long: true, sequence, body };
        let mut forged = Vec::new();
        encode(&header, &[], b"forged", PSEUDO_HEADER, &mut forged);
        let gsr = wire.far.sequences.gsr;
        wire.carry(From::Near, &forged);
        prop_assert_eq!(wire.far.sequences.gsr, gsr);
        prop_assert_eq!(counter(&wire.far, "sequence-invalid"), 1);
        prop_assert!(wire.received(From::Far).is_empty() && wire.events(From::Far).is_empty());
        wire.settle();
        wire.send(From::Near, b"real").unwrap();
        wire.settle();
        prop_assert_eq!(wire.received(From::Far), [b"real"]);
    }
}
