//! Advice: what is recommended, why, and how to do it.

use trunkline_core::{Duration, Rate};

use crate::choose::{Choice, choose};
use crate::configuration::{Configuration, Load, Marking};
use crate::findings::Findings;
use crate::judge::Judgement;
use crate::plan::Question;
use crate::probe::Probed;
use crate::trace::RoundTrips;
use crate::transport::Transport;
use crate::{command, warnings, words};

/// What is recommended over a network.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The other end.
    pub host: String,
    /// What was asked.
    pub question: Question,
    /// How long measuring took.
    pub took: Duration,
    /// Whether it was stopped before its budget was spent.
    pub is_partial: bool,
    /// One for each use that was asked for, in that order.
    pub recommendations: Vec<Recommendation>,
    /// What else should be known, a sentence or two each.
    pub warnings: Vec<String>,
    /// All measurements.
    pub measured: Vec<Row>,
    /// Transports that could not be measured at all, and why.
    pub failed: Vec<(Transport, String)>,
    /// What bulk transfers reached, in the direction in which they reached less.
    pub capacity: Option<Rate>,
}

/// What is recommended for one use.
#[derive(Clone, Debug)]
pub struct Recommendation {
    /// What is best, and what is next.
    pub choice: Choice,
    /// What the best would have been like under load, with the same playout depth and redundancy.
    pub loaded: Option<Judgement>,
    /// What the best would have been like with other playout depths.
    pub by_depth: Vec<Judgement>,
    /// Why it is best, with the numbers, in a paragraph.
    pub why: String,
    /// What the runner-up costs, in a sentence.
    pub runner_up_costs: Option<String>,
    /// The command that sends.
    pub send: String,
    /// The command at the other end.
    pub answer: String,
}

/// A configuration's figures.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The configuration that was measured.
    pub configuration: Configuration,
    /// Its round trips.
    pub round_trips: RoundTrips,
}

/// Judges what was found on the way to `host`; `None` if no packet came back at all.
pub fn advise(host: &str, probed: &Probed) -> Option<Advice> {
    let Probed { question, findings, took, is_partial } = probed;
    let choices: Vec<Choice> =
        question.uses.iter().filter_map(|purpose| choose(*purpose, question, findings)).collect();
    if choices.is_empty() {
        return None;
    }
    let row =
        |one: &Configuration| Some(Row { configuration: *one, round_trips: findings.round_trips(one)? });
    Some(Advice {
        host: host.to_owned(),
        question: question.clone(),
        took: *took,
        is_partial: *is_partial,
        warnings: warnings::warnings(probed, &choices),
        recommendations: choices.into_iter().map(|choice| recommendation(host, choice, probed)).collect(),
        measured: findings.configurations().filter_map(row).collect(),
        failed: findings.never_measured().map(|(transport, why)| (transport, why.to_owned())).collect(),
        capacity: findings.capacity(),
    })
}

fn recommendation(host: &str, choice: Choice, probed: &Probed) -> Recommendation {
    let loaded = again(&choice.best, &probed.findings, Load::Bulk).into_iter().next();
    let (answer, send) = command::commands(host, choice.purpose, &choice.best);
    Recommendation {
        loaded,
        by_depth: again(&choice.best, &probed.findings, Load::Idle).into_iter().skip(1).collect(),
        why: words::why(&choice, loaded.as_ref(), &probed.question),
        runner_up_costs: words::runner_up(&choice),
        send,
        answer,
        choice,
    }
}

/// The same way to send under a load: first with the same depth, then with others.
fn again(best: &Judgement, findings: &Findings, load: Load) -> Vec<Judgement> {
    let Judgement { transport, blocks, protection, depth, .. } = *best;
    let configuration = Configuration { transport, blocks, load, marking: Marking::Expedited };
    let Some(evidence) = findings.evidence(&configuration) else { return Vec::new() };
    let Some(protected) = evidence.protect(protection) else { return Vec::new() };
    [depth].into_iter().chain(protected.depths()).map(|depth| protected.at(depth)).collect()
}
