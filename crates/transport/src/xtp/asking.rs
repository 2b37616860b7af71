//! Requests for status: their numbers, their answers, and what happens when none comes (WTIMER, CTIMEOUT).

use trunkline_core::{Duration, Time};

use super::config::XtpConfig;
use super::wait::{Waiting, reaches};

/// What one end has asked its peer.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    waiting: Waiting,
    patience: Option<Duration>,
    initial: Duration,
    longest: Duration,
    /// The number of the latest request (sync).
    sync: u32,
    /// The highest number that was answered.
    answered: u32,
    /// When to ask again (WTIMER).
    timer: Option<Time>,
    /// Since when requests have had no answer.
    unanswered_since: Option<Time>,
    /// A request was not answered in time: until this number is, no new data are sent.
    handshake: Option<u32>,
    /// How often in a row the timer ran out though everything asked was answered: the window stays closed.
    probes: u32,
}

/// What the end of a wait means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expired {
    /// A request was not answered in time.
    Unanswered,
    /// Nothing was asked, but something is to be known.
    Unasked,
}

impl Asking {
    pub(super) fn new(config: &XtpConfig) -> Asking {
        Asking {
            waiting: Waiting::new(config),
            patience: config.patience,
            initial: config.initial_wait,
            longest: config.max_wait,
            sync: 0,
            answered: 0,
            timer: None,
            unanswered_since: None,
            handshake: None,
            probes: 0,
        }
    }

    /// The number of the latest request.
    pub(super) fn sync(&self) -> u32 {
        self.sync
    }

    /// What tags data that are sent now (see [`Flight`](super::flight::Flight)): the number of the next request.
    pub(super) fn tag(&self) -> u32 {
        self.sync.wrapping_add(1)
    }

    /// Numbers a request that is sent now.
    pub(super) fn ask(&mut self, now: Time) -> u32 {
        self.sync = self.sync.wrapping_add(1);
        self.waiting.asked(now, self.sync);
        self.unanswered_since.get_or_insert(now);
        self.sync
    }

    /// A control packet echoes `echo`. False if that was never asked.
    pub(super) fn answer(&mut self, now: Time, echo: u32) -> bool {
        if !reaches(self.sync, echo) {
            return false;
        }
        if echo != self.answered && reaches(echo, self.answered) {
            self.answered = echo;
            self.waiting.answered(now, echo);
            self.timer = None;
        }
        if self.handshake.is_some_and(|number| reaches(echo, number)) {
            self.handshake = None;
        }
        self.unanswered_since = self.is_unanswered().then_some(now);
        true
    }

    /// The peer gave a sign of life.
    pub(super) fn heard(&mut self, now: Time) {
        if let Some(since) = &mut self.unanswered_since {
            *since = now;
        }
    }

    /// The window has opened: probes are quick again.
    pub(super) fn progressed(&mut self) {
        self.probes = 0;
    }

    /// Whether a request waits for its answer.
    pub(super) fn is_unanswered(&self) -> bool {
        self.answered != self.sync
    }

    /// Whether new data have to wait for an answer.
    pub(super) fn in_handshake(&self) -> bool {
        self.handshake.is_some()
    }

    /// Sets the timer if there is something to wait for, and stops it if not. `unasked`: there is, without a request.
    pub(super) fn set_timer(&mut self, now: Time, unasked: bool) {
        if !self.is_unanswered() && !unasked {
            self.timer = None;
        } else if self.timer.is_none() {
            let period = self.waiting.period();
            // Who chose to ask seldom does not want to ask by the round trip.
            let unasked = self.initial.max(period);
            let probed = (unasked * (1 << self.probes.min(20))).min(self.longest.max(unasked));
            self.timer = Some(now + if self.is_unanswered() { period } else { probed });
        }
    }

    /// Data left without a request: there is no need to ask by itself as long as data flow.
    pub(super) fn postpone(&mut self) {
        if !self.is_unanswered() {
            self.timer = None;
        }
    }

    /// Whether the wait is over.
    pub(super) fn expire(&mut self, now: Time) -> Option<Expired> {
        self.timer.filter(|&at| at <= now)?;
        self.timer = None;
        if self.is_unanswered() {
            self.waiting.unanswered();
            // An answer that comes late will do as well as one to the repetition.
            self.handshake = Some(self.sync);
            return Some(Expired::Unanswered);
        }
        self.probes = self.probes.saturating_add(1);
        Some(Expired::Unasked)
    }

    /// Whether the peer was silent for too long, and for how long.
    pub(super) fn gave_up(&self, now: Time) -> Option<Duration> {
        self.patience.filter(|_| self.deadline().is_some_and(|at| at <= now))
    }

    /// When something is to be done.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        [self.timer, self.deadline()].into_iter().flatten().min()
    }

    /// Waits for nothing any more.
    pub(super) fn stop(&mut self) {
        self.timer = None;
        self.unanswered_since = None;
        self.answered = self.sync;
        self.handshake = None;
    }

    /// The smoothed round trip, if one was measured.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.waiting.round_trip()
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.unanswered_since? + self.patience?)
    }
}
