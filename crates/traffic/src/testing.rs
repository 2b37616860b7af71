//! What the tests of this crate share.

use trunkline_core::custom::Batches;
use trunkline_core::schema::{Default, Kind, Value, Values};
use trunkline_core::{Bytes, Custom, Distribution, Duration, Seed, Time};

use crate::registry::find;
use crate::source::{MessageBuffer, Source, SourceContext};

/// One message, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) channel: u16,
    pub(crate) due: Time,
    pub(crate) length: usize,
}

pub(crate) fn constant(duration: Duration) -> Value {
    Value::Distribution(Distribution::Constant(duration.as_nanos()))
}

pub(crate) fn exponential(mean: Duration) -> Value {
    Value::Distribution(Distribution::Exponential { mean: mean.as_nanos() })
}

/// A kind's defaults with some values of their own; required ones must be among them.
pub(crate) fn values(kind: &str, given: &[(&'static str, Value)]) -> Values {
    let (_, kind) = find(kind).unwrap();
    let value = |name: &str, kind: Kind, default: Default| {
        if let Some((_, value)) = given.iter().find(|(n, _)| *n == name) {
            return value.clone();
        }
        match default {
            Default::Required => panic!("`{name}` is required"),
            Default::Absent => Value::Absent,
            Default::Text(text) => read(kind, text),
        }
    };
    Values::new(kind.parameters.iter().map(|p| (p.name, value(p.name, p.kind, p.default))).collect())
}

/// Reads a default, which must be within its own range.
fn read(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Integer { min, max } => {
            let value = text.parse().unwrap();
            assert!((min..=max).contains(&value), "{text}");
            Value::Integer(value)
        }
        Kind::Duration { min, max } => {
            let value = text.parse().unwrap();
            assert!((min..=max).contains(&value), "{text}");
            Value::Duration(value)
        }
        Kind::Durations { min, max } => {
            let value: Duration = text.parse().unwrap();
            assert!((min..=max).contains(&value), "{text}");
            constant(value)
        }
        Kind::Flag => Value::Flag(text.parse().unwrap()),
        Kind::Bytes { min, max } => {
            let value: Bytes = text.parse().unwrap();
            assert!((min..=max).contains(&value), "{text}");
            Value::Bytes(value)
        }
        Kind::Sizes { min, max } => {
            let value: Bytes = text.parse().unwrap();
            assert!((min..=max).contains(&value), "{text}");
            Value::Distribution(Distribution::Constant(value.count()))
        }
        Kind::Choice(choices) | Kind::ChoiceOrFile(choices) => {
            assert!(choices.iter().any(|choice| choice.name == text), "{text}");
            Value::Text(text.to_owned())
        }
        other => panic!("no default of {other:?} is used yet"),
    }
}

/// A custom source: a message of 100 B every 10 ms, in batches of three.
fn every_10_ms(_: u64) -> Batches<(Duration, u32)> {
    Box::new(std::iter::repeat_with(|| vec![(Duration::from_millis(10), 100); 3]))
}

/// One channel for 10 s from 1 s on.
pub(crate) fn context() -> SourceContext {
    SourceContext {
        channels: 1,
        member: 0,
        members: 1,
        start: Time::from_nanos(1_000_000_000),
        stop: Time::from_nanos(11_000_000_000),
        seed: Seed::new(7, 0),
        place: "flow.test/0/source".to_owned(),
        speech: Vec::new().into(),
        custom: Custom::new(every_10_ms),
    }
}

pub(crate) fn build(kind: &str, given: &[(&'static str, Value)], context: &SourceContext) -> Box<dyn Source> {
    (find(kind).unwrap().1.build)(&values(kind, given), context).unwrap()
}

/// Everything that is due up to and including `now`, called as a driver calls.
pub(crate) fn produce_until(source: &mut dyn Source, now: Time, sent: &mut Vec<Sent>) {
    let mut buffer = MessageBuffer::with_headroom(40);
    while source.next_due().is_some_and(|due| due <= now) {
        buffer.clear();
        source.produce(now, &mut buffer);
        assert!(!buffer.messages().is_empty(), "due and nothing came");
        let messages = buffer.messages().iter();
        sent.extend(messages.map(|m| Sent { channel: m.channel, due: m.due, length: m.range.len() - 40 }));
    }
}

/// Everything that an open-loop source ever sends, each message on time.
pub(crate) fn run(source: &mut dyn Source) -> Vec<Sent> {
    let mut sent = Vec::new();
    while let Some(due) = source.next_due() {
        produce_until(source, due, &mut sent);
    }
    assert!(source.is_finished());
    sent
}
