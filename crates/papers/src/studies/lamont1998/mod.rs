//! Lamont et al. 1998: voice and bulk in one virtual channel of an ATM network, across the Atlantic and in a laboratory.
//!
//! What the study was, and how its tables and figures are read here, stands in `papers/lamont1998/README.md`.

mod figures;
mod findings;
mod readings;
mod tables;

use crate::study::{Axis, Cells, Embedded, Experiment, Goal, Note, Study};

/// The study.
pub(super) const STUDY: Study = Study {
    name: "lamont1998",
    title: "Bundling Internet Traffic over VBR ATM Networks",
    authors: "Lamont, Villasenor, Chefai, Miloucheva",
    year: 1998,
    reproduced: "Throughput and loss of voice over UDP and bulk over TCP that share a virtual channel with a reserved rate: \
                 one TCP connection beside many voice streams, one voice stream beside many TCP connections, and voice \
                 alone, across the Atlantic and in a laboratory.",
    files: FILES,
    wired: &[],
    experiments: EXPERIMENTS,
    tables: tables::TABLES,
    figures: figures::FIGURES,
    scatters: &[],
    goals: GOALS,
    notes: NOTES,
    flagged: include_str!("../../../../../papers/lamont1998/reference/flagged_cells.csv"),
};

/// A file of the study's folder.
macro_rules! file {
    ($path:literal) => {
        Embedded { path: $path, text: include_str!(concat!("../../../../../papers/lamont1998/", $path)) }
    };
}

const FILES: &[Embedded] = &[
    file!("wan-one-tcp.toml"),
    file!("wan-one-voice.toml"),
    file!("wan-voice.toml"),
    file!("lan-one-tcp.toml"),
    file!("lan-one-voice.toml"),
    file!("lan-voice.toml"),
    file!("hosts/endor.toml"),
    file!("hosts/lucifer.toml"),
];

/// One TCP connection and 1 to 16 voice streams, Berlin to Ottawa.
const WAN_ONE_TCP: &str = "wan-one-tcp.toml";
/// One voice stream and 1 to 10 TCP connections, Berlin to Ottawa.
const WAN_ONE_VOICE: &str = "wan-one-voice.toml";
/// Voice alone, Berlin to Ottawa.
const WAN_VOICE: &str = "wan-voice.toml";
/// One TCP connection and 1 to 10 voice streams within a laboratory.
const LAN_ONE_TCP: &str = "lan-one-tcp.toml";
/// One voice stream and 1 to 10 TCP connections within a laboratory.
const LAN_ONE_VOICE: &str = "lan-one-voice.toml";
/// Voice alone within a laboratory.
const LAN_VOICE: &str = "lan-voice.toml";

const EXPERIMENTS: &[Experiment] = &[
    Experiment { file: WAN_ONE_TCP, axes: &[VOICE_COUNT, WINDOW_AND_UNIT] },
    Experiment { file: WAN_ONE_VOICE, axes: &[BULK_COUNT, UNIT, WINDOW] },
    Experiment { file: WAN_VOICE, axes: &[VOICE_COUNT] },
    Experiment { file: LAN_ONE_TCP, axes: &[VOICE_COUNT, WINDOW_AND_UNIT] },
    Experiment { file: LAN_ONE_VOICE, axes: &[BULK_COUNT, UNIT, WINDOW] },
    Experiment { file: LAN_VOICE, axes: &[VOICE_COUNT] },
];

const VOICE_COUNT: Axis = Axis { key: "flow.voice.count", columns: &["bundle_count"], cells: Cells::Number };

const BULK_COUNT: Axis = Axis { key: "flow.bulk.count", columns: &["bundle_count"], cells: Cells::Number };

/// What the TCP application hands over at once.
const UNIT: Axis = Axis {
    key: "flow.bulk.source.message",
    columns: &["tsdu_kbytes"],
    cells: Cells::Holding(&[
        (&["4 KiB"], &["4"]),
        (&["8 KiB"], &["8"]),
        (&["10 KiB"], &["10"]),
        (&["20 KiB"], &["20"]),
    ]),
};

const WINDOW: Axis = Axis {
    key: "flow.bulk.transport.window",
    columns: &["window_kbytes"],
    cells: Cells::Holding(&[
        (&["8 KiB"], &["8"]),
        (&["16 KiB"], &["16"]),
        (&["32 KiB"], &["32"]),
        (&["50 KiB"], &["50"]),
    ]),
};

