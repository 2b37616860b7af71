//! Talkers and listeners by themselves, over conversations that refuse, lose and make up what a test wants.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::VecDeque;
use std::sync::Arc;

use trunkline_core::{Bytes, Duration, Ecn, FlowId, Time};
use trunkline_flows::{
    Answer, Buffers, Delivery, Found, Lane, Listener, ListenerSpec, Observer, Progress, Reader, Reply, Side,
    Talker, TalkerSpec,
};
use trunkline_metrics::Observation;
use trunkline_traffic::{Feedback, MessageBuffer, Source};
use trunkline_transport::framing::{Cover, HEADER_LENGTH, Header, Key, MessageKind, Place, decode_message};
use trunkline_transport::{
    Close, CloseReason, Conversation, Event, Features, Message, Received, SendError, features,
};

const KEY: Key = Key(0x7472_756e);

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

/// A source that wants these messages, of so many bytes each, sent at these times on channel 0 or 1.
struct Script(VecDeque<(Time, u16, usize)>, Arc<std::sync::Mutex<Vec<Feedback>>>);

impl Source for Script {
    fn next_due(&self) -> Option<Time> {
        self.0.front().map(|(due, ..)| *due)
    }
    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some((due, channel, length)) = self.0.pop_front_if(|(due, ..)| *due <= now) {
            out.push_zeros(channel, due, length, false);
        }
    }
    fn notify(&mut self, _: Time, what: Feedback) {
        self.1.lock().unwrap().push(what);
    }
    fn is_finished(&self) -> bool {
        self.0.is_empty()
    }
}

/// Takes so many messages, of at most so many bytes.
struct Pipe {
    room: usize,
    limit: usize,
    closed: Option<CloseReason>,
    taken: VecDeque<Vec<u8>>,
    features: &'static Features,
}

impl Pipe {
    fn with_room(room: usize) -> Pipe {
        Pipe { room, limit: 1000, closed: None, taken: VecDeque::new(), features: &features::UDP }
    }
}

impl Conversation for Pipe {
    fn send(&mut self, _: Time, message: Message<'_>) -> Result<(), SendError> {
        if let Some(reason) = self.closed {
            return Err(SendError::Closed(reason));
        }
        if message.bytes.len() > self.limit {
            return Err(SendError::TooLarge { limit: self.limit });
        }
        self.room = self.room.checked_sub(1).ok_or(SendError::Full)?;
        self.taken.push_back(message.bytes.to_vec());
        Ok(())
    }
    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let bytes = self.taken.pop_front()?;
        into.extend_from_slice(&bytes);
        Some(Received { length: bytes.len(), ecn: Ecn::NotCapable })
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn close(&mut self, _: Time, _: Close) {}
    fn features(&self) -> &'static Features {
        self.features
    }
}

/// What was observed, in one line each.
#[derive(Default)]
struct Log(Vec<String>);

impl Observer for Log {
    fn observe(&mut self, at: Time, flow: FlowId, what: Observation, payload: Option<&[u8]>) {
        let at = at.since(Time::ZERO).as_nanos() / 1_000_000;
        let what = match what {
            Observation::Sent { channel, sequence, due, payload } => {
                format!("sent {channel}/{sequence} due {} of {}", due.as_nanos() / 1_000_000, payload.0)
            }
            Observation::Refused { channel, sequence, due, payload } => {
                format!("refused {channel}/{sequence} due {} of {}", due.as_nanos() / 1_000_000, payload.0)
            }
            Observation::Received { channel, sequence, payload: Bytes(length), .. } => {
                let kept = payload.map_or("", |_| " kept");
                format!("received {channel}/{sequence} of {length}{kept}")
            }
            Observation::Stray { bytes } => format!("unmatched {}", bytes.0),
            other => format!("{other:?}"),
        };
        self.0.push(format!("{at} ms, {}: {what}", flow.0));
    }
    fn oversize(&mut self, largest: usize) {
        self.0.push(format!("larger than {largest}"));
    }
}

/// A talker, and all that it works with.
struct Sender {
    talker: Talker,
    heard: Arc<std::sync::Mutex<Vec<Feedback>>>,
    spec: TalkerSpec,
    lane: Lane,
    buffers: Buffers,
    log: Log,
}

