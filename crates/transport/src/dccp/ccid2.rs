//! CCID 2, TCP-like congestion control (RFC 4341): a window of packets at the sender, Ack Vectors at a ratio at the
//! receiver.

use trunkline_core::{Duration, Time};

use super::feedback::Feedback;
use super::received::{State, runs};
use super::rtt::RoundTrip;
use super::sent::{Fate, Sent};
use super::seq::Seq;

/// Later packets that must have arrived before one counts as lost.
const NUMDUPACK: u64 = 3;
/// The largest window; far above it the sender's memory of sent packets ends.
const MAX_WINDOW: u64 = 4096;
const MAX_TIMEOUT: Duration = Duration::from_secs(64);

/// The sender of a half-connection.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    cwnd: u64,
    ssthresh: u64,
    /// Data packets in the network.
    pipe: u64,
    /// Newly acknowledged data packets that have not yet made the window grow.
    credit: u64,
    /// Losses and marks of packets up to this one belong to a congestion event that was answered.
    recover: Option<Seq>,
    /// The greatest number that was acknowledged, and the one before which nothing is outstanding any more.
    acknowledged: Option<Seq>,
    settled: Option<Seq>,
    timeout: Option<Time>,
    backoff: u32,
    last_sent: Option<Time>,
    /// Since when the window has not been full, and the most of it that was used meanwhile.
    limited: (Time, u64),
    /// Below this validation takes no window.
    initial: u64,
    /// Until when a slow receiver keeps the window from growing.
    held_until: Time,
    acks: Acks,
}

/// Congestion control of the acknowledgements (RFC 4341 section 6.1).
#[derive(Clone, Copy, Debug)]
struct Acks {
    ratio: u64,
    /// Data packets acknowledged in the present window of data.
    progress: u64,
    /// Whether the present window has lost or marked acknowledgements.
    congested: bool,
    clean_windows: u64,
}

impl Sender {
    /// Begins with the window of RFC 3390 section 1, as RFC 4341 section 5 asks: two to four packets, as many as 4380 bytes
    /// hold. As TCP's maximum segment size, `max_message` does not count headers.
    pub(super) fn new(max_message: usize) -> Sender {
        let initial = (4380 / max_message.max(1) as u64).clamp(2, 4);
        Sender {
            cwnd: initial,
            ssthresh: u64::MAX,
            pipe: 0,
            credit: 0,
            recover: None,
            acknowledged: None,
            settled: None,
            timeout: None,
            backoff: 0,
            last_sent: None,
            limited: (Time::ZERO, 0),
            initial,
            held_until: Time::ZERO,
            acks: Acks { ratio: 2, progress: 0, congested: false, clean_windows: 0 },
        }
    }

    pub(super) fn may_send(&self) -> bool {
        self.pipe < self.cwnd
    }

    /// The congestion window in packets.
    pub(super) fn window(&self) -> u64 {
        self.cwnd
    }

    /// The ratio of data packets to acknowledgements that the receiver should keep: at most half the window, rounded up, and at
    /// least two from four packets on (RFC 4341 section 6.1.1). With a window of one or two, waiting for two packets would leave
    /// every acknowledgement to its timer.
    pub(super) fn ack_ratio(&self) -> u64 {
        let least = if self.cwnd >= 4 { 2 } else { 1 };
        self.acks.ratio.min(self.cwnd.div_ceil(2)).max(least)
    }

    pub(super) fn on_sent(&mut self, now: Time, rtt: &RoundTrip) {
        match self.last_sent {
            None => self.limited = (now, 0),
            Some(last) if self.pipe == 0 => self.validate_after_idle(now, now.since(last), rtt.timeout()),
            Some(_) => {}
        }
        self.last_sent = Some(now);
        self.pipe += 1;
        self.validate_use(now, rtt.timeout());
        if self.timeout.is_none() {
            self.arm(now, rtt);
        }
    }

    /// A data packet is forgotten without ever having been acknowledged.
    pub(super) fn on_forgotten(&mut self) {
        self.pipe = self.pipe.saturating_sub(1);
    }

