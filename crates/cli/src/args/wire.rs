//! Arguments of `trunkline wire`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `wire`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Wire {
    /// What to do instead.
    #[command(subcommand)]
    pub action: Option<WireAction>,

    /// The links.
    #[command(flatten)]
    pub links: WireLinks,

    /// The host on which COMMAND runs [default: the file's first]
    #[arg(long, value_name = "HOST")]
    pub at: Option<String>,

    /// Run a line of shell on another host meanwhile: `--with b='iperf3 -s'`
    ///
    /// COMMAND starts as soon as each of these listens on a port, has ended, or a second has passed. They end with it. What
    /// they print goes to standard error.
    #[arg(long, value_name = "HOST=LINE")]
    pub with: Vec<String>,

    /// The program that runs behind the links, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What `wire` can do beside running one command.
#[derive(Debug, Subcommand)]
pub enum WireAction {
    /// Bring the links of a file up and leave them so, in the background
    Up {
        /// The links.
        #[command(flatten)]
        links: WireLinks,

        /// Stay in front, until Ctrl-C
        #[arg(long)]
        foreground: bool,
    },

    /// Run a command on a host of a running wire, and exit with its code
    Exec {
        /// The host
        #[arg(value_name = "HOST")]
        host: String,

        /// Which wire.
        #[command(flatten)]
        which: Which,

        /// The program and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },

    /// List wires that are up, with their hosts and addresses, and what crashes have left
    Status,

    /// Show rates, queues, drops and waiting times of a running wire's links and flows, ten times a second
    ///
    /// Where the output is not a terminal it is shown once, over a second. With --json the counters themselves. The socket
    /// that `status` names answers `GET /metrics` with the same counters for Prometheus.
    Top {
        /// Which wire.
        #[command(flatten)]
        which: Which,
    },

    /// Change links of a running wire
    ///
    /// Keys and values are those of the file: `trunk.rate=5mbit`, `trunk.backward.loss='1 %'`, `trunk.queue.limit='20
    /// packets'`. They hold from now on, and what waits goes on waiting. `trunk.up=false` takes a link down: until
    /// `trunk.up=true` all that comes is lost.
    Set {
        /// What is set
        #[arg(required = true, value_name = "LINK.KEY=VALUE")]
        assignments: Vec<String>,

        /// Which wire.
        #[command(flatten)]
        which: Which,
    },

    /// Take a wire down: its programs end
    Down {
        /// Which wire.
        #[command(flatten)]
        which: Which,

        /// Remove what wires left whose process has died, and nothing else
        #[arg(long, conflicts_with = "wire")]
        stale: bool,
    },

    /// The first process of a wire's process namespace
    #[command(hide = true)]
    Init,
}

/// Which wire, if there are several.
#[derive(Debug, Args)]
pub struct Which {
    /// The wire's name [default: the only one that is up]
    #[arg(long, value_name = "NAME")]
    pub wire: Option<String>,
}

/// Which links, and how they are driven.
#[derive(Debug, Args)]
pub struct WireLinks {
    /// The experiment file; of what it sweeps, the first combination
    #[arg(required = true, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// What the wire is called [default: as the file, without its extension]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Let relays spin instead of sleeping: the most exact times, and a core of its own for each link
    #[arg(long)]
    pub spin: bool,

    /// The cores on which relays run, in turn [default: any]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub cores: Vec<usize>,

    /// Capture what crosses the ends of links into files of this folder, with drops marked: LINK-HOST.pcapng
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,

    /// What joins hosts and links
    #[arg(long, value_enum, default_value_t = Devices::Auto, value_name = "KIND")]
    pub devices: Devices,

    /// Let the last host be this machine itself, with its own network instead of a namespace; needs root
    #[arg(long)]
    pub outside: bool,
}

/// What joins hosts and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Devices {
    /// Virtual Ethernet interfaces where this machine has them: their relays know to the microsecond what came when
    Auto,
    /// TUN interfaces, which carry IP packets
    Tun,
    /// Virtual Ethernet interfaces, which carry Ethernet frames with ARP and neighbour discovery
    Ethernet,
}
