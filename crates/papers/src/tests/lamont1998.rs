//! The study of bundles: its conclusions, goals and columns.

use std::sync::atomic::{AtomicUsize, Ordering};

use trunkline_core::Duration;

use super::leaked;
use crate::goals::{Judged, Outcome, judge};
use crate::read::FILE;
use crate::results::Results;
use crate::run::testing::unsimulated;
use crate::study::Study;

fn study() -> &'static Study {
    crate::find("lamont1998").unwrap()
}

/// As if the simulation had found this share of what was published.
fn published_times(share: f64) -> Results {
    let mut results = unsimulated(study());
    for cell in results.tables.iter_mut().flat_map(|table| &mut table.rows).flat_map(|row| &mut row.cells) {
        cell.simulated = cell.published.as_ref().map(|published| published.number * share);
    }
    results
}

/// The rules of the conclusions are the study's: from what it printed they find what it says.
#[test]
fn the_published_tables_reach_every_goal_and_conclusion() {
    let judged = judge(&published_times(1.0));
    assert_eq!(judged.len(), study().goals.len());
    let missed: Vec<&Judged> = judged.iter().filter(|goal| goal.outcome == Outcome::Missed).collect();
    assert!(missed.is_empty(), "{missed:?}");
    let found: Vec<&str> = judged[8..].iter().map(|goal| goal.found.as_str()).collect();
    assert_eq!(
        found.iter().map(|found| found.split(';').next().unwrap()).collect::<Vec<_>>(),
        ["4", "12", "2", "6"]
    );
    // The constants were chosen so that twelve keep their rate.
    let judged: Vec<bool> = judged[8..].iter().map(|goal| goal.outcome == Outcome::Met).collect();
    assert_eq!(judged, [true, false, true, true]);
}

#[test]
fn goals_are_of_the_rows_that_were_not_calibrated_from() {
    let judged = judge(&published_times(1.0));
    assert_eq!(
        judged[0].goal,
        "table05, table06, table07, table08 tcp_throughput_kbytes_s, bundle_count 2..12: median error at most 5 %, \
         worst at most 15 %"
    );
    // Rows of one bundle and of 16 may be as far off as they like; of 12 none may.
    for (bundle, outcome) in [("1", Outcome::Met), ("16", Outcome::Met), ("12", Outcome::Missed)] {
        let mut results = published_times(1.0);
        for table in results.tables.iter_mut().filter(|table| table.table.name == "table07") {
            for row in table.rows.iter_mut().filter(|row| row.keys.are(&[("bundle_count", bundle)])) {
                row.cells[0].simulated = Some(1.0);
            }
        }
        let judged = judge(&results);
        assert_eq!(judged[0].outcome, outcome, "{bundle}");
        let names_the_row = judged[0].found.contains("at table07: 12, 10, ");
        assert_eq!(names_the_row, outcome == Outcome::Missed, "{}", judged[0].found);
    }
    let far = judge(&published_times(1.04));
    let outcomes: Vec<Outcome> = far[..4].iter().map(|goal| goal.outcome).collect();
    use Outcome::{Met, Missed};
    assert_eq!(outcomes, [Met, Missed, Met, Met]);
}

#[test]
fn notes_stand_where_the_model_cannot_follow() {
    let results = published_times(1.0);
    for note in &study().notes {
        for table in &note.tables {
            let rows = &results.table(table).unwrap().rows;
            assert!(rows.iter().any(|row| row.keys.are(&note.only)), "{table}");
        }
    }
    let json = crate::json(&results);
    let noted = |table: &str| {
        let lines = json.lines().filter(|line| line.contains(&format!("\"table\":\"{table}\"")));
        lines.filter(|line| line.contains("\"note\":")).count()
    };
    assert_eq!(["table05", "table17", "table25", "table26"].map(noted), [0, 28, 2, 10]);
    let shown = crate::tables(&results, trunkline_report::Screen::default());
    assert!(shown.contains("Beyond 12 streams") && crate::html(&results).contains("Beyond 12 streams"));
}

