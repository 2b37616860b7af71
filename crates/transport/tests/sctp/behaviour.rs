//! What SCTP does on paths of all kinds, as its application and its peer see it.

use trunkline_core::{Address, Duration, Ecn, Seed, Time};
use trunkline_testkit::conformance::transfer;
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::sctp::{Encapsulation, Reliability, SctpConfig, SctpConfigError, SctpEndpoint};
use trunkline_transport::{Close, CloseReason, Conversation as _, Endpoint as _, Event, SendError};

fn pair(config: &SctpConfig, path: &Path) -> Pair {
    let near = SctpEndpoint::connect(NEAR, FAR, config, 1).expect("the configuration is possible");
    let far = SctpEndpoint::listen(FAR, config, 2).expect("the configuration is possible");
    Pair::new(Box::new(near), Box::new(far), [path.clone(), path.clone()], Seed::new(1, 0))
}

fn connected(config: &SctpConfig) -> Pair {
    let mut pair = pair(config, &ten_ms());
    pair.drive();
    assert!(pair.take_event(Side::Near, Event::Connected) && pair.take_event(Side::Far, Event::Connected));
    pair
}

fn ten_ms() -> Path {
    Path::with_latency(Duration::from_millis(10))
}

fn patience(timeout: Duration) -> SctpConfig {
    SctpConfig { timeout: Some(timeout), ..quiet() }
}

/// Without heartbeats, so that it comes to rest.
fn quiet() -> SctpConfig {
    SctpConfig { heartbeat: None, ..SctpConfig::default() }
}

#[test]
fn a_message_costs_its_chunk_and_all_headers() {
    for (encapsulation, headers) in [(Encapsulation::Udp, 20 + 8), (Encapsulation::Ip, 20)] {
        let mut pair = connected(&SctpConfig { encapsulation, ..quiet() });
        let before = pair.path_counters(Side::Near);
        pair.send(Side::Near, &[0; 941]).unwrap();
        let after = pair.path_counters(Side::Near);
        // The common header, that of a DATA chunk, and padding to words.
        assert_eq!((after.sent - before.sent, after.bytes - before.bytes), (1, headers + 12 + 16 + 944));
    }
}

#[test]
fn large_messages_go_in_packets_of_the_configured_size() {
    let config = SctpConfig { max_packet: 1000, ..quiet() };
    let mut pair = connected(&config);
    let before = pair.path_counters(Side::Near);
    let message = vec![7; 94_400];
    assert_eq!(transfer(&mut pair, Side::Near, std::slice::from_ref(&message)), [message]);
    let after = pair.path_counters(Side::Near);
    // 944 bytes in each packet, but for what is left at the end of a congestion window.
    assert!((100..=125).contains(&(after.sent - before.sent)), "{} packets", after.sent - before.sent);
    assert!((after.bytes - before.bytes) / (after.sent - before.sent) <= 1000);
}

#[test]
fn a_lost_packet_is_repaired_by_fast_retransmission() {
    let mut pair = connected(&quiet());
    let sent = pair.path_counters(Side::Near).sent;
    pair.path(Side::Near).drop = vec![sent + 3];
    let start = pair.now();
    let messages: Vec<_> = (0..40).map(|n| vec![n; 1000]).collect();
    for message in &messages {
        pair.send(Side::Near, message).unwrap();
    }
    let mut received = Vec::new();
    while received.len() < messages.len() && pair.step_until(Time::MAX) {
        received.extend(pair.receive_all(Side::Far));
    }
    assert_eq!(received, messages);
    assert!(pair.counter(Side::Near, "retransmissions") > 0);
    // Long before the retransmission timer, which is never below a second.
    assert!(pair.now().since(start) < Duration::from_millis(500), "took {}", pair.now().since(start));
}

