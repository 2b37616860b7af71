//! The sender's one timer: timeouts (RFC 6298), tail loss probes (RFC 8985 section 7), reordering (RFC 8985 section 6.3) and
//! probes of a closed window (RFC 9293 section 3.8.6.1).

use trunkline_core::{Duration, Time};

use super::Sender;
use super::ack::{Ack, Findings};
use crate::tcp::config::TcpConfig;
use crate::tcp::congestion::FlowEvent;
use crate::tcp::flow::Phase;

/// What the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum SendTimer {
    /// Something is unacknowledged for too long.
    Timeout,
    /// The tail of the data may be lost.
    TailProbe,
    /// What was overtaken may be lost.
    Reordering,
    /// The window is closed.
    WindowProbe,
}

/// What has become of the connection when the timer has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum TimerOutcome {
    /// It goes on.
    Alive,
    /// The peer has not answered for so long.
    Dead(Duration),
}

/// A moment so much later by the host's timers: rounded to their steps, as Linux's jiffies are.
pub(in crate::tcp) fn after(now: Time, wait: Duration, tick: Duration) -> Time {
    let step = tick.as_nanos();
    if step == 0 {
        return now + wait.max(Duration::from_nanos(1));
    }
    let ticks = now.as_nanos() / step + wait.as_nanos().div_ceil(step).max(1);
    Time::from_nanos(ticks.saturating_mul(step))
}

impl Sender {
    /// When to be called.
    pub(in crate::tcp) fn deadline(&self) -> Option<Time> {
        let timer = self.timer.map(|(_, at)| at);
        timer.into_iter().chain(self.wake).min()
    }

    pub(super) fn start_timer(&mut self, what: SendTimer, wait: Duration, config: &TcpConfig) {
        self.timer = Some((what, after(self.flow.now, wait.min(config.timeout.max), config.tick)));
    }

    /// Does what is due.
    pub(in crate::tcp) fn handle_timeout(&mut self, now: Time, config: &TcpConfig) -> TimerOutcome {
        self.flow.now = now;
        if self.wake.is_some_and(|at| at <= now) {
            (self.wake, self.may_send) = (None, true);
            if self.flow.lost_out > self.flow.retrans_out {
                self.repair_lost();
            }
        }
        match self.timer.filter(|(_, at)| *at <= now) {
            None => TimerOutcome::Alive,
            Some((SendTimer::Reordering, _)) => {
                self.handle_reordering_timeout(config);
                TimerOutcome::Alive
            }
            Some((SendTimer::TailProbe, _)) => {
                self.begin_tail_probe(config);
                TimerOutcome::Alive
            }
            Some((SendTimer::Timeout, _)) => {
                self.timer = None;
                self.handle_retransmission_timeout(config)
            }
            Some((SendTimer::WindowProbe, _)) => {
                self.timer = None;
                self.handle_window_probe(config)
            }
        }
    }

    /// Sets the timer after an acknowledgement of new data.
    pub(super) fn set_timer(&mut self, config: &TcpConfig) {
        if !self.plan_tail_probe(true, config) {
            self.restart_timer(config);
        }
    }

    /// Starts the timeout anew; from the time of the oldest transmission, if the timer was set for something else meanwhile.
    pub(super) fn restart_timer(&mut self, config: &TcpConfig) {
        if self.flow.packets_out == 0 {
            self.timer = None;
            return;
        }
        let other = matches!(self.timer, Some((SendTimer::Reordering | SendTimer::TailProbe, _)));
        let wait = if other { self.until_timeout() } else { self.flow.rtt.timeout() };
        self.start_timer(SendTimer::Timeout, wait, config);
    }

    /// How long until the first unacknowledged segment has been under way for the whole timeout.
    fn until_timeout(&self) -> Duration {
        let sent_at = self.board.front().map_or(self.flow.now, |sent| sent.sent_at);
        (sent_at + self.flow.rtt.timeout()).since(self.flow.now)
    }

    /// Sends the first SYN again in a moment: what came instead of its answer belongs to an older connection.
    pub(in crate::tcp) fn hasten_syn(&mut self, now: Time, config: &TcpConfig) {
        self.flow.now = now;
        if self.retransmits == 0 {
            self.start_timer(SendTimer::Timeout, config.tick * 2, config);
        }
    }

    // Tail loss probes.

