//! Simulates what the tables of a study ask for, on several cores.

use std::sync::atomic::AtomicBool;

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Files, FilesError, Problems, Progress, Scenario, Supervisor};
use trunkline_metrics::{BundleSummary, FlowMeta, FlowSummary, MediumSummary, Meter, RepetitionSummary};
use trunkline_simulator::SimulationError;

use crate::flags::Flags;
use crate::mapping;
use crate::reference::{self, PublishedRow};
use crate::results::{Cell, Results, Row, Scattered, TableResults};
use crate::study::{Metric, Reading, Rows, Scatter, Study, Table};
use crate::value::Keys;

/// Is told how far a study is; from several threads.
pub trait Observer: Sync {
    /// Before the first simulation of a study: how many there are, and their length in virtual time.
    fn planned(&self, study: &str, simulations: usize, length: Duration);
    /// So much more of the length has passed.
    fn advanced(&self, by: Duration);
    /// A simulation has ended.
    fn simulation_done(&self);
}

/// Nobody is told.
impl Observer for () {
    fn planned(&self, _: &str, _: usize, _: Duration) {}
    fn advanced(&self, _: Duration) {}
    fn simulation_done(&self) {}
}

/// Why a study could not be run.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// The study has no such table: bad input.
    #[error("`{study}` has no table `{table}`; its tables are {known}")]
    UnknownTable {
        /// The study.
        study: &'static str,
        /// What was asked for.
        table: String,
        /// What there is, in backquotes.
        known: String,
    },
    /// An embedded experiment file is wrong: a defect of ours.
    #[error("an experiment of the study is wrong; please report this:\n{0}")]
    Experiment(Problems),
    /// An embedded table or the mapping to it is wrong: a defect of ours.
    #[error("the study `{study}` is wrong: {problem}; please report this")]
    Study {
        /// The study.
        study: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// An experiment asks for what the simulator does not have: a defect of ours.
    #[error("the study cannot be simulated: {0}; please report this")]
    Simulation(#[from] SimulationError),
}

impl PaperError {
    /// Whether the user can mend it by other arguments.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, PaperError::UnknownTable { .. })
    }
}

/// How a study is repeated.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Threads; the results do not depend on how many there are.
    pub jobs: usize,
    /// How often each point is simulated, each time with random numbers of its own; a row has the mean; at least once. `None`: as
    /// often as its experiment says.
    pub repetitions: Option<u32>,
}

/// Simulates the points behind these tables of a study, or behind all if none are named.
///
/// # Errors
/// If there is no such table. Other errors are defects of the study.
pub fn run(
    study: &'static Study,
    tables: &[&str],
    how: How,
    observer: &dyn Observer,
) -> Result<Results, PaperError> {
    let mut prepared = prepare(study, tables)?;
    if let Some(repetitions) = how.repetitions {
        prepared.sources.iter_mut().for_each(|source| source.experiment.repetitions = repetitions.max(1));
    }
    let tasks = tasks(&prepared.plans, &prepared.sources);
    // Nobody waits for formulas.
    if !tasks.is_empty() {
        let lengths = tasks.iter().map(|task| task.length(&prepared.sources));
        let length = lengths.fold(Duration::ZERO, |sum, length| sum + length);
        observer.planned(study.name, tasks.len(), length);
    }
    let outcomes = simulate(&tasks, &prepared, how.jobs, observer)?;
    Ok(prepared.results(&tasks, &outcomes))
}

/// All that is known before anything is simulated.
struct Prepared {
    study: &'static Study,
    flags: Flags,
    sources: Vec<Source>,
    plans: Vec<Plan>,
}

fn prepare(study: &'static Study, tables: &[&str]) -> Result<Prepared, PaperError> {
    let wrong = |problem: String| PaperError::Study { study: study.name, problem };
    let tables = chosen(study, tables)?;
    let flags = Flags::read(study.flagged).map_err(wrong)?;
    let sources = sources(study, &tables)?;
    let mut plans = Vec::new();
    for table in tables {
        let published = match table.reference.published() {
            Some(text) => reference::read(text, table)
                .map_err(|problem| wrong(format!("table `{}`: {problem}", table.name)))?,
            None => Vec::new(),
        };
        plans.push(Plan { table, rows: planned_rows(table, published, &sources).map_err(wrong)? });
    }
    Ok(Prepared { study, flags, sources, plans })
}