#[test]
fn a_lost_packet_holds_up_its_own_stream_only() {
    for (streams, ordered, before_the_repair) in
        [(1, true, vec![0]), (2, true, vec![0, 2, 4]), (1, false, vec![0, 2, 3, 4])]
    {
        let mut pair = connected(&SctpConfig { streams, ordered, ..quiet() });
        let sent = pair.path_counters(Side::Near).sent;
        pair.path(Side::Near).drop = vec![sent + 1];
        for n in 0..5 {
            pair.send(Side::Near, &[n; 100]).unwrap();
        }
        // The retransmission timer is a second at least.
        pair.drive_for(Duration::from_millis(15));
        let arrived: Vec<u8> = pair.receive_all(Side::Far).iter().map(|message| message[0]).collect();
        assert_eq!(arrived, before_the_repair, "{streams} streams, ordered: {ordered}");
        pair.drive();
        assert_eq!(pair.receive_all(Side::Far).len() + arrived.len(), 5);
    }
}

#[test]
fn partial_reliability_gives_up_what_it_says() {
    let lifetime = Reliability::Lifetime(Duration::from_millis(500));
    for (reliability, given_up, retransmissions) in
        [(lifetime, 1, 0), (Reliability::Retransmissions(0), 1, 0), (Reliability::Retransmissions(1), 0, 1)]
    {
        let mut pair = connected(&SctpConfig { reliability, ..quiet() });
        let sent = pair.path_counters(Side::Near).sent;
        pair.path(Side::Near).drop = vec![sent];
        pair.send(Side::Near, b"lost").unwrap();
        pair.drive_for(Duration::from_secs(5));
        pair.send(Side::Near, b"next").unwrap();
        pair.drive_for(Duration::from_secs(5));
        let received = pair.receive_all(Side::Far);
        assert_eq!(received.len() as u64, 2 - given_up, "{reliability:?}");
        assert_eq!(pair.counter(Side::Near, "given-up"), given_up, "{reliability:?}");
        assert_eq!(pair.counter(Side::Near, "retransmissions"), retransmissions, "{reliability:?}");
    }
}

#[test]
fn nobody_listening_is_noticed_after_the_timeout() {
    let timeout = Duration::from_secs(7);
    let mut pair = pair(&patience(timeout), &Path { cut: Some(Time::ZERO), ..ten_ms() });
    pair.drive();
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::TimedOut(timeout))]);
    assert_eq!(pair.now(), Time::ZERO + timeout);
}

#[test]
fn a_lost_peer_is_given_up_after_the_timeout_and_no_sooner() {
    let timeout = Duration::from_secs(30);
    let mut pair = connected(&patience(timeout));
    pair.drive_for(Duration::from_secs(1000));
    assert!(pair.events(Side::Near).is_empty(), "an idle peer is no lost peer");
    pair.path(Side::Far).cut = Some(Time::ZERO);
    let start = pair.now();
    pair.send(Side::Near, b"?").unwrap();
    pair.drive_until(start + (timeout - Duration::from_nanos(1)));
    assert!(pair.events(Side::Near).is_empty());
    pair.drive_until(start + timeout);
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::TimedOut(timeout))]);
    pair.drive();
    assert!(pair.take_event(Side::Far, Event::Closed(CloseReason::Reset)), "the way there is not cut");
}

/// RFC 9260 section 8.3: a path that rests is tested after HB.interval and a timeout, which varies by half of itself.
#[test]
fn heartbeats_test_a_path_that_rests_and_their_answers_measure_it() {
    let mut pair = pair(&SctpConfig::default(), &ten_ms());
    pair.drive_for(Duration::from_secs(1));
    let sent = pair.path_counters(Side::Near).sent;
    pair.drive_for(Duration::from_secs(29));
    assert_eq!(pair.path_counters(Side::Near).sent, sent, "too early");
    pair.drive_for(Duration::from_secs(970));
    for side in Side::BOTH {
        let heartbeats = pair.counter(side, "heartbeats-sent");
        // Each 30.5 to 31.5 s after the last, and 20 ms.
        assert!((31..=33).contains(&heartbeats), "{side:?}: {heartbeats}");
        assert_eq!(pair.counter(side, "path-failures"), 0);
    }
    // Data takes their place.
    let before = pair.counter(Side::Near, "heartbeats-sent");
    for _ in 0..100 {
        pair.send(Side::Near, b"now and then").unwrap();
        pair.drive_for(Duration::from_secs(10));
    }
    assert!(pair.counter(Side::Near, "heartbeats-sent") <= before + 1);
    assert_eq!(pair.receive_all(Side::Far).len(), 100);
}

