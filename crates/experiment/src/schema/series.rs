//! Values over time that a rate or a delay can have.

use trunkline_core::Duration;
use trunkline_core::schema::Kind;

/// A value over time: `{ kind = "steps", steps = [["0 s", "20 Mbit/s"], ["15 s", "5 Mbit/s"]], every = "30 s" }`.
pub struct SeriesKind {
    /// Its `kind`.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// The key that has the steps, and its documentation.
    pub steps: (&'static str, &'static str),
    /// True if that key names a file.
    pub is_file: bool,
}

/// Every series that a file can name. A plain value is always the same.
pub const SERIES: &[SeriesKind] = &[
    SeriesKind {
        name: "steps",
        doc: "Values that change at given times, each of which holds until the next time.",
        steps: (
            "steps",
            "A list of times since the start of the run and values, the first at 0 s, such as `[[\"0 s\", \"20 Mbit/s\"], \
             [\"15 s\", \"5 Mbit/s\"]]`.",
        ),
        is_file: false,
    },
    SeriesKind {
        name: "series",
        doc: "The same from a text file, such as one of measured values.",
        steps: (
            "file",
            "Its path, relative to the experiment file: a time and a value per line with a comma between them, such as \
             `15 s, 5 Mbit/s`, the first at 0. A bare number is in seconds, bit/s or microseconds; empty lines and text \
             after a `#` are ignored.",
        ),
        is_file: true,
    },
];

/// The key of every series after which it repeats, its documentation, and what it takes.
pub const EVERY: (&str, &str, Kind) = (
    "every",
    "Time after which the steps repeat from the first, longer than that of the last step. Without this key, the last \
     value holds until the end.",
    Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(7 * 86_400) },
);

/// The kind of a key of a series that takes one value.
pub(crate) fn part(name: &str) -> Option<Kind> {
    (name == EVERY.0).then_some(EVERY.2)
}
