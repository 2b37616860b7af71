//! The one test command: what a change must pass, in the order of how soon it tells.
//!
//! `docs/checks.md` says what each check is for. Hundreds of crates are built from nothing on a fresh machine, so they are
//! built once: lints, tests and documentation use the same build.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::english::{self, English};
use crate::instructions::{self, Instructions};
use crate::jobs::{self, Job};
use crate::journal::Journal;
use crate::log::Log;
use crate::programs;
use crate::{documentation, durations, python, web};

pub(crate) fn run() -> Result<(), String> {
    let journal = Journal::new()?;
    let suite = durations::Clock::start();
    let mut failures = Failures::default();
    let done = steps(&journal, &mut failures);
    failures.note(done);
    let entries = journal.read()?;
    durations::print_programs();
    durations::print_steps(&suite);
    entries.print_skips();
    entries.print_reruns();
    failures.note(entries.check_budget());
    failures.judge()
}

/// Failures so far. Nothing that can still run is left out because of them.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn note(&mut self, done: Result<(), String>) {
        self.0.extend(done.err());
    }

    fn judge(self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0.join("\nxtask: ")) }
    }
}

/// All of several checks: a failure of one has those of the others with it.
pub(crate) fn all<const N: usize>(done: [Result<(), String>; N]) -> Result<(), String> {
    Failures(done.into_iter().filter_map(Result::err).collect()).judge()
}

/// The checks of the sources, the build, then side by side everything that does not depend on time, and last the rest.
fn steps(journal: &Journal, failures: &mut Failures) -> Result<(), String> {
    let log = Log::TERMINAL;
    failures.note(log.step("format", cargo().args(["fmt", "--all", "--check"])));
    failures.note(log.timed("file sizes", crate::sizes::run));
    failures.note(log.timed("plain English", || english::run(&English::default())));
    let build = Build::of_this_machine()?;
    log.step("build and lints", build.test().args(["--all-targets", "--no-run"]))?;
    let tests = programs::build(&mut build.test())?;
    let (in_real_time, others) = programs::by_time(&tests);
    let trunkline = program("trunkline")?;
    // The longest first, so that no processor waits for one at the end. Those with a build of their own use both.
    let mut busy = vec![
        Job::new("instructions", |log| instructions::run(&Instructions::default(), log)),
        Job::new("default build", |log| all([default_build(log), macos(log)])),
        Job::new("Python", python::check),
        Job::new("documentation of the code", |log| {
            let check = &mut documentation::command(build.test())?;
            log.step("documentation of the code", check)
        }),
    ];
    busy.extend(programs::jobs(&others, journal));
    busy.push(Job::new("examples in the documentation", |log| {
        log.step("examples in the documentation", build.test().arg("--doc"))
    }));
    let mut waiting = vec![Job::new("quick start", |log| quick_start(log, &trunkline))];
    match web::set_up(&log) {
        Ok(true) => {
            busy.insert(0, Job::new("page", web::check));
            waiting.push(Job::new("page: in a browser", |log| web::browser(log, &trunkline)));
        }
        Ok(false) => {}
        Err(problem) => failures.note(Err(problem)),
    }
    failures.0.extend(log.timed("side by side", || jobs::run(busy, waiting)));
    failures.note(programs::check_declared(&others, journal));
    failures.0.extend(log.timed("tests in real time", || programs::run_in_real_time(&in_real_time, journal)));
    Ok(())
}

/// The build of the README, without the features that packages have: what stands for them must compile too.
fn default_build(log: &Log) -> Result<(), String> {
    let mut check = cargo();
    check.args(["check", "--package", "trunkline", "--locked"]);
    log.step("default build", with_lints(&mut check))
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
        skip(
            &Log::TERMINAL,
            "ALSA is not tested: install the Debian packages `libasound2-dev` and `pkg-config`",
        )?;
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
fn macos(log: &Log) -> Result<(), String> {
    const TARGET: &str = "aarch64-apple-darwin";
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let libraries = libraries.map_err(|e| format!("rustc does not start: {e}"))?;
    if !Path::new(String::from_utf8_lossy(&libraries.stdout).trim()).exists() {
        let why = "the build for macOS is not checked: `rustup target add aarch64-apple-darwin`";
        log.say(format_args!("\n==> skipped: {why}"));
        return Journal::of_last_suite().skip_step(why, "rustup's server may be out of reach");
    }
    let mut check = cargo();
    check.args(["check", "--package", "trunkline", "--locked", "--target", TARGET]);
    // Stand-ins that make nothing: nothing is linked.
    check.env(format!("CC_{TARGET}"), "true").env(format!("AR_{TARGET}"), "true");
    log.step("check for macOS", with_lints(&mut check))
}

/// `cargo test` of the whole workspace, as the suite runs it.
pub(crate) fn build() -> Result<Command, String> {
    Ok(Build::of_this_machine()?.test())
}

/// Skips a step that this machine cannot run; where `CI` is set, that is a failure.
pub(crate) fn skip(log: &Log, why: &str) -> Result<(), String> {
    if std::env::var_os("CI").is_some() {
        return Err(why.to_owned());
    }
    log.say(format_args!("\n==> skipped: {why}"));
    Journal::of_last_suite().skip_step(why, "can be installed")
}

/// The README's first command, for real, in a store of its own; with the program that the tests have built, since a second
/// build of everything takes longer than all other checks but the tests.
fn quick_start(log: &Log, program: &Path) -> Result<(), String> {
    let readme =
        std::fs::read_to_string(crate::root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let arguments = readme
        .lines()
        .filter_map(|line| line.strip_prefix("cargo run --release --bin trunkline -- "))
        .find(|line| line.contains("--on live"))
        .ok_or("README.md has no `cargo run --release --bin trunkline -- ... --on live` line: the quick start is gone")?;
    let store = std::env::temp_dir().join(format!("trunkline-quick-start-{}", std::process::id()));
    let done = log.step(
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
