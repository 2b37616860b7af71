//! The one test command: what a change must pass, in the order of how soon it tells.
//!
//! `docs/checks.md` says what each check is for. Hundreds of crates are built from nothing on a fresh machine, so they are
//! built once: lints, tests and documentation use the same build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::english::{self, English};
use crate::journal::Journal;
use crate::{durations, programs};

pub(crate) fn run() -> Result<(), String> {
    let journal = Journal::new()?;
    let done = steps(&journal);
    let entries = journal.read()?;
    durations::print_programs();
    durations::print_steps();
    entries.print_skips();
    entries.print_reruns();
    done.and_then(|()| entries.check_budget())
}

fn steps(journal: &Journal) -> Result<(), String> {
    step("format", cargo().args(["fmt", "--all", "--check"]))?;
    announce("file sizes");
    crate::sizes::run()?;
    announce("plain English");
    english::run(&English::default())?;
    let build = Build::of_this_machine()?;
    step("build and lints", build.test().args(["--all-targets", "--no-run"]))?;
    // The features that packages have are off in the README's build: what stands for them must compile too.
    step("default build", with_lints(cargo().args(["check", "--package", "trunkline", "--locked"])))?;
    macos()?;
    let tests = programs::build(&mut build.test())?;
    timed("tests", || programs::run(&tests, journal))?;
    step("examples in the documentation", build.test().arg("--doc"))?;
    crate::web::check(&program("trunkline")?)?;
    crate::python::check()?;
    timed("instructions", || crate::instructions::run(&crate::instructions::Instructions::default()))?;
    step("documentation of the code", &mut crate::documentation::command(build.test())?)?;
    quick_start(&program("trunkline")?)
}

/// Cargo, without the variables that `cargo run` has set for this program: build scripts that watch one of them (ring's
/// watches `CARGO_MANIFEST_DIR`) would otherwise run again, and everything above them be built again, whenever a command
/// of xtask follows a plain `cargo`.
pub(crate) fn cargo() -> Command {
    without_own_package(Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())))
}

/// The command without those variables, for programs that call Cargo.
pub(crate) fn without_own_package(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command
}

/// A program of this workspace as the tests have built it, beside this one.
pub(crate) fn program(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("the path of this program is not known: {e}"))?;
    Ok(own.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// One choice of packages and features for every step: each other choice would build most of them once more.
struct Build {
    /// libFuzzer's targets always: they are built, so that the next long run can start. Sound cards by ALSA where its
    /// headers are.
    features: &'static str,
}

impl Build {
    fn of_this_machine() -> Result<Self, String> {
        let found = Command::new("pkg-config").args(["--exists", "alsa"]).status();
        if found.is_ok_and(|status| status.success()) {
            return Ok(Self { features: "trunkline-fuzz/libfuzzer,trunkline/full" });
        }
        skip("ALSA is not tested: install the Debian packages `libasound2-dev` and `pkg-config`")?;
        Ok(Self { features: "trunkline-fuzz/libfuzzer,trunkline/png,trunkline/s3,trunkline/telemetry" })
    }

    /// `cargo test`, in which clippy compiles the crates of this workspace: it is the compiler with more lints, and compiling
    /// them with each of the two would take minutes more.
    fn test(&self) -> Command {
        let mut command = cargo();
        command.args(["test", "--workspace", "--locked", "--features", self.features]);
        with_lints(&mut command);
        command
    }
}

/// Has clippy compile the crates of this workspace, and warnings denied.
pub(crate) fn with_lints(command: &mut Command) -> &mut Command {
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    // As `cargo clippy -- --deny warnings` passes its arguments on.
    command.env("CLIPPY_ARGS", "--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__")
}

/// Compiles the program for macOS. Only types are checked, so neither Apple's SDK nor a C compiler for it is needed.
fn macos() -> Result<(), String> {
    const TARGET: &str = "aarch64-apple-darwin";
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let libraries = libraries.map_err(|e| format!("rustc does not start: {e}"))?;
    if !Path::new(String::from_utf8_lossy(&libraries.stdout).trim()).exists() {
        let why = "the build for macOS is not checked: `rustup target add aarch64-apple-darwin`";
        anstream::println!("\n==> skipped: {why}");
        return Journal::of_last_suite().skip_step(why, "rustup's server may be out of reach");
    }
    let mut check = cargo();
    check.args(["check", "--package", "trunkline", "--locked", "--target", TARGET]);
    // Stand-ins that make nothing: nothing is linked.
    check.env(format!("CC_{TARGET}"), "true").env(format!("AR_{TARGET}"), "true");
    step("check for macOS", with_lints(&mut check))
}

/// `cargo test` of the whole workspace, as the suite runs it.
pub(crate) fn build() -> Result<Command, String> {
    Ok(Build::of_this_machine()?.test())
}

/// Skips a step that this machine cannot run; where `CI` is set, that is a failure.
pub(crate) fn skip(why: &str) -> Result<(), String> {
    if std::env::var_os("CI").is_some() {
        return Err(why.to_owned());
    }
    anstream::println!("\n==> skipped: {why}");
    Journal::of_last_suite().skip_step(why, "can be installed")
}

/// The README's first command, for real, in a store of its own; with the program that the tests have built, since a second
/// build of everything takes longer than all other checks but the tests.
fn quick_start(program: &Path) -> Result<(), String> {
    let readme =
        std::fs::read_to_string(crate::root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let arguments = readme
        .lines()
        .filter_map(|line| line.strip_prefix("cargo run --release --bin trunkline -- "))
        .find(|line| line.contains("--on live"))
        .ok_or("README.md has no `cargo run --release --bin trunkline -- ... --on live` line: the quick start is gone")?;
    let store = std::env::temp_dir().join(format!("trunkline-quick-start-{}", std::process::id()));
    let done = step(
        &format!("quick start: trunkline {arguments}"),
        Command::new(program).args(arguments.split_whitespace()).env("TRUNKLINE_STORE", &store),
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
    timed(name, || {
        let status = command.current_dir(crate::root()).status();
        let status = status.map_err(|e| format!("{name}: does not start: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
    })
}

/// Announces a step and notes how long it took.
fn timed(name: &str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    announce(name);
    let started = Instant::now();
    let done = run();
    durations::note(name, started.elapsed());
    done
}

fn announce(name: &str) {
    anstream::println!("\n==> {name}");
}