    /// Plans a probe two round trips from now, if the timeout is not earlier (RFC 8985 section 7.2). `is_fresh`: the timeout
    /// would be counted from now.
    pub(super) fn plan_tail_probe(&mut self, is_fresh: bool, config: &TcpConfig) -> bool {
        let is_possible = config.tail_loss_probe
            && self.has_sack
            && self.flow.packets_out > 0
            && matches!(self.flow.phase, Phase::Open | Phase::Cwr)
            && self.is_established;
        if !is_possible {
            return false;
        }
        let mut wait = match self.flow.rtt.smoothed() {
            // A single segment may wait for the delay of its acknowledgement.
            Some(smoothed) if self.flow.packets_out == 1 => smoothed * 2 + config.timeout.min,
            Some(smoothed) => smoothed * 2 + config.tick * 2,
            None => config.timeout.initial,
        };
        let timeout = if is_fresh { self.flow.rtt.timeout() } else { self.until_timeout() };
        if !timeout.is_zero() {
            wait = wait.min(timeout);
        }
        self.start_timer(SendTimer::TailProbe, wait, config);
        true
    }

    /// Sends new data or the last segment again (RFC 8985 section 7.3).
    fn begin_tail_probe(&mut self, config: &TcpConfig) {
        if self.tlp_end > 0 || self.flow.packets_out == 0 {
            return self.restart_timer(config);
        }
        self.is_tail_probe_due = true;
        self.is_tlp_repetition = false;
    }

    /// What an acknowledgement says of a tail loss probe (RFC 8985 section 7.4).
    pub(super) fn judge_tail_probe(&mut self, found: &Findings, config: &TcpConfig) {
        let _ = config;
        if self.tlp_end == 0 || self.flow.una < self.tlp_end {
            return;
        }
        if !self.is_tlp_repetition || found.duplicate_of_probe {
            self.tlp_end = 0;
        } else if self.flow.una > self.tlp_end {
            // The probe has repaired a loss that nobody else noticed.
            self.begin_reduction();
            self.set_phase(Phase::Cwr);
            self.end_reduction();
            self.try_keep_open();
            self.counters.recoveries += 1;
        } else if !found.advanced && found.is_dup() && !found.data_sacked {
            self.tlp_end = 0;
        }
    }

    // Timeouts.

    fn handle_retransmission_timeout(&mut self, config: &TcpConfig) -> TimerOutcome {
        if self.flow.packets_out == 0 {
            return TimerOutcome::Alive;
        }
        self.counters.timeouts += 1;
        if let Some(patience) = self.exhausted(config) {
            return TimerOutcome::Dead(patience);
        }
        // A window that was taken back is probed for as long as the peer answers.
        let is_closed = self.window == 0 && self.is_established;
        self.enter_loss(config);
        if !is_closed {
            self.retransmits += 1;
        }
        self.is_timeout_repetition_due = true;
        self.may_send = true;
        self.flow.rtt.back_off(&config.timeout);
        self.start_timer(SendTimer::Timeout, self.bounded_timeout(config), config);
        TimerOutcome::Alive
    }

    /// The timeout, if the user's patience does not end before.
    fn bounded_timeout(&self, config: &TcpConfig) -> Duration {
        let timeout = self.flow.rtt.timeout();
        match (config.user_timeout, self.undo.first_repeated_at) {
            (Some(patience), Some(since)) => {
                let left = patience.saturating_sub(self.flow.now.since(since));
                timeout.min(left).max(Duration::from_micros(1))
            }
            _ => timeout,
        }
    }

    /// For how long nobody has answered, if that is too long.
    fn exhausted(&self, config: &TcpConfig) -> Option<Duration> {
        if self.retransmits == 0 {
            return None;
        }
        let since = self.undo.first_repeated_at?;
        let repeating = self.flow.now.since(since);
        let waited = self.flow.now.since(self.waiting_since);
        if !self.is_established {
            let is_over = self.retransmits >= config.syn_retries
                || config.user_timeout.is_some_and(|patience| repeating >= patience);
            return is_over.then_some(waited);
        }
        let patience =
            config.user_timeout.unwrap_or_else(|| doubled(config.timeout.min, config.retries, config));
        (repeating >= patience).then_some(waited)
    }

    // Probes of a closed window.

    /// Plans a probe where data waits and nothing is under way (RFC 9293 section 3.8.6.1).
    pub(super) fn plan_window_probe(&mut self, config: &TcpConfig) {
        if self.flow.packets_out == 0 && self.timer.is_none() {
            let wait = self.flow.rtt.timeout().max(config.timeout.min);
            self.start_timer(SendTimer::WindowProbe, wait, config);
        }
    }

