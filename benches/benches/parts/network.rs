//! Queues and media, in the state in which they work: with buffers that have grown to their size.

use trunkline_core::{Bytes, Duration, FlowId, Packet, PacketId, Port, Seed, Time};
use trunkline_network::impairment::Impairments;
use trunkline_network::medium::{Medium, MediumKind, Outcome, PortConfig};
use trunkline_network::queue::{self, Queue, QueueKind};
use trunkline_network::{Dequeued, Fate, Fates};
use trunkline_testkit::values::{ordinary_values, values};

use super::Part;

/// A voice packet: 80 bytes of speech, the measurement header, UDP and IP.
const SIZE: Bytes = Bytes(148);

/// A queue in which one packet of each flow always waits. Unit: a packet in and a packet out.
pub(crate) struct QueueHop {
    queue: Box<dyn Queue>,
    fates: Fates,
    now: Time,
    packets: Packets,
}

impl QueueHop {
    pub(crate) fn new(kind: &QueueKind, flows: u32) -> QueueHop {
        let values = ordinary_values(kind.parameters, &[("limit", "10000 packets")]);
        let mut hop = QueueHop {
            queue: (kind.build)(&values, Seed::new(1, 0).stream("queue")),
            fates: Fates::default(),
            now: Time::ZERO,
            packets: Packets::of(flows),
        };
        for _ in 0..flows {
            hop.queue.enqueue(hop.now, hop.packets.next(), &mut hop.fates);
        }
        assert_eq!(
            hop.queue.backlog().packets,
            u64::from(flows),
            "{} dropped what it had room for",
            kind.name
        );
        // Once around, so that everything has its place.
        for _ in 0..2 * flows {
            hop.step();
        }
        hop
    }
}

impl Part for QueueHop {
    fn step(&mut self) -> u64 {
        self.now += Duration::from_nanos(500);
        self.queue.enqueue(self.now, self.packets.next(), &mut self.fates);
        loop {
            match self.queue.dequeue(self.now, &mut self.fates) {
                Dequeued::Packet(packet) => {
                    self.packets.recycle(packet);
                    break;
                }
                Dequeued::NotBefore(time) => self.now = time,
                Dequeued::Empty => break,
            }
        }
        self.packets.recycle_dropped(&mut self.fates);
        1
    }
}

/// A medium with an unimpaired way from port 0 to port 1, in which so many packets wait. Unit: a packet's hop.
pub(crate) struct MediumHop {
    medium: Box<dyn Medium>,
    out: Outcome,
    now: Time,
    idle: bool,
    packets: Packets,
}

impl MediumHop {
    /// With `waiting` packets in front of it at every moment; with none, each packet finds it idle.
    pub(crate) fn new(kind: &MediumKind, waiting: u32) -> MediumHop {
        let medium_values = ordinary_values(kind.parameters, &[]);
        let queue_kind = &queue::KINDS[0];
        let queue_values = values(queue_kind.parameters, &[("limit", "10000 packets")]);
        let seed = Seed::new(1, 0);
        let port = |place: &str| PortConfig {
            place: place.to_owned(),
            values: &medium_values,
            queue: (queue_kind.build)(&queue_values, seed.stream(place)),
            impairments: Impairments::default(),
        };
        let mut hop = MediumHop {
            medium: (kind.build)([port("link.bench/a-b"), port("link.bench/b-a")], seed),
            out: Outcome::default(),
            now: Time::ZERO,
            idle: waiting == 0,
            packets: Packets::of(waiting.max(1)),
        };
        for _ in 0..waiting {
            hop.medium.offer(hop.now, Port(0), hop.packets.next(), &mut hop.out);
        }
        for _ in 0..2 * waiting.max(1) {
            hop.step();
        }
        hop
    }
}

impl Part for MediumHop {
    fn step(&mut self) -> u64 {
        self.medium.offer(self.now, Port(0), self.packets.next(), &mut self.out);
        while self.out.deliveries.is_empty() && self.out.fates.0.is_empty() {
            self.now = self.medium.next_event().expect("a packet is on its way");
            self.medium.advance(self.now, &mut self.out);
        }
        for delivery in self.out.deliveries.drain(..) {
            if self.idle {
                self.now = self.now.max(delivery.at);
            }
            self.packets.recycle(delivery.packet);
        }
        self.packets.recycle_dropped(&mut self.out.fates);
        1
    }
}

/// Packets of some flows in turn, in buffers that come back.
struct Packets {
    flows: u32,
    next: u64,
    buffers: Vec<Vec<u8>>,
}

impl Packets {
    fn of(flows: u32) -> Packets {
        Packets { flows, next: 0, buffers: Vec::new() }
    }

    fn next(&mut self) -> Packet {
        let mut bytes = self.buffers.pop().unwrap_or_default();
        bytes.resize(SIZE.count() as usize - 20, 0);
        let flow = FlowId((self.next % u64::from(self.flows)) as u32);
        let id = PacketId(self.next);
        self.next += 1;
        Packet { id, flow, size: SIZE, bytes, ..Packet::default() }
    }

    fn recycle(&mut self, packet: Packet) {
        self.buffers.push(packet.bytes);
    }

    fn recycle_dropped(&mut self, fates: &mut Fates) {
        self.buffers.extend(fates.0.drain(..).filter_map(|fate| match fate {
            Fate::Dropped { packet, .. } => Some(packet.bytes),
            Fate::Marked { .. } => None,
        }));
    }
}
