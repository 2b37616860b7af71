//! Whole simulations, as a run makes them for each repetition, with its meter.

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Files, FilesError, Progress, Supervisor};
use trunkline_metrics::{FlowMeta, Meter, RepetitionSummary};

use crate::Part;

/// Experiments of benches name no files.
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        Err(FilesError::new(format!("`{path}` is not there: benches read no files")))
    }
}

/// Never stops.
pub struct GoOn;

impl Supervisor for GoOn {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}

/// Parses an experiment that a bench wrote itself.
///
/// # Panics
/// If it is wrong: then the bench is.
pub fn experiment(text: &str) -> Experiment {
    Experiment::parse(text, "bench.toml", &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Simulates the first point with the meter that every run has, without a trace on disk.
///
/// # Panics
/// If it cannot be simulated.
pub fn simulate(experiment: &Experiment) -> RepetitionSummary {
    let scenario = &experiment.points.first().scenario;
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let mut trace = ();
    let mut meter = Meter::new(&metas, &mut trace);
    let outcome = trunkline_simulator::run(scenario, Seed::new(7, 0), &mut meter, &mut GoOn)
        .unwrap_or_else(|error| panic!("{error}"));
    meter.finish(outcome)
}

/// A short simulation, again and again. Unit: a packet that a link delivers.
pub struct Simulation(Experiment);

impl Simulation {
    /// 100 voice channels of 80 bytes every 10 ms over one link, for one simulated second.
    pub fn of_calls() -> Simulation {
        Simulation::of("1 s", "20 Mbit/s", "udp", "{ kind = \"voice\", samples = 80 }", 100)
    }

    /// Four downloads with CUBIC through a FIFO of 100 packets, for two simulated seconds.
    pub fn of_tcp() -> Simulation {
        Simulation::of("2 s", "50 Mbit/s", "tcp", "{ kind = \"bulk\" }", 4)
    }

    fn of(duration: &str, rate: &str, transport: &str, source: &str, count: u32) -> Simulation {
        Simulation(experiment(&format!(
            "name = \"hot\"\nduration = \"{duration}\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
             [link.line]\nbetween = [\"a\", \"b\"]\nrate = \"{rate}\"\ndelay = \"20 ms\"\n\
             queue = {{ kind = \"fifo\", limit = \"100 packets\" }}\n\
             [flow.hot]\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\nsource = {source}\ncount = {count}\n"
        )))
    }
}

impl Part for Simulation {
    fn step(&mut self) -> u64 {
        simulate(&self.0).links.iter().map(|link| link.delivered).sum()
    }
}