impl Prepared {
    /// The scatters that are drawn from a task: from the first repetition of their row's point.
    fn scatters(&self, task: Task) -> Vec<&'static Scatter> {
        let is_drawn = |scatter: &&Scatter| {
            let plans = self.plans.iter().filter(|plan| plan.table.name == scatter.table);
            let mut rows = plans.flat_map(|plan| &plan.rows);
            let row = rows.find(|row| row.published.keys.are(scatter.only));
            task.repetition == 0 && row.is_some_and(|row| row.points.first() == Some(&task.point()))
        };
        self.study.scatters.iter().filter(is_drawn).collect()
    }

    fn results(self, tasks: &[Task], outcomes: &[Simulated]) -> Results {
        let flags = &self.flags;
        let scatters = outcomes.iter().flat_map(|outcome| outcome.scatters.iter().cloned());
        let mut scatters: Vec<Scattered> = scatters.collect();
        let place = |scattered: &Scattered| {
            self.study.scatters.iter().position(|scatter| core::ptr::eq(scatter, scattered.scatter))
        };
        scatters.sort_by_key(place);
        let tables = self.plans.into_iter().map(|plan| plan.results(tasks, outcomes, flags)).collect();
        Results { study: self.study, tables, scatters }
    }
}

/// The tables of these names, in the study's order.
fn chosen(study: &'static Study, names: &[&str]) -> Result<Vec<&'static Table>, PaperError> {
    for name in names {
        if study.table(name).is_none() {
            let known: Vec<String> = study.tables.iter().map(|table| format!("`{}`", table.name)).collect();
            let (study, table) = (study.name, (*name).to_owned());
            return Err(PaperError::UnknownTable { study, table, known: known.join(", ") });
        }
    }
    let is_chosen = |table: &&Table| names.is_empty() || names.contains(&table.name);
    Ok(study.tables.iter().filter(is_chosen).collect())
}

/// An experiment that tables draw on.
struct Source {
    file: &'static str,
    experiment: Experiment,
    /// The cells of its points.
    keys: Vec<Keys>,
}

/// Files that are part of the study.
struct EmbeddedFiles(&'static Study);

impl Files for EmbeddedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        let text = self.0.file(path).ok_or_else(|| FilesError::new("is not part of the study"))?;
        Ok(text.as_bytes().to_vec())
    }
}

/// Reads the experiments behind these tables, each once.
fn sources(study: &'static Study, tables: &[&'static Table]) -> Result<Vec<Source>, PaperError> {
    let wrong = |problem: String| PaperError::Study { study: study.name, problem };
    let mut sources: Vec<Source> = Vec::new();
    for table in tables {
        for file in table.files() {
            if sources.iter().any(|source| source.file == file) {
                continue;
            }
            let text = study.file(file).ok_or_else(|| wrong(format!("`{file}` is not embedded")))?;
            let mapping = study.experiments.iter().find(|experiment| experiment.file == file);
            let mapping = mapping.ok_or_else(|| wrong(format!("`{file}` is mapped to no columns")))?;
            let name = format!("papers/{}/{file}", study.name);
            let experiment =
                Experiment::parse(text, &name, &EmbeddedFiles(study)).map_err(PaperError::Experiment)?;
            let keys = mapping::keys(&experiment, mapping).map_err(wrong)?;
            sources.push(Source { file, experiment, keys });
        }
    }
    Ok(sources)
}

/// A table before anything is simulated.
struct Plan {
    table: &'static Table,
    rows: Vec<PlannedRow>,
}

struct PlannedRow {
    published: PublishedRow,
    /// The point behind it in each experiment of the table, as its source and its place there.
    points: Vec<(usize, usize)>,
}

