//! Arguments of `trunkline wire`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `wire`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Wire {
    /// Something other than running one command.
    #[command(subcommand)]
    pub action: Option<WireAction>,

    /// The links.
    #[command(flatten)]
    pub links: WireLinks,

    /// The host on which COMMAND runs [default: the first host of the file]
    #[arg(long, value_name = "HOST")]
    pub at: Option<String>,

    /// Also run a shell command line on another host: `--with b='iperf3 -s'`
    ///
    /// COMMAND starts when each of these listens on a port or has exited, or after a second. They are stopped when COMMAND exits.
    /// Their output goes to standard error, with `[HOST]` before each line, or `[HOST PROGRAM]` if a host runs several.
    #[arg(long, value_name = "HOST=LINE")]
    pub with: Vec<String>,

    /// The program that runs behind the links, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Subcommands of `wire`.
#[derive(Debug, Subcommand)]
pub enum WireAction {
    /// Bring up a wire and leave it running in the background
    Up {
        /// The links.
        #[command(flatten)]
        links: WireLinks,

        /// Stay in the foreground until Ctrl-C
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

    /// List running wires with their hosts and addresses, and the remains of crashed ones
    Status,

    /// Show rates, queues, drops and queueing delays of a running wire's links and flows, ten times a second
    ///
    /// Press `q` to quit. If the output is not a terminal, prints one snapshot over a second; with --json, prints the counters.
    /// The socket that `status` names serves the same counters to Prometheus at `GET /metrics`.
    Top {
        /// Which wire.
        #[command(flatten)]
        which: Which,
    },

    /// Change links of a running wire
    ///
    /// Keys and values are those of the file: `trunk.rate=5mbit`, `trunk.backward.loss='1 %'`, `trunk.queue.limit='20
    /// packets'`. They apply from now on; waiting packets keep waiting. `trunk.up=false` takes a link down: it drops all
    /// packets until `trunk.up=true`.
    Set {
        /// The keys and their new values
        #[arg(required = true, value_name = "LINK.KEY=VALUE")]
        assignments: Vec<String>,

        /// Which wire.
        #[command(flatten)]
        which: Which,
    },

    /// Take down a wire and end its programs
    Down {
        /// Which wire.
        #[command(flatten)]
        which: Which,

        /// Only remove the remains of wires whose process has died
        #[arg(long, conflicts_with = "wire")]
        stale: bool,
    },

    /// The init process of a host's process namespace
    #[command(hide = true)]
    Init,
}

/// Which wire, if there are several.
#[derive(Debug, Args)]
pub struct Which {
    /// The wire's name [default: the only running wire]
    #[arg(long, value_name = "NAME")]
    pub wire: Option<String>,
}

/// The links, and how they run.
#[derive(Debug, Args)]
pub struct WireLinks {
    /// The experiment file; if it has a sweep, the first combination is used
    #[arg(required_unless_present_any = ["link", "up", "down"], value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// A link described by options instead of a file.
    #[command(flatten)]
    pub words: LinkWords,

    /// The wire's name [default: the file's name without extension; with --link, `link-` and a number]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Let relays spin instead of sleep: the most exact delays, but each link occupies a core
    #[arg(long)]
    pub spin: bool,

    /// The CPU cores over which relays are distributed [default: any]
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub cores: Vec<usize>,

    /// Capture the packets at the ends of links to files in this folder, with drops marked: LINK-HOST.pcapng
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,

    /// The kind of interface between hosts and links
    #[arg(long, value_enum, default_value_t = Devices::Auto, value_name = "KIND")]
    pub devices: Devices,

    /// Use this machine itself, with its own network instead of a namespace, as the last host; needs root
    ///
    /// The other hosts can reach the networks beyond it: while the wire is up, the machine forwards IPv4 for it and translates
    /// addresses.
    #[arg(long)]
    pub outside: bool,
}

/// One link, described on the command line, between the hosts `client` and `server`.
#[derive(Clone, Debug, Default, Args)]
pub struct LinkWords {
    /// A link instead of a file: `--link "20 Mbit/s, 30 ms, fq-codel"`
    ///
    /// COMMAND runs on the host `client`; the host at the other end is `server`. The description is a comma-separated list of
    /// a rate, a one-way delay, a loss (`1 %`), a queue (`fq-codel`) and its limit (`64 KiB`, `100 packets`), `trace=FILE` for
    /// a packet-delivery trace instead of the rate, or any other key of a link's direction as KEY=VALUE (`mtu=1400 B`,
    /// `queue.target=10 ms`, `jitter={ kind = "uniform", min = "0 ms", max = "10 ms" }`). Without a rate or a `medium`, transmission takes no time.
    #[arg(long, value_name = "WORDS", conflicts_with = "file")]
    pub link: Option<String>,

    /// The same for the direction from `client` to `server` only; overrides --link
    #[arg(long, value_name = "WORDS", conflicts_with = "file")]
    pub up: Option<String>,

    /// The same for the direction from `server` to `client` only; overrides --link
    #[arg(long, value_name = "WORDS", conflicts_with = "file")]
    pub down: Option<String>,
}

impl LinkWords {
    /// Whether there are any.
    pub fn is_given(&self) -> bool {
        self.link.is_some() || self.up.is_some() || self.down.is_some()
    }
}

/// Kind of interface between hosts and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Devices {
    /// Virtual Ethernet if this machine supports it (its arrival timestamps are exact to the microsecond), otherwise TUN
    Auto,
    /// TUN interfaces, which carry IP packets
    Tun,
    /// Virtual Ethernet interfaces, which carry Ethernet frames with ARP and neighbour discovery
    Ethernet,
}
