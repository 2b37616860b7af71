//! Jumps of this host's clocks: a sleeping host, and a wall clock that was set.

use trunkline_core::Duration;

/// The three clocks at one moment, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readings {
    /// Stands still while the host sleeps; what is measured is measured with it.
    pub(crate) monotonic: i64,
    /// Goes on while the host sleeps.
    pub(crate) boot: i64,
    /// Date and time of day.
    pub(crate) wall: i64,
}

/// Compares readings with those before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockWatch {
    last: Option<Readings>,
}

/// What has happened between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// The host slept: its monotonic clock has lost this time against those of all other hosts.
    Slept(Duration),
    /// The wall clock was set forward by this.
    Forward(Duration),
    /// The wall clock was set back by this.
    Back(Duration),
}

/// Clocks that are read one after the other differ by less, unless the reader was interrupted between them.
const SLEPT: i64 = 50_000_000;
/// Time servers turn the wall clock by a tenth at most, and it is looked at once a second.
const SET: i64 = 200_000_000;

impl ClockWatch {
    /// What has happened since the last readings.
    pub(crate) fn look(&mut self, now: Readings) -> Vec<Jump> {
        let Some(last) = self.last.replace(now) else { return Vec::new() };
        let slept = (now.boot - last.boot) - (now.monotonic - last.monotonic);
        // While it slept, the wall clock went on as it should.
        let set = (now.wall - last.wall) - (now.boot - last.boot);
        let mut jumps = Vec::new();
        if slept > SLEPT {
            jumps.push(Jump::Slept(Duration::from_nanos(slept as u64)));
        }
        if set.abs() > SET {
            let by = Duration::from_nanos(set.unsigned_abs());
            jumps.push(if set > 0 { Jump::Forward(by) } else { Jump::Back(by) });
        }
        jumps
    }
}

impl Readings {
    /// What the clocks of this host say.
    pub(crate) fn now() -> Readings {
        use nix::time::{ClockId, clock_gettime};
        let read =
            |clock| clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec());
        #[cfg(target_os = "linux")]
        let boot = ClockId::CLOCK_BOOTTIME;
        #[cfg(not(target_os = "linux"))]
        let boot = ClockId::CLOCK_MONOTONIC;
        Readings {
            monotonic: read(ClockId::CLOCK_MONOTONIC),
            boot: read(boot),
            wall: read(ClockId::CLOCK_REALTIME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn at(monotonic: i64, slept: i64, set: i64) -> Readings {
        Readings {
            monotonic,
            boot: monotonic + slept,
            wall: monotonic + slept + set + 1_700_000_000 * SECOND,
        }
    }

    #[test]
    fn jumps_are_told_once_and_turning_is_none() {
        let mut watch = ClockWatch::default();
        assert_eq!(watch.look(at(5 * SECOND, 0, 0)), []);
        assert_eq!(watch.look(at(6 * SECOND, 0, 500_000)), []);
        let hour = Duration::from_secs(3600);
        assert_eq!(watch.look(at(7 * SECOND, 3600 * SECOND, 500_000)), [Jump::Slept(hour)]);
        assert_eq!(watch.look(at(8 * SECOND, 3600 * SECOND, 500_000)), []);
        let set = |seconds: i64| at(9 * SECOND, 3600 * SECOND, seconds * SECOND + 500_000);
        assert_eq!(watch.look(set(2)), [Jump::Forward(Duration::from_secs(2))]);
        assert_eq!(watch.look(set(-1)), [Jump::Back(Duration::from_secs(3))]);
        let both = at(10 * SECOND, 7200 * SECOND, 5 * SECOND);
        assert_eq!(watch.look(both).len(), 2);
    }

    #[test]
    fn the_clocks_of_this_host_stand_still_together() {
        let mut watch = ClockWatch::default();
        watch.look(Readings::now());
        let jumps = watch.look(Readings::now());
        assert!(!jumps.iter().any(|jump| matches!(jump, Jump::Slept(_))), "{jumps:?}");
    }
}
