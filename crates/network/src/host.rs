//! What a host costs: processor time per message, packet and byte, and how its operating system hands messages over.
//!
//! The published machines of 1989 to 2012 are profiles of these parameters: data, not code. Only the simulator has a
//! use for them; in `wire` and `live` hosts are real.

#[cfg(test)]
mod tests;

use trunkline_core::distribution::Sampler;
use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Seed, Stream, Time};

/// The longest cost that makes sense.
const MOST: Duration = Duration::from_secs(10);
const TIME: Kind = Kind::Duration { min: Duration::ZERO, max: MOST };
const SIZE: Kind = Kind::Bytes { min: Bytes(1), max: Bytes(1 << 24) };

/// What a host, or a profile of hosts, may be told. Without any of it a host costs nothing.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "send-message",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Processor time to pass a message to the transport: the system call and the wake-ups that it causes.",
    },
    Parameter {
        name: "send-packet",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Processor time to send a packet.",
    },
    Parameter {
        name: "send-byte",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Processor time per byte of a packet to send.",
    },
    Parameter {
        name: "receive-packet",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Processor time to receive a packet, after its last byte has arrived.",
    },
    Parameter {
        name: "receive-byte",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Processor time per byte of a received packet. An idle processor reads while the packet arrives and \
              finishes with its last byte; a busy one catches up at this rate (an interface without DMA).",
    },
    Parameter {
        name: "receive-message",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Processor time to deliver a message to the application: the wake-up and the system call. Messages wait for it \
              after the transport has delivered them: no window closes and no buffer fills meanwhile.",
    },
    Parameter {
        name: "receive-group",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Additional processor time to receive a packet for several hosts: determining its owner without help \
              from the interface.",
    },
    Parameter {
        name: "interface-packet",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Time that a packet takes in the network interface, each way, while the processor does something else. The \
              interface works on one packet at a time in each direction.",
    },
    Parameter {
        name: "interface-byte",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Time in the network interface per byte of a packet.",
    },
    Parameter {
        name: "clock",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Resolution of the clock that timestamps the host's messages. Without this key the clock is exact.",
    },
    Parameter {
        name: "noise",
        kind: Kind::Durations { min: Duration::ZERO, max: MOST },
        default: Preset::Absent,
        doc: "Additional random processor time for every piece of a message that is sent.",
    },
    Parameter {
        name: "receive-noise",
        kind: Kind::Durations { min: Duration::ZERO, max: MOST },
        default: Preset::Absent,
        doc: "Additional random processor time for every received packet.",
    },
    Parameter {
        name: "interruptions",
        kind: Kind::Ratio,
        default: Preset::Text("0 %"),
        doc: "The share of messages that find the host busy with something else when they are sent, for the time \
              `interruption`.",
    },
    Parameter {
        name: "interruption",
        kind: Kind::Durations { min: Duration::ZERO, max: MOST },
        default: Preset::Absent,
        doc: "Time for which the host is busy with something else.",
    },
    Parameter {
        name: "send-buffer",
        kind: SIZE,
        default: Preset::Absent,
        doc: "Size of a datagram socket's send buffer: the process blocks while this much or more waits for the \
              line. Without this key, packets that find the link's queue full are dropped there.",
    },
    Parameter {
        name: "send-buffer-block",
        kind: SIZE,
        default: Preset::Text("1 B"),
        doc: "Size of the blocks in which packets occupy `send-buffer`: a packet takes whole blocks.",
    },
    Parameter {
        name: "stream-block",
        kind: SIZE,
        default: Preset::Absent,
        doc: "Largest piece in which messages are written to byte streams (the stream blocks of Version 9 Unix). \
              Without this key, and with transports that preserve message boundaries, messages are written whole.",
    },
    Parameter {
        name: "large-stream-block",
        kind: SIZE,
        default: Preset::Absent,
        doc: "The same for messages of `large-from` and more.",
    },
    Parameter {
        name: "large-from",
        kind: SIZE,
        default: Preset::Text("512 B"),
        doc: "Size from which a message is put into large stream blocks.",
    },
    Parameter {
        name: "burst",
        kind: SIZE,
        default: Preset::Absent,
        doc: "The largest part of a stream block that the interface sends at once. Without this key, a whole block.",
    },
    Parameter {
        name: "stream-block-gap",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Time before each further stream block of a message: one block is passed per interrupt.",
    },
    Parameter {
        name: "burst-gap",
        kind: TIME,
        default: Preset::Text("0 s"),
        doc: "Time before each further burst of a stream block.",
    },
    Parameter {
        name: "one-burst-at-a-time",
        kind: Kind::Flag,
        default: Preset::Text("false"),
        doc: "Whether the interface accepts a burst only after the previous one has left completely.",
    },
];

