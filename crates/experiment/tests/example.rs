//! The files in `examples/` are valid and mean what they say.

mod common;

use common::{Beside, EXAMPLES, example};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_experiment::{Experiment, Operator, Subject};
use trunkline_metrics::{BundleMeta, PlaybackFifo, VoicePath, figures};
use trunkline_transport::kind::{Sockets, StreamProtocol};

#[test]
fn every_example_is_valid() {
    for name in EXAMPLES {
        if let Err(problems) = Experiment::parse(&example(name), name, &Beside) {
            panic!("{problems}");
        }
    }
}

#[test]
fn voice_path() {
    let experiment = Experiment::parse(&example("voice-path.toml"), "x.toml", &Beside).unwrap();
    let scenario = &experiment.points.first().scenario;
    let playback = Some(PlaybackFifo { depth: 2000, fill: 800 });
    let expected = Some(VoicePath { samples: 80, pauses: false, captures: true, playback });
    let paths: Vec<_> = scenario.flows.iter().map(|flow| flow.meta.voice_path).collect();
    assert_eq!(paths, [expected, expected, None]);
    assert!(!scenario.flows[0].meta.keeps_payload);
    let limits: Vec<_> = experiment.limits.into_iter().map(|limit| (limit.subject, limit.bound)).collect();
    let of_flow = |(flow, metric, bound)| (Subject::Flow { flow, sink: None, metric }, bound);
    let expected = [
        (0, figures::flow("margin_min"), 0.0),
        (0, figures::flow("underflows"), 1.0),
        (0, figures::flow("capture_overflows"), 1.0),
        (1, figures::flow("start_up_max"), 0.15),
    ];
    assert_eq!(limits, expected.map(of_flow));
}

#[test]
fn cellular_trace() {
    let experiment = Experiment::parse(&example("cellular-trace.toml"), "x.toml", &Beside).unwrap();
    let link = &experiment.points.first().scenario.links[0];
    let opportunities = |direction: usize| {
        let trace = link.directions[direction].values.delivery_trace("file");
        (trace.period(), trace.moments().iter().map(|moment| moment.opportunities).sum::<u64>())
    };
    let period = Duration::from_secs(3);
    assert_eq!([opportunities(0), opportunities(1)], [(period, 334), (period, 240)]);
}

#[test]
fn bundle() {
    let experiment = Experiment::parse(&example("bundle.toml"), "x.toml", &Beside).unwrap();
    let expected = [BundleMeta { name: "atlantic".to_owned(), flows: vec![0, 1] }];
    assert_eq!(experiment.points.len(), 4);
    assert!(experiment.points.iter().all(|point| point.scenario.bundles == expected));
}

#[test]
fn voice_beside_bulk() {
    let text = example("voice-beside-bulk.toml");
    let experiment = Experiment::parse(&text, "x.toml", &Beside).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        (experiment.name.as_str(), experiment.repetitions, experiment.seed),
        ("voice beside bulk", 3, 7)
    );
    let [axis] = experiment.axes.as_slice() else { panic!("one axis") };
    assert_eq!((axis.key.as_str(), axis.unit.as_str()), ("flow.bulk.count", ""));
    assert_eq!(axis.numbers, Some(vec![0.0, 1.0, 2.0, 4.0]));
    let counts: Vec<u32> = experiment.points.iter().map(|p| p.scenario.flows[1].meta.members).collect();
    assert_eq!(counts, [0, 1, 2, 4]);
    let latency = Subject::Flow { flow: 0, sink: None, metric: figures::flow("latency_p99") };
    assert_eq!(experiment.limits[1].subject, latency);
    assert_eq!((experiment.limits[1].operator, experiment.limits[1].bound), (Operator::Less, 0.15));

    let scenario = &experiment.points.first().scenario;
    assert_eq!((scenario.duration, scenario.drain), (Duration::from_secs(2), Duration::from_secs(1)));
    // Hosts stand in the order of the file.
    assert_eq!(scenario.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>(), ["ottawa", "berlin"]);
    let trunk = &scenario.links[0];
    assert_eq!(trunk.between, [1, 0]);
    assert_eq!(trunk.directions[0].rate, Rate::from_bits_per_second(2_000_000));
    assert_eq!(trunk.directions[1].delay, Duration::from_millis(20));
    let voice = &scenario.flows[0];
    assert_eq!((voice.to[0].forward[0].from_port, voice.to[0].backward[0].from_port), (0, 1));
    assert!(voice.meta.keeps_payload && !voice.source.speech.is_empty());
    assert_eq!(voice.meta.playout, Some(Duration::from_millis(60)));
    let Sockets::Stream(StreamProtocol::Tcp, tcp) = scenario.flows[1].transport.sockets() else {
        panic!("bulk goes over TCP")
    };
    assert_eq!((tcp.window, tcp.nodelay), (Some(Bytes(32 << 10)), true));
    // Members are numbered on over the flows.
    assert_eq!(scenario.flows[1].meta.first.0, 1);
}
