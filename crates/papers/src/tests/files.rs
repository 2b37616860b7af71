//! Study files: those of the program are complete, and wrong ones give their problems.

use std::collections::BTreeSet;

use super::{folder, leaked};
use crate::flags::Flags;
use crate::reference;
use crate::results::Results;
use crate::run::testing::{unsimulated, without_point};
use crate::studies;
use crate::study::{Cells, NotReproduced, Study, Table};

/// Every published cell has either a figure of ours or a reason why not.
#[test]
fn every_published_cell_is_mapped_or_has_a_reason() {
    for study in studies() {
        let results = unsimulated(study);
        let lacking: BTreeSet<String> =
            without_point(study).into_iter().map(|(table, keys)| format!("{table}: {keys}")).collect();
        let mut used = vec![false; study.not_reproduced.len()];
        for entry in std::fs::read_dir(folder(study).join("reference")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.extension().is_none_or(|ending| ending != "csv")
                || ["INDEX", "flagged_cells"].contains(&name)
            {
                continue;
            }
            let Some(table) = study.table(name) else {
                let reason = study.not_reproduced.iter().position(|cells| cells.table == name);
                used[reason.unwrap_or_else(|| {
                    panic!("{}: {name} is neither mapped nor has it a reason", study.name)
                })] = true;
                continue;
            };
            assert!(table.reference.published().is_some(), "{}: {name} is published", study.name);
            for (keys, column) in published(&results, name) {
                let is_it = |cells: &NotReproduced| {
                    let is_of_column = cells.columns.is_empty() || cells.columns.contains(&column);
                    cells.table == name && is_of_column && keys.are(&cells.only)
                };
                let reason = study.not_reproduced.iter().position(is_it);
                let is_mapped = !lacking.contains(&format!("{name}: {keys}"));
                assert_eq!(is_mapped, reason.is_none(), "{} {name}: {keys} {column}", study.name);
                if let Some(place) = reason {
                    used[place] = true;
                }
            }
        }
        assert!(used.iter().all(|used| *used), "{}: {:?}", study.name, study.not_reproduced);
    }
}

/// The rows and columns of published cells.
fn published<'r>(results: &'r Results, table: &str) -> impl Iterator<Item = (&'r crate::Keys, String)> {
    let table = results.table(table).unwrap();
    table.rows.iter().flat_map(move |row| {
        let cells = table.table.metrics.iter().zip(&row.cells).filter(|(_, cell)| cell.published.is_some());
        cells.map(|(metric, _)| (&row.keys, metric.column.clone()))
    })
}

/// Notes and classes select rows that their tables have.
#[test]
fn every_selection_finds_rows() {
    for study in studies() {
        let results = unsimulated(study);
        let finds = |table: &str, only: &Cells| {
            let rows = &results.table(table).unwrap().rows;
            assert!(rows.iter().any(|row| row.keys.are(only)), "{} {table}: {only:?}", study.name);
        };
        let selections = study.notes.iter().map(|note| (&note.tables, &note.only));
        let selections = selections.chain(study.classes.iter().map(|class| (&class.tables, &class.only)));
        selections.for_each(|(tables, only)| tables.iter().for_each(|table| finds(table, only)));
        study.repeats.iter().for_each(|repeat| {
            repeat.tables.iter().for_each(|table| finds(table, &repeat.only));
            assert!(!repeat.of.is_empty());
        });
        assert!(study.constants() > 0);
        assert!(study.not_reproduced.iter().all(|cells| !cells.reason.is_empty()));
    }
}

const TABLE: &str = "mean_ms,std_ms\n";
const EXPERIMENT: &str = "name = \"a\"\n";
const STUDY: &str = r#"title = "A"
authors = "B"
year = 2000
reproduced = "C"
[experiments]
"a.toml" = ["size"]
[axis.size]
key = "flow.f.source.message"
columns = ["message_bytes"]
[column.mean_ms]
decimals = 1
flow = "f"
value = "latency_mean / 2"
unit = "ms"
[column.double]
decimals = 0
value = "message_bytes * 2"
[[table]]
name = "delay"
title = "Delay"
keys = ["message_bytes"]
columns = ["mean_ms", "double"]
experiment = "a.toml"
[[figure]]
number = 1
title = "D"
x = ["message_bytes"]
x-label = "E"
column = "mean_ms"
y-label = "F"
series = [{ label = "G", table = "delay" }]
[[goal]]
error = { tables = ["delay"], columns = ["mean_ms"], only = { message_bytes = "1..2" }, median = 0.1 }
[[goal]]
conclusion = { question = "H", find.best = { table = "delay", largest = "mean_ms", text = "{message_bytes}" } }
"#;