/// A host at work: one processor that serves what it is given in order.
///
/// Every method is told the time and says when the work is done; time never decreases between calls. Work on packets and
/// messages takes `effort` times what the parameters say: protocols differ in it. What is drawn beside that does not.
#[derive(Debug)]
pub struct HostModel {
    send_message: Duration,
    send_packet: Duration,
    send_byte: u64,
    receive_packet: Duration,
    receive_byte: u64,
    receive_message: Duration,
    receive_group: Duration,
    interface_packet: Duration,
    interface_byte: u64,
    clock: u64,
    noise: Option<Sampler>,
    receive_noise: Option<Sampler>,
    interruptions: f64,
    interruption: Option<Sampler>,
    chance: Stream,
    send_buffer: Option<SendBuffer>,
    blocks: [Option<u64>; 2],
    large_from: u64,
    burst: Option<u64>,
    block_gap: Duration,
    burst_gap: Duration,
    one_at_a_time: bool,
    /// When the processor has done all that it was given.
    free: Time,
    /// When the interface has, with what comes in and with what goes out.
    interface_free: [Time; 2],
    costs: Costs,
}

/// Which kinds of work cost anything, so that drivers can pass by the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Messages are handed over late or in pieces.
    pub send_message: bool,
    /// Packets leave later than their transport sends them.
    pub send_packet: bool,
    /// Packets reach their transport later than they arrive.
    pub receive_packet: bool,
    /// Packets reach the processor later than they arrive.
    pub interface: bool,
    /// The clock goes in steps.
    pub clock: bool,
    /// Messages reach their application later than their transport has them.
    pub receive_message: bool,
}

/// The buffer of a datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendBuffer {
    /// From so many bytes on it takes nothing.
    limit: u64,
    /// A packet takes whole blocks of this.
    block: u64,
}

impl SendBuffer {
    /// How many bytes of it a packet takes.
    pub fn taken_by(self, size: Bytes) -> u64 {
        size.count().div_ceil(self.block).saturating_mul(self.block)
    }

    /// Whether the process that fills it is blocked while it holds so many bytes.
    pub fn is_full(self, bytes: u64) -> bool {
        bytes >= self.limit
    }
}

/// A piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How many bytes.
    pub length: usize,
    /// Time before it is handed over.
    pub gap: Duration,
}

impl HostModel {
    /// The host at `place` (`hosts.crab`), idle, from a value for every one of [`PARAMETERS`].
    ///
    /// # Panics
    /// If the values are not those of that table: a mistake in the program, never in a file.
    pub fn new(values: &Values, place: &str, seed: Seed) -> HostModel {
        let sampler = |name: &str| {
            let stream = seed.stream(&format!("{place}/{name}"));
            values.distribution_if_given(name).map(|distribution| distribution.sampler(stream))
        };
        let size = |name: &str| values.bytes_if_given(name).map(Bytes::count);
        let mut host = HostModel {
            send_message: values.duration("send-message"),
            send_packet: values.duration("send-packet"),
            send_byte: values.duration("send-byte").as_nanos(),
            receive_packet: values.duration("receive-packet"),
            receive_byte: values.duration("receive-byte").as_nanos(),
            receive_message: values.duration("receive-message"),
            receive_group: values.duration("receive-group"),
            interface_packet: values.duration("interface-packet"),
            interface_byte: values.duration("interface-byte").as_nanos(),
            clock: values.duration("clock").as_nanos(),
            noise: sampler("noise"),
            receive_noise: sampler("receive-noise"),
            interruptions: values.ratio("interruptions").value(),
            interruption: sampler("interruption"),
            chance: seed.stream(&format!("{place}/interruptions")),
            send_buffer: size("send-buffer")
                .map(|limit| SendBuffer { limit, block: values.bytes("send-buffer-block").count() }),
            blocks: [size("stream-block"), size("large-stream-block")],
            large_from: values.bytes("large-from").count(),
            burst: size("burst"),
            block_gap: values.duration("stream-block-gap"),
            burst_gap: values.duration("burst-gap"),
            one_at_a_time: values.flag("one-burst-at-a-time"),
            free: Time::ZERO,
            interface_free: [Time::ZERO; 2],
            costs: Costs::default(),
        };
        let interface = !host.interface_packet.is_zero() || host.interface_byte > 0;
        host.costs = Costs {
            send_message: !host.send_message.is_zero()
                || host.noise.is_some()
                || host.interruption.is_some()
                || host.blocks != [None, None]
                || host.burst.is_some(),
            send_packet: !host.send_packet.is_zero() || host.send_byte > 0 || interface,
            receive_packet: !host.receive_packet.is_zero()
                || host.receive_byte > 0
                || !host.receive_group.is_zero()
                || host.receive_noise.is_some(),
            interface,
            clock: host.clock > 0,
            receive_message: !host.receive_message.is_zero(),
        };
        host
    }

