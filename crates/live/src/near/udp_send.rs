//! One thread sends for all UDP flows, each message when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_io::poll::Interest;
use trunkline_io::udp::SendBatch;
use trunkline_io::{Pacer, Poller, clock};
use trunkline_metrics::Observation;
use trunkline_traffic::{MessageBuffer, Produced, Source};
use trunkline_transport::framing::{Cover, HEADER_LENGTH, Header, Key, MessageKind, Place};

use super::{Answer, Answers, Common, LOOK};
use crate::ceiling::Turn;
use crate::events::Outbox;

/// The UDP sender's number among the senders.
pub(crate) const SENDER: usize = 0;

/// As many datagrams go to the kernel at once.
const BATCH: usize = 64;
/// How often to look whether members are over with which the sending ends.
const WATCH: Duration = Duration::from_millis(1);
/// A socket that takes nothing for so long has what waits for it refused.
const PATIENCE: Duration = Duration::from_millis(10);

/// One member of a UDP flow.
pub(crate) struct Member {
    pub(crate) id: FlowId,
    /// The socket it sends through.
    pub(crate) lane: usize,
    pub(crate) source: Box<dyn Source>,
    pub(crate) channels: u16,
    /// What headers of messages may be.
    pub(crate) cover: Cover,
    /// Whether an answer can make its source due, so that it has to be told at once.
    pub(crate) answered: bool,
    /// Whether the sending ends with it.
    pub(crate) awaited: bool,
    /// What holds it back beside the answers it waits for, if anything does.
    pub(crate) turn: Option<Turn>,
}

/// Sends until the sources are finished, or until the run is stopped or over: then what was due by its end and has not
/// left is refused.
pub(crate) fn send(
    members: Vec<Member>,
    sockets: &[UdpSocket],
    spin: Duration,
    common: &Common<'_>,
    answers: Option<&Answers>,
) {
    let mut scheduler = Scheduler {
        common,
        pacer: Pacer::new(common.clock, spin),
        answers: answers.map(|answers| (answers, members.iter().any(|member| member.answered))),
        seen: Vec::new(),
        first: members.iter().map(|member| member.id.0).min().unwrap_or_default(),
        places: Vec::new(),
        awaited: (0..).zip(&members).filter(|(_, member)| member.awaited).map(|(place, _)| place).collect(),
        next_look: Time::ZERO,
        agenda: BinaryHeap::with_capacity(members.len() * 2),
        lanes: sockets.iter().map(Lane::new).collect(),
        members: members.into_iter().map(Scheduled::new).collect(),
        batch: SendBatch::with_capacity(BATCH),
        outbox: common.departures(SENDER),
    };
    scheduler.run();
}

struct Scheduler<'s> {
    common: &'s Common<'s>,
    pacer: Pacer,
    /// What came back, and whether sources wait for it.
    answers: Option<(&'s Answers, bool)>,
    seen: Vec<Answer>,
    members: Vec<Scheduled>,
    /// Flow id, less the first, to place among the members.
    first: u32,
    places: Vec<u32>,
    /// When which member is due. An entry counts only while it says what the member says.
    agenda: BinaryHeap<Reverse<(Time, u32)>>,
    lanes: Vec<Lane<'s>>,
    batch: SendBatch,
    outbox: Outbox,
    /// The members with which the sending ends, as far as they are not over, and when to look at them again.
    awaited: Vec<u32>,
    next_look: Time,
}

struct Scheduled {
    member: Member,
    /// Messages so far, per channel.
    sequences: Vec<u32>,
    /// Its entry in the agenda; [`Time::MAX`] for none.
    due: Time,
}

impl Scheduled {
    fn new(member: Member) -> Scheduled {
        Scheduled { sequences: vec![0; usize::from(member.channels)], due: Time::MAX, member }
    }
}

/// A socket with what waits to go through it.
struct Lane<'s> {
    socket: &'s UdpSocket,
    messages: MessageBuffer,
    /// Beside every message: who sends it, its number, and what its header may be.
    names: Vec<(FlowId, u32, Cover)>,
}

/// A message of a lane.
struct Name {
    flow: FlowId,
    channel: u16,
    sequence: u32,
    due: Time,
    payload: Bytes,
    kind: MessageKind,
}

