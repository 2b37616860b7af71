//! No packet costs an allocation once buffers and queues have grown to their size.

use trunkline_core::{Bytes, Duration, FlowId, Packet, PacketId, Port, Seed, Time};
use trunkline_network::{Fate, Medium, Outcome, SerialConfig, SerialLink, queue};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::values::values;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A driver that gives buffers back, as the simulator does.
struct Driver {
    link: SerialLink,
    out: Outcome,
    buffers: Vec<Vec<u8>>,
    now: Time,
    next: u64,
    done: u64,
}

impl Driver {
    fn new(queue: &queue::QueueKind) -> Driver {
        let config = |place: &str| SerialConfig {
            place: place.to_owned(),
            rate: "10 Mbit/s".parse().expect("a rate"),
            delay: Duration::from_millis(10),
            mtu: Bytes(1500),
            overhead: Bytes(38),
            // A limit that is reached while the buffers grow.
            queue: (queue.build)(
                &values(queue.parameters, &[("limit", "100 packets")]),
                Seed::new(1, 0).stream(place),
            ),
            impairments: Default::default(),
        };
        Driver {
            link: SerialLink::new([config("link.test/a-b"), config("link.test/b-a")], Seed::new(1, 0)),
            out: Outcome::default(),
            buffers: Vec::new(),
            now: Time::ZERO,
            next: 0,
            done: 0,
        }
    }

    /// Offers packets of 200 bytes, which take 190.4 us each, with this gap in between.
    fn run(&mut self, packets: u64, gap: Duration) {
        for _ in 0..packets {
            self.now += gap;
            let mut bytes = self.buffers.pop().unwrap_or_default();
            bytes.resize(180, 7);
            let (id, flow) = (PacketId(self.next), FlowId((self.next * 7 % 31) as u32));
            let packet = Packet { id, flow, size: Bytes(200), bytes, ..Packet::default() };
            self.next += 1;
            self.link.offer(self.now, Port(0), packet, &mut self.out);
            self.done += (self.out.deliveries.len() + self.out.fates.0.len()) as u64;
            self.buffers.extend(self.out.deliveries.drain(..).map(|delivery| delivery.packet.bytes));
            self.buffers.extend(self.out.fates.0.drain(..).filter_map(|fate| match fate {
                Fate::Dropped { packet, .. } => Some(packet.bytes),
                Fate::Marked { .. } => None,
            }));
        }
    }
}

#[test]
fn a_serial_link_allocates_nothing_per_packet() {
    for kind in queue::KINDS {
        for (load, gap) in [("idle", 400), ("congested", 150)] {
            let mut driver = Driver::new(kind);
            driver.run(2_000, Duration::from_micros(gap));
            let before = driver.done;
            let (allocations, ()) = allocations_during(|| driver.run(10_000, Duration::from_micros(gap)));
            assert_eq!(allocations, 0, "{}, {load}", kind.name);
            assert!(driver.done - before >= 9_900, "{}, {load}: the packets went nowhere", kind.name);
        }
    }
}
