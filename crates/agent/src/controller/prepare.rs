//! Before a repetition: far ends and near ends get ready, and all near ends are told one moment at which to begin.

use std::collections::BTreeSet;

use trunkline_control::clock::{Pace, TimeRequest, TimeRequests};
use trunkline_control::message::{FarEndpoint, Offer, Prepare};
use trunkline_control::{FromAgent, PartId, ToAgent};
use trunkline_core::{Bytes, Duration, Time};
use trunkline_experiment::{Scenario, Supervisor};
use trunkline_io::clock;

use crate::controller::agent::Agent;
use crate::controller::agents::{Agents, Heard};
use crate::controller::away::Absences;
use crate::controller::check;
use crate::controller::error::FleetError;
use crate::controller::hosts::Pair;
use crate::controller::part::Part;
use crate::controller::task::{RETRY, RETURN, Task};

/// Replies of each agent after which its clock is known well enough.
const EXCHANGES: u32 = 10;
const PACE: Pace = Pace { first: EXCHANGES, fast: Duration::from_millis(2), slow: RETRY };
/// The start is so far ahead, and four round trips to the furthest agent: it has to be told, and to tell its far end.
const AHEAD: Duration = Duration::from_millis(300);

/// Prepares the parts of a repetition. If one cannot be, none is.
pub(crate) fn prepare(
    inner: &mut Agents,
    task: &Task<'_>,
    pairs: &[Pair],
    attempt: u32,
    supervisor: &mut dyn Supervisor,
) -> Result<Vec<Part>, FleetError> {
    let scenario = &task.point.scenario;
    let agents = |pair: &Pair| [pair.near, pair.far].map(|host| task.agent(scenario, host));
    await_agents(inner, &pairs.iter().flat_map(agents).collect(), supervisor)?;
    let id = |pair: usize| PartId {
        run: task.at.run.clone(),
        point: task.at.point,
        repetition: task.at.repetition,
        pair: pair as u16,
        attempt,
    };

    for (index, pair) in pairs.iter().enumerate() {
        let [near, far] = agents(pair);
        inner.agents[far].say(&ToAgent::Offer(Offer {
            part: id(index),
            near: scenario.hosts[pair.near].name.clone(),
            near_fingerprint: inner.agents[near].fingerprint,
            conversations: pair.flows.iter().map(|flow| u64::from(scenario.flows[*flow].meta.members)).sum(),
            duration: scenario.duration + scenario.drain,
            rate: check::sent_back(scenario, &pair.flows),
            buffers: Bytes(
                pair.flows
                    .iter()
                    .fold(0, |sum: u64, flow| sum.saturating_add(scenario.flows[*flow].buffers().count())),
            ),
        }));
    }
    let far_of = |index: usize| agents(&pairs[index])[1];
    let offers = gather(inner, pairs.len(), far_of, id, "offering the far end", |said| match said {
        FromAgent::Offered { part, token, port } => Ok((part, (token, port))),
        other => Err(other),
    })?;

    for (index, (pair, (token, port))) in pairs.iter().zip(offers).enumerate() {
        let [near, far] = agents(pair);
        let address = &task.host(scenario, pair.far).address;
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let far = FarEndpoint {
            address: format!("{host}:{port}"),
            fingerprint: inner.agents[far].fingerprint,
            token,
        };
        inner.agents[near].say(&ToAgent::Prepare(Box::new(Prepare {
            part: id(index),
            experiment: task.experiment.text.clone(),
            files: task.experiment.files.by_path().clone(),
            choice: task.point.choice.clone(),
            seed: task.experiment.seed,
            flows: pair.flows.clone(),
            far,
            traceparent: None,
        })));
    }
    let near_of = |index: usize| agents(&pairs[index])[0];
    let parts: Vec<Part> = pairs
        .iter()
        .enumerate()
        .map(|(index, pair)| Part::new(id(index), near_of(index), pair.flows.clone()))
        .collect();
    let prepared = gather(inner, pairs.len(), near_of, id, "opening its sockets", |said| match said {
        FromAgent::Prepared { part, .. } => Ok((part, ())),
        other => Err(other),
    });
    if let Err(error) = prepared {
        abandon(inner, &parts);
        // What nobody has joined holds a place there.
        for (index, part) in parts.iter().enumerate() {
            inner.agents[far_of(index)].say(&ToAgent::Stop { part: part.id.clone() });
        }
        return Err(error);
    }
    Ok(parts)
}

/// Lets all parts begin at one moment, which is given by our clock.
pub(crate) fn start(inner: &mut Agents, parts: &[Part]) -> Result<u64, FleetError> {
    for part in parts {
        // From now on chunks come as they are made.
        inner.agents[part.near].say(&ToAgent::Attach { part: part.id.clone(), from: 0 });
    }
    let nears: BTreeSet<usize> = parts.iter().map(|part| part.near).collect();
    if let Err(error) = relate_clocks(inner, &nears) {
        abandon(inner, parts);
        return Err(error);
    }
    let furthest = nears.iter().map(|near| inner.agents[*near].clock.round_trip()).max().unwrap_or_default();
    let at = clock::raw_now() + (AHEAD + furthest * 4).as_nanos();
    for part in parts {
        let near = &inner.agents[part.near];
        let offset = near.clock.offset(Time::from_nanos(at)).map_or(0, |offset| offset.estimate);
        near.say(&ToAgent::Start { part: part.id.clone(), at: at.saturating_add_signed(offset) });
    }
    let near_of = |index: usize| parts[index].near;
    let id = |index: usize| parts[index].id.clone();
    let started = gather(inner, parts.len(), near_of, id, "starting", |said| match said {
        FromAgent::Started { part } => Ok((part, ())),
        other => Err(other),
    });
    if let Err(error) = started {
        abandon(inner, parts);
        return Err(error);
    }
    Ok(at)
}

