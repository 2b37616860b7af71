//! Values of parameter tables for tests and benches, without the reader of experiment files.

use std::sync::Arc;

use trunkline_core::schema::{Default as Preset, Kind, Parameter, Value, Values};
use trunkline_core::series::Step;
use trunkline_core::{Bytes, Distribution, Duration, Rate, Ratio, Series};

/// The table's defaults, with some keys given as in a file.
///
/// # Panics
/// If a key is required and not given, or a text is not of the parameter's kind.
pub fn values(parameters: &[Parameter], given: &[(&str, &str)]) -> Values {
    complete(parameters, given, |parameter| panic!("`{}` is required", parameter.name))
}

/// As [`values`], with something ordinary for every required key that is not given: whoever goes through a registry
/// need not know what each kind requires.
///
/// # Panics
/// If a text is not of the parameter's kind, or a file is required.
pub fn ordinary_values(parameters: &[Parameter], given: &[(&str, &str)]) -> Values {
    complete(parameters, given, |parameter| ordinary(parameter, &parameter.kind))
}

fn ordinary(parameter: &Parameter, kind: &Kind) -> &'static str {
    match kind {
        Kind::Duration { .. } | Kind::Durations { .. } => "1 ms",
        Kind::Rate { .. } => "100 Mbit/s",
        Kind::Bytes { .. } | Kind::Sizes { .. } => "1000 B",
        Kind::Integer { .. } | Kind::Number { .. } => "10",
        Kind::Ratio => "1 %",
        Kind::Flag => "true",
        Kind::Limit => "100 packets",
        Kind::Choice(choices) | Kind::ChoiceOrFile(choices) => choices[0].name,
        Kind::DeliveryTrace => "1",
        Kind::OverTime(of) => ordinary(parameter, of),
        Kind::Text | Kind::File => panic!("`{}` is required", parameter.name),
    }
}

fn complete(
    parameters: &[Parameter],
    given: &[(&str, &str)],
    required: impl Fn(&Parameter) -> &'static str,
) -> Values {
    let value = |parameter: &Parameter| {
        let text = given.iter().find(|(name, _)| *name == parameter.name).map(|(_, text)| *text);
        match (text, parameter.default) {
            (Some(text), _) | (None, Preset::Text(text)) => read(parameter, text),
            (None, Preset::Absent) => Value::Absent,
            (None, Preset::Required) => read(parameter, required(parameter)),
        }
    };
    Values::new(parameters.iter().map(|parameter| (parameter.name, value(parameter))).collect())
}

fn read(parameter: &Parameter, text: &str) -> Value {
    let value = match parameter.kind {
        Kind::OverTime(of) if text.contains(':') => steps(of, text),
        Kind::OverTime(of) => Some(read(&Parameter { kind: *of, ..*parameter }, text)),
        Kind::Duration { .. } => text.parse().ok().map(Value::Duration),
        Kind::Rate { .. } => text.parse().ok().map(Value::Rate),
        Kind::Bytes { .. } => text.parse().ok().map(Value::Bytes),
        Kind::Integer { .. } => text.parse().ok().map(Value::Integer),
        Kind::Number { .. } => text.parse().ok().map(Value::Number),
        Kind::Ratio => text.parse().ok().map(Value::Ratio),
        Kind::Flag => text.parse().ok().map(Value::Flag),
        Kind::Limit => text.parse().ok().map(Value::Limit),
        Kind::Text | Kind::File | Kind::Choice(_) | Kind::ChoiceOrFile(_) => {
            Some(Value::Text(text.to_owned()))
        }
        // What stands in the file.
        Kind::DeliveryTrace => text.parse().ok().map(|trace| Value::DeliveryTrace(Arc::new(trace))),
        Kind::Durations { .. } => {
            text.parse::<Duration>().ok().map(|d| Value::Distribution(Distribution::Constant(d.as_nanos())))
        }
        Kind::Sizes { .. } => {
            text.parse::<Bytes>().ok().map(|b| Value::Distribution(Distribution::Constant(b.count())))
        }
    };
    value.unwrap_or_else(|| panic!("`{}`: `{text}` is not a {:?}", parameter.name, parameter.kind))
}

/// Steps with a short text of their own, and perhaps when they repeat: `0 s: 1 Mbit/s, 20 ms: 5 Mbit/s; 50 ms`.
fn steps(of: &Kind, text: &str) -> Option<Value> {
    let (steps, every) = text.split_once(';').map_or((text, None), |(steps, every)| (steps, Some(every)));
    let value = |text: &str| match of {
        Kind::Rate { .. } => text.trim().parse::<Rate>().ok().map(Rate::bits_per_second),
        _ => text.trim().parse::<Duration>().ok().map(Duration::as_nanos),
    };
    let step = |step: &str| {
        let (from, text) = step.split_once(':')?;
        Some(Step { from: from.trim().parse().ok()?, value: value(text)? })
    };
    let steps: Vec<Step> = steps.split(',').map(step).collect::<Option<_>>()?;
    Series::new(steps, every.and_then(|every| every.trim().parse().ok())).ok().map(Value::Series)
}

/// A share of packets.
///
/// # Panics
/// If it is not from 0 to 1.
pub fn share(value: f64) -> Ratio {
    Ratio::new(value).expect("a share from 0 to 1")
}
