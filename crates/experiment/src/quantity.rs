//! Reads single values: of the right kind, with their unit, within their range.

use core::fmt::Display;
use core::str::FromStr;
use std::sync::Arc;

use trunkline_core::schema::{Kind, Limit, Value};
use trunkline_core::series::Step;
use trunkline_core::{Bytes, Distribution, Duration, Rate, Ratio, Series};

use crate::files::Shelf;
use crate::link_profile::is_file;
use crate::problem::{Remark, suggestion};
use crate::schema::distribution::{DISTRIBUTIONS, DistributionKind, Part};
use crate::schema::{EVERY, SERIES};
use crate::tree::{Item, Node, Table};

/// Reads the value of `key`.
pub(crate) fn value(key: &str, node: &Node, kind: &Kind, shelf: &Shelf<'_>) -> Result<Value, Vec<Remark>> {
    let wrong = |problem: String| vec![Remark::new(node.span.clone(), problem)];
    if let (Kind::Durations { .. } | Kind::Sizes { .. }, Some(table)) = (kind, node.table()) {
        return drawn(key, node, table, kind, shelf).map(Value::Distribution);
    }
    if let Kind::OverTime(of) = kind {
        return match node.table() {
            Some(table) => over_time(key, node, table, of, shelf).map(Value::Series),
            None => match single(node, of) {
                // What else it could be is told too.
                Err(Wrong::Kind) => {
                    Err(wrong(format!("`{key}` must be {}, not {}", describe(kind), node.describe())))
                }
                _ => value(key, node, of, shelf),
            },
        };
    }
    if let (Kind::DeliveryTrace, Some(path)) = (kind, node.text().filter(|path| !path.trim().is_empty())) {
        let trace = shelf.delivery_trace(path);
        return trace.map(Value::DeliveryTrace).map_err(|problem| wrong(format!("`{path}` {problem}")));
    }
    single(node, kind).map_err(|problem| match problem {
        Wrong::Kind => wrong(format!("`{key}` must be {}, not {}", describe(kind), node.describe())),
        Wrong::Range(written) if written.trim().is_empty() => {
            wrong(format!("`{key}` must be {}, not an empty text", describe(kind)))
        }
        Wrong::Range(written) => wrong(format!("`{key}` must be {}, not `{written}`", describe(kind))),
        Wrong::Text(problem) => wrong(format!("`{key}`: {problem}")),
    })
}

/// Reads the text that a default is written as.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub fn default_value(text: &str, kind: &Kind) -> Result<Value, String> {
    let item = match kind {
        Kind::Integer { .. } => {
            text.parse().map(Item::Integer).map_err(|_| "is not a whole number".to_owned())
        }
        Kind::Number { .. } => text.parse().map(Item::Number).map_err(|_| "is not a number".to_owned()),
        Kind::Flag => text.parse().map(Item::Flag).map_err(|_| "is neither true nor false".to_owned()),
        _ => Ok(Item::Text(text.into())),
    }?;
    single(&Node { span: 0..0, item }, kind).map_err(|problem| match problem {
        Wrong::Kind => format!("is not {}", describe(kind)),
        Wrong::Range(written) => format!("is out of range: {written}"),
        Wrong::Text(problem) => problem,
    })
}

/// A fixed duration in nanoseconds or size in bytes, for a parameter that may also be drawn from a distribution.
pub(crate) fn fixed(text: &str, kind: &Kind) -> Result<u64, String> {
    let node = Node { span: 0..0, item: Item::Text(text.into()) };
    match single(&node, kind) {
        Ok(Value::Distribution(Distribution::Constant(value))) => Ok(value),
        Ok(_) | Err(Wrong::Kind) => Err(format!("expected {}", describe(kind))),
        Err(Wrong::Range(written)) => Err(format!("`{written}` is not {}", describe(kind))),
        Err(Wrong::Text(problem)) => Err(problem),
    }
}

/// Why a value is not what was expected.
enum Wrong {
    /// It is something else altogether.
    Kind,
    /// It is of the right kind and out of range; as written.
    Range(String),
    /// A sentence.
    Text(String),
}

