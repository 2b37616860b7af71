//! `trunkline agent`: the daemon of a host, and what is done with it here and from elsewhere.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use trunkline_agent::config::{DEFAULT_PORT, host_name};
use trunkline_agent::{ADDRESS_FILE, AgentError, Config, Ports, Settings, Stop, privileges};
use trunkline_control::facts::{Facts, PartInfo, PartState, Permissions, Status};
use trunkline_control::message::{FromAgent, Purpose, ToAgent};
use trunkline_control::{
    Fingerprint, Identity, Pairing, PairingCode, Peer, PeerError, Peers, Service, connect, enrol,
};
use trunkline_core::{Bytes, Duration};

use crate::args::Global;
use crate::args::agent::{Agent, AgentAction, State};
use crate::controller;
use crate::json::{AgentKeptOutput, AgentStatusOutput, AgentsOutput, EnrolledOutput, PairingOutput};
use crate::output::{self, Failure};

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Is the agent of this host, or does something with one.
pub(super) fn agent(global: &Global, arguments: &Agent) -> Result<u8, Failure> {
    match &arguments.action {
        None => serve(arguments),
        Some(AgentAction::Pair { name, state }) => pair(global, name.as_deref(), &owned(state)?),
        Some(AgentAction::Enrol { address, code, name }) => {
            enrol_here(global, address, &code.concat(), name.as_deref())
        }
        Some(AgentAction::Status { agent, state }) => status(global, agent.as_deref(), state),
        Some(AgentAction::List { state }) => list(global, &folder(state)?),
        Some(AgentAction::Revoke { name, state }) => {
            Peers::open(&owned(state)?.join("controllers"))
                .and_then(|peers| peers.remove(name))
                .map_err(control)?;
            output::note(format_args!(
                "{name} is revoked; within seconds its parts here end, and the data kept for it is deleted"
            ));
            Ok(output::DONE)
        }
        Some(AgentAction::Clean { controller, delete, state }) => {
            clean(global, controller.as_deref(), *delete, &owned(state)?)
        }
        Some(AgentAction::Forget { name }) => {
            let (_, agents) = controller::open()?;
            agents.remove(name).map_err(control)?;
            output::note(format_args!(
                "{name} is forgotten here; it still trusts this controller until `trunkline agent revoke` is \
                run there"
            ));
            Ok(output::DONE)
        }
    }
}

fn serve(arguments: &Agent) -> Result<u8, Failure> {
    let failed = |error: AgentError| match error {
        AgentError::Problems(problems) => Failure::invalid(&problems),
        AgentError::Config { ref path, .. } => Failure::about(path, &error),
        error if error.is_bad_input() => Failure::input(error),
        error => Failure::environment(error),
    };
    let mut config = Config::load(arguments.config.as_deref()).map_err(failed)?;
    config.listen = arguments.listen.unwrap_or(config.listen);
    let state = folder(&arguments.state)?;
    let memory = config.limits.memory;
    let ports = Ports::bind(&config).map_err(failed)?;
    // A part has as many sockets as conversations; what does not fit says so itself.
    let _ = trunkline_agent::raise_open_files();
    if let Some(user) = &arguments.user {
        privileges::become_user(user, &state).map_err(failed)?;
    }
    let settings = Settings { config, state, log: Box::new(|line| output::note(line)) };
    let agent = trunkline_agent::Agent::open(settings, ports).map_err(failed)?;
    if let Some(memory) = memory {
        privileges::limit_memory(memory).map_err(failed)?;
    }
    let stop = Stop::default();
    let of_handler = stop.clone();
    ctrlc::set_handler(move || of_handler.stop())
        .map_err(|error| Failure::environment(format_args!("cannot handle signals: {error}")))?;
    agent.serve(&stop).map_err(failed)?;
    Ok(output::DONE)
}

