//! What can be measured and recommended: transports, sizes of packets, states of the network.

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

/// What is measured at once: packets over a transport while the network is idle or loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Configuration {
    /// Which transport.
    pub transport: &'static Transport,
    /// Which packets.
    pub packets: Packets,
    /// What else the network carries.
    pub load: Load,
}

/// What else the network carries during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing of ours.
    Idle,
    /// A bulk transfer over TCP to the reflector and one back.
    Bulk,
}

/// The packets of a stream: blocks of audio at the pace of the sound card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Packets {
    /// Frames of each channel in a packet.
    pub frames: u32,
    /// Frames per second.
    pub sample_rate: u32,
    /// Channels in a packet.
    pub channels: u16,
    /// Bytes of a sample.
    pub sample_bytes: u8,
}

impl Packets {
    /// How long the audio in a packet lasts: so much time lies between two packets.
    pub fn interval(self) -> Duration {
        Duration::from_nanos(u64::from(self.frames) * 1_000_000_000 / u64::from(self.sample_rate.max(1)))
    }

    /// Bytes of audio in a packet.
    pub fn payload(self) -> u32 {
        self.frames * u32::from(self.channels) * u32::from(self.sample_bytes)
    }
}

/// A transport as the advisor knows it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Transport {
    /// The name on the command line.
    pub name: &'static str,
    /// Whether it repairs losses until everything has arrived.
    pub reliable: bool,
    /// Bytes of headers of a packet, IPv4 included.
    pub headers: u32,
}
