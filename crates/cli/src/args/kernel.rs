//! Arguments of `kernel`.

use clap::{Args, Subcommand};

/// Arguments of `kernel`.
#[derive(Debug, Args)]
pub struct Kernel {
    /// The action.
    #[command(subcommand)]
    pub action: KernelAction,
}

/// Subcommands that manage kernels.
#[derive(Debug, Subcommand)]
pub enum KernelAction {
    /// Build a kernel from Debian's source of Linux 6.1, in about ten minutes
    ///
    /// Needs x86-64 and Debian's packages linux-source-6.1, build-essential, flex, bison, bc, libelf-dev, libssl-dev and
    /// xz-utils, and 2 GB of free space while it is built. A kernel of the same name is replaced at the end. Ctrl-C stops
    /// the build and keeps nothing of it.
    Build {
        /// The kernel's name in experiment files
        #[arg(value_name = "NAME", default_value = "linux-6.1")]
        name: String,
    },

    /// List the kernels that have been built
    List,
}
