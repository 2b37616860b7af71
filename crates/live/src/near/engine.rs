//! Flows over protocol engines: one thread sends for all members of a flow, turns their engines, and takes what comes
//! back.

use std::collections::VecDeque;

use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_io::{clock, pace};
use trunkline_metrics::Observation;
use trunkline_traffic::{Feedback, MessageBuffer, Source};
use trunkline_transport::framing::{Cover, HEADER_LENGTH, Header, MessageKind, Place};
use trunkline_transport::{CloseReason, SendError};

use super::{Answer, BROKEN, Common, LOOK};
use crate::ceiling::Turn;
use crate::engine::{Application, Counters, Engines, Line};
use crate::events::Outbox;

/// A flow whose engines are connected.
pub(crate) struct EngineFlow<'s> {
    pub(crate) engines: Engines<'s>,
    /// In the order of their ids.
    pub(crate) speakers: Vec<Speaker>,
    /// Whether all of them share one engine; otherwise each has the one at its own place.
    pub(crate) is_shared: bool,
    /// How long a message may wait for its engine before it is given up.
    pub(crate) send_timeout: Option<Duration>,
    /// Its number among the senders.
    pub(crate) sender: usize,
    /// Whether what comes back is what is measured.
    pub(crate) round_trip: bool,
    pub(crate) keeps_payload: bool,
    /// What headers of messages may be.
    pub(crate) cover: Cover,
    /// Whether the source sends as fast as the transport takes it: then it wants nothing in particular, and nothing is
    /// refused when it cannot send.
    pub(crate) is_unpaced: bool,
    pub(crate) spin: Duration,
}

/// A member's source, and what waits for its engine.
pub(crate) struct Speaker {
    id: FlowId,
    source: Box<dyn Source>,
    sequences: Vec<u32>,
    waiting: VecDeque<Waiting>,
    /// Since when the first of these is the next to go.
    head_since: Time,
    /// When the source is to be asked again; not while messages wait.
    due: Time,
    /// Whether the sending ends with it, and it is not over yet.
    awaited: bool,
    /// Whether nothing more is sent.
    is_done: bool,
    /// What holds it back beside its engine, if anything does.
    turn: Option<Turn>,
}

/// A message that the engine did not take yet.
struct Waiting {
    name: Name,
    /// Header room and payload.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Name {
    channel: u16,
    sequence: u32,
    due: Time,
    asks: bool,
}

impl Speaker {
    /// A member with so many channels.
    pub(crate) fn new(
        id: FlowId,
        channels: u16,
        source: Box<dyn Source>,
        awaited: bool,
        turn: Option<Turn>,
    ) -> Speaker {
        Speaker {
            id,
            source,
            sequences: vec![0; usize::from(channels)],
            waiting: VecDeque::new(),
            head_since: Time::ZERO,
            due: Time::ZERO,
            awaited,
            is_done: false,
            turn,
        }
    }
}

/// Sends what the sources want and takes what comes back, until the run is over; says what the engines have counted.
pub(crate) fn converse(flow: EngineFlow<'_>, common: &Common<'_>) -> Counters {
    let EngineFlow {
        mut engines,
        speakers,
        is_shared,
        send_timeout,
        sender,
        round_trip,
        keeps_payload,
        cover,
        is_unpaced,
        spin,
    } = flow;
    pace::reduce_timer_slack();
    let mut talk = Talk {
        common,
        speakers,
        is_shared,
        send_timeout,
        first: 0,
        round_trip,
        keeps_payload,
        cover,
        is_unpaced,
        departures: Some(common.departures(sender)),
        arrivals: common.arrivals(sender),
        messages: MessageBuffer::with_headroom(HEADER_LENGTH),
        spare: Vec::new(),
        counters: Counters::from([(BROKEN.to_owned(), 0)]),
    };
    while !common.stage.is_over() {
        let now = common.clock.now();
        for member in 0..talk.speakers.len() {
            if common.has_begun() && talk.speakers[member].due <= now {
                engines.pour(if is_shared { 0 } else { member }, &mut talk);
            }
        }
        let given_up = talk.give_up(common.clock.now());
        let next = talk.look_around(common.clock.now()).min(given_up);
        // Over the last stretch before something is due it only looks at what has arrived.
        let next = common.clock.to_raw(next).saturating_sub(spin.as_nanos());
        engines.turn(next.min(common.clock.to_raw(now + LOOK)), &mut talk);
        // The far end closes when the run is over; before that nobody should.
        let ended = engines.take_ended();
        if !common.stage.is_over() {
            ended.into_iter().for_each(|reason| note_end(reason, &mut talk.counters));
        }
    }
    if common.is_at_its_end() {
        talk.refuse_overdue();
    }
    talk.end_sending();
    let mut counters = talk.counters;
    counters.extend(engines.close());
    counters
}

