//! When an endpoint acts by itself.

use trunkline_core::{Duration, Time};

use super::congestion::Release;
use super::reset::{Reset, ResetCode};
use super::seq::Seq;
use super::{DccpEndpoint, State};
use crate::conversation::CloseReason;

/// RFC 4340 section 8.1.1.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// RFC 4340 section 8.1.5.
const FIRST_ACK: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(64);
/// Four maximum segment lifetimes: how long a handshake or a farewell may take.
const PATIENCE: Duration = Duration::from_secs(480);
/// At most eight Syncs a second answer packets that are not valid (RFC 4340 section 7.5.4).
const BETWEEN_SYNCS: Duration = Duration::from_millis(125);
/// At most 1000 resets a second answer packets that belong to no connection (RFC 4340 section 8.1.3).
const BETWEEN_REFUSALS: Duration = Duration::from_millis(1);
/// How long data may be without an answer before the peer is asked for a sign of life.
const FIRST_PROBE: Duration = Duration::from_secs(1);

/// Everything that an endpoint remembers of times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// When Request, the Ack of PARTOPEN, Close or CloseReq is repeated, and the interval that led there.
    retransmit: Option<(Time, Duration)>,
    /// When the present state has lasted too long, and how long that is.
    state: Option<(Time, Duration)>,
    /// Since when something that needs an answer has had none.
    unanswered: Option<Time>,
    /// When to ask for a sign of life, and the interval that led there.
    probe: Option<(Time, Duration)>,
    next_sync: Time,
    next_refusal: Time,
    next_announcement: Time,
    /// The Sync that waits for its answer.
    pub(super) challenge: Option<Seq>,
    /// When a packet of ours last acknowledged in full.
    pub(super) acknowledged_at: Time,
}

impl DccpEndpoint {
    /// The earliest time at which something is to be done.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let Timers { retransmit, state, probe, .. } = self.timers;
        let at = |timer: Option<(Time, Duration)>| Some(timer?.0);
        let own = [at(retransmit), at(state), at(probe), self.gone_at()];
        let established = self.is_established().then(|| {
            let pacing = match self.sender.release(self.now) {
                Release::At(at) if !self.queue.is_empty() && self.may_send_data() => Some(at),
                _ => None,
            };
            [
                self.negotiation.next_timeout(),
                self.sender.next_timeout(),
                self.receiver.next_timeout(),
                self.queue.next_expiry(),
                pacing,
            ]
        });
        own.into_iter().chain(established.into_iter().flatten()).flatten().min()
    }

    /// Does everything whose time has come.
    pub(super) fn do_what_is_due(&mut self) {
        let now = self.now;
        let is_due =
            |timer: Option<(Time, Duration)>| timer.filter(|&(at, _)| at <= now).map(|(_, time)| time);
        if let (Some(at), Some(timeout)) = (self.gone_at(), self.config.timeout)
            && at <= now
        {
            return self.abort(Reset::plain(ResetCode::Aborted), CloseReason::TimedOut(timeout));
        }
        if let Some(lasted) = is_due(self.timers.state) {
            return self.abort(Reset::plain(ResetCode::Aborted), CloseReason::TimedOut(lasted));
        }
        if let Some(interval) = is_due(self.timers.retransmit) {
            self.retransmit(interval);
        }
        if let Some(interval) = is_due(self.timers.probe) {
            let interval = (interval * 2).min(LONGEST);
            self.timers.probe = Some((now + interval, interval));
            self.outbox.sync = Some(self.sequences.gsr);
        }
        if self.is_established() {
            self.negotiation.handle_timeout(now);
            self.sender.handle_timeout(now, &mut self.sent, self.sequences.gss);
            self.adapt_features();
            self.outbox.ack |= self.receiver.next_timeout().is_some_and(|at| at <= now);
            self.queue.expire(now);
        }
    }

    /// A packet was sent.
    pub(super) fn note_sent_in_timers(&mut self, wants_answer: bool) {
        let now = self.now;
        if self.state == State::Request && self.timers.retransmit.is_none() {
            self.timers.retransmit = Some((now + FIRST_REQUEST, FIRST_REQUEST));
        }
        if wants_answer && self.state != State::Closed {
            self.timers.unanswered.get_or_insert(now);
            if self.state == State::Open
                && self.timers.probe.is_none_or(|(_, interval)| interval == FIRST_PROBE)
            {
                let wait = FIRST_PROBE.max(self.rtt.timeout() * 2);
                self.timers.probe = Some((now + wait, FIRST_PROBE));
            }
        }
    }

    /// A valid packet came: the peer lives.
    pub(super) fn note_valid_in_timers(&mut self, acknowledged: Option<Seq>) {
        self.timers.unanswered = None;
        self.timers.probe = None;
        if let Some(challenge) = self.timers.challenge
            && acknowledged.is_some_and(|ack| !challenge.is_after(ack))
        {
            self.timers.challenge = None;
        }
    }

    pub(super) fn start_respond_timer(&mut self) {
        self.timers.state = Some((self.now + PATIENCE, PATIENCE));
    }

    pub(super) fn start_partopen_timers(&mut self) {
        self.start_respond_timer();
        self.timers.retransmit = Some((self.now + FIRST_ACK, FIRST_ACK));
    }

    pub(super) fn stop_handshake_timers(&mut self) {
        (self.timers.state, self.timers.retransmit) = (None, None);
    }

    pub(super) fn start_closing_timers(&mut self) {
        // RFC 4340 section 8.3: two round-trip times at first.
        let interval = (self.rtt.smoothed() * 2).max(FIRST_ACK);
        self.timers.retransmit = Some((self.now + interval, interval));
        self.timers.probe = None;
        self.start_respond_timer();
    }

    /// Whether a Sync may answer a packet that is not valid now.
    pub(super) fn may_sync(&mut self) -> bool {
        may(self.now, &mut self.timers.next_sync, BETWEEN_SYNCS)
    }

    /// Whether a reset may answer a packet of no connection now.
    pub(super) fn may_refuse(&mut self) -> bool {
        may(self.now, &mut self.timers.next_refusal, BETWEEN_REFUSALS)
    }

    /// Whether a new value may be announced now: once per round-trip time.
    pub(super) fn may_announce(&mut self) -> bool {
        let interval = self.rtt.smoothed();
        may(self.now, &mut self.timers.next_announcement, interval)
    }

    /// When the peer counts as gone.
    fn gone_at(&self) -> Option<Time> {
        Some(self.timers.unanswered? + self.config.timeout?)
    }

    fn retransmit(&mut self, interval: Duration) {
        let interval = (interval * 2).min(LONGEST);
        self.timers.retransmit = Some((self.now + interval, interval));
        match self.state {
            State::Request => self.outbox.request = true,
            State::PartOpen => self.outbox.ack = true,
            State::CloseReq | State::Closing => self.outbox.close = true,
            _ => self.timers.retransmit = None,
        }
    }
}

/// At most once per interval.
pub(super) fn may(now: Time, next: &mut Time, interval: Duration) -> bool {
    let may = now >= *next;
    if may {
        *next = now + interval;
    }
    may
}
