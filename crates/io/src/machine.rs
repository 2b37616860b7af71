//! The machine: what it is, for the report, and the space on its disks.

use core::fmt;
use std::io;
use std::path::Path;

use trunkline_core::Bytes;

/// A description of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// System and release: `Linux 6.18.44`.
    pub system: String,
    /// The processor's model, if the system tells.
    pub cpu: Option<String>,
    /// Logical processors that we may use.
    pub cores: usize,
}

impl Machine {
    /// This machine.
    pub fn describe() -> Machine {
        Machine {
            system: system(),
            cpu: cpu_model(),
            cores: std::thread::available_parallelism().map_or(1, core::num::NonZero::get),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cpu) = &self.cpu {
            write!(f, "{cpu}, ")?;
        }
        let cores = if self.cores == 1 { "core" } else { "cores" };
        write!(f, "{} {cores}, {}", self.cores, self.system)
    }
}

/// The space that ordinary users may still fill on the disk of this file or folder.
///
/// # Errors
/// What the system says, for example of a path that does not exist.
pub fn disk_free(path: &Path) -> io::Result<Bytes> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(Bytes(disk.f_bavail * disk.f_frsize))
}

fn system() -> String {
    // SAFETY: all-zero bytes are a valid utsname, which the call fills in.
    let (result, name) = unsafe {
        let mut name: libc::utsname = core::mem::zeroed();
        (libc::uname(&mut name), name)
    };
    if result != 0 {
        return std::env::consts::OS.to_owned();
    }
    format!("{} {}", text(&name.sysname), text(&name.release))
}

/// The text before the first zero.
fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    let model = line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    (!model.is_empty()).then_some(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_name_and_cores() {
        let machine = Machine::describe();
        assert!(machine.cores >= 1 && !machine.system.is_empty());
        assert!(machine.to_string().ends_with(&machine.system));
    }
}