/// Three streams and a window of 4 KB, in the tables of the study with another experiment: nothing is in the way of anything.
fn easy() -> &'static Study {
    let text = study().file(FILE).unwrap();
    let columns = &text[text.find("[column.tcp").unwrap()..text.find("[[table]]").unwrap()];
    let mut file = String::from(
        "title = \"Easy\"\nauthors = \"\"\nyear = 1998\nreproduced = \"\"\n[experiments]\n\"easy.toml\" = [\"voice\"]\n\
         [axis.voice]\nkey = \"flow.voice.count\"\ncolumns = [\"bundle_count\"]\n",
    );
    file += columns;
    for (name, columns) in [
        ("throughput", r#"["tcp_throughput_kbytes_s", "udp_throughput_kbytes_s", "udp_loss_pct"]"#),
        ("interarrival", r#"["mean_interarrival_ms", "std_interarrival_ms"]"#),
        ("delay", r#"["mean_ms", "p99_ms", "max_ms", "fairness_udp", "fairness_tcp"]"#),
        ("cells", r#"["cells", "lost", "delay_variation_ms", "mean-of-cells", "std-of-cells"]"#),
    ] {
        file += &format!(
            "[[table]]\nname = \"{name}\"\ntitle = \"\"\nreference = \"own\"\nkeys = [\"bundle_count\"]\ncolumns = {columns}\n\
             experiment = \"easy.toml\"\n"
        );
    }
    let flags = "file,row,column,kind,confidence\n";
    leaked(&[(FILE, &file), ("easy.toml", EASY_FILE), ("reference/flagged_cells.csv", flags)]).unwrap()
}

const EASY_FILE: &str = r#"
    name = "easy"
    duration = "10 s"
    [hosts]
    endor = {}
    fred = {}
    [link.trunk]
    medium = "atm"
    between = ["endor", "fred"]
    delay = "51.5 ms"
    shape-pcr = "1594 kbit/s"
    rate = "45 Mbit/s"
    observe = 1
    [flow.bulk]
    from = "endor"
    to = "fred"
    transport = { kind = "tcp", window = "4 KiB" }
    framing = "none"
    source = { kind = "bulk", message = "4 KiB" }
    [flow.voice]
    from = "endor"
    to = "fred"
    transport = "udp"
    source = { kind = "load", message = "80 B", interval = "10 ms" }
    [bundle.bundle]
    flows = ["voice", "bulk"]
    [sweep]
    "flow.voice.count" = [3]
"#;

#[test]
fn readings_are_of_what_they_are_called_and_in_their_units() {
    let results = crate::run(easy(), &[], crate::How::simulated(1), &()).unwrap();
    let figure = |table: &str, column: &str| {
        let table = results.table(table).unwrap();
        table.rows[0].cells[table.place(column).unwrap()].simulated
    };
    let is_near = |table: &str, column: &str, wanted: f64, within: f64| {
        let found = figure(table, column).unwrap();
        assert!((found - wanted).abs() <= within, "{table} {column}: {found} and not {wanted}");
    };
    // A window in a round trip of 103 ms and its own time on the line.
    is_near("throughput", "tcp_throughput_kbytes_s", 4.0 / 0.125, 4.0);
    is_near("throughput", "udp_throughput_kbytes_s", 7.8125, 0.01);
    is_near("throughput", "udp_loss_pct", 0.0, 0.0);
    is_near("interarrival", "mean_interarrival_ms", 10.0, 0.1);
    is_near("delay", "mean_ms", 55.0, 5.0);
    is_near("delay", "fairness_udp", 1.0, 1e-6);
    assert_eq!(figure("delay", "fairness_tcp"), None);
    is_near("cells", "cells", 3000.0, 0.0);
    is_near("cells", "lost", 0.0, 0.0);
    is_near("cells", "mean_interarrival_ms", 10.0 / 3.0, 0.05);
    let cells = results.tables.iter().flat_map(|table| &table.rows[0].cells);
    assert_eq!(cells.filter(|cell| cell.simulated.is_none()).count(), 1, "all but the fairness of one");
}

#[test]
fn points_are_repeated_as_often_as_asked() {
    struct Counted(AtomicUsize);
    impl crate::Observer for Counted {
        fn planned(&self, _: &str, simulations: usize, _: Duration) {
            self.0.store(simulations, Ordering::Relaxed);
        }
        fn advanced(&self, _: Duration) {}
        fn simulation_done(&self) {}
    }
    let planned = |repetitions| {
        let counted = Counted(AtomicUsize::new(0));
        let results = crate::run(
            easy(),
            &["throughput"],
            crate::How { repetitions, ..crate::How::simulated(1) },
            &counted,
        );
        assert_eq!(results.unwrap().tables[0].rows[0].cells[2].simulated, Some(0.0));
        counted.0.into_inner()
    };
    assert_eq!([None, Some(0), Some(3)].map(planned), [1, 1, 3]);
}
