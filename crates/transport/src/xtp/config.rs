//! What an XTP conversation can be told. XTP is free of paradigms: every mechanism is chosen by itself.

use core::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use trunkline_core::{Bytes, Duration, Ratio};

use super::wire::{
    self, ADDRESS_LENGTH, ERROR_CONTROL_LENGTH, Format, HEADER_LENGTH, SPAN_LENGTH, TRAFFIC_LENGTH,
};
use crate::udp::{IPV4_HEADER_LENGTH, UDP_HEADER_LENGTH};

/// Options of an XTP conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XtpConfig {
    /// What carries the packets.
    pub encapsulation: Encapsulation,
    /// The largest packet that this end sends or takes, in bytes: header and segments, without what carries them.
    pub max_packet: usize,
    /// How a stream is opened.
    pub open: Open,
    /// What is done about losses.
    pub error_control: ErrorControl,
    /// Whether a receiver that finds a gap reports it at once (FASTNAK), or only when it is asked for its status.
    pub fast_nak: bool,
    /// What holds the sender back.
    pub flow_control: FlowControl,
    /// The most that this end sends in a time; `None` for no limit.
    pub send_rate: Option<RateLimit>,
    /// The most that this end wants to be sent in a time; `None` for no limit.
    pub receive_rate: Option<RateLimit>,
    /// Whether the checksum covers the data (otherwise the header alone: NOCHECK).
    pub checksum: bool,
    /// How often the sender asks for an acknowledgement.
    pub acknowledge: Acknowledge,
    /// The share of the packets with new data that this end delivers and does not acknowledge: the sender learns from later
    /// reports that they are missing, and repeats them. Loss as Weaver & McNabb made it (1992, section 8.1), of a reliable
    /// unicast stream.
    pub withhold: Ratio,
    /// What an acknowledgement that was asked for means.
    pub meaning: Meaning,
    /// Priority (SORT), smaller is more urgent; `None` for packets without one.
    pub sort: Option<u16>,
    /// Bytes of data that wait here: not yet sent or, in reliable conversations, not yet acknowledged. One message is
    /// always taken, whatever its size.
    pub send_buffer: usize,
    /// Bytes of data that wait here to be read.
    pub receive_buffer: usize,
    /// How long the first request for status waits for its answer (WTIMER), before any round trip was measured; and how
    /// long nothing may move before a sender asks for what it did not ask with its data.
    pub initial_wait: Duration,
    /// The least that a request for status waits for its answer beyond the mean round trip.
    pub min_wait: Duration,
    /// The most, however often it was repeated.
    pub max_wait: Duration,
    /// How long the peer may say nothing, though it was asked, before it counts as gone (CTIMEOUT); `None` for ever.
    pub patience: Option<Duration>,
    /// How long nothing may be heard of an idle peer before it is asked whether it lives (CTIMER); `None` for ever.
    pub keep_alive: Option<Duration>,
}

/// What carries XTP packets: it decides how large a packet is at the network layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encapsulation {
    /// IPv4, protocol 36: 20 bytes more.
    #[default]
    Ip,
    /// The payload of UDP over IPv4: 28 bytes more.
    Udp,
    /// Nothing: the link's frames carry them, and they are as large as packets of revision 3.6, which had headers of 40
    /// bytes, trailers of 4 and control packets of 92 bytes (Weaver & McNabb 1992, section 5.1: 117 with 25 of the link).
    /// What the packets say is 4.0. For measuring in virtual time.
    Revision36,
}

impl Encapsulation {
    /// Bytes beside the header and the segments in packets with data.
    pub const fn headers(self) -> usize {
        match self {
            Encapsulation::Ip => IPV4_HEADER_LENGTH,
            Encapsulation::Udp => IPV4_HEADER_LENGTH + UDP_HEADER_LENGTH,
            Encapsulation::Revision36 => 44 - HEADER_LENGTH,
        }
    }

    /// What a packet counts at the network layer.
    pub fn size(self, packet: &[u8]) -> Bytes {
        const CONTROL_PACKET: u64 = 92;
        let is_data =
            wire::format_of(packet).is_some_and(|format| matches!(format, Format::Data | Format::First));
        match self {
            Encapsulation::Revision36 if !is_data => Bytes(CONTROL_PACKET),
            _ => Bytes((packet.len() + self.headers()) as u64),
        }
    }
}

/// How a stream is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Open {
    /// FIRST goes out at once and empty, and messages are taken once it was answered.
    #[default]
    Handshake,
    /// Messages are taken at once; FIRST carries the first of them, and more may follow before the answer.
    Implicit,
}

/// What is done about losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorControl {
    /// The gaps that the receiver reports are sent again, and nothing else.
    #[default]
    Selective,
    /// Nothing: the stream goes on past losses (NOERR).
    None,
}

/// What holds the sender back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlowControl {
    /// The receiver allocates what its buffer holds.
    #[default]
    Window,
    /// The receiver allocates only what its user has asked for (RES). A read asks for as much as it gave.
    Reserved,
    /// Nothing: the allocation is ignored (NOFLOW).
    None,
}

/// How often the sender asks for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acknowledge {
    /// With every so many data packets; 1 for every packet.
    Every(u32),
    /// When its user asks, and when it can go on no longer without: window or buffer exhausted, or the wait over.
    OnRequest,
    /// Never, except to open and to close. Needs [`ErrorControl::None`] and [`FlowControl::None`].
    Never,
}

