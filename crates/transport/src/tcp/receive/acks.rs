//! When acknowledgements are sent (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2): Linux's rhythm, in which a new or restarted
//! connection is acknowledged at once, a full segment of a stream waits for the next, and acknowledgements of what lies behind
//! a gap are joined; or a fixed delay, as hosts of the 1990s had it.

use trunkline_core::{Duration, Time};

use super::{Pace, Receiver};
use crate::tcp::config::{AckConfig, TcpConfig, WindowUpdates};
use crate::tcp::send_after as after;

/// So many acknowledgements of what lies behind a gap are sent at once, for the peer's fast retransmit.
const UNCOMPRESSED: u8 = 3;
/// Acknowledgements are not held back for more rows than this (Linux's `TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED_ROWS: usize = 2;
/// A peer that answers within the delay so often is interactive.
const INTERACTIVE: u8 = 3;

/// When the next acknowledgement is sent.
#[derive(Debug)]
pub(super) struct Acks {
    pub(super) config: AckConfig,
    /// The peer's segments are believed to have this size.
    pub(super) mss: u32,
    /// The size of the last segment that was smaller.
    last_size: u32,
    /// Something is unacknowledged.
    pub(super) is_scheduled: bool,
    /// It is to be acknowledged now.
    pub(super) is_due: bool,
    /// It waits for the application's turn to read, a nanosecond at most: sent at once it would announce a window that is
    /// smaller by what is about to be read.
    pub(super) is_held: bool,
    /// It ended with PSH, and so did one before it.
    is_pushed: bool,
    is_pushed_twice: bool,
    /// When it is acknowledged at the latest.
    timer: Option<Time>,
    /// So many more acknowledgements are sent at once.
    quick: u32,
    /// How often this end has sent data in answer to data within the delay.
    interactive: u8,
    /// The delay; zero before the first segment.
    delay: Duration,
    data_at: Time,
    /// Acknowledgements that were held back, when they are sent, and the place that they were for.
    compressed: u32,
    compressed_until: Option<Time>,
    /// Those that were held back are to be sent now, without the row that has changed last.
    pub(super) is_overdue: bool,
    repeated_for: u64,
    repeated: u8,
}

impl Acks {
    pub(super) fn new(config: AckConfig) -> Acks {
        Acks {
            config,
            mss: 536,
            last_size: 0,
            is_scheduled: false,
            is_due: false,
            is_held: false,
            is_pushed: false,
            is_pushed_twice: false,
            timer: None,
            quick: 0,
            interactive: 0,
            delay: Duration::ZERO,
            data_at: Time::ZERO,
            compressed: 0,
            compressed_until: None,
            is_overdue: false,
            repeated_for: 0,
            repeated: 0,
        }
    }

    /// Takes a segment with data in order: how large the peer's segments are, and how fast they follow each other.
    pub(super) fn take_data(
        &mut self,
        now: Time,
        length: usize,
        push: bool,
        window: u64,
        pace: Pace,
        mss: u32,
    ) {
        self.measure(length as u32, push, mss);
        let shortest = self.config.delay;
        if self.delay.is_zero() {
            self.begin_quick(window, self.config.quick);
            self.delay = shortest;
        } else {
            let gap = now.since(self.data_at);
            if gap <= shortest / 2 {
                self.delay = self.delay / 2 + shortest / 2;
            } else if gap < self.delay {
                self.delay = (self.delay / 2 + gap).min(pace.timeout);
            } else if gap > pace.timeout {
                // The peer has begun anew with a small window.
                self.begin_quick(window, self.config.quick);
            }
        }
        self.data_at = now;
    }

    /// Estimates the size of the peer's full segments.
    fn measure(&mut self, length: u32, push: bool, mss: u32) {
        let last = core::mem::take(&mut self.last_size);
        if length >= self.mss {
            self.mss = length.min(mss.max(1));
            self.is_pushed |= push;
            return;
        }
        // Without PSH it should be a full segment, unless it is tiny.
        if length >= 536 || length >= 48 && !push {
            self.last_size = length;
            if length == last {
                self.mss = length;
                return;
            }
        }
        self.is_pushed_twice |= self.is_pushed;
        self.is_pushed = true;
    }

    /// Acknowledges the next segments at once: as many as half of the window holds.
    fn begin_quick(&mut self, window: u64, most: u32) {
        let segments = (window / u64::from(2 * self.mss.max(1))) as u32;
        let count = if segments == 0 { 2 } else { segments }.min(most);
        self.quick = self.quick.max(count);
    }

