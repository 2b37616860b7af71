//! New data: how much of it leaves at once, and what waits.

use trunkline_core::{Duration, Time};

use super::{Chunk, Piece, Repair, Sender};
use crate::tcp::config::{Nagle, TcpConfig};
use crate::tcp::congestion::FlowEvent;
use crate::tcp::flow::Phase;
use crate::tcp::rate::TxState;
use crate::tcp::scoreboard::{Sent, mark};

/// The kernel's largest buffer of unsent data.
const BUFFER: u64 = 64 << 10;
/// A burst has as much as leaves in one part in 2^this of a second: about a millisecond.
const BURST_SHIFT: u32 = 10;
/// Short round trips allow larger bursts: by a half less for every half millisecond (Linux's `tcp_tso_rtt_log`).
const BURST_RTT: Duration = Duration::from_micros(512);
/// Segments that leave at once before pacing begins.
const UNPACED: u64 = 10;
/// A burst waits to become larger only this long after the last.
const RECENT: Duration = Duration::from_millis(1);
/// A third of the window is sent at once.
const WINDOW_DIVISOR: u64 = 3;

impl Sender {
    /// The next segment to be written, if there is one to be sent now. `options`: bytes that options take beside time stamps.
    pub(in crate::tcp) fn poll(&mut self, now: Time, options: usize, config: &TcpConfig) -> Option<Piece> {
        self.flow.now = now;
        if self.chunk.left == 0 && !self.choose(options, config) {
            self.finish_attempt(config);
            return None;
        }
        let Chunk { next, is_new, .. } = self.chunk;
        self.chunk.next = next.wrapping_add(1);
        self.chunk.left -= 1;
        if next == self.board.end() {
            return Some(self.probe_piece());
        }
        let sent = self.board.get(next)?;
        Some(Piece {
            place: sent.place,
            length: sent.length.into(),
            syn: sent.has(mark::SYN),
            fin: sent.has(mark::FIN),
            push: sent.has(mark::PUSH),
            is_new,
        })
    }

    /// When the segment that was just written leaves the host's interface, and books it there.
    pub(in crate::tcp) fn depart(&mut self, size: usize, config: &TcpConfig) -> Time {
        let Some(rate) = config.interface else { return Time::ZERO };
        let begin = self.interface_free.max(self.flow.now);
        self.interface_free = begin + rate.time_for(trunkline_core::Bytes(size as u64));
        begin
    }

    /// Returns true once after each reduction of the window: the peer learns of it (RFC 3168 section 6.1.2).
    pub(in crate::tcp) fn take_reduction(&mut self) -> bool {
        core::mem::take(&mut self.has_reduced)
    }

    /// Asks for a keep-alive.
    pub(in crate::tcp) fn keep_alive(&mut self) {
        self.is_keepalive_due = true;
    }

    /// An empty segment before the first unacknowledged place: the peer has to answer it (RFC 9293 section 3.8.4).
    fn probe_piece(&self) -> Piece {
        Piece { place: self.flow.una.saturating_sub(1), ..Piece::default() }
    }

    /// Picks the next chunk.
    fn choose(&mut self, options: usize, config: &TcpConfig) -> bool {
        let mss = u64::from(self.flow.mss).saturating_sub(options as u64).max(1);
        if core::mem::take(&mut self.is_timeout_repetition_due) {
            return self.repeat_after_timeout(mss);
        }
        if core::mem::take(&mut self.is_tail_probe_due) {
            return self.send_tail_probe(mss, config);
        }
        if core::mem::take(&mut self.is_window_probe_due) {
            return self.send_window_probe(mss, config);
        }
        if core::mem::take(&mut self.is_keepalive_due) {
            return self.send_empty();
        }
        if !self.may_send {
            return false;
        }
        if self.repair == Repair::New {
            if self.send_new(mss, Urgency::Pushed, config) {
                return true;
            }
            let has_sent = self.flow.next > self.high;
            self.has_frto &= has_sent;
            self.repair = if has_sent { Repair::Nothing } else { Repair::Lost };
        }
        if self.repair == Repair::Lost {
            if self.repeat_lost(mss, config) {
                return true;
            }
            self.repair = Repair::Nothing;
        }
        self.send_new(mss, Urgency::Normal, config)
    }