    /// What costs anything here.
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// What may wait for the line of a datagram socket, if that is limited.
    pub fn send_buffer(&self) -> Option<SendBuffer> {
        self.send_buffer
    }

    /// Whether a burst is taken only when nothing of the one before is on its way any more.
    pub fn one_burst_at_a_time(&self) -> bool {
        self.one_at_a_time
    }

    /// A message is to be handed over: when its first piece is.
    pub fn send_message(&mut self, now: Time, effort: f64) -> Time {
        let mut cost = times(self.send_message, effort) + drawn(&mut self.noise);
        if let Some(interruption) = &mut self.interruption
            && self.chance.chance(self.interruptions)
        {
            cost += Duration::from_nanos(interruption.draw());
        }
        self.work(now, cost)
    }

    /// The piece of a message of `length` bytes that follows the first `handed`. With nothing left it is empty.
    pub fn piece(&self, length: usize, handed: usize) -> Piece {
        let [small, large] = self.blocks;
        let block = if length as u64 >= self.large_from { large.or(small) } else { small };
        let block = block.map_or(usize::MAX, |block| usize::try_from(block).unwrap_or(usize::MAX));
        let in_block = handed % block;
        let burst = self.burst.map_or(usize::MAX, |burst| usize::try_from(burst).unwrap_or(usize::MAX));
        let gap = match (handed, in_block) {
            (0, _) => Duration::ZERO,
            (_, 0) => self.block_gap,
            _ => self.burst_gap,
        };
        Piece { length: length.saturating_sub(handed).min(block - in_block).min(burst), gap }
    }

    /// The piece after the first `handed` bytes of a message of `length` bytes may come: when it is handed over.
    pub fn send_piece(&mut self, now: Time, length: usize, handed: usize) -> Time {
        let gap = self.piece(length, handed).gap;
        match &self.noise {
            None if gap.is_zero() => now,
            _ => {
                let noise = drawn(&mut self.noise);
                self.work(now, gap + noise)
            }
        }
    }

    /// A packet is to be sent: when it leaves.
    pub fn send_packet(&mut self, now: Time, size: Bytes, effort: f64) -> Time {
        let bytes = Duration::from_nanos(self.send_byte.saturating_mul(size.count()));
        let at = self.work(now, times(self.send_packet + bytes, effort));
        self.pass_interface(at, size, 1)
    }

    /// A packet's last byte is here: when the interface gives it to the processor.
    pub fn receive_at_interface(&mut self, now: Time, size: Bytes) -> Time {
        self.pass_interface(now, size, 0)
    }

    /// The processor is given a packet: when its transport gets it. `is_group`: the packet is for several hosts.
    pub fn receive_packet(&mut self, now: Time, size: Bytes, is_group: bool, effort: f64) -> Time {
        let bytes = Duration::from_nanos(self.receive_byte.saturating_mul(size.count()));
        // What an idle processor has read while the packet came in is read by now.
        self.free = (self.free + bytes).max(now);
        let noise = drawn(&mut self.receive_noise);
        let group = if is_group { self.receive_group } else { Duration::ZERO };
        self.work(now, times(self.receive_packet, effort) + group + noise)
    }

    /// A message is complete: when its application has it.
    pub fn receive_message(&mut self, now: Time, effort: f64) -> Time {
        self.work(now, times(self.receive_message, effort))
    }

    /// What the host's clock says at this time, from its start.
    pub fn clock(&self, at: Time) -> Time {
        match at.since(Time::ZERO).as_nanos() {
            nanos if self.clock > 0 => Time::ZERO + Duration::from_nanos(nanos - nanos % self.clock),
            _ => at,
        }
    }

    fn pass_interface(&mut self, now: Time, size: Bytes, way: usize) -> Time {
        let bytes = Duration::from_nanos(self.interface_byte.saturating_mul(size.count()));
        let free = &mut self.interface_free[way];
        *free = now.max(*free) + self.interface_packet + bytes;
        *free
    }

    fn work(&mut self, now: Time, cost: Duration) -> Time {
        self.free = self.free.max(now) + cost;
        self.free
    }
}

fn times(duration: Duration, effort: f64) -> Duration {
    Duration::from_nanos((duration.as_nanos() as f64 * effort) as u64)
}

fn drawn(sampler: &mut Option<Sampler>) -> Duration {
    sampler.as_mut().map_or(Duration::ZERO, |sampler| Duration::from_nanos(sampler.draw()))
}
