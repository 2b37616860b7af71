//! What the owner of a host does not allow.

use std::net::{SocketAddr, UdpSocket};

use trunkline_agent::Config;
use trunkline_control::message::{FarEndpoint, Prepare};
use trunkline_control::{FromAgent, RefusalKind, ToAgent};
use trunkline_core::Bytes;

use crate::support::{Ground, PATIENCE, VOICE, experiment, offer, part, prepare, tally};

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
        (RefusalKind::Limit, "the part has 11 conversations, but the owner of near allows 10".into())
    );
    let fast = "count = 2\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 8 }";
    assert_eq!(
        why(&experiment("1 s", fast), &far.address),
        (RefusalKind::Limit, "the part sends 1024 kbit/s, but the owner of near allows 1 Mbit/s".into()),
    );
    assert_eq!(
        why(&experiment("30 s", VOICE), &far.address).1,
        "the part takes up to 30.5 s, but the owner of near allows parts of at most 5 s"
    );
    let (kind, text) = why(&experiment("1 s", VOICE), "127.0.0.1:4781");
    assert_eq!(kind, RefusalKind::Permission);
    assert_eq!(
        text,
        "the owner of near does not allow the controller studio to send to 127.0.0.1: only 127.0.0.3; to allow it, the owner \
         adds the address to `to` in [controller.studio] of the agent's configuration"
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
        refusal.why.starts_with("the owner of far does not allow the controller studio to send to 127.0.0."),
        "{}",
        refusal.why
    );
}

/// What a limit on the sending host, on the far one, or on both leaves of a flow that would take everything.
#[test]
fn greedy_flows_are_slowed_to_what_the_owners_allow_and_go_on() {
    const BULK: &str = "count = 2\ntransport = \"tcp\"\nsource = { kind = \"bulk\", message = \"8 KiB\" }";
    let echoed = format!("{BULK}\nreflect = true");
    let own = "[controller.studio]\nrate = \"2 Mbit/s\"\n";
    for (near, far, flow, counter) in [
        (own, "", BULK, trunkline_live::HELD_HERE),
        ("[limits]\nrate = \"2 Mbit/s\"\n", "", &echoed, trunkline_live::HELD_HERE),
        ("", own, &echoed, trunkline_live::HELD_THERE),
    ] {
        let ground = Ground::new();
        let (near, far) = (ground.agent("near", "127.0.0.2", near), ground.agent("far", "127.0.0.3", far));
        let desk = ground.controller("studio", &[&near, &far]);
        let mut line = desk.connect(&near);
        let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
        line.prepare(&part(0), &experiment("1 s", flow), endpoint);
        line.attach(&part(0), 0);
        line.start(&part(0));
        let FromAgent::Finished(finished) = line.hear() else { panic!("not finished") };
        let outcome: trunkline_metrics::DriverOutcome = serde_json::from_str(&finished.outcome).unwrap();
        assert!(!outcome.partial);
        assert!(outcome.flows[0].transport_counters[counter] > 0, "{:?}", outcome.flows[0]);
        let tally = tally(&line.chunks);
        let counted = if counter == trunkline_live::HELD_HERE { tally.sent } else { tally.received };
        // A second and the half of draining are 375 KB, and 8.4 KB is a message.
        assert!((2..60).contains(&counted), "{tally:?}");
    }
}

/// Two parts that would both take everything share what there is.
#[test]
fn greedy_parts_share_a_limit_and_leave_paced_ones_theirs() {
    let ground = Ground::new();
    let near = ground.agent("near", "127.0.0.2", "[limits]\nrate = \"2 Mbit/s\"\n");
    let far = ground.agent("far", "127.0.0.3", "");
    let desk = ground.controller("studio", &[&near, &far]);
    let bulk = "transport = \"tcp\"\nsource = { kind = \"bulk\", message = \"8 KiB\" }";
    let voice = "count = 10\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }";
    let flows = [bulk, voice, bulk];
    let mut lines: Vec<_> = (0..3).map(|_| desk.connect(&near)).collect();
    for (point, line) in (0..).zip(&mut lines) {
        let mut terms = offer(&part(point), &near);
        terms.conversations = 10;
        let mut to_far = desk.connect(&far);
        to_far.say(ToAgent::Offer(terms));
        let FromAgent::Offered { token, .. } = to_far.hear() else { panic!("not offered") };
        let endpoint = trunkline_control::message::FarEndpoint {
            address: far.address.clone(),
            fingerprint: far.fingerprint,
            token,
        };
        line.prepare(&part(point), &experiment("1 s", flows[point as usize]), endpoint);
        line.attach(&part(point), 0);
    }
    (0..).zip(&mut lines).for_each(|(point, line)| line.start(&part(point)));
    let sent: Vec<u64> = lines
        .iter_mut()
        .map(|line| {
            let said = line.hear();
            assert!(matches!(said, FromAgent::Finished(_)), "{said:?}");
            tally(&line.chunks).sent
        })
        .collect();
    assert_eq!(sent[1], 1000, "voice has its 1.28 Mbit/s");
    // 0.72 Mbit/s for a second are 90 KB.
    assert!(sent[0] > 0 && sent[2] > 0 && sent[0] + sent[2] < 20, "{sent:?}");
}

