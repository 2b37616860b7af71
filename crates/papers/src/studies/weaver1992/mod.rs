//! Weaver & McNabb 1992: voice channels over XTP on an FDDI ring.
//!
//! What the study was, and how its tables and figures are read here, stands in `papers/weaver1992/README.md`.

mod figures;
mod findings;
mod readings;
mod tables;

use crate::study::{Axis, Cells, Embedded, Experiment, Goal, Study};

/// The study.
pub(super) const STUDY: Study = Study {
    name: "weaver1992",
    title: "Digitized Voice Distribution Using XTP and FDDI",
    authors: "Weaver, McNabb",
    year: 1992,
    reproduced: "Throughput and latency of voice packets of 8 to 4096 bytes between two stations of an FDDI ring, alone, \
                 beside one and beside fifteen load frames at each token, with loss, and to two receivers at once.",
    files: FILES,
    wired: &[],
    experiments: EXPERIMENTS,
    tables: tables::TABLES,
    figures: figures::FIGURES,
    scatters: figures::SCATTERS,
    goals: GOALS,
    notes: &[],
    flagged: include_str!("../../../../../papers/weaver1992/reference/flagged_cells.csv"),
};

/// A file of the study's folder.
macro_rules! file {
    ($path:literal) => {
        Embedded { path: $path, text: include_str!(concat!("../../../../../papers/weaver1992/", $path)) }
    };
}

const FILES: &[Embedded] = &[
    file!("throughput.toml"),
    file!("sppt.toml"),
    file!("mppt.toml"),
    file!("loss.toml"),
    file!("multicast.toml"),
    file!("today-lan.toml"),
    file!("today-cell.toml"),
    file!("hosts/station.toml"),
    file!("hosts/flexcache.toml"),
];

/// Both stations send as fast as they can; idle ring and SPPT load.
const THROUGHPUT: &str = "throughput.toml";
/// One packet there and back; idle ring and SPPT load.
const SPPT: &str = "sppt.toml";
/// The same; idle ring and MPPT load.
const MPPT: &str = "mppt.toml";
/// The same with arrivals that are kept from the sender.
const LOSS: &str = "loss.toml";
/// The same to two receivers at once; idle ring and MPPT load.
const MULTICAST: &str = "multicast.toml";

/// As much voice as fits, on a switched LAN and in a Wi-Fi cell.
const TODAY: [&str; 2] = ["today-lan.toml", "today-cell.toml"];

const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        file: THROUGHPUT,
        axes: &[
            SINGLE,
            Axis {
                key: "flow.east.source.message, flow.west.source.message",
                columns: &["voice_data_bytes"],
                cells: Cells::Number,
            },
        ],
    },
    Experiment { file: SPPT, axes: &[SINGLE, SIZE] },
    Experiment { file: MPPT, axes: &[BURSTS, SIZE] },
    Experiment {
        file: LOSS,
        axes: &[
            Axis {
                key: "flow.probe.transport.withhold",
                columns: &["packet_loss_pct"],
                cells: Cells::Number,
            },
            SIZE,
        ],
    },
    Experiment { file: MULTICAST, axes: &[BURSTS, SIZE] },
    Experiment { file: TODAY[0], axes: &[TRANSPORT, TODAYS_SIZE] },
    Experiment { file: TODAY[1], axes: &[TRANSPORT, TODAYS_SIZE] },
];

/// Voice data in a packet.
const SIZE: Axis =
    Axis { key: "flow.probe.source.message", columns: &["voice_data_bytes"], cells: Cells::Number };

/// Single packets per token: time from one load frame to the next.
const SINGLE: Axis = Axis {
    key: "flow.load.source.interval",
    columns: &["background_load_mbps"],
    cells: Cells::Holding(&[
        (&["3600s"], &["0"]),
        (&["1333333ns"], &["25"]),
        (&["666667ns"], &["50"]),
        (&["444444ns"], &["75"]),
    ]),
};

/// Multiple packets per token: time from one burst to the next.
const BURSTS: Axis = Axis {
    key: "flow.load.source.interval",
    columns: &["background_load_mbps"],
    cells: Cells::Holding(&[
        (&["3600s"], &["0"]),
        (&["20ms"], &["25"]),
        (&["10ms"], &["50"]),
        (&["6666667ns"], &["75"]),
    ]),
};

const TRANSPORT: Axis = Axis {
    key: "flow.east.transport, flow.west.transport",
    columns: &["transport"],
    cells: Cells::Holding(&[
        (&["udp"], &["udp"]),
        (&["xtp"], &["xtp"]),
        (&["sctp"], &["sctp"]),
        (&["quic"], &["quic"]),
    ]),
};

const TODAYS_SIZE: Axis = Axis {
    key: "flow.east.source, flow.west.source",
    columns: &["voice_data_bytes"],
    cells: Cells::Holding(&[
        (&[r#"message="8B""#], &["8"]),
        (&[r#"message="16B""#], &["16"]),
        (&[r#"message="32B""#], &["32"]),
        (&[r#"message="64B""#], &["64"]),
        (&[r#"message="128B""#], &["128"]),
        (&[r#"message="256B""#], &["256"]),
        (&[r#"message="512B""#], &["512"]),
        (&[r#"message="1024B""#], &["1024"]),
    ]),
};

const GOALS: &[Goal] = &[
    Goal::Error {
        tables: &["table01"],
        metrics: &["avg_latency_ms"],
        only: &[],
        median: 0.03,
        worst: Some(0.08),
    },
    Goal::Error {
        tables: &["table10"],
        metrics: &["avg_latency_ms"],
        only: &[],
        median: 0.03,
        worst: Some(0.08),
    },
    Goal::Error {
        tables: &["table05"],
        metrics: &["user_throughput_kbps"],
        only: &[],
        median: 0.1,
        worst: None,
    },
    Goal::Error { tables: &["table08"], metrics: &["avg_latency_ms"], only: &[], median: 0.2, worst: None },
    Goal::Error { tables: &["table12"], metrics: &["avg_latency_ms"], only: &[], median: 0.2, worst: None },
    Goal::Count { table: "table03", metric: "voice_channels", within: 1.0, share: 0.05 },
    Goal::Count { table: "table05", metric: "voice_channels", within: 1.0, share: 0.05 },
    Goal::Conclusion {
        question: "The packet with which most voice channels fit between two stations",
        published: Some("4096 bytes"),
        found: findings::most_channels,
    },
    Goal::Conclusion {
        question: "Smallest packet that two stations send in the time that one channel needs to fill it",
        published: Some("32 bytes"),
        found: findings::smallest_in_time,
    },
    Goal::Conclusion {
        question: "Recommended packet: most channels with 20 to 50 ms of speech in a packet, jitter of at most 20 ms and \
                   a start-up delay of at most 250 ms under 75 Mbit/s of bursts",
        published: None,
        found: findings::recommended,
    },
];
