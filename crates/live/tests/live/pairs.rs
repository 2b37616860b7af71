//! Several sessions as one run.

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};

use trunkline_core::Seed;
use trunkline_experiment::Scenario;
use trunkline_live::{FarEnd, LiveError, LiveOptions, Pair, Place, run_pairs};
use trunkline_metrics::DriverOutcome;
use trunkline_testkit::real_time::in_real_time;

use crate::support::{GoOn, Memory, process, scenario, scenario_with};

/// A part of this host that counts what it is asked to do.
#[derive(Default)]
struct Part {
    run: AtomicUsize,
    spawned: AtomicUsize,
    is_closed: bool,
}

impl Place for Part {
    fn run(&self, work: Box<dyn FnOnce() + Send + '_>) -> io::Result<()> {
        self.run.fetch_add(1, Ordering::Relaxed);
        if self.is_closed {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        work();
        Ok(())
    }

    fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.spawned.fetch_add(1, Ordering::Relaxed);
        command.spawn()
    }
}

/// The first flow from one part to the other, and the rest back.
fn run(
    scenario: &Scenario,
    parts: &[Part; 2],
    far_end: FarEnd,
) -> (Memory, Result<DriverOutcome, LiveError>) {
    let [a, b] = parts.each_ref().map(|part| (part as &dyn Place, Ipv4Addr::LOCALHOST.into()));
    let pairs = [
        Pair { flows: vec![0], near: a, far: b },
        Pair { flows: (1..scenario.flows.len()).collect(), near: b, far: a },
    ];
    let mut memory = Memory::default();
    let options = LiveOptions::new(far_end);
    let outcome = run_pairs(scenario, Seed::new(1, 0), &pairs, &options, &mut memory, &mut GoOn);
    (memory, outcome)
}

const THERE: &str =
    "[flow.there]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\ncount = 2\n";
const BACK: &str = "[flow.back]\nfrom = \"b\"\nto = \"a\"\ntransport = \"tcp\"\nsource = \"voice\"\n\
                    [flow.circuit]\nfrom = \"b\"\nto = \"a\"\ntransport = \"urp\"\nsource = \"voice\"\n";

#[test]
fn flows_of_all_pairs_are_one_run() {
    in_real_time(|| {
        let scenario = scenario("300 ms", &format!("{THERE}{BACK}"));
        let parts = [Part::default(), Part::default()];
        let (memory, outcome) = run(&scenario, &parts, process());
        let outcome = outcome.unwrap();
        assert_eq!(memory.all_arrived(), 30 * 4);
        assert!(!outcome.partial && outcome.stalls.is_some());
        assert_eq!((outcome.duration, outcome.flows.len()), (scenario.duration, 3));
        assert!(outcome.flows[1].transport_counters["segments-sent"] > 0, "{:?}", outcome.flows);
        for part in parts {
            assert_eq!((part.run.into_inner(), part.spawned.into_inner()), (1, 1));
        }
    });
}

#[test]
fn the_flow_with_which_the_sending_ends_ends_it_everywhere() {
    let ask = "[flow.ask]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nreflect = true\n\
               source = { kind = \"interactive\", messages = 3 }\n";
    let scenario = scenario_with("until = \"ask\"\n", "20 s", &format!("{ask}{BACK}"));
    let (_, outcome) = run(&scenario, &Default::default(), FarEnd::Thread);
    let outcome = outcome.unwrap();
    assert!(!outcome.partial && outcome.duration < scenario.duration, "{outcome:?}");
}

#[test]
fn a_place_that_cannot_be_entered_ends_the_run_before_it_begins() {
    let scenario = scenario("20 s", &format!("{THERE}{BACK}"));
    let parts = [Part { is_closed: true, ..Part::default() }, Part::default()];
    let (memory, outcome) = run(&scenario, &parts, process());
    let error = outcome.unwrap_err().to_string();
    assert!(error.starts_with("cannot enter the near end's host"), "{error}");
    assert_eq!(memory.all_arrived(), 0);
}
