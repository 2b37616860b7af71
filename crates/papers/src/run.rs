//! Finds what the tables of a study ask for: which points of which experiments, and which figures of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Files, FilesError, Problems};
use trunkline_live::LiveOptions;
use trunkline_runner::{RunnerError, WireMeans};
use trunkline_store::Backend;

use crate::flags::Flags;
use crate::mapping;
use crate::measure::{self, Measured, Task};
use crate::reading::{Reading, is_beside, of_keys};
use crate::reference::{self, PublishedRow};
use crate::results::{Cell, Results, Row, Scattered, TableResults};
use crate::study::{Cells, Metric, Rows, Scatter, Study, Table};
use crate::value::{Keys, Value};

/// Is told how far a study is; from several threads.
pub trait Observer: Sync {
    /// Before the first simulation of a study, and again before the first measurement, which goes at another pace: how many there are,
    /// and their length.
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
        /// Its problems.
        problem: String,
    },
    /// The study has nothing that could be measured on the wire, or has no blocks that could be counted: bad input.
    #[error("`{study}` {problem}")]
    Unsuitable {
        /// The study.
        study: &'static str,
        /// What it lacks.
        problem: &'static str,
    },
    /// It cannot be simulated, which is a defect of ours, or not be measured here.
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

impl PaperError {
    /// Whether the user can mend it by other arguments.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, PaperError::UnknownTable { .. } | PaperError::Unsuitable { .. })
    }
}

/// How a study is repeated.
#[derive(Clone, Copy, Debug)]
pub struct How<'h> {
    /// Threads; what is simulated does not depend on how many there are.
    pub jobs: usize,
    /// How often each point is simulated, each time with random numbers of its own; a row has the mean; at least once. `None`: as
    /// often as its experiment says. What is measured is so once.
    pub repetitions: Option<u32>,
    /// How many blocks each channel of audio sends, in studies that count them. `None`: as many as in the study.
    pub blocks: Option<u64>,
    /// With what tables that are measured live are; without it they stay empty.
    pub live: Option<&'h LiveOptions>,
    /// With what those tables are measured on the wire that the study has for it; without it they are simulated.
    pub wire: Option<&'h WireMeans>,
    /// Once it is set the run ends and keeps what it has.
    pub stop: &'h AtomicBool,
}

impl How<'static> {
    /// Simulated on so many threads, every point as often as its experiment says.
    pub fn simulated(jobs: usize) -> How<'static> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        How { jobs, repetitions: None, blocks: None, live: None, wire: None, stop: &NEVER }
    }
}

/// Simulates and measures the points behind these tables of a study, or behind all if none are named.
///
/// # Errors
/// If there is no such table, if the study cannot be run so, or if something cannot be measured here. Other errors are
/// defects of the study.
pub fn run(
    study: &'static Study,
    tables: &[&str],
    how: How<'_>,
    observer: &dyn Observer,
) -> Result<Results, PaperError> {
    if how.wire.is_some() && study.wired.is_empty() {
        let problem = "has no experiment for the wire; omit `--on`";
        return Err(PaperError::Unsuitable { study: &study.name, problem });
    }
    let mut prepared = prepare(study, tables)?;
    prepared.adapt(how)?;
    let tasks = tasks(&prepared, how);
    let outcomes = measure::all(&tasks, &prepared, how, observer)?;
    let stopped = how.stop.load(Ordering::Relaxed);
    Ok(Results { stopped, ..prepared.results(&tasks, &outcomes) })
}

/// A study with all its rows as they were published; of ours only what follows from formulas.
///
/// # Errors
/// If the study itself is wrong, which is a defect of ours.
pub fn published(study: &'static Study) -> Result<Results, PaperError> {
    Ok(prepare(study, &[])?.results(&[], &[]))
}

