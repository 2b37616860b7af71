//! What the disciplines' own tests share.

use trunkline_core::{Bytes, FlowId, Packet, PacketId, Time};

use super::{Dequeued, Queue};
use crate::fate::{DropCause, Fate, Fates};

/// A packet of a flow.
pub(super) fn packet(id: u64, flow: u32, size: u64) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(flow), size: Bytes(size), ..Packet::default() }
}

/// Offers packets of these flows and sizes, numbered from 0, and says which were dropped and why.
pub(super) fn enqueue(queue: &mut dyn Queue, packets: &[(u32, u64)]) -> Vec<(u64, DropCause)> {
    let mut fates = Fates::default();
    for (id, &(flow, size)) in packets.iter().enumerate() {
        queue.enqueue(Time::ZERO, packet(id as u64, flow, size), &mut fates);
    }
    let dropped = fates.0.into_iter().map(|fate| match fate {
        Fate::Dropped { packet, cause, .. } => (packet.id.0, cause),
        marked => panic!("{marked:?}"),
    });
    dropped.collect()
}

/// Empties the queue: flow and number of each packet in the order in which they leave.
pub(super) fn order(queue: &mut dyn Queue) -> Vec<(u32, u64)> {
    let mut left = Vec::new();
    while let Dequeued::Packet(packet) = queue.dequeue(Time::ZERO, &mut Fates::default()) {
        left.push((packet.flow.0, packet.id.0));
    }
    left
}

/// Bytes that each flow below `flows` sends while `steps` packets leave.
pub(super) fn sent(queue: &mut dyn Queue, flows: usize, steps: usize) -> Vec<u64> {
    let mut sent = vec![0; flows];
    for _ in 0..steps {
        match queue.dequeue(Time::ZERO, &mut Fates::default()) {
            Dequeued::Packet(packet) => sent[packet.flow.0 as usize] += packet.size.count(),
            other => panic!("{other:?}"),
        }
    }
    sent
}
