//! The tables of the paper, and three of ours: delay and fairness, which it could not measure, and all cells of a stream.

use super::readings::{CELLS, DELAY, INTERARRIVAL, LOSS, TCP, UDP};
use super::{LAN_ONE_TCP, LAN_ONE_VOICE, LAN_VOICE, WAN_ONE_TCP, WAN_ONE_VOICE, WAN_VOICE};
use crate::study::{Reference, Rows, Table};

/// A table a line: its name, whether it is published here, its title, its keys, what it shows, its experiment, and
/// which points of that.
macro_rules! tables {
    ($($name:literal $kind:ident $title:literal $keys:ident $metrics:ident $file:ident $only:ident;)*) => {
        &[$(Table {
            name: $name,
            title: $title,
            reference: reference!($kind $name),
            keys: $keys,
            metrics: $metrics,
            rows: Rows::Points { file: $file, only: $only, without: &[] },
        }),*]
    };
}

macro_rules! reference {
    (published $name:literal) => {
        Reference::Published(include_str!(concat!(
            "../../../../../papers/lamont1998/reference/",
            $name,
            ".csv"
        )))
    };
    (predicted $name:literal) => {
        Reference::Predicted
    };
    (own $name:literal) => {
        Reference::Own
    };
}

const BUNDLE: &[&str] = &["bundle_count"];
const SWEPT: &[&str] = &["bundle_count", "tsdu_kbytes", "window_kbytes"];

type Only = &'static [(&'static str, &'static str)];

const ALL: Only = &[];
const UNIT_4: Only = &[("tsdu_kbytes", "4")];
const UNIT_8: Only = &[("tsdu_kbytes", "8")];
const UNIT_10: Only = &[("tsdu_kbytes", "10")];
const UNIT_20: Only = &[("tsdu_kbytes", "20")];
/// What the test set saw.
const WINDOW_16: Only = &[("tsdu_kbytes", "8"), ("window_kbytes", "16"), ("bundle_count", "1..8")];
const WINDOW_50: Only = &[("tsdu_kbytes", "8"), ("window_kbytes", "50"), ("bundle_count", "1..8")];

