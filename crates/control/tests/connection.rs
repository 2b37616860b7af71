//! Connections over the loopback interface.
#![allow(clippy::unwrap_used, reason = "helpers of tests, too")]

mod common;

use std::thread;

use common::{Cable, PATIENCE, QUICK, accept, identity, listener, pair, pair_by};
use trunkline_control::clock::TimeRequest;
use trunkline_control::message::{Chunk, Enrolment, Hello, Purpose, VERSION, Welcome};
use trunkline_control::wire::{Frame, Message, STRANGER_FRAME, WireError};
use trunkline_control::{
    Connection, FrameReader, FrameWriter, FromAgent, PartId, PeerError, Pulse, Refusal, RefusalKind, ToAgent,
};
use trunkline_core::{Duration, Time};
use trunkline_metrics::clocks::Turning;

fn ask(sent: u64) -> ToAgent {
    ToAgent::Time(TimeRequest { sent: Time::from_nanos(sent) })
}

fn chunk(number: u64, length: usize) -> Chunk {
    let part = PartId { run: "0".repeat(32), point: 0, repetition: 0, pair: 0, attempt: 0 };
    // Not the same everywhere, so that a mix-up shows.
    let data = (0..length as u64).map(|at| (at.wrapping_mul(number * 2 + 1) >> 3) as u8).collect();
    Chunk { part, number, data }
}

#[test]
fn what_is_said_is_heard_at_both_ends() {
    let (mut client, mut server) = pair(Pulse::default());
    client.send(&ask(7)).unwrap();
    client.send(&ToAgent::Facts).unwrap();
    assert_eq!(server.receive::<ToAgent>().unwrap(), Some(ask(7)));
    let time =
        FromAgent::Time(TimeRequest { sent: Time::from_nanos(7) }.reply(Time::from_nanos(8), Turning::Never));
    server.send(&time).unwrap();
    assert_eq!(server.receive::<ToAgent>().unwrap(), Some(ToAgent::Facts));
    assert_eq!(client.receive::<FromAgent>().unwrap(), Some(time));
    assert_eq!(client.peer_address(), server.local_address());
    assert_eq!(client.local_address(), server.peer_address());
}

#[test]
fn a_farewell_is_heard_and_the_other_end_may_go_on() {
    let (client, mut server) = pair(Pulse::default());
    let (mut reader, writer) = client.split();
    writer.send(&ask(1)).unwrap();
    writer.finish().unwrap();
    assert_eq!(server.receive::<ToAgent>().unwrap(), Some(ask(1)));
    assert_eq!(server.receive::<ToAgent>().unwrap(), None);
    server.send(&chunk(3, 100_000)).unwrap();
    assert_eq!(reader.receive::<Chunk>().unwrap(), Some(chunk(3, 100_000)));
    drop(server);
    assert_eq!(reader.receive::<Chunk>().unwrap(), None);
}

#[test]
fn the_last_writer_says_farewell() {
    let (client, mut server) = pair(Pulse::default());
    let (_reader, writer) = client.split();
    let other = writer.clone();
    drop(writer);
    other.send(&ask(2)).unwrap();
    drop(other);
    assert_eq!(server.receive::<ToAgent>().unwrap(), Some(ask(2)));
    assert_eq!(server.receive::<ToAgent>().unwrap(), None);
}

/// Says chunks and hears as many at the same time.
fn talk((mut reader, writer): (FrameReader, FrameWriter), chunks: u64, length: usize) {
    thread::scope(|scope| {
        scope.spawn(|| (0..chunks).for_each(|number| writer.send(&chunk(number, length)).unwrap()));
        for number in 0..chunks {
            assert!(reader.receive::<Chunk>().unwrap() == Some(chunk(number, length)), "chunk {number}");
        }
    });
}

#[test]
fn both_ends_may_say_much_at_once() {
    // Much more than sockets hold, in frames of one byte to a megabyte.
    for (chunks, length) in [(24, 1 << 20), (2_000, 1_000), (300, 16_384)] {
        let (client, server) = pair(Pulse::default());
        thread::scope(|scope| {
            scope.spawn(|| talk(client.split(), chunks, length));
            talk(server.split(), chunks, length);
        });
    }
}

#[test]
fn what_several_threads_say_is_not_mixed() {
    let (client, mut server) = pair(Pulse::default());
    let (_reader, writer) = client.split();
    let (threads, each) = (4, 100);
    thread::scope(|scope| {
        for first in 0..threads {
            let writer = writer.clone();
            scope.spawn(move || {
                for number in 0..each {
                    writer.send(&chunk(first * each + number, 20_000)).unwrap();
                }
            });
        }
        let mut heard: Vec<u64> = Vec::new();
        for _ in 0..threads * each {
            let got = server.receive::<Chunk>().unwrap().unwrap();
            assert!(got == chunk(got.number, 20_000));
            heard.push(got.number);
        }
        heard.sort_unstable();
        assert!(heard.into_iter().eq(0..threads * each));
    });
}

