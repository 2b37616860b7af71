//! ATM: virtual channels from one host to another, through a network that polices and multiplexes their cells.
//!
//! A packet waits, is cut into cells (AAL5, ITU-T I.363.5), and these leave one by one when the shaper of their channel
//! and the host's line allow. Where the line ends the network compares each cell with the channel's contract (usage
//! parameter control) and passes it on, tags it or discards it; a switch puts what comes through into the buffer in front
//! of its output line. At the other end the cells are put together again, and a packet of which one is missing is lost.
//!
//! Every stage takes cells in the order in which the one before it hands them out, so that all that will happen to a cell
//! is known when it leaves its host. Where all packets share one channel it is even known when the packet's first cell
//! leaves; only cells of different channels have to wait for each other one by one.

mod adapter;
mod bundle;
mod config;
mod direction;
mod network;
mod per_flow;
mod record;

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration, Packet, Port, Rate, Seed, Time};

use crate::medium::{self, Figure, Medium, MediumCounters, MediumKind, Outcome};
use crate::queue::Backlog;
pub use config::{AtmConfig, Discard, Policing};
use direction::Direction;

/// The range of rates of lines and channels.
const RATES: Kind =
    Kind::Rate { min: Rate::from_bits_per_second(1_000), max: Rate::from_bits_per_second(100_000_000_000) };
/// The range of numbers of cells.
const CELLS: Kind = Kind::Integer { min: 1, max: 1 << 31 };

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "atm",
    doc: "An ATM virtual channel, or several, between two hosts (ATM Forum Traffic Management 4.0; ITU-T I.363.5). \
          Packets are cut into cells of 53 B that carry 48 (AAL5), shaped at the source, policed where they enter the \
          network, and put into the buffer of a switch in front of its output line. A packet arrives when its last cell \
          does, if none is missing. Rates are of cells with their headers. Impairments act on whole packets, behind the \
          output line.",
    parameters: &[
        Parameter {
            name: "vc",
            kind: Kind::Choice(&[
                Choice {
                    name: "bundle",
                    doc: "All packets share one, in the order in which `queue` hands them out: each one when the last \
                          cell of the one before has left and the first of its own may.",
                },
                Choice {
                    name: PER_FLOW,
                    doc: "Each member of a flow has its own, with a shaper, a policer and a FIFO (`vc-limit`) of its \
                          own. Cells of different channels take turns on the line. `queue` does not apply.",
                },
            ]),
            default: Preset::Text("bundle"),
            doc: "Which packets share a virtual channel.",
        },
        Parameter {
            name: "vc-limit",
            kind: Kind::Limit,
            default: Preset::Text("100 packets"),
            doc: "With `vc = \"flow\"`, how much may wait for a channel, without the packet whose cells leave.",
        },
        Parameter {
            name: "line",
            kind: RATES,
            default: Preset::Text("149.76 Mbit/s"),
            doc: "What the host's line carries in cells. OC-3c: 149.76 of its 155.52 Mbit/s, the rest is SONET's; DS3: \
                  44.21 Mbit/s, or 40.704 with PLCP.",
        },
        Parameter {
            name: "shape-pcr",
            kind: RATES,
            default: Preset::Absent,
            doc: "The peak cell rate of the shaper at the source. Without this key it is that of the line.",
        },
        Parameter {
            name: "shape-scr",
            kind: RATES,
            default: Preset::Absent,
            doc: "Its sustainable cell rate. Without this key there is none beside the peak.",
        },
        Parameter {
            name: "shape-mbs",
            kind: CELLS,
            default: Preset::Text("1"),
            doc: "With `shape-scr`, how many cells may leave at the peak rate after a pause.",
        },
        Parameter {
            name: "pcr",
            kind: RATES,
            default: Preset::Absent,
            doc: "The peak cell rate of the contract that the network polices. Without this key, the peak is not policed.",
        },
        Parameter {
            name: "cdvt",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(10) },
            default: Preset::Text("250 us"),
            doc: "Its tolerance: how much earlier than they should cells may come.",
        },
        Parameter {
            name: "scr",
            kind: RATES,
            default: Preset::Absent,
            doc: "The sustainable cell rate of the contract, policed with the tolerance of `mbs` and `cdvt`. Without this \
                  key, none is.",
        },
        Parameter {
            name: "mbs",
            kind: CELLS,
            default: Preset::Text("1"),
            doc: "The maximum burst size of the contract: how many cells at `pcr` (without it, at `line`) conform to `scr`.",
        },
        Parameter {
            name: "policing",
            kind: Kind::Choice(&[
                Choice { name: "pass", doc: "They are counted only." },
                Choice {
                    name: "tag",
                    doc: "Their cell loss priority is set to 1: a switch drops them first (`clp-threshold`).",
                },
                Choice { name: "discard", doc: "They are discarded." },
            ]),
            default: Preset::Text("discard"),
            doc: "What the network does with cells that do not conform.",
        },
        Parameter {
            name: "rate",
            kind: RATES,
            default: Preset::Text("149.76 Mbit/s"),
            doc: "What the output line of the switch carries in cells.",
        },
        Parameter {
            name: "buffer",
            kind: CELLS,
            default: Preset::Text("1024"),
            doc: "How many cells may wait in the switch. One that comes when it is full is lost.",
        },
        Parameter {
            name: "clp-threshold",
            kind: CELLS,
            default: Preset::Absent,
            doc: "With so many cells in the buffer, tagged ones are lost. Without this key, when it is full.",
        },
        Parameter {
            name: "epd",
            kind: CELLS,
            default: Preset::Absent,
            doc: "Early packet discard: a packet whose first cell finds so many in the buffer is discarded whole. Without \
                  this key none is (Romanow and Floyd 1995).",
        },
        Parameter {
            name: "ppd",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Partial packet discard: when a cell is discarded, by the policer or for want of room, so is what is left \
                  of its packet but the last cell, by which the receiver knows where the next one begins.",
        },
        Parameter {
            name: "delay",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
            default: Preset::Text("0 ms"),
            doc: "Propagation delay, one way: about 5 us per km of fibre.",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes(68), max: Bytes(65_527) },
            default: Preset::Text("9180 B"),
            doc: "The largest packet, network header included; a larger one is dropped. The default is that of IP \
                  (RFC 2225).",
        },
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1024) },
            default: Preset::Text("8 B"),
            doc: "What stands before a packet: LLC/SNAP 8 B, or none if the channel carries one protocol only (RFC 2684). \
                  With the trailer of 8 B (AAL5) it is filled up to whole cells.",
        },
        Parameter {
            name: "observe",
            kind: Kind::Integer { min: 0, max: u32::MAX as u64 },
            default: Preset::Text("0"),
            doc: "The member of a flow whose cells are recorded by themselves too, as a test set does with one \
                  connection: its place among the members of all flows in the order of the file, from 0.",
        },
    ],
    shared: &[],
    stations: medium::TWO,
    build: |_, ports, seed| Box::new(AtmLink::new(medium::two(ports).map(AtmConfig::from), seed)),
};