    /// Nothing more can be sent now.
    fn finish_attempt(&mut self, config: &TcpConfig) {
        let has_sent = core::mem::take(&mut self.has_sent);
        if !core::mem::take(&mut self.may_send) {
            return;
        }
        let is_limited =
            core::mem::take(&mut self.is_held_by_cwnd) || self.flow.in_flight() >= self.flow.cwnd;
        if has_sent || is_limited && self.flow.next < self.end_of_all() {
            self.validate_cwnd(is_limited, config);
        }
        if has_sent {
            self.plan_tail_probe(false, config);
        }
        if self.is_established && self.flow.next < self.end_of_all() {
            self.plan_window_probe(config);
        }
        self.relieve_writer(config);
    }

    /// If the application has nothing more to send, it limits the rate, not the network.
    pub(super) fn check_app_limit(&mut self) {
        let flow = &mut self.flow;
        let unsent = self.bytes.end().saturating_sub(flow.next);
        let is_limited =
            unsent < flow.mss.into() && flow.in_flight() < flow.cwnd && flow.lost_out <= flow.retrans_out;
        if is_limited {
            flow.app_limited = (flow.delivered + u64::from(flow.in_flight())).max(1);
        }
    }

    /// Puts a chunk of new data under way.
    fn send_new(&mut self, mss: u64, urgency: Urgency, config: &TcpConfig) -> bool {
        if self.flow.next == 0 {
            self.put_under_way(0, mss, true, config);
            return true;
        }
        if !self.is_established || self.flow.next >= self.end_of_all() {
            return false;
        }
        if urgency != Urgency::Probe && self.is_held_by_pace() {
            return false;
        }
        match self.allowed(mss, urgency, config) {
            Some(length) => {
                self.put_under_way(length, mss, false, config);
                true
            }
            None => false,
        }
    }

    /// Returns true if pacing holds the next chunk back, and sets the time of the next attempt.
    pub(super) fn is_held_by_pace(&mut self) -> bool {
        let is_held = self.flow.is_paced && self.flow.departure > self.flow.now;
        if is_held {
            self.wake = Some(self.flow.departure);
        }
        is_held
    }

    /// Number of bytes that may leave together now; none for a FIN alone.
    fn allowed(&mut self, mss: u64, urgency: Urgency, config: &TcpConfig) -> Option<u64> {
        let next = self.flow.next;
        if next >= self.buffer_end {
            // Without segmentation offload a buffer holds one segment, so that none is cut at its end.
            let segments = (BUFFER / mss).max(1);
            self.buffer_end = if config.burst as u64 >= mss { next + segments * mss } else { u64::MAX };
        }
        let end = self.end();
        let (is_last, waiting) = (end <= self.buffer_end, end.min(self.buffer_end) - next);
        let segments = waiting.div_ceil(mss).max(1);
        let has_fin = self.is_finishing && is_last;
        let Some(quota) = self.quota(has_fin && segments == 1, urgency) else {
            self.is_held_by_cwnd |= urgency != Urgency::Probe;
            return None;
        };
        let room = self.window_end().min(self.flow.cwnd_end()).saturating_sub(next);
        let first = waiting.min(mss) + u64::from(has_fin && segments == 1);
        if first > room {
            return self.allowed_partially(room, waiting, config);
        }
        let most = self.burst_segments(mss, config);
        if segments == 1 {
            let may_wait = is_last && urgency == Urgency::Normal && !has_fin && waiting < mss;
            if may_wait && self.is_held_by_nagle(waiting, config) {
                return None;
            }
        } else if urgency == Urgency::Normal && self.is_worth_waiting(waiting, is_last, has_fin, mss, most) {
            return None;
        }
        if self.is_held_by_interface(mss, config) {
            return None;
        }
        let chunk = mss * most.min(quota.into()).max(1);
        let mut length = waiting.min(room).min(chunk);
        let partial = length % mss;
        if segments > 1 && length < chunk && partial > 0 {
            let is_cut = !config.half_window_segments && length < waiting;
            let is_held = urgency == Urgency::Normal && self.is_held_by_nagle(partial, config);
            length -= if is_cut || is_held { partial } else { 0 };
        }
        (length > 0 || has_fin).then_some(length)
    }

