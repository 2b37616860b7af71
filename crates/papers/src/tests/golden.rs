//! Every study as a whole, simulated as `trunkline paper NAME` does, and what its summary says: medians by class, constants and
//! goals, as printed. A change of the simulator that moves a study fails here.

use std::fs;
use std::path::{Path, PathBuf};

use trunkline_report::Screen;

use super::folder;
use crate::reference::columns;
use crate::results::{Results, TableResults};
use crate::{How, accepted, find, run, studies, summary};

/// The summary of a study, as it was accepted.
pub(super) fn golden(study: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden").join(format!("{study}.txt"))
}

/// The values of a table that runs have, with six digits, as `papers/STUDY/ours` keeps them; `None` without any.
fn kept(found: &TableResults) -> Option<String> {
    let mut text = columns(found.table).collect::<Vec<_>>().join(",");
    let mut is_run = false;
    for row in &found.rows {
        let keys = row.keys.0.iter().map(|(_, value)| value.to_string());
        let cells = found.table.metrics.iter().zip(&row.cells).map(|(metric, cell)| {
            let value = cell.simulated.filter(|_| metric.is_run());
            is_run |= value.is_some();
            value.map_or_else(String::new, |value| format!("{value:.5e}").parse::<f64>().unwrap().to_string())
        });
        text += "\n";
        text += &keys.chain(cells).collect::<Vec<_>>().join(",");
    }
    is_run.then_some(text + "\n")
}

/// The file of our values of a table.
fn file(results: &Results, table: &TableResults) -> PathBuf {
    folder(results.study).join("ours").join(format!("{}.csv", table.table.name))
}

/// Compares with the files of the study, or writes them.
fn is_as_accepted(study: &str) {
    let path = golden(study);
    let results = run(find(study).unwrap(), &[], How::simulated(2), &()).unwrap();
    let found = summary(&results, Screen::default());
    let tables = results.tables.iter().filter_map(|table| Some((file(&results, table), kept(table)?)));
    if std::env::var_os("TRUNKLINE_GOLDEN").is_some() {
        for (path, text) in tables.chain([(path, found)]) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        return;
    }
    for (path, text) in tables {
        let is_kept = fs::read_to_string(&path).is_ok_and(|kept| kept == text);
        assert!(is_kept, "{} is not what is simulated; accept it as the summary is", path.display());
    }
    let accepted = fs::read_to_string(&path).unwrap_or_default();
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

/// The page shows the kept values before anything was repeated: medians, goals and figures.
#[test]
fn kept_values_give_the_accepted_summary() {
    for study in studies() {
        let summary = summary(&accepted(study).unwrap(), Screen::default());
        assert_eq!(summary, fs::read_to_string(golden(&study.name)).unwrap(), "{}", study.name);
    }
}

#[test]
fn hawley1989_is_as_accepted() {
    is_as_accepted("hawley1989");
}

#[test]
fn weaver1992_is_as_accepted() {
    is_as_accepted("weaver1992");
}

#[test]
fn lamont1998_is_as_accepted() {
    is_as_accepted("lamont1998");
}

#[test]
fn schiavoni2013_is_as_accepted() {
    is_as_accepted("schiavoni2013");
}
