//! Carries the probing plan out, phase by phase.

use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Files};
use trunkline_metrics::Recorder;

use crate::collector::Collector;
use crate::direction::{self, Basics, Learned};
use crate::estimate::overload::Response;
use crate::observations::{Observations, Way};
use crate::plan::{self, FASTEST_PULSE, FULL, Phase, Place, Pulse, SMALL};

/// Runs experiments over the path: on any backend.
pub trait Prober {
    /// The hosts `here` and `there`, and the link between them.
    fn place(&self) -> Place;

    /// The files that the link names.
    fn files(&self) -> &dyn Files {
        &()
    }

    /// Runs the only point of an experiment.
    ///
    /// # Errors
    /// In a sentence.
    fn run(&mut self, experiment: &Experiment, recorder: &mut (dyn Recorder + Send)) -> Result<(), String>;

    /// True if each run begins at the start of the path's time: a look at a later time begins later within its run.
    fn is_virtual(&self) -> bool {
        false
    }

    /// The largest bound on the error of the delays so far, from the clocks of two hosts; `None` with one clock.
    fn clock_error(&self) -> Option<Duration> {
        None
    }
}

/// Shows the progress.
pub trait Observer {
    /// A phase begins, with about so much time left.
    fn begins(&self, _purpose: &str, _left: Duration) {}

    /// Returns true to stop before the next phase.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl Observer for () {}

/// The question, and the expense that is allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The time that probing takes, about.
    pub budget: Duration,
    /// The share of each direction's capacity over that time that probes may use.
    pub share: f64,
    /// True to leave out overloads.
    pub gentle: bool,
    /// Seed of the times of the probes.
    pub seed: u64,
}

impl Default for Question {
    fn default() -> Question {
        Question { budget: Duration::from_secs(60), share: 0.1, gentle: false, seed: 1 }
    }
}

/// A path as it was learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// By direction: what was learned, or why nothing.
    pub ways: [Result<Learned, String>; 2],
    /// The packets.
    pub observations: Observations,
    /// Things to know, in sentences.
    pub notes: Vec<String>,
    /// True if it was stopped before the end of the plan.
    pub is_partial: bool,
}

/// Why nothing was learned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The first phase failed.
    #[error("{0}")]
    Failed(String),
    /// No packet arrived.
    #[error("no packet arrived in either direction; UDP may be blocked")]
    Silent,
}

struct Probing<'p> {
    question: Question,
    prober: &'p mut dyn Prober,
    observer: &'p dyn Observer,
    observations: Observations,
    /// Time of the plan so far.
    elapsed: Duration,
    phases: u64,
    notes: Vec<String>,
    is_partial: bool,
}

/// Time in which late packets are awaited after each phase, and the set-up.
const BETWEEN: Duration = Duration::from_millis(2_500);

/// Probes a path and learns both directions.
///
/// # Errors
/// If nothing could be measured at all. What fails later is a note, and what was measured until then counts.
pub fn probe(
    question: Question,
    prober: &mut dyn Prober,
    observer: &dyn Observer,
) -> Result<Path, ProbeError> {
    let mut probing = Probing {
        question,
        prober,
        observer,
        observations: Observations::default(),
        elapsed: Duration::ZERO,
        phases: 0,
        notes: Vec::new(),
        is_partial: false,
    };
    probing.run(&plan::first()).map_err(ProbeError::Failed)?;
    let heard = |way| probing.observations.of(way).any(|flow| flow.packets.iter().any(|p| p.delay.is_some()));
    let ways: Vec<Way> = Way::ALL.into_iter().filter(|&way| heard(way)).collect();
    if ways.is_empty() {
        return Err(ProbeError::Silent);
    }
    let mut rates = Way::ALL.map(|way| probing.rough(way));
    // Steps of load take about a quarter of a second of the path.
    if !question.gentle && question.share * question.budget.as_secs_f64() >= 0.5 {
        for &way in &ways {
            probing.ramp(way, &mut rates);
        }
    }
    let quiet = Duration::from_secs_f64((question.budget.as_secs_f64() * 0.17).clamp(2.0, 60.0));
    for &way in &ways {
        probing.go_on(&plan::quiet(way, rates, quiet));
    }
    if !question.gentle {
        for &way in &ways {
            probing.overload(way, rates);
        }
    }
    let clock_error = probing.prober.clock_error();
    let Probing { mut observations, mut notes, is_partial, observer, .. } = probing;
    observations.clock_error = clock_error;
    notes.extend(clock_error.map(|error| {
        format!("the clocks of the two hosts are related within {error}, so the delay of each direction is as uncertain")
    }));
    observer.begins("computing", Duration::ZERO);
    let ways = Way::ALL.map(|way| match ways.contains(&way) {
        true => direction::learn(&observations, way),
        false => Err(format!("no packet arrived {}", way.name())),
    });
    Ok(Path { ways, observations, notes, is_partial })
}

