//! The `trunkline` program.

use std::process::ExitCode;

use clap::Parser as _;
use trunkline::args::Cli;

fn main() -> ExitCode {
    trunkline::commands::main(Cli::parse())
}