fn sender(messages: &[(u64, u16, usize)]) -> Sender {
    let heard = Arc::default();
    let script = messages.iter().map(|&(due, channel, length)| (ms(due), channel, length)).collect();
    Sender {
        talker: Talker::new(Box::new(Script(script, Arc::clone(&heard))), FlowId(4), 2),
        heard,
        spec: TalkerSpec {
            key: KEY,
            cover: Some(Cover { message: true, short: trunkline_transport::framing::Short::No }),
            send_timeout: Some(Duration::from_millis(50)),
            is_saturating: false,
        },
        lane: Lane::default(),
        buffers: Buffers::new(8),
        log: Log::default(),
    }
}

impl Sender {
    fn waiting(&mut self, now: u64, pipe: &mut Pipe) -> Progress {
        self.talker.send_waiting(ms(now), (&self.spec, &mut self.buffers), pipe, &mut self.log)
    }

    fn fill(&mut self, now: u64, pipe: &mut Pipe) {
        while self.talker.next_due().is_some_and(|due| due <= ms(now)) {
            self.talker.produce(ms(now), &mut self.lane, &mut self.log);
            let mut next = || {
                let parts = (&self.spec, &mut self.lane, &mut self.buffers);
                self.talker.send_next(ms(now), parts, pipe, &mut self.log)
            };
            while next() != Progress::Nothing {}
        }
    }
}

#[test]
fn messages_are_counted_by_channel_and_carry_when_they_left() {
    let mut sender = sender(&[(1, 0, 100), (2, 1, 200), (3, 0, 20)]);
    let mut pipe = Pipe::with_room(9);
    sender.fill(5, &mut pipe);
    let expected = ["sent 0/0 due 1 of 100", "sent 1/0 due 2 of 200", "sent 0/1 due 3 of 20"];
    assert_eq!(sender.log.0, expected.map(|line| format!("5 ms, 4: {line}")));
    // The header stands in the message, or in front of one that is shorter.
    assert_eq!(pipe.taken.iter().map(Vec::len).collect::<Vec<_>>(), [100, 200, HEADER_LENGTH + 20]);
    let (header, _) = decode_message(&pipe.taken[1], KEY).unwrap();
    assert_eq!((header.flow, header.channel, header.sequence), (FlowId(4), 1, 0));
    assert_eq!((header.sent, header.late), (ms(5), Duration::from_millis(3)));
    assert_eq!(sender.talker.next_due(), None);
    assert!(sender.talker.is_finished());
}

#[test]
fn what_a_full_conversation_does_not_take_waits_in_order() {
    let mut sender = sender(&[(0, 0, 50), (0, 1, 50), (0, 0, 50), (9, 0, 50)]);
    let mut pipe = Pipe::with_room(1);
    sender.fill(0, &mut pipe);
    assert!(sender.talker.is_waiting());
    assert_eq!(sender.talker.next_due(), None, "a source is not asked while messages wait");
    assert_eq!(sender.waiting(3, &mut pipe), Progress::Full);
    pipe.room = 2;
    assert_eq!(sender.waiting(10, &mut pipe), Progress::Sent);
    assert!(sender.heard.lock().unwrap().is_empty());
    assert_eq!(sender.waiting(11, &mut pipe), Progress::Sent);
    assert_eq!(sender.waiting(11, &mut pipe), Progress::Nothing);
    assert_eq!(*sender.heard.lock().unwrap(), [Feedback::Writable]);
    pipe.room = 9;
    sender.fill(11, &mut pipe);
    let expected = [
        "0 ms, 4: sent 0/0 due 0 of 50",
        "10 ms, 4: sent 1/0 due 0 of 50",
        "11 ms, 4: sent 0/1 due 0 of 50",
        "11 ms, 4: sent 0/2 due 9 of 50",
    ];
    assert_eq!(sender.log.0, expected);
}

#[test]
fn the_first_message_that_waits_is_given_up_after_the_send_timeout() {
    let mut sender = sender(&[(0, 0, 50), (0, 0, 50), (0, 0, 50)]);
    let mut pipe = Pipe::with_room(1);
    sender.fill(0, &mut pipe);
    assert_eq!(sender.talker.gives_up_at(&sender.spec), Some(ms(50)));
    let give_up = |sender: &mut Sender, now| {
        sender.talker.give_up(ms(now), (&sender.spec, &mut sender.buffers), &mut sender.log)
    };
    assert!(!give_up(&mut sender, 49));
    assert!(give_up(&mut sender, 50));
    assert!(!give_up(&mut sender, 50), "the next has only just become the first");
    assert!(give_up(&mut sender, 100));
    assert_eq!(sender.talker.gives_up_at(&sender.spec), None);
    let expected = ["50 ms, 4: refused 0/1 due 0 of 50", "100 ms, 4: refused 0/2 due 0 of 50"];
    assert_eq!(sender.log.0[1..], expected);
}

