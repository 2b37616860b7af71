//! Hosts that run outside the simulator: what is left of a run in which one of them fails.

mod support;

use support::{GoOn, Log, parse};
use trunkline_core::{Duration, Packet, Port, Seed, Time};
use trunkline_experiment::{PathStep, Scenario};
use trunkline_simulator::{GuestFailure, GuestPacket, Guests};

/// A guest that fails at its first event.
struct Failing(Time);

impl Guests for Failing {
    fn next_event(&self) -> Option<Time> {
        Some(self.0)
    }

    fn run(&mut self, _: Time, _: Time, _: &mut Vec<GuestPacket>) -> Result<(), GuestFailure> {
        Err(GuestFailure("host `c`: the kernel has ended".to_owned()))
    }

    fn is_guest(&self, host: usize) -> bool {
        host == 2
    }

    fn receive(&mut self, _: Time, _: usize, _: Port, _: Packet) -> Result<(), GuestFailure> {
        Ok(())
    }

    fn forward(&self, _: usize, _: &Packet) -> Option<PathStep> {
        None
    }
}

#[test]
fn what_was_measured_until_a_guest_failed_is_kept() {
    let experiment = parse(
        "name = \"guests\"\nduration = \"10 s\"\n[hosts]\na = {}\nb = {}\nc = { kernel = \"linux\" }\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n[link.other]\nbetween = [\"b\", \"c\"]\nrate = \"1 Mbit/s\"\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\" }\n",
    );
    let scenario: &Scenario = &experiment.points.first().scenario;
    let (mut log, mut guests) = (Log::default(), Failing(Time::from_nanos(3_000_000_000)));
    let (outcome, failed) =
        trunkline_simulator::run_with(scenario, Seed::new(1, 0), Some(&mut guests), &mut log, &mut GoOn)
            .expect("the simulator has all of it");
    assert_eq!(failed, Some(GuestFailure("host `c`: the kernel has ended".to_owned())));
    assert_eq!((outcome.partial, outcome.duration), (true, Duration::from_secs(3)));
    assert!(log.0.len() > 100, "{} observations of three seconds of a call", log.0.len());
}
