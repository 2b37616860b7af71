//! Parts from what is asked to what is collected, and what is refused.

use trunkline_control::facts::PartState;
use trunkline_control::{FromAgent, RefusalKind, ToAgent};
use trunkline_metrics::DriverOutcome;

use crate::support::{Ground, VOICE, experiment, offer, part, prepare, tally};

#[test]
fn a_part_is_executed_streamed_and_discarded() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let (mut to_near, mut to_far) = (desk.connect(&near), desk.connect(&far));
    let id = part(0);
    let endpoint = to_far.offer(&far, &id, &near);
    to_near.prepare(&id, &experiment("1 s", VOICE), endpoint);

    to_near.say(ToAgent::Facts);
    match to_near.hear() {
        FromAgent::Facts(facts) => {
            assert_eq!((facts.name.as_str(), facts.busy.parts, facts.busy.conversations), ("near", 1, 1));
        }
        said => panic!("{said:?}"),
    }
    to_near.attach(&id, 0);
    to_near.start(&id);
    let finished = match to_near.hear() {
        FromAgent::Finished(finished) => finished,
        said => panic!("{said:?}"),
    };
    let outcome: DriverOutcome = serde_json::from_str(&finished.outcome).unwrap();
    assert!(!outcome.partial && outcome.flows.len() == 1, "{outcome:?}");
    assert_eq!(finished.chunks, to_near.chunks.len() as u64);
    let tally = tally(&to_near.chunks);
    assert_eq!(tally.sent, 100);
    assert!(tally.received >= 90, "{tally:?}");

    // It is kept until nobody wants it, and acknowledging is not that.
    to_near.say(ToAgent::Ack { part: id.clone(), through: finished.chunks - 1 });
    to_near.say(ToAgent::Parts);
    match to_near.hear() {
        FromAgent::Parts(parts) => {
            assert_eq!(
                (parts.len(), parts[0].state, parts[0].chunks),
                (1, PartState::Finished, finished.chunks)
            );
        }
        said => panic!("{said:?}"),
    }
    to_near.attach(&id, finished.chunks);
    assert_eq!(to_near.hear(), FromAgent::Finished(finished));
    to_near.say(ToAgent::Discard { part: id.clone() });
    assert_eq!(to_near.hear(), FromAgent::Discarded { part: id });
    assert_eq!(near.kept(), 0);
}

#[test]
fn several_controllers_measure_at_once_and_do_not_see_each_other() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desks = ["studio", "hall"].map(|name| ground.controller(name, &[&near, &far]));
    let mut lines = desks.each_ref().map(|desk| desk.connect(&near));
    for (point, (desk, line)) in (0..).zip(desks.iter().zip(&mut lines)) {
        let endpoint = desk.connect(&far).offer(&far, &part(point), &near);
        line.prepare(&part(point), &experiment("1 s", VOICE), endpoint);
        line.attach(&part(point), 0);
    }
    for (point, line) in (0..).zip(&mut lines) {
        line.start(&part(point));
    }
    // What is not one's own is not there.
    lines[0].say(ToAgent::Stop { part: part(1) });
    lines[0].say(ToAgent::Discard { part: part(1) });
    assert_eq!(lines[0].hear(), FromAgent::Discarded { part: part(1) });
    lines[0].attach(&part(1), 0);
    assert_eq!(lines[0].refusal().why, "there is no such part of studio on near");
    for line in &mut lines {
        assert!(matches!(line.hear(), FromAgent::Finished(_)));
        assert_eq!(tally(&line.chunks).sent, 100);
    }
}

#[test]
fn what_cannot_begin_is_refused_with_a_reason_and_leaves_nothing() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let (mut to_near, mut to_far) = (desk.connect(&near), desk.connect(&far));
    let endpoint = to_far.offer(&far, &part(0), &near);

    to_near.say(prepare(&part(0), "name = 3", endpoint.clone()));
    let refusal = to_near.refusal();
    assert_eq!(refusal.kind, RefusalKind::Input);
    assert!(
        refusal.why.contains("the experiment:1:8: `name` must be a text, not the number 3"),
        "{}",
        refusal.why
    );

    let mut wrong = endpoint.clone();
    wrong.token = "0".repeat(64);
    to_near.say(prepare(&part(0), &experiment("1 s", VOICE), wrong));
    let refusal = to_near.refusal();
    assert_eq!(refusal.kind, RefusalKind::Token);
    assert!(refusal.why.contains("invalid token"), "{}", refusal.why);

    let mut nobody = endpoint.clone();
    nobody.address = "127.0.0.4:1".into();
    to_near.say(prepare(&part(0), &experiment("1 s", VOICE), nobody));
    let refusal = to_near.refusal();
    assert_eq!(refusal.kind, RefusalKind::FarEnd);
    assert!(refusal.why.starts_with("near cannot reach the far end: "), "{}", refusal.why);

    let mut another = endpoint.clone();
    another.fingerprint = near.fingerprint;
    to_near.say(prepare(&part(0), &experiment("1 s", VOICE), another));
    assert!(to_near.refusal().why.contains("a different key"), "the far end is not who it should be");

    to_near.say(ToAgent::Start { part: part(0), at: 0 });
    assert!(to_near.refusal().why.contains("not prepared"));
    assert_eq!(near.kept(), 0);

    // None of this has used up the token.
    to_near.prepare(&part(0), &experiment("1 s", VOICE), endpoint.clone());
    to_near.attach(&part(0), 0);
    to_near.say(ToAgent::Stop { part: part(0) });
    match to_near.hear() {
        FromAgent::Failed { refusal, chunks: 0, .. } => {
            assert_eq!(refusal.why, "it was stopped before it started")
        }
        said => panic!("{said:?}"),
    }
    to_near.say(ToAgent::Discard { part: part(0) });
    to_near.hear();
    // But that has.
    to_near.say(prepare(&part(0), &experiment("1 s", VOICE), endpoint));
    assert_eq!(to_near.refusal().kind, RefusalKind::Token);
}

#[test]
fn who_is_not_known_gets_nothing_and_who_is_revoked_no_more() {
    let ground = Ground::new();
    let near = ground.agent("near", "127.0.0.2", "");
    let stranger = ground.controller("stranger", &[]);
    let refused = stranger.try_connect(&near.address, &near.fingerprint).err().unwrap();
    assert!(
        refused
            .to_string()
            .contains("this controller is not enrolled at near; run `trunkline agent pair` there"),
        "{refused}"
    );

    let desk = ground.controller("studio", &[&near]);
    let mut line = desk.connect(&near);
    line.say(ToAgent::Offer(offer(&part(0), &near)));
    assert!(matches!(line.hear(), FromAgent::Offered { .. }));
    let controllers = near.state.join("controllers");
    trunkline_control::Peers::open(&controllers).unwrap().remove("studio").unwrap();
    // Within a second or two it is shut out.
    while line.next_within(trunkline_core::Duration::from_secs(20)).is_some() {}
    assert!(desk.try_connect(&near.address, &near.fingerprint).is_err());
}
