//! What a QUIC conversation can be told.

use core::ops::RangeInclusive;
use core::str::FromStr;
use std::sync::Arc;

use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{TransportConfig, VarInt};
use serde::{Deserialize, Serialize};
use trunkline_core::Duration;
use trunkline_transport::framing::{HEADER_LENGTH, MAX_PAYLOAD};
use trunkline_transport::udp::{Encapsulation, IPV4_HEADER_LENGTH, UDP_HEADER_LENGTH};

use super::relief::Relief;

/// Bytes of IPv4 and UDP headers in front of a QUIC packet.
pub const HEADERS: usize = IPV4_HEADER_LENGTH + UDP_HEADER_LENGTH;

/// The most that QUIC itself may add to a message in a datagram: the short header with a connection ID of 8 bytes and a
/// packet number of 4, type and length of the frame, and the tag of the encryption (RFC 9000, RFC 9001, RFC 9221).
pub const DATAGRAM_OVERHEAD: usize = 1 + 8 + 4 + 9 + 16;

/// The largest message in bytes in the mode [`Mode::Streams`].
pub const MAX_MESSAGE: usize = HEADER_LENGTH + MAX_PAYLOAD;

/// What the largest packet can be, IPv4 and UDP headers included. QUIC needs 1200 bytes without those (RFC 9000 section
/// 14); the engine writes lengths of packets with long headers in two bytes, of which 14 bits count.
pub const PACKET: RangeInclusive<usize> = 1200 + HEADERS..=16_384;

/// Options of a QUIC conversation. Both ends need the same mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicConfig {
    /// What carries messages.
    pub mode: Mode,
    /// How the sender reacts to loss and to marks.
    pub congestion_control: CongestionControl,
    /// How many bytes of streams may be under way to this end and unread here; of datagrams, unread here: what comes
    /// beyond it is dropped and counted as `receive-buffer-full`.
    pub window: usize,
    /// How many bytes of taken messages wait here: of streams until the peer has acknowledged them, of datagrams until
    /// congestion control lets them out. One message is always taken.
    pub send_buffer: usize,
    /// Who makes the UDP headers.
    pub encapsulation: Encapsulation,
    /// The largest packet in bytes, IPv4 and UDP headers included: 1228 to 16,384. It is not discovered and never
    /// reduced.
    pub mtu: usize,
    /// After how long without any answer, to a connection request or to data, the peer counts as gone. `None` for
    /// never. QUIC's own idle timeout is not used: silence with nothing to say is no fault.
    pub timeout: Option<Duration>,
}

impl Default for QuicConfig {
    /// One stream, CUBIC, windows as TCP has them here, Ethernet's packets, and the patience of RFC 9308 section 3.2.
    fn default() -> QuicConfig {
        QuicConfig {
            mode: Mode::Stream,
            congestion_control: CongestionControl::Cubic,
            window: 64 << 10,
            send_buffer: 128 << 10,
            encapsulation: Encapsulation::Udp,
            mtu: 1500,
            timeout: Some(Duration::from_secs(30)),
        }
    }
}

/// What carries messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Each is a datagram (RFC 9221): neither repaired nor ordered, and never larger than a packet.
    Datagrams,
    /// All share one stream, a byte stream as TCP's.
    #[default]
    Stream,
    /// Each has a stream of its own: repaired, and a lost packet delays only the messages that it carried.
    Streams,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Datagrams, Mode::Stream, Mode::Streams];

    /// The word in an experiment file.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Datagrams => "datagrams",
            Mode::Stream => "stream",
            Mode::Streams => "streams",
        }
    }
}

impl FromStr for Mode {
    type Err = QuicConfigError;
    fn from_str(name: &str) -> Result<Mode, QuicConfigError> {
        let known = Mode::ALL.into_iter().find(|known| known.name() == name);
        known.ok_or_else(|| QuicConfigError::Mode(name.to_owned()))
    }
}

/// Congestion control algorithms that behave alike in every run. (The engine's BBR draws random numbers of its own.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CongestionControl {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// NewReno as RFC 9002 section 7 has it.
    NewReno,
}

impl CongestionControl {
    /// All of them.
    pub const ALL: [CongestionControl; 2] = [CongestionControl::Cubic, CongestionControl::NewReno];

    /// The word in an experiment file.
    pub const fn name(self) -> &'static str {
        match self {
            CongestionControl::Cubic => "cubic",
            CongestionControl::NewReno => "new-reno",
        }
    }

    fn factory(self, window: u64) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            CongestionControl::Cubic => {
                let mut config = CubicConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
            CongestionControl::NewReno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
        }
    }
}

