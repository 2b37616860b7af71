//! Swept values by their ends, and names alone.

use trunkline_core::Bytes;
use trunkline_core::schema::{Limit, Value};
use trunkline_experiment::Experiment;
use trunkline_experiment::edit::outline;

const FILE: &str = r#"name = "ranges"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "10 ms"
jitter = { kind = "normal", mean = "3 ms", deviation = "1 ms" }
queue = { kind = "fifo", limit = "250 KB" }

[link.trunk.backward]
rate = "1 Mbit/s"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = "voice"

[sweep]
"#;

fn swept(lines: &str) -> Experiment {
    Experiment::parse(&format!("{FILE}{lines}\n"), "x.toml", &()).unwrap_or_else(|e| panic!("{e}"))
}

fn told(lines: &str) -> String {
    let problems = Experiment::parse(&format!("{FILE}{lines}\n"), "x.toml", &()).expect_err(lines);
    problems.to_string()
}

#[test]
fn a_range_is_the_list_that_it_stands_for() {
    for (range, list) in [
        (
            r#""link.trunk.delay" = { from = "10 ms", to = "50 ms", step = "10 ms" }"#,
            vec!["10 ms", "20 ms", "30 ms", "40 ms", "50 ms"],
        ),
        // What the steps do not meet is left out.
        (
            r#""link.trunk.delay" = { from = "10 ms", to = "0.029 s", step = "5 ms" }"#,
            vec!["10 ms", "15 ms", "20 ms", "25 ms"],
        ),
        (r#"link.trunk.delay = { from = "0 s", to = "1 s", points = 3 }"#, vec!["0 s", "0.5 s", "1 s"]),
        (r#""flow.voice.count" = { from = 1, to = 9, step = 4 }"#, vec!["1", "5", "9"]),
        (r#""flow.voice.count" = { from = 1, to = 100, factor = 4 }"#, vec!["1", "4", "16", "64"]),
        (r#""flow.voice.count" = { from = 1, to = 4, factor = 1.5 }"#, vec!["1", "2", "3"]),
        (r#""link.trunk.loss" = { from = 0, to = "5 %", step = "2.5 %" }"#, vec!["0 %", "2.5 %", "5 %"]),
        (r#""link.trunk.loss" = { from = 0.01, to = 0.03, step = 0.01 }"#, vec!["1 %", "2 %", "3 %"]),
        (
            r#""link.trunk.queue.limit" = { from = "16 KiB", to = "64 KiB", factor = 2 }"#,
            vec!["16 KiB", "32 KiB", "64 KiB"],
        ),
        (
            r#""link.trunk.queue.limit" = { from = "5 packets", to = "15 packets", step = "5 packets" }"#,
            vec!["5 packets", "10 packets", "15 packets"],
        ),
        (
            r#""link.trunk.rate" = { from = "1 Mbit/s", to = "100 Mbit/s", points = 5, scale = "logarithmic" }"#,
            vec!["1 Mbit/s", "3.16 Mbit/s", "10 Mbit/s", "31.6 Mbit/s", "100 Mbit/s"],
        ),
        (
            r#""link.trunk.jitter.deviation" = { from = "1 ms", to = "2 ms", step = "1 ms" }"#,
            vec!["1 ms", "2 ms"],
        ),
    ] {
        let experiment = swept(range);
        assert_eq!(experiment.axes[0].values, list, "{range}");
        assert_eq!(experiment.points.len(), list.len());
        let written: Vec<String> = list
            .iter()
            .map(|value| match value.parse::<u64>() {
                Ok(_) => (*value).to_owned(),
                Err(_) => format!("\"{value}\""),
            })
            .collect();
        let listed = swept(&format!("\"{}\" = [{}]", experiment.axes[0].key, written.join(", ")));
        for (one, other) in experiment.points.iter().zip(listed.points.iter()) {
            assert_eq!(format!("{:?}", one.scenario), format!("{:?}", other.scenario), "{range}");
        }
        assert_eq!(experiment.axes[0].numbers, listed.axes[0].numbers, "{range}");
    }
}

#[test]
fn keys_together_may_have_a_range() {
    let experiment = swept(
        r#""link.trunk.forward.rate, link.trunk.backward.rate" = { from = "1 Mbit/s", to = "3 Mbit/s", step = "1 Mbit/s" }"#,
    );
    assert_eq!(experiment.points.len(), 3);
    let scenario = experiment.points.at(2).scenario;
    let rates = scenario.links[0].directions.iter().map(|d| d.rate.bits_per_second());
    assert_eq!(rates.collect::<Vec<_>>(), [3_000_000, 3_000_000]);
}

#[test]
fn what_is_wrong_with_a_range_says_what_is_expected() {
    for (line, says) in [
        (
            r#""link.trunk.delay" = "10 ms""#,
            "the sweep of `link.trunk.delay` must be a list of values such as `[1, 2, 5]`, or a range such as `{ from = 1, to = 9, step = 2 }`, not the text `10 ms`",
        ),
        (
            r#""link.trunk.delay" = { from = "10 ms", to = "20 ms" }"#,
            "needs one of `step`, `factor` and `points`",
        ),
        (
            r#""link.trunk.delay" = { from = "10 ms", to = "20 ms", step = "1 ms", points = 3 }"#,
            "the range of `link.trunk.delay` has `step` and `points`; keep one of `step`, `factor` and `points`",
        ),
        (
            r#""link.trunk.delay" = { from = "10 ms", to = "20 ms", setp = "1 ms" }"#,
            "unknown key `setp` in a range; expected `from`, `to` and one of `step` (the difference), `factor` (the ratio) and \
             `points` (the number of values, with `scale`)",
        ),
        (r#""link.trunk.delay" = { from = "10 ms", step = "1 ms" }"#, "lacks the key `to`"),
        (r#""link.trunk.delay" = { from = "20 ms", to = "10 ms", step = "1 ms" }"#, "ends before it begins"),
        (
            r#""link.trunk.delay" = { from = "10 ms", to = "20 Mbit/s", step = "1 ms" }"#,
            "`link.trunk.delay` must be a duration",
        ),
        (
            r#""link.trunk.delay" = { from = "10 ms", to = "20 ms", step = "0 ms" }"#,
            "`step` must be an amount above zero such as `1 ms`, not the text `0 ms`",
        ),
        (
            r#""link.trunk.delay" = { from = "0 ms", to = "20 ms", factor = 2 }"#,
            "growing steps need a `from` above `0 ms`",
        ),
        (
            r#""link.trunk.delay" = { from = "1 ms", to = "20 ms", factor = 1 }"#,
            "`factor` must be a number above 1",
        ),
        (
            r#""link.trunk.delay" = { from = "1 ms", to = "20 ms", points = 1 }"#,
            "`points` must be a whole number of at least 2",
        ),
        (
            r#""flow.voice.count" = { from = 1, to = 3, points = 4 }"#,
            "`points` is 4, but the range has 3 different values; expected at most as many",
        ),
        (
            r#""link.trunk.delay" = { from = "1 ms", to = "20 ms", points = 3, scale = "log" }"#,
            "`scale` must be `linear` or `logarithmic`",
        ),
        (
            r#""link.trunk.delay" = { from = "1 ms", to = "20 ms", step = "1 ms", scale = "linear" }"#,
            "`scale` applies to `points` only",
        ),
        (
            r#""link.trunk.delay" = { from = "0 s", to = "60 s", step = "1 us" }"#,
            "the range has 60000001 values; the maximum is 100000",
        ),
        (
            r#""flow.voice.transport" = { from = "udp", to = "tcp", step = 1 }"#,
            "`flow.voice.transport` is not numeric, so it cannot have a range; list its values",
        ),
        (
            r#""link.trunk.dela" = { from = "1 ms", to = "2 ms", step = "1 ms" }"#,
            "unknown key `link.trunk.dela`; did you mean `link.trunk.delay`?",
        ),
    ] {
        let said = told(line);
        assert!(said.contains(says), "{line}: {said}");
    }
}

#[test]
fn the_name_of_the_files_own_kind_keeps_what_the_file_says_of_it() {
    let experiment =
        swept("\"link.trunk.queue\" = [\"fifo\", \"codel\", { kind = \"fifo\", limit = \"10 packets\" }]");
    let queue = |point: usize| experiment.points.at(point).scenario.links[0].directions[0].queue.clone();
    assert_eq!(queue(0).1.value("limit"), &Value::Limit(Limit::Bytes(Bytes(250_000))));
    assert_ne!(queue(1).0, queue(0).0);
    assert_ne!(
        queue(1).1.value("limit"),
        &Value::Limit(Limit::Bytes(Bytes(250_000))),
        "another kind has its defaults"
    );
    assert_eq!(queue(2).1.value("limit"), &Value::Limit(Limit::Packets(10)));
    // Of one direction, which has it from the link.
    let experiment = swept("\"link.trunk.backward.queue\" = [\"fifo\", \"codel\"]");
    let [forward, backward] = experiment.points.first().scenario.links[0].directions.as_slice() else {
        panic!()
    };
    assert_eq!(forward.queue, backward.queue);
    assert_eq!(experiment.axes[0].values, ["fifo", "codel"]);
}

#[test]
fn a_drawing_has_the_range_and_its_values() {
    let text = format!(
        "{FILE}\"link.trunk.delay\" = {{ from = \"10 ms\", to = \"30 ms\", step = \"10 ms\" }}\n\"flow.voice.count\" = [1, 2]\n"
    );
    let axes = outline(&text).unwrap().sweep;
    assert_eq!(axes[0].values, ["10 ms", "20 ms", "30 ms"]);
    assert_eq!(axes[0].range.as_ref().map(|range| range["step"].clone()), Some("10 ms".into()));
    assert_eq!((axes[1].values.len(), axes[1].range.as_ref()), (2, None));
    let odd = outline("[sweep]\n\"a.b\" = { from = 1, to = 2, step = 1 }\n").unwrap().sweep;
    assert!(odd[0].values.is_empty() && odd[0].range.is_some());
}
