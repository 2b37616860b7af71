//! Losses found by time (RFC 8985), and by the number of segments that have arrived out of order (RFC 6675).

use trunkline_core::{Duration, Time};

use super::Sender;
use super::timer::SendTimer;
use crate::tcp::config::{Recovery, TcpConfig};
use crate::tcp::flow::{Flow, Phase};
use crate::tcp::scoreboard::{Id, Sent, mark};

/// How many recoveries a wider reordering window lasts (RFC 8985 section 6.2 step 4).
const PERSIST: u8 = 16;

/// RACK's state (RFC 8985 section 5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// When the segment was sent that was sent last of those delivered, where it ends, and its round trip.
    sent_at: Time,
    end: u64,
    rtt: Duration,
    /// Whether that has changed since losses were looked for.
    pub(super) has_advanced: bool,
    /// How often segments were seen to overtake others.
    pub(super) reordering_seen: u32,
    /// A duplicate was reported in this round trip, which the reordering window should have avoided.
    pub(super) duplicate_seen: bool,
    /// The reordering window, in quarters of the smallest round trip.
    steps: u8,
    pub(super) persist: u8,
    /// Segments that had been delivered when the window was widened last.
    widened_at: u64,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            sent_at: Time::ZERO,
            end: 0,
            rtt: Duration::ZERO,
            has_advanced: false,
            reordering_seen: 0,
            duplicate_seen: false,
            steps: 1,
            persist: 0,
            widened_at: 0,
        }
    }
}

impl Rack {
    /// Takes a delivered segment (RFC 8985 section 6.2 steps 1 and 2).
    pub(super) fn advance(&mut self, flow: &Flow, sent: &Sent) {
        let rtt = flow.now.since(sent.sent_at);
        // It may be the first transmission that has arrived.
        if rtt < flow.rtt.smallest() && sent.has(mark::EVER_REPEATED) {
            return;
        }
        self.has_advanced = true;
        self.rtt = rtt;
        if (sent.sent_at, sent.end()) > (self.sent_at, self.end) {
            (self.sent_at, self.end) = (sent.sent_at, sent.end());
        }
    }

