//! `cargo xtask ...`: the checks and the one test command. It uses no crate of this workspace, so that the first check starts at
//! once; what is made of the whole program is `references`.

mod attack;
mod documentation;
mod durations;
mod endure;
mod english;
mod instructions;
mod jobs;
mod journal;
mod log;
mod peers;
mod programs;
mod python;
mod reruns;
mod sbom;
mod sizes;
mod soak;
mod test;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tools for Trunkline's developers.
#[derive(Parser)]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check that a change must pass: what CI runs
    Test,
    /// Write the generated references, or with --check fail where they have drifted
    Generate {
        /// Write nothing; fail if a file differs
        #[arg(long)]
        check: bool,
    },
    /// Build the book into docs/book
    Book,
    /// Build the page into web/dist, which the program embeds
    Web,
    /// Run every property test of the transports with ten thousand cases each, at low priority
    Soak(soak::Soak),
    /// Attack every door for ten minutes: floods, oversize, mutation, kills, full disks, clocks that step
    Attack(attack::Attack),
    /// Load agents, reflector, server and wire for two hours with faults, and fail if memory, descriptors or threads grow
    Endure(endure::Endure),
    /// Count the instructions of the hot paths, and fail where one exceeds its budget by more than 3 %
    Instructions(instructions::Instructions),
    /// Run Trunkline beside its peers, whole commands in turn, and write docs/peers.md and docs/peers.json
    Peers(peers::Peers),
    /// Repeat the tests in real time, and fail at any rerun
    Reruns(reruns::Reruns),
    /// List everything that the program is built of, as CycloneDX
    Sbom(sbom::Sbom),
    /// Refuse translated idioms in documents, comments and messages
    English(english::English),
    /// List long files; fail on one over 1,000 lines without a reason
    Sizes,
}

fn main() -> ExitCode {
    if let Some(done) = documentation::as_rustdoc() {
        return done;
    }
    let done = match Xtask::parse().command {
        Command::Test => test::run(),
        Command::Generate { check: true } => references(&["generate", "--check"]),
        Command::Generate { check: false } => references(&["generate"]),
        Command::Book => references(&["book"]),
        Command::Web => web::build(),
        Command::Soak(soak) => soak::run(&soak),
        Command::Attack(attack) => attack::run(&attack),
        Command::Endure(endure) => endure::run(&endure),
        Command::Instructions(options) => instructions::run(&options, &log::Log::TERMINAL),
        Command::Peers(peers) => peers::run(&peers),
        Command::Reruns(reruns) => reruns::run(&reruns),
        Command::Sbom(sbom) => sbom::run(&sbom),
        Command::English(english) => english::run(&english),
        Command::Sizes => sizes::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            anstream::eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn references(arguments: &[&str]) -> Result<(), String> {
    let run = ["run", "--quiet", "--package", "trunkline-references", "--locked", "--"];
    log::Log::TERMINAL.step("references", test::cargo().args(run).args(arguments))
}