fn pair(global: &Global, name: Option<&str>, state: &Path) -> Result<u8, Failure> {
    let identity = Identity::open(&state.join("identity")).map_err(control)?;
    let pairing = Pairing::open(&Service::AGENT, state).map_err(control)?;
    let code = pairing.begin(&identity.fingerprint(), name, Timestamp::now()).map_err(control)?;
    let address = address_file(state);
    if address.is_none() {
        output::warn(format_args!(
            "no agent is running with the folder {}; start it (`trunkline agent`, or `systemctl start \
            trunkline-agent`)",
            state.display()
        ));
    }
    let at = reachable(address, DEFAULT_PORT);
    if global.json {
        let (code, key) = (code.to_string(), identity.fingerprint().to_string());
        output::print_json(&PairingOutput { address: at, code, key });
        return Ok(output::DONE);
    }
    output::print(format_args!(
        "Within {} minutes, run this on the controller:\n\n    trunkline agent enrol {at} {code}\n",
        Pairing::VALID.as_mins()
    ));
    let others = match address {
        Some(address) if !address.ip().is_unspecified() => "",
        _ => " Any other address of this host works too.",
    };
    output::note(format_args!("The code is valid for one controller.{others}"));
    Ok(output::DONE)
}

fn enrol_here(global: &Global, address: &str, code: &str, name: Option<&str>) -> Result<u8, Failure> {
    let code: PairingCode = code.parse().map_err(Failure::input)?;
    let (identity, agents) = controller::open()?;
    let name = name.map_or_else(usual_name, str::to_owned);
    let peer =
        enrol(&Service::AGENT, address, &code, (&identity, &name), &agents, PATIENCE).map_err(control)?;
    if global.json {
        output::print_json(&EnrolledOutput { agent: peer });
        return Ok(output::DONE);
    }
    output::print(format_args!("{} is enrolled, and knows this controller as {name}", peer.name));
    output::note(format_args!(
        "In an experiment file: `agent = \"{}\"` in [hosts.NAME]; then `trunkline run FILE --on live`",
        peer.address.as_deref().unwrap_or(address)
    ));
    Ok(output::DONE)
}

/// What a controller of this host is called if nobody says.
pub(super) fn usual_name() -> String {
    let name: String = host_name()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' })
        .collect();
    name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).chars().take(64).collect()
}

fn list(global: &Global, state: &Path) -> Result<u8, Failure> {
    let (_, agents) = controller::open()?;
    let agents = agents.list().map_err(control)?;
    // Those of this user are read before root becomes the owner of the agent's folder.
    privileges::act_as_owner(state).map_err(Failure::environment)?;
    // This host need not have an agent, and its state is for its owner only.
    let folder = state.join("controllers");
    let controllers = match folder.is_dir() {
        true => Peers::open(&folder).and_then(|peers| peers.list()).map_err(control)?,
        false => Vec::new(),
    };
    if global.json {
        output::print_json(&AgentsOutput { agents, controllers });
        return Ok(output::DONE);
    }
    let row = |peer: &Peer| {
        let address = peer.address.clone().unwrap_or_default();
        vec![peer.name.clone(), address, moment(peer.enrolled), peer.fingerprint.to_string()]
    };
    let head =
        |what: &str| vec![what.to_owned(), "address".to_owned(), "enrolled".to_owned(), "key".to_owned()];
    if agents.is_empty() && controllers.is_empty() {
        output::note("no agent is enrolled here; run `trunkline agent pair` on the agent's host");
    }
    let mut tables = Vec::new();
    for (what, peers) in [("agent", &agents), ("controller", &controllers)] {
        if !peers.is_empty() {
            let rows: Vec<Vec<String>> = std::iter::once(head(what)).chain(peers.iter().map(row)).collect();
            tables.push(output::table(&rows, output::screen()));
        }
    }
    if !tables.is_empty() {
        output::print(tables.join("\n\n"));
    }
    Ok(output::DONE)
}

