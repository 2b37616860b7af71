//! Probing over a link in the simulator, in virtual time: for tests, and to try a description out.

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Progress, Supervisor};
use trunkline_metrics::Recorder;

use crate::plan::Place;
use crate::probing::Prober;

/// A path that is described by the keys of a link, and that the learner does not look into.
#[derive(Clone, Debug)]
pub struct Simulated {
    keys: String,
    seed: u64,
    runs: u32,
}

impl Simulated {
    /// The path with these keys of a link, as in a profile. Its random numbers are of `seed`.
    pub fn new(keys: &str, seed: u64) -> Simulated {
        Simulated { keys: keys.to_owned(), seed, runs: 0 }
    }
}

struct Never;

impl Supervisor for Never {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}

impl Prober for Simulated {
    fn place(&self) -> Place {
        // Keys of the link stand before its tables.
        let link = format!("[link.path]\nbetween = [\"here\", \"there\"]\n{}", self.keys);
        let link =
            link.replace("[forward]", "[link.path.forward]").replace("[backward]", "[link.path.backward]");
        Place { link, ..Place::default() }
    }

    fn is_virtual(&self) -> bool {
        true
    }

    fn run(&mut self, experiment: &Experiment, recorder: &mut (dyn Recorder + Send)) -> Result<(), String> {
        let point = experiment.points.first();
        // Each run has draws of its own, as each minute on a path has.
        self.runs += 1;
        let seed = Seed::new(self.seed, self.runs);
        trunkline_simulator::run(&point.scenario, seed, recorder, &mut Never)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}
