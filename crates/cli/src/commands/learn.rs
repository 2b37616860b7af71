//! `trunkline learn`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget};
use trunkline_agent::controller::{Fleet, FleetError, PartKey};
use trunkline_core::{Duration, Seed, count};
use trunkline_experiment::{Experiment, Files, Progress, Supervisor};
use trunkline_learn::output::{ProbedPath, WatchedPath};
use trunkline_learn::plan::{self, Place};
use trunkline_learn::watch::{Change, Watcher};
use trunkline_learn::{Observer, ProbeError, Prober, Question, Verified};
use trunkline_live::LiveOptions;
use trunkline_metrics::Recorder;
use trunkline_runner::{DirectoryFiles, Hear, Request, WireMeans};
use trunkline_store::Backend;

use super::run;
use crate::args::Global;
use crate::args::learn::{Described, Learn};
use crate::controller;
use crate::output::{self, Failure};

pub(super) fn learn(global: &Global, arguments: &Learn) -> Result<u8, Failure> {
    if !arguments.from.is_empty() {
        return super::learn_from::learn(global, arguments);
    }
    let question = question(arguments)?;
    if arguments.plan {
        output::print(plan::first().text(&Place::default(), arguments.seed).trim_end());
        return Ok(output::DONE);
    }
    let (name, mut prober) = prober(arguments)?;
    if let Some(lasts) = arguments.watch {
        return watch(global, arguments, &name, prober.as_mut(), lasts);
    }
    let file = arguments.to.clone().unwrap_or_else(|| PathBuf::from(format!("{}.toml", file_name(&name))));
    check_target(&file)?;
    let stop = run::stop_with_note("stopping after this phase: what was measured is kept")?;
    let display = Display { bar: bar(), stop: Arc::clone(&stop) };
    let probed = trunkline_learn::probe(question, prober.as_mut(), &display);
    let path = match probed {
        Ok(path) => path,
        Err(error) => {
            display.bar.finish_and_clear();
            let advice = match error {
                ProbeError::Silent => "; check the address and the firewall between the hosts",
                ProbeError::Failed(_) => "",
            };
            return Err(Failure::environment(format_args!(
                "cannot learn the path to `{name}`: {error}{advice}"
            )));
        }
    };
    let learned = path.ways.iter().filter(|way| way.is_ok()).count();
    let (verified, problem) = match arguments.no_verify || path.is_partial || learned < 2 {
        true => (Vec::new(), None),
        false => trunkline_learn::verify(&path, prober.as_mut(), &display, arguments.seed),
    };
    display.bar.finish_and_clear();
    if let Some(problem) = problem {
        output::warn(format_args!("verification stopped: {problem}"));
    }
    for note in path.notes.iter().filter(|note| note.contains(" failed: ")) {
        output::warn(note);
    }
    if learned == 0 {
        let why: Vec<String> = path.ways.iter().filter_map(|way| way.as_ref().err().cloned()).collect();
        return Err(Failure::environment(format_args!(
            "neither direction of the path to `{name}` was learned, and nothing was written: {}",
            why.join("; ")
        )));
    }
    let ensemble = write(&file, &name, &path, &verified)?;
    for (way, learned) in trunkline_learn::Way::ALL.into_iter().zip(&path.ways) {
        if let Err(why) = learned {
            output::warn(format_args!("{} was not learned: {why}", way.name()));
        }
    }
    if global.json {
        let file = file.display().to_string();
        output::print_json(&ProbedPath::of(&name, &path, &verified, file, ensemble));
    } else {
        show(&path, &verified, &file);
    }
    Ok(match (path.is_partial || stop.load(Ordering::Relaxed), learned) {
        (true, _) => output::INTERRUPTED,
        (false, 2) => output::DONE,
        (false, _) => output::ENVIRONMENT,
    })
}

/// Looks at the path until the time is over, and prints each change when it is seen.
fn watch(
    global: &Global,
    arguments: &Learn,
    name: &str,
    prober: &mut dyn Prober,
    lasts: Duration,
) -> Result<u8, Failure> {
    if arguments.every < Duration::from_secs(10) {
        return Err(Failure::input(format_args!("`--every {}` is less than 10 s", arguments.every)));
    }
    if arguments.on == Described::Wire {
        return Err(Failure::input(
            "`--watch` with `--over` needs `--on sim`: each look on the wire would begin at the profile's first moment",
        ));
    }
    let stop = run::stop_with_note("stopping: what was seen is kept")?;
    let begins = (!prober.is_virtual()).then(Instant::now);
    let watcher = Watching { begins, lasts, stop: Arc::clone(&stop), is_quiet: global.json };
    let watch = trunkline_learn::watch::watch(prober, &watcher, arguments.every, arguments.seed);
    if watch.failed == watch.looks {
        return Err(Failure::environment(format_args!("no look at the path to `{name}` succeeded")));
    }
    if global.json {
        output::print_json(&WatchedPath::of(name, &watch));
    } else {
        let changes = count(watch.changes.len() as u64, "change");
        output::print(format_args!("{}, {changes}", count(watch.looks as u64, "look")));
    }
    Ok(if stop.load(Ordering::Relaxed) { output::INTERRUPTED } else { output::DONE })
}

