//! Time stamps (RFC 7323 sections 3 to 5): the clock that is sent, the peer's that is echoed, and protection against wrapped
//! sequence numbers.

use trunkline_core::{Duration, Time};

use super::segment::Options;
use super::send::{MILLISECOND, to_millisecond};

/// A time stamp that is older than this says nothing any more (RFC 7323 section 5.5).
const OUTDATED: Duration = Duration::from_secs(24 * 24 * 3600);

/// The state of both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    is_on: bool,
    /// What our clock of milliseconds shows at time zero.
    offset: u32,
    /// The peer's stamp that is echoed, and when it came.
    recent: Option<(u32, Time)>,
    /// The last sequence number that was acknowledged.
    acknowledged: u32,
    /// The echo that was last taken as a sample by the receiving half.
    last_echo: u32,
}

impl Stamps {
    pub(super) fn new(is_wanted: bool, offset: u32) -> Stamps {
        Stamps { is_on: is_wanted, offset, recent: None, acknowledged: 0, last_echo: 0 }
    }

    /// Both ends have offered them, or not.
    pub(super) fn agree(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Bytes that they take of a segment's options.
    pub(super) fn length(&self) -> usize {
        if self.is_on { Options::TIMESTAMPS_LENGTH } else { 0 }
    }

    /// The option of a segment that is sent now.
    pub(super) fn write(&self, now: Time, echoes: bool) -> (u32, u32) {
        let echo = self.recent.filter(|_| echoes).map_or(0, |(value, _)| value);
        (self.value(now), echo)
    }

    /// Everything before this sequence number has been acknowledged.
    pub(super) fn acknowledged(&mut self, sequence: u32) {
        self.acknowledged = sequence;
    }

    /// Takes the stamp of a SYN.
    pub(super) fn begin(&mut self, now: Time, stamp: Option<(u32, u32)>, sequence: u32) {
        self.recent = stamp.map(|(value, _)| (value, now));
        self.acknowledged = sequence;
    }

    /// By how many milliseconds a segment is older than another, if by so many that its sequence number may have been used
    /// twice (RFC 7323 section 5.3, R1).
    pub(super) fn outdated_by(&self, now: Time, stamp: Option<(u32, u32)>) -> Option<u32> {
        let (value, _) = stamp.filter(|_| self.is_on)?;
        let (recent, _) = self.recent.filter(|(_, at)| now.since(*at) < OUTDATED)?;
        let age = recent.wrapping_sub(value);
        (age as i32 > 0).then_some(age)
    }

    /// Takes the stamp of a segment that begins at this sequence number, if nothing of it was acknowledged (RFC 7323 section
    /// 4.3).
    pub(super) fn take(&mut self, now: Time, stamp: Option<(u32, u32)>, sequence: u32) {
        let Some((value, _)) = stamp.filter(|_| self.is_on) else { return };
        if (sequence.wrapping_sub(self.acknowledged) as i32) <= 0 && self.outdated_by(now, stamp).is_none() {
            self.recent = Some((value, now));
        }
    }

    /// When the segment was sent whose stamp is echoed, to the millisecond.
    pub(super) fn echo(&self, now: Time, stamp: Option<(u32, u32)>) -> Option<Time> {
        let (_, echo) = stamp.filter(|(_, echo)| self.is_on && *echo != 0)?;
        let age = self.value(now).wrapping_sub(echo);
        let age = MILLISECOND * u64::from(age);
        let now = to_millisecond(now);
        // An echo of the future, or from before the beginning, is nonsense.
        (age <= now.since(Time::ZERO)).then(|| Time::from_nanos(now.as_nanos() - age.as_nanos()))
    }

    /// The age of the echo, if it is another than the one before.
    pub(super) fn new_echo_age(&mut self, now: Time, stamp: Option<(u32, u32)>) -> Option<Duration> {
        let sent = self.echo(now, stamp)?;
        let (_, echo) = stamp?;
        let is_new = core::mem::replace(&mut self.last_echo, echo) != echo;
        is_new.then(|| to_millisecond(now).since(sent))
    }

    fn value(&self, now: Time) -> u32 {
        ((now.as_nanos() / MILLISECOND.as_nanos()) as u32).wrapping_add(self.offset)
    }
}
