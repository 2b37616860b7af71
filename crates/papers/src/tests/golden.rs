//! A few rows of every study, simulated in seconds, and what its summary says of them: medians by class, constants and goals, as
//! printed. A change of the simulator that moves a study shows here, but not all of it: whole studies take minutes with
//! `trunkline paper NAME`, and their figures stand in `papers/NAME/README.md`.
//!
//! - `hawley1989`: the formulas; delays of 12 and 64 bytes alone, and beside four transfers with a window of 256 x 3, on all three
//!   boards; no throughput.
//! - `weaver1992`: latencies of 64 bytes beside bursts and with loss, to one receiver and to two; no throughput.
//! - `lamont1998`: two voice streams beside one TCP connection, in units of 8 KB, across the Atlantic and in the laboratory.
//! - `schiavoni2013`: all networks with UDP in one channel and SCTP 1 in two, in 300 blocks instead of 10,000.

use std::path::Path;

use trunkline_report::Screen;

use crate::run::testing::of_rows;
use crate::study::Cells;
use crate::{How, Results, find};

/// Tables and the rows of them.
type Part = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const HAWLEY: &[Part] = &[
    (&["table01", "table02"], &[]),
    (&["unloaded_min", "unloaded_avg"], &[("message_bytes", "12..12")]),
    (&["unloaded_min", "unloaded_avg"], &[("message_bytes", "64..64")]),
    (
        &["loaded_hfifo", "loaded_fifo", "loaded_rrobin"],
        &[("window_block_bytes", "256"), ("window_blocks", "3"), ("message_bytes", "64")],
    ),
];
const WEAVER: &[Part] =
    &[(&["table06", "table08", "table09", "table10", "table12", "table13"], &[("voice_data_bytes", "64")])];
const LAMONT: &[Part] = &[(
    &["table06", "table10", "table14", "table28", "table31", "table34"],
    &[("bundle_count", "2"), ("window_kbytes", "8..16")],
)];
const SCHIAVONI: &[Part] = &[
    (&["table02", "table03", "table04", "table05", "table06"], &[("protocol", "UDP"), ("channels", "1")]),
    (&["table02", "table03", "table04", "table05", "table06"], &[("protocol", "SCTP 1"), ("channels", "2")]),
];

fn summary(study: &str, parts: &[Part], blocks: Option<u64>) -> String {
    let study = find(study).unwrap();
    let mut all: Option<Results> = None;
    for (tables, only) in parts {
        let only: Cells = only.iter().map(|(key, cell)| ((*key).to_owned(), (*cell).to_owned())).collect();
        let part = of_rows(study, tables, &only, How { blocks, ..How::simulated(2) });
        match &mut all {
            None => all = Some(part),
            Some(all) => {
                for table in part.tables {
                    match all.tables.iter_mut().find(|known| known.table.name == table.table.name) {
                        Some(known) => known.rows.extend(table.rows),
                        None => all.tables.push(table),
                    }
                }
            }
        }
    }
    crate::summary(&all.unwrap(), Screen::default())
}

/// Compares with the file of the study, or writes it.
fn is_as_accepted(study: &str, parts: &[Part], blocks: Option<u64>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden").join(format!("{study}.txt"));
    let found = summary(study, parts, blocks);
    if std::env::var_os("TRUNKLINE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &found).unwrap();
        return;
    }
    let accepted = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = |of: &str, other: &str, sign: char| {
        let is_new = |line: &&str| !other.lines().any(|known| known == *line);
        of.lines().filter(is_new).map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    assert!(
        found == accepted,
        "figures of {study} have changed:\n{}{}if that is right, accept them with\n\
         TRUNKLINE_GOLDEN=1 cargo test -p trunkline-papers golden\n\
         and run `trunkline paper {study}` for the figures of its README",
        lines(&accepted, &found, '-'),
        lines(&found, &accepted, '+')
    );
}

#[test]
fn hawley1989_is_as_accepted() {
    is_as_accepted("hawley1989", HAWLEY, None);
}

#[test]
fn weaver1992_is_as_accepted() {
    is_as_accepted("weaver1992", WEAVER, None);
}

#[test]
fn lamont1998_is_as_accepted() {
    is_as_accepted("lamont1998", LAMONT, None);
}

#[test]
fn schiavoni2013_is_as_accepted() {
    is_as_accepted("schiavoni2013", SCHIAVONI, Some(300));
}
