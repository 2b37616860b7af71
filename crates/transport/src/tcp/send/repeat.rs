//! What is sent again.

use super::{Chunk, Sender};
use crate::tcp::config::TcpConfig;
use crate::tcp::flow::Phase;
use crate::tcp::rate::TxState;
use crate::tcp::scoreboard::{Id, mark};

use super::timer::SendTimer;

/// Why a segment is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Lost,
    Timeout,
    Tail,
}

impl Sender {
    /// Sends the first lost segment again that is not under way, if the congestion window has room.
    pub(super) fn repeat_lost(&mut self, mss: u64, config: &TcpConfig) -> bool {
        if self.flow.retrans_out >= self.flow.lost_out || self.is_held_by_pace() {
            return false;
        }
        if !self.flow.counts_bytes && self.flow.in_flight() >= self.flow.cwnd {
            return false;
        }
        let mut id = self.hint.unwrap_or_else(|| self.board.first());
        while let Some(sent) = self.board.get(id) {
            if sent.has(mark::LOST) && !sent.has(mark::SACKED | mark::REPEATED) {
                self.hint = Some(id);
                if sent.place >= self.flow.cwnd_end() {
                    return false;
                }
                return self.repeat_counted(id, mss, Cause::Lost, config);
            }
            id = id.wrapping_add(1);
        }
        false
    }

    /// Sends the first segment again because the timer has run out.
    pub(super) fn repeat_after_timeout(&mut self, mss: u64) -> bool {
        let id = self.board.first();
        if !self.repeat(id, mss, Cause::Timeout) {
            return false;
        }
        self.book_repetition(id);
        true
    }

    /// Sends the last segment again as a probe.
    pub(super) fn repeat_last(&mut self, mss: u64) -> bool {
        let Some(last) = self.board.last() else { return false };
        self.is_tlp_repetition = self.repeat(last, mss, Cause::Tail);
        self.is_tlp_repetition
    }

    fn repeat_counted(&mut self, id: Id, mss: u64, cause: Cause, config: &TcpConfig) -> bool {
        if !self.repeat(id, mss, cause) {
            return false;
        }
        self.book_repetition(id);
        self.count_reduction(1);
        let is_reordering = matches!(self.timer, Some((SendTimer::Reordering, _)));
        if id == self.board.first() && !is_reordering {
            self.start_timer(SendTimer::Timeout, self.flow.rtt.timeout(), config);
        }
        true
    }

    /// A repetition is under way, and may turn out to have been a mistake.
    fn book_repetition(&mut self, id: Id) {
        let Some(sent) = self.board.get_mut(id) else { return };
        if !sent.has(mark::REPEATED) {
            sent.marks |= mark::REPEATED;
            self.flow.retrans_out += 1;
        }
        let sent_at = sent.sent_at;
        self.undo.first_repeated_at.get_or_insert(sent_at);
        self.undo.repetitions = Some(self.undo.repetitions.unwrap_or(0) + 1);
    }

    /// Makes a segment the next chunk, cut to what the window and the largest payload allow, or joined with small ones behind
    /// it. Returns false if the peer's window has no room for it.
    fn repeat(&mut self, id: Id, mss: u64, cause: Cause) -> bool {
        let una = self.flow.una;
        let Some(sent) = self.board.get_mut(id) else { return false };
        if sent.place < una && !sent.has(mark::SYN) {
            sent.length -= (una - sent.place) as u16;
            sent.place = una;
        }
        let (place, length) = (sent.place, u64::from(sent.length));
        let mut room = (una + self.window).min(self.flow.cwnd_end()).saturating_sub(place);
        if room == 0 && self.is_established {
            if place != una {
                return false;
            }
            // The window was taken back: the repetition is a probe of it.
            room = mss;
        }
        let most = mss.min(room.max(1));
        if length > most && self.is_established {
            self.board.split(id, most as u16);
            self.hint = None;
            self.count_split(id);
        } else if length < most {
            self.join_small(id, most);
        }
        let sent_at = self.begin_departure();
        let tx = TxState::now(&mut self.flow, sent_at, 1);
        let Some(sent) = self.board.get_mut(id) else { return false };
        (sent.sent_at, sent.tx) = (sent_at, Some(tx));
        sent.marks |= mark::EVER_REPEATED;
        let (is_late, is_syn, length) = (sent.has(mark::LATE), sent.has(mark::SYN), u64::from(sent.length));
        self.board.list(id);
        self.end_departure(length);
        let counters = &mut self.counters;
        counters.segments += 1;
        counters.syn_repeated += u64::from(is_syn);
        let counter = match cause {
            Cause::Tail => &mut counters.tlp,
            Cause::Timeout => &mut counters.timeout,
            Cause::Lost if self.flow.phase == Phase::Loss => &mut counters.timeout,
            Cause::Lost if is_late => &mut counters.rack,
            Cause::Lost => &mut counters.fast,
        };
        *counter += 1;
        self.chunk = Chunk { next: id, left: 1, is_new: false };
        true
    }

    /// A segment has become two.
    fn count_split(&mut self, id: Id) {
        let Some(sent) = self.board.get(id) else { return };
        let flow = &mut self.flow;
        flow.packets_out += 1;
        flow.sacked_out += u32::from(sent.has(mark::SACKED));
        flow.lost_out += u32::from(sent.has(mark::LOST));
        flow.retrans_out += u32::from(sent.has(mark::REPEATED));
    }

    /// Joins a small segment with those behind it as far as they fit into one.
    fn join_small(&mut self, id: Id, most: u64) {
        loop {
            let (Some(one), Some(next)) = (self.board.get(id), self.board.get(id.wrapping_add(1))) else {
                return;
            };
            let is_possible = !one.has(mark::SYN | mark::FIN)
                && !next.has(mark::SACKED | mark::REPEATED)
                && u64::from(one.length) + u64::from(next.length) <= most;
            if !is_possible {
                return;
            }
            self.flow.lost_out -= u32::from(next.has(mark::LOST));
            self.flow.packets_out -= 1;
            self.board.join(id);
            self.hint = None;
        }
    }
}