    /// Acknowledges the next segments at once, although the connection is not new.
    pub(super) fn hurry(&mut self, window: u64, most: u32) {
        self.begin_quick(window, most);
        self.interactive = 0;
        self.delay = self.config.delay;
    }

    /// The peer sends nothing more: whatever this end still sends brings the acknowledgement with it.
    pub(super) fn peer_finished(&mut self) {
        self.interactive = INTERACTIVE;
    }

    pub(super) fn quicken(&mut self, least: u32) {
        self.quick = self.quick.max(least);
    }

    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0 && self.interactive < INTERACTIVE
    }

    pub(super) fn calm(&mut self) {
        self.quick = 0;
    }

    /// This end sends data: if it answers soon, the acknowledgement can wait for the answer.
    fn data_sent(&mut self, now: Time) {
        if now.since(self.data_at) < self.delay {
            self.interactive = INTERACTIVE;
        }
    }

    /// A segment with an acknowledgement of everything is sent.
    fn sent(&mut self) {
        self.quick = self.quick.saturating_sub(1);
        if self.quick == 0 {
            self.delay = self.delay.min(self.config.delay);
        }
        (self.is_scheduled, self.is_due, self.is_held) = (false, false, false);
        (self.is_pushed, self.is_pushed_twice) = (false, false);
        self.timer = None;
        (self.compressed, self.compressed_until, self.is_overdue) = (0, None, false);
    }

    /// Lets the acknowledgement wait, as long as the peer's rhythm suggests.
    fn wait(&mut self, now: Time, pace: Pace, tick: Duration) {
        let shortest = self.config.delay;
        let mut delay = self.delay;
        if delay > shortest {
            let is_interactive = self.interactive >= INTERACTIVE || self.is_pushed;
            let mut most = if is_interactive { self.config.max_delay } else { Duration::from_millis(500) };
            if !pace.round_trip.is_zero() {
                most = most.min(pace.round_trip.max(shortest));
            }
            delay = delay.min(most);
        }
        let at = after(now, delay.min(self.config.max_delay.max(shortest)), tick);
        match self.timer {
            // It is about to run out anyway.
            Some(timer) if timer <= now + delay / 4 => self.is_due = true,
            Some(timer) => self.timer = Some(timer.min(at)),
            None => self.timer = Some(at),
        }
    }

    /// Holds an acknowledgement of what lies behind a gap back, or sends it.
    fn compress(&mut self, now: Time, next: u64, pace: Pace) {
        let compress = self.config.compress;
        if compress.delay.is_zero() || self.compressed >= compress.count {
            self.is_due = true;
            return;
        }
        if self.repeated_for != next {
            (self.repeated_for, self.repeated) = (next, 0);
        }
        if self.repeated < UNCOMPRESSED {
            self.repeated += 1;
            self.is_due = true;
            return;
        }
        self.compressed += 1;
        if self.compressed_until.is_none() {
            let share = pace.round_trip / 20;
            self.compressed_until = Some(now + compress.delay.min(share).max(Duration::from_nanos(1)));
        }
    }

    /// A row has changed behind this number of others. Acknowledgements that were held back are sent at once, since one segment may
    /// have no room for all rows that have changed. As in Linux, they do not report this change: the next one does.
    pub(super) fn changed_row(&mut self, others: usize) {
        self.is_overdue |= self.compressed > 0 && others >= EXPECTED_ROWS;
    }
}

impl Receiver {
    /// Decides about the acknowledgement of a segment. `may_wait`: it brought data in order.
    pub(super) fn decide(&mut self, now: Time, may_wait: bool, pace: Pace) {
        if !self.acks.config.adaptive {
            return self.decide_by_count(now, may_wait);
        }
        let unacknowledged = self.next - self.window.updated_at;
        let is_second = unacknowledged > u64::from(self.acks.mss) * u64::from(self.acks.config.every - 1);
        // Otherwise reading announces the window.
        let has_room = self.readable() == 0 || self.selected_window() >= self.window.wnd;
        if is_second && has_room || self.acks.is_quick() || self.acks.is_due {
            self.acks.is_due = true;
        } else if self.rows.is_empty() {
            self.acks.wait(now, pace, self.window.tick);
        } else {
            let has_sack = self.window.has_sack;
            self.acks.is_due |= !has_sack;
            if has_sack {
                self.acks.compress(now, self.next, pace);
            }
        }
    }

    fn decide_by_count(&mut self, now: Time, may_wait: bool) {
        let config = self.acks.config;
        let most = u64::from(config.every) * u64::from(self.window.mss);
        let must_hurry = !may_wait || !self.rows.is_empty() || self.is_finished();
        if must_hurry || config.delay.is_zero() || self.next - self.window.updated_at >= most {
            self.acks.is_due = true;
            self.acks.is_held = self.readable() > 0;
        } else if self.acks.timer.is_none() {
            self.acks.timer = Some(after(now, config.delay, self.window.tick));
        }
    }

