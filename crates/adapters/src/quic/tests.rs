use trunkline_core::{Address, Duration, Ecn, Rate, Seed, Time};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::{Close, CloseReason, Conversation as _, Endpoint, Event, Message, SendError};

use super::*;

const CASES: usize = 200;

fn identity(number: u8) -> Identity {
    Identity::new([number; 32]).unwrap()
}

fn ends(near: &QuicConfig, far: &QuicConfig, trusted: u8) -> [Box<dyn Endpoint>; 2] {
    let fingerprint = identity(trusted).fingerprint();
    let near = QuicEndpoint::connect(NEAR, FAR, near, fingerprint, 1).unwrap();
    let far = QuicEndpoint::listen(FAR, far, &identity(1), 2).unwrap();
    [Box::new(near), Box::new(far)]
}

fn clean() -> Path {
    Path::with_latency(Duration::from_millis(10))
}

fn pair_of([near, far]: [Box<dyn Endpoint>; 2]) -> Pair {
    Pair::new(near, far, [clean(), clean()], Seed::new(1, 0))
}

fn connected(config: &QuicConfig) -> Pair {
    let mut pair = pair_of(ends(config, config, 1));
    pair.drive();
    for side in Side::BOTH {
        assert_eq!(pair.events(side), [Event::Connected]);
    }
    pair
}

/// Packets without UDP headers, so that the engine itself meets what is done to them.
fn bare(mode: Mode) -> QuicConfig {
    QuicConfig { encapsulation: Encapsulation::UdpPayload, ..with_mode(mode) }
}

fn with_mode(mode: Mode) -> QuicConfig {
    QuicConfig { mode, ..QuicConfig::default() }
}

#[test]
fn every_identity_has_the_same_size_and_its_own_fingerprint() {
    let all: Vec<Identity> = (0..=255).map(identity).collect();
    assert!(all.iter().all(|other| other.certificate().len() == all[0].certificate().len()));
    let fingerprints: std::collections::BTreeSet<_> = all.iter().map(Identity::fingerprint).collect();
    assert_eq!(fingerprints.len(), all.len());
    assert_eq!(identity(3).fingerprint(), identity(3).fingerprint());
}

#[test]
fn another_certificate_is_not_trusted() {
    let config = QuicConfig::default();
    let mut pair = pair_of(ends(&config, &config, 2));
    pair.drive();
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::Untrusted)]);
    assert_eq!(pair.send(Side::Near, b"?"), Err(SendError::Closed(CloseReason::Untrusted)));
    // The other end goes on waiting.
    assert_eq!(pair.events(Side::Far), []);
}

#[test]
fn ends_of_different_modes_do_not_talk() {
    let mut pair = pair_of(ends(&with_mode(Mode::Datagrams), &with_mode(Mode::Stream), 1));
    pair.drive();
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::Reset)]);
    assert_eq!(pair.events(Side::Far), []);
}

#[test]
fn a_listening_end_outlives_a_peer_who_gives_up_connecting() {
    let config = QuicConfig::default();
    let [_, mut far] = ends(&config, &config, 1);
    let mut lost = QuicEndpoint::connect(NEAR, FAR, &config, identity(1).fingerprint(), 9).unwrap();
    let mut packet = Vec::new();
    lost.poll_transmit(Time::ZERO, &mut packet).unwrap();
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    // It answers, and nobody answers it.
    let mut now = Time::ZERO;
    let mut answers = 0;
    for _ in 0..1000 {
        while far.poll_transmit(now, &mut packet).is_some() {
            answers += 1;
        }
        assert_eq!(far.poll_event(), None);
        let Some(next) = far.next_timeout() else { break };
        now = next;
        far.handle_timeout(now);
    }
    assert!(answers > 1, "{answers}");
    assert_eq!(far.next_timeout(), None, "it never gives up");
    // Somebody else comes.
    let [near, _] = ends(&config, &config, 1);
    let mut pair = Pair::new(
        Box::new(Later { endpoint: near, by: now }),
        Box::new(Later { endpoint: far, by: now }),
        [clean(), clean()],
        Seed::new(1, 0),
    );
    pair.drive();
    assert_eq!(pair.events(Side::Near), [Event::Connected]);
    assert_eq!(pair.events(Side::Far), [Event::Connected]);
}

#[test]
fn a_peer_that_does_not_answer_is_named_with_the_time_waited() {
    let config = QuicConfig { timeout: Some(Duration::from_secs(7)), ..QuicConfig::default() };
    let [near, far] = ends(&config, &config, 1);
    let cut = Path { cut: Some(Time::ZERO), ..clean() };
    let mut pair = Pair::new(near, far, [cut, clean()], Seed::new(1, 0));
    pair.drive();
    let timed_out = CloseReason::TimedOut(Duration::from_secs(7));
    assert_eq!(pair.events(Side::Near), [Event::Closed(timed_out)]);
    assert_eq!(pair.now(), Time::ZERO + Duration::from_secs(7));
    assert_eq!(pair.send(Side::Near, b"?"), Err(SendError::Closed(timed_out)));
}

