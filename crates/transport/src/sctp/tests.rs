use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

const NEAR: Address = Address { host: 0, port: 40_001 };
const FAR: Address = Address { host: 1, port: 40_002 };

/// Gives each end what the other sends, until neither has anything to say; loses what `keep` does not want.
fn exchange(now: Time, ends: &mut [SctpEndpoint; 2], mut keep: impl FnMut(usize, &[u8]) -> bool) {
    let mut packet = Vec::new();
    let mut is_idle = false;
    while !core::mem::replace(&mut is_idle, true) {
        for side in 0..2 {
            ends[side].handle_timeout(now);
            while ends[side].poll_transmit(now, &mut packet).is_some() {
                is_idle = false;
                if keep(side, &packet) {
                    ends[1 - side].handle_packet(now, [NEAR, FAR][side], Ecn::NotCapable, &packet);
                }
            }
        }
    }
}

fn ends(config: &SctpConfig) -> [SctpEndpoint; 2] {
    [SctpEndpoint::connect(NEAR, FAR, config, 1), SctpEndpoint::listen(FAR, config, 2)].map(Result::unwrap)
}

fn events(end: &mut SctpEndpoint) -> Vec<Event> {
    core::iter::from_fn(|| end.poll_event()).collect()
}

fn first_kind(packet: &[u8]) -> u8 {
    Header::verify(packet).unwrap().1.next().unwrap().kind
}

#[test]
fn who_connect_to_each_other_at_once_share_one_association() {
    let config = SctpConfig::default();
    let mut ends =
        [SctpEndpoint::connect(NEAR, FAR, &config, 1), SctpEndpoint::connect(FAR, NEAR, &config, 2)]
            .map(Result::unwrap);
    exchange(Time::ZERO, &mut ends, |_, _| true);
    assert_eq!((ends[0].tag, ends[0].peer_tag), (ends[1].peer_tag, ends[1].tag));
    for end in &mut ends {
        assert_eq!(events(end), [Event::Connected]);
    }
    for side in 0..2 {
        ends[side].send(Time::ZERO, Message::new(b"hello")).unwrap();
        exchange(Time::ZERO, &mut ends, |_, _| true);
        let mut received = Vec::new();
        assert!(ends[1 - side].receive(&mut received).is_some() && received == b"hello");
    }
}

#[test]
fn a_peer_that_begins_anew_ends_what_was_there_and_is_told_so() {
    let config = SctpConfig::default();
    let [near, far] = ends(&config);
    let mut ends = [near, far];
    exchange(Time::ZERO, &mut ends, |_, _| true);
    let [_, far] = ends;
    let mut ends = [SctpEndpoint::connect(NEAR, FAR, &config, 3).unwrap(), far];
    exchange(Time::ZERO, &mut ends, |_, _| true);
    assert_eq!(events(&mut ends[1]), [Event::Connected, Event::Closed(CloseReason::Reset)]);
    assert_eq!(events(&mut ends[0]), [Event::Closed(CloseReason::Reset)]);
}

#[test]
fn a_cookie_that_has_become_stale_is_asked_for_again() {
    let mut ends = ends(&SctpConfig { timeout: None, ..SctpConfig::default() });
    exchange(Time::ZERO, &mut ends, |_, packet| first_kind(packet) != kind::COOKIE_ECHO);
    let mut kinds = Vec::new();
    exchange(Time::ZERO + Duration::from_secs(62), &mut ends, |_, packet| {
        kinds.push(first_kind(packet));
        true
    });
    use kind::*;
    assert_eq!(kinds, [COOKIE_ECHO, ERROR, INIT, INIT_ACK, COOKIE_ECHO, COOKIE_ACK]);
    assert_eq!(events(&mut ends[0]), [Event::Connected]);
}

#[test]
fn more_may_be_given_up_at_once_than_one_packet_can_tell() {
    let reliability = Reliability::Retransmissions(0);
    let config = SctpConfig { streams: 700, reliability, max_packet: 576, ..SctpConfig::default() };
    let mut ends = ends(&config);
    let mut now = Time::ZERO;
    exchange(now, &mut ends, |_, _| true);
    // On every stream one message that is lost, then one that arrives.
    for (count, arrives) in [(700, false), (700, true)] {
        let mut sent = 0;
        while sent < count || !ends[0].sender.is_empty() {
            now += Duration::from_millis(1000);
            while sent < count && ends[0].send(now, Message::new(&[1; 3])).is_ok() {
                sent += 1;
            }
            exchange(now, &mut ends, |_, packet| arrives || first_kind(packet) != kind::DATA);
        }
    }
    let mut received = Vec::new();
    assert_eq!(core::iter::from_fn(|| ends[1].receive(&mut received)).count(), 700);
    assert_eq!(ends[0].sender.given_up, 700);
}

#[test]
fn what_the_peer_throws_away_again_is_sent_again() {
    let config = SctpConfig::default();
    let mut sender = Sender::new(&config, 1);
    sender.agree(100_000, 1, true);
    for n in 0..3 {
        sender.push(Time::ZERO, &[n; 100]);
    }
    let tsns = |sender: &mut Sender, now| {
        let mut packet = Vec::new();
        wire::begin(&mut packet, 1, 2, 3);
        sender.write(now, &mut packet);
        wire::seal(&mut packet);
        let chunks = Header::verify(&packet).map(|(_, chunks)| chunks);
        chunks.into_iter().flatten().filter_map(|chunk| wire::u32_at(chunk.value, 0)).collect::<Vec<_>>()
    };
    let now = Time::ZERO;
    assert_eq!(tsns(&mut sender, now), [1, 2, 3]);
    sender.acknowledge(now, 1, Some(100_000), &[0, 2, 0, 2]);
    assert_eq!(tsns(&mut sender, now), []);
    sender.acknowledge(now, 1, Some(100_000), &[]);
    assert_eq!(tsns(&mut sender, now), [3]);
    sender.acknowledge(now, 3, Some(100_000), &[]);
    assert!(sender.is_empty() && sender.timer().is_none());
    // What was never sent cannot be acknowledged.
    sender.acknowledge(now, 9, Some(100_000), &[]);
    assert_eq!(sender.acknowledged(), 3);
}

#[test]
fn a_shutdown_acknowledges_what_it_says() {
    let (now, ecn, config) = (Time::ZERO, Ecn::NotCapable, SctpConfig::default());
    let [mut near, mut far] = ends(&config);
    let (mut packet, mut tag) = (Vec::new(), 0);
    while near.poll_transmit(now, &mut packet).is_some() {
        far.handle_packet(now, NEAR, ecn, &packet);
        while far.poll_transmit(now, &mut packet).is_some() {
            tag = Header::verify(&packet).unwrap().0.tag;
            near.handle_packet(now, FAR, ecn, &packet);
        }
    }
    near.send(now, Message::new(b"the last one")).unwrap();
    near.poll_transmit(now, &mut packet).unwrap();
    let last = Header::verify(&packet).unwrap().1.last().unwrap();
    assert_eq!(last.kind, kind::DATA);
    let shutdown = wire::Chunk { kind: kind::SHUTDOWN, flags: 0, value: &last.value[..4] };
    near.handle_packet(now, FAR, ecn, &wire::packet(FAR.port, NEAR.port, tag, shutdown));
    near.poll_transmit(now, &mut packet).unwrap();
    assert_eq!(Header::verify(&packet).unwrap().1.next().unwrap().kind, kind::SHUTDOWN_ACK);
}

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
