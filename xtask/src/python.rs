//! The Python package: its wheel, its types, and its tests against what was installed from the wheel.

use std::path::PathBuf;
use std::process::Command;

use crate::log::Log;
use crate::test::{all, with_lints, without_own_package};

/// Builds the wheel as the tests have built the crates, installs it and runs its checks.
pub(crate) fn check(log: &Log) -> Result<(), String> {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let python = || {
        let mut command = without_own_package(Command::new(&python));
        // A virtual environment of a shell is not the one that was named.
        command.env_remove("VIRTUAL_ENV").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let modules = "import maturin, mypy, pytest, pyarrow, pandas, polars, matplotlib, distributed, ray, gymnasium, ipykernel, nbclient";
    let found = python().args(["-c", modules]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        return crate::test::skip(
            log,
            "the Python package is not tested: `pip install --requirement python/requirements.txt`, and name that Python in \
             PYTHON",
        );
    }
    let target = crate::root().join("target");
    let (wheels, installed) = (target.join("wheels"), target.join("python-package"));
    for folder in [&wheels, &installed] {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
    }
    let mut build = python();
    // The wheel's profile is for those who install it: here the crates are as the tests have built them.
    build.args([
        "-m",
        "maturin",
        "build",
        "--profile",
        "dev",
        "--locked",
        "--compatibility",
        "off",
        "--quiet",
    ]);
    build.args(["--manifest-path", "python/Cargo.toml", "--out"]).arg(&wheels);
    log.step("Python: wheel", with_lints(&mut build))?;
    let mut install = python();
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"]);
    log.step("Python: wheel is installed", install.arg(&installed).arg(wheel(&wheels)?))?;
    let module = |name: &str, arguments: &[&str]| {
        let mut command = python();
        command.env("PYTHONPATH", &installed).env("MYPYPATH", &installed);
        command.args(["-m", name]).args(arguments);
        command
    };
    let settings = ["--config-file", "python/pyproject.toml", "--cache-dir", "target/mypy"];
    let types = log.step("Python: types", &mut module("mypy", &settings));
    let stubs = ["trunkline._trunkline", "--mypy-config-file", "python/pyproject.toml"];
    let stubs = log.step("Python: stubs", &mut module("mypy.stubtest", &stubs));
    let tests = ["-q", "-p", "no:cacheprovider", "python/tests"];
    let tests = log.step("Python: tests", &mut module("pytest", &tests));
    all([types, stubs, tests])
}

/// The wheel that was built.
fn wheel(folder: &std::path::Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut wheels = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "whl"));
    wheels.next().ok_or_else(|| format!("{}: maturin made no wheel", folder.display()))
}
