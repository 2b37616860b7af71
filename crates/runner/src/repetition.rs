//! One repetition of one point: from the driver's observations to traces, audio and a summary in the store.

use std::path::{Path, PathBuf};

use trunkline_agent::controller::PartKey;
use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Point, Scenario, Supervisor};
use trunkline_metrics::{
    Console, DriverOutcome, FlowMeta, FlowSummary, Meter, RepetitionSummary, SendLimit, TraceSink,
};
use trunkline_store::{Backend, RunWriter};

use crate::audio::AudioRecorder;
use crate::backend;
use crate::error::RunnerError;
use crate::exact;
use crate::hearing::{Ears, Heard};
use crate::request::Request;
use crate::tap::{QueueWatch, TappedRepetition, TappedTraces};
use crate::task::{Task, values};

/// A summary, what was heard, and by host the file with the output of its programs.
pub(crate) type Measured = (RepetitionSummary, Vec<Heard>, Vec<(String, PathBuf)>);

/// Measures and stores in the run with this key; the summary is partial if it was stopped. Also says what was heard.
pub(crate) fn measure(
    (writer, run): (&RunWriter, &str),
    of: &Point,
    task: Task,
    seed: Seed,
    request: Request<'_>,
    supervisor: &mut (dyn Supervisor + Send),
) -> Result<Measured, RunnerError> {
    let scenario = &*of.scenario;
    let flows = metas(scenario.flows.iter().map(|flow| flow.meta.clone()), request.backend);
    let names: Vec<&str> = flows.iter().map(|meta| meta.name.as_str()).collect();
    let mut traces = writer.begin_repetition(task.stored, task.repetition, &names)?;
    let audio_directory = traces.audio_directory();
    let audio = AudioRecorder::create(scenario, &audio_directory).map_err(RunnerError::Audio)?;
    let ears = Ears::new(request.hear, scenario);
    let point = &request.hear.listening_to(of);

    let values = values(request.experiment, point);
    let tapped =
        TappedRepetition { point: task.stored, repetition: task.repetition, values: &values, flows: &flows };
    let tap = request.tap.and_then(|tap| tap.repetition(&tapped));
    let mut sink;
    let trace: &mut (dyn TraceSink + Send) = match tap.as_deref() {
        Some(tap) => {
            sink = TappedTraces { traces: &mut traces, tap };
            &mut sink
        }
        None => &mut traces,
    };
    let (length, is_simulated) = (scenario.duration + scenario.drain, request.backend.is_simulated());
    let mut watch = QueueWatch::new(supervisor, tap.as_deref(), length, is_simulated);

    let meter = Meter::new(&flows, trace).with_bundles(&scenario.bundles).with_drain(scenario.drain);
    // Flows that are made for each of several hosts are counted together, and each by itself.
    let (single_flows, mut no_trace) = (metas(scenario.single_metas().into_iter(), request.backend), ());
    let singles = Meter::new(&single_flows, &mut no_trace).with_drain(scenario.drain);
    let mut recorder = ((meter, singles), (audio, ears));
    let at = PartKey { run: run.to_owned(), point: task.stored, repetition: task.repetition };
    let driven = backend::driver(request.backend).drive(request, point, seed, &at, &mut recorder, &mut watch);
    let ((meter, singles), (audio, ears)) = recorder;
    // Both are closed also when the driver failed: what was recorded stays.
    let audio = audio.finish().map_err(RunnerError::Audio);
    let (mut outcome, failed) = driven?;
    let consoles = write_consoles(&audio_directory, std::mem::take(&mut outcome.consoles));
    let of_singles = DriverOutcome {
        duration: outcome.duration,
        partial: outcome.partial,
        flows: scenario.single_outcomes(&outcome.flows),
        ..DriverOutcome::default()
    };
    let singles = singles.finish(of_singles);
    let mut summary = meter.finish(outcome);
    attach(scenario, singles.flows, &mut summary);
    watch.attach(&mut summary);
    if request.backend.has_links_of_file() {
        say_what_cuts(scenario, &mut summary);
    }
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
        None => Ok((summary, heard, consoles?)),
    }
}

/// Writes the output of programs, a file for each host.
fn write_consoles(folder: &Path, consoles: Vec<Console>) -> Result<Vec<(String, PathBuf)>, RunnerError> {
    let write = |Console { host, text }: Console| {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(format!("{host}.log"));
        std::fs::write(&file, text)?;
        Ok((host, file))
    };
    consoles.into_iter().map(write).collect::<std::io::Result<_>>().map_err(RunnerError::Consoles)
}

/// What recorders need to know of flows. The network between real hosts is not that of the file, and the profiles of the
/// kernel's transports are those of `sim` only.
pub(crate) fn metas(flows: impl Iterator<Item = FlowMeta>, backend: Backend) -> Vec<FlowMeta> {
    let meta = |meta: FlowMeta| {
        let on_sockets = |limit: SendLimit| {
            let (option, bytes) = limit.on_sockets?;
            Some(SendLimit { option, bytes, segments: None, ..limit })
        };
        let send_limit =
            if backend.is_simulated() { meta.send_limit } else { meta.send_limit.and_then(on_sockets) };
        if backend.has_links_of_file() {
            return FlowMeta { send_limit, ..meta };
        }
        let unknown = |limit| SendLimit {
            narrowest: None,
            carries: None,
            packet: None,
            back: None,
            narrowest_back: None,
            ..limit
        };
        FlowMeta {
            propagation: Vec::new(),
            wander: Duration::ZERO,
            send_limit: send_limit.map(unknown),
            ..meta
        }
    };
    flows.map(meta).collect()
}

/// Puts the summaries of flows that are alike into that of the flow they are, without what only figures are drawn of.
fn attach(scenario: &Scenario, singles: Vec<FlowSummary>, summary: &mut RepetitionSummary) {
    let mut singles = singles.into_iter().map(|single| FlowSummary {
        latency_cdf: Vec::new(),
        latency_over_time: Vec::new(),
        connection: Vec::new(),
        ..single
    });
    for (flow, summary) in scenario.flows.iter().zip(&mut summary.flows) {
        summary.each = singles.by_ref().take(flow.each.len()).collect();
    }
}

/// Names the limit that drops packets of flows with missing messages even on an idle line.
pub(crate) fn say_what_cuts(scenario: &Scenario, summary: &mut RepetitionSummary) {
    for (index, flow) in summary.flows.iter_mut().enumerate().take(scenario.flows.len()) {
        if flow.counts.lost + flow.counts.unfinished + flow.counts.refused > 0 {
            flow.cut_by = scenario.cut_by(index);
        }
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
