//! Where there are namespaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command};
use std::sync::Arc;

use trunkline_core::{Bytes, Duration, Port, Seed, Time};
use trunkline_experiment::{Experiment, Flow, Path, Point, Points, Progress, Scenario, Supervisor};
use trunkline_live::{LiveOptions, Pair, Place};
use trunkline_metrics::{DriverOutcome, MediumSummary, OnNetwork, Recorder, SocketPair};
use trunkline_wire::ground::{DeviceKind, GroundOptions, Namespace};
use trunkline_wire::relay::{FlowKey, RelayCounters, RelayHandle};
use trunkline_wire::{Plan, Wire, WireError, WireOptions};

use super::drops::Drops;
use super::on_sockets;
use crate::driven::{Driven, kept};
use crate::error::RunnerError;
use crate::files;
use crate::request::Request;

/// Measures a repetition of a point on a wire of its own, which is gone afterwards however that ends. Meanwhile the wire
/// can be watched and changed like any other.
pub(crate) fn run(
    request: Request<'_>,
    point: &Point,
    seed: Seed,
    recorder: &mut (dyn Recorder + Send),
    supervisor: &mut (dyn Supervisor + Send),
) -> Driven {
    let means = request
        .wire
        .ok_or_else(|| WireError::Forbidden("this run has no access to network namespaces".to_owned()))?;
    let options = WireOptions {
        ground: GroundOptions {
            name: format!("run-{}", std::process::id()),
            file: request.file.to_path_buf(),
            devices: DeviceKind::best(),
            outside: false,
            init: means.init.clone(),
        },
        seed,
        spin: Duration::ZERO,
        cores: Vec::new(),
    };
    let scenario = Arc::new(on_sockets(&point.scenario.singles()));
    let mut wire = Wire::up(&scenario, &means.access, &options)?;
    let of_point = Experiment { points: Points::only(point.clone()), ..request.experiment.clone() };
    wire.listen(of_point, Box::new(files::named(request.experiment, request.file)))?;
    let hosts: Vec<Host<'_>> = wire.hosts().iter().map(Host).collect();
    let pairs = pairs(&scenario, wire.plan(), &hosts);
    let mut watch = Watch::new(&scenario, &wire, supervisor);
    let key = trunkline_live::draw_key();
    let drops = Drops::new(key, &scenario);
    wire.watch_drops(&drops.collector());
    let live = LiveOptions { key: Some(key), ..request.live.clone() };
    let measured = trunkline_live::run_pairs(&scenario, seed, &pairs, &live, recorder, &mut watch);
    drops.record(recorder);
    let (mut outcome, failed) = kept(measured)?;
    let measured = watch.measured.take();
    summarise(&wire, &scenario, measured, &mut outcome);
    let mut outcome = point.scenario.together(outcome);
    drop(pairs);
    drop(hosts);
    let ends = scenario.links.iter().zip(wire.down().links);
    let broken = ends.filter_map(|(link, end)| Some((link, end.err()?))).next();
    let broken = broken.map(|(link, error)| {
        RunnerError::from(WireError::system(format!("link `{}` has broken", link.name))(error))
    });
    outcome.partial |= broken.is_some();
    Ok((outcome, failed.or(broken)))
}

/// The pairs of hosts between which flows run. Where flows of the same two hosts take different ways, these are different
/// pairs: of their addresses.
fn pairs<'w>(scenario: &Scenario, plan: &Plan, hosts: &'w [Host<'w>]) -> Vec<Pair<'w>> {
    // Where a path ends; on the way from a host to itself there is no link.
    let end = |path: &Path| match path.last() {
        Some(step) => IpAddr::from(plan.station((step.link, step.to_port)).ipv4),
        None => Ipv4Addr::LOCALHOST.into(),
    };
    let mut known = Vec::new();
    let mut pairs: Vec<Pair<'w>> = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        // Flows with several sinks are refused before.
        let Some(sink) = flow.to.first() else { continue };
        let ends = [(flow.from, end(&sink.backward)), (sink.host, end(&sink.forward))];
        if let Some(place) = known.iter().position(|known| *known == ends) {
            pairs[place].flows.push(index);
            continue;
        }
        let [near, far] = ends.map(|(host, address)| (&hosts[host] as &dyn Place, address));
        pairs.push(Pair { flows: vec![index], near, far });
        known.push(ends);
    }
    pairs
}

/// Adds what the links have counted: as the simulator does, and what the machine lost before a link saw it.
fn summarise(wire: &Wire, scenario: &Arc<Scenario>, measured: Option<Measured>, outcome: &mut DriverOutcome) {
    // One that has ended says why when it is stopped.
    let counted: Counted = wire.relays().iter().map(|relay| relay.counters().ok()).collect();
    if let Some(measured) = &measured {
        for (flow, outcome) in scenario.flows.iter().zip(&mut outcome.flows) {
            outcome.network = on_network(flow, &outcome.sockets, measured, &counted);
        }
    }
    let duration = measured.map_or(outcome.duration, |measured| measured.at);
    for (index, (relay, counters)) in wire.relays().iter().zip(counted).enumerate() {
        let scenario = Arc::clone(scenario);
        let Some(counters) = counters else { continue };
        let summaries = relay.change(move |_, medium, _| {
            let link = &scenario.links[index];
            (
                scenario.link_summaries(link, medium, duration),
                scenario.medium_summaries(link, medium, duration),
            )
        });
        let Ok((mut links, media)) = summaries else { continue };
        for (summary, port) in links.iter_mut().zip(&counters.ports).filter(|(_, port)| port.overflowed > 0) {
            summary.offered += port.overflowed;
            summary.dropped.insert("relay-late".to_owned(), port.overflowed);
        }
        outcome.links.extend(links);
        outcome.media.extend(media.into_iter().map(known));
    }
}

