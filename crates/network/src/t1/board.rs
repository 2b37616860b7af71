//! One direction of the trunk: from the backplane through input FIFO, memory and output FIFO to the line.

use std::collections::VecDeque;

use trunkline_core::{Address, Bytes, Duration, Ecn, FlowId, Packet, PacketId, Port, Rate, Seed, Time};

use super::T1Config;
use super::frames::Frames;
use crate::fate::{DropCause, Fate, Fates};
use crate::impairment::Stage;
use crate::medium::{Delivery, MediumCounters, Outcome};
use crate::queue::{Backlog, Counted, Dequeued};

/// Data envelopes of a backplane packet.
const BACKPLANE_DATA: u64 = 16;
/// Its envelopes of channel number.
const BACKPLANE_NUMBER: u64 = 2;
/// Envelopes of channel number before a chunk in the output FIFO.
const CHANNEL_NUMBER: u64 = 2;

/// One direction.
#[derive(Debug)]
pub(super) struct Board {
    to: Port,
    mtu: Bytes,
    delay: Duration,
    chunk: u64,
    input_limit: u64,
    output_limit: u64,
    backplane: Rate,
    cost_in: u64,
    cost_out: u64,
    /// Packets of which something is still here, by slot; those of `free` are empty.
    packets: Vec<Passing>,
    free: Vec<u32>,
    /// Packets that are coming off the backplane, one after the other.
    arriving: VecDeque<u32>,
    /// When the next chunk of the first of them is here.
    arrival: Time,
    input: VecDeque<Chunk>,
    input_level: u64,
    memory: Counted,
    /// Before this time the queue hands nothing out.
    not_before: Time,
    output: VecDeque<Chunk>,
    output_level: u64,
    processor: Processor,
    frames: Frames,
    /// The chunk on the line, and when it is through.
    on_line: Option<(Time, u64)>,
    stage: Stage,
    counters: MediumCounters,
    fates: Fates,
}

/// A packet on its way through the board.
#[derive(Debug, Default)]
struct Passing {
    packet: Packet,
    /// Bytes that have not come off the backplane yet.
    to_come: u64,
    /// Chunks that have neither left nor been dropped, those to come among them.
    chunks: u64,
    /// A chunk was dropped, and the packet with it.
    dropped: bool,
}

/// A part of a packet.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    slot: u32,
    flow: FlowId,
    size: u64,
}

/// What the processor does, and until when.
#[derive(Clone, Copy, Debug)]
enum Processor {
    Idle,
    /// Carries a chunk from the input FIFO into memory.
    In(Time, Chunk),
    /// Carries a chunk from memory into the output FIFO.
    Out(Time, Chunk),
}

impl Board {
    pub(super) fn new(config: T1Config, to: Port, seed: Seed) -> Board {
        let chunk = config.chunk.count().max(1);
        let limit = |size: Bytes| if size == Bytes::ZERO { u64::MAX } else { size.count() };
        Board {
            to,
            mtu: config.mtu,
            delay: config.delay,
            chunk,
            input_limit: limit(config.input),
            // A FIFO in which no chunk has room would stop the trunk.
            output_limit: if config.output == Bytes::ZERO {
                0
            } else {
                config.output.count().max(chunk + CHANNEL_NUMBER)
            },
            backplane: config.backplane,
            cost_in: config.cost_in.as_nanos(),
            cost_out: config.cost_out.as_nanos(),
            packets: Vec::new(),
            free: Vec::new(),
            arriving: VecDeque::new(),
            arrival: Time::MAX,
            input: VecDeque::new(),
            input_level: 0,
            stage: Stage::new(&config.impairments, &config.place, seed),
            memory: Counted::new(config.queue),
            not_before: Time::ZERO,
            output: VecDeque::new(),
            output_level: 0,
            processor: Processor::Idle,
            frames: Frames::new(config.rate, config.overhead, config.frame, config.join),
            on_line: None,
            counters: MediumCounters::default(),
            fates: Fates::default(),
        }
    }