#[test]
fn a_message_that_is_too_large_is_refused_and_counted_and_the_next_goes() {
    let mut sender = sender(&[(0, 0, 1001), (0, 0, 1000)]);
    sender.fill(0, &mut Pipe::with_room(9));
    let expected =
        ["larger than 1000", "0 ms, 4: refused 0/0 due 0 of 1001", "0 ms, 4: sent 0/1 due 0 of 1000"];
    assert_eq!(sender.log.0, expected);
    // Where the header stands in front, it takes a part of what a message may have.
    sender.spec.cover = Some(Cover::default());
    sender.log.0.clear();
    let script = Script(VecDeque::from([(ms(0), 0, 961)]), Arc::default());
    sender.talker = Talker::new(Box::new(script), FlowId(4), 1);
    sender.fill(0, &mut Pipe::with_room(9));
    assert_eq!(sender.log.0, ["larger than 960", "0 ms, 4: refused 0/0 due 0 of 961"]);
}

#[test]
fn a_saturating_source_ends_when_none_of_its_messages_fits() {
    let messages = |sizes: &[usize]| -> Vec<(u64, u16, usize)> {
        (0..2_000).zip(sizes.iter().cycle()).map(|(due, &size)| (due, 0, size)).collect()
    };
    let sent = |sizes: &[usize]| {
        let mut sender = sender(&messages(sizes));
        sender.spec.is_saturating = true;
        let mut pipe = Pipe::with_room(9_999);
        (0..2_000).for_each(|now| sender.fill(now, &mut pipe));
        assert!(sender.talker.is_finished());
        sender.log.0.iter().filter(|line| line.contains(": ")).count()
    };
    assert_eq!(sent(&[1001]), 1_000, "after that it is cut off");
    assert_eq!(sent(&[1001, 1000]), 2_000, "where sizes vary, the next one may fit");
}

#[test]
fn a_conversation_that_has_ended_refuses_and_cuts_a_saturating_source_off() {
    for is_saturating in [false, true] {
        let mut sender = sender(&[(0, 0, 50), (1, 0, 50)]);
        sender.spec.is_saturating = is_saturating;
        let mut pipe = Pipe { closed: Some(CloseReason::NotConnected), ..Pipe::with_room(9) };
        sender.fill(0, &mut pipe);
        assert!(sender.talker.is_waiting(), "one that has not begun may still");
        pipe.closed = Some(CloseReason::Reset);
        assert_eq!(sender.waiting(1, &mut pipe), Progress::Sent);
        sender.fill(2, &mut pipe);
        assert_eq!(sender.log.0[0], "1 ms, 4: refused 0/0 due 0 of 50");
        assert_eq!(sender.log.0.len(), if is_saturating { 1 } else { 2 });
        assert!(sender.talker.is_finished());
    }
}

#[test]
fn at_the_end_all_is_refused_that_was_due() {
    let mut sender = sender(&[(0, 0, 50), (10, 0, 50), (20, 1, 50), (30, 0, 50)]);
    sender.fill(0, &mut Pipe::with_room(0));
    let Sender { talker, spec, lane, buffers, log, .. } = &mut sender;
    talker.refuse_overdue(ms(20), (spec, lane, buffers), log);
    let expected = ["refused 0/0 due 0 of 50", "refused 0/1 due 10 of 50", "refused 1/0 due 20 of 50"];
    assert_eq!(log.0, expected.map(|line| format!("20 ms, 4: {line}")));
}

#[test]
fn many_messages_of_a_lane_leave_at_once() {
    let mut sender = sender(&[(0, 0, 50), (1, 1, 60)]);
    let Sender { talker, spec, lane, log, .. } = &mut sender;
    assert_eq!(talker.produce(ms(2), lane, log), 2);
    lane.stamp(0..2, ms(3), spec);
    assert_eq!((lane.bytes(0..2, spec), lane.due(1)), (110, ms(1)));
    let headers = [0, 1].map(|place| decode_message(lane.stamped(place, spec), KEY).unwrap().0);
    assert_eq!(headers.map(|header| (header.channel, header.sent)), [(0, ms(3)), (1, ms(3))]);
    lane.sent(0, ms(3), log);
    lane.refuse(1, ms(4), log);
    assert_eq!(log.0, ["3 ms, 4: sent 0/0 due 0 of 50", "4 ms, 4: refused 1/0 due 1 of 60"]);
    lane.clear();
    assert!(lane.is_empty());
}

