//! The tables of the paper: 1 and 2, and those of its Appendix A.

use super::{LOADED, REPETITIONS, THROUGHPUT, UNLOADED, formulas, readings};
use crate::study::{Metric, Reading, Reference, Rows, Table};

/// A published table of the study.
macro_rules! published {
    ($name:literal) => {
        Reference::Published(include_str!(concat!(
            "../../../../../papers/hawley1989/reference/",
            $name,
            ".csv"
        )))
    };
}

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "table01",
        title: "Largest user throughput of round robin over T1 (1 KB = 1000 bytes)",
        reference: published!("table01"),
        keys: &["quantum_bytes", "urp_block_bytes"],
        metrics: &[Metric {
            column: "throughput_kbytes_s",
            decimals: 1,
            reading: Reading::Formula(formulas::throughput),
        }],
        rows: Rows::Formula,
    },
    Table {
        name: "table02",
        title: "Largest wait in board memory under round robin",
        reference: published!("table02"),
        keys: &["quantum_bytes", "active_channels"],
        metrics: &[Metric {
            column: "queueing_delay_us",
            decimals: 0,
            reading: Reading::Formula(formulas::queueing_delay),
        }],
        rows: Rows::Formula,
    },
    Table {
        name: "throughput",
        title: "Throughput of bulk transfers, 1 and 4 conversations",
        reference: published!("throughput"),
        keys: &["discipline", "window_block_bytes", "window_blocks", "conversations"],
        metrics: readings::THROUGHPUT,
        rows: Rows::Points { file: THROUGHPUT, only: &[], without: &[] },
    },
    Table {
        name: "std_dev_tests",
        title: "Message delay against repetition count, round robin, no background load",
        reference: published!("std_dev_tests"),
        keys: &["iterations", "message_bytes"],
        metrics: readings::AVERAGE,
        rows: Rows::Points { file: REPETITIONS, only: &[], without: &[] },
    },
    Table {
        name: "unloaded_min",
        title: "Message delay without background load, minimum estimate",
        reference: published!("unloaded_min"),
        keys: &["discipline", "message_bytes"],
        metrics: readings::MINIMUM,
        rows: Rows::Points { file: UNLOADED, only: &[], without: &[] },
    },
    Table {
        name: "unloaded_avg",
        title: "Message delay without background load, average",
        reference: published!("unloaded_avg"),
        keys: &["discipline", "message_bytes"],
        metrics: readings::AVERAGE,
        rows: Rows::Points { file: UNLOADED, only: &[], without: &[] },
    },
    Table {
        name: "loaded_hfifo",
        title: "Message delay beside four bulk transfers, hardware FIFO",
        reference: published!("loaded_hfifo"),
        keys: LOADED_KEYS,
        metrics: readings::AVERAGE,
        rows: Rows::Points { file: LOADED, only: &[("discipline", "hfifo")], without: &[] },
    },
    Table {
        name: "loaded_fifo",
        title: "Message delay beside four bulk transfers, software FIFO",
        reference: published!("loaded_fifo"),
        keys: LOADED_KEYS,
        metrics: readings::AVERAGE,
        rows: Rows::Points { file: LOADED, only: &[("discipline", "fifo")], without: &[] },
    },
    Table {
        name: "loaded_rrobin",
        title: "Message delay beside four bulk transfers, round robin",
        reference: Reference::Predicted,
        keys: LOADED_KEYS,
        metrics: readings::AVERAGE,
        rows: Rows::Points { file: LOADED, only: &[("discipline", "rrobin")], without: &[] },
    },
];

const LOADED_KEYS: &[&str] = &["window_block_bytes", "window_blocks", "message_bytes"];