/// Lets agents forget parts that will not be measured.
fn abandon(inner: &mut Agents, parts: &[Part]) {
    for part in parts {
        inner.agents[part.near].say(&ToAgent::Stop { part: part.id.clone() });
        inner.stored.push((part.near, part.id.clone()));
    }
    inner.discard();
}

/// Waits for agents that were gone.
fn await_agents(
    inner: &mut Agents,
    agents: &BTreeSet<usize>,
    supervisor: &mut dyn Supervisor,
) -> Result<(), FleetError> {
    let mut absences = Absences::default();
    let patience = inner.patience.max(RETURN);
    let deadline = clock::raw_now() + patience.as_nanos();
    while !inner.are_there(agents) {
        inner.reach_out();
        if clock::raw_now() >= deadline {
            let gone = agents.iter().map(|agent| &inner.agents[*agent]).find(|agent| agent.link.is_none());
            let away = |agent: &Agent| FleetError::Away {
                agent: agent.name.clone(),
                patience,
                reason: agent.gone.clone().unwrap_or_else(|| "its connection has ended".to_owned()),
            };
            return gone.map_or(Ok(()), |gone| Err(away(gone)));
        }
        inner.next(RETRY);
        for &index in agents {
            if let Some(said) = absences.look(index, &inner.agents[index], clock::raw_now(), deadline) {
                supervisor.warning(&said);
            }
        }
    }
    Ok(())
}

/// Asks agents what their clocks show, until enough is known.
fn relate_clocks(inner: &mut Agents, agents: &BTreeSet<usize>) -> Result<(), FleetError> {
    let enough: Vec<(usize, u32)> =
        agents.iter().map(|agent| (*agent, inner.agents[*agent].clock.exchanges() + EXCHANGES)).collect();
    let mut requests = TimeRequests::new(PACE);
    let deadline = clock::raw_now() + inner.patience.as_nanos();
    let lacks = |inner: &Agents| {
        enough
            .iter()
            .find(|(agent, enough)| inner.agents[*agent].clock.exchanges() < *enough)
            .map(|(agent, _)| *agent)
    };
    while let Some(agent) = lacks(inner) {
        if requests.poll(Time::from_nanos(clock::raw_now())).is_some() {
            for agent in agents {
                // Of each agent its own: writing to those before takes time.
                let sent = Time::from_nanos(clock::raw_now());
                inner.agents[*agent].say(&ToAgent::Time(TimeRequest { sent }));
            }
        }
        if clock::raw_now() >= deadline {
            let name = inner.agents[agent].name.clone();
            return Err(FleetError::NoAnswer {
                agent: name,
                patience: inner.patience,
                step: "comparing clocks",
            });
        }
        inner.next(PACE.fast);
        if inner.agents[agent].link.is_none() {
            return Err(inner.gone(agent, "comparing clocks"));
        }
    }
    Ok(())
}

/// Waits for the answers of so many parts; `answer` gives back what is none.
fn gather<A>(
    inner: &mut Agents,
    parts: usize,
    agent_of: impl Fn(usize) -> usize,
    id: impl Fn(usize) -> PartId,
    step: &'static str,
    answer: impl Fn(FromAgent) -> Result<(PartId, A), FromAgent>,
) -> Result<Vec<A>, FleetError> {
    let mut answers: Vec<Option<A>> = (0..parts).map(|_| None).collect();
    let deadline = clock::raw_now() + inner.patience.as_nanos();
    while let Some(missing) = answers.iter().position(Option::is_none) {
        let left = Duration::from_nanos(deadline.saturating_sub(clock::raw_now()));
        let said = match inner.next(left) {
            Some((_, Heard::Said(said))) => said,
            Some((agent, Heard::Gone)) if (0..parts).any(|part| agent_of(part) == agent) => {
                return Err(inner.gone(agent, step));
            }
            Some(_) => continue,
            None => {
                let agent = inner.agents[agent_of(missing)].name.clone();
                return Err(FleetError::NoAnswer { agent, patience: inner.patience, step });
            }
        };
        match answer(said) {
            Ok((part, answered)) => {
                if let Some(place) = (0..parts).find(|place| id(*place) == part) {
                    answers[place] = Some(answered);
                }
            }
            Err(
                FromAgent::Refused { part: Some(part), refusal } | FromAgent::Failed { part, refusal, .. },
            ) => {
                if let Some(place) = (0..parts).find(|place| id(*place) == part) {
                    return Err(inner.refused(agent_of(place), &refusal));
                }
            }
            Err(_) => {}
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// The agents of a scenario's pairs.
pub(crate) fn agents(task: &Task<'_>, scenario: &Scenario, pairs: &[Pair]) -> BTreeSet<usize> {
    pairs.iter().flat_map(|pair| [pair.near, pair.far]).map(|host| task.agent(scenario, host)).collect()
}