#[test]
fn a_cut_cable_is_noticed_at_both_ends() {
    let cable = Cable::default();
    let (mut client, mut server) = pair_by(QUICK, |to| cable.lay(to));
    client.send(&ask(1)).unwrap();
    assert_eq!(server.receive::<ToAgent>().unwrap(), Some(ask(1)));
    cable.cut();
    let noticed = |heard: PeerError| assert!(matches!(heard, PeerError::Silent { .. }), "{heard}");
    thread::scope(|scope| {
        scope.spawn(|| noticed(client.receive::<FromAgent>().unwrap_err()));
        noticed(server.receive::<ToAgent>().unwrap_err());
    });
    // It stays cut.
    assert!(matches!(client.receive::<FromAgent>(), Err(PeerError::Closed { .. })));
    assert!(client.send(&ask(2)).is_err());
}

#[test]
fn a_cut_cable_is_noticed_by_who_looks_now_and_then() {
    let cable = Cable::default();
    let (mut client, _server) = pair_by(QUICK, |to| cable.lay(to));
    cable.cut();
    let error = loop {
        match client.receive_within::<FromAgent>(QUICK.silence / 10, "it was looked at") {
            Err(PeerError::TimedOut { .. }) => {}
            other => break other.unwrap_err(),
        }
    };
    assert!(matches!(error, PeerError::Silent { .. }), "{error}");
}

#[test]
fn what_a_refusal_says_moves_no_terminal() {
    let (mut client, server) = pair(Pulse::default());
    let refusal = Refusal::new(RefusalKind::Limit, "no\u{1b}[2Jthing\n");
    server.send(&FromAgent::Refused { part: None, refusal }).unwrap();
    let refusal = Refusal::new(RefusalKind::Limit, "no[2Jthing");
    assert_eq!(client.receive().unwrap(), Some(FromAgent::Refused { part: None, refusal }));
}

#[test]
fn a_cut_cable_is_noticed_while_much_is_said() {
    let cable = Cable::default();
    let (client, mut server) = pair_by(QUICK, |to| cable.lay(to));
    let (mut reader, writer) = client.split();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut number = 0;
            while writer.send(&chunk(number, 100_000)).is_ok() {
                number += 1;
            }
        });
        assert!(server.receive::<Chunk>().unwrap().is_some());
        cable.cut();
        let error = reader.receive::<ToAgent>().unwrap_err();
        assert!(matches!(error, PeerError::Silent { .. }), "{error}");
    });
}

#[test]
fn an_end_that_only_thinks_is_not_taken_for_dead() {
    let (mut client, mut server) = pair(QUICK);
    // Longer than the silence that is borne.
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(QUICK.silence.to_std() * 2);
            server.send(&FromAgent::Parts(Vec::new())).unwrap();
            assert_eq!(server.receive::<ToAgent>().unwrap(), Some(ask(1)));
        });
        assert_eq!(client.receive::<FromAgent>().unwrap(), Some(FromAgent::Parts(Vec::new())));
        client.send(&ask(1)).unwrap();
    });
}

#[test]
fn an_end_that_takes_its_time_to_read_loses_nothing() {
    let (client, mut server) = pair(QUICK);
    let (mut reader, writer) = client.split();
    thread::scope(|scope| {
        // Whoever writes much also reads, and so hears that the other end lives.
        scope.spawn(move || assert_eq!(reader.receive::<FromAgent>().unwrap(), None));
        scope.spawn(move || (0..16).for_each(|number| writer.send(&chunk(number, 1 << 20)).unwrap()));
        thread::sleep(QUICK.silence.to_std() * 2);
        for number in 0..16 {
            assert!(server.receive::<Chunk>().unwrap() == Some(chunk(number, 1 << 20)), "chunk {number}");
        }
        assert_eq!(server.receive::<Chunk>().unwrap(), None);
        drop(server);
    });
}

#[test]
fn closing_wakes_whoever_waits() {
    let (client, server) = pair(Pulse::default());
    let closer = client.closer();
    let (mut reader, writer) = client.split();
    thread::scope(|scope| {
        let reading = scope.spawn(move || reader.receive::<FromAgent>());
        // Nobody reads at the other end.
        let writing = scope.spawn(move || (0..).find_map(|n| writer.send(&chunk(n, 1 << 20)).err()));
        thread::sleep(std::time::Duration::from_millis(50));
        closer.close();
        assert!(matches!(reading.join().unwrap(), Err(PeerError::Closed { .. })));
        assert!(matches!(writing.join().unwrap(), Some(PeerError::Closed { .. })));
    });
    drop(server);
}

