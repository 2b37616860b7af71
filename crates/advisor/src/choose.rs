//! What is best for which use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use trunkline_audio::pipeline::Protection;
use trunkline_core::{Duration, Rate, Ratio};

use crate::configuration::{Load, Marking};
use crate::findings::Findings;
use crate::judge::{Evidence, Judgement, Protected};
use crate::protect::PROTECTIONS;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[error("`{0}` is no use that is advised on; expected `rehearsal`, `recording` or `telephony`")]
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

/// A recording's depth is so many times what would have been enough: what was not seen in a minute comes in an hour.
pub const RECORDING_MARGIN: f64 = 1.5;

/// Redundancy must leave a part of what bulk transfers reached.
const SHARE_OF_CAPACITY: f64 = 0.8;

/// What is recommended for a use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// What for.
    pub purpose: Use,
    /// The best.
    pub best: Judgement,
    /// Whether it does what the use asks for: the bound on what is concealed, no loss. Calls have no such bound.
    pub suffices: bool,
    /// The best over another transport or, if only one could be measured, with other packets or redundancy.
    pub runner_up: Option<Judgement>,
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

/// What was idle and marked as a session would mark it decides; `None` if nothing was measured. Telephony chooses among
/// packets of G.711, the others among those with `channels`, if there are any.
pub fn choose(purpose: Use, findings: &Findings, channels: u16, concealed: Ratio) -> Option<Choice> {
    let fits = |configuration: &&crate::Configuration| {
        let packets = configuration.packets;
        match purpose {
            Use::Telephony => packets.is_telephone(),
            Use::Rehearsal | Use::Recording => !packets.is_telephone() && packets.channels == channels,
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
            candidates.extend(candidates_of(
                purpose,
                &evidence,
                configuration.transport.is_reliable(),
                concealed,
                capacity,
            ));
        }
    }
    let best = pick(purpose, &candidates)?;
    let others = [
        |best: &Judgement, other: &Judgement| other.transport != best.transport,
        |best: &Judgement, other: &Judgement| other.packets != best.packets,
        |best: &Judgement, other: &Judgement| other.protection != best.protection,
    ];
    let runner_up = others.into_iter().find_map(|is_other| {
        let others = candidates.iter().filter(|other| is_other(&best.judgement, &other.judgement));
        pick(purpose, &others.copied().collect::<Vec<_>>())
    });
    Some(Choice {
        purpose,
        best: best.judgement,
        suffices: best.class < INSUFFICIENT,
        runner_up: runner_up.map(|candidate| candidate.judgement),
    })
}

const INSUFFICIENT: u8 = 2;

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
    let judgement = protected.at(depth.or_else(|| protected.depth_for_all())?);
    let class = if depth.is_some() { 0 } else { INSUFFICIENT };
    Some(Candidate { judgement, class, cost: judgement.mouth_to_ear.as_millis_f64() })
}

/// That nothing was lost in a minute does not mean that nothing will be: a transport that repeats goes first.
fn recording(protected: &Protected<'_>, reliable: bool) -> Option<Candidate> {
    let enough = protected.depth_for_all()?;
    let judgement = protected.at(Duration::from_secs_f64(enough.as_secs_f64() * RECORDING_MARGIN));
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

/// The best; of those that nobody could tell from it, the one that sends least.
fn pick(purpose: Use, candidates: &[Candidate]) -> Option<Candidate> {
    let class = candidates.iter().map(|candidate| candidate.class).min()?;
    let in_class = || candidates.iter().filter(|candidate| candidate.class == class);
    let least = in_class().map(|candidate| candidate.cost).min_by(f64::total_cmp)?;
    let alike = match purpose {
        _ if class >= INSUFFICIENT => 0.0,
        Use::Rehearsal | Use::Recording => 0.5,
        Use::Telephony => 0.01,
    };
    let sends = |candidate: &Candidate| (candidate.judgement.rate, candidate.judgement.transport);
    in_class()
        .filter(|candidate| candidate.cost <= least + alike)
        .min_by_key(|candidate| sends(candidate))
        .copied()
}
