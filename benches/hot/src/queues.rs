//! A queue at work: what the table of queues, criterion and callgrind measure.

use trunkline_core::{Bytes, Duration, FlowId, Packet, PacketId, Seed, Time};
use trunkline_network::queue::{Queue, QueueKind};
use trunkline_network::{Dequeued, Fate, Fates};
use trunkline_testkit::values::ordinary_values;

/// A voice packet: 80 bytes of speech, the measurement header, UDP and IP.
const SIZE: Bytes = Bytes(148);

/// A queue in which one packet of each flow waits. Unit of work: a packet in and a packet out.
pub struct QueueHop {
    queue: Box<dyn Queue>,
    fates: Fates,
    now: Time,
    packets: Packets,
}

impl QueueHop {
    /// A queue of this kind, filled, in which everything has grown to its size.
    ///
    /// # Panics
    /// If it drops what it has room for.
    pub fn new(kind: &QueueKind, flows: u32, order: Order) -> QueueHop {
        let limit = format!("{} packets", 10_000.max(2 * flows));
        let values = ordinary_values(kind.parameters, &[("limit", &limit)]);
        let mut hop = QueueHop {
            queue: (kind.build)(&values, Seed::new(1, 0).stream("queue")),
            fates: Fates::default(),
            now: Time::ZERO,
            packets: Packets::of(flows, order),
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
        // Twice around, so that everything has its place.
        for _ in 0..2 * flows {
            hop.step();
        }
        hop
    }

    /// Puts the next flow's packet in and takes one out.
    #[inline]
    pub fn step(&mut self) {
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
    }
}

/// In which order flows send, one packet each in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Always the same one, as sources with equal periods do: what a queue keeps of them lies in memory as it is needed.
    Steady,
    /// After the first round another one: what is needed next lies anywhere, and with very many flows is in no cache.
    Shuffled,
}

/// Packets of some flows, in buffers that come back.
pub struct Packets {
    next: u64,
    /// Which flow sends at each place of a round.
    round: Vec<u32>,
    place: usize,
    order: Order,
    buffers: Vec<Vec<u8>>,
}

impl Packets {
    /// Of so many flows, in eight classes of priority.
    pub fn of(flows: u32, order: Order) -> Packets {
        Packets { next: 0, round: (0..flows).collect(), place: 0, order, buffers: Vec::new() }
    }

    /// The next flow's next packet.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "there is always another one")]
    pub fn next(&mut self) -> Packet {
        let mut bytes = self.buffers.pop().unwrap_or_default();
        bytes.resize(SIZE.count() as usize - 20, 0);
        let (id, flow) = (PacketId(self.next), FlowId(self.round[self.place]));
        self.next += 1;
        self.place += 1;
        if self.place == self.round.len() {
            self.place = 0;
            if self.order == Order::Shuffled && self.next == self.round.len() as u64 {
                shuffle(&mut self.round);
            }
        }
        Packet { id, flow, size: SIZE, priority: (flow.0 % 8) as u16, bytes, ..Packet::default() }
    }

    /// Takes a packet's buffer back.
    #[inline]
    pub fn recycle(&mut self, packet: Packet) {
        self.buffers.push(packet.bytes);
    }

    /// Takes the buffers of dropped packets back.
    #[inline]
    pub fn recycle_dropped(&mut self, fates: &mut Fates) {
        self.buffers.extend(fates.0.drain(..).filter_map(|fate| match fate {
            Fate::Dropped { packet, .. } => Some(packet.bytes),
            Fate::Marked { .. } => None,
        }));
    }
}

fn shuffle(round: &mut [u32]) {
    let mut stream = Seed::new(1, 0).stream("order");
    for i in (1..round.len()).rev() {
        round.swap(i, stream.below(i as u64 + 1) as usize);
    }
}
