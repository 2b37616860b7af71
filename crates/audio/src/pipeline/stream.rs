//! What both ends of a stream have to agree on.

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

use crate::codec::{data_bytes, opus_settings};
use crate::drift::ResamplerError;
use crate::fec::{Code, CodeError, MOST_PAYLOAD, Repeater};
use crate::format::Encoding;
use crate::opus::OpusError;
use crate::packet::Header;
use crate::playout::SettingsError;

/// Audio on a network. The default is that of Schiavoni, Queiroz and Wanderley (2013): 44.1 kHz, 16 bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Channels, 1 to [`Stream::MOST_CHANNELS`].
    pub channels: u16,
    /// Frames per second on the network.
    pub sample_rate: u32,
    /// Frames of a block.
    pub block_frames: u32,
    /// How samples are written.
    pub codec: Codec,
    /// What is sent besides, against loss.
    pub protection: Protection,
    /// How blocks become packets.
    pub packing: Packing,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            channels: 2,
            sample_rate: 44_100,
            block_frames: 128,
            codec: Codec::default(),
            protection: Protection::default(),
            packing: Packing::default(),
        }
    }
}

/// How samples are written on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Codec {
    /// Uncompressed, big-endian.
    Pcm(Encoding),
    /// G.711 mu-law: a byte per sample.
    Pcmu,
    /// G.711 A-law: a byte per sample.
    Pcma,
    /// Opus (RFC 6716), in frames as long as a block: 2.5, 5, 10 or 20 ms.
    Opus {
        /// Bits per second of each channel.
        bitrate: u32,
        /// In-band forward error correction: a coarse copy of each frame of speech within the next one.
        fec: bool,
    },
}

impl Default for Codec {
    fn default() -> Codec {
        Codec::Pcm(Encoding::I16)
    }
}

/// What is sent besides the audio, against loss ([`crate::fec`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// Each packet repeats the so many before it.
    Repeat(usize),
    /// After so many packets comes one that replaces any one of them.
    Xor {
        /// Packets of audio in a group.
        data: usize,
    },
    /// After so many packets come some that replace as many of them.
    ReedSolomon {
        /// Packets of audio in a group.
        data: usize,
        /// Packets of parity in a group.
        parity: usize,
    },
}

/// How blocks become packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packing {
    /// A packet for each channel, as in Schiavoni, Queiroz and Wanderley (2013), rather than one for as many as it holds.
    pub per_channel: bool,
    /// Bytes that a packet may have for the transport, protection included.
    pub most_packet: usize,
    /// Whether packets are written one behind the other and cut into pieces of so many bytes. Where a single channel's
    /// block exceeds [`most_packet`](Packing::most_packet), pieces of that size are made unasked.
    pub fragment: Option<usize>,
}

impl Default for Packing {
    /// What fits an Ethernet frame with room for the headers of any transport, in one piece.
    fn default() -> Packing {
        Packing { per_channel: false, most_packet: 1400, fragment: None }
    }
}

/// What a device captures or plays, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFormat {
    /// Channels.
    pub channels: u16,
    /// Frames per second.
    pub sample_rate: u32,
    /// Frames that it hands over at a time.
    pub block_frames: u32,
}

