//! Session descriptions (SDP, RFC 8866) of audio over RTP, as AES67 devices, ffmpeg and GStreamer write and read them.
//!
//! ```
//! use trunkline_audio::sdp::Session;
//!
//! let text = "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=Stage left\nt=0 0\n\
//!             c=IN IP4 239.69.0.1/32\nm=audio 5004 RTP/AVP 96\na=rtpmap:96 L24/48000/8\na=ptime:0.125\n";
//! let session: Session = text.parse()?;
//! let media = &session.media[0];
//! assert_eq!((media.channels, media.clock, media.packet_frames()), (8, 48_000, Some(6)));
//! assert_eq!(session.to_string().parse(), Ok(session));
//! # Ok::<(), trunkline_audio::sdp::SdpError>(())
//! ```

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::net::{IpAddr, SocketAddr};

use trunkline_core::Duration;

use crate::foreign::rtp;
use crate::format;
use crate::pipeline::{Codec, Packing, Protection, Stream};

/// A session: media that belong together, and who announces them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// What it is called, for people.
    pub name: String,
    /// Who announces it, and in which version.
    pub origin: Origin,
    /// Its audio in formats of [`Encoding`], at least one if it was read: what else a description offers is left out.
    pub media: Vec<Media>,
}

/// Who announces a session (RFC 8866 section 5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The user, `-` where there are none.
    pub username: String,
    /// Tells the session from the user's others.
    pub session: u64,
    /// Grows when the description changes.
    pub version: u64,
    /// The host: an address, or a name that nobody looks up.
    pub host: String,
}

/// One of the media: audio over RTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// Where its packets go: a group, or the receiver itself.
    pub address: IpAddr,
    /// How many routers a packet to an IPv4 group may pass.
    pub ttl: Option<u8>,
    /// The port that they go to.
    pub port: u16,
    /// Who may send to the group (RFC 4570); empty for anybody.
    pub sources: Vec<IpAddr>,
    /// By which RTP's header names the format.
    pub payload_type: u8,
    /// What a payload is.
    pub encoding: Encoding,
    /// Samples of each channel in a second, by which time stamps count.
    pub clock: u32,
    /// Channels; of Opus, those that are worth decoding (RFC 7587 section 6.1, `sprop-stereo`).
    pub channels: u16,
    /// How much time a packet carries.
    pub packet_time: Option<Duration>,
    /// The clock that time stamps refer to, as RFC 7273 section 4 writes it: `ptp=IEEE1588-2008:<grandmaster>:<domain>`,
    /// `localmac=<address>`, `local`.
    pub reference_clock: Option<String>,
    /// How time stamps follow from that clock.
    pub media_clock: Option<MediaClock>,
}

/// What a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Linear, 16 bits, big-endian (RFC 3551 section 4.5.11).
    L16,
    /// Linear, 24 bits, big-endian (RFC 3190 section 4).
    L24,
    /// Mu-law (RFC 3551 section 4.5.14).
    Pcmu,
    /// A-law (RFC 3551 section 4.5.14).
    Pcma,
    /// One Opus packet (RFC 7587).
    Opus,
}

/// How RTP time stamps follow from the reference clock (RFC 7273 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaClock {
    /// They count its samples from its epoch on, plus this.
    Direct(u32),
    /// They do not: the sender's sound card has a clock of its own.
    Sender,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: [Encoding; 5] =
        [Encoding::L16, Encoding::L24, Encoding::Pcmu, Encoding::Pcma, Encoding::Opus];

    /// Its registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::L16 => "L16",
            Encoding::L24 => "L24",
            Encoding::Pcmu => "PCMU",
            Encoding::Pcma => "PCMA",
            Encoding::Opus => "opus",
        }
    }

    /// The payload type that RFC 3551 section 6 has fixed for it, if it did.
    pub fn payload_type(self, clock: u32, channels: u16) -> Option<u8> {
        let fixed = FIXED.iter().find(|&&(_, format)| format == (self, clock, channels));
        fixed.map(|&(payload_type, _)| payload_type)
    }
}

