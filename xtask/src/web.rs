//! The page: its build in `web/dist`, which the program embeds, and what a change of it must pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test::step;

/// Builds the page into `web/dist`.
pub(crate) fn build() -> Result<(), String> {
    install()?;
    npm("types of the API", &["run", "api"])?;
    npm("page", &["run", "build"])
}

/// The page's own checks; that `web/dist` and the types of the API are what the sources say; and a browser that uses it
/// on a server of `program`.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    if !Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return crate::test::skip("the page is not tested: install Node.js 20 or newer with npm");
    }
    install()?;
    npm("page: types", &["run", "check"])?;
    npm("page: tests", &["test"])?;
    let types = crate::root().join("web/src/api/schema.d.ts");
    let committed = std::fs::read(&types).map_err(|e| format!("{}: {e}", types.display()))?;
    npm("page: types of the API", &["run", "api"])?;
    if std::fs::read(&types).is_ok_and(|made| made != committed) {
        return Err("web/src/api/schema.d.ts was not what the API says, and is now: commit it".to_owned());
    }
    let fresh = crate::root().join("target/web-dist");
    step("page: build", run(&["run", "build"]).env("TRUNKLINE_DIST", &fresh))?;
    if files(&fresh)? != files(&dist())? {
        return Err(
            "web/dist is not what web/src says; run `cargo xtask web` and commit the result".to_owned()
        );
    }
    browser(program)
}

/// Uses the page of this program in a browser.
fn browser(program: &Path) -> Result<(), String> {
    if !Path::new("/usr/bin/chromium").exists() {
        return crate::test::skip("the page is not used in a browser: install the Debian package `chromium`");
    }
    step("page: in a browser", run(&["run", "e2e"]).env("TRUNKLINE_BIN", program))
}

fn install() -> Result<(), String> {
    let modified = |file: &str| std::fs::metadata(web().join(file)).and_then(|file| file.modified()).ok();
    match (modified("node_modules/.package-lock.json"), modified("package-lock.json")) {
        (Some(installed), Some(wanted)) if installed >= wanted => Ok(()),
        _ => npm("page: packages", &["ci", "--no-audit", "--no-fund"]),
    }
}

fn npm(name: &str, arguments: &[&str]) -> Result<(), String> {
    step(name, &mut run(arguments))
}

fn run(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.arg("--prefix").arg(web()).args(arguments);
    npm
}

fn web() -> PathBuf {
    crate::root().join("web")
}

fn dist() -> PathBuf {
    web().join("dist")
}

/// Every file below a folder, by its path there.
fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let (mut files, mut open) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_path_buf();
                files.insert(name, std::fs::read(&path).map_err(failed)?);
            }
        }
    }
    Ok(files)
}
