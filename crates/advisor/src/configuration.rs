//! What can be measured and recommended: transports, blocks, states of the network.

use std::fmt;

use serde::Serialize;
use trunkline_audio::packet::Header;
use trunkline_core::Duration;

use crate::transport::Transport;

/// Bytes of a packet at most, as `Packing` has it by default.
const MOST_PACKET: usize = 1_400;

/// The most audio in a packet, in bytes.
pub(crate) const MOST_AUDIO: u64 = (MOST_PACKET - Header::BYTES) as u64;

/// What is measured at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Configuration {
    /// The transport of the packets.
    pub transport: Transport,
    /// What they contain.
    pub blocks: Blocks,
    /// What else the network carries.
    pub load: Load,
    /// How they are marked.
    pub marking: Marking,
}

/// What else the network carries during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing of ours.
    Idle,
    /// A bulk transfer to the reflector and one back.
    Bulk,
}

/// The differentiated services code point of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marking {
    /// Expedited forwarding (RFC 3246), as sessions of audio have it.
    Expedited,
    /// None: best effort.
    BestEffort,
}

/// The blocks of a stream, each in as many packets as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocks {
    /// Frames per second, at least 1.
    pub sample_rate: u32,
    /// Frames in a block.
    pub frames: u32,
    /// Channels.
    pub channels: u16,
    /// Bytes of a sample.
    pub sample_bytes: u8,
}

impl Configuration {
    /// The same under another load.
    pub fn under(self, load: Load) -> Configuration {
        Configuration { load, ..self }
    }
}

impl Blocks {
    /// G.711: one channel of 8 kHz and one byte a sample.
    pub fn telephone(frames: u32) -> Blocks {
        Blocks { sample_rate: 8_000, frames, channels: 1, sample_bytes: 1 }
    }

    /// Whether it is G.711's format.
    pub fn is_telephone(self) -> bool {
        self == Blocks::telephone(self.frames)
    }

    /// How long a block lasts: so much time lies between two.
    pub fn interval(self) -> Duration {
        Duration::from_nanos(u64::from(self.frames) * 1_000_000_000 / u64::from(self.sample_rate.max(1)))
    }

    /// From the first sample of a block to the moment at which the sound card has given the last one. The card of a telephone is
    /// not one of 8 kHz: it gives as much as lasts a block, of which the resampler holds back some. So a block is whole only when
    /// the card gives the next.
    pub(crate) fn gathering(self) -> Duration {
        if self.is_telephone() { self.interval() * 2 } else { self.interval() }
    }

    /// Bytes of audio in a block.
    pub fn bytes(self) -> u64 {
        u64::from(self.frames) * u64::from(self.channels) * u64::from(self.sample_bytes)
    }

    /// How many packets a block takes, at least 1, and how many bytes of audio are in each.
    pub fn packets(self) -> (u64, u64) {
        let packets = self.bytes().div_ceil(MOST_AUDIO).max(1);
        (packets, self.bytes().div_ceil(packets))
    }
}

/// `udp, 128 frames, 2 channels`.
impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.transport, self.blocks)?;
        if self.load == Load::Bulk {
            f.write_str(", under load")?;
        }
        if self.marking == Marking::BestEffort {
            f.write_str(", unmarked")?;
        }
        Ok(())
    }
}

/// `128 frames, 2 channels`, or `20 ms of G.711`.
impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_telephone() {
            return write!(f, "{} of G.711", self.interval());
        }
        let plural = if self.channels == 1 { "" } else { "s" };
        write!(f, "{} frames, {} channel{plural}", self.frames, self.channels)
    }
}
