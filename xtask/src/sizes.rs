//! Long files: a file over 500 lines wants splitting, one over 1,000 needs a reason here.

use std::process::Command;

/// Files that may exceed 1,000 lines, each with its reason.
const REASONS: &[(&str, &str)] = &[];

pub(crate) fn run() -> Result<(), String> {
    let listed = Command::new("git").args(["ls-files", "*.rs"]).current_dir(crate::root()).output();
    let listed = listed.map_err(|e| format!("git does not run: {e}"))?;
    let mut long: Vec<(usize, String)> = Vec::new();
    for file in String::from_utf8_lossy(&listed.stdout).lines() {
        let text = std::fs::read_to_string(crate::root().join(file)).unwrap_or_default();
        long.push((text.lines().count(), file.to_owned()));
    }
    long.sort_unstable_by(|a, b| b.cmp(a));
    for (lines, file) in long.iter().filter(|(lines, _)| *lines > 500) {
        anstream::println!("{lines:6} {file}");
    }
    let reason = |file: &str| REASONS.iter().any(|(listed, _)| *listed == file);
    match long.iter().find(|(lines, file)| *lines > 1000 && !reason(file)) {
        Some((lines, file)) => {
            Err(format!("{file} has {lines} lines: split it, or give a reason in xtask/src/sizes.rs"))
        }
        None => Ok(()),
    }
}