fn status(global: &Global, agent: Option<&str>, state: &State) -> Result<u8, Failure> {
    let (facts, status, address) = match agent {
        Some(agent) => {
            let (identity, agents) = controller::open()?;
            let peer = known(&agents, agent)?;
            let address = peer.address.clone().unwrap_or_else(|| agent.to_owned());
            let (facts, status) = ask(&address, &identity, &peer.fingerprint)?;
            (facts, status, address)
        }
        None => {
            let (identity, address) = own_agent(&owned(state)?)?;
            let (facts, status) = ask(&here(address).to_string(), &identity, &identity.fingerprint())?;
            (facts, status, address.to_string())
        }
    };
    if global.json {
        output::print_json(&AgentStatusOutput { address, facts, status });
    } else {
        output::print(told(&facts, &status, &address));
    }
    Ok(output::DONE)
}

/// Lists what the agent of this host keeps, and deletes it on request.
fn clean(global: &Global, controller: Option<&str>, delete: bool, state: &Path) -> Result<u8, Failure> {
    let (identity, address) = own_agent(state)?;
    let at = here(address).to_string();
    let (_, status) = ask(&at, &identity, &identity.fingerprint())?;
    let is_over = |part: &PartInfo| matches!(part.state, PartState::Finished | PartState::Interrupted);
    let is_meant = |part: &PartInfo| is_over(part) && controller.is_none_or(|name| part.controller == name);
    let parts: Vec<PartInfo> = status.parts.into_iter().filter(is_meant).collect();
    if delete {
        discard(&at, &identity, &parts).map_err(control)?;
    }
    let bytes = Bytes(parts.iter().map(|part| part.bytes.count()).sum());
    if global.json {
        output::print_json(&AgentKeptOutput { parts, bytes: bytes.count(), deleted: delete });
        return Ok(output::DONE);
    }
    if !parts.is_empty() {
        output::print(table_of(&parts));
    }
    let (count, size) = (parts.len(), size(bytes));
    let parts = if count == 1 { "1 part".to_owned() } else { format!("{count} parts") };
    output::note(match (count, delete) {
        (0, _) => "the agent keeps no measurements that could be deleted".to_owned(),
        (_, true) => format!("deleted {parts}, {size}"),
        (_, false) => {
            format!("{parts}, {size}; `--delete` deletes them, and what was not collected is lost")
        }
    });
    Ok(output::DONE)
}

/// Deletes parts at the agent of this host.
fn discard(address: &str, identity: &Identity, parts: &[PartInfo]) -> Result<(), PeerError> {
    let who = || format!("the agent at {address}");
    let mut connection = connect(address, identity, &identity.fingerprint(), PATIENCE)?;
    connection.introduce(Purpose::Control, PATIENCE)?;
    connection.trust();
    for PartInfo { part, .. } in parts {
        connection.send(&ToAgent::Discard { part: part.clone() })?;
        match connection.receive_within(PATIENCE, "it was asked to delete a part")? {
            Some(FromAgent::Discarded { .. }) => {}
            Some(FromAgent::Refused { refusal, .. }) => {
                return Err(PeerError::Refused { who: who(), refusal });
            }
            _ => {
                let reason = "its reply does not match the request".to_owned();
                return Err(PeerError::Protocol { who: who(), reason });
            }
        }
    }
    Ok(())
}

/// The key of this host's agent, and the address that it listens on.
fn own_agent(folder: &Path) -> Result<(Identity, SocketAddr), Failure> {
    let Some(address) = address_file(folder) else {
        return Err(Failure::environment(format_args!(
            "no agent is running with the folder {}; name an enrolled agent, or the folder with `--state`",
            folder.display()
        )));
    };
    let identity = Identity::open(&folder.join("identity")).map_err(control)?;
    Ok((identity, address))
}

/// An agent that is enrolled here, by its name or address.
fn known(agents: &Peers, agent: &str) -> Result<Peer, Failure> {
    let all = agents.list().map_err(control)?;
    let with_port = |address: &str| match address.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => address.to_owned(),
        _ => format!("{address}:{DEFAULT_PORT}"),
    };
    let is_meant = |peer: &&Peer| {
        peer.name == agent
            || peer.address.as_deref().is_some_and(|address| with_port(address) == with_port(agent))
    };
    all.iter().find(is_meant).cloned().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|peer| peer.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Failure::input(format_args!("no agent `{agent}` is enrolled here; known: {known}"))
    })
}

