//! Deficit round robin (Shreedhar and Varghese 1995), with buffers stolen from the longest queue (McKenney 1990).

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter};
use trunkline_core::{Bytes, Packet, Time};

use super::channels::Channels;
use super::longest::Longest;
use super::{Backlog, Dequeued, Queue, QueueKind};
use crate::fate::{DropCause, Fate, Fates};

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "drr",
    doc: "Deficit round robin (Shreedhar and Varghese 1995): each member of a flow has its own queue, and \
          the queues are served in turn. A turn adds the quantum to the queue's deficit counter and sends \
          packets while the counter covers them. The remainder is kept for the next turn, so busy flows \
          get the same number of bytes whatever their packet sizes. When the limit is reached, the \
          longest queue loses its newest packet (buffer stealing, McKenney 1990), so that a busy flow \
          causes no loss for flows that send little.",
    parameters: &[
        Parameter {
            name: "quantum",
            kind: Kind::Bytes { min: Bytes(64), max: Bytes(1 << 30) },
            default: Preset::Text("1500 B"),
            doc: "Bytes at the network layer that a turn adds to a queue's deficit counter. It should be at \
                  least the largest packet, so that each turn sends a packet and the cost per packet does \
                  not depend on the number of flows. The default is that of FQ-CoDel (RFC 8290).",
        },
        Parameter {
            name: "limit",
            kind: Kind::Limit,
            default: Preset::Text("500 KB"),
            doc: "Maximum backlog of all queues together, without the packet being transmitted: packets, or \
                  bytes at the network layer. The longest queue is measured in the same unit, with a \
                  precision of a sixteenth of its length. A packet larger than a limit in bytes is always \
                  dropped.",
        },
    ],
    build: |values, _| Box::new(Drr::new(values.bytes("quantum"), values.limit("limit"))),
};

/// Deficit round robin.
///
/// What any two flows send while both always have packets waiting differs by at most quantum + 2 * the largest packet,
/// however long one watches (the paper's fairness bound). A packet costs constant time if the quantum covers it, and as
/// many turns as it needs quanta otherwise.
#[derive(Clone, Debug)]
pub struct Drr {
    quantum: u64,
    limit: Limit,
    /// A channel's credit is its deficit counter.
    channels: Channels,
    longest: Longest,
    /// Whether the first channel's turn has begun: it has been given its quantum.
    turn: bool,
}

impl Drr {
    /// An empty queue that adds `quantum`, at least 1 B, to a flow's deficit counter at each turn and holds as much as
    /// `limit` says.
    pub fn new(quantum: Bytes, limit: Limit) -> Drr {
        Drr {
            quantum: quantum.count().max(1),
            limit,
            channels: Channels::default(),
            longest: Longest::default(),
            turn: false,
        }
    }

    /// The length of a channel, in what the limit counts.
    #[inline]
    fn length(channels: &Channels, limit: Limit, channel: u32) -> u64 {
        let waiting = channels.waiting(channel);
        match limit {
            Limit::Packets(_) => waiting.packets,
            Limit::Bytes(_) => waiting.bytes.count(),
        }
    }

    fn exceeds_limit(&self) -> bool {
        let waiting = self.channels.backlog();
        match self.limit {
            Limit::Packets(most) => waiting.packets > most,
            Limit::Bytes(most) => waiting.bytes > most,
        }
    }

    /// Drops the newest packets of the longest channels until the limit holds. The last packet to arrive is the newest
    /// of `arrived`.
    fn steal(&mut self, now: Time, arrived: u32, fates: &mut Fates) {
        while self.exceeds_limit() {
            let (channels, limit) = (&mut self.channels, self.limit);
            let Some(longest) = self.longest.find(|channel| Drr::length(channels, limit, channel)) else {
                return;
            };
            let has_turn = channels.first() == Some(longest);
            let Some(packet) = channels.pop_back(longest) else { return };
            if channels.waiting(longest).packets == 0 {
                self.turn &= !has_turn;
            }
            let cause = if longest == arrived { DropCause::QueueFull } else { DropCause::LongestQueue };
            fates.0.push(Fate::Dropped { at: now, packet, cause });
        }
    }
}

