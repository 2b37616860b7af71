//! Acknowledgements: what they free, what they say of the round trip and of the rate, and what follows for the window.

use trunkline_core::{Duration, Time};

use super::{Repair, Sender};
use crate::tcp::config::TcpConfig;
use crate::tcp::congestion::AckSample;
use crate::tcp::flow::{DUPLICATES, Phase};
use crate::tcp::rate::RateSample;
use crate::tcp::scoreboard::mark;

/// An acknowledgement as the sender needs it. Places are the sender's.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Ack<'a> {
    /// Everything before this place has arrived.
    pub(in crate::tcp) place: i64,
    /// The peer's place of the segment that carries it.
    pub(in crate::tcp) from: i64,
    /// The peer's window in bytes.
    pub(in crate::tcp) window: u64,
    /// Blocks that have arrived out of order, as they stand in the option.
    pub(in crate::tcp) blocks: &'a [(i64, i64)],
    /// Whether the segment carries data, a SYN or a FIN.
    pub(in crate::tcp) has_data: bool,
    /// The echo of a mark (RFC 3168), and the number of segments with marks that it reports (RFC 9768).
    pub(in crate::tcp) has_echo: bool,
    pub(in crate::tcp) marked: Option<u32>,
    /// When the segment was sent whose time stamp it echoes, to the millisecond.
    pub(in crate::tcp) echo: Option<Time>,
}

/// What became of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum AckOutcome {
    /// It was taken.
    Taken,
    /// It is older than another that was taken.
    Old,
    /// It is so old that it can only be forged (RFC 5961 section 5.2).
    TooOld,
    /// It acknowledges what was never sent.
    Unsent,
}

/// What an acknowledgement turned out to say.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) prior_una: u64,
    /// The end of what had arrived, in order or not, before it.
    pub(super) prior_end: u64,
    /// It acknowledges more than the one before.
    pub(super) advanced: bool,
    pub(super) has_data: bool,
    pub(super) window_update: bool,
    pub(super) data_acked: bool,
    pub(super) syn_acked: bool,
    /// It acknowledges a segment that was sent more than once.
    pub(super) repeated_acked: bool,
    /// It reports a segment that has arrived out of order.
    pub(super) data_sacked: bool,
    /// It acknowledges a segment that was sent once, before the repair under way began.
    pub(super) original_acked: bool,
    pub(super) has_echo: bool,
    /// All segments that it acknowledges count as marked: it says that there were marks, but not how many.
    pub(super) marks_all: bool,
    /// It reports a duplicate (RFC 2883), and that is the tail loss probe.
    pub(super) duplicate: bool,
    pub(super) duplicate_of_probe: bool,
    /// The segment after it had been reported as arrived.
    pub(super) reneging: bool,
    /// It has probably waited at the peer.
    pub(super) maybe_delayed: bool,
    /// The timer has to be set anew.
    pub(super) sets_timer: bool,
    /// A repetition was lost, too.
    pub(super) lost_repetition: bool,
    /// Segments delivered out of order, or twice.
    pub(super) sacked_count: u32,
    /// When the first and the last of the newly reported segments were sent that had been sent once.
    pub(super) sacked_at: Option<(Time, Time)>,
    /// The lowest place that was overtaken by a later one without having been lost.
    pub(super) overtaken: u64,
    pub(super) rate: RateSample,
}

impl Findings {
    /// Returns true if the segment brings nothing new: it may be a duplicate.
    pub(super) fn is_dup(&self) -> bool {
        !(self.has_data || self.window_update || self.acked())
    }

    pub(super) fn acked(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    fn is_alarming(&self) -> bool {
        self.data_sacked || self.has_echo || self.duplicate
    }
}

impl Sender {
    /// Takes an acknowledgement (RFC 9293 section 3.10.7.4, RFC 5681, RFC 6675).
    pub(in crate::tcp) fn take_ack(&mut self, now: Time, ack: &Ack<'_>, config: &TcpConfig) -> AckOutcome {
        (self.flow.now, self.echo) = (now, ack.echo);
        let mut found = Findings {
            prior_una: self.flow.una,
            prior_end: if self.has_sack { self.arrived_end() } else { self.flow.una },
            overtaken: self.flow.next,
            ..Findings::default()
        };
        found.rate.prior_in_flight = self.flow.in_flight();
        let prior = (self.flow.packets_out, self.flow.delivered, self.flow.lost, self.is_reneging);
        if ack.place < self.flow.una as i64 {
            return self.take_old_ack(ack, &mut found, config);
        }
        let place = ack.place as u64;
        if place > self.flow.next {
            return AckOutcome::Unsent;
        }
        self.may_send = true;
        found.advanced = place > self.flow.una;
        found.has_data = ack.has_data;
        (found.has_echo, found.marks_all) = (ack.has_echo, ack.has_echo && ack.marked.is_none());
        if found.advanced {
            (self.retransmits, self.waiting_since) = (0, now);
        }
        found.window_update = self.update_window(ack, place, config);
        self.bytes_acked += place - self.flow.una;
        self.flow.una = place;
        self.tag_blocks(ack.blocks, &mut found);
        self.count_delivered(found.sacked_count, found.marks_all);
        self.flow.delivered_ce += u64::from(ack.marked.unwrap_or(0));
        self.probes_out = 0;
        let (prior_packets, prior_delivered, prior_lost, was_reneging) = prior;
        if prior_packets == 0 {
            self.take_ack_without_data(ack, &mut found, config);
            return AckOutcome::Taken;
        }
        self.clean(ack, &mut found, config);
        self.rack.update_window(&self.flow, found.rate.prior_delivered);
        self.control.arrived(&mut self.flow, found.has_echo);
        self.judge_tail_probe(&found, config);
        if found.is_dup() || found.is_alarming() || self.flow.phase != Phase::Open {
            let duplicates = u32::from(!found.advanced && found.is_dup() && !found.duplicate);
            self.alert(duplicates, &mut found, config);
        }
        if found.sets_timer {
            self.set_timer(config);
        }
        let delivered = (self.flow.delivered - prior_delivered) as u32;
        let lost = (self.flow.lost - prior_lost) as u32;
        found.rate.is_ack_delayed = found.maybe_delayed;
        found.rate.finish(&mut self.flow, delivered, lost, was_reneging);
        self.control_congestion(delivered, &found);
        AckOutcome::Taken
    }