pub(super) const TABLES: &[Table] = tables![
    "table01" published "Cells of voice beside TCP, window 16 KB, across the Atlantic" BUNDLE INTERARRIVAL WAN_ONE_TCP WINDOW_16;
    "table02" published "Cells of voice beside TCP, window 50 KB, across the Atlantic" BUNDLE INTERARRIVAL WAN_ONE_TCP WINDOW_50;
    "table03" predicted "Cells of voice beside TCP, window 16 KB, in the laboratory" BUNDLE INTERARRIVAL LAN_ONE_TCP WINDOW_16;
    "table04" predicted "Cells of voice beside TCP, window 50 KB, in the laboratory" BUNDLE INTERARRIVAL LAN_ONE_TCP WINDOW_50;
    "table05" published "TCP beside voice, units of 4 KB, across the Atlantic" SWEPT TCP WAN_ONE_TCP UNIT_4;
    "table06" published "TCP beside voice, units of 8 KB, across the Atlantic" SWEPT TCP WAN_ONE_TCP UNIT_8;
    "table07" published "TCP beside voice, units of 10 KB, across the Atlantic" SWEPT TCP WAN_ONE_TCP UNIT_10;
    "table08" published "TCP beside voice, units of 20 KB, across the Atlantic" SWEPT TCP WAN_ONE_TCP UNIT_20;
    "table09" published "Voice beside TCP, units of 4 KB, across the Atlantic" SWEPT UDP WAN_ONE_TCP UNIT_4;
    "table10" published "Voice beside TCP, units of 8 KB, across the Atlantic" SWEPT UDP WAN_ONE_TCP UNIT_8;
    "table11" published "Voice beside TCP, units of 10 KB, across the Atlantic" SWEPT UDP WAN_ONE_TCP UNIT_10;
    "table12" published "Voice beside TCP, units of 20 KB, across the Atlantic" SWEPT UDP WAN_ONE_TCP UNIT_20;
    "table13" published "Voice lost beside TCP, units of 4 KB, across the Atlantic" SWEPT LOSS WAN_ONE_TCP UNIT_4;
    "table14" published "Voice lost beside TCP, units of 8 KB, across the Atlantic" SWEPT LOSS WAN_ONE_TCP UNIT_8;
    "table15" published "Voice lost beside TCP, units of 10 KB, across the Atlantic" SWEPT LOSS WAN_ONE_TCP UNIT_10;
    "table16" published "Voice lost beside TCP, units of 20 KB, across the Atlantic" SWEPT LOSS WAN_ONE_TCP UNIT_20;
    "table17" published "Several TCP beside voice, units of 4 KB, across the Atlantic" SWEPT TCP WAN_ONE_VOICE UNIT_4;
    "table18" published "Several TCP beside voice, units of 8 KB, across the Atlantic" SWEPT TCP WAN_ONE_VOICE UNIT_8;
    "table19" published "Several TCP beside voice, units of 10 KB, across the Atlantic" SWEPT TCP WAN_ONE_VOICE UNIT_10;
    "table20" published "Several TCP beside voice, units of 20 KB, across the Atlantic" SWEPT TCP WAN_ONE_VOICE UNIT_20;
    "table21" published "Voice beside several TCP, units of 4 KB, across the Atlantic" SWEPT UDP WAN_ONE_VOICE UNIT_4;
    "table22" published "Voice beside several TCP, units of 8 KB, across the Atlantic" SWEPT UDP WAN_ONE_VOICE UNIT_8;
    "table23" published "Voice beside several TCP, units of 10 KB, across the Atlantic" SWEPT UDP WAN_ONE_VOICE UNIT_10;
    "table24" published "Voice beside several TCP, units of 20 KB, across the Atlantic" SWEPT UDP WAN_ONE_VOICE UNIT_20;
    "table25" published "Voice alone, across the Atlantic" BUNDLE UDP WAN_VOICE ALL;
    "table26" published "Voice lost alone, across the Atlantic" BUNDLE LOSS WAN_VOICE ALL;
    "table27" predicted "TCP beside voice, units of 4 KB, in the laboratory" SWEPT TCP LAN_ONE_TCP UNIT_4;
    "table28" predicted "TCP beside voice, units of 8 KB, in the laboratory" SWEPT TCP LAN_ONE_TCP UNIT_8;
    "table29" predicted "TCP beside voice, units of 20 KB, in the laboratory" SWEPT TCP LAN_ONE_TCP UNIT_20;
    "table30" predicted "Voice beside TCP, units of 4 KB, in the laboratory" SWEPT UDP LAN_ONE_TCP UNIT_4;
    "table31" predicted "Voice beside TCP, units of 8 KB, in the laboratory" SWEPT UDP LAN_ONE_TCP UNIT_8;
    "table32" predicted "Voice beside TCP, units of 20 KB, in the laboratory" SWEPT UDP LAN_ONE_TCP UNIT_20;
    "table33" predicted "Voice lost beside TCP, units of 4 KB, in the laboratory" SWEPT LOSS LAN_ONE_TCP UNIT_4;
    "table34" predicted "Voice lost beside TCP, units of 8 KB, in the laboratory" SWEPT LOSS LAN_ONE_TCP UNIT_8;
    "table35" predicted "Voice lost beside TCP, units of 20 KB, in the laboratory" SWEPT LOSS LAN_ONE_TCP UNIT_20;
    "table36" predicted "Several TCP beside voice, units of 4 KB, in the laboratory" SWEPT TCP LAN_ONE_VOICE UNIT_4;
    "table37" predicted "Several TCP beside voice, units of 8 KB, in the laboratory" SWEPT TCP LAN_ONE_VOICE UNIT_8;
    "table38" predicted "Several TCP beside voice, units of 20 KB, in the laboratory" SWEPT TCP LAN_ONE_VOICE UNIT_20;
    "table39" predicted "Voice beside several TCP, units of 4 KB, in the laboratory" SWEPT UDP LAN_ONE_VOICE UNIT_4;
    "table40" predicted "Voice beside several TCP, units of 8 KB, in the laboratory" SWEPT UDP LAN_ONE_VOICE UNIT_8;
    "table41" predicted "Voice beside several TCP, units of 20 KB, in the laboratory" SWEPT UDP LAN_ONE_VOICE UNIT_20;
    "table42" published "Voice alone, in the laboratory" BUNDLE UDP LAN_VOICE ALL;
    "table43" published "Voice lost alone, in the laboratory" BUNDLE LOSS LAN_VOICE ALL;
    "delay_one_tcp" own "Delay of voice beside TCP, and fairness, across the Atlantic" SWEPT DELAY WAN_ONE_TCP ALL;
    "delay_one_voice" own "Delay of voice beside several TCP, fairness, across the Atlantic" SWEPT DELAY WAN_ONE_VOICE ALL;
    "cells_one_tcp" own "All cells of one voice stream beside TCP, across the Atlantic" SWEPT CELLS WAN_ONE_TCP UNIT_8;
];
