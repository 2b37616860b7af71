//! The `trunkline` program.

use std::process::ExitCode;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ErrorKind};
use trunkline::args::{Cli, manual};
use trunkline::output::{self, Failure};

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if trunkline_kernel::init::is_wanted() {
        // The console of the kernel has said why.
        return trunkline_kernel::init::run().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let mut command = manual::command();
    // An empty variable is one that is not set.
    if std::env::var_os("TRUNKLINE_STORE").is_some_and(|place| place.is_empty()) {
        command = command.mut_arg("store", |store| store.env(None));
    }
    let arguments = manual::globals_first(std::env::args_os().collect());
    let read = command.try_get_matches_from_mut(arguments.clone());
    match read.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => trunkline::commands::main(cli),
        Err(error) => {
            // A usage line names every argument that has a value, also one from the environment.
            let command = manual::command().mut_arg("store", |store| store.env(None));
            let without = command.try_get_matches_from(arguments).err();
            let mut error = without
                .filter(|without| error.use_stderr() && without.kind() == error.kind())
                .unwrap_or(error);
            // No command takes a misspelt option as a value.
            if error.kind() == ErrorKind::UnknownArgument {
                error.remove(ContextKind::Suggested);
            }
            if error.use_stderr() && asks_for_json() {
                output::print_failure(&Failure::usage(&error));
            }
            error.exit()
        }
    }
}

/// Whether the command line has `--json`; what stands behind `--` belongs to another program.
fn asks_for_json() -> bool {
    std::env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}
