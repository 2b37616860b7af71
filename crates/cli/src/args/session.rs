//! Arguments of `send`, `receive` and `reflect`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use trunkline_calls::program::{Correction, Format, Playout};
use trunkline_calls::{Network, TransportChoice};
use trunkline_control::PairingCode;
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_sound::Place;

use super::Conceal;
use super::foreign::{ReceiveForeign, SendForeign};
use super::parsers::{address, number};

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct Send {
    /// The other end, where `trunkline reflect` or `trunkline receive` runs [default port: 4780]
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,

    /// The source of the audio: `jack`, `alsa`, `take.wav`, `take.flac`, `loop:take.wav`, `tone:440`, `noise`
    ///
    /// `tone` and `noise` have 48000 Hz, whatever `--rate` is.
    #[arg(long, value_name = "PLACE", default_value = "jack")]
    pub from: Place,

    /// The output of the audio that a reflector returns: `jack`, `alsa`, `back.wav`, `back.flac`, `none` [default: it is only
    /// measured]
    #[arg(long, value_name = "PLACE", value_parser = Place::playback)]
    pub to: Option<Place>,

    /// Number of channels; a file has its own number
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = number::<u16>(1..=256))]
    pub channels: u16,

    /// The audio stream.
    #[command(flatten)]
    pub stream: Stream,

    /// The transport, as in an experiment file: `udp`, `tcp`, `sctp`, `dccp`, `quic`, `{ kind = "dccp", congestion-control = "ccid-3" }`
    #[arg(long, value_name = "TRANSPORT", default_value = "udp")]
    pub transport: TransportChoice,

    /// Socket options.
    #[command(flatten)]
    pub sockets: Sockets,

    /// Playback.
    #[command(flatten)]
    pub playing: Playing,

    /// Stop after this time [default: at the end of the file, or on Ctrl-C]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,

    /// Stop after this number of blocks
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = number::<u64>(1..))]
    pub blocks: Option<u64>,

    /// Keep retrying if the other end is unreachable or disappears
    #[arg(long)]
    pub reconnect: bool,

    /// The key of the other end: a copy of its `--key-file`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rtp", "jacktrip"])]
    pub key_file: Option<PathBuf>,

    /// Pair with the other end first, with the code that `--pair` or `trunkline peer pair` prints there
    ///
    /// From then on both ends know each other's keys: the other end serves this host at every address, the control
    /// connection is encrypted, and the other end's name can stand for its address.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["rtp", "jacktrip"])]
    pub pair: Option<PairingCode>,

    /// Interoperation with other programs.
    #[command(flatten)]
    pub foreign: SendForeign,
}

/// The audio stream.
#[derive(Debug, Args)]
pub struct Stream {
    /// Sample rate on the network, independent of the devices' [default: 44100; G.711: 8000; Opus: 48000]
    #[arg(long, value_name = "HZ", value_parser = number::<u32>(1_000..=768_000))]
    pub rate: Option<u32>,

    /// Sample format on the network: `i16`, `i24`, `f32`, `pcmu`, `pcma`, `opus`, `opus:128kbit/s` (per channel)
    #[arg(long, value_name = "FORMAT", default_value = "i16")]
    pub format: Format,

    /// Block size of the device, in frames; JACK has its own
    ///
    /// The blocks of the stream last as long. So 160 frames of `tone`, at 48000 Hz, are 27 samples of G.711, at 8000 Hz; for
    /// its 20 ms choose 960.
    #[arg(long, value_name = "FRAMES", default_value_t = 512, value_parser = number::<u32>(8..=8192))]
    pub block: u32,

    /// Send one packet per channel, instead of as many channels per packet as fit
    #[arg(long)]
    pub per_channel: bool,

    /// Write packets to the transport in pieces of this size (1024 in the study of 2013)
    #[arg(long, value_name = "BYTES", value_parser = number::<u32>(64..=65_000))]
    pub fragment: Option<u32>,

    /// Repeat the previous K packets in each packet
    #[arg(long, value_name = "K", conflicts_with = "fec", value_parser = number::<u8>(1..=8))]
    pub redundancy: Option<u8>,

    /// Forward error correction: `xor:4` adds a parity packet to every 4, `rs:8+2` adds 2 to every 8
    #[arg(long, value_name = "CODE")]
    pub fec: Option<Correction>,
}

fn longer_than_zero(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<Duration>().map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("expected a time longer than zero".to_owned()) } else { Ok(duration) }
}

/// Socket options.
#[derive(Debug, Args)]
pub struct Sockets {
    /// The DSCP mark of sent packets, 0 to 63; 46 is expedited forwarding
    #[arg(long, value_name = "DSCP", default_value_t = 46, value_parser = number::<u8>(0..=63))]
    pub dscp: u8,

