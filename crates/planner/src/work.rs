//! The searches of a plan while they go on: what they wait for, what was measured for them, and what it shows.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};
use std::sync::atomic::AtomicBool;

use trunkline_experiment::{Axis, Experiment, Limit, Scenario};
use trunkline_metrics::{FlowSummary, RepetitionSummary};
use trunkline_runner::GrowingRun;
use trunkline_store::StoredRun;

use crate::forecast::{Costs, Forecast, values_left};
use crate::judge::{self, EARLY, Errors, Judged, Measured};
use crate::overload::{self, Load, Overloaded, Quarters, Rising, Unfinished};
use crate::plan::{Means, Plan, PlanError};
use crate::run::{Answer, Observer, Trial};
use crate::search::{Edge, Goal, Search, Verdict};

/// The searches as they go on.
pub(crate) struct Work<'p> {
    plan: &'p Plan,
    looks: Vec<u32>,
    errors: Errors,
    cells: Vec<Cell>,
    /// What a resumed run has, by the values on the axes and the repetition.
    known: BTreeMap<(Vec<String>, u32), Sample>,
    /// Every value that was ever asked for, of any combination.
    values: BTreeSet<u64>,
    costs: Costs,
    /// What was said of the backend.
    noted: BTreeSet<String>,
}

/// One combination of what else is swept.
struct Cell {
    choice: Vec<usize>,
    /// Looks for the edge with one repetition of each value.
    probe: Search,
    search: Search,
    samples: BTreeMap<u64, Samples>,
}

impl Cell {
    /// After how many repetitions a value is looked at first: early if the probe found it behind the edge.
    fn first_look(&self, goal: Goal, value: u64, usual: u32) -> u32 {
        let is_behind = self.probe.edge().broken.is_some_and(|broken| match goal {
            Goal::Maximise => value >= broken,
            Goal::Minimise => value <= broken,
        });
        if is_behind { EARLY.min(usual) } else { usual }
    }
}

/// What a plan needs of one repetition.
struct Sample {
    measured: Measured,
    /// By flow; `None` for one that sent too little.
    quarters: Vec<Option<Quarters>>,
    load: Load,
    /// By flow, the share of its messages that were refused or had not arrived when the run ended.
    unfinished: Vec<f64>,
}

/// What was measured at one value.
#[derive(Default)]
struct Samples {
    /// Of each repetition.
    repetitions: BTreeMap<u32, Sample>,
    looks_done: usize,
    looked_early: bool,
    verdict: Option<Verdict>,
    refused: Option<String>,
}

impl Sample {
    fn of(limits: &[Limit], summary: &RepetitionSummary) -> Sample {
        let measured = Measured {
            figures: limits.iter().map(|limit| limit.figure(summary)).collect(),
            grains: limits.iter().map(|limit| limit.grain(summary)).collect(),
            counted_each: limits.iter().map(|limit| limit.counted_each(summary)).collect(),
            outside_model: limits.iter().map(|limit| limit.is_outside_model(summary)).collect(),
            fates: fates(summary),
        };
        let unfinished = |flow: &FlowSummary| {
            let due = flow.counts.due();
            let missing = flow.counts.unfinished + flow.counts.refused;
            if due > 0 { missing as f64 / due as f64 } else { 0.0 }
        };
        Sample {
            measured,
            load: Load::of(summary),
            quarters: summary.flows.iter().map(Quarters::of).collect(),
            unfinished: summary.flows.iter().map(unfinished).collect(),
        }
    }
}

impl Samples {
    fn judge(&self, limits: &[Limit], errors: Errors) -> (Verdict, Vec<Judged>) {
        if self.refused.is_some() {
            return (Verdict::Broken, Vec::new());
        }
        let repetitions: Vec<&Measured> = self.repetitions.values().map(|one| &one.measured).collect();
        judge::judge(limits, &repetitions, errors)
    }

    fn trial(&self, value: u64, limits: Vec<Judged>) -> Trial {
        let repetitions = self.repetitions.len() as u32;
        Trial { value, verdict: self.verdict, repetitions, limits, refused: self.refused.clone() }
    }

