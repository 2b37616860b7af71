//! The T1 trunk of a Datakit node (Hawley 1989): a board with a processor, its FIFOs, and LAPD-like frames on the line.
//!
//! On its way through a node a packet is cut into chunks. It comes off the backplane in packets of 16 envelopes into the
//! board's input FIFO, is carried into memory by the processor, waits there in the queue (which sees chunks, each with
//! its packet's flow: a channel), is carried on into the output FIFO, and leaves from there in frames: each holds data of
//! one channel only, and costs 8 bytes beside them. A chunk that begins to leave when one of its channel has just left
//! may join its frame, as long as that is not full: what waits together travels together.
//!
//! A board without a processor (the plain DSX1 board, whose queue is a hardware FIFO) is one whose costs and FIFOs are
//! zero: the line then takes chunks from the queue itself.

mod board;
mod frames;

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration, Packet, PacketId, Port, Rate, Seed, Time};

use crate::impairment::Impairments;
use crate::medium::{self, Medium, MediumCounters, MediumKind, Outcome, PortConfig};
use crate::queue::{Backlog, Queue};
use board::Board;

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "t1",
    doc: "A T1 trunk between two Datakit nodes (Hawley 1989 sections 1.3, 1.4 and 2.1). A board with a \
          processor and FIFOs splits packets into chunks, which wait in the queue and are sent in \
          LAPD-like frames of one channel (flow) each. The defaults describe the daughter board of the \
          study.",
    parameters: &[
        Parameter {
            name: "rate",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1_000),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Text("1.544 Mbit/s"),
            doc: "Bits per second on the line. One bit in 193 is used for synchronisation: 1.544 Mbit/s \
                  carry 192,000 B/s.",
        },
        Parameter {
            name: "delay",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
            default: Preset::Text("0 ms"),
            doc: "Propagation delay, one way: about 5 us per km of copper.",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes(68), max: Bytes(65_535) },
            default: Preset::Text("65535 B"),
            doc: "The largest packet; a larger one is dropped. Packets are split into frames as needed.",
        },
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(64) },
            default: Preset::Text("8 B"),
            doc: "Framing of each frame: 2 flags, 2 bytes of CRC, 2 of control and protocol, 2 of channel \
                  number.",
        },
        Parameter {
            name: "frame",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(65_535) },
            default: Preset::Text("256 B"),
            doc: "Maximum data per frame, all of one channel.",
        },
        Parameter {
            name: "join",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Whether consecutive chunks of one channel share a frame.",
        },
        Parameter {
            name: "chunk",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(65_535) },
            default: Preset::Text("64 B"),
            doc: "Size of a chunk, the unit that the board handles; a multiple of the 16 B of a backplane \
                  packet.",
        },
        Parameter {
            name: "input",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1 << 20) },
            default: Preset::Text("4 KB"),
            doc: "Size of the input FIFO, in envelopes. A chunk that arrives when it is full is dropped with \
                  the rest of its packet. 0: no limit.",
        },
        Parameter {
            name: "output",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1 << 20) },
            default: Preset::Text("1 KB"),
            doc: "Size of the output FIFO, in envelopes; 2 envelopes before each chunk hold the channel \
                  number. 0: none, the line takes chunks directly from the queue.",
        },
        Parameter {
            name: "backplane",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1_000),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Text("6.4 Mbit/s"),
            doc: "Rate of the backplane: 800,000 envelopes/s of 8 data bits each. Each backplane packet has \
                  2 envelopes of channel number and 16 of data.",
        },
        Parameter {
            name: "cost-in",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) },
            default: Preset::Text("1413 ns"),
            doc: "Processor time per envelope from the input FIFO to memory: 22.6 cycles of 62.5 ns.",
        },
        Parameter {
            name: "cost-out",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) },
            default: Preset::Text("1231 ns"),
            doc: "Processor time per envelope from memory to the output FIFO: 19.7 cycles of 62.5 ns.",
        },
    ],
    needs: &[],
    shared: &[],
    stations: medium::TWO,
    build: |_, ports, seed| Box::new(T1Link::new(medium::two(ports).map(T1Config::from), seed)),
};

