//! An enrolled controller whose messages are damaged: the agent refuses them or ends the connection, and goes on.

use trunkline_control::wire::{Frame, Message, WireError};
use trunkline_control::{FromAgent, ToAgent};
use trunkline_testkit::mutation::{Mutator, panics_of, seed};

use crate::support::{Ground, PATIENCE, VOICE, experiment, offer, part, prepare};

/// A frame as it comes.
struct Raw(Frame);

impl Message for Raw {
    fn to_frame(&self) -> Result<Frame, WireError> {
        Ok(self.0.clone())
    }
    fn from_frame(_: Frame) -> Result<Raw, WireError> {
        Err(WireError::Empty)
    }
}

#[test]
fn damaged_messages_of_a_controller_end_its_connection_and_not_the_agent() {
    let panics = panics_of(&["connection", "part", "stream"]);
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let (studio, other) =
        (ground.controller("studio", &[&near, &far]), ground.controller("other", &[&near, &far]));
    let mut running = studio.connect(&near);
    let endpoint = studio.connect(&far).offer(&far, &part(0), &near);
    running.prepare(&part(0), &experiment("3 s", VOICE), endpoint.clone());
    running.attach(&part(0), 0);
    running.start(&part(0));

    let messages: Vec<Frame> = [
        prepare(&part(1), &experiment("1 s", VOICE), endpoint),
        ToAgent::Offer(offer(&part(2), &far)),
        ToAgent::Discard { part: part(0) },
        ToAgent::Facts,
    ]
    .iter()
    .map(|message| message.to_frame().unwrap())
    .collect();
    let mut mutator = Mutator::new(seed());
    let mut understood = 0;
    for round in 0..120 {
        let mut line = other.connect(&near);
        let mut frame = messages[round % messages.len()].clone();
        for _ in 0..=mutator.below(3) {
            mutator.damage(&mut frame.body);
        }
        if mutator.below(10) == 0 {
            frame.tag = mutator.below(256) as u8;
        }
        line.say_raw(&Raw(frame));
        // The agent may have closed already.
        if line.try_say_raw(&Raw(messages[3].clone())).is_err() {
            continue;
        }
        while let Some(answer) = line.next_within(PATIENCE) {
            if matches!(answer, FromAgent::Facts(_)) {
                understood += 1;
                break;
            }
        }
    }
    assert!(understood > 5, "{understood} connections went on");
    let finished = running.hear();
    assert!(matches!(finished, FromAgent::Finished(_)), "{finished:?}");
    assert_eq!(panics(), 0, "with {} the same happens", seed());
}
