//! `trunkline run`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_agent::controller::{Fleet, FleetError};
use trunkline_audio::conceal::Method;
use trunkline_core::Duration;
use trunkline_experiment::Experiment;
use trunkline_live::{FarEnd, LiveOptions, Spin};
use trunkline_report::output::{Report, ReportHeard};
use trunkline_runner::{DirectoryFiles, Hear, Heard, KernelMeans, Outcome, Request, RunnerError, WireMeans};
use trunkline_store::{Backend, Status, Store, StoredRun};

use super::{open_store, own_program, write_report};
use crate::args::{self, Global, On};
use crate::controller;
use crate::output::{self, Failure};
use crate::progress::{Display, heard_line};

pub(super) fn run(global: &Global, arguments: &args::Run) -> Result<u8, Failure> {
    let live = live_options(&arguments.live)?;
    let hear = hear(arguments)?;
    let (store, (outcome, heard)) = match (&arguments.resume, &arguments.file) {
        (Some(selector), _) => resume(global, arguments, selector, (&live, &hear)),
        (None, Some(file)) => begin(global, arguments, file, (&live, &hear)),
        (None, None) => Err(Failure::input("an experiment file is needed: `trunkline run FILE`")),
    }?;
    let outcome = outcome.map_err(|error| failure(&error))?;
    show(global, arguments, &store, &outcome, &heard)
}

/// What a run gives back: the store it is in, and how it ended.
type Ran = Result<(Store, Watched), Failure>;

/// How a run ended, and what was written for listeners.
type Watched = (Result<Outcome, RunnerError>, Vec<Heard>);

fn begin(global: &Global, arguments: &args::Run, file: &Path, (live, hear): (&LiveOptions, &Hear)) -> Ran {
    // The file is judged before the store is touched: bad input writes nothing.
    let experiment = super::load(file, &arguments.settings())?;
    if arguments.strict && experiment.limits.is_empty() {
        return Err(Failure::input(
            "`--strict` needs limits, but the file has none; add `[limits]`, for example `\"flow.voice.loss\" \
            = \"< 1 %\"`",
        ));
    }
    let backend = backend(arguments.on);
    let wire = wire_means(backend)?;
    let named = super::named(file).to_string();
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let fleet = fleet(&experiment, backend)?;
    let kernels = super::kernel_means();
    let means = Means { live, wire: wire.as_ref(), kernels: kernels.as_ref(), fleet: fleet.as_ref(), hear };
    let request = request(&experiment, &file, backend, arguments, means);
    // Messages name the file as the user did.
    let as_named = Request { file: Path::new(&named), ..request };
    trunkline_runner::precheck(&as_named).map_err(|error| failure(&error))?;
    let store = open_store(global)?;
    let outcome = watched(|display, stop| match arguments.shard {
        None => trunkline_runner::run(&store, request, display, stop),
        Some(shard) => trunkline_runner::run_shard(&store, request, shard, display, stop),
    })?;
    Ok((store, outcome))
}

fn resume(
    global: &Global,
    arguments: &args::Run,
    selector: &str,
    (live, hear): (&LiveOptions, &Hear),
) -> Ran {
    if !arguments.settings().is_empty() {
        return Err(Failure::input(
            "a resumed run keeps its original settings; omit `--set`, `--seed`, `--duration` and \
            `--repetitions`",
        ));
    }
    let store = open_store(global)?;
    let id = store.find(selector).map_err(super::store_failure)?;
    let stored = store.run(id).map_err(Failure::environment)?;
    if stored.info.status == Status::Complete {
        return Err(Failure::input(format_args!("run {id} is complete: there is nothing to resume")));
    }
    if !stored.info.settings.is_empty() {
        output::note(format_args!("run {id} was started with {}", set(&stored.info.settings)));
    }
    let file: &PathBuf = &stored.info.file;
    let beside = DirectoryFiles::beside(file);
    let experiment = trunkline_runner::stored(&store, &stored, &file.display().to_string(), &beside);
    let experiment = experiment.map_err(|problems| Failure::invalid(&problems))?;
    let wire = wire_means(stored.info.backend)?;
    hear.check(&experiment, file).map_err(Failure::input)?;
    let fleet = fleet(&experiment, stored.info.backend)?;
    let kernels = super::kernel_means();
    let means = Means { live, wire: wire.as_ref(), kernels: kernels.as_ref(), fleet: fleet.as_ref(), hear };
    let request = request(&experiment, file, stored.info.backend, arguments, means);
    let outcome = watched(|display, stop| trunkline_runner::resume(&store, id, request, display, stop))?;
    Ok((store, outcome))
}

