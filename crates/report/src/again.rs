//! The command that runs a run again.

use trunkline_store::RunInfo;

/// The command that measures the same again. What came from standard input is in no file but the run's own.
pub(crate) fn again(info: &RunInfo) -> String {
    let file = if info.file.ends_with("-") { "-".to_owned() } else { quoted(&info.file.to_string_lossy()) };
    let mut command = format!("trunkline run {file}");
    for setting in &info.settings {
        command += &format!(" {}", set_again(setting));
    }
    command + " --on " + info.backend.name()
}

/// A setting of a run as it is typed: `--set 'link.trunk.rate=5 Mbit/s'`.
pub fn set_again(setting: &str) -> String {
    format!("--set {}", quoted(setting))
}

/// A text as a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '=');
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
