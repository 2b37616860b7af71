//! Values as a person writes them.

use serde_json::Value;

use super::outline::Tree;
use super::{EditError, Section};
use crate::schema::distribution::DISTRIBUTIONS;
use crate::schema::{Key, SINK, Schema, Shape};

/// Lists that would be longer are written with one value on a line.
const LONGEST_LINE: usize = 100;

/// A value on one line, or a long list on several.
pub(super) fn value(schema: &Schema, value: &Value) -> Result<String, EditError> {
    Ok(match value {
        Value::Null => {
            return Err(EditError::Value("TOML has no null; remove the key instead".to_owned()));
        }
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => whole.to_string(),
            (_, Some(large), _) => {
                return Err(EditError::Value(format!(
                    "{large} is too large a number for TOML; expected at most {}",
                    i64::MAX
                )));
            }
            (_, _, Some(number)) => toml::Value::Float(number).to_string(),
            _ => return Err(EditError::Value(format!("TOML cannot represent the number {number}"))),
        },
        Value::String(text) => self::text(text),
        Value::Array(values) => {
            let values: Vec<String> =
                values.iter().map(|value| self::value(schema, value)).collect::<Result<_, _>>()?;
            let line = format!("[{}]", values.join(", "));
            match line.chars().count() > LONGEST_LINE && !line.contains('\n') {
                true => format!("[\n{}]", values.iter().map(|v| format!("    {v},\n")).collect::<String>()),
                false => line,
            }
        }
        Value::Object(table) => {
            let pair = |(name, value): (&String, &Value)| {
                Ok(format!("{} = {}", key(name), self::value(schema, value)?))
            };
            let pairs: Vec<String> =
                ordered(schema, None, table).into_iter().map(pair).collect::<Result<_, _>>()?;
            if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
    })
}

/// A text in quotation marks, on one line.
pub(super) fn text(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for c in text.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            c if c.is_control() => written.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

/// A key, in quotation marks where it needs them.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { text(name) }
}

/// The entries of a table in the order of the reference: JSON has none.
pub(super) fn ordered<'t>(
    schema: &Schema,
    section: Option<Section>,
    table: &'t Tree,
) -> Vec<(&'t String, &'t Value)> {
    let own: Vec<&Key> = match section {
        Some(Section::Hosts) => schema.host.iter().collect(),
        Some(Section::Flow) => schema.flow.iter().collect(),
        Some(Section::Bundle) => schema.bundle.iter().collect(),
        Some(Section::Link) => {
            let parts = schema.link.iter().filter(|key| is_part(key));
            let whole = schema.link.iter().filter(|key| !is_part(key));
            whole.chain(schema.shared.iter().chain(&schema.direction).flatten()).chain(parts).collect()
        }
        None => Vec::new(),
    };
    let inner = inner_order(schema);
    let rank = |name: &str| match section {
        Some(_) => own.iter().position(|key| key.name == name),
        None => inner.iter().position(|other| *other == name),
    };
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| rank(name).unwrap_or(usize::MAX));
    entries
}

fn is_part(key: &Key) -> bool {
    matches!(key.shape, Shape::Direction | Shape::Stations)
}

/// The names of keys within keys, in the order in which they are declared.
fn inner_order(schema: &Schema) -> Vec<&'static str> {
    let mut names = vec!["kind", "host"];
    names.extend(SINK.iter().map(|parameter| parameter.name));
    names.extend(DISTRIBUTIONS.iter().flat_map(|kind| kind.parts.iter().map(|(name, _, _)| *name)));
    for key in schema.flow.iter().chain(schema.direction.iter().flatten()) {
        match &key.shape {
            Shape::OneOf(one_of) => {
                let parameters = one_of.alternatives.iter().flat_map(|alternative| alternative.parameters);
                names.extend(parameters.map(|parameter| parameter.name));
            }
            _ => names.push(key.name),
        }
    }
    names
}
