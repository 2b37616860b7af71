//! The study of protocols for audio: its conclusions, and the parts that run.

use std::sync::atomic::AtomicBool;

use crate::goals::{Judged, Outcome, judge};
use crate::results::Results;
use crate::run::testing::unsimulated;
use crate::study::{Rows, Study};
use crate::{How, PaperError};

/// By cable: the protocols that do more take longer.
const WIRED: &str = "UDP < DCCP, TCP < SCTP 1, SCTP 2";
/// By Wi-Fi: those that repeat what is lost take longer than those that do not.
const WIRELESS: &str = "DCCP < UDP < SCTP 1, SCTP 2, TCP";

fn study() -> &'static Study {
    crate::find("schiavoni2013").unwrap()
}

fn published() -> Results {
    let mut results = unsimulated(study());
    for cell in results.tables.iter_mut().flat_map(|table| &mut table.rows).flat_map(|row| &mut row.cells) {
        cell.simulated = cell.published.as_ref().map(|published| published.number);
    }
    results
}

/// The rules of the conclusions are the study's: from what it printed they find what it says.
#[test]
fn the_published_tables_reach_every_goal_that_they_can_be_held_against() {
    let judged = judge(&published());
    let missed: Vec<&Judged> = judged.iter().filter(|goal| goal.outcome == Outcome::Missed).collect();
    assert!(missed.is_empty(), "{missed:?}");
    let met: Vec<&str> =
        judged.iter().filter(|goal| goal.outcome == Outcome::Met).map(|goal| goal.found.as_str()).collect();
    assert_eq!(met.len(), 9);
    assert_eq!(met[5..], [WIRELESS, WIRELESS, "UDP, DCCP", "UDP, DCCP"]);
    // Their order by cable is that of the efforts, which the model is given.
    let given = judged.iter().filter(|goal| goal.found.starts_with(&format!("{WIRED}; not judged")));
    assert_eq!(given.count(), 3);
}

#[test]
fn a_measured_order_is_judged_though_the_model_is_given_it() {
    let mut results = published();
    for table in &mut results.tables {
        table.on = trunkline_store::Backend::Wire;
    }
    assert_eq!(judge(&results)[6].outcome, Outcome::Met);
}

#[test]
fn protocols_out_of_order_are_told_one_by_one() {
    let mut results = published();
    let table = results.tables.iter_mut().find(|table| table.table.name == "table03").unwrap();
    for row in table.rows.iter_mut().filter(|row| row.keys.are(&[("protocol", "UDP")])) {
        row.cells[0].simulated = Some(0.7);
    }
    assert!(judge(&results)[6].found.starts_with("DCCP < TCP < UDP < SCTP 1 < SCTP 2; not judged"));
}

#[test]
fn every_flow_of_the_live_table_is_one_of_its_experiment() {
    let table = study().table("here").unwrap();
    let Rows::Flows { file, flows } = &table.rows else { panic!("{:?}", table.rows) };
    let text = study().file(file).unwrap();
    assert_eq!(file, "here.toml");
    assert!(flows.iter().all(|(flow, _)| text.contains(&format!("[flow.{flow}]\n"))));
    assert_eq!(text.matches("[flow.").count(), flows.len());
}

/// A few blocks, which say nothing of the study but that all of it runs.
#[test]
fn few_blocks_of_every_table_are_simulated_and_what_is_live_stays_empty() {
    let how = How { blocks: Some(40), repetitions: Some(1), ..How::simulated(2) };
    let results = crate::run(study(), &[], how, &()).unwrap();
    for table in &results.tables {
        let is_live = table.table.name == "here";
        for row in &table.rows {
            assert_eq!(row.cells[0].simulated.is_none(), is_live, "{} {}", table.table.name, row.keys);
        }
    }
    let cell =
        |table: &str, row: usize, cell: usize| results.table(table).unwrap().rows[row].cells[cell].simulated;
    // 0.13 ms but for the noise, which few blocks may not have.
    assert!((0.11..0.3).contains(&cell("table02", 0, 0).unwrap()), "{:?}", cell("table02", 0, 0));
    assert_eq!(cell("table03", 0, 2), Some(0.0));
    // Beside this machine stand the two computers: SCTP one-to-many with two channels.
    assert_eq!((cell("here", 9, 5), cell("here", 9, 6)), (Some(0.35), Some(0.69)));
    assert!(!results.stopped);
}

#[test]
fn what_a_study_does_not_have_is_refused() {
    let hawley = crate::find("hawley1989").unwrap();
    let how = How { blocks: Some(40), ..How::simulated(1) };
    let error = crate::run(hawley, &["unloaded_min"], how, &()).unwrap_err();
    assert!(error.is_bad_input() && matches!(error, PaperError::Unsuitable { .. }), "{error}");
}

#[test]
fn a_stopped_study_keeps_its_formulas_and_says_so() {
    let stop = AtomicBool::new(true);
    let how = How { stop: &stop, ..How::simulated(1) };
    let results = crate::run(study(), &["table03", "here"], how, &()).unwrap();
    assert!(results.stopped);
    assert!(results.tables[0].rows.iter().all(|row| row.cells[0].simulated.is_none()));
    assert_eq!(results.tables[1].rows[0].cells[5].simulated, Some(0.13));
}
