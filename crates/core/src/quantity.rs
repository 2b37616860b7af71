//! Quantities with their units in the type, and the one parser for all of them.

use core::fmt;
use core::ops::{Add, AddAssign};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// A data rate in bits per second. `kbit` is 1000 bits (IEC 80000-13), as in the networks it describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

/// An amount of data in bytes. `KB` is 1000 bytes and `KiB` 1024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A share of a whole, from 0 to 1: a loss rate, a probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ratio(f64);

/// An amount of something that is counted or measured, with its unit in the variant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Things.
    Count(u64),
    /// Time.
    Time(Duration),
    /// A share of a whole.
    Share(Ratio),
    /// Data.
    Bytes(Bytes),
}

/// Why a text is not the quantity that was expected: which part is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` {problem}; expected {expected}")]
pub struct QuantityError {
    /// What was written.
    pub text: String,
    /// What is wrong with it: "has the unknown unit `mx`".
    pub problem: String,
    /// What would be right, with an example.
    pub expected: &'static str,
}

impl QuantityError {
    pub(crate) fn unit(text: &str, unit: &str, expected: &'static str) -> QuantityError {
        let problem =
            if unit.is_empty() { "has no unit".to_owned() } else { format!("has the unknown unit `{unit}`") };
        QuantityError { text: text.to_owned(), problem, expected }
    }

    pub(crate) fn other(text: &str, problem: &str, expected: &'static str) -> QuantityError {
        QuantityError { text: text.to_owned(), problem: problem.to_owned(), expected }
    }
}

/// A decimal number that is finite and not negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(f64);

impl Number {
    /// The number times `scale`, rounded to an integer.
    pub(crate) fn scaled(self, scale: u64, text: &str, expected: &'static str) -> Result<u64, QuantityError> {
        let value = libm::round(self.0 * scale as f64);
        if value < u64::MAX as f64 {
            Ok(value as u64)
        } else {
            Err(QuantityError::other(text, "is too large", expected))
        }
    }
}

/// Splits `51.5 ms` into the number and the unit behind it.
pub(crate) fn split_number_and_unit<'t>(
    text: &'t str,
    expected: &'static str,
) -> Result<(Number, &'t str), QuantityError> {
    let trimmed = text.trim();
    // An exponent belongs to the number only if digits follow: `1e3 us` is a number, `1 e` is not.
    let mut end = 0;
    let bytes = trimmed.as_bytes();
    while end < bytes.len() {
        let digit = bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b'_');
        let sign = matches!(bytes[end], b'-' | b'+') && (end == 0 || matches!(bytes[end - 1], b'e' | b'E'));
        let exponent = end > 0
            && matches!(bytes[end], b'e' | b'E')
            && bytes.get(end + 1).is_some_and(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'));
        if !(digit || sign || exponent) {
            break;
        }
        end += 1;
    }
    let (number, unit) = trimmed.split_at(end);
    let value: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| QuantityError::other(text, "does not start with a number", expected))?;
    if value < 0.0 {
        return Err(QuantityError::other(text, "is negative", expected));
    }
    if !value.is_finite() {
        return Err(QuantityError::other(text, "is too large", expected));
    }
    Ok((Number(value), unit.trim_start()))
}

/// Rounds to `digits` significant digits and drops trailing zeros: `51.50` becomes `51.5`.
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = libm::floor(libm::log10(value.abs())) as i32;
    let decimals = (digits - 1 - magnitude).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Rate {
    /// No data at all.
    pub const ZERO: Rate = Rate(0);
    /// `n` bits per second.
    pub const fn from_bits_per_second(n: u64) -> Rate {
        Rate(n)
    }
    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// The mean rate of `bytes` over `time`, rounded to the nearest bit per second; zero over no time.
    pub fn of(bytes: Bytes, time: Duration) -> Rate {
        let nanos = u128::from(time.as_nanos());
        if nanos == 0 {
            return Rate::ZERO;
        }
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000;
        Rate(u64::try_from((bits + nanos / 2) / nanos).unwrap_or(u64::MAX))
    }
    /// How long `bytes` take at this rate, rounded up to the next nanosecond; [`Duration::MAX`] at rate zero.
    /// Links that send packet after packet use a serialiser that carries the fraction instead.
    pub fn time_for(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bytes.0) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);
    /// The number of bytes.
    pub const fn count(self) -> u64 {
        self.0
    }
    /// The difference, or nothing if `other` is more.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}
impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Ratio {
    /// Nothing of the whole.
    pub const ZERO: Ratio = Ratio(0.0);
    /// The whole.
    pub const ONE: Ratio = Ratio(1.0);
    /// A share from 0 to 1, or `None` outside that range.
    pub fn new(share: f64) -> Option<Ratio> {
        (0.0..=1.0).contains(&share).then_some(Ratio(share))
    }
    /// The share as a number from 0 to 1.
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// Reads `1594 kbit/s`, `10 Mbit/s`, `64kbit`, `5mbit` (as tc writes it); units are decimal.
impl FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Rate, QuantityError> {
        const WHAT: &str = "a rate such as `10 Mbit/s` (units: bit/s, kbit/s, Mbit/s, Gbit/s)";
        let (number, unit) = split_number_and_unit(text, WHAT)?;
        let scale = match unit.strip_suffix("/s").unwrap_or(unit).to_ascii_lowercase().as_str() {
            "bit" => 1,
            "kbit" => 1_000,
            "mbit" => 1_000_000,
            "gbit" => 1_000_000_000,
            _ => return Err(QuantityError::unit(text, unit, WHAT)),
        };
        number.scaled(scale, text, WHAT).map(Rate)
    }
}

/// Reads `16 KiB`, `64 B`, `1.5 KB`, `2 MiB`.
impl FromStr for Bytes {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Bytes, QuantityError> {
        const WHAT: &str = "a size such as `16 KiB` (units: B, KB, MB, GB of 1000; KiB, MiB, GiB of 1024)";
        let (number, unit) = split_number_and_unit(text, WHAT)?;
        let scale = match unit {
            "B" => 1,
            "KB" | "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(QuantityError::unit(text, unit, WHAT)),
        };
        number.scaled(scale, text, WHAT).map(Bytes)
    }
}

/// Reads `1 %` and `0.01`: both are one part in a hundred.
impl FromStr for Ratio {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Ratio, QuantityError> {
        const WHAT: &str = "a share from `0 %` to `100 %` (or 0 to 1)";
        let (number, unit) = split_number_and_unit(text, WHAT)?;
        let share = match unit {
            "%" => number.0 / 100.0,
            "" => number.0,
            _ => return Err(QuantityError::unit(text, unit, WHAT)),
        };
        Ratio::new(share).ok_or_else(|| QuantityError::other(text, "is out of range", WHAT))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => (n, "bit/s"),
            1_000..10_000_000 if !self.0.is_multiple_of(1_000_000) => (n / 1e3, "kbit/s"),
            1_000..10_000_000_000 => (n / 1e6, "Mbit/s"),
            _ => (n / 1e9, "Gbit/s"),
        };
        f.pad(&format!("{} {unit}", significant(value, 4)))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let (unit, size) = match n {
            0 => ("B", 1),
            _ if n.is_multiple_of(1 << 30) => ("GiB", 1 << 30),
            _ if n.is_multiple_of(1 << 20) => ("MiB", 1 << 20),
            _ if n.is_multiple_of(1 << 10) => ("KiB", 1 << 10),
            1..10_000 => ("B", 1),
            10_000..10_000_000 => ("KB", 1_000),
            _ => ("MB", 1_000_000),
        };
        f.pad(&format!("{} {unit}", significant(n as f64 / size as f64, 4)))
    }
}

/// Shows the share in percent.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} %", significant(self.0 * 100.0, 4)))
    }
}

/// A number of things in words: `1 packet`, `2 packets`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!("1594 kbit/s".parse(), Ok(Rate(1_594_000)));
        assert_eq!("1.544 Mbit/s".parse(), Ok(Rate(1_544_000)));
        assert_eq!("5mbit".parse(), Ok(Rate(5_000_000)));
        assert_eq!("16 KiB".parse(), Ok(Bytes(16_384)));
        assert_eq!("1.5 KB".parse(), Ok(Bytes(1_500)));
        assert_eq!("1 %".parse(), Ok(Ratio(0.01)));
        assert_eq!("0.25".parse(), Ok(Ratio(0.25)));
    }

    #[test]
    fn a_wrong_unit_is_named_with_what_was_expected() {
        let error = "10 ms".parse::<Rate>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`10 ms` has the unknown unit `ms`; expected a rate such as `10 Mbit/s` \
             (units: bit/s, kbit/s, Mbit/s, Gbit/s)"
        );
        assert!("10".parse::<Bytes>().unwrap_err().to_string().contains("has no unit"));
        assert!("150 %".parse::<Ratio>().unwrap_err().to_string().contains("out of range"));
    }

    #[test]
    fn rates_and_times_agree() {
        let rate = Rate::from_bits_per_second(64_000);
        assert_eq!(rate.time_for(Bytes(80)), Duration::from_millis(10));
        assert_eq!(Rate::of(Bytes(80), Duration::from_millis(10)), rate);
        assert_eq!(Rate::ZERO.time_for(Bytes(1)), Duration::MAX);
    }

    #[test]
    fn quantities_are_shown_in_readable_units() {
        assert_eq!(Rate(1_594_000).to_string(), "1594 kbit/s");
        assert_eq!(Rate(200_000_000).to_string(), "200 Mbit/s");
        assert_eq!(Bytes(16_384).to_string(), "16 KiB");
        assert_eq!(Bytes(80).to_string(), "80 B");
        assert_eq!(Ratio(0.015).to_string(), "1.5 %");
    }
}
