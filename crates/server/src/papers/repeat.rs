//! Repeats a study.

use trunkline_core::Duration;
use trunkline_papers::{How, PaperError, Study};
use trunkline_runner::{Observer as _, Plan};

use super::kept;
use crate::api::{ApiError, NewStudy};
use crate::app::{App, cores};
use crate::jobs::{Ended, Job};

/// More often than that tells no more.
const MOST_REPETITIONS: u32 = 10_000;

/// What is to be repeated of a study that has it.
pub(super) struct Wanted {
    study: &'static Study,
    tables: Vec<String>,
    repetitions: Option<u32>,
}

impl Wanted {
    pub(super) fn new(study: &'static Study, new: NewStudy) -> Result<Wanted, ApiError> {
        let NewStudy { tables, repetitions } = new;
        let tables = tables.unwrap_or_default();
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
        Ok(Wanted { study, tables, repetitions })
    }

    /// Simulates; what is found is kept, also if it was told to stop before its end.
    pub(super) fn repeat(self, app: &App, job: &Job) -> Result<Ended, ApiError> {
        let tables: Vec<&str> = self.tables.iter().map(String::as_str).collect();
        let how = How {
            jobs: cores(),
            repetitions: self.repetitions,
            blocks: None,
            // Nothing is measured for real here: what runs beside it would be measured too.
            live: None,
            wire: None,
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