fn single(node: &Node, kind: &Kind) -> Result<Value, Wrong> {
    match (kind, &node.item) {
        (Kind::OverTime(of), _) => single(node, of),
        (Kind::Duration { min, max }, Item::Text(text)) => ranged(text, *min, *max).map(Value::Duration),
        (Kind::Rate { min, max }, Item::Text(text)) => ranged(text, *min, *max).map(Value::Rate),
        (Kind::Bytes { min, max }, Item::Text(text)) => ranged(text, *min, *max).map(Value::Bytes),
        (Kind::Durations { min, max }, Item::Text(text)) => ranged::<Duration>(text, *min, *max)
            .map(|d| Value::Distribution(Distribution::Constant(d.as_nanos()))),
        (Kind::Sizes { min, max }, Item::Text(text)) => {
            ranged::<Bytes>(text, *min, *max).map(|b| Value::Distribution(Distribution::Constant(b.count())))
        }
        (Kind::Integer { min, max }, Item::Integer(value)) => match u64::try_from(*value) {
            Ok(small) if (*min..=*max).contains(&small) => Ok(Value::Integer(small)),
            _ => Err(Wrong::Range(value.to_string())),
        },
        (Kind::Number { min, max }, Item::Integer(_) | Item::Number(_)) => {
            let value = number(node);
            if (*min..=*max).contains(&value) {
                Ok(Value::Number(value))
            } else {
                Err(Wrong::Range(value.to_string()))
            }
        }
        (Kind::Ratio, Item::Text(text)) => text
            .parse()
            .map(Value::Ratio)
            .map_err(|e: trunkline_core::QuantityError| Wrong::Text(e.to_string())),
        (Kind::Ratio, Item::Integer(_) | Item::Number(_)) => {
            let value = number(node);
            Ratio::new(value).map(Value::Ratio).ok_or_else(|| Wrong::Range(value.to_string()))
        }
        (Kind::Flag, Item::Flag(flag)) => Ok(Value::Flag(*flag)),
        (Kind::Text, Item::Text(text)) => Ok(Value::Text(text.to_string())),
        (Kind::File | Kind::DeliveryTrace, Item::Text(text)) if text.trim().is_empty() => {
            Err(Wrong::Range(text.to_string()))
        }
        (Kind::File, Item::Text(text)) => Ok(Value::Text(text.to_string())),
        (Kind::Choice(choices), Item::Text(text)) => {
            if choices.iter().any(|choice| *choice.name == **text) {
                return Ok(Value::Text(text.to_string()));
            }
            let suggestion = suggestion(text, choices.iter().map(|choice| choice.name));
            Err(Wrong::Text(format!("`{text}` is not a known value{suggestion}")))
        }
        (Kind::ChoiceOrFile(_), Item::Text(text)) if is_file(text) => Ok(Value::Text(text.to_string())),
        (Kind::ChoiceOrFile(choices), Item::Text(_)) => {
            single(node, &Kind::Choice(choices)).map_err(|problem| match problem {
                Wrong::Text(problem) => Wrong::Text(problem + "; the path of a file ends in `.toml`"),
                other => other,
            })
        }
        (Kind::Limit, Item::Text(text)) => text
            .parse::<Limit>()
            .map(Value::Limit)
            .map_err(|e: trunkline_core::QuantityError| Wrong::Text(e.to_string())),
        _ => Err(Wrong::Kind),
    }
}

fn number(node: &Node) -> f64 {
    match node.item {
        Item::Integer(value) => value as f64,
        Item::Number(value) => value,
        _ => f64::NAN,
    }
}

fn ranged<T>(text: &str, min: T, max: T) -> Result<T, Wrong>
where
    T: FromStr<Err = trunkline_core::QuantityError> + PartialOrd,
{
    match text.parse::<T>() {
        Ok(value) if value < min || value > max => Err(Wrong::Range(text.to_owned())),
        Ok(value) => Ok(value),
        Err(e) => Err(Wrong::Text(e.to_string())),
    }
}

