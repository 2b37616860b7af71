//! Figures 7 to 11, 13 to 21 and 23 to 26, as we take what they show from the sections that they stand in.

use crate::study::{Figure, Series};

/// The four windows, for units of 8 KB.
macro_rules! windows {
    ($table:literal) => {
        &[
            Series { label: "window 8 KB", table: $table, only: &[("window_kbytes", "8")] },
            Series { label: "16 KB", table: $table, only: &[("window_kbytes", "16")] },
            Series { label: "32 KB", table: $table, only: &[("window_kbytes", "32")] },
            Series { label: "50 KB", table: $table, only: &[("window_kbytes", "50")] },
        ]
    };
}

/// The four units, which have a table each, with one window.
macro_rules! units {
    ($window:literal: $four:literal, $eight:literal, $ten:literal, $twenty:literal) => {{
        const ONLY: &[(&str, &str)] = &[("window_kbytes", $window)];
        &[
            Series { label: "units of 4 KB", table: $four, only: ONLY },
            Series { label: "8 KB", table: $eight, only: ONLY },
            Series { label: "10 KB", table: $ten, only: ONLY },
            Series { label: "20 KB", table: $twenty, only: ONLY },
        ]
    }};
}

/// The only line of a figure.
macro_rules! all {
    ($table:literal) => {
        &[Series { label: "voice alone", table: $table, only: &[] }]
    };
}

pub(super) const FIGURES: &[Figure] = &[
    tcp(7, "TCP beside voice, units of 8 KB, across the Atlantic", VOICE, windows!("table06")),
    udp(8, "voice beside TCP, units of 8 KB, across the Atlantic", VOICE, windows!("table10")),
    loss(9, "voice lost beside TCP, units of 8 KB, across the Atlantic", windows!("table14")),
    tcp(
        10,
        "TCP beside voice, window 16 KB, across the Atlantic",
        VOICE,
        units!("16": "table05", "table06", "table07", "table08"),
    ),
    udp(
        11,
        "voice beside TCP, window 16 KB, across the Atlantic",
        VOICE,
        units!("16": "table09", "table10", "table11", "table12"),
    ),
    tcp(13, "several TCP beside voice, units of 8 KB, across the Atlantic", TCP, windows!("table18")),
    udp(14, "voice beside several TCP, units of 8 KB, across the Atlantic", TCP, windows!("table22")),
    tcp(
        15,
        "several TCP beside voice, window 16 KB, across the Atlantic",
        TCP,
        units!("16": "table17", "table18", "table19", "table20"),
    ),
    udp(
        16,
        "voice beside several TCP, window 16 KB, across the Atlantic",
        TCP,
        units!("16": "table21", "table22", "table23", "table24"),
    ),
    udp(17, "voice alone, across the Atlantic", VOICE, all!("table25")),
    loss(18, "voice lost alone, across the Atlantic", all!("table26")),
    tcp(19, "TCP beside voice, units of 8 KB, in the laboratory", VOICE, windows!("table28")),
    udp(20, "voice beside TCP, units of 8 KB, in the laboratory", VOICE, windows!("table31")),
    loss(21, "voice lost beside TCP, units of 8 KB, in the laboratory", windows!("table34")),
    tcp(23, "several TCP beside voice, units of 8 KB, in the laboratory", TCP, windows!("table37")),
    udp(24, "voice beside several TCP, units of 8 KB, in the laboratory", TCP, windows!("table40")),
    udp(25, "voice alone, in the laboratory", VOICE, all!("table42")),
    loss(26, "voice lost alone, in the laboratory", all!("table43")),
];

const VOICE: &str = "voice streams";
const TCP: &str = "TCP connections";
const THROUGHPUT: &str = "throughput of each, KB/s";

const fn tcp(number: u32, title: &'static str, x_label: &'static str, series: &'static [Series]) -> Figure {
    by_bundle(number, title, x_label, "tcp_throughput_kbytes_s", THROUGHPUT, series)
}

const fn udp(number: u32, title: &'static str, x_label: &'static str, series: &'static [Series]) -> Figure {
    by_bundle(number, title, x_label, "udp_throughput_kbytes_s", THROUGHPUT, series)
}

const fn loss(number: u32, title: &'static str, series: &'static [Series]) -> Figure {
    by_bundle(number, title, VOICE, "udp_loss_pct", "units lost, %", series)
}

const fn by_bundle(
    number: u32,
    title: &'static str,
    x_label: &'static str,
    metric: &'static str,
    y_label: &'static str,
    series: &'static [Series],
) -> Figure {
    Figure { number, title, x: &["bundle_count"], x_label, metric, y_label, factors: false, series }
}
