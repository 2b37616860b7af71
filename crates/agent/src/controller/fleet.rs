//! The agents of an experiment, and what they keep for it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_control::facts::PartInfo;
use trunkline_control::{FromAgent, Identity, PartId, Peers, ToAgent};
use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Flow, Point, Scenario, Supervisor};
use trunkline_metrics::{DriverOutcome, Recorder};

use crate::controller::agent::{Agent, enrolled, reach};
use crate::controller::agents::{Agents, Host, PartKey};
use crate::controller::check;
use crate::controller::error::FleetError;
use crate::controller::repetition;
use crate::controller::task::Task;

/// Connections to the agents of an experiment, kept over all its repetitions.
pub struct Fleet {
    inner: Mutex<Agents>,
    hosts: Vec<Host>,
    patience: Duration,
}

/// A repetition of which agents keep parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The repetition.
    pub at: PartKey,
    /// How many parts of it there are.
    pub parts: usize,
    /// How many bytes of records.
    pub bytes: u64,
}

impl Fleet {
    /// Connects with the agents of these hosts, given with their addresses (`host:port`; see
    /// [`agents_of`](crate::controller::agents_of)). Hosts may share an agent. `patience` is how long an answer may take.
    ///
    /// # Errors
    /// If one is not enrolled here, cannot be reached, has another key or speaks another version.
    pub fn connect(
        hosts: &[(String, String)],
        identity: Arc<Identity>,
        peers: &Peers,
        patience: Duration,
    ) -> Result<Fleet, FleetError> {
        let (tell, events) = sync_channel(1024);
        let mut agents: Vec<Agent> = Vec::new();
        let mut placed = Vec::new();
        for (name, address) in hosts {
            let peer = enrolled(peers, name, address)?;
            let known = agents.iter().position(|agent| agent.fingerprint == peer.fingerprint);
            let agent = known.unwrap_or_else(|| {
                agents.push(Agent::new(name, address, &peer));
                agents.len() - 1
            });
            placed.push(Host { name: name.clone(), address: address.clone(), agent });
        }
        for (index, agent) in agents.iter_mut().enumerate() {
            let failed = |error| FleetError::Control { host: agent.host.clone(), error };
            let connection =
                reach(&agent.address, &agent.fingerprint, &identity, patience).map_err(failed)?;
            let host = agent.host.clone();
            agent.take(index, connection, &tell).map_err(|error| FleetError::Control { host, error })?;
        }
        let mut inner = Agents::new(agents, identity, patience, (tell, events));
        for agent in 0..inner.agents.len() {
            let facts = inner.ask(agent, &ToAgent::Facts, "describing its host", |said| match said {
                FromAgent::Facts(facts) => Some(*facts),
                _ => None,
            })?;
            inner.agents[agent].facts = Some(facts);
        }
        Ok(Fleet { inner: Mutex::new(inner), hosts: placed, patience })
    }

    /// The agents of the hosts of this flow, and the congestion controls that their kernels have loaded, where that is known.
    pub fn congestion_controls(&self, scenario: &Scenario, flow: &Flow) -> Vec<(String, Vec<String>)> {
        let inner = self.inner();
        let hosts = core::iter::once(flow.from).chain(flow.to.iter().map(|sink| sink.host));
        let agent = |host: usize| {
            let name = &scenario.hosts[host].name;
            let agent = &inner.agents[self.hosts.iter().find(|host| host.name == *name)?.agent];
            // What is no name of one is not shown.
            let is_name =
                |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let loaded = agent.facts.as_ref()?.congestion_controls.iter().filter(is_name).cloned();
            Some((agent.name.clone(), loaded.collect()))
        };
        hosts.filter_map(agent).collect()
    }

    /// Finds what an agent would refuse of this scenario, and what its host cannot do, before anything starts.
    ///
    /// # Errors
    /// With the first such thing.
    pub fn check(&self, scenario: &Scenario) -> Result<(), FleetError> {
        trunkline_live::refuse_simulated(scenario)?;
        let inner = self.inner();
        check::check(scenario, &self.hosts, &inner.agents)
    }

    /// Measures a repetition of a point, or takes it from the agents if they have measured it already. What it records
    /// is kept at the agents until [`stored`](Fleet::stored).
    ///
    /// # Errors
    /// [`FleetError::outcome`] of the error says whether something was measured.
    pub fn run(
        &self,
        at: &PartKey,
        experiment: &Experiment,
        point: &Point,
        recorder: &mut dyn Recorder,
        supervisor: &mut dyn Supervisor,
    ) -> Result<DriverOutcome, FleetError> {
        let mut inner = self.inner();
        let task = Task { at, experiment, point, hosts: &self.hosts };
        let measured = repetition::run(&mut inner, &task, recorder, supervisor);
        if let Err(error @ FleetError::Part { goes_on: true, .. }) = &measured {
            inner.note(error.to_string());
        }
        measured
    }

    /// The repetition that was measured last is stored: agents need not keep it any longer.
    pub fn stored(&self) {
        let mut inner = self.inner();
        let latest = core::mem::take(&mut inner.latest);
        inner.stored.extend(latest);
        inner.discard();
    }

    /// Asks what the agents keep for this controller, of any run: repetitions that were measured while nobody stored them,
    /// or of which no agent heard that they are stored. A later [`run`](Fleet::run) of such a repetition takes it from there.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub fn kept(&self) -> Result<Vec<Kept>, FleetError> {
        let mut inner = self.inner();
        for agent in 0..inner.agents.len() {
            let parts = inner.ask(agent, &ToAgent::Parts, "listing its stored parts", |said| match said {
                FromAgent::Parts(parts) => Some(parts),
                _ => None,
            })?;
            for info in parts {
                let PartId { run, point, repetition, .. } = info.part.clone();
                let known = inner.kept.entry(PartKey { run, point, repetition }).or_default();
                known.retain(|(_, other)| other.part != info.part);
                known.push((agent, info));
            }
        }
        let kept = inner.kept.iter();
        Ok(kept.map(|(at, parts)| Kept { at: at.clone(), parts: parts.len(), bytes: bytes(parts) }).collect())
    }

    /// Lets the agents forget what they keep of a repetition that nobody will ask for.
    pub fn forget(&self, at: &PartKey) {
        let mut inner = self.inner();
        inner.forget(at);
    }

    /// What the user should know of what has happened since the last time this was asked.
    pub fn notes(&self) -> Vec<String> {
        core::mem::take(&mut self.inner().notes)
    }

    fn inner(&self) -> MutexGuard<'_, Agents> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("hosts", &self.hosts)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// "3 agents: ottawa 127.0.0.2:4781, ...".
impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents = self.hosts.iter().map(|host| host.agent).collect::<BTreeSet<_>>().len();
        let hosts: Vec<String> =
            self.hosts.iter().map(|host| format!("{} {}", host.name, host.address)).collect();
        write!(f, "{agents} {}: {}", if agents == 1 { "agent" } else { "agents" }, hosts.join(", "))
    }
}

fn bytes(parts: &[(usize, PartInfo)]) -> u64 {
    parts.iter().map(|(_, info)| info.bytes.0).sum()
}
