//! The hosts of a scenario that are kernels, as the simulator has them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use trunkline_core::{Duration as Span, Ecn, Packet, Port, Seed, Time};
use trunkline_experiment::{PathStep, Scenario};
use trunkline_metrics::Console;
use trunkline_simulator::{GuestFailure, GuestPacket, Guests};
use trunkline_wire::device::Layer;
use trunkline_wire::plan::{Attachment, Plan};
use trunkline_wire::relay::flows::Flows;
use trunkline_wire::relay::header::{self, Header};

use crate::KernelError;
use crate::guest::{Boot, Guest};
use crate::init::{Interface, READY, Setup};
use crate::named::KernelMeans;

/// When the simulation begins, in the time of the kernels: all have started by then.
const START: u64 = 5_000_000_000;
/// Memory of a kernel, in megabytes.
const MEMORY: u32 = 256;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERNET: usize = 14;

/// The kernels of a scenario.
pub struct Kernels {
    hosts: Vec<Running>,
    plan: Plan,
    flows: Flows,
    /// The shortest time until a packet of a guest arrives.
    lookahead: Span,
    _pinned: Pinned,
}

/// While this lives, the calling thread and the kernels that it starts share one core: only one of them runs at a time, and a
/// message between two of them costs a third of what it costs between cores.
struct Pinned {
    core: usize,
    before: Option<CpuSet>,
}

/// The cores of simulations with kernels in this process.
static TAKEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn taken() -> MutexGuard<'static, Vec<usize>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pinned {
    fn new() -> Pinned {
        let before = sched_getaffinity(Pid::from_raw(0)).ok();
        let here = sched_getcpu().unwrap_or_default();
        let allowed = |core: &usize| before.is_some_and(|set| set.is_set(*core).unwrap_or(false));
        let mut taken = taken();
        let free = [here].into_iter().chain(0..CpuSet::count()).filter(allowed);
        let core = free.into_iter().find(|core| !taken.contains(core)).unwrap_or(here);
        taken.push(core);
        let mut only = CpuSet::new();
        // A system that does not pin is slower.
        let _ = only.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
        Pinned { core, before }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut taken = taken();
        if let Some(place) = taken.iter().position(|core| *core == self.core) {
            taken.swap_remove(place);
        }
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}

/// A kernel that runs.
struct Running {
    /// Its index in the scenario.
    host: usize,
    guest: Guest,
}

