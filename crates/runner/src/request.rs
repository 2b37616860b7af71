//! A request to run an experiment, and the observer of its progress.

use std::path::Path;

use trunkline_agent::controller::Fleet;
use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Point};
use trunkline_live::LiveOptions;
use trunkline_metrics::RepetitionSummary;
use trunkline_store::{Backend, RunInfo};

use crate::error::RunnerError;
use crate::hearing::{Hear, Heard};
use crate::means::{KernelMeans, WireMeans};
use crate::tap::Tap;

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The experiment.
    pub experiment: &'r Experiment,
    /// The file it came from.
    pub file: &'r Path,
    /// Where it runs.
    pub backend: Backend,
    /// How many repetitions are simulated at once; `wire` and `live` measure one after the other.
    pub jobs: usize,
    /// How `wire` and `live` measure.
    pub live: &'r LiveOptions,
    /// With what `wire` is made; nothing else needs it.
    pub wire: Option<&'r WireMeans>,
    /// What is to be heard of it.
    pub hear: &'r Hear,
    /// Who listens to what is measured, while it is.
    pub tap: Option<&'r dyn Tap>,
    /// The means to start hosts that are kernels. Without them, such hosts are refused.
    pub kernels: Option<&'r KernelMeans>,
    /// The agents on the hosts, if `live` is to measure between them and not within this machine.
    pub fleet: Option<&'r Fleet>,
}

impl Request<'_> {
    /// Bad input at the place in the file of a key, whose value is as written.
    pub(crate) fn wrong(&self, path: &[&str], written: &str, message: &str) -> RunnerError {
        let file = self.file.display().to_string();
        RunnerError::Key(self.experiment.problem_at(&file, path, written, message))
    }
}

/// What lies ahead, told before the first repetition.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment's name, or what of it is measured now.
    pub name: String,
    /// How many points are measured now: without those that a resumed run already has.
    pub points: usize,
    /// How many repetitions of them.
    pub repetitions: usize,
    /// How long they last together: virtual time in `sim`.
    pub length: Duration,
}

/// Is told how far a run is; from several threads.
pub trait Observer: Sync {
    /// The run is in the store now, to which all goes that is measured.
    fn begun(&self, _run: &RunInfo) {}
    /// Before the first repetition.
    fn planned(&self, plan: &Plan);
    /// So much more of the plan's length has passed.
    fn advanced(&self, by: Duration);
    /// The figures of a repetition that was measured to its end.
    fn measured(&self, _experiment: &Experiment, _point: &Point, _summary: &RepetitionSummary) {}
    /// A repetition was measured to its end and stored.
    fn repetition_done(&self);
    /// It was the last one that its point lacked.
    fn point_done(&self);
    /// The output of the programs on a kernel is in this file.
    fn console(&self, _host: &str, _file: &Path) {}
    /// What a listener heard was written.
    fn heard(&self, _heard: &Heard) {}
    /// Something that the user should know and that does not end the run.
    fn warning(&self, message: &str);
}
