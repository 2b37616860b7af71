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
use trunkline_core::{Bytes, Duration, Packet, PacketId, Port, Rate, Seed, Time};

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
    doc: "One or more ATM virtual channels between two hosts (ATM Forum Traffic Management 4.0; ITU-T \
          I.363.5). Packets are segmented into cells of 53 B with 48 B of payload (AAL5), shaped at the \
          source, policed at the network's entry, and queued in a switch in front of its output line. A \
          packet arrives with its last cell, if no cell is missing. Rates are cell rates, with cell \
          headers. Impairments act on whole packets, after the output line.",
    parameters: &[
        Parameter {
            name: "vc",
            kind: Kind::Choice(&[
                Choice {
                    name: "bundle",
                    doc: "All packets share one channel, in the order of `queue`. The first cell of a packet \
                          follows the last cell of the previous packet.",
                },
                Choice {
                    name: PER_FLOW,
                    doc: "Each member of a flow has its own channel, with its own shaper, policer and FIFO \
                          (`vc-limit`). Cells of different channels are interleaved on the line. `queue` \
                          does not apply.",
                },
            ]),
            default: Preset::Text("bundle"),
            doc: "Assignment of packets to virtual channels.",
        },
        Parameter {
            name: "vc-limit",
            kind: Kind::Limit,
            default: Preset::Text("100 packets"),
            doc: "With `vc = \"flow\"`, the maximum backlog of a channel, without the packet being sent.",
        },
        Parameter {
            name: "line",
            kind: RATES,
            default: Preset::Text("149.76 Mbit/s"),
            doc: "Cell rate of the host's line. OC-3c: 149.76 Mbit/s (of 155.52, the rest is SONET \
                  overhead); DS3: 44.21 Mbit/s, or 40.704 with PLCP.",
        },
        Parameter {
            name: "shape-pcr",
            kind: RATES,
            default: Preset::Absent,
            doc: "Peak cell rate of the shaper at the source. Without this key, that of the line.",
        },
        Parameter {
            name: "shape-scr",
            kind: RATES,
            default: Preset::Absent,
            doc: "Sustainable cell rate of the shaper. Without this key, only the peak rate is shaped.",
        },
        Parameter {
            name: "shape-mbs",
            kind: CELLS,
            default: Preset::Text("1"),
            doc: "With `shape-scr`, the number of cells that may be sent at the peak rate after a pause.",
        },
        Parameter {
            name: "pcr",
            kind: RATES,
            default: Preset::Absent,
            doc: "Peak cell rate of the traffic contract, which the network polices. Without this key, the \
                  peak is not policed.",
        },
        Parameter {
            name: "cdvt",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(10) },
            default: Preset::Text("250 us"),
            doc: "Cell delay variation tolerance: how much earlier than at the peak rate a cell may arrive.",
        },
        Parameter {
            name: "scr",
            kind: RATES,
            default: Preset::Absent,
            doc: "Sustainable cell rate of the traffic contract, policed with the tolerance of `mbs` and \
                  `cdvt`. Without this key, it is not policed.",
        },
        Parameter {
            name: "mbs",
            kind: CELLS,
            default: Preset::Text("1"),
            doc: "Maximum burst size of the traffic contract: the number of cells at `pcr` (without it, at \
                  `line`) that conform to `scr`.",
        },
        Parameter {
            name: "policing",
            kind: Kind::Choice(&[
                Choice { name: "pass", doc: "Nonconforming cells are only counted." },
                Choice {
                    name: "tag",
                    doc: "The cell loss priority of nonconforming cells is set to 1: a switch drops them \
                          first (`clp-threshold`).",
                },
                Choice { name: "discard", doc: "Nonconforming cells are discarded." },
            ]),
            default: Preset::Text("discard"),
            doc: "Treatment of nonconforming cells.",
        },
        Parameter {
            name: "rate",
            kind: RATES,
            default: Preset::Text("149.76 Mbit/s"),
            doc: "Cell rate of the switch's output line.",
        },
        Parameter {
            name: "buffer",
            kind: CELLS,
            default: Preset::Text("1024"),
            doc: "Buffer of the switch in cells. A cell that arrives when it is full is lost.",
        },
        Parameter {
            name: "clp-threshold",
            kind: CELLS,
            default: Preset::Absent,
            doc: "Buffer occupancy in cells at which tagged cells are dropped. Without this key, they are \
                  dropped when the buffer is full.",
        },
        Parameter {
            name: "epd",
            kind: CELLS,
            default: Preset::Absent,
            doc: "Early packet discard: buffer occupancy in cells at which the whole packet of an arriving \
                  first cell is discarded (Romanow and Floyd 1995). Without this key, there is no early \
                  discard.",
        },
        Parameter {
            name: "ppd",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Partial packet discard: when the policer or a full buffer discards a cell, the rest of its \
                  packet is discarded too, except the last cell, which tells the receiver where the next \
                  packet begins.",
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
            doc: "Encapsulation in front of a packet: LLC/SNAP 8 B, or none if the channel carries a single \
                  protocol (RFC 2684). Together with the AAL5 trailer of 8 B, the packet is padded to \
                  whole cells.",
        },
        Parameter {
            name: "observe",
            kind: Kind::Integer { min: 0, max: u32::MAX as u64 },
            default: Preset::Text("0"),
            doc: "A member of a flow whose cells are also recorded individually, as a test set records one \
                  connection. Members are numbered from 0 over all flows in the order of the file.",
        },
    ],
    needs: &[("shape-mbs", "shape-scr"), ("mbs", "scr")],
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

    fn behind_the_line(&self, visit: &mut dyn FnMut(&Packet)) {
        self.directions.iter().for_each(|direction| direction.begun(visit));
    }

    fn under_way(&self, from: Port, at: Time) -> Option<(PacketId, f64)> {
        self.directions[usize::from(from.0)].under_way(at)
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
