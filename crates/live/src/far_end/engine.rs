//! The far end's protocol engines: one thread for each flow reflects, answers or notes what they bring.

use core::ops::Range;
use std::sync::Arc;

use trunkline_core::Time;
use trunkline_flows::{Buffers, Delivery, Listener, NOT_REFLECTED, Side};
use trunkline_io::clock;
use trunkline_transport::framing::Header;

use super::{LOOK, Reporter, Session};
use crate::ceiling::Turn;
use crate::engine::{Application, Counters, Engines, Line};
use crate::protocol::FlowTerms;

/// So many buffers of replies are kept for the next.
const SPARE: usize = 16;

/// Turns the engines of a flow, with the ids of the members that each serves, until the session is over; says what they
/// have counted.
pub(super) fn run(
    mut engines: Engines<'_>,
    conversations: Vec<Range<u32>>,
    terms: FlowTerms,
    session: &Session,
    reporter: Reporter,
) -> Counters {
    let flows = Arc::new([terms.listens]);
    let listener = |ids: &Range<u32>| Listener::new(Side::Sink(0), flows.clone(), ids.clone());
    let listeners = conversations.iter().map(listener).collect();
    let turn = |ids: &Range<u32>| session.turn(session.place_of(ids.start)?);
    let turns: Vec<Option<Turn>> = conversations.iter().map(turn).collect();
    let waits = turns.iter().any(Option::is_some);
    let mut sink = Sink { session, listeners, reporter, turns, buffers: Buffers::new(SPARE) };
    trunkline_io::pace::reduce_timer_slack();
    while !session.is_over() {
        let until = sink.next_turn().min(clock::raw_now() + LOOK.as_nanos());
        engines.turn(until, &mut sink);
        if waits {
            (0..sink.listeners.len()).for_each(|place| engines.pour(place, &mut sink));
        }
        if let Some(clock) = session.clock() {
            sink.reporter.tick(clock.now());
        }
    }
    // What the kernel had before the end still counts.
    engines.turn(0, &mut sink);
    let mut counters = engines.close();
    let not_reflected = sink.listeners.iter().map(Listener::not_reflected).sum();
    if not_reflected > 0 {
        counters.insert(NOT_REFLECTED.to_owned(), not_reflected);
    }
    counters
}

struct Sink<'s> {
    session: &'s Session,
    reporter: Reporter,
    /// By place.
    listeners: Vec<Listener>,
    /// By place: what the owner allows to be sent back.
    turns: Vec<Option<Turn>>,
    buffers: Buffers,
}

impl Sink<'_> {
    /// When the first of those may go on that wait for it.
    fn next_turn(&mut self) -> u64 {
        let waiting =
            self.listeners.iter().zip(&mut self.turns).filter(|(listener, _)| listener.has_replies());
        let turns = waiting.filter_map(|(_, turn)| Some(turn.as_mut()?.at(clock::raw_now())));
        let later = turns.filter(|turn| *turn > clock::raw_now());
        later.min().unwrap_or(u64::MAX)
    }
}

impl Application for Sink<'_> {
    fn reads(&self, place: usize) -> bool {
        self.listeners[place].reads()
    }

    fn message(&mut self, place: usize, header: Header, bytes: &mut [u8]) {
        // Before the run has a time, nothing can be of this run.
        let Some(clock) = self.session.clock() else { return };
        let now = clock.now();
        let listener = &mut self.listeners[place];
        if let Delivery::Reply(flow, reply) = listener.deliver(now, &header, bytes, &mut self.reporter) {
            let mut back = self.buffers.take();
            Listener::reply(now, &header, (flow, reply), bytes, &mut back);
            listener.keep_reply(back);
        }
    }

    fn unmatched(&mut self, place: usize, bytes: usize) {
        let Some(clock) = self.session.clock() else { return };
        self.listeners[place].unmatched(clock.now(), bytes, &mut self.reporter);
    }

    fn pour(&mut self, place: usize, line: &mut Line<'_>) {
        // The line keeps its own time.
        let now = Time::ZERO;
        while self.listeners[place].has_replies() {
            if let Some(turn) = &mut self.turns[place] {
                let now = clock::raw_now();
                if turn.at(now) > now {
                    return;
                }
            }
            let sent = self.listeners[place].send_reply(now, &mut self.buffers, line);
            let Some(length) = sent else { return };
            if let Some(turn) = &mut self.turns[place] {
                turn.sent(length);
            }
        }
    }
}
