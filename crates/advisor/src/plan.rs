//! What to measure next, so that a budget of time tells most.

use std::collections::{BTreeMap, VecDeque};

use trunkline_core::{Duration, Ratio, Time};

use crate::choose::{Choice, Use, most_promising};
use crate::configuration::{Blocks, Configuration, Load, Marking};
use crate::findings::Findings;
use crate::trace::Measured;
use crate::transport::Transport;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// How long all of it may take.
    pub budget: Duration,
    /// What may be recommended.
    pub transports: Vec<Transport>,
    /// What for.
    pub uses: Vec<Use>,
    /// Channels of a stream of music.
    pub channels: u16,
    /// Its frames per second, at least 1.
    pub sample_rate: u32,
    /// Bytes of its samples.
    pub sample_bytes: u8,
    /// The share of a rehearsal's audio that may have to be concealed.
    pub concealed: Ratio,
    /// Whether the network may be loaded with bulk transfers.
    pub load: bool,
}

/// The sizes of blocks that are tried, in frames.
pub const SIZES: [u32; 4] = [64, 128, 256, 512];

/// The size with which transports are compared.
const REFERENCE: u32 = 256;

/// Blocks of calls: 20 and 10 ms of G.711.
const CALLS: [u32; 2] = [160, 80];

/// Numbers of channels that are tried beside the one that was asked for.
const CHANNELS: [u16; 3] = [1, 2, 8];

/// What a group of measurements is to tell, in their order. After them the rest of the time goes to what the advice hangs
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Which transports are any good.
    Transports,
    /// What the best of them suffer when the network is loaded.
    Load,
    /// Which block size is best over them.
    Sizes,
    /// What calls are like over them.
    Calls,
    /// What more and fewer channels are like.
    Channels,
    /// What marking packets is worth under load.
    Marking,
    /// Whether what looks best is.
    Refinement,
}

impl Stage {
    /// All before the refinement, with the share of the budget that each may take.
    const ORDER: [(Stage, f64); 6] = [
        (Stage::Transports, 0.2),
        (Stage::Load, 0.12),
        (Stage::Sizes, 0.12),
        (Stage::Calls, 0.06),
        (Stage::Channels, 0.04),
        (Stage::Marking, 0.05),
    ];
}

/// A measurement to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is measured.
    pub configuration: Configuration,
    /// What for.
    pub stage: Stage,
    /// How long the load lasts before the first packet.
    pub settling: Duration,
    /// How long packets are sent.
    pub lasting: Duration,
    /// When it must be over, whatever has happened by then.
    pub until: Time,
}

/// A plan of measurements that adapts to what they find. Time is an argument, and never decreases.
///
/// Ask for the [`next`](Plan::next) step, measure it, tell what it [`found`](Plan::found), and so on until there is none.
/// As long as each step is over at its [`until`](Step::until), the whole is over within the budget.
#[derive(Clone, Debug)]
pub struct Plan {
    question: Question,
    end: Time,
    findings: Findings,
    /// Stages that have not begun.
    stages: VecDeque<(Stage, f64)>,
    /// What is left of the stage that has.
    waiting: VecDeque<Configuration>,
    stage: Stage,
    /// How long each of its steps takes, without overhead.
    time: Duration,
    /// When the step that is under way began, and what it was to take.
    under_way: (Time, Duration),
    /// What steps took beyond that at most, of late.
    overhead: Duration,
    /// How often measuring a transport failed.
    failures: BTreeMap<Transport, u32>,
}

impl Plan {
    /// A plan that begins now.
    pub fn new(question: Question, now: Time) -> Plan {
        Plan {
            end: now + question.budget,
            findings: Findings::default(),
            stages: Stage::ORDER.into(),
            waiting: VecDeque::new(),
            stage: Stage::Transports,
            time: Duration::ZERO,
            under_way: (now, Duration::ZERO),
            overhead: Duration::ZERO,
            failures: BTreeMap::new(),
            question,
        }
    }