/// `{ kind = "exponential", mean = "10 ms" }`
fn drawn(
    key: &str,
    node: &Node,
    table: &Table,
    kind: &Kind,
    shelf: &Shelf<'_>,
) -> Result<Distribution, Vec<Remark>> {
    let at_table = |message: String| vec![Remark::new(node.span.clone(), message)];
    let Some(tag) = table.node("kind") else {
        let message = format!("the distribution of `{key}` lacks the key `kind`");
        return Err(at_table(message + &suggestion("", DISTRIBUTIONS.iter().map(|d| d.name))));
    };
    let named = tag.text().unwrap_or_default();
    let Some(distribution) = DISTRIBUTIONS.iter().find(|d| d.name == named) else {
        let suggestion = suggestion(named, DISTRIBUTIONS.iter().map(|d| d.name));
        let message = format!("the kind of a distribution cannot be {}{suggestion}", tag.describe());
        return Err(vec![Remark::new(tag.span.clone(), message)]);
    };
    let known = |key: &str| key == "kind" || distribution.parts.iter().any(|(name, _, _)| *name == key);
    let unknown = |entry: &crate::tree::Entry| {
        let suggestion = suggestion(&entry.key, distribution.parts.iter().map(|(name, _, _)| *name));
        let message = format!("unknown key `{}` of a distribution of kind `{named}`{suggestion}", entry.key);
        Remark::new(entry.key_span.clone(), message)
    };
    let mut remarks: Vec<Remark> = table.0.iter().filter(|e| !known(&e.key)).map(unknown).collect();
    let mut parts = Vec::new();
    for (name, part, _) in distribution.parts {
        let Some(node) = table.node(name) else {
            remarks.extend(at_table(format!("the distribution of `{key}` lacks the key `{name}`")));
            continue;
        };
        match part_of(name, *part, node, kind, shelf) {
            Ok(part) => parts.push(part),
            Err(more) => remarks.extend(more),
        }
    }
    if !remarks.is_empty() {
        return Err(remarks);
    }
    assemble(distribution, &parts).map_err(|problem| {
        vec![Remark::new(node.span.clone(), format!("the distribution of `{key}` {problem}"))]
    })
}

/// `{ kind = "steps", steps = [["0 s", "20 Mbit/s"], ["15 s", "5 Mbit/s"]], every = "30 s" }`
fn over_time(
    key: &str,
    node: &Node,
    table: &Table,
    of: &Kind,
    shelf: &Shelf<'_>,
) -> Result<Series, Vec<Remark>> {
    let at = |node: &Node, message: String| vec![Remark::new(node.span.clone(), message)];
    let Some(tag) = table.node("kind") else {
        let message = format!("the series of `{key}` lacks the key `kind`");
        return Err(at(node, message + &suggestion("", SERIES.iter().map(|kind| kind.name))));
    };
    let named = tag.text().unwrap_or_default();
    let Some(kind) = SERIES.iter().find(|kind| kind.name == named) else {
        let suggestion = suggestion(named, SERIES.iter().map(|kind| kind.name));
        return Err(at(tag, format!("the kind of a series cannot be {}{suggestion}", tag.describe())));
    };
    let known = ["kind", kind.steps.0, EVERY.0];
    if let Some(entry) = table.0.iter().find(|entry| !known.contains(&&*entry.key)) {
        let suggestion = suggestion(&entry.key, known);
        let message = format!("unknown key `{}` of a series of kind `{named}`{suggestion}", entry.key);
        return Err(vec![Remark::new(entry.key_span.clone(), message)]);
    }
    let every = match table.node(EVERY.0).map(|node| value(EVERY.0, node, &EVERY.2, shelf)).transpose()? {
        Some(Value::Duration(every)) => Some(every),
        _ => None,
    };
    let Some(written) = table.node(kind.steps.0) else {
        return Err(at(node, format!("the series of `{key}` lacks the key `{}`", kind.steps.0)));
    };
    if !kind.is_file {
        let steps = steps_of(written, of)?;
        return Series::new(steps, every).map_err(|problem| at(written, format!("`steps` {problem}")));
    }
    let Value::Text(path) = value(kind.steps.0, written, &Kind::File, shelf)? else {
        return Err(at(written, "`file` must be the path of a file".to_owned()));
    };
    let steps = shelf.steps(&path, of).map_err(|problem| at(written, format!("`{path}` {problem}")))?;
    Series::new(steps, every).map_err(|problem| at(written, format!("`{path}` {problem}")))
}

