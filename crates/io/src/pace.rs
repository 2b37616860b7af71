//! Sleeping until an absolute moment.

use trunkline_core::{Duration, Time};

use crate::clock::{self, MonotonicClock};

/// Sleeps until moments of a clock: an absolute sleep, and if asked a spin over the last stretch, which costs CPU and
/// brings the median error from some 100 us down to a few tens of nanoseconds.
///
/// Timers of asynchronous runtimes are an order of magnitude coarser: never pace with them.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    clock: MonotonicClock,
    spin: Duration,
}

impl Pacer {
    /// The stretch that covers a sleep's usual lateness: 300 us.
    pub const SPIN: Duration = Duration::from_micros(300);

    /// A pacer that spins for the last `spin` before each moment ([`Duration::ZERO`]: it only sleeps). Sets the
    /// calling thread's timer slack to 1 ns, so make it on the thread that sleeps.
    pub fn new(clock: MonotonicClock, spin: Duration) -> Pacer {
        reduce_timer_slack();
        Pacer { clock, spin }
    }

    /// How long it spins.
    pub fn spin(&self) -> Duration {
        self.spin
    }

    /// Returns at `due`, or at once if that is past; says what time it is then.
    #[inline]
    pub fn sleep_until(&self, due: Time) -> Time {
        let wake = Time::from_nanos(due.as_nanos().saturating_sub(self.spin.as_nanos()));
        let mut now = self.clock.now();
        if now < wake {
            sleep_until_raw(self.clock.to_raw(wake));
            now = self.clock.now();
        }
        while now < due {
            core::hint::spin_loop();
            now = self.clock.now();
        }
        now
    }
}

/// Sets the calling thread's timer slack to 1 ns (the default of 50 us is added to every sleep). Does nothing where
/// there is no such thing.
pub fn reduce_timer_slack() {
    #[cfg(target_os = "linux")]
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory; a refusal leaves the slack as it was.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
    }
}

/// Sleeps until the monotonic clock ([`clock::raw_now`]) reads `raw` nanoseconds; signals do not cut it short.
#[cfg(target_os = "linux")]
pub fn sleep_until_raw(raw: u64) {
    loop {
        // The system sleeps by a clock that time servers turn. Read first, so that who is interrupted between the two
        // wakes early, not late.
        let turned = clock::turned_now();
        let left = raw.saturating_sub(clock::raw_now());
        if left == 0 {
            return;
        }
        if left < CLOSE {
            core::hint::spin_loop();
            continue;
        }
        let until = turned.saturating_add(if left > LONG { left - left / 512 } else { left });
        let until = libc::timespec {
            tv_sec: (until / 1_000_000_000) as libc::time_t,
            tv_nsec: (until % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `until` is a valid time; with TIMER_ABSTIME the remaining time is not written, so null is allowed. It is
        // woken early by signals only, and then sleeps again.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, core::ptr::null_mut());
        }
    }
}

/// A sleep takes longer than this, in nanoseconds: the clock by which the system sleeps is ahead of ours by less at the end
/// of a usual sleep.
#[cfg(target_os = "linux")]
const CLOSE: u64 = 10_000;

/// After a longer sleep, in nanoseconds, it would be behind by more than a sleep is late anyway: so the last bit is slept apart.
#[cfg(target_os = "linux")]
const LONG: u64 = 50_000_000;

/// Sleeps until the monotonic clock ([`clock::raw_now`]) reads `raw` nanoseconds; signals do not cut it short.
#[cfg(not(target_os = "linux"))]
pub fn sleep_until_raw(raw: u64) {
    loop {
        let left = raw.saturating_sub(clock::raw_now());
        if left == 0 {
            return;
        }
        std::thread::sleep(core::time::Duration::from_nanos(left));
    }
}

/// Sleeps for `length`.
pub fn sleep(length: Duration) {
    sleep_until_raw(clock::raw_now().saturating_add(length.as_nanos()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_early() {
        let clock = MonotonicClock::starting_now();
        for spin in [Duration::ZERO, Duration::from_micros(300)] {
            let pacer = Pacer::new(clock, spin);
            let due = clock.now() + Duration::from_millis(2);
            assert!(pacer.sleep_until(due) >= due);
            assert!(pacer.sleep_until(Time::ZERO) >= due, "a past moment is not waited for");
        }
        let due = clock.now() + Duration::from_millis(60);
        assert!(Pacer::new(clock, Duration::ZERO).sleep_until(due) >= due);
    }
}
