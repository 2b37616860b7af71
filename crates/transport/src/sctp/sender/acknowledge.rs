//! What the peer says that it has received (RFC 9260 section 6.2.1), and what that says of the rest (section 7.2.4).

use trunkline_core::Time;

use super::super::wire::{self, is_later};
use super::{MAX_BURST, Sender, Sent, State, chunk_size};

/// Reports that a chunk is missing until it is sent again (RFC 9260 section 7.2.4).
const MISSING: u8 = 3;

/// What was not acknowledged before.
#[derive(Default)]
struct Fresh {
    /// Bytes of chunks.
    bytes: usize,
    /// When the last of them to be sent was sent.
    newest: Time,
    /// The highest TSN, how often it was sent, and when last.
    highest: Option<(u32, u16, Time)>,
}

impl Fresh {
    fn take(&mut self, tsn: u32, sent: &Sent) {
        self.bytes += chunk_size(sent.length);
        self.newest = self.newest.max(sent.at);
        self.highest = Some((tsn, sent.times, sent.at));
    }
}

impl Sender {
    /// Takes a SACK, or what a SHUTDOWN acknowledges, which has no window and says nothing of what lies behind gaps: the gap
    /// blocks are pairs of numbers of 16 bits (RFC 9260 section 3.3.4). Whether it acknowledges anything new.
    pub(in super::super) fn acknowledge(
        &mut self,
        now: Time,
        cumulative: u32,
        window: Option<u32>,
        blocks: &[u8],
    ) -> bool {
        let advance = cumulative.wrapping_sub(self.acknowledged) as usize;
        if is_later(self.acknowledged, cumulative) || advance > self.outstanding.len() {
            return false; // an old one, or of what was never sent
        }
        self.heard = true;
        self.burst = MAX_BURST;
        let (last, flight) = (self.next_tsn().wrapping_sub(1), self.flight.chunks);
        let mut fresh = Fresh::default();
        for _ in 0..advance {
            let Some(sent) = self.outstanding.pop_front() else { break };
            self.acknowledged = self.acknowledged.wrapping_add(1);
            match sent.state {
                State::InFlight => self.flight.remove(sent.length),
                State::Lost => self.lost -= 1,
                State::Received => self.beyond_gap -= 1,
                State::GivenUp => {}
            }
            if matches!(sent.state, State::InFlight | State::Lost) {
                fresh.take(self.acknowledged, &sent);
            }
        }
        if is_later(self.acknowledged, self.forward) {
            self.forward = self.acknowledged;
        }
        self.release();
        if window.is_some() && (!blocks.is_empty() || self.beyond_gap > 0) {
            let below = self.take_gaps(blocks, advance > 0, &mut fresh);
            self.count_missing(below, fresh.newest, last);
        }
        if let Some((tsn, 1, at)) = fresh.highest
            && !is_later(self.measured_to, tsn)
        {
            self.rto.measure(now.since(at));
            self.measured_to = self.next_tsn();
        }
        if advance > 0 {
            self.congestion.acknowledged(cumulative, fresh.bytes, flight);
            if self.outstanding.is_empty() {
                self.congestion.all_acknowledged();
            }
            self.timer = (!self.outstanding.is_empty()).then(|| now + self.rto.current());
        }
        if let Some(window) = window {
            self.peer_window = (window as usize).saturating_sub(self.flight.data);
            self.probe_again(advance > 0);
        }
        self.advance_forward(now);
        advance > 0 || fresh.bytes > 0
    }

    /// Marks what has been received behind gaps; returns the place among the outstanding, counted from 1, below which the
    /// rest counts as reported missing.
    fn take_gaps(&mut self, blocks: &[u8], advanced: bool, fresh: &mut Fresh) -> usize {
        let mut blocks = blocks.chunks_exact(4).map(|block| {
            let number = |at| usize::from(wire::u16_at(block, at).unwrap_or_default());
            (number(0), number(2))
        });
        let mut block = blocks.next();
        let (mut highest_new, mut highest) = (0, 0);
        for (index, sent) in self.outstanding.iter_mut().enumerate() {
            let offset = index + 1;
            while block.is_some_and(|(_, end)| end < offset) {
                block = blocks.next();
            }
            let is_received = block.is_some_and(|(start, _)| start <= offset);
            match (is_received, sent.state) {
                (true, State::InFlight | State::Lost) => {
                    match sent.state {
                        State::InFlight => self.flight.remove(sent.length),
                        _ => self.lost -= 1,
                    }
                    self.beyond_gap += 1;
                    sent.state = State::Received;
                    highest_new = offset;
                    fresh.take(self.acknowledged.wrapping_add(offset as u32), sent);
                }
                // The peer has thrown it away again, or this comes late: one report (RFC 9260 section 6.2.1, rule D iii).
                (false, State::Received) => {
                    (sent.state, sent.missing) = (State::InFlight, 1);
                    self.beyond_gap -= 1;
                    self.flight.add(sent.length);
                }
                _ => {}
            }
            if is_received {
                highest = offset;
            }
        }
        // RFC 9260 section 7.2.4: while it recovers, and the peer goes on, everything below the highest counts.
        if self.congestion.is_recovering() && advanced { highest } else { highest_new }
    }

    /// Counts a report of what is missing below a place, and has sent again what is missing for certain. The newest of what
    /// this SACK acknowledges was sent at `newest`; `last` is the last TSN that was sent.
    ///
    /// Each chunk is fast-retransmitted once: if that is lost too, it waits for the timer (RFC 9260 section 7.2.4, step 5). Of a
    /// chunk that the timer repeated, reports count once something has come that was sent after it.
    fn count_missing(&mut self, below: usize, newest: Time, last: u32) {
        for sent in self.outstanding.iter_mut().take(below.saturating_sub(1)) {
            if sent.state != State::InFlight || sent.is_fast || (sent.times > 1 && sent.at >= newest) {
                continue;
            }
            sent.missing += 1;
            if sent.missing >= MISSING {
                sent.state = State::Lost;
                sent.is_fast = true;
                self.flight.remove(sent.length);
                self.lost += 1;
                self.congestion.lost(last);
                self.is_fast = true;
            }
        }
    }

    /// The window has opened: what was sent into the closed one was thrown away, and need not wait for the timer.
    fn probe_again(&mut self, advanced: bool) {
        if advanced {
            self.probing = false;
        }
        if let Some(sent) = self.outstanding.front_mut()
            && self.probing
            && sent.state == State::InFlight
            && self.peer_window > 0
        {
            sent.state = State::Lost;
            self.flight.remove(sent.length);
            self.lost += 1;
            self.probing = false;
        }
    }
}
