//! A source with a channel for each flow: cells of different channels take turns on the line.

use core::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use trunkline_core::schema::Limit;
use trunkline_core::{Bytes, FlowId, Packet, Time};

use super::adapter::Adapter;
use super::direction::Path;
use super::network::{Cell, Channel};
use crate::fate::DropCause;
use crate::gcra::{CELL, Usage};
use crate::medium::Outcome;
use crate::queue::Backlog;

#[derive(Debug)]
pub(super) struct PerFlow {
    limit: Limit,
    /// By the flow's number.
    channels: Vec<Sender>,
    /// Channels that have cells: since when the next one may leave as far as they are concerned, a number for those of
    /// equal times, and the flow's. Whoever has been ready for longest has the line next.
    ready: BinaryHeap<Reverse<(Time, u64, u32)>>,
    next_number: u64,
    waiting: Backlog,
}

/// The source's end of a channel, and what the network keeps for it.
#[derive(Debug, Default)]
struct Sender {
    shaped: Usage,
    channel: Channel,
    /// The packet whose cells leave, with what these took of the line; once it is known to be lost, since then.
    packet: Option<Packet>,
    is_lost: bool,
    /// How many of its cells are left.
    cells: u64,
    waiting: VecDeque<Packet>,
    bytes: Bytes,
}

impl PerFlow {
    pub(super) fn new(limit: Limit) -> PerFlow {
        PerFlow {
            limit,
            channels: Vec::new(),
            ready: BinaryHeap::new(),
            next_number: 0,
            waiting: Backlog::default(),
        }
    }

    pub(super) fn offer(&mut self, at: Time, mut packet: Packet, path: &mut Path, out: &mut Outcome) {
        let FlowId(flow) = packet.flow;
        if self.channels.len() <= flow as usize {
            self.channels.resize_with(flow as usize + 1, Sender::default);
        }
        let sender = &mut self.channels[flow as usize];
        if !self.limit.admits(sender.waiting.len() as u64, sender.bytes, packet.size) {
            path.lose(at, packet, DropCause::QueueFull, out);
            return;
        }
        if sender.cells == 0 && sender.waiting.is_empty() {
            let since = path.adapter.conforming(&sender.shaped).max(at);
            self.ready.push(Reverse((since, self.next_number, flow)));
            self.next_number += 1;
        }
        packet.enqueued = at;
        sender.bytes += packet.size;
        self.waiting.packets += 1;
        self.waiting.bytes += packet.size;
        sender.waiting.push_back(packet);
    }

    pub(super) fn wake(&self, adapter: &Adapter) -> Time {
        self.ready.peek().map_or(Time::MAX, |Reverse((since, ..))| adapter.line_free().max(*since))
    }

    /// Sends the next cell of the channel that has been ready for longest.
    pub(super) fn step(&mut self, now: Time, path: &mut Path, out: &mut Outcome) {
        let Some(mut next) = self.ready.peek_mut() else { return };
        let Reverse((_, _, flow)) = *next;
        let sender = &mut self.channels[flow as usize];
        if sender.cells == 0
            && let Some(packet) = sender.waiting.pop_front()
        {
            self.waiting.packets -= 1;
            self.waiting.bytes = less(self.waiting.bytes, packet.size);
            sender.begin(now, packet, path);
        }
        sender.cells = sender.cells.saturating_sub(1);
        let at = path.adapter.send(&mut sender.shaped, now, false);
        if let Some(packet) = &mut sender.packet {
            packet.on_line += CELL;
            path.adapter.carries(packet.id, CELL.count() as f64 / packet.on_line.count() as f64);
        }
        let cell = Cell { sent: now, at, flow: FlowId(flow), last: sender.cells == 0, follows: false };
        let arrival = path.network.carry(&mut sender.channel, cell);
        sender.settle(now, arrival, path, out);
        if sender.cells == 0 && sender.waiting.is_empty() {
            PeekMut::pop(next);
        } else {
            *next = Reverse((path.adapter.conforming(&sender.shaped).max(at), self.next_number, flow));
            self.next_number += 1;
        }
    }

    pub(super) fn waiting(&self) -> Backlog {
        self.waiting
    }

    /// The packets that have sent some of their cells.
    pub(super) fn begun(&self) -> impl Iterator<Item = &Packet> {
        let packets = self.channels.iter().filter_map(|sender| sender.packet.as_ref());
        packets.filter(|packet| packet.on_line > Bytes::ZERO)
    }
}

impl Sender {
    /// Makes `packet` the one whose cells leave.
    fn begin(&mut self, now: Time, mut packet: Packet, path: &mut Path) {
        let sojourn = now.since(packet.enqueued);
        path.counters.dequeued += 1;
        path.counters.sojourn_total += sojourn;
        path.counters.sojourns.record(sojourn);
        self.bytes = less(self.bytes, packet.size);
        self.cells = path.adapter.cells(packet.size);
        packet.on_line = Bytes::ZERO;
        self.packet = Some(packet);
        self.is_lost = false;
    }

    /// Hands out the packet when its end is known: at the first cell that is lost, or at the last one.
    fn settle(&mut self, now: Time, arrival: Option<Time>, path: &mut Path, out: &mut Outcome) {
        if let (Some(cause), false) = (self.channel.lost(), self.is_lost)
            && let Some(packet) = self.packet.take()
        {
            self.is_lost = true;
            // Cells that are still to come take their part of the line all the same.
            self.packet = Some(Packet { on_line: Bytes::ZERO, bytes: Vec::new(), ..packet });
            path.lose(now, packet, cause, out);
        }
        if self.cells > 0 {
            return;
        }
        match (self.packet.take(), arrival) {
            (Some(packet), _) if self.is_lost => {
                out.carried.extend(Some(packet).filter(|packet| packet.on_line > Bytes::ZERO));
            }
            (Some(packet), Some(arrival)) => path.deliver(now, packet, arrival, out),
            (packet, _) => self.packet = packet,
        }
    }
}

fn less(all: Bytes, part: Bytes) -> Bytes {
    Bytes(all.count().saturating_sub(part.count()))
}
