//! Transports and their options.

mod quic;
mod sctp;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Ecn, Rate};
use trunkline_transport::framing::{HEADER_LENGTH, MAX_PAYLOAD};
use trunkline_transport::{Features, dccp, features, rtp, udp, urp, xtp};

use crate::model::{DccpOptions, RtpOptions, TcpOptions, Transport, UdpOptions, UrpOptions, XtpOptions};

/// A transport that an experiment file can name: `transport = { kind = "tcp", window = "16 KiB" }`.
pub(crate) struct TransportKind {
    /// The word in the file.
    pub(crate) name: &'static str,
    /// One paragraph: what it is in each backend and where it is defined.
    pub(crate) doc: &'static str,
    /// Its parameters.
    pub(crate) parameters: &'static [Parameter],
    /// What it promises.
    pub(crate) features: &'static Features,
    /// The largest payload of a message in bytes, without the header of a measured message.
    pub(crate) max_message: u64,
    /// Makes its options from its values.
    pub(crate) read: fn(&Values) -> Transport,
}

/// Every transport that an experiment file can name.
pub(crate) const KINDS: &[TransportKind] = &[
    TransportKind {
        name: "udp",
        doc: "UDP (RFC 768): every message is one datagram, with a header of 40 bytes by which it is measured. Nothing \
              is repaired and nothing holds the sender back.",
        parameters: &[
            Parameter {
                name: "buffer",
                kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
                default: Preset::Absent,
                doc: "Socket buffers (`SO_SNDBUF`, `SO_RCVBUF`); without this key 4 MiB in `live`, as far as the \
                      system grants it, and in `sim` 64 KiB to send and 208 KiB to receive.",
            },
            Parameter {
                name: "ecn",
                kind: Kind::Choice(&[
                    Choice { name: NOT_ECT, doc: "not capable: queues drop" },
                    Choice { name: "ect0", doc: "capable: queues may mark instead" },
                    Choice { name: "ect1", doc: "capable and low-latency, L4S (RFC 9331)" },
                ]),
                default: Preset::Text(NOT_ECT),
                doc: "The ECN field of the datagrams (RFC 3168 section 5), by which queues choose between dropping and \
                      marking, and `dualpi2` between its queues. The flow itself does not react to marks. In `live` \
                      only `not-ect`.",
            },
        ],
        features: &features::UDP,
        max_message: (udp::MAX_MESSAGE - HEADER_LENGTH) as u64,
        read: |values| {
            Transport::Udp(UdpOptions {
                buffer: values.bytes_if_given("buffer"),
                ecn: match values.text("ecn").as_str() {
                    "ect0" => Ecn::Ect0,
                    "ect1" => Ecn::Ect1,
                    _ => Ecn::NotCapable,
                },
            })
        },
    },
    TransportKind {
        name: "tcp",
        doc: "TCP (RFC 9293), one connection per member: the kernel's in `live` and `wire`, smoltcp's in `sim`. \
              Messages carry a header of 40 bytes by which they are found in the byte stream and measured.",
        parameters: &[
            Parameter {
                name: "window",
                kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
                default: Preset::Absent,
                doc: "Receive window: in `sim` exactly this, in `live` set as `SO_RCVBUF` and `SO_SNDBUF` (Linux \
                      doubles what it is told and uses part of it for its own books). Without this key the backend's \
                      default.",
            },
            Parameter {
                name: "mss",
                kind: Kind::Bytes { min: Bytes(88), max: Bytes(65_495) },
                default: Preset::Absent,
                doc: "Largest segment payload; without this key what the MTU allows.",
            },
            Parameter {
                name: "nodelay",
                kind: Kind::Flag,
                default: Preset::Text("true"),
                doc: "`TCP_NODELAY`: send at once instead of collecting small messages (Nagle, RFC 896, off).",
            },
            Parameter {
                name: "congestion-control",
                kind: Kind::Text,
                default: Preset::Absent,
                doc: "By name: `reno`, `cubic` or `none` in `sim`, whatever the kernel offers in `live`. Without this \
                      key the backend's default.",
            },
            Parameter {
                name: "send-timeout",
                kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
                default: Preset::Absent,
                doc: "How long a message may wait for room in the send buffer before it is given up and counted as \
                      refused (Schiavoni and Queiroz 2013: 40 ms). Without this key it waits.",
            },
        ],
        features: &features::TCP,
        max_message: MAX_PAYLOAD as u64,
        read: |values| {
            Transport::Tcp(TcpOptions {
                window: values.bytes_if_given("window"),
                mss: values.bytes_if_given("mss"),
                nodelay: values.flag("nodelay"),
                congestion_control: values.text_if_given("congestion-control"),
                send_timeout: values.duration_if_given("send-timeout"),
            })
        },
    },
    TransportKind {
        name: "urp",
        doc: "URP, the protocol of Datakit's circuits, in block mode (Fraser and Marshall 1989; Hawley 1989), one circuit \
              per member; in `live` over UDP. Messages carry a header of 40 bytes by which they are found in the byte stream \
              and measured. On a link a block counts its data and 6 bytes of trailer, an answer 2 bytes; there is no \
              network header.",
        parameters: &[
            Parameter {
                name: "block",
                kind: Kind::Bytes {
                    min: Bytes(*urp::BLOCK.start() as u64),
                    max: Bytes(*urp::BLOCK.end() as u64),
                },
                default: Preset::Text("256 B"),
                doc: "The largest block; the end of a message ends a block too.",
            },
            Parameter {
                name: "window",
                kind: Kind::Integer { min: *urp::WINDOW.start() as u64, max: *urp::WINDOW.end() as u64 },
                default: Preset::Text("3"),
                doc: "How many blocks may be under way, in each direction.",
            },
            Parameter {
                name: "packet",
                kind: Kind::Bytes { min: Bytes(16), max: Bytes(*urp::BLOCK.end() as u64) },
                default: Preset::Text("1024 B"),
                doc: "The most data in a packet: a block leaves in packets of at most this.",
            },
            Parameter {
                name: "low-water",
                kind: Kind::Integer { min: 0, max: *urp::WINDOW.end() as u64 },
                default: Preset::Absent,
                doc: "With at most so many blocks under way a full window is filled again, as a writer is woken at the \
                      low-water mark of its stream. Without this key the window slides with every block.",
            },
            Parameter {
                name: "timeout",
                kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) },
                default: Preset::Text("1 s"),
                doc: "How long nothing moves before the sender asks the receiver for its state, by which it learns of \
                      what was lost unnoticed.",
            },
        ],
        features: &features::URP,
        max_message: MAX_PAYLOAD as u64,
        read: |values| {
            Transport::Urp(UrpOptions {
                block: values.bytes("block"),
                // At most 7.
                window: values.integer("window") as u8,
                packet: values.bytes("packet"),
                // At most 7.
                low_water: values.integer_if_given("low-water").map(|blocks| blocks as u8),
                timeout: values.duration("timeout"),
            })
        },
    },
    TransportKind {
        name: "dccp",
        doc: "DCCP (RFC 4340), one connection per member; in `live` over UDP only (`encapsulation`). Every message is one \
              packet, with a header of 40 bytes by which it is measured, at a rate that congestion control allows; nothing is repaired. What it does \
              not let out waits in the send queue, and is dropped there and counted when it waits too long or finds no \
              room.",
        parameters: &[
            Parameter {
                name: "congestion-control",
                kind: Kind::Choice(&[
                    Choice { name: "ccid-2", doc: "a window as TCP's (RFC 4341)" },
                    Choice { name: "ccid-3", doc: "a smooth rate, TFRC (RFC 4342, RFC 5348)" },
                    Choice { name: "ccid-4", doc: "that rate for the small packets of voice (RFC 5622)" },
                ]),
                default: Preset::Text("ccid-2"),
                doc: "The congestion control, both ways.",
            },
            Parameter {
                name: "send-queue",
                kind: Kind::Limit,
                default: Preset::Text("64 KiB"),
                doc: "How many messages, or bytes of them, may wait until congestion control lets them out. One always \
                      may.",
            },
            Parameter {
                name: "when-full",
                kind: Kind::Choice(&[
                    Choice { name: "refuse", doc: "the application waits" },
                    Choice { name: "drop-newest", doc: "it is dropped" },
                    Choice { name: "drop-oldest", doc: "the oldest are dropped until it fits" },
                ]),
                default: Preset::Text("refuse"),
                doc: "What happens to a message for which the send queue has no room.",
            },
            Parameter {
                name: "lifetime",
                kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
                default: Preset::Absent,
                doc: "How long a message may wait in the send queue before it is dropped. Without this key as long as it \
                      takes.",
            },
            Parameter {
                name: "encapsulation",
                kind: Kind::Choice(&[
                    Choice { name: "ip", doc: "directly over IP, protocol 33" },
                    Choice { name: "udp", doc: "within UDP (RFC 6773): 8 bytes more per packet" },
                ]),
                default: Preset::Text("ip"),
                doc: "What carries the packets.",
            },
            Parameter {
                name: "checksum-coverage",
                kind: Kind::Bytes { min: Bytes(0), max: Bytes(56) },
                default: Preset::Absent,
                doc: "How much of a message the checksum covers (RFC 4340 section 9.2), rounded up to four bytes; damage \
                      behind it is delivered. The first 40 bytes are the header by which a message is measured. Without \
                      this key everything; over UDP always everything.",
            },
            Parameter {
                name: "data-checksum",
                kind: Kind::Flag,
                default: Preset::Text("false"),
                doc: "Sends a CRC-32c of every message with it (RFC 4340 section 9.3): damage that the checksum does not \
                      cover is found, and the message dropped.",
            },
            Parameter {
                name: "short-sequence-numbers",
                kind: Kind::Flag,
                default: Preset::Text("false"),
                doc: "Sends 24 bits of sequence numbers instead of 48 (RFC 4340 section 7.6): 4 or 8 bytes less per \
                      packet.",
            },
            Parameter {
                name: "ecn",
                kind: Kind::Flag,
                default: Preset::Text("true"),
                doc: "Lets queues mark packets instead of dropping them, and reacts to marks as to losses (RFC 4340 \
                      section 12).",
            },
        ],
        features: &features::DCCP,
        max_message: (65_535 - dccp::HEADERS - 28 - HEADER_LENGTH) as u64,
        read: |values| {
            Transport::Dccp(DccpOptions {
                // The words are those of the choices.
                ccid: values.text("congestion-control").parse().unwrap_or_default(),
                send_queue: values.limit("send-queue"),
                when_full: values.text("when-full").parse().unwrap_or_default(),
                lifetime: values.duration_if_given("lifetime"),
                encapsulation: match values.text("encapsulation").as_str() {
                    "udp" => dccp::Encapsulation::Udp,
                    _ => dccp::Encapsulation::Native,
                },
                checksum_coverage: values.bytes_if_given("checksum-coverage"),
                data_checksum: values.flag("data-checksum"),
                short_sequence_numbers: values.flag("short-sequence-numbers"),
                ecn: values.flag("ecn"),
            })
        },
    },
    TransportKind {
        name: "xtp",
        doc: "XTP 4.0 (XTP Forum 1995), one stream per member; in `live` over UDP only (`encapsulation`). Every mechanism is chosen \
              by itself. Messages carry a header of 40 bytes by which they are found in the byte stream and measured; messages that \
              wait leave together, as many whole ones in a packet as fit.",
        parameters: &[
            Parameter {
                name: "error-control",
                kind: Kind::Choice(&[
                    Choice { name: "selective", doc: "the gaps that the receiver reports are sent again" },
                    Choice { name: NONE, doc: "nothing: the stream goes on past losses (NOERR)" },
                ]),
                default: Preset::Text("selective"),
                doc: "What is done about losses.",
            },
            Parameter {
                name: "fast-nak",
                kind: Kind::Flag,
                default: Preset::Text("true"),
                doc: "The receiver reports a gap at once (FASTNAK), not only when it is asked.",
            },
            Parameter {
                name: "flow-control",
                kind: Kind::Choice(&[
                    Choice { name: "window", doc: "the receiver allocates what its buffer holds" },
                    Choice {
                        name: "reserved",
                        doc: "the receiver allocates what its user has asked for (RES)",
                    },
                    Choice { name: NONE, doc: "nothing (NOFLOW)" },
                ]),
                default: Preset::Text("window"),
                doc: "What holds the sender back.",
            },
            Parameter {
                name: "window",
                kind: Kind::Bytes { min: Bytes(1 << 8), max: Bytes(1 << 30) },
                default: Preset::Text("64 KiB"),
                doc: "Receive buffer; as much waits at the sender.",
            },
            Parameter {
                name: "acknowledge",
                kind: Kind::Choice(&[
                    Choice { name: "every", doc: "with every packet, or every n-th as `every` says" },
                    Choice { name: "on-request", doc: "when it could not go on without" },
                    Choice {
                        name: "never",
                        doc: "only to open and to close; needs `error-control` and `flow-control` `none`",
                    },
                ]),
                default: Preset::Text("every"),
                doc: "When the sender asks for an acknowledgement.",
            },
            Parameter {
                name: "every",
                kind: Kind::Integer { min: 1, max: 1_000_000 },
                default: Preset::Text("1"),
                doc: "With every how many data packets, if `acknowledge` is `every`.",
            },
            Parameter {
                name: "acknowledged-when",
                kind: Kind::Choice(&[
                    Choice { name: "arrived", doc: "the data arrived (SREQ)" },
                    Choice { name: "delivered", doc: "the data were read (DREQ)" },
                ]),
                default: Preset::Text("arrived"),
                doc: "What an acknowledgement means.",
            },
            Parameter {
                name: "rate",
                kind: Kind::Rate {
                    min: Rate::from_bits_per_second(8),
                    max: Rate::from_bits_per_second(34_000_000_000),
                },
                default: Preset::Absent,
                doc: "Rate control: the most data that are sent in a time, without headers.",
            },
            Parameter {
                name: "burst",
                kind: Kind::Bytes { min: Bytes(1), max: Bytes(1 << 30) },
                default: Preset::Absent,
                doc: "The most that are sent at once under `rate`, and the credit of each of its periods; without this key \
                      ten packets' worth.",
            },
            Parameter {
                name: "checksum",
                kind: Kind::Flag,
                default: Preset::Text("true"),
                doc: "The checksum covers the data, not only the header (otherwise NOCHECK).",
            },
            Parameter {
                name: "open",
                kind: Kind::Choice(&[
                    Choice { name: "handshake", doc: "data follow when the first packet was answered" },
                    Choice { name: "implicit", doc: "the first packet carries data" },
                ]),
                default: Preset::Text("handshake"),
                doc: "How a stream is opened.",
            },
            Parameter {
                name: "encapsulation",
                kind: Kind::Choice(&[
                    Choice { name: "ip", doc: "IP protocol 36: 20 bytes per packet" },
                    Choice { name: "udp", doc: "the payload of UDP: 28 bytes per packet" },
                ]),
                default: Preset::Text("ip"),
                doc: "What carries the packets.",
            },
            Parameter {
                name: "max-data",
                kind: Kind::Bytes { min: Bytes(96), max: Bytes(65_475) },
                default: Preset::Absent,
                doc: "The most data in a packet, behind its header of 32 bytes; without this key what the MTU allows.",
            },
            Parameter {
                name: "sort",
                kind: Kind::Flag,
                default: Preset::Text("true"),
                doc: "Packets carry the flow's `priority` (SORT).",
            },
            Parameter {
                name: "wait",
                kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(60) },
                default: Preset::Text("1 s"),
                doc: "How long the first request for status waits for its answer (WTIMER); later ones by the measured round \
                      trip.",
            },
        ],
        features: &features::XTP,
        max_message: MAX_PAYLOAD as u64,
        read: |values| {
            Transport::Xtp(XtpOptions {
                error_control: match values.text("error-control").as_str() {
                    NONE => xtp::ErrorControl::None,
                    _ => xtp::ErrorControl::Selective,
                },
                fast_nak: values.flag("fast-nak"),
                flow_control: match values.text("flow-control").as_str() {
                    NONE => xtp::FlowControl::None,
                    "reserved" => xtp::FlowControl::Reserved,
                    _ => xtp::FlowControl::Window,
                },
                window: values.bytes("window"),
                acknowledge: match values.text("acknowledge").as_str() {
                    "never" => xtp::Acknowledge::Never,
                    "on-request" => xtp::Acknowledge::OnRequest,
                    // At most a million.
                    _ => xtp::Acknowledge::Every(values.integer("every") as u32),
                },
                meaning: match values.text("acknowledged-when").as_str() {
                    "delivered" => xtp::Meaning::Delivered,
                    _ => xtp::Meaning::Arrived,
                },
                rate: values.rate_if_given("rate"),
                burst: values.bytes_if_given("burst"),
                checksum: values.flag("checksum"),
                open: match values.text("open").as_str() {
                    "implicit" => xtp::Open::Implicit,
                    _ => xtp::Open::Handshake,
                },
                carriage: match values.text("encapsulation").as_str() {
                    "udp" => xtp::Carriage::Udp,
                    _ => xtp::Carriage::Ip,
                },
                max_data: values.bytes_if_given("max-data"),
                sort: values.flag("sort"),
                wait: values.duration("wait"),
            })
        },
    },
    TransportKind {
        name: "rtp",
        doc: "RTP and RTCP (RFC 3550) over UDP, both on one port (RFC 5761), one session per member. Every \
              message is the payload of one packet, with a header of 40 bytes by which it is measured. Nothing is repaired, \
              nothing holds the sender back, and duplicates are dropped. Both ends send reports while either sends data.",
        parameters: &[
            Parameter {
                name: "payload",
                kind: Kind::Choice(&[
                    Choice { name: "pcmu", doc: "mu-law, a byte per sample (RFC 3551 section 4.5.14)" },
                    Choice { name: "l16", doc: "linear, two bytes per sample (RFC 3551 section 4.5.11)" },
                ]),
                default: Preset::Text("pcmu"),
                doc: "What the messages hold, by which timestamps count samples.",
            },
            Parameter {
                name: "clock",
                kind: Kind::Integer { min: 1000, max: 768_000 },
                default: Preset::Absent,
                doc: "Samples per second. Without this key 8000 of `pcmu` and 44100 of `l16`.",
            },
            Parameter {
                name: "channels",
                kind: Kind::Integer { min: 1, max: 255 },
                default: Preset::Text("1"),
                doc: "Channels, whose samples take turns.",
            },
            Parameter {
                name: "reports",
                kind: Kind::Choice(&[
                    Choice { name: "fixed", doc: "about 5 s apart, or more" },
                    Choice {
                        name: "reduced",
                        doc: "about 360 s apart, divided by `session-bandwidth` in kbit/s, or more",
                    },
                    Choice { name: NONE, doc: "never" },
                ]),
                default: Preset::Text("fixed"),
                doc: "How often each end reports: at random times, so rarely that all reports together take 5 % of \
                      `session-bandwidth` (RFC 3550 section 6.2).",
            },
            Parameter {
                name: "session-bandwidth",
                kind: Kind::Rate {
                    min: Rate::from_bits_per_second(1000),
                    max: Rate::from_bits_per_second(1_000_000_000_000),
                },
                default: Preset::Text("64 kbit/s"),
                doc: "What the session is expected to use; only reports depend on it.",
            },
        ],
        features: &features::RTP,
        max_message: (rtp::MAX_MESSAGE - HEADER_LENGTH) as u64,
        read: |values| {
            // At most 768,000 and 255.
            let clock = values.integer_if_given("clock").map(|clock| clock as u32);
            let channels = values.integer("channels") as u8;
            let bandwidth = values.rate("session-bandwidth");
            Transport::Rtp(RtpOptions {
                format: match values.text("payload").as_str() {
                    "l16" => rtp::PayloadFormat::l16(clock.unwrap_or(44_100), channels, DYNAMIC_PAYLOAD_TYPE),
                    _ => rtp::PayloadFormat::pcmu(clock.unwrap_or(8000), channels, DYNAMIC_PAYLOAD_TYPE),
                },
                reporting: match values.text("reports").as_str() {
                    NONE => None,
                    "reduced" => Some(rtp::Reporting::reduced(bandwidth)),
                    _ => Some(rtp::Reporting::with_bandwidth(bandwidth)),
                },
                carriage: rtp::Carriage::Udp,
            })
        },
    },
    quic::KIND,
    sctp::KIND,
];

/// The first of the payload types that both ends agree on (RFC 3551 section 6).
const DYNAMIC_PAYLOAD_TYPE: u8 = 96;
const NONE: &str = "none";
const NOT_ECT: &str = "not-ect";

/// What every transport that an experiment file can name promises, in the order of the reference.
pub const TRANSPORTS: &[&Features] = &{
    let mut all = [KINDS[0].features; KINDS.len()];
    let mut index = 0;
    while index < KINDS.len() {
        all[index] = KINDS[index].features;
        index += 1;
    }
    all
};
