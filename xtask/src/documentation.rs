//! The check of the documentation: what `cargo doc` with warnings denied says, without its build.
//!
//! `cargo doc` checks every crate again, those of others too: minutes for what the tests have built already. `cargo test --doc`
//! gives rustdoc the crates that are built, so the check goes by it: Cargo calls this program as its rustdoc, which has
//! rustdoc write the documentation instead of running the examples in it.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;
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

/// Checks the documentation of one crate if Cargo has called this program for that, unless what it is made of is what it was at
/// the last check that passed.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    let output = PathBuf::from(std::env::var_os(OUTPUT)?);
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    let checked = value(&given, "--crate-name").map(|name| output.join(name).with_extension("checked"));
    let inputs = inputs(&given).ok();
    if inputs.is_some() && checked.as_ref().and_then(|file| std::fs::read_to_string(file).ok()) == inputs {
        return Some(ExitCode::SUCCESS);
    }
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(of_documentation(given, output.as_os_str()));
    match rustdoc.status() {
        Ok(status) if status.success() => {
            if let Some((file, inputs)) = checked.zip(inputs) {
                // Without it, the crate is checked again.
                let _ = std::fs::write(file, inputs);
            }
            Some(ExitCode::SUCCESS)
        }
        Ok(_) => Some(ExitCode::FAILURE),
        Err(e) => {
            anstream::eprintln!("xtask: rustdoc does not start: {e}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// Everything that decides what rustdoc says of a crate: its arguments, and the crates that they name, itself among them, by size and
/// time. Cargo builds a crate again if its text has changed, or a crate below it.
fn inputs(given: &[OsString]) -> std::io::Result<String> {
    let named =
        given.iter().filter_map(|argument| Some(PathBuf::from(argument.to_str()?.split_once('=')?.1)));
    let mut text = format!("{given:?}\n");
    for file in named.filter(|named| named.is_file()).chain([std::env::current_exe()?]) {
        let is = file.metadata()?;
        let _ = writeln!(text, "{} {} {:?}", file.display(), is.len(), is.modified()?);
    }
    Ok(text)
}

/// The argument after this one.
fn value<'a>(given: &'a [OsString], option: &str) -> Option<&'a OsString> {
    given.iter().skip_while(|argument| *argument != option).nth(1)
}

/// The arguments that document what the given ones would test. Others (`--version`) stay as they are.
fn of_documentation(all: Vec<OsString>, output: &OsStr) -> Vec<OsString> {
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
        of_documentation(arguments.iter().map(OsString::from).collect(), OsStr::new("doc"))
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

    #[test]
    fn a_crate_that_was_built_again_is_checked_again() {
        let folder = tempfile::tempdir().unwrap();
        let built = folder.path().join("liba.rlib");
        let given = [OsString::from("--extern"), OsString::from(format!("a={}", built.display()))];
        std::fs::write(&built, "first").unwrap();
        let first = inputs(&given).unwrap();
        assert_eq!(inputs(&given).unwrap(), first);
        std::fs::write(&built, "second").unwrap();
        assert_ne!(inputs(&given).unwrap(), first);
    }
}
