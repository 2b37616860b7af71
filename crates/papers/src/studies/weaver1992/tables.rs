//! The tables of the paper, and one of ours with what follows from them for a voice channel.

use super::{LOSS, MPPT, MULTICAST, SPPT, THROUGHPUT, TODAY, findings, readings as r};
use crate::study::{Metric, Reading, Reference, Rows, Table};
use crate::value::Keys;

/// A published table of the study.
macro_rules! published {
    ($name:literal) => {
        Reference::Published(include_str!(concat!(
            "../../../../../papers/weaver1992/reference/",
            $name,
            ".csv"
        )))
    };
}

const SIZE: &[&str] = &["voice_data_bytes"];
const SIZE_AND_LOAD: &[&str] = &["voice_data_bytes", "background_load_mbps"];
const IDLE: &[(&str, &str)] = &[("background_load_mbps", "0")];

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "table01",
        title: "Throughput and latency without load",
        reference: published!("table01"),
        keys: SIZE,
        metrics: &[
            r::FRAME,
            r::PACKETS,
            r::USER_MBPS,
            r::NETWORK_MBPS,
            r::TIME,
            r::RATE,
            r::AVERAGE_ELSEWHERE,
            r::P999_ELSEWHERE,
        ],
        rows: Rows::Points { file: THROUGHPUT, only: IDLE, without: &[] },
    },
    Table {
        name: "table02",
        title: "Time between packets that a channel needs, and that two stations reach",
        reference: published!("table02"),
        keys: SIZE,
        metrics: &[r::NEEDED_PERIOD, r::PERIOD, r::RATE],
        rows: Rows::Points { file: THROUGHPUT, only: IDLE, without: &[] },
    },
    Table {
        name: "table03",
        title: "Voice channels without load",
        reference: published!("table03"),
        keys: SIZE,
        metrics: &[r::USER_KBPS, r::CHANNELS],
        rows: Rows::Points { file: THROUGHPUT, only: IDLE, without: &[] },
    },
    Table {
        name: "table04",
        title: "Load with a single packet per token",
        reference: published!("table04"),
        keys: &["frame_bytes", "frame_bits", "frame_rate_pps"],
        metrics: &[formula("background_load_mbps", 0, |keys| {
            Some(keys.number("frame_rate_pps")? * keys.number("frame_bits")? / 1e6)
        })],
        rows: Rows::Formula,
    },
    Table {
        name: "table05",
        title: "Throughput and voice channels beside single packets per token",
        reference: published!("table05"),
        keys: SIZE_AND_LOAD,
        metrics: &[r::USER_KBPS, r::CHANNELS],
        rows: Rows::Points { file: THROUGHPUT, only: &[], without: &[] },
    },
    Table {
        name: "table06",
        title: "99.9 % latency beside single packets per token",
        reference: Reference::Predicted,
        keys: SIZE_AND_LOAD,
        metrics: &[r::P999],
        rows: Rows::Points { file: SPPT, only: &[], without: &[] },
    },
    Table {
        name: "table07",
        title: "Load with multiple packets per token",
        reference: published!("table07"),
        keys: &["frame_bytes", "frames_per_burst", "burst_rate_per_s"],
        metrics: &[
            formula("burst_period_ms", 2, |keys| Some(1e3 / keys.number("burst_rate_per_s")?)),
            formula("background_load_mbps", 0, |keys| {
                Some(
                    keys.number("frames_per_burst")?
                        * keys.number("burst_rate_per_s")?
                        * keys.number("frame_bytes")?
                        * 8.0
                        / 1e6,
                )
            }),
        ],
        rows: Rows::Formula,
    },
    Table {
        name: "table08",
        title: "Average latency beside multiple packets per token",
        reference: published!("table08"),
        keys: SIZE_AND_LOAD,
        metrics: &[r::AVERAGE],
        rows: Rows::Points { file: MPPT, only: &[], without: &[] },
    },
    Table {
        name: "table09",
        title: "99.9 % latency beside multiple packets per token",
        reference: Reference::Predicted,
        keys: SIZE_AND_LOAD,
        metrics: &[r::P999],
        rows: Rows::Points { file: MPPT, only: &[], without: IDLE },
    },
    Table {
        name: "table10",
        title: "Average latency with loss",
        reference: published!("table10"),
        keys: &["voice_data_bytes", "packet_loss_pct"],
        metrics: &[r::AVERAGE],
        rows: Rows::Points { file: LOSS, only: &[], without: &[] },
    },
    Table {
        name: "table12",
        title: "Average latency to two receivers beside multiple packets per token",
        reference: published!("table12"),
        keys: SIZE_AND_LOAD,
        metrics: &[r::GROUP_AVERAGE],
        rows: Rows::Points { file: MULTICAST, only: &[], without: &[] },
    },
    Table {
        name: "table13",
        title: "99.9 % latency to two receivers beside multiple packets per token",
        reference: Reference::Predicted,
        keys: SIZE_AND_LOAD,
        metrics: &[r::GROUP_P999],
        rows: Rows::Points { file: MULTICAST, only: &[], without: &[] },
    },
    Table {
        name: findings::CHANNEL,
        title: "What that is for a voice channel, by packet size",
        reference: Reference::Own,
        keys: SIZE_AND_LOAD,
        metrics: findings::CHANNEL_METRICS,
        rows: Rows::Points { file: MPPT, only: &[], without: &[] },
    },
    Table {
        name: "today_lan",
        title: "Voice channels each way on a switched LAN of 1 Gbit/s",
        reference: Reference::Own,
        keys: &["transport", "voice_data_bytes"],
        metrics: &[r::USER_KBPS, r::CHANNELS],
        rows: Rows::Points { file: TODAY[0], only: &[], without: &[] },
    },
    Table {
        name: "today_cell",
        title: "Voice channels each way in a Wi-Fi cell, 802.11g at 54 Mbit/s",
        reference: Reference::Own,
        keys: &["transport", "voice_data_bytes"],
        metrics: &[r::USER_KBPS, r::CHANNELS],
        rows: Rows::Points { file: TODAY[1], only: &[], without: &[] },
    },
];

const fn formula(column: &'static str, decimals: usize, formula: fn(&Keys) -> Option<f64>) -> Metric {
    Metric { column, decimals, reading: Reading::Formula(formula) }
}
