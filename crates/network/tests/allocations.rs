//! No packet costs an allocation once buffers and queues have grown to their size.

use trunkline_core::{Bytes, Destination, Duration, FlowId, Packet, PacketId, Port, Seed, Time};
use trunkline_network::medium::{self, MediumKind, PortConfig};
use trunkline_network::{Fate, Medium, Outcome, queue};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::values::values;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

type Given = &'static [(&'static str, &'static str)];

/// A driver that gives buffers back, as the simulator does.
struct Driver {
    link: Box<dyn Medium>,
    out: Outcome,
    buffers: Vec<Vec<u8>>,
    now: Time,
    next: u64,
    done: u64,
}

impl Driver {
    fn new(medium: &MediumKind, queue: &queue::QueueKind, more: Given) -> Driver {
        // The line is what is slow, not the board of a T1, before which packets would wait without limit.
        let given = [
            ("rate", "10 Mbit/s"),
            ("backplane", "1 Gbit/s"),
            ("cost-in", "10 ns"),
            ("cost-out", "10 ns"),
            ("file", "1"),
        ];
        let own = values(
            medium.parameters,
            &[&given[..], &[("delay", "10 ms"), ("overhead", "38 B")], more].concat(),
        );
        let config = |place: &str| PortConfig {
            place: place.to_owned(),
            values: &own,
            // A limit that is reached while the buffers grow.
            queue: (queue.build)(
                &values(queue.parameters, &[("limit", "100 packets")]),
                Seed::new(1, 0).stream(place),
            ),
            impairments: Default::default(),
        };
        let ports = vec![config("link.test/a-b"), config("link.test/b-a")];
        let shared = values(medium.shared, &[("rate", "10 Mbit/s")]);
        Driver {
            link: (medium.build)(&shared, ports, Seed::new(1, 0)),
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
            let to = Destination::Port(Port(1));
            let packet = Packet { id, flow, size: Bytes(200), to, bytes, ..Packet::default() };
            self.next += 1;
            self.link.offer(self.now, Port(0), packet, &mut self.out);
            self.done += (self.out.deliveries.len() + self.out.fates.0.len()) as u64;
            self.buffers.extend(self.out.deliveries.drain(..).map(|delivery| delivery.packet.bytes));
            self.buffers.extend(self.out.fates.0.drain(..).filter_map(|fate| match fate {
                Fate::Dropped { packet, .. } => Some(packet.bytes),
                Fate::Marked { .. } => None,
            }));
            self.out.carried.clear();
        }
    }
}

#[test]
fn no_queue_allocates_per_packet() {
    for queue in queue::KINDS {
        allocates_nothing(&medium::KINDS[0], queue, &[]);
    }
}

#[test]
fn no_medium_allocates_per_packet() {
    for medium in medium::KINDS {
        allocates_nothing(medium, &queue::KINDS[0], &[]);
    }
    let atm = medium::find("atm").expect("it is registered");
    allocates_nothing(atm, &queue::KINDS[0], &[("vc", "flow")]);
}

fn allocates_nothing(medium: &MediumKind, queue: &queue::QueueKind, more: Given) {
    let name = format!("{}, {}", medium.name, queue.name);
    for (load, gap) in [("idle", 400), ("congested", 150)] {
        let mut driver = Driver::new(medium, queue, more);
        driver.run(2_000, Duration::from_micros(gap));
        let before = driver.done;
        let (allocations, ()) = allocations_during(|| driver.run(10_000, Duration::from_micros(gap)));
        assert_eq!(allocations, 0, "{name}, {load}");
        assert!(driver.done - before >= 9_900, "{name}, {load}: the packets went nowhere");
    }
}
