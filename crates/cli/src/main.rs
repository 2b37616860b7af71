//! The `trunkline` program.

use std::process::ExitCode;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ErrorKind};
use trunkline::args::{Cli, manual};

fn main() -> ExitCode {
    let mut command = manual::command();
    // An empty variable is one that is not set.
    if std::env::var_os("TRUNKLINE_STORE").is_some_and(|place| place.is_empty()) {
        command = command.mut_arg("store", |store| store.env(None));
    }
    let read = command.try_get_matches_from_mut(std::env::args_os());
    match read.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => trunkline::commands::main(cli),
        Err(mut error) => {
            // No command takes a misspelt option as a value.
            if error.kind() == ErrorKind::UnknownArgument {
                error.remove(ContextKind::Suggested);
            }
            error.exit()
        }
    }
}
