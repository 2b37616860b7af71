//! The study of voice channels: its conclusions.

use crate::goals::{Outcome, judge};
use crate::results::Results;
use crate::run::testing::unsimulated;

/// The published values as if they were simulated, and a packet of 256 bytes beside bursts that comes between 5 and 9 ms.
fn published() -> Results {
    let mut results = unsimulated(crate::find("weaver1992").unwrap());
    for table in &mut results.tables {
        let is_of_channel = table.table.name == "channel";
        for row in &mut table.rows {
            for (place, cell) in row.cells.iter_mut().enumerate() {
                if let Some(published) = &cell.published {
                    cell.simulated = Some(published.number);
                }
                if is_of_channel && place > 0 {
                    cell.simulated = Some([5.0, 9.04][place - 1]);
                }
            }
        }
    }
    results
}

/// The answers to the study's three questions, in the order of the goals.
fn conclusions(results: &Results) -> Vec<(String, Outcome)> {
    let judged = judge(results).into_iter().filter(|judged| !judged.goal.contains(" median error "));
    let judged = judged.filter(|judged| !judged.goal.contains(": within "));
    judged.map(|judged| (judged.found, judged.outcome)).collect()
}

/// The rules of the conclusions are the study's: from its printed values they find its answers.
#[test]
fn the_published_tables_give_the_published_answers() {
    let found = conclusions(&published());
    for (found, answer) in found.iter().zip(["4096 bytes; not judged: ", "32 bytes; not judged: "]) {
        assert!(found.0.starts_with(answer) && found.1 == Outcome::NotJudged, "{found:?}");
    }
    let text = "256 bytes: 12 channels, 32 ms of speech in a packet, jitter 4.0 ms, start-up delay 41.0 ms, margin to the \
                deadline 28.0 ms";
    assert_eq!(found[2], (text.to_owned(), Outcome::NotJudged));
}

#[test]
fn no_packet_is_recommended_if_all_are_late() {
    let mut results = published();
    let channel = results.tables.iter_mut().find(|table| table.table.name == "channel").unwrap();
    channel.rows.iter_mut().for_each(|row| row.cells[2].simulated = Some(300.0));
    assert_eq!(conclusions(&results)[2].0, "no size is good");
}

/// Gaps of a stopped study do not count as answers.
#[test]
fn nothing_is_concluded_from_cells_without_figures() {
    let results = unsimulated(crate::find("weaver1992").unwrap());
    assert_eq!(conclusions(&results), []);
}
