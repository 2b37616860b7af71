//! Pure objects from a scenario.

use core::ops::Range;

use trunkline_core::{Seed, Time};
use trunkline_network::medium::PortConfig;
use trunkline_network::{Medium, medium, queue};
use trunkline_traffic::{Source, SourceContext};

use crate::model::{Flow, Host, Link, Scenario};

impl Scenario {
    /// The reason why a flow cannot cross the links of the file; `None` if links lead to all its sinks.
    pub fn unlinked(&self, flow: &Flow) -> Option<String> {
        let sink = flow.to.iter().find(|sink| sink.forward.is_empty())?;
        let [from, to] = [flow.from, sink.host].map(|host| &self.hosts[host].name);
        Some(format!(
            "no link leads from `{from}` to `{to}`; add a `[link.NAME]`, or use the network as it is with `--on live`"
        ))
    }

    /// The links, empty, in their order. Their random streams are named after their place:
    /// `link.trunk/berlin-ottawa/loss`.
    pub fn build_links(&self, seed: Seed) -> Vec<Box<dyn Medium>> {
        self.links.iter().map(|link| self.build_link(link, seed)).collect()
    }

    pub(crate) fn build_link(&self, link: &Link, seed: Seed) -> Box<dyn Medium> {
        let config = |port: usize| {
            let direction = &link.directions[port];
            let (kind, values) = &direction.queue;
            let place = place(link, &self.hosts, port);
            PortConfig {
                values: &direction.values,
                queue: (queue::KINDS[*kind].build)(values, seed.stream(&format!("{place}/queue"))),
                impairments: direction.impairments.clone(),
                place,
            }
        };
        let ports = (0..link.directions.len()).map(config).collect();
        (medium::KINDS[link.medium].build)(&link.shared, ports, seed)
    }

    /// The source of one member of the flow with this index. Its random streams are named after its place:
    /// `flow.voice/3/source`.
    ///
    /// # Errors
    /// If the values of the source do not go together; a validated experiment has none of these.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn build_source(&self, flow: usize, member: u32, seed: Seed) -> Result<Box<dyn Source>, String> {
        self.build_connected_source(flow, member, seed, Time::ZERO)
    }

    /// The same where the member's connection stands from `connected` on: if that is later than the start of the flow, it
    /// takes the place of that start.
    ///
    /// # Errors
    /// If the values of the source do not go together; a validated experiment has none of these.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn build_connected_source(
        &self,
        flow: usize,
        member: u32,
        seed: Seed,
        connected: Time,
    ) -> Result<Box<dyn Source>, String> {
        let flow = &self.flows[flow];
        let times = connected.max(Time::ZERO + flow.start)..Time::ZERO + self.duration;
        build(flow, member, flow.meta.channels, times, seed)
    }
}

/// The place of a direction or a station in the experiment, from which its random streams are named.
pub(crate) fn place(link: &Link, hosts: &[Host], port: usize) -> String {
    let name = |port: usize| &hosts[link.between[port]].name;
    match link.between.len() {
        2 => format!("link.{}/{}-{}", link.name, name(port), name(1 - port)),
        _ => format!("link.{}/{}", link.name, name(port)),
    }
}

/// Builds the source of one channel of a flow's first member, to see whether its values go together: that is the same
/// for every channel, and there may be thousands.
pub(crate) fn try_source(flow: &Flow) -> Result<(), String> {
    build(flow, 0, 1, Time::ZERO + flow.start..Time::MAX, Seed::new(0, 0)).map(|_| ())
}

fn build(
    flow: &Flow,
    member: u32,
    channels: u16,
    times: Range<Time>,
    seed: Seed,
) -> Result<Box<dyn Source>, String> {
    // Members of flows that are alike are as spread in time as those of one.
    let (number, count) = flow.alike;
    let place = number * flow.meta.members + member;
    let context = SourceContext {
        channels,
        member: place,
        members: flow.meta.members * count,
        start: times.start + flow.stagger * u64::from(place),
        stop: times.end,
        seed,
        place: format!("flow.{}/{member}/source", flow.meta.name),
        speech: flow.source.speech.clone(),
        custom: flow.source.custom.clone(),
    };
    (trunkline_traffic::KINDS[flow.source.kind].build)(&flow.source.values, &context)
}
