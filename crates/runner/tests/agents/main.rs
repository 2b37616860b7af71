//! Experiments between agents that are processes of their own, on addresses of this machine: what is measured, and what
//! is left of it when agents and controllers are killed or cut off from each other.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod kills;
mod support;

use std::collections::BTreeMap;
use std::path::Path;

use support::{
    Ground, Relay, Warnings, account, be_what_is_asked, experiment, is_finished, measure, measure_with,
    pause, short, stored,
};
use trunkline_experiment::NamedFiles;
use trunkline_metrics::{FlowSummary, Measured};
use trunkline_store::{Status, StoredRun};
use trunkline_testkit::real_time::in_real_time;

/// What lets this program be an agent or a controller.
const ARGUMENTS: &[&str] =
    &["--exact", "a_process_of_its_own", "--nocapture", "--ignored", "--test-threads=1"];

#[test]
#[ignore = "started by the other tests"]
fn a_process_of_its_own() {
    be_what_is_asked();
}

fn ground() -> Ground {
    Ground::new(ARGUMENTS)
}

/// Between `a`, `b` and `c`: 100 messages a second one way, as many that are reflected, TCP and DCCP.
const FLOWS: &str = "
    [flow.voice]
    from = \"a\"
    to = \"b\"
    transport = \"udp\"
    source = { kind = \"voice\", samples = 80 }
    [flow.echo]
    from = \"c\"
    to = \"a\"
    transport = \"udp\"
    reflect = true
    source = { kind = \"voice\", samples = 80 }
    [flow.bulk]
    from = \"a\"
    to = \"c\"
    transport = \"tcp\"
    source = { kind = \"bulk\", message = \"1 KB\", interval = \"10 ms\" }
    [flow.paced]
    from = \"b\"
    to = \"c\"
    transport = \"dccp\"
    source = { kind = \"voice\", samples = 80 }
    ";

fn flow<'r>(run: &'r StoredRun, name: &str) -> &'r FlowSummary {
    let summary = run.points[0].repetitions[0].summary.as_ref().unwrap();
    summary.flows.iter().find(|flow| flow.flow == name).unwrap()
}

#[test]
fn three_agents_measure_what_one_machine_does() {
    in_real_time(|| {
        let ground = ground();
        let agents = [("a", "127.0.0.2"), ("b", "127.0.0.3"), ("c", "127.0.0.4")];
        let agents = agents.map(|(name, ip)| (name, ground.agent(name, ip)));
        let keys = "duration = \"2 s\"\ndrain = \"1 s\"";
        let hosts: Vec<_> =
            agents.iter().map(|(name, agent)| (*name, Some(agent.address.to_string()))).collect();
        ground.write(&experiment(keys, &hosts, FLOWS));
        let warnings = Warnings::default();
        let outcome = measure(ground.folder(), &warnings).unwrap();
        assert_eq!(outcome.run.status, Status::Complete, "{:?}", warnings.0);
        let between = stored(ground.folder());

        let alone = tempfile::tempdir().unwrap();
        std::fs::write(
            alone.path().join("experiment.toml"),
            experiment(keys, &[("a", None), ("b", None), ("c", None)], FLOWS),
        )
        .unwrap();
        measure(alone.path(), &warnings).unwrap();
        let within = stored(alone.path());

        for name in ["voice", "echo", "bulk", "paced"] {
            let (flow, other) = (flow(&between, name), flow(&within, name));
            assert_eq!(flow.counts.sent, other.counts.sent, "{name}");
            assert_eq!(
                flow.counts.sent,
                flow.counts.received + flow.counts.late,
                "{name}: {:?}",
                flow.counts
            );
            assert_eq!(flow.throughput.offered, other.throughput.offered, "{name}");
            let latency = flow.latency.unwrap();
            assert_eq!(flow.clock_error.is_some(), flow.measured == Measured::OneWay, "{name}");
            assert_eq!(other.clock_error, None, "{name}");
            // On one machine the clocks are one: the bound says how far the figures may be from those of a single clock.
            let bound = flow.clock_error.unwrap_or_default();
            assert!(bound.as_nanos() < 50_000_000 && latency.p50.as_nanos() < 50_000_000 + bound.as_nanos());
        }
        let of_the_machine =
            |warning: &String| warning.contains("its congestion control is this machine's default");
        assert!(warnings.0.lock().unwrap().iter().all(of_the_machine), "{:?}", warnings.0);
        for (name, agent) in &agents {
            assert!(kills::keep_nothing(&[agent]), "agent {name} keeps what is stored");
        }
        assert_eq!(account(&between, 200).doubled, 0);
    });
}

/// How many messages a flow of [`short`] sends.
const MESSAGES: u32 = 100;

fn assert_whole(folder: &Path, points: usize) {
    assert!(is_finished(folder));
    let account = account(&stored(folder), MESSAGES);
    assert_eq!((account.points, account.whole), (points, points), "{account:?}");
    assert_eq!((account.lost, account.doubled), (0, 0), "{account:?}");
    assert_eq!(account.records, points * 2 * MESSAGES as usize);
}

#[test]
fn a_controller_that_is_cut_off_misses_nothing() {
    let ground = ground();
    let (a, b) = (ground.agent("a", "127.0.0.2"), ground.agent("b", "127.0.0.3"));
    let relay = Relay::to(a.address);
    let agents = trunkline_control::Peers::open(&ground.folder().join("agents")).unwrap();
    agents.remove("a").unwrap();
    ground.enrol("a", a.fingerprint, relay.address);
    ground.write(&short(4, "1 s", &relay.address.to_string(), &b.address.to_string()));
    let mut controller = ground.controller();
    for _ in 0..1000 {
        if controller.said("planned") > 0 || controller.has_ended() {
            break;
        }
        pause(10);
    }
    for round in 0..200 {
        if controller.has_ended() {
            break;
        }
        pause(150 + round * 7 % 100);
        relay.cut();
        // Once it has seen a few cuts it may end in peace.
        if round > 12 {
            pause(2000);
        }
    }
    let said = controller.kill();
    // A cut while a repetition was prepared may end the run: what it lacks is measured now.
    let mut tries = 0;
    while !is_finished(ground.folder()) && tries < 3 {
        measure(ground.folder(), &Warnings::default()).unwrap();
        tries += 1;
    }
    assert!(is_finished(ground.folder()), "{said:?}");
    assert_whole(ground.folder(), 4);
}

#[test]
fn a_killed_controller_takes_what_the_agents_have_measured_since() {
    let ground = ground();
    let (a, b) = (ground.agent("a", "127.0.0.2"), ground.agent("b", "127.0.0.3"));
    ground.write(&short(3, "1 s", &a.address.to_string(), &b.address.to_string()));
    let mut controller = ground.controller();
    for _ in 0..1000 {
        if controller.said("done") >= 1 || controller.has_ended() {
            break;
        }
        pause(10);
    }
    // Into the second point, which the agents finish by themselves.
    pause(900);
    let said = controller.kill();
    assert!(!is_finished(ground.folder()), "{said:?}");
    pause(1500);
    let warnings = Warnings::default();
    let outcome = measure(ground.folder(), &warnings).unwrap();
    assert_eq!(outcome.run.status, Status::Complete);
    let notes = warnings.0.into_inner().unwrap();
    assert!(notes.iter().any(|note| note.contains("collected from the agents")), "{notes:?}");
    assert_whole(ground.folder(), 3);
    assert!(kills::keep_nothing(&[&a]));
}

#[test]
fn a_killed_agent_costs_one_repetition_and_the_next_goes_on() {
    let ground = ground();
    let (mut a, b) = (ground.agent("a", "127.0.0.2"), ground.agent("b", "127.0.0.3"));
    ground.write(&short(3, "1 s", &a.address.to_string(), &b.address.to_string()));
    let mut controller = ground.controller();
    for _ in 0..1000 {
        if controller.said("done") >= 1 || controller.has_ended() {
            break;
        }
        pause(10);
    }
    pause(1000);
    a.kill();
    pause(200);
    a.start();
    for _ in 0..3000 {
        if controller.has_ended() {
            break;
        }
        pause(10);
    }
    let said = controller.kill();
    let run = stored(ground.folder());
    assert!(!is_finished(ground.folder()), "{said:?}");
    assert!(said.iter().any(|line| line.contains("agent `a`")), "{said:?}");
    let whole = account(&run, MESSAGES).whole;
    assert_eq!(whole, 2, "the first and the last point: {said:?}");
    measure(ground.folder(), &Warnings::default()).unwrap();
    assert_whole(ground.folder(), 3);
}

#[test]
fn an_agent_that_is_away_for_fifteen_seconds_ends_no_run() {
    let ground = ground();
    let (a, mut b) = (ground.agent("a", "127.0.0.2"), ground.agent("b", "127.0.0.3"));
    ground.write(&short(3, "1 s", &a.address.to_string(), &b.address.to_string()));
    let mut controller = ground.controller();
    for _ in 0..1000 {
        if controller.said("done") >= 1 || controller.has_ended() {
            break;
        }
        pause(10);
    }
    pause(1000);
    b.kill();
    pause(15_000);
    assert!(!controller.has_ended());
    b.start();
    for _ in 0..3000 {
        if controller.has_ended() {
            break;
        }
        pause(10);
    }
    let said = controller.kill();
    assert_eq!(
        account(&stored(ground.folder()), MESSAGES).whole,
        2,
        "the first and the last point: {said:?}"
    );
    assert!(said.iter().any(|line| line.contains("the agent `b` is back after ")), "{said:?}");
}

#[test]
fn agents_are_sent_what_was_read_of_the_files_that_an_experiment_names() {
    let ground = ground();
    let [a, b] = [("a", "127.0.0.2"), ("b", "127.0.0.3")].map(|(name, ip)| ground.agent(name, ip));
    let hosts = [("a", Some(a.address.to_string())), ("b", Some(b.address.to_string()))];
    let voice = "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                 source = { kind = \"voice\", file = \"speech.wav\" }\n";
    ground.write(&experiment("duration = \"300 ms\"", &hosts, voice));
    // There is no such file in the experiment's folder.
    let speech = include_bytes!("../../../../examples/speech.wav").to_vec();
    let files = NamedFiles::from(BTreeMap::from([("speech.wav".to_owned(), speech)]));
    let warnings = Warnings::default();
    let outcome = measure_with(ground.folder(), &files, &warnings).unwrap();
    assert_eq!(outcome.run.status, Status::Complete, "{:?}", warnings.0);
    assert!(flow(&stored(ground.folder()), "voice").counts.received > 0);
}

#[test]
fn what_cannot_be_measured_is_told_before_anything_starts() {
    let ground = ground();
    let a = ground.agent("a", "127.0.0.2");
    let failed = |text: String| {
        ground.write(&text);
        let error = measure(ground.folder(), &Warnings::default()).unwrap_err();
        (error.is_bad_input(), error.to_string())
    };
    let voice =
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\" }\n";
    let address = a.address.to_string();
    let keys = "duration = \"1 s\"";
    let hosts = [("a", Some(address.clone())), ("b", None)];
    let (is_input, why) = failed(experiment(keys, &hosts, voice));
    assert!(is_input && why.starts_with("host `b` has no `agent`"), "{why}");

    let hosts = [("a", Some(address.clone())), ("b", Some(address.clone()))];
    let bulk = "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\nsource = \"bulk\"\n\
                transport = { kind = \"tcp\", congestion-control = \"warp\" }\n";
    let text = experiment(keys, &hosts, bulk);
    let line = text.lines().position(|line| line.contains("warp")).unwrap() + 1;
    let (is_input, why) = failed(text);
    assert!(is_input && why.contains(&format!("experiment.toml:{line}:")), "{why}");
    assert!(why.contains("agent `a`'s kernel does not offer `warp`; it has loaded"), "{why}");

    let hosts = [("a", Some(address.clone())), ("b", Some("127.0.0.9:1".to_owned()))];
    let (is_input, why) = failed(experiment(keys, &hosts, voice));
    assert!(is_input && why.contains("127.0.0.9:1") && why.contains("trunkline agent enrol"), "{why}");

    ground.enrol("b", a.fingerprint, "127.0.0.9:1".parse().unwrap());
    let hosts = [("b", Some("127.0.0.9:1".to_owned())), ("a", Some("127.0.0.9:1".to_owned()))];
    let (is_input, why) = failed(experiment(keys, &hosts, voice));
    assert!(!is_input && why.contains("host `a`"), "{why}");
    let store = trunkline_store::Store::open(&ground.folder().join("store")).unwrap();
    assert!(store.runs().unwrap().is_empty(), "nothing was begun");
}

#[test]
fn both_ends_may_be_one_agent() {
    let ground = ground();
    let a = ground.agent("a", "127.0.0.2");
    let address = a.address.to_string();
    ground.write(&short(1, "1 s", &address, &address));
    let warnings = Warnings::default();
    assert_eq!(measure(ground.folder(), &warnings).unwrap().run.status, Status::Complete, "{:?}", warnings.0);
    assert_whole(ground.folder(), 1);
}
