//! Controllers that come and go while parts run.

use trunkline_control::{FromAgent, RefusalKind, ToAgent};

use crate::support::{Ground, VOICE, experiment, part, tally};

#[test]
fn a_part_goes_on_without_its_controller_and_nothing_of_it_is_lost() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let mut line = desk.connect(&near);
    let id = part(0);
    let endpoint = desk.connect(&far).offer(&far, &id, &near);
    line.prepare(&id, &experiment("3 s", VOICE), endpoint);
    line.attach(&id, 0);
    line.start(&id);
    // The connection with the far end's agent is long closed; now this one is cut at some chunk, again and again.
    let mut chunks = Vec::new();
    for _ in 0..3 {
        while line.chunks.len() < 3 {
            match line.next_within(crate::support::PATIENCE).unwrap() {
                FromAgent::Chunk(chunk) => line.chunks.push(chunk),
                FromAgent::Progress { .. } => {}
                said => panic!("{said:?}"),
            }
        }
        chunks.append(&mut line.chunks);
        drop(line);
        line = desk.connect(&near);
        // What has come is safe, and the rest is wanted.
        line.say(ToAgent::Ack { part: id.clone(), through: chunks.len() as u64 - 1 });
        line.attach(&id, chunks.len() as u64);
    }
    assert!(matches!(line.hear(), FromAgent::Finished(_)));
    chunks.append(&mut line.chunks);
    assert_eq!(tally(&chunks).sent, 300);
}

#[test]
fn what_nobody_waited_for_is_there_for_who_asks_later() {
    let ground = Ground::new();
    let (mut near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let id = part(0);
    {
        let mut line = desk.connect(&near);
        let endpoint = desk.connect(&far).offer(&far, &id, &near);
        line.prepare(&id, &experiment("1 s", VOICE), endpoint);
        line.start(&id);
    }
    // Until it is over.
    let mut line = desk.connect(&near);
    line.attach(&id, 0);
    assert!(matches!(line.hear(), FromAgent::Finished(_)));
    // And after the agent was stopped and started again, for the same controller.
    near.stop();
    let near = ground.agent("near", "127.0.0.2", "");
    let mut line = desk.connect(&near);
    line.attach(&id, 0);
    assert!(matches!(line.hear(), FromAgent::Finished(_)));
    assert_eq!(tally(&line.chunks).sent, 100);
}

#[test]
fn an_agent_that_is_told_to_stop_ends_its_parts_in_order() {
    let ground = Ground::new();
    let (mut near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let mut line = desk.connect(&near);
    let id = part(0);
    let endpoint = desk.connect(&far).offer(&far, &id, &near);
    line.prepare(&id, &experiment("50 s", VOICE), endpoint);
    line.attach(&id, 0);
    line.start(&id);
    while line.chunks.is_empty() {
        if let Some(FromAgent::Chunk(chunk)) = line.next_within(crate::support::PATIENCE) {
            line.chunks.push(chunk);
        }
    }
    let stopping = std::thread::spawn(move || near.stop());
    match line.hear() {
        FromAgent::Failed { refusal, outcome, chunks, .. } => {
            assert_eq!(refusal.kind, RefusalKind::Environment);
            assert_eq!(
                refusal.why,
                "the agent on near was stopped during the measurement; the results so far are kept"
            );
            assert!(outcome.unwrap().contains("\"partial\":true"));
            assert_eq!(chunks, line.chunks.len() as u64);
        }
        said => panic!("{said:?}"),
    }
    stopping.join().unwrap();
    let tally = tally(&line.chunks);
    assert!(tally.sent > 0 && tally.received > 0);
}