/// A study with the values that this version finds when it simulates every point: those of `papers/STUDY/ours`, which the
/// tests hold against a simulation.
///
/// # Errors
/// If the study itself is wrong, which is a defect of ours.
pub fn accepted(study: &'static Study) -> Result<Results, PaperError> {
    static READ: Mutex<Vec<Results>> = Mutex::new(Vec::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = read.iter().find(|results| results.study.name == study.name) {
        return Ok(known.clone());
    }
    let mut results = published(study)?;
    for found in &mut results.tables {
        let Some(text) = study.file(&format!("ours/{}.csv", found.table.name)) else { continue };
        let kept = reference::read(text, found.table).map_err(|problem| PaperError::Study {
            study: &study.name,
            problem: format!("our values of table `{}`: {problem}", found.table.name),
        })?;
        for row in &mut found.rows {
            let Some(kept) = kept.iter().find(|kept| kept.keys == row.keys) else { continue };
            for (cell, kept) in row.cells.iter_mut().zip(&kept.cells) {
                cell.simulated = cell.simulated.or(kept.as_ref().map(|kept| kept.number));
            }
        }
    }
    read.push(results.clone());
    Ok(results)
}

/// All that is known before anything is simulated.
pub(crate) struct Prepared {
    pub(crate) study: &'static Study,
    flags: Flags,
    pub(crate) sources: Vec<Source>,
    plans: Vec<Plan>,
}

pub(crate) fn prepare(study: &'static Study, tables: &[&str]) -> Result<Prepared, PaperError> {
    let wrong = |problem: String| PaperError::Study { study: &study.name, problem };
    let tables = chosen(study, tables)?;
    let flags = Flags::read(study.file("reference/flagged_cells.csv").unwrap_or("")).map_err(wrong)?;
    let sources = sources(study, &tables)?;
    let mut plans = Vec::new();
    for table in tables {
        let read = |text: Option<&str>| match text {
            Some(text) => reference::read(text, table)
                .map_err(|problem| wrong(format!("table `{}`: {problem}", table.name))),
            None => Ok(Vec::new()),
        };
        let published = read(table.reference.published())?;
        let blind = read(study.file(&format!("blind/{}.csv", table.name)))?;
        plans.push(Plan { table, blind, rows: planned_rows(table, published, &sources).map_err(wrong)? });
    }
    Ok(Prepared { study, flags, sources, plans })
}

impl Prepared {
    /// Decides where each experiment runs, how often, and how long.
    fn adapt(&mut self, how: How<'_>) -> Result<(), PaperError> {
        let files = EmbeddedFiles(self.study);
        let mut counted = false;
        for source in &mut self.sources {
            if how.wire.is_some() && self.study.wired.iter().any(|wired| wired == source.file) {
                source.on = Backend::Wire;
            }
            let experiment = &mut source.experiment;
            match source.on {
                Backend::Sim => {
                    let asked = how.repetitions.map(|repetitions| repetitions.max(1));
                    experiment.repetitions = asked.unwrap_or(experiment.repetitions);
                }
                Backend::Wire | Backend::Live => experiment.repetitions = 1,
            }
            let Some(blocks) = how.blocks else { continue };
            let (audio, _) = trunkline_traffic::find("audio").unzip();
            for place in 0..experiment.points.len() {
                let scenario = experiment.points.at(place).scenario;
                let flows = scenario.flows.iter();
                let keys: Vec<_> = flows
                    .filter(|flow| Some(flow.source.kind) == audio)
                    .map(|flow| (format!("flow.{}.source.blocks", flow.meta.name), blocks.to_string()))
                    .collect();
                counted |= !keys.is_empty();
                let scenario = experiment
                    .rewritten(place, &keys, &files)
                    .map_err(|problem| PaperError::Study { study: &self.study.name, problem })?;
                experiment.points.set(place, scenario);
            }
        }
        if how.blocks.is_some() && !counted && !self.sources.is_empty() {
            let problem = "counts no blocks of audio; omit `--blocks`";
            return Err(PaperError::Unsuitable { study: &self.study.name, problem });
        }
        Ok(())
    }

    /// Leaves out all rows but those that have these cells.
    pub(crate) fn keep_rows(&mut self, only: &Cells) {
        for plan in &mut self.plans {
            plan.rows.retain(|row| row.published.keys.are(only));
        }
    }

    /// Sets keys of the points behind the rows.
    pub(crate) fn rewrite(&mut self, keys: &[(String, String)]) -> Result<(), String> {
        let rows = self.plans.iter().flat_map(|plan| &plan.rows);
        let points: Vec<(usize, usize)> = rows.flat_map(|row| row.points.iter().copied()).collect();
        let files = EmbeddedFiles(self.study);
        for (source, point) in points {
            let experiment = &mut self.sources[source].experiment;
            let scenario = experiment.rewritten(point, keys, &files)?;
            experiment.points.set(point, scenario);
        }
        Ok(())
    }

    /// The keys, a published cell and the swept texts of every row that has these cells.
    pub(crate) fn swept(&self, column: &str, only: &Cells) -> Vec<(Keys, f64, Vec<String>)> {
        let mut found = Vec::new();
        for plan in &self.plans {
            let Some(place) = plan.table.metrics.iter().position(|metric| metric.column == column) else {
                continue;
            };
            for row in plan.rows.iter().filter(|row| row.published.keys.are(only)) {
                let Some(cell) = &row.published.cells[place] else { continue };
                let texts = row.points.iter().flat_map(|(source, point)| {
                    let experiment = &self.sources[*source].experiment;
                    let choice = experiment.points.choices().nth(*point).unwrap_or_default();
                    experiment
                        .axes
                        .iter()
                        .zip(choice)
                        .filter_map(|(axis, chosen)| axis.values.get(chosen).cloned())
                });
                found.push((row.published.keys.clone(), cell.number, texts.collect()));
            }
        }
        found
    }

    /// The scatters that are drawn from a task: from the first repetition of their row's point.
    pub(crate) fn scatters(&self, task: Task) -> Vec<&'static Scatter> {
        let is_drawn = |scatter: &&Scatter| {
            let plans = self.plans.iter().filter(|plan| plan.table.name == scatter.table);
            let mut rows = plans.flat_map(|plan| &plan.rows);
            let row = rows.find(|row| row.published.keys.are(&scatter.only));
            task.repetition == 0 && row.is_some_and(|row| row.points.first() == Some(&task.point()))
        };
        self.study.scatters.iter().filter(is_drawn).collect()
    }

    pub(crate) fn results(self, tasks: &[Task], outcomes: &[Option<Measured>]) -> Results {
        let flags = &self.flags;
        let scatters = outcomes.iter().flatten().flat_map(|outcome| outcome.scatters.iter().cloned());
        let mut scatters: Vec<Scattered> = scatters.collect();
        let place = |scattered: &Scattered| {
            self.study.scatters.iter().position(|scatter| core::ptr::eq(scatter, scattered.scatter))
        };
        scatters.sort_by_key(place);
        let (study, sources) = (self.study, &self.sources);
        let tables = self.plans.into_iter().map(|plan| plan.results(study, sources, tasks, outcomes, flags));
        Results { study: self.study, tables: tables.collect(), scatters, stopped: false }
    }
}

