//! Schiavoni, Queiroz and Wanderley 2013: uncompressed audio over UDP, TCP, DCCP and SCTP, on one machine, wired and wireless.
//!
//! What the study was, and how its tables and figures are read here, stands in `papers/schiavoni2013/README.md`.

mod figures;
mod findings;
mod readings;
mod tables;

use crate::study::{Axis, Cells, Embedded, Experiment, Goal, Note, Study};

/// The study.
pub(super) const STUDY: Study = Study {
    name: "schiavoni2013",
    title: "Alternatives in Network Transport Protocols for Audio Streaming Applications",
    authors: "Schiavoni, Queiroz, Wanderley",
    year: 2013,
    reproduced: "Round trip, jitter and loss of one and two channels of uncompressed audio over UDP, TCP, DCCP and SCTP: on \
                 one computer, also measured live on this one; over a crossover cable, a switch, Wi-Fi without and with \
                 an access point, simulated or, with `--on wire`, measured on the wire.",
    files: FILES,
    wired: &[CROSSOVER, SWITCH, ADHOC, ACCESS_POINT],
    experiments: EXPERIMENTS,
    tables: tables::TABLES,
    figures: figures::FIGURES,
    scatters: &[],
    goals: GOALS,
    notes: NOTES,
    flagged: include_str!("../../../../../papers/schiavoni2013/reference/flagged_cells.csv"),
};

/// A file of the study's folder.
macro_rules! file {
    ($path:literal) => {
        Embedded { path: $path, text: include_str!(concat!("../../../../../papers/schiavoni2013/", $path)) }
    };
}

const FILES: &[Embedded] = &[
    file!("localhost.toml"),
    file!("here.toml"),
    file!("crossover.toml"),
    file!("switch.toml"),
    file!("adhoc.toml"),
    file!("access-point.toml"),
    file!("hosts/a.toml"),
    file!("hosts/b.toml"),
];

/// Computers A and B, each with itself.
const LOCALHOST: &str = "localhost.toml";
/// This machine with itself, live.
const HERE: &str = "here.toml";
/// A and B at the ends of a cable.
const CROSSOVER: &str = "crossover.toml";
/// A and B at a switch.
const SWITCH: &str = "switch.toml";
/// A and B in a Wi-Fi cell of their own.
const ADHOC: &str = "adhoc.toml";
/// A and B at an access point.
const ACCESS_POINT: &str = "access-point.toml";

const EXPERIMENTS: &[Experiment] = &[
    Experiment { file: LOCALHOST, axes: &[COMPUTER, PROTOCOL, CHANNELS] },
    Experiment { file: HERE, axes: &[] },
    Experiment { file: CROSSOVER, axes: &[PROTOCOL, CHANNELS] },
    Experiment { file: SWITCH, axes: &[PROTOCOL, CHANNELS] },
    Experiment { file: ADHOC, axes: &[PROTOCOL, CHANNELS] },
    Experiment { file: ACCESS_POINT, axes: &[PROTOCOL, CHANNELS] },
];

const COMPUTER: Axis = Axis {
    key: "hosts.here.profile",
    columns: &["computer"],
    cells: Cells::Holding(&[(&["hosts/a.toml"], &["A"]), (&["hosts/b.toml"], &["B"])]),
};

const PROTOCOL: Axis = Axis {
    key: "flow.audio.transport, flow.audio.effort",
    columns: &["protocol"],
    cells: Cells::Holding(&[
        (&[r#"["udp""#], &["UDP"]),
        (&[r#"kind = "tcp""#], &["TCP"]),
        (&[r#"kind = "dccp""#], &["DCCP"]),
        (&["one-to-one"], &["SCTP 1"]),
        (&["one-to-many"], &["SCTP 2"]),
    ]),
};

const CHANNELS: Axis = Axis { key: "flow.audio.channels", columns: &["channels"], cells: Cells::Number };

/// Calibrated were rows of UDP with one channel.
const PREDICTED: &[(&str, &str)] = &[("channels", "2")];

const GOALS: &[Goal] = &[
    latency(&["table02"], 0.15, 0.3),
    latency(&["table03"], 0.05, 0.1),
    latency(&["table04"], 0.05, 0.1),
    latency(&["table05"], 0.2, 0.35),
    latency(&["table06"], 0.2, 0.35),
    Goal::Conclusion {
        question: "Protocols by round trip, localhost of A and of B",
        published: Some(findings::WIRED),
        found: findings::localhost,
    },
    Goal::Conclusion {
        question: "Protocols by round trip, crossover cable",
        published: Some(findings::WIRED),
        found: findings::crossover,
    },
    Goal::Conclusion {
        question: "Protocols by round trip, switch",
        published: Some(findings::WIRED),
        found: findings::switch,
    },
    Goal::Conclusion {
        question: "Protocols by round trip, direct Wi-Fi",
        published: Some(findings::WIRELESS),
        found: findings::adhoc,
    },
    Goal::Conclusion {
        question: "Protocols by round trip, Wi-Fi through an access point",
        published: None,
        found: findings::access_point,
    },
    Goal::Conclusion {
        question: "Protocols that lose more than one packet in a thousand, direct Wi-Fi",
        published: Some("UDP, DCCP"),
        found: findings::lossy,
    },
    Goal::Conclusion {
        question: "Protocols by round trip, localhost of this machine",
        published: None,
        found: findings::here,
    },
];

const fn latency(tables: &'static [&'static str], median: f64, worst: f64) -> Goal {
    Goal::Error { tables, metrics: &["latency_ms"], only: PREDICTED, median, worst: Some(worst) }
}

const NOTES: &[Note] = &[
    Note {
        tables: &["table05"],
        only: &[("protocol", "DCCP")],
        text: "The study's DCCP has a round trip of 3 to 5 ms and loses little or nothing where UDP waits for 17 to 20 ms: \
               the radio was in another state when these rows were measured. The model has one state; in its outages \
               DCCP's window is used up by what is under way, and the rest is dropped.",
    },
    Note {
        tables: &["table05", "table06"],
        only: &[("channels", "2")],
        text: "The reliable protocols wait half as long again with a second channel in the study. The model's outages do not \
               depend on the load.",
    },
    Note {
        tables: &["table02"],
        only: &[("channels", "2")],
        text: "Computer A has two cores. The model has one processor for the program that sends and the one that sends \
               back, which does one thing after the other.",
    },
];

#[cfg(test)]
mod tests;
