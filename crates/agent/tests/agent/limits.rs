//! What the owner of a host does not allow.

use trunkline_agent::Config;
use trunkline_control::{FromAgent, RefusalKind, ToAgent};
use trunkline_core::Bytes;

use crate::support::{Ground, VOICE, experiment, offer, part, prepare, tally};

const LIMITED: &str = "[limits]\nrate = \"1 Mbit/s\"\nflows = 10\nduration = \"5 s\"\n[controller.studio]\nto = [\"127.0.0.3\"]\n";

#[test]
fn parts_that_ask_for_too_much_do_not_begin() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", LIMITED), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let (mut to_near, mut to_far) = (desk.connect(&near), desk.connect(&far));
    let endpoint = to_far.offer(&far, &part(0), &near);
    let mut why = |experiment: &str, address: &str| {
        let mut far = endpoint.clone();
        far.address = address.to_owned();
        to_near.say(prepare(&part(0), experiment, far));
        let refusal = to_near.refusal();
        (refusal.kind, refusal.why)
    };
    let many = format!("count = 11\n{VOICE}");
    assert_eq!(
        why(&experiment("1 s", &many), &far.address),
        (RefusalKind::Limit, "the part holds 11 conversations, and the owner of near allows 10".into())
    );
    let fast = "count = 2\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 8 }";
    assert_eq!(
        why(&experiment("1 s", fast), &far.address),
        (RefusalKind::Limit, "the part sends 1408 kbit/s, and the owner of near allows 1000 kbit/s".into()),
    );
    assert_eq!(
        why(&experiment("30 s", VOICE), &far.address).1,
        "the part takes up to 30.5 s, and the owner of near allows parts of at most 5 s"
    );
    let (kind, text) = why(&experiment("1 s", VOICE), "127.0.0.1:4781");
    assert_eq!(kind, RefusalKind::Permission);
    assert_eq!(
        text,
        "the owner of near lets the controller studio have nothing sent to 127.0.0.1: only 127.0.0.3"
    );
    assert_eq!(why(&experiment("1 s", VOICE), "224.0.0.1:4781").0, RefusalKind::Permission);
    assert_eq!(near.kept(), 0);
}

#[test]
fn far_ends_are_judged_too() {
    let ground = Ground::new();
    let far = ground.agent("far", "127.0.0.3", LIMITED);
    let near = ground.agent("near", "127.0.0.2", "");
    let desk = ground.controller("studio", &[&near, &far]);
    let (mut to_near, mut to_far) = (desk.connect(&near), desk.connect(&far));
    to_far.say(ToAgent::Offer(offer(&part(0), &near)));
    assert_eq!(to_far.refusal().kind, RefusalKind::Limit, "a minute");
    let mut short = offer(&part(0), &near);
    short.duration = trunkline_core::Duration::from_secs(5);
    to_far.say(ToAgent::Offer(short));
    let FromAgent::Offered { token, .. } = to_far.hear() else { panic!("not offered") };
    // The near end comes from an address that the owner of the far end does not want.
    let endpoint = trunkline_control::message::FarEndpoint {
        address: far.address.clone(),
        fingerprint: far.fingerprint,
        token,
    };
    to_near.say(prepare(&part(0), &experiment("1 s", VOICE), endpoint));
    let refusal = to_near.refusal();
    assert_eq!(refusal.kind, RefusalKind::Permission);
    assert!(
        refusal.why.starts_with("the owner of far lets the controller studio have nothing sent to 127.0.0."),
        "{}",
        refusal.why
    );
}

#[test]
fn a_greedy_flow_beyond_the_rate_is_ended_and_what_it_measured_is_kept() {
    let ground = Ground::new();
    let (near, far) = (
        ground.agent("near", "127.0.0.2", "[controller.studio]\nrate = \"500 kbit/s\"\n"),
        ground.agent("far", "127.0.0.3", ""),
    );
    let desk = ground.controller("studio", &[&near, &far]);
    let mut line = desk.connect(&near);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
    let bulk = "transport = \"tcp\"\nsource = { kind = \"bulk\", message = \"8 KiB\" }";
    line.prepare(&part(0), &experiment("30 s", bulk), endpoint);
    line.attach(&part(0), 0);
    line.start(&part(0));
    match line.hear() {
        FromAgent::Failed { refusal, outcome, .. } => {
            assert_eq!(refusal.kind, RefusalKind::Limit);
            assert!(
                refusal.why.starts_with(
                    "the part sends more than the 500 kbit/s that the owner of near leaves it; "
                ),
                "{}",
                refusal.why
            );
            assert!(outcome.is_some());
        }
        said => panic!("{said:?}"),
    }
    assert!(tally(&line.chunks).sent > 0);
}

#[test]
fn a_full_disk_ends_the_part_and_what_was_recorded_until_then_is_kept() {
    let ground = Ground::new();
    let text = "name = \"near\"\nlisten = \"127.0.0.2:0\"\n";
    let mut config = Config::parse("agent.toml", text, "host").unwrap();
    config.limits.disk = Bytes(5_000);
    let (near, far) = (ground.agent_with(config), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let mut line = desk.connect(&near);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
    line.prepare(&part(0), &experiment("30 s", VOICE), endpoint);
    line.attach(&part(0), 0);
    line.start(&part(0));
    match line.hear() {
        FromAgent::Failed { refusal, outcome, chunks, .. } => {
            assert_eq!(refusal.kind, RefusalKind::DiskFull);
            assert!(
                refusal.why.starts_with(
                    "near cannot keep what is measured: the 5000 B that the owner of the host lets its agent"
                ),
                "{}",
                refusal.why
            );
            assert!(outcome.is_some());
            assert_eq!(chunks, line.chunks.len() as u64);
        }
        said => panic!("{said:?}"),
    }
    assert!(tally(&line.chunks).sent > 0);
    line.say(ToAgent::Status);
    match line.hear() {
        FromAgent::Status(status) => {
            assert!(status.notices.iter().any(|notice| notice.text.contains("cannot keep")), "{status:?}");
            assert!(status.spool.count() <= 5_000);
        }
        said => panic!("{said:?}"),
    }
}
