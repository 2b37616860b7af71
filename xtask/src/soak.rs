//! The long run of the property tests of transports and audio: each with ten thousand cases that nobody has tried before,
//! and for two sound cards that drift apart an hour.
//!
//! `docs/checks.md` says how long it takes and what to do with what it finds.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::programs::Program;

/// Packages that parse packets from the network and have property tests.
const PACKAGES: [&str; 3] = ["trunkline-transport", "trunkline-adapters", "trunkline-audio"];

/// The tests to run and their number of cases.
#[derive(clap::Args)]
pub(crate) struct Soak {
    /// Cases of each property test
    #[arg(long, default_value_t = 10_000)]
    cases: u32,
    /// Only tests whose name, or whose program's, contains one of these: `xtp`, `dccp`, `sctp`, `tcp`, `soak` ...
    names: Vec<String>,
}

/// A property test that was run.
struct Row {
    test: String,
    cases: String,
    took: Duration,
    /// All that it printed, if it failed.
    failure: Option<String>,
}

pub(crate) fn run(soak: &Soak) -> Result<(), String> {
    let mut rows = Vec::new();
    for program in programs()? {
        for name in program.tests()? {
            let test = format!("{}: {name}", program.name);
            if !soak.names.is_empty() && !soak.names.iter().any(|part| test.contains(part)) {
                continue;
            }
            let started = Instant::now();
            let output = run_test(&program, &name, soak.cases)?;
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            // Other tests say no such thing: they have run once, as always.
            let said = printed.lines().find_map(|line| line.split_once("property: "));
            let Some((_, cases)) = said else { continue };
            let failed = !output.status.success();
            let failure = failed.then(|| printed.clone() + &String::from_utf8_lossy(&output.stderr));
            let row = Row { test, cases: cases.to_owned(), took: started.elapsed(), failure };
            anstream::println!("{}", line(&row));
            rows.push(row);
        }
    }
    table(&rows)
}

/// Prints the number of tests and their duration, then every failure with the seed that reproduces it.
fn table(rows: &[Row]) -> Result<(), String> {
    let took: Duration = rows.iter().map(|row| row.took).sum();
    let failed: Vec<&Row> = rows.iter().filter(|row| row.failure.is_some()).collect();
    anstream::println!(
        "\n{} property tests in {:.0} s, {} failed",
        rows.len(),
        took.as_secs_f64(),
        failed.len()
    );
    for row in &failed {
        anstream::println!("\n==> {}\n{}", row.test, row.failure.as_deref().unwrap_or_default());
    }
    match failed.len() {
        _ if rows.is_empty() => Err("no property test has such a name".to_owned()),
        0 => Ok(()),
        count => Err(format!("{count} property tests failed")),
    }
}

fn line(row: &Row) -> String {
    let verdict = if row.failure.is_some() { "FAILED" } else { "ok" };
    format!("{:<100} {:>12} {:>7.0} s  {verdict}", row.test, row.cases, row.took.as_secs_f64())
}

/// Runs a test at the lowest priority: it takes what others leave.
fn run_test(program: &Program, test: &str, cases: u32) -> Result<Output, String> {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(&program.path).args(["--exact", test, "--nocapture"]);
    program.output(command.env("PROPTEST_CASES", cases.to_string()).env("RUST_BACKTRACE", "0"))
}

/// Builds the programs, with the assertions of tests and the speed of a release.
fn programs() -> Result<Vec<Program>, String> {
    let mut command = crate::test::cargo();
    command.args(["test", "--profile", "soak", "--locked"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    crate::programs::build(&mut command)
}