/// Shows how far it is meanwhile, and stops it when the user wants that.
fn watched(
    run: impl FnOnce(&Display, &AtomicBool) -> Result<Outcome, RunnerError>,
) -> Result<Watched, Failure> {
    let stop = stop_on_signal()?;
    let display = Display::new();
    let outcome = run(&display, &stop);
    let heard = display.finish();
    heard.iter().map(heard_line).for_each(output::note);
    // What has failed is said next; without this nobody would know what was kept.
    if let (Err(_), Some(id)) = (&outcome, display.run()) {
        warn_of_partial("", id);
    }
    Ok((outcome, heard))
}

/// `--set 'link.trunk.rate=5 Mbit/s' --set seed=7`
fn set(settings: &[String]) -> String {
    settings.iter().map(|setting| trunkline_report::set_again(setting)).collect::<Vec<_>>().join(" ")
}

fn warn_of_partial(why: &str, id: u64) {
    output::warn(format_args!("{why}run {id} is partial; finish it with `trunkline run --resume {id}`"));
}

/// With what it is measured, and what is heard of it.
struct Means<'m> {
    live: &'m LiveOptions,
    wire: Option<&'m WireMeans>,
    kernels: Option<&'m KernelMeans>,
    fleet: Option<&'m Fleet>,
    hear: &'m Hear,
}

fn request<'r>(
    experiment: &'r Experiment,
    file: &'r Path,
    backend: Backend,
    arguments: &args::Run,
    Means { live, wire, kernels, fleet, hear }: Means<'r>,
) -> Request<'r> {
    Request {
        experiment,
        file,
        backend,
        jobs: jobs(arguments.jobs),
        live,
        wire,
        hear,
        tap: None,
        kernels,
        fleet,
    }
}

/// The agents of the experiment's hosts, if they have any and are to measure; says which they are.
pub(super) fn fleet(experiment: &Experiment, backend: Backend) -> Result<Option<Fleet>, Failure> {
    if backend != Backend::Live {
        return Ok(None);
    }
    let agents = trunkline_agent::controller::agents_of(experiment).map_err(fleet_failure)?;
    if agents.is_empty() {
        return Ok(None);
    }
    let (identity, known) = controller::open()?;
    let fleet = Fleet::connect(&agents, identity, &known, PATIENCE).map_err(fleet_failure)?;
    output::note(&fleet);
    Ok(Some(fleet))
}

/// How long an agent may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn fleet_failure(error: FleetError) -> Failure {
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}

/// What is to be heard.
fn hear(arguments: &args::Run) -> Result<Hear, Failure> {
    let sounds = arguments.hear.iter().map(|text| text.parse()).collect::<Result<_, _>>();
    let conceal = arguments.conceal.map(|method| match method {
        args::Conceal::Silence => Method::Silence,
        args::Conceal::Repetition => Method::Repetition,
        args::Conceal::Waveform => Method::Waveform,
    });
    Ok(Hear { sounds: sounds.map_err(Failure::input)?, conceal })
}

pub(super) fn backend(on: On) -> Backend {
    match on {
        On::Sim => Backend::Sim,
        On::Wire => Backend::Wire,
        On::Live => Backend::Live,
    }
}

/// As many as asked for, or as there are cores.
pub(super) fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// What a run on the wire needs. To be called before the first thread is started: where the user has no privileges, the
/// process enters a user namespace.
pub(super) fn wire_means(backend: Backend) -> Result<Option<WireMeans>, Failure> {
    if backend != Backend::Wire {
        return Ok(None);
    }
    let means = WireMeans::gain(own_program()?, vec!["wire".into(), "init".into()]);
    means.map(Some).map_err(Failure::environment)
}