impl Media {
    /// How a stream is announced whose packets go to this address; `None` if RTP has no format for it.
    ///
    /// The payload type is the fixed one where there is one, and otherwise 96. Time stamps are the sender's own.
    pub fn of(stream: &Stream, address: SocketAddr) -> Option<Media> {
        let (encoding, most_channels) = match stream.codec {
            Codec::Pcm(format::Encoding::I16) => (Encoding::L16, MOST_CHANNELS),
            Codec::Pcm(format::Encoding::I24) => (Encoding::L24, MOST_CHANNELS),
            Codec::Pcm(format::Encoding::F32) => return None,
            Codec::Pcmu => (Encoding::Pcmu, MOST_CHANNELS),
            Codec::Pcma => (Encoding::Pcma, MOST_CHANNELS),
            // Its clock always counts 48 kHz (RFC 7587 section 4.1).
            Codec::Opus { .. } if stream.sample_rate == 48_000 => (Encoding::Opus, 2),
            Codec::Opus { .. } => return None,
        };
        let Stream { channels, sample_rate: clock, .. } = *stream;
        Some(Media {
            address: address.ip(),
            ttl: None,
            port: address.port(),
            sources: Vec::new(),
            payload_type: encoding.payload_type(clock, channels).unwrap_or(FIRST_DYNAMIC),
            encoding,
            clock,
            channels,
            packet_time: Some(stream.duration_of(rtp::packet_frames(stream) as u64)),
            reference_clock: None,
            media_clock: Some(MediaClock::Sender),
        })
        .filter(|_| (1..=most_channels).contains(&channels))
    }

    /// The stream that is received, a packet in each block; where the length of packets is not said, in blocks of 20 ms,
    /// which is what RFC 3551 section 4.2 and RFC 7587 section 3.2 suggest.
    pub fn stream(&self) -> Stream {
        Stream {
            channels: self.channels,
            sample_rate: self.clock,
            block_frames: self.packet_frames().unwrap_or((self.clock / 50).max(1)).min(Stream::LONGEST_BLOCK),
            codec: match self.encoding {
                Encoding::L16 => Codec::Pcm(format::Encoding::I16),
                Encoding::L24 => Codec::Pcm(format::Encoding::I24),
                Encoding::Pcmu => Codec::Pcmu,
                Encoding::Pcma => Codec::Pcma,
                Encoding::Opus => Codec::Opus { bitrate: OPUS_BITRATE, fec: false },
            },
            protection: Protection::None,
            packing: Packing::default(),
        }
    }

    /// Samples of each channel in a packet, as far as the packet time tells: AES67 rounds 1/3 ms to 0.333 and means 16
    /// samples.
    pub fn packet_frames(&self) -> Option<u32> {
        let nanos = u128::from(self.packet_time?.as_nanos());
        let frames = (nanos * u128::from(self.clock) + 500_000_000) / 1_000_000_000;
        u32::try_from(frames).ok().filter(|&frames| frames > 0)
    }
}

/// Why a text is no description of audio that can be received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct SdpError {
    /// Where: lines and columns (in characters) count from 1.
    pub line: usize,
    /// See [`line`](SdpError::line).
    pub column: usize,
    /// What is wrong there and what was expected.
    pub problem: String,
}

/// Beyond these, it is a mistake and not audio.
const MOST_CLOCK: u32 = Stream::HIGHEST_RATE;
const MOST_CHANNELS: u16 = Stream::MOST_CHANNELS;

/// The first payload type that a description gives a meaning to (RFC 3551 section 6).
const FIRST_DYNAMIC: u8 = 96;

/// What a stream of Opus is sent with; nothing says so of one that is received.
const OPUS_BITRATE: u32 = 64_000;

/// An encoding, its clock and its channels.
type Format = (Encoding, u32, u16);

/// Payload types that need no `rtpmap` (RFC 3551 section 6).
const FIXED: [(u8, Format); 4] = [
    (0, (Encoding::Pcmu, 8000, 1)),
    (8, (Encoding::Pcma, 8000, 1)),
    (10, (Encoding::L16, 44_100, 2)),
    (11, (Encoding::L16, 44_100, 1)),
];

/// A text as the end of a line, without what would end the line; `None` if nothing is left.
fn rest_of_line(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Checks any text, and panics where reading breaks its word: it is a description that is written and read again as the
/// same, or the place of a mistake within it.
#[doc(hidden)]
pub fn fuzz_sdp(text: &str) {
    match text.parse::<Session>() {
        Ok(session) => {
            let written = session.to_string();
            let again: Session = written.parse().unwrap_or_else(|error| panic!("{error}:\n{written}"));
            assert_eq!(again.media, session.media, "{written}");
        }
        Err(SdpError { line, column, problem }) => {
            let found = text.split('\n').nth(line - 1).unwrap_or_default();
            assert!((1..=found.chars().count() + 1).contains(&column), "{column} of {found:?}");
            assert!(!problem.contains('\n'), "{problem}");
        }
    }
}
