//! Values of parameter tables for tests, without the reader of experiment files.

#![allow(dead_code, reason = "not every test binary needs everything")]

use trunkline_core::schema::{Default as Preset, Kind, Parameter, Value, Values};
use trunkline_core::{Bytes, Distribution, Duration, Ratio};

/// The table's defaults, with some keys given as in a file.
///
/// # Panics
/// If a key is required and not given, or a text is not of the parameter's kind.
pub(crate) fn values(parameters: &[Parameter], given: &[(&str, &str)]) -> Values {
    let value = |parameter: &Parameter| {
        let text = given.iter().find(|(name, _)| *name == parameter.name).map(|(_, text)| *text);
        match (text, parameter.default) {
            (Some(text), _) | (None, Preset::Text(text)) => read(parameter, text),
            (None, Preset::Absent) => Value::Absent,
            (None, Preset::Required) => panic!("`{}` is required", parameter.name),
        }
    };
    Values::new(parameters.iter().map(|parameter| (parameter.name, value(parameter))).collect())
}

fn read(parameter: &Parameter, text: &str) -> Value {
    let value = match parameter.kind {
        Kind::Duration { .. } => text.parse().ok().map(Value::Duration),
        Kind::Rate { .. } => text.parse().ok().map(Value::Rate),
        Kind::Bytes { .. } => text.parse().ok().map(Value::Bytes),
        Kind::Integer { .. } => text.parse().ok().map(Value::Integer),
        Kind::Number { .. } => text.parse().ok().map(Value::Number),
        Kind::Ratio => text.parse().ok().map(Value::Ratio),
        Kind::Flag => text.parse().ok().map(Value::Flag),
        Kind::Limit => text.parse().ok().map(Value::Limit),
        Kind::Text | Kind::File | Kind::Choice(_) => Some(Value::Text(text.to_owned())),
        Kind::Durations { .. } => {
            text.parse::<Duration>().ok().map(|d| Value::Distribution(Distribution::Constant(d.as_nanos())))
        }
        Kind::Sizes { .. } => {
            text.parse::<Bytes>().ok().map(|b| Value::Distribution(Distribution::Constant(b.count())))
        }
    };
    value.unwrap_or_else(|| panic!("`{}`: `{text}` is not a {:?}", parameter.name, parameter.kind))
}

/// A share of packets.
pub(crate) fn share(value: f64) -> Ratio {
    Ratio::new(value).expect("a share from 0 to 1")
}
