//! Custom sources and loss models: functions of the program that runs the experiment.

mod support;

use std::sync::Arc;

use support::{GoOn, Log, experiment, flow, simulate};
use trunkline_core::custom::{Batches, Function};
use trunkline_core::{Custom, Duration, Seed};
use trunkline_experiment::{Experiment, Loss, Scenario};

const LINK: &str = "forward.loss = { kind = \"custom\" }";
const FLOW: &str = "[flow.probe]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                    source = { kind = \"custom\", largest = \"200 B\" }";

/// The experiment with these functions.
fn with(source: impl Function<(Duration, u32)> + 'static, loss: impl Function<bool> + 'static) -> Experiment {
    let mut made = experiment(LINK, FLOW);
    let mut scenario = Scenario::clone(&made.points.first().scenario);
    scenario.flows[0].source.custom = Custom::new(source);
    scenario.links[0].directions[0].impairments.loss = Loss::Custom(Custom::new(loss));
    made.points.set(0, scenario);
    made
}

/// Messages of 50, 100, 150 ... bytes, every 10 ms, `count` of them in batches of two.
fn growing(count: u32) -> impl Fn(u64) -> Batches<(Duration, u32)> {
    move |_| {
        let messages: Vec<_> = (1..=count).map(|n| (Duration::from_millis(10), 50 * n)).collect();
        Box::new(messages.chunks(2).map(<[_]>::to_vec).collect::<Vec<_>>().into_iter())
    }
}

/// Every third packet is lost.
fn third(_: u64) -> Batches<bool> {
    Box::new(std::iter::repeat_with(|| vec![false, false, true]))
}

#[test]
fn messages_and_losses_are_those_of_the_functions() {
    let summary = simulate(&with(growing(9), third));
    let probe = flow(&summary, "probe");
    assert_eq!((probe.counts.sent, probe.counts.lost), (9, 3));
    // 50, 100 and 150 bytes, then the largest.
    let log = |of: &Experiment| {
        let mut log = Log::default();
        support::run(&of.points.first().scenario, 7, &mut log, &mut GoOn);
        log.0
    };
    assert_eq!(log(&with(growing(9), third)), log(&with(growing(9), third)));
}

#[test]
fn functions_get_seeds_of_their_place_and_repetition() {
    let seeds = |repetition| {
        let (kept, keep) = std::sync::mpsc::channel();
        let note = move |seed| {
            let _ = kept.send(seed);
            growing(1)(seed)
        };
        let scenario = Arc::clone(&with(note, third).points.first().scenario);
        trunkline_simulator::run(&scenario, Seed::new(7, repetition), &mut Log::default(), &mut GoOn)
            .unwrap();
        drop(scenario);
        keep.iter().collect::<Vec<u64>>()
    };
    assert_eq!((seeds(0).len(), seeds(0)), (1, seeds(0)), "it is begun once for its one channel");
    assert_ne!(seeds(0), seeds(1));
}

fn refused(scenario: &Scenario) -> String {
    match trunkline_simulator::run(scenario, Seed::new(7, 0), &mut Log::default(), &mut GoOn) {
        Ok(_) => panic!("it was simulated"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn without_functions_nothing_is_simulated() {
    let scenario = &Arc::clone(&experiment(LINK, FLOW).points.first().scenario);
    let expected = "flow `probe`, source: `custom` needs a function; in Python, provide one with `Experiment.source` or \
                    `Experiment.loss`";
    assert_eq!(refused(scenario), expected);
    assert_eq!(trunkline_simulator::check(scenario).unwrap_err().to_string(), expected);
}

/// A function that fails at once.
struct Failing;

impl Function<bool> for Failing {
    fn batches(&self, _: u64) -> Batches<bool> {
        Box::new(std::iter::empty())
    }

    fn failure(&self) -> Option<String> {
        Some("ValueError: no".to_owned())
    }
}

#[test]
fn a_failure_ends_the_simulation() {
    assert_eq!(
        refused(&with(growing(9), Failing).points.first().scenario),
        "link `trunk`, loss: ValueError: no"
    );
}
