//! What is best for which use.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use trunkline_audio::pipeline::Protection;
use trunkline_core::{Duration, Rate, Ratio};

use crate::configuration::{Configuration, Load, Marking};
use crate::findings::Findings;
use crate::judge::{Evidence, Judgement, Protected};
use crate::plan::Question;
use crate::protect::PROTECTIONS;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// Playing together: the lowest latency from mouth to ear with which little enough has to be concealed.
    Rehearsal,
    /// Keeping what is played: nothing lost, whatever it takes; then the lowest latency.
    Recording,
    /// Talking: the highest mean opinion score.
    Telephony,
}

impl Use {
    /// All of them.
    pub const ALL: [Use; 3] = [Use::Rehearsal, Use::Recording, Use::Telephony];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Use::Rehearsal => "rehearsal",
            Use::Recording => "recording",
            Use::Telephony => "telephony",
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Someone asked for a use that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown use `{0}`; expected `rehearsal`, `recording` or `telephony`")]
pub struct UnknownUse(String);

impl FromStr for Use {
    type Err = UnknownUse;

    fn from_str(text: &str) -> Result<Use, UnknownUse> {
        Use::ALL
            .into_iter()
            .find(|one| one.name() == text.trim())
            .ok_or_else(|| UnknownUse(text.trim().to_owned()))
    }
}

/// A recording's playout lets blocks be so many times as late as the latest: what was not seen in a minute comes in an hour.
pub const RECORDING_MARGIN: f64 = 1.5;

/// Redundancy must leave a part of what bulk transfers reached.
const SHARE_OF_CAPACITY: f64 = 0.8;

/// What is recommended for a use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// What for.
    pub purpose: Use,
    /// The best.
    pub best: Judgement,
    /// Whether it does what the use asks for: the bound on what is concealed, no loss. Calls have no such bound.
    pub suffices: bool,
    /// True if the best was measured too briefly to rely on: nothing that was measured longer comes near it.
    pub is_best_brief: bool,
    /// The best over another kind of transport or, if only one could be measured, with other blocks or redundancy.
    pub runner_up: Option<Judgement>,
    /// True if the runner-up was measured too briefly to rely on, however good it looks.
    pub is_runner_up_brief: bool,
}

/// One way to send, in the order of preference of a use.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    judgement: Judgement,
    /// The lower the better, whatever `cost` is.
    class: u8,
    /// The lower the better, within a class.
    cost: f64,
}

/// What is best for a use, of what was measured long enough if possible; `None` if nothing was measured.
///
/// What was idle and marked as a session would mark it decides. Telephony chooses among blocks of G.711, the others among
/// those with as many channels as asked for, if there are any.
///
/// Of many configurations that were measured for a second each, some look good by luck. So of those that were measured for
/// a fifteenth of the budget the best is chosen, if it does what the use asks for and is not far behind what looks best;
/// otherwise what looks best, which [`is_best_brief`](Choice::is_best_brief) if it was measured for less.
pub fn choose(purpose: Use, question: &Question, findings: &Findings) -> Option<Choice> {
    let all = candidates(purpose, question, findings);
    let least = question.budget / 15;
    let settled: Vec<Candidate> = all.iter().filter(|one| one.measured() >= least).copied().collect();
    let promising = pick(purpose, &all)?;
    let is_near = |settled: &Candidate| match purpose {
        Use::Rehearsal | Use::Recording => settled.cost <= 2.0 * promising.cost,
        Use::Telephony => settled.cost <= promising.cost + 0.3,
    };
    let is_settled = pick(purpose, &settled)
        .is_some_and(|best| best.class < INSUFFICIENT && best.class <= promising.class && is_near(&best));
    choice(purpose, if is_settled { &settled } else { &all }, &all, least)
}

/// What looks best for a use however short it was measured: what to measure longer.
pub(crate) fn most_promising(purpose: Use, question: &Question, findings: &Findings) -> Option<Choice> {
    let all = candidates(purpose, question, findings);
    choice(purpose, &all, &all, Duration::ZERO)
}

/// The best of some, and the runner-up of all, of which one measured for less than `least` is brief.
fn choice(purpose: Use, some: &[Candidate], all: &[Candidate], least: Duration) -> Option<Choice> {
    let best = pick(purpose, some)?;
    let others = [
        |best: &Judgement, other: &Judgement| !other.transport.is_kin_of(best.transport),
        |best: &Judgement, other: &Judgement| other.blocks != best.blocks,
        |best: &Judgement, other: &Judgement| other.protection != best.protection,
    ];
    let runner_up = others.into_iter().find_map(|is_other| {
        let others = all.iter().filter(|other| is_other(&best.judgement, &other.judgement));
        pick(purpose, &others.copied().collect::<Vec<_>>())
    });
    Some(Choice {
        purpose,
        best: best.judgement,
        suffices: best.class < INSUFFICIENT,
        is_best_brief: best.measured() < least,
        runner_up: runner_up.map(|candidate| candidate.judgement),
        is_runner_up_brief: runner_up.is_some_and(|candidate| candidate.measured() < least),
    })
}

