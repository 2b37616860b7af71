//! Which published cells are in doubt.
//!
//! `flagged_cells.csv` names rows in a short hand: words and numbers that key columns hold (`hfifo`, `500`), products of
//! two neighbouring ones (`256*7`), and a column's name or a part of it with values (`message=13`,
//! `message_bytes=60..256`); `and` joins alternatives, `all` means every row. A row must agree with everything that is
//! said of it. What is said in other words selects nothing.

use crate::results::Doubt;
use crate::value::{Keys, Value};

/// The flags of one study.
#[derive(Debug)]
pub(crate) struct Flags(Vec<Flag>);

#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) table: String,
    pub(crate) rows: String,
    columns: Vec<String>,
    pub(crate) doubt: Doubt,
}

impl Flags {
    /// Reads `flagged_cells.csv`; flags that leave no doubt about the value are left out.
    pub(crate) fn read(text: &str) -> Result<Flags, String> {
        let mut flags = Vec::new();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        let place = |name: &str| {
            let found = header.iter().position(|column| column == name);
            found.ok_or_else(|| format!("the flagged cells have no column `{name}`"))
        };
        let places = [place("file")?, place("row")?, place("column")?, place("kind")?, place("confidence")?];
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let [file, row, column, kind, confidence] = places.map(|place| record.get(place).unwrap_or(""));
            let doubt = match (kind, confidence) {
                (_, "doubtful") => Doubt::Doubtful,
                ("source_suspect", _) => Doubt::Suspect,
                _ => continue,
            };
            flags.push(Flag {
                table: file.strip_suffix(".csv").unwrap_or(file).to_owned(),
                rows: row.to_owned(),
                columns: column.split(',').map(|column| column.trim().to_owned()).collect(),
                doubt,
            });
        }
        Ok(Flags(flags))
    }

    /// The greatest doubt about a cell.
    pub(crate) fn doubt(&self, table: &str, keys: &Keys, column: &str) -> Doubt {
        let about = self.0.iter().filter(|flag| flag.table == table && flag.names(column));
        about.filter(|flag| selects(&flag.rows, keys)).map(|flag| flag.doubt).max().unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> core::slice::Iter<'_, Flag> {
        self.0.iter()
    }
}

impl Flag {
    pub(crate) fn names(&self, column: &str) -> bool {
        self.columns.iter().any(|named| named == column || named == "all")
    }
}

/// Whether the short hand selects the row with these keys.
pub(crate) fn selects(rows: &str, keys: &Keys) -> bool {
    // What must hold, each with its alternatives: `512*3 and 512*7`.
    let mut demands: Vec<bool> = Vec::new();
    let (mut subject, mut or) = ("", false);
    for word in rows.split_whitespace() {
        if word == "and" {
            or = true;
            continue;
        }
        let (named, value) = word.split_once('=').map_or((None, word), |(name, value)| (Some(name), value));
        if !or || named.is_some() {
            subject = named.unwrap_or("");
        }
        let holds = agrees(subject, value, keys);
        match demands.last_mut() {
            Some(so_far) if or => *so_far |= holds,
            _ => demands.push(holds),
        }
        or = false;
    }
    !demands.is_empty() && demands.into_iter().all(|holds| holds)
}

/// Whether a column with `subject` in its name (any column if it is empty) has the value.
fn agrees(subject: &str, value: &str, keys: &Keys) -> bool {
    if subject.is_empty() && value == "all" {
        return true;
    }
    if let Some((first, second)) = value.split_once('*') {
        let product = [Value::read(first), Value::read(second)];
        return keys.0.windows(2).any(|pair| pair.iter().map(|(_, have)| have).eq(&product));
    }
    let is_meant = |column: &str| {
        subject.is_empty() || column == subject || column.split('_').any(|part| part == subject)
    };
    keys.0.iter().any(|(column, have)| is_meant(column) && have.is(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(discipline: &str, block: f64, blocks: f64, conversations: f64) -> Keys {
        Keys(vec![
            ("discipline", Value::read(discipline)),
            ("window_block_bytes", Value::Number(block)),
            ("window_blocks", Value::Number(blocks)),
            ("conversations", Value::Number(conversations)),
        ])
    }

    #[test]
    fn every_word_of_the_short_hand_must_hold() {
        let rows = "rrobin 256*7 conversations=1";
        assert!(selects(rows, &keys("rrobin", 256.0, 7.0, 1.0)));
        assert!(!selects(rows, &keys("fifo", 256.0, 7.0, 1.0)));
        assert!(!selects(rows, &keys("rrobin", 256.0, 3.0, 1.0)));
        assert!(!selects(rows, &keys("rrobin", 256.0, 7.0, 4.0)));
    }

    #[test]
    fn alternatives_ranges_and_all_rows_are_understood() {
        let at = |message: f64| Keys(vec![("message_bytes", Value::Number(message))]);
        assert!(selects("message=512 and 768", &at(768.0)));
        assert!(!selects("message=512 and 768", &at(769.0)));
        assert!(selects("message=60..256", &at(256.0)));
        assert!(!selects("message_bytes=60..256", &at(257.0)));
        assert!(selects("all", &at(1.0)));
        assert!(selects("rrobin 512*3 and 512*7", &keys("rrobin", 512.0, 7.0, 4.0)));
        assert!(!selects("rrobin 512*3 and 512*7", &keys("rrobin", 1024.0, 7.0, 4.0)));
        assert!(!selects("1024*7 title", &keys("fifo", 1024.0, 7.0, 4.0)), "no row is called `title`");
        assert!(!selects("", &at(1.0)));
    }
}
