//! What is lost of a run between agents when the controller or an agent is killed again and again: `resume [KILLS]
//! [POINTS]`, 20 kills over a run of 100 short points unless told otherwise.
//!
//! Controller and agents are processes of this program on addresses of this machine, and `kill -9` is what ends them: the
//! controller is resumed, the agent started again. In the end every point must be in the store, with every message of every
//! flow in it once.

#[path = "../../../crates/runner/tests/agents/support.rs"]
mod support;

use std::time::Instant;

use support::{AgentProcess, Ground, account, be_what_is_asked, is_finished, pause, short, stored};
use trunkline_core::{Seed, Stream};

/// A point measures for so long, and sends so many messages in each of its flows.
const DURATION: &str = "300 ms";
const MESSAGES: u32 = 30;

fn main() {
    if be_what_is_asked() {
        return;
    }
    let number = |place: usize, preset: usize| {
        std::env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(preset)
    };
    let (kills, points) = (number(1, 20), number(2, 100));
    say(
        "| killed | times | starts of the controller | points | whole | taken from agents | records | lost | doubled | s |",
    );
    say("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (victim, name) in [(Victim::Controller, "controller"), (Victim::Agent, "agent")] {
        say(&run(victim, name, kills, points));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Controller,
    Agent,
}

/// One run with so many kills; a row of the table.
fn run(victim: Victim, name: &str, kills: usize, points: usize) -> String {
    let began = Instant::now();
    let ground = Ground::new(&[]);
    let (mut a, b) = (ground.agent("a", "127.0.0.2"), ground.agent("b", "127.0.0.3"));
    ground.write(&short(points, DURATION, &a.address.to_string(), &b.address.to_string()));
    let mut moments = Seed::new(9, 0).stream(name);
    let (mut killed, mut starts, mut taken) = (0, 0, 0);
    // A run that does not come to its end at all ends here.
    while starts < 3 * kills + 10 {
        starts += 1;
        let mut controller = ground.controller();
        while !controller.has_ended() {
            wait(&mut moments, || controller.has_ended());
            if killed == kills || controller.has_ended() {
                continue;
            }
            killed += 1;
            match victim {
                Victim::Controller => break,
                Victim::Agent => restart(&mut a),
            }
        }
        taken += controller.kill().iter().filter(|line| line.contains("taken from the agents")).count();
        if is_finished(ground.folder()) {
            break;
        }
    }
    let account = account(&stored(ground.folder()), MESSAGES);
    format!(
        "| {name} | {killed} | {starts} | {} | {} | {taken} | {} | {} | {} | {:.0} |",
        account.points,
        account.whole,
        account.records,
        account.lost,
        account.doubled,
        began.elapsed().as_secs_f64()
    )
}

/// A random time of up to six seconds.
fn wait(moments: &mut Stream, mut is_over: impl FnMut() -> bool) {
    for _ in 0..moments.bits() % 120 + 5 {
        if is_over() {
            return;
        }
        pause(50);
    }
}

fn restart(agent: &mut AgentProcess) {
    agent.kill();
    pause(100);
    agent.start();
}

#[allow(clippy::print_stdout, reason = "the table")]
fn say(line: &str) {
    println!("{line}");
}