/// Joins published rows with points; points that were not published follow.
fn planned_rows(
    table: &Table,
    published: Vec<PublishedRow>,
    sources: &[Source],
) -> Result<Vec<PlannedRow>, String> {
    let mut rows: Vec<PlannedRow> =
        published.into_iter().map(|published| PlannedRow { published, points: Vec::new() }).collect();
    let Rows::Points { only, without, .. } = table.rows else { return Ok(rows) };
    for file in table.files() {
        let Some((index, source)) = sources.iter().enumerate().find(|(_, source)| source.file == file) else {
            continue;
        };
        for (point, keys) in source
            .keys
            .iter()
            .enumerate()
            .filter(|(_, keys)| keys.are(only) && (without.is_empty() || !keys.are(without)))
        {
            let keys = keys.only(table.keys);
            match rows.iter_mut().find(|row| row.published.keys == keys) {
                Some(row) if row.points.iter().all(|(source, _)| *source != index) => {
                    row.points.push((index, point));
                }
                Some(_) => {
                    return Err(format!("two points of {file} are the row {keys} of `{}`", table.name));
                }
                None => {
                    let published = PublishedRow { keys, cells: vec![None; table.metrics.len()] };
                    rows.push(PlannedRow { published, points: vec![(index, point)] });
                }
            }
        }
    }
    Ok(rows)
}

impl Plan {
    fn results(self, tasks: &[Task], outcomes: &[Simulated], flags: &Flags) -> TableResults {
        let table = self.table;
        let rows = self.rows.into_iter().map(|row| {
            let PublishedRow { keys, cells } = row.published;
            let at_points = tasks.iter().zip(outcomes).filter(|(task, _)| row.points.contains(&task.point()));
            let repetitions: Vec<&Simulated> = at_points.map(|(_, outcome)| outcome).collect();
            let cells = table.metrics.iter().zip(cells).map(|(metric, published)| Cell {
                published,
                doubt: flags.doubt(table.name, &keys, metric.column),
                simulated: simulated(table, metric, &keys, &repetitions),
            });
            Row { cells: cells.collect(), keys }
        });
        TableResults { table, rows: rows.collect() }
    }
}

/// The figure of a row: the mean over repetitions that have one.
fn simulated(table: &Table, metric: &Metric, keys: &Keys, repetitions: &[&Simulated]) -> Option<f64> {
    let file = match metric.reading {
        Reading::Formula(formula) => return formula(keys),
        Reading::Elsewhere(file, ..) => file,
        Reading::Flow(..) | Reading::Bundle(..) | Reading::Medium(..) => *table.files().first()?,
    };
    let of_file = repetitions.iter().filter(|outcome| outcome.file == file);
    let figures = of_file.filter_map(|outcome| outcome.figure(&metric.reading));
    let figures: Vec<f64> = figures.filter(|figure| figure.is_finite()).collect();
    let count = figures.len();
    (count > 0).then(|| figures.into_iter().sum::<f64>() / count as f64)
}

/// What one repetition of one point gave.
#[derive(Clone, Debug)]
struct Simulated {
    /// The experiment's file.
    file: &'static str,
    flows: Vec<FlowSummary>,
    bundles: Vec<BundleSummary>,
    media: Vec<MediumSummary>,
    scatters: Vec<Scattered>,
}

impl Simulated {
    /// The figure of a reading, unless it is a formula.
    fn figure(&self, reading: &Reading) -> Option<f64> {
        match *reading {
            Reading::Formula(_) => None,
            Reading::Flow(name, read) | Reading::Elsewhere(_, name, read) => {
                read(self.flows.iter().find(|flow| flow.flow == name)?)
            }
            Reading::Bundle(name, read) => read(self.bundles.iter().find(|bundle| bundle.bundle == name)?),
            Reading::Medium(link, host, read) => {
                let is_meant = |medium: &&MediumSummary| {
                    medium.medium == link && medium.station.as_deref() == Some(host)
                };
                read(self.media.iter().find(is_meant)?)
            }
        }
    }
}

/// One repetition of one point.
#[derive(Clone, Copy, Debug)]
struct Task {
    source: usize,
    point: usize,
    repetition: u32,
}

impl Task {
    fn point(&self) -> (usize, usize) {
        (self.source, self.point)
    }

    fn scenario<'s>(&self, sources: &'s [Source]) -> &'s Scenario {
        &sources[self.source].experiment.points[self.point].scenario
    }

    fn length(&self, sources: &[Source]) -> Duration {
        let scenario = self.scenario(sources);
        scenario.duration + scenario.drain
    }
}

