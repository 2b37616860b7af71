//! A scenario from text, a recorder that remembers, and the far end as a program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_core::{Duration, FlowId, Seed, Time};
use trunkline_experiment::{Experiment, Progress, Scenario, Supervisor};
use trunkline_live::{FarEnd, LiveError, LiveOptions};
use trunkline_metrics::{DriverOutcome, Observation, Recorder};

/// The only point of an experiment with these flows, between `a` and `b`.
pub(crate) fn scenario(duration: &str, flows: &str) -> Arc<Scenario> {
    scenario_with("", duration, flows)
}

/// The same, with further keys of the whole.
pub(crate) fn scenario_with(keys: &str, duration: &str, flows: &str) -> Arc<Scenario> {
    let text = format!(
        "name = \"test\"\nduration = \"{duration}\"\nseed = 7\n{keys}[hosts]\na = {{}}\nb = {{}}\n\
         [link.wire]\nbetween = [\"a\", \"b\"]\nrate = \"100 Mbit/s\"\n{flows}"
    );
    let experiment =
        Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    experiment.points.first().scenario.clone()
}

/// The far end as a program of its own: the example beside this test.
pub(crate) fn process() -> FarEnd {
    let mut program: PathBuf = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.push("examples");
    program.push("far-end");
    assert!(
        program.exists(),
        "build {} first: `cargo build -p trunkline-live --examples`",
        program.display()
    );
    FarEnd::Process { program, arguments: Vec::new() }
}

/// One message as the recorder saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) sent: u32,
    pub(crate) refused: u32,
    pub(crate) received: u32,
    /// Payload bytes that arrived where it is measured.
    pub(crate) length: u64,
    pub(crate) payload: Option<Vec<u8>>,
}

/// Remembers every message by flow, channel and sequence.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) messages: BTreeMap<(u32, u16, u32), Seen>,
    /// Flow, channel and bytes of each, in their order.
    pub(crate) transfers: Vec<(u32, u16, u64)>,
    /// By the FIFOs of sources.
    pub(crate) samples_lost: u64,
    pub(crate) send_calls: u64,
    pub(crate) stray: u64,
}

impl Recorder for Memory {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        match what {
            Observation::Sent { channel, sequence, due, .. } => {
                assert!(due <= at, "sent before it was due");
                self.message(flow, channel, sequence).sent += 1;
            }
            Observation::Refused { channel, sequence, .. } => {
                self.message(flow, channel, sequence).refused += 1
            }
            Observation::Received { channel, sequence, sent, reflected, payload } => {
                assert!(sent <= at && reflected <= at, "received before it was sent or reflected");
                let seen = self.message(flow, channel, sequence);
                assert_eq!(seen.sent, 1, "arrival is recorded after departure");
                seen.received += 1;
                seen.length = payload.0;
            }
            Observation::Transferred { channel, began, bytes } => {
                assert!(began <= at, "ended before it began");
                self.transfers.push((flow.0, channel, bytes.0));
            }
            Observation::Overflowed { samples, .. } => self.samples_lost += u64::from(samples),
            Observation::SendCall { .. } => self.send_calls += 1,
            Observation::Stray { bytes } => self.stray += bytes.0,
        }
    }

    fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        self.messages.entry((flow.0, channel, sequence)).or_default().payload = Some(payload.to_vec());
    }
}

impl Memory {
    fn message(&mut self, flow: FlowId, channel: u16, sequence: u32) -> &mut Seen {
        self.messages.entry((flow.0, channel, sequence)).or_default()
    }

    pub(crate) fn of_flow(&self, flow: u32) -> Vec<&Seen> {
        self.messages.range((flow, 0, 0)..(flow + 1, 0, 0)).map(|(_, seen)| seen).collect()
    }

    /// Every message was sent once and received once; says how many there were.
    pub(crate) fn all_arrived(&self) -> usize {
        for (name, seen) in &self.messages {
            assert_eq!((seen.sent, seen.received), (1, 1), "{name:?}: {seen:?}");
        }
        self.messages.len()
    }
}

/// Lets a run go on to its end.
pub(crate) struct GoOn;

impl Supervisor for GoOn {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}

pub(crate) fn run(scenario: &Scenario, far_end: FarEnd) -> (Memory, Result<DriverOutcome, LiveError>) {
    run_with(scenario, &LiveOptions::new(far_end), &mut GoOn)
}

pub(crate) fn run_with(
    scenario: &Scenario,
    options: &LiveOptions,
    supervisor: &mut dyn Supervisor,
) -> (Memory, Result<DriverOutcome, LiveError>) {
    let mut memory = Memory::default();
    let result = trunkline_live::run(scenario, Seed::new(7, 0), options, &mut memory, supervisor);
    (memory, result)
}