/// Three members from id 4 on, with two channels and two sinks.
fn spec() -> ListenerSpec {
    ListenerSpec {
        first: 4,
        members: 3,
        ids: 6,
        channels: 2,
        reflect: false,
        answer: None,
        cover: trunkline_transport::framing::Cover::default(),
        keeps_payload: false,
    }
}

fn listener(side: Side, spec: ListenerSpec) -> Listener {
    Listener::new(side, Arc::new([spec]), 4..7)
}

fn message(kind: MessageKind, flow: u32, channel: u16) -> (Header, Vec<u8>) {
    let (late, reflected) = (Duration::ZERO, Time::ZERO);
    let (flow, sent) = (FlowId(flow), ms(1));
    let header = Header {
        key: KEY,
        length: 10,
        place: Place::Before,
        flow,
        sequence: 3,
        channel,
        kind,
        late,
        sent,
        reflected,
    };
    let mut bytes = vec![7; HEADER_LENGTH + 10];
    header.encode(&mut bytes);
    (header, bytes)
}

#[test]
fn what_is_not_for_this_end_is_unmatched_wherever_it_is_found() {
    use MessageKind::{Ask, End, Forward, Reflected};
    let unmatched = "2 ms, 4: unmatched 50";
    for (side, kind, flow, channel, expected) in [
        (Side::Sink(0), Forward, 5, 1, Some("2 ms, 5: received 1/3 of 10")),
        (Side::Sink(1), Forward, 5, 1, Some("2 ms, 8: received 1/3 of 10")),
        (Side::Sink(0), Ask, 6, 0, Some("2 ms, 6: received 0/3 of 10")),
        (Side::Sink(0), End, 4, 0, None),
        // Another flow's, another channel's, and what goes the other way.
        (Side::Sink(0), Forward, 3, 0, Some(unmatched)),
        (Side::Sink(0), Forward, 7, 0, Some(unmatched)),
        (Side::Sink(0), Forward, 4, 2, Some(unmatched)),
        (Side::Sink(0), Reflected, 4, 0, Some(unmatched)),
        (Side::Source, Forward, 4, 0, Some(unmatched)),
        (Side::Source, End, 4, 0, Some(unmatched)),
        (Side::Source, Reflected, 10, 0, Some(unmatched)),
    ] {
        let mut log = Log::default();
        let (header, bytes) = message(kind, flow, channel);
        let delivery = listener(side, spec()).deliver(ms(2), &header, &bytes, &mut log);
        assert_eq!(delivery, Delivery::Done);
        assert_eq!(
            log.0,
            expected.into_iter().collect::<Vec<_>>(),
            "{side:?} {kind:?} of {flow}, channel {channel}"
        );
    }
}

#[test]
fn a_conversation_of_one_member_brings_no_messages_of_another() {
    let mut log = Log::default();
    let listener = Listener::new(Side::Sink(0), Arc::new([spec()]), 5..6);
    for flow in [4, 5, 6] {
        let (header, bytes) = message(MessageKind::Forward, flow, 0);
        listener.deliver(ms(2), &header, &bytes, &mut log);
    }
    assert_eq!(log.0, ["2 ms, 5: unmatched 50", "2 ms, 5: received 0/3 of 10", "2 ms, 5: unmatched 50"]);
}