    fn handle_window_probe(&mut self, config: &TcpConfig) -> TimerOutcome {
        if self.flow.packets_out > 0 || self.flow.next >= self.end_of_all() {
            (self.probes_out, self.probing_since) = (0, None);
            return TimerOutcome::Alive;
        }
        let since = *self.probing_since.get_or_insert(self.flow.now);
        let waited = self.flow.now.since(since);
        let is_over = config.user_timeout.is_some_and(|patience| waited >= patience && self.probes_out > 0);
        if is_over || self.probes_out >= config.retries {
            return TimerOutcome::Dead(waited);
        }
        self.is_window_probe_due = true;
        if self.backoff < config.retries {
            self.backoff += 1;
        }
        self.probes_out += 1;
        let base = self.flow.rtt.timeout().max(config.timeout.min);
        self.start_timer(SendTimer::WindowProbe, doubled_once(base, self.backoff, config), config);
        TimerOutcome::Alive
    }

    /// An acknowledgement while nothing is under way: the window has opened, or the peer has answered a probe.
    pub(super) fn take_probe_answer(&mut self, _ack: &Ack<'_>, config: &TcpConfig) {
        if self.flow.next >= self.end_of_all() {
            return;
        }
        let least = (self.flow.next + u64::from(self.flow.mss)).min(self.end());
        if least <= self.window_end() {
            (self.backoff, self.probing_since) = (0, None);
            self.timer = None;
        } else {
            let base = self.flow.rtt.timeout().max(config.timeout.min);
            self.start_timer(SendTimer::WindowProbe, doubled_once(base, self.backoff, config), config);
        }
    }

    // Idleness.

    /// The window shrinks by half for every timeout in which nothing was sent (RFC 5681 section 4.1, RFC 2861).
    pub(super) fn check_idleness(&mut self, config: &TcpConfig) {
        let flow = &mut self.flow;
        let timeout = flow.rtt.timeout();
        let mut idle = flow.now.since(flow.data_sent_at);
        if !config.slow_start_after_idle || flow.packets_out > 0 || self.control.governs() || idle <= timeout
        {
            return;
        }
        self.control.event(flow, FlowEvent::IdleReset);
        flow.ssthresh = flow.current_ssthresh();
        let restart = config.initial_window.min(flow.cwnd);
        let mut cwnd = flow.cwnd;
        while idle > timeout && cwnd > restart {
            cwnd /= 2;
            idle = idle - timeout;
        }
        flow.set_cwnd(cwnd.max(restart));
        (flow.cwnd_stamp, flow.cwnd_used) = (flow.now, 0);
    }

    /// Notes whether the window or the application holds the sender back, and lets a window shrink that is not used for long
    /// (RFC 2861, RFC 7661).
    pub(super) fn validate_cwnd(&mut self, is_limited: bool, config: &TcpConfig) {
        let flow = &mut self.flow;
        let is_new_round = flow.una >= flow.cwnd_usage;
        if is_new_round || is_limited || !flow.is_cwnd_limited && flow.packets_out > flow.max_packets_out {
            flow.is_cwnd_limited = is_limited;
            flow.max_packets_out = flow.packets_out;
            flow.cwnd_usage = flow.next;
        }
        if flow.is_limited_by_cwnd() {
            (flow.cwnd_used, flow.cwnd_stamp) = (0, flow.now);
            return;
        }
        flow.cwnd_used = flow.cwnd_used.max(flow.packets_out);
        let is_long = flow.now.since(flow.cwnd_stamp) >= flow.rtt.timeout();
        if !config.slow_start_after_idle || !is_long || self.control.governs() {
            return;
        }
        if flow.phase == Phase::Open && !self.is_writer_waiting {
            let used = flow.cwnd_used.max(config.initial_window);
            if used < flow.cwnd {
                flow.ssthresh = flow.current_ssthresh();
                flow.set_cwnd((flow.cwnd + used) / 2);
            }
            flow.cwnd_used = 0;
        }
        flow.cwnd_stamp = flow.now;
    }
}

/// How long a connection lasts whose timeout begins with `base` and has run out so often: the sum of all of them.
fn doubled(base: Duration, times: u32, config: &TcpConfig) -> Duration {
    let (mut sum, mut wait) = (Duration::ZERO, base);
    for _ in 0..=times {
        sum += wait.min(config.timeout.max);
        wait = wait * 2;
    }
    sum
}

/// A wait that was doubled so often.
fn doubled_once(base: Duration, times: u32, config: &TcpConfig) -> Duration {
    (base * (1 << times.min(32))).min(config.timeout.max)
}