impl Queue for Drr {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        // What no theft could make room for; also a limit of nothing.
        if !self.limit.admits(0, Bytes::ZERO, packet.size) {
            fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
            return;
        }
        let channel = self.channels.push(packet);
        self.longest.grown(channel, Drr::length(&self.channels, self.limit, channel));
        self.steal(now, channel, fates);
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Dequeued {
        while let Some(channel) = self.channels.first() {
            let size = self.channels.next_size(channel).count();
            let deficit = self.channels.credit(channel);
            if !self.turn {
                *deficit = deficit.saturating_add(self.quantum);
            }
            self.turn = size <= *deficit;
            if !self.turn {
                self.channels.rotate();
                continue;
            }
            *deficit -= size;
            let Some(packet) = self.channels.pop_front(channel) else { break };
            if self.channels.waiting(channel).packets == 0 {
                self.turn = false;
            }
            return Dequeued::Packet(packet);
        }
        Dequeued::Empty
    }

    fn backlog(&self) -> Backlog {
        self.channels.backlog()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{enqueue, order, packet, sent};
    use super::*;

    fn drr(quantum: u64) -> Drr {
        Drr::new(Bytes(quantum), Limit::Packets(10_000))
    }

    fn flows(queue: &mut Drr) -> Vec<u32> {
        order(queue).into_iter().map(|(flow, _)| flow).collect()
    }

    #[test]
    fn a_deficit_is_carried_into_the_next_turn() {
        // The paper's figures 2 and 3: with a quantum of 500, queue 1 sends 200 in the first round and keeps 300, so that the
        // second round covers 750 and 20.
        let mut queue = drr(500);
        enqueue(&mut queue, &[(1, 200), (1, 750), (1, 20), (2, 500), (2, 500)]);
        assert_eq!(order(&mut queue), [(1, 0), (2, 3), (1, 1), (1, 2), (2, 4)]);
    }

    #[test]
    fn a_flow_that_ran_empty_keeps_no_deficit() {
        let mut queue = drr(500);
        enqueue(&mut queue, &[(1, 10)]);
        assert_eq!(flows(&mut queue), [1]);
        enqueue(&mut queue, &[(1, 600), (2, 500)]);
        assert_eq!(flows(&mut queue), [2, 1], "490 bytes left over would have let flow 1 send at once");
    }

    #[test]
    fn flows_get_equal_bytes_whatever_their_packets_sizes() {
        let mut queue = drr(1514);
        for _ in 0..1000 {
            enqueue(&mut queue, &[(0, 1500), (1, 100), (1, 100), (1, 100), (2, 700), (2, 33)]);
        }
        let sent = sent(&mut queue, 3, 2500);
        let (most, least) = (sent.iter().max().unwrap(), sent.iter().min().unwrap());
        assert!(*least > 150_000 && most - least <= 1514 + 1500, "{sent:?}");
    }

    #[test]
    fn packets_larger_than_the_quantum_wait_for_as_many_turns_as_they_need() {
        let mut queue = drr(64);
        enqueue(&mut queue, &[(1, 640), (2, 64), (2, 64), (2, 64)]);
        assert_eq!(flows(&mut queue), [2, 2, 2, 1]);
    }

    #[test]
    fn the_longest_queue_pays_for_a_full_memory() {
        let mut queue = Drr::new(Bytes(1514), Limit::Bytes(Bytes(10_000)));
        let bulk: Vec<(u32, u64)> = (0..6).map(|_| (7, 1500)).chain([(8, 900)]).collect();
        assert_eq!(enqueue(&mut queue, &bulk), []);
        let mut fates = Fates::default();
        queue.enqueue(Time::ZERO, packet(50, 8, 200), &mut fates);
        queue.enqueue(Time::ZERO, packet(51, 9, 40), &mut fates);
        queue.enqueue(Time::ZERO, packet(52, 7, 1500), &mut fates);
        let lost = fates.0.iter().map(|fate| match fate {
            Fate::Dropped { packet, cause, .. } => (packet.id.0, *cause),
            marked => panic!("{marked:?}"),
        });
        let lost: Vec<_> = lost.collect();
        // Flow 7's newest packet makes room for flow 8's; the room it leaves suffices for flow 9; then flow 7 is itself
        // the longest.
        assert_eq!(lost, [(5, DropCause::LongestQueue), (52, DropCause::QueueFull)]);
    }

    #[test]
    fn a_stolen_turn_is_over() {
        let mut queue = Drr::new(Bytes(64), Limit::Bytes(Bytes(1000)));
        enqueue(&mut queue, &[(1, 64), (1, 900)]);
        let mut fates = Fates::default();
        // Flow 1 is left with its large packet and half way through its turns.
        assert!(matches!(queue.dequeue(Time::ZERO, &mut fates), Dequeued::Packet(_)));
        enqueue(&mut queue, &[(2, 90), (3, 90)]);
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: Bytes(180) });
        assert_eq!(flows(&mut queue), [2, 3]);
        assert_eq!(queue.dequeue(Time::ZERO, &mut fates), Dequeued::Empty);
    }

    #[test]
    fn a_packet_that_can_never_fit_displaces_nobody() {
        let mut queue = Drr::new(Bytes(1514), Limit::Bytes(Bytes(1000)));
        assert_eq!(enqueue(&mut queue, &[(1, 600), (2, 1001)]), [(1, DropCause::QueueFull)]);
        assert_eq!(queue.backlog().packets, 1);
    }

    proptest! {
        /// The paper's fairness bound: over any interval in which two flows always have packets waiting, what they sent
        /// differs by at most quantum + 2 * the largest packet; from the moment they became active, by quantum + one.
        #[test]
        fn busy_flows_differ_by_a_bounded_number_of_bytes(
            quantum in 64u64..4000,
            sizes in prop::collection::vec((1u64..1500, 1u64..1500), 1..6),
            from in 0usize..500, steps in 1usize..500,
        ) {
            let flows = sizes.len();
            let mut queue = drr(quantum);
            for n in 0..1600 {
                // Enough that nobody runs empty: the largest flow gets at most 2 quanta ahead.
                let packets: Vec<(u32, u64)> = (0u32..).zip(&sizes)
                    .map(|(flow, &(a, b))| (flow, if n % 3 == 0 { a } else { b }))
                    .collect();
                enqueue(&mut queue, &packets);
            }
            let largest = sizes.iter().map(|&(a, b)| a.max(b)).max().unwrap();
            let first = sent(&mut queue, flows, from);
            let second = sent(&mut queue, flows, steps);
            let spread = |sent: &[u64]| sent.iter().max().unwrap() - sent.iter().min().unwrap();
            prop_assert!(spread(&first) <= quantum + largest, "{:?}", first);
            prop_assert!(spread(&second) <= quantum + 2 * largest, "{:?}", second);
        }

        #[test]
        fn nobody_at_half_of_the_longest_queue_loses_a_packet(
            packets in prop::collection::vec((0u32..6, 40u64..1500), 1..300),
        ) {
            let mut queue = Drr::new(Bytes(1514), Limit::Bytes(Bytes(20_000)));
            for (id, &(flow, size)) in packets.iter().enumerate() {
                let mut waiting = [0; 6];
                for (flow, waiting) in (0..).zip(&mut waiting) {
                    *waiting = queue.channels.of(flow).bytes.count();
                }
                waiting[flow as usize] += size;
                let mut fates = Fates::default();
                queue.enqueue(Time::ZERO, packet(id as u64, flow, size), &mut fates);
                for fate in fates.0 {
                    let Fate::Dropped { packet, .. } = fate else { panic!() };
                    let most = waiting.iter().max().copied().unwrap();
                    let victim = &mut waiting[packet.flow.0 as usize];
                    prop_assert!(2 * *victim > most, "{} bytes of {}", victim, most);
                    *victim -= packet.size.count();
                }
            }
        }
    }
}
