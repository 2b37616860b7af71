//! Strict priority: whoever is more urgent leaves first.

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter};
use trunkline_core::{Bytes, Packet, Time};

use super::slab::{List, Slab};
use super::{Backlog, Dequeued, Queue, QueueKind};
use crate::fate::{DropCause, Fate, Fates};

/// As many bands as a word has bits.
const MOST_BANDS: u64 = 64;

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "priority",
    doc: "Strict priority: packets wait in bands according to their flow's `priority`, first in, first out \
          within each band. A band is served only while all more urgent bands are empty, so a busy band \
          starves those below it. When the limit is reached, the least urgent band loses its newest \
          packets to a more urgent arrival; an arrival is dropped if nothing less urgent is queued.",
    parameters: &[
        Parameter {
            name: "bands",
            kind: Kind::Integer { min: 1, max: MOST_BANDS },
            default: Preset::Text("8"),
            doc: "Number of bands. Priority 0 is the most urgent; the last band also takes all higher \
                  numbers. IEEE 802.1Q has 8 classes, Linux's default `pfifo_fast` has 3 bands.",
        },
        Parameter {
            name: "limit",
            kind: Kind::Limit,
            default: Preset::Text("500 KB"),
            doc: "Maximum backlog of all bands together, without the packet being transmitted: packets, or \
                  bytes at the network layer.",
        },
    ],
    build: |values, _| Box::new(Priority::new(values.integer("bands"), values.limit("limit"))),
};

/// Strict priority.
#[derive(Clone, Debug)]
pub struct Priority {
    limit: Limit,
    bands: Vec<List>,
    /// A bit for each band in which something waits.
    occupied: u64,
    slab: Slab,
    backlog: Backlog,
}

impl Priority {
    /// An empty queue with so many bands, from 1 to 64, that holds as much as `limit` says.
    pub fn new(bands: u64, limit: Limit) -> Priority {
        Priority {
            limit,
            bands: vec![List::default(); bands.clamp(1, MOST_BANDS) as usize],
            occupied: 0,
            slab: Slab::default(),
            backlog: Backlog::default(),
        }
    }

    /// Whether the limit would admit a packet of this size if everything in less urgent bands were gone.
    fn has_room_above(&self, band: usize, size: Bytes) -> bool {
        let (packets, bytes) = self.bands[..=band].iter().fold((0, Bytes::ZERO), |(packets, bytes), band| {
            (packets + band.packets(), bytes + band.bytes())
        });
        self.limit.admits(packets, bytes, size)
    }

    /// Takes from a band what `pop` takes from its list.
    #[inline]
    fn take(
        &mut self,
        band: u32,
        pop: impl FnOnce(&mut Slab, &mut List) -> Option<Packet>,
    ) -> Option<Packet> {
        let list = &mut self.bands[band as usize];
        let packet = pop(&mut self.slab, list)?;
        if list.is_empty() {
            self.occupied &= !(1 << band);
        }
        self.backlog.packets -= 1;
        self.backlog.bytes = Bytes(self.backlog.bytes.count() - packet.size.count());
        Some(packet)
    }
}

impl Queue for Priority {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        let band = usize::from(packet.priority).min(self.bands.len() - 1);
        while !self.limit.admits(self.backlog.packets, self.backlog.bytes, packet.size) {
            // Nobody is to make room for a packet that is dropped all the same.
            let fits = self.has_room_above(band, packet.size);
            let least_urgent = self.occupied.checked_ilog2().filter(|&least| fits && least as usize > band);
            match least_urgent.and_then(|least| self.take(least, Slab::pop_back)) {
                Some(packet) => {
                    fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::Displaced });
                }
                None => {
                    fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
                    return;
                }
            }
        }
        self.occupied |= 1 << band;
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
        self.slab.push_back(&mut self.bands[band], packet);
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Dequeued {
        if self.occupied == 0 {
            return Dequeued::Empty;
        }
        match self.take(self.occupied.trailing_zeros(), Slab::pop_front) {
            Some(packet) => Dequeued::Packet(packet),
            None => Dequeued::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::order;
    use super::*;
    use trunkline_core::{FlowId, PacketId};

    /// Offers packets of these priorities and sizes, numbered from 0 and with their priority as flow, and says which
    /// were dropped and why.
    fn enqueue(queue: &mut Priority, packets: &[(u16, u64)]) -> Vec<(u64, DropCause)> {
        let mut fates = Fates::default();
        for (id, &(priority, size)) in packets.iter().enumerate() {
            let (id, flow) = (PacketId(id as u64), FlowId(u32::from(priority)));
            let packet = Packet { id, flow, priority, size: Bytes(size), ..Packet::default() };
            queue.enqueue(Time::ZERO, packet, &mut fates);
        }
        let dropped = fates.0.into_iter().map(|fate| match fate {
            Fate::Dropped { packet, cause, .. } => (packet.id.0, cause),
            marked => panic!("{marked:?}"),
        });
        dropped.collect()
    }

    #[test]
    fn the_most_urgent_leave_first_and_equals_in_order() {
        let mut queue = Priority::new(8, Limit::Packets(100));
        enqueue(&mut queue, &[(3, 10), (0, 10), (7, 10), (3, 10), (0, 10)]);
        assert_eq!(order(&mut queue), [(0, 1), (0, 4), (3, 0), (3, 3), (7, 2)]);
    }

    #[test]
    fn the_last_band_takes_all_priorities_beyond_it() {
        let mut queue = Priority::new(3, Limit::Packets(100));
        enqueue(&mut queue, &[(65_535, 10), (2, 10), (3, 10), (1, 10)]);
        assert_eq!(order(&mut queue), [(1, 3), (65_535, 0), (2, 1), (3, 2)]);
        let mut queue = Priority::new(64, Limit::Packets(100));
        enqueue(&mut queue, &[(65_535, 10), (63, 10), (62, 10)]);
        assert_eq!(order(&mut queue), [(62, 2), (65_535, 0), (63, 1)]);
    }

    #[test]
    fn a_full_queue_drops_the_newest_of_the_least_urgent() {
        let mut queue = Priority::new(8, Limit::Packets(3));
        let dropped = enqueue(&mut queue, &[(5, 10), (5, 10), (2, 10), (1, 10), (2, 10), (5, 10), (2, 10)]);
        let (displaced, full) = (DropCause::Displaced, DropCause::QueueFull);
        assert_eq!(dropped, [(1, displaced), (0, displaced), (5, full), (6, full)]);
        assert_eq!(order(&mut queue), [(1, 3), (2, 2), (2, 4)]);
    }

    #[test]
    fn room_in_bytes_may_take_several_and_nobody_is_displaced_in_vain() {
        let mut queue = Priority::new(8, Limit::Bytes(Bytes(1000)));
        enqueue(&mut queue, &[(1, 500), (6, 200), (7, 200), (7, 100)]);
        assert_eq!(enqueue(&mut queue, &[(4, 501)]), [(0, DropCause::QueueFull)]);
        let displaced: Vec<u64> = enqueue(&mut queue, &[(4, 400)]).into_iter().map(|(id, _)| id).collect();
        assert_eq!(displaced, [3, 2, 1]);
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: Bytes(900) });
    }
}
