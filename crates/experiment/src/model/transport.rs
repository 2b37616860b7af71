//! Transports with their options.

use serde::{Deserialize, Serialize};
use trunkline_adapters::quic::Mode;
use trunkline_core::schema::Limit;
use trunkline_core::{Bytes, Duration, Ecn, Rate, Ratio};
use trunkline_transport::sctp::Reliability;
use trunkline_transport::tcp::TcpConfig;
use trunkline_transport::urp::TRAILER_LENGTH as URP_TRAILER;
use trunkline_transport::xtp::ErrorControl;
use trunkline_transport::{Features, features};

/// Bytes of the largest IP packet.
const LARGEST_PACKET: u64 = 65_535;

/// A flow's transport with its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Transport {
    /// UDP.
    Udp(UdpOptions),
    /// UDP-Lite.
    UdpLite(UdpLiteOptions),
    /// TCP: the kernel's in `live` and `wire`; in `sim` ours.
    Tcp(TcpOptions),
    /// MPTCP: the kernel's, in `live` only.
    Mptcp(TcpOptions),
    /// URP; in `live` over UDP.
    Urp(UrpOptions),
    /// DCCP.
    Dccp(DccpOptions),
    /// An XTP stream.
    Xtp(XtpOptions),
    /// QUIC.
    Quic(QuicOptions),
    /// SCTP.
    Sctp(SctpOptions),
    /// RTP with RTCP on the same port.
    Rtp(RtpOptions),
}

impl Transport {
    /// Whether it delivers messages as they were sent, where a byte stream joins and splits them.
    pub fn keeps_messages(&self) -> bool {
        match self {
            Transport::Udp(_) | Transport::UdpLite(_) | Transport::Dccp(_) | Transport::Rtp(_) => true,
            Transport::Sctp(_) => true,
            Transport::Tcp(_) | Transport::Mptcp(_) | Transport::Urp(_) => false,
            Transport::Quic(options) => options.mode != Mode::Stream,
            Transport::Xtp(options) => match options.service {
                XtpService::Datagram | XtpService::AcknowledgedDatagram | XtpService::Transaction => true,
                XtpService::Stream | XtpService::Multicast | XtpService::ReliableMulticast => false,
            },
        }
    }

    /// The most that one end of a conversation holds in buffers of our engines: data that waits to be sent or acknowledged,
    /// and data that waits to be read. Buffers of the kernel's sockets do not count.
    pub fn buffers(&self) -> Bytes {
        let sum = |sent: Bytes, received: Bytes| Bytes(sent.count().saturating_add(received.count()));
        match self {
            Transport::Udp(_)
            | Transport::UdpLite(_)
            | Transport::Rtp(_)
            | Transport::Tcp(_)
            | Transport::Mptcp(_) => Bytes::ZERO,
            Transport::Urp(options) => {
                let blocks = Bytes(options.block.count().saturating_mul(options.window.into()));
                sum(blocks, blocks)
            }
            Transport::Dccp(options) => match options.send_queue {
                Limit::Bytes(bytes) => bytes,
                Limit::Packets(packets) => Bytes(packets.saturating_mul(LARGEST_PACKET)),
            },
            Transport::Xtp(options) => sum(options.window, options.window),
            Transport::Quic(options) => sum(options.send_buffer.unwrap_or(options.window), options.window),
            Transport::Sctp(options) => sum(options.send_buffer.unwrap_or(options.window), options.window),
        }
    }

    /// How long a message may wait for room at the sender before it is given up and counted as refused; `None` for as long
    /// as it takes.
    pub fn send_timeout(&self) -> Option<Duration> {
        match self {
            Transport::Tcp(options) | Transport::Mptcp(options) => options.send_timeout,
            Transport::Sctp(options) => options.send_timeout,
            Transport::Quic(options) => options.send_timeout,
            Transport::Udp(_)
            | Transport::UdpLite(_)
            | Transport::Urp(_)
            | Transport::Dccp(_)
            | Transport::Xtp(_)
            | Transport::Rtp(_) => None,
        }
    }
}

