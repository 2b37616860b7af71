use super::*;

const FILE: &str = r#"
name = "measured"
duration = "2 s"

[hosts]
berlin = {}
ottawa = {}

[link.trunk]
between = ["berlin", "ottawa"]
rate = "1 Mbit/s"

[flow.voice]
from = "berlin"
to = "ottawa"
transport = "udp"
source = { kind = "voice", samples = 80 }

[flow.bulk]
from = "berlin"
to = "ottawa"
transport = "tcp"
source = "bulk"
count = 2
"#;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The sentence about a message of a measured run that took 50 ms; the fastest took 10 ms.
fn said(stalls: &[(Time, Duration)], waits: &[(String, Duration)]) -> String {
    let files = trunkline_experiment::NamedFiles::default();
    let experiment = trunkline_experiment::Experiment::parse(FILE, "file", &files).unwrap();
    let sent = Time::ZERO + ms(1_000);
    let message = Record {
        member: 0,
        channel: 0,
        sequence: 0,
        due: sent,
        sent: Some(sent),
        received: Some(sent + ms(50)),
        reflected: None,
        payload: 80,
        fate: Fate::Received,
    };
    let under_way = BTreeMap::from([(0, 500), (1, 9_500)]);
    let scenario = &experiment.points.first().scenario;
    let scene = Scene {
        scenario,
        flow: 0,
        message,
        rewound: None,
        stalls,
        least: Some(ms(10)),
        waits,
        under_way: &under_way,
    };
    scene.cause().sentence
}

#[test]
fn a_stall_of_the_machine_is_the_cause_of_what_it_delayed() {
    let at = |millis: u64| Time::ZERO + ms(millis);
    let stalls = [(at(500), ms(200)), (at(1_005), ms(38)), (at(2_000), ms(300))];
    assert_eq!(said(&stalls, &[]), "50 ms: the machine stalled, 38 ms of it, from 1.005 s on");
    // Only what lies between sending and arrival counts.
    assert!(
        said(&[(at(900), ms(105)), (at(1_045), ms(500))], &[])
            .contains("the machine did not stall for so long")
    );
}

#[test]
fn without_packets_the_recorded_backlog_is_the_cause() {
    let waits = [("`trunk` (berlin>ottawa)".to_owned(), ms(35))];
    assert_eq!(
        said(&[], &waits),
        "50 ms: about 35 ms of it in the queue of `trunk` (berlin>ottawa); 95 % of the payload then under way was of `bulk`"
    );
}