/// RFC 9002 section 6.2: three times the first round trip of 333 ms, doubled with each silence; here for no longer than a minute.
#[test]
fn probes_are_the_engine_s_up_to_a_minute_apart() {
    let config = QuicConfig { timeout: None, ..QuicConfig::default() };
    let [mut near, _] = ends(&config, &config, 1);
    let (mut now, mut packet, mut sent) = (Time::ZERO, Vec::new(), Vec::new());
    while sent.len() < 10 {
        if near.poll_transmit(now, &mut packet).is_some() {
            sent.push(now.as_secs_f64().round() as u32);
            while near.poll_transmit(now, &mut packet).is_some() {}
        }
        now = near.next_timeout().unwrap();
        near.handle_timeout(now);
    }
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
}

/// RFC 9002 section 7.2: ten packets, and no more than the larger of 14,720 bytes and two packets.
#[test]
fn the_initial_window_is_that_of_rfc_9002() {
    for (mtu, window) in [(1228, 12_000), (1500, 14_720), (9000, 17_944)] {
        assert_eq!(QuicConfig { mtu, ..QuicConfig::default() }.initial_window(), window, "{mtu} bytes");
    }
}

#[test]
fn a_path_that_was_cut_for_a_day_is_used_a_minute_after_it_is_mended() {
    let day = Duration::from_secs(24 * 3600);
    for mode in [Mode::Stream, Mode::Streams] {
        let mut pair = connected(&QuicConfig { timeout: None, ..with_mode(mode) });
        pair.path(Side::Near).cut = Some(Time::ZERO);
        assert_eq!(pair.send(Side::Near, b"still there?"), Ok(()));
        pair.drive_for(day);
        assert!(pair.receive_all(Side::Far).is_empty());
        *pair.path(Side::Near) = clean();
        pair.drive_for(Duration::from_secs(61));
        assert_eq!(pair.receive_all(Side::Far), [b"still there?"], "{mode:?}");
    }
}

/// Sends until the peer's window is full, and everything is acknowledged.
fn fill_up(pair: &mut Pair) {
    loop {
        while pair.send(Side::Near, &[1; 500]) == Ok(()) {}
        pair.drive_for(Duration::from_secs(5));
        if !pair.take_event(Side::Near, Event::Writable) {
            return;
        }
    }
}

#[test]
fn a_sender_that_waits_for_room_notices_that_its_peer_is_gone() {
    let config = QuicConfig { window: 1000, send_buffer: 1000, ..QuicConfig::default() };
    let mut pair = connected(&config);
    fill_up(&mut pair);
    for side in Side::BOTH {
        pair.path(side).cut = Some(Time::ZERO);
    }
    pair.drive();
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::TimedOut(Duration::from_secs(30)))]);
}

#[test]
fn a_sender_that_waits_for_room_is_patient_while_its_peer_is_there() {
    let config = QuicConfig { window: 1000, send_buffer: 1000, ..QuicConfig::default() };
    let mut pair = connected(&config);
    fill_up(&mut pair);
    let sent = pair.path_counters(Side::Near).sent;
    pair.drive_for(Duration::from_secs(3600));
    assert_eq!(pair.events(Side::Near), []);
    let asked = pair.path_counters(Side::Near).sent - sent;
    assert!((200..600).contains(&asked), "{asked} packets in an hour, asking every 15 s");
}

#[test]
fn the_limit_of_a_datagram_is_what_a_packet_holds() {
    for mtu in [1228, 1500, 9000] {
        let mut pair = connected(&QuicConfig { mtu, ..with_mode(Mode::Datagrams) });
        let limit = mtu - HEADERS - DATAGRAM_OVERHEAD;
        assert_eq!(pair.send(Side::Near, &vec![0; limit + 1]), Err(SendError::TooLarge { limit }));
        let before = pair.path_counters(Side::Near);
        assert_eq!(pair.send(Side::Near, &vec![0; limit]), Ok(()));
        let after = pair.path_counters(Side::Near);
        assert_eq!(after.sent - before.sent, 1);
        let size = (after.bytes - before.bytes) as usize;
        assert!(size <= mtu && size + 10 > mtu, "{size} of {mtu}");
    }
}

#[test]
fn datagrams_beyond_the_receive_buffer_are_dropped_and_counted() {
    let mut pair = connected(&QuicConfig { window: 3500, ..with_mode(Mode::Datagrams) });
    for number in 0..10 {
        assert_eq!(pair.send(Side::Near, &[number; 1000]), Ok(()));
    }
    pair.drive();
    let received = pair.receive_all(Side::Far);
    assert_eq!(received, [[0; 1000], [1; 1000], [2; 1000]]);
    assert_eq!(pair.counter(Side::Far, "receive-buffer-full"), 7);
}