/// The tables of these names, in the study's order.
pub(crate) fn chosen(study: &'static Study, names: &[&str]) -> Result<Vec<&'static Table>, PaperError> {
    for name in names {
        if study.table(name).is_none() {
            let known: Vec<String> = study.tables.iter().map(|table| format!("`{}`", table.name)).collect();
            let (study, table) = (study.name.as_str(), (*name).to_owned());
            return Err(PaperError::UnknownTable { study, table, known: known.join(", ") });
        }
    }
    let is_chosen = |table: &&Table| names.is_empty() || names.contains(&table.name.as_str());
    Ok(study.tables.iter().filter(is_chosen).collect())
}

/// An experiment that tables draw on.
pub(crate) struct Source {
    pub(crate) file: &'static str,
    pub(crate) experiment: Experiment,
    /// Where it runs.
    pub(crate) on: Backend,
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
pub(crate) fn sources(study: &'static Study, tables: &[&'static Table]) -> Result<Vec<Source>, PaperError> {
    let wrong = |problem: String| PaperError::Study { study: &study.name, problem };
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
            let on = if let Rows::Flows { .. } = &table.rows { Backend::Live } else { Backend::Sim };
            sources.push(Source { file, experiment, on, keys });
        }
    }
    Ok(sources)
}

/// A table before anything is simulated.
struct Plan {
    table: &'static Table,
    /// The predictions from before the published values were seen, as a table of the same rows; gaps elsewhere.
    blind: Vec<PublishedRow>,
    rows: Vec<PlannedRow>,
}

struct PlannedRow {
    published: PublishedRow,
    /// The point behind it in each experiment of the table, as its source and its place there.
    points: Vec<(usize, usize)>,
    /// The flow that it is, where rows are flows.
    flow: Option<&'static str>,
}

/// Joins published rows with points; points that were not published follow.
fn planned_rows(
    table: &'static Table,
    published: Vec<PublishedRow>,
    sources: &[Source],
) -> Result<Vec<PlannedRow>, String> {
    let mut rows: Vec<PlannedRow> = published
        .into_iter()
        .map(|published| PlannedRow { published, points: Vec::new(), flow: None })
        .collect();
    let (only, without) = match &table.rows {
        Rows::Formula => return Ok(rows),
        Rows::Flows { file, flows } => return Ok(flow_rows(table, file, flows, sources)),
        Rows::Points { only, without, .. } => (only, without),
    };
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
            let keys = keys.only(&table.keys);
            match rows.iter_mut().find(|row| row.published.keys == keys) {
                Some(row) if row.points.iter().all(|(source, _)| *source != index) => {
                    row.points.push((index, point));
                }
                Some(_) => {
                    return Err(format!("two points of {file} are the row {keys} of `{}`", table.name));
                }
                None => {
                    let published = PublishedRow { keys, cells: vec![None; table.metrics.len()] };
                    rows.push(PlannedRow { published, points: vec![(index, point)], flow: None });
                }
            }
        }
    }
    Ok(rows)
}