/// What the rows need, each once.
fn tasks(plans: &[Plan], sources: &[Source]) -> Vec<Task> {
    let mut points: Vec<(usize, usize)> =
        plans.iter().flat_map(|plan| &plan.rows).flat_map(|row| row.points.iter().copied()).collect();
    points.sort_unstable();
    points.dedup();
    let of_point = |(source, point): (usize, usize)| {
        let repetitions = sources[source].experiment.repetitions;
        (0..repetitions).map(move |repetition| Task { source, point, repetition })
    };
    points.into_iter().flat_map(of_point).collect()
}

/// The outcome of every task, in the tasks' order.
fn simulate(
    tasks: &[Task],
    prepared: &Prepared,
    jobs: usize,
    observer: &dyn Observer,
) -> Result<Vec<Simulated>, PaperError> {
    let sources = &prepared.sources;
    for task in tasks {
        trunkline_simulator::check(task.scenario(sources))?;
    }
    // Nobody stops a study before its end.
    let outcomes = trunkline_runner::in_parallel(tasks, jobs, &AtomicBool::new(false), |task| {
        one(*task, prepared, observer)
    })?;
    Ok(outcomes.into_iter().flatten().collect())
}

fn one(task: Task, prepared: &Prepared, observer: &dyn Observer) -> Result<Simulated, SimulationError> {
    let sources = &prepared.sources;
    let scenario = task.scenario(sources);
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let mut no_trace = ();
    let mut meter = Meter::new(&metas, &mut no_trace).with_bundles(&scenario.bundles);
    let mut teller = Teller { observer, told: Duration::ZERO };
    let seed = Seed::new(sources[task.source].experiment.seed, task.repetition);
    let outcome = trunkline_simulator::run(scenario, seed, &mut meter, &mut teller)?;
    let RepetitionSummary { mut flows, bundles, media, .. } = meter.finish(outcome);
    let scatters =
        prepared.scatters(task).into_iter().filter_map(|scatter| scattered(scatter, &flows)).collect();
    for flow in &mut flows {
        // What figures of runs are drawn from; some kilobytes that nobody asks for here.
        flow.latency_cdf = Vec::new();
        flow.latency_over_time = Vec::new();
    }
    let told = teller.told;
    observer.advanced(task.length(sources) - told);
    observer.simulation_done();
    Ok(Simulated { file: sources[task.source].file, flows, bundles, media, scatters })
}

/// The messages of a scatter. Runs of more than 2,000 messages have a sample of them.
fn scattered(scatter: &'static Scatter, flows: &[FlowSummary]) -> Option<Scattered> {
    let flow = flows.iter().find(|flow| flow.flow == scatter.flow)?;
    let shown = if scatter.halved { 0.5 } else { 1.0 };
    let latencies = flow.latency_over_time.iter().map(|(_, latency)| latency.as_secs_f64() * shown);
    Some(Scattered { scatter, latencies: latencies.collect() })
}

/// Passes progress on.
struct Teller<'o> {
    observer: &'o dyn Observer,
    told: Duration,
}

impl Supervisor for Teller<'_> {
    fn progress(&mut self, done: Duration) -> Progress {
        self.observer.advanced(done - self.told);
        self.told = self.told.max(done);
        Progress::Continue
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A study with all its rows and no simulated figures but those of formulas.
    pub(crate) fn unsimulated(study: &'static Study) -> Results {
        prepare(study, &[]).unwrap().results(&[], &[])
    }

    /// The rows that no point of an experiment stands behind.
    pub(crate) fn without_point(study: &'static Study) -> Vec<(&'static str, Keys)> {
        let plans = prepare(study, &[]).unwrap().plans;
        let measured = plans.into_iter().filter(|plan| matches!(plan.table.rows, Rows::Points { .. }));
        let lacking = |plan: Plan| {
            let rows = plan.rows.into_iter().filter(|row| row.points.is_empty());
            rows.map(move |row| (plan.table.name, row.published.keys))
        };
        measured.flat_map(lacking).collect()
    }
}