    /// What to measure from now on; `None` if there is no time left for anything, or nothing to measure.
    pub fn next(&mut self, now: Time) -> Option<Step> {
        let configuration = self.next_configuration()?;
        let left = self.end.since(now).saturating_sub(self.overhead);
        // A queue needs some time to fill up.
        let is_loaded = configuration.load == Load::Bulk;
        let time = self.time.max(if is_loaded { self.least() * 3 / 2 } else { self.least() }).min(left);
        let settling = if is_loaded { time / 3 } else { Duration::ZERO };
        let lasting = time - settling;
        if lasting < self.least() {
            return None;
        }
        self.under_way = (now, time);
        let until = (now + time + self.patience()).min(self.end);
        Some(Step { configuration, stage: self.stage, settling, lasting, until })
    }

    /// What a step found, or in one clause why it could not be made.
    pub fn found(&mut self, step: &Step, found: Result<Measured, String>, now: Time) {
        let transport = step.configuration.transport;
        match found {
            Ok(measured) if measured.trace.round_trips.iter().all(Option::is_none) => {
                self.found(step, Err("no packet came back".to_owned()), now);
            }
            Ok(measured) => {
                self.findings.add(step.configuration, measured);
                let (began, planned) = self.under_way;
                self.overhead = now.since(began).saturating_sub(planned).max(self.overhead / 2);
            }
            Err(why) => {
                *self.failures.entry(transport).or_default() += 1;
                self.findings.fail(transport, why);
            }
        }
    }

    /// All that was found so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// What was asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// How much of the budget is left.
    pub fn left(&self, now: Time) -> Duration {
        self.end.since(now)
    }

    /// The shortest measurement that is worth its while.
    fn least(&self) -> Duration {
        (self.question.budget / 100).clamp(Duration::from_millis(100), Duration::from_millis(300))
    }

    /// How long a step may take beyond what it was to take.
    fn patience(&self) -> Duration {
        (self.question.budget / 20).clamp(Duration::from_millis(300), Duration::from_secs(3))
    }

    fn next_configuration(&mut self) -> Option<Configuration> {
        loop {
            while let Some(configuration) = self.waiting.pop_front() {
                if self.is_worth_it(&configuration) {
                    return Some(configuration);
                }
            }
            let Some((stage, share)) = self.stages.pop_front() else {
                self.stage = Stage::Refinement;
                self.time = (self.question.budget / 30).clamp(self.least(), Duration::from_secs(5));
                return self.thinnest();
            };
            self.stage = stage;
            self.waiting = self.of_stage(stage).into();
            let steps = self.waiting.len().max(1) as u64;
            let each = Duration::from_secs_f64(self.question.budget.as_secs_f64() * share) / steps;
            self.time = each.saturating_sub(self.overhead).clamp(self.least(), Duration::from_secs(5));
        }
    }

    /// A transport that could not be measured is tried no more; one that could, once more.
    fn is_worth_it(&self, configuration: &Configuration) -> bool {
        let failures = self.failures.get(&configuration.transport).copied().unwrap_or(0);
        let was_measured = self.findings.configurations().any(|one| one.transport == configuration.transport);
        failures < 1 + u32::from(was_measured)
    }

