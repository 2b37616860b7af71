//! Parameter tables: what a thing that can be named in an experiment file may be told, with type, unit, range, default
//! and meaning.
//!
//! One table serves the reader of the file (types, ranges, unknown keys), the generated reference, the JSON schema and
//! the property tests, so none of them can drift from the others. Queues, media, sources and transports each declare
//! their own table beside their code and list themselves in their crate's registry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::delivery_trace::DeliveryTrace;
use crate::distribution::Distribution;
use crate::quantity::{Bytes, Rate, Ratio};
use crate::series::{OverTime, Series};
use crate::time::Duration;

/// One key of a table in the experiment file.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key as written in the file: a term of the field, in lower case with hyphens.
    pub name: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// What holds when the key is not given.
    pub default: Default,
    /// The meaning in one or two sentences, with the source of the definition where there is one.
    pub doc: &'static str,
}

impl Parameter {
    /// Returns true if the value may be this parameter's: of its kind, and within its range.
    pub fn admits(&self, value: &Value) -> bool {
        match (self.kind, value) {
            (_, Value::Absent) => self.default == Default::Absent,
            (Kind::Duration { min, max }, Value::Duration(value)) => (min..=max).contains(value),
            (Kind::Rate { min, max }, Value::Rate(value)) => (min..=max).contains(value),
            (Kind::Bytes { min, max }, Value::Bytes(value)) => (min..=max).contains(value),
            (Kind::Integer { min, max }, Value::Integer(value)) => (min..=max).contains(value),
            (Kind::Number { min, max }, Value::Number(value)) => (min..=max).contains(value),
            (Kind::Choice(words), Value::Text(value)) => words.iter().any(|word| word.name == value),
            (Kind::OverTime(_), Value::Series(_)) => true,
            (Kind::OverTime(of), value) => Parameter { kind: *of, ..*self }.admits(value),
            (Kind::ChoiceOrFile(words), Value::Text(value)) => {
                value.ends_with(".toml") || words.iter().any(|word| word.name == value)
            }
            (Kind::Limit, Value::Limit(Limit::Packets(count) | Limit::Bytes(Bytes(count)))) => *count > 0,
            (Kind::Ratio, Value::Ratio(value)) => (0.0..=1.0).contains(&value.value()),
            (Kind::Flag, Value::Flag(_))
            | (Kind::Text | Kind::File, Value::Text(_))
            | (Kind::DeliveryTrace, Value::DeliveryTrace(_))
            | (Kind::Durations { .. } | Kind::Sizes { .. }, Value::Distribution(_)) => true,
            _ => false,
        }
    }
}

/// What holds for a key that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// The key must be given.
    Required,
    /// The key may be absent, and absence has a meaning of its own (told in the doc).
    Absent,
    /// This text, read as if it had been written in the file.
    Text(&'static str),
}

