//! Agents and controllers that are killed at random moments: a run ends with every message once, and no agent keeps anything.

use std::time::{Duration, Instant};

use trunkline_testkit::kills::{at_random_moments, moment};

use crate::ground;
use crate::support::{
    AgentProcess, ControllerProcess, Ground, Warnings, account, is_finished, measure, measure_anew, pause,
    short, stored,
};

const POINTS: usize = 3;
/// The number that each flow sends in 300 ms.
const MESSAGES: u32 = 30;
/// A run that nobody disturbs takes a little less.
const LENGTH: Duration = Duration::from_secs(4);
/// No run and no retry takes so long.
const PATIENCE: Duration = Duration::from_secs(90);

fn begin(ground: &Ground) -> (AgentProcess, AgentProcess, ControllerProcess) {
    let (a, b) = (ground.agent("a", "127.0.0.2"), ground.agent("b", "127.0.0.3"));
    ground.write(&short(POINTS, "300 ms", &a.address.to_string(), &b.address.to_string()));
    let controller = ground.controller();
    (a, b, controller)
}

/// Resumes the run until it is complete, and checks all that it has stored.
fn finish(ground: &Ground, agents: [&AgentProcess; 2]) {
    let mut said = Vec::new();
    for _ in 0..5 {
        if is_finished(ground.folder()) {
            break;
        }
        let warnings = Warnings::default();
        said.push(
            measure(ground.folder(), &warnings).map(|outcome| outcome.run.status).map_err(|e| e.to_string()),
        );
    }
    assert!(is_finished(ground.folder()), "it was resumed again and again: {said:?}");
    let account = account(&stored(ground.folder()), MESSAGES);
    assert_eq!((account.points, account.whole, account.doubled), (POINTS, POINTS, 0), "{account:?}");
    // Each message has a record. On a machine that stalls, some may have come after the drain time, as lost ones.
    assert_eq!(account.records, POINTS * 2 * MESSAGES as usize, "{account:?}");
    if !keep_nothing(&agents) {
        // One that died at the end: it learns of it by the next run.
        ground.write(&short(1, "100 ms", &agents[0].address.to_string(), &agents[1].address.to_string()));
        measure_anew(ground.folder()).unwrap();
    }
    assert!(keep_nothing(&agents), "an agent keeps what is stored: {said:?}");
}

/// Waits a while, since agents hear of it when the run has ended.
pub(crate) fn keep_nothing(agents: &[&AgentProcess]) -> bool {
    let began = Instant::now();
    while agents.iter().any(|agent| agent.kept() > 0) {
        if began.elapsed() > Duration::from_secs(5) {
            return false;
        }
        pause(50);
    }
    true
}

/// An agent that did not hear that a repetition is stored keeps it until the next run.
#[test]
fn a_part_that_is_stored_is_forgotten_by_the_next_run() {
    let ground = ground();
    let (mut a, b, mut controller) = begin(&ground);
    let began = Instant::now();
    while a.kept() == 0 {
        assert!(began.elapsed() < PATIENCE && !controller.has_ended());
        pause(5);
    }
    pause(200);
    let copy = ground.folder().join("copy");
    a.copy_spool(&copy);
    while !controller.has_ended() {
        assert!(began.elapsed() < PATIENCE);
        pause(20);
    }
    a.kill();
    a.take_spool(&copy);
    a.start();
    assert!(is_finished(ground.folder()) && a.kept() == 1);
    finish(&ground, [&a, &b]);
}

#[test]
fn an_agent_killed_at_any_moment_loses_and_doubles_nothing() {
    at_random_moments(4, |mutator| {
        let ground = ground();
        let (mut a, mut b, mut controller) = begin(&ground);
        std::thread::sleep(moment(mutator, LENGTH));
        let killed = [&mut a, &mut b].into_iter().nth(mutator.below(2)).unwrap();
        killed.kill();
        std::thread::sleep(moment(mutator, Duration::from_millis(300)));
        killed.start();
        let began = Instant::now();
        while !controller.has_ended() {
            assert!(began.elapsed() < PATIENCE, "the controller hangs: {:?}", controller.kill());
            pause(20);
        }
        drop(controller);
        finish(&ground, [&a, &b]);
    });
}

#[test]
fn a_controller_killed_at_any_moment_loses_and_doubles_nothing() {
    at_random_moments(4, |mutator| {
        let ground = ground();
        let (a, b, controller) = begin(&ground);
        std::thread::sleep(moment(mutator, LENGTH));
        let said = controller.kill();
        let done = said.iter().filter(|line| *line == "done").count();
        if done > 0 {
            let whole = account(&stored(ground.folder()), MESSAGES).whole;
            assert!(whole >= done, "{done} repetitions were done, and {whole} are stored");
        }
        finish(&ground, [&a, &b]);
    });
}
