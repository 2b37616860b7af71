//! Carries a plan out: round by round every search names a value, all of them are measured on all cores, judged and told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_experiment::{Axis, Experiment, Figure, Limit};
use trunkline_metrics::RepetitionSummary;
use trunkline_runner::{GrowingRun, RunnerError};
use trunkline_store::{RunInfo, Status, Store, StoredRun};

use crate::judge::{self, Judged};
use crate::plan::{Means, Plan, PlanError};
use crate::search::{Edge, Search, Verdict};

/// Is told how far a plan is; from several threads.
pub trait Observer: trunkline_runner::Observer {
    /// A value was judged; a sentence.
    fn judged(&self, sentence: &str);
}

/// What a plan found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The run with every repetition that was measured.
    pub run: RunInfo,
    /// The limits that were to be kept.
    pub limits: Vec<Limit>,
    /// For every combination of what else is swept, in the product's order, the last axis fastest.
    pub answers: Vec<Answer>,
    /// Whether it was told to stop before its end.
    pub stopped: bool,
}

/// What was found for one combination of what else is swept.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The chosen value's index on each of the plan's axes.
    pub choice: Vec<usize>,
    /// Between which values the edge lies.
    pub edge: Edge,
    /// Whether the search came to its end.
    pub finished: bool,
    /// What was measured, the smallest value first.
    pub trials: Vec<Trial>,
}

impl Answer {
    /// Whether a row of a table does not say it all.
    pub(crate) fn needs_words(&self) -> bool {
        !self.finished || !self.edge.kept_behind.is_empty()
    }
}

/// One value that was measured.
#[derive(Clone, Debug)]
pub struct Trial {
    /// In grains of the key.
    pub value: u64,
    /// What became of it; `None` if it was not measured to the end.
    pub verdict: Option<Verdict>,
    /// How often it was measured.
    pub repetitions: u32,
    /// Each limit in the file's order.
    pub limits: Vec<Judged>,
    /// Why the file cannot be run with it, which counts as broken.
    pub refused: Option<String>,
}

/// Carries a plan out in a new run, or in a partial one of the same plan that is resumed: what that has is not measured
/// again. When `stop` is set, what is known is given back and the run is marked partial.
///
/// # Errors
/// If measuring fails; the run keeps what it has and is marked partial.
pub fn run(
    store: &Store,
    plan: &Plan,
    resume: Option<u64>,
    means: &Means<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Found, PlanError> {
    let stored = resume.map(|id| stored(store, id, plan, means)).transpose()?;
    let mut work = Work::new(plan, stored.as_ref());
    let mut run = match &stored {
        Some(stored) => GrowingRun::resume(store, stored.info.id)?,
        None => GrowingRun::begin(store, &means.request(&plan.first, &plan.file))?,
    };
    observer.begun(&run.info()?);
    while !stop.load(Ordering::Relaxed) {
        let wanted = work.wanted();
        if wanted.is_empty() {
            break;
        }
        let wanted = work.allowed(wanted, observer);
        work.measure(&mut run, &wanted, means, observer, stop)?;
        work.judge(&wanted, observer);
    }
    let stopped = stop.load(Ordering::Relaxed) && !work.wanted().is_empty();
    let run = run.finish(if stopped { Status::Partial } else { Status::Complete })?;
    Ok(Found { run, limits: plan.first.limits.clone(), answers: work.answers(), stopped })
}

/// A partial run of this very plan.
fn stored(store: &Store, id: u64, plan: &Plan, means: &Means<'_>) -> Result<StoredRun, PlanError> {
    let run = store.run(id).map_err(RunnerError::from)?;
    let other = |what: &str| {
        Err(PlanError::Question(format!(
            "run {id} is {what}: a plan is resumed with the file and key it was begun with"
        )))
    };
    if run.info.status == Status::Complete {
        return Err(PlanError::Question(format!("run {id} is complete: there is nothing to resume")));
    }
    if run.info.backend != means.backend {
        return other("of another backend");
    }
    let values =
        run.axes.first().filter(|axis| axis.key == plan.key.key()).map(|axis| axis.values.as_slice());
    let parsed = values.map(|values| values.iter().filter_map(|value| plan.key.parse(value).ok()));
    match parsed.map(|values| plan.with(values)) {
        Some(Ok(same)) if same.text == run.text => Ok(run),
        _ => other("of another plan or file"),
    }
}

/// The searches as they go on.
struct Work<'p> {
    plan: &'p Plan,
    looks: Vec<u32>,
    /// The error that is allowed at each look.
    error: f64,
    cells: Vec<Cell>,
    /// What a resumed run has, by the values on the axes and the repetition.
    known: BTreeMap<(Vec<String>, u32), Vec<Figure>>,
    /// Every value that was ever asked for, of any combination.
    values: BTreeSet<u64>,
}

/// One combination of what else is swept.
struct Cell {
    choice: Vec<usize>,
    search: Search,
    samples: BTreeMap<u64, Samples>,
}

/// What was measured at one value.
#[derive(Default)]
struct Samples {
    /// Of each repetition.
    figures: BTreeMap<u32, Vec<Figure>>,
    looks_done: usize,
    verdict: Option<Verdict>,
    refused: Option<String>,
}

impl Samples {
    fn judge(&self, limits: &[Limit], error: f64) -> (Verdict, Vec<Judged>) {
        if self.refused.is_some() {
            return (Verdict::Broken, Vec::new());
        }
        let repetitions: Vec<&[Figure]> = self.figures.values().map(Vec::as_slice).collect();
        judge::judge(limits, &repetitions, error)
    }

