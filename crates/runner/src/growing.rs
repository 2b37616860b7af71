//! A run whose points are found while it is measured: a search asks for one after the other.

use std::sync::atomic::AtomicBool;

use trunkline_experiment::Experiment;
use trunkline_metrics::RepetitionSummary;
use trunkline_store::{Revision, RunInfo, RunWriter, Status, Store};

use crate::error::RunnerError;
use crate::request::{Observer, Request};
use crate::schedule;
use crate::task::{Task, values};

/// A run that grows. Dropped without [`GrowingRun::finish`], it becomes partial.
#[derive(Debug)]
pub struct GrowingRun {
    writer: RunWriter,
    /// The stored points by their values on the axes: their order is that in which they were asked for.
    points: Vec<Vec<String>>,
    repetitions: u32,
}

impl GrowingRun {
    /// Begins a run of the request's experiment, as yet without points.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn begin(store: &Store, request: &Request<'_>) -> Result<GrowingRun, RunnerError> {
        let writer = store.begin(schedule::new_run(request, Vec::new()))?;
        Ok(GrowingRun { writer, points: Vec::new(), repetitions: 0 })
    }

    /// Goes on with a partial run.
    ///
    /// # Errors
    /// If the store has no such run, or cannot be written.
    pub fn resume(store: &Store, id: u64) -> Result<GrowingRun, RunnerError> {
        let writer = store.resume(id)?;
        let mut stored = store.run(id)?;
        stored.points.sort_by_key(|point| point.index);
        let value = |(axis, chosen): (&trunkline_experiment::Axis, &usize)| axis.values.get(*chosen).cloned();
        let values = stored.points.iter().map(|point| {
            stored.axes.iter().zip(&point.choice).map(|pair| value(pair).unwrap_or_default()).collect()
        });
        Ok(GrowingRun { writer, points: values.collect(), repetitions: stored.info.repetitions })
    }

    /// The run as it is stored now.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn info(&self) -> Result<RunInfo, RunnerError> {
        Ok(self.writer.info()?)
    }

    /// Measures and stores these repetitions of these points (by their index in the request's experiment, which has all
    /// values that were asked for until now), and gives what `keep` takes from their summaries and the wall
    /// time that each took, in their order; `None`
    /// for those that were not measured to their end because `stop` was set. `name` is told to the observer.
    ///
    /// # Errors
    /// As [`crate::run`].
    pub fn measure<R: Send>(
        &mut self,
        request: Request<'_>,
        name: &str,
        wanted: &[(usize, u32)],
        keep: impl Fn(&RepetitionSummary, std::time::Duration) -> R + Sync,
        observer: &dyn Observer,
        stop: &AtomicBool,
    ) -> Result<Vec<Option<R>>, RunnerError> {
        let (tasks, _) = self.grow(request.experiment, wanted)?;
        let kept = schedule::measure(&self.writer, request, name, &tasks, keep, observer, stop)?;
        Ok(kept.into_iter().map(Option::flatten).collect())
    }

    /// As [`measure`](GrowingRun::measure), but the repetitions are measured elsewhere: `None` for those that do not come back.
    ///
    /// # Errors
    /// As [`crate::run`].
    pub fn measure_elsewhere<R: Send>(
        &mut self,
        experiment: &Experiment,
        name: &str,
        wanted: &[(usize, u32)],
        keep: impl Fn(&RepetitionSummary, std::time::Duration) -> R + Sync,
        observer: &dyn Observer,
        elsewhere: &dyn Elsewhere,
    ) -> Result<Vec<Option<R>>, RunnerError> {
        let (tasks, points) = self.grow(experiment, wanted)?;
        schedule::announce(experiment, name, &tasks, observer);
        let mut kept: Vec<Option<R>> = tasks.iter().map(|_| None).collect();
        let is_point = |stored: u32, choice: &[usize]| {
            points.get(stored as usize).is_some_and(|point| *point == *choice)
        };
        elsewhere.measure(experiment, &tasks, &mut |archive, took| {
            let each = |stored: u32, repetition: u32, summary: &RepetitionSummary| {
                let place =
                    tasks.iter().position(|task| (task.stored, task.repetition) == (stored, repetition));
                let Some(place) = place.filter(|place| kept[*place].is_none()) else { return };
                let point = tasks[place].point;
                kept[place] = Some(keep(summary, took));
                observer.measured(experiment, &experiment.points.at(point), summary);
                observer.advanced(experiment.points.length(point));
                observer.repetition_done();
            };
            self.writer.adopt_chosen(archive, is_point, each)?;
            let left = tasks.iter().zip(&kept).filter(|(_, kept)| kept.is_none());
            Ok(left.map(|(task, _)| *task).collect())
        })?;
        Ok(kept)
    }

    /// Adds the points of these repetitions to the stored run. Returns the repetitions, and the choice of each stored point.
    fn grow(
        &mut self,
        experiment: &Experiment,
        wanted: &[(usize, u32)],
    ) -> Result<(Vec<Task>, Vec<Vec<usize>>), RunnerError> {
        let mut tasks = Vec::with_capacity(wanted.len());
        for &(point, repetition) in wanted {
            let values = values(experiment, &experiment.points.at(point));
            let stored = self.points.iter().position(|known| *known == values).unwrap_or_else(|| {
                self.points.push(values);
                self.points.len() - 1
            });
            self.repetitions = self.repetitions.max(repetition + 1);
            tasks.push(Task { point, stored: stored as u32, repetition });
        }
        let points: Vec<Vec<usize>> = self.points.iter().map(|values| choice(experiment, values)).collect();
        self.writer.revise(&Revision {
            text: &experiment.text,
            axes: &experiment.axes,
            repetitions: self.repetitions,
            repetition_length: schedule::repetition_length(experiment),
            points: &points,
        })?;
        Ok((tasks, points))
    }

    /// Ends the run and returns it as it is stored.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn finish(self, status: Status) -> Result<RunInfo, RunnerError> {
        Ok(self.writer.finish(status)?)
    }
}

/// Stores an archive of repetitions, with the wall time that each took. Returns the repetitions that are still missing.
pub type Take<'t> = dyn FnMut(&[u8], std::time::Duration) -> Result<Vec<Task>, RunnerError> + Send + 't;

/// Workers that measure repetitions elsewhere, such as those of a cluster.
pub trait Elsewhere: std::fmt::Debug + Sync {
    /// Measures these repetitions of an experiment, and gives `take` each archive that a worker returns: of a run that
    /// [`run_some`](crate::run_some) has made.
    ///
    /// # Errors
    /// That of `take`. What cannot be measured stays missing.
    fn measure(
        &self,
        experiment: &Experiment,
        tasks: &[Task],
        take: &mut Take<'_>,
    ) -> Result<(), RunnerError>;
}

/// Where the values stand on the axes now.
fn choice(experiment: &Experiment, values: &[String]) -> Vec<usize> {
    let place =
        |axis: &trunkline_experiment::Axis, value: &String| axis.values.iter().position(|v| v == value);
    experiment.axes.iter().zip(values).map(|(axis, value)| place(axis, value).unwrap_or_default()).collect()
}