/// This program once more, at the other end.
pub(super) fn far_end() -> Result<FarEnd, Failure> {
    Ok(FarEnd::Process { program: own_program()?, arguments: vec!["far-end".into()] })
}

pub(super) fn live_options(arguments: &args::Live) -> Result<LiveOptions, Failure> {
    let mut options = LiveOptions::new(far_end()?);
    options.address = arguments.address;
    options.port = arguments.port;
    options.spin = match arguments.spin {
        args::Spin::Auto => Spin::Auto,
        args::Spin::Always => Spin::Always,
        args::Spin::Never => Spin::Never,
    };
    Ok(options)
}

/// The first Ctrl-C (or SIGTERM) ends the run in order; a second one ends the program at once: what was recorded until
/// a second ago is safe even then.
pub(super) fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    stop_with_note("stopping: the results so far are kept; press Ctrl-C again to exit at once")
}

/// The same, with what is printed at the first Ctrl-C.
pub(super) fn stop_with_note(note: &'static str) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(output::INTERRUPTED));
        }
        output::note(note);
    })
    .map_err(|e| Failure::environment(format_args!("cannot catch Ctrl-C: {e}")))?;
    Ok(stop)
}

/// Prints the summary and writes the report.
fn show(
    global: &Global,
    arguments: &args::Run,
    store: &Store,
    outcome: &Outcome,
    heard: &[Heard],
) -> Result<u8, Failure> {
    let run = store.run(outcome.run.id).map_err(Failure::environment)?;
    let counterpart = store.counterpart(&run).map_err(Failure::environment)?;
    let report = match arguments.no_report || run.info.shard.is_some() {
        true => None,
        false => Some(write_report(&run, counterpart.as_ref())?),
    };
    let say: fn(String) = if global.json { |text| output::note(text) } else { |text| output::print(text) };
    if !global.json {
        output::print(trunkline_report::terminal(&run, output::screen()).trim_end());
        say_where(report.as_deref(), say);
    }
    let code = judge(arguments, &run, outcome);
    if global.json {
        // Behind the warnings: it has them.
        trunkline_report::cautions(&run).into_iter().for_each(output::add_to_json);
        output::print_json(&Report {
            heard: heard.iter().map(of_heard).collect(),
            html: report.as_deref().map(|report| report.display().to_string()),
            ..trunkline_report::report(&run, counterpart.as_ref())
        });
        say_where(report.as_deref(), say);
    }
    Ok(code)
}

fn of_heard(heard: &Heard) -> ReportHeard {
    let Heard { key, of: (point, repetition), path, frames, sample_rate, concealed } = heard;
    ReportHeard {
        key: key.clone(),
        point: *point,
        repetition: *repetition,
        file: path.display().to_string(),
        frames: *frames,
        sample_rate: *sample_rate,
        concealed: concealed.value(),
    }
}

fn say_where(report: Option<&Path>, say: fn(String)) {
    if let Some(report) = report {
        say(format!("\nreport: {}", report.display()));
    }
}

/// The exit code, with a warning if it is not 0.
fn judge(arguments: &args::Run, run: &StoredRun, outcome: &Outcome) -> u8 {
    if outcome.stopped {
        warn_of_partial("stopped early: ", outcome.run.id);
        return output::INTERRUPTED;
    }
    if outcome.run.status == Status::Partial {
        warn_of_partial("", outcome.run.id);
        return output::ENVIRONMENT;
    }
    if arguments.strict && trunkline_report::limits_hold(run) != Some(true) {
        output::warn("not all limits were shown to hold: exit code 3 (`--strict`)");
        return output::BROKEN;
    }
    output::DONE
}

pub(super) fn failure(error: &RunnerError) -> Failure {
    if let RunnerError::Key(problems) = error {
        return Failure::invalid(problems);
    }
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}