#[test]
fn a_lost_packet_delays_no_other_message_on_streams_of_their_own() {
    let mut pair = connected(&with_mode(Mode::Streams));
    let next = pair.path_counters(Side::Near).sent;
    pair.path(Side::Near).drop = vec![next];
    for number in 0..4 {
        assert_eq!(pair.send(Side::Near, &[number; 1300]), Ok(()));
    }
    pair.drive_for(Duration::from_millis(15));
    assert_eq!(pair.receive_all(Side::Far), [[1; 1300], [2; 1300], [3; 1300]]);
    pair.drive();
    assert_eq!(pair.receive_all(Side::Far), [[0; 1300]]);
}

#[test]
fn a_message_larger_than_the_window_arrives_whole() {
    let mut pair = connected(&QuicConfig { window: 2000, ..with_mode(Mode::Streams) });
    let message: Vec<u8> = (0..100_000u32).map(|n| (n / 7) as u8).collect();
    assert_eq!(pair.send(Side::Near, &message), Ok(()));
    pair.drive();
    assert_eq!(pair.receive_all(Side::Far), [message]);
}

#[test]
fn after_both_have_closed_nothing_runs_any_more() {
    for mode in Mode::ALL {
        let mut pair = connected(&with_mode(mode));
        for side in Side::BOTH {
            assert_eq!(pair.send(side, b"bye"), Ok(()));
            pair.close(side, Close::Graceful);
        }
        while pair.step_until(Time::MAX) {
            let _ = [pair.receive_all(Side::Near), pair.receive_all(Side::Far)];
        }
        for side in Side::BOTH {
            let closed: Vec<_> =
                pair.events(side).into_iter().filter(|event| matches!(event, Event::Closed(_))).collect();
            assert_eq!(closed, [Event::Closed(CloseReason::Local)], "{mode:?} {side:?}");
        }
        assert!(pair.now() < Time::ZERO + Duration::from_secs(10), "{mode:?}: still at it at {}", pair.now());
    }
}

#[test]
fn marks_slow_it_down() {
    let config = QuicConfig { send_buffer: 1 << 20, window: 1 << 20, ..QuicConfig::default() };
    let [mut near, mut far] = ends(&config, &config, 1);
    let (mut now, mut packet) = (Time::ZERO, Vec::new());
    let mut marked = 0;
    for _ in 0..2000 {
        now += Duration::from_millis(1);
        let _ = near.send(now, Message::new(&[0; 10_000]));
        near.handle_timeout(now);
        far.handle_timeout(now);
        while let Some(transmit) = near.poll_transmit(now, &mut packet) {
            let capable = transmit.ecn == Ecn::Ect0;
            marked += u32::from(capable);
            let ecn = if capable { Ecn::CongestionExperienced } else { transmit.ecn };
            far.handle_packet(now, NEAR, ecn, &packet);
        }
        while let Some(transmit) = far.poll_transmit(now, &mut packet) {
            near.handle_packet(now, FAR, transmit.ecn, &packet);
        }
        let mut received = Vec::new();
        far.receive(&mut received);
    }
    let mut counters = std::collections::BTreeMap::new();
    near.counters(&mut |name, count| {
        counters.insert(name, count);
    });
    assert!(marked > 100, "{marked} packets were capable");
    assert!(counters["congestion-events"] > 10 && counters["packets-lost"] == 0, "{counters:?}");
}

/// Whatever comes, to an end in whatever state: no panic, nothing for the application.
#[test]
fn packets_that_are_cut_short_repeated_or_made_up_change_nothing() {
    for mode in Mode::ALL {
        let mut pair = connected(&bare(mode));
        let mut stream = Seed::new(3, 0).stream("packets");
        let [mut near, mut far] = ends(&bare(mode), &bare(mode), 1);
        let mut packets = Vec::new();
        let mut packet = Vec::new();
        for _ in 0..4 {
            while near.poll_transmit(Time::ZERO, &mut packet).is_some() {
                packets.push(packet.clone());
                far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
            }
            while far.poll_transmit(Time::ZERO, &mut packet).is_some() {
                packets.push(packet.clone());
                near.handle_packet(Time::ZERO, FAR, Ecn::NotCapable, &packet);
            }
        }
        assert!(packets.len() > 3);
        let [_, mut listening] = ends(&bare(mode), &bare(mode), 1);
        for _ in 0..2000 {
            let mut packet = packets[stream.below(packets.len() as u64) as usize].clone();
            match stream.below(3) {
                0 => packet.truncate(stream.below(packet.len() as u64 + 1) as usize),
                1 => {
                    for _ in 0..1 + stream.below(8) {
                        let at = stream.below(packet.len() as u64) as usize;
                        packet[at] = stream.bits() as u8;
                    }
                }
                _ => {}
            }
            for side in Side::BOTH {
                pair.inject(side, &packet);
            }
            listening.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
            while listening.poll_transmit(Time::ZERO, &mut packet).is_some() {}
            assert_eq!(listening.poll_event(), None);
        }
        for side in Side::BOTH {
            assert_eq!(pair.events(side), [], "{mode:?}");
            assert!(pair.receive_all(side).is_empty(), "{mode:?}");
        }
        assert_eq!(pair.send(Side::Near, b"still there"), Ok(()));
        pair.drive();
        assert_eq!(pair.receive_all(Side::Far), [b"still there"]);
    }
}

