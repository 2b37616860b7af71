//! Hawley 1989: a T1 trunk of a Datakit network under three queueing disciplines.
//!
//! What the study was, and how its tables and figures are read here, stands in `papers/hawley1989/README.md`.

mod figures;
mod formulas;
mod readings;
mod tables;

use crate::study::{Axis, Cells, Embedded, Experiment, Goal, Study};

/// The study.
pub(super) const STUDY: Study = Study {
    name: "hawley1989",
    title: "Performance Analysis of Queueing Algorithms on Datakit T1 Trunk Lines",
    authors: "Hawley",
    year: 1989,
    reproduced: "Throughput of bulk transfers and delay of short messages, alone and beside four bulk transfers, over a \
                 T1 trunk with a hardware FIFO, a software FIFO, and round robin between virtual circuits.",
    files: FILES,
    wired: &[],
    experiments: EXPERIMENTS,
    tables: tables::TABLES,
    figures: figures::FIGURES,
    scatters: &[],
    goals: GOALS,
    notes: &[],
    flagged: include_str!("../../../../../papers/hawley1989/reference/flagged_cells.csv"),
};

/// A file of the study's folder.
macro_rules! file {
    ($path:literal) => {
        Embedded { path: $path, text: include_str!(concat!("../../../../../papers/hawley1989/", $path)) }
    };
}

const FILES: &[Embedded] = &[
    file!("throughput.toml"),
    file!("unloaded.toml"),
    file!("repetitions.toml"),
    file!("loaded.toml"),
    file!("hosts/crab.toml"),
    file!("hosts/pipe.toml"),
    file!("hosts/tempel.toml"),
];

/// Bulk transfers one way: 1 or 4 conversations, six windows.
const THROUGHPUT: &str = "throughput.toml";
/// One message after the other on an idle trunk.
const UNLOADED: &str = "unloaded.toml";
/// The same under round robin, with 100 to 500 messages.
const REPETITIONS: &str = "repetitions.toml";
/// The same beside four bulk transfers with four windows.
const LOADED: &str = "loaded.toml";

const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        file: THROUGHPUT,
        axes: &[
            DISCIPLINE,
            WINDOW,
            Axis { key: "flow.bulk.count", columns: &["conversations"], cells: Cells::Number },
        ],
    },
    Experiment { file: UNLOADED, axes: &[DISCIPLINE, MESSAGE] },
    Experiment {
        file: REPETITIONS,
        axes: &[
            Axis { key: "flow.probe.source.messages", columns: &["iterations"], cells: Cells::Number },
            MESSAGE,
        ],
    },
    Experiment { file: LOADED, axes: &[DISCIPLINE, WINDOW, MESSAGE] },
];

/// The board and its queue.
const DISCIPLINE: Axis = Axis {
    key: "link.trunk.forward",
    columns: &["discipline"],
    cells: Cells::Holding(&[
        (&[r#"kind = "fifo""#, r#"limit = "32 KB""#], &["hfifo"]),
        (&[r#"kind = "fifo""#, r#"limit = "500 KB""#], &["fifo"]),
        (&[r#"kind = "round-robin""#], &["rrobin"]),
    ]),
};

/// The window of the bulk transfers.
const WINDOW: Axis = Axis {
    key: "flow.bulk.transport",
    columns: &["window_block_bytes", "window_blocks"],
    cells: Cells::Holding(&[
        (&[r#"block = "256 B""#, "window = 3"], &["256", "3"]),
        (&[r#"block = "256 B""#, "window = 7"], &["256", "7"]),
        (&[r#"block = "512 B""#, "window = 3"], &["512", "3"]),
        (&[r#"block = "512 B""#, "window = 6"], &["512", "6"]),
        (&[r#"block = "512 B""#, "window = 7"], &["512", "7"]),
        (&[r#"block = "1024 B""#, "window = 3"], &["1024", "3"]),
        (&[r#"block = "1024 B""#, "window = 7"], &["1024", "7"]),
    ]),
};

/// The size of the message whose delay is measured.
const MESSAGE: Axis =
    Axis { key: "flow.probe.source.message", columns: &["message_bytes"], cells: Cells::Number };

const GOALS: &[Goal] = &[
    Goal::Exact { table: "table01", metric: "throughput_kbytes_s" },
    Goal::Exact { table: "table02", metric: "queueing_delay_us" },
    Goal::Error {
        tables: &["throughput"],
        metrics: &["throughput_per_conversation_bytes_s", "total_throughput_bytes_s"],
        only: &[],
        median: 0.03,
        worst: Some(0.08),
    },
    Goal::Error { tables: &["unloaded_min"], metrics: &["mean_ms"], only: &[], median: 0.05, worst: None },
    Goal::Error { tables: &["unloaded_avg"], metrics: &["mean_ms"], only: &[], median: 0.05, worst: None },
    Goal::Error {
        tables: &["loaded_hfifo"],
        metrics: &["mean_ms"],
        only: &[],
        median: 0.1,
        worst: Some(0.3),
    },
    Goal::Error { tables: &["loaded_fifo"], metrics: &["mean_ms"], only: &[], median: 0.1, worst: Some(0.3) },
    Goal::Factor {
        title: "loaded delay of the software FIFO over that of round robin at the 1024 × 7 window",
        over: "loaded_fifo",
        under: "loaded_rrobin",
        only: &[("window_block_bytes", "1024"), ("window_blocks", "7")],
        metric: "mean_ms",
        within: 0.3,
    },
];
