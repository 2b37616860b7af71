//! Runs as jobs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_agent::controller::Fleet;
use trunkline_core::Duration;
use trunkline_experiment::Experiment;
use trunkline_runner::{Hear, Heard, Observer, Outcome, Plan, Request};
use trunkline_store::{RunInfo, Status};

use crate::api::{ApiError, Backend, JobKind, MAIN_FILE, NewRun};
use crate::app::{App, cores};
use crate::jobs::{Ended, Job, Live, Needs, NewJob};
use crate::predict;

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Wanted {
    experiment: Experiment,
    /// The file that it comes from.
    file: PathBuf,
    backend: Backend,
    tags: Vec<String>,
    hear: Hear,
    /// The run that is to be finished; without it a new one.
    resumed: Option<u64>,
}

/// Judges what a client wants to be run.
pub(crate) fn wanted(app: &App, new: NewRun) -> Result<Wanted, ApiError> {
    if let Some(why) = app.unavailable(new.backend) {
        return Err(ApiError::input(why));
    }
    let experiment = app.experiment(&new.text)?;
    let tags = new.tags.iter().map(|text| tag(text)).collect::<Result<Vec<_>, _>>()?;
    let hear = hear(&new.hear)?;
    let file = app.files.join(file_name(new.file_name.as_deref())?);
    let wanted = Wanted { experiment, file, backend: new.backend, tags, hear, resumed: None };
    wanted.precheck(app)?;
    Ok(wanted)
}

/// What a partial run lacks.
pub(crate) fn lacking(app: &App, id: u64) -> Result<Wanted, ApiError> {
    let run = app.store.run(id)?;
    match run.info.status {
        Status::Partial => {}
        Status::Complete => return Err(trunkline_store::StoreError::Complete { id }.into()),
        Status::Running => return Err(trunkline_store::StoreError::InUse { id }.into()),
    }
    let backend = Backend::from(run.info.backend);
    if let Some(why) = app.unavailable(backend) {
        return Err(ApiError::input(why));
    }
    let experiment = app.stored_experiment(&run)?;
    let (file, hear) = (run.info.file, Hear::default());
    let wanted = Wanted { experiment, file, backend, tags: Vec::new(), hear, resumed: Some(id) };
    wanted.precheck(app)?;
    Ok(wanted)
}

/// Begins a job that runs it.
pub(crate) fn begin(app: &Arc<App>, wanted: Wanted) -> Result<Arc<Job>, ApiError> {
    let needs = match wanted.backend {
        Backend::Sim => Needs::Cores,
        Backend::Live if wanted.has_agents() => Needs::Fleet,
        Backend::Wire | Backend::Live => Needs::Machine,
    };
    let title = wanted.experiment.name.clone();
    app.start(NewJob { kind: JobKind::Run, title, needs }, move |app, job| wanted.execute(app, job))
}

/// A tag as it is stored.
pub(crate) fn tag(text: &str) -> Result<String, ApiError> {
    let tag = text.trim();
    if tag.is_empty() || tag.chars().count() > 100 || tag.contains(char::is_control) {
        return Err(ApiError::input(format_args!(
            "invalid tag `{}`: use one or two words",
            text.escape_debug()
        )));
    }
    Ok(tag.to_owned())
}

impl Wanted {
    fn has_agents(&self) -> bool {
        // Where only some hosts have one that is told when it is looked at closely.
        !matches!(trunkline_agent::controller::agents_of(&self.experiment), Ok(agents) if agents.is_empty())
    }

    /// Finds what would stop it at once, as far as that can be seen without asking agents.
    fn precheck(&self, app: &App) -> Result<(), ApiError> {
        if self.backend == Backend::Live {
            trunkline_agent::controller::agents_of(&self.experiment).map_err(ApiError::input)?;
            if self.has_agents() {
                return Ok(());
            }
        }
        let live = app.live_options();
        Ok(trunkline_runner::precheck(&self.request(&live, app, None, None))?)
    }

    fn execute(self, app: &App, job: &Arc<Job>) -> Result<Ended, ApiError> {
        let fleet = fleet(app, &self.experiment, self.backend)?;
        let live = app.live_options();
        if self.backend != Backend::Sim {
            // Before the measurement: it would disturb it.
            job.predict(predict::latencies(&self.experiment, job));
        }
        let tap = Live::new(job, self.backend != Backend::Sim, &self.experiment.limits);
        let observer = Tagging { job, app, tags: &self.tags };
        let outcome = tap.during(|tap| {
            let request = self.request(&live, app, Some(tap), fleet.as_ref());
            match self.resumed {
                Some(id) => trunkline_runner::resume(&app.store, id, request, &observer, job.stop()),
                None => {
                    trunkline_runner::precheck(&request)?;
                    trunkline_runner::run(&app.store, request, &observer, job.stop())
                }
            }
        });
        let Outcome { run, stopped } = outcome?;
        match (stopped, run.status) {
            (true, _) => Ok(Ended::Stopped(None)),
            (false, Status::Complete) => Ok(Ended::Done(None)),
            (false, _) => Err(ApiError::environment(format_args!(
                "run {} is partial: parts of it could not be measured; resume it to measure them",
                run.id
            ))),
        }
    }

