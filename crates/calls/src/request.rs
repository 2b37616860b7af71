//! What a client asks for, and what it is told.

use serde::{Deserialize, Serialize};
use trunkline_audio::pipeline::Stream;
use trunkline_core::Duration;

use crate::choice::TransportChoice;
use crate::settings::Settings;

/// What a client wants of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Request {
    /// What the server does.
    pub role: Role,
    /// The transport of the packets.
    pub transport: TransportChoice,
    /// What they contain, for [`Role::Play`].
    #[serde(default)]
    pub stream: Option<Stream>,
    /// How the sockets at both ends are set up.
    #[serde(default)]
    pub settings: Settings,
}

impl Request {
    /// A request with default settings and without a stream.
    pub fn new(role: Role, transport: TransportChoice) -> Request {
        Request { role, transport, stream: None, settings: Settings::default() }
    }
}

/// What the server does in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Role {
    /// It sends every packet back unopened.
    Echo,
    /// It hands the session to its [`Handler`](crate::Handler), which plays or records, and may send.
    Play,
    /// It takes packets and counts them.
    Sink,
    /// It sends [probes](crate::probe), within the server's bounds.
    Source {
        /// Bits of packets per second.
        rate: u64,
        /// Bytes of a packet.
        packet: u32,
        /// For so long.
        lasting: Duration,
    },
}

/// The first bytes of every packet of a session on the network, by which strangers' packets are known. Drawn by the
/// server, and told on the control connection only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key(pub(crate) u64);

impl Key {
    /// Length in a packet, in bytes.
    pub(crate) const LENGTH: usize = 8;

    /// As in a packet.
    pub(crate) const fn bytes(self) -> [u8; Key::LENGTH] {
        self.0.to_be_bytes()
    }
}

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Facts {
    /// Name and version of the program.
    pub program: String,
    /// Sample rates at which it plays without resampling; empty if it does not play.
    pub sample_rates: Vec<u32>,
    /// The most channels that it plays.
    pub channels: u16,
    /// Transports that it offers, as they are written.
    pub transports: Vec<TransportChoice>,
    /// The most that a [`Role::Source`] sends, in bits per second.
    pub most_rate: u64,
    /// And for how long.
    pub longest_source: Duration,
}
