//! Transports and their options.

mod dccp;
mod quic;
mod rtp;
mod sctp;
mod urp;
mod xtp;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Ecn};
use trunkline_transport::framing::{HEADER_LENGTH, MAX_PAYLOAD};
use trunkline_transport::{Features, features, udp};

use crate::model::{TcpOptions, Transport, UdpOptions};

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
    urp::KIND,
    dccp::KIND,
    xtp::KIND,
    rtp::KIND,
    quic::KIND,
    sctp::KIND,
];

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
