//! Values of key columns: what tells the rows of a table apart.

use core::fmt;

/// One value of a key column: a number where the published table has one, else a word (`inf`, `hfifo`).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A finite number.
    Number(f64),
    /// Anything else.
    Word(String),
}

impl Value {
    /// A value as it stands in a CSV file.
    pub fn read(text: &str) -> Value {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Number(number),
            _ => Value::Word(text.to_owned()),
        }
    }

    /// Whether it is what a CSV file would write as `text`, or lies in that range: `2..12`, with both ends.
    pub fn is(&self, text: &str) -> bool {
        let range = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        match range {
            Some((from, to)) => self.number().is_some_and(|number: f64| (from..=to).contains(&number)),
            None => *self == Value::read(text),
        }
    }

    /// As a number; infinite for `inf`.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Word(word) => word.parse().ok(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Word(word) => f.pad(word),
        }
    }
}

/// The key columns of one row by name, in the table's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys(pub Vec<(&'static str, Value)>);

impl Keys {
    /// The value in a column.
    pub fn get(&self, column: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| *name == column).map(|(_, value)| value)
    }

    /// The value in a column as a number; infinite for `inf`.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.get(column)?.number()
    }

    /// Whether every one of these columns has that value or one in that range, as [`Value::is`] reads it.
    pub fn are<S: AsRef<str>>(&self, wanted: &[(S, S)]) -> bool {
        wanted
            .iter()
            .all(|(column, text)| self.get(column.as_ref()).is_some_and(|value| value.is(text.as_ref())))
    }

    /// The values alone, as a row of the table begins: `fifo, 1024, 7`.
    pub fn values(&self) -> String {
        let values: Vec<String> = self.0.iter().map(|(_, value)| value.to_string()).collect();
        values.join(", ")
    }

    /// Only these columns, in their order.
    pub(crate) fn only(&self, columns: &'static [String]) -> Keys {
        let kept = columns.iter().filter_map(|column| Some((column.as_str(), self.get(column)?.clone())));
        Keys(kept.collect())
    }
}

/// `discipline fifo, message_bytes 64`
impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (column, value)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{column} {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinity_is_a_word_that_counts_as_a_number() {
        assert_eq!(Value::read("inf"), Value::Word("inf".to_owned()));
        assert_eq!(Value::read("inf").number(), Some(f64::INFINITY));
        assert_eq!(Value::read("256"), Value::Number(256.0));
        assert_eq!(Value::read("256").to_string(), "256");
        assert_eq!(Value::read("hfifo").number(), None);
    }

    #[test]
    fn keys_are_compared_as_values_and_not_as_text() {
        let keys = Keys(vec![("window", Value::Number(7.0)), ("discipline", Value::read("fifo"))]);
        assert!(keys.are(&[("window", "7.0")]));
        assert!(!keys.are(&[("window", "7"), ("discipline", "hfifo")]));
        assert!(!keys.are(&[("absent", "7")]));
        assert!(keys.are(&[("window", "2..7")]) && keys.are(&[("window", "7..8")]));
        assert!(!keys.are(&[("window", "2..6")]) && !keys.are(&[("discipline", "2..12")]));
        assert_eq!(keys.to_string(), "window 7, discipline fifo");
        assert_eq!(keys.values(), "7, fifo");
    }
}