/// RFC 9260 sections 8.1 to 8.3: each heartbeat without an answer within the timeout is an error, and doubles the timeout. The
/// sixth makes the path inactive, the eleventh ends the association.
#[test]
fn a_peer_that_answers_no_heartbeat_is_gone_after_eleven() {
    let mut pair = pair(&SctpConfig::default(), &ten_ms());
    pair.drive_for(Duration::from_secs(1));
    assert!(pair.take_event(Side::Near, Event::Connected) && pair.take_event(Side::Far, Event::Connected));
    let start = pair.now();
    for side in Side::BOTH {
        pair.path(side).cut = Some(Time::ZERO);
    }
    while pair.counter(Side::Near, "path-failures") == 0 && pair.step_until(Time::MAX) {}
    assert_eq!(pair.counter(Side::Near, "heartbeats-sent"), 6);
    assert!(pair.events(Side::Near).is_empty(), "an inactive path is still tested");
    while pair.now().since(start) < Duration::from_secs(2000) && pair.step_until(Time::MAX) {
        if let [Event::Closed(CloseReason::TimedOut(silence))] = pair.events(Side::Near)[..] {
            assert_eq!(pair.counter(Side::Near, "heartbeats-sent"), 11);
            // Since the first of them, 31 s after the last packet of the peer at the latest.
            assert!(pair.now().since(start) - silence < Duration::from_secs(32), "{silence}");
            return;
        }
    }
    panic!("never given up");
}

/// RFC 9260 section 8.1: 1, 2, 4, 8, 16, 32, and five times 60 s after the first transmission.
#[test]
fn data_that_is_never_acknowledged_ends_the_association_after_ten_repetitions() {
    let mut pair = connected(&quiet());
    pair.path(Side::Near).cut = Some(Time::ZERO);
    let start = pair.now();
    pair.send(Side::Near, b"?").unwrap();
    pair.drive();
    let silence = Duration::from_secs(63 + 5 * 60);
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::TimedOut(silence))]);
    assert_eq!(pair.now(), start + silence);
    assert_eq!(pair.counter(Side::Near, "retransmissions"), 10);
    assert_eq!(pair.counter(Side::Near, "path-failures"), 1);
}

/// Max.Init.Retransmits is 8 (RFC 9260 sections 5.1 and 16).
#[test]
fn a_request_to_begin_is_repeated_eight_times() {
    let mut pair = pair(&quiet(), &Path { cut: Some(Time::ZERO), ..ten_ms() });
    pair.drive();
    let silence = Duration::from_secs(63 + 3 * 60);
    assert_eq!(pair.events(Side::Near), [Event::Closed(CloseReason::TimedOut(silence))]);
    assert_eq!(pair.counter(Side::Near, "packets-sent"), 9);
}

/// Windows that are full do not count as errors while their SACKs come (RFC 9260 section 6.1, rule A).
#[test]
fn a_reader_may_pause_for_longer_than_the_repetitions_last() {
    let mut pair = connected(&SctpConfig { window: 20_000, ..quiet() });
    for n in 0..100 {
        pair.send(Side::Near, &[n; 1000]).unwrap();
    }
    pair.drive_for(Duration::from_secs(3600));
    assert!(pair.events(Side::Near).is_empty() && pair.counter(Side::Near, "path-failures") == 0);
    // Then the peer is lost too.
    pair.path(Side::Near).cut = Some(Time::ZERO);
    pair.drive();
    assert!(matches!(pair.events(Side::Near)[..], [Event::Closed(CloseReason::TimedOut(_))]));
}