impl Transport {
    /// The option that limits what a conversation may have under way, with the limit: the smaller of its peer's window and
    /// its own send buffer. `None` where nothing, or only the engine, sets one.
    pub fn under_way(&self) -> Option<(&'static str, Bytes)> {
        let smaller = |window: Bytes, buffer: Option<Bytes>| match buffer {
            Some(buffer) if buffer < window => ("send-buffer", buffer),
            _ => ("window", window),
        };
        match self {
            Transport::Tcp(options) | Transport::Mptcp(options) => Some(("window", options.window?)),
            Transport::Sctp(options) => Some(smaller(options.window, options.send_buffer)),
            Transport::Quic(options) if options.mode != Mode::Datagrams => {
                Some(smaller(options.window, options.send_buffer))
            }
            Transport::Xtp(options) if options.service == XtpService::Stream => {
                Some(("window", options.window))
            }
            Transport::Urp(options) => {
                Some(("window", Bytes(options.block.count() * u64::from(options.window))))
            }
            Transport::Udp(_)
            | Transport::UdpLite(_)
            | Transport::Dccp(_)
            | Transport::Quic(_)
            | Transport::Xtp(_)
            | Transport::Rtp(_) => None,
        }
    }

    /// The largest packet of a transport whose `window` counts blocks: a block with its trailer.
    pub fn largest_block(&self) -> Option<Bytes> {
        match self {
            Transport::Urp(options) => Some(options.block + Bytes(URP_TRAILER as u64)),
            _ => None,
        }
    }

    /// Whether everything that it takes is delivered, however late, as long as its conversation lasts.
    pub fn is_reliable(&self) -> bool {
        match self {
            Transport::Tcp(_) | Transport::Mptcp(_) | Transport::Urp(_) => true,
            Transport::Sctp(options) => options.reliability == Reliability::Full,
            Transport::Quic(options) => options.mode != Mode::Datagrams,
            Transport::Xtp(options) => match options.service {
                XtpService::Stream => options.error_control != ErrorControl::None,
                service => service.features().reliable,
            },
            Transport::Udp(_) | Transport::UdpLite(_) | Transport::Dccp(_) | Transport::Rtp(_) => false,
        }
    }
}

/// Options of UDP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpOptions {
    /// Socket buffers (`SO_SNDBUF`, `SO_RCVBUF`); the backend's default if absent.
    pub buffer: Option<Bytes>,
    /// The ECN field of what both ends send; other than not capable in `sim` only.
    pub ecn: Ecn,
}

/// Options of UDP-Lite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpLiteOptions {
    /// Socket buffers (`SO_SNDBUF`, `SO_RCVBUF`); the backend's default if absent.
    pub buffer: Option<Bytes>,
    /// How much of a message the checksum covers; all of it if absent.
    pub checksum_coverage: Option<Bytes>,
    /// Who makes the headers.
    pub encapsulation: trunkline_transport::udp::Encapsulation,
}

/// Options of TCP and MPTCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpOptions {
    /// Receive window: in `sim` exactly, in `live` as `SO_RCVBUF` and `SO_SNDBUF` (Linux doubles what it is told and
    /// uses part of it for its own books).
    pub window: Option<Bytes>,
    /// Largest segment payload.
    pub mss: Option<Bytes>,
    /// `TCP_NODELAY`: send at once instead of collecting small messages (RFC 896 off).
    pub nodelay: bool,
    /// Congestion control by name: those of `trunkline_transport::tcp::ALGORITHMS` in `sim`, whatever the kernel offers in `live`.
    pub congestion_control: Option<String>,
    /// How long a send may block before the message is given up and counted as refused (Schiavoni: 40 ms).
    pub send_timeout: Option<Duration>,
    /// Whose TCP it is in `sim`.
    pub engine: TcpEngine,
    /// Keys of the engine that the file gives, `profile` among them if it is not Linux's.
    pub given: Vec<String>,
}

impl Default for TcpOptions {
    /// Those of a file that gives none.
    fn default() -> TcpOptions {
        TcpOptions {
            window: None,
            mss: None,
            nodelay: true,
            congestion_control: None,
            send_timeout: None,
            engine: TcpEngine::default(),
            given: Vec::new(),
        }
    }
}

impl TcpOptions {
    /// The engine's options; `None` of the classic one. The segment size and, in `sim`, the name of the congestion control
    /// are still to be taken from here.
    pub fn config(&self) -> Option<&TcpConfig> {
        match &self.engine {
            TcpEngine::Modern(config) => Some(config),
            TcpEngine::Classic(_) => None,
        }
    }
}