/// One direction of a T1 trunk.
pub struct T1Config {
    /// The place in the experiment, from which random streams are named: `link.trunk/a-b`.
    pub place: String,
    /// Bits per second on the line, synchronisation included.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// The largest packet.
    pub mtu: Bytes,
    /// What a frame costs beside its data.
    pub overhead: Bytes,
    /// The most data in a frame.
    pub frame: Bytes,
    /// Whether chunks of a channel that follow each other join in one frame.
    pub join: bool,
    /// How much of a packet is handled at a time.
    pub chunk: Bytes,
    /// The input FIFO in envelopes; zero: without limit.
    pub input: Bytes,
    /// The output FIFO in envelopes; zero: none.
    pub output: Bytes,
    /// Envelopes off the backplane, at 8 bits each.
    pub backplane: Rate,
    /// Processor time per envelope into memory.
    pub cost_in: Duration,
    /// Processor time per envelope out of memory.
    pub cost_out: Duration,
    /// The queue in memory, empty. It holds chunks.
    pub queue: Box<dyn Queue>,
    /// What happens to packets behind the line.
    pub impairments: Impairments,
}

impl From<PortConfig<'_>> for T1Config {
    /// # Panics
    /// If the values are not those of this medium's parameters: a mistake in the program, never in a file.
    fn from(port: PortConfig<'_>) -> T1Config {
        let values = port.values;
        T1Config {
            place: port.place,
            rate: values.rate("rate"),
            delay: values.duration("delay"),
            mtu: values.bytes("mtu"),
            overhead: values.bytes("overhead"),
            frame: values.bytes("frame"),
            join: values.flag("join"),
            chunk: values.bytes("chunk"),
            input: values.bytes("input"),
            output: values.bytes("output"),
            backplane: values.rate("backplane"),
            cost_in: values.duration("cost-in"),
            cost_out: values.duration("cost-out"),
            queue: port.queue,
            impairments: port.impairments,
        }
    }
}

/// A T1 trunk: a board and a line in each direction.
///
/// A packet's delivery is handed out when its last chunk begins to leave; a drop when any of its chunks is dropped, and
/// the others still travel for nothing.
#[derive(Debug)]
pub struct T1Link {
    boards: [Board; 2],
}

impl T1Link {
    /// The trunk whose first direction leads from port 0 to port 1 and whose second leads back.
    pub fn new(directions: [T1Config; 2], seed: Seed) -> T1Link {
        let [there, back] = directions;
        T1Link { boards: [Board::new(there, Port(1), seed), Board::new(back, Port(0), seed)] }
    }
}

impl Medium for T1Link {
    /// # Panics
    /// If the trunk has no port `from`: a mistake in the driver.
    fn offer(&mut self, at: Time, from: Port, packet: Packet, out: &mut Outcome) {
        self.advance(at, out);
        self.boards[usize::from(from.0)].offer(at, packet, out);
    }

    fn advance(&mut self, to: Time, out: &mut Outcome) {
        // The directions share nothing but the outcome.
        loop {
            let [there, back] = &mut self.boards;
            let next = if back.next() < there.next() { back } else { there };
            let at = next.next();
            if at > to || at == Time::MAX {
                return;
            }
            next.step(at, out);
        }
    }

    fn next_event(&self) -> Option<Time> {
        let next = self.boards[0].wake().min(self.boards[1].wake());
        (next != Time::MAX).then_some(next)
    }

    fn counters(&self, from: Port) -> MediumCounters {
        self.boards.get(usize::from(from.0)).map(Board::counters).unwrap_or_default()
    }

    fn behind_the_line(&self, visit: &mut dyn FnMut(&Packet)) {
        self.boards.iter().flat_map(Board::begun).for_each(visit);
    }

    fn under_way(&self, from: Port, at: Time) -> Option<(PacketId, f64)> {
        self.boards[usize::from(from.0)].under_way(at)
    }

    fn end_measurement(&mut self, at: Time) {
        self.boards.iter_mut().for_each(|board| board.end_measurement(at));
    }

    fn backlog(&self, from: Port) -> Backlog {
        self.boards.get(usize::from(from.0)).map(Board::waiting).unwrap_or_default()
    }
}
