//! UDP and UDP-Lite, and their options.

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Ecn};
use trunkline_transport::features;
use trunkline_transport::framing::HEADER_LENGTH;
use trunkline_transport::udp::{Encapsulation, MAX_MESSAGE};

use super::TransportKind;
use crate::model::{Transport, UdpLiteOptions, UdpOptions};

/// UDP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "udp",
    doc: "UDP (RFC 768): every message is one datagram. Nothing is repaired and nothing holds the sender back.",
    parameters: &[
        BUFFER,
        Parameter {
            name: "ecn",
            kind: Kind::Choice(&[
                Choice { name: NOT_ECT, doc: "not capable: queues drop" },
                Choice { name: "ect0", doc: "capable: queues may mark instead" },
                Choice { name: "ect1", doc: "capable and low-latency, L4S (RFC 9331)" },
            ]),
            default: Preset::Text(NOT_ECT),
            doc: "The ECN field of the datagrams (RFC 3168 section 5), by which queues choose between dropping and \
                  marking, and `dualpi2` between its queues. The flow itself does not react to marks. In `live` only \
                  `not-ect`.",
        },
    ],
    features: &features::UDP,
    max_message: (MAX_MESSAGE - HEADER_LENGTH) as u64,
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
};

/// UDP-Lite.
pub(super) const LITE: TransportKind = TransportKind {
    name: "udp-lite",
    doc: "UDP-Lite (RFC 3828): as UDP, but damage to what the checksum does not cover is delivered instead of dropped, for \
          codecs that can use damaged speech. In `live` the kernel's, where it has one.",
    parameters: &[
        BUFFER,
        Parameter {
            name: "checksum-coverage",
            kind: Kind::Bytes { min: Bytes(0), max: Bytes(MAX_MESSAGE as u64) },
            default: Preset::Absent,
            doc: "How much of a message the checksum covers beside the header of 8 bytes, and must at least cover in what \
                  is received. The first 40 bytes are the header by which a message is measured. Without this key \
                  everything.",
        },
    ],
    features: &features::UDP_LITE,
    max_message: (MAX_MESSAGE - HEADER_LENGTH) as u64,
    read: |values| {
        Transport::UdpLite(UdpLiteOptions {
            buffer: values.bytes_if_given("buffer"),
            checksum_coverage: values.bytes_if_given("checksum-coverage"),
            encapsulation: Encapsulation::Udp,
        })
    },
};

const BUFFER: Parameter = Parameter {
    name: "buffer",
    kind: Kind::Bytes { min: Bytes(1 << 10), max: Bytes(1 << 30) },
    default: Preset::Absent,
    doc: "Socket buffers (`SO_SNDBUF`, `SO_RCVBUF`); without this key 4 MiB in `live`, as far as the system grants it, \
          and in `sim` 64 KiB to send and 208 KiB to receive.",
};

const NOT_ECT: &str = "not-ect";