fn ask(address: &str, identity: &Identity, agent: &Fingerprint) -> Result<(Facts, Status), Failure> {
    let asked = || -> Result<(Facts, Status), PeerError> {
        let mut connection = connect(address, identity, agent, PATIENCE)?;
        connection.introduce(Purpose::Control, PATIENCE)?;
        connection.trust();
        connection.send(&ToAgent::Facts)?;
        connection.send(&ToAgent::Status)?;
        let (mut facts, mut status) = (None, None);
        loop {
            match connection.receive_within(PATIENCE, "reporting its status")? {
                Some(FromAgent::Facts(said)) => facts = Some(*said),
                Some(FromAgent::Status(said)) => status = Some(*said),
                Some(FromAgent::Refused { refusal, .. }) => {
                    return Err(PeerError::Refused { who: format!("the agent at {address}"), refusal });
                }
                _ => {
                    let reason = "its reply does not match the request".to_owned();
                    return Err(PeerError::Protocol { who: format!("the agent at {address}"), reason });
                }
            }
            if let (Some(facts), Some(status)) = (&facts, &status) {
                return Ok((facts.clone(), status.clone()));
            }
        }
    };
    asked().map_err(control)
}

fn told(facts: &Facts, status: &Status, address: &str) -> String {
    let limit = |value: Option<String>| value.unwrap_or_else(|| "no limit".to_owned());
    let text = |value: &dyn ToString| value.to_string();
    let mut lines = vec![
        format!("{} at {address}, Trunkline {}, since {}", status.name, status.program, moment(status.since)),
        format!("{}, {} cores, {}, {} of memory", facts.cpu, facts.cores, facts.kernel, size(facts.memory)),
        format!(
            "connections  {}, {:.1} % of a core, {} of memory",
            status.sessions,
            status.cpu * 100.0,
            size(status.memory)
        ),
        format!(
            "measuring    {} parts with {} conversations, {} granted",
            facts.busy.parts, facts.busy.conversations, facts.busy.rate
        ),
        format!(
            "stored       {} for controllers, {} free on the disk",
            size(status.spool),
            size(status.disk_free)
        ),
        format!(
            "allowed      rate {}, conversations {}, disk {}, parts up to {}",
            limit(facts.limits.rate.as_ref().map(|rate| text(rate))),
            limit(facts.limits.flows.as_ref().map(|flows| text(flows))),
            limit(facts.limits.disk.as_ref().map(|disk| text(disk))),
            limit(facts.limits.duration.as_ref().map(|duration| text(duration))),
        ),
        format!("beside UDP and TCP: {}", facts.features.iter().cloned().collect::<Vec<_>>().join(", ")),
    ];
    if !status.parts.is_empty() {
        lines.extend([String::new(), table_of(&status.parts)]);
    }
    if !status.controllers.is_empty() {
        let mut rows = vec![row(["controller", "", "enrolled", "rate", "conversations", "to"])];
        rows.extend(status.controllers.iter().map(|controller| {
            let Permissions { rate, flows, to } = &controller.permissions;
            row([
                &controller.name,
                if controller.connected { "connected" } else { "" },
                &moment(controller.enrolled),
                &limit(rate.as_ref().map(|rate| text(rate))),
                &limit(flows.as_ref().map(|flows| text(flows))),
                &to.as_ref().map_or("anybody".to_owned(), |to| to.join(" ")),
            ])
        }));
        lines.extend([String::new(), output::table(&rows, output::screen())]);
    }
    if !status.notices.is_empty() {
        lines.push(String::new());
        lines.extend(status.notices.iter().map(|notice| format!("{}  {}", moment(notice.at), notice.text)));
    }
    lines.join("\n")
}

