//! Arguments of `listen`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `listen`.
#[derive(Debug, Args)]
pub struct Listen {
    /// The recording that was sent: WAV or FLAC
    #[arg(value_name = "SENT")]
    pub sent: PathBuf,

    /// The recording that was received
    #[arg(value_name = "RECEIVED")]
    pub received: PathBuf,
}
