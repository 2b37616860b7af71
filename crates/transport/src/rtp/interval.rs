//! When reports are sent (RFC 3550 sections 6.2, 6.3 and A.7): so rarely that all of them together take 5 % of the
//! session's bandwidth, at random times, reconsidered when they come.

use trunkline_core::{Duration, Stream, Time};

use super::config::Reporting;

/// The share of the session's bandwidth that is for reports.
const SHARE: f64 = 0.05;
/// Of that, the share of the senders where they are few.
const SENDERS_SHARE: f64 = 0.25;
/// Reconsideration makes intervals shorter than intended by this factor, e - 3/2.
const COMPENSATION: f64 = 1.218_28;
/// After so many intervals without a word, a member is gone (section 6.3.5).
const PATIENCE: u64 = 5;
/// With a reduced minimum, members are still given this long for each of those (section 6.2).
const FIXED_MINIMUM: Duration = Duration::from_secs(5);
/// Before the second report, the minimum is half as long.
const FIRST: u64 = 2;

/// Who is there, this end among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) members: u32,
    pub(super) senders: u32,
    pub(super) we_send: bool,
}

/// The timer of one end's reports. It stands still until it is started.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    reporting: Reporting,
    /// The average size of an RTCP packet with the headers below it, in bytes.
    average: f64,
    /// When the last report was sent, or would have been.
    previous: Time,
    next: Option<Time>,
    /// What was last drawn for the time between them.
    interval: Duration,
    is_first: bool,
    members: u32,
}

impl Schedule {
    /// A timer for packets that are likely to have this size, with the headers below them.
    pub(super) fn new(reporting: Reporting, size: usize) -> Schedule {
        Schedule {
            reporting,
            average: size as f64,
            previous: Time::ZERO,
            next: None,
            interval: Duration::ZERO,
            is_first: true,
            members: 1,
        }
    }

    /// When it rings.
    pub(super) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Starts it, as if nothing had been before.
    pub(super) fn start(&mut self, now: Time, census: Census, stream: &mut Stream) {
        self.is_first = true;
        self.previous = now;
        self.set(now, census, stream);
    }

    /// Stops it.
    pub(super) fn stop(&mut self) {
        self.next = None;
    }

    /// It has rung: whether a report is due now. Otherwise the session has grown meanwhile, and it rings again later
    /// (section 6.3.6).
    pub(super) fn rings(&mut self, now: Time, census: Census, stream: &mut Stream) -> bool {
        self.interval = self.draw(census, stream);
        self.members = census.members;
        if self.previous + self.interval > now {
            self.next = Some(self.previous + self.interval);
            return false;
        }
        self.is_first = false;
        self.previous = now;
        self.set(now, census, stream);
        true
    }

    /// A packet of this size, with the headers below it, was sent or received.
    pub(super) fn packet(&mut self, size: usize) {
        self.average += (size as f64 - self.average) / 16.0;
    }

    /// Members have left: the next report comes sooner by as much (section 6.3.4).
    pub(super) fn left(&mut self, now: Time, census: Census) {
        if census.members < self.members
            && let Some(next) = self.next
        {
            let scale = |time: Duration| time * u64::from(census.members) / u64::from(self.members);
            // A timer that comes to this moment would be in the past.
            self.next = Some(now + scale(next.since(now)).max(Duration::from_nanos(1)));
            self.previous =
                Time::from_nanos(now.as_nanos().saturating_sub(scale(now.since(self.previous)).as_nanos()));
            self.members = census.members;
        }
    }

    /// Whether one who last sent data then still counts as a sender (section 6.3.8).
    pub(super) fn still_sends(&self, now: Time, last: Time) -> bool {
        now.since(last) <= self.interval * 2
    }

    /// After how long without a word a member is gone.
    pub(super) fn patience(&self, census: Census) -> Duration {
        self.intended(census, self.reporting.minimum.max(FIXED_MINIMUM)) * PATIENCE
    }

    fn set(&mut self, now: Time, census: Census, stream: &mut Stream) {
        self.members = census.members;
        self.interval = self.draw(census, stream);
        self.next = Some(now + self.interval);
    }

    /// The time to the next report: that which is intended, from half to one and a half times.
    fn draw(&self, census: Census, stream: &mut Stream) -> Duration {
        let minimum = if self.is_first { self.reporting.minimum / FIRST } else { self.reporting.minimum };
        let seconds = self.intended(census, minimum).as_secs_f64();
        let drawn = Duration::from_secs_f64(seconds * (stream.unit() + 0.5) / COMPENSATION);
        drawn.max(Duration::from_nanos(1))
    }

    /// The time between two reports of one member if nothing were random.
    fn intended(&self, census: Census, minimum: Duration) -> Duration {
        let Census { members, senders, we_send } = census;
        let mut bandwidth = self.reporting.session_bandwidth.bits_per_second() as f64 / 8.0 * SHARE;
        let mut sharing = members;
        if f64::from(senders) <= f64::from(members) * SENDERS_SHARE {
            if we_send {
                bandwidth *= SENDERS_SHARE;
                sharing = senders;
            } else {
                bandwidth *= 1.0 - SENDERS_SHARE;
                sharing -= senders;
            }
        }
        Duration::from_secs_f64(self.average * f64::from(sharing) / bandwidth).max(minimum)
    }
}