    /// Takes a packet, everything due up to `at` being done.
    pub(super) fn offer(&mut self, at: Time, packet: Packet, out: &mut Outcome) {
        self.counters.offered += 1;
        if packet.size > self.mtu {
            self.counters.dropped[DropCause::TooLarge.index()] += 1;
            out.fates.0.push(Fate::Dropped { at, packet, cause: DropCause::TooLarge });
            return;
        }
        let to_come = packet.size.count();
        let chunks = to_come.div_ceil(self.chunk).max(1);
        let passing = Passing { packet, to_come, chunks, dropped: false };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.packets[slot as usize] = passing;
                slot
            }
            None => {
                self.packets.push(passing);
                (self.packets.len() - 1) as u32
            }
        };
        self.arriving.push_back(slot);
        if self.arriving.len() == 1 {
            self.expect(at);
        }
    }

    /// When [`Self::step`] is next to be called; [`Time::MAX`] while nothing is here.
    pub(super) fn next(&self) -> Time {
        let mut next = self.arrival;
        if let Processor::In(until, _) | Processor::Out(until, _) = self.processor {
            next = next.min(until);
        }
        match self.on_line {
            Some((end, _)) => next.min(end),
            None if self.is_held() => next.min(self.not_before),
            None => next,
        }
    }

    /// When a driver has to come by: while the line is busy nothing is handed out before it is free again but what is
    /// dropped, and that says its own time.
    pub(super) fn wake(&self) -> Time {
        self.on_line.map_or_else(|| self.next(), |(end, _)| end)
    }

    /// Does what is due at `now`, departures first.
    pub(super) fn step(&mut self, now: Time, out: &mut Outcome) {
        if let Some((end, size)) = self.on_line
            && end <= now
        {
            self.on_line = None;
            if self.output_limit > 0 {
                self.output_level -= size + CHANNEL_NUMBER;
            }
        } else {
            match self.processor {
                Processor::In(until, chunk) if until <= now => {
                    self.processor = Processor::Idle;
                    self.input_level -= chunk.size;
                    self.remember(now, chunk, out);
                }
                Processor::Out(until, chunk) if until <= now => {
                    self.processor = Processor::Idle;
                    self.output.push_back(chunk);
                }
                _ if self.arrival <= now => self.arrive(now, out),
                _ => {} // the queue may hand out again
            }
        }
        self.work(now, out);
        // What leaves at once has not waited.
        let waiting = self.memory.waiting();
        self.counters.backlog_max = self.counters.backlog_max.max(waiting.bytes);
        self.counters.backlog_packets_max = self.counters.backlog_packets_max.max(waiting.packets);
    }

    pub(super) fn waiting(&self) -> Backlog {
        self.memory.waiting()
    }

    pub(super) fn counters(&self) -> MediumCounters {
        let queue = self.memory.counters();
        MediumCounters {
            marked: queue.marked,
            dequeued: queue.dequeued,
            sojourn_total: queue.sojourn_total,
            sojourns: queue.sojourns.clone(),
            ..self.counters.clone()
        }
    }

    /// Whether chunks wait that the queue does not hand out yet.
    fn is_held(&self) -> bool {
        self.memory.waiting().packets > 0 && self.not_before > Time::ZERO
    }

    /// Waits for the next chunk of the first packet on the backplane.
    fn expect(&mut self, now: Time) {
        let Some(&slot) = self.arriving.front() else {
            self.arrival = Time::MAX;
            return;
        };
        let size = self.packets[slot as usize].to_come.min(self.chunk);
        let envelopes = size + BACKPLANE_NUMBER * size.div_ceil(BACKPLANE_DATA);
        self.arrival = now + self.backplane.time_for(Bytes(envelopes));
    }

    /// A chunk is here.
    fn arrive(&mut self, now: Time, out: &mut Outcome) {
        let Some(&slot) = self.arriving.front() else { return };
        let passing = &mut self.packets[slot as usize];
        let size = passing.to_come.min(self.chunk);
        passing.to_come -= size;
        let chunk = Chunk { slot, flow: passing.packet.flow, size };
        if passing.to_come == 0 {
            self.arriving.pop_front();
        }
        self.expect(now);
        if self.input_level + size > self.input_limit {
            self.lose(now, slot, DropCause::InputFull, out);
            return;
        }
        self.input_level += size;
        self.input.push_back(chunk);
    }

    /// Lets processor and line begin what they can.
    fn work(&mut self, now: Time, out: &mut Outcome) {
        loop {
            if self.on_line.is_none() {
                let next = match self.output_limit {
                    0 => self.dequeue(now, out),
                    _ => self.output.pop_front(),
                };
                if let Some(chunk) = next {
                    self.transmit(now, chunk, out);
                }
            }
            if !matches!(self.processor, Processor::Idle) {
                return;
            }
            // The program favours filling the output FIFO (section 4.1.2).
            let room = self.output_level + self.chunk + CHANNEL_NUMBER <= self.output_limit;
            if room && let Some(chunk) = self.dequeue(now, out) {
                self.output_level += chunk.size + CHANNEL_NUMBER;
                if self.cost_out > 0 {
                    let cost = Duration::from_nanos(self.cost_out * (chunk.size + CHANNEL_NUMBER));
                    self.processor = Processor::Out(now + cost, chunk);
                } else {
                    self.output.push_back(chunk);
                }
            } else if let Some(chunk) = self.input.pop_front() {
                if self.cost_in > 0 {
                    let cost = Duration::from_nanos(self.cost_in * chunk.size);
                    self.processor = Processor::In(now + cost, chunk);
                } else {
                    self.input_level -= chunk.size;
                    self.remember(now, chunk, out);
                }
            } else {
                return;
            }
        }
    }

    /// Puts a chunk into memory: as a packet of its own, without the bytes, whose address is its slot.
    fn remember(&mut self, now: Time, chunk: Chunk, out: &mut Outcome) {
        let whole = &self.packets[chunk.slot as usize].packet;
        let part = Packet {
            id: whole.id,
            flow: chunk.flow,
            size: Bytes(chunk.size),
            ecn: whole.ecn,
            priority: whole.priority,
            backward: whole.backward,
            hop: whole.hop,
            from: Address { host: (chunk.slot >> 16) as u16, port: chunk.slot as u16 },
            ..Packet::default()
        };
        self.memory.enqueue(now, part, &mut self.fates);
        self.settle(out);
    }

    /// The chunk that the queue hands out now.
    fn dequeue(&mut self, now: Time, out: &mut Outcome) -> Option<Chunk> {
        if self.memory.waiting().packets == 0 || self.not_before > now {
            return None;
        }
        self.not_before = Time::ZERO;
        let dequeued = self.memory.dequeue(now, &mut self.fates);
        self.settle(out);
        match dequeued {
            Dequeued::Packet(part) => {
                let slot = slot_of(&part);
                if part.ecn == Ecn::CongestionExperienced {
                    self.packets[slot as usize].packet.ecn = part.ecn;
                }
                Some(Chunk { slot, flow: part.flow, size: part.size.count() })
            }
            Dequeued::Empty => None,
            Dequeued::NotBefore(time) => {
                self.not_before = time.max(now + Duration::from_nanos(1));
                None
            }
        }
    }

    /// The packets that the line has transmitted in part, with the bytes that this took.
    pub(super) fn begun(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().map(|passing| &passing.packet).filter(|packet| packet.on_line > Bytes::ZERO)
    }

    /// The packet whose chunk is on the line at `at`, and the share of what was transmitted of it that is still to come.
    pub(super) fn under_way(&self, at: Time) -> Option<(PacketId, f64)> {
        self.counters.busy.under_way(at)
    }

    /// Transmissions do not count as busy time any more.
    pub(super) fn end_measurement(&mut self, at: Time) {
        self.counters.busy.end(at);
    }

    /// Puts a chunk on the line; with the last of a packet its delivery is known.
    fn transmit(&mut self, now: Time, chunk: Chunk, out: &mut Outcome) {
        let (end, busy, on_line) = self.frames.transmit(now, chunk.flow, chunk.size);
        self.on_line = Some((end, chunk.size));
        self.counters.transmitted += on_line;
        self.counters.busy.add(end, busy);
        let whole = &mut self.packets[chunk.slot as usize].packet;
        whole.on_line += on_line;
        self.counters.busy.carries(whole.id, on_line.count() as f64 / whole.on_line.count() as f64);
        let Some(mut packet) = self.part_with(chunk.slot, out) else { return };
        let passage = self.stage.pass(end + self.delay, &mut packet);
        if passage.lost {
            self.counters.dropped[DropCause::LinkLoss.index()] += 1;
            out.fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::LinkLoss });
            return;
        }
        self.counters.delivered += 1;
        self.counters.corrupted += u64::from(passage.corrupted);
        self.counters.reordered += u64::from(passage.overtakes);
        let copy = passage.duplicated.then(|| packet.clone());
        out.deliveries.push(Delivery { at: passage.arrival, to: self.to, packet });
        if let Some(packet) = copy {
            self.counters.duplicated += 1;
            out.deliveries.push(Delivery { at: passage.arrival, to: self.to, packet });
        }
    }

    /// Takes what the queue said of chunks for what it means to their packets.
    fn settle(&mut self, out: &mut Outcome) {
        if self.fates.0.is_empty() {
            return;
        }
        let mut fates = core::mem::take(&mut self.fates);
        for fate in fates.0.drain(..) {
            match fate {
                Fate::Dropped { at, packet: part, cause } => self.lose(at, slot_of(&part), cause, out),
                marked @ Fate::Marked { .. } => out.fates.0.push(marked),
            }
        }
        self.fates = fates;
    }

    /// Drops a chunk, and its packet unless another of its chunks was dropped before.
    fn lose(&mut self, at: Time, slot: u32, cause: DropCause, out: &mut Outcome) {
        let passing = &mut self.packets[slot as usize];
        if !passing.dropped {
            passing.dropped = true;
            let mut packet = core::mem::take(&mut passing.packet);
            // Chunks that are still to come belong to the channel all the same, and take their part of the line.
            let bytes = core::mem::take(&mut packet.bytes);
            passing.packet = Packet { on_line: Bytes::ZERO, ..packet.clone() };
            packet.bytes = bytes;
            self.counters.dropped[cause.index()] += 1;
            out.fates.0.push(Fate::Dropped { at, packet, cause });
        }
        self.part_with(slot, out);
    }

    /// One chunk of a packet is gone; with the last the packet, if it was not dropped.
    fn part_with(&mut self, slot: u32, out: &mut Outcome) -> Option<Packet> {
        let passing = &mut self.packets[slot as usize];
        passing.chunks -= 1;
        if passing.chunks > 0 {
            return None;
        }
        self.free.push(slot);
        let Passing { packet, dropped, .. } = core::mem::take(passing);
        if !dropped {
            return Some(packet);
        }
        if packet.on_line > Bytes::ZERO {
            out.carried.push(packet);
        }
        None
    }
}

/// The slot of the packet to which a chunk in memory belongs.
fn slot_of(part: &Packet) -> u32 {
    u32::from(part.from.host) << 16 | u32::from(part.from.port)
}
