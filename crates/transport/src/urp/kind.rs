//! URP as experiment files name it.

use std::sync::Arc;

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration};

use super::{BLOCK, TRAILER_LENGTH, UrpConfig, UrpEndpoint, WINDOW};
use crate::conversation::Features;
use crate::features;
use crate::framing::MOST_OF_STREAM;
use crate::kind::{Advised, IPV4_UDP, MessageSize, Packet, Pair, Place, TransportKind, TransportOptions};

/// URP.
pub const KIND: TransportKind = TransportKind {
    name: "urp",
    doc: "URP, the protocol of Datakit's circuits, in block mode (Fraser and Marshall 1989; Hawley 1989), \
          with one circuit per member; in `live`, over UDP. On a link, a block takes its data and a \
          trailer of 6 bytes, and a reply takes 2 bytes; there is no network header.",
    parameters: &[
        Parameter {
            name: "block",
            kind: Kind::Bytes { min: Bytes(*BLOCK.start() as u64), max: Bytes(*BLOCK.end() as u64) },
            default: Preset::Text("256 B"),
            doc: "Maximum block size. The end of a message also ends a block.",
        },
        Parameter {
            name: "window",
            kind: Kind::Integer { min: *WINDOW.start() as u64, max: *WINDOW.end() as u64 },
            default: Preset::Text("3"),
            doc: "Maximum number of unacknowledged blocks in each direction.",
        },
        Parameter {
            name: "packet",
            kind: Kind::Bytes { min: Bytes(16), max: Bytes(*BLOCK.end() as u64) },
            default: Preset::Text("1024 B"),
            doc: "Maximum data per packet; larger blocks are sent in several packets.",
        },
        Parameter {
            name: "low-water",
            kind: Kind::Integer { min: 0, max: *WINDOW.end() as u64 },
            default: Preset::Absent,
            doc: "Number of unacknowledged blocks at which the sender fills the window again, like the \
                  low-water mark of a stream. Without this key, the window slides with each block.",
        },
        Parameter {
            name: "timeout",
            kind: Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(3600) },
            default: Preset::Text("1 s"),
            doc: "Time without progress after which the sender asks the receiver for its state, which \
                  reveals undetected losses.",
        },
    ],
    features: &features::URP,
    modes: &[],
    // An envelope around every character frame.
    advised: Some(Advised { rank: 7, headers: IPV4_UDP + 8, alike: "urp" }),
    max_message: MOST_OF_STREAM,
    options: |values| {
        Arc::new(Urp {
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

#[derive(Debug)]
struct Urp {
    block: Bytes,
    window: u8,
    packet: Bytes,
    low_water: Option<u8>,
    timeout: Duration,
}

impl Urp {
    fn config(&self) -> UrpConfig {
        let block = self.block.count() as usize;
        UrpConfig {
            block,
            window: self.window,
            packet: self.packet.count() as usize,
            low_water: self.low_water,
            // What is in flight, and as much to follow it: more would only add delay before the network.
            send_buffer: block.saturating_mul(2 * usize::from(self.window)),
            timeout: self.timeout,
            ..UrpConfig::default()
        }
    }

    fn blocks(&self) -> Bytes {
        Bytes(self.block.count().saturating_mul(self.window.into()))
    }
}

impl TransportOptions for Urp {
    fn features(&self) -> &'static Features {
        &features::URP
    }

    fn buffers(&self) -> Bytes {
        Bytes(self.blocks().count().saturating_mul(2))
    }

    fn in_flight(&self) -> Option<(&'static str, Bytes)> {
        Some(("window", self.blocks()))
    }

    fn largest_block(&self) -> Option<Bytes> {
        Some(self.block + Bytes(TRAILER_LENGTH as u64))
    }

    fn window_in_blocks(&self) -> Option<u64> {
        Some(self.window.into())
    }

    fn full_packet(&self, mtu: Bytes) -> Option<Bytes> {
        Some(self.largest_block()?.min(mtu))
    }

    fn packet(&self, _message: &MessageSize<'_>) -> Packet {
        let (block, bytes) = (self.block.count(), self.block.count() + TRAILER_LENGTH as u64);
        Packet::Needs {
            bytes,
            what: format!("blocks of {block} B make packets of {bytes} B"),
            key: Some("block"),
        }
    }

    fn pair(&self, place: &Place<'_>) -> Result<Pair, String> {
        let Place { near, far, .. } = *place;
        Pair::of(
            place,
            UrpEndpoint::connect(near, far, self.config()),
            UrpEndpoint::listen(far, near, self.config()),
        )
    }

    fn differences(&self) -> Vec<String> {
        vec![
            "on real sockets URP travels in UDP over IP, with a header for its circuit, so its packets are 44 bytes larger"
                .to_owned(),
        ]
    }
}
