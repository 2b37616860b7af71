//! "Same seed, same result, in another process": what catches a hidden clock, a hash map's order, an engine that draws
//! its own random numbers.

use std::io::Write as _;
use std::process::Command;

const ASKED: &str = "TRUNKLINE_TWO_PROCESS";
const MARK: &str = "two-process result: ";

/// Asserts that `compute` gives in another process what it gives here.
///
/// The other process is this test program again, asked for this one test: `test` is the test's full path, as
/// `cargo test -- --list` prints it. Other randomised state of the process (addresses, hash keys) differs there.
///
/// # Panics
/// If the results differ, or if the other process does not answer (which happens when `test` is not the test's path).
pub fn assert_same_in_another_process(test: &str, compute: impl FnOnce() -> String) {
    let here = compute();
    if std::env::var(ASKED).is_ok_and(|asked| asked == test) {
        writeln!(std::io::stdout(), "\n{MARK}{here}").expect("the asking process reads our output");
        return;
    }
    let program = std::env::current_exe().expect("a running test has a path");
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ASKED, test)
        .output()
        .expect("the test program can be started again");
    let text = String::from_utf8_lossy(&output.stdout);
    let there = text.lines().find_map(|line| line.strip_prefix(MARK));
    assert_eq!(there, Some(here.as_str()), "`{test}` in another process; it wrote:\n{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_nothing_is_the_same() {
        let path = "two_process::tests::what_depends_on_nothing_is_the_same";
        assert_same_in_another_process(path, || "42".to_owned());
    }

    #[test]
    fn what_depends_on_the_process_is_noticed() {
        let path = "two_process::tests::what_depends_on_the_process_is_noticed";
        let differs = || assert_same_in_another_process(path, || std::process::id().to_string());
        if std::env::var(ASKED).is_ok() {
            differs();
        } else {
            assert!(std::panic::catch_unwind(differs).is_err());
        }
    }
}
