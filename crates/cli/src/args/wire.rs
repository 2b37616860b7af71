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
    /// COMMAND starts as soon as each of these listens on a port, has ended, or a second has passed. They end with it. The
    /// lines that they print go to standard error, each with `[HOST]` before it, or `[HOST PROGRAM]` where several run on a host.
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
    /// `q` leaves. Where the output is not a terminal it is shown once, over a second. With --json the counters themselves. The socket
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
    #[arg(required_unless_present_any = ["link", "up", "down"], value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// A link in words, in place of a file.
    #[command(flatten)]
    pub words: LinkWords,

    /// The wire's name [default: as the file, without its extension; with --link, `link-` and a number]
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
    ///
    /// The other hosts reach the networks beyond it: while the wire is up the machine forwards IPv4 for it and translates
    /// addresses.
    #[arg(long)]
    pub outside: bool,
}

/// One link, described on the command line, between the hosts `client` and `server`.
#[derive(Clone, Debug, Default, Args)]
pub struct LinkWords {
    /// A link in place of a file: `--link "20 Mbit/s, 30 ms, fq-codel"`
    ///
    /// COMMAND runs on the host `client`; the host at the other end is `server`. Words are separated by commas: a rate, a
    /// delay (one way), a loss (`1 %`), a queue (`fq-codel`) and its limit (`64 KiB`, `100 packets`), `trace=FILE` for a
    /// packet-delivery trace in place of the rate, or any other key of a link's direction as KEY=VALUE (`jitter=5 ms`,
    /// `queue.target=10 ms`). Without a rate the link takes no time to transmit.
    #[arg(long, value_name = "WORDS", conflicts_with = "file")]
    pub link: Option<String>,

    /// The same for the direction from `client` to `server` alone, in place of what --link says of it
    #[arg(long, value_name = "WORDS", conflicts_with = "file")]
    pub up: Option<String>,

    /// The same for the direction from `server` to `client` alone
    #[arg(long, value_name = "WORDS", conflicts_with = "file")]
    pub down: Option<String>,
}

impl LinkWords {
    /// Whether there are any.
    pub fn is_given(&self) -> bool {
        self.link.is_some() || self.up.is_some() || self.down.is_some()
    }
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
