//! Tests in real time, again and again: none of them may fail, not even once during a stall of the scheduler.
//!
//! A rerun excuses a failure in the suite. A defect that shows now and then would hide behind it; here it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::journal::{Entries, Journal, Test};

/// The tests to repeat and the number of rounds.
#[derive(clap::Args)]
pub(crate) struct Reruns {
    /// Rounds of all tests in real time
    #[arg(long, default_value_t = 10)]
    times: u32,
    /// Only tests whose name, or whose program's, contains one of these
    names: Vec<String>,
}

pub(crate) fn run(reruns: &Reruns) -> Result<(), String> {
    let tests = tests_in_real_time(&reruns.names)?;
    let programs = crate::programs::build(&mut crate::test::build()?)?;
    let mut by_program: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (program, name) in &tests {
        by_program.entry(program).or_default().push(name);
    }
    let mut failures = Vec::new();
    for round in 1..=reruns.times {
        let journal = Journal::of_round()?;
        for program in &programs {
            let Some(names) = by_program.get(program.stem().as_str()) else { continue };
            let mut command = Command::new(&program.path);
            // One at a time: they would wait for each other anyway.
            command.arg("--exact").args(names).args(["--test-threads", "1"]);
            let output = program.output(journal.of(&mut command))?;
            if !output.status.success() {
                let printed = String::from_utf8_lossy(&output.stdout);
                anstream::println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
                failures.push(format!("round {round}: {} failed", program.name));
            }
        }
        let entries = journal.read()?;
        anstream::println!("\n==> round {round} of {}", reruns.times);
        entries.print_reruns();
        failures.extend(problems(round, &tests, &entries));
    }
    match &failures[..] {
        [] => Ok(()),
        failures => Err(format!("tests in real time were not reliable:\n{}", failures.join("\n"))),
    }
}

/// Reruns, and tests that did not run at all.
fn problems(round: u32, tests: &BTreeSet<Test>, entries: &Entries) -> Vec<String> {
    let rerun = entries.reruns.iter().map(|rerun| (&rerun.test, "was run again"));
    let missing = tests.iter().filter(|test| !entries.in_real_time.contains_key(test));
    let all = rerun.chain(missing.map(|test| (test, "did not hold or did not run")));
    all.map(|((program, name), what)| format!("round {round}: {program}: {name} {what}")).collect()
}

/// The tests that the journal of the last suite calls tests in real time. Without one, the suite runs first.
fn tests_in_real_time(names: &[String]) -> Result<BTreeSet<Test>, String> {
    let mut known = Journal::of_last_suite().read()?.in_real_time;
    if known.is_empty() {
        let journal = Journal::new()?;
        crate::log::Log::TERMINAL
            .step("tests, to learn which run in real time", journal.of(&mut crate::test::build()?))?;
        known = journal.read()?.in_real_time;
    }
    let is_wanted = |(program, name): &Test| {
        let test = format!("{program}: {name}");
        names.is_empty() || names.iter().any(|part| test.contains(part))
    };
    // A test of a helper thread has no name of its own, and runs with the test that has started it.
    let wanted: BTreeSet<Test> =
        known.into_keys().filter(|test| !test.1.starts_with('(') && is_wanted(test)).collect();
    if wanted.is_empty() { Err("no test in real time has such a name".to_owned()) } else { Ok(wanted) }
}
