//! Repeats a study.

use trunkline_core::Duration;
use trunkline_papers::{How, PaperError, RealTime, Study};
use trunkline_runner::{Observer as _, Plan};

use super::kept;
use crate::api::{ApiError, Backend, NewStudy, StudyBackend};
use crate::app::{App, cores};
use crate::jobs::{Ended, Job, Needs};

/// More often than that tells no more.
const MOST_REPETITIONS: u32 = 10_000;
/// Fewer blocks tell nothing, more take days.
const BLOCKS: std::ops::RangeInclusive<u64> = 10..=1_000_000;

/// What is to be repeated of a study that has it.
pub(super) struct Wanted {
    study: &'static Study,
    tables: Vec<String>,
    repetitions: Option<u32>,
    on: StudyBackend,
    blocks: Option<u64>,
    /// What of it takes real time.
    measured: Vec<RealTime>,
}

impl Wanted {
    pub(super) fn new(study: &'static Study, new: NewStudy) -> Result<Wanted, ApiError> {
        let NewStudy { tables, repetitions, on, blocks } = new;
        let (tables, on) = (tables.unwrap_or_default(), on.unwrap_or(StudyBackend::Sim));
        if let Some(unknown) = tables.iter().find(|name| study.table(name).is_none()) {
            let known: Vec<String> = study.tables.iter().map(|table| format!("`{}`", table.name)).collect();
            return Err(ApiError::input(format_args!(
                "`{}` has no table `{}`; its tables are {}",
                study.name,
                unknown.escape_debug(),
                known.join(", ")
            )));
        }
        if repetitions.is_some_and(|repetitions| !(1..=MOST_REPETITIONS).contains(&repetitions)) {
            return Err(ApiError::input(format_args!("`repetitions` must be from 1 to {MOST_REPETITIONS}")));
        }
        if on == StudyBackend::Wire && study.wired.is_empty() {
            return Err(ApiError::input(format_args!(
                "`{}` has no experiment for the wire; omit `on`",
                study.name
            )));
        }
        if blocks.is_some_and(|blocks| !BLOCKS.contains(&blocks)) {
            let (least, most) = (BLOCKS.start(), BLOCKS.end());
            return Err(ApiError::input(format_args!("`blocks` must be from {least} to {most}")));
        }
        let is_wanted = |one: &RealTime| {
            let is_chosen = |name: &&str| tables.is_empty() || tables.iter().any(|table| table == name);
            (on == StudyBackend::Wire || one.on != trunkline_store::Backend::Wire)
                && one.tables.iter().any(is_chosen)
        };
        let measured = trunkline_papers::real_time(study).map_err(failure)?.into_iter().filter(is_wanted);
        let measured = measured.collect();
        Ok(Wanted { study, tables, repetitions, on, blocks, measured })
    }

    /// Finds what cannot be measured here.
    pub(super) fn precheck(&self, app: &App) -> Result<(), ApiError> {
        let why = self.measured.iter().find_map(|one| app.unavailable(Backend::from(one.on)));
        why.map_or(Ok(()), |why| Err(ApiError::input(why)))
    }

    /// What is measured wants the machine for itself: what runs beside it would be measured too.
    pub(super) fn needs(&self) -> Needs {
        if self.measured.is_empty() { Needs::Cores } else { Needs::Machine }
    }

    /// Simulates and measures; what is found is kept, also if it was stopped before its end.
    pub(super) fn repeat(self, app: &App, job: &Job) -> Result<Ended, ApiError> {
        let tables: Vec<&str> = self.tables.iter().map(String::as_str).collect();
        let live = app.live_options();
        let how = How {
            jobs: cores(),
            repetitions: self.repetitions,
            blocks: self.blocks,
            live: Some(&live),
            wire: app.wire.as_ref().ok().filter(|_| self.on == StudyBackend::Wire),
            stop: job.stop(),
        };
        let results = trunkline_papers::run(self.study, &tables, how, &Told(job)).map_err(failure)?;
        let kept = kept::keep(app, &results)?;
        let result = Some(serde_json::to_value(kept).map_err(ApiError::environment)?);
        Ok(if results.stopped { Ended::Stopped(result) } else { Ended::Done(result) })
    }
}

pub(super) fn failure(error: PaperError) -> ApiError {
    if error.is_bad_input() { ApiError::input(error) } else { ApiError::environment(error) }
}

/// Tells the job how far its study is.
struct Told<'j>(&'j Job);

impl trunkline_papers::Observer for Told<'_> {
    fn planned(&self, study: &str, simulations: usize, length: Duration) {
        let plan = Plan { name: study.to_owned(), points: simulations, repetitions: simulations, length };
        self.0.planned(&plan);
    }

    fn advanced(&self, by: Duration) {
        self.0.advanced(by);
    }

    fn simulation_done(&self) {
        self.0.repetition_done();
        self.0.point_done();
    }
}
