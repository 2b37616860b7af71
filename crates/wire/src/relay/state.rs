//! The relay without clock, devices and threads: frames and times in, frames out.

use std::collections::{BTreeSet, VecDeque};

use trunkline_core::{Address, Bytes, Destination, Duration, Ecn, Packet, PacketId, Port, Time};
use trunkline_network::{Delivery, DropCause, Fate, Medium, Outcome};

use super::command::{Capture, LINK_DOWN};
use super::counters::{PortCounters, RelayCounters, Volume};
use super::due::Due;
use super::flows::Flows;
use super::header::{self, Header};
use super::stations::Stations;
use super::too_big;
use crate::device::{Frame, Layer};

/// Room that a buffer has beyond the largest frame expected.
const SLACK: usize = 64;
/// Buffers that are kept for later frames: more than wait in a usual queue.
const MOST_BUFFERS: usize = 1 << 14;
/// How often a station is told at most that its packets are too big.
const TOO_BIG_INTERVAL: Duration = Duration::from_millis(1);

/// What a relay is made for.
pub struct CoreConfig {
    /// The medium, empty.
    pub medium: Box<dyn Medium>,
    /// What the devices' frames are.
    pub layer: Layer,
    /// How to find out whom a frame is for.
    pub stations: Stations,
    /// By port: the largest packet that may enter there.
    pub mtus: Vec<u32>,
}

/// Drives a medium at logical times: whatever moments it is called at, the same frames with the same stamps have the same
/// fates and leave in the same order, only later.
///
/// Three steps, again and again: [`Self::take`] for frames that have arrived, port by port in the order of their stamps;
/// [`Self::run`]; [`Self::leaving`] for every port.
///
/// A packet's number is the nanosecond at which it arrived, or the next that is free: it is unique, and tells how long the
/// packet was on its way.
pub struct RelayCore {
    config: CoreConfig,
    ports: Vec<PortState>,
    flows: Flows,
    outcome: Outcome,
    buffers: Buffers,
    /// The link's virtual time: everything up to it is decided.
    now: Time,
    next_id: u64,
    /// The last packet for one station that came out of the medium.
    last_out: PacketId,
    /// Packets for several stations of which no copy has come out of the medium.
    copied: BTreeSet<PacketId>,
    up: bool,
    capture: Option<Box<dyn Capture>>,
}

#[derive(Default)]
struct PortState {
    /// Has arrived, and waits until virtual time has come so far.
    arrived: VecDeque<Frame>,
    /// The stamp of the last that was taken.
    last: Time,
    /// Whether more may have arrived before than was taken.
    more: bool,
    due: Due,
    counters: PortCounters,
    told_too_big: Time,
}

impl RelayCore {
    /// A link that nothing has entered yet, at time zero.
    pub fn new(config: CoreConfig) -> RelayCore {
        RelayCore {
            ports: config.mtus.iter().map(|_| PortState::default()).collect(),
            flows: Flows::default(),
            outcome: Outcome::default(),
            buffers: Buffers::new(config.mtus.iter().copied().max().unwrap_or_default() as usize),
            now: Time::ZERO,
            // Zero is nobody's.
            next_id: 1,
            last_out: PacketId(0),
            copied: BTreeSet::new(),
            up: true,
            capture: None,
            config,
        }
    }

