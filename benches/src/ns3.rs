//! Scenarios of ns-3, which `peers/` holds as C++.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Compiles the scenario `name` into `folder`; `None` where ns-3 or a compiler is missing (Debian: libns3-dev and g++).
pub fn build(name: &str, folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(format!("{name}.cc"));
    let program = folder.join(name);
    let libraries = ["applications", "point-to-point", "traffic-control", "internet", "network", "core"]
        .map(|l| format!("-lns3-{l}"));
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-std=c++17"]).arg(source).arg("-o").arg(&program).args(libraries);
    let built = compiler.stderr(Stdio::null()).status();
    built.is_ok_and(|status| status.success()).then_some(program)
}
