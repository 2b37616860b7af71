//! Bytes that flows take of the first link of their path.

use std::collections::BTreeSet;

use trunkline_core::{Bytes, Packet, PacketId, Port, Ranges, Time};
use trunkline_experiment::Scenario;
use trunkline_metrics::OnNetwork;
use trunkline_network::Medium;

/// By flow of the file, what its forward packets took of their first link, with that link's framing, whether they arrive or
/// not: counted when the link delivers or drops them.
pub(crate) struct OnFirstLinks {
    flows: Vec<Flow>,
    /// The packet counted last: a copy made by the link takes nothing of it.
    last: PacketId,
    /// Packets for several stations of the link that they entered, until the first of their copies comes out.
    entered: BTreeSet<PacketId>,
}

struct Flow {
    /// Its first link, and the port at which packets enter it.
    link: Option<(usize, Port)>,
    /// Whether several packets come out of the link for one that enters it.
    spreads: bool,
    transmitted: Bytes,
    /// What was transmitted before the flow's first message, to connect.
    before: Option<Bytes>,
    /// The packet counted last, and its bytes.
    last: (PacketId, Bytes),
    measured: Option<(Time, Bytes)>,
    all: Option<Bytes>,
}

impl OnFirstLinks {
    pub(crate) fn new(scenario: &Scenario) -> OnFirstLinks {
        let flow = |flow: &trunkline_experiment::Flow| {
            let first = flow.first_link();
            Flow {
                link: first.map(|(link, port)| (link, Port(port))),
                spreads: flow.is_multicast()
                    && first.is_some_and(|(link, _)| scenario.links[link].between.len() > 2),
                transmitted: Bytes::ZERO,
                before: None,
                last: (NONE, Bytes::ZERO),
                measured: None,
                all: None,
            }
        };
        let flows = scenario.flows.iter().map(flow).collect();
        OnFirstLinks { flows, last: NONE, entered: BTreeSet::new() }
    }

    /// A flow has its first message. What it sent to connect is not of the time that is measured.
    #[inline]
    pub(crate) fn begin(&mut self, flow: usize) {
        let flow = &mut self.flows[flow];
        flow.before.get_or_insert(flow.transmitted);
    }

    /// A flow has its first sink. What it sent to nobody is not of the time that is measured.
    pub(crate) fn restart(&mut self, flow: usize) {
        let flow = &mut self.flows[flow];
        flow.before = flow.before.map(|_| flow.transmitted);
    }

    /// A packet for a group enters a link. Of one that is for several stations of it, the first copy that comes out counts.
    #[inline]
    pub(crate) fn entered(&mut self, flow: usize, link: usize, packet: &Packet) {
        let flow = &self.flows[flow];
        if flow.spreads && flow.is_first(link, packet) {
            self.entered.insert(packet.id);
        }
    }

    /// A link hands out a packet, which it delivers or drops.
    #[inline]
    pub(crate) fn left(&mut self, flow: usize, link: usize, packet: &Packet) {
        let flow = &mut self.flows[flow];
        if !flow.is_first(link, packet) {
            return;
        }
        let counts = match packet.group && flow.spreads {
            true => self.entered.remove(&packet.id) && packet.on_line > Bytes::ZERO,
            false => {
                packet.on_line > Bytes::ZERO && core::mem::replace(&mut self.last, packet.id) != packet.id
            }
        };
        if counts {
            flow.carried(packet);
        }
    }

    /// A link has carried a packet, or parts of one, that it does not hand out any more with what it took.
    pub(crate) fn carried(&mut self, flow: usize, link: usize, packet: &Packet) {
        let flow = &mut self.flows[flow];
        if flow.is_first(link, packet) {
            flow.carried(packet);
        }
    }

    /// The measurement ends now.
    pub(crate) fn end_measurement(&mut self, now: Time, links: &[Box<dyn Medium>], ids: &Ranges) {
        let taken = self.taken(now, links, ids);
        for (flow, taken) in self.flows.iter_mut().zip(taken) {
            flow.measured.get_or_insert((now, taken));
        }
    }

    /// The run ends now, with its drain time.
    pub(crate) fn end(&mut self, now: Time, links: &[Box<dyn Medium>], ids: &Ranges) {
        let taken = self.taken(now, links, ids);
        for (flow, taken) in self.flows.iter_mut().zip(taken) {
            flow.all = Some(taken);
        }
    }

    /// By flow, what was transmitted until now. What waits in a switch behind its first line counts; of a packet whose
    /// transmission has begun, only the part that is through.
    fn taken(&self, now: Time, links: &[Box<dyn Medium>], ids: &Ranges) -> Vec<Bytes> {
        let under_way = |flow: &Flow| flow.link.and_then(|(link, port)| links[link].under_way(port, now));
        let mut under_way: Vec<_> = self.flows.iter().map(under_way).collect();
        // The packet under way has not taken all of its bytes yet.
        let mut through = |flow: usize, (id, bytes): (PacketId, Bytes)| match under_way[flow] {
            Some((packet, share)) if packet == id => {
                under_way[flow] = None;
                bytes.saturating_sub(Bytes((bytes.count() as f64 * share).ceil() as u64))
            }
            _ => bytes,
        };
        let mut taken = vec![Bytes::ZERO; self.flows.len()];
        let mut entered = self.entered.clone();
        for (link, medium) in links.iter().enumerate() {
            medium.behind_the_line(&mut |packet| {
                let index = ids.find(packet.flow.0);
                if let Some((index, flow)) = index.and_then(|index| Some((index, self.flows.get(index)?)))
                    && flow.is_first(link, packet)
                    && (!(packet.group && flow.spreads) || entered.remove(&packet.id))
                {
                    taken[index] += through(index, (packet.id, packet.on_line));
                }
            });
        }
        for (index, (flow, taken)) in self.flows.iter().zip(&mut taken).enumerate() {
            *taken += flow.transmitted.saturating_sub(flow.last.1) + through(index, flow.last);
        }
        taken
    }

    /// What a flow took.
    pub(crate) fn of(&self, flow: usize) -> OnNetwork {
        let Flow { transmitted, before, measured, all, .. } = self.flows[flow];
        let before = before.unwrap_or(transmitted);
        let (until, measured) = measured.unwrap_or((Time::ZERO, transmitted));
        let [measured, all] =
            [measured, all.unwrap_or(transmitted)].map(|bytes| bytes.saturating_sub(before));
        OnNetwork { measured, until, all }
    }
}

impl Flow {
    /// Returns true if the link is the first of a packet of this flow.
    fn is_first(&self, link: usize, packet: &Packet) -> bool {
        self.link.is_some_and(|(first, _)| first == link) && !packet.backward && packet.hop == 0
    }

    /// Counts what a packet took of the line.
    fn carried(&mut self, packet: &Packet) {
        self.transmitted += packet.on_line;
        self.last = (packet.id, packet.on_line);
    }
}

/// No packet.
const NONE: PacketId = PacketId(u64::MAX);