    /// The flows whose latency rises through the whole run.
    fn rising(&self, scenario: &Scenario, confidence: f64) -> Vec<Rising> {
        // The error is shared by the flows.
        let confidence = 1.0 - (1.0 - confidence) / scenario.flows.len().max(1) as f64;
        let rise = |(place, flow): (usize, &trunkline_experiment::Flow)| {
            let of_flow = self.repetitions.values().map(|one| one.quarters.get(place).copied().flatten());
            let quarters: Option<Vec<Quarters>> = of_flow.collect();
            let per_second = overload::rise(&quarters?, confidence)?;
            Some(Rising { flow: flow.meta.name.clone(), per_second })
        };
        scenario.flows.iter().enumerate().filter_map(rise).collect()
    }

    /// The links that are offered more than they carry, which the run is too short to show.
    fn overloaded(&self, scenario: &Scenario, confidence: f64) -> Vec<Overloaded> {
        let loads: Vec<&Load> = self.repetitions.values().map(|one| &one.load).collect();
        overload::overloaded(scenario, &loads, confidence)
    }

    /// The flows of which most messages were refused or had not arrived when the run ended.
    fn unfinished(&self, scenario: &Scenario) -> Vec<Unfinished> {
        let most = |(place, flow): (usize, &trunkline_experiment::Flow)| {
            let shares = self.repetitions.values().filter_map(|one| one.unfinished.get(place));
            let share = shares.sum::<f64>() / self.repetitions.len() as f64;
            (share > 0.5).then(|| Unfinished { flow: flow.meta.name.clone(), share })
        };
        scenario.flows.iter().enumerate().filter_map(most).collect()
    }
}

/// A value that a search waits for.
struct Wanted {
    cell: usize,
    value: u64,
    until: u32,
}

