//! Figures 4, 5, 9 and 11 to 17, as we read what they show from the paper's structure.

use crate::study::{Figure, Series};

/// The three configurations in one table, in rows that have these cells.
macro_rules! disciplines {
    ($table:literal $(, $column:literal = $cell:literal)*) => {
        &[
            Series { label: "hardware FIFO", table: $table, only: &[("discipline", "hfifo") $(, ($column, $cell))*] },
            Series { label: "software FIFO", table: $table, only: &[("discipline", "fifo") $(, ($column, $cell))*] },
            Series { label: "round robin", table: $table, only: &[("discipline", "rrobin") $(, ($column, $cell))*] },
        ]
    };
}

/// The three configurations under load, with this window.
macro_rules! at_window {
    ($block:literal, $blocks:literal) => {{
        const ONLY: &[(&str, &str)] = &[("window_block_bytes", $block), ("window_blocks", $blocks)];
        &[
            Series { label: "hardware FIFO", table: "loaded_hfifo", only: ONLY },
            Series { label: "software FIFO", table: "loaded_fifo", only: ONLY },
            Series { label: "round robin", table: "loaded_rrobin", only: ONLY },
        ]
    }};
}

/// The four windows under load, in one configuration.
macro_rules! windows {
    ($table:literal) => {
        &[
            windows!($table, "256 × 3", "256", "3"),
            windows!($table, "512 × 6", "512", "6"),
            windows!($table, "1024 × 3", "1024", "3"),
            windows!($table, "1024 × 7", "1024", "7"),
        ]
    };
    ($table:literal, $label:literal, $block:literal, $blocks:literal) => {
        Series {
            label: $label,
            table: $table,
            only: &[("window_block_bytes", $block), ("window_blocks", $blocks)],
        }
    };
}

pub(super) const FIGURES: &[Figure] = &[
    throughput(4, "throughput of one conversation", disciplines!("throughput", "conversations" = "1")),
    throughput(
        5,
        "throughput of each of four conversations",
        disciplines!("throughput", "conversations" = "4"),
    ),
    delay(9, "delay without load, minimum estimate", disciplines!("unloaded_min")),
    delay(11, "delay beside four bulk transfers, window 256 × 3", at_window!("256", "3")),
    delay(12, "delay beside four bulk transfers, window 512 × 6", at_window!("512", "6")),
    delay(13, "delay beside four bulk transfers, window 1024 × 3", at_window!("1024", "3")),
    delay(14, "delay beside four bulk transfers, window 1024 × 7", at_window!("1024", "7")),
    delay(15, "delay beside four bulk transfers, hardware FIFO", windows!("loaded_hfifo")),
    delay(16, "delay beside four bulk transfers, software FIFO", windows!("loaded_fifo")),
    delay(17, "delay beside four bulk transfers, round robin", windows!("loaded_rrobin")),
];

/// By window, in the table's order.
const fn throughput(number: u32, title: &'static str, series: &'static [Series]) -> Figure {
    Figure {
        number,
        title,
        x: &["window_block_bytes", "window_blocks"],
        x_label: "window, block bytes × blocks",
        metric: "throughput_per_conversation_bytes_s",
        y_label: "throughput per conversation, bytes/s",
        factors: false,
        series,
    }
}

/// By message size. Under load delays lie between some milliseconds and more than a second.
const fn delay(number: u32, title: &'static str, series: &'static [Series]) -> Figure {
    let factors = number > 9;
    Figure {
        number,
        title,
        x: &["message_bytes"],
        x_label: "message, bytes",
        metric: "mean_ms",
        y_label: "delay, ms",
        factors,
        series,
    }
}
