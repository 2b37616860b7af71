//! The agents of an experiment: what they say, what is asked of them, and what they keep for us.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};

use trunkline_control::facts::{PartInfo, PartState};
use trunkline_control::{FromAgent, Identity, PartId, ToAgent};
use trunkline_core::{Duration, Time};
use trunkline_io::clock;

use crate::controller::agent::{Agent, Event, What, reach_again};
use crate::controller::error::FleetError;

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

/// A host of the experiment.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// Where others reach it.
    pub(crate) address: String,
    /// The index of its agent.
    pub(crate) agent: usize,
}

/// The agents of an experiment, their connections, and what they keep for us. The thread that measures works with it.
pub(crate) struct Agents {
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
    pub(crate) notes: Vec<String>,
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

impl Agents {
    /// With these agents, whose connections tell `events` through `tell`.
    pub(crate) fn new(
        agents: Vec<Agent>,
        identity: Arc<Identity>,
        patience: Duration,
        (tell, events): (SyncSender<Event>, Receiver<Event>),
    ) -> Agents {
        Agents {
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
        }
    }

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
