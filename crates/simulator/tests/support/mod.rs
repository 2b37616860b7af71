//! Experiments of these tests: written as files, measured by the meter that every run has.

#![allow(dead_code, unreachable_pub, reason = "every test program uses a part of this")]

use trunkline_core::{Duration, FlowId, Seed, Time};
use trunkline_experiment::{Experiment, Progress, Scenario, Supervisor};
use trunkline_metrics::{FlowMeta, FlowSummary, Meter, Observation, Recorder, RepetitionSummary};

/// Hosts `a` and `b`, a link of 1 Mbit/s and 10 ms between them, and what else the test says.
pub fn experiment(link: &str, flows: &str) -> Experiment {
    let text = format!(
        "name = \"test\"\nduration = \"10 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n{link}\n{flows}"
    );
    parse(&text)
}

pub fn parse(text: &str) -> Experiment {
    Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Simulates the only point.
pub fn simulate(experiment: &Experiment) -> RepetitionSummary {
    let scenario = &experiment.points.first().scenario;
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let mut trace = ();
    let mut meter = Meter::new(&metas, &mut trace).with_bundles(&scenario.bundles).with_drain(scenario.drain);
    let outcome = run(scenario, experiment.seed, &mut meter, &mut GoOn);
    meter.finish(outcome)
}

pub fn run(
    scenario: &Scenario,
    seed: u64,
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> trunkline_metrics::DriverOutcome {
    trunkline_simulator::run(scenario, Seed::new(seed, 0), recorder, supervisor)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Returns true if nearly all of the messages were sent that are due in the measured time: a source waits for its connection.
pub fn nearly(sent: u64, due: u64) -> bool {
    sent <= due && 100 * sent >= 98 * due
}

pub fn flow<'s>(summary: &'s RepetitionSummary, name: &str) -> &'s FlowSummary {
    summary.flows.iter().find(|flow| flow.flow == name).unwrap_or_else(|| panic!("no flow {name}"))
}

/// Every observation, in order.
#[derive(Default)]
pub struct Log(pub Vec<(Time, FlowId, Observation)>);

impl Recorder for Log {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        self.0.push((at, flow, what));
    }
}

pub struct GoOn;

impl Supervisor for GoOn {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}
