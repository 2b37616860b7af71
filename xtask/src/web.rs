//! The page: its build in `web/dist`, which the program embeds, and what a change of it must pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::log::Log;
use crate::test::all;

/// Builds the page into `web/dist`.
pub(crate) fn build() -> Result<(), String> {
    let log = Log::TERMINAL;
    install(&log)?;
    npm(&log, "types of the API", &["run", "api"])?;
    npm(&log, "page", &["run", "build"])
}

/// Installs what the checks of the page need. False where they are skipped.
pub(crate) fn set_up(log: &Log) -> Result<bool, String> {
    if let Err(why) = node() {
        return crate::test::skip(log, &format!("the page is not tested: {why}")).map(|()| false);
    }
    install(log).map(|()| true)
}

/// The page's own checks; and that `web/dist` and the types of the API are what the sources say.
pub(crate) fn check(log: &Log) -> Result<(), String> {
    let types = npm(log, "page: types", &["run", "check"]);
    let tests = npm(log, "page: tests", &["test"]);
    all([types, tests, types_of_api(log), dist_is_fresh(log)])
}

fn types_of_api(log: &Log) -> Result<(), String> {
    let types = crate::root().join("web/src/api/schema.d.ts");
    let committed = std::fs::read(&types).map_err(|e| format!("{}: {e}", types.display()))?;
    npm(log, "page: types of the API", &["run", "api"])?;
    if std::fs::read(&types).is_ok_and(|made| made != committed) {
        return Err("web/src/api/schema.d.ts was not what the API says, and is now: commit it".to_owned());
    }
    Ok(())
}

fn dist_is_fresh(log: &Log) -> Result<(), String> {
    let fresh = crate::root().join("target/web-dist");
    log.step("page: build", run(&["run", "build"]).env("TRUNKLINE_DIST", &fresh))?;
    if files(&fresh)? != files(&dist())? {
        return Err(
            "web/dist is not what web/src says; run `cargo xtask web` and commit the result".to_owned()
        );
    }
    Ok(())
}

/// Checks that the Node.js here is as new as the page's build needs.
fn node() -> Result<(), String> {
    let said = |program: &str| {
        let output =
            Command::new(program).arg("--version").output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let package =
        std::fs::read_to_string(web().join("package.json")).map_err(|e| format!("package.json: {e}"))?;
    let package: serde_json::Value =
        serde_json::from_str(&package).map_err(|e| format!("package.json: {e}"))?;
    let wanted = package["engines"]["node"].as_str().unwrap_or_default();
    match said("node").zip(said("npm")) {
        Some((node, _)) if version(&node) >= version(wanted) => Ok(()),
        Some((node, _)) => Err(format!("Node.js is {node}, and web/package.json needs {wanted}")),
        None => Err(format!("install Node.js {wanted} with npm")),
    }
}

/// Major and minor number of `v20.19.2` or `>=20.19`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers =
        text.trim_start_matches(|c: char| !c.is_ascii_digit()).split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next().unwrap_or(Some(0))?))
}

/// Uses the page of this program in a browser.
pub(crate) fn browser(log: &Log, program: &Path) -> Result<(), String> {
    if !Path::new("/usr/bin/chromium").exists() {
        return crate::test::skip(
            log,
            "the page is not used in a browser: install the Debian package `chromium`",
        );
    }
    if !Path::new("/usr/bin/firefox-esr").exists() {
        crate::test::skip(
            log,
            "the page is not opened in Firefox: install the Debian package `firefox-esr`",
        )?;
    }
    log.step("page: in a browser", run(&["run", "e2e"]).env("TRUNKLINE_BIN", program))
}

fn install(log: &Log) -> Result<(), String> {
    let modified = |file: &str| std::fs::metadata(web().join(file)).and_then(|file| file.modified()).ok();
    match (modified("node_modules/.package-lock.json"), modified("package-lock.json")) {
        (Some(installed), Some(wanted)) if installed >= wanted => Ok(()),
        _ => npm(log, "page: packages", &["ci", "--no-audit", "--no-fund"]),
    }
}

fn npm(log: &Log, name: &str, arguments: &[&str]) -> Result<(), String> {
    log.step(name, &mut run(arguments))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_compared_by_their_numbers() {
        assert_eq!(
            ["v20.19.2", ">=20.19", "v9.1.0", "20", ""].map(version),
            [Some((20, 19)), Some((20, 19)), Some((9, 1)), Some((20, 0)), None]
        );
        assert!(version("v9.1.0") < version(">=20.19"));
    }

    #[test]
    fn the_page_says_which_node_it_needs() {
        let package = std::fs::read_to_string(web().join("package.json")).unwrap();
        let package: serde_json::Value = serde_json::from_str(&package).unwrap();
        assert!(package["engines"]["node"].as_str().and_then(version).is_some());
    }
}
