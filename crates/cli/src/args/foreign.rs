//! Options for interoperating with other programs.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use trunkline_core::Duration;
use trunkline_sound::Place;

/// Options of `send` for other programs at the other end.
#[derive(Debug, Args)]
pub struct SendForeign {
    /// Send RTP, for AES67 devices, GStreamer and ffmpeg; HOST may be a multicast group [default port: 5004]
    #[arg(long, conflicts_with_all = OURS)]
    pub rtp: bool,

    /// Write the session description (SDP) for RTP receivers to this file
    #[arg(long, value_name = "FILE", requires = "rtp")]
    pub sdp: Option<PathBuf>,

    /// The duration of audio in an RTP packet; all AES67 devices accept `1ms` [default: one block of the device]
    #[arg(long, value_name = "TIME", requires = "rtp")]
    pub packet_time: Option<Duration>,

    /// The local address of the interface that sends RTP [default: the system chooses]
    #[arg(long, value_name = "ADDRESS", requires = "rtp")]
    pub interface: Option<IpAddr>,

    /// The time to live of multicast RTP packets, in hops
    #[arg(long, value_name = "N", requires = "rtp", default_value_t = 1)]
    pub ttl: u8,

    /// Connect to JackTrip as a client: HOST runs `jacktrip -s` [default port: 4464]
    #[arg(long, conflicts_with_all = ["rtp", "transport", "reconnect", "fec", "per_channel", "fragment"])]
    pub jacktrip: bool,

    /// HOST runs the hub `jacktrip -S`; this is our name at the hub
    #[arg(long, value_name = "NAME", requires = "jacktrip")]
    pub hub: Option<String>,
}

/// Options that only our own receivers and reflectors support.
const OURS: [&str; 7] = ["transport", "reconnect", "redundancy", "fec", "per_channel", "fragment", "to"];

/// Options of `receive` for other programs at the other end.
#[derive(Debug, Args)]
pub struct ReceiveForeign {
    /// Play the RTP that the session description in this file announces
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "senders", "once", "jacktrip", "allow", "key_file", "pair"])]
    pub sdp: Option<PathBuf>,

    /// The local address of the interface that joins the RTP multicast group [default: the system chooses]
    #[arg(long, value_name = "ADDRESS", requires = "sdp")]
    pub interface: Option<IpAddr>,

    /// Accept JackTrip clients (`jacktrip -c`), one at a time [default port: 4464]
    #[arg(long, conflicts_with_all = ["senders", "key_file", "pair"])]
    pub jacktrip: bool,

    /// The audio sent to JackTrip clients: `jack`, `alsa`, `take.wav`, `tone:440`
    #[arg(long, value_name = "PLACE", default_value = "none", requires = "jacktrip")]
    pub from: Place,
}
