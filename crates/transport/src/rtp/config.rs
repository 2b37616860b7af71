//! What an RTP session can be told.

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Rate, Stream};

use crate::udp::UdpConfig;

/// What the payload of a session is: its number, and how its samples follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadFormat {
    /// The payload type, 0 to 63 or 96 to 127: those between look like RTCP on a shared port (RFC 5761 section 4).
    pub payload_type: u8,
    /// Samples of each channel in a second, by which timestamps count.
    pub clock: u32,
    /// Channels, whose samples take turns.
    pub channels: u8,
    /// Bytes that one sample of one channel takes.
    pub sample_bytes: u8,
}

impl PayloadFormat {
    /// PCMU: mu-law, 8 kHz, one channel (RFC 3551 section 4.5.14).
    pub const PCMU: PayloadFormat =
        PayloadFormat { payload_type: 0, clock: 8000, channels: 1, sample_bytes: 1 };

    /// Mu-law with any clock and channels: [`PCMU`](Self::PCMU) as it is usual, otherwise with a dynamic payload type.
    pub const fn pcmu(clock: u32, channels: u8, dynamic: u8) -> PayloadFormat {
        let payload_type = if clock == 8000 && channels == 1 { 0 } else { dynamic };
        PayloadFormat { payload_type, clock, channels, sample_bytes: 1 }
    }

    /// L16: linear, 16 bits in network byte order (RFC 3551 section 4.5.11). At 44.1 kHz with one or two channels it has
    /// the payload type 11 or 10, otherwise the dynamic one that both ends have agreed on.
    pub const fn l16(clock: u32, channels: u8, dynamic: u8) -> PayloadFormat {
        let payload_type = match (clock, channels) {
            (44_100, 2) => 10,
            (44_100, 1) => 11,
            _ => dynamic,
        };
        PayloadFormat { payload_type, clock, channels, sample_bytes: 2 }
    }

    /// Bytes of one sample of every channel.
    pub(super) fn frame(&self) -> usize {
        usize::from(self.channels) * usize::from(self.sample_bytes)
    }
}

/// When reports are sent (RFC 3550 section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reporting {
    /// What the session is expected to use, of which 5 % are for reports.
    pub session_bandwidth: Rate,
    /// The shortest time between two reports before it is randomised; half of it before the first.
    pub minimum: Duration,
}

impl Reporting {
    /// Reports at least 5 s apart: the RFC's fixed minimum.
    pub const fn with_bandwidth(session_bandwidth: Rate) -> Reporting {
        Reporting { session_bandwidth, minimum: Duration::from_secs(5) }
    }

    /// Reports at least 360 s divided by the bandwidth in kbit/s apart: the RFC's reduced minimum, which is shorter than
    /// the fixed one above 72 kbit/s.
    pub fn reduced(session_bandwidth: Rate) -> Reporting {
        let nanos = 360_000_000_000_000u64 / session_bandwidth.bits_per_second().max(1);
        Reporting { session_bandwidth, minimum: Duration::from_nanos(nanos) }
    }
}

/// Options of an RTP session.
#[derive(Clone, Debug)]
pub struct RtpConfig {
    /// What is carried.
    pub format: PayloadFormat,
    /// How many bytes at the beginning of every message are no samples, so that timestamps do not count them: the header
    /// of measured messages ([`framing`](crate::framing)).
    pub preamble: usize,
    /// When reports are sent; `None` for never. BYE is sent all the same.
    pub reporting: Option<Reporting>,
    /// The canonical name in source descriptions, 1 to 255 bytes (RFC 3550 section 6.5.1: `user@host`).
    pub cname: String,
    /// How many packets of a new source must come in sequence before one is handed on (RFC 3550 section A.1). With 1 all
    /// are, which is right between two addresses that know each other: packets of others do not get here.
    pub probation: u8,
    /// More than two ends may take part, as in a multicast group. Each member that reports lengthens the time between reports.
    pub is_group: bool,
    /// The wall clock at [`Time::ZERO`](trunkline_core::Time::ZERO), as NTP counts it: seconds since 1900 in the upper
    /// half, their fraction in the lower. 0 is allowed: then it counts since the beginning.
    pub wall_clock: u64,
    /// Where this end's identifier, its first sequence number and timestamp, and the times of its reports come from.
    pub stream: Stream,
    /// Buffers and ECN field of the datagrams, for an [`RtpEndpoint`](super::RtpEndpoint).
    pub udp: UdpConfig,
}

impl RtpConfig {
    /// A session of this format, with reports for a telephone call's 64 kbit/s, no preamble, and all others as they
    /// stand in the RFC.
    pub fn new(format: PayloadFormat, stream: Stream) -> RtpConfig {
        RtpConfig {
            format,
            preamble: 0,
            reporting: Some(Reporting::with_bandwidth(Rate::from_bits_per_second(64_000))),
            cname: "trunkline".to_owned(),
            probation: 1,
            is_group: false,
            wall_clock: 0,
            stream,
            udp: UdpConfig::default(),
        }
    }

    /// Finds what a session would refuse.
    ///
    /// # Errors
    /// What is out of its range.
    pub fn check(&self) -> Result<(), RtpConfigError> {
        let PayloadFormat { payload_type, clock, channels, sample_bytes } = self.format;
        if payload_type > 127 || (64..96).contains(&payload_type) {
            Err(RtpConfigError::PayloadType(payload_type))
        } else if clock == 0 || channels == 0 || sample_bytes == 0 {
            Err(RtpConfigError::Samples)
        } else if self.cname.is_empty() || self.cname.len() > 255 {
            Err(RtpConfigError::Cname(self.cname.len()))
        } else if self.probation == 0 {
            Err(RtpConfigError::Probation)
        } else if self.reporting.is_some_and(|r| r.session_bandwidth.bits_per_second() < 1000) {
            Err(RtpConfigError::Bandwidth)
        } else {
            Ok(())
        }
    }
}

/// Why an RTP session cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtpConfigError {
    /// A payload type that RTP does not have, or that cannot be told from RTCP.
    #[error("RTP's payload type is {0}; expected 0 to 63 or 96 to 127")]
    PayloadType(u8),
    /// No clock, channel or sample.
    #[error("RTP's payload has no clock, no channel or no bytes in a sample; expected at least 1 of each")]
    Samples,
    /// A name that a source description has no room for.
    #[error("RTP's canonical name has {0} bytes; expected 1 to 255")]
    Cname(usize),
    /// Nothing would be handed on.
    #[error("RTP's probation is 0 packets; expected at least 1")]
    Probation,
    /// Reports would be too far apart to be of any use.
    #[error("RTP's session bandwidth is below 1 kbit/s; expected more")]
    Bandwidth,
}
