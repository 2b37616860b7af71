//! Swept values by their ends: `{ from = "10 ms", to = "200 ms", step = "10 ms" }`, or with steps that grow.

use crate::problem::Remark;
use crate::searchable::Searchable;
use crate::sweep::{MOST_POINTS, Sweepable};
use crate::tree::{Item, Node, Table};

/// The keys of a range, with what they mean.
pub const KEYS: &[(&str, &str)] = &[
    ("from", "The first value."),
    ("to", "The upper bound: the last value, if the steps reach it exactly."),
    ("step", "Difference between consecutive values."),
    ("factor", "Ratio of consecutive values, a number above 1."),
    ("points", "Number of values, including both ends."),
    (
        "scale",
        "With `points`: `linear` (the default), or `logarithmic` for equal ratios, rounded to three digits.",
    ),
];

/// Steps of a range; one of them must be given.
const STEPS: [&str; 3] = ["step", "factor", "points"];

/// Whether a table stands for a range of values. A flow has keys that are called `from` and `to`, whose swept values are
/// lists.
pub(crate) fn is_range(table: &Table) -> bool {
    let is_one =
        |key: &str| table.node(key).is_some_and(|node| !matches!(node.item, Item::Array(_) | Item::Table(_)));
    is_one("from") && is_one("to") || STEPS.into_iter().any(is_one)
}

/// The values of a range of a key, as nodes and as texts.
pub(crate) fn values(
    key: &str,
    node: &Node,
    table: &Table,
    of: &Sweepable,
) -> Result<(Vec<Node>, Vec<String>), Vec<Remark>> {
    let wrong = |node: &Node, message: String| vec![Remark::new(node.span.clone(), message)];
    let Some(line) = of.kind.and_then(|kind| Searchable::of(key, kind)) else {
        return Err(wrong(
            node,
            format!("`{key}` is not numeric, so it cannot have a range; list its values"),
        ));
    };
    let unknown = table.0.iter().find(|entry| !KEYS.iter().any(|(name, _)| *name == &*entry.key));
    if let Some(entry) = unknown {
        let message = format!(
            "unknown key `{}` in a range; expected `from`, `to` and one of `step` (the difference), `factor` (the ratio) and \
             `points` (the number of values, with `scale`)",
            entry.key.escape_debug()
        );
        return Err(vec![Remark::new(entry.key_span.clone(), message)]);
    }
    let end = |name: &str| {
        table.node(name).ok_or_else(|| wrong(node, format!("the range of `{key}` lacks the key `{name}`")))
    };
    let (from, to) = (end("from")?, end("to")?);
    let begin = written(from, &line);
    let line = line.in_unit_of(&begin);
    let grains = |node: &Node| line.parse(&written(node, &line)).map_err(|message| wrong(node, message));
    let (first, last) = (grains(from)?, grains(to)?);
    if first > last {
        return Err(wrong(
            to,
            format!("the range of `{key}` ends before it begins; the smaller end is `from`"),
        ));
    }
    let given: Vec<(&str, &Node)> =
        STEPS.into_iter().filter_map(|name| Some((name, table.node(name)?))).collect();
    let [(name, by)] = given.as_slice() else {
        let message = match given.as_slice() {
            [] => format!("the range of `{key}` needs one of `step`, `factor` and `points`"),
            [(first, _), (second, _), ..] => {
                format!(
                    "the range of `{key}` has `{first}` and `{second}`; keep one of `step`, `factor` and `points`"
                )
            }
            [_] => unreachable!("one is a range's step"),
        };
        return Err(wrong(given.get(1).map_or(node, |(_, second)| second), message));
    };
    let scale = table.node("scale").filter(|_| *name != "points");
    if let Some(scale) = scale {
        return Err(wrong(scale, "`scale` applies to `points` only; omit it".to_owned()));
    }
    let values = match *name {
        "step" => steps(&line, (first, last), by),
        "factor" => factors(&line, (first, last), by),
        _ => points(&line, (first, last), by, table.node("scale")),
    };
    let values = values.map_err(|(at, message)| wrong(at.unwrap_or(node), message))?;
    let one = |value: &u64| Node { span: node.span.clone(), item: line.item(*value) };
    Ok((values.iter().map(one).collect(), values.iter().map(|value| line.written(*value)).collect()))
}

/// Values, or what is wrong, and where if not with the range as a whole.
type Values<'n> = Result<Vec<u64>, (Option<&'n Node>, String)>;

