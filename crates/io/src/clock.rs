//! The monotonic clock as [`Time`], and the kernel's stamps on it.
//!
//! It is the one that nobody turns, where the system has it: time servers set a wrong clock right by letting it run fast or
//! slow for a while, chrony by up to a tenth, and `CLOCK_MONOTONIC` runs so with it. Whatever is measured meanwhile would
//! be wrong by as much, and nobody could relate the clocks of two hosts. `CLOCK_MONOTONIC_RAW` runs as its crystal does.

mod stamps;

use trunkline_core::Time;

pub use stamps::Stamps;

/// The monotonic clock ([`raw_now`]) relative to an epoch: [`Time::ZERO`] is the epoch, and moments before it read as zero.
///
/// The clock is the same for all processes of a host, so two processes that agree on the raw value of the epoch agree
/// on every time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonotonicClock {
    epoch: u64,
}

impl MonotonicClock {
    /// A clock whose epoch is now.
    pub fn starting_now() -> MonotonicClock {
        MonotonicClock { epoch: raw_now() }
    }

    /// A clock with an epoch that another process of this host knows too: a value of [`raw_now`].
    pub const fn with_epoch(raw: u64) -> MonotonicClock {
        MonotonicClock { epoch: raw }
    }

    /// The epoch's raw value.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The time since the epoch.
    #[inline]
    pub fn now(&self) -> Time {
        self.from_raw(raw_now())
    }

    /// A raw value on this clock.
    #[inline]
    pub const fn from_raw(&self, raw: u64) -> Time {
        Time::from_nanos(raw.saturating_sub(self.epoch))
    }

    /// A moment of this clock as a raw value.
    #[inline]
    pub const fn to_raw(&self, time: Time) -> u64 {
        self.epoch.saturating_add(time.as_nanos())
    }
}

/// Whether nobody turns the clock of [`raw_now`]: it runs as its crystal does, whatever time servers say.
pub const IS_FREE: bool = cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"));

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// The monotonic clock in nanoseconds: `CLOCK_MONOTONIC_RAW` where there is one, otherwise `CLOCK_MONOTONIC`. What this
/// clock shows is what this library means by a raw time.
#[inline]
pub fn raw_now() -> u64 {
    read(CLOCK)
}

/// `CLOCK_MONOTONIC`, by which the system sleeps. Time servers turn it.
#[inline]
pub(crate) fn turned_now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// How far the clock of the calendar (`CLOCK_REALTIME`) is ahead of the monotonic one now, in nanoseconds: the closest of
/// three looks. The two do not run at one rate; for the kernel's stamps there is [`Stamps`].
pub fn realtime_offset() -> i64 {
    let look = || {
        let before = raw_now();
        let realtime = read(libc::CLOCK_REALTIME);
        let width = raw_now() - before;
        (width, realtime as i64 - (before + width / 2) as i64)
    };
    let (_, offset) = [look(), look(), look()].into_iter().min_by_key(|&(width, _)| width).unwrap_or((0, 0));
    offset
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the result, and these clocks exist wherever they are named, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clocks_with_one_epoch_agree() {
        let clock = MonotonicClock::starting_now();
        let other = MonotonicClock::with_epoch(clock.epoch());
        let (a, b, c) = (clock.now(), other.now(), clock.now());
        assert!(a <= b && b <= c);
        assert_eq!(clock.from_raw(clock.to_raw(a)), a);
    }

    #[test]
    fn moments_before_the_epoch_are_zero() {
        let clock = MonotonicClock::with_epoch(raw_now() + 1_000_000_000_000);
        assert_eq!(clock.now(), Time::ZERO);
    }
}
