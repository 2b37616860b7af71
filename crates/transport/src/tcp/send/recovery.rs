//! The phases of repair: when the window is reduced, how fast, and when that was a mistake.
//!
//! RFC 5681 and 6582 (fast recovery), RFC 6937 and 9937 (proportional rate reduction), RFC 5682 (F-RTO), RFC 3522 and 4015 (undoing by
//! time stamps), RFC 3708 (undoing by reports of duplicates).

use super::ack::{Findings, is_echo_before};
use super::{Reduction, Repair, Sender};
use crate::tcp::config::{Recovery, TcpConfig};
use crate::tcp::congestion::FlowEvent;
use crate::tcp::flow::{MAX_REORDERING, NO_THRESHOLD, Phase};
use crate::tcp::scoreboard::mark;

impl Sender {
    /// Takes an acknowledgement that is a duplicate, reports something unusual, or comes during a repair.
    pub(super) fn alert(&mut self, duplicates: u32, found: &mut Findings, config: &TcpConfig) {
        if self.flow.packets_out == 0 {
            self.flow.sacked_out = 0;
        }
        if found.has_echo {
            // The network has said that it is congested: the reduction stands.
            self.flow.prior_ssthresh = 0;
        }
        if found.reneging && found.advanced {
            return self.wait_for_renege(found, config);
        }
        if self.end_phase(found) {
            return;
        }
        match self.flow.phase {
            Phase::Recovery => self.go_on_recovering(duplicates, found, config),
            Phase::Loss => {
                self.go_on_after_timeout(duplicates, found);
                self.look_for_losses(found, config);
                if self.flow.phase == Phase::Open || found.lost_repetition {
                    self.watch(duplicates, found, config);
                }
            }
            _ => self.watch(duplicates, found, config),
        }
    }