    /// An acknowledgement that another has overtaken may still report segments that have arrived out of order.
    fn take_old_ack(&mut self, ack: &Ack<'_>, found: &mut Findings, config: &TcpConfig) -> AckOutcome {
        if (self.flow.una as i64) - ack.place > self.max_window.min(self.bytes_acked) as i64 {
            return AckOutcome::TooOld;
        }
        if !ack.blocks.is_empty() {
            self.tag_blocks(ack.blocks, found);
            self.alert(0, found, config);
            self.may_send = true;
        }
        AckOutcome::Old
    }

    /// Nothing is unacknowledged: what remains is a report of duplicates, and the peer's window.
    fn take_ack_without_data(&mut self, ack: &Ack<'_>, found: &mut Findings, config: &TcpConfig) {
        self.control.arrived(&mut self.flow, found.has_echo);
        if found.duplicate {
            self.alert(0, found, config);
        }
        self.take_probe_answer(ack, config);
        self.judge_tail_probe(found, config);
    }

    fn count_delivered(&mut self, segments: u32, is_marked: bool) {
        self.flow.delivered += u64::from(segments);
        if is_marked {
            self.flow.delivered_ce += u64::from(segments);
        }
    }

    /// Takes the peer's window from a segment that is newer than the one it was taken from last (RFC 9293 section 3.10.7.4).
    fn update_window(&mut self, ack: &Ack<'_>, place: u64, config: &TcpConfig) -> bool {
        let is_newer = place > self.flow.una
            || ack.from > self.window_from
            || ack.from == self.window_from && ack.window > self.window;
        if !is_newer {
            return false;
        }
        self.window_from = ack.from;
        if self.window != ack.window {
            self.window = ack.window;
            if self.flow.next < self.end() {
                self.check_idleness(config);
            }
            if self.window > self.max_window {
                self.max_window = self.window;
                self.sync_mss(config);
            }
        }
        true
    }

    /// Takes the window of the peer's SYN.
    pub(in crate::tcp) fn take_syn_window(&mut self, from: i64, window: u64) {
        (self.window, self.window_from) = (window, from);
        self.max_window = self.max_window.max(window);
    }

    /// Frees what is acknowledged, and takes samples of the round trip and the rate.
    fn clean(&mut self, ack: &Ack<'_>, found: &mut Findings, config: &TcpConfig) {
        let (prior_sacked, una) = (self.flow.sacked_out, self.flow.una);
        let mut sent_at: Option<(Time, Time)> = None;
        let (mut acked, mut overtaken) = (0, self.flow.next);
        while let Some(sent) = self.board.front().filter(|sent| sent.end() <= una) {
            let marks = sent.marks;
            if marks & mark::EVER_REPEATED != 0 {
                found.repeated_acked = true;
            } else if marks & mark::SACKED == 0 {
                sent_at = Some((sent_at.map_or(sent.sent_at, |(first, _)| first), sent.sent_at));
                overtaken = overtaken.min(sent.place);
                found.original_acked |= sent.end() <= self.high;
            }
            found.syn_acked |= marks & mark::SYN != 0;
            found.data_acked |= marks & mark::SYN == 0;
            self.free_first(ack, found);
            acked += 1;
        }
        if self.board.front().is_some_and(|sent| sent.has(mark::SACKED)) {
            found.reneging = true;
        }
        if acked > 0 {
            self.bytes.drop_before(una);
        }
        let is_partial = self.board.front().is_some_and(|sent| sent.place < una);
        self.sample_round_trip(ack, found, sent_at, config, |sender, found| {
            acked == 1
                && !is_partial
                && prior_sacked == 0
                && una - found.prior_una < u64::from(sender.flow.mss)
                && found.rate.prior_delivered + 1 == sender.flow.delivered
                && !(found.is_alarming() || found.syn_acked)
        });
        if found.acked() {
            found.sets_timer = true;
            if !self.has_sack {
                self.forget_duplicates(acked, found);
            } else if overtaken < found.prior_end {
                self.note_reordering(overtaken);
            }
            if !config.timeout.keep_backoff {
                self.flow.rtt.forget_backoff(&config.timeout);
            }
        }
        let sample = AckSample { rtt: found.rate.rtt };
        self.control.acked(&mut self.flow, &sample);
    }

