//! Arguments of `learn`.

use clap::Args;

/// Arguments of `learn`.
#[derive(Debug, Args)]
pub struct Learn {
    /// The other end of the path: an agent that is enrolled here
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,

    /// Print the experiment of the first phase and measure nothing
    #[arg(long)]
    pub plan: bool,
}