/// The fuzz target on what it would take libFuzzer long to find: conversations with a fault here and there.
#[test]
fn faults_at_any_moment_break_nothing() {
    let mut stream = Seed::new(4, 0).stream("operations");
    for _ in 0..CASES {
        let mut operations = vec![stream.bits() as u8];
        while operations.len() < 200 {
            let end = (stream.bits() as u8) & 0x80;
            // Mostly packets that arrive, messages and time.
            let operation = match stream.below(16) {
                0..8 => 0,
                8..11 => 6,
                11..13 => 7,
                _ => 1 + stream.below(5) as u8,
            };
            operations.push(end | operation);
            let arguments = [0, 0, 0, 3, 1, 4, 1, 1][usize::from(operation)];
            operations
                .extend((0..arguments).map(|_| stream.bits() as u8 & if operation == 5 { 3 } else { 0xFF }));
        }
        fuzz_quic(&operations);
    }
}

#[test]
fn what_is_out_of_range_is_refused_with_what_is_possible() {
    let refused = |config: QuicConfig| {
        QuicEndpoint::listen(FAR, &config, &identity(1), 1).map(drop).unwrap_err().to_string()
    };
    let config = QuicConfig::default();
    assert_eq!(
        refused(QuicConfig { mtu: 1200, ..config.clone() }),
        "QUIC's largest packet is 1200 bytes; expected 1228 to 16384"
    );
    assert_eq!(
        refused(QuicConfig { window: 0, ..config.clone() }),
        "QUIC's receive window is 0 bytes; expected 1 to 1073741824"
    );
    let nowhere = Address { host: 1, port: 0 };
    let connecting = QuicEndpoint::connect(NEAR, nowhere, &config, identity(1).fingerprint(), 1);
    assert_eq!(connecting.map(drop).unwrap_err(), QuicConfigError::Port);
    assert_eq!(
        "bbr".parse::<CongestionControl>().unwrap_err().to_string(),
        "congestion control `bbr` is not known to QUIC; expected `cubic` or `new-reno`"
    );
    assert_eq!("stream".parse(), Ok(Mode::Stream));
}

#[test]
fn a_bottleneck_is_used_to_the_full() {
    for congestion_control in CongestionControl::ALL {
        let config =
            QuicConfig { congestion_control, window: 1 << 20, send_buffer: 1 << 20, ..QuicConfig::default() };
        let mut pair = connected(&config);
        pair.path(Side::Near).rate = Some(Rate::from_bits_per_second(8_000_000));
        let begin = pair.now();
        let message = vec![5; 3_000_000];
        assert_eq!(pair.send(Side::Near, &message), Ok(()));
        let mut received = 0;
        while received < message.len() && pair.step_until(Time::MAX) {
            received += pair.receive_all(Side::Far).concat().len();
        }
        let took = pair.now().since(begin);
        assert!((3.0..3.6).contains(&took.as_secs_f64()), "{congestion_control:?}: {took}");
    }
}

/// An endpoint whose time began earlier than the harness's.
struct Later {
    endpoint: Box<dyn Endpoint>,
    by: Time,
}

impl Later {
    fn at(&self, now: Time) -> Time {
        self.by + now.since(Time::ZERO)
    }
}

impl Conversation for Later {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.endpoint.send(self.at(now), message)
    }
    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        self.endpoint.receive(into)
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }
    fn close(&mut self, now: Time, how: Close) {
        self.endpoint.close(self.at(now), how);
    }
    fn features(&self) -> &'static Features {
        self.endpoint.features()
    }
}

impl Endpoint for Later {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.endpoint.handle_packet(self.at(now), from, ecn, packet);
    }
    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(self.at(now));
    }
    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(self.at(now), into)
    }
    fn next_timeout(&self) -> Option<Time> {
        Some(Time::ZERO + self.endpoint.next_timeout()?.since(self.by))
    }
    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.endpoint.counters(count);
    }
}
