//! The one test command: what a change must pass, in the order of how soon it tells.
//!
//! `docs/checks.md` says what each check is for.

use std::process::Command;
use std::time::Instant;

pub(crate) fn run() -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let steps: &[(&str, &[&str])] = &[
        ("format", &["fmt", "--all", "--check"]),
        ("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]),
        ("tests", &["test", "--workspace", "--locked"]),
        (
            "fuzz targets",
            &["build", "--package", "trunkline-fuzz", "--features", "libfuzzer", "--bins", "--locked"],
        ),
    ];
    for (name, arguments) in steps {
        step(name, Command::new(&cargo).args(*arguments))?;
    }
    alsa(&cargo)?;
    crate::web::check(&cargo)?;
    announce("file sizes");
    crate::sizes::run()?;
    announce("generated references");
    crate::generate::run(true)?;
    step(
        "documentation of the code",
        Command::new(&cargo)
            .args(["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    announce("the book");
    crate::book()?;
    quick_start(&cargo)
}

/// What cannot be tested on this machine is told; where `CI` is set it is a failure.
pub(crate) fn skip(why: &str) -> Result<(), String> {
    if std::env::var_os("CI").is_some() {
        return Err(why.to_owned());
    }
    anstream::println!("\n==> skipped: {why}");
    Ok(())
}

/// Sound cards by ALSA: a cargo feature, since not every machine has the headers.
fn alsa(cargo: &str) -> Result<(), String> {
    let found = Command::new("pkg-config").args(["--exists", "alsa"]).status();
    if !found.is_ok_and(|status| status.success()) {
        return skip("ALSA is not tested: install the Debian packages `libasound2-dev` and `pkg-config`");
    }
    let package = ["--package", "trunkline-sound", "--features", "alsa", "--all-targets", "--locked"];
    step("ALSA: lints", Command::new(cargo).arg("clippy").args(package).args(["--", "--deny", "warnings"]))?;
    let tests = ["test", "--package", "trunkline-sound", "--features", "alsa", "--test", "alsa", "--locked"];
    step("ALSA: tests", Command::new(cargo).args(tests))
}

/// The README's first command, for real, in a store of its own.
fn quick_start(cargo: &str) -> Result<(), String> {
    let readme =
        std::fs::read_to_string(crate::root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let line = readme
        .lines()
        .find(|line| line.starts_with("cargo run ") && line.contains("--on live"))
        .ok_or("README.md has no `cargo run ... --on live` line: the quick start is gone")?;
    let store = std::env::temp_dir().join(format!("trunkline-quick-start-{}", std::process::id()));
    let done = step(
        &format!("quick start: {line}"),
        Command::new(cargo).args(line.split_whitespace().skip(1)).env("TRUNKLINE_STORE", &store),
    );
    let report = std::fs::read_dir(store.join("runs"))
        .map(|runs| runs.flatten().any(|run| run.path().join("report.html").is_file()))
        .unwrap_or(false);
    let removed = std::fs::remove_dir_all(&store);
    done?;
    if !report {
        return Err("the quick start wrote no report.html".to_owned());
    }
    removed.map_err(|e| format!("{} cannot be removed: {e}", store.display()))
}

pub(crate) fn step(name: &str, command: &mut Command) -> Result<(), String> {
    announce(name);
    let started = Instant::now();
    let status =
        command.current_dir(crate::root()).status().map_err(|e| format!("{name}: does not start: {e}"))?;
    if !status.success() {
        return Err(format!("{name} failed ({status})"));
    }
    anstream::println!("    {name}: {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn announce(name: &str) {
    anstream::println!("\n==> {name}");
}
