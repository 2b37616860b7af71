//! SCTP and its options.

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::features;
use trunkline_transport::framing::HEADER_LENGTH;
use trunkline_transport::sctp::{Encapsulation, MAX_MESSAGE, Reliability};

use super::TransportKind;
use crate::model::{SctpEngine, SctpOptions, SctpStyle, Transport};

const ONE_TO_MANY: &str = "one-to-many";
const KERNEL: &str = "kernel";

/// SCTP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "sctp",
    doc: "SCTP (RFC 9260). Messages keep their borders; large ones are sent in pieces. Links on the way must carry packets of 576 bytes. \
          A message may be up to half the window, and 128 KiB. Several streams, `ordered`, `lifetime` and `retransmissions` \
          change what is promised.",
    parameters: &[
        Parameter {
            name: "style",
            kind: Kind::Choice(&[
                Choice { name: "one-to-one", doc: "every member has a socket and an association of its own" },
                Choice {
                    name: ONE_TO_MANY,
                    doc: "all members share one socket at either end, and so one association",
                },
            ]),
            default: Preset::Text("one-to-one"),
            doc: "The style of sockets (RFC 6458; SCTP 1 and SCTP 2 of Schiavoni and Queiroz 2013). A socket of the second \
                  style has an association for every peer, and all members of a flow have the same peer: they share its \
                  buffers and its congestion window, and a loss holds up all of them, unless messages go unordered or on \
                  several streams. With one member both are the same on the wire.",
        },
        Parameter {
            name: "streams",
            kind: Kind::Integer { min: 1, max: 65_535 },
            default: Preset::Text("1"),
            doc: "Streams on which messages go in turn. A loss holds up the messages of its stream only.",
        },
        Parameter {
            name: "ordered",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Delivers the messages of a stream in the order of sending; otherwise each as soon as it is complete.",
        },
        Parameter {
            name: "lifetime",
            kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) },
            default: Preset::Absent,
            doc: "How long after it was sent a message is still repaired (partial reliability, RFC 3758); then it is given \
                  up and lost. Without this key and `retransmissions` until it has arrived.",
        },
        Parameter {
            name: "retransmissions",
            kind: Kind::Integer { min: 0, max: 1000 },
            default: Preset::Absent,
            doc: "How often a message is repeated before it is given up (partial reliability, RFC 7496). Not together with \
                  `lifetime`.",
        },
        Parameter {
            name: "window",
            kind: Kind::Bytes { min: Bytes(8 << 10), max: Bytes(1 << 30) },
            default: Preset::Text("256 KiB"),
            doc: "Receive window.",
        },
        Parameter {
            name: "send-buffer",
            kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
            default: Preset::Absent,
            doc: "How much waits at the sender until it is acknowledged. Without this key as much as the window.",
        },
        Parameter {
            name: "send-timeout",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) },
            default: Preset::Absent,
            doc: "How long a message may wait for room in the send buffer before it is given up and counted as refused \
                  (Schiavoni and Queiroz 2013: 40 ms). Without this key it waits.",
        },
        Parameter {
            name: "encapsulation",
            kind: Kind::Choice(&[
                Choice { name: "ip", doc: "IP protocol 132; in `live` through raw sockets" },
                Choice { name: "udp", doc: "UDP (RFC 6951): 8 bytes more per packet" },
            ]),
            default: Preset::Text("ip"),
            doc: "What carries the packets.",
        },
        Parameter {
            name: "engine",
            kind: Kind::Choice(&[
                Choice { name: "own", doc: "ours, the same as in `sim`" },
                Choice {
                    name: KERNEL,
                    doc: "the operating system's (`IPPROTO_SCTP`), where it has one, with its own timers and buffers",
                },
            ]),
            default: Preset::Text("own"),
            doc: "Whose SCTP it is in `live`; in `sim` always ours. The kernel's is reliable, ordered, on one stream, over IP, \
                  with an association for every member; its `window` is `SO_RCVBUF` and `SO_SNDBUF`.",
        },
    ],
    features: &features::SCTP,
    max_message: (MAX_MESSAGE - HEADER_LENGTH) as u64,
    read: |values| {
        Transport::Sctp(SctpOptions {
            style: match values.text("style").as_str() {
                ONE_TO_MANY => SctpStyle::OneToMany,
                _ => SctpStyle::OneToOne,
            },
            // At most 65,535.
            streams: values.integer("streams") as u16,
            ordered: values.flag("ordered"),
            reliability: match (
                values.duration_if_given("lifetime"),
                values.integer_if_given("retransmissions"),
            ) {
                (Some(lifetime), _) => Reliability::Lifetime(lifetime),
                // At most 1000.
                (None, Some(count)) => Reliability::Retransmissions(count as u16),
                (None, None) => Reliability::Full,
            },
            window: values.bytes("window"),
            send_buffer: values.bytes_if_given("send-buffer"),
            send_timeout: values.duration_if_given("send-timeout"),
            encapsulation: match values.text("encapsulation").as_str() {
                "udp" => Encapsulation::Udp,
                _ => Encapsulation::Ip,
            },
            engine: match values.text("engine").as_str() {
                KERNEL => SctpEngine::Kernel,
                _ => SctpEngine::Own,
            },
        })
    },
};
