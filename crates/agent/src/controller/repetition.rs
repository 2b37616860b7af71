//! A repetition through agents: from its pairs of hosts to what was recorded.

use std::collections::BTreeSet;

use trunkline_control::facts::PartState;
use trunkline_control::{FromAgent, PartId, RefusalKind, ToAgent};
use trunkline_core::Duration;
use trunkline_experiment::{Progress, Supervisor};
use trunkline_io::clock;
use trunkline_metrics::{DriverOutcome, Recorder};

use crate::controller::agents::{Agents, Heard};
use crate::controller::away::Absences;
use crate::controller::error::FleetError;
use crate::controller::held;
use crate::controller::hosts::{Pair, pairs};
use crate::controller::part::{Part, Taken, together};
use crate::controller::prepare;
use crate::controller::task::{RETRY, RETURN, Task};

/// How often a repetition is begun, at most.
const TRIES: u32 = 8;
/// No longer is waited before the supervisor is asked.
const STEP: Duration = Duration::from_millis(50);
/// Between two attempts to begin with a far end that its near end cannot reach.
const AGAIN: Duration = Duration::from_secs(1);

/// Measures, or collects what was measured before.
pub(crate) fn run(
    inner: &mut Agents,
    task: &Task<'_>,
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> Result<DriverOutcome, FleetError> {
    let scenario = &task.point.scenario;
    let pairs = pairs(scenario);
    let (parts, began) = match kept(inner, task, &pairs) {
        Some(parts) => {
            for part in &parts {
                inner.agents[part.near].say(&ToAgent::Attach { part: part.id.clone(), from: 0 });
            }
            inner.note(format!(
                "point {}, repetition {}: already measured, collected from the agents",
                task.at.point + 1,
                task.at.repetition + 1
            ));
            (parts, None)
        }
        None => {
            let (parts, began) = begin(inner, task, &pairs, supervisor)?;
            (parts, Some(began))
        }
    };
    // Whatever comes of them: once that is stored, they need not be kept.
    inner.latest = parts.iter().map(|part| (part.near, part.id.clone())).collect();
    let length = scenario.duration + scenario.drain;
    let expected = began.unwrap_or_else(clock::raw_now) + length.as_nanos();
    let mut collection = Collection {
        inner,
        parts,
        began,
        length,
        expected,
        give_up: expected + RETURN.as_nanos(),
        stopping: false,
        ending: false,
        retried: 0,
        absences: Absences::default(),
    };
    collection.collect(recorder, supervisor);
    let Collection { parts, stopping, .. } = collection;
    let outcome = together(scenario.flows.len(), &parts);
    for (flow, sentence) in
        held::told(scenario, &pairs, &outcome, |host| &inner.agents[task.agent(scenario, host)])
    {
        if inner.told_held.insert((task.at.point, flow)) {
            inner.note(sentence);
        }
    }
    let failed = parts.iter().find(|part| part.failure().is_some());
    match failed.filter(|_| !stopping).and_then(|part| Some((part, part.failure()?))) {
        None => Ok(outcome),
        Some((part, why)) => {
            let name = &inner.agents[part.near].name;
            let why = format!("agent `{name}`: {}", bare(why, name));
            let agents = prepare::agents(task, scenario, &pairs);
            // The next repetition waits for those that are gone.
            let goes_on = !agents.iter().any(|agent| inner.agents[*agent].is_turned_away);
            Err(FleetError::Part { why, outcome: Box::new(outcome), goes_on })
        }
    }
}

/// Why a part failed, without what the error says of every part, and whose part it was.
fn bare<'w>(why: &'w str, agent: &str) -> &'w str {
    let whose = why.strip_prefix(agent).and_then(|rest| rest.strip_prefix(": "));
    let mut bare = whose.unwrap_or(why).trim_end_matches('.');
    for said in ["; the results so far are kept", "; the records so far are kept"] {
        bare = bare.strip_suffix(said).unwrap_or(bare);
    }
    bare
}