impl<'s> Lane<'s> {
    fn new(socket: &'s UdpSocket) -> Lane<'s> {
        Lane { socket, messages: MessageBuffer::with_headroom(HEADER_LENGTH), names: Vec::new() }
    }

    /// What is known of the message at this place.
    fn name(&self, place: usize) -> Name {
        let message = &self.messages.messages()[place];
        let (flow, sequence, _) = self.names[place];
        let payload = Bytes((message.range.len() - HEADER_LENGTH) as u64);
        let kind = if message.asks { MessageKind::Ask } else { MessageKind::Forward };
        Name { flow, channel: message.channel, sequence, due: message.due, payload, kind }
    }

    /// Writes the header of a message that is about to be sent.
    fn stamp(&mut self, place: usize, key: Key, sent: Time) {
        let Name { flow, channel, sequence, due, payload, kind } = self.name(place);
        let length = payload.0 as u32;
        let (late, reflected, at) = (sent.since(due), Time::ZERO, Place::Before);
        let header = Header { key, length, place: at, flow, sequence, channel, kind, late, sent, reflected };
        header.stamp(self.messages.bytes_mut(place), self.names[place].2);
    }

    /// What is sent of a message with its header.
    fn sent(&self, place: usize) -> &[u8] {
        let bytes = self.messages.bytes(place);
        &bytes[self.names[place].2.unsent_room(bytes.len())..]
    }

    /// Notes that a message was given up.
    fn refuse(&self, place: usize, at: Time, outbox: &mut Outbox) {
        let Name { flow, channel, sequence, due, payload, .. } = self.name(place);
        outbox.push(at, flow, Observation::Refused { channel, sequence, due, payload }, None);
    }

    fn clear(&mut self) {
        self.messages.clear();
        self.names.clear();
    }
}

impl Scheduler<'_> {
    fn run(&mut self) {
        let span =
            self.members.iter().map(|scheduled| scheduled.member.id.0 - self.first + 1).max().unwrap_or(0);
        self.places = vec![u32::MAX; span as usize];
        for place in 0..self.members.len() {
            self.places[(self.members[place].member.id.0 - self.first) as usize] = place as u32;
            self.enter(place);
        }
        self.common.wait_for_begin(self.pacer.spin());
        while self.common.stage.is_sending() {
            self.hear_answers();
            self.look_at_awaited();
            let horizon = self.horizon();
            self.produce(horizon);
            let mut now = self.common.clock.now();
            while now < horizon {
                core::hint::spin_loop();
                now = self.common.clock.now();
            }
            // The reading that ended the spin is when the first call is made: another would only come later.
            let mut ready = Some(now);
            for lane in 0..self.lanes.len() {
                if !self.lanes[lane].names.is_empty() {
                    self.depart(lane, ready.take());
                }
            }
            match self.next_due() {
                Some(due) => self.wait_until(due),
                None if self.is_finished() => return,
                None => self.wait_until(Time::MAX),
            }
        }
        if self.common.is_at_its_end() {
            self.refuse_overdue();
        }
    }

    fn is_finished(&self) -> bool {
        self.common.clock.now() >= self.common.stop
            || (self.awaited.is_empty()
                && self.members.iter().all(|scheduled| scheduled.member.source.is_finished()))
    }

    /// Tells the run of members that are over and with which the sending ends.
    fn look_at_awaited(&mut self) {
        if self.awaited.is_empty() {
            return;
        }
        let now = self.common.clock.now();
        if now < self.next_look {
            return;
        }
        self.next_look = now + WATCH;
        let (members, stage) = (&self.members, self.common.stage);
        self.awaited.retain(|&place| {
            let over = members[place as usize].member.source.over_at().is_some_and(|at| at <= now);
            if over {
                stage.one_is_over();
            }
            !over
        });
    }

    /// Refuses what should have left before the end: a sender that falls behind must not hide it.
    fn refuse_overdue(&mut self) {
        let now = self.common.clock.now();
        while self.next_due().is_some_and(|due| due <= now) {
            self.produce(now);
            for lane in &mut self.lanes {
                (0..lane.names.len()).for_each(|place| lane.refuse(place, now, &mut self.outbox));
                lane.clear();
            }
            self.outbox.tick(self.common.clock.now());
        }
    }

    /// Puts a member's next due time into the agenda.
    fn enter(&mut self, place: usize) {
        let scheduled = &mut self.members[place];
        let due = scheduled.member.source.next_due().unwrap_or(Time::MAX);
        if due != scheduled.due {
            scheduled.due = due;
            if due < Time::MAX {
                self.agenda.push(Reverse((due, place as u32)));
            }
        }
    }

    /// The earliest entry that still counts.
    fn next_due(&mut self) -> Option<Time> {
        while let Some(&Reverse((due, place))) = self.agenda.peek() {
            if self.members[place as usize].due == due {
                return Some(due);
            }
            self.agenda.pop();
        }
        None
    }

    /// Up to when to produce: now, or where it spins anyway, the next moment that something is due. What is to leave
    /// then is made ready before and waits for the clock, not for a source whose memory has gone cold.
    fn horizon(&mut self) -> Time {
        let now = self.common.clock.now();
        // An answer may want to be followed at once: then nothing is made ready in advance.
        let closed_loop = self.answers.is_some_and(|(_, waited_for)| waited_for);
        match self.next_due() {
            Some(due) if !closed_loop && due > now && due.since(now) <= self.pacer.spin() => due,
            _ => now,
        }
    }

