//! Arguments of `learn`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trunkline_core::{Duration, Ratio};

/// Arguments of `learn`.
#[derive(Debug, Args)]
pub struct Learn {
    /// The other end of the path: an agent that is enrolled here [default port: 4781]
    #[arg(value_name = "HOST[:PORT]", required_unless_present_any = ["over", "from"])]
    pub host: Option<String>,

    /// The agent on this host, which is enrolled here too
    #[arg(long, value_name = "HOST[:PORT]", default_value = "localhost")]
    pub here: String,

    /// Time of probing, about, from 20 s to 10 min; verification takes about 48 s more
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub budget: Duration,

    /// Share of each direction's capacity over that time that overloads may use; trains and thin flows use about 3 % more
    #[arg(long, value_name = "SHARE", default_value = "10 %")]
    pub share: Ratio,

    /// Do not overload the path: its queue stays unknown
    #[arg(long)]
    pub gentle: bool,

    /// Do not verify the description with calls and transfers on the path
    #[arg(long)]
    pub no_verify: bool,

    /// The profile to write, which must not exist yet [default: the name of the host, or of the first recording in `--from`, in the current folder]
    #[arg(long, value_name = "FILE.toml")]
    pub to: Option<PathBuf>,

    /// Measure nothing, and learn from this recording: a capture (pcap, pcapng), a trace of a stored run, a mahimahi trace or
    /// log, a Pantheon log, or an iBoxNet profile
    ///
    /// A second recording is that of the other end of the path (captures), or of the other direction (mahimahi traces).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "plan", "over", "here", "budget", "share", "gentle", "no_verify", "on", "seed", "watch"])]
    pub from: Vec<PathBuf>,

    /// With captures of both ends: their clocks are the same, so delays are one way
    #[arg(long, requires = "from", conflicts_with = "host")]
    pub same_clock: bool,

    /// Learn this link profile instead of a path between hosts, to compare what is learned with what is known
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["host", "here"])]
    pub over: Option<PathBuf>,

    /// The backend on which the profile of `--over` runs
    #[arg(long, value_enum, value_name = "BACKEND", default_value_t = Described::Sim, requires = "over")]
    pub on: Described,

    /// Seed of the times of the probes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Write no profile: take a short look at the path every minute for this time, and report changes of rate, delay and loss
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to", "budget", "share", "gentle", "no_verify", "plan"])]
    pub watch: Option<Duration>,

    /// With `--watch`, the time from one look to the next, from 10 s on; a look takes 3 s and about 70 KB each way
    #[arg(long, value_name = "TIME", default_value = "60 s", requires = "watch")]
    pub every: Duration,

    /// Print the experiment of the first phase and measure nothing
    #[arg(long)]
    pub plan: bool,
}

/// Backend of a described link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// In virtual time
    Sim,
    /// In real time, between namespaces of this machine; Linux only
    Wire,
}
