//! What happened between two looks at a wire.

use trunkline_core::{Duration, Rate};

use super::snapshot::{DirectionSnapshot, FlowSide, LinkSnapshot, Packets, WireSnapshot};

/// Rates of all links between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Every direction of every link.
    pub directions: Vec<DirectionRates>,
    /// Every direction of every flow in which something was, the fastest first.
    pub flows: Vec<FlowRates>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionRates {
    /// The link.
    pub link: String,
    /// The host that sends.
    pub from: String,
    /// The host at the other end, if there is only one.
    pub to: Option<String>,
    /// Whether the link is up.
    pub up: bool,
    /// What came from the host, at the network layer.
    pub offered: Rate,
    /// What came out.
    pub delivered: Rate,
    /// The share of the time in which the line was busy.
    pub utilisation: f64,
    /// What waits now.
    pub waiting: Packets,
    /// Packets dropped per second, also those that the relay came too late for.
    pub drops: f64,
    /// Packets marked per second.
    pub marks: f64,
    /// Mean time in the queue; `None` if nothing left it.
    pub sojourn: Option<Duration>,
    /// What 99 % of these times did not exceed since the wire is up.
    pub sojourn_p99: Duration,
}

/// One direction of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRates {
    /// The link.
    pub link: String,
    /// Its protocol and ends.
    pub name: String,
    /// Whether it is the way back, to the end that sent the first packet.
    pub backward: bool,
    /// What came out of the link.
    pub delivered: Rate,
    /// Packets in the link now.
    pub waiting: u64,
    /// Packets dropped per second.
    pub drops: f64,
    /// Packets marked per second.
    pub marks: f64,
    /// Mean time from end to end of the link; `None` if nothing came out.
    pub transit: Option<Duration>,
}

impl Rates {
    /// Between two looks at the same wire.
    pub fn between(before: &WireSnapshot, now: &WireSnapshot) -> Rates {
        let mut rates = Rates::default();
        for link in &now.links {
            let nothing = LinkSnapshot::default();
            let earlier = before.links.iter().find(|earlier| earlier.link == link.link).unwrap_or(&nothing);
            let over = Over(link.at_ns.saturating_sub(earlier.at_ns));
            for (port, direction) in link.directions.iter().enumerate() {
                let nothing = DirectionSnapshot::default();
                let earlier = earlier.directions.get(port).unwrap_or(&nothing);
                rates.directions.push(over.direction(link, earlier, direction));
            }
            for flow in &link.flows {
                // Of a number that has passed to another flow nothing is known from before.
                let earlier = earlier.flows.iter().find(|e| (e.flow, &e.name) == (flow.flow, &flow.name));
                let before = earlier.map_or_else(Default::default, |earlier| earlier.directions);
                for (backward, (before, now)) in
                    [false, true].into_iter().zip(before.iter().zip(&flow.directions))
                {
                    if now.offered.packets > before.offered.packets || now.waiting > 0 {
                        let name = (link.link.clone(), flow.name.clone());
                        rates.flows.push(over.flow(name, backward, before, now));
                    }
                }
            }
        }
        rates.flows.sort_by_key(|flow| core::cmp::Reverse(flow.delivered));
        rates
    }
}

/// So many nanoseconds.
#[derive(Clone, Copy)]
struct Over(u64);

impl Over {
    fn per_second(self, before: u64, now: u64) -> f64 {
        if self.0 == 0 { 0.0 } else { now.saturating_sub(before) as f64 * 1e9 / self.0 as f64 }
    }

    fn rate(self, before: Packets, now: Packets) -> Rate {
        Rate::from_bits_per_second((8.0 * self.per_second(before.bytes, now.bytes)).round() as u64)
    }

    fn direction(
        self,
        link: &LinkSnapshot,
        before: &DirectionSnapshot,
        now: &DirectionSnapshot,
    ) -> DirectionRates {
        let lost = |d: &DirectionSnapshot| d.dropped.values().sum::<u64>() + d.overflowed + d.refused;
        let marked = |d: &DirectionSnapshot| d.marked.values().sum();
        DirectionRates {
            link: link.link.clone(),
            from: now.from.clone(),
            to: now.to.clone(),
            up: link.up,
            offered: self.rate(before.offered, now.offered),
            delivered: self.rate(before.delivered, now.delivered),
            // A transmission counts as a whole when it begins.
            utilisation: (self.per_second(before.busy_ns, now.busy_ns) / 1e9).min(1.0),
            waiting: now.waiting,
            drops: self.per_second(lost(before), lost(now)),
            marks: self.per_second(marked(before), marked(now)),
            sojourn: mean(
                (before.sojourn.total_ns, before.sojourn.count),
                (now.sojourn.total_ns, now.sojourn.count),
            ),
            sojourn_p99: Duration::from_nanos(now.sojourn.p99_ns),
        }
    }

    fn flow(
        self,
        (link, name): (String, String),
        backward: bool,
        before: &FlowSide,
        now: &FlowSide,
    ) -> FlowRates {
        FlowRates {
            link,
            name,
            backward,
            delivered: self.rate(before.delivered, now.delivered),
            waiting: now.waiting,
            drops: self.per_second(before.dropped, now.dropped),
            marks: self.per_second(before.marked, now.marked),
            transit: mean(
                (before.transit_total_ns, before.delivered.packets),
                (now.transit_total_ns, now.delivered.packets),
            ),
        }
    }
}

/// The mean of what was added to a sum.
fn mean(before: (u64, u64), now: (u64, u64)) -> Option<Duration> {
    let (total, count) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    total.checked_div(count).map(Duration::from_nanos)
}
