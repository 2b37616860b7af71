//! What the paper draws: throughput and latency against packet size, and the latency of 1000 packets as dots.

use crate::study::{Figure, Scatter, Series};

const SIZE: &[&str] = &["voice_data_bytes"];
const SIZE_LABEL: &str = "voice data, bytes";

/// One line for each load, or for each but none.
macro_rules! loads {
    ($table:literal) => {
        &[
            Series { label: "no load", table: $table, only: &[("background_load_mbps", "0")] },
            Series { label: "25 Mbit/s", table: $table, only: &[("background_load_mbps", "25")] },
            Series { label: "50 Mbit/s", table: $table, only: &[("background_load_mbps", "50")] },
            Series { label: "75 Mbit/s", table: $table, only: &[("background_load_mbps", "75")] },
        ]
    };
    ($table:literal, loaded) => {
        &[
            Series { label: "25 Mbit/s", table: $table, only: &[("background_load_mbps", "25")] },
            Series { label: "50 Mbit/s", table: $table, only: &[("background_load_mbps", "50")] },
            Series { label: "75 Mbit/s", table: $table, only: &[("background_load_mbps", "75")] },
        ]
    };
}

/// 1992, and each transport in a network of today.
macro_rules! now {
    ($table:literal, $network:literal) => {
        &[
            Series { label: "FDDI, XTP", table: "table03", only: &[] },
            Series { label: concat!($network, ", UDP"), table: $table, only: &[("transport", "udp")] },
            Series { label: concat!($network, ", XTP"), table: $table, only: &[("transport", "xtp")] },
            Series { label: concat!($network, ", SCTP"), table: $table, only: &[("transport", "sctp")] },
            Series { label: concat!($network, ", QUIC"), table: $table, only: &[("transport", "quic")] },
        ]
    };
}

pub(super) const FIGURES: &[Figure] = &[
    latency(1, "average latency without load", &[Series { label: "no load", table: "table01", only: &[] }]),
    Figure {
        number: 2,
        title: "voice channels beside single packets per token",
        x: SIZE,
        x_label: SIZE_LABEL,
        metric: "voice_channels",
        y_label: "voice channels",
        factors: false,
        series: loads!("table05"),
    },
    p999(3, "99.9 % latency beside single packets per token", loads!("table06")),
    latency(4, "average latency beside multiple packets per token", loads!("table08")),
    p999(5, "99.9 % latency beside multiple packets per token", loads!("table09", loaded)),
    latency(
        6,
        "average latency with loss",
        &[
            Series { label: "no loss", table: "table10", only: &[("packet_loss_pct", "0")] },
            Series { label: "1 %", table: "table10", only: &[("packet_loss_pct", "1")] },
            Series { label: "5 %", table: "table10", only: &[("packet_loss_pct", "5")] },
            Series { label: "10 %", table: "table10", only: &[("packet_loss_pct", "10")] },
        ],
    ),
    latency(7, "average latency to two receivers beside multiple packets per token", loads!("table12")),
    p999(8, "99.9 % latency to two receivers beside multiple packets per token", loads!("table13")),
    today(
        9,
        "voice channels between two stations: FDDI in 1992, a switched LAN today",
        now!("today_lan", "1 Gbit/s"),
    ),
    today(
        10,
        "voice channels between two stations: FDDI in 1992, a Wi-Fi cell today",
        now!("today_cell", "Wi-Fi"),
    ),
];

const fn latency(number: u32, title: &'static str, series: &'static [Series]) -> Figure {
    by_size(number, title, "avg_latency_ms", series)
}

const fn p999(number: u32, title: &'static str, series: &'static [Series]) -> Figure {
    by_size(number, title, "p999_latency_ms", series)
}

const fn by_size(
    number: u32,
    title: &'static str,
    metric: &'static str,
    series: &'static [Series],
) -> Figure {
    let (x, x_label, y_label) = (SIZE, SIZE_LABEL, "latency, ms");
    Figure { number, title, x, x_label, metric, y_label, factors: false, series }
}

const fn today(number: u32, title: &'static str, series: &'static [Series]) -> Figure {
    Figure {
        number,
        title,
        x: SIZE,
        x_label: SIZE_LABEL,
        metric: "voice_channels",
        y_label: "voice channels",
        factors: true,
        series,
    }
}

/// The latency of 1000 packets of 64 and of 1024 bytes, beside each kind of load.
macro_rules! scatters {
    ($($name:literal, $title:literal, $table:literal, $size:literal, $load:literal;)*) => {
        &[$(Scatter {
            name: $name,
            title: $title,
            table: $table,
            only: &[("voice_data_bytes", $size), ("background_load_mbps", $load)],
            flow: "probe",
            halved: true,
        }),*]
    };
}

pub(super) const SCATTERS: &[Scatter] = scatters![
    "scatter-idle-0064", "64 bytes without load", "table06", "64", "0";
    "scatter-sppt-0064", "64 bytes beside 75 Mbit/s, single packets per token", "table06", "64", "75";
    "scatter-sppt-1024", "1024 bytes beside 75 Mbit/s, single packets per token", "table06", "1024", "75";
    "scatter-mppt-0064", "64 bytes beside 75 Mbit/s, multiple packets per token", "table09", "64", "75";
    "scatter-mppt-1024", "1024 bytes beside 75 Mbit/s, multiple packets per token", "table09", "1024", "75";
    "scatter-group-0064", "64 bytes to two receivers beside 75 Mbit/s, multiple packets per token", "table13", "64", "75";
];