#[test]
fn a_reply_is_the_message_or_as_long_as_the_flow_says() {
    let reflecting = ListenerSpec { reflect: true, ..spec() };
    let answering = ListenerSpec { answer: Some(4), ..spec() };
    for (spec, kind, expected, observed) in [
        (reflecting, MessageKind::Forward, Some(Reply::Whole), 0),
        (reflecting, MessageKind::Ask, Some(Reply::Whole), 0),
        (answering, MessageKind::Ask, Some(Reply::Bytes(4, spec().cover)), 1),
        (answering, MessageKind::Forward, None, 1),
    ] {
        let mut log = Log::default();
        let (header, bytes) = message(kind, 5, 1);
        let delivery = listener(Side::Sink(0), spec).deliver(ms(2), &header, &bytes, &mut log);
        assert_eq!(log.0.len(), observed, "one way latency is measured at the sink, a round trip is not");
        let Some(reply) = expected else {
            assert_eq!(delivery, Delivery::Done);
            continue;
        };
        assert_eq!(delivery, Delivery::Reply(FlowId(5), reply));
        let mut back = Vec::new();
        Listener::reply(ms(2), &header, (FlowId(5), reply), &bytes, &mut back);
        assert_eq!(back.len(), reply.length(&header));
        let (found, _) = decode_message(&back, KEY).unwrap();
        assert_eq!((found.kind, found.sequence, found.reflected), (MessageKind::Reflected, 3, ms(2)));
        // At the source it is measured if it is a round trip, and answers its message in any case.
        let mut log = Log::default();
        let delivery = listener(Side::Source, spec).deliver(ms(4), &found, &back, &mut log);
        let answer = Answer { flow: FlowId(5), channel: 1, sequence: 3, at: ms(4) };
        assert_eq!(delivery, Delivery::Answered(answer));
        assert_eq!(log.0.len(), usize::from(spec.reflect));
    }
}

#[test]
fn replies_wait_in_order_and_hold_the_reading_back() {
    let mut listener = listener(Side::Sink(0), spec());
    let (mut buffers, mut pipe) = (Buffers::new(8), Pipe::with_room(0));
    let mut kept = 0;
    while listener.reads() {
        listener.keep_reply(vec![kept; 3]);
        kept += 1;
    }
    assert_eq!(kept, 16);
    assert_eq!(listener.send_reply(ms(0), &mut buffers, &mut pipe), None);
    pipe.room = 1;
    assert_eq!(listener.send_reply(ms(0), &mut buffers, &mut pipe), Some(3));
    assert_eq!(pipe.taken, [vec![0; 3]]);
    assert!(listener.reads() && listener.has_replies());
    pipe.closed = Some(CloseReason::Reset);
    while listener.send_reply(ms(0), &mut buffers, &mut pipe).is_some() {}
    assert_eq!(listener.not_reflected(), 15);
}

#[test]
fn a_reader_finds_datagrams_and_the_messages_of_a_stream_alike() {
    let (_, first) = message(MessageKind::Forward, 4, 0);
    let (_, second) = message(MessageKind::Forward, 5, 1);
    for features in [&features::UDP, &features::TCP] {
        let mut reader = Reader::new(features, KEY, 4..7);
        let mut pipe = Pipe { features, ..Pipe::with_room(9) };
        pipe.taken = match features.message_oriented {
            true => VecDeque::from([first.clone(), vec![1; 9], second.clone()]),
            false => {
                let all = [&first[..], &[1; 9], &second[..]].concat();
                all.chunks(7).map(<[u8]>::to_vec).collect()
            }
        };
        let (mut scratch, mut found) = (Vec::new(), Vec::new());
        while reader.receive(&mut pipe, &mut scratch) {
            reader.messages(&mut scratch, |what| match what {
                Found::Message(header, bytes) => found.push((header.flow.0, bytes.len())),
                Found::Unmatched(bytes) => found.push((0, bytes)),
            });
        }
        assert_eq!(found, [(4, 50), (0, 9), (5, 50)], "{}", features.name);
        assert_eq!(reader.finish(), 0);
    }
}

#[test]
fn messages_without_headers_are_found_by_what_was_sent() {
    let mut reader = Reader::unframed();
    for (sequence, length) in [(0, 3), (1, 1), (2, 4)] {
        let (header, _) = message(MessageKind::Forward, 4, 0);
        reader.expect(&Header { sequence, length, ..header });
    }
    let mut pipe = Pipe::with_room(9);
    pipe.taken = [&b"ab"[..], b"cde", b"fg", b"h"].map(<[u8]>::to_vec).into();
    let (mut scratch, mut found) = (Vec::new(), Vec::new());
    while reader.receive(&mut pipe, &mut scratch) {
        reader.messages(&mut scratch, |what| match what {
            Found::Message(header, bytes) => found.push((header.sequence, bytes[HEADER_LENGTH..].to_vec())),
            Found::Unmatched(_) => panic!("nothing else was sent"),
        });
    }
    assert_eq!(found, [(0, b"abc".to_vec()), (1, b"d".to_vec()), (2, b"efgh".to_vec())]);
}