fn steps<'n>(line: &Searchable, (first, last): (u64, u64), by: &'n Node) -> Values<'n> {
    let step = line.read(&written(by, line)).filter(|step| *step > 0);
    let step = step.ok_or_else(|| {
        let usual = line.written(line.unit_grains());
        (Some(by), format!("`step` must be an amount above zero such as `{usual}`, not {}", by.describe()))
    })?;
    few(((last - first) / step).saturating_add(1))?;
    Ok((0..)
        .map(|n| first.saturating_add(step.saturating_mul(n)))
        .take_while(|value| *value <= last)
        .collect())
}

fn factors<'n>(line: &Searchable, (first, last): (u64, u64), by: &'n Node) -> Values<'n> {
    let factor = number(by).filter(|factor| *factor > 1.0 && factor.is_finite());
    let factor = factor
        .ok_or_else(|| (Some(by), format!("`factor` must be a number above 1, not {}", by.describe())))?;
    from_above_zero(first, line)?;
    few(1 + libm::floor(libm::log(last as f64 / first as f64) / libm::log(factor)) as u64)?;
    let value = |n: u32| libm::round(first as f64 * libm::pow(factor, f64::from(n)));
    let values = (0..).map(value).take_while(|value| *value <= last as f64);
    Ok(once_each(values.map(|value| value as u64)))
}

fn points<'n>(
    line: &Searchable,
    (first, last): (u64, u64),
    by: &'n Node,
    scale: Option<&'n Node>,
) -> Values<'n> {
    let count = if let Item::Integer(count) = by.item { u64::try_from(count).ok() } else { None };
    let count = count.filter(|count| *count >= 2).ok_or_else(|| {
        (Some(by), format!("`points` must be a whole number of at least 2, not {}", by.describe()))
    })?;
    few(count)?;
    let share = |n: u64| n as f64 / (count - 1) as f64;
    let value = match scale.map_or(Some("linear"), Node::text) {
        Some("linear") => {
            let span = (last - first) as f64;
            Box::new(move |n: u64| first + libm::round(span * share(n)) as u64) as Box<dyn Fn(u64) -> u64>
        }
        Some("logarithmic") => {
            from_above_zero(first, line)?;
            let (ratio, grain) = (last as f64 / first as f64, line.is_count());
            Box::new(move |n: u64| match n {
                0 => first,
                n if n == count - 1 => last,
                n => {
                    let exact = first as f64 * libm::pow(ratio, share(n));
                    (if grain { libm::round(exact) } else { three_digits(exact) }) as u64
                }
            })
        }
        _ => {
            let scale = scale.unwrap_or(by);
            let message = format!("`scale` must be `linear` or `logarithmic`, not {}", scale.describe());
            return Err((Some(scale), message));
        }
    };
    let values = once_each((0..count).map(value));
    match values.len() as u64 {
        different if different == count => Ok(values),
        different => Err((
            Some(by),
            format!(
                "`points` is {count}, but the range has {different} different values; expected at most as many"
            ),
        )),
    }
}

fn few<'n>(count: u64) -> Result<(), (Option<&'n Node>, String)> {
    match count {
        _ if count <= MOST_POINTS => Ok(()),
        _ => Err((None, format!("the range has {count} values; the maximum is {MOST_POINTS}"))),
    }
}

fn from_above_zero<'n>(first: u64, line: &Searchable) -> Result<(), (Option<&'n Node>, String)> {
    match first {
        0 => Err((None, format!("growing steps need a `from` above `{}`", line.written(0)))),
        _ => Ok(()),
    }
}

/// Values that rounding has made equal count once.
fn once_each(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.dedup();
    values
}

fn three_digits(value: f64) -> f64 {
    let digit = libm::pow(10.0, libm::floor(libm::log10(value.max(1.0))) - 2.0);
    if digit < 1.0 { libm::round(value) } else { libm::round(value / digit) * digit }
}

/// A value as a text with its unit.
fn written(node: &Node, line: &Searchable) -> String {
    match node.item {
        Item::Text(ref text) => text.to_string(),
        _ => match number(node) {
            Some(share) if line.is_share() => format!("{} %", share * 100.0),
            Some(number) => number.to_string(),
            None => node.describe(),
        },
    }
}

fn number(node: &Node) -> Option<f64> {
    match node.item {
        Item::Integer(value) => Some(value as f64),
        Item::Number(value) => Some(value),
        _ => None,
    }
}
