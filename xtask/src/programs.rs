//! Test programs, as Cargo has built them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A test program.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The folder in which Cargo would run it: proptest looks for its regression files from there.
    folder: PathBuf,
}

impl Program {
    /// The names of its tests.
    pub(crate) fn tests(&self) -> Result<Vec<String>, String> {
        let output = self.output(Command::new(&self.path).args(["--list", "--format", "terse"]))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Runs this command to its end, as Cargo would run the program.
    pub(crate) fn output(&self, command: &mut Command) -> Result<Output, String> {
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.output().map_err(|e| format!("{}: does not start: {e}", self.name))
    }
}

/// Builds the test programs by a `cargo test --no-run`.
pub(crate) fn build(command: &mut Command) -> Result<Vec<Program>, String> {
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let command = command.current_dir(crate::root()).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("the tests do not build ({})", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(messages.filter_map(|message| program(&message)).collect())
}

/// The program of a message from Cargo, if it is about one.
fn program(message: &Value) -> Option<Program> {
    let path = message["executable"].as_str()?.into();
    let name = message["target"]["name"].as_str()?.to_owned();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    Some(Program { name, path, folder })
}