    /// Takes a frame that has arrived at `port`.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn take(&mut self, port: Port, frame: Frame) {
        self.ports[usize::from(port.0)].take(frame);
    }

    /// Says whether frames may still be there that arrived at `port` before those that were not taken yet: then virtual
    /// time waits for them. After the last frame of a batch.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn set_more(&mut self, port: Port, more: bool) {
        self.ports[usize::from(port.0)].more = more;
    }

    /// Does everything that is due up to `now`, a moment before the devices were last asked, or up to as much of it as is
    /// known.
    pub fn run(&mut self, now: Time) {
        // Several frames may bear one stamp.
        let known = |port: &PortState| Time::from_nanos(port.last.as_nanos().saturating_sub(1));
        let unknown = self.ports.iter().filter(|port| port.more).map(known);
        let until = unknown.fold(now, Time::min).max(self.now);
        while let Some(port) = self.first_arrived(until) {
            let Some(frame) = self.ports[port].arrived.pop_front() else { break };
            // What the devices' kernel had before, but showed late.
            self.now = frame.at.max(self.now);
            self.enter(Port(port as u16), frame.bytes);
        }
        self.now = until;
        self.config.medium.advance(until, &mut self.outcome);
        self.settle();
    }

    /// Moves frames that are due at `port` by now to `out`, in the order in which they leave, at most `most`.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn leaving(&mut self, port: Port, most: usize, out: &mut Vec<Frame>) {
        let place = usize::from(port.0);
        while out.len() < most
            && let Some((at, packet)) = self.ports[place].due.pop(self.now)
        {
            if let Some(frame) = self.leave(port, at, packet) {
                out.push(frame);
            }
        }
    }

    /// When something is to be done, if no frame arrives: later than virtual time, or frames wait to leave.
    pub fn next_event(&self) -> Option<Time> {
        let of_port = |port: &PortState| {
            let arrived = port.arrived.front().map(|frame| frame.at);
            arrived.into_iter().chain(port.due.next()).min()
        };
        self.ports.iter().filter_map(of_port).chain(self.config.medium.next_event()).min()
    }

    /// Takes the link down or up from virtual time on.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    /// Shows every packet from now on to this capture, or to none.
    pub fn set_capture(&mut self, capture: Option<Box<dyn Capture>>) {
        self.capture = capture;
    }

    /// Tells the capture that all up to virtual time has been seen. After frames have left.
    pub(super) fn pass(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.passed(self.now);
        }
    }

    /// Lets `change` work on the medium at virtual time.
    pub fn change(&mut self, change: impl FnOnce(Time, &mut dyn Medium, &mut Outcome)) {
        change(self.now, &mut *self.config.medium, &mut self.outcome);
        self.settle();
    }

    /// Counts frames that never came here, or that the station at `port` did not take.
    pub(super) fn count_lost(&mut self, port: Port, overflowed: u64, refused: u64) {
        let counters = &mut self.ports[usize::from(port.0)].counters;
        counters.overflowed += overflowed;
        counters.refused += refused;
    }

    /// What was counted so far.
    pub fn counters(&self) -> RelayCounters {
        let of_port = |(port, state): (u16, &PortState)| {
            let medium = self.config.medium.counters(Port(port));
            let gone = medium.delivered + medium.dropped.iter().sum::<u64>();
            let packets = (medium.offered + medium.copied).saturating_sub(gone);
            // Copies for several stations count once on their way in, and not all of their ways out are seen here.
            let bytes = if packets == 0 { Bytes::ZERO } else { state.counters.waiting.bytes };
            PortCounters { medium, waiting: Volume { packets, bytes }, ..state.counters.clone() }
        };
        RelayCounters {
            at: self.now,
            up: self.up,
            ports: (0..).zip(&self.ports).map(of_port).collect(),
            flows: self.flows.counters(),
            flows_forgotten: self.flows.forgotten(),
        }
    }

    /// How many stations there are.
    pub(super) fn stations(&self) -> usize {
        self.ports.len()
    }

    /// Buffers for frames to come, and where those that come to `port` go.
    pub(super) fn intake(&mut self, port: Port) -> (&mut Buffers, Intake<'_>) {
        (&mut self.buffers, Intake(&mut self.ports[usize::from(port.0)]))
    }

    /// Takes the buffers of frames that have left.
    pub(super) fn recycle(&mut self, frames: &mut Vec<Frame>) {
        frames.drain(..).for_each(|frame| self.buffers.put(frame.bytes));
    }

    /// The port at which the first frame has arrived of those that had by `until`.
    #[inline]
    fn first_arrived(&self, until: Time) -> Option<usize> {
        let heads =
            self.ports.iter().enumerate().filter_map(|(place, port)| Some((port.arrived.front()?.at, place)));
        heads.min().filter(|&(at, _)| at <= until).map(|(_, place)| place)
    }

    /// Offers a frame to the medium at virtual time.
    fn enter(&mut self, port: Port, bytes: Vec<u8>) {
        let header = Header::read(self.config.layer, &bytes);
        let size = header.size(&bytes);
        let id = PacketId(self.next_id.max(self.now.as_nanos()));
        self.next_id = id.0 + 1;
        if let Some(capture) = &mut self.capture {
            capture.arrived(self.now, port, id, &bytes);
        }
        let state = &mut self.ports[usize::from(port.0)];
        if !self.up {
            state.counters.cut += 1;
            if let Some(capture) = &mut self.capture {
                capture.dropped(self.now, port, id, &bytes, LINK_DOWN);
            }
            return self.buffers.put(bytes);
        }
        let (flow, backward) = self.flows.classify(self.now, header.key.as_ref());
        state.counters.offered.add(size);
        state.counters.waiting.add(size);
        if let Some(direction) = self.flows.direction(flow, backward) {
            direction.offered.add(size);
        }
        let packet = Packet {
            id,
            flow,
            size,
            ecn: header.ecn,
            priority: header.urgency,
            backward,
            to: self.config.stations.destination(port, &bytes, &header),
            from: Address { host: port.0, port: 0 },
            headers: u16::try_from(header.transport).unwrap_or(u16::MAX),
            bytes,
            ..Packet::default()
        };
        if self.has_copies(&packet) {
            self.copied.insert(id);
        }
        self.config.medium.offer(self.now, port, packet, &mut self.outcome);
        self.settle();
    }

    /// True if the medium makes copies of a packet, whose fates it decides one by one.
    fn has_copies(&self, packet: &Packet) -> bool {
        packet.to == Destination::Everyone && self.ports.len() > 2
    }

    /// True unless a copy of the packet has come out of the medium before.
    fn is_first(&mut self, packet: &Packet) -> bool {
        match self.has_copies(packet) {
            true => self.copied.remove(&packet.id),
            false => core::mem::replace(&mut self.last_out, packet.id) != packet.id,
        }
    }

    /// Takes what the medium handed out.
    #[inline]
    fn settle(&mut self) {
        let mut deliveries = core::mem::take(&mut self.outcome.deliveries);
        for Delivery { at, to, packet } in deliveries.drain(..) {
            let from = usize::from(packet.from.host);
            let counters = &mut self.ports[from].counters;
            counters.delivered.add(packet.size);
            let is_first = self.is_first(&packet);
            if is_first {
                self.ports[from].counters.waiting.remove(packet.size);
            }
            if let Some(direction) = self.flows.direction(packet.flow, packet.backward) {
                if is_first {
                    direction.transmitted += packet.on_line;
                }
                let transit = at.since(Time::from_nanos(packet.id.0));
                direction.delivered.add(packet.size);
                direction.transit_total += transit;
                direction.transit_max = direction.transit_max.max(transit);
            }
            self.ports[usize::from(to.0)].due.push(at, packet);
        }
        self.outcome.deliveries = deliveries;
        for packet in self.outcome.carried.drain(..) {
            if let Some(direction) = self.flows.direction(packet.flow, packet.backward) {
                direction.transmitted += packet.on_line;
            }
        }
        if !self.outcome.fates.0.is_empty() {
            self.settle_fates();
        }
    }

    #[cold]
    fn settle_fates(&mut self) {
        let mut fates = core::mem::take(&mut self.outcome.fates.0);
        for fate in fates.drain(..) {
            match fate {
                Fate::Dropped { at, packet, cause } => self.drop_packet(at, packet, cause),
                // It is written into the packet when that leaves.
                Fate::Marked { .. } => {}
            }
        }
        self.outcome.fates.0 = fates;
    }

    fn drop_packet(&mut self, at: Time, packet: Packet, cause: DropCause) {
        let from = Port(packet.from.host);
        let is_first = self.is_first(&packet);
        let state = &mut self.ports[usize::from(from.0)];
        if is_first {
            state.counters.waiting.remove(packet.size);
        }
        if let Some(direction) = self.flows.direction(packet.flow, packet.backward) {
            direction.dropped += 1;
            if is_first {
                direction.transmitted += packet.on_line;
            }
        }
        if let Some(capture) = &mut self.capture {
            capture.dropped(at, from, packet.id, &packet.bytes, cause.name());
        }
        if cause == DropCause::TooLarge && at >= state.told_too_big {
            let header = Header::read(self.config.layer, &packet.bytes);
            let mtu = self.config.mtus[usize::from(from.0)];
            let mut bytes = self.buffers.get();
            if too_big::answer(&packet.bytes, &header, mtu, &mut bytes) {
                state.told_too_big = at + TOO_BIG_INTERVAL;
                let id = PacketId(self.next_id);
                self.next_id += 1;
                state.due.push(
                    at,
                    Packet { id, from: Address { host: from.0, port: 0 }, bytes, ..Packet::default() },
                );
            } else {
                self.buffers.put(bytes);
            }
        }
        self.buffers.put(packet.bytes);
    }

    /// The frame of a packet that leaves, unless the link is down.
    #[inline]
    fn leave(&mut self, port: Port, at: Time, packet: Packet) -> Option<Frame> {
        let Packet { mut bytes, ecn, id, from, flow, backward, .. } = packet;
        if !self.up {
            self.ports[usize::from(from.host)].counters.cut += 1;
            if let Some(capture) = &mut self.capture {
                capture.dropped(at, Port(from.host), id, &bytes, LINK_DOWN);
            }
            self.buffers.put(bytes);
            return None;
        }
        if ecn == Ecn::CongestionExperienced
            && header::mark(self.config.layer, &mut bytes)
            && let Some(direction) = self.flows.direction(flow, backward)
        {
            direction.marked += 1;
        }
        if let Some(capture) = &mut self.capture {
            capture.delivered(at, port, id, &bytes);
        }
        Some(Frame { at, bytes })
    }
}

impl PortState {
    #[inline]
    fn take(&mut self, mut frame: Frame) {
        // A device hands frames over in their order; its clock may have been set back.
        frame.at = frame.at.max(self.last);
        self.last = frame.at;
        self.arrived.push_back(frame);
    }
}

/// Where frames go that come to one port.
pub(super) struct Intake<'p>(&'p mut PortState);

impl Intake<'_> {
    #[inline]
    pub(super) fn take(&mut self, frame: Frame) {
        self.0.take(frame);
    }
}

/// Memory of frames that have gone, for those to come.
pub(super) struct Buffers {
    free: Vec<Vec<u8>>,
    size: usize,
}

impl Buffers {
    fn new(mtu: usize) -> Buffers {
        Buffers { free: Vec::new(), size: mtu + header::ETHERNET + SLACK }
    }

    /// An empty one with room for the largest frame.
    #[inline]
    pub(super) fn get(&mut self) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        // Copies made by a link have just the room that they need.
        buffer.reserve(self.size);
        buffer
    }

    #[inline]
    fn put(&mut self, mut buffer: Vec<u8>) {
        if self.free.len() < MOST_BUFFERS {
            buffer.clear();
            self.free.push(buffer);
        }
    }
}