impl Kernels {
    /// Starts the kernels of a scenario; `None` without any. Their files are relative to `folder`.
    ///
    /// # Errors
    /// If one does not start.
    pub fn start(
        scenario: &Scenario,
        seed: Seed,
        folder: &Path,
        means: &KernelMeans,
    ) -> Result<Option<Kernels>, KernelError> {
        if scenario.hosts.iter().all(|host| host.kernel.is_none()) {
            return Ok(None);
        }
        let plan = Plan::new(scenario).map_err(|error| KernelError::Plan(error.to_string()))?;
        let start = |(host, of): (usize, &trunkline_experiment::Host)| {
            let kernel = of.kernel.as_ref()?;
            let file = means.locate(&kernel.file, folder);
            let setup = setup(&plan, host, kernel.run.clone(), folder);
            let seed = seed.stream(&format!("hosts.{}/kernel", of.name)).bits();
            Some((host, of.name.clone(), file, setup, seed))
        };
        let pinned = Pinned::new();
        let starts: Vec<_> = scenario.hosts.iter().enumerate().filter_map(start).collect();
        let started: Vec<Result<Running, KernelError>> = thread::scope(|scope| {
            let start = |(host, name, file, setup, seed): &(usize, String, PathBuf, Setup, u64)| {
                let boot = Boot { name, kernel: file, init: &means.init, setup, seed: *seed, memory: MEMORY };
                start_guest(&boot).map(|guest| Running { host: *host, guest })
            };
            let threads: Vec<_> = starts.iter().map(|each| scope.spawn(move || start(each))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        let hosts = started.into_iter().collect::<Result<Vec<_>, _>>()?;
        let delays = scenario.links.iter().flat_map(|link| &link.directions).map(|direction| direction.delay);
        let lookahead = delays.min().unwrap_or_default();
        Ok(Some(Kernels { hosts, plan, flows: Flows::default(), lookahead, _pinned: pinned }))
    }

    /// The output of the hosts until now: of each as [`Guest::console`] has it.
    pub fn consoles(&self) -> Vec<Console> {
        let console = |running: &Running| {
            let (host, ready) = (self.plan.hosts[running.host].name.clone(), format!("{READY}\n"));
            let mut text = running.guest.console();
            if let Some(at) = text.find(&ready) {
                text.replace_range(at..at + ready.len(), "");
            }
            Console { host, text }
        };
        self.hosts.iter().map(console).collect()
    }

    fn next(&self) -> Option<(usize, u64)> {
        let wants = |(place, running): (usize, &Running)| Some((place, running.guest.wants()?));
        self.hosts.iter().enumerate().filter_map(wants).min_by_key(|(_, at)| *at)
    }

    fn running(&mut self, host: usize) -> Option<&mut Guest> {
        self.hosts.iter_mut().find(|running| running.host == host).map(|running| &mut running.guest)
    }

    /// The packet of a frame of this host's interface, and where it goes; `None` if it is not for a station of the link.
    fn packet(&mut self, now: Time, out: (usize, u16), frame: &[u8]) -> Option<(PathStep, Packet)> {
        let (ethernet, bytes) = frame.split_first_chunk::<ETHERNET>()?;
        if ethernet[12..] != ETHERTYPE_IPV4 {
            return None;
        }
        let to = self.plan.links[out.0].stations.iter().find(|station| station.mac == ethernet[..6])?;
        let step = PathStep { link: out.0, from_port: out.1, to_port: to.port };
        let header = Header::read(Layer::Ip, bytes);
        let (flow, backward) = self.flows.classify(now, header.key.as_ref());
        let packet = Packet {
            flow,
            size: header.size(bytes),
            ecn: header.ecn,
            priority: header.urgency,
            backward,
            headers: header.transport as u16,
            bytes: bytes.to_vec(),
            ..Packet::default()
        };
        Some((step, packet))
    }
}

impl Guests for Kernels {
    fn next_event(&self) -> Option<Time> {
        self.next().and_then(|(_, at)| simulated(at))
    }

    fn run(&mut self, now: Time, until: Time, sent: &mut Vec<GuestPacket>) -> Result<(), GuestFailure> {
        let Some((place, wants)) = self.next().filter(|(_, wants)| *wants <= own(now)) else { return Ok(()) };
        let others = self.hosts.iter().enumerate().filter(|(other, _)| *other != place);
        let others = others.filter_map(|(_, running)| running.guest.wants());
        let until = others.fold(own(until.min(now + self.lookahead)), u64::min);
        let Running { host, guest } = &mut self.hosts[place];
        let host = *host;
        guest.run(wants.max(own(now)), until).map_err(failure)?;
        for (index, out) in self.plan.hosts[host].attachments.clone().into_iter().enumerate() {
            let frames: Vec<(u64, Vec<u8>)> = self.hosts[place].guest.sent(index).collect();
            for (at, frame) in frames {
                let at = simulated(at).unwrap_or(now);
                if let Some((step, packet)) = self.packet(at, out, &frame) {
                    sent.push(GuestPacket { at, step, packet });
                }
            }
        }
        Ok(())
    }

    fn is_guest(&self, host: usize) -> bool {
        self.hosts.iter().any(|running| running.host == host)
    }

    fn receive(&mut self, now: Time, link: usize, port: Port, packet: Packet) -> Result<(), GuestFailure> {
        let at = self.plan.station((link, port.0)).clone();
        let from = self.plan.station((link, packet.entered.0)).mac;
        let mut ethernet = [0; ETHERNET];
        ethernet[..6].copy_from_slice(&at.mac);
        ethernet[6..12].copy_from_slice(&from);
        ethernet[12..].copy_from_slice(&ETHERTYPE_IPV4);
        let mut bytes = packet.bytes;
        if packet.ecn == Ecn::CongestionExperienced {
            header::mark(Layer::Ip, &mut bytes);
        }
        let attachments = &self.plan.hosts[at.host].attachments;
        let index = attachments.iter().position(|own| *own == (link, port.0)).unwrap_or_default();
        match self.running(at.host) {
            Some(guest) => guest.receive(own(now), index, &ethernet, &bytes).map_err(failure),
            None => Ok(()),
        }
    }

    fn forward(&self, host: usize, packet: &Packet) -> Option<PathStep> {
        let key = Header::read(Layer::Ip, &packet.bytes).key?;
        self.plan.step_towards(host, key.addresses[1])
    }
}

/// Starts a kernel and lets it run until the simulation begins.
fn start_guest(boot: &Boot<'_>) -> Result<Guest, KernelError> {
    let mut guest = Guest::start(boot)?;
    while let Some(wants) = guest.wants().filter(|wants| *wants < START) {
        guest.run(wants, START)?;
        for index in 0..boot.setup.interfaces.len() {
            guest.sent(index).for_each(drop);
        }
    }
    let console = guest.console();
    match console.lines().any(|line| line == READY) {
        true => Ok(guest),
        false => Err(KernelError::NotReady { host: boot.name.to_owned(), console }),
    }
}

fn setup(plan: &Plan, host: usize, run: Option<String>, folder: &Path) -> Setup {
    // Nothing between two kernels tells them that a packet is too large for a link.
    let mtu = plan.links.iter().flat_map(|link| &link.stations).map(|station| station.mtu).min();
    let mtu = u16::try_from(mtu.unwrap_or(1500)).unwrap_or(u16::MAX);
    let interface = |own: &(usize, u16)| {
        let station: &Attachment = plan.station(*own);
        let others = plan.links[own.0].stations.iter().filter(|other| other.port != own.1);
        let routes = plan.hosts[host].routes.iter().filter(|route| route.out == *own);
        let subnets = routes.flat_map(|route| {
            let next = plan.station((own.0, route.next)).ipv4;
            plan.subnets(route.to).into_iter().filter_map(move |subnet| match subnet.first {
                std::net::IpAddr::V4(first) => Some((first, subnet.prefix, next)),
                std::net::IpAddr::V6(_) => None,
            })
        });
        Interface {
            name: station.interface.clone(),
            mac: station.mac,
            address: station.ipv4,
            mtu,
            neighbours: others.map(|other| (other.ipv4, other.mac)).collect(),
            routes: subnets.collect(),
        }
    };
    Setup {
        name: plan.hosts[host].name.clone(),
        interfaces: plan.hosts[host].attachments.iter().map(interface).collect(),
        names: plan.names(host),
        run,
        start: Duration::from_nanos(START),
        folder: folder.display().to_string(),
    }
}

/// A time of the simulation in a kernel's nanoseconds.
fn own(at: Time) -> u64 {
    START.saturating_add(at.as_nanos())
}

/// The same the other way; `None` for a time that is never.
fn simulated(at: u64) -> Option<Time> {
    (at < i64::MAX as u64).then(|| Time::from_nanos(at.saturating_sub(START)))
}

fn failure(error: KernelError) -> GuestFailure {
    GuestFailure(error.to_string())
}
