//! The far end's protocol engines: one thread for each flow reflects, answers or notes what they bring.

use core::ops::Range;
use std::collections::VecDeque;

use trunkline_core::{Bytes, FlowId};
use trunkline_io::clock;
use trunkline_metrics::Observation;
use trunkline_transport::SendError;
use trunkline_transport::framing::{Header, answer, reflect_in_place};

use super::{LOOK, Reporter, Session};
use crate::ceiling::Turn;
use crate::engine::{Application, Counters, Engines, Line};
use crate::protocol::{FlowTerms, Reply};

/// So many replies may wait for room; then no more is read, so that they hold the sender back by flow control.
const BACKLOG: usize = 16;

/// Turns the engines of a flow, with the ids of the members that each serves, until the session is over; says what they
/// have counted.
pub(super) fn run(
    mut engines: Engines<'_>,
    conversations: Vec<Range<u32>>,
    terms: FlowTerms,
    session: &Session,
    reporter: Reporter,
) -> Counters {
    let backlogs = conversations.iter().map(|_| VecDeque::new()).collect();
    let turn = |ids: &Range<u32>| session.turn(session.terms(ids.start)?.0);
    let turns: Vec<Option<Turn>> = conversations.iter().map(turn).collect();
    let waits = turns.iter().any(Option::is_some);
    let mut sink =
        Sink { session, terms, conversations, reporter, backlogs, turns, spare: Vec::new(), unreflected: 0 };
    trunkline_io::pace::reduce_timer_slack();
    while !session.is_over() {
        let until = sink.next_turn().min(clock::raw_now() + LOOK.as_nanos());
        engines.turn(until, &mut sink);
        if waits {
            (0..sink.backlogs.len()).for_each(|place| engines.pour(place, &mut sink));
        }
        if let Some(clock) = session.clock() {
            sink.reporter.tick(clock.now());
        }
    }
    // What the kernel had before the end still counts.
    engines.turn(0, &mut sink);
    let mut counters = engines.close();
    if sink.unreflected > 0 {
        counters.insert("not-reflected".to_owned(), sink.unreflected);
    }
    counters
}

struct Sink<'s> {
    session: &'s Session,
    terms: FlowTerms,
    reporter: Reporter,
    /// By place: the ids of its members.
    conversations: Vec<Range<u32>>,
    /// By place: replies that its engine did not take yet.
    backlogs: Vec<VecDeque<Vec<u8>>>,
    /// By place: what the owner allows to be sent back.
    turns: Vec<Option<Turn>>,
    spare: Vec<Vec<u8>>,
    unreflected: u64,
}

impl Sink<'_> {
    /// When the first of those may go on that wait for it.
    fn next_turn(&mut self) -> u64 {
        let waiting = self.backlogs.iter().zip(&mut self.turns).filter(|(backlog, _)| !backlog.is_empty());
        let turns = waiting.filter_map(|(_, turn)| Some(turn.as_mut()?.at(clock::raw_now())));
        let later = turns.filter(|turn| *turn > clock::raw_now());
        later.min().unwrap_or(u64::MAX)
    }
}

impl Application for Sink<'_> {
    fn reads(&self, place: usize) -> bool {
        self.backlogs[place].len() < BACKLOG
    }

    fn message(&mut self, place: usize, header: Header, bytes: &mut [u8]) {
        // Before the run has a time, nothing can be of this run.
        let Some(clock) = self.session.clock() else { return };
        let now = clock.now();
        if !self.conversations[place].contains(&header.flow.0) {
            return self.stray(place, bytes.len());
        }
        let Some(reply) = self.terms.reply(header.kind) else { return };
        if !self.terms.reflect {
            let payload = header.message(bytes);
            let what = Observation::Received {
                channel: header.channel,
                sequence: header.sequence,
                sent: header.sent,
                reflected: header.reflected,
                payload: Bytes(payload.len() as u64),
            };
            self.reporter.push(now, header.flow, &what, self.terms.keeps_payload.then_some(payload));
        }
        let mut back = self.spare.pop().unwrap_or_default();
        back.clear();
        match reply {
            Reply::Nothing => return self.spare.push(back),
            Reply::Whole => {
                reflect_in_place(bytes, now);
                back.extend_from_slice(bytes);
            }
            Reply::Bytes(length) => answer(&header, now, length, &mut back),
        }
        self.backlogs[place].push_back(back);
    }

    fn stray(&mut self, place: usize, bytes: usize) {
        let Some(clock) = self.session.clock() else { return };
        let what = Observation::Stray { bytes: Bytes(bytes as u64) };
        let first = FlowId(self.conversations[place].start);
        self.reporter.push(clock.now(), first, &what, None);
    }

    fn pour(&mut self, place: usize, line: &mut Line<'_>) {
        while let Some(back) = self.backlogs[place].pop_front() {
            if let Some(turn) = &mut self.turns[place] {
                let now = clock::raw_now();
                if turn.at(now) > now {
                    return self.backlogs[place].push_front(back);
                }
            }
            match line.send(&back) {
                Ok(()) => {
                    if let Some(turn) = &mut self.turns[place] {
                        turn.sent(back.len());
                    }
                }
                Err(SendError::Full) => return self.backlogs[place].push_front(back),
                Err(_) => self.unreflected += 1,
            }
            if self.spare.len() < BACKLOG {
                self.spare.push(back);
            }
        }
    }
}