/// Prepares the parts and lets them begin; says when that is by our clock. If an agent is lost meanwhile, it is tried again
/// once the agent is back.
fn begin(
    inner: &mut Agents,
    task: &Task<'_>,
    pairs: &[Pair],
    supervisor: &mut dyn Supervisor,
) -> Result<(Vec<Part>, u64), FleetError> {
    let known = inner.kept.get(task.at).into_iter().flatten();
    let first = known.map(|(_, info)| info.part.attempt + 1).max().unwrap_or(0);
    inner.forget(task.at);
    let (mut attempt, mut tries) = (first, TRIES);
    let patient_until = clock::raw_now() + RETURN.as_nanos();
    let mut is_told = false;
    loop {
        let begun = prepare::prepare(inner, task, pairs, attempt, supervisor).and_then(|parts| {
            let began = prepare::start(inner, &parts)?;
            Ok((parts, began))
        });
        attempt += 1;
        if let Err(FleetError::Refused { kind: RefusalKind::Stopping, .. }) = &begun
            && clock::raw_now() < patient_until
        {
            // Its connection ends next, and is awaited as any that is lost.
            inner.next(RETRY);
            continue;
        }
        if let Err(error @ FleetError::Refused { kind: RefusalKind::FarEnd, .. }) = &begun
            && clock::raw_now() < patient_until
        {
            if !std::mem::replace(&mut is_told, true) {
                supervisor.warning(&format!("{error}; the run retries for {RETURN}"));
            }
            inner.rest(AGAIN);
            continue;
        }
        tries -= 1;
        // An agent may still be busy with an attempt that nobody here knows of, but not with every one.
        let is_of_the_moment = matches!(
            begun,
            Err(FleetError::Lost { .. } | FleetError::Refused { kind: RefusalKind::Part, .. })
        );
        if tries == 0 || !is_of_the_moment {
            return begun;
        }
    }
}

/// The parts of the repetition, if agents have measured or are measuring all of them.
fn kept(inner: &mut Agents, task: &Task<'_>, pairs: &[Pair]) -> Option<Vec<Part>> {
    let scenario = &task.point.scenario;
    let known = inner.kept.get(task.at)?;
    let attempt = known.iter().map(|(_, info)| info.part.attempt).max()?;
    let part = |(index, pair): (usize, &Pair)| {
        let near = task.agent(scenario, pair.near);
        let is_it = |(agent, info): &&(usize, trunkline_control::facts::PartInfo)| {
            let PartId { pair, attempt: which, .. } = info.part;
            let is_whole =
                matches!(info.state, PartState::Finished | PartState::Running) && info.kept_from == 0;
            (*agent, usize::from(pair), which) == (near, index, attempt) && is_whole
        };
        known.iter().find(is_it).map(|(_, info)| Part::new(info.part.clone(), near, pair.flows.clone()))
    };
    let parts = pairs.iter().enumerate().map(part).collect::<Option<Vec<Part>>>()?;
    // Older attempts are of no use.
    let rest = inner.kept.remove(task.at)?.into_iter().filter(|(_, info)| info.part.attempt != attempt);
    inner.stored.extend(rest.map(|(agent, info)| (agent, info.part)));
    inner.discard();
    Some(parts)
}

/// Parts on their way to the recorder.
struct Collection<'c> {
    inner: &'c mut Agents,
    parts: Vec<Part>,
    /// When they began by our clock; `None` if nobody knows.
    began: Option<u64>,
    length: Duration,
    /// When they should end.
    expected: u64,
    /// When nothing more is waited for.
    give_up: u64,
    /// All were told to end, by the user or because one has failed.
    stopping: bool,
    /// All were told that the sources are over with which the sending ends.
    ending: bool,
    /// When agents that are gone were tried last.
    retried: u64,
    absences: Absences,
}