/// The largest time of a step.
const STEPS_WITHIN: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 86_400) };

/// `[["0 s", "20 Mbit/s"], ["15 s", "5 Mbit/s"]]`
fn steps_of(node: &Node, of: &Kind) -> Result<Vec<Step>, Vec<Remark>> {
    let example = match of {
        Kind::Rate { .. } => "[[\"0 s\", \"20 Mbit/s\"], [\"15 s\", \"5 Mbit/s\"]]",
        _ => "[[\"0 s\", \"20 ms\"], [\"15 s\", \"35 ms\"]]",
    };
    let wrong = |node: &Node| {
        let message = format!(
            "`steps` must be a list of pairs of a time and a value such as `{example}`, not {}",
            node.describe()
        );
        vec![Remark::new(node.span.clone(), message)]
    };
    let Item::Array(pairs) = &node.item else { return Err(wrong(node)) };
    let mut steps = Vec::with_capacity(pairs.len());
    let mut remarks = Vec::new();
    for pair in pairs {
        let Item::Array(parts) = &pair.item else { return Err(wrong(pair)) };
        let [from, value] = parts.as_slice() else {
            return Err(vec![Remark::new(
                pair.span.clone(),
                format!("a step must be a time and a value, not a list of {}", parts.len()),
            )]);
        };
        let mut read = |what: &str, node: &Node, kind: &Kind| {
            let (told, nanos_or_bits) = whole(what, node, kind);
            remarks.extend(told);
            nanos_or_bits
        };
        let from = read("the time of a step", from, &STEPS_WITHIN);
        let value = read("the value of a step", value, of);
        steps.push(Step { from: Duration::from_nanos(from), value });
    }
    if remarks.is_empty() { Ok(steps) } else { Err(remarks) }
}

/// A rate or a duration as a whole number, or what is wrong with it.
fn whole(what: &str, node: &Node, kind: &Kind) -> (Option<Remark>, u64) {
    let wrong = |problem: String| (Some(Remark::new(node.span.clone(), problem)), 0);
    match single(node, kind) {
        Ok(Value::Rate(rate)) => (None, rate.bits_per_second()),
        Ok(Value::Duration(duration)) => (None, duration.as_nanos()),
        Err(Wrong::Range(written)) => wrong(format!("{what} must be {}, not `{written}`", describe(kind))),
        Err(Wrong::Text(problem)) => wrong(format!("{what}: {problem}")),
        Ok(_) | Err(Wrong::Kind) => {
            wrong(format!("{what} must be {}, not {}", describe(kind), node.describe()))
        }
    }
}

/// Steps of a text, one per line: `15 s, 5 Mbit/s`. Errors continue the sentence "`rates.csv` ...".
pub(crate) fn steps_of_lines(text: &str, of: &Kind) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |problem: String| format!("has an error in line {number}: {problem}");
        let Some((from, value)) = line.split_once(',') else {
            let shown: String = line.chars().take(40).collect();
            return Err(wrong(format!(
                "expected a time and a value with a comma between them, such as `15 s, 5 Mbit/s`, not `{shown}`"
            )));
        };
        let read = |written: &str, bare: &str, kind: &Kind| {
            let written = written.trim();
            let is_bare = written.parse::<f64>().is_ok();
            let written = if is_bare { format!("{written} {bare}") } else { written.to_owned() };
            let node = Node { span: 0..0, item: Item::Text(written.into()) };
            let (problem, value) = whole("the value", &node, kind);
            problem.map_or(Ok(value), |remark| Err(wrong(remark.message)))
        };
        let bare = if matches!(of, Kind::Rate { .. }) { "bit/s" } else { "us" };
        let (from, value) = (read(from, "s", &STEPS_WITHIN)?, read(value, bare, of)?);
        steps.push(Step { from: Duration::from_nanos(from), value });
    }
    Ok(steps)
}