    /// A segment that cannot be used: the peer is told at once where things stand.
    pub(super) fn reject(&mut self, _now: Time, _pace: Pace) {
        self.acks.hurry(self.window.wnd, self.acks.config.quick);
        (self.acks.is_scheduled, self.acks.is_due) = (true, true);
    }

    /// A segment from before the window came again: it is reported as a duplicate.
    pub(in crate::tcp) fn note_repetition(&mut self, from: i64, to: i64) {
        self.acks.hurry(self.window.wnd, self.acks.config.quick);
        self.note_duplicate(from.max(1) as u64, (to.max(1) as u64).min(self.next));
    }

    /// The peer's SYN came a second time, as it does where both ends connect at once: it is reported as a duplicate.
    pub(in crate::tcp) fn note_syn_again(&mut self) {
        self.note_duplicate(0, 1);
        self.acknowledge_now();
    }

    /// Has an acknowledgement sent at once.
    pub(in crate::tcp) fn acknowledge_now(&mut self) {
        (self.acks.is_scheduled, self.acks.is_due) = (true, true);
    }

    /// Has the next segments acknowledged at once.
    pub(in crate::tcp) fn hurry(&mut self, segments: u32) {
        self.acks.hurry(self.window.wnd, segments);
    }

    /// Returns true if an acknowledgement is to be sent.
    pub(in crate::tcp) fn is_ack_due(&self) -> bool {
        self.acks.is_overdue || self.acks.is_due && !self.acks.is_held
    }

    /// Returns true if an acknowledgement waits for the application to read.
    pub(in crate::tcp) fn is_ack_held(&self) -> bool {
        self.acks.is_due && self.acks.is_held
    }

    /// Returns true if the timer of a delayed acknowledgement runs.
    pub(in crate::tcp) fn is_ack_delayed(&self) -> bool {
        self.acks.timer.is_some()
    }

    /// When to be called.
    pub(in crate::tcp) fn deadline(&self) -> Option<Time> {
        self.acks.timer.into_iter().chain(self.acks.compressed_until).min()
    }

    /// Does what is due.
    pub(in crate::tcp) fn handle_timeout(&mut self, now: Time, pace: Pace) {
        let acks = &mut self.acks;
        acks.is_held = false;
        if acks.compressed_until.is_some_and(|at| at <= now) {
            acks.compressed_until = None;
            acks.is_due |= acks.compressed > 0;
        }
        if acks.timer.is_none_or(|at| at > now) {
            return;
        }
        acks.timer = None;
        if acks.is_scheduled || !acks.config.adaptive {
            if acks.interactive < INTERACTIVE {
                // It was in vain: the next waits longer.
                acks.delay = (acks.delay * 2).min(pace.timeout);
            } else {
                (acks.interactive, acks.delay) = (0, acks.config.delay);
            }
            acks.is_due = true;
        }
    }

    /// A segment with an acknowledgement is sent.
    pub(in crate::tcp) fn ack_sent(&mut self) {
        self.acks.sent();
    }

    /// A segment with data is sent.
    pub(in crate::tcp) fn data_sent(&mut self, now: Time) {
        self.acks.data_sent(now);
    }

    /// Reading has made room: tells the peer if it is worth a segment.
    pub(super) fn announce_reading(&mut self, config: &TcpConfig) {
        if self.is_finished() {
            return;
        }
        let gain = self.classic_gain();
        let worth = u64::from(2 * self.window.mss).min(self.window.buffer / 2).max(1);
        let is_due = match config.window_updates {
            WindowUpdates::TwoSegments => gain >= worth,
            WindowUpdates::WhenClosed => self.window.is_closed && gain >= worth,
            WindowUpdates::Doubled => self.is_reading_worth_ack(),
        };
        self.acks.is_due |= is_due;
    }

    fn is_reading_worth_ack(&self) -> bool {
        let acks = &self.acks;
        if acks.is_scheduled {
            let is_second = self.next - self.window.updated_at > u64::from(acks.mss);
            let ends_burst = acks.is_pushed_twice || acks.is_pushed && acks.interactive < INTERACTIVE;
            if acks.config.adaptive
                && (is_second || ends_burst && self.readable() == 0 && self.rows.is_empty())
            {
                return true;
            }
        }
        let open = self.open_window();
        if 2 * open > self.window.clamp {
            return false;
        }
        let selected = self.selected_window();
        selected > 0 && selected >= 2 * open
    }
}