    /// Has every source that is due put its messages into its lane, until a lane is full.
    fn produce(&mut self, horizon: Time) {
        while let Some(due) = self.next_due()
            && due <= horizon
        {
            let Some(Reverse((_, place))) = self.agenda.pop() else { return };
            let scheduled = &mut self.members[place as usize];
            scheduled.due = Time::MAX;
            let Member { id, lane, source, turn, cover, .. } = &mut scheduled.member;
            if let Some(turn) = turn {
                let at = self.common.clock.from_raw(turn.at(clock::raw_now()));
                if at > horizon {
                    scheduled.due = at;
                    self.agenda.push(Reverse((at, place)));
                    continue;
                }
            }
            let (id, lane, cover) = (*id, *lane, *cover);
            let Lane { messages, names, .. } = &mut self.lanes[lane];
            source.produce(horizon, messages);
            self.outbox.push_overflows(id, messages);
            let new = &messages.messages()[names.len()..];
            if new.is_empty() {
                continue; // nothing came although it was due: it is over, and never asked twice at one moment
            }
            if let Some(turn) = turn {
                let sent = |message: &Produced| message.range.len() - cover.unsent_room(message.range.len());
                turn.sent(new.iter().map(sent).sum());
            }
            for message in new {
                let Some(counter) = scheduled.sequences.get_mut(usize::from(message.channel)) else {
                    names.push((id, 0, cover));
                    continue;
                };
                names.push((id, *counter, cover));
                *counter = counter.wrapping_add(1);
            }
            let full = names.len() >= BATCH;
            self.enter(place as usize);
            if full {
                return; // the rest is still due when these have left
            }
        }
    }

    /// Sends everything that waits in a lane, the first of it at `ready` if the clock has been read just now.
    fn depart(&mut self, lane: usize, mut ready: Option<Time>) {
        let clock = self.common.clock;
        let lane = &mut self.lanes[lane];
        let waiting = lane.names.len();
        let mut done = 0;
        let mut told = false;
        while done < waiting {
            let upto = (done + BATCH).min(waiting);
            let start = ready.take().unwrap_or_else(|| clock.now());
            (done..upto).for_each(|place| lane.stamp(place, self.common.key, start));
            let result = self.batch.send(lane.socket, (done..upto).map(|place| lane.sent(place)));
            let end = clock.now();
            let (taken, refused) = match result {
                Ok(taken) => (taken, 0),
                Err(error) => (0, refuse(&error, lane.socket, waiting - done, &mut told)),
            };
            for place in done..done + taken {
                let Name { flow, channel, sequence, due, payload, .. } = lane.name(place);
                self.outbox.push(start, flow, Observation::Sent { channel, sequence, due, payload }, None);
                let error_nanos = start.since(due).as_nanos();
                let call = Observation::SendCall { error_nanos, took_nanos: end.since(start).as_nanos() };
                self.outbox.push(start, flow, call, None);
            }
            done += taken;
            (done..done + refused).for_each(|place| lane.refuse(place, end, &mut self.outbox));
            done += refused;
        }
        if done > 0 {
            lane.clear();
            self.outbox.tick(clock.now());
        }
    }

    /// Tells the sources what has come back.
    fn hear_answers(&mut self) {
        let Some((answers, _)) = self.answers else { return };
        if !answers.any() {
            return;
        }
        let mut seen = core::mem::take(&mut self.seen);
        answers.take(&mut seen);
        let now = self.common.clock.now();
        for answer in seen.drain(..) {
            let place =
                answer.flow.0.checked_sub(self.first).and_then(|place| self.places.get(place as usize));
            let Some(&place) = place else { continue };
            let Some(scheduled) = self.members.get_mut(place as usize) else { continue };
            answer.tell(scheduled.member.source.as_mut(), now, &mut self.outbox);
            if scheduled.member.answered {
                self.enter(place as usize);
            }
        }
        self.seen = seen;
    }

    /// Returns at `due`, at an answer that somebody waits for, or in time to look at the stage.
    fn wait_until(&mut self, due: Time) {
        let now = self.common.clock.now();
        if due <= now {
            return;
        }
        self.outbox.tick(now);
        if due.since(now) > LOOK {
            self.outbox.flush(now);
        }
        let until = due.min(now + LOOK);
        match self.answers {
            Some((answers, true)) => answers.sleep_until(until, self.common.clock, &self.pacer),
            // The stretch over which it would spin is left to the next look at what is due.
            _ => {
                let wake = self.common.clock.to_raw(until).saturating_sub(self.pacer.spin().as_nanos());
                trunkline_io::pace::sleep_until_raw(wake);
            }
        }
    }
}

/// How many of the `waiting` datagrams to give up after an error; 0 to try again.
fn refuse(error: &io::Error, socket: &UdpSocket, waiting: usize, told: &mut bool) -> usize {
    let first_time = !core::mem::replace(told, true);
    match error.kind() {
        io::ErrorKind::WouldBlock => {}
        _ if error.raw_os_error() == Some(libc::ENOBUFS) => {}
        // Tells of an earlier datagram that found nobody; this one was not tried yet.
        io::ErrorKind::ConnectionRefused if first_time => return 0,
        _ => return 1,
    }
    if first_time {
        let mut poller = Poller::new([(socket.as_fd(), Interest::Write)]);
        if poller.wait(PATIENCE).is_ok_and(|ready| ready > 0) {
            return 0;
        }
    }
    waiting
}
