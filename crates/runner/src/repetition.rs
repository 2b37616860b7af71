//! One repetition of one point: from the driver's observations to traces, audio and a summary in the store.

use trunkline_core::Seed;
use trunkline_experiment::{Scenario, Supervisor};
use trunkline_fleet::PartKey;
use trunkline_live::LiveError;
use trunkline_metrics::{DriverOutcome, FlowMeta, Meter, RepetitionSummary, TraceSink};
use trunkline_store::RunWriter;

use crate::audio::AudioRecorder;
use crate::drive::{Driven, drive_at};
use crate::exact;
use crate::growing::values;
use crate::hearing::{Ears, Heard};
use crate::schedule::{Request, RunnerError, Task};
use crate::tap::{TappedRepetition, TappedSupervisor, TappedTraces};

/// Measures and stores in the run with this key; the summary is partial if it was stopped. Also says what was heard.
pub(crate) fn measure(
    (writer, run): (&RunWriter, &str),
    scenario: &Scenario,
    task: Task,
    seed: Seed,
    request: Request<'_>,
    supervisor: &mut (dyn Supervisor + Send),
) -> Result<(RepetitionSummary, Vec<Heard>), RunnerError> {
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let names: Vec<&str> = metas.iter().map(|meta| meta.name.as_str()).collect();
    let mut traces = writer.begin_repetition(task.stored, task.repetition, &names)?;
    let audio_directory = traces.audio_directory();
    let audio = AudioRecorder::create(scenario, &audio_directory).map_err(RunnerError::Audio)?;
    let ears = Ears::new(request.hear, scenario);
    let point = &request.hear.listening_to(&request.experiment.points[task.point]);

    let values = values(request.experiment, point);
    let tapped =
        TappedRepetition { point: task.stored, repetition: task.repetition, values: &values, flows: &metas };
    let tap = request.tap.and_then(|tap| tap.repetition(&tapped));
    let (mut sink, mut watcher);
    let (trace, supervisor): (&mut (dyn TraceSink + Send), &mut (dyn Supervisor + Send)) =
        match tap.as_deref() {
            Some(tap) => {
                sink = TappedTraces { traces: &mut traces, tap };
                watcher = TappedSupervisor::new(supervisor, tap, scenario.duration + scenario.drain);
                (&mut sink, &mut watcher)
            }
            None => (&mut traces, supervisor),
        };

    let meter = Meter::new(&metas, trace).with_bundles(&scenario.bundles);
    let mut recorder = (meter, (audio, ears));
    let at = PartKey { run: run.to_owned(), point: task.stored, repetition: task.repetition };
    let driven = drive_at(request, point, seed, &at, &mut recorder, supervisor);
    let (meter, (audio, ears)) = recorder;
    // Both are closed also when the driver failed: what was recorded stays.
    let audio = audio.finish().map_err(RunnerError::Audio);
    let (outcome, failed) = driven?;
    let mut summary = meter.finish(outcome);
    let closed = traces.close()?;
    exact::percentiles(&mut summary, &closed)?;
    let (mut audio, failed) = or_nothing(audio, failed);
    let is_alone = request.experiment.points.len() == 1 && request.experiment.repetitions == 1;
    let heard = ears.finish(scenario, &closed, &audio_directory, task, is_alone);
    let (heard, failed) = or_nothing(heard, failed);
    audio.extend(
        heard.iter().map(|heard| heard.path.clone()).filter(|path| path.starts_with(&audio_directory)),
    );
    closed.finish(&summary, &audio)?;
    if let Some(fleet) = request.fleet {
        fleet.stored();
    }
    match failed {
        Some(error) => Err(error),
        None => Ok((summary, heard)),
    }
}

/// What was written; nothing if that failed, and then the first failure is kept.
fn or_nothing<T>(
    written: Result<Vec<T>, RunnerError>,
    failed: Option<RunnerError>,
) -> (Vec<T>, Option<RunnerError>) {
    match written {
        Ok(written) => (written, failed),
        Err(error) => (Vec::new(), failed.or(Some(error))),
    }
}

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