/// Both, with the volume that keeps a connection of this window busy for three minutes.
const WINDOW_AND_UNIT: Axis = Axis {
    key: "flow.bulk.transport.window, flow.bulk.source",
    columns: &["window_kbytes", "tsdu_kbytes"],
    cells: Cells::Holding(&[
        (&[r#"["8 KiB""#, r#"message = "4 KiB""#], &["8", "4"]),
        (&[r#"["8 KiB""#, r#"message = "8 KiB""#], &["8", "8"]),
        (&[r#"["8 KiB""#, r#"message = "10 KiB""#], &["8", "10"]),
        (&[r#"["8 KiB""#, r#"message = "20 KiB""#], &["8", "20"]),
        (&[r#"["16 KiB""#, r#"message = "4 KiB""#], &["16", "4"]),
        (&[r#"["16 KiB""#, r#"message = "8 KiB""#], &["16", "8"]),
        (&[r#"["16 KiB""#, r#"message = "10 KiB""#], &["16", "10"]),
        (&[r#"["16 KiB""#, r#"message = "20 KiB""#], &["16", "20"]),
        (&[r#"["32 KiB""#, r#"message = "4 KiB""#], &["32", "4"]),
        (&[r#"["32 KiB""#, r#"message = "8 KiB""#], &["32", "8"]),
        (&[r#"["32 KiB""#, r#"message = "10 KiB""#], &["32", "10"]),
        (&[r#"["32 KiB""#, r#"message = "20 KiB""#], &["32", "20"]),
        (&[r#"["50 KiB""#, r#"message = "4 KiB""#], &["50", "4"]),
        (&[r#"["50 KiB""#, r#"message = "8 KiB""#], &["50", "8"]),
        (&[r#"["50 KiB""#, r#"message = "10 KiB""#], &["50", "10"]),
        (&[r#"["50 KiB""#, r#"message = "20 KiB""#], &["50", "20"]),
    ]),
};

/// Hosts were calibrated from the rows of one stream; 16 are more than the goals are of.
const BESIDE_ONE_TCP: &[(&str, &str)] = &[("bundle_count", "2..12")];
/// The one-bundle rows are of another state of the network.
const BESIDE_ONE_VOICE: &[(&str, &str)] = &[("bundle_count", "2..10")];

const GOALS: &[Goal] = &[
    Goal::Error {
        tables: &["table05", "table06", "table07", "table08"],
        metrics: &["tcp_throughput_kbytes_s"],
        only: BESIDE_ONE_TCP,
        median: 0.05,
        worst: Some(0.15),
    },
    Goal::Error {
        tables: findings::VOICE_BESIDE_TCP,
        metrics: &["udp_throughput_kbytes_s"],
        only: BESIDE_ONE_TCP,
        median: 0.03,
        worst: Some(0.12),
    },
    Goal::Error {
        tables: &["table17", "table18", "table19", "table20"],
        metrics: &["tcp_throughput_kbytes_s"],
        only: BESIDE_ONE_VOICE,
        median: 0.2,
        worst: None,
    },
    Goal::Error {
        tables: findings::TCP_BESIDE_VOICE,
        metrics: &["udp_throughput_kbytes_s"],
        only: BESIDE_ONE_VOICE,
        median: 0.1,
        worst: None,
    },
    Goal::Conclusion {
        question: "Voice sessions that keep their rate beside one TCP connection with a window of 50 KB",
        published: Some("4"),
        found: findings::voice_beside_tcp,
    },
    Goal::Conclusion {
        question: "Voice sessions that keep their rate alone",
        published: Some("12"),
        found: findings::voice_alone,
    },
    Goal::Conclusion {
        question: "TCP connections with a window of 50 KB beside one voice session that keeps its rate",
        published: Some("2"),
        found: findings::large_windows_beside_voice,
    },
    Goal::Conclusion {
        question: "TCP connections with a window of 8 KB beside one voice session that keeps its rate",
        published: Some("6"),
        found: findings::small_windows_beside_voice,
    },
];

const NOTES: &[Note] = &[
    Note {
        tables: &["table17", "table18", "table19", "table20"],
        only: &[("bundle_count", "1")],
        text: "One TCP connection beside one voice stream is also the first row of tables 5 to 8, where it has up to 2.4 \
               times as much: the network was in another state when these rows were measured, and the model has one.",
    },
    Note {
        tables: &["table17", "table18", "table19", "table20"],
        only: &[("bundle_count", "2..10")],
        text: "The study's connections together have 160 KB/s as one, 89 as two or three, and 50 to 60 as six or more, while the \
               channel carries 176. The model's share all of it. A sender that repeats what was not lost, because its timer \
               does not follow the queue, would have half; how the study's did that it does not say, and no row that may be \
               calibrated from tells.",
    },
    Note {
        tables: &["table25"],
        only: &[("bundle_count", "14..16")],
        text: "Beyond 12 streams more cells are offered than the adapter may send. The model shares its rate among the streams. \
               The study has 57 KB/s for all of them together, a third of what the adapter carries, whether they are 14 or \
               16: what an overloaded adapter and its driver do to packets that find no room the study does not say, and \
               the model has no such mechanism.",
    },
    Note {
        tables: LOSS,
        only: &[],
        text: "The study loses a few units in a thousand, more with more streams, below every rate that is reserved or shaped \
               to, and does not say where. The model discards nothing there, and so it loses nothing.",
    },
];

/// Tables of units lost.
const LOSS: &[&str] =
    &["table13", "table14", "table15", "table16", "table26", "table33", "table34", "table35", "table43"];

#[cfg(test)]
mod tests;
