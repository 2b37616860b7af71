//! Time as integers: no floats, no epoch of the system, and a zero and a maximum, which the standard library's
//! `Instant` has not.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity::{QuantityError, split_number_and_unit};

/// A moment, in nanoseconds since the start of the run (virtual time) or since an epoch that the driver chose and
/// states (real time). Lasts 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every event: "never".
    pub const MAX: Time = Time(u64::MAX);

    /// The moment `nanoseconds` after [`Time::ZERO`].
    pub const fn from_nanos(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }

    /// Nanoseconds since [`Time::ZERO`].
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since [`Time::ZERO`], for display and figures only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long after `earlier` this is, or zero if it is not after it.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest length that can be written: "for ever".
    pub const MAX: Duration = Duration(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Duration {
        Duration(n)
    }
    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000))
    }
    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000))
    }
    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000_000))
    }
    /// Seconds, rounded to the nearest nanosecond; negative and not-a-number become zero, too large becomes
    /// [`Duration::MAX`].
    pub fn from_secs_f64(seconds: f64) -> Duration {
        // A float-to-integer `as` saturates and maps NaN to zero.
        Duration(libm::round(seconds * 1e9) as u64)
    }
    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The length in seconds, for display and statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The length in milliseconds, for display and statistics.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// `self - other`, or zero where that would be negative.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
    /// Whether this is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The standard library's type, for operating-system calls.
    pub const fn to_std(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0)
    }
}

impl From<core::time::Duration> for Duration {
    fn from(d: core::time::Duration) -> Duration {
        Duration(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

// Sums saturate: "never" plus anything is still "never", and no input can make time wrap.
impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Add for Duration {
    type Output = Duration;
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub for Duration {
    type Output = Duration;
    /// Saturates at zero.
    fn sub(self, d: Duration) -> Duration {
        self.saturating_sub(d)
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    /// Rounds down; dividing by zero gives [`Duration::MAX`].
    fn div(self, n: u64) -> Duration {
        Duration(self.0.checked_div(n).unwrap_or(u64::MAX))
    }
}

/// Reads `51.5 ms`, `10us`, `2 min`: a decimal number, an optional space and one of `ns us µs ms s min h`.
impl FromStr for Duration {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Duration, QuantityError> {
        const WHAT: &str = "a duration such as `20 ms` (units: ns, us, ms, s, min, h)";
        let (number, unit) = split_number_and_unit(text, WHAT)?;
        let scale: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(QuantityError::unit(text, unit, WHAT)),
        };
        number.scaled(scale, text, WHAT).map(Duration)
    }
}

/// Shows the length in the largest unit that keeps it at least one, with at most four significant digits after
/// rounding: `51.5 ms`, `125 us`, `2 s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let (value, unit) = match n {
            0 => return f.pad("0 s"),
            1..1_000 => (n as f64, "ns"),
            1_000..1_000_000 => (n as f64 / 1e3, "us"),
            1_000_000..1_000_000_000 => (n as f64 / 1e6, "ms"),
            1_000_000_000..120_000_000_000 => (n as f64 / 1e9, "s"),
            120_000_000_000..7_200_000_000_000 => (n as f64 / 60e9, "min"),
            _ => (n as f64 / 3600e9, "h"),
        };
        f.pad(&format!("{} {unit}", crate::quantity::significant(value, 4)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, nanos) in [
            ("51.5 ms", 51_500_000),
            ("125us", 125_000),
            ("0.5 ns", 1), // rounds half up: a duration has no fraction of a nanosecond
            ("2 min", 120_000_000_000),
            ("1e3 us", 1_000_000),
            ("0 s", 0),
        ] {
            assert_eq!(text.parse::<Duration>().map(Duration::as_nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn durations_without_a_known_unit_are_refused() {
        for text in ["10", "10 bananas", "-1 ms", "", "ms", "1.2.3 s", "nan s", "inf s", "1e400 s"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Duration::from_secs(1) - Duration::from_secs(2), Duration::ZERO);
        assert_eq!(Time::ZERO.since(Time::MAX), Duration::ZERO);
    }

    #[test]
    fn durations_are_shown_in_readable_units() {
        for (d, text) in [
            (Duration::from_micros(51_500), "51.5 ms"),
            (Duration::from_micros(125), "125 us"),
            (Duration::from_secs(2), "2 s"),
            (Duration::ZERO, "0 s"),
            (Duration::from_nanos(1_234_567), "1.235 ms"),
        ] {
            assert_eq!(d.to_string(), text);
        }
    }
}
