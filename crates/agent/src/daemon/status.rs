//! What an agent tells of its host, its owner's limits, and what it is doing.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use trunkline_control::Fingerprint;
use trunkline_control::facts::{ControllerInfo, Facts, Limits, PartInfo, PartState, Permissions, Status};
use trunkline_core::Bytes;
use trunkline_io::Machine;
use trunkline_io::tcp::{StreamProtocol, TcpSetup};
use trunkline_io::udp::SocketOptions;

use super::Daemon;
use super::connected::{Controller, Open};
use super::parts::{End as Side, Part, Stage};
use crate::config::{self, Permission};
use crate::settings::PROGRAM;
use crate::spool::{Ending, PartSpool};

/// What does not change while the agent runs.
#[derive(Debug)]
pub(crate) struct Host {
    machine: Machine,
    memory: Bytes,
    features: BTreeSet<String>,
}

impl Host {
    /// Its memory.
    pub(crate) fn memory(&self) -> Bytes {
        self.memory
    }

    /// Looks at this host.
    pub(crate) fn look() -> Host {
        Host { machine: Machine::describe(), memory: memory_of_host(), features: features() }
    }
}

/// What a controller may know of the host.
pub(super) fn facts(daemon: &Daemon, controller: &Controller) -> Facts {
    let Host { machine, memory, features } = &daemon.host;
    let limits = &daemon.config.limits;
    Facts {
        name: daemon.config.name.clone(),
        program: PROGRAM.to_owned(),
        cpu: machine.cpu.clone().unwrap_or_default(),
        cores: u32::try_from(machine.cores).unwrap_or(u32::MAX),
        kernel: machine.system.clone(),
        memory: *memory,
        disk_free: daemon.spool.disk_free(),
        clock_steps: daemon.counters.clock_steps(),
        features: features.clone(),
        congestion_controls: trunkline_io::tcp::offered_congestion_controls(),
        limits: Limits {
            rate: limits.rate,
            flows: Some(limits.flows.into()),
            memory: limits.memory,
            disk: Some(limits.disk),
            duration: Some(limits.duration),
        },
        permissions: permissions(daemon.config.permission(&controller.name)),
        busy: daemon.parts.busy(only(controller)),
    }
}

/// The controller whose parts, connections and notices may be shown: for the owner all of them (`None`).
fn only(controller: &Controller) -> Option<&Fingerprint> {
    (!controller.is_owner).then_some(&controller.fingerprint)
}

/// The status of the agent: for its owner all of it, for a controller its own part.
pub(super) fn status(daemon: &Daemon, controller: &Controller) -> Status {
    let whose = only(controller);
    let is_shown = |owner: &Fingerprint| whose.is_none_or(|whose| whose == owner);
    let spools = daemon.spool.list();
    let near = spools.iter().filter(|spool| is_shown(&spool.meta().controller));
    let mut parts: Vec<PartInfo> = near.map(|spool| kept(daemon, spool)).collect();
    let far = daemon.parts.list().into_iter().filter(|part| part.end == Side::Far);
    parts.extend(far.filter(|part| is_shown(&part.controller)).map(|part| far_end(&part)));
    let is_counted = |open: &&Open| whose.is_none_or(|whose| open.is_controllers(whose));
    let sessions = daemon.sessions().values().filter(is_counted).count();
    let sessions = u32::try_from(sessions).unwrap_or(u32::MAX);
    let peers = daemon.peers.list().unwrap_or_default().into_iter();
    let controllers = peers.filter(|peer| is_shown(&peer.fingerprint)).map(|peer| ControllerInfo {
        connected: daemon.is_connected(&peer.fingerprint),
        permissions: permissions(daemon.config.permission(&peer.name)),
        name: peer.name,
        fingerprint: peer.fingerprint,
        enrolled: peer.enrolled,
    });
    Status {
        name: daemon.config.name.clone(),
        program: PROGRAM.to_owned(),
        since: daemon.since,
        sessions,
        parts,
        spool: whose.map_or_else(|| daemon.spool.bytes(), |whose| daemon.spool.bytes_of(whose)),
        disk_free: daemon.spool.disk_free(),
        cpu: daemon.load(),
        memory: memory_of_process(),
        clock_steps: daemon.counters.clock_steps(),
        controllers: controllers.collect(),
        notices: daemon.notices.latest(whose),
    }
}

/// The parts that are kept for a controller.
pub(super) fn kept_parts(daemon: &Daemon, controller: &Fingerprint) -> Vec<PartInfo> {
    let parts = daemon.spool.list();
    parts
        .iter()
        .filter(|spool| spool.meta().controller == *controller)
        .map(|spool| kept(daemon, spool))
        .collect()
}

fn kept(daemon: &Daemon, spool: &PartSpool) -> PartInfo {
    let meta = spool.meta();
    let state = match spool.end().map(|end| end.how) {
        Some(Ending::Finished { .. }) => PartState::Finished,
        Some(Ending::Failed { .. }) => PartState::Interrupted,
        None => match daemon.parts.find(&meta.part, Side::Near).map(|part| part.stage()) {
            Some(Stage::Connecting | Stage::Prepared) => PartState::Prepared,
            _ => PartState::Running,
        },
    };
    PartInfo {
        part: meta.part.clone(),
        state,
        chunks: spool.extent().chunks,
        kept_from: spool.kept_from(),
        bytes: spool.bytes(),
        recorded: spool.observations(),
        controller: meta.controller_name.clone(),
    }
}

fn far_end(part: &Part) -> PartInfo {
    PartInfo {
        part: part.id.clone(),
        state: if part.stage() == Stage::Connecting { PartState::Prepared } else { PartState::Running },
        chunks: 0,
        kept_from: 0,
        bytes: Bytes::ZERO,
        recorded: 0,
        controller: part.controller_name.clone(),
    }
}

fn permissions(permission: &Permission) -> Permissions {
    Permissions {
        rate: permission.rate,
        flows: permission.flows.map(u64::from),
        to: Some(permission.to.iter().map(config::Network::to_string).collect()),
    }
}

/// What this host can do beside UDP and TCP.
fn features() -> BTreeSet<String> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listens =
        |protocol| trunkline_io::tcp::listen(local, &TcpSetup { protocol, ..TcpSetup::default() }).is_ok();
    // For experiments (RFC 3692): nobody's.
    const EXPERIMENT: u8 = 253;
    let in_real_time = || trunkline_io::process::run_in_real_time(1).is_ok();
    let found = [
        ("mptcp", listens(StreamProtocol::Mptcp)),
        ("sctp", listens(StreamProtocol::Sctp)),
        ("udp-lite", trunkline_io::udp::open_lite(local, None, SocketOptions::default(), None).is_ok()),
        ("raw", trunkline_io::raw::open(EXPERIMENT, local.ip(), None, SocketOptions::default()).is_ok()),
        // Tried on a thread that ends with it.
        ("real-time", std::thread::spawn(in_real_time).join().unwrap_or(false)),
        ("ipv6", std::net::UdpSocket::bind(("::1", 0)).is_ok()),
    ];
    found.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
}

fn memory_of_host() -> Bytes {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    Bytes(total.unwrap_or(0) << 10)
}

/// What this process takes of it.
pub(crate) fn memory_of_process() -> Bytes {
    let info = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = info
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    Bytes(resident.unwrap_or(0) << 10)
}