    fn request<'r>(
        &'r self,
        live: &'r trunkline_live::LiveOptions,
        app: &'r App,
        tap: Option<&'r Live>,
        fleet: Option<&'r Fleet>,
    ) -> Request<'r> {
        Request {
            experiment: &self.experiment,
            file: &self.file,
            backend: self.backend.into(),
            jobs: cores(),
            live,
            wire: app.wire.as_ref().ok().filter(|_| self.backend == Backend::Wire),
            hear: &self.hear,
            kernels: None,
            tap: tap.map(|tap| tap as &dyn trunkline_runner::Tap),
            fleet,
        }
    }
}

/// Whether it is measured through agents.
pub(crate) fn has_agents(experiment: &Experiment, backend: Backend) -> Result<bool, ApiError> {
    let is_live = backend == Backend::Live;
    Ok(is_live && !trunkline_agent::controller::agents_of(experiment).map_err(ApiError::input)?.is_empty())
}

/// The agents of an experiment's hosts, if it is measured through them.
pub(crate) fn fleet(app: &App, experiment: &Experiment, backend: Backend) -> Result<Option<Fleet>, ApiError> {
    if !has_agents(experiment, backend)? {
        return Ok(None);
    }
    let failed = |error: trunkline_agent::controller::FleetError| match error.is_bad_input() {
        true => ApiError::input(error),
        false => ApiError::environment(error),
    };
    let agents = trunkline_agent::controller::agents_of(experiment).map_err(failed)?;
    let identity = Arc::new(app.identity()?);
    Fleet::connect(&agents, identity, &app.peers()?, PATIENCE).map(Some).map_err(failed)
}

/// Passes on to the job what it observes, and marks the run as soon as there is one.
struct Tagging<'t> {
    job: &'t Job,
    app: &'t App,
    tags: &'t [String],
}

impl Observer for Tagging<'_> {
    fn begun(&self, run: &RunInfo) {
        for tag in self.tags {
            if let Err(error) = self.app.store.tag(run.id, tag, true) {
                self.warning(&format!("run {} could not be marked `{tag}`: {error}", run.id));
            }
        }
        self.job.begun(run);
    }

    fn planned(&self, plan: &Plan) {
        self.job.planned(plan);
    }

    fn advanced(&self, by: Duration) {
        self.job.advanced(by);
    }

    fn repetition_done(&self) {
        self.job.repetition_done();
    }

    fn point_done(&self) {
        self.job.point_done();
    }

    fn heard(&self, heard: &Heard) {
        self.job.heard(heard);
    }

    fn warning(&self, message: &str) {
        self.job.warning(message);
    }
}

/// What a client's file is called, in the folder of files.
fn file_name(asked: Option<&str>) -> Result<&str, ApiError> {
    let Some(name) = asked.map(str::trim).filter(|name| !name.is_empty()) else { return Ok(MAIN_FILE) };
    let is_name = Path::new(name).file_name().is_some_and(|file| file == name)
        && name.chars().count() <= 200
        && !name.contains(|c: char| c.is_control() || c == '/' || c == '\\');
    is_name.then_some(name).ok_or_else(|| {
        ApiError::input(format_args!("`{}` is not a file name: omit folders", name.escape_debug()))
    })
}

/// What is to be heard: into the run's folder, and nowhere else.
fn hear(asked: &[String]) -> Result<Hear, ApiError> {
    let sounds = asked.iter().map(|text| match text.contains('=') {
        true => Err(ApiError::input(format_args!(
            "`{}` names a file: the audio is written to the run's folder",
            text.escape_debug()
        ))),
        false => text.parse().map_err(ApiError::input),
    });
    Ok(Hear { sounds: sounds.collect::<Result<_, _>>()?, conceal: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_clients_have_names_and_no_folders() {
        assert_eq!(file_name(None).unwrap(), MAIN_FILE);
        assert_eq!(file_name(Some("trio.toml")).unwrap(), "trio.toml");
        for wrong in ["../trio.toml", "/etc/passwd", "..", ".", "a/b", "a\\b", "a\nb"] {
            assert!(file_name(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_heard_goes_into_the_runs_folder() {
        assert_eq!(hear(&["flow.voice.1".to_owned()]).unwrap().sounds.len(), 1);
        assert!(hear(&["flow.voice.1=/tmp/heard.wav".to_owned()]).is_err());
        assert!(hear(&["voice".to_owned()]).is_err());
    }
}
