//! The links of a scenario, the packets on them, and the pool of their buffers.

use trunkline_core::{Bytes, Destination, Duration, FlowId, Packet, PacketId, Port, Ranges, Seed, Time};
use trunkline_experiment::{Flow, PacketEvent, PacketStep, PathStep, Scenario};
use trunkline_flows::Buffers;
use trunkline_metrics::{LinkSummary, MediumSummary, OnNetwork};
use trunkline_network::host::SendBuffer;
use trunkline_network::{Backlog, Delivery, Fate, Medium, Outcome};

use crate::event::Event;
use crate::events::EventQueue;
use crate::first_link::OnFirstLinks;
use crate::sockets::Sockets;
use crate::tree::{Branch, Member, Tree};

/// All links, with what is on its way.
pub(crate) struct Network<'s> {
    scenario: &'s Scenario,
    links: Vec<Box<dyn Medium>>,
    /// When each link's next own event is queued; [`Time::MAX`] if none is.
    scheduled: Vec<Time>,
    /// Packets between two media, by slot; empty slots are listed in `free`.
    in_flight: Vec<Packet>,
    /// By slot of a packet for a group, the station of its tree.
    stations: Vec<u32>,
    free: Vec<u32>,
    /// Memory of packets.
    buffers: Buffers,
    outcome: Outcome,
    /// The ids of each flow of the file. Higher ones are those of guests.
    ids: Ranges,
    guests_from: u32,
    /// By flow of the file: how packets for all of its sinks go.
    trees: Vec<Option<Tree>>,
    on_first_links: OnFirstLinks,
    next_packet: u64,
    /// Whether packets of each flow of the file are said to have left the network, by [`Event::Left`].
    watched: Vec<bool>,
    /// By flow of the file: true if its dropped packets are kept in `dropped`.
    keeps_dropped: Vec<bool>,
    /// Packets that were dropped, each with the link that did, until the engine takes them.
    dropped: Vec<(Packet, usize)>,
    sockets: Sockets,
    /// The link that a packet of a guest enters or crosses, by slot.
    steps: Vec<PathStep>,
    /// Events of packets at links, until the engine takes them; `None` if nobody observes them.
    pub(crate) followed: Option<Vec<PacketEvent>>,
}

impl<'s> Network<'s> {
    pub(crate) fn new(scenario: &'s Scenario, seed: Seed) -> Network<'s> {
        let links = scenario.build_links(seed);
        let ids = |flow: &Flow| flow.meta.first.0..flow.meta.first.0 + flow.meta.ids();
        let tree = |flow: &Flow| flow.is_multicast().then(|| Tree::new(flow, &scenario.links));
        Network {
            scenario,
            scheduled: vec![Time::MAX; links.len()],
            links,
            in_flight: Vec::new(),
            stations: Vec::new(),
            free: Vec::new(),
            buffers: Buffers::new(usize::MAX),
            outcome: Outcome::default(),
            ids: scenario.flows.iter().map(ids).collect(),
            guests_from: scenario.flows.iter().map(|flow| ids(flow).end).max().unwrap_or(0),
            trees: scenario.flows.iter().map(tree).collect(),
            on_first_links: OnFirstLinks::new(scenario),
            next_packet: 0,
            watched: vec![false; scenario.flows.len()],
            keeps_dropped: vec![false; scenario.flows.len()],
            dropped: Vec::new(),
            sockets: Sockets::default(),
            steps: Vec::new(),
            followed: None,
        }
    }

    /// An empty buffer, with the memory of an earlier packet.
    #[inline]
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.buffers.take()
    }