#[test]
fn a_reader_that_pauses_for_longer_than_the_timeout_is_no_lost_peer() {
    let config = SctpConfig { window: 20_000, ..patience(Duration::from_secs(5)) };
    let mut pair = connected(&config);
    let messages: Vec<_> = (0..100).map(|n| vec![n; 1000]).collect();
    for message in &messages {
        pair.send(Side::Near, message).unwrap();
    }
    pair.drive_for(Duration::from_secs(300));
    assert!(pair.events(Side::Near).is_empty());
    // The window, and what asks whether it is open.
    let mut received = pair.receive_all(Side::Far);
    assert!((19..=22).contains(&received.len()), "{} messages of 1000 bytes", received.len());
    // The window that opens is told at once; the sender's timer is at its minute by now.
    let start = pair.now();
    while received.len() < messages.len() && pair.step_until(Time::MAX) {
        received.extend(pair.receive_all(Side::Far));
    }
    assert_eq!(received, messages);
    assert!(pair.now().since(start) < Duration::from_secs(2), "took {}", pair.now().since(start));
}

#[test]
fn both_may_close_at_once() {
    let mut pair = connected(&quiet());
    for side in Side::BOTH {
        pair.send(side, b"last words").unwrap();
        pair.close(side, Close::Graceful);
    }
    pair.drive();
    for side in Side::BOTH {
        assert_eq!(pair.receive_all(side), [b"last words"]);
        assert!(pair.take_event(side, Event::Closed(CloseReason::Local)), "{side:?}");
    }
}

#[test]
fn the_end_comes_after_the_last_message_was_read() {
    let mut pair = connected(&quiet());
    pair.send(Side::Near, b"one").unwrap();
    pair.send(Side::Near, b"two").unwrap();
    pair.close(Side::Near, Close::Graceful);
    pair.drive();
    assert_eq!(pair.events(Side::Far), [Event::Readable, Event::Readable]);
    assert_eq!(pair.send(Side::Far, b"?"), Err(SendError::Closed(CloseReason::Peer)));
    assert_eq!(pair.receive_all(Side::Far), [b"one", b"two"]);
    assert_eq!(pair.events(Side::Far), [Event::Closed(CloseReason::Peer)]);
}

#[test]
fn farewells_may_be_lost() {
    for lost in 0..4 {
        for side in Side::BOTH {
            let mut pair = connected(&quiet());
            let sent = pair.path_counters(side).sent;
            pair.path(side).drop = vec![sent + lost];
            pair.send(Side::Near, b"bye").unwrap();
            pair.close(Side::Near, Close::Graceful);
            pair.drive();
            assert_eq!(pair.receive_all(Side::Far), [b"bye"]);
            assert!(pair.take_event(Side::Near, Event::Closed(CloseReason::Local)), "{side:?} {lost}");
            assert!(pair.take_event(Side::Far, Event::Closed(CloseReason::Peer)), "{side:?} {lost}");
        }
    }
}

#[test]
fn whoever_missed_an_abort_hears_of_it_when_it_sends() {
    let mut pair = connected(&quiet());
    let sent = pair.path_counters(Side::Near).sent;
    pair.path(Side::Near).drop = vec![sent];
    pair.close(Side::Near, Close::Abort);
    pair.drive();
    assert!(pair.events(Side::Far).is_empty());
    pair.send(Side::Far, b"still there?").unwrap();
    pair.drive_for(Duration::from_millis(20));
    assert_eq!(pair.events(Side::Far), [Event::Closed(CloseReason::Reset)]);
    assert_eq!(pair.counter(Side::Near, "after-close"), 1);
}

#[test]
fn an_end_that_never_met_anybody_closes_at_once() {
    for how in [Close::Graceful, Close::Abort] {
        let mut pair = pair(&quiet(), &ten_ms());
        for side in Side::BOTH {
            pair.close(side, how);
            assert_eq!(pair.events(side), [Event::Closed(CloseReason::Local)]);
            assert_eq!(pair.send(side, b"?"), Err(SendError::Closed(CloseReason::Local)));
        }
        pair.drive();
    }
}

