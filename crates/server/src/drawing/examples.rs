//! The example files, which are part of the program.

use trunkline_experiment::{Experiment, Files};

use crate::api::{Example, MAIN_FILE};

macro_rules! examples {
    ($($topic:literal: $($name:literal),* $(,)?;)*) => {
        /// Topic, name and text, the easiest first.
        pub(super) const EXAMPLES: &[(&str, &str, &str)] =
            &[$($(($topic, $name, include_str!(concat!("../../../../examples/", $name, ".toml")))),*),*];
    };
}

examples![
    "Calls beside transfers": "voice-beside-bulk", "office", "bundle", "bursty-loss", "two-bottlenecks", "dsl-video-call";
    "Music and programmes": "rehearsal", "switched-lan", "multicast";
    "Wi-Fi and mobile networks": "wifi-cell", "phones", "cellular-trace";
    "Queues and TCP": "queues-on-the-wire", "l4s", "tcp-windows", "wire-link";
    "Telephone networks, then and now": "calls-on-a-t1", "voice-path", "atm-bundle", "reservation-bundle",
        "reservation-separate", "voice-distribution-1992", "voice-distribution-today";
];

/// Those that can be run: a folder may have a file of its own under the name of one that they use.
pub(super) fn readable(files: &dyn Files) -> Vec<Example> {
    let example = |&(topic, name, text): &(&str, &str, &str)| {
        let experiment = Experiment::parse(text, MAIN_FILE, files).ok()?;
        let [topic, name, text] = [topic, name, text].map(str::to_owned);
        Some(Example { topic, name, title: experiment.name, text })
    };
    EXAMPLES.iter().filter_map(example).collect()
}
