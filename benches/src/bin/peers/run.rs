//! Runs the lanes: every program of a lane in turn, round after round.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use trunkline_benches::{Spread, ns3};
use trunkline_io::StallProbe;

use crate::lanes::{LANES, Lane, Output, Program};
use crate::page;

/// A command that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_mins(3);

/// Trunkline beside its peers.
#[derive(Parser)]
pub(crate) struct Options {
    /// Rounds of each lane; each round runs all its programs in turn
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Our program, built for release
    #[arg(long, default_value = "target/release/trunkline")]
    program: PathBuf,
    /// Write the page to this file, and JSON beside it
    #[arg(long)]
    out: Option<PathBuf>,
    /// The lanes to run; all if none is named
    lanes: Vec<String>,
}

/// A program's figures over the rounds.
pub(crate) enum Measured {
    /// One spread for each figure of the lane, and the values of all rounds.
    Figures(Vec<Spread>, Vec<Vec<f64>>),
    /// It did not run; why.
    Missing(String),
}

/// A lane that was run.
pub(crate) struct Done {
    pub(crate) lane: &'static Lane,
    /// In the order of the lane's programs.
    pub(crate) programs: Vec<Measured>,
    /// Share of the time in which the machine ran nothing of ours, and the longest such time.
    pub(crate) stalled: f64,
    pub(crate) longest_stall: Duration,
}

/// Places that the shell lines name.
struct Ground {
    program: PathBuf,
    lanes: PathBuf,
    scratch: tempfile::TempDir,
}