/// Whose TCP runs in the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TcpEngine {
    /// Ours, by default as Linux has it.
    Modern(Box<TcpConfig>),
    /// Ours of the 1990s, in `sim` only.
    Classic(ClassicTcpOptions),
}

impl Default for TcpEngine {
    fn default() -> TcpEngine {
        TcpEngine::Modern(Box::default())
    }
}

/// What only a classic TCP can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassicTcpOptions {
    /// How long an acknowledgement waits for company.
    pub delayed_ack: Duration,
    /// So much is acknowledged at once, in full-size segments.
    pub ack_every: u32,
    /// Whether a segment without PSH is acknowledged at once.
    pub ack_unpushed: bool,
    /// Whether the sender is told at once that reading has opened the window.
    pub window_updates: bool,
    /// Segments smaller than this wait while data is unacknowledged.
    pub nagle: Bytes,
    /// With how many segments slow start begins.
    pub initial_window: u32,
    /// The retransmission timer.
    pub timer: trunkline_transport::classic_tcp::TimerConfig,
    /// Whether three duplicate acknowledgements are a loss.
    pub fast_retransmit: bool,
}

/// Options of URP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UrpOptions {
    /// The largest block.
    pub block: Bytes,
    /// How many blocks may be under way.
    pub window: u8,
    /// The most data in a packet.
    pub packet: Bytes,
    /// With at most so many blocks under way a full window is filled again; `None`: it slides.
    pub low_water: Option<u8>,
    /// How long nothing moves before the sender asks the receiver for its state.
    pub timeout: Duration,
}

/// Options of DCCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DccpOptions {
    /// Congestion control, both ways.
    pub ccid: trunkline_transport::dccp::Ccid,
    /// How much may wait at the sender until congestion control lets it out.
    pub send_queue: Limit,
    /// What happens to a message for which the send queue has no room.
    pub when_full: trunkline_transport::dccp::WhenFull,
    /// How long a message may wait there; for as long as it takes if absent.
    pub lifetime: Option<Duration>,
    /// What carries the packets: IP or UDP.
    pub encapsulation: trunkline_transport::dccp::Encapsulation,
    /// How much of a message the checksum covers; all of it if absent.
    pub checksum_coverage: Option<Bytes>,
    /// Whether a CRC-32c of every message goes with it.
    pub data_checksum: bool,
    /// Whether packets have 24-bit numbers where that is possible.
    pub short_sequence_numbers: bool,
    /// Whether queues may mark packets instead of dropping them.
    pub ecn: bool,
}

/// Options of RTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RtpOptions {
    /// What the payload is, by which timestamps count.
    pub format: trunkline_transport::rtp::PayloadFormat,
    /// When reports are sent; never if absent.
    pub reporting: Option<trunkline_transport::rtp::Reporting>,
    /// Who makes the UDP headers.
    pub encapsulation: trunkline_transport::rtp::Encapsulation,
}

/// Options of XTP. Those that the service does not have are not looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct XtpOptions {
    /// Which service.
    pub service: XtpService,
    /// What is done about losses.
    pub error_control: ErrorControl,
    /// Whether a receiver reports a gap as soon as it finds one.
    pub fast_nak: bool,
    /// What holds the sender back.
    pub flow_control: trunkline_transport::xtp::FlowControl,
    /// Receive buffer, and how much waits at the sender.
    pub window: Bytes,
    /// How often the sender asks for an acknowledgement.
    pub acknowledge: trunkline_transport::xtp::Acknowledge,
    /// What an acknowledgement means.
    pub meaning: trunkline_transport::xtp::Meaning,
    /// The most that is sent in a time.
    pub rate: Option<Rate>,
    /// The most that is sent at once under that rate; ten packets' worth if absent.
    pub burst: Option<Bytes>,
    /// Whether the checksum covers the data.
    pub checksum: bool,
    /// How the stream is opened.
    pub open: trunkline_transport::xtp::Open,
    /// What carries the packets: IP or UDP.
    pub encapsulation: trunkline_transport::xtp::Encapsulation,
    /// The share of packets whose arrival a receiver keeps from the sender.
    pub withhold: Ratio,
    /// The most data in a packet; what the path carries if absent.
    pub max_data: Option<Bytes>,
    /// Whether packets carry the flow's priority.
    pub sort: bool,
    /// How long the first request for status waits for its answer.
    pub wait: Duration,
    /// How long a peer may say nothing, though it was asked, before it counts as gone.
    pub patience: Duration,
    /// How many receivers must have joined a reliable multicast before it begins; if absent those that join at the
    /// beginning of the run.
    pub quorum: Option<u32>,
    /// How long a slot is by which receivers of a reliable multicast hold control packets back.
    pub slot: Duration,
    /// Among how many slots they draw.
    pub slots: u32,
    /// How long the repair of a reported gap may take before it is reported again.
    pub repair_wait: Duration,
}

