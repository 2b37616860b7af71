//! A switched Ethernet: stations around one switch, each with a full-duplex line to it.

mod earliest;
mod lan;
mod switch;

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration, Rate};

use crate::medium::MediumKind;

pub use lan::EthernetLan;

/// Preamble, start delimiter, addresses and type: what a switch must have seen before it knows where a frame goes.
const PREAMBLE_AND_HEADER: Bytes = Bytes(8 + 14);
/// The gap behind every frame (IEEE 802.3 clause 4.4.2).
const GAP: Bytes = Bytes(12);
/// The least data that a frame carries: it is 64 bytes at least, of which 18 are header and check sequence.
const LEAST_DATA: Bytes = Bytes(46);

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "ethernet",
    doc: "A switched Ethernet (IEEE 802.3): each station has a full-duplex line to one switch. A packet waits in the \
          station's `queue`, is transmitted at the station's `rate` with its size (at least 46 B) and `overhead`, \
          and reaches the switch. The switch queues it for the line to its destination and transmits it at that \
          station's rate. Broadcasts are sent on all other lines. So are packets to a station that the switch does \
          not know; no station receives them. Impairments act on the packets that a station sends, before the \
          switch, so they are the same for all receivers.",
    parameters: &[
        Parameter {
            name: "rate",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1_000_000),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Text("1 Gbit/s"),
            doc: "Bits per second on the station's line, in each direction.",
        },
        Parameter {
            name: "delay",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) },
            default: Preset::Text("500 ns"),
            doc: "Propagation delay between the station and the switch, one way: about 5 ns per metre of cable.",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes(68), max: Bytes(9216) },
            default: Preset::Text("1500 B"),
            doc: "The largest packet, network header included and framing not; a larger one is dropped.",
        },
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes(38), max: Bytes(1024) },
            default: Preset::Text("38 B"),
            doc: "Framing of each packet on the line: preamble 8 B, header 14 B, check sequence 4 B, gap 12 \
                  B; 4 B more with a VLAN tag. The gap keeps the line busy and delays the next frame only.",
        },
        Parameter {
            name: "switch-buffer",
            kind: Kind::Limit,
            default: Preset::Text("512 KiB"),
            doc: "Buffer of the switch for the line to the station, first in, first out: packets, or bytes \
                  at the network layer. A packet that arrives when it is full is dropped.",
        },
    ],
    needs: &[],
    shared: &[
        Parameter {
            name: "switching",
            kind: Kind::Choice(&[
                Choice {
                    name: "store-and-forward",
                    doc: "The switch forwards a frame after receiving all of it.",
                },
                Choice {
                    name: CUT_THROUGH,
                    doc: "The switch forwards a frame after receiving its header, unless an outgoing line is \
                          faster than the incoming one.",
                },
            ]),
            default: Preset::Text("store-and-forward"),
            doc: "Time at which the switch forwards a frame.",
        },
        Parameter {
            name: "switch-latency",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) },
            default: Preset::Text("2 us"),
            doc: "Forwarding delay of the switch, in addition to queueing and transmission.",
        },
    ],
    stations: 2..=1000,
    build: |shared, ports, seed| Box::new(EthernetLan::new(shared, ports, seed)),
};

/// The word of `switching` for a switch that does not store what it forwards.
const CUT_THROUGH: &str = "cut-through";