    fn trial(&self, value: u64, limits: Vec<Judged>) -> Trial {
        let repetitions = self.figures.len() as u32;
        Trial { value, verdict: self.verdict, repetitions, limits, refused: self.refused.clone() }
    }
}

/// A value that a search waits for.
struct Wanted {
    cell: usize,
    value: u64,
    until: u32,
}

impl<'p> Work<'p> {
    fn new(plan: &'p Plan, stored: Option<&StoredRun>) -> Work<'p> {
        let looks = plan.terms.looks();
        let cell = |choice: &[usize]| Cell {
            choice: choice.get(1..).unwrap_or_default().to_vec(),
            search: plan.search(),
            samples: BTreeMap::new(),
        };
        let mut work = Work {
            plan,
            error: (1.0 - plan.terms.confidence) / looks.len() as f64,
            looks,
            cells: plan.first.points.iter().map(|point| cell(&point.choice)).collect(),
            known: BTreeMap::new(),
            values: BTreeSet::new(),
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
                    let figures = figures(&run.limits, summary);
                    self.known.insert((values.clone(), repetition.index), figures);
                }
            }
        }
    }

    /// What the searches wait for; empty when all are done.
    fn wanted(&mut self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for (place, cell) in self.cells.iter_mut().enumerate() {
            if let Some(value) = cell.search.next_value() {
                let look = cell.samples.get(&value).map_or(0, |samples| samples.looks_done);
                wanted.push(Wanted { cell: place, value, until: self.looks[look.min(self.looks.len() - 1)] });
            }
        }
        wanted
    }

    /// Those of the values that the file can be run with; the others are judged at once.
    fn allowed(&mut self, wanted: Vec<Wanted>, observer: &dyn Observer) -> Vec<Wanted> {
        let (mut allowed, mut refused) = (Vec::new(), Vec::new());
        for one in wanted {
            let known = self.values.contains(&one.value);
            match if known { Ok(()) } else { self.plan.with([one.value].into_iter()).map(drop) } {
                Ok(()) => allowed.push(one),
                Err(error) => refused.push((one, error.to_string())),
            }
        }
        for (one, why) in refused {
            let samples = self.cells[one.cell].samples.entry(one.value).or_default();
            samples.refused = Some(why);
            self.settle(&one, Verdict::Broken, Vec::new(), observer);
        }
        allowed
    }

    /// Measures what lacks of these.
    fn measure(
        &mut self,
        run: &mut GrowingRun,
        wanted: &[Wanted],
        means: &Means<'_>,
        observer: &dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), PlanError> {
        self.values.extend(wanted.iter().map(|wanted| wanted.value));
        let experiment = self.plan.with(self.values.iter().copied())?;
        let (mut tasks, mut owners) = (Vec::new(), Vec::new());
        for one in wanted {
            let point = self.point(&experiment, one);
            let values = on_axes(&experiment.axes, &experiment.points[point].choice);
            let samples = self.cells[one.cell].samples.entry(one.value).or_default();
            for repetition in 0..one.until {
                if samples.figures.contains_key(&repetition) {
                    continue;
                }
                match self.known.remove(&(values.clone(), repetition)) {
                    Some(figures) => _ = samples.figures.insert(repetition, figures),
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
        let keep = |summary: &_| figures(limits, summary);
        let measured = run.measure(request, &self.round(wanted), &tasks, keep, observer, stop)?;
        for (((cell, value), (_, repetition)), figures) in owners.into_iter().zip(tasks).zip(measured) {
            let samples = self.cells[cell].samples.entry(value).or_default();
            samples.figures.extend(figures.map(|figures| (repetition, figures)));
        }
        Ok(())
    }

    /// The place of a value in the experiment: the key is its first axis, the slowest.
    fn point(&self, experiment: &Experiment, wanted: &Wanted) -> usize {
        let place = self.values.iter().position(|value| *value == wanted.value).unwrap_or_default();
        (place * self.cells.len() + wanted.cell).min(experiment.points.len() - 1)
    }

    /// What is measured now, for the display.
    fn round(&self, wanted: &[Wanted]) -> String {
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
            if (samples.figures.len() as u32) < one.until {
                continue;
            }
            samples.looks_done += 1;
            let (verdict, limits) = samples.judge(&self.plan.first.limits, self.error);
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

    fn answers(mut self) -> Vec<Answer> {
        let (limits, error) = (&self.plan.first.limits, self.error);
        let answer = |cell: &mut Cell| Answer {
            finished: cell.search.next_value().is_none(),
            edge: cell.search.edge(),
            choice: cell.choice.clone(),
            trials: cell
                .samples
                .iter()
                .map(|(value, samples)| samples.trial(*value, samples.judge(limits, error).1))
                .collect(),
        };
        self.cells.iter_mut().map(answer).collect()
    }
}

/// The figures of the limits in a repetition.
fn figures(limits: &[Limit], summary: &RepetitionSummary) -> Vec<Figure> {
    limits.iter().map(|limit| limit.figure(summary)).collect()
}

/// The values of a choice as written.
fn on_axes(axes: &[Axis], choice: &[usize]) -> Vec<String> {
    let written = axes.iter().zip(choice).map(|(axis, chosen)| axis.values.get(*chosen).cloned());
    written.map(Option::unwrap_or_default).collect()
}
