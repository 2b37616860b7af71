//! The agents of an experiment, and what they keep for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_control::facts::{PartInfo, PartState};
use trunkline_control::{FromAgent, Identity, PartId, Peers, ToAgent};
use trunkline_core::{Duration, Time};
use trunkline_experiment::{Experiment, Flow, Point, Scenario, Supervisor};
use trunkline_io::clock;
use trunkline_metrics::{DriverOutcome, Recorder};

use crate::controller::agent::{Agent, Event, What, enrolled, reach, reach_again};
use crate::controller::check;
use crate::controller::error::FleetError;
use crate::controller::repetition;

/// Connections to the agents of an experiment, kept over all its repetitions.
pub struct Fleet {
    inner: Mutex<Inner>,
    hosts: Vec<Host>,
    patience: Duration,
}

/// A repetition of a point of a run, as agents know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartKey {
    /// The run's key: 32 hexadecimal digits.
    pub run: String,
    /// The point as it is stored.
    pub point: u32,
    /// From 0.
    pub repetition: u32,
}

/// A repetition of which agents keep parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The backend.
    pub at: PartKey,
    /// How many parts of it there are.
    pub parts: usize,
    /// How many bytes of records.
    pub bytes: u64,
}

/// A host of the experiment.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Where others reach it.
    pub(crate) address: String,
    /// The index of its agent.
    pub(crate) agent: usize,
}

/// What the thread that measures works with.
pub(crate) struct Inner {
    pub(crate) agents: Vec<Agent>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) patience: Duration,
    events: Receiver<Event>,
    tell: SyncSender<Event>,
    /// What agents keep of repetitions that are to be measured: with the agent, its parts.
    pub(crate) kept: BTreeMap<PartKey, Vec<(usize, PartInfo)>>,
    /// What is stored here, with the agent that keeps it still.
    pub(crate) stored: Vec<(usize, PartId)>,
    /// Parts of the repetition measured last, to be discarded when it is stored.
    pub(crate) latest: Vec<(usize, PartId)>,
    notes: Vec<String>,
    /// Points and flows of which the user knows that they were held back.
    pub(crate) told_held: BTreeSet<(u32, usize)>,
}

/// Something that an agent said, or that happened to its connection.
pub(crate) enum Heard {
    Said(FromAgent),
    /// The connection is gone; another one is being tried.
    Gone,
    /// There is a connection again.
    Back,
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
        let mut inner = Inner {
            agents,
            identity,
            patience,
            events,
            tell,
            kept: BTreeMap::new(),
            stored: Vec::new(),
            latest: Vec::new(),
            notes: Vec::new(),
            told_held: BTreeSet::new(),
        };
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
        let task = repetition::Task { at, experiment, point, hosts: &self.hosts };
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

    fn inner(&self) -> MutexGuard<'_, Inner> {
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

impl Inner {
    /// Waits no longer than this for something that an agent says or that happens to it.
    pub(crate) fn next(&mut self, patience: Duration) -> Option<(usize, Heard)> {
        let deadline = clock::raw_now().saturating_add(patience.as_nanos());
        loop {
            let left = Duration::from_nanos(deadline.saturating_sub(clock::raw_now()));
            let event = match self.events.recv_timeout(left.to_std()) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            };
            if let Some(heard) = self.take(event) {
                return Some(heard);
            }
        }
    }

    /// Lets so much time pass; what agents say meanwhile is about what is over.
    pub(crate) fn rest(&mut self, time: Duration) {
        let until = clock::raw_now().saturating_add(time.as_nanos());
        while clock::raw_now() < until {
            self.next(Duration::from_nanos(until.saturating_sub(clock::raw_now())));
        }
    }

    fn take(&mut self, event: Event) -> Option<(usize, Heard)> {
        let Event { agent: index, connection, heard, what } = event;
        let agent = &mut self.agents[index];
        if agent.connection != connection {
            return None;
        }
        match what {
            What::Said(FromAgent::Time(reply)) => {
                agent.clock.take(reply, Time::from_nanos(heard));
                None
            }
            What::Said(said) => Some((index, Heard::Said(said))),
            What::Gone(reason) => {
                agent.lose(reason);
                Some((index, Heard::Gone))
            }
            What::Away { reason, is_final } => {
                agent.returning = false;
                agent.is_turned_away = is_final;
                agent.gone = Some(reason);
                None
            }
            What::Back(connection) => match agent.take(index, *connection, &self.tell) {
                Ok(()) => {
                    self.discard();
                    Some((index, Heard::Back))
                }
                Err(error) => {
                    agent.lose(error.to_string());
                    None
                }
            },
        }
    }

    /// Asks an agent, and waits for the answer.
    pub(crate) fn ask<A>(
        &mut self,
        agent: usize,
        question: &ToAgent,
        step: &'static str,
        mut answer: impl FnMut(FromAgent) -> Option<A>,
    ) -> Result<A, FleetError> {
        self.agents[agent].say(question);
        let deadline = clock::raw_now() + self.patience.as_nanos();
        while clock::raw_now() < deadline {
            let left = Duration::from_nanos(deadline.saturating_sub(clock::raw_now()));
            match self.next(left) {
                Some((from, Heard::Said(FromAgent::Refused { part: None, refusal }))) if from == agent => {
                    return Err(self.refused(agent, &refusal));
                }
                Some((from, Heard::Said(said))) if from == agent => {
                    if let Some(answer) = answer(said) {
                        return Ok(answer);
                    }
                }
                Some((from, Heard::Gone)) if from == agent => return Err(self.gone(agent, step)),
                Some(_) => {}
                None => break,
            }
        }
        Err(FleetError::NoAnswer { agent: self.agents[agent].name.clone(), patience: self.patience, step })
    }

    /// Tries to get back to every agent that is gone.
    pub(crate) fn reach_out(&mut self) {
        for (index, agent) in self.agents.iter_mut().enumerate() {
            if agent.link.is_none() && !agent.returning {
                agent.returning = true;
                reach_again(agent, index, &self.identity, self.patience, &self.tell);
            }
        }
    }

    /// Whether there is a connection with each of these agents.
    pub(crate) fn are_there(&self, agents: &BTreeSet<usize>) -> bool {
        agents.iter().all(|agent| self.agents[*agent].link.is_some())
    }

    pub(crate) fn refused(&self, agent: usize, refusal: &trunkline_control::Refusal) -> FleetError {
        FleetError::Refused {
            agent: self.agents[agent].name.clone(),
            why: refusal.why.clone(),
            kind: refusal.kind,
        }
    }

    pub(crate) fn gone(&self, agent: usize, step: &str) -> FleetError {
        let agent = &self.agents[agent];
        let reason = agent.gone.as_deref().unwrap_or("its connection was lost");
        FleetError::Lost { agent: agent.name.clone(), reason: format!("{reason}, while {step}") }
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Lets the agents forget what is stored; those that are away are told when they are back.
    pub(crate) fn discard(&mut self) {
        let agents = &self.agents;
        self.stored.retain(|(agent, part)| {
            let agent = &agents[*agent];
            agent.say(&ToAgent::Discard { part: part.clone() });
            agent.link.is_none()
        });
    }

    pub(crate) fn forget(&mut self, at: &PartKey) {
        for (agent, info) in self.kept.remove(at).unwrap_or_default() {
            if matches!(info.state, PartState::Prepared | PartState::Running) {
                self.agents[agent].say(&ToAgent::Stop { part: info.part.clone() });
            }
            self.stored.push((agent, info.part));
        }
        self.discard();
    }
}
