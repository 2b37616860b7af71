//! Flows over protocol engines: one thread sends for all members of a flow, turns their engines, and takes what comes
//! back.

use core::ops::Range;
use std::sync::Arc;

use trunkline_core::{Duration, Time};
use trunkline_flows::{Buffers, Delivery, Lane, Listener, ListenerSpec, Progress, Side, Talker, TalkerSpec};
use trunkline_io::{clock, pace};
use trunkline_transport::CloseReason;
use trunkline_transport::framing::Header;

use super::{BROKEN, Common, Departures, LOOK};
use crate::ceiling::Turn;
use crate::engine::{Application, Counters, Engines, Line};
use crate::events::Outbox;

/// So many buffers of messages that waited are kept for the next.
const SPARE: usize = 64;

/// A flow whose engines are connected.
pub(crate) struct EngineFlow<'s> {
    pub(crate) engines: Engines<'s>,
    /// In the order of their ids.
    pub(crate) speakers: Vec<Speaker>,
    /// Whether all of them share one engine; otherwise each has the one at its own place.
    pub(crate) is_shared: bool,
    /// What they have in common.
    pub(crate) spec: TalkerSpec,
    /// By which what comes back is recognised.
    pub(crate) listens: ListenerSpec,
    /// Its number among the senders.
    pub(crate) sender: usize,
    pub(crate) spin: Duration,
}

/// A member of a flow.
pub(crate) struct Speaker {
    talker: Talker,
    /// When the source is to be asked again; not while messages wait.
    due: Time,
    /// Whether the sending ends with it, and it is not over yet.
    awaited: bool,
    /// Whether nothing more is sent.
    is_done: bool,
    /// What holds it back beside its engine, if anything does.
    turn: Option<Turn>,
}

impl Speaker {
    pub(crate) fn new(talker: Talker, awaited: bool, turn: Option<Turn>) -> Speaker {
        Speaker { talker, due: Time::ZERO, awaited, is_done: false, turn }
    }
}

/// Sends what the sources want and takes what comes back, until the run is over; says what the engines have counted.
pub(crate) fn converse(flow: EngineFlow<'_>, common: &Common<'_>) -> Counters {
    let EngineFlow { mut engines, speakers, is_shared, spec, listens, sender, spin } = flow;
    pace::reduce_timer_slack();
    let flows: Arc<[ListenerSpec]> = Arc::new([listens]);
    let listener = |ids: Range<u32>| Listener::new(Side::Source, Arc::clone(&flows), ids);
    let ids = speakers.iter().map(|speaker| speaker.talker.id().0);
    let listeners = match is_shared {
        true => vec![listener(listens.first..listens.first.saturating_add(listens.members))],
        false => ids.map(|id| listener(id..id + 1)).collect(),
    };
    let mut departures = Departures::of(sender, common);
    departures.counters.insert(BROKEN.to_owned(), 0);
    let mut talk = Talk {
        common,
        speakers,
        listeners,
        is_shared,
        spec,
        first: 0,
        departures,
        arrivals: common.arrivals(sender),
        lane: Lane::default(),
        buffers: Buffers::new(SPARE),
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
            ended.into_iter().for_each(|reason| note_end(reason, &mut talk.departures.counters));
        }
    }
    if common.is_at_its_end() {
        talk.refuse_overdue();
    }
    talk.end_sending();
    let mut counters = talk.departures.counters;
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
    /// By engine.
    listeners: Vec<Listener>,
    is_shared: bool,
    spec: TalkerSpec,
    /// Of those who share an engine, who is the first to send through it.
    first: usize,
    departures: Departures,
    arrivals: Outbox,
    lane: Lane,
    buffers: Buffers,
}

