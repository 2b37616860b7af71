//! Where there are namespaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;

use trunkline_core::{Duration, Port, Seed, Time};
use trunkline_experiment::{Experiment, Path, Point, Progress, Scenario, Supervisor};
use trunkline_live::{Pair, Place};
use trunkline_metrics::{DriverOutcome, Recorder};
use trunkline_wire::ground::{Access, DeviceKind, GroundOptions, InitProgram, Namespace};
use trunkline_wire::{Plan, Wire, WireError, WireOptions};

use super::on_sockets;
use crate::drive::Driven;
use crate::files;
use crate::repetition::kept;
use crate::schedule::{Request, RunnerError};

/// With what wires are made.
#[derive(Clone, Debug)]
pub struct WireMeans {
    access: Access,
    init: InitProgram,
}

impl WireMeans {
    /// Gains the right to make wires, see [`Access::enter`]: has to be done before the process starts its second thread.
    /// The program, with these arguments, calls [`serve_init`](trunkline_wire::ground::serve_init).
    ///
    /// # Errors
    /// If the system forbids it, with the setting that does.
    pub fn gain(program: PathBuf, arguments: Vec<String>) -> Result<WireMeans, WireError> {
        Ok(WireMeans { access: Access::enter()?, init: InitProgram { program, arguments } })
    }
}

/// Measures a repetition of a point on a wire of its own, which is gone afterwards however that ends. Meanwhile the wire
/// can be watched and changed like any other.
pub(crate) fn run(
    request: Request<'_>,
    point: &Point,
    seed: Seed,
    recorder: &mut (dyn Recorder + Send),
    supervisor: &mut (dyn Supervisor + Send),
) -> Driven {
    let means = request.wire.ok_or_else(|| {
        WireError::Forbidden("nobody has gained the right to make namespaces for this run".to_owned())
    })?;
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
    let scenario = Arc::new(on_sockets(&point.scenario));
    let mut wire = Wire::up(&scenario, &means.access, &options)?;
    let of_point = Experiment { points: vec![point.clone()], ..request.experiment.clone() };
    wire.listen(of_point, Box::new(files::named(request.experiment, request.file)))?;
    let hosts: Vec<Host<'_>> = wire.hosts().iter().map(Host).collect();
    let pairs = pairs(&scenario, wire.plan(), &hosts);
    let mut watch = Watch::new(&scenario, &wire, supervisor);
    let measured = trunkline_live::run_pairs(&scenario, seed, &pairs, request.live, recorder, &mut watch);
    let (mut outcome, failed) = kept(measured)?;
    summarise(&wire, &scenario, &mut outcome);
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
fn summarise(wire: &Wire, scenario: &Arc<Scenario>, outcome: &mut DriverOutcome) {
    let duration = outcome.duration;
    for (index, relay) in wire.relays().iter().enumerate() {
        let scenario = Arc::clone(scenario);
        // One that has ended says why when it is stopped.
        let Ok(counters) = relay.counters() else { continue };
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
        outcome.media.extend(media);
    }
}

/// Looks at the queues of the links while they are measured, for a supervisor that wants to know.
struct Watch<'w> {
    supervisor: &'w mut (dyn Supervisor + Send),
    wire: &'w Wire,
    /// The links' names and directions; none if nobody wants to know.
    links: Vec<(String, Vec<String>)>,
    interval: Duration,
    next: Duration,
}

impl<'w> Watch<'w> {
    fn new(scenario: &Scenario, wire: &'w Wire, supervisor: &'w mut (dyn Supervisor + Send)) -> Watch<'w> {
        let interval = supervisor.backlog_interval();
        let links = scenario.links.iter().filter(|_| interval.is_some());
        Watch {
            links: links.map(|link| (link.name.clone(), scenario.directions(link))).collect(),
            interval: interval.unwrap_or_default(),
            next: Duration::ZERO,
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