impl<'p> Work<'p> {
    pub(crate) fn new(plan: &'p Plan, stored: Option<&StoredRun>) -> Work<'p> {
        let looks = plan.terms.looks();
        let cell = |choice: &[usize]| Cell {
            choice: choice.get(1..).unwrap_or_default().to_vec(),
            probe: plan.search().without_controls(),
            search: plan.search(),
            samples: BTreeMap::new(),
        };
        let cells: Vec<Cell> = plan.first.points.choices().map(|choice| cell(&choice)).collect();
        let mut work = Work {
            plan,
            errors: plan.terms.errors(),
            looks,
            costs: Costs::new(cells.len()),
            cells,
            known: BTreeMap::new(),
            values: BTreeSet::new(),
            noted: BTreeSet::new(),
        };
        if let Some(run) = stored {
            work.remember(run);
        }
        work
    }

    /// Takes over what a partial run has.
    fn remember(&mut self, run: &StoredRun) {
        let parsed = run.axes.first().into_iter().flat_map(|axis| &axis.values);
        self.values.extend(parsed.filter_map(|value| self.plan.key.parse(value).ok()));
        for point in &run.points {
            let values: Vec<String> = on_axes(&run.axes, &point.choice);
            for repetition in point.repetitions.iter().filter(|repetition| !repetition.partial) {
                if let Some(summary) = &repetition.summary {
                    let sample = Sample::of(&run.limits, summary);
                    self.known.insert((values.clone(), repetition.index), sample);
                }
            }
        }
    }

    /// Measures the next value of every probe once; false when all of them have found their edge.
    ///
    /// # Errors
    /// If measuring fails.
    pub(crate) fn probe(
        &mut self,
        run: &mut GrowingRun,
        means: &Means<'_>,
        observer: &dyn Observer,
        stop: &AtomicBool,
    ) -> Result<bool, PlanError> {
        let next =
            |(cell, of): (usize, &mut Cell)| Some(Wanted { cell, value: of.probe.next_value()?, until: 1 });
        let wanted: Vec<Wanted> = self.cells.iter_mut().enumerate().filter_map(next).collect();
        if wanted.is_empty() {
            return Ok(false);
        }
        let (allowed, refused) = self.allowed(wanted);
        for (one, _) in refused {
            self.cells[one.cell].probe.tell(one.value, Verdict::Broken);
        }
        self.measure(run, &format!("probe of {}", self.plan.key.key()), &allowed, means, observer, stop)?;
        for one in &allowed {
            let cell = &mut self.cells[one.cell];
            let first = cell.samples.get(&one.value).and_then(|samples| samples.repetitions.values().next());
            if let Some(sample) = first {
                let keeps = judge::once(&self.plan.first.limits, &sample.measured.figures);
                let figures = &sample.measured.figures;
                observer.tried(&crate::text::tried(self.plan, &cell.choice, one.value, figures));
                cell.probe.tell(one.value, if keeps { Verdict::Kept } else { Verdict::Broken });
            }
        }
        Ok(true)
    }

    /// Lets the searches begin where the probes have found the edges.
    pub(crate) fn expect_what_was_probed(&mut self) {
        for cell in &mut self.cells {
            let Edge { kept, broken, .. } = cell.probe.edge();
            cell.search = self.plan.search().expecting(kept, broken);
        }
    }

    /// Measures and judges the values that the searches wait for; false when all searches are done.
    ///
    /// # Errors
    /// If measuring fails.
    pub(crate) fn round(
        &mut self,
        run: &mut GrowingRun,
        means: &Means<'_>,
        observer: &dyn Observer,
        stop: &AtomicBool,
    ) -> Result<bool, PlanError> {
        let wanted = self.wanted();
        if wanted.is_empty() {
            return Ok(false);
        }
        let (wanted, refused) = self.allowed(wanted);
        for (one, why) in refused {
            let samples = self.cells[one.cell].samples.entry(one.value).or_default();
            samples.refused = Some(why);
            self.settle(&one, Verdict::Broken, Vec::new(), observer);
        }
        self.measure(run, &self.name(&wanted), &wanted, means, observer, stop)?;
        self.judge(&wanted, observer);
        Ok(true)
    }

    /// Whether no search waits for anything.
    pub(crate) fn is_done(&mut self) -> bool {
        self.wanted().is_empty()
    }

    /// What the searches wait for; empty when all are done.
    fn wanted(&mut self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for (place, cell) in self.cells.iter_mut().enumerate() {
            if let Some(value) = cell.search.next_value() {
                let samples = cell.samples.get(&value);
                let look = samples.map_or(0, |samples| samples.looks_done);
                let until =
                    match samples.is_some_and(|samples| samples.looked_early || samples.looks_done > 0) {
                        false => cell.first_look(self.plan.goal, value, self.looks[0]),
                        true => self.looks[look.min(self.looks.len() - 1)],
                    };
                wanted.push(Wanted { cell: place, value, until });
            }
        }
        wanted
    }

    /// Those of the values that the file can be run with, and the others with the reason.
    fn allowed(&self, wanted: Vec<Wanted>) -> (Vec<Wanted>, Vec<(Wanted, String)>) {
        let (mut allowed, mut refused) = (Vec::new(), Vec::new());
        for one in wanted {
            let known = self.values.contains(&one.value);
            match if known { Ok(()) } else { self.plan.with([one.value].into_iter()).map(drop) } {
                Ok(()) => allowed.push(one),
                Err(error) => refused.push((one, error.to_string())),
            }
        }
        (allowed, refused)
    }

    /// Measures the repetitions that these lack.
    fn measure(
        &mut self,
        run: &mut GrowingRun,
        name: &str,
        wanted: &[Wanted],
        means: &Means<'_>,
        observer: &dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), PlanError> {
        self.values.extend(wanted.iter().map(|wanted| wanted.value));
        let experiment = self.plan.with(self.values.iter().copied())?;
        for note in trunkline_runner::notes(experiment.points.iter(), means.backend) {
            if self.noted.insert(note.clone()) {
                observer.warning(&note);
            }
        }
        let (mut tasks, mut owners) = (Vec::new(), Vec::new());
        for one in wanted {
            let point = self.point(&experiment, one);
            let values = on_axes(&experiment.axes, &experiment.points.at(point).choice);
            let samples = self.cells[one.cell].samples.entry(one.value).or_default();
            for repetition in 0..one.until {
                if samples.repetitions.contains_key(&repetition) {
                    continue;
                }
                match self.known.remove(&(values.clone(), repetition)) {
                    Some(sample) => _ = samples.repetitions.insert(repetition, sample),
                    None => {
                        tasks.push((point, repetition));
                        owners.push((one.cell, one.value));
                    }
                }
            }
        }
        if tasks.is_empty() {
            return Ok(());
        }
        let limits = &experiment.limits;
        let request = means.request(&experiment, &self.plan.file);
        let keep = |summary: &_, took| (Sample::of(limits, summary), took);
        let measured = match means.elsewhere {
            Some(workers) => run.measure_elsewhere(&experiment, name, &tasks, keep, observer, workers)?,
            None => run.measure(request, name, &tasks, keep, observer, stop)?,
        };
        for (((cell, value), (_, repetition)), measured) in owners.into_iter().zip(tasks).zip(measured) {
            let Some((sample, took)) = measured else { continue };
            self.costs.add(cell, value, took);
            self.cells[cell].samples.entry(value).or_default().repetitions.insert(repetition, sample);
        }
        Ok(())
    }

    /// The place of a value in the experiment: the key is its first axis, the slowest.
    fn point(&self, experiment: &Experiment, wanted: &Wanted) -> usize {
        let place = self.values.iter().position(|value| *value == wanted.value).unwrap_or_default();
        (place * self.cells.len() + wanted.cell).min(experiment.points.len() - 1)
    }

    /// What is measured now, for the display.
    fn name(&self, wanted: &[Wanted]) -> String {
        match wanted {
            [one] => format!("{} = {}", self.plan.key.key(), self.plan.key.written(one.value)),
            several => format!("{} of {} searches", several.len(), self.cells.len()),
        }
    }

    /// Judges what was measured as often as it should be, and tells the searches what is certain.
    fn judge(&mut self, wanted: &[Wanted], observer: &dyn Observer) {
        for one in wanted {
            let cell = &mut self.cells[one.cell];
            let Some(samples) = cell.samples.get_mut(&one.value) else { continue };
            if (samples.repetitions.len() as u32) < one.until {
                continue;
            }
            let (verdict, limits) = samples.judge(&self.plan.first.limits, self.errors);
            if one.until < self.looks[0] {
                samples.looked_early = true;
                if verdict == Verdict::Broken {
                    self.settle(one, verdict, limits, observer);
                }
                continue;
            }
            samples.looks_done += 1;
            if verdict == Verdict::Undecided && samples.looks_done < self.looks.len() {
                continue;
            }
            self.settle(one, verdict, limits, observer);
        }
    }

    /// Tells the search and the observer what became of a value.
    fn settle(&mut self, one: &Wanted, verdict: Verdict, limits: Vec<Judged>, observer: &dyn Observer) {
        let cell = &mut self.cells[one.cell];
        let samples = cell.samples.entry(one.value).or_default();
        samples.verdict = Some(verdict);
        cell.search.tell(one.value, verdict);
        let trial = samples.trial(one.value, limits);
        let combination = crate::text::combination(&self.plan.axes, &cell.choice, |_| true);
        observer.judged(&crate::text::trial(self.plan, &self.plan.first.limits, &combination, &trial));
    }

    /// What the rest is expected to take, if the edges lie where they were found so far.
    pub(crate) fn forecast(&self, means: &Means<'_>) -> Forecast {
        let jobs = if means.backend.is_simulated() { means.jobs.max(1) } else { 1 };
        let (mut forecast, mut seconds) = (Forecast::default(), 0.0);
        for (place, cell) in self.cells.iter().enumerate() {
            let probed = cell.probe.edge();
            for value in values_left(&cell.search, self.plan.goal, probed.broken) {
                let near = [probed.kept, probed.broken].contains(&Some(value));
                let has = cell.samples.get(&value).map_or(0, |samples| samples.repetitions.len() as u32);
                let first = cell.first_look(self.plan.goal, value, self.looks[0]);
                let expected = self.expected_repetitions(near, first);
                let lacks = expected.max(self.next_look(first, has)).saturating_sub(has);
                forecast.values += 1;
                forecast.repetitions += u64::from(lacks);
                seconds += self.costs.of(place, value) * f64::from(lacks);
            }
        }
        forecast.left = core::time::Duration::try_from_secs_f64(seconds / jobs as f64).unwrap_or_default();
        forecast
    }

    /// How often a value is measured that has been measured so often and is not decided.
    fn next_look(&self, first: u32, has: u32) -> u32 {
        std::iter::once(first).chain(self.looks.iter().copied()).find(|look| *look > has).unwrap_or(has)
    }

    /// How often a value with such a first look is measured on average, with one that was measured only as often counted
    /// beside those that were judged; those next to the edge by themselves, since they are the hard ones.
    fn expected_repetitions(&self, near: bool, first: u32) -> u32 {
        let (mut sum, mut count) = (first, 1);
        for cell in &self.cells {
            let probed = cell.probe.edge();
            for (value, samples) in cell.samples.iter().filter(|(_, samples)| samples.verdict.is_some()) {
                let is_near = [probed.kept, probed.broken].contains(&Some(*value));
                if is_near == near && cell.first_look(self.plan.goal, *value, self.looks[0]) == first {
                    sum += samples.repetitions.len() as u32;
                    count += 1;
                }
            }
        }
        sum.div_ceil(count)
    }

    pub(crate) fn answers(mut self) -> Vec<Answer> {
        let (limits, errors) = (&self.plan.first.limits, self.errors);
        let (points, confidence) = (&self.plan.first.points, self.plan.terms.confidence);
        let answer = |(place, cell): (usize, &mut Cell)| {
            let trial =
                |(value, samples): (&u64, &Samples)| samples.trial(*value, samples.judge(limits, errors).1);
            let trials: Vec<Trial> = cell.samples.iter().map(trial).collect();
            let mut edge = cell.search.edge();
            // A value without members leads the search to those with some, but is no answer.
            edge.kept =
                edge.kept.filter(|kept| !trials.iter().any(|one| one.value == *kept && one.is_empty()));
            let kept = edge.kept.and_then(|kept| cell.samples.get(&kept));
            // Its sources send at the rates of this value.
            let there = edge.kept.and_then(|kept| self.plan.with(std::iter::once(kept)).ok());
            Answer {
                finished: cell.search.next_value().is_none(),
                choice: cell.choice.clone(),
                rising: kept
                    .map_or_else(Vec::new, |kept| kept.rising(&points.at(place).scenario, confidence)),
                overloaded: kept.zip(there).map_or_else(Vec::new, |(kept, there)| {
                    kept.overloaded(&there.points.at(place).scenario, confidence)
                }),
                unfinished: kept.map_or_else(Vec::new, |kept| kept.unfinished(&points.at(place).scenario)),
                trials,
                edge,
            }
        };
        self.cells.iter_mut().enumerate().map(answer).collect()
    }
}

/// Stands for what became of each message of a repetition: which were delivered, and when; `None` if none was lost or late.
fn fates(of: &RepetitionSummary) -> Option<u64> {
    let mut hasher = std::hash::DefaultHasher::new();
    for flow in &of.flows {
        let counts = flow.counts;
        (counts.sent, counts.refused, counts.received, counts.late, counts.lost, counts.unfinished)
            .hash(&mut hasher);
        (&flow.loss_bursts, &flow.latency_over_time).hash(&mut hasher);
    }
    let missed = |flow: &FlowSummary| flow.counts.due() > flow.counts.received;
    of.flows.iter().any(missed).then(|| hasher.finish())
}

/// The values of a choice as written.
fn on_axes(axes: &[Axis], choice: &[usize]) -> Vec<String> {
    let written = axes.iter().zip(choice).map(|(axis, chosen)| axis.values.get(*chosen).cloned());
    written.map(Option::unwrap_or_default).collect()
}