/// What an acknowledgement that was asked for means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meaning {
    /// The data arrived (SREQ).
    #[default]
    Arrived,
    /// The user has read the data (DREQ).
    Delivered,
}

/// Rate control: not more than `burst` bytes of data in any period of `burst / rate` seconds (RTIMER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Bytes per second.
    pub rate: u32,
    /// Bytes at once. Packets are not larger.
    pub burst: u32,
}

impl Default for XtpConfig {
    /// A reliable stream over IP that asks for an acknowledgement with every packet, in packets that Ethernet carries,
    /// with buffers as those of the other transports and a minute's patience.
    fn default() -> XtpConfig {
        XtpConfig {
            encapsulation: Encapsulation::Ip,
            max_packet: 1480,
            open: Open::Handshake,
            error_control: ErrorControl::Selective,
            fast_nak: true,
            flow_control: FlowControl::Window,
            send_rate: None,
            receive_rate: None,
            checksum: true,
            acknowledge: Acknowledge::Every(1),
            withhold: Ratio::default(),
            meaning: Meaning::Arrived,
            sort: None,
            send_buffer: 128 << 10,
            receive_buffer: 64 << 10,
            initial_wait: Duration::from_secs(1),
            min_wait: Duration::from_millis(20),
            max_wait: Duration::from_secs(60),
            patience: Some(Duration::from_secs(60)),
            keep_alive: None,
        }
    }
}

/// Why an XTP conversation cannot be set up as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XtpConfigError {
    /// A size is out of its range.
    #[error("XTP's {what} is {value} bytes; expected {} to {}", range.0, range.1)]
    Size {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: usize,
        /// The least and the most that is possible.
        range: (usize, usize),
    },
    /// A rate limit that lets nothing pass.
    #[error("XTP's {0} rate limit allows no packets; expected a rate and a burst above 0")]
    Rate(&'static str),
    /// Zero as acknowledgement frequency.
    #[error("XTP cannot ask for an acknowledgement with every 0th packet; expected 1 or more, or never")]
    Frequency,
    /// Never acknowledged, and yet reliable or flow-controlled.
    #[error(
        "without acknowledgements, XTP can neither repair losses nor control the flow; switch error and flow \
        control off, or enable acknowledgements"
    )]
    NeverAcknowledged,
    /// A group whose sender is held back otherwise than by its slowest receiver, or that is half acknowledged.
    #[error(
        "an XTP multicast is reliable with a window, or has neither error control nor acknowledgements; choose one of them"
    )]
    Group,
    /// A quorum of nobody, or of more than may join.
    #[error("XTP's quorum is {quorum} receivers; expected 1 to {most}, the number that may join")]
    Quorum {
        /// The quorum.
        quorum: usize,
        /// How many may join.
        most: usize,
    },
    /// A wait of zero.
    #[error("XTP's {0} is zero; expected more")]
    Wait(&'static str),
}

/// Room for a FIRST packet with some data, and for an error control packet with some spans.
const MAX_PACKET: RangeInclusive<usize> = 128..=65_535 - 28;
/// From one byte to a gigabyte.
const BUFFER: RangeInclusive<usize> = 1..=1 << 30;

impl XtpConfig {
    /// The most data in one packet, in bytes.
    pub const fn max_data(&self) -> usize {
        self.max_packet - HEADER_LENGTH
    }

    /// The most data in a FIRST packet, in bytes: the largest message of the datagram services.
    pub const fn max_first_data(&self) -> usize {
        self.max_data() - ADDRESS_LENGTH - TRAFFIC_LENGTH
    }

    /// How many spans an error control packet holds, and so how many a receiver keeps apart.
    pub(super) fn max_spans(&self) -> usize {
        ((self.max_data() - ERROR_CONTROL_LENGTH) / SPAN_LENGTH).min(512)
    }

    /// Whether losses are repaired.
    pub fn is_reliable(&self) -> bool {
        self.error_control == ErrorControl::Selective
    }

    /// Finds what cannot be.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self) -> Result<(), XtpConfigError> {
        self.check_sizes()?;
        match self.acknowledge {
            Acknowledge::Every(0) => Err(XtpConfigError::Frequency),
            Acknowledge::Never if self.is_reliable() || self.flow_control != FlowControl::None => {
                Err(XtpConfigError::NeverAcknowledged)
            }
            _ => Ok(()),
        }
    }

    /// What matters to every service.
    pub(super) fn check_sizes(&self) -> Result<(), XtpConfigError> {
        for (what, value, range) in [
            ("largest packet", self.max_packet, MAX_PACKET),
            ("send buffer", self.send_buffer, BUFFER),
            ("receive buffer", self.receive_buffer, BUFFER),
        ] {
            if !range.contains(&value) {
                return Err(XtpConfigError::Size { what, value, range: (*range.start(), *range.end()) });
            }
        }
        for (what, limit) in [("sending", self.send_rate), ("receiving", self.receive_rate)] {
            if limit.is_some_and(|limit| limit.rate == 0 || limit.burst == 0) {
                return Err(XtpConfigError::Rate(what));
            }
        }
        for (what, wait) in [
            ("initial wait", self.initial_wait),
            ("least wait", self.min_wait),
            ("longest wait", self.max_wait),
            ("keep-alive", self.keep_alive.unwrap_or(Duration::MAX)),
            ("patience", self.patience.unwrap_or(Duration::MAX)),
        ] {
            if wait.is_zero() {
                return Err(XtpConfigError::Wait(what));
            }
        }
        Ok(())
    }
}