impl Collection<'_> {
    fn collect(&mut self, recorder: &mut dyn Recorder, supervisor: &mut dyn Supervisor) {
        let mut asked_to_stop = false;
        let mut told = 0;
        while !self.parts.iter().all(Part::is_complete) {
            match self.inner.next(STEP) {
                Some((_, Heard::Said(said))) => self.take(said, recorder),
                Some((agent, Heard::Back)) => self.attach_again(agent),
                Some((_, Heard::Gone)) | None => {}
            }
            let now = clock::raw_now();
            if now.saturating_sub(told) >= STEP.as_nanos() {
                told = now;
                let done = self
                    .began
                    .map_or(Duration::ZERO, |began| Duration::from_nanos(now.saturating_sub(began)));
                if supervisor.progress(done.min(self.length)) == Progress::Stop && !asked_to_stop {
                    asked_to_stop = true;
                    self.stop();
                    self.give_up = self.give_up.min(now + self.inner.patience.as_nanos());
                }
            }
            if self.parts.iter().any(|part| part.failure().is_some()) && !self.stopping {
                // The repetition is partial whatever the others do.
                self.stop();
                self.give_up = self.give_up.min(now + RETURN.as_nanos());
            }
            if now.saturating_sub(self.retried) >= RETRY.as_nanos() {
                self.retried = now;
                self.inner.reach_out();
            }
            self.give_up_turned_away();
            self.tell_of_absences(now, supervisor);
            if now > self.give_up {
                self.give_up_rest();
            }
        }
        // A failure is to be told; that the user has stopped it he knows.
        self.stopping = asked_to_stop;
    }

    fn take(&mut self, said: FromAgent, recorder: &mut dyn Recorder) {
        match said {
            FromAgent::Chunk(chunk) => {
                let Some(part) = self.part(&chunk.part) else { return };
                match part.take(&chunk, recorder) {
                    Ok(Taken::Done) => {}
                    Ok(Taken::AskFrom(from)) => {
                        let near = part.near;
                        self.inner.agents[near].say(&ToAgent::Attach { part: chunk.part, from });
                    }
                    Err(damaged) => part.give_up(format!("it sent a malformed message: {damaged}")),
                }
            }
            FromAgent::Finished(finished) => {
                if let Some(part) = self.part(&finished.part) {
                    part.finish(&finished);
                }
            }
            FromAgent::Failed { part, refusal, outcome, chunks } => {
                if let Some(part) = self.part(&part) {
                    part.fail(refusal.why, outcome.as_deref(), chunks);
                }
            }
            FromAgent::Refused { part: Some(id), refusal } => {
                // It does not know the part (any more), or cannot go on with it.
                if let Some(part) = self.part(&id).filter(|part| !part.has_ended()) {
                    part.give_up(refusal.why);
                }
            }
            FromAgent::SourcesOver { part } if self.part(&part).is_some() => {
                self.ending = true;
                let others = self.parts.iter().filter(|other| other.id != part);
                others.for_each(|other| self.say_end_sending(other));
            }
            _ => {}
        }
    }

    fn part(&mut self, id: &PartId) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.id == *id)
    }

    fn say_end_sending(&self, part: &Part) {
        self.inner.agents[part.near].say(&ToAgent::EndSending { part: part.id.clone() });
    }

    /// There is a connection again: the agent goes on where it was.
    fn attach_again(&mut self, agent: usize) {
        let incomplete = self.parts.iter().filter(|part| part.near == agent && !part.is_complete());
        for part in incomplete {
            self.inner.agents[agent].say(&ToAgent::Attach { part: part.id.clone(), from: part.next });
            if self.ending {
                self.say_end_sending(part);
            }
            if self.stopping {
                self.inner.agents[agent].say(&ToAgent::Stop { part: part.id.clone() });
            }
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        for part in self.parts.iter().filter(|part| !part.has_ended()) {
            self.inner.agents[part.near].say(&ToAgent::Stop { part: part.id.clone() });
        }
    }

    /// Agents whose parts are not all here.
    fn tell_of_absences(&mut self, now: u64, supervisor: &mut dyn Supervisor) {
        let awaited: BTreeSet<usize> =
            self.parts.iter().filter(|part| !part.is_complete()).map(|part| part.near).collect();
        for index in awaited {
            if let Some(said) = self.absences.look(index, &self.inner.agents[index], now, self.give_up) {
                supervisor.warning(&said);
            }
        }
    }

    /// An agent that does not let us in any more will not do so in half a minute either.
    fn give_up_turned_away(&mut self) {
        for part in self.parts.iter_mut().filter(|part| !part.is_complete()) {
            let agent = &self.inner.agents[part.near];
            if let Some(reason) = agent.gone.as_deref().filter(|_| agent.is_turned_away) {
                part.give_up(reason.to_owned());
            }
        }
    }

    fn give_up_rest(&mut self) {
        let late = Duration::from_nanos(self.give_up.saturating_sub(self.expected));
        for part in self.parts.iter_mut().filter(|part| !part.is_complete()) {
            let agent = &self.inner.agents[part.near];
            part.give_up(match &agent.gone {
                Some(reason) => format!("it was lost ({reason}) and did not return"),
                None => format!("it had not finished {late} after its end"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_it_is_kept_is_said_once() {
        for why in ["the disk is full", "the disk is full.", "the disk is full; the records so far are kept"]
        {
            assert_eq!(bare(why, "ottawa"), "the disk is full");
            assert_eq!(bare(&format!("ottawa: {why}"), "ottawa"), "the disk is full");
        }
    }
}