fn table_of(parts: &[PartInfo]) -> String {
    let head = ["run", "point", "repetition", "pair", "state", "controller", "recorded", "kept"];
    let rows = parts.iter().map(|part| {
        let state = match part.state {
            PartState::Prepared => "prepared",
            PartState::Running => "running",
            PartState::Finished => "finished",
            PartState::Interrupted => "interrupted",
        };
        row([
            part.part.run.get(..8).unwrap_or(&part.part.run),
            &part.part.point.to_string(),
            &part.part.repetition.to_string(),
            &part.part.pair.to_string(),
            state,
            &part.controller,
            &part.recorded.to_string(),
            &size(part.bytes),
        ])
    });
    let rows: Vec<Vec<String>> = std::iter::once(row(head)).chain(rows).collect();
    output::table(&rows, output::screen())
}

/// A size as people read it: three digits of the largest unit that there is one of.
fn size(bytes: Bytes) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes.count() >= *unit) {
        Some((unit, name)) => {
            let value = bytes.count() as f64 / *unit as f64;
            let decimals = if value < 10.0 { 1 } else { 0 };
            format!("{value:.decimals$} {name}")
        }
        None => bytes.to_string(),
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

pub(super) fn moment(at: Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Where a running agent says that it listens.
fn address_file(state: &Path) -> Option<SocketAddr> {
    std::fs::read_to_string(state.join(ADDRESS_FILE)).ok()?.trim().parse().ok()
}

/// How an agent that listens there is reached from this host.
fn here(listens: SocketAddr) -> SocketAddr {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        ip => ip,
    };
    SocketAddr::new(ip, listens.port())
}

/// How it is reached from elsewhere, as far as this host knows: the address that it has on the way to the world.
pub(super) fn reachable(listens: Option<SocketAddr>, usual: u16) -> String {
    // Nothing is sent: this only asks the routing table. The address is one for documentation.
    let outward = || {
        let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
        socket.connect(("192.0.2.1", 9)).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    let port = listens.map_or(usual, |address| address.port());
    let (host, is_v6) = match listens.map(|address| address.ip()).filter(|ip| !ip.is_unspecified()) {
        Some(ip) => (ip.to_string(), ip.is_ipv6()),
        None => (outward().unwrap_or_else(host_name), false),
    };
    match (is_v6, port) {
        (true, _) => format!("[{host}]:{port}"),
        (false, port) if port == usual => host,
        (false, _) => format!("{host}:{port}"),
    }
}

/// Where the agent of this host keeps its state.
fn folder(state: &State) -> Result<PathBuf, Failure> {
    if let Some(folder) = &state.state {
        return Ok(folder.clone());
    }
    if privileges::is_root() {
        return Ok("/var/lib/trunkline".into());
    }
    let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let home = from("XDG_STATE_HOME").or_else(|| from("HOME").map(|home| home.join(".local/state")));
    let none = || {
        Failure::input(
            "neither XDG_STATE_HOME nor HOME is set: choose the agent's state folder with `--state DIR`",
        )
    };
    home.map(|home| home.join("trunkline/agent")).ok_or_else(none)
}

/// The same folder; this process is its owner's from now on, if it was root's.
fn owned(state: &State) -> Result<PathBuf, Failure> {
    let folder = folder(state)?;
    privileges::act_as_owner(&folder).map_err(Failure::environment)?;
    Ok(folder)
}

pub(super) fn control(error: PeerError) -> Failure {
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_usable_as_they_are_printed() {
        let at = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
        assert_eq!(reachable(at("192.0.2.7:4781"), DEFAULT_PORT), "192.0.2.7");
        assert_eq!(reachable(at("192.0.2.7:5000"), DEFAULT_PORT), "192.0.2.7:5000");
        assert_eq!(reachable(at("[2001:db8::1]:4781"), DEFAULT_PORT), "[2001:db8::1]:4781");
        assert!(!reachable(at("0.0.0.0:4781"), DEFAULT_PORT).contains("0.0.0.0"));
        assert_eq!(here("0.0.0.0:4781".parse().unwrap()).to_string(), "127.0.0.1:4781");
        assert_eq!(here("[::]:4781".parse().unwrap()).to_string(), "[::1]:4781");
        assert!(!usual_name().is_empty());
        assert_eq!([0, 5000, 24_684_084 << 10].map(|bytes| size(Bytes(bytes))), ["0 B", "4.9 KiB", "24 GiB"]);
    }
}