    /// The local priority of sent packets (SO_PRIORITY)
    #[arg(long, value_name = "PRIORITY", default_value_t = 6, value_parser = number::<u32>(0..=15))]
    pub priority: u32,

    /// Maximum time that a packet waits for the transport before it is dropped (SO_SNDTIMEO)
    #[arg(long, value_name = "TIME", default_value = "40ms")]
    pub send_timeout: Duration,
}

/// Playback options.
#[derive(Debug, Args)]
pub struct Playing {
    /// The playout delay, which absorbs jitter: `10ms`, `adaptive`, `adaptive:5ms..100ms`
    #[arg(long, value_name = "TIME", default_value = "adaptive")]
    pub playout: Playout,

    /// Concealment of missing packets
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = Conceal::Waveform)]
    pub conceal: Conceal,

    /// The JACK server [default: $JACK_DEFAULT_SERVER, else `default`]
    #[arg(long, value_name = "NAME")]
    pub jack_server: Option<String>,
}

/// Arguments of `receive`.
#[derive(Debug, Args)]
pub struct Receive {
    /// The address and port on which to accept senders [default: port 4780 of every address]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address(4780))]
    pub listen: Option<SocketAddr>,

    /// Peers that may send.
    #[command(flatten)]
    pub access: Access,

    /// The output: `jack`, `alsa`, `take.wav`, `take.flac`, `none`; further senders are recorded in `take-2.wav` ...
    #[arg(long, value_name = "PLACE", default_value = "jack", value_parser = Place::playback)]
    pub to: Place,

    /// Channels of the device [default: those of each stream; a mono stream plays on both sides]
    #[arg(long, value_name = "N", value_parser = number::<u16>(1..=256))]
    pub channels: Option<u16>,

    /// Mix down streams with more channels, instead of refusing them
    #[arg(long, requires = "channels")]
    pub mix: bool,

    /// The number of simultaneous senders, each with its own ports; others are refused
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<u16>(1..=64))]
    pub senders: u16,

    /// Block size of the device, in frames; JACK has its own [default: 128]
    #[arg(long, value_name = "FRAMES", value_parser = number::<u32>(8..=8192))]
    pub block: Option<u32>,

    /// Record exactly the samples that were sent, without resampling, concealment or playout delay. Needs a file. An incomplete
    /// recording is reported; with `--once` the exit code is then 1
    #[arg(long, conflicts_with_all = ["channels", "mix", "block", "playout", "conceal", "sdp", "jacktrip"])]
    pub exact: bool,

    /// The maximum length of a recording; its sender is notified when it is reached
    #[arg(long, value_name = "TIME", default_value = "12 h", value_parser = longer_than_zero)]
    pub max_length: Duration,

    /// The maximum size of all recordings together
    #[arg(long, value_name = "BYTES", default_value = "16 GiB")]
    pub max_size: Bytes,

    /// The maximum number of recordings
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = number::<u64>(1..))]
    pub max_files: u64,

    /// The free disk space below which recording stops
    #[arg(long, value_name = "BYTES", default_value = "256 MiB")]
    pub min_free: Bytes,

    /// Playback.
    #[command(flatten)]
    pub playing: Playing,

    /// Exit after the first sender
    #[arg(long)]
    pub once: bool,

    /// Interoperation with other programs.
    #[command(flatten)]
    pub foreign: ReceiveForeign,
}

/// Arguments of `reflect`.
#[derive(Debug, Args)]
pub struct Reflect {
    /// The address and port on which to listen [default: port 4780 of every address]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address(4780))]
    pub listen: Option<SocketAddr>,

    /// The number of simultaneous sessions
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = number::<u16>(1..=1024))]
    pub sessions: u16,

    /// Number of simultaneous sessions of one address, or of an IPv6 network of 64 bits [default: half of --sessions]
    #[arg(long, value_name = "N", value_parser = number::<u16>(1..=1024))]
    pub sessions_per_address: Option<u16>,

    /// Maximum rate of bulk measurements to all clients together; one address gets at most four fifths of it
    #[arg(long, value_name = "RATE", default_value = "100 Mbit/s")]
    pub max_rate: Rate,

    /// Maximum size of the transport buffers of all sessions together; one address gets at most half of it
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
    /// everyone [default: this host, its IPv6 networks, and private, link-local and CGNAT networks; with --key-file
    /// every address]
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<Network>,

    /// Serve only peers that have the key in this file, which only its owner may read; `openssl rand -hex 32` makes a key
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Print a code with which one host can pair with this one, within ten minutes
    ///
    /// From then on that host is served at every address, and without --key-file. `trunkline peer` lists and revokes such
    /// hosts.
    #[arg(long)]
    pub pair: bool,
}
