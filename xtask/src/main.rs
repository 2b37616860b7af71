//! `cargo xtask ...`: generated references, the book, the checks and the one test command.

mod generate;
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
    /// List long files; fail on one over 1,000 lines without a reason
    Sizes,
}

fn main() -> ExitCode {
    let done = match Xtask::parse().command {
        Command::Test => test::run(),
        Command::Generate { check } => generate::run(check),
        Command::Book => book(),
        Command::Web => web::build(),
        Command::Soak(soak) => soak::run(&soak),
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

fn book() -> Result<(), String> {
    use mdbook_driver::MDBook;
    let book = MDBook::load(root().join("docs")).map_err(|e| format!("the book does not load: {e:#}"))?;
    book.build().map_err(|e| format!("the book does not build: {e:#}"))
}