    /// Takes what an acknowledgement says. `newest_sent` is GSS.
    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        feedback: &Feedback<'_>,
        sent: &mut Sent,
        newest_sent: Seq,
        rtt: &RoundTrip,
    ) {
        let drops = sent.note_drops(feedback.ack, feedback.data_dropped());
        let flight = self.pipe;
        let mut acknowledged = 0;
        let mut marked = drops.marked;
        let mut visit = |pipe: &mut u64, sent: &mut Sent, number: Seq, state: State| {
            let Some(packet) = sent.get_mut(number) else { return };
            let was = packet.fate;
            packet.fate = Fate::Acknowledged;
            if packet.is_data && was == Fate::Outstanding {
                *pipe = pipe.saturating_sub(1);
                match state {
                    State::Marked => marked = marked.max_by_distance(number),
                    _ => acknowledged += 1,
                }
            }
        };
        if feedback.ack_vectors().next().is_none() {
            visit(&mut self.pipe, sent, feedback.ack, State::Received);
        }
        for (newest, length, state) in runs(feedback.ack, feedback.ack_vectors()) {
            if sent.first().is_after(newest) {
                break;
            }
            if state != State::Missing {
                for back in 0..length.min(newest.distance(sent.first()) as u64 + 1) {
                    visit(&mut self.pipe, sent, newest.minus(back), state);
                }
            }
        }
        let lost = self.infer_losses(feedback.ack, sent);
        sent.forget_settled();
        if drops.receive_buffer > 0 || feedback.slow_receiver {
            self.ssthresh = self.ssthresh.min(self.cwnd);
            self.held_until = now + rtt.smoothed();
        }
        self.cwnd = self.cwnd.saturating_sub(drops.receive_buffer).max(1);
        if let Some(event) = [lost, marked].into_iter().flatten().reduce(later) {
            self.on_congestion(event, newest_sent);
        } else if now >= self.held_until {
            self.grow(acknowledged, flight);
        }
        self.on_ack_progress(acknowledged);
        if acknowledged > 0 {
            self.backoff = 0;
        }
        if self.pipe == 0 {
            self.timeout = None;
        } else if acknowledged > 0 {
            self.arm(now, rtt);
        }
    }

    /// So many packets without data of the peer were lost or marked.
    pub(super) fn on_ack_congestion(&mut self) {
        self.acks.congested = true;
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.timeout
    }

    /// When the transmit timeout is over: gives up everything under way (RFC 4341 section 5).
    pub(super) fn handle_timeout(&mut self, now: Time, sent: &mut Sent, newest_sent: Seq) {
        if self.timeout.is_none_or(|at| at > now) {
            return;
        }
        self.ssthresh = (self.cwnd / 2).max(2);
        self.cwnd = 1;
        self.credit = 0;
        self.pipe = 0;
        self.recover = Some(newest_sent);
        self.backoff = (self.backoff + 1).min(16);
        for (_, packet) in sent.newest_first() {
            if packet.fate == Fate::Outstanding {
                packet.fate = Fate::Lost;
            }
        }
        self.timeout = None;
    }

    fn arm(&mut self, now: Time, rtt: &RoundTrip) {
        let interval = rtt.timeout() * (1 << self.backoff);
        self.timeout = Some(now + interval.min(MAX_TIMEOUT));
    }

    /// Finds packets after which three others arrived; returns the newest data packet among those newly found.
    fn infer_losses(&mut self, ack: Seq, sent: &mut Sent) -> Option<Seq> {
        let newest = self.acknowledged.map_or(ack, |greatest| later(greatest, ack));
        self.acknowledged = Some(newest);
        let mut arrived = 0;
        let mut lost = None;
        let mut number = newest;
        let mut third = None;
        while self.settled.is_none_or(|settled| number.is_after(settled)) {
            let Some(packet) = sent.get_mut(number) else { break };
            match packet.fate {
                Fate::Acknowledged => arrived += 1,
                Fate::Outstanding if arrived >= NUMDUPACK => {
                    packet.fate = Fate::Lost;
                    if packet.is_data {
                        self.pipe = self.pipe.saturating_sub(1);
                        lost = lost.or(Some(number));
                    }
                }
                _ => {}
            }
            number = number.minus(1);
            if arrived == NUMDUPACK {
                third = third.or(Some(number));
            }
        }
        // Everything before the third is acknowledged or lost by now: no need to look there again.
        self.settled = third.or(self.settled);
        lost
    }

    /// RFC 4341 section 5: one halving for all losses and marks of packets that were sent before the first of them was
    /// noticed.
    fn on_congestion(&mut self, packet: Seq, newest_sent: Seq) {
        if self.recover.is_some_and(|recover| !packet.is_after(recover)) {
            return;
        }
        self.recover = Some(newest_sent);
        self.cwnd = (self.cwnd / 2).max(1);
        self.ssthresh = self.cwnd.max(2);
        self.credit = 0;
    }

    fn grow(&mut self, acknowledged: u64, flight: u64) {
        // A window that is not used says nothing of the network (RFC 2861).
        if flight + self.ack_ratio() < self.cwnd {
            return;
        }
        self.credit += acknowledged;
        if self.cwnd < self.ssthresh {
            let most = (self.ack_ratio() / 2).max(1);
            let growth = (self.credit / 2).min(most);
            // What is beyond the limit of one acknowledgement is not made up for by the next.
            self.credit = if growth == most { self.credit % 2 } else { self.credit - 2 * growth };
            self.cwnd += growth;
        } else if self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += 1;
        }
        self.cwnd = self.cwnd.min(MAX_WINDOW);
    }

    /// RFC 2861: the window decays by half for every timeout that nothing was sent.
    fn validate_after_idle(&mut self, now: Time, idle: Duration, timeout: Duration) {
        let halvings = idle.as_nanos() / timeout.as_nanos().max(1);
        if halvings > 0 {
            self.ssthresh = self.ssthresh.max(self.cwnd * 3 / 4);
            self.cwnd = (self.cwnd >> halvings.min(63)).max(self.cwnd.min(4));
            self.credit = 0;
            self.limited = (now, 0);
        }
    }

    /// RFC 2861: a window that the application has not filled for a timeout comes down half-way to what was used of it.
    /// RFC 4341 section 5.1 leaves it to the sender; Linux does it since 3.1, not below the initial window.
    fn validate_use(&mut self, now: Time, timeout: Duration) {
        let (since, used) = &mut self.limited;
        *used = self.pipe.max(*used);
        if self.pipe >= self.cwnd {
            self.limited = (now, 0);
        } else if now.since(*since) >= timeout {
            let used = self.initial.max(*used).min(self.cwnd);
            self.ssthresh = self.ssthresh.max(self.cwnd * 3 / 4);
            self.cwnd = (self.cwnd + used) / 2;
            self.limited = (now, 0);
        }
    }

    /// RFC 4341 section 6.1.2: the ratio doubles for every window of data with lost acknowledgements, and falls by one
    /// after `cwnd / (R^2 - R)` windows without.
    fn on_ack_progress(&mut self, acknowledged: u64) {
        let acks = &mut self.acks;
        acks.progress += acknowledged;
        if acks.progress < self.cwnd {
            return;
        }
        acks.progress = 0;
        if core::mem::take(&mut acks.congested) {
            acks.ratio *= 2;
            acks.clean_windows = 0;
        } else {
            acks.clean_windows += 1;
            if acks.ratio > 2 && acks.clean_windows * (acks.ratio * acks.ratio - acks.ratio) >= self.cwnd {
                acks.ratio -= 1;
                acks.clean_windows = 0;
            }
        }
        acks.ratio = acks.ratio.min(self.cwnd.div_ceil(2)).max(2);
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> (u64, u64, u64) {
        (self.cwnd, self.ssthresh, self.pipe)
    }
}

