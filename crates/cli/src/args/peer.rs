//! Arguments of `peer`.

use clap::{Args, Subcommand};

/// Arguments of `peer`.
#[derive(Debug, Args)]
pub struct Peer {
    /// The action.
    #[command(subcommand)]
    pub action: PeerAction,
}

/// Subcommands that manage paired hosts.
#[derive(Debug, Subcommand)]
pub enum PeerAction {
    /// On the host of `reflect` or `receive`: print a pairing code for one host, valid for ten minutes
    Pair,

    /// List the servers that this host has paired with, and the hosts that may connect here
    List,

    /// On the host of `reflect` or `receive`: stop serving a paired host, and end its sessions
    Revoke {
        /// The host
        #[arg(value_name = "HOST")]
        name: String,
    },

    /// Forget a server that this host has paired with
    Forget {
        /// The server
        #[arg(value_name = "SERVER")]
        name: String,
    },
}
