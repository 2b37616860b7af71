//! The experiment file with the values of a search in its sweep: what is measured, and what is stored as the run's file.

use std::cmp::Ordering;

use toml_edit::{Array, DocumentMut, Item, Key, Table, TableLike, Value};

/// An experiment file in which one key's values are still open.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    document: DocumentMut,
    key: String,
    against: Option<String>,
}

impl Sheet {
    /// The file's text with `against` swept over these values; what it sweeps of `key` itself is left out.
    ///
    /// # Errors
    /// If the text is not TOML, or its sweep is not a table: an experiment that was read is neither.
    pub(crate) fn new(text: &str, key: &str, against: Option<(&str, &[String])>) -> Result<Sheet, String> {
        let document = text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
        let against_key = against.map(|(key, _)| key.to_owned());
        let mut sheet = Sheet { document, key: key.to_owned(), against: against_key };
        sheet.document.entry("sweep").or_insert_with(|| Item::Table(Table::new()));
        let sweep = sheet.sweep().ok_or("`sweep` must be a table")?;
        remove(sweep, key);
        if let Some((key, values)) = against {
            remove(sweep, key);
            sweep.insert(key, Item::Value(values.iter().map(|value| guessed(value)).collect()));
        }
        Ok(sheet)
    }

    /// The text with these literals as the first axis of the sweep, and what it is held against as the second.
    pub(crate) fn with(&self, literals: &[String]) -> String {
        let mut filled = self.clone();
        let values: Array = literals.iter().map(|literal| guessed(literal)).collect();
        if let Some(sweep) = filled.sweep() {
            sweep.insert(&self.key, Item::Value(Value::Array(values)));
        }
        let rank = |key: &Key| match key.get() {
            name if name == self.key => 0,
            name if Some(name) == self.against.as_deref() => 1,
            _ => 2,
        };
        let order = |a: &Key, b: &Key| -> Ordering { rank(a).cmp(&rank(b)) };
        match filled.document.get_mut("sweep") {
            Some(Item::Table(sweep)) => sweep.sort_values_by(|a, _, b, _| order(a, b)),
            Some(Item::Value(Value::InlineTable(sweep))) => sweep.sort_values_by(|a, _, b, _| order(a, b)),
            _ => {}
        }
        filled.document.to_string()
    }

    fn sweep(&mut self) -> Option<&mut dyn TableLike> {
        self.document.get_mut("sweep")?.as_table_like_mut()
    }
}

/// Removes a dotted key, whether it is quoted or a path of tables.
fn remove(table: &mut dyn TableLike, key: &str) {
    table.remove(key);
    for (name, item) in table.iter_mut() {
        let rest = key.strip_prefix(name.get()).and_then(|rest| rest.strip_prefix('.'));
        if let (Some(rest), Some(inner)) = (rest, item.as_table_like_mut()) {
            remove(inner, rest);
        }
    }
}

/// A number, a flag or a table as such, everything else as a text.
fn guessed(value: &str) -> Value {
    value.trim().parse().unwrap_or_else(|_| Value::from(value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, against: Option<(&str, &[String])>) -> String {
        let literals = ["1".to_owned(), "\"64 KiB\"".to_owned()];
        Sheet::new(text, "flow.voice.count", against).unwrap_or_else(|e| panic!("{e}")).with(&literals)
    }

    #[test]
    fn the_searched_key_comes_first_and_the_rest_stays() {
        let text = "name = \"x\" # why\n\n[sweep]\n\"link.a.rate\" = [\"1 Mbit/s\"] # slow\n\"flow.voice.count\" = [1]\n";
        assert_eq!(
            filled(text, None),
            "name = \"x\" # why\n\n[sweep]\n\"flow.voice.count\" = [1, \"64 KiB\"]\n\"link.a.rate\" = [\"1 Mbit/s\"] # slow\n"
        );
    }

    #[test]
    fn every_way_to_write_a_sweep_is_understood() {
        let sweep = "\"flow.voice.count\" = [1, \"64 KiB\"]";
        assert_eq!(filled("name = \"x\"\n", None), format!("name = \"x\"\n\n[sweep]\n{sweep}\n"));
        for text in [
            "[sweep.flow]\nvoice.count = [7]\n",
            "[sweep]\nflow.voice.count = [7]\n",
            "sweep = { \"flow.voice.count\" = [7] }\n",
            "sweep.flow.voice.count = [7]\n",
        ] {
            let filled = filled(text, None);
            assert!(filled.contains(sweep) && !filled.contains('7'), "{filled}");
        }
    }

    #[test]
    fn what_it_is_held_against_is_the_second_axis() {
        let values = ["32".to_owned(), "64 KiB".to_owned(), " udp".to_owned()];
        let text = filled("[sweep]\n\"a.b\" = [1]\n", Some(("link.trunk.mbs", &values)));
        assert_eq!(
            text,
            "[sweep]\n\"flow.voice.count\" = [1, \"64 KiB\"]\n\"link.trunk.mbs\" = [32, \"64 KiB\", \"udp\"]\n\"a.b\" = [1]\n"
        );
    }
}
