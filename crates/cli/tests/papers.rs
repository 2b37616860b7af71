//! Published studies as a user repeats them.

mod support;

use support::{Bench, files_below};

#[test]
fn studies_are_listed() {
    let bench = Bench::new();
    let listed = bench.run(&["papers", "--json"]).ok().json();
    assert_eq!(listed["studies"][0]["name"], "hawley1989");
    assert_eq!(listed["studies"][0]["tables"].as_array().map(Vec::len), Some(9));
    let text = bench.run(&["papers"]).ok().out;
    assert!(text.contains("hawley1989") && text.contains("1989") && text.contains("9 tables"), "{text}");
    assert!(!bench.store().exists(), "a study needs no store");
}

#[test]
fn formulas_are_printed_and_written_without_a_simulation() {
    let bench = Bench::new();
    let ran = bench.run(&["paper", "hawley1989", "table01", "table02", "--strict", "--out", "found"]).ok();
    assert!(ran.out.contains("162.8") && ran.out.contains("✓ met"), "{}", ran.out);
    assert_eq!(
        files_below(&bench.path("found")).len(),
        3,
        "a page, two tables, and no figure that shows these tables"
    );
    let table = std::fs::read_to_string(bench.path("found").join("table01.csv")).expect("a table");
    assert!(table.lines().skip(1).all(|line| line.ends_with(",formula")), "{table}");

    let ran = bench.run(&["paper", "hawley1989", "table02", "--json"]).ok();
    let lines: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(lines.len(), 20);
    assert!(lines.iter().all(|line| line["table"] == "table02" && line["published"] == line["simulated"]));
    assert!(ran.err.contains("Formulas"), "{}", ran.err);
}

#[test]
fn constants_are_found_again_from_the_published_cells() {
    let bench = Bench::new();
    let ran = bench.run(&["paper", "schiavoni2013", "table03", "table04", "--calibrate", "--strict"]).ok();
    assert_eq!(ran.out.matches('✓').count(), 2, "{}", ran.out);
    assert!(
        ran.out.starts_with("✓ crossover-100: 77 us each way: 77 us in the files, 76.96 us"),
        "{}",
        ran.out
    );
    let ran = bench.run(&["paper", "schiavoni2013", "--calibrate", "--blocks", "200"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
}

#[test]
fn what_is_unknown_is_named_with_what_there_is() {
    let bench = Bench::new();
    let ran = bench.run(&["paper", "hawley1988"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("`hawley1988`") && ran.err.contains("`hawley1989`"), "{}", ran.err);
    let ran = bench.run(&["paper", "hawley1989", "table03"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("`table03`") && ran.err.contains("`unloaded_min`"), "{}", ran.err);
}

#[test]
fn a_table_is_measured_live_on_this_machine_in_few_blocks() {
    let bench = Bench::new();
    let ran = bench.run(&["paper", "schiavoni2013", "here", "table03", "--blocks", "30", "--json"]).ok();
    let lines: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let latencies = |table: &str| {
        let of_table = |line: &&serde_json::Value| line["table"] == table && line["metric"] == "latency_ms";
        lines.iter().filter(of_table).cloned().collect::<Vec<_>>()
    };
    let live = latencies("here");
    assert_eq!(live.len(), 10);
    for line in &live {
        assert!(line["measured"].as_f64().is_some_and(|ms| ms > 0.0), "{line}");
        assert!(line["on"] == "live" && line["simulated"].is_null(), "{line}");
    }
    assert!(latencies("table03").iter().all(|line| line["simulated"].is_f64() && line["measured"].is_null()));
}

#[test]
fn a_study_that_counts_no_blocks_says_so() {
    let bench = Bench::new();
    let ran = bench.run(&["paper", "hawley1989", "unloaded_min", "--blocks", "30"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("`hawley1989`") && ran.err.contains("--blocks"), "{}", ran.err);
}
