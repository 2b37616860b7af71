//! Damaged, random and contrived packets.

use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

/// The packets of a whole conversation, either way, and the ends at some moment of it.
fn conversation(stop: usize) -> (Vec<(bool, Vec<u8>)>, SctpEndpoint, SctpEndpoint) {
    let config = SctpConfig { reliability: Reliability::Retransmissions(1), ..SctpConfig::default() };
    let mut near = SctpEndpoint::connect(NEAR, FAR, &config, 1).unwrap();
    let mut far = SctpEndpoint::listen(FAR, &config, 2).unwrap();
    let (mut packets, mut packet, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    for round in 0..stop {
        now += Duration::from_millis(300);
        near.handle_timeout(now);
        far.handle_timeout(now);
        match round {
            1..8 => drop(near.send(now, Message::new(&[round as u8; 2000]))),
            8 => near.close(now, Close::Graceful),
            _ => {}
        }
        let mut lose = round % 3 == 2;
        while near.poll_transmit(now, &mut packet).is_some() {
            if !core::mem::take(&mut lose) {
                far.handle_packet(now, NEAR, Ecn::NotCapable, &packet);
            }
            packets.push((true, packet.clone()));
            while far.poll_transmit(now, &mut packet).is_some() {
                near.handle_packet(now, FAR, Ecn::NotCapable, &packet);
                packets.push((false, packet.clone()));
            }
        }
    }
    (packets, near, far)
}

/// Chunks with a header of the kind and length that they should have, or not.
fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..60);
    (prop_oneof![0..16u8, Just(64), Just(130), Just(192), any::<u8>()], any::<u8>(), bytes).prop_map(
        |(kind, flags, bytes)| {
            let mut chunk = vec![kind, flags, 0, bytes.len() as u8 + 4];
            chunk.extend_from_slice(&bytes);
            chunk.resize(chunk.len().next_multiple_of(4), 0);
            chunk
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn chunks_of_any_kind_leave_the_contract_whole(
        steps in prop::collection::vec((any::<u8>(), prop::collection::vec(chunk(), 0..3)), 0..30),
    ) {
        let step = |(what, chunks): (u8, Vec<Vec<u8>>)| {
            let chunks = chunks.concat();
            [&[what, chunks.len() as u8][..], &chunks].concat()
        };
        fuzz_sctp(&steps.into_iter().flat_map(step).collect::<Vec<u8>>());
    }

    #[test]
    fn damage_behind_the_checksum_never_makes_it_panic(
        stop in 0..14usize,
        hits in prop::collection::vec(
            (any::<usize>(), prop::collection::vec((any::<usize>(), any::<u8>()), 0..5), any::<usize>(), any::<bool>()),
            1..8,
        ),
    ) {
        let (packets, mut near, mut far) = conversation(stop);
        let now = Time::ZERO + Duration::from_secs(10);
        let mut buffer = Vec::new();
        for (which, damage, keep, cut) in hits {
            let Some((to_far, packet)) = packets.get(which % packets.len().max(1)) else { continue };
            let mut packet = packet.clone();
            for (at, value) in damage {
                // The ports and the tag stay: strangers are refused before all else.
                let at = 12 + at % (packet.len() - 12);
                packet[at] = value;
            }
            if cut {
                packet.truncate(16 + keep % (packet.len() - 15));
            }
            wire::seal(&mut packet);
            let (end, from) = if *to_far { (&mut far, NEAR) } else { (&mut near, FAR) };
            end.handle_packet(now, from, Ecn::NotCapable, &packet);
            while end.poll_transmit(now, &mut buffer).is_some() {}
            while end.poll_event().is_some() {}
            prop_assert!(end.next_timeout().is_none_or(|next| next > now));
            while end.receive(&mut buffer).is_some() {}
        }
        for end in [&mut near, &mut far] {
            end.handle_timeout(now + Duration::from_secs(100));
            while end.poll_transmit(now + Duration::from_secs(100), &mut buffer).is_some() {}
        }
    }

    #[test]
    fn random_packets_never_reach_anybody(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20), mend: bool,
    ) {
        let (_, mut near, mut far) = conversation(3);
        while near.poll_event().is_some() || far.poll_event().is_some() {}
        let mut buffer = Vec::new();
        while far.receive(&mut buffer).is_some() {}
        let now = Time::ZERO + Duration::from_secs(1);
        for mut packet in packets {
            if mend && packet.len() >= 16 {
                packet[..4].copy_from_slice(&[NEAR.port.to_be_bytes(), FAR.port.to_be_bytes()].concat());
                wire::seal(&mut packet);
            }
            far.handle_packet(now, NEAR, Ecn::NotCapable, &packet);
            while far.poll_transmit(now, &mut buffer).is_some() {}
            prop_assert_eq!(far.poll_event(), None);
            prop_assert_eq!(far.receive(&mut buffer), None);
        }
    }
}
