//! What servers do in sessions.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use trunkline_calls::probe::{Probe, RoundTrips};
use trunkline_calls::{
    Handler, Line as _, Packets, Request, Role, ServerOptions, Session, Settings, Stop, TransportChoice,
    Waiter, now,
};
use trunkline_core::{Duration, Time};
use trunkline_testkit::real_time::in_real_time;

use crate::support::{PATIENCE, Running, packet, until};

#[test]
fn probes_come_back_and_are_measured() {
    let server = Running::new();
    let mut session = server.connect(Role::Echo, "udp");
    let (mut trips, mut probe) = (RoundTrips::default(), Vec::new());
    for _ in 0..100 {
        trips.send(now(), 200, &mut probe);
        session.send(now(), &probe).unwrap();
        // One at a time: what a socket has no room for is lost.
        until(&mut session, |session, _| session.counters().received == session.counters().sent)
            .unwrap()
            .iter()
            .for_each(|packet| _ = trips.take(now(), packet));
    }
    let summary = trips.summary();
    assert_eq!((summary.sent, summary.returned, summary.duplicates, summary.reordered), (100, 100, 0, 0));
    assert!(summary.delay.unwrap().min > Duration::ZERO);
}

#[test]
fn a_sink_counts_what_it_takes() {
    let server = Running::new();
    let mut session = server.connect(Role::Sink, "tcp");
    let mut packets = Packets::default();
    (0..50).for_each(|number| packets.push(&packet(number, 1000)));
    session.send_all(now(), &packets).unwrap();
    let all = |session: &Session| session.far_counters().is_some_and(|far| far.received == 50);
    let arrived = until(&mut session, |session, _| all(session)).unwrap();
    assert!(arrived.is_empty(), "a sink sends nothing");
    assert_eq!(session.far_counters().unwrap().received_bytes, 50 * 1008, "with the keys");
}

#[test]
fn a_source_sends_probes_at_its_rate_and_no_longer_than_asked_for() {
    in_real_time(|| {
        let server = Running::new();
        for transport in ["udp", "tcp", "dccp"] {
            // 125 packets a second for 400 ms.
            let role = Role::Source { rate: 1_000_000, packet: 1000, lasting: Duration::from_millis(400) };
            let mut session = server.connect(role, transport);
            let arrived = until(&mut session, |session, _| {
                session.far_counters().is_some_and(|far| far.sent + far.timed_out + far.refused == 50)
            })
            .unwrap();
            let rest = until(&mut session, |session, _| {
                session.counters().received >= session.far_counters().unwrap().sent.min(40)
            })
            .unwrap();
            let probes: Vec<Probe> =
                arrived.iter().chain(&rest).filter_map(|packet| Probe::read(packet)).collect();
            assert_eq!(arrived.len() + rest.len(), probes.len());
            assert!(arrived.iter().all(|packet| packet.len() == 1000), "{transport}");
            assert!(probes.is_sorted_by_key(|probe| probe.sequence), "{transport}");
            assert!(probes.iter().all(|probe| probe.sequence < 50), "{transport}");
        }
    });
}

/// Records what it gets, and answers every packet with its length.
struct Recorder(Arc<Mutex<Vec<Vec<u8>>>>);

impl Handler for Recorder {
    fn admit(&self, request: &Request, from: SocketAddr) -> Result<(), String> {
        assert!(from.ip().is_loopback());
        match request.stream {
            Some(stream) if stream.channels > 2 => Err("it has 2 channels".to_owned()),
            _ => Ok(()),
        }
    }

    fn play(&self, session: &mut Session, stop: &Stop) {
        let mut waiter = Waiter::default();
        while !stop.is_stopped() {
            let mut answers = Packets::default();
            let turned = session.turn(now(), &mut |_, packet| {
                self.0.lock().unwrap().push(packet.to_vec());
                answers.push(&(packet.len() as u32).to_be_bytes());
            });
            if turned.is_err() || session.send_all(now(), &answers).is_err() {
                return;
            }
            waiter.wait(session, Some(stop.wakeup()), Time::MAX);
        }
    }
}

#[test]
fn a_handler_plays_and_may_answer() {
    let recorded = Arc::default();
    let server = Running::with(ServerOptions::default(), Recorder(Arc::clone(&recorded)));
    let request =
        Request { stream: Some(Default::default()), ..Request::new(Role::Play, TransportChoice::udp()) };
    let mut session = server.ask(request.clone()).unwrap();
    session.send(now(), &packet(1, 300)).unwrap();
    let answers = until(&mut session, |_, arrived| arrived.len() == 1).unwrap();
    assert_eq!(answers, [300u32.to_be_bytes()]);
    assert_eq!(*recorded.lock().unwrap(), [packet(1, 300)]);

    let many = trunkline_audio::pipeline::Stream { channels: 8, ..Default::default() };
    let error = server.ask(Request { stream: Some(many), ..request }).err().unwrap().to_string();
    assert!(error.ends_with("refused: it has 2 channels"), "{error}");
}

