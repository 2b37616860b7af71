//! First in, first out, with a limit: tail drop.

use std::collections::VecDeque;

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter};
use trunkline_core::{Bytes, Packet, Time};

use super::{Backlog, Dequeued, Queue, QueueKind};
use crate::fate::{DropCause, Fate, Fates};

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "fifo",
    doc: "First in, first out. A packet that arrives when the queue is full is dropped (tail drop), \
          whichever flow it belongs to. Limits of `32 KB` and `500 KB` model the hardware FIFO and the \
          software FIFO of the trunk boards in Hawley 1989.",
    parameters: &[Parameter {
        name: "limit",
        kind: Kind::Limit,
        default: Preset::Text("100 packets"),
        doc: "Maximum backlog, without the packet being transmitted: packets, or bytes at the network layer. \
              A packet larger than a limit in bytes is always dropped.",
    }],
    build: |values, _| Box::new(Fifo::new(values.limit("limit"))),
};

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Fifo {
    limit: Limit,
    packets: VecDeque<Packet>,
    bytes: Bytes,
}

impl Fifo {
    /// An empty queue that holds as much as `limit` says.
    pub fn new(limit: Limit) -> Fifo {
        Fifo { limit, packets: VecDeque::new(), bytes: Bytes::ZERO }
    }
}

impl Queue for Fifo {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        if self.limit.admits(self.packets.len() as u64, self.bytes, packet.size) {
            self.bytes += packet.size;
            self.packets.push_back(packet);
        } else {
            fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
        }
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Dequeued {
        match self.packets.pop_front() {
            Some(packet) => {
                self.bytes = Bytes(self.bytes.count() - packet.size.count());
                Dequeued::Packet(packet)
            }
            None => Dequeued::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::PacketId;

    fn packet(id: u64, size: u64) -> Packet {
        Packet { id: PacketId(id), size: Bytes(size), ..Packet::default() }
    }

    /// Offers packets of these sizes and says which were dropped.
    fn dropped(limit: Limit, sizes: &[u64]) -> Vec<u64> {
        let (mut fifo, mut fates) = (Fifo::new(limit), Fates::default());
        for (id, &size) in sizes.iter().enumerate() {
            fifo.enqueue(Time::ZERO, packet(id as u64, size), &mut fates);
        }
        let ids = fates.0.into_iter().map(|fate| match fate {
            Fate::Dropped { packet, cause: DropCause::QueueFull, .. } => packet.id.0,
            other => panic!("{other:?}"),
        });
        ids.collect()
    }

    #[test]
    fn the_limit_counts_packets() {
        assert_eq!(dropped(Limit::Packets(2), &[10_000, 1, 1, 1]), [2, 3]);
    }

    #[test]
    fn the_limit_counts_bytes_and_a_smaller_packet_may_still_fit() {
        assert_eq!(dropped(Limit::Bytes(Bytes(1000)), &[600, 500, 400, 1]), [1, 3]);
        assert_eq!(dropped(Limit::Bytes(Bytes(1000)), &[1001]), [0]);
    }

    #[test]
    fn packets_leave_in_order_and_make_room() {
        let (mut fifo, mut fates) = (Fifo::new(Limit::Bytes(Bytes(100))), Fates::default());
        for id in 0..5 {
            fifo.enqueue(Time::ZERO, packet(id, 60), &mut fates);
            let left = fifo.dequeue(Time::ZERO, &mut fates);
            assert!(matches!(left, Dequeued::Packet(packet) if packet.id.0 == id));
            assert_eq!(fifo.backlog(), Backlog::default());
        }
        assert_eq!(fifo.dequeue(Time::ZERO, &mut fates), Dequeued::Empty);
        assert!(fates.0.is_empty());
    }
}
