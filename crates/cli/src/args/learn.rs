//! Arguments of `learn`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `learn`.
#[derive(Debug, Args)]
pub struct Learn {
    /// The other end of the path: an agent that is enrolled here
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "from")]
    pub host: Option<String>,

    /// Measure nothing, and learn from this recording: a capture (pcap, pcapng), a trace of a stored run, a mahimahi trace or
    /// log, a Pantheon log, or an iBoxNet profile
    ///
    /// A second recording is that of the other end of the path (captures), or of the other direction (mahimahi traces).
    #[arg(long, value_name = "FILE", conflicts_with = "host", conflicts_with = "plan")]
    pub from: Vec<PathBuf>,

    /// With `--from`: the description to write [default: the name of the first recording, in the current folder]
    #[arg(long, value_name = "FILE.toml", requires = "from")]
    pub to: Option<PathBuf>,

    /// With captures of both ends: their clocks are the same, so delays are one way
    #[arg(long, requires = "from")]
    pub same_clock: bool,

    /// Print the experiment of the first phase and measure nothing
    #[arg(long)]
    pub plan: bool,
}
