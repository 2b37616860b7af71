//! The services beside streams: datagrams, acknowledged datagrams, transactions, and opening at an acceptor.

use proptest::prelude::*;
use trunkline_core::{Duration, Ecn, Seed, Time};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::{self, Make};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::xtp::wire::{Body, Code, Format, Options, Packet, Reason};
use trunkline_transport::xtp::{XtpAcceptor, XtpConfig, XtpDatagrams, XtpEndpoint, XtpTransactions};
use trunkline_transport::{
    Accept, Acceptor as _, Close, CloseReason, Conversation as _, Endpoint, Event, Message, SendError,
};

use super::wiretap::Wiretap;

fn datagrams(config: &XtpConfig, acknowledged: bool, seed: u64) -> [XtpDatagrams; 2] {
    let end = |local, peer, seed| XtpDatagrams::new(local, peer, config, acknowledged, seed).unwrap();
    [end(NEAR, FAR, seed), end(FAR, NEAR, !seed)]
}

fn boxed([near, far]: [impl Endpoint + 'static; 2]) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    (Box::new(near), Box::new(far))
}

fn transactions(config: &XtpConfig, seed: u64) -> [XtpTransactions; 2] {
    [
        XtpTransactions::connect(NEAR, FAR, config, seed).unwrap(),
        XtpTransactions::listen(FAR, NEAR, config, !seed).unwrap(),
    ]
}

/// Large enough for the largest messages of the suite.
fn large() -> XtpConfig {
    let patience = Some(Duration::from_secs(3600));
    XtpConfig { max_packet: 65_507, patience, receive_buffer: 1 << 20, ..XtpConfig::default() }
}

mod unacknowledged {
    use super::*;
    const MAKE: Make = |seed| boxed(datagrams(&large(), false, seed));
    trunkline_testkit::conformance_tests!(MAKE);
}

mod acknowledged {
    use super::*;
    const MAKE: Make = |seed| boxed(datagrams(&large(), true, seed));
    // What is sent is not ordered, and its buffer empties when it is acknowledged.
    trunkline_testkit::conformance_tests!(MAKE;
        a_clean_path_delivers_everything_in_order
        borders_of_messages_are_as_declared
        sending_needs_a_connection_where_there_is_one
        the_largest_message_is_as_declared
        a_graceful_close_delivers_what_was_taken
        garbage_breaks_nothing
        an_idle_conversation_is_silent
        the_same_seed_gives_the_same_packets
    );
}

#[test]
fn a_datagram_is_one_packet_and_an_acknowledged_one_two() {
    for (acknowledged, answers) in [(false, vec![]), (true, vec![Format::Control])] {
        let [near, far] = datagrams(&XtpConfig::default(), acknowledged, 1);
        let mut tap = Wiretap::new(near, far);
        tap.send(0, b"hello").unwrap();
        tap.run();
        assert_eq!((tap.formats(0), tap.formats(1)), (vec![Format::First], answers));
        assert!(tap.seen[0].has(Options::WCLOSE.and(Options::EOM)));
        assert_eq!(tap.read(1), b"hello");
    }
}

#[test]
fn the_most_urgent_datagram_leaves_and_is_read_first() {
    let [mut near, far] = datagrams(&XtpConfig::default(), false, 1);
    for sort in [7, 3, 9, 3, 1] {
        near.send_sorted(Time::ZERO, Some(sort), &[sort as u8]).unwrap();
    }
    let mut tap = Wiretap::new(near, far);
    let order: Vec<u16> = tap.from(0).map(|seen| seen.packet().header.sort).collect();
    assert_eq!(order, [1, 3, 3, 7, 9]);
    // Sent in another order, they are read by urgency as well.
    tap.run();
    for sort in [8u8, 2] {
        let now = tap.now;
        tap.ends[0].send_sorted(now, Some(sort.into()), &[sort]).unwrap();
        tap.drain(0);
    }
    tap.run();
    assert_eq!(tap.read(1), [1, 2, 3, 3, 7, 8, 9]);
}

#[test]
fn an_unacknowledged_datagram_is_sent_again_until_the_peer_counts_as_gone() {
    let patience = Some(Duration::from_secs(20));
    let [near, far] = datagrams(&XtpConfig { patience, ..XtpConfig::default() }, true, 1);
    let mut tap = Wiretap::new(near, far);
    tap.lose(|_, _| true);
    tap.send(0, b"anybody?").unwrap();
    tap.run();
    let at: Vec<u64> = tap.seen.iter().map(|seen| seen.at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(at, [0, 1, 3, 7, 15]);
    assert_eq!(tap.now, Time::from_nanos(20_000_000_000));
    let reason = CloseReason::TimedOut(Duration::from_secs(20));
    assert_eq!(tap.events(0), [Event::Closed(reason)]);
    assert_eq!(tap.send(0, b"?"), Err(SendError::Closed(reason)));
}

#[test]
fn a_transaction_is_three_packets() {
    let [near, far] = transactions(&XtpConfig::default(), 1);
    let mut tap = Wiretap::new(near, far);
    assert_eq!(tap.send(1, b"what?"), Err(SendError::Closed(CloseReason::NotConnected)));
    tap.send(0, b"question").unwrap();
    tap.run_for(Duration::from_millis(10));
    assert_eq!(tap.read(1), b"question");
    tap.send(1, b"answer").unwrap();
    tap.run();
    assert_eq!(tap.read(0), b"answer");
    assert_eq!(tap.formats(0), [Format::First, Format::Control]);
    // The agreement goes before the answer.
    assert_eq!(tap.formats(1), [Format::TrafficControl, Format::Data]);
    assert!(tap.from(0).last().unwrap().has(Options::END));
    assert_eq!(tap.counter(0, "transactions"), 1);
}

#[test]
fn an_empty_question_has_an_empty_answer() {
    let [near, far] = transactions(&XtpConfig::default(), 1);
    let mut tap = Wiretap::new(near, far);
    tap.send(0, b"").unwrap();
    tap.run();
    let mut bytes = Vec::new();
    assert_eq!(tap.ends[1].receive(&mut bytes).map(|received| received.length), Some(0));
    tap.send(1, b"").unwrap();
    tap.run();
    assert_eq!(tap.ends[0].receive(&mut bytes).map(|received| received.length), Some(0));
    tap.close(0, Close::Graceful);
    assert_eq!(tap.events(0), [Event::Readable, Event::Closed(CloseReason::Local)]);
}

#[test]
fn the_most_urgent_request_is_sent_first() {
    let [mut near, far] = transactions(&XtpConfig::default(), 1);
    for sort in [7, 3, 9] {
        near.send_sorted(Time::ZERO, Some(sort), &[sort as u8]).unwrap();
    }
    let tap = Wiretap::new(near, far);
    let order: Vec<u16> = tap.from(0).map(|seen| seen.packet().header.sort).collect();
    assert_eq!(order, [3, 7, 9]);
}

#[test]
fn an_acceptor_opens_streams_and_says_what_it_cannot_open() {
    let config = XtpConfig::default();
    let mut acceptor = XtpAcceptor::new(FAR, &config, 1).unwrap();
    let mut near = XtpEndpoint::connect(NEAR, FAR, &config, 1).unwrap();
    let (mut packet, mut reply) = (Vec::new(), Vec::new());
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let Accept::New(mut far) = acceptor.accept(Time::ZERO, NEAR, &packet, &mut reply) else {
        panic!("no stream was opened")
    };
    let mut answer = Vec::new();
    assert_eq!(far.poll_transmit(Time::ZERO, &mut answer).unwrap().to, NEAR);
    near.handle_packet(Time::ZERO, FAR, Ecn::NotCapable, &answer);
    assert_eq!(near.poll_event(), Some(Event::Connected));
    near.send(Time::ZERO, Message::new(b"data")).unwrap();
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    assert_eq!(far.receive(&mut Vec::new()).unwrap().length, 4);

    // To another port, of another service, of no context at all, and noise.
    let mut elsewhere = XtpAcceptor::new(trunkline_core::Address { host: 1, port: 9 }, &config, 1).unwrap();
    let mut near = XtpEndpoint::connect(NEAR, FAR, &config, 3).unwrap();
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let mut diagnosis = |acceptor: &mut XtpAcceptor, packet: &[u8]| match acceptor.accept(
        Time::ZERO,
        NEAR,
        packet,
        &mut reply,
    ) {
        Accept::Reply(transmit) => match Packet::parse(&reply).unwrap().body {
            Body::Diagnostic { code, reason, .. } => Some((transmit.to, code, reason)),
            other => panic!("{other:?}"),
        },
        Accept::New(_) => panic!("a stream was opened"),
        Accept::Ignore => None,
    };
    let refused = diagnosis(&mut elsewhere, &packet);
    assert_eq!(refused, Some((NEAR, Code::CONTEXT_REFUSED, Reason::NO_LISTENER)));
    let [mut datagram, _] = datagrams(&config, false, 1);
    datagram.send(Time::ZERO, Message::new(b"x")).unwrap();
    datagram.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let refused = diagnosis(&mut acceptor, &packet);
    assert_eq!(refused, None, "a datagram is over before it could be refused");
    let [mut asks, _] = transactions(&config, 1);
    asks.send(Time::ZERO, Message::new(b"x")).unwrap();
    asks.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let refused = diagnosis(&mut acceptor, &packet);
    assert_eq!(refused, Some((NEAR, Code::CONTEXT_REFUSED, Reason::NO_PROVIDER)));
    assert_eq!(diagnosis(&mut acceptor, b"noise"), None);
}

#[test]
fn a_refused_stream_is_reset() {
    let config = XtpConfig::default();
    let mut acceptor = XtpAcceptor::new(trunkline_core::Address { host: 1, port: 9 }, &config, 1).unwrap();
    let mut near = XtpEndpoint::connect(NEAR, FAR, &config, 3).unwrap();
    let (mut packet, mut reply) = (Vec::new(), Vec::new());
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    acceptor.accept(Time::ZERO, NEAR, &packet, &mut reply);
    near.handle_packet(Time::ZERO, FAR, Ecn::NotCapable, &reply);
    assert_eq!(near.poll_event(), Some(Event::Closed(CloseReason::Reset)));
}

fn bad(loss: f64) -> Path {
    Path { loss, duplicate: 0.1, reorder: 0.1, corrupt: 0.1, ..Path::with_latency(Duration::from_millis(10)) }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn acknowledged_datagrams_arrive_exactly_once(seed: u64, loss in 0.0..0.5, count in 1..80u8) {
        let (near, far) = boxed(datagrams(&large(), true, seed));
        let mut pair = Pair::new(near, far, [bad(loss), bad(loss)], Seed::new(seed, 0));
        for n in 0..count {
            prop_assert_eq!(pair.send(Side::Near, &[n; 50]), Ok(()));
        }
        pair.drive();
        let mut received: Vec<u8> = pair.receive_all(Side::Far).iter().map(|message| message[0]).collect();
        received.sort_unstable();
        prop_assert_eq!(received, (0..count).collect::<Vec<u8>>());
    }

    #[test]
    fn every_request_has_its_answer(
        seed: u64, loss in 0.0..0.5, sizes in prop::collection::vec(0..5000usize, 1..20),
    ) {
        let config = XtpConfig { patience: Some(Duration::from_secs(3600)), ..XtpConfig::default() };
        let (near, far) = boxed(transactions(&config, seed));
        let mut pair = Pair::new(near, far, [bad(loss), bad(loss)], Seed::new(seed, 0));
        for (n, &size) in sizes.iter().enumerate() {
            prop_assert_eq!(pair.send(Side::Near, &vec![n as u8; size + 1]), Ok(()));
        }
        let mut answers = Vec::new();
        while pair.step_until(Time::MAX) {
            for request in pair.receive_all(Side::Far) {
                let answer: Vec<u8> = request.iter().map(|byte| byte ^ 0x80).collect();
                prop_assert_eq!(pair.send(Side::Far, &answer), Ok(()));
            }
            answers.extend(pair.receive_all(Side::Near));
        }
        answers.sort();
        let expected: Vec<Vec<u8>> =
            sizes.iter().enumerate().map(|(n, &size)| vec![n as u8 ^ 0x80; size + 1]).collect();
        prop_assert_eq!(answers, expected);
        // Both ends have forgotten everything but the keys.
        pair.close(Side::Near, Close::Graceful);
        pair.close(Side::Far, Close::Graceful);
        for side in Side::BOTH {
            prop_assert!(pair.take_event(side, Event::Closed(CloseReason::Local)));
        }
    }
}

#[test]
fn another_process_sends_the_same_packets() {
    trunkline_testkit::two_process::assert_same_in_another_process(
        "services::another_process_sends_the_same_packets",
        || format!("{:016x}", conformance::trace(|seed| boxed(datagrams(&large(), true, seed)), 7)),
    );
}