/// Waits for looks, and prints changes.
struct Watching {
    /// The first look; `None` in virtual time.
    begins: Option<Instant>,
    lasts: Duration,
    stop: Arc<AtomicBool>,
    is_quiet: bool,
}

impl Watcher for Watching {
    fn wait(&self, at: Duration) -> bool {
        // So that Ctrl-C does not wait for the next look.
        const SLICE: std::time::Duration = std::time::Duration::from_millis(200);
        let at_or_late = |begins: &Instant| begins.elapsed().as_nanos() >= u128::from(at.as_nanos());
        while at < self.lasts && !self.stop.load(Ordering::Relaxed) {
            if self.begins.as_ref().is_none_or(at_or_late) {
                return true;
            }
            std::thread::sleep(SLICE);
        }
        false
    }

    fn changed(&self, change: &Change) {
        let since = match self.begins {
            None => format!("at {}", change.since),
            Some(begins) => {
                let ago =
                    begins.elapsed().saturating_sub(std::time::Duration::from_nanos(change.since.as_nanos()));
                let at = jiff::Zoned::now()
                    .saturating_sub(jiff::SignedDuration::try_from(ago).unwrap_or_default());
                format!("{}", at.strftime("%Y-%m-%d %H:%M:%S"))
            }
        };
        let say: fn(String) =
            if self.is_quiet { |text| output::note(text) } else { |text| output::print(text) };
        say(format!("{since} {}", change.sentence()));
    }

    fn failed(&self, why: &str) {
        output::warn(format_args!("a look failed: {why}"));
    }
}

fn question(arguments: &Learn) -> Result<Question, Failure> {
    let budget = arguments.budget;
    if !(Duration::from_secs(20)..=Duration::from_secs(600)).contains(&budget) {
        return Err(Failure::input(format_args!("`--budget {budget}` is not between 20 s and 10 min")));
    }
    let share = arguments.share.value();
    Ok(Question { budget, share, gentle: arguments.gentle, seed: arguments.seed })
}

/// The name of the path, and what probes it.
fn prober(arguments: &Learn) -> Result<(String, Box<dyn Prober>), Failure> {
    if let Some(profile) = &arguments.over {
        let name =
            profile.file_stem().map_or_else(|| "path".to_owned(), |stem| stem.to_string_lossy().into_owned());
        // The learned profile must not replace the one that it is compared with.
        let name = format!("{name}-learned");
        return Ok((name, Box::new(described(profile, arguments.on)?)));
    }
    let host = arguments.host.clone().unwrap_or_default();
    let place = Place {
        hosts: format!(
            "[hosts.{HERE}]\nagent = {}\n[hosts.there]\nagent = {}\n",
            quoted(&arguments.here),
            quoted(&host)
        ),
        ..Place::default()
    };
    let (identity, known) = controller::open()?;
    let text = plan::first().text(&place, arguments.seed);
    let first =
        Experiment::parse(&text, "the probing plan", &()).map_err(|problems| Failure::invalid(&problems))?;
    let agents = trunkline_agent::controller::agents_of(&first).map_err(fleet_failure)?;
    let fleet = Fleet::connect(&agents, identity, &known, PATIENCE).map_err(fleet_failure)?;
    fleet.check(&first.points.first().scenario).map_err(fleet_failure)?;
    let run = format!(
        "{:032x}",
        u128::from(std::process::id()) << 64 | u128::from(trunkline_calls::now().as_nanos())
    );
    Ok((host, Box::new(Agents { fleet, place, run, repetition: 0, clock_error: None })))
}

/// The name of this host in the plans.
const HERE: &str = "here";

/// Time for an agent to answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn fleet_failure(error: FleetError) -> Failure {
    if let FleetError::NotEnrolled { host, address } = &error
        && host == HERE
    {
        return Failure::input(format_args!(
            "this host's own agent, at {address}, is not enrolled here: run `trunkline agent pair` and then `trunkline agent enrol \
             {address} CODE`, both on this host; `--here` names another address of it"
        ));
    }
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A path between two agents.
struct Agents {
    fleet: Fleet,
    place: Place,
    run: String,
    repetition: u32,
    clock_error: Option<Duration>,
}

impl Prober for Agents {
    fn place(&self) -> Place {
        self.place.clone()
    }

    fn run(&mut self, experiment: &Experiment, recorder: &mut (dyn Recorder + Send)) -> Result<(), String> {
        let at = PartKey { run: self.run.clone(), point: 0, repetition: self.repetition };
        self.repetition += 1;
        let ran = self.fleet.run(&at, experiment, experiment.points.first(), recorder, &mut Watch);
        // The agents need not keep it: nothing resumes a learner.
        self.fleet.stored();
        self.fleet.forget(&at);
        let ran = ran.map_err(|error| error.to_string())?;
        let errors = ran.flows.iter().filter_map(|flow| flow.clock_error);
        self.clock_error = errors.max().max(self.clock_error);
        Ok(())
    }