const INSUFFICIENT: u8 = 2;

impl Candidate {
    /// For how long.
    fn measured(&self) -> Duration {
        self.judgement.blocks.interval() * self.judgement.measured
    }
}

fn candidates(purpose: Use, question: &Question, findings: &Findings) -> Vec<Candidate> {
    let fits = |configuration: &&Configuration| {
        let blocks = configuration.blocks;
        match purpose {
            Use::Telephony => blocks.is_telephone(),
            Use::Rehearsal | Use::Recording => !blocks.is_telephone() && blocks.channels == question.channels,
        }
    };
    let idle = || {
        let configurations = findings.configurations();
        configurations.filter(|one| one.load == Load::Idle && one.marking == Marking::Expedited)
    };
    let mut of_use: Vec<_> = idle().filter(fits).collect();
    if of_use.is_empty() {
        of_use = idle().collect();
    }
    let capacity = findings.capacity();
    let mut candidates = Vec::new();
    for configuration in of_use {
        if let Some(evidence) = findings.evidence(configuration) {
            let reliable = configuration.transport.is_reliable();
            candidates.extend(candidates_of(purpose, &evidence, reliable, question.concealed, capacity));
        }
    }
    candidates
}

fn candidates_of(
    purpose: Use,
    evidence: &Evidence,
    reliable: bool,
    concealed: Ratio,
    capacity: Option<Rate>,
) -> Vec<Candidate> {
    // What is repeated until it arrives needs no redundancy.
    let protections = if reliable { &PROTECTIONS[..1] } else { &PROTECTIONS[..] };
    let candidate = |protection: &Protection| {
        let protected = evidence.protect(*protection)?;
        let mut candidate = match purpose {
            Use::Rehearsal => rehearsal(&protected, concealed),
            Use::Recording => recording(&protected, reliable),
            Use::Telephony => telephony(&protected),
        }?;
        let rate = candidate.judgement.rate.bits_per_second() as f64;
        let room = capacity.map(|capacity| capacity.bits_per_second() as f64 * SHARE_OF_CAPACITY);
        if *protection != Protection::None && room.is_some_and(|room| rate > room) {
            return None;
        }
        if candidate.class >= INSUFFICIENT {
            candidate.cost = candidate.judgement.concealed.value();
        }
        Some(candidate)
    };
    protections.iter().filter_map(candidate).collect()
}

fn rehearsal(protected: &Protected<'_>, concealed: Ratio) -> Option<Candidate> {
    let depth = protected.depth_for(concealed);
    let judgement = protected.at(depth.or_else(|| protected.depth_for_all(1.0))?);
    let class = if depth.is_some() { 0 } else { INSUFFICIENT };
    Some(Candidate { judgement, class, cost: judgement.mouth_to_ear.as_millis_f64() })
}

/// That nothing was lost in a minute does not mean that nothing will be: a transport that repeats goes first.
fn recording(protected: &Protected<'_>, reliable: bool) -> Option<Candidate> {
    let judgement = protected.at(protected.depth_for_all(RECORDING_MARGIN)?);
    let class = match (judgement.concealed == Ratio::ZERO, reliable) {
        (true, true) => 0,
        (true, false) => 1,
        (false, _) => INSUFFICIENT,
    };
    Some(Candidate { judgement, class, cost: judgement.mouth_to_ear.as_millis_f64() })
}

fn telephony(protected: &Protected<'_>) -> Option<Candidate> {
    let judgements = protected.depths().map(|depth| protected.at(depth));
    let judgement = judgements.max_by(|a, b| a.mos.total_cmp(&b.mos))?;
    Some(Candidate { judgement, class: 0, cost: -judgement.mos })
}

/// The best; of those that nobody could tell from it, the first transport, and over that what sends least.
fn pick(purpose: Use, candidates: &[Candidate]) -> Option<Candidate> {
    let class = candidates.iter().map(|candidate| candidate.class).min()?;
    let in_class = || candidates.iter().filter(|candidate| candidate.class == class);
    let least = in_class().map(|candidate| candidate.cost).min_by(f64::total_cmp)?;
    let alike = match purpose {
        _ if class >= INSUFFICIENT => 0.0,
        Use::Rehearsal | Use::Recording => 0.5,
        Use::Telephony => 0.01,
    };
    let sends = |candidate: &Candidate| (candidate.judgement.transport, candidate.judgement.rate);
    in_class()
        .filter(|candidate| candidate.cost <= least + alike)
        .min_by_key(|candidate| sends(candidate))
        .copied()
}
