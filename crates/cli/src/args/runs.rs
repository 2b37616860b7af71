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

    /// Which are listed
    #[command(flatten)]
    pub choice: Choice,
}

/// Some of the stored runs; what is not given does not matter.
#[derive(Debug, Default, Args)]
pub struct Choice {
    /// With this in the experiment's name, whatever its case
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,

    /// Measured on this backend
    #[arg(long, value_name = "BACKEND", value_enum)]
    pub on: Option<On>,

    /// As far as this
    #[arg(long, value_enum)]
    pub status: Option<RunStatus>,

    /// With this tag; with all of them if given several times
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,

    /// Started then or later: a date (2026-11-22), a time (2026-11-22T09:30:00Z), or how long ago (`12 hours`, `30 days`)
    #[arg(long, value_name = "WHEN", value_parser = crate::moments::parse)]
    pub since: Option<jiff::Timestamp>,

    /// Started before then
    #[arg(long, value_name = "WHEN", value_parser = crate::moments::parse)]
    pub before: Option<jiff::Timestamp>,
}

/// A backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// Virtual time
    Sim,
    /// Emulated links in real time
    Wire,
    /// Real sockets
    Live,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunStatus {
    /// Being measured
    Running,
    /// Measured to its end
    Complete,
    /// Interrupted
    Partial,
}

/// What is done with runs.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Mark a run with tags: runs that have any are kept by `prune`
    Tag {
        /// The run: its number, its folder's name, or `latest`
        run: String,
        /// The tags
        #[arg(required = true, value_name = "TAG")]
        tags: Vec<String>,
        /// Take them off instead
        #[arg(long)]
        remove: bool,
    },

    /// Compare two runs figure by figure, with the confidence that a difference is more than chance
    ///
    /// Points are the same if all swept keys have the same values there. With --json every figure in base units.
    Compare {
        /// The run: its number, its folder's name, or `latest`
        run: String,
        /// The one to compare it with
        with: String,
        /// Show all figures, not only the most telling ones
        #[arg(long)]
        all: bool,
    },

    /// Write a run with all its files as one archive, for another store
    Export {
        /// The run: its number, its folder's name, or `latest`
        run: String,
        /// The archive [default: the folder's name with `.tar`, here]
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },

    /// Take in runs that another store has exported
    Import {
        /// The archives
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },

    /// Remove runs with all their files
    Remove {
        /// The runs: their numbers, their folders' names, or `latest`
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },

    /// Remove runs that have been kept long enough
    ///
    /// Runs with a tag are kept, and those being measured.
    Prune {
        /// Keep what started within this time: `30 days`, `12 hours`
        #[arg(long, value_name = "TIME", value_parser = crate::moments::span)]
        within: jiff::SignedDuration,
        /// Keep the latest runs of each experiment on each backend, so many
        #[arg(long, value_name = "N", default_value_t = 1)]
        latest: u32,
        /// Say what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
}
