use std::net::Ipv4Addr;
use std::sync::mpsc::channel;
use std::time::{Duration as StdDuration, Instant};

use trunkline_transport::xtp::{XtpConfig, XtpGroupConfig, XtpGroupReceiver, XtpGroupSender};
use trunkline_transport::{CloseReason, Membership};

use super::*;

/// The stream: every four bytes are their own number.
const WORDS: u32 = 100_000;
const PIECE: u32 = 250;
const STEP: Duration = Duration::from_millis(5);

/// A group of this process and test, on the loopback interface.
fn group(number: u8) -> Group {
    let port = 30_000 + (std::process::id() % 10_000) as u16;
    Group::new(SocketAddr::new([239, 255, 78, number].into(), port)).on(Ipv4Addr::LOCALHOST)
}

fn sockets(group: &Group) -> GroupSockets {
    GroupSockets::open(group, Ipv4Addr::LOCALHOST.into()).unwrap()
}

/// Waits shorter than on a network, and has patience with a machine that stands still.
fn config(group: Address) -> XtpGroupConfig {
    let reliable = XtpGroupConfig::reliable(group);
    let initial_wait = Duration::from_millis(50);
    XtpGroupConfig { stream: XtpConfig { initial_wait, ..reliable.stream }, ..reliable }
}

/// Hears the stream to its end, and loses every so-manieth packet that arrives.
fn listen(group: &Group, seed: u64, lose_every: u32) -> (Vec<u8>, BTreeMap<&'static str, u64>) {
    let sockets = sockets(group);
    let make = |local, group| XtpGroupReceiver::new(local, &config(group), seed);
    let mut member = GroupMember::new(&sockets, make).unwrap().losing(lose_every);
    let (mut heard, mut end) = (Vec::new(), None);
    let deadline = Instant::now() + StdDuration::from_secs(30);
    while end.is_none() {
        assert!(Instant::now() < deadline, "no end after {} bytes", heard.len());
        member.turn(STEP);
        while member.receive(&mut heard).is_some() {}
        while let Some(event) = member.poll_event() {
            if let Event::Closed(reason) = event {
                end = Some(reason);
            }
        }
    }
    assert_eq!(end, Some(CloseReason::Peer));
    // The sender wants to hear that all has arrived.
    for _ in 0..20 {
        member.turn(STEP);
    }
    let mut counters = BTreeMap::new();
    member.endpoint().counters(&mut |name, count| _ = counters.insert(name, count));
    (heard, counters)
}

struct Speaker<'s> {
    member: GroupMember<'s, XtpGroupSender>,
    events: Vec<Event>,
    deadline: Instant,
}

impl Speaker<'_> {
    fn turn(&mut self) {
        assert!(Instant::now() < self.deadline, "{:?}", self.member.endpoint());
        self.member.turn(STEP);
        self.events.extend(core::iter::from_fn(|| self.member.poll_event()));
    }

    fn turn_until(&mut self, event: Event) {
        while !self.events.contains(&event) {
            self.turn();
        }
    }

    fn say(&mut self, words: core::ops::Range<u32>) {
        for first in words.step_by(PIECE as usize) {
            let piece: Vec<u8> = (first..first + PIECE).flat_map(u32::to_be_bytes).collect();
            while let Err(error) = self.member.send(&piece) {
                assert_eq!(error, SendError::Full);
                self.turn();
            }
        }
    }
}

#[test]
fn a_lossy_receiver_hears_everything_and_a_late_one_all_from_when_it_joined() {
    let group = group(1);
    let (tell_late, told) = channel();
    let ((lossy, counters), (late, _)) = std::thread::scope(|scope| {
        let lossy = scope.spawn(|| listen(&group, 1, 20));
        let late = scope.spawn(move || {
            told.recv().unwrap();
            listen(&group, 2, 0)
        });
        let sockets = sockets(&group);
        let make = |local, group| XtpGroupSender::new(local, &config(group), 3);
        let member = GroupMember::new(&sockets, make).unwrap();
        let deadline = Instant::now() + StdDuration::from_secs(30);
        let mut speaker = Speaker { member, events: Vec::new(), deadline };
        speaker.turn_until(Event::Connected);
        speaker.say(0..WORDS / 2);
        tell_late.send(()).unwrap();
        // It joins when it hears something.
        let mut said = WORDS / 2;
        while speaker.member.endpoint().receivers() < 2 {
            assert!(said < WORDS, "nobody else has joined");
            speaker.say(said..said + PIECE);
            said += PIECE;
            speaker.turn();
        }
        speaker.say(said..WORDS);
        speaker.member.close(Close::Graceful);
        speaker.turn_until(Event::Closed(CloseReason::Local));
        let joined = |event: &&Event| matches!(event, Event::Member(Membership::Joined(_)));
        assert_eq!(speaker.events.iter().filter(joined).count(), 2);
        let dropped = |event: &Event| matches!(event, Event::Member(Membership::Dropped(_)));
        assert!(!speaker.events.iter().any(dropped), "{:?}", speaker.events);
        assert_eq!(speaker.member.unsent(), 0);
        (lossy.join().unwrap(), late.join().unwrap())
    });
    let stream: Vec<u8> = (0..WORDS).flat_map(u32::to_be_bytes).collect();
    assert!(lossy == stream, "{} bytes", lossy.len());
    assert!(counters["reports-sent"] > 0, "{counters:?}");
    assert!(late.len() >= 4 * PIECE as usize && late.len() < stream.len(), "{} bytes", late.len());
    assert!(stream.ends_with(&late));
}

#[test]
fn a_group_that_cannot_be_joined_is_named() {
    let group = Group::new("127.0.0.1:5000".parse().unwrap());
    let error = GroupSockets::open(&group, Ipv4Addr::LOCALHOST.into()).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot join the group 127.0.0.1:5000 from 127.0.0.1: 127.0.0.1 is not a multicast group"
    );
}
