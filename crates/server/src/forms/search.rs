//! Plans: the largest or smallest value of a key that keeps the limits.

use std::path::PathBuf;
use std::sync::Arc;

use trunkline_agent::controller::Fleet;
use trunkline_core::{Duration, Ratio};
use trunkline_planner::{Forecast, Goal, Means, Nearness, Plan, PlanError, Question, answered, of_plan};
use trunkline_runner::Observer;
use trunkline_store::RunInfo;

use crate::api::{ApiError, Backend, MAIN_FILE, NewPlan, PlanResult};
use crate::app::{App, cores};
use crate::jobs::{Ended, Job, Live, Needs};
use crate::measure;

/// How sure a verdict is that nobody asked otherwise of.
const CONFIDENCE: f64 = 0.95;

/// A plan that can be carried out.
pub(super) struct Planned {
    text: String,
    backend: Backend,
    plan: Plan,
}

impl Planned {
    pub(super) fn new(app: &App, new: NewPlan) -> Result<Planned, ApiError> {
        let (goal, key) = match (&new.maximise, &new.minimise) {
            (Some(key), None) => (Goal::Maximise, key),
            (None, Some(key)) => (Goal::Minimise, key),
            _ => {
                return Err(ApiError::input(
                    "exactly one of `maximise` and `minimise` is required, with a key such as `flow.voice.count`",
                ));
            }
        };
        let share = |name: &str, text: &Option<String>| {
            let share = text.as_deref().map(|text| text.trim().parse::<Ratio>()).transpose();
            share.map_err(|error| ApiError::input(format_args!("`{name}`: {error}")))
        };
        let (precision, confidence) =
            (share("precision", &new.precision)?, share("confidence", &new.confidence)?);
        if let Some(why) = app.unavailable(new.backend) {
            return Err(ApiError::input(why));
        }
        let experiment = app.experiment(&new.text)?;
        let question = Question {
            goal,
            key,
            against: None,
            from: new.between.as_ref().map(|(from, _)| from.as_str()),
            to: new.between.as_ref().map(|(_, to)| to.as_str()),
            nearness: precision.map_or(Nearness::Default, |share| Nearness::Share(share.value())),
            repetitions: None,
            most: None,
            confidence: confidence.map_or(CONFIDENCE, |share| share.value()),
        };
        let plan =
            Plan::with_files(&experiment, &file(app), Arc::new(app.files()), &question).map_err(failure)?;
        let planned = Planned { text: new.text, backend: new.backend, plan };
        // Agents are asked when its turn comes.
        if !measure::has_agents(planned.plan.first(), planned.backend)? {
            planned
                .with_means(app, None, None, |means| planned.plan.precheck(means, None))
                .map_err(failure)?;
        }
        Ok(planned)
    }

    pub(super) fn title(&self) -> String {
        let what = match self.plan.goal {
            Goal::Maximise => "largest",
            Goal::Minimise => "smallest",
        };
        format!("{}: the {what} {}", self.plan.first().name, self.plan.key.key())
    }

    pub(super) fn needs(&self) -> Needs {
        match self.backend {
            Backend::Sim => Needs::Cores,
            Backend::Live if measure::has_agents(self.plan.first(), self.backend).unwrap_or(true) => {
                Needs::Fleet
            }
            Backend::Wire | Backend::Live => Needs::Machine,
        }
    }

    /// Carries it out; told to stop it gives what is known.
    pub(super) fn search(self, app: &App, job: &Arc<Job>) -> Result<Ended, ApiError> {
        let Planned { text, plan, .. } = &self;
        let fleet = measure::fleet(app, plan.first(), self.backend)?;
        let run = |means: &Means<'_>| {
            if means.fleet.is_some() {
                plan.precheck(means, None)?;
            }
            trunkline_planner::run(&app.store, plan, None, means, &Told(job), job.stop())
        };
        let live = Live::new(job, self.backend != Backend::Sim, &plan.first().limits);
        job.lasts(None);
        let found =
            live.during(|live| self.with_means(app, Some(live), fleet.as_ref(), run)).map_err(failure)?;
        let experiment = answered(text, plan, &found).transpose().map_err(ApiError::environment)?;
        let result = PlanResult { run: found.run.id, plan: of_plan(plan, &found), experiment };
        let result = serde_json::to_value(result).map_err(ApiError::environment)?;
        Ok(match found.stopped {
            true => Ended::Stopped(Some(result)),
            false => Ended::Done(Some(result)),
        })
    }

    fn with_means<R>(
        &self,
        app: &App,
        tap: Option<&Live>,
        fleet: Option<&Fleet>,
        act: impl FnOnce(&Means<'_>) -> R,
    ) -> R {
        let live = app.live_options();
        act(&Means {
            backend: self.backend.into(),
            jobs: cores(),
            live: &live,
            wire: app.wire.as_ref().ok(),
            tap: tap.map(|tap| tap as &dyn trunkline_runner::Tap),
            fleet,
            elsewhere: None,
        })
    }
}

/// Where the experiment file would be whose text a client sent: beside the files that it names.
fn file(app: &App) -> PathBuf {
    app.files.join(MAIN_FILE)
}

fn failure(error: PlanError) -> ApiError {
    match error {
        PlanError::Load(error) => error.into(),
        PlanError::Runner(error) => error.into(),
        error @ PlanError::Question(_) => ApiError::input(error),
    }
}

/// Tells the job how far its plan is, and every verdict.
struct Told<'j>(&'j Job);

impl Observer for Told<'_> {
    fn begun(&self, run: &RunInfo) {
        self.0.begun(run);
    }

    fn planned(&self, plan: &trunkline_runner::Plan) {
        self.0.planned(plan);
    }

    fn advanced(&self, by: Duration) {
        self.0.advanced(by);
    }

    fn repetition_done(&self) {
        self.0.repetition_done();
    }

    fn point_done(&self) {
        self.0.point_done();
    }

    fn warning(&self, message: &str) {
        self.0.warning(message);
    }
}

impl trunkline_planner::Observer for Told<'_> {
    fn judged(&self, sentence: &str) {
        self.0.warn(sentence);
    }

    fn tried(&self, sentence: &str) {
        self.0.warn(sentence);
    }

    fn estimated(&self, forecast: &Forecast) {
        self.forecast(forecast);
    }

    fn forecast(&self, forecast: &Forecast) {
        self.0.lasts(Some(forecast.left));
    }
}
