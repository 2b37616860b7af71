//! From what a driver records of an experiment to [`Observations`].

use trunkline_core::{FlowId, Time};
use trunkline_experiment::Scenario;
use trunkline_metrics::{Observation, Recorder};

use crate::observations::{Observations, ObservedFlow, Packet, Way};

/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;

/// Records the flows of an experiment whose messages are one UDP packet each.
#[derive(Debug)]
pub struct Collector {
    flows: Vec<Collected>,
}

#[derive(Debug)]
struct Collected {
    first: FlowId,
    ids: u32,
    flow: ObservedFlow,
    /// By member, the place of each sequence number's packet.
    places: Vec<Vec<usize>>,
}

impl Collector {
    /// Records the flows of `scenario`. Those from `here` go forward, all others backward.
    pub fn new(scenario: &Scenario, here: &str) -> Collector {
        let is_here = |host: usize| scenario.hosts.get(host).is_some_and(|host| host.name == here);
        let flows = scenario.flows.iter().map(|flow| Collected {
            first: flow.meta.first,
            ids: flow.meta.ids(),
            flow: ObservedFlow {
                name: flow.meta.name.clone(),
                way: if is_here(flow.from) { Way::Forward } else { Way::Backward },
                packets: Vec::new(),
            },
            places: vec![Vec::new(); flow.meta.members as usize],
        });
        Collector { flows: flows.collect() }
    }

    /// All packets that were sent.
    pub fn finish(self) -> Observations {
        let mut flows: Vec<ObservedFlow> = self.flows.into_iter().map(|collected| collected.flow).collect();
        for flow in &mut flows {
            flow.packets.sort_by_key(|packet| packet.sent);
        }
        Observations { flows, clock_error: None }
    }
}

impl Recorder for Collector {
    fn record(&mut self, at: Time, id: FlowId, what: Observation) {
        let of = |collected: &&mut Collected| {
            (collected.first.0..collected.first.0 + collected.ids).contains(&id.0)
        };
        let Some(collected) = self.flows.iter_mut().find(of) else { return };
        let member = (id.0 - collected.first.0) as usize;
        let Some(places) = collected.places.get_mut(member) else { return };
        match what {
            Observation::Sent { sequence, payload, .. } => {
                let place = collected.flow.packets.len();
                let bytes = u32::try_from(payload.0 + HEADERS).unwrap_or(u32::MAX);
                collected.flow.packets.push(Packet { sent: at, bytes, delay: None });
                places.resize(places.len().max(sequence as usize + 1), usize::MAX);
                places[sequence as usize] = place;
            }
            Observation::Received { sequence, sent, .. } => {
                let place = places.get(sequence as usize).copied();
                let packet = place.and_then(|place| collected.flow.packets.get_mut(place));
                // Of several copies, the first counts.
                if let Some(packet) = packet.filter(|packet| packet.delay.is_none()) {
                    let delay = i128::from(at.as_nanos()) - i128::from(sent.as_nanos());
                    packet.delay = i64::try_from(delay).ok();
                }
            }
            _ => {}
        }
    }
}
