//! Round robin among channels with a quantum: the discipline of Hawley's trunk board of 1989.

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter};
use trunkline_core::{Bytes, Packet, Time};

use super::channels::Channels;
use super::{Backlog, Dequeued, Queue, QueueKind};
use crate::fate::{DropCause, Fate, Fates};

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "round-robin",
    doc: "Round robin over channels, as on the trunk board of Hawley 1989 (section 1.2): packets of each \
          member of a flow wait in their own queue, and the queues are served in turn. A turn sends one \
          packet, and more packets while they fit into the rest of the quantum. The remainder is not \
          carried over (as it is by `drr`), so channels with packets larger than the quantum get equal \
          numbers of packets rather than bytes. All channels share one limit; a packet that arrives when \
          it is reached is dropped (tail drop), whichever channel it belongs to.",
    parameters: &[
        Parameter {
            name: "quantum",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(1 << 30) },
            default: Preset::Text("64 B"),
            doc: "Bytes at the network layer that a channel may send per turn: `16 B` to `64 B` in Hawley's \
                  study. With `1 GiB`, a turn ends only when the channel's queue is empty.",
        },
        Parameter {
            name: "limit",
            kind: Kind::Limit,
            default: Preset::Text("500 KB"),
            doc: "Maximum backlog of all channels together, without the packet being transmitted: packets, \
                  or bytes at the network layer. The board's memory holds about 500,000 one-byte \
                  envelopes.",
        },
    ],
    build: |values, _| Box::new(RoundRobin::new(values.bytes("quantum"), values.limit("limit"))),
};

/// Round robin among channels.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    quantum: u64,
    limit: Limit,
    channels: Channels,
    /// What is left of the quantum in the turn that has begun.
    turn: Option<u64>,
}

impl RoundRobin {
    /// An empty queue whose channels send up to `quantum` in a turn and together hold as much as `limit` says.
    pub fn new(quantum: Bytes, limit: Limit) -> RoundRobin {
        RoundRobin { quantum: quantum.count(), limit, channels: Channels::default(), turn: None }
    }
}

impl Queue for RoundRobin {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        let Backlog { packets, bytes } = self.channels.backlog();
        if self.limit.admits(packets, bytes, packet.size) {
            self.channels.push(packet);
        } else {
            fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
        }
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Dequeued {
        let Some(channel) = self.channels.first() else { return Dequeued::Empty };
        // Whether the next packet still fits is asked when the line is free for it, and not before: who comes while
        // the turn's last packet is transmitted is served before this channel's next turn.
        let (channel, left) = match self.turn {
            Some(left) if self.channels.next_size(channel).count() <= left => (channel, left),
            Some(_) => {
                self.channels.rotate();
                (self.channels.first().unwrap_or(channel), self.quantum)
            }
            None => (channel, self.quantum),
        };
        let Some(packet) = self.channels.pop_front(channel) else { return Dequeued::Empty };
        let ended = self.channels.waiting(channel).packets == 0;
        self.turn = (!ended).then(|| left.saturating_sub(packet.size.count()));
        Dequeued::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        self.channels.backlog()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{enqueue, order, packet};
    use super::*;

    fn round_robin(quantum: u64) -> RoundRobin {
        RoundRobin::new(Bytes(quantum), Limit::Packets(10_000))
    }

    #[test]
    fn channels_have_their_turns_in_the_order_in_which_they_became_active() {
        let mut queue = round_robin(64);
        enqueue(&mut queue, &[(5, 64), (5, 64), (2, 64), (2, 64), (9, 64)]);
        assert_eq!(order(&mut queue), [(5, 0), (2, 2), (9, 4), (5, 1), (2, 3)]);
    }

    #[test]
    fn a_turn_holds_what_fits_into_the_quantum_and_at_least_one_packet() {
        let mut queue = round_robin(64);
        // Channel 1: 16 + 48 fill a turn exactly; 1500 is a turn; 40 does not fit behind 40. No rest is carried over.
        enqueue(&mut queue, &[(1, 16), (1, 48), (1, 1500), (1, 40), (1, 40)]);
        enqueue(&mut queue, &[(2, 1), (2, 64), (2, 64), (2, 64)]);
        let channels: Vec<u32> = order(&mut queue).into_iter().map(|(flow, _)| flow).collect();
        assert_eq!(channels, [1, 1, 2, 1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn a_channel_that_ran_empty_starts_again_at_the_end() {
        let mut queue = round_robin(1000);
        enqueue(&mut queue, &[(1, 10), (2, 10), (2, 10)]);
        let mut fates = Fates::default();
        assert!(matches!(queue.dequeue(Time::ZERO, &mut fates), Dequeued::Packet(p) if p.flow.0 == 1));
        enqueue(&mut queue, &[(1, 10)]);
        let channels: Vec<u32> = order(&mut queue).into_iter().map(|(flow, _)| flow).collect();
        assert_eq!(channels, [2, 2, 1]);
    }

    #[test]
    fn with_an_unlimited_quantum_a_channel_is_served_until_it_is_empty() {
        let mut queue = round_robin(1 << 30);
        enqueue(&mut queue, &[(1, 1500), (2, 40), (1, 1500), (2, 40), (1, 1500)]);
        let channels: Vec<u32> = order(&mut queue).into_iter().map(|(flow, _)| flow).collect();
        assert_eq!(channels, [1, 1, 1, 2, 2]);
    }

    #[test]
    fn the_limit_holds_for_all_channels_together() {
        let mut queue = RoundRobin::new(Bytes(64), Limit::Bytes(Bytes(100)));
        let dropped = enqueue(&mut queue, &[(1, 60), (1, 30), (2, 20), (3, 10)]);
        assert_eq!(dropped, [(2, DropCause::QueueFull)]);
        assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: Bytes(100) });
    }

    #[test]
    fn larger_packets_get_more_bytes_when_they_exceed_the_quantum() {
        // What deficit round robin was made to mend: one packet of each channel per round, whatever its size.
        let mut queue = round_robin(64);
        for _ in 0..100 {
            enqueue(&mut queue, &[(1, 1500), (2, 100)]);
        }
        let mut sent = [0; 3];
        for _ in 0..100 {
            let Dequeued::Packet(packet) = queue.dequeue(Time::ZERO, &mut Fates::default()) else { panic!() };
            sent[packet.flow.0 as usize] += packet.size.count();
        }
        assert_eq!(sent, [0, 75_000, 5_000]);
    }

    proptest! {
        /// Hawley's Table 2: an interactive packet waits for at most one quantum of every other active channel.
        #[test]
        fn a_channel_that_becomes_active_waits_at_most_a_quantum_for_each_other(
            bulk in prop::collection::vec((0u32..20, 1u64..=64), 1..300), served in 0usize..100,
        ) {
            let mut queue = round_robin(64);
            enqueue(&mut queue, &bulk);
            for _ in 0..served {
                queue.dequeue(Time::ZERO, &mut Fates::default());
            }
            let active = (0..20).filter(|&flow| queue.channels.of(flow).packets > 0).count() as u64;
            queue.enqueue(Time::ZERO, packet(1000, 99, 64), &mut Fates::default());
            let mut before = 0;
            while let Dequeued::Packet(packet) = queue.dequeue(Time::ZERO, &mut Fates::default()) {
                if packet.flow.0 == 99 {
                    break;
                }
                before += packet.size.count();
            }
            prop_assert!(before <= active * 64, "{} bytes before it, {} active", before, active);
        }
    }
}
