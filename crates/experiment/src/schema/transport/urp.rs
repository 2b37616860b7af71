//! URP and its options.

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration};
use trunkline_transport::framing::MAX_PAYLOAD;
use trunkline_transport::{features, urp};

use super::TransportKind;
use crate::model::{Transport, UrpOptions};

/// URP.
pub(super) const KIND: TransportKind = TransportKind {
    name: "urp",
    doc: "URP, the protocol of Datakit's circuits, in block mode (Fraser and Marshall 1989; Hawley 1989), one circuit \
          per member; in `live` over UDP. On a link a block counts its data and 6 bytes of trailer, an answer 2 bytes; there is no \
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
};