/// Why a stream cannot be made, or not for a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// No channels or too many.
    #[error("a stream of {0} channels; expected 1 to {most}", most = Stream::MOST_CHANNELS)]
    Channels(u16),
    /// Outside what devices use.
    #[error(
        "a stream at {0} Hz; expected {lowest} to {highest} Hz",
        lowest = Stream::LOWEST_RATE, highest = Stream::HIGHEST_RATE
    )]
    SampleRate(u32),
    /// No frames or too many.
    #[error("blocks of {0} frames; expected 1 to {most}", most = Stream::LONGEST_BLOCK)]
    BlockFrames(u32),
    /// A packet that holds nothing, or that no transport takes.
    #[error(
        "packets of at most {0} bytes; expected {least} to {most}",
        least = Packing::LEAST_PACKET, most = MOST_PAYLOAD
    )]
    MostPacket(usize),
    /// The device has more channels than the stream.
    #[error(
        "the device has {device} channels and the stream {stream}; choose a stream of {device} channels or a device of {stream}"
    )]
    DeviceChannels {
        /// Channels of the device.
        device: u16,
        /// Channels of the stream.
        stream: u16,
    },
    /// Opus has some sample rates and lengths of blocks only.
    #[error(transparent)]
    Opus(#[from] OpusError),
    /// Protection leaves hardly anything of a packet.
    #[error("packets of at most {most} bytes have room for {room} bytes beside the repetitions; expected {least}: choose longer packets or fewer repetitions", least = Packing::LEAST_ROOM)]
    NoRoom {
        /// [`Packing::most_packet`].
        most: usize,
        /// What is left.
        room: usize,
    },
    /// Protection outside its bounds.
    #[error(transparent)]
    Protection(#[from] CodeError),
    /// A device's rate or block is out of bounds.
    #[error(transparent)]
    Resampler(#[from] ResamplerError),
    /// The playout buffer's settings are out of bounds.
    #[error(transparent)]
    Playout(#[from] SettingsError),
}

impl Packing {
    /// The smallest [`most_packet`](Packing::most_packet) in bytes, and the smallest piece.
    pub const LEAST_PACKET: usize = 64;
    /// The fewest bytes that protection has to leave.
    const LEAST_ROOM: usize = 32;
}

impl Protection {
    fn check(self) -> Result<(), CodeError> {
        match self {
            Protection::None => Ok(()),
            Protection::Repeat(repeats) if repeats <= Repeater::MOST_REPEATS => Ok(()),
            Protection::Repeat(repeats) => Err(CodeError::Repeats(repeats)),
            Protection::Xor { data } => Code::Xor { data }.check(),
            Protection::ReedSolomon { data, parity } => Code::ReedSolomon { data, parity }.check(),
        }
    }

    /// Bytes that are left for a packet of the stream, in one of `most_packet` bytes.
    pub(crate) fn room(self, most_packet: usize) -> usize {
        match self {
            Protection::None => most_packet,
            Protection::Repeat(repeats) => {
                let payloads = repeats.min(Repeater::MOST_REPEATS) + 1;
                most_packet.saturating_sub(Repeater::FIXED + 2 * payloads) / payloads
            }
            Protection::Xor { .. } | Protection::ReedSolomon { .. } => {
                // Parity is even.
                most_packet.saturating_sub(Code::OVERHEAD) & !1
            }
        }
    }
}

impl Stream {
    /// The most channels.
    pub const MOST_CHANNELS: u16 = 256;
    /// The lowest sample rate, in Hz.
    pub const LOWEST_RATE: u32 = 1_000;
    /// The highest sample rate, in Hz.
    pub const HIGHEST_RATE: u32 = 768_000;
    /// The most frames of a block.
    pub const LONGEST_BLOCK: u32 = 8_192;

    /// Whether both ends could be made; asked for a stream that came from a peer.
    ///
    /// # Errors
    /// The first setting that is out of bounds, as a sentence for users.
    pub fn check(&self) -> Result<(), StreamError> {
        if !(1..=Stream::MOST_CHANNELS).contains(&self.channels) {
            return Err(StreamError::Channels(self.channels));
        }
        if !(Stream::LOWEST_RATE..=Stream::HIGHEST_RATE).contains(&self.sample_rate) {
            return Err(StreamError::SampleRate(self.sample_rate));
        }
        if !(1..=Stream::LONGEST_BLOCK).contains(&self.block_frames) {
            return Err(StreamError::BlockFrames(self.block_frames));
        }
        if let Codec::Opus { bitrate, fec } = self.codec {
            opus_settings(self, bitrate, fec, 1).check()?;
        }
        let most = self.packing.most_packet;
        let packet = Packing::LEAST_PACKET..=MOST_PAYLOAD;
        match [Some(most), self.packing.fragment].into_iter().flatten().find(|size| !packet.contains(size)) {
            Some(size) => return Err(StreamError::MostPacket(size)),
            None => self.protection.check()?,
        }
        let room = self.protection.room(most);
        if room < Packing::LEAST_ROOM { Err(StreamError::NoRoom { most, room }) } else { Ok(()) }
    }

    /// How blocks become packets of our own format.
    pub(crate) fn layout(&self) -> Layout {
        let channels = usize::from(self.channels);
        let room = self.protection.room(self.packing.most_packet);
        let most_channels = |room: usize| {
            let wanted = if self.packing.per_channel { 1 } else { channels };
            let fits = |&count: &usize| Header::BYTES + data_bytes(self, count) <= room;
            let most = (1..=wanted).rev().find(fits)?;
            // Opus codes channels in pairs: none is torn apart.
            let is_torn = matches!(self.codec, Codec::Opus { .. }) && most < channels && most % 2 == 1;
            Some(if is_torn && most > 1 { most - 1 } else { most })
        };
        match (self.packing.fragment, most_channels(room)) {
            (None, Some(part_channels)) => Layout { part_channels, pieces: None, room },
            (fragment, _) => {
                let pieces = fragment.unwrap_or(room).min(room);
                let part_channels = most_channels(Header::MOST_DATA).unwrap_or(1);
                Layout { part_channels, pieces: Some(pieces), room: pieces }
            }
        }
    }

    /// Parts of a block: each has packets of its own, is lost for itself, and counts for itself.
    pub fn parts(&self) -> usize {
        usize::from(self.channels).div_ceil(self.layout().part_channels)
    }

    /// By how much the codec delays the audio, whatever else does.
    pub fn codec_delay(&self) -> Duration {
        match self.codec {
            Codec::Opus { bitrate, fec } => opus_settings(self, bitrate, fec, 1).delay(),
            Codec::Pcm(_) | Codec::Pcmu | Codec::Pcma => Duration::ZERO,
        }
    }

    /// How long a block lasts.
    pub fn block_duration(&self) -> Duration {
        self.duration_of(u64::from(self.block_frames))
    }

    /// How long so many frames last.
    pub(crate) fn duration_of(&self, frames: u64) -> Duration {
        duration_of(frames, self.sample_rate)
    }
}

/// How blocks become packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Channels of a part; the last part of a block may have fewer.
    pub(crate) part_channels: usize,
    /// Bytes of a piece, if packets are cut.
    pub(crate) pieces: Option<usize>,
    /// The most bytes that are protected at once: of a packet, or of a piece.
    pub(crate) room: usize,
}

impl Layout {
    /// The channels of each part.
    pub(crate) fn parts(self, stream: &Stream) -> impl Iterator<Item = usize> {
        let channels = usize::from(stream.channels);
        (0..channels).step_by(self.part_channels).map(move |first| self.part_channels.min(channels - first))
    }
}

/// How long so many frames last at a rate.
pub(crate) fn duration_of(frames: u64, sample_rate: u32) -> Duration {
    let nanos = u128::from(frames) * 1_000_000_000 / u128::from(sample_rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
