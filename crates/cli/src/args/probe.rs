//! Arguments of `probe`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trunkline_advisor::{Transport, Use};
use trunkline_control::PairingCode;
use trunkline_core::{Duration, Ratio};

use super::parsers::number;

/// Arguments of `probe`.
#[derive(Debug, Args)]
pub struct Probe {
    /// The other end, where `trunkline reflect` or `trunkline receive` runs [default port: 4780]
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,

    /// The time that the measurement may take, from 1 s to 1 h
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub budget: Duration,

    /// What the connection is for: `rehearsal`, `recording`, `telephony`, separated by commas [default: all]
    #[arg(long = "for", value_name = "USE", value_delimiter = ',')]
    pub uses: Vec<Use>,

    /// Transports to measure and recommend: `udp`, `tcp`, `sctp` ..., separated by commas [default: all]
    #[arg(long, value_name = "TRANSPORT", value_delimiter = ',')]
    pub transports: Vec<Transport>,

    /// Channels of rehearsals and recordings
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = number::<u16>(1..=256))]
    pub channels: u16,

    /// Sample rate of rehearsals and recordings
    #[arg(long, value_name = "HZ", default_value_t = 48_000, value_parser = number::<u32>(8_000..=768_000))]
    pub rate: u32,

    /// Sample format of rehearsals and recordings
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Samples::I16)]
    pub format: Samples,

    /// The share of a rehearsal's audio that may be concealed
    #[arg(long, value_name = "SHARE", default_value = "0.5 %")]
    pub concealed: Ratio,

    /// The key of the other end: a copy of its `--key-file`
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Pair with the other end first, with the code that `--pair` or `trunkline peer pair` prints there
    #[arg(long, value_name = "CODE")]
    pub pair: Option<PairingCode>,

    /// Do not load the network with bulk transfers
    #[arg(long)]
    pub no_load: bool,

    /// Write the advice as an HTML page and as JSON to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Uncompressed samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Samples {
    /// 16 bit
    I16,
    /// 24 bit
    I24,
    /// 32-bit float
    F32,
}

impl Samples {
    /// Bytes of one.
    pub fn bytes(self) -> u8 {
        match self {
            Samples::I16 => 2,
            Samples::I24 => 3,
            Samples::F32 => 4,
        }
    }
}