#[test]
fn a_full_disk_ends_the_part_and_what_was_recorded_until_then_is_kept() {
    let ground = Ground::new();
    let text = "name = \"near\"\nlisten = \"127.0.0.2:0\"\n";
    let mut config = Config::parse("agent.toml", text, "host").unwrap();
    config.limits.disk = Bytes(90_000);
    config.others.to = vec!["127.0.0.0/8".parse().unwrap()];
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
                    "near cannot store the results: the disk limit of 90 KB set by the host's owner"
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
            assert!(status.notices.iter().any(|notice| notice.text.contains("cannot store")), "{status:?}");
            assert!(status.spool.count() <= 90_000);
        }
        said => panic!("{said:?}"),
    }
}

#[test]
fn what_is_too_large_in_a_message_ends_the_connection_and_not_the_agent() {
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let far = desk.connect(&far).offer(&far, &part(1), &near);
    let text = experiment("1 s", VOICE);
    let named = |length: usize| text.replacen("\"test\"", &format!("\"{}\"", "A".repeat(length)), 1);
    let with = |change: &dyn Fn(&mut Prepare)| {
        let ToAgent::Prepare(mut asked) = prepare(&part(1), &text, far.clone()) else {
            panic!("not a request")
        };
        change(&mut asked);
        ToAgent::Prepare(asked)
    };
    let files = |count: usize| (0..count).map(|number| (number.to_string(), Vec::new())).collect();
    for (what, said) in [
        ("an experiment", prepare(&part(1), &named(8 << 20), far.clone())),
        ("an address", prepare(&part(1), &text, FarEndpoint { address: "a".repeat(10_000), ..far.clone() })),
        ("flows", with(&|asked| asked.flows = vec![0; 200_000])),
        ("axes", with(&|asked| asked.choice = vec![0; 1000])),
        ("files", with(&|asked| asked.files = files(10_000))),
        ("a traceparent", with(&|asked| asked.traceparent = Some("0".repeat(1000)))),
    ] {
        let mut line = desk.connect(&near);
        line.say(said);
        let answer = line.next_within(PATIENCE);
        assert!(answer.is_none(), "{what}: {answer:?}");
    }
    // Of what is short enough, too much is refused, and the connection goes on.
    let mut line = desk.connect(&near);
    line.say(with(&|asked| asked.flows = vec![0; 60_000]));
    assert_eq!(line.refusal().why, "the flow with the index 0 is requested twice");
    line.say(prepare(&part(1), &named(1000), far.clone()));
    assert!(line.refusal().why.contains("`name` has 1000 characters"));
    line.say(ToAgent::Facts);
    assert!(matches!(line.hear(), FromAgent::Facts(_)));
}

/// Those from which this host sends into private networks.
fn own_addresses() -> impl Iterator<Item = String> {
    let from = |(any, to): (&str, &str)| {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(to).ok()?;
        Some(SocketAddr::new(socket.local_addr().ok()?.ip(), 22).to_string())
    };
    let networks = ["10.0.0.1:9", "172.16.0.1:9", "192.168.0.1:9"].map(|to| ("0.0.0.0:0", to));
    networks.into_iter().chain([("[::]:0", "[fd00::1]:9")]).filter_map(from)
}

#[test]
fn an_agent_is_no_port_scanner() {
    let ground = Ground::new();
    let plain = ground.agent("plain", "127.0.0.2", "[controller-default]\nrate = \"1 Mbit/s\"\n");
    let desk = ground.controller("studio", &[&plain]);
    let mut line = desk.connect(&plain);
    let far = |address: &str| FarEndpoint {
        address: address.to_owned(),
        fingerprint: plain.fingerprint,
        token: "0".repeat(64),
    };
    // By default neither this host, also by its address in a private network, nor its links, nor the Internet.
    let others = [
        "127.0.0.1:22",
        "localhost:22",
        "[::ffff:127.0.0.1]:22",
        "169.254.169.254:80",
        "198.51.100.1:22",
        "[::1]:22",
        "[fe80::1]:22",
    ];
    for address in others.map(str::to_owned).into_iter().chain(own_addresses()) {
        line.say(prepare(&part(0), &experiment("1 s", VOICE), far(&address)));
        let refusal = line.refusal();
        assert_eq!(refusal.kind, RefusalKind::Permission, "{address}: {}", refusal.why);
    }
    // And where it may, not often.
    let open = ground.agent("open", "127.0.0.3", "");
    ground.enrol("studio", desk.identity.fingerprint(), "open");
    let mut line = desk.connect(&open);
    let mut tried = 0;
    let refusal = (0..50)
        .find_map(|port| {
            line.say(prepare(
                &part(port),
                &experiment("1 s", VOICE),
                far(&format!("127.0.0.9:{}", 1 + port)),
            ));
            let refusal = line.refusal();
            tried += 1;
            refusal.why.contains("did not reach an agent").then_some(refusal)
        })
        .expect("it goes on and on");
    assert_eq!(refusal.kind, RefusalKind::FarEnd);
    assert!((20..25).contains(&tried), "{tried}");
    // What works is not counted.
    let peer = ground.agent("peer", "127.0.0.4", "");
    ground.enrol("studio", desk.identity.fingerprint(), "peer");
    let mut line = desk.connect(&peer);
    let mut to_open = desk.connect(&open);
    for point in 100..125 {
        let endpoint = to_open.offer(&open, &part(point), &peer);
        line.prepare(&part(point), &experiment("1 s", VOICE), endpoint);
        line.say(ToAgent::Discard { part: part(point) });
        assert!(matches!(line.hear(), FromAgent::Discarded { .. }));
    }
}