impl Application for Talk<'_> {
    fn reads(&self, _: usize) -> bool {
        true
    }

    fn message(&mut self, place: usize, header: Header, bytes: &mut [u8]) {
        let now = self.common.clock.now();
        let delivery = self.listeners[place].deliver(now, &header, bytes, &mut self.arrivals);
        let Delivery::Answered(answer) = delivery else { return };
        let first = self.speakers[0].talker.id().0;
        let member = if self.is_shared { answer.flow.0.wrapping_sub(first) as usize } else { place };
        if let Some(speaker) = self.speakers.get_mut(member) {
            speaker.talker.answered(now, answer, &mut self.arrivals);
        }
    }

    fn unmatched(&mut self, place: usize, bytes: usize) {
        self.listeners[place].unmatched(self.common.clock.now(), bytes, &mut self.arrivals);
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
        let Talk { common, speakers, spec, departures, buffers, .. } = self;
        loop {
            let (talker, now) = (&mut speakers[member].talker, common.clock.now());
            match talker.send_waiting(now, (spec, &mut *buffers), line, departures) {
                Progress::Sent => {}
                Progress::Full => return false,
                Progress::Nothing => break,
            }
        }
        // What an answer has brought closer is seen by filling too.
        self.fill(member, line);
        !self.speakers[member].talker.is_waiting()
    }

    /// Sends what the source wants until it is not due, or until the engine is full: then the rest waits.
    fn fill(&mut self, member: usize, line: &mut Line<'_>) {
        let Talk { common, speakers, spec, departures, lane, buffers, .. } = self;
        let Speaker { talker, due, is_done, turn, .. } = &mut speakers[member];
        while !*is_done && common.stage.is_sending() {
            let now = common.clock.now();
            *due = talker.next_due().unwrap_or(Time::MAX);
            if *due <= now
                && let Some(turn) = turn
            {
                *due = common.clock.from_raw(turn.at(clock::raw_now())).max(*due);
            }
            if *due > now {
                break;
            }
            if talker.produce(now, lane, departures) == 0 {
                *due = now + LOOK; // it is over; never asked twice at one moment
                break;
            }
            if let Some(turn) = turn {
                turn.sent(lane.bytes(0..lane.len(), spec));
            }
            loop {
                let parts = (&*spec, &mut *lane, &mut *buffers);
                if talker.send_next(common.clock.now(), parts, line, departures) == Progress::Nothing {
                    break;
                }
            }
            *is_done |= talker.is_cut_off();
            if talker.is_waiting() {
                *due = Time::MAX;
                break;
            }
        }
    }

    /// Gives up the messages that have waited for the whole send timeout, as a blocking send would; says when the next
    /// will have.
    fn give_up(&mut self, now: Time) -> Time {
        let Talk { speakers, spec, departures, buffers, .. } = self;
        let mut next = Time::MAX;
        for Speaker { talker, due, .. } in speakers {
            while talker.give_up(now, (spec, buffers), departures) {
                if !talker.is_waiting() {
                    *due = now;
                }
            }
            next = next.min(talker.gives_up_at(spec).unwrap_or(Time::MAX));
        }
        next
    }

    /// Passes on what was observed, sees who is done, and says when the next source is due.
    fn look_around(&mut self, now: Time) -> Time {
        let mut next = Time::MAX;
        let mut all_done = true;
        for Speaker { talker, due, awaited, is_done, .. } in &mut self.speakers {
            let over = match awaited {
                true => talker.over_at().is_some_and(|at| at <= now) && !talker.is_waiting(),
                false => talker.is_finished(),
            };
            if over && core::mem::take(awaited) {
                self.common.stage.one_is_over();
            }
            let has_nothing_due = !talker.is_waiting() && talker.next_due().is_none();
            *is_done |= over || talker.is_cut_off() || (has_nothing_due && now >= self.common.stop);
            if *is_done {
                *due = Time::MAX;
            }
            all_done &= *is_done;
            next = next.min(*due);
        }
        self.arrivals.tick(now);
        if all_done || !self.common.stage.is_sending() {
            self.end_sending();
        } else if let Some(departures) = &mut self.departures.outbox {
            departures.tick(now);
            if next.since(now) >= LOOK {
                departures.flush(now);
            }
        }
        next
    }

    /// Refuses what still waits. Nothing is sent after this, and who records is told so.
    fn end_sending(&mut self) {
        let now = self.common.clock.now();
        let Talk { speakers, spec, departures, buffers, .. } = self;
        for Speaker { talker, due, is_done, .. } in speakers {
            (*is_done, *due) = (true, Time::MAX);
            talker.refuse_waiting(now, (spec, buffers), departures);
        }
        self.departures.outbox = None;
    }

    /// Refuses what should have left before the end, behind what waits: a sender that is held up must not hide it.
    fn refuse_overdue(&mut self) {
        let now = self.common.clock.now();
        let Talk { speakers, spec, departures, lane, buffers, .. } = self;
        for Speaker { talker, is_done, .. } in speakers {
            if !*is_done {
                talker.refuse_overdue(now, (spec, lane, buffers), departures);
            }
        }
    }
}