/// Without figures of the one member of a flow that a link observes: a relay tells flows by their ports, not by members.
fn known(mut medium: MediumSummary) -> MediumSummary {
    medium.figures.retain(|(name, _)| !name.starts_with("observed-"));
    medium
}

/// What every link had counted; nothing of one that has ended.
type Counted = Vec<Option<RelayCounters>>;

/// What the links had counted when the measurement ended.
struct Measured {
    /// How long it had lasted.
    at: Duration,
    counted: Counted,
}

/// What a flow took of the first link of its path; `None` where its packets cannot be told from others.
fn on_network(flow: &Flow, sockets: &[SocketPair], measured: &Measured, all: &Counted) -> Option<OnNetwork> {
    let (link, _) = flow.first_link()?;
    // Protocols that stand directly over IP have no sockets of their own.
    if sockets.is_empty() {
        return None;
    }
    let bytes = |counted: &Counted| -> Option<Bytes> {
        let counters = counted.get(link)?.as_ref()?;
        let of_pair = |pair: &SocketPair| transmitted(counters, pair);
        sockets.iter().map(of_pair).try_fold(Bytes::ZERO, |sum, bytes| Some(sum + bytes?))
    };
    Some(OnNetwork { measured: bytes(&measured.counted)?, until: Time::ZERO + measured.at, all: bytes(all)? })
}

/// What a link has transmitted from the first of two sockets to the second, with its framing.
fn transmitted(counters: &RelayCounters, pair: &SocketPair) -> Option<Bytes> {
    // Without ports conversations look alike, and so do all fragments.
    let fragments = |key: &FlowKey| key.ports == [0; 2] && key.protocol == pair.protocol;
    let has_fragments = counters.flows.iter().filter_map(|flow| flow.key.as_ref()).any(fragments);
    if counters.flows_forgotten > 0 || pair.near.port() == 0 || has_fragments {
        return None;
    }
    let ends = [pair.near, pair.far];
    let direction = counters.flows.iter().find_map(|flow| {
        let key = flow.key.as_ref().filter(|key| key.protocol == pair.protocol)?;
        let known = [0, 1].map(|end| SocketAddr::new(key.addresses[end], key.ports[end]));
        match known {
            known if known == ends => Some(&flow.directions[0]),
            [to, from] if [from, to] == ends => Some(&flow.directions[1]),
            _ => None,
        }
    });
    Some(direction.map(|direction| direction.transmitted).unwrap_or_default())
}

/// Looks at the queues of the links while they are measured, for a supervisor that wants to know.
struct Watch<'w> {
    supervisor: &'w mut (dyn Supervisor + Send),
    wire: &'w Wire,
    /// The links' names and directions; none if nobody wants to know.
    links: Vec<(String, Vec<String>)>,
    interval: Duration,
    next: Duration,
    measured: Option<Measured>,
}

impl<'w> Watch<'w> {
    fn new(scenario: &Scenario, wire: &'w Wire, supervisor: &'w mut (dyn Supervisor + Send)) -> Watch<'w> {
        let interval = supervisor.backlog_interval();
        let links = scenario.links.iter().filter(|_| interval.is_some());
        Watch {
            links: links.map(|link| (link.name.clone(), scenario.directions(link))).collect(),
            interval: interval.unwrap_or_default(),
            next: Duration::ZERO,
            measured: None,
            supervisor,
            wire,
        }
    }

    fn look(&mut self, at: Time) {
        for ((link, directions), relay) in self.links.iter().zip(self.wire.relays()) {
            let ports = directions.len() as u16;
            let waiting = relay.change(move |_, medium, _| {
                (0..ports).map(|port| medium.backlog(Port(port))).collect::<Vec<_>>()
            });
            // One that has ended says why when it is stopped.
            let Ok(waiting) = waiting else { continue };
            for (direction, waiting) in directions.iter().zip(waiting) {
                self.supervisor.backlog(at, link, direction, waiting.bytes, waiting.packets);
            }
        }
    }
}

impl Supervisor for Watch<'_> {
    fn progress(&mut self, done: Duration) -> Progress {
        if !self.links.is_empty() && done >= self.next {
            self.next = done + self.interval;
            self.look(Time::ZERO + done);
        }
        self.supervisor.progress(done)
    }

    fn measured(&mut self, at: Duration) {
        let count = |relay: &Arc<RelayHandle>| {
            relay.change(|now, medium, _| medium.end_measurement(now)).ok()?;
            relay.counters().ok()
        };
        self.measured = Some(Measured { at, counted: self.wire.relays().iter().map(count).collect() });
        self.supervisor.measured(at);
    }
}

/// A host of a wire.
struct Host<'w>(&'w Namespace);

impl Place for Host<'_> {
    fn run(&self, work: Box<dyn FnOnce() + Send + '_>) -> io::Result<()> {
        self.0.run(work).map_err(io::Error::other)
    }

    fn spawn(&self, command: Command) -> io::Result<Child> {
        self.0.spawn(command).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::Amount;

    use super::*;

    #[test]
    fn nothing_is_said_of_a_member_that_a_relay_does_not_know() {
        let figure = |name: &str| (name.to_owned(), Some(Amount::Count(12)));
        let figures = vec![figure("cells"), figure("observed-cells"), figure("observed-cells-lost")];
        let medium = known(MediumSummary { medium: "l".to_owned(), station: None, figures });
        assert_eq!(medium.figures, [figure("cells")]);
    }
}