    /// Takes a buffer back.
    #[inline]
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffers.recycle(buffer);
    }

    /// Says from now on when a packet of this flow's sources has been dropped.
    pub(crate) fn watch(&mut self, flow: usize) {
        self.watched[flow] = true;
    }

    /// Keeps from now on what is dropped of this flow, for [`take_dropped`](Self::take_dropped).
    pub(crate) fn keep_dropped(&mut self, flow: usize) {
        self.keeps_dropped[flow] = true;
    }

    /// True if [`take_dropped`](Self::take_dropped) has a packet.
    #[inline]
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// A packet that was dropped, of a flow of which they are kept, and the link that dropped it.
    pub(crate) fn take_dropped(&mut self) -> Option<(Packet, usize)> {
        self.dropped.pop()
    }

    /// The sinks of a flow that a packet of its source does not reach since this link has dropped it.
    pub(crate) fn behind(&self, flow: usize, link: usize, packet: &Packet) -> &[u16] {
        self.trees[flow].as_ref().map_or(&[], |tree| tree.behind(link, packet.entered.0))
    }

    /// Sends packets for all sinks of a flow to this one too from now on, or does not any more.
    pub(crate) fn set_present(&mut self, flow: usize, sink: u16, is_present: bool) {
        if let Some(tree) = &mut self.trees[flow] {
            tree.set_present(sink, is_present);
        }
    }

    /// Gives the sockets of a flow a buffer: when one that was full has room again, that is said by [`Event::Room`].
    pub(crate) fn limit(&mut self, flow: usize, buffer: SendBuffer) {
        self.sockets.limit(flow, buffer, self.guests_from as usize);
    }

    /// Whether the socket of this flow with this id is full.
    pub(crate) fn is_full(&self, flow: u32, id: FlowId) -> bool {
        self.sockets.is_full(flow as usize, id.0)
    }

    /// Keeps a packet until an event that names its slot.
    #[inline]
    pub(crate) fn keep(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.in_flight[slot as usize] = packet;
            return slot;
        }
        self.in_flight.push(packet);
        // 2^32 packets in flight would need 400 GB before this could be cut short.
        (self.in_flight.len() - 1) as u32
    }

    /// The packet that was kept.
    #[inline]
    pub(crate) fn take(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        let packet = &mut self.in_flight[slot as usize];
        Packet { bytes: core::mem::take(&mut packet.bytes), ..*packet }
    }

    /// True if the packet in a slot belongs to a guest, not to a flow of the file.
    #[inline]
    pub(crate) fn is_of_guest(&self, slot: u32) -> bool {
        self.is_guests(&self.in_flight[slot as usize])
    }

    /// Keeps a packet of a guest until it enters a link.
    pub(crate) fn keep_of_guest(&mut self, packet: Packet, step: PathStep) -> u32 {
        let flow = FlowId(packet.flow.0.saturating_add(self.guests_from));
        self.store_of_guest(Packet { flow, ..packet }, step)
    }

    /// The packet of a guest that was kept, with the number of its flow among those of the guests, and the link that it has
    /// crossed.
    pub(crate) fn take_of_guest(&mut self, slot: u32) -> (Packet, PathStep) {
        let packet = self.take(slot);
        let flow = FlowId(packet.flow.0.saturating_sub(self.guests_from));
        (Packet { flow, ..packet }, self.steps[slot as usize])
    }

    fn store_of_guest(&mut self, packet: Packet, step: PathStep) -> u32 {
        let slot = self.keep(packet);
        let none = PathStep { link: 0, from_port: 0, to_port: 0 };
        self.steps.resize(self.steps.len().max(slot as usize + 1), none);
        self.steps[slot as usize] = step;
        slot
    }

    #[inline]
    fn is_guests(&self, packet: &Packet) -> bool {
        packet.flow.0 >= self.guests_from
    }

    /// Sends a new packet into the first link of its way.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, mut packet: Packet, events: &mut EventQueue<Event>) {
        packet.id = PacketId(self.next_packet);
        self.next_packet += 1;
        if self.sockets.are_limited() && waits_in_socket(&packet) {
            self.sockets.enter(self.flow(&packet), &packet);
        }
        self.offer(now, packet, events);
    }

    /// The packet that has arrived in `slot`: hands it out at the end of its path, else passes it on. One for a group is
    /// passed on, and handed out too at a member of the group; then `backward` and `sink` say at which.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, slot: u32, events: &mut EventQueue<Event>) -> Option<Packet> {
        let mut packet = self.take(slot);
        packet.hop = packet.hop.saturating_add(1);
        if !packet.group {
            if self.way(&packet).is_some() {
                self.offer(now, packet, events);
                return None;
            }
            return Some(packet);
        }
        let (flow, station) = (self.flow(&packet), self.stations[slot as usize]);
        let member = self.trees[flow].as_ref().and_then(|tree| tree.member(station));
        self.spread(now, &packet, |tree| tree.onward(station), events);
        match member {
            Some(Member::Source) => packet.backward = true,
            Some(Member::Sink(sink)) => (packet.backward, packet.sink) = (false, sink),
            None => {
                self.recycle(packet.bytes);
                return None;
            }
        }
        Some(packet)
    }

    /// Does what is due on a link.
    pub(crate) fn advance(&mut self, now: Time, link: u32, events: &mut EventQueue<Event>) {
        let link = link as usize;
        if self.scheduled[link] != now {
            return; // an earlier event took its place
        }
        self.scheduled[link] = Time::MAX;
        self.links[link].advance(now, &mut self.outcome);
        self.settle(now, link, events);
    }

    /// Keeps a packet that leaves its endpoint later than now (pacing), and queues its departure.
    pub(crate) fn depart_later(&mut self, at: Time, packet: Packet, events: &mut EventQueue<Event>) {
        let slot = self.keep(packet);
        events.push(at, Event::Depart(slot));
    }

    /// Sends the packet whose departure was queued.
    pub(crate) fn depart(&mut self, now: Time, slot: u32, events: &mut EventQueue<Event>) {
        let mut packet = self.take(slot);
        if self.is_guests(&packet) {
            let PathStep { link, from_port, to_port } = self.steps[slot as usize];
            packet.id = PacketId(self.next_packet);
            self.next_packet += 1;
            packet.to = Destination::Port(Port(to_port));
            packet.entered = Port(from_port);
            self.links[link].offer(now, Port(from_port), packet, &mut self.outcome);
            return self.settle(now, link, events);
        }
        self.send(now, packet, events);
    }

    /// The measurement ends now: links are busy for nothing of it any more.
    pub(crate) fn end_measurement(&mut self, now: Time) {
        self.links.iter_mut().for_each(|link| link.end_measurement(now));
        self.on_first_links.end_measurement(now, &self.links, &self.ids);
    }

    /// A flow has its first message, if it had none before.
    #[inline]
    pub(crate) fn begin(&mut self, flow: usize) {
        self.on_first_links.begin(flow);
    }

    /// A flow has its first sink.
    pub(crate) fn restart(&mut self, flow: usize) {
        self.on_first_links.restart(flow);
    }

    /// The run ends now, with its drain time.
    pub(crate) fn end(&mut self, now: Time) {
        self.on_first_links.end(now, &self.links, &self.ids);
    }

    /// What the flow's forward packets took of their first link; [`Self::end_measurement`] was called.
    pub(crate) fn on_first_link(&self, flow: usize) -> OnNetwork {
        self.on_first_links.of(flow)
    }

    /// What waits in the queue of a link for packets that enter at this port.
    pub(crate) fn backlog(&self, link: usize, port: usize) -> Backlog {
        self.links[link].backlog(Port(port as u16))
    }

    /// The counters of every link and direction, over a run of this length.
    pub(crate) fn summaries(&self, duration: Duration) -> Vec<LinkSummary> {
        let links = self.scenario.links.iter().zip(&self.links);
        links.flat_map(|(link, medium)| self.scenario.link_summaries(link, &**medium, duration)).collect()
    }

    /// What some kinds of media alone have to tell of a run of this length.
    pub(crate) fn figures(&self, duration: Duration) -> Vec<MediumSummary> {
        let links = self.scenario.links.iter().zip(&self.links);
        links.flat_map(|(link, medium)| self.scenario.medium_summaries(link, &**medium, duration)).collect()
    }

    /// The flow of the file that a packet belongs to.
    #[inline]
    fn flow(&self, packet: &Packet) -> usize {
        self.flow_of(packet.flow)
    }

    /// The flow of the file with this id; guests have other ids.
    #[inline]
    pub(crate) fn flow_of(&self, id: FlowId) -> usize {
        self.ids.find(id.0).unwrap_or_default()
    }

    /// The link that a packet for one station enters next.
    #[inline]
    fn way(&self, packet: &Packet) -> Option<Branch> {
        let flow = &self.scenario.flows[self.flow(packet)];
        let hop = usize::from(packet.hop);
        if let Some((link, from_port)) = flow.nowhere.filter(|_| hop == 0) {
            return Some(Branch { link, from_port, to: Destination::Nobody });
        }
        let sink = flow.to.get(usize::from(packet.sink))?;
        let path = if packet.backward { &sink.backward } else { &sink.forward };
        let PathStep { link, from_port, to_port } = *path.get(hop)?;
        Some(Branch { link, from_port, to: Destination::Port(Port(to_port)) })
    }

    #[inline]
    fn offer(&mut self, now: Time, packet: Packet, events: &mut EventQueue<Event>) {
        if packet.group {
            let from = packet.from.host;
            self.spread(now, &packet, |tree| tree.leaving(from), events);
            return self.recycle(packet.bytes);
        }
        match self.way(&packet) {
            Some(branch) => self.enter(now, branch, packet, events),
            None => self.recycle(packet.bytes),
        }
    }

    /// Sends a copy of a packet for a group into each of these links that leads to a member.
    fn spread(
        &mut self,
        now: Time,
        packet: &Packet,
        ways: impl Fn(&Tree) -> &[u32],
        events: &mut EventQueue<Event>,
    ) {
        let flow = self.flow(packet);
        for index in 0.. {
            let Some(tree) = self.trees[flow].as_ref() else { return };
            let Some(&way) = ways(tree).get(index) else { return };
            let Some(branch) = tree.taken(way) else { continue };
            let mut bytes = self.buffer();
            bytes.extend_from_slice(&packet.bytes);
            let copy = Packet { bytes, ..*packet };
            self.enter(now, branch, copy, events);
        }
    }

    #[inline]
    fn enter(&mut self, now: Time, branch: Branch, mut packet: Packet, events: &mut EventQueue<Event>) {
        packet.to = branch.to;
        packet.entered = Port(branch.from_port);
        packet.on_line = Bytes::ZERO;
        if packet.group {
            self.on_first_links.entered(self.flow(&packet), branch.link, &packet);
        }
        let entered = PacketStep::Entered { port: branch.from_port, size: packet.size };
        self.follow(now, branch.link, (packet.id, packet.flow), entered);
        self.links[branch.link].offer(now, Port(branch.from_port), packet, &mut self.outcome);
        self.settle(now, branch.link, events);
    }

    /// Queues what a link handed out, and its next event.
    fn settle(&mut self, now: Time, link: usize, events: &mut EventQueue<Event>) {
        if !self.outcome.deliveries.is_empty() {
            let mut deliveries = core::mem::take(&mut self.outcome.deliveries);
            deliveries.drain(..).for_each(|delivery| self.deliver(now, link, delivery, events));
            self.outcome.deliveries = deliveries;
        }
        if !self.outcome.fates.0.is_empty() {
            let mut fates = core::mem::take(&mut self.outcome.fates.0);
            fates.drain(..).for_each(|fate| self.meet(now, link, fate, events));
            self.outcome.fates.0 = fates;
        }
        while let Some(packet) = self.outcome.carried.pop() {
            if !self.is_guests(&packet) {
                let flow = self.flow(&packet);
                self.on_first_links.carried(flow, link, &packet);
            }
        }
        if let Some(next) = self.links[link].next_event()
            && next < self.scheduled[link]
        {
            self.scheduled[link] = next;
            events.push(next, Event::Medium(link as u32));
        }
    }

    /// Queues the arrival of a packet.
    #[inline]
    fn deliver(
        &mut self,
        now: Time,
        link: usize,
        Delivery { at, to, packet }: Delivery,
        events: &mut EventQueue<Event>,
    ) {
        if self.is_guests(&packet) {
            let step = PathStep { link, from_port: packet.entered.0, to_port: to.0 };
            let slot = self.store_of_guest(packet, step);
            return events.push(at, Event::Arrive(slot));
        }
        self.follow(now, link, (packet.id, packet.flow), PacketStep::Left { arrives: at });
        let flow = self.flow(&packet);
        self.on_first_links.left(flow, link, &packet);
        if waits_in_socket(&packet) && self.sockets.leave(flow, &packet) {
            events.push(now, Event::Room(packet.flow));
        }
        let station = match (packet.group, packet.to) {
            (true, _) => self.trees[flow].as_ref().and_then(|tree| tree.station(link, to.0)),
            (false, Destination::Nobody) => None,
            (false, _) => Some(0),
        };
        match station {
            Some(station) => {
                let is_group = packet.group;
                let slot = self.keep(packet);
                if is_group {
                    self.stations.resize(self.stations.len().max(slot as usize + 1), 0);
                    self.stations[slot as usize] = station;
                }
                events.push(at, Event::Arrive(slot));
            }
            // The station has heard what was not for it.
            None => self.recycle(packet.bytes),
        }
    }

    /// Takes note of a packet that was marked or dropped.
    fn meet(&mut self, now: Time, link: usize, fate: Fate, events: &mut EventQueue<Event>) {
        let (packet, cause) = match fate {
            Fate::Dropped { packet, cause, .. } => (packet, cause),
            Fate::Marked { id, flow, cause, .. } => {
                return self.follow(now, link, (id, flow), PacketStep::Marked(cause.name()));
            }
        };
        self.follow(now, link, (packet.id, packet.flow), PacketStep::Dropped(cause.name()));
        if self.is_guests(&packet) {
            return self.recycle(packet.bytes);
        }
        let flow = self.flow(&packet);
        self.on_first_links.left(flow, link, &packet);
        if !packet.backward && !packet.group && self.watched[flow] {
            events.push(now, Event::Left(packet.flow));
        }
        if waits_in_socket(&packet) && self.sockets.leave(flow, &packet) {
            events.push(now, Event::Room(packet.flow));
        }
        if self.keeps_dropped[flow] {
            self.dropped.push((packet, link));
        } else {
            self.recycle(packet.bytes);
        }
    }

    #[inline]
    fn follow(&mut self, at: Time, link: usize, (id, flow): (PacketId, FlowId), step: PacketStep) {
        if let Some(followed) = &mut self.followed {
            followed.push(PacketEvent { at, link, id, flow, step });
        }
    }
}

/// Whether a packet on its first link takes room in its socket.
fn waits_in_socket(packet: &Packet) -> bool {
    packet.hop == 0 && !packet.backward && !packet.group
}
