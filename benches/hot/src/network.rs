//! Queues and media, in the state in which they work: with buffers that have grown to their size.

use crate::queues::{Order, Packets, QueueHop};
use trunkline_core::{Port, Seed, Time};
use trunkline_network::impairment::Impairments;
use trunkline_network::medium::{Medium, MediumKind, Outcome, PortConfig};
use trunkline_network::queue;
use trunkline_testkit::values::{ordinary_values, values};

use crate::Part;

impl Part for QueueHop {
    fn step(&mut self) -> u64 {
        QueueHop::step(self);
        1
    }
}

/// A medium with an unimpaired way from port 0 to port 1, with packets that wait. Unit: a packet's hop.
pub struct MediumHop {
    medium: Box<dyn Medium>,
    out: Outcome,
    now: Time,
    idle: bool,
    packets: Packets,
}

impl MediumHop {
    /// With `waiting` packets in front of it at every moment; with none, each packet finds it idle.
    pub fn new(kind: &MediumKind, waiting: u32) -> MediumHop {
        let [shared, medium_values] =
            [kind.shared, kind.parameters].map(|parameters| ordinary_values(parameters, &[]));
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
            medium: (kind.build)(&shared, vec![port("link.bench/a-b"), port("link.bench/b-a")], seed),
            out: Outcome::default(),
            now: Time::ZERO,
            idle: waiting == 0,
            packets: Packets::of(waiting.max(1), Order::Steady),
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
        self.out.carried.clear();
        1
    }
}