/// Counts a conversation that has ended before the run did, by why it did.
fn note_end(reason: CloseReason, counters: &mut Counters) {
    let how = match reason {
        CloseReason::NotConnected => "not-connected",
        CloseReason::Local => "closed",
        CloseReason::Peer => "closed-by-peer",
        CloseReason::Reset => "reset-by-peer",
        CloseReason::TimedOut(_) => "no-answer",
        CloseReason::Untrusted => "untrusted",
    };
    *counters.entry(BROKEN.to_owned()).or_default() += 1;
    *counters.entry(format!("{BROKEN}-{how}")).or_default() += 1;
}

struct Talk<'t> {
    common: &'t Common<'t>,
    speakers: Vec<Speaker>,
    is_shared: bool,
    send_timeout: Option<Duration>,
    /// Of those who share an engine, who is the first to send through it.
    first: usize,
    round_trip: bool,
    keeps_payload: bool,
    cover: Cover,
    is_unpaced: bool,
    /// Until all members are done with sending.
    departures: Option<Outbox>,
    arrivals: Outbox,
    messages: MessageBuffer,
    spare: Vec<Vec<u8>>,
    /// What is counted beside what the engines count.
    counters: Counters,
}

impl Application for Talk<'_> {
    fn reads(&self, _: usize) -> bool {
        true
    }

    fn message(&mut self, place: usize, header: Header, bytes: &mut [u8]) {
        let Header { flow, channel, sequence, sent, reflected, kind, .. } = header;
        let member = if self.is_shared { flow.0.wrapping_sub(self.speakers[0].id.0) as usize } else { place };
        let Some(speaker) = self.speakers.get_mut(member).filter(|speaker| {
            let is_its_own = speaker.id == flow && usize::from(channel) < speaker.sequences.len();
            is_its_own && kind == MessageKind::Reflected
        }) else {
            return self.stray(place, bytes.len());
        };
        let now = self.common.clock.now();
        if self.round_trip {
            let payload = header.message(bytes);
            let length = Bytes(payload.len() as u64);
            let what = Observation::Received { channel, sequence, sent, reflected, payload: length };
            self.arrivals.push(now, flow, what, self.keeps_payload.then_some(payload));
        }
        let answer = Answer { flow, channel, sequence, at: now };
        answer.tell(speaker.source.as_mut(), now, &mut self.arrivals);
    }

    fn stray(&mut self, place: usize, bytes: usize) {
        let what = Observation::Stray { bytes: Bytes(bytes as u64) };
        self.arrivals.push(self.common.clock.now(), self.speakers[place].id, what, None);
    }

    fn pour(&mut self, place: usize, line: &mut Line<'_>) {
        if !self.common.has_begun() {
            return;
        }
        if !self.is_shared {
            self.pour_member(place, line);
            return;
        }
        // Who finds the engine full is the last to find it empty again; the others wait for that too.
        let (first, members) = (self.first, self.speakers.len());
        let mut is_full = false;
        for member in (0..members).map(|n| (first + n) % members) {
            if is_full {
                self.speakers[member].due = Time::MAX;
            } else if !self.pour_member(member, line) {
                is_full = true;
                self.first = member + 1;
            }
        }
    }
}

