//! Writes what is generated from the code, or fails where it has drifted; builds the book.
//! `cargo xtask generate` and `cargo xtask book` call it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct References {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the generated references, or with --check fail where they have drifted
    Generate {
        /// Write nothing; fail if a file differs
        #[arg(long)]
        check: bool,
    },
    /// Build the book into docs/book
    Book,
}

fn main() -> ExitCode {
    let done = match References::parse().command {
        Command::Generate { check: true } => trunkline_references::check(),
        Command::Generate { check: false } => trunkline_references::write().map(|files| {
            for file in files {
                anstream::println!("wrote {file}");
            }
        }),
        Command::Book => trunkline_references::book(None),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            anstream::eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