fn written(text: &str) -> Result<&'static Study, String> {
    leaked(&[("study.toml", text), ("a.toml", EXPERIMENT), ("reference/delay.csv", TABLE)])
}

#[test]
fn a_right_file_is_read() {
    let study = written(STUDY).unwrap();
    let table: &'static Table = study.table("delay").unwrap();
    assert_eq!(reference::columns(table).collect::<Vec<_>>(), ["message_bytes", "mean_ms", "double"]);
    assert_eq!((table.files(), table.metrics[0].is_run()), (vec!["a.toml"], true));
    assert!(Flags::read("").is_err());
}

/// A change of the file, and the problem that it gives.
#[test]
fn wrong_files_give_their_problems_with_places() {
    for (right, wrong, told) in [
        ("title = \"A\"\n", "titel = \"A\"\n", "1:1: unknown key `titel`; did you mean `title`?"),
        ("year = 2000\n", "", "1:1: the key `year` is missing"),
        ("year = 2000", "year = \"2000\"", "3:8: invalid type: string \"2000\", expected u16"),
        ("year = 2000", "year = ", "3:8: string values must be quoted, expected literal string"),
        (
            "\"a.toml\" = [\"size\"]",
            "\"b.toml\" = [\"size\"]",
            "6:12: there is no file `b.toml` in the study's folder",
        ),
        ("[\"size\"]", "[\"sise\"]", "6:13: unknown axis `sise`; did you mean `size`?"),
        (
            "latency_mean / 2",
            "latency_men / 2",
            "13:9: unknown figure of a flow `latency_men`; did you mean `latency_mean`?",
        ),
        ("latency_mean / 2", "latency_mean /", "13:9: `latency_mean /` ends where a value is missing"),
        ("unit = \"ms\"", "unit = \"KiB/s\"", "14:8: `latency_mean` needs a `unit`: `s`, `ms`, `us`"),
        ("unit = \"ms\"", "unit = \"min\"", "14:8: unknown unit `min`; known: "),
        (
            "message_bytes * 2",
            "message_byte * 2",
            "22:23: unknown key column of `double` `message_byte`; did you mean `message_bytes`?",
        ),
        (
            "name = \"delay\"",
            "name = \"deley\"",
            "19:8: there is no published table `reference/deley.csv` in the study's folder",
        ),
        (
            "columns = [\"mean_ms\", \"double\"]",
            "columns = [\"mean_ms\", \"doubel\"]",
            "22:23: unknown column `doubel`; did you mean `double`?",
        ),
        (
            "keys = [\"message_bytes\"]",
            "keys = [\"bytes\"]",
            "21:9: unknown column of a.toml `bytes`; known: `message_bytes`",
        ),
        (
            "experiment = \"a.toml\"",
            "experiment = \"c.toml\"",
            "23:14: unknown experiment `c.toml`; did you mean `a.toml`?",
        ),
        ("table = \"delay\" }]", "table = \"dely\" }]", "31:34: unknown table `dely`; did you mean `delay`?"),
        (
            "{ message_bytes = \"1..2\" }",
            "{ message_byte = 1 }",
            "33:78: unknown key column of `delay` `message_byte`; did you mean `message_bytes`?",
        ),
        (
            "columns = [\"mean_ms\"], only",
            "columns = [\"mean\"], only",
            "33:42: unknown column of `delay` `mean`; known: `mean_ms` and `double`",
        ),
        ("error = {", "eror = {", "33:1: unknown word `eror`; did you mean `error`?"),
        (
            "{message_bytes}",
            "{message}",
            "35:44: unknown name `message`; known: `message_bytes`, `mean_ms` and `double`",
        ),
        ("{message_bytes}", "{message_bytes", "lacks a closing brace"),
    ] {
        assert_eq!(STUDY.matches(right).count(), 1, "{right}");
        let problems = written(&STUDY.replace(right, wrong)).unwrap_err();
        let lines: Vec<&str> = problems.lines().filter(|line| line.contains("study.toml:")).collect();
        assert!(lines.iter().any(|line| line.contains(told)), "{told}\n{problems}");
        assert!(lines.iter().all(|line| line.starts_with("papers/a/study.toml:")), "{problems}");
    }
}