    /// Ends a phase whose data has all arrived. Returns whether nothing more is to be done.
    fn end_phase(&mut self, found: &Findings) -> bool {
        if self.flow.phase == Phase::Open {
            self.undo.first_repeated_at = None;
            return false;
        }
        if self.flow.una < self.high {
            return found.advanced && self.flow.phase == Phase::Recovery && self.ends_early();
        }
        match self.flow.phase {
            // Something behind the end has to be acknowledged, too: the peer then knows of the reduction (CWR).
            Phase::Cwr if self.flow.una != self.high => {
                self.end_reduction();
                self.set_phase(Phase::Open);
            }
            Phase::Recovery => {
                if !self.has_sack {
                    self.flow.sacked_out = 0;
                }
                if self.finish_recovery() {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    /// 4.3BSD-Reno: the first acknowledgement of new data ends the recovery, whatever is still missing (RFC 2001 section 4).
    fn ends_early(&mut self) -> bool {
        if self.recovery != Recovery::Reno || self.board.front().is_some_and(|sent| sent.has(mark::LOST)) {
            return false;
        }
        self.flow.sacked_out = 0;
        self.end_reduction();
        self.set_phase(Phase::Open);
        true
    }

    fn go_on_recovering(&mut self, duplicates: u32, found: &mut Findings, config: &TcpConfig) {
        if !found.advanced {
            self.add_duplicates(duplicates, found);
        } else if self.try_undo_partial(found) {
            return;
        }
        if self.try_undo_by_duplicates() {
            self.try_to_open(found);
        }
        self.look_for_losses(found, config);
        if self.flow.phase != Phase::Recovery {
            if self.flow.lost_out == 0 {
                return;
            }
            self.enter_recovery(found.has_echo);
        }
        self.repair_lost();
    }

    /// Open, Disorder or CWR: finds out whether something was lost.
    fn watch(&mut self, duplicates: u32, found: &mut Findings, config: &TcpConfig) {
        if !self.has_sack {
            if found.advanced {
                self.flow.sacked_out = 0;
            }
            self.add_duplicates(duplicates, found);
        }
        if self.flow.phase <= Phase::Disorder {
            self.try_undo_by_duplicates();
        }
        self.look_for_losses(found, config);
        if self.flow.lost_out == 0 {
            return self.try_to_open(found);
        }
        self.enter_recovery(found.has_echo);
        self.repair_lost();
    }

    fn look_for_losses(&mut self, found: &mut Findings, config: &TcpConfig) {
        let under_way = self.flow.retrans_out;
        if self.find_losses(found.advanced, config) {
            found.sets_timer = false;
        }
        found.lost_repetition |= under_way > self.flow.retrans_out;
    }

    /// Begins to repair: the window shrinks to what the congestion control says (RFC 5681 section 3.2).
    pub(super) fn enter_recovery(&mut self, has_echo: bool) {
        if !self.has_repeated() {
            self.undo.first_repeated_at = None;
        }
        self.counters.recoveries += 1;
        self.flow.prior_ssthresh = 0;
        self.begin_undo();
        if !self.flow.is_reducing() {
            if !has_echo {
                self.flow.prior_ssthresh = self.flow.current_ssthresh();
            }
            self.begin_reduction();
        }
        self.set_phase(Phase::Recovery);
        // A congestion control that governs its window by itself may have no threshold at all.
        if self.recovery == Recovery::Reno && !self.control.governs() {
            self.flow.set_cwnd(self.flow.ssthresh);
        }
    }

    /// The network has marked segments (RFC 3168 section 6.1.2): once per round trip.
    pub(super) fn enter_cwr(&mut self) {
        self.flow.prior_ssthresh = 0;
        if self.flow.phase < Phase::Cwr {
            self.counters.marks += 1;
            self.undo.marker = None;
            self.begin_reduction();
            self.set_phase(Phase::Cwr);
        }
    }

    /// What the peer's window never let through is not halved (RFC 2001 section 2).
    fn forget_unused_window(&mut self) {
        if self.flow.counts_bytes {
            let usable = (self.window / u64::from(self.flow.mss)).max(1);
            self.flow.set_cwnd(u64::from(self.flow.cwnd).min(usable) as u32);
        }
    }

    pub(super) fn begin_reduction(&mut self) {
        self.forget_unused_window();
        self.high = self.flow.next;
        self.tlp_end = 0;
        self.flow.cwnd_count = 0;
        self.flow.prior_cwnd = self.flow.cwnd;
        self.reduction = Reduction::default();
        self.flow.ssthresh = self.control.ssthresh(&self.flow);
        self.has_reduced = true;
    }

    /// Sends in proportion to what is delivered, so that the window has the new size after a round trip (RFC 6937 section 3).
    pub(super) fn reduce(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if self.recovery == Recovery::Reno || delivered == 0 || self.flow.prior_cwnd == 0 {
            return;
        }
        let (in_flight, threshold) = (self.flow.in_flight(), self.flow.ssthresh);
        let reduction = &mut self.reduction;
        reduction.delivered += delivered;
        let sendable = if in_flight > threshold {
            let target =
                (u64::from(threshold) * u64::from(reduction.delivered)).div_ceil(self.flow.prior_cwnd.into());
            target as i64 - i64::from(reduction.sent)
        } else {
            let mut most = (i64::from(reduction.delivered) - i64::from(reduction.sent)).max(delivered.into());
            // Slow start up to the threshold as long as nothing more is lost.
            most += i64::from(advanced && lost == 0);
            most.min(i64::from(threshold - in_flight))
        };
        // The first repetition leaves at once.
        let least = i64::from(reduction.sent == 0);
        self.flow.set_cwnd(in_flight + sendable.max(least) as u32);
    }

    /// Counts segments against the reduction.
    pub(super) fn count_reduction(&mut self, segments: u32) {
        if self.flow.is_reducing() {
            self.reduction.sent += segments;
        }
    }

    pub(super) fn end_reduction(&mut self) {
        if self.control.governs() {
            return;
        }
        let ends = self.flow.phase == Phase::Cwr || self.undo.marker.is_some();
        if self.flow.ssthresh < NO_THRESHOLD && ends {
            self.flow.set_cwnd(self.flow.ssthresh);
            self.flow.cwnd_stamp = self.flow.now;
        }
        self.control.event(&mut self.flow, FlowEvent::Reduced);
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.control.phase_changes(&mut self.flow, phase);
        self.flow.phase = phase;
    }

    /// Whether anything unacknowledged was sent more than once.
    fn has_repeated(&self) -> bool {
        self.flow.retrans_out > 0 || self.is_head_repeated()
    }

    fn try_to_open(&mut self, found: &Findings) {
        if !self.has_repeated() {
            self.undo.first_repeated_at = None;
        }
        if found.has_echo {
            self.enter_cwr();
        }
        if self.flow.phase != Phase::Cwr {
            self.try_keep_open();
        }
    }

    pub(super) fn try_keep_open(&mut self) {
        let is_disordered = self.flow.left_out() > 0 || self.has_repeated();
        let phase = if is_disordered { Phase::Disorder } else { Phase::Open };
        if self.flow.phase != phase {
            self.set_phase(phase);
            self.high = self.flow.next;
        }
    }

    /// The timer has run out: all but the youngest segments count as lost, and slow start begins again (RFC 5681 section 3.1,
    /// RFC 5682, RFC 6675 section 5.1).
    pub(super) fn enter_loss(&mut self, config: &TcpConfig) {
        let is_new = self.flow.phase < Phase::Recovery;
        self.mark_all_lost(config);
        let is_reduced_again = self.flow.phase == Phase::Loss && self.retransmits == 0;
        if self.flow.phase <= Phase::Disorder || self.high <= self.flow.una || is_reduced_again {
            self.forget_unused_window();
            self.flow.prior_ssthresh = self.flow.current_ssthresh();
            self.flow.prior_cwnd = self.flow.cwnd;
            self.flow.ssthresh = self.control.ssthresh(&self.flow);
            self.control.event(&mut self.flow, FlowEvent::Timeout);
            self.begin_undo();
            self.has_reduced = true;
        }
        self.flow.set_cwnd(self.flow.in_flight() + 1);
        self.flow.cwnd_count = 0;
        self.flow.cwnd_stamp = self.flow.now;
        if self.flow.phase <= Phase::Disorder && self.flow.sacked_out >= crate::tcp::flow::DUPLICATES {
            // There was less reordering than was believed.
            self.flow.reordering = self.flow.reordering.min(crate::tcp::flow::DUPLICATES);
        }
        self.set_phase(Phase::Loss);
        self.high = self.flow.next;
        self.tlp_end = 0;
        self.has_frto = config.frto && (is_new || self.retransmits > 0);
    }

    fn mark_all_lost(&mut self, config: &TcpConfig) {
        let Some(head) = self.board.front().copied() else { return };
        let is_reneging = head.has(mark::SACKED);
        if is_reneging {
            self.is_reneging = true;
            self.flow.sacked_out = 0;
            self.seen_blocks = [(0, 0); 4];
        } else if !self.has_sack {
            self.flow.sacked_out = 0;
        }
        let first = self.board.first();
        for id in self.board.ids() {
            let Some(sent) = self.board.get_mut(id) else { break };
            if is_reneging {
                sent.marks &= !mark::SACKED;
            }
            let sent = *sent;
            if !is_reneging && id != first && self.is_young(&sent, config) {
                continue;
            }
            self.mark_lost(id, false);
        }
        self.hint = None;
    }

    /// F-RTO and slow start after a timeout.
    fn go_on_after_timeout(&mut self, duplicates: u32, found: &mut Findings) {
        let has_recovered = self.flow.una >= self.high;
        if found.advanced && self.try_undo_loss(false) {
            return;
        }
        if self.has_frto {
            // Data that was not repeated has arrived: the timeout was too early (RFC 5682 section 3.1 step 3b).
            if found.original_acked && self.try_undo_loss(true) {
                return;
            }
            if self.flow.next > self.high {
                if found.data_sacked || duplicates > 0 {
                    self.has_frto = false;
                }
            } else if found.advanced && !has_recovered {
                self.high = self.flow.next;
                if self.flow.next < self.end() && self.flow.next < self.window_end() {
                    self.repair = Repair::New;
                    return;
                }
                self.has_frto = false;
            }
        }
        if has_recovered {
            self.finish_recovery();
            return;
        }
        if !self.has_sack {
            if self.flow.next > self.high && duplicates > 0 {
                self.add_duplicates(duplicates, found);
            } else if found.advanced {
                self.flow.sacked_out = 0;
            }
        }
        self.repair_lost();
    }

    /// The receiver seems to have dropped what it had acknowledged: a little time will tell.
    fn wait_for_renege(&mut self, found: &mut Findings, config: &TcpConfig) {
        use super::timer::SendTimer;
        let smoothed = self.flow.rtt.smoothed().unwrap_or(trunkline_core::Duration::ZERO);
        let wait = (smoothed / 2).max(trunkline_core::Duration::from_millis(10));
        self.start_timer(SendTimer::Timeout, wait, config);
        found.sets_timer = false;
    }

    // Without selective acknowledgements, duplicates stand for them.

    fn add_duplicates(&mut self, duplicates: u32, found: &Findings) {
        if duplicates == 0 || self.has_sack {
            return;
        }
        let before = self.flow.sacked_out;
        self.flow.sacked_out += duplicates;
        self.limit_duplicates(0);
        let delivered = self.flow.sacked_out.saturating_sub(before);
        self.flow.delivered += u64::from(delivered);
        if found.marks_all {
            self.flow.delivered_ce += u64::from(delivered);
        }
    }

    /// One of the acknowledged segments filled the gap; the others had caused duplicates.
    pub(super) fn forget_duplicates(&mut self, acked: u32, found: &mut Findings) {
        let delivered = acked.saturating_sub(self.flow.sacked_out).max(1);
        self.flow.delivered += u64::from(delivered);
        if found.marks_all {
            self.flow.delivered_ce += u64::from(delivered);
        }
        self.flow.sacked_out = self.flow.sacked_out.saturating_sub(acked.saturating_sub(1));
        self.limit_duplicates(acked);
        // It cannot be told which transmission has arrived.
        found.original_acked &= !found.repeated_acked;
    }

    /// More duplicates than segments mean reordering.
    fn limit_duplicates(&mut self, acked: u32) {
        let flow = &mut self.flow;
        let holes = flow.lost_out.max(1).min(flow.packets_out);
        if flow.sacked_out + holes > flow.packets_out {
            flow.sacked_out = flow.packets_out - holes;
            flow.reordering = flow.reordering.max((flow.packets_out + acked).min(MAX_REORDERING));
            self.rack.reordering_seen = self.rack.reordering_seen.saturating_add(1);
        }
    }

    // Undoing.

    pub(super) fn begin_undo(&mut self) {
        self.undo.marker = Some(self.flow.una);
        let probe = u32::from(self.tlp_end > 0 && self.is_tlp_repetition);
        let under_way = self.flow.retrans_out + probe;
        self.undo.repetitions = (under_way > 0).then_some(under_way);
    }

    /// The peer had what was repeated, or nothing was: the first transmission has arrived.
    fn may_undo(&self, echo_is_before: bool) -> bool {
        self.undo.marker.is_some() && (self.undo.repetitions == Some(0) || echo_is_before)
    }

    fn is_delayed(&self) -> bool {
        match self.undo.first_repeated_at {
            Some(at) => is_echo_before(self.echo, at),
            None => self.has_sack || self.flow.una < self.high,
        }
    }

    fn undo_reduction(&mut self, forgets_losses: bool) {
        if forgets_losses {
            for id in self.board.ids() {
                if let Some(sent) = self.board.get_mut(id) {
                    sent.marks &= !mark::LOST;
                }
            }
            self.flow.lost_out = 0;
            self.hint = None;
        }
        if self.flow.prior_ssthresh > 0 {
            let cwnd = self.control.undone_cwnd(&self.flow);
            self.flow.set_cwnd(cwnd);
            if self.flow.prior_ssthresh > self.flow.ssthresh {
                self.flow.ssthresh = self.flow.prior_ssthresh;
                self.has_reduced = false;
            }
        }
        self.counters.undone += 1;
        self.flow.cwnd_stamp = self.flow.now;
        self.undo.marker = None;
        self.rack.has_advanced = true;
    }

    /// Whether the phase has to last until something behind its end is acknowledged: without selective acknowledgements late
    /// duplicates would begin another repair (RFC 6582 section 4).
    fn must_stay(&mut self) -> bool {
        if self.flow.una == self.high && !self.has_sack && self.recovery != Recovery::Reno {
            if !self.has_repeated() {
                self.undo.first_repeated_at = None;
            }
            return true;
        }
        false
    }

    /// All data of the repair has arrived. Returns whether the phase has to last.
    fn finish_recovery(&mut self) -> bool {
        if self.may_undo(self.is_delayed()) {
            self.undo_reduction(false);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        if self.must_stay() {
            return true;
        }
        self.set_phase(Phase::Open);
        self.is_reneging = false;
        false
    }

    fn try_undo_by_duplicates(&mut self) -> bool {
        if self.undo.marker.is_none() || self.undo.repetitions != Some(0) {
            return false;
        }
        self.rack.persist_longer();
        self.undo_reduction(false);
        true
    }

    fn try_undo_loss(&mut self, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo(self.is_delayed()) {
            return false;
        }
        self.undo_reduction(true);
        if by_frto {
            self.counters.spurious_timeouts += 1;
        }
        self.retransmits = 0;
        if self.must_stay() {
            return true;
        }
        if by_frto || self.has_sack {
            self.set_phase(Phase::Open);
            self.is_reneging = false;
        }
        true
    }

    /// A partial acknowledgement of a first transmission: it was only late.
    fn try_undo_partial(&mut self, found: &Findings) -> bool {
        if self.undo.marker.is_none() || !self.is_delayed() {
            return false;
        }
        self.note_reordering(found.prior_una);
        if self.flow.retrans_out > 0 {
            return true;
        }
        if !self.has_repeated() {
            self.undo.first_repeated_at = None;
        }
        self.undo_reduction(true);
        self.try_keep_open();
        false
    }
}