fn later(a: Seq, b: Seq) -> Seq {
    if b.is_after(a) { b } else { a }
}

/// The greater of a number and another.
trait MaxByDistance {
    fn max_by_distance(self, other: Seq) -> Self;
}

impl MaxByDistance for Option<Seq> {
    fn max_by_distance(self, other: Seq) -> Option<Seq> {
        Some(self.map_or(other, |number| later(number, other)))
    }
}

/// How long an acknowledgement may wait (RFC 4340 section 11.3).
const ACK_DELAY: Duration = Duration::from_millis(200);

/// The receiver of a half-connection: when to acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiver {
    unacknowledged: u64,
    deadline: Option<Time>,
}

impl Receiver {
    /// Takes a packet; true if an acknowledgement is to go at once. `urgent` are packets out of order and marked ones.
    pub(super) fn on_packet(&mut self, now: Time, is_data: bool, urgent: bool, ratio: u64) -> bool {
        if !is_data {
            return false;
        }
        self.unacknowledged += 1;
        if urgent || self.unacknowledged >= ratio.max(1) {
            return true;
        }
        self.deadline = self.deadline.or(Some(now + ACK_DELAY));
        false
    }

    /// An acknowledgement was sent.
    pub(super) fn on_acknowledged(&mut self) {
        *self = Receiver::default();
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

#[cfg(test)]
mod tests;
