//! SCTP and its options.

use trunkline_adapters::sctp::{Carrier, MAX_MESSAGE, Reliability};
use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::features;
use trunkline_transport::framing::HEADER_LENGTH;

use super::TransportKind;
use crate::model::{SctpOptions, Transport};

/// SCTP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "sctp",
    doc: "SCTP (RFC 9260), one association per member; in `sim` only. Messages keep their borders and carry a header of 40 \
          bytes by which they are measured; large ones are sent in pieces. Links on the way must carry packets of 576 bytes. \
          A message may be up to half the window, and 128 KiB. Several streams, `ordered`, `lifetime` and `retransmissions` \
          change what is promised.",
    parameters: &[
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
                Choice { name: "ip", doc: "IP protocol 132" },
                Choice { name: "udp", doc: "UDP (RFC 6951): 8 bytes more per packet" },
            ]),
            default: Preset::Text("ip"),
            doc: "What carries the packets.",
        },
    ],
    features: &features::SCTP,
    max_message: (MAX_MESSAGE - HEADER_LENGTH) as u64,
    read: |values| {
        Transport::Sctp(SctpOptions {
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
            carrier: match values.text("encapsulation").as_str() {
                "udp" => Carrier::Udp,
                _ => Carrier::Ip,
            },
        })
    },
};
