//! A source whose packets share one channel: nothing comes between the cells of a packet, and all about them is known
//! when the first one leaves.

use trunkline_core::{Bytes, Duration, Packet, Time};

use super::direction::Path;
use super::network::{Cell, Channel};
use crate::fate::DropCause;
use crate::gcra::{CELL, Usage};
use crate::medium::Outcome;
use crate::queue::{Backlog, Counted, Dequeued, Queue, QueueCounters};

#[derive(Debug)]
pub(super) struct Bundle {
    queue: Counted,
    shaped: Usage,
    channel: Channel,
    /// When the queue is to be asked next; [`Time::MAX`] while nothing waits.
    wake: Time,
}

impl Bundle {
    pub(super) fn new(queue: Box<dyn Queue>) -> Bundle {
        Bundle {
            queue: Counted::new(queue),
            shaped: Usage::default(),
            channel: Channel::default(),
            wake: Time::MAX,
        }
    }

    pub(super) fn offer(&mut self, at: Time, packet: Packet, path: &Path, out: &mut Outcome) {
        self.queue.enqueue(at, packet, &mut out.fates);
        self.wake = path.adapter.earliest(&self.shaped).max(at);
        self.rest();
    }

    pub(super) fn wake(&self) -> Time {
        self.wake
    }

    /// Sends the packet that the queue hands out, cell by cell.
    pub(super) fn step(&mut self, now: Time, path: &mut Path, out: &mut Outcome) {
        match self.queue.dequeue(now, &mut out.fates) {
            Dequeued::Packet(packet) => {
                self.send(now, packet, path, out);
                self.wake = path.adapter.earliest(&self.shaped);
            }
            Dequeued::Empty => self.wake = Time::MAX,
            // A queue that breaks its word must not stop time.
            Dequeued::NotBefore(time) => self.wake = time.max(now + Duration::from_nanos(1)),
        }
        self.rest();
    }

    fn send(&mut self, now: Time, mut packet: Packet, path: &mut Path, out: &mut Outcome) {
        let mut arrival = None;
        let cells = path.adapter.cells(packet.size);
        packet.on_line = Bytes(CELL.count() * cells);
        for left in (0..cells).rev() {
            let sent = path.adapter.earliest(&self.shaped).max(now);
            let follows = left + 1 < cells;
            let at = path.adapter.send(&mut self.shaped, sent, follows);
            let cell = Cell { sent, at, flow: packet.flow, last: left == 0, follows };
            arrival = path.network.carry(&mut self.channel, cell);
        }
        path.adapter.carries(packet.id, 1.0);
        match (self.channel.lost(), arrival) {
            (None, Some(arrival)) => path.deliver(now, packet, arrival, out),
            (cause, _) => path.lose(now, packet, cause.unwrap_or(DropCause::CellLost), out),
        }
    }

    /// Nobody needs to be woken for an empty queue.
    fn rest(&mut self) {
        if self.queue.waiting().packets == 0 {
            self.wake = Time::MAX;
        }
    }

    pub(super) fn waiting(&self) -> Backlog {
        self.queue.waiting()
    }

    pub(super) fn queue_counters(&self) -> &QueueCounters {
        self.queue.counters()
    }
}