/// The services of XTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum XtpService {
    /// A stream to one sink.
    Stream,
    /// A message by itself, unacknowledged.
    Datagram,
    /// A message by itself, repeated until it is acknowledged.
    AcknowledgedDatagram,
    /// A message and its answer.
    Transaction,
    /// A stream to many sinks, unacknowledged.
    Multicast,
    /// A stream to many sinks, repaired.
    ReliableMulticast,
}

impl XtpService {
    /// Its word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            XtpService::Stream => "stream",
            XtpService::Datagram => "datagram",
            XtpService::AcknowledgedDatagram => "acknowledged-datagram",
            XtpService::Transaction => "transaction",
            XtpService::Multicast => "multicast",
            XtpService::ReliableMulticast => "reliable-multicast",
        }
    }

    /// What it promises as it is by default.
    pub const fn features(self) -> &'static Features {
        match self {
            XtpService::Stream => &features::XTP,
            XtpService::Datagram => &features::XTP_DATAGRAM,
            XtpService::AcknowledgedDatagram => &features::XTP_ACKNOWLEDGED_DATAGRAM,
            XtpService::Transaction => &features::XTP_TRANSACTION,
            XtpService::Multicast => &features::XTP_MULTICAST,
            XtpService::ReliableMulticast => &features::XTP_RELIABLE_MULTICAST,
        }
    }

    /// Whether one transmission reaches all sinks.
    pub const fn is_multicast(self) -> bool {
        matches!(self, XtpService::Multicast | XtpService::ReliableMulticast)
    }
}

/// Options of SCTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SctpOptions {
    /// Whether members share an association.
    pub style: SctpStyle,
    /// Streams that messages take in turn.
    pub streams: u16,
    /// Whether the messages of a stream are delivered in the order of sending.
    pub ordered: bool,
    /// How long a lost message is repaired.
    pub reliability: Reliability,
    /// Receive window.
    pub window: Bytes,
    /// How much waits at the sender; as much as the window if absent.
    pub send_buffer: Option<Bytes>,
    /// How long a send may block before the message is given up and counted as refused (Schiavoni: 40 ms).
    pub send_timeout: Option<Duration>,
    /// What carries the packets: IP or UDP.
    pub encapsulation: trunkline_transport::sctp::Encapsulation,
    /// Whose association it is in `live`.
    pub engine: SctpEngine,
}

/// Whose SCTP runs over real sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SctpEngine {
    /// Ours, the same as in the simulator.
    Own,
    /// That of the operating system.
    Kernel,
}

/// The styles of SCTP's sockets (RFC 6458), as the members of a flow use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SctpStyle {
    /// A socket and an association for each.
    OneToOne,
    /// One socket at either end for all. Between two sockets there is one association only.
    OneToMany,
}

/// Options of QUIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuicOptions {
    /// What carries messages.
    pub mode: Mode,
    /// Congestion control, both ways.
    pub congestion_control: trunkline_adapters::quic::CongestionControl,
    /// Receive window of streams, receive buffer of datagrams.
    pub window: Bytes,
    /// How much waits at the sender; if absent the window for streams, and 64 KiB for datagrams.
    pub send_buffer: Option<Bytes>,
    /// Who makes the UDP headers.
    pub encapsulation: trunkline_adapters::quic::Encapsulation,
    /// How long a send may block before the message is given up and counted as refused.
    pub send_timeout: Option<Duration>,
}
