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
    doc: "A switched Ethernet (IEEE 802.3): every station has a full-duplex line to one switch. A packet waits in the \
          station's `queue`, takes its size (46 B at least) and `overhead` at the station's `rate` to be transmitted, \
          and comes to the switch, which puts it into the buffer in front of the line to its destination, where the same \
          happens at that station's rate. What is for everybody goes out on all other lines, and so does what is for a \
          station that the switch does not know, for nothing. Impairments act on what a station sends, before the \
          switch, for all its receivers alike.",
    parameters: &[
        Parameter {
            name: "rate",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1_000_000),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Text("1 Gbit/s"),
            doc: "Bits per second on the station's line, each way.",
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
            doc: "What a frame takes on the line beside its data: preamble 8, header 14, check sequence 4, gap 12; with a \
                  VLAN tag 4 more.",
        },
        Parameter {
            name: "switch-buffer",
            kind: Kind::Limit,
            default: Preset::Text("512 KiB"),
            doc: "How much may wait in the switch for the line to the station, first in, first out: packets, or bytes at \
                  the network layer. What comes when it is full is dropped.",
        },
    ],
    shared: &[
        Parameter {
            name: "switching",
            kind: Kind::Choice(&[
                Choice {
                    name: "store-and-forward",
                    doc: "The switch passes a frame on when it has all of it.",
                },
                Choice {
                    name: CUT_THROUGH,
                    doc: "It passes a frame on when it has its header, unless a line on which it is to go out is faster \
                          than the one on which it comes in.",
                },
            ]),
            default: Preset::Text("store-and-forward"),
            doc: "When the switch passes a frame on.",
        },
        Parameter {
            name: "switch-latency",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) },
            default: Preset::Text("2 us"),
            doc: "How long it takes to do so, beside waiting and transmission.",
        },
    ],
    stations: 2..=1000,
    build: |shared, ports, seed| Box::new(EthernetLan::new(shared, ports, seed)),
};

/// The word of `switching` for a switch that does not store what it forwards.
const CUT_THROUGH: &str = "cut-through";
