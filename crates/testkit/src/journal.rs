//! Journal of a run of the test suite: reruns and skips, which libtest hides when a test passes.
//!
//! `cargo xtask test` names the file in the environment and prints tables of it at the end (`xtask/src/journal.rs`). Without
//! the variable nothing is written.

use std::fs::File;
use std::io::Write as _;

/// Environment variable with the path of the journal.
pub const JOURNAL: &str = "TRUNKLINE_TEST_JOURNAL";

/// Appends one line: the kind, the test and these fields, separated by tabs.
///
/// # Panics
/// If the journal cannot be written: a rerun that is missing from it would be invisible.
pub(crate) fn append(kind: &str, fields: &[&str]) {
    let Some(path) = std::env::var_os(JOURNAL) else { return };
    let file = File::options().append(true).create(true).open(&path);
    // One call, so that lines of several processes do not mix.
    let written = file.and_then(|mut file| file.write_all(line(kind, &test(), fields).as_bytes()));
    written.unwrap_or_else(|e| panic!("the test journal {} cannot be written: {e}", path.display()));
}

fn line(kind: &str, test: &str, fields: &[&str]) -> String {
    let mut line = format!("{kind}\t{test}");
    for field in fields {
        line.push('\t');
        line.push_str(&field.replace(['\t', '\n', '\r'], " "));
    }
    line + "\n"
}

/// The test program and the name of the test, which is that of its thread.
fn test() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let thread = std::thread::current();
    format!("{} {}", without_hash(&program), thread.name().unwrap_or("(a thread of a test)"))
}

/// Removes the hash that Cargo appends to a test program's name.
fn without_hash(program: &str) -> &str {
    match program.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_field_per_tab() {
        assert_eq!(
            line("rerun", "live a::b", &["1", "left: 1\n\tright: 2"]),
            "rerun\tlive a::b\t1\tleft: 1  right: 2\n"
        );
    }

    #[test]
    fn the_test_is_named_by_its_program_and_its_thread() {
        assert_eq!(without_hash("live-0123456789abcdef"), "live");
        assert_eq!(without_hash("round-trip"), "round-trip");
        assert_eq!(
            test(),
            "trunkline_testkit journal::tests::the_test_is_named_by_its_program_and_its_thread"
        );
    }
}
