//! Arguments of `trunkline runs`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `trunkline runs`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    /// What to do with runs [default: list them]
    #[command(subcommand)]
    pub command: Option<RunsCommand>,

    /// Filters of the list
    #[command(flatten)]
    pub choice: Choice,
}

/// Filters of stored runs.
#[derive(Debug, Default, Args)]
pub struct Choice {
    /// Only experiments whose name contains this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,

    /// Only runs on this backend
    #[arg(long, value_name = "BACKEND", value_enum)]
    pub on: Option<super::On>,

    /// Only runs with this status
    #[arg(long, value_enum)]
    pub status: Option<RunStatus>,

    /// Only runs with this tag; repeat for several tags
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,

    /// Only runs started since then: a date (2026-11-22), a time (2026-11-22T09:30:00Z), or an age (`12 hours`, `30 days`)
    #[arg(long, value_name = "WHEN", value_parser = crate::moments::parse)]
    pub since: Option<jiff::Timestamp>,

    /// Only runs started before then
    #[arg(long, value_name = "WHEN", value_parser = crate::moments::parse)]
    pub before: Option<jiff::Timestamp>,
}

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunStatus {
    /// Being measured
    Running,
    /// Finished
    Complete,
    /// Interrupted
    Partial,
}

/// Subcommands of `runs`.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Add tags to a run; `prune` keeps tagged runs
    Tag {
        /// The run: its number, its folder's name, or `latest`
        run: String,
        /// The tags
        #[arg(required = true, value_name = "TAG")]
        tags: Vec<String>,
        /// Remove these tags instead
        #[arg(long)]
        remove: bool,
    },

    /// Compare two runs figure by figure, with the significance of each difference
    ///
    /// Points match if all swept keys have the same values. With --json, prints every figure in base units.
    Compare {
        /// The run: its number, its folder's name, or `latest`
        run: String,
        /// The run to compare it with
        with: String,
        /// Show all figures, not only the main ones
        #[arg(long)]
        all: bool,
    },

    /// Write a run with all its files to an archive, for another store
    Export {
        /// The run: its number, its folder's name, or `latest`
        run: String,
        /// The archive [default: the run's folder name with `.tar`, in the current folder]
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },

    /// Import runs that were exported from another store
    Import {
        /// The archives
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },

    /// Make one run of the parts that `run --shard` has measured
    ///
    /// Takes each repetition once, from the first part that has it, byte for byte. The parts stay as they are. If repetitions are
    /// missing, the run is partial, and `run --resume` measures them.
    Merge {
        /// The parts: folders of stores, of which all runs are taken, or runs of this store
        #[arg(required = true, value_name = "PART")]
        parts: Vec<String>,
    },

    /// Remove runs with all their files
    Remove {
        /// The runs: their numbers, their folders' names, or `latest`
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },

    /// Remove old runs
    ///
    /// Keeps tagged runs and running ones.
    Prune {
        /// Keep runs that started within this time: `30 days`, `12 hours`
        #[arg(long, value_name = "TIME", value_parser = crate::moments::span)]
        within: jiff::SignedDuration,
        /// Keep this many of the latest runs of each experiment on each backend
        #[arg(long, value_name = "N", default_value_t = 1)]
        latest: u32,
        /// List the runs that would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
}
