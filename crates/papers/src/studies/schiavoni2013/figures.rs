//! A figure for each table. The paper's own are not at hand; these are numbered as its tables.

use crate::study::{Figure, Series};

/// One and two channels.
macro_rules! channels {
    ($table:literal) => {
        &[
            Series { label: "1 channel", table: $table, only: &[("channels", "1")] },
            Series { label: "2 channels", table: $table, only: &[("channels", "2")] },
        ]
    };
}

pub(super) const FIGURES: &[Figure] = &[
    figure(
        2,
        "localhost",
        &[
            Series { label: "A, 1 channel", table: "table02", only: &[("computer", "A"), ("channels", "1")] },
            Series {
                label: "A, 2 channels",
                table: "table02",
                only: &[("computer", "A"), ("channels", "2")],
            },
            Series { label: "B, 1 channel", table: "table02", only: &[("computer", "B"), ("channels", "1")] },
            Series {
                label: "B, 2 channels",
                table: "table02",
                only: &[("computer", "B"), ("channels", "2")],
            },
        ],
    ),
    figure(3, "crossover cable", channels!("table03")),
    figure(4, "wired switch", channels!("table04")),
    figure(5, "direct 802.11g", channels!("table05")),
    figure(6, "802.11g through an access point", channels!("table06")),
];

const fn figure(number: u32, title: &'static str, series: &'static [Series]) -> Figure {
    Figure {
        number,
        title,
        x: &["protocol"],
        x_label: "protocol",
        metric: "latency_ms",
        y_label: "round trip, ms",
        factors: false,
        series,
    }
}