/// A part of a distribution that was read.
enum Read {
    Fixed(u64),
    /// A probability, or a shape.
    Number(f64),
    Trace(Arc<[u64]>),
}

fn part_of(name: &str, part: Part, node: &Node, kind: &Kind, shelf: &Shelf<'_>) -> Result<Read, Vec<Remark>> {
    let read = match part {
        Part::Value => match value(name, node, kind, shelf)? {
            Value::Distribution(Distribution::Constant(value)) => Some(Read::Fixed(value)),
            _ => None,
        },
        Part::Probability => match value(name, node, &Kind::Ratio, shelf)? {
            Value::Ratio(share) => Some(Read::Number(share.value())),
            _ => None,
        },
        Part::Shape => match value(name, node, &part.kind(*kind), shelf)? {
            Value::Number(shape) => Some(Read::Number(shape)),
            _ => None,
        },
        Part::File => match value(name, node, &Kind::File, shelf)? {
            Value::Text(path) => {
                let trace = shelf.trace(&path, kind);
                let wrong = |problem| vec![Remark::new(node.span.clone(), format!("`{path}` {problem}"))];
                Some(Read::Trace(trace.map_err(wrong)?))
            }
            _ => None,
        },
    };
    read.ok_or_else(|| vec![Remark::new(node.span.clone(), format!("`{name}` must be one fixed value"))])
}

fn assemble(distribution: &DistributionKind, parts: &[Read]) -> Result<Distribution, String> {
    match (distribution.name, parts) {
        ("constant", [Read::Fixed(value)]) => Ok(Distribution::Constant(*value)),
        ("exponential", [Read::Fixed(mean)]) => Ok(Distribution::Exponential { mean: *mean }),
        ("uniform", [Read::Fixed(min), Read::Fixed(max)]) if min > max => {
            Err("has a `min` above its `max`".to_owned())
        }
        ("uniform", [Read::Fixed(min), Read::Fixed(max)]) => {
            Ok(Distribution::Uniform { min: *min, max: *max })
        }
        ("normal", [Read::Fixed(mean), Read::Fixed(deviation)]) => {
            Ok(Distribution::Normal { mean: *mean, deviation: *deviation })
        }
        ("pareto", [Read::Fixed(0), ..]) => Err("needs a `min` above 0".to_owned()),
        ("pareto", [Read::Fixed(min), Read::Fixed(max), _]) if min > max => {
            Err("has a `min` above its `max`".to_owned())
        }
        ("pareto", [Read::Fixed(min), Read::Fixed(max), Read::Number(shape)]) => {
            Ok(Distribution::Pareto { min: *min, max: *max, shape: *shape })
        }
        ("bivalue", [Read::Fixed(first), Read::Fixed(second), Read::Number(probability)]) => {
            Ok(Distribution::Bivalue { first: *first, second: *second, probability: *probability })
        }
        ("empirical", [Read::Trace(values)]) => Ok(Distribution::Empirical(Arc::clone(values))),
        ("trace", [Read::Trace(values)]) => Ok(Distribution::Trace(Arc::clone(values))),
        (name, _) => Err(format!("of kind `{name}` cannot be read")),
    }
}

/// What a parameter takes, with its range: "a rate from 1 bit/s to 1000 Gbit/s".
pub(crate) fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Duration { min, max } => format!("a duration{}", range(min, max, *max == Duration::MAX)),
        Kind::Durations { min, max } => {
            format!("a duration{} or a distribution of durations", range(min, max, *max == Duration::MAX))
        }
        Kind::Rate { min, max } => {
            format!("a rate{}", range(min, max, max.bits_per_second() == u64::MAX))
        }
        Kind::Bytes { min, max } => format!("a size{}", range(&exact(*min), &exact(*max), max.0 == u64::MAX)),
        Kind::Sizes { min, max } => {
            format!(
                "a size{} or a distribution of sizes",
                range(&exact(*min), &exact(*max), max.0 == u64::MAX)
            )
        }
        Kind::Integer { min, max } => format!("a whole number{}", range(min, max, *max == u64::MAX)),
        Kind::Number { min, max } => format!("a number{}", range(min, max, max.is_infinite())),
        Kind::Ratio => "a share from `0 %` to `100 %` (or 0 to 1)".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Text => "a text".to_owned(),
        Kind::File => "the path of a file".to_owned(),
        Kind::DeliveryTrace => "the path of a packet-delivery trace".to_owned(),
        Kind::Choice(choices) => {
            format!("one of {}", crate::problem::enumerate(choices.iter().map(|choice| choice.name)))
        }
        Kind::ChoiceOrFile(choices) => format!(
            "one of {} or the path of a file that ends in `.toml`",
            crate::problem::enumerate(choices.iter().map(|choice| choice.name))
        ),
        Kind::OverTime(of) => format!("{} or a series of them over time", describe(of)),
        Kind::Limit => "a limit such as `100 packets` or `64 KiB`".to_owned(),
    }
}