    fn of_stage(&self, stage: Stage) -> Vec<Configuration> {
        let reference = self.blocks(REFERENCE, self.question.channels);
        let mut all = Vec::new();
        match stage {
            Stage::Transports => {
                all.extend(self.question.transports.iter().map(|transport| idle(*transport, reference)));
            }
            Stage::Load => {
                let best = self.best_transports(&self.question.uses);
                all.extend(best.into_iter().map(|transport| idle(transport, reference).under(Load::Bulk)));
            }
            Stage::Sizes => {
                let sizes = SIZES.map(|frames| self.blocks(frames, self.question.channels));
                for Choice { purpose, best, runner_up, .. } in self.choices() {
                    let runner_up = runner_up.filter(|_| purpose == Use::Rehearsal);
                    for judgement in [best].into_iter().chain(runner_up).filter(|_| purpose != Use::Telephony)
                    {
                        all.extend(sizes.map(|blocks| idle(judgement.transport, blocks)));
                    }
                }
            }
            Stage::Calls => {
                if self.question.uses.contains(&Use::Telephony) {
                    let best = self.best_transports(&[Use::Telephony]);
                    let sizes = CALLS.into_iter().map(Blocks::telephone);
                    all.extend(
                        sizes.flat_map(|blocks| best.iter().map(move |transport| idle(*transport, blocks))),
                    );
                }
            }
            Stage::Channels => {
                if let Some(Choice { best, .. }) =
                    self.choices().find(|choice| choice.purpose != Use::Telephony)
                {
                    let blocks = CHANNELS.map(|channels| self.blocks(best.blocks.frames, channels));
                    all.extend(blocks.map(|blocks| idle(best.transport, blocks)));
                }
            }
            Stage::Marking => {
                if let Some(Choice { best, .. }) = self.choices().next() {
                    let marked = idle(best.transport, best.blocks).under(Load::Bulk);
                    all.extend([marked, Configuration { marking: Marking::BestEffort, ..marked }]);
                }
            }
            Stage::Refinement => {}
        }
        let mut seen: Vec<Configuration> = self.findings.configurations().copied().collect();
        all.retain(|one| {
            let is_new = !seen.contains(one) && (self.question.load || one.load == Load::Idle);
            seen.push(*one);
            is_new
        });
        all
    }

    /// Of what looks best, what was measured for the shortest time: if it is not, something else will. Once all of it was measured long enough, what
    /// becomes of the best under load, if that is not known.
    fn thinnest(&self) -> Option<Configuration> {
        let (mut idle_ones, mut loaded) = (Vec::new(), Vec::new());
        for Choice { best, .. } in self.choices() {
            let best = idle(best.transport, best.blocks);
            idle_ones.push(best);
            loaded.extend(self.question.load.then(|| best.under(Load::Bulk)));
        }
        let measured = |one: &Configuration| {
            let blocks: usize = self.findings.traces(one).map(|trace| trace.round_trips.len()).sum();
            one.blocks.interval() * blocks as u64
        };
        idle_ones.retain(|one| self.is_worth_it(one));
        loaded.retain(|one| self.is_worth_it(one) && measured(one).is_zero());
        let thinnest = idle_ones.into_iter().min_by_key(measured)?;
        let is_enough = measured(&thinnest) >= self.question.budget / 10;
        loaded.into_iter().next().filter(|_| is_enough).or(Some(thinnest))
    }

    fn choices(&self) -> impl Iterator<Item = Choice> {
        let uses = self.question.uses.iter();
        uses.filter_map(|purpose| most_promising(*purpose, &self.question, &self.findings))
    }

    /// The best transport for each use and the runner-up.
    fn best_transports(&self, uses: &[Use]) -> Vec<Transport> {
        let of_uses: Vec<Choice> = self.choices().filter(|choice| uses.contains(&choice.purpose)).collect();
        let best = of_uses.iter().map(|choice| choice.best.transport);
        let runners_up = of_uses.iter().filter_map(|choice| Some(choice.runner_up?.transport));
        let mut all = Vec::new();
        for transport in best.chain(runners_up) {
            if !all.contains(&transport) {
                all.push(transport);
            }
        }
        all
    }

    fn blocks(&self, frames: u32, channels: u16) -> Blocks {
        let Question { sample_rate, sample_bytes, .. } = self.question;
        Blocks { sample_rate, frames, channels, sample_bytes }
    }
}

fn idle(transport: Transport, blocks: Blocks) -> Configuration {
    Configuration { transport, blocks, load: Load::Idle, marking: Marking::Expedited }
}
