//! Arguments of `paths`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `paths`.
#[derive(Debug, Args)]
pub struct Paths {
    /// The action [default: list]
    #[command(subcommand)]
    pub action: Option<PathsAction>,
}

/// Subcommands that manage learned paths.
#[derive(Debug, Subcommand)]
pub enum PathsAction {
    /// List the paths
    List,

    /// Print a path's description
    Show {
        /// The path
        #[arg(value_name = "NAME")]
        name: String,
    },

    /// Print the keys in which two paths differ
    Compare {
        /// The first path
        #[arg(value_name = "NAME")]
        first: String,
        /// The second path
        #[arg(value_name = "NAME")]
        second: String,
    },

    /// Add link descriptions to the library: TOML files, as `trunkline learn` writes them, or files of `paths export`
    Import {
        /// The files; a path is named after its file
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },

    /// Write a path and the files that it names into one file, for another library
    Export {
        /// The path
        #[arg(value_name = "NAME")]
        name: String,
        /// The file to write [default: NAME.tar in the current folder]
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },

    /// Remove paths
    Remove {
        /// The paths
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}
