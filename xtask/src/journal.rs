//! What the tests write down where libtest would hide it: reruns and skips, one line each (`crates/testkit/src/journal.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// Environment variable by which tests find the journal.
const VARIABLE: &str = "TRUNKLINE_TEST_JOURNAL";
/// Reruns of tests in real time that one run of the suite may need. More point at a defect or at an overloaded machine.
const BUDGET: usize = 3;

/// The journal of one run of the suite.
pub(crate) struct Journal {
    path: PathBuf,
}

/// A test: the name of its program, and its own.
pub(crate) type Test = (String, String);

/// The lines of a journal.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Entries {
    /// Tests in real time that held, and the seconds that each took.
    pub(crate) in_real_time: BTreeMap<Test, f64>,
    pub(crate) reruns: Vec<Rerun>,
    pub(crate) skips: Vec<Skip>,
}

/// A test in real time that failed during a stall and was run again.
#[derive(Debug, PartialEq)]
pub(crate) struct Rerun {
    pub(crate) test: Test,
    attempt: String,
    lateness: String,
    failure: String,
}

/// A test that did not run.
#[derive(Debug, PartialEq)]
pub(crate) struct Skip {
    pub(crate) test: Test,
    why: String,
    /// Why CI allows it.
    reason: String,
}

impl Journal {
    /// An empty one for a run of the suite.
    pub(crate) fn new() -> Result<Journal, String> {
        Journal::of_last_suite().emptied()
    }

    /// An empty one for a round of some tests.
    pub(crate) fn of_round() -> Result<Journal, String> {
        Journal { path: crate::root().join("target/test-journal-round.tsv") }.emptied()
    }

    /// That of the last run of the suite.
    pub(crate) fn of_last_suite() -> Journal {
        Journal { path: crate::root().join("target/test-journal.tsv") }
    }

    fn emptied(self) -> Result<Journal, String> {
        let path = &self.path;
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {e}", path.display())),
            _ => Ok(self),
        }
    }

    /// Lets the tests that this command runs write into it.
    pub(crate) fn of<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env(VARIABLE, &self.path)
    }

    /// Adds a step of the suite that is skipped.
    pub(crate) fn skip_step(&self, why: &str, reason: &str) -> Result<(), String> {
        let file = std::fs::File::options().append(true).create(true).open(&self.path);
        let line = format!("skip\tcargo-xtask a step\t{why}\t{reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|e| format!("{}: {e}", self.path.display()))
    }

    /// What the tests have written.
    pub(crate) fn read(&self) -> Result<Entries, String> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => parse(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Entries::default()),
            Err(e) => Err(format!("{}: {e}", self.path.display())),
        }
    }
}

fn parse(text: &str) -> Result<Entries, String> {
    let mut entries = Entries::default();
    for line in text.lines() {
        let test = |test: &str| {
            let (program, name) = test.split_once(' ').unwrap_or((test, ""));
            (program.to_owned(), name.to_owned())
        };
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["real-time", name, _, seconds] => {
                *entries.in_real_time.entry(test(name)).or_default() += seconds.parse::<f64>().unwrap_or(0.0);
            }
            ["rerun", name, attempt, lateness, failure] => entries.reruns.push(Rerun {
                test: test(name),
                attempt: attempt.to_owned(),
                lateness: lateness.to_owned(),
                failure: failure.to_owned(),
            }),
            ["skip", name, why, reason] => {
                entries.skips.push(Skip { test: test(name), why: why.to_owned(), reason: reason.to_owned() });
            }
            _ => return Err(format!("the test journal has a line of another form: {line}")),
        }
    }
    Ok(entries)
}

impl Entries {
    /// Prints the skips by what was missing, with the reason for which CI allows them.
    pub(crate) fn print_skips(&self) {
        let mut by_why: BTreeMap<(&str, &str), BTreeSet<&Test>> = BTreeMap::new();
        for skip in &self.skips {
            by_why.entry((&skip.why, &skip.reason)).or_default().insert(&skip.test);
        }
        anstream::println!("\n==> skipped tests: {}", by_why.values().map(BTreeSet::len).sum::<usize>());
        for ((why, reason), tests) in by_why {
            anstream::println!("    {why} ({reason})");
            for (program, name) in tests {
                anstream::println!("        {program}: {name}");
            }
        }
    }

    /// Prints the reruns, and the longest tests in real time.
    pub(crate) fn print_reruns(&self) {
        let (tests, seconds) = (self.in_real_time.len(), self.in_real_time.values().sum::<f64>());
        let reruns = self.reruns.len();
        anstream::println!("\n==> tests in real time: {tests} held in {seconds:.0} s; reruns: {reruns}");
        for rerun in &self.reruns {
            let (program, name) = &rerun.test;
            anstream::println!("    {program}: {name}, attempt {}: {}", rerun.attempt, rerun.lateness);
            anstream::println!("        {}", shortened(&rerun.failure));
        }
    }

    /// Fails above the budget.
    pub(crate) fn check_budget(&self) -> Result<(), String> {
        let reruns = self.reruns.len();
        if reruns <= BUDGET {
            return Ok(());
        }
        Err(format!(
            "the tests in real time needed {reruns} reruns, and {BUDGET} are allowed: run `cargo xtask reruns` on an idle \
             machine to find out whether a test or the machine is at fault"
        ))
    }
}

/// Long assertions show whole data structures; the beginning says what failed.
fn shortened(failure: &str) -> String {
    const MOST: usize = 200;
    match failure.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} ...", &failure[..end]),
        None => failure.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "real-time\tlive flows::voice\t0\t1.50\n\
                        rerun\tlive flows::voice\t1\tthe scheduler stalled for up to 31 ms\tleft: 1  right: 2\n\
                        real-time\tlive flows::voice\t1\t2.25\n\
                        skip\twire way_out::a\tnftables refuses a table\ta kernel may be built without nftables\n";

    #[test]
    fn the_journal_is_read() {
        let entries = parse(TEXT).unwrap();
        let voice = ("live".to_owned(), "flows::voice".to_owned());
        assert_eq!(entries.in_real_time, BTreeMap::from([(voice.clone(), 3.75)]));
        assert_eq!(entries.reruns[0].test, voice);
        assert_eq!((entries.reruns.len(), entries.skips.len()), (1, 1));
        assert!(parse("rerun\tlive a\n").is_err());
    }

    #[test]
    fn reruns_have_a_budget() {
        let of = |count| {
            parse(&TEXT.lines().nth(1).map(|line| format!("{line}\n").repeat(count)).unwrap()).unwrap()
        };
        assert_eq!(of(BUDGET).check_budget(), Ok(()));
        assert!(of(BUDGET + 1).check_budget().unwrap_err().contains("needed 4 reruns"));
    }

    #[test]
    fn a_long_failure_is_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ä".repeat(300)), format!("{} ...", "ä".repeat(200)));
    }
}