pub(crate) fn main() -> ExitCode {
    let options = Options::parse();
    match compare(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            anstream::eprintln!("peers: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<(), String> {
    let unknown = options.lanes.iter().find(|name| LANES.iter().all(|lane| lane.name != **name));
    if let Some(name) = unknown {
        let known: Vec<&str> = LANES.iter().map(|lane| lane.name).collect();
        return Err(format!("there is no lane `{name}`; lanes: {}", known.join(", ")));
    }
    let program = options.program.canonicalize().map_err(|error| {
        format!("{}: {error}; build it first: cargo build --release -p trunkline", options.program.display())
    })?;
    let scratch = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let lanes = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let ground = Ground { program, lanes, scratch };
    for name in ["ns3-voice", "ns3-tcp"] {
        // Its lane says if it is missing.
        let _ = ns3::build(name, ground.scratch.path());
    }
    let began = Instant::now();
    let mut done = Vec::new();
    for lane in
        LANES.iter().filter(|lane| options.lanes.is_empty() || options.lanes.iter().any(|n| n == lane.name))
    {
        let ran = ground.run(lane, options.rounds)?;
        anstream::println!("{}", page::lane(&ran));
        done.push(ran);
    }
    let took = began.elapsed();
    anstream::println!("{}\ntook {:.0} min", page::summary(&done), took.as_secs_f64() / 60.0);
    if let Some(out) = &options.out {
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        write(out, page::whole(&done, options, took))?;
        write(&out.with_extension("json"), page::json(&done, options))?;
    }
    Ok(())
}

impl Ground {
    fn run(&self, lane: &'static Lane, rounds: usize) -> Result<Done, String> {
        let probe = StallProbe::start()
            .map_err(|error| format!("the machine's stalls cannot be watched: {error}"))?;
        let mut values: Vec<Result<Vec<Vec<f64>>, String>> =
            lane.programs.iter().map(|_| Ok(Vec::new())).collect();
        for round in 0..rounds {
            for (program, of_program) in lane.programs.iter().zip(&mut values) {
                let Ok(so_far) = of_program else { continue };
                anstream::eprintln!("{}, round {} of {rounds}: {}", lane.name, round + 1, program.name);
                match self.measure(program) {
                    Ok(figures) => so_far.push(figures),
                    // A round that fails is not left out: then the program has no figure.
                    Err(problem) => *of_program = Err(problem),
                }
            }
        }
        let stalls = probe.finish();
        let measured = |rounds: Result<Vec<Vec<f64>>, String>| match rounds {
            Err(problem) => Measured::Missing(problem),
            Ok(rounds) => {
                let of_figure = |at: usize| rounds.iter().map(|round| round[at]).collect::<Vec<_>>();
                let all: Vec<Vec<f64>> = (0..lane.figures.len()).map(of_figure).collect();
                Measured::Figures(all.iter().map(|values| Spread::of(values)).collect(), all)
            }
        };
        Ok(Done {
            lane,
            programs: values.into_iter().map(measured).collect(),
            stalled: stalls.lost.as_secs_f64() / stalls.watched.as_secs_f64().max(1e-9),
            longest_stall: Duration::from_nanos(stalls.longest.as_nanos()),
        })
    }

    fn measure(&self, program: &Program) -> Result<Vec<f64>, String> {
        let here = |name: &str| {
            let name = name.replace("$BUILT", &self.scratch.path().to_string_lossy());
            let found = Command::new("sh")
                .args(["-c", &format!("command -v '{name}'")])
                .stdout(Stdio::null())
                .status();
            found.is_ok_and(|status| status.success())
        };
        if !program.needs.is_empty() && !here(program.needs) {
            return Err(match program.from {
                "" => "not installed".to_owned(),
                package => format!("not installed: Debian's `{package}`"),
            });
        }
        let before = processor_of_children();
        let beside = program.beside.map(|line| self.start(line, "beside")).transpose()?;
        if beside.is_some() {
            // Servers say in different ways, or not at all, that they listen.
            std::thread::sleep(Duration::from_secs(1));
        }
        let mut command = self.start(program.command, "output")?;
        let status = wait(&mut command);
        if let Some(mut beside) = beside {
            end(&mut beside);
        }
        let read = |name: &str| {
            let mut text = Vec::new();
            let read =
                File::open(self.scratch.path().join(name)).and_then(|mut file| file.read_to_end(&mut text));
            read.map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
        };
        let status = status?;
        if !status.success() {
            let errors = read("output.errors");
            return Err(format!(
                "ended with {status}: {}",
                errors.trim().lines().last().unwrap_or("no message")
            ));
        }
        let output = Output { text: read("output"), processor: processor_of_children() - before };
        (program.read)(&output).ok_or_else(|| "its output could not be read".to_owned())
    }

    /// Starts a shell line in a process group of its own.
    fn start(&self, line: &str, name: &str) -> Result<Child, String> {
        let file = |name: String| {
            let path = self.scratch.path().join(name);
            File::create(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut command = Command::new("sh");
        command.args(["-c", line]).process_group(0);
        command.env("TRUNKLINE", &self.program).env("LANES", &self.lanes);
        command.env("BUILT", self.scratch.path()).env("SCRATCH", self.scratch.path());
        command.env("TRUNKLINE_STORE", self.scratch.path().join("store"));
        command.stdin(Stdio::null()).stdout(file(name.to_owned())?).stderr(file(format!("{name}.errors"))?);
        command.spawn().map_err(|error| format!("sh: {error}"))
    }
}

/// Waits for a command, and ends it if it hangs.
fn wait(command: &mut Child) -> Result<std::process::ExitStatus, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        match command.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                end(command);
                return Err(format!("did not end within {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Ends a process group that `start` made.
fn end(child: &mut Child) {
    let group = nix::unistd::Pid::from_raw(-(child.id() as i32));
    for signal in [
        nix::sys::signal::Signal::SIGINT,
        nix::sys::signal::Signal::SIGTERM,
        nix::sys::signal::Signal::SIGKILL,
    ] {
        // It may have ended by itself.
        let _ = nix::sys::signal::kill(group, signal);
        for _ in 0..50 {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Processor seconds of all descendants that have ended and were waited for.
fn processor_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 16 and 17, counted from the state, which is field 3 and comes after the name in parentheses.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / 100.0
}