/// A size without rounding.
pub fn exact(size: Bytes) -> String {
    let short = size.to_string();
    if short.parse() == Ok(size) { short } else { format!("{} B", size.count()) }
}

fn range(min: &impl Display, max: &impl Display, endless: bool) -> String {
    if endless { format!(" of at least {min}") } else { format!(" from {min} to {max}") }
}

/// The unit in which a list of quantities is drawn on an axis, and the numbers: the unit of the first one that is not
/// zero. `None` if they are not all quantities of the kind.
pub(crate) fn axis(kind: &Kind, nodes: &[Node]) -> Option<(String, Vec<f64>)> {
    let texts = || nodes.iter().map(Node::text).collect::<Option<Vec<&str>>>();
    match kind {
        Kind::OverTime(of) => axis(of, nodes),
        Kind::Integer { .. } | Kind::Number { .. } => {
            let numbers: Vec<f64> = nodes.iter().map(number).collect();
            numbers.iter().all(|n| n.is_finite()).then_some((String::new(), numbers))
        }
        Kind::Ratio => {
            let share = |node: &Node| match single(node, kind) {
                Ok(Value::Ratio(share)) => Some(share.value() * 100.0),
                _ => None,
            };
            Some(("%".to_owned(), nodes.iter().map(share).collect::<Option<_>>()?))
        }
        Kind::Duration { .. } | Kind::Durations { .. } => scaled::<Duration>(&texts()?, |d| d.as_nanos()),
        Kind::Rate { .. } => {
            let (unit, numbers) = scaled::<Rate>(&texts()?, |r| r.bits_per_second())?;
            // `64kbit` is tc's way to write it; a figure says `kbit/s`.
            Some((if unit.ends_with("/s") { unit } else { unit + "/s" }, numbers))
        }
        Kind::Bytes { .. } | Kind::Sizes { .. } => scaled::<Bytes>(&texts()?, |b| b.count()),
        Kind::Limit => {
            let limits: Vec<Limit> = texts()?.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?;
            let packets: Option<Vec<f64>> = limits
                .iter()
                .map(|limit| if let Limit::Packets(n) = limit { Some(*n as f64) } else { None })
                .collect();
            match packets {
                Some(packets) => Some(("packets".to_owned(), packets)),
                None => scaled::<Bytes>(&texts()?, |b| b.count()),
            }
        }
        Kind::Flag
        | Kind::Text
        | Kind::File
        | Kind::DeliveryTrace
        | Kind::Choice(_)
        | Kind::ChoiceOrFile(_) => None,
    }
}

fn scaled<T: FromStr>(texts: &[&str], count: fn(T) -> u64) -> Option<(String, Vec<f64>)> {
    let counts: Vec<u64> = texts.iter().map(|text| text.parse().ok().map(count)).collect::<Option<_>>()?;
    let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
    let unit = texts
        .get(first)?
        .trim()
        .trim_start_matches(|c: char| !c.is_alphabetic())
        .trim_start_matches(['e', 'E']);
    let unit = unit.trim_start_matches(|c: char| !c.is_alphabetic());
    let one = format!("1 {unit}").parse().ok().map(count).filter(|n| *n > 0)?;
    Some((unit.to_owned(), counts.iter().map(|n| *n as f64 / one as f64).collect()))
}