/// A row for each flow, all of the only point.
fn flow_rows(
    table: &'static Table,
    file: &str,
    flows: &'static [(String, Vec<String>)],
    sources: &[Source],
) -> Vec<PlannedRow> {
    let points = sources.iter().position(|source| source.file == file).map(|index| (index, 0));
    let row = |(flow, cells): &'static (String, Vec<String>)| {
        let keys = table.keys.iter().map(String::as_str).zip(cells.iter().map(|cell| Value::read(cell)));
        let published = PublishedRow { keys: Keys(keys.collect()), cells: vec![None; table.metrics.len()] };
        PlannedRow { published, points: points.into_iter().collect(), flow: Some(flow.as_str()) }
    };
    flows.iter().map(row).collect()
}

impl Plan {
    fn results(
        self,
        study: &'static Study,
        sources: &[Source],
        tasks: &[Task],
        outcomes: &[Option<Measured>],
        flags: &Flags,
    ) -> TableResults {
        let table = self.table;
        let of_rows =
            table.files().first().and_then(|file| sources.iter().find(|source| source.file == *file));
        let on = of_rows.map_or(Backend::Sim, |source| source.on);
        let rows = self.rows.into_iter().map(|row| {
            let PublishedRow { keys, cells } = row.published;
            let at_points = tasks.iter().zip(outcomes).filter(|(task, _)| row.points.contains(&task.point()));
            let repetitions: Vec<&Measured> = at_points.filter_map(|(_, outcome)| outcome.as_ref()).collect();
            let blind = self.blind.iter().find(|blind| blind.keys == keys);
            let cells = table.metrics.iter().zip(cells).enumerate().map(|(place, (metric, published))| {
                let blind = blind.and_then(|row| row.cells[place].as_ref()).map(|printed| printed.number);
                Cell {
                    published,
                    doubt: flags.doubt(&table.name, &keys, &metric.column),
                    simulated: figure(study, (table, metric), (&keys, row.flow), &repetitions),
                    decimals: metric.decimals,
                    class: table.reference.published().map(|_| study.class(&table.name, &keys, metric)),
                    blind,
                    repeats: study.is_repeat(&table.name, &keys, metric),
                }
            });
            Row { cells: cells.collect(), keys }
        });
        TableResults { table, on, rows: rows.collect() }
    }
}

/// The figure of a row: the mean over repetitions that have one.
fn figure(
    study: &'static Study,
    (table, metric): (&Table, &Metric),
    (keys, flow): (&Keys, Option<&str>),
    repetitions: &[&Measured],
) -> Option<f64> {
    let run = match &metric.reading {
        Reading::Formula(formula) => return of_keys(formula, keys),
        Reading::Published { table, column, only } => {
            let table = study.table(table)?;
            let rows = reference::read(table.reference.published()?, table).ok()?;
            let row = rows.iter().find(|row| is_beside(&row.keys, keys, only))?;
            let place = table.metrics.iter().position(|metric| metric.column == *column)?;
            return Some(row.cells[place].as_ref()?.number);
        }
        Reading::Run(run) => run,
    };
    let file = run.file.as_deref().or(table.files().first().copied())?;
    let of_file = repetitions.iter().filter(|outcome| outcome.file == file);
    let figures = of_file.filter_map(|outcome| run.value(&outcome.summaries(), flow));
    let figures: Vec<f64> = figures.filter(|figure| figure.is_finite()).collect();
    let count = figures.len();
    (count > 0).then(|| figures.into_iter().sum::<f64>() / count as f64)
}

/// What the rows need, each once; what is simulated first.
pub(crate) fn tasks(prepared: &Prepared, how: How<'_>) -> Vec<Task> {
    let sources = &prepared.sources;
    let rows = prepared.plans.iter().flat_map(|plan| &plan.rows);
    let mut points: Vec<(usize, usize)> = rows.flat_map(|row| row.points.iter().copied()).collect();
    let can_be_measured = |on: Backend| on != Backend::Live || how.live.is_some();
    points.retain(|(source, _)| can_be_measured(sources[*source].on));
    points.sort_unstable_by_key(|(source, point)| (sources[*source].on != Backend::Sim, *source, *point));
    points.dedup();
    let of_point = |(source, point): (usize, usize)| {
        let repetitions = sources[source].experiment.repetitions;
        (0..repetitions).map(move |repetition| Task { source, point, repetition })
    };
    points.into_iter().flat_map(of_point).collect()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A study with all its rows and no simulated figures but those of formulas.
    pub(crate) fn unsimulated(study: &'static Study) -> Results {
        published(study).unwrap()
    }

    /// The rows that no point of an experiment stands behind.
    pub(crate) fn without_point(study: &'static Study) -> Vec<(&'static str, Keys)> {
        let plans = prepare(study, &[]).unwrap().plans;
        let measured = plans.into_iter().filter(|plan| matches!(plan.table.rows, Rows::Points { .. }));
        let lacking = |plan: Plan| {
            let rows = plan.rows.into_iter().filter(|row| row.points.is_empty());
            rows.map(move |row| (plan.table.name.as_str(), row.published.keys))
        };
        measured.flat_map(lacking).collect()
    }
}
