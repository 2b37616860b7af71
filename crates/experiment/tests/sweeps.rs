//! Sweeps: every combination, in order, with the values in place.

mod common;

use std::sync::Arc;

use common::Beside;
use trunkline_core::schema::{Limit, Value};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_experiment::{Axis, Bounds, Experiment, Loss, Point, Points, Scenario, shown_among};

const FILE: &str = r#"name = "sweeps"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", file = "speech.wav" }

[flow.bulk]
from = "a"
to = "b"
transport = "tcp"
source = { kind = "load", interval = { kind = "exponential", mean = "1 ms" } }

[sweep]
"#;

fn swept(lines: &str) -> Experiment {
    Experiment::parse(&format!("{FILE}{lines}"), "x.toml", &Beside).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_product_runs_through_all_combinations_the_last_axis_fastest() {
    let experiment = swept("\"flow.voice.count\" = [1, 2]\nflow.bulk.count = [0, 3, 5]");
    let members = |point: Point| point.scenario.flows.iter().map(|f| f.meta.members).collect();
    let all: Vec<Vec<u32>> = experiment.points.iter().map(members).collect();
    assert_eq!(all, [[1, 0], [1, 3], [1, 5], [2, 0], [2, 3], [2, 5]]);
    assert_eq!(experiment.points.at(4).choice, [1, 1]);
    assert_eq!(experiment.points.at(4).index, 4);
    // The second flow's members are numbered on from the first's.
    assert_eq!(experiment.points.at(4).scenario.flows[1].meta.first.0, 2);
}

#[test]
fn a_word_becomes_a_table_where_an_option_is_swept() {
    let experiment = swept("\"flow.bulk.transport.window\" = [\"16 KiB\", \"1 MiB\"]");
    let windows = experiment.points.iter().map(|point| point.scenario.flows[1].transport.in_flight());
    let expected = [16 << 10, 1 << 20].map(|window| Some(("window", Bytes(window))));
    assert_eq!(windows.collect::<Vec<_>>(), expected);
}

#[test]
fn keys_that_are_not_written_can_be_swept() {
    let experiment = swept(
        "\"link.trunk.loss.probability\" = [\"1 %\", 0.5]\n\"link.trunk.queue.limit\" = [\"5 packets\"]\n\
         \"link.trunk.backward.rate\" = [\"64 kbit/s\"]",
    );
    let scenario = experiment.points.at(1).scenario;
    let [forward, backward] = scenario.links[0].directions.as_slice() else { panic!("two directions") };
    assert!(matches!(forward.impairments.loss, Loss::Bernoulli(share) if share.value() == 0.5));
    assert_eq!(forward.queue.1.value("limit"), &Value::Limit(Limit::Packets(5)));
    assert_eq!(forward.rate, Rate::from_bits_per_second(2_000_000));
    assert_eq!(backward.rate, Rate::from_bits_per_second(64_000));
    assert_eq!(backward.queue, forward.queue);
}

#[test]
fn whole_transports_and_parts_of_distributions_can_be_swept() {
    let experiment = swept(
        "\"flow.bulk.transport\" = [\"udp\", { kind = \"tcp\", window = \"8 KiB\" }]\n\
         \"flow.bulk.source.interval.mean\" = [\"1 ms\", \"20 ms\"]",
    );
    assert_eq!(experiment.points.first().scenario.flows[1].meta.transport, "udp");
    assert_eq!(experiment.points.at(2).scenario.flows[1].meta.transport, "tcp");
    assert_eq!(experiment.points.at(3).scenario.flows[1].source.values.distribution("interval").mean(), 20e6);
    assert_eq!(experiment.axes[0].numbers, None);
    assert_eq!(experiment.axes[0].values, ["udp", "{ kind = \"tcp\", window = \"8 KiB\" }"]);
}

#[test]
fn an_axis_has_one_unit() {
    for (line, unit, numbers) in [
        ("\"link.trunk.queue.limit\" = [\"512 B\", \"1 KiB\"]", "B", vec![512.0, 1024.0]),
        ("\"flow.bulk.transport.window\" = [\"64 KiB\", \"1 MiB\"]", "KiB", vec![64.0, 1024.0]),
        ("\"link.trunk.queue.limit\" = [\"5 packets\", \"1 packet\"]", "packets", vec![5.0, 1.0]),
        ("\"link.trunk.delay\" = [\"0 s\", \"5 ms\", \"1.5 s\"]", "ms", vec![0.0, 5.0, 1500.0]),
        ("\"link.trunk.rate\" = [\"64kbit\", \"2 Mbit/s\"]", "kbit/s", vec![64.0, 2000.0]),
        ("\"link.trunk.loss\" = [0.01, \"5 %\"]", "%", vec![1.0, 5.0]),
        ("\"flow.voice.channels\" = [1, 2]", "", vec![1.0, 2.0]),
    ] {
        let experiment = swept(line);
        let axis = &experiment.axes[0];
        assert_eq!((axis.unit.as_str(), axis.numbers.clone()), (unit, Some(numbers)), "{line}");
    }
}

#[test]
fn ten_thousand_points_share_their_speech() {
    let counts: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let list = counts.join(", ");
    let experiment = swept(&format!("\"flow.voice.count\" = [{list}]\n\"flow.bulk.count\" = [{list}]"));
    assert_eq!(experiment.points.len(), 10_000);
    let speech = |point: usize| experiment.points.at(point).scenario.flows[0].source.speech.clone();
    assert!(Arc::ptr_eq(&speech(0), &speech(9_999)));
}

#[test]
fn points_that_are_not_kept_are_those_of_the_product() {
    let counts: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let lines = format!(
        "\"flow.voice.count\" = [{}]\n\"link.trunk.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]\nduration = [\"1 s\", \"3 s\"]",
        counts.join(", ")
    );
    let experiment = swept(&lines);
    let points = &experiment.points;
    assert_eq!((points.len(), points.iter().count(), points.choices().count()), (400, 400, 400));
    let alone = |choice: &[usize]| {
        let text = format!("{FILE}{lines}");
        let read = Experiment::parse_point(&text, "x.toml", &Beside, &Bounds::NONE, choice);
        read.unwrap_or_else(|problems| panic!("{problems}")).points.first().clone()
    };
    for (place, choice) in points.choices().enumerate().filter(|(place, _)| place % 57 == 0 || *place > 397) {
        let (point, alone) = (points.at(place), alone(&choice));
        assert_eq!((point.index, &point.choice), (alone.index, &alone.choice));
        assert_eq!(format!("{:?}", point.scenario), format!("{:?}", alone.scenario));
        assert_eq!(points.place_of(&choice), Some(place));
        assert_eq!(points.length(place), point.scenario.length());
        assert_eq!(point.scenario.flows[0].meta.members as usize, place / 4);
    }
    assert_eq!(
        (points.place_of(&[100, 0, 0]), points.place_of(&[0, 0]), points.get(400).is_none()),
        (None, None, true)
    );
    assert_eq!(
        points.lengths().map(|length| length.as_nanos()).sum::<u64>(),
        200 * (1 + 3 + 2) * 1_000_000_000
    );
}

#[test]
fn points_are_set_and_changed_whether_they_are_kept_or_not() {
    let counts: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let mut experiment = swept(&format!("\"flow.voice.count\" = [{}]", counts.join(", ")));
    for place in [1, 299] {
        let mut scenario = Scenario::clone(&experiment.points.at(place).scenario);
        scenario.duration = Duration::from_secs(9);
        experiment.points.set(place, scenario);
    }
    experiment.points.change(|scenario| scenario.flows[0].priority = 5);
    let earlier = experiment.points.clone();
    experiment.points.change(|scenario| scenario.flows[0].priority += 1);
    for place in [0, 1, 2, 298, 299] {
        let of = |points: &Points| {
            let scenario = points.at(place).scenario;
            (
                scenario.flows[0].meta.members,
                scenario.flows[0].priority,
                scenario.duration,
                points.length(place),
            )
        };
        let seconds = if [1, 299].contains(&place) { 9 } else { 1 };
        let [duration, length] = [seconds, seconds + 1].map(Duration::from_secs);
        assert_eq!(of(&experiment.points), (place as u32, 6, duration, length));
        assert_eq!(of(&earlier), (place as u32, 5, duration, length));
    }
}

#[test]
fn an_experiment_that_was_validated_elsewhere_has_the_same_points() {
    let counts: Vec<String> = (0..150).map(|count| count.to_string()).collect();
    let counts = counts.join(", ");
    let sources = r#"[{ kind = "voice", file = "speech.wav" }, { kind = "voice", samples = 80 }]"#;
    let text = format!("{FILE}\"flow.voice.source\" = {sources}\n\"flow.bulk.count\" = [{counts}]");
    let here = Experiment::parse(&text, "x.toml", &Beside).unwrap();
    // Only what the points name: files are read when the point is.
    let there = Experiment::parse_validated(&text, "x.toml", &here.files).unwrap();
    assert_eq!((here.points.len(), there.points.len()), (300, 300));
    assert_eq!((&here.text, &here.axes, here.seed), (&there.text, &there.axes, there.seed));
    for place in [0, 1, 99, 100, 149, 150, 299, 150] {
        assert_eq!(here.points.length(place), there.points.length(place));
        let shown = |point: Point| format!("{:?}", (point.index, point.choice, point.scenario));
        assert_eq!(shown(here.points.at(place)), shown(there.points.at(place)));
    }
}

#[test]
fn too_many_points_are_refused() {
    let list = (0..400).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!("{FILE}\"flow.voice.count\" = [{list}]\n\"flow.bulk.count\" = [{list}]");
    let problems = Experiment::parse(&text, "x.toml", &Beside).unwrap_err();
    assert_eq!(
        problems.iter().map(|p| p.headline()).collect::<Vec<_>>(),
        ["x.toml:24:2: the sweep has 160000 points; the maximum is 100000; sweep fewer values"]
    );
}

#[test]
fn keys_that_vary_together_may_have_lists_of_values() {
    let experiment = swept(
        "\"link.trunk.forward.rate, link.trunk.forward.delay\" = [[\"1 Mbit/s\", \"3 ms\"], [\"2 Mbit/s\", \"4 ms\"]]",
    );
    let forward = experiment.points.iter().map(|point| point.scenario.links[0].directions[0].clone());
    let found: Vec<_> =
        forward.map(|there| (there.rate.bits_per_second(), there.values.duration("delay"))).collect();
    let ms = trunkline_core::Duration::from_millis;
    assert_eq!(found, [(1_000_000, ms(3)), (2_000_000, ms(4))]);
    assert_eq!(experiment.axes[0].values[1], "[\"2 Mbit/s\", \"4 ms\"]");
}

#[test]
fn keys_with_a_comma_between_them_vary_together() {
    let experiment =
        swept("\"link.trunk.forward.rate, link.trunk.backward.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]");
    assert_eq!(experiment.points.len(), 2);
    for (point, rate) in experiment.points.iter().zip([1_000_000, 2_000_000]) {
        let rates =
            point.scenario.links[0].directions.iter().map(|direction| direction.rate.bits_per_second());
        assert_eq!(rates.collect::<Vec<_>>(), [rate, rate]);
    }
    assert_eq!(experiment.axes[0].numbers, Some(vec![1.0, 2.0]));
}

#[test]
fn tables_are_shown_by_kind_and_values_lists_by_items() {
    let shown = |value: &str| shown_among(&[], value);
    assert_eq!(shown("drr"), "drr");
    assert_eq!(shown(r#"{ kind = "fifo", limit = "600 KB" }"#), "fifo 600 KB");
    assert_eq!(shown(r#"{ kind = "urp", block = "256 B", window = 3 }"#), "urp block 256 B, window 3");
    assert_eq!(shown(r#"{ kind = "xtp", every = 16 }"#), "xtp every 16");
    assert_eq!(shown(r#"["lan", "cell"]"#), "lan, cell");
    assert_eq!(shown(r#"{ rate = "1 Mbit/s" }"#), "rate 1 Mbit/s");
    let nested = r#"{ rate = "1 Mbit/s", queue = { kind = "drr" } }"#;
    assert_eq!(shown(nested), nested);
    assert_eq!(shown("{}"), "{}");
}

#[test]
fn a_table_keeps_its_keys_where_another_would_be_shown_alike() {
    let values = [r#"{ kind = "fifo", limit = "9 KB" }"#, r#"{ kind = "fifo", target = "9 KB" }"#, "drr"];
    let values = values.map(str::to_owned).to_vec();
    let axis = Axis { key: "link.trunk.queue".to_owned(), values, numbers: None, unit: String::new() };
    let shown: Vec<Option<String>> = (0..4).map(|choice| axis.shown(choice)).collect();
    let as_text: Vec<Option<&str>> = shown.iter().map(Option::as_deref).collect();
    assert_eq!(as_text, [Some("fifo limit 9 KB"), Some("fifo target 9 KB"), Some("drr"), None]);
}