impl Talk<'_> {
    /// Sends what a member has; false if the engine has not taken all of it.
    fn pour_member(&mut self, member: usize, line: &mut Line<'_>) -> bool {
        // What an answer has brought closer is seen by filling too.
        self.send_waiting(member, line) && {
            self.fill(member, line);
            self.speakers[member].waiting.is_empty()
        }
    }

    /// Sends what waits; false if the engine has not taken all of it.
    fn send_waiting(&mut self, member: usize, line: &mut Line<'_>) -> bool {
        let Some(mut waiting) = self.speakers[member].waiting.pop_front() else { return true };
        loop {
            let Waiting { name, bytes } = &mut waiting;
            if !self.offer(member, *name, bytes, line) {
                self.speakers[member].waiting.push_front(waiting);
                return false;
            }
            self.spare.push(waiting.bytes);
            self.speakers[member].head_since = self.common.clock.now();
            match self.speakers[member].waiting.pop_front() {
                Some(next) => waiting = next,
                None => break,
            }
        }
        self.spare.truncate(64);
        let now = self.common.clock.now();
        self.speakers[member].source.notify(now, Feedback::Writable);
        true
    }

    /// Sends what the source wants until it is not due, or until the engine is full: then the rest waits.
    fn fill(&mut self, member: usize, line: &mut Line<'_>) {
        let mut messages = core::mem::take(&mut self.messages);
        while !self.speakers[member].is_done && self.common.stage.is_sending() {
            let now = self.common.clock.now();
            let speaker = &mut self.speakers[member];
            speaker.due = speaker.source.next_due().unwrap_or(Time::MAX);
            if speaker.due <= now
                && let Some(turn) = &mut speaker.turn
            {
                speaker.due = self.common.clock.from_raw(turn.at(clock::raw_now())).max(speaker.due);
            }
            if speaker.due > now {
                break;
            }
            self.produce(member, now, &mut messages);
            if messages.messages().is_empty() {
                self.speakers[member].due = now + LOOK; // it is over; never asked twice at one moment
                break;
            }
            if let Some(turn) = &mut self.speakers[member].turn {
                turn.sent(messages.messages().iter().map(|message| message.range.len()).sum());
            }
            for index in 0..messages.messages().len() {
                self.send(member, &mut messages, index, line);
            }
            if !self.speakers[member].waiting.is_empty() {
                self.speakers[member].due = Time::MAX;
                break;
            }
        }
        self.messages = messages;
    }

    /// Asks a source for what is due.
    fn produce(&mut self, member: usize, now: Time, messages: &mut MessageBuffer) {
        messages.clear();
        let speaker = &mut self.speakers[member];
        speaker.source.produce(now, messages);
        if let Some(departures) = &mut self.departures {
            departures.push_overflows(speaker.id, messages);
        }
    }

    /// Sends a message of those that a source has produced, or lets it wait behind those that do.
    fn send(&mut self, member: usize, messages: &mut MessageBuffer, index: usize, line: &mut Line<'_>) {
        let Some(name) = self.name(member, messages, index) else { return };
        let bytes = messages.bytes_mut(index);
        if !self.speakers[member].waiting.is_empty() || !self.offer(member, name, bytes, line) {
            let mut kept = self.spare.pop().unwrap_or_default();
            kept.clear();
            kept.extend_from_slice(bytes);
            let speaker = &mut self.speakers[member];
            if speaker.waiting.is_empty() {
                speaker.head_since = self.common.clock.now();
            }
            speaker.waiting.push_back(Waiting { name, bytes: kept });
        }
    }

    /// What tells a message from all others of its member.
    fn name(&mut self, member: usize, messages: &MessageBuffer, index: usize) -> Option<Name> {
        let produced = &messages.messages()[index];
        let counter = self.speakers[member].sequences.get_mut(usize::from(produced.channel))?;
        let sequence = *counter;
        *counter = counter.wrapping_add(1);
        Some(Name { channel: produced.channel, sequence, due: produced.due, asks: produced.asks })
    }

    /// Offers a message to the engine; false if that has no room for it now. What it will never take is refused.
    fn offer(&mut self, member: usize, name: Name, bytes: &mut [u8], line: &mut Line<'_>) -> bool {
        let id = self.speakers[member].id;
        let Name { channel, sequence, due, asks } = name;
        let length = bytes.len() - HEADER_LENGTH;
        let start = self.common.clock.now();
        let header = Header {
            key: self.common.key,
            length: length as u32,
            place: Place::Before,
            flow: id,
            sequence,
            channel,
            kind: if asks { MessageKind::Ask } else { MessageKind::Forward },
            late: start.since(due),
            sent: start,
            reflected: Time::ZERO,
        };
        match line.send(header.stamp(bytes, self.cover)) {
            Ok(()) => {}
            Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => return false,
            Err(error) => {
                if let SendError::TooLarge { limit } = error {
                    let added = self.cover.added(limit);
                    let counter = format!("refused-larger-than-{}", limit.saturating_sub(added));
                    *self.counters.entry(counter).or_default() += 1;
                }
                self.refuse(member, name, length);
                // Nothing would hold back a source without a pace: it ends with its conversation.
                self.speakers[member].is_done |= self.is_unpaced && matches!(error, SendError::Closed(_));
                return true;
            }
        }
        let Some(departures) = &mut self.departures else { return true };
        let payload = Bytes(length as u64);
        departures.push(start, id, Observation::Sent { channel, sequence, due, payload }, None);
        let took_nanos = self.common.clock.now().since(start).as_nanos();
        let call = Observation::SendCall { error_nanos: start.since(due).as_nanos(), took_nanos };
        departures.push(start, id, call, None);
        true
    }

    fn refuse(&mut self, member: usize, name: Name, length: usize) {
        let Some(departures) = &mut self.departures else { return };
        let Name { channel, sequence, due, .. } = name;
        let what = Observation::Refused { channel, sequence, due, payload: Bytes(length as u64) };
        departures.push(self.common.clock.now(), self.speakers[member].id, what, None);
    }

    /// Gives up the messages that have waited for the whole send timeout, as a blocking send would; says when the next
    /// will have.
    fn give_up(&mut self, now: Time) -> Time {
        let Some(timeout) = self.send_timeout else { return Time::MAX };
        let mut next = Time::MAX;
        for member in 0..self.speakers.len() {
            while self.speakers[member].head_since + timeout <= now
                && let Some(Waiting { name, bytes }) = self.speakers[member].waiting.pop_front()
            {
                self.refuse(member, name, bytes.len() - HEADER_LENGTH);
                let speaker = &mut self.speakers[member];
                speaker.head_since = now;
                if speaker.waiting.is_empty() {
                    speaker.source.notify(now, Feedback::Writable);
                    speaker.due = now;
                }
            }
            let speaker = &self.speakers[member];
            if !speaker.waiting.is_empty() {
                next = next.min(speaker.head_since + timeout);
            }
        }
        next
    }

    /// Passes on what was observed, sees who is done, and says when the next source is due.
    fn look_around(&mut self, now: Time) -> Time {
        let mut next = Time::MAX;
        let mut all_done = true;
        for speaker in &mut self.speakers {
            let over = match speaker.awaited {
                true => speaker.source.over_at().is_some_and(|at| at <= now),
                false => speaker.source.is_finished(),
            };
            let over = over && speaker.waiting.is_empty();
            if over && core::mem::take(&mut speaker.awaited) {
                self.common.stage.one_is_over();
            }
            let has_nothing_due = speaker.source.next_due().is_none() && now >= self.common.stop;
            speaker.is_done |= over || (speaker.waiting.is_empty() && has_nothing_due);
            if speaker.is_done {
                speaker.due = Time::MAX;
            }
            all_done &= speaker.is_done;
            next = next.min(speaker.due);
        }
        self.arrivals.tick(now);
        if all_done || !self.common.stage.is_sending() {
            self.end_sending();
        } else if let Some(departures) = &mut self.departures {
            departures.tick(now);
            if next.since(now) >= LOOK {
                departures.flush(now);
            }
        }
        next
    }

    /// Refuses what still waits. Nothing is sent after this, and who records is told so.
    fn end_sending(&mut self) {
        for member in 0..self.speakers.len() {
            let speaker = &mut self.speakers[member];
            (speaker.is_done, speaker.due) = (true, Time::MAX);
            for Waiting { name, bytes } in core::mem::take(&mut speaker.waiting) {
                if !self.is_unpaced {
                    self.refuse(member, name, bytes.len() - HEADER_LENGTH);
                }
            }
        }
        self.departures = None;
    }

    /// Refuses what should have left before the end, behind what waits: a sender that is held up must not hide it.
    fn refuse_overdue(&mut self) {
        if self.is_unpaced {
            return;
        }
        let now = self.common.clock.now();
        let mut messages = core::mem::take(&mut self.messages);
        for member in 0..self.speakers.len() {
            for Waiting { name, bytes } in core::mem::take(&mut self.speakers[member].waiting) {
                self.refuse(member, name, bytes.len() - HEADER_LENGTH);
            }
            while !self.speakers[member].is_done
                && self.speakers[member].source.next_due().is_some_and(|due| due <= now)
            {
                self.produce(member, now, &mut messages);
                if messages.messages().is_empty() {
                    break;
                }
                for index in 0..messages.messages().len() {
                    let Some(name) = self.name(member, &messages, index) else { continue };
                    self.refuse(member, name, messages.bytes(index).len() - HEADER_LENGTH);
                }
            }
        }
        self.messages = messages;
    }
}
