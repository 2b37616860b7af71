//! What can be typed to send, receive and reflect audio.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_session::program::{Correction, Format, Playout};
use trunkline_session::{Network, TransportChoice};
use trunkline_sound::Place;

use super::Conceal;
use super::foreign::{ReceiveForeign, SendForeign};

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct Send {
    /// The other end, where `trunkline reflect` or `trunkline receive` runs [default port: 4780]
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,

    /// Where audio comes from: `jack`, `alsa`, `take.wav`, `take.flac`, `loop:take.wav`, `tone:440`, `noise`
    #[arg(long, value_name = "PLACE", default_value = "jack")]
    pub from: Place,

    /// Where what a reflector sends back goes to: `jack`, `alsa`, `back.wav`, `back.flac`, `none` [default: it is measured only]
    #[arg(long, value_name = "PLACE")]
    pub to: Option<Place>,

    /// Channels; a file has its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub channels: u16,

    /// What is carried.
    #[command(flatten)]
    pub stream: Stream,

    /// The transport as an experiment file writes it: `udp`, `tcp`, `sctp`, `dccp`, `quic`, `{ kind = "dccp", congestion-control = "ccid-3" }`
    #[arg(long, value_name = "TRANSPORT", default_value = "udp")]
    pub transport: TransportChoice,

    /// The sockets.
    #[command(flatten)]
    pub sockets: Sockets,

    /// How it is played.
    #[command(flatten)]
    pub playing: Playing,

    /// End after this time [default: with the file, or by Ctrl-C]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,

    /// End after so many blocks
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub blocks: Option<u64>,

    /// Keep trying when the other end is not there or goes away
    #[arg(long)]
    pub reconnect: bool,

    /// The key of the other end: a copy of its `--key-file`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rtp", "jacktrip"])]
    pub key_file: Option<PathBuf>,

    /// Other programs.
    #[command(flatten)]
    pub foreign: SendForeign,
}

/// What is carried.
#[derive(Debug, Args)]
pub struct Stream {
    /// Frames per second on the network, whatever those of the devices [default: 44100; of G.711 8000, of Opus 48000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1_000..=768_000))]
    pub rate: Option<u32>,

    /// Samples on the network: `i16`, `i24`, `f32`, `pcmu`, `pcma`, `opus`, `opus:128kbit/s` (of each channel)
    #[arg(long, value_name = "FORMAT", default_value = "i16")]
    pub format: Format,

    /// Frames of the device in a block; JACK has its own
    #[arg(long, value_name = "FRAMES", default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=8192))]
    pub block: u32,

    /// A packet for each channel, rather than one for as many as it holds
    #[arg(long)]
    pub per_channel: bool,

    /// Hand packets to the transport in pieces of so many bytes, as the study of 2013 did with 1024
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=65_000))]
    pub fragment: Option<u32>,

    /// Let each packet repeat the K before it
    #[arg(long, value_name = "K", conflicts_with = "fec", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub redundancy: Option<u8>,

    /// Correct losses: `xor:4` adds a packet to every 4, `rs:8+2` adds 2 to every 8
    #[arg(long, value_name = "CODE")]
    pub fec: Option<Correction>,
}

/// Options of sockets.
#[derive(Debug, Args)]
pub struct Sockets {
    /// The differentiated services code point: a number up to 63, 46 is expedited forwarding
    #[arg(long, value_name = "DSCP", default_value_t = 46, value_parser = clap::value_parser!(u8).range(0..=63))]
    pub dscp: u8,

    /// The host's own priority of what is sent (SO_PRIORITY)
    #[arg(long, value_name = "PRIORITY", default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=15))]
    pub priority: u32,

    /// How long the transport may take to take a packet, which then is lost (SO_SNDTIMEO)
    #[arg(long, value_name = "TIME", default_value = "40ms")]
    pub send_timeout: Duration,
}

/// How audio is played.
#[derive(Debug, Args)]
pub struct Playing {
    /// How long audio waits so that late packets come in time: `10ms`, `adaptive`, `adaptive:5ms..100ms`
    #[arg(long, value_name = "TIME", default_value = "adaptive")]
    pub playout: Playout,

    /// What is heard in the place of missing packets
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = Conceal::Waveform)]
    pub conceal: Conceal,

    /// The JACK server [default: $JACK_DEFAULT_SERVER, else `default`]
    #[arg(long, value_name = "NAME")]
    pub jack_server: Option<String>,
}

/// Arguments of `receive`.
#[derive(Debug, Args)]
pub struct Receive {
    /// Where it listens for senders [default: port 4780 of every address]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,

    /// Peers that may send.
    #[command(flatten)]
    pub access: Access,

    /// Where audio goes to: `jack`, `alsa`, `take.wav`, `take.flac`, `none`; further senders are recorded in `take-2.wav` ...
    #[arg(long, value_name = "PLACE", default_value = "jack")]
    pub to: Place,

    /// Channels of the device [default: those of each stream, and both ears for one of one channel]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub channels: Option<u16>,

    /// Mix streams of more channels down, rather than refuse them
    #[arg(long, requires = "channels")]
    pub mix: bool,

    /// So many senders at once, each with ports of its own; others are refused meanwhile
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub senders: u16,

    /// Frames of a block of the device; JACK has its own [default: 128]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(8..=8192))]
    pub block: Option<u32>,

    /// Record exactly the samples that are sent: nothing is resampled, concealed or played at the pace of a clock. Needs a file;
    /// a recording that is not whole is reported, and with `--once` exits with 1
    #[arg(long, conflicts_with_all = ["channels", "mix", "block", "playout", "conceal", "sdp", "jacktrip"])]
    pub exact: bool,

    /// The longest recording; its sender is then told so
    #[arg(long, value_name = "TIME", default_value = "12 h")]
    pub max_length: Duration,

    /// Bytes of all recordings together
    #[arg(long, value_name = "BYTES", default_value = "16 GiB")]
    pub max_size: Bytes,

    /// The number of recordings
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_files: u64,

    /// Bytes that recordings leave free on their disk
    #[arg(long, value_name = "BYTES", default_value = "256 MiB")]
    pub min_free: Bytes,

    /// How it is played.
    #[command(flatten)]
    pub playing: Playing,

    /// End with the first sender
    #[arg(long)]
    pub once: bool,

    /// Other programs.
    #[command(flatten)]
    pub foreign: ReceiveForeign,
}

/// Arguments of `reflect`.
#[derive(Debug, Args)]
pub struct Reflect {
    /// Where it listens [default: port 4780 of every address]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,

    /// So many sessions at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sessions: u16,

    /// Sessions of one address at once, or of an IPv6 network of 64 bits [default: half of --sessions]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub sessions_per_address: Option<u16>,

    /// The most that it sends to those that measure bulk, to all together; one address gets four fifths of it
    #[arg(long, value_name = "RATE", default_value = "100 Mbit/s")]
    pub max_rate: Rate,

    /// Buffers of transports, of all sessions together; one address gets half of it
    #[arg(long, value_name = "BYTES", default_value = "256 MiB")]
    pub max_memory: Bytes,

    /// Peers that are served.
    #[command(flatten)]
    pub access: Access,
}

/// Peers that are served.
#[derive(Debug, Args)]
pub struct Access {
    /// Serve this address or network, such as `192.0.2.0/24`, and no others; repeatable. `0.0.0.0/0` and `::/0` serve
    /// everyone [default: this host and private, link-local and CGNAT networks; with --key-file every address]
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<Network>,

    /// Serve only peers that have the key in this file, which only its owner may read; `openssl rand -hex 32` makes a key
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}
