//! One direction: from the packets that a host offers to those that arrive.

use trunkline_core::{Amount, Bytes, Duration, Packet, PacketId, Port, Seed, Time};

use super::adapter::Adapter;
use super::bundle::Bundle;
use super::config::AtmConfig;
use super::network::Network;
use super::per_flow::PerFlow;
use crate::fate::{DropCause, Fate};
use crate::impairment::Stage;
use crate::medium::{Delivery, MediumCounters, Outcome};
use crate::queue::Backlog;

#[derive(Debug)]
pub(super) struct Direction {
    mtu: Bytes,
    source: Source,
    path: Path,
}

/// Where packets wait.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are two in a link")]
enum Source {
    Bundle(Bundle),
    PerFlow(PerFlow),
}

/// What cells of all channels go through.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) adapter: Adapter,
    pub(super) network: Network,
    to: Port,
    stage: Stage,
    /// Without what the queue of a bundle counts.
    pub(super) counters: MediumCounters,
}

impl Direction {
    pub(super) fn new(config: AtmConfig, to: Port, seed: Seed) -> Direction {
        let path = Path {
            adapter: Adapter::new(&config),
            network: Network::new(&config),
            to,
            stage: Stage::new(&config.impairments, &config.place, seed),
            counters: MediumCounters::default(),
        };
        let source = match config.per_flow {
            Some(limit) => Source::PerFlow(PerFlow::new(limit)),
            None => Source::Bundle(Bundle::new(config.queue)),
        };
        Direction { mtu: config.mtu, source, path }
    }

    /// Takes a packet once everything due up to `at` is done.
    pub(super) fn offer(&mut self, at: Time, packet: Packet, out: &mut Outcome) {
        self.path.counters.offered += 1;
        if packet.size > self.mtu {
            self.path.lose(at, packet, DropCause::TooLarge, out);
            return;
        }
        match &mut self.source {
            Source::Bundle(bundle) => bundle.offer(at, packet, &self.path, out),
            Source::PerFlow(channels) => channels.offer(at, packet, &mut self.path, out),
        }
        while self.wake() <= at {
            self.step(at, out);
        }
        // What leaves at once has not waited.
        let waiting = self.waiting();
        let counters = &mut self.path.counters;
        counters.backlog_max = counters.backlog_max.max(waiting.bytes);
        counters.backlog_packets_max = counters.backlog_packets_max.max(waiting.packets);
    }

    /// When the source next has something to do; [`Time::MAX`] while nothing waits.
    pub(super) fn wake(&self) -> Time {
        match &self.source {
            Source::Bundle(bundle) => bundle.wake(),
            Source::PerFlow(channels) => channels.wake(&self.path.adapter),
        }
    }

    /// Does it, at that time.
    pub(super) fn step(&mut self, now: Time, out: &mut Outcome) {
        match &mut self.source {
            Source::Bundle(bundle) => bundle.step(now, &mut self.path, out),
            Source::PerFlow(channels) => channels.step(now, &mut self.path, out),
        }
    }

    pub(super) fn waiting(&self) -> Backlog {
        match &self.source {
            Source::Bundle(bundle) => bundle.waiting(),
            Source::PerFlow(channels) => channels.waiting(),
        }
    }

    pub(super) fn counters(&self) -> MediumCounters {
        let transmitted = self.path.network.transmitted();
        let busy = self.path.network.busy();
        let counters = MediumCounters { transmitted, busy, ..self.path.counters.clone() };
        match &self.source {
            Source::Bundle(bundle) => counters.with_queue(bundle.queue_counters()),
            Source::PerFlow(_) => counters,
        }
    }

    /// Visits the packets that have sent some of their cells.
    pub(super) fn begun(&self, visit: &mut dyn FnMut(&Packet)) {
        if let Source::PerFlow(channels) = &self.source {
            channels.begun().for_each(visit);
        }
    }

    /// The packet whose cells are on the host's line at `at`, and the share of it that is still to come.
    pub(super) fn under_way(&self, at: Time) -> Option<(PacketId, f64)> {
        self.path.adapter.under_way(at)
    }

    /// What is transmitted from `at` on does not count as busy time.
    pub(super) fn end_measurement(&mut self, at: Time) {
        self.path.network.end_measurement(at);
        self.path.adapter.end_measurement(at);
    }

    pub(super) fn figures(&self, over: Duration) -> impl Iterator<Item = (&'static str, Option<Amount>)> {
        let line = Some(Amount::Share(self.path.adapter.utilisation(over)));
        core::iter::once(("host-line-utilisation", line)).chain(self.path.network.figures())
    }
}

impl Path {
    /// Hands out a packet whose last cell arrives at `arrival`.
    pub(super) fn deliver(&mut self, now: Time, mut packet: Packet, arrival: Time, out: &mut Outcome) {
        let passage = self.stage.pass(arrival, &mut packet);
        if passage.lost {
            self.lose(now, packet, DropCause::LinkLoss, out);
            return;
        }
        let counters = &mut self.counters;
        counters.delivered += 1;
        counters.corrupted += u64::from(passage.corrupted);
        counters.reordered += u64::from(passage.overtakes);
        counters.duplicated += u64::from(passage.duplicated);
        let (at, to) = (passage.arrival, self.to);
        if passage.duplicated {
            out.deliveries.push(Delivery { at, to, packet: packet.clone() });
        }
        out.deliveries.push(Delivery { at, to, packet });
    }

    /// Hands out a packet that is lost.
    pub(super) fn lose(&mut self, at: Time, packet: Packet, cause: DropCause, out: &mut Outcome) {
        self.counters.dropped[cause.index()] += 1;
        out.fates.0.push(Fate::Dropped { at, packet, cause });
    }
}
