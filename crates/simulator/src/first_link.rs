//! Bytes that flows take of the first link of their path.

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
}

struct Flow {
    /// Its first link, the port at which packets enter it, and the framing of a packet for several stations.
    link: Option<(usize, Port, Bytes)>,
    /// Whether several packets come out of the link for one that enters it.
    spreads: bool,
    transmitted: Bytes,
    /// What was transmitted before the flow's first message, to connect.
    before: Option<Bytes>,
    /// The packet counted last: when, and its bytes.
    last: (Time, Bytes),
    measured: Option<(Time, Bytes)>,
    all: Option<Bytes>,
}

impl OnFirstLinks {
    pub(crate) fn new(scenario: &Scenario) -> OnFirstLinks {
        let flow = |flow: &trunkline_experiment::Flow| {
            let first = flow.first_link();
            Flow {
                link: first.map(|(link, port)| {
                    let overhead = scenario.links[link].directions[usize::from(port)].overhead;
                    (link, Port(port), overhead)
                }),
                spreads: flow.is_multicast()
                    && first.is_some_and(|(link, _)| scenario.links[link].between.len() > 2),
                transmitted: Bytes::ZERO,
                before: None,
                last: (Time::ZERO, Bytes::ZERO),
                measured: None,
                all: None,
            }
        };
        OnFirstLinks { flows: scenario.flows.iter().map(flow).collect(), last: PacketId(u64::MAX) }
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

    /// A packet for a group enters a link. One that is for several stations of it counts at once: their copies come out one by
    /// one, or not at all.
    #[inline]
    pub(crate) fn entered(&mut self, flow: usize, link: usize, packet: &Packet) {
        if self.flows[flow].spreads {
            let bytes = self.flows[flow].takes(link, packet);
            self.flows[flow].transmitted += bytes;
        }
    }

    /// A link delivers a packet, whose transmission begins now.
    #[inline]
    pub(crate) fn delivered(&mut self, now: Time, flow: usize, link: usize, packet: &Packet) {
        if !(packet.group && self.flows[flow].spreads) {
            self.transmits(now, flow, link, packet);
        }
    }

    /// A link drops a packet.
    pub(crate) fn dropped(&mut self, now: Time, flow: usize, link: usize, packet: &Packet) {
        if !(packet.group && self.flows[flow].spreads) {
            self.transmits(now, flow, link, packet);
        } else if packet.on_line == Bytes::ZERO {
            let flow = &mut self.flows[flow];
            flow.transmitted = flow.transmitted.saturating_sub(flow.takes(link, packet));
        }
    }

    /// A link has carried parts of a packet after it was dropped.
    pub(crate) fn wasted(&mut self, flow: usize, link: usize, packet: &Packet) {
        let flow = &mut self.flows[flow];
        if flow.is_first(link, packet) && !(packet.group && flow.spreads) {
            flow.transmitted += packet.on_line;
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
        let mut taken: Vec<Bytes> = self.flows.iter().map(|flow| flow.transmitted).collect();
        for (link, medium) in links.iter().enumerate() {
            medium.behind_the_line(&mut |packet| {
                let index = ids.find(packet.flow.0);
                if let Some((index, flow)) = index.and_then(|index| Some((index, self.flows.get(index)?)))
                    && flow.is_first(link, packet)
                    && !(packet.group && flow.spreads)
                {
                    taken[index] += packet.on_line;
                }
            });
        }
        for (flow, taken) in self.flows.iter().zip(&mut taken) {
            let under_way =
                flow.link.and_then(|(link, port, _)| links[link].counters(port).busy.under_way(now));
            let (begun, bytes) = flow.last;
            if let Some((since, share)) = under_way
                && since == begun
            {
                *taken = taken.saturating_sub(Bytes((bytes.count() as f64 * share).ceil() as u64));
            }
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

    fn transmits(&mut self, now: Time, flow: usize, link: usize, packet: &Packet) {
        let flow = &mut self.flows[flow];
        let counts = packet.on_line > Bytes::ZERO && flow.is_first(link, packet);
        if counts && core::mem::replace(&mut self.last, packet.id) != packet.id {
            flow.transmitted += packet.on_line;
            flow.last = (now, packet.on_line);
        }
    }
}

impl Flow {
    /// Returns true if the link is the first of a packet of this flow.
    fn is_first(&self, link: usize, packet: &Packet) -> bool {
        self.link.is_some_and(|(first, ..)| first == link) && !packet.backward && packet.hop == 0
    }

    /// Bytes that a packet for several stations takes of this link, if that is the flow's first.
    fn takes(&self, link: usize, packet: &Packet) -> Bytes {
        match self.link {
            Some((_, _, overhead)) if self.is_first(link, packet) => packet.size + overhead,
            _ => Bytes::ZERO,
        }
    }
}
