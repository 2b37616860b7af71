//! Swept values as people read them: the same in results, reports and the drawing.

use crate::model::Axis;

impl Axis {
    /// A value of the axis as people read it ([`shown_among`]); `None` if there is no such choice.
    pub fn shown(&self, choice: usize) -> Option<String> {
        self.values.get(choice).map(|value| shown_among(&self.values, value))
    }
}

/// One of several swept values as people read it: of a list its items, of a table its kind and its values, `fifo 600 KB` for
/// `{ kind = "fifo", limit = "600 KB" }`. A table that another value would be shown like keeps its keys.
pub fn shown_among(values: &[String], value: &str) -> String {
    let brief = written_out(value, false);
    let is_unclear = || values.iter().any(|other| other != value && written_out(other, false) == brief);
    // Only tables lose their keys.
    let is_table = value.trim_start().starts_with('{');
    if is_table && is_unclear() { written_out(value, true) } else { brief }
}

/// A swept value; with the name of every key if asked for, even where a value says what it is.
fn written_out(value: &str, with_keys: bool) -> String {
    if let Some(list) = value.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
        && !list.contains(['{', '['])
    {
        let items: Vec<&str> = list.split(',').map(|item| item.trim().trim_matches('"')).collect();
        return items.join(", ");
    }
    let Some(inner) = value.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return value.to_owned();
    };
    let mut parts = Vec::new();
    for part in inner.split(',') {
        // A table within the table, or a list: better as it stands.
        let Some((key, value)) = part.split_once('=').filter(|_| !inner.contains(['{', '['])) else {
            return value.to_owned();
        };
        parts.push((key.trim(), value.trim().trim_matches('"')));
    }
    let kind = parts.iter().position(|(key, _)| *key == "kind").map(|place| parts.remove(place).1);
    let rest = match (kind, parts.as_slice()) {
        // A bare number or a flag does not tell what it is.
        (Some(_), [(_, only)])
            if !with_keys && only.parse::<f64>().is_err() && only.parse::<bool>().is_err() =>
        {
            (*only).to_owned()
        }
        _ => parts.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", "),
    };
    [kind.unwrap_or_default(), &rest].join(" ").trim().to_owned()
}