/// The word of `vc` for a channel for each flow.
const PER_FLOW: &str = "flow";

/// Virtual channels between two hosts, in both directions.
#[derive(Debug)]
pub struct AtmLink {
    directions: [Direction; 2],
}

impl AtmLink {
    /// The link whose first direction leads from port 0 to port 1 and whose second leads back.
    pub fn new(directions: [AtmConfig; 2], seed: Seed) -> AtmLink {
        let [there, back] = directions;
        AtmLink { directions: [Direction::new(there, Port(1), seed), Direction::new(back, Port(0), seed)] }
    }
}

impl Medium for AtmLink {
    /// # Panics
    /// If the link has no port `from`: a mistake in the driver.
    fn offer(&mut self, at: Time, from: Port, packet: Packet, out: &mut Outcome) {
        self.advance(at, out);
        self.directions[usize::from(from.0)].offer(at, packet, out);
    }

    fn advance(&mut self, to: Time, out: &mut Outcome) {
        // The directions share nothing but the outcome, in which events stand in the order of their times.
        loop {
            let [there, back] = &mut self.directions;
            let next = if back.wake() < there.wake() { back } else { there };
            let at = next.wake();
            if at > to || at == Time::MAX {
                return;
            }
            next.step(at, out);
        }
    }

    fn next_event(&self) -> Option<Time> {
        let next = self.directions[0].wake().min(self.directions[1].wake());
        (next != Time::MAX).then_some(next)
    }

    fn counters(&self, from: Port) -> MediumCounters {
        self.directions.get(usize::from(from.0)).map(Direction::counters).unwrap_or_default()
    }

    fn backlog(&self, from: Port) -> Backlog {
        self.directions.get(usize::from(from.0)).map(Direction::waiting).unwrap_or_default()
    }

    fn end_measurement(&mut self, at: Time) {
        self.directions.iter_mut().for_each(|direction| direction.end_measurement(at));
    }

    fn figures(&self, over: Duration) -> Vec<Figure> {
        let directions = (0..).map(Port).zip(&self.directions);
        let figures = directions.flat_map(|(port, direction)| {
            direction.figures(over).map(move |(name, amount)| Figure { station: Some(port), name, amount })
        });
        figures.collect()
    }
}