impl FromStr for CongestionControl {
    type Err = QuicConfigError;
    fn from_str(name: &str) -> Result<CongestionControl, QuicConfigError> {
        let known = CongestionControl::ALL.into_iter().find(|known| known.name() == name);
        known.ok_or_else(|| QuicConfigError::CongestionControl(name.to_owned()))
    }
}

/// Why a QUIC conversation cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuicConfigError {
    /// A size is out of its range.
    #[error("QUIC's {what} is {value} bytes; expected {} to {}", range.start(), range.end())]
    Size {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: usize,
        /// What is possible.
        range: RangeInclusive<usize>,
    },
    /// A port of 0.
    #[error("QUIC cannot use port 0; expected 1 to 65535")]
    Port,
    /// An unknown mode.
    #[error("QUIC's mode `{0}` is not known; expected `datagrams`, `stream` or `streams`")]
    Mode(String),
    /// An unknown algorithm.
    #[error("congestion control `{0}` is not known to QUIC; expected `cubic` or `new-reno`")]
    CongestionControl(String),
    /// The cryptography refused a certificate or a setting.
    #[error("QUIC's encryption could not be set up: {0}")]
    Cryptography(String),
}

const BUFFER: RangeInclusive<usize> = 1..=1 << 30;
/// Message streams that may be open at a time in one direction.
const MESSAGE_STREAMS: u32 = 256;
/// Datagrams are taken out of the engine after every packet: it needs room for those of one.
const ENGINE_DATAGRAMS: usize = 1 << 20;

impl QuicConfig {
    pub(super) fn check(&self, ports: &[u16]) -> Result<(), QuicConfigError> {
        let sizes = [
            ("receive window", self.window, BUFFER),
            ("send buffer", self.send_buffer, BUFFER),
            ("largest packet", self.mtu, PACKET),
        ];
        for (what, value, range) in sizes {
            if !range.contains(&value) {
                return Err(QuicConfigError::Size { what, value, range });
            }
        }
        if ports.contains(&0) { Err(QuicConfigError::Port) } else { Ok(()) }
    }

    /// The largest QUIC packet.
    pub(super) fn payload(&self) -> u16 {
        (self.mtu - HEADERS) as u16
    }

    /// RFC 9002 section 7.2. The engine's default is that for packets of 1200 bytes, however large they are.
    pub(super) fn initial_window(&self) -> u64 {
        let largest = u64::from(self.payload());
        (10 * largest).min((2 * largest).max(14_720))
    }

    /// Room for datagrams in the engine, so that the largest fits with the engine's own bookkeeping of some 32 bytes.
    pub(super) fn datagram_buffer(&self) -> usize {
        self.send_buffer.max(self.mtu + 64)
    }

    /// All this in the engine's words. What is not named here is the engine's default: thresholds of loss, the first round trip
    /// (333 ms), delays of acknowledgements, and persistent congestion as RFC 9002 has them. Its probe timeout is left as it is up
    /// to a minute ([`Patience`](super::patience)), and so is its congestion window, except in a handshake that has hung for that
    /// long ([`Relief`]).
    pub(super) fn transport(&self, relief: &Relief) -> Arc<TransportConfig> {
        let streams = if self.mode == Mode::Streams { 1 + MESSAGE_STREAMS } else { 1 };
        let window = VarInt::from_u32(self.window as u32);
        let payload = self.payload();
        let mut transport = TransportConfig::default();
        transport
            // No more than the mode uses, where the default is 100 each way.
            .max_concurrent_bidi_streams(0u32.into())
            .max_concurrent_uni_streams(streams.into())
            // By default 30 s, after which silence ends a connection in which nothing is to be said. `Patience` waits as long for
            // an answer.
            .max_idle_timeout(None)
            // By default 1.25 MB a stream, no limit to all of them, and 10 MB to send: enough for 100 Mbit/s over 100 ms. Here the
            // experiment's, as TCP has them, so that what is compared is not the size of buffers.
            .stream_receive_window(window)
            .receive_window(window)
            .send_window(self.send_buffer as u64)
            // Messages leave in their order, one after the other, rather than all a little at a time.
            .send_fairness(false)
            // By default 1200 bytes and what discovery finds; here the experiment says what the path carries.
            .initial_mtu(payload)
            // Equal to the MTU, so that much loss is not taken for a path that has become narrower.
            .min_mtu(payload)
            .mtu_discovery_config(None)
            .datagram_receive_buffer_size((self.mode == Mode::Datagrams).then_some(ENGINE_DATAGRAMS))
            .datagram_send_buffer_size(self.datagram_buffer())
            .congestion_controller_factory(
                relief.over(self.congestion_control.factory(self.initial_window())),
            )
            // Each packet crosses the links by itself.
            .enable_segmentation_offload(false);
        Arc::new(transport)
    }
}