    fn clock_error(&self) -> Option<Duration> {
        self.clock_error
    }
}

/// A described link.
struct OverProfile {
    place: Place,
    files: DirectoryFiles,
    backend: Backend,
    live: LiveOptions,
    wire: Option<WireMeans>,
    runs: u32,
}

fn described(profile: &Path, on: Described) -> Result<OverProfile, Failure> {
    let backend = match on {
        Described::Sim => Backend::Sim,
        Described::Wire => Backend::Wire,
    };
    let wire = run::wire_means(backend)?;
    let live = LiveOptions::new(run::far_end()?);
    let named = profile.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let place = Place {
        link: format!("[link.path]\nbetween = [\"here\", \"there\"]\nprofile = {}\n", quoted(&named)),
        ..Place::default()
    };
    let files = DirectoryFiles::beside(profile);
    let text = plan::first().text(&place, 1);
    let name = profile.display().to_string();
    Experiment::parse(&text, &name, &files).map_err(|problems| Failure::invalid(&problems))?;
    Ok(OverProfile { place, files, backend, live, wire, runs: 0 })
}

impl Prober for OverProfile {
    fn place(&self) -> Place {
        self.place.clone()
    }

    fn is_virtual(&self) -> bool {
        self.backend == Backend::Sim
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn run(&mut self, experiment: &Experiment, recorder: &mut (dyn Recorder + Send)) -> Result<(), String> {
        self.runs += 1;
        let request = Request {
            experiment,
            file: Path::new("learn.toml"),
            backend: self.backend,
            jobs: 1,
            live: &self.live,
            wire: self.wire.as_ref(),
            hear: &Hear::default(),
            tap: None,
            kernels: None,
            fleet: None,
        };
        // Each phase has draws of its own, as each moment on a path has.
        let seed = Seed::new(experiment.seed, self.runs);
        let driven = trunkline_runner::drive(request, experiment.points.first(), seed, recorder, &mut Watch);
        match driven {
            Ok((_, None)) => Ok(()),
            Ok((_, Some(error))) | Err(error) => Err(error.to_string()),
        }
    }
}

struct Watch;

impl Supervisor for Watch {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}

/// The phase that runs, with the time that is left.
struct Display {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
}

fn bar() -> ProgressBar {
    match output::is_error_terminal() {
        true => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10)),
        false => ProgressBar::hidden(),
    }
}

impl Observer for Display {
    fn begins(&self, purpose: &str, left: Duration) {
        let left = left.as_secs_f64().ceil();
        let message = if left > 0.0 { format!("{purpose}, {left} s left") } else { purpose.to_owned() };
        if self.bar.is_hidden() {
            output::note(&message);
        }
        output::set_message(&self.bar, message);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The host's name, as a file may be called.
fn file_name(host: &str) -> String {
    host.chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' })
        .collect()
}

/// Refuses, before anything is measured, a profile that could not be written afterwards.
fn check_target(file: &Path) -> Result<(), Failure> {
    if file.extension().is_none_or(|extension| extension != "toml") {
        return Err(Failure::input(format_args!(
            "`{}` is not a name for a link description; it must end in `.toml`",
            file.display()
        )));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::unwritable(folder, &std::io::ErrorKind::NotFound.into()));
    }
    for path in [file.to_owned(), file.with_extension("draws")] {
        if path.exists() {
            return Err(Failure::unwritable(&path, &std::io::ErrorKind::AlreadyExists.into()));
        }
    }
    Ok(())
}

/// Writes the profile, and beside it those of the ensemble; returns the latter's paths.
fn write(
    file: &Path,
    name: &str,
    path: &trunkline_learn::Path,
    verified: &[Verified],
) -> Result<Vec<String>, Failure> {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
    let write = |path: &Path, text: String| create(path, &text).map_err(|e| Failure::unwritable(path, &e));
    write(file, trunkline_learn::profile(path, name, &date, verified))?;
    let folder = file.with_extension("draws");
    let members = trunkline_learn::ensemble(path);
    if !members.is_empty() {
        std::fs::create_dir_all(&folder).map_err(|e| Failure::unwritable(&folder, &e))?;
    }
    let mut written = Vec::new();
    for (number, text) in members.into_iter().enumerate() {
        let path = folder.join(format!("{:02}.toml", number + 1));
        write(&path, text)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

/// Writes a file that does not exist yet.
fn create(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}

fn show(path: &trunkline_learn::Path, verified: &[Verified], file: &Path) {
    output::print_words(trunkline_learn::sentence(path, verified));
    for one in verified {
        output::print(format_args!("  {}", trunkline_learn::line(one)));
    }
    for note in &path.notes {
        output::note(note);
    }
    output::print(format_args!("\nprofile: {}", file.display()));
}
