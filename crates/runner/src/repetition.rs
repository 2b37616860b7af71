//! One repetition of one point: from the driver's observations to traces, audio and a summary in the store.

use trunkline_core::Seed;
use trunkline_experiment::{Scenario, Supervisor};
use trunkline_live::LiveError;
use trunkline_metrics::{DriverOutcome, FlowMeta, Meter, RepetitionSummary};
use trunkline_store::{Backend, RunWriter};

use crate::audio::AudioRecorder;
use crate::exact;
use crate::schedule::{Request, RunnerError, Task};
use crate::wire;

/// Measures and stores; the summary is partial if it was stopped.
pub(crate) fn measure(
    writer: &RunWriter,
    scenario: &Scenario,
    task: Task,
    seed: Seed,
    request: Request<'_>,
    supervisor: &mut (dyn Supervisor + Send),
) -> Result<RepetitionSummary, RunnerError> {
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let names: Vec<&str> = metas.iter().map(|meta| meta.name.as_str()).collect();
    let mut traces = writer.begin_repetition(task.stored, task.repetition, &names)?;
    let audio = AudioRecorder::create(scenario, &traces.audio_directory()).map_err(RunnerError::Audio)?;

    let mut recorder = (Meter::new(&metas, &mut traces).with_bundles(&scenario.bundles), audio);
    let driven = match request.backend {
        Backend::Sim => trunkline_simulator::run(scenario, seed, &mut recorder, supervisor)
            .map(|outcome| (outcome, None))
            .map_err(RunnerError::from),
        Backend::Wire => {
            wire::run(request, &request.experiment.points[task.point], seed, &mut recorder, supervisor)
        }
        Backend::Live => kept(trunkline_live::run(scenario, seed, request.live, &mut recorder, supervisor)),
    };
    let (meter, audio) = recorder;
    // Both are closed also when the driver failed: what was recorded stays.
    let audio = audio.finish().map_err(RunnerError::Audio);
    let (outcome, failed) = driven?;
    let mut summary = meter.finish(outcome);
    let closed = traces.close()?;
    exact::percentiles(&mut summary, &closed)?;
    let (audio, failed) = match audio {
        Ok(paths) => (paths, failed),
        Err(error) => (Vec::new(), failed.or(Some(error))),
    };
    closed.finish(&summary, &audio)?;
    match failed {
        Some(error) => Err(error),
        None => Ok(summary),
    }
}

/// What was measured, and why not more of it; an error if nothing was.
pub(crate) type Driven = Result<(DriverOutcome, Option<RunnerError>), RunnerError>;

/// Of real sockets.
pub(crate) fn kept(measured: Result<DriverOutcome, LiveError>) -> Driven {
    match measured {
        Ok(outcome) => Ok((outcome, None)),
        Err(error) => match error.outcome().cloned() {
            Some(outcome) => Ok((outcome, Some(error.into()))),
            None => Err(error.into()),
        },
    }
}