    /// A smaller segment where the window holds less than the next: at least half of the largest window, or what is large
    /// enough not to wait (RFC 9293 section 3.8.6.2.1).
    fn allowed_partially(&self, room: u64, waiting: u64, config: &TcpConfig) -> Option<u64> {
        if config.half_window_segments || room == 0 || room >= waiting {
            return None;
        }
        let is_large = matches!(config.nagle, Nagle::Below(limit) if limit > 0 && room >= limit as u64);
        (is_large || room * 2 >= self.max_window).then_some(room)
    }

    /// Number of segments for which the congestion window has room: half of it at most, so that two bursts are under way.
    fn quota(&self, is_fin: bool, urgency: Urgency) -> Option<u32> {
        let (cwnd, in_flight) = (self.flow.cwnd, self.flow.in_flight());
        if is_fin || self.flow.counts_bytes {
            Some(1)
        } else if in_flight < cwnd {
            Some((cwnd - in_flight).min((cwnd / 2).max(1)))
        } else {
            (urgency == Urgency::Probe).then_some(1)
        }
    }

    /// The largest burst, in segments.
    fn burst_segments(&self, mss: u64, config: &TcpConfig) -> u64 {
        let most = config.burst as u64;
        if most < mss {
            return 1;
        }
        let flow = &self.flow;
        if let Some(segments) = self.control.max_burst(flow) {
            return u64::from(segments).min(most / mss);
        }
        let mut bytes = if flow.pacing_rate == 0 { most } else { flow.pacing_rate >> BURST_SHIFT };
        let halvings = flow.rtt.smallest().as_nanos() / BURST_RTT.as_nanos();
        if halvings < 32 {
            bytes += most >> halvings;
        }
        (bytes.min(most) / mss).max(u64::from(self.control.min_burst(flow)))
    }

    /// Returns true if the last, small segment waits (RFC 896; Minshall's variant: only behind another small one).
    fn is_held_by_nagle(&self, length: u64, config: &TcpConfig) -> bool {
        let is_under_way = self.flow.packets_out > 0;
        match config.nagle {
            Nagle::Below(limit) => length < limit as u64 && is_under_way,
            Nagle::Cork => true,
            _ if self.is_corked => true,
            Nagle::Off => false,
            Nagle::Minshall => {
                is_under_way && self.small_end > self.flow.una && self.small_end <= self.flow.next
            }
        }
    }

    /// Returns true if the burst waits for another acknowledgement, because it would then be larger.
    fn is_worth_waiting(&mut self, waiting: u64, is_last: bool, has_fin: bool, mss: u64, most: u64) -> bool {
        let flow = &self.flow;
        if flow.phase >= Phase::Recovery || flow.now.since(flow.departure) > RECENT {
            return false;
        }
        let window = self.window_end().saturating_sub(flow.next);
        let congestion = u64::from(flow.cwnd - flow.in_flight().min(flow.cwnd)) * mss;
        let limit = window.min(congestion);
        let share = self.window.min(u64::from(flow.cwnd) * mss) / WINDOW_DIVISOR;
        if limit >= most * mss || !is_last && limit >= waiting || limit >= share {
            return false;
        }
        let (Some(head), Some(smoothed)) = (self.board.front(), flow.rtt.smoothed()) else { return false };
        let expected = head.sent_at + smoothed;
        if expected > flow.now + (smoothed / 2).min(RECENT) {
            return false;
        }
        if congestion < window && congestion <= waiting {
            self.is_held_by_cwnd = true;
            return true;
        }
        congestion >= window && window <= waiting || !has_fin
    }

    /// Returns true if the host's interface has enough of this connection already (TCP small queues), and sets the time of the
    /// next attempt.
    fn is_held_by_interface(&mut self, mss: u64, config: &TcpConfig) -> bool {
        let Some(rate) = config.interface else { return false };
        let backlog = self.interface_free.since(self.flow.now);
        let limit = (2 * mss * self.burst_segments(mss, config)).max(self.flow.pacing_rate >> BURST_SHIFT);
        let allowed = rate.time_for(trunkline_core::Bytes(limit));
        if backlog <= allowed || self.board.len() <= 1 {
            return false;
        }
        self.wake = Some(self.flow.now + (backlog - allowed));
        true
    }