/// Type and range of a value; `min` and `max` belong to the range.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "every field is an end of the range that the variant's text names")]
pub enum Kind {
    /// A duration within a closed range.
    Duration { min: Duration, max: Duration },
    /// A rate within a closed range.
    Rate { min: Rate, max: Rate },
    /// A size within a closed range.
    Bytes { min: Bytes, max: Bytes },
    /// A whole number within a closed range.
    Integer { min: u64, max: u64 },
    /// A decimal number within a closed range.
    Number { min: f64, max: f64 },
    /// A share from 0 % to 100 %.
    Ratio,
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// A file's path, relative to the experiment file.
    File,
    /// The path of a packet-delivery trace, relative to the experiment file.
    DeliveryTrace,
    /// One of a few words.
    Choice(&'static [Choice]),
    /// One of a few words, or the path of a TOML file, relative to the experiment file.
    ChoiceOrFile(&'static [Choice]),
    /// `"100 packets"` or `"64 KiB"`.
    Limit,
    /// A fixed duration or a distribution of durations.
    Durations { min: Duration, max: Duration },
    /// A fixed size or a distribution of sizes.
    Sizes { min: Bytes, max: Bytes },
    /// A [rate](Kind::Rate) or a [duration](Kind::Duration), or a series of them over time.
    OverTime(&'static Kind),
}

/// One word of a [`Kind::Choice`].
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The word.
    pub name: &'static str,
    /// What it chooses.
    pub doc: &'static str,
}

/// How much a queue may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// At most so many packets.
    Packets(u64),
    /// At most so many bytes at the network layer.
    Bytes(Bytes),
}

impl Limit {
    /// Whether a queue that holds `packets` and `bytes` may take one more of `size`.
    pub fn admits(self, packets: u64, bytes: Bytes, size: Bytes) -> bool {
        match self {
            Limit::Packets(most) => packets < most,
            Limit::Bytes(most) => bytes + size <= most,
        }
    }
}

/// Reads `100 packets` and `64 KiB`.
impl core::str::FromStr for Limit {
    type Err = crate::quantity::QuantityError;
    fn from_str(text: &str) -> Result<Limit, Self::Err> {
        const WHAT: &str = "a limit such as `100 packets` or `64 KiB`";
        let (_, unit) = crate::quantity::split_number_and_unit(text, WHAT)?;
        if matches!(unit, "packet" | "packets") {
            let number = text.trim().trim_end_matches(unit).trim_end();
            let count = number.parse::<u64>().ok().filter(|&n| n > 0);
            return count.map(Limit::Packets).ok_or_else(|| {
                crate::quantity::QuantityError::other(text, "is not a whole number of packets above 0", WHAT)
            });
        }
        let size: Bytes = text.parse().map_err(|e: Self::Err| Self::Err { expected: WHAT, ..e })?;
        if size == Bytes::ZERO {
            return Err(crate::quantity::QuantityError::other(text, "would hold nothing", WHAT));
        }
        Ok(Limit::Bytes(size))
    }
}

impl core::fmt::Display for Limit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Limit::Packets(n) => f.write_str(&crate::quantity::count(*n, "packet")),
            Limit::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

/// A value that was read and found to be of its parameter's kind and range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// The key was not given and has no default.
    Absent,
    /// Of [`Kind::Duration`].
    Duration(Duration),
    /// Of [`Kind::Rate`].
    Rate(Rate),
    /// Of [`Kind::Bytes`].
    Bytes(Bytes),
    /// Of [`Kind::Integer`].
    Integer(u64),
    /// Of [`Kind::Number`].
    Number(f64),
    /// Of [`Kind::Ratio`].
    Ratio(Ratio),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Text`], [`Kind::File`] (as written), [`Kind::Choice`] or [`Kind::ChoiceOrFile`].
    Text(String),
    /// Of [`Kind::Limit`].
    Limit(Limit),
    /// Of [`Kind::Durations`] (nanoseconds) or [`Kind::Sizes`] (bytes).
    #[serde(skip)]
    Distribution(Distribution),
    /// Of [`Kind::DeliveryTrace`]: what stands in the file.
    #[serde(skip)]
    DeliveryTrace(Arc<DeliveryTrace>),
    /// A value of [`Kind::OverTime`] that changes: bits per second or nanoseconds.
    #[serde(skip)]
    Series(Series),
}

/// The values of one table, complete: one for every parameter of the table that declared them. Copies share their memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Arc<[(&'static str, Value)]>);

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident, $optional:ident: $variant:ident -> $type:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        /// If the table that was read declares no such parameter of this kind, or declares it optional: a mistake in
        /// the program, which the registry tests find, never in a file.
        pub fn $name(&self, name: &str) -> $type {
            self.$optional(name).unwrap_or_else(|| panic!("parameter `{name}` is not always present"))
        }
        $(#[$doc])*
        /// `None` where the key was not given.
        ///
        /// # Panics
        /// If the table declares no such parameter of this kind.
        pub fn $optional(&self, name: &str) -> Option<$type> {
            match self.value(name) {
                Value::$variant(value) => Some(value.clone()),
                Value::Absent => None,
                other => panic!("parameter `{name}` was declared as another kind: {other:?}"),
            }
        }
    )*};
}

impl Values {
    /// The values of a table, in its order.
    pub fn new(values: Vec<(&'static str, Value)>) -> Values {
        Values(values.into())
    }

    /// Every name with its value, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// If the table declares no such parameter.
    pub fn value(&self, name: &str) -> &Value {
        match self.0.iter().find(|(n, _)| *n == name) {
            Some((_, value)) => value,
            None => panic!("no parameter `{name}` is declared"),
        }
    }

    /// Replaces the value of a parameter.
    ///
    /// # Panics
    /// If the table declares no such parameter.
    pub fn set(&mut self, name: &str, value: Value) {
        match Arc::make_mut(&mut self.0).iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = value,
            None => panic!("no parameter `{name}` is declared"),
        }
    }

    /// The rate or duration of that name, which may change over time.
    ///
    /// # Panics
    /// If the table declares no such parameter of this kind, or declares it optional.
    pub fn over_time(&self, name: &str) -> OverTime {
        match self.value(name) {
            Value::Rate(rate) => OverTime::Always(rate.bits_per_second()),
            Value::Duration(duration) => OverTime::Always(duration.as_nanos()),
            Value::Series(series) => OverTime::Series(series.clone()),
            other => panic!("parameter `{name}` was declared as another kind: {other:?}"),
        }
    }

    getters! {
        /// The duration of that name.
        duration, duration_if_given: Duration -> Duration;
        /// The rate of that name.
        rate, rate_if_given: Rate -> Rate;
        /// The size of that name.
        bytes, bytes_if_given: Bytes -> Bytes;
        /// The whole number of that name.
        integer, integer_if_given: Integer -> u64;
        /// The decimal number of that name.
        number, number_if_given: Number -> f64;
        /// The share of that name.
        ratio, ratio_if_given: Ratio -> Ratio;
        /// The truth value of that name.
        flag, flag_if_given: Flag -> bool;
        /// The text, file or word of that name.
        text, text_if_given: Text -> String;
        /// The limit of that name.
        limit, limit_if_given: Limit -> Limit;
        /// The distribution of that name.
        distribution, distribution_if_given: Distribution -> Distribution;
        /// The packet-delivery trace of that name.
        delivery_trace, delivery_trace_if_given: DeliveryTrace -> Arc<DeliveryTrace>;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_share_memory_until_one_of_them_changes() {
        let values = |delay| Values::new(vec![("delay", Value::Duration(Duration::from_millis(delay)))]);
        let first = values(20);
        let mut same = first.clone();
        assert!(Arc::ptr_eq(&first.0, &same.0));
        same.set("delay", Value::Duration(Duration::from_millis(40)));
        assert_eq!((first, same), (values(20), values(40)));
    }

    #[test]
    fn limits_are_packets_or_bytes() {
        assert_eq!("100 packets".parse(), Ok(Limit::Packets(100)));
        assert_eq!("64 KiB".parse(), Ok(Limit::Bytes(Bytes(65_536))));
        for bad in ["0 packets", "1.5 packets", "0 B", "64", "-1 packets"] {
            assert!(bad.parse::<Limit>().is_err(), "{bad}");
        }
    }
}
