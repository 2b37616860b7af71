//! The check of the documentation: what `cargo doc` with warnings denied says, without its build.
//!
//! `cargo doc` checks every crate again, those of others too: minutes for what the tests have built already. `cargo test --doc`
//! gives rustdoc the crates that are built, so the check goes by it: Cargo calls this program as its rustdoc, which has
//! rustdoc write the documentation instead of running the examples in it.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

/// Environment variable with the output folder. With it set, this program acts as rustdoc.
const OUTPUT: &str = "XTASK_DOCUMENTATION";

/// Makes this `cargo test` one that checks the documentation.
pub(crate) fn command(mut test: Command) -> Result<Command, String> {
    test.arg("--doc")
        .env("RUSTDOC", crate::test::program("xtask")?)
        .env(OUTPUT, crate::root().join("target/doc"));
    Ok(test)
}

/// Writes the documentation of one crate if Cargo has called this program for that.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    let output = std::env::var_os(OUTPUT)?;
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(of_documentation(std::env::args_os().skip(1), &output));
    match rustdoc.status() {
        Ok(status) if status.success() => Some(ExitCode::SUCCESS),
        Ok(_) => Some(ExitCode::FAILURE),
        Err(e) => {
            anstream::eprintln!("xtask: rustdoc does not start: {e}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// The arguments that document what the given ones would test. Others (`--version`) stay as they are.
fn of_documentation(arguments: impl Iterator<Item = OsString>, output: &OsStr) -> Vec<OsString> {
    let all: Vec<OsString> = arguments.collect();
    if !all.iter().any(|argument| argument == "--test") {
        return all;
    }
    let mut kept = Vec::with_capacity(all.len());
    let mut all = all.into_iter();
    while let Some(argument) = all.next() {
        match argument.to_str() {
            Some("--test") => {}
            Some("--test-run-directory" | "--test-args") => drop(all.next()),
            _ => kept.push(argument),
        }
    }
    kept.extend(["--deny", "warnings", "--out-dir"].map(OsString::from));
    kept.push(output.to_owned());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Vec<OsString> {
        of_documentation(arguments.iter().map(OsString::from), OsStr::new("doc"))
    }

    #[test]
    fn a_test_becomes_documentation_with_warnings_denied() {
        let given = ["--crate-name", "a", "--test", "src/lib.rs", "--test-run-directory", "a", "-L", "b"];
        let asked = ["--crate-name", "a", "src/lib.rs", "-L", "b", "--deny", "warnings", "--out-dir", "doc"];
        assert_eq!(of(&given), asked);
    }

    #[test]
    fn what_is_no_test_stays() {
        assert_eq!(of(&["-vV"]), ["-vV"]);
    }
}
