//! Every point of every file in `examples/` is simulated, for a moment.

#![allow(clippy::disallowed_methods, reason = "a test may read the examples")]

mod support;

use std::path::{Path, PathBuf};

use support::GoOn;
use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Files, FilesError};
use trunkline_metrics::{FlowMeta, Meter};

/// Files beside the examples.
struct Beside(PathBuf);

impl Files for Beside {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        std::fs::read(self.0.join(path)).map_err(|e| FilesError::new(e.to_string()))
    }
}

#[test]
fn every_point_of_every_example_is_simulated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(&folder).expect("the examples are part of the repository");
    let mut points = 0;
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let name = path.display().to_string();
        let experiment = Experiment::parse(&text, &name, &Beside(folder.clone()));
        let experiment = experiment.unwrap_or_else(|problems| panic!("{problems}"));
        for point in experiment.points.iter() {
            let mut scenario = (*point.scenario).clone();
            (scenario.duration, scenario.drain) = (Duration::from_millis(200), Duration::from_millis(100));
            let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
            let mut trace = ();
            let mut meter = Meter::new(&metas, &mut trace).with_bundles(&scenario.bundles);
            let outcome = support::run(&scenario, experiment.seed, &mut meter, &mut GoOn);
            let summary = meter.finish(outcome);
            assert!(!summary.partial, "{name}, point {}", point.index);
            points += 1;
        }
    }
    assert!(points >= 30, "{points} points");
}
