//! A cell in a kernel in virtual time.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cell::{Cell, Measured};

/// In front of the guest's answer, among what the kernel prints.
pub(crate) const ANSWER: &str = "matrix-cell: ";

/// The variable that tells the guest its cell: the kernel makes one of each parameter that it does not know.
pub(crate) const CELL: &str = "TRUNKLINE_MATRIX_CELL";

/// Boots the kernel with this program as its first process, which measures the cell.
pub(crate) fn measure(kernel: &Path, cell: &Cell) -> Result<Measured, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let init = format!("init={}", program.display());
    let cell = cell.to_string();
    let output = Command::new(kernel)
        .args(["mem=512M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", &init])
        .args(["time-travel=inf-cpu", "con=null", "con0=null,fd:1", &format!("{CELL}={cell}")])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{} does not start: {e}", kernel.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().find_map(|line| line.strip_prefix(ANSWER)).ok_or_else(|| {
        format!(
            "{cell}: the kernel ended without an answer ({}):\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    Ok(serde_json::from_str(answer)?)
}