    /// Notes so many bytes as sent, in segments.
    fn put_under_way(&mut self, length: u64, mss: u64, is_syn: bool, config: &TcpConfig) {
        let segments = length.div_ceil(mss).max(1) as u32;
        let sent_at = self.begin_departure();
        let tx = TxState::now(&mut self.flow, sent_at, segments);
        let first = self.board.end();
        let prior_packets = self.flow.packets_out;
        let mut left = length;
        for n in 0..segments {
            let part = left.min(mss);
            left -= part;
            let place = self.flow.next;
            self.flow.next += part;
            let mut marks = if is_syn { mark::SYN } else { 0 };
            let is_end = n + 1 == segments;
            // Linux pushes the end of every burst, so that the receiver's host does not wait for more of it.
            let is_pushed = segments > 1 || self.flow.next == self.end() || self.flow.next == self.buffer_end;
            if is_end && part > 0 && is_pushed {
                marks |= mark::PUSH;
            }
            if is_end && !is_syn && self.is_finishing && self.flow.next == self.end() {
                marks |= mark::FIN;
            }
            self.board.push(Sent::new(place, part as u16, marks, sent_at, tx));
            self.flow.next += u64::from(marks & mark::SYN != 0) + u64::from(marks & mark::FIN != 0);
        }
        if length < u64::from(segments) * mss {
            self.small_end = self.flow.next;
        }
        self.flow.packets_out += segments;
        self.counters.segments += u64::from(segments);
        self.chunk = Chunk { next: first, left: segments, is_new: true };
        self.has_sent = true;
        self.count_reduction(segments);
        self.end_departure(length);
        if prior_packets == 0 {
            self.waiting_since = self.flow.now;
        }
        if prior_packets == 0 || matches!(self.timer, Some((super::SendTimer::TailProbe, _))) {
            self.restart_timer(config);
        }
    }

    /// Something with data leaves now. Returns when that is.
    pub(super) fn begin_departure(&mut self) -> Time {
        if self.flow.in_flight() == 0 {
            self.control.event(&mut self.flow, FlowEvent::Restart);
        }
        self.flow.data_sent_at = self.flow.now;
        self.flow.now
    }

    /// When the next chunk may leave, behind one of so many bytes.
    pub(super) fn end_departure(&mut self, bytes: u64) {
        let (now, prior) = (self.flow.now, self.flow.departure);
        let departure = prior.max(now);
        self.flow.departure = departure;
        if self.flow.is_paced && self.counters.segments > UNPACED {
            let time = self.pacing_time(bytes);
            // Up to half of the time by which this one was late is made up for.
            self.flow.departure = departure + (time - (departure.since(prior)).min(time / 2));
        }
    }

    /// Sends an empty segment.
    fn send_empty(&mut self) -> bool {
        self.chunk = Chunk { next: self.board.end(), left: 1, is_new: false };
        true
    }

    /// Finds out whether a closed window is still closed: with as much data as fits into it, or else with an empty segment
    /// that the peer has to answer.
    fn send_window_probe(&mut self, mss: u64, config: &TcpConfig) -> bool {
        self.counters.window_probes += 1;
        let room = self.window_end().saturating_sub(self.flow.next);
        let waiting = self.end().saturating_sub(self.flow.next);
        if room == 0 || waiting == 0 && !self.is_finishing {
            return self.send_empty();
        }
        self.timer = None;
        (self.backoff, self.probes_out, self.probing_since) = (0, 0, None);
        self.put_under_way(waiting.min(room).min(mss), mss, false, config);
        true
    }

    /// Sends a tail loss probe: new data if there is any and the window has room, or else the last segment again.
    fn send_tail_probe(&mut self, mss: u64, config: &TcpConfig) -> bool {
        self.may_send = true;
        let is_sent = self.send_new(mss, Urgency::Probe, config) || self.repeat_last(mss);
        self.has_sent = false;
        if is_sent {
            self.counters.tail_probes += 1;
            self.tlp_end = self.flow.next;
            self.timer = None;
        }
        self.restart_timer(config);
        is_sent
    }
}

/// The conditions that may hold new data back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// Everything.
    Normal,
    /// Windows only: an application or a repair pushes.
    Pushed,
    /// The peer's window only, for one segment.
    Probe,
}