#[test]
fn an_unanswered_request_keeps_no_listening_end_from_others() {
    let stranger = Address { host: 9, port: 999 };
    let mut near = SctpEndpoint::connect(NEAR, FAR, &quiet(), 1).unwrap();
    let mut asking = SctpEndpoint::connect(stranger, FAR, &quiet(), 3).unwrap();
    let mut far = SctpEndpoint::listen(FAR, &quiet(), 2).unwrap();
    let mut packet = Vec::new();
    let (now, ecn) = (Time::ZERO, Ecn::NotCapable);
    asking.poll_transmit(now, &mut packet).unwrap();
    far.handle_packet(now, stranger, ecn, &packet);
    assert_eq!(far.poll_transmit(now, &mut packet).unwrap().to, stranger);
    while near.poll_transmit(now, &mut packet).is_some() {
        far.handle_packet(now, NEAR, ecn, &packet);
        while let Some(transmit) = far.poll_transmit(now, &mut packet) {
            assert_eq!(transmit.to, NEAR);
            near.handle_packet(now, FAR, ecn, &packet);
        }
    }
    assert_eq!(near.poll_event(), Some(Event::Connected));
    assert_eq!(far.poll_event(), Some(Event::Connected));
    // Now it is taken, and a peer's port is part of its name.
    let mut strays = 0;
    asking.handle_timeout(now + Duration::from_secs(1));
    asking.poll_transmit(now, &mut packet).unwrap();
    far.handle_packet(now + Duration::from_secs(1), stranger, ecn, &packet);
    far.handle_packet(now + Duration::from_secs(1), Address { port: 1, ..stranger }, ecn, &packet);
    far.counters(&mut |name, count| strays += if name == "strays" { count } else { 0 });
    assert_eq!(strays, 2);
}

#[test]
fn fewer_streams_than_offered_are_agreed_on() {
    let near = SctpConfig { streams: 9, ..quiet() };
    let mut pair = pair(&near, &ten_ms());
    pair.drive();
    let messages: Vec<_> = (0..30).map(|n| vec![n; 10]).collect();
    assert_eq!(transfer(&mut pair, Side::Near, &messages), messages);
    assert_eq!(transfer(&mut pair, Side::Far, &messages), messages);
}

#[test]
fn what_was_promised_is_declared() {
    let declared = |config: SctpConfig| {
        let features = SctpEndpoint::listen(FAR, &config, 1).unwrap().features();
        (features.reliable, features.ordered)
    };
    let default = SctpConfig::default;
    let partial = Reliability::Retransmissions(2);
    assert_eq!(declared(default()), (true, true));
    assert_eq!(declared(SctpConfig { ordered: false, ..default() }), (true, false));
    assert_eq!(declared(SctpConfig { streams: 2, ..default() }), (true, false));
    assert_eq!(declared(SctpConfig { reliability: partial, ..default() }), (false, true));
    assert_eq!(declared(SctpConfig { reliability: partial, streams: 2, ..default() }), (false, false));
}

#[test]
fn impossible_options_are_refused_with_their_range() {
    let refused =
        |config: SctpConfig| SctpEndpoint::connect(NEAR, FAR, &config, 1).err().unwrap().to_string();
    let good = SctpConfig::default;
    assert_eq!(
        refused(SctpConfig { streams: 0, ..good() }),
        "SCTP's number of streams is 0 streams; expected 1 to 65535"
    );
    assert_eq!(
        refused(SctpConfig { window: 5000, ..good() }),
        "SCTP's receive window is 5000 bytes; expected 8192 to 1073741824"
    );
    assert!(refused(SctpConfig { send_buffer: 0, ..good() }).contains("send buffer"));
    assert!(refused(SctpConfig { max_packet: 575, ..good() }).contains("largest packet"));
    let brief = Reliability::Lifetime(Duration::from_micros(999));
    assert!(refused(SctpConfig { reliability: brief, ..good() }).contains("lifetime"));
    let port = SctpEndpoint::listen(Address { host: 0, port: 0 }, &good(), 1).err();
    assert_eq!(port, Some(SctpConfigError::Port));
}