    /// Frees the first segment, all of which is acknowledged.
    fn free_first(&mut self, ack: &Ack<'_>, found: &mut Findings) {
        let id = self.board.first();
        let Some(mut sent) = self.board.pop() else { return };
        if self.hint == Some(id) {
            self.hint = None;
        }
        let flow = &mut self.flow;
        if sent.has(mark::REPEATED) {
            flow.retrans_out -= 1;
        }
        if sent.has(mark::LOST) {
            flow.lost_out -= 1;
        }
        flow.packets_out -= 1;
        if sent.has(mark::SACKED) {
            flow.sacked_out -= 1;
        } else if self.has_sack {
            self.count_delivered(1, found.marks_all);
            // What the peer echoes was sent before the repetition: that one did not bring this acknowledgement.
            let is_spurious = sent.has(mark::EVER_REPEATED) && is_echo_before(ack.echo, sent.sent_at);
            if !is_spurious {
                self.rack.advance(&self.flow, &sent);
            }
        }
        found.rate.take(&mut self.flow, &mut sent, false);
    }

    /// Takes samples of the round trip: from segments that were sent once, or from the time stamp that came back (RFC 6298
    /// section 3, RFC 7323 section 4).
    fn sample_round_trip(
        &mut self,
        ack: &Ack<'_>,
        found: &mut Findings,
        sent_at: Option<(Time, Time)>,
        config: &TcpConfig,
        may_be_delayed: impl Fn(&Sender, &Findings) -> bool,
    ) {
        let now = self.flow.now;
        let (mut sample, mut newest) = (None, None);
        if let Some((first, last)) = sent_at.filter(|_| !found.repeated_acked) {
            (sample, newest) = (Some(now.since(first)), Some(now.since(last)));
            found.maybe_delayed = may_be_delayed(self, found);
        }
        let sacked = found.sacked_at.map(|(first, last)| (now.since(first), now.since(last)));
        if let Some((first, last)) = sacked {
            newest = Some(last);
            sample = sample.or(Some(first));
        }
        if sample.is_none() && found.acked() {
            sample = ack.echo.map(|echo| to_millisecond(now).since(echo).max(MILLISECOND));
            newest = sample.or(newest);
        }
        found.rate.rtt = newest;
        let Some(sample) = sample else { return };
        let newest = newest.unwrap_or(sample);
        if !(found.maybe_delayed && newest > self.flow.rtt.smallest()) {
            self.flow.rtt.take_smallest(now, newest);
        }
        self.flow.take_rtt(sample, &config.timeout);
        self.backoff = 0;
        // In a repair the timer is not put off by segments that were sent before the first was repeated.
        if let (Some((first, _)), Some(head)) = (sacked, self.board.front())
            && !found.acked()
            && first > now.since(head.sent_at)
        {
            found.sets_timer = true;
        }
    }

    /// Lets the congestion control decide.
    fn control_congestion(&mut self, delivered: u32, found: &Findings) {
        if self.control.governs() {
            self.control.govern(&mut self.flow, &found.rate);
        } else {
            if self.flow.is_reducing() {
                self.reduce(delivered, found.rate.losses, found.advanced);
            } else if self.may_grow(found) {
                let acked = if self.flow.counts_bytes { 1 } else { delivered };
                self.control.grow(&mut self.flow, acked);
                self.flow.cwnd_stamp = self.flow.now;
            }
            self.update_pacing_rate();
        }
    }

    /// Whether the window may grow: with data in order, or with any where the path is known to reorder much.
    fn may_grow(&self, found: &Findings) -> bool {
        found.data_acked || self.flow.reordering > DUPLICATES && (found.acked() || found.data_sacked)
    }

    /// Has what counts as lost sent again as soon as the window allows.
    pub(super) fn repair_lost(&mut self) {
        self.repair = Repair::Lost;
        self.may_send = true;
    }
}

/// The grain of time stamps.
pub(in crate::tcp) const MILLISECOND: Duration = Duration::from_millis(1);

/// A moment as time stamps tell it.
pub(in crate::tcp) fn to_millisecond(time: Time) -> Time {
    Time::from_nanos(time.as_nanos() / MILLISECOND.as_nanos() * MILLISECOND.as_nanos())
}

/// Returns true if the echoed time stamp is older than what was sent at a moment.
pub(super) fn is_echo_before(echo: Option<Time>, sent_at: Time) -> bool {
    echo.is_some_and(|echo| echo < to_millisecond(sent_at))
}