impl Probing<'_> {
    fn run(&mut self, phase: &Phase) -> Result<(), String> {
        let left = self.question.budget.saturating_sub(self.elapsed);
        self.observer.begins(&phase.purpose, left);
        self.phases += 1;
        let text = phase.text(
            &self.prober.place(),
            (self.question.seed.wrapping_mul(1_000).wrapping_add(self.phases)) >> 1,
        );
        let read = Experiment::parse(&text, "probing plan", self.prober.files())
            .map_err(|problems| problems.to_string())?;
        let point = read.points.first();
        let mut collector = Collector::new(&point.scenario, "here");
        let ran = self.prober.run(&read, &mut collector);
        // Phases do not share a clock's zero: each begins when the one before it has ended.
        self.observations.append(collector.finish(), self.elapsed);
        self.elapsed += phase.lasts + BETWEEN;
        ran
    }

    /// Runs a phase whose failure ends nothing.
    fn go_on(&mut self, phase: &Phase) {
        if self.observer.is_stopped() {
            self.is_partial = true;
            return;
        }
        if let Err(error) = self.run(phase) {
            self.notes.push(format!("{} failed: {error}", phase.purpose));
        }
    }

    /// The rate that the first trains show.
    fn rough(&self, way: Way) -> f64 {
        let all = self.observations.packets(way);
        let flows = self.observations.of(way).filter(|flow| flow.name.starts_with("glance"));
        let trains: Vec<_> =
            flows.flat_map(|flow| crate::estimate::rate::trains(&flow.packets, &all)).collect();
        crate::estimate::rate::line(&trains).map_or(1e6, |line| line.rate.value).clamp(1e4, 1e10)
    }

    /// Steps up to the rate of the trains: where packets wait or are lost before that, something slower than the line is on
    /// the way.
    fn ramp(&mut self, way: Way, rates: &mut [f64; 2]) {
        let most = FASTEST_PULSE.bits_per_second() as f64;
        let base = rates[way as usize].min(most);
        let steps = [0.06, 0.12, 0.25, 0.5].map(|load| Pulse {
            load,
            payload: FULL,
            lasts: Duration::from_millis(250),
            rest: Duration::from_millis(350),
        });
        let mut known = *rates;
        known[way as usize] = base;
        let phase = Phase {
            purpose: format!("steps of load, {}", way.name()),
            ..plan::pulses(way, known, &steps, "step")
        };
        self.go_on(&phase);
        let Ok(found) = self.steps(way) else { return };
        let overloaded = found.iter().find(|r| r.is_lossy(0.1) || r.late[1] > 10e-3);
        if let Some(slowest) = overloaded {
            rates[way as usize] = slowest.arrived.max(0.02 * base);
        }
    }

    /// The responses to the steps.
    fn steps(&self, way: Way) -> Result<Vec<Response>, String> {
        let mut named = self.observations.clone();
        for flow in &mut named.flows {
            if flow.name.starts_with("glance") {
                flow.name = format!("train-{}", flow.name);
            }
            if flow.name.starts_with("step") {
                flow.name = format!("pulse-{}", flow.name);
            }
        }
        let basics = Basics::of(&named, way)?;
        Ok(direction::responses(&named, way, &basics))
    }

    /// Overloads a direction within the allowed share.
    fn overload(&mut self, way: Way, rates: [f64; 2]) {
        let rate = rates[way as usize];
        if 1.5 * rate > FASTEST_PULSE.bits_per_second() as f64 {
            self.notes.push(format!(
                "{} is faster than {:.0} Mbit/s, so this program does not overload it: its queue was not filled",
                way.name(),
                FASTEST_PULSE.bits_per_second() as f64 / 1.5e6
            ));
            return;
        }
        let mut left = self.question.share * self.question.budget.as_secs_f64() - 0.5;
        let pulse = |load, payload, ms, rest| Pulse {
            load,
            payload,
            lasts: Duration::from_millis(ms),
            rest: Duration::from_millis(rest),
        };
        let first = pulse(1.5, FULL, 700, 1_300);
        if first.cost() > left {
            self.notes.push(format!("{}: the allowed share is too small for an overload", way.name()));
            return;
        }
        left -= first.cost();
        self.go_on(&plan::pulses(way, rates, &[first], "pulse-a"));
        let found = Basics::of(&self.observations, way)
            .map(|basics| direction::responses(&self.observations, way, &basics))
            .unwrap_or_default();
        let is_filled = found.last().is_some_and(|r| r.is_lossy(0.02));
        let rests = 1_300;
        let plan: Vec<Pulse> = match is_filled {
            true => vec![
                pulse(2.0, SMALL, 350, rests),
                pulse(1.25, FULL, 1_000, rests),
                pulse(2.0, FULL, 500, rests),
            ],
            // A deep queue, or a bucket: longer.
            false => vec![pulse(2.0, FULL, 1_200, 2_000), pulse(1.6, FULL, 1_000, 2_000)],
        };
        let mut fitting = Vec::new();
        for pulse in plan {
            if pulse.cost() <= left {
                left -= pulse.cost();
                fitting.push(pulse);
            }
        }
        if fitting.is_empty() {
            self.notes
                .push(format!("{}: the allowed share is too small for more than one overload", way.name()));
            return;
        }
        self.go_on(&plan::pulses(way, rates, &fitting, "pulse-b"));
    }
}