    /// Widens the reordering window after a duplicate, once per round trip (RFC 8985 section 6.2 step 4).
    pub(super) fn update_window(&mut self, flow: &Flow, prior_delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        if prior_delivered < self.widened_at {
            self.duplicate_seen = false;
        }
        if core::mem::take(&mut self.duplicate_seen) {
            self.steps = self.steps.saturating_add(1);
            self.widened_at = flow.delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A reduction of the window was undone because the peer reported duplicates.
    pub(super) fn persist_longer(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// How long a segment may be overtaken before it counts as lost.
    fn reordering_window(&self, flow: &Flow) -> Duration {
        let has_duplicates = flow.sacked_out >= flow.reordering;
        if self.reordering_seen == 0 && (flow.phase >= Phase::Recovery || has_duplicates) {
            return Duration::ZERO;
        }
        let smoothed = flow.rtt.smoothed().unwrap_or(Duration::ZERO);
        (flow.rtt.smallest() / 4 * u64::from(self.steps)).min(smoothed)
    }
}

impl Sender {
    /// Whether losses are found by time.
    fn has_rack(&self, config: &TcpConfig) -> bool {
        self.has_sack && config.recovery == Recovery::Rack
    }

    /// Looks for losses after an acknowledgement. Returns whether the timer was set to look again.
    pub(super) fn find_losses(&mut self, advanced: bool, config: &TcpConfig) -> bool {
        if self.board.is_empty() {
            return false;
        }
        if self.has_rack(config) {
            return self.find_losses_by_time(config);
        }
        match config.recovery {
            Recovery::Timeout => {}
            _ if self.has_sack && config.recovery == Recovery::Dupack => self.find_losses_by_count(),
            recovery => self.find_loss_of_head(advanced && recovery != Recovery::Reno),
        }
        false
    }

    fn find_losses_by_time(&mut self, config: &TcpConfig) -> bool {
        if !core::mem::take(&mut self.rack.has_advanced) {
            return false;
        }
        let Some(wait) = self.mark_late() else { return false };
        self.start_timer(
            SendTimer::Reordering,
            (wait + config.tick * 2).min(self.flow.rtt.timeout()),
            config,
        );
        true
    }

    /// Marks what was sent so long before a delivered segment that it must be lost (RFC 8985 section 6.2 step 5). Returns how
    /// long until the next would be.
    fn mark_late(&mut self) -> Option<Duration> {
        let window = self.rack.reordering_window(&self.flow);
        let is_late = !window.is_zero();
        let mut wait = None;
        let mut next = self.board.oldest();
        while let Some(id) = next {
            next = self.board.sent_after(id);
            let Some(sent) = self.board.get(id) else { break };
            if sent.has(mark::LOST) && !sent.has(mark::REPEATED) {
                continue;
            }
            if (self.rack.sent_at, self.rack.end) <= (sent.sent_at, sent.end()) {
                break;
            }
            let remaining = (sent.sent_at + self.rack.rtt + window).since(self.flow.now);
            if remaining.is_zero() {
                self.mark_lost(id, is_late);
                self.board.unlist(id);
            } else {
                wait = wait.max(Some(remaining));
            }
        }
        wait
    }

    /// Whether a segment that was just sent is too young to be taken for lost when the timer runs out.
    pub(super) fn is_young(&self, sent: &Sent, config: &TcpConfig) -> bool {
        self.has_rack(config) && (sent.sent_at + self.rack.rtt) > self.flow.now
    }

    /// Marks segments behind which at least as many have arrived as are taken for reordering (RFC 6675 section 4, IsLost).
    fn find_losses_by_count(&mut self) {
        let mut above = self.flow.sacked_out;
        for id in self.board.ids() {
            if above < self.flow.reordering {
                break;
            }
            match self.board.get(id) {
                Some(sent) if sent.has(mark::SACKED) => above -= 1,
                Some(sent) if !sent.has(mark::LOST) => self.mark_lost(id, false),
                _ => {}
            }
        }
    }

    /// Without selective acknowledgements only the first segment can be known to be lost: after three duplicates, and again
    /// with every partial acknowledgement (RFC 6582 section 3.2).
    fn find_loss_of_head(&mut self, advanced: bool) {
        let flow = &self.flow;
        let begins = flow.phase < Phase::Recovery && flow.sacked_out >= flow.reordering;
        if begins || flow.phase == Phase::Recovery && advanced {
            let head = self.board.first();
            if self.board.get(head).is_some_and(|sent| !sent.has(mark::LOST)) {
                self.mark_lost(head, false);
            }
        }
    }

    /// A segment counts as lost, or its repetition does.
    pub(super) fn mark_lost(&mut self, id: Id, is_late: bool) {
        let Some(sent) = self.board.get_mut(id).filter(|sent| !sent.has(mark::SACKED)) else { return };
        let flow = &mut self.flow;
        if !sent.has(mark::LOST) {
            sent.marks |= mark::LOST;
            flow.lost_out += 1;
        } else if sent.has(mark::REPEATED) {
            sent.marks &= !mark::REPEATED;
            flow.retrans_out -= 1;
        } else {
            return;
        }
        sent.marks = if is_late { sent.marks | mark::LATE } else { sent.marks & !mark::LATE };
        flow.lost += 1;
        self.control.lost(flow, sent);
        let first = self.board.first();
        let is_before = |hint: Id| id.wrapping_sub(first) < hint.wrapping_sub(first);
        if self.hint.is_none_or(is_before) {
            self.hint = Some(id);
        }
    }

    /// Time has passed without the acknowledgement of what was overtaken.
    pub(super) fn handle_reordering_timeout(&mut self, config: &TcpConfig) {
        let (in_flight, lost) = (self.flow.in_flight(), self.flow.lost);
        self.mark_late();
        if self.flow.in_flight() != in_flight {
            if self.flow.phase != Phase::Recovery {
                self.enter_recovery(false);
                if !self.control.governs() {
                    self.reduce(1, (self.flow.lost - lost) as u32, false);
                }
            }
            self.repair_lost();
        }
        self.restart_timer(config);
    }
}