#[test]
fn the_offset_of_a_clock_that_is_the_same_lies_within_its_bound() {
    let server = Running::new();
    let mut session = server.connect(Role::Echo, "udp");
    until(&mut session, |session, _| session.offset(now()).is_some()).unwrap();
    let offset = session.offset(now()).unwrap();
    assert!(offset.estimate.unsigned_abs() <= offset.bound.as_nanos(), "{offset:?}");
}

#[test]
fn what_is_sent_has_arrived_when_a_client_has_finished() {
    let recorded = Arc::default();
    let server = Running::with(ServerOptions::default(), Recorder(Arc::clone(&recorded)));
    for transport in ["tcp", "sctp", "xtp", "quic", "urp"] {
        // On a busy machine a packet may wait for longer than the 40 ms of the study.
        let settings = Settings { send_timeout: PATIENCE, ..Settings::default() };
        let request = Request { settings, ..Request::new(Role::Play, transport.parse().unwrap()) };
        let mut session = server.ask(request).unwrap();
        let sent: Vec<_> = (0..40).map(|number| packet(number, 1000)).collect();
        sent.iter().for_each(|packet| session.send(now(), packet).unwrap());
        assert!(session.finish(PATIENCE, &mut |_, _| {}).unwrap(), "{transport}");
        assert_eq!(core::mem::take(&mut *recorded.lock().unwrap()), sent, "{transport}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn packets_are_marked_as_the_study_has_it_or_as_asked_for() {
    let server = Running::new();
    for (transport, settings, expected) in [
        ("udp", Settings::default(), (46, 6)),
        ("tcp", Settings::default(), (46, 6)),
        ("dccp", Settings::default(), (46, 6)),
        ("quic", Settings { dscp: 34, priority: Some(2), ..Settings::default() }, (34, 2)),
    ] {
        let request = Request { settings, ..Request::new(Role::Echo, transport.parse().unwrap()) };
        let session = server.ask(request).unwrap();
        let mut marks = Vec::new();
        session.descriptors(&mut |descriptor, _| {
            let socket = socket2::SockRef::from(&descriptor);
            marks.push((socket.tos_v4().unwrap() >> 2, socket.priority().unwrap()));
        });
        assert_eq!(marks[0], expected, "{transport}");
    }
}

/// A handler that reads nothing for as long as a lock is held.
struct Slow(Arc<Mutex<()>>, Recorder);

impl Handler for Slow {
    fn admit(&self, _: &Request, _: SocketAddr) -> Result<(), String> {
        Ok(())
    }

    fn play(&self, session: &mut Session, stop: &Stop) {
        drop(self.0.lock().unwrap());
        self.1.play(session, stop);
    }
}

/// As with `SO_SNDTIMEO`: what the connection does not take in time is lost and counted; what it has begun to take arrives
/// whole, and what is sent later arrives behind it.
#[test]
fn what_is_not_taken_in_time_is_lost_whole() {
    let (lock, recorded) = (Arc::new(Mutex::new(())), Arc::default());
    let server =
        Running::with(ServerOptions::default(), Slow(Arc::clone(&lock), Recorder(Arc::clone(&recorded))));
    let held = lock.lock().unwrap();
    let settings = Settings { buffer: Some(32 << 10), ..Settings::default() };
    let request = Request { settings, ..Request::new(Role::Play, "tcp".parse().unwrap()) };
    let mut session = server.ask(request).unwrap();
    let mut number = 0;
    while session.counters().timed_out == 0 {
        for _ in 0..10 {
            // Refused ones are counted.
            let _ = session.send(now(), &packet(number, 1000));
            number += 1;
        }
        let mut waiter = Waiter::default();
        waiter.wait(&session, None, now() + Duration::from_millis(5));
        session.turn(now(), &mut |_, _| {}).unwrap();
    }
    drop(held);
    until(&mut session, |session, _| {
        let counters = session.counters();
        counters.sent + counters.timed_out + counters.refused == u64::from(number)
            && session.far_counters().is_some_and(|far| far.received == counters.sent)
    })
    .unwrap();
    let recorded = recorded.lock().unwrap();
    assert!(recorded.len() < number as usize);
    assert!(recorded.is_sorted(), "packets arrive in their order");
    assert!(
        recorded
            .iter()
            .all(|packet| packet.len() == 1000 && packet[4..].iter().all(|byte| *byte == packet[3]))
    );
}
