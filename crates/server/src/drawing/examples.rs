//! The example files, which are part of the program.

use trunkline_experiment::{Experiment, Files};

use crate::api::{Example, MAIN_FILE};

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        /// Name and text, the easiest first.
        pub(super) const EXAMPLES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../examples/", $name, ".toml")))),*];
    };
}

examples![
    "voice-beside-bulk",
    "bundle",
    "bursty-loss",
    "two-bottlenecks",
    "rehearsal",
    "dsl-video-call",
    "calls-on-a-t1",
    "wifi-cell",
    "phones",
    "switched-lan",
    "multicast",
    "voice-path",
    "cellular-trace",
    "queues-on-the-wire",
    "atm-bundle",
    "reservation-bundle",
    "reservation-separate",
    "voice-distribution-1992",
    "voice-distribution-today",
];

/// Those that can be run: a folder may have a file of its own under the name of one that they use.
pub(super) fn readable(files: &dyn Files) -> Vec<Example> {
    let example = |(name, text): &(&str, &str)| {
        let experiment = Experiment::parse(text, MAIN_FILE, files).ok()?;
        Some(Example { name: (*name).to_owned(), title: experiment.name, text: (*text).to_owned() })
    };
    EXAMPLES.iter().filter_map(example).collect()
}