#[test]
fn what_does_not_come_in_time_may_still_come() {
    let (mut client, server) = pair(Pulse::default());
    let soon = Duration::from_millis(20);
    let error = client.receive_within::<FromAgent>(soon, "answering").unwrap_err();
    assert!(error.to_string().ends_with("timed out after 20 ms while answering"), "{error}");
    server.send(&FromAgent::Parts(Vec::new())).unwrap();
    let heard = client.receive_within(PATIENCE, "answering").unwrap();
    assert_eq!(heard, Some(FromAgent::Parts(Vec::new())));
}

#[test]
fn who_is_not_trusted_cannot_send_much() {
    let (near, far) = (identity(), identity());
    let listener = listener(&far, Pulse::default());
    let address = listener.local_address().to_string();
    thread::scope(|scope| {
        let refused = scope.spawn(|| accept(&listener).unwrap().receive::<ToAgent>().unwrap_err());
        let client = trunkline_control::connect(&address, &near, &far.fingerprint(), PATIENCE).unwrap();
        let name = "x".repeat(STRANGER_FRAME);
        client.send(&Enrolment::Pair { proof: Vec::new(), name }).unwrap();
        let error = refused.join().unwrap().to_string();
        assert!(error.contains(&format!("at most {STRANGER_FRAME} are allowed")), "{error}");
    });
}

#[test]
fn both_greet_and_agree() {
    let (mut client, mut server) = pair(Pulse::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let hello = server.hear(PATIENCE).unwrap();
            assert_eq!((hello.version, hello.purpose), (VERSION, Purpose::Control));
            server.welcome("ottawa").unwrap();
        });
        let welcome = client.introduce(Purpose::Control, PATIENCE).unwrap();
        assert_eq!((welcome.version, welcome.name.as_str()), (VERSION, "ottawa"));
    });
}

#[test]
fn a_refusal_is_told_in_words() {
    let (mut client, mut server) = pair(Pulse::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            server.hear(PATIENCE).unwrap();
            let why = "this controller is not enrolled here";
            server.refuse(Refusal::new(RefusalKind::NotEnrolled, why)).unwrap();
        });
        let error = client.introduce(Purpose::Control, PATIENCE).unwrap_err();
        let refused = "refused: this controller is not enrolled here";
        assert!(error.to_string().ends_with(refused), "{error}");
        assert!(!error.is_bad_input());
    });
}

/// What a later version may say.
struct Later(u8, &'static str);

impl Message for Later {
    fn to_frame(&self) -> Result<Frame, WireError> {
        Ok(Frame { tag: self.0, body: self.1.as_bytes().to_vec() })
    }
    fn from_frame(_: Frame) -> Result<Later, WireError> {
        Err(WireError::Empty)
    }
}

#[test]
fn another_version_is_named_at_both_ends() {
    let (mut client, mut server) = pair(Pulse::default());
    client.send(&Later(b'H', r#"{"version":9,"program":"4.2.0","purpose":"dance","with":[1]}"#)).unwrap();
    let error = server.hear(PATIENCE).unwrap_err().to_string();
    let ours = env!("CARGO_PKG_VERSION");
    let said =
        format!("runs Trunkline 4.2.0 (protocol 9), this is {ours} (protocol {VERSION}); update this one");
    assert!(error.ends_with(&said), "{error}");
    // The other end can tell, too.
    let welcome = client.receive::<Welcome>().unwrap().unwrap();
    assert_eq!((welcome.version, welcome.program.as_str()), (VERSION, ours));

    let (mut client, mut server) = pair(Pulse::default());
    server.send(&Later(b'W', r#"{"version":0,"program":"0.0.9"}"#)).unwrap();
    let error = client.introduce(Purpose::Control, PATIENCE).unwrap_err().to_string();
    assert!(error.starts_with("the agent at 127.0.0.1:"), "{error}");
    let said = format!(
        "runs Trunkline 0.0.9 (protocol 0), this is {ours} (protocol {VERSION}); update the other end"
    );
    assert!(error.ends_with(&said), "{error}");
    assert_eq!(server.receive::<Hello>().unwrap().unwrap().version, VERSION);
}

#[test]
fn what_is_no_greeting_is_refused() {
    for (tag, body) in [(b'H', "{}"), (b'H', "\0"), (b'M', r#""facts""#), (b'Z', "")] {
        let (client, mut server) = pair(Pulse::default());
        client.send(&Later(tag, body)).unwrap();
        let error = server.hear(PATIENCE).unwrap_err();
        assert!(matches!(error, PeerError::Protocol { .. }), "{error}");
    }
    let (client, mut server) = pair(Pulse::default());
    drop(client);
    assert!(matches!(server.hear(PATIENCE), Err(PeerError::CutOff { .. })));
}

#[test]
fn an_end_that_dies_is_not_a_farewell() {
    let (client, mut server): (Connection, Connection) = pair(Pulse::default());
    client.closer().close();
    let error = server.receive::<ToAgent>().unwrap_err();
    assert!(matches!(error, PeerError::CutOff { .. }), "{error}");
}
