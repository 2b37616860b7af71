//! What can be typed to talk with other programs.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use trunkline_core::Duration;
use trunkline_sound::Place;

/// Another program at the other end of `send`.
#[derive(Debug, Args)]
pub struct SendForeign {
    /// Send RTP, which AES67 devices, GStreamer and ffmpeg hear; HOST may be a multicast group [default port: 5004]
    #[arg(long, conflicts_with_all = OURS)]
    pub rtp: bool,

    /// Write the session description by which others hear the RTP into this file
    #[arg(long, value_name = "FILE", requires = "rtp")]
    pub sdp: Option<PathBuf>,

    /// How much time a packet of RTP carries; AES67 devices all take `1ms` [default: a block of the device]
    #[arg(long, value_name = "TIME", requires = "rtp")]
    pub packet_time: Option<Duration>,

    /// The address of the interface from which RTP is sent [default: the system's choice]
    #[arg(long, value_name = "ADDRESS", requires = "rtp")]
    pub interface: Option<IpAddr>,

    /// How many routers RTP to a group may pass, plus one
    #[arg(long, value_name = "N", requires = "rtp", default_value_t = 1)]
    pub ttl: u8,

    /// Talk with JackTrip, as its client: HOST runs `jacktrip -s` [default port: 4464]
    #[arg(long, conflicts_with_all = ["rtp", "transport", "reconnect", "fec", "per_channel", "fragment"])]
    pub jacktrip: bool,

    /// HOST runs the hub `jacktrip -S`, which calls this end so
    #[arg(long, value_name = "NAME", requires = "jacktrip")]
    pub hub: Option<String>,
}

/// What only our own receivers and reflectors know.
const OURS: [&str; 7] = ["transport", "reconnect", "redundancy", "fec", "per_channel", "fragment", "to"];

/// Other programs at the other end of `receive`.
#[derive(Debug, Args)]
pub struct ReceiveForeign {
    /// Play the RTP that the session description in this file announces
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "senders", "once", "jacktrip", "allow", "key_file"])]
    pub sdp: Option<PathBuf>,

    /// The address of the interface on which the RTP's group is joined [default: the system's choice]
    #[arg(long, value_name = "ADDRESS", requires = "sdp")]
    pub interface: Option<IpAddr>,

    /// Wait for clients of JackTrip (`jacktrip -c`), one after the other [default port: 4464]
    #[arg(long, conflicts_with_all = ["senders", "key_file"])]
    pub jacktrip: bool,

    /// Where what JackTrip's clients hear comes from: `jack`, `alsa`, `take.wav`, `tone:440`
    #[arg(long, value_name = "PLACE", default_value = "none", requires = "jacktrip")]
    pub from: Place,
}
