//! One thread sends for all UDP flows, each message when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

use trunkline_core::{Duration, Time};
use trunkline_flows::{Answer, Lane, Talker, TalkerSpec};
use trunkline_io::poll::Interest;
use trunkline_io::udp::SendBatch;
use trunkline_io::{Pacer, Poller, clock};
use trunkline_metrics::Observation;

use super::{Answers, Common, LOOK};
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
    pub(crate) talker: Talker,
    /// The socket it sends through.
    pub(crate) lane: usize,
    /// What the flow's members have in common. No two flows share a socket.
    pub(crate) spec: TalkerSpec,
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
        first: members.iter().map(|member| member.talker.id().0).min().unwrap_or_default(),
        places: Vec::new(),
        awaited: (0..).zip(&members).filter(|(_, member)| member.awaited).map(|(place, _)| place).collect(),
        next_look: Time::ZERO,
        agenda: BinaryHeap::with_capacity(members.len() * 2),
        lanes: lanes(sockets, &members),
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
    lanes: Vec<SocketLane<'s>>,
    batch: SendBatch,
    outbox: Outbox,
    /// The members with which the sending ends, as far as they are not over, and when to look at them again.
    awaited: Vec<u32>,
    next_look: Time,
}

struct Scheduled {
    member: Member,
    /// Its entry in the agenda; [`Time::MAX`] for none.
    due: Time,
}

impl Scheduled {
    fn new(member: Member) -> Scheduled {
        Scheduled { due: Time::MAX, member }
    }
}

/// A socket with what waits to go through it.
struct SocketLane<'s> {
    socket: &'s UdpSocket,
    spec: TalkerSpec,
    messages: Lane,
}

fn lanes<'s>(sockets: &'s [UdpSocket], members: &[Member]) -> Vec<SocketLane<'s>> {
    let lane = |(place, socket)| {
        let member = members.iter().find(|member| member.lane == place).or(members.first());
        let spec = member?.spec;
        Some(SocketLane { socket, spec, messages: Lane::default() })
    };
    sockets.iter().enumerate().map_while(lane).collect()
}

impl Scheduler<'_> {
    fn run(&mut self) {
        let span = self
            .members
            .iter()
            .map(|scheduled| scheduled.member.talker.id().0 - self.first + 1)
            .max()
            .unwrap_or(0);
        self.places = vec![u32::MAX; span as usize];
        for place in 0..self.members.len() {
            self.places[(self.members[place].member.talker.id().0 - self.first) as usize] = place as u32;
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
                if !self.lanes[lane].messages.is_empty() {
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
                && self.members.iter().all(|scheduled| scheduled.member.talker.is_finished()))
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
            let over = members[place as usize].member.talker.over_at().is_some_and(|at| at <= now);
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
                (0..lane.messages.len()).for_each(|place| lane.messages.refuse(place, now, &mut self.outbox));
                lane.messages.clear();
            }
            self.outbox.tick(self.common.clock.now());
        }
    }

    /// Puts a member's next due time into the agenda.
    fn enter(&mut self, place: usize) {
        let scheduled = &mut self.members[place];
        let due = scheduled.member.talker.next_due().unwrap_or(Time::MAX);
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
            let Member { talker, lane, turn, .. } = &mut scheduled.member;
            if let Some(turn) = turn {
                let at = self.common.clock.from_raw(turn.at(clock::raw_now()));
                if at > horizon {
                    scheduled.due = at;
                    self.agenda.push(Reverse((at, place)));
                    continue;
                }
            }
            let SocketLane { messages, spec, .. } = &mut self.lanes[*lane];
            let before = messages.len();
            if talker.produce(horizon, messages, &mut self.outbox) == 0 {
                continue; // nothing came although it was due: it is over, and never asked twice at one moment
            }
            if let Some(turn) = turn {
                turn.sent(messages.bytes(before..messages.len(), spec));
            }
            let full = messages.len() >= BATCH;
            self.enter(place as usize);
            if full {
                return; // the rest is still due when these have left
            }
        }
    }

    /// Sends everything that waits in a lane, the first of it at `ready` if the clock has been read just now.
    fn depart(&mut self, lane: usize, mut ready: Option<Time>) {
        let clock = self.common.clock;
        let SocketLane { socket, spec, messages } = &mut self.lanes[lane];
        let waiting = messages.len();
        let mut done = 0;
        let mut told = false;
        while done < waiting {
            let upto = (done + BATCH).min(waiting);
            let start = ready.take().unwrap_or_else(|| clock.now());
            messages.stamp(done..upto, start, spec);
            let result = self.batch.send(socket, (done..upto).map(|place| messages.stamped(place, spec)));
            let end = clock.now();
            let (taken, refused) = match result {
                Ok(taken) => (taken, 0),
                Err(error) => (0, refuse(&error, socket, waiting - done, &mut told)),
            };
            for place in done..done + taken {
                messages.sent(place, start, &mut self.outbox);
                let error_nanos = start.since(messages.due(place)).as_nanos();
                let call = Observation::SendCall { error_nanos, took_nanos: end.since(start).as_nanos() };
                self.outbox.push(start, messages.flow(place), call, None);
            }
            done += taken;
            (done..done + refused).for_each(|place| messages.refuse(place, end, &mut self.outbox));
            done += refused;
        }
        if done > 0 {
            messages.clear();
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
            scheduled.member.talker.answered(now, answer, &mut self.outbox);
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
