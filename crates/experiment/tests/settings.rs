//! Keys that get another value than the file says: the same meaning and the same mistakes as in the file.

mod common;

use common::{Beside, EXAMPLES, example};
use trunkline_core::{Bytes, Duration};
use trunkline_experiment::{Experiment, Setting};

const FILE: &str = r#"name = "set"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"   # the bottleneck
queue = "fifo"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = "voice"

[flow.bulk]
from = "a"
to = "b"
transport = "tcp"
source = "bulk"

[bundle.both]
flows = ["voice"]

[sweep]
"flow.voice.count" = [1, 2, 4]
"flow.bulk.count, flow.bulk.priority" = [0, 1]

[limits]
"flow.voice.loss" = "< 1 %"
"#;

fn settings(texts: &[&str]) -> Vec<Setting> {
    texts.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn set(texts: &[&str]) -> Experiment {
    Experiment::parse_with(FILE, "x.toml", &(), &settings(texts)).unwrap_or_else(|e| panic!("{e}"))
}

fn headlines(texts: &[&str]) -> Vec<String> {
    let problems = Experiment::parse_with(FILE, "x.toml", &(), &settings(texts)).expect_err("it is wrong");
    problems.iter().map(|problem| problem.headline()).collect()
}

#[test]
fn a_setting_is_a_line_of_the_file_and_leaves_the_others_as_they_are() {
    let experiment = set(&["link.trunk.rate=5 Mbit/s"]);
    assert_eq!(experiment.text, FILE.replace("\"2 Mbit/s\"", "\"5 Mbit/s\""));
    assert_eq!(experiment.settings, settings(&["link.trunk.rate=5 Mbit/s"]));
    let again = Experiment::parse(&experiment.text, "x.toml", &()).unwrap();
    assert_eq!(format!("{:?}", again.points), format!("{:?}", experiment.points));
}

#[test]
fn any_key_can_be_set() {
    let experiment = set(&[
        "name=2024",
        "seed=7",
        "repetitions=3",
        "duration=250 ms",
        "until=bulk",
        "flow.bulk.source={ kind = \"bulk\", bytes = \"1 MB\" }",
        "flow.bulk.transport.window=8 KiB",
        "link.trunk.queue.limit=64 KiB",
        "link.trunk.backward.loss=0.5",
        "bundle.both.flows=[\"bulk\"]",
        "hosts.c={}",
        "sweep.flow.voice.count=[7]",
        "sweep.flow.bulk.count, flow.bulk.priority=[1]",
        "limits.flow.voice.late=< 2 %",
        "flow.voice.playout=40 ms",
    ]);
    assert_eq!(
        (experiment.name.as_str(), experiment.seed, experiment.repetitions, experiment.limits.len()),
        ("2024", 7, 3, 2)
    );
    assert_eq!(experiment.axes[0].values, ["7"]);
    let scenario = &experiment.points.first().scenario;
    assert_eq!((scenario.duration, scenario.hosts.len()), (Duration::from_millis(250), 3));
    assert_eq!(scenario.flows[1].transport.in_flight(), Some(("window", Bytes(8 << 10))));
    let Experiment { text, .. } = experiment;
    assert!(text.contains("queue = { kind = \"fifo\", limit = \"64 KiB\" }"), "{text}");
    assert!(text.contains("# the bottleneck"), "{text}");
}

/// A flow that never sends would break its limits, as if the network had lost what it sent.
#[test]
fn a_flow_that_starts_when_sending_has_ended_is_refused_unless_it_has_no_members() {
    let late = |text: &str| headlines(&["flow.bulk.start=1 s", text]).join("\n");
    let told = late("seed=1");
    assert!(told.contains("would start at 1 s, but sending ends at 1 s"), "{told}");
    let told = headlines(&["flow.voice.start=500 ms", "duration=200 ms"]).join("\n");
    assert!(told.contains("--set flow.voice.start=500 ms: the flow `voice` would start at 500 ms"), "{told}");
    set(&["flow.bulk.start=999 ms"]);
    set(&["flow.bulk.start=2 s", "sweep.flow.bulk.count, flow.bulk.priority=[0]"]);
    set(&["flow.bulk.start=1 s", "duration=2 s"]);
}

#[test]
fn of_two_settings_of_a_key_the_later_holds_and_builds_on_the_earlier() {
    let experiment = set(&["flow.voice.transport=tcp", "flow.voice.transport.window=8 KiB"]);
    assert!(
        experiment.text.contains("transport = { kind = \"tcp\", window = \"8 KiB\" }"),
        "{}",
        experiment.text
    );
    assert_eq!(set(&["seed=1", "seed=2"]).seed, 2);
}

#[test]
fn a_swept_key_that_is_set_is_not_swept() {
    let experiment = set(&["flow.voice.count=3"]);
    assert_eq!((experiment.points.len(), experiment.axes.len()), (2, 1));
    assert!(experiment.points.iter().all(|point| point.scenario.flows[0].meta.members == 3));
    assert_eq!(
        headlines(&["flow.bulk.count=3"]),
        ["--set flow.bulk.count=3: the file sweeps `flow.bulk.count, flow.bulk.priority` together; set \
          `sweep.flow.bulk.count, flow.bulk.priority` instead"]
    );
}

#[test]
fn a_mistake_is_told_at_the_setting_in_the_words_of_the_file() {
    assert_eq!(
        headlines(&["seed=3", "link.trunk.rate=5 parsecs"]),
        [
            "--set link.trunk.rate=5 parsecs: `rate`: `5 parsecs` has the unknown unit `parsecs`; expected a rate such as \
          `10 Mbit/s` (units: bit/s, kbit/s, Mbit/s, Gbit/s)"
        ]
    );
    let problems = Experiment::parse_with(
        FILE,
        "x.toml",
        &(),
        &settings(&["link.trunk.queue={ kind = \"fifo\", limt = 1 }"]),
    );
    assert_eq!(
        problems.expect_err("it is wrong").to_string(),
        "--set link.trunk.queue={ kind = \"fifo\", limt = 1 }: unknown key `limt` in the queue `fifo`; did you mean \
         `limit`?\n  | --set link.trunk.queue={ kind = \"fifo\", limt = 1 }\n  \
         |                                         ^^^^"
    );
    let option = Setting::of_option("--seed", "seed", "-1");
    let problems = Experiment::parse_with(FILE, "x.toml", &(), &[option]).expect_err("it is wrong");
    assert_eq!(
        problems.to_string(),
        "--seed -1: `seed` must be a whole number from 0 to 9223372036854775807, not `-1`\n  | --seed -1\n  |        ^^"
    );
}

#[test]
fn a_key_that_is_not_there_is_told_with_the_nearest() {
    for (text, says) in [
        ("link.trunk.rat=1", "unknown key `link.trunk.rat`; did you mean `link.trunk.rate`?"),
        ("link.trnk.rate=1 Mbit/s", "unknown key `link.trnk.rate`; did you mean `link.trunk`?"),
        ("repetitons=3", "unknown key `repetitons`; did you mean `repetitions`?"),
        ("link.trunk=3", "`link.trunk` must be a table such as `{ ... }`, not the text `3`"),
        ("flow.voice.transport.window=1 KiB", "unknown key `flow.voice.transport.window`"),
        ("sweep.flow.voice.cuont=[1]", "unknown key `flow.voice.cuont`; did you mean `flow.voice.count`?"),
        ("sweep.flow.voice.count=3", "the sweep of `flow.voice.count` must be a list"),
        ("limits.flow.voice.los=< 1 %", "a flow has no figure `los`; did you mean `loss`?"),
        ("link.trunk.queue={ kind", "not TOML: "),
        ("bundle.none.flows=[]", "unknown key `bundle.none.flows`"),
        ("a.b.c=1", "unknown key `a.b.c`"),
    ] {
        let told = headlines(&[text]);
        assert!(
            told[0].starts_with(&format!("--set {text}: ")) && told[0].contains(says),
            "{text}: {told:?}"
        );
    }
    for (text, why) in
        [("rate", "expected KEY=VALUE"), ("=3", "expected KEY=VALUE"), ("", "expected KEY=VALUE")]
    {
        assert!(text.parse::<Setting>().unwrap_err().contains(why), "{text}");
    }
}

#[test]
fn a_mistake_of_the_file_keeps_its_place() {
    let text = FILE.replace("2 Mbit/s", "2 mx");
    let problems =
        Experiment::parse_with(&text, "x.toml", &(), &settings(&["seed=3"])).expect_err("it is wrong");
    assert!(problems.to_string().starts_with("x.toml:10:8: `rate`"), "{problems}");
    let mended = Experiment::parse_with(&text, "x.toml", &(), &settings(&["link.trunk.rate=2 Mbit/s"]));
    assert!(mended.is_ok(), "a setting may mend a mistake");
}

/// Setting every swept key to the values of a point is that point.
#[test]
fn a_setting_means_what_a_swept_value_means() {
    for name in EXAMPLES {
        let text = example(name);
        let experiment = Experiment::parse(&text, name, &Beside).unwrap_or_else(|e| panic!("{e}"));
        let is_single = |key: &str| !key.contains(',');
        for point in experiment.points.iter().rev().take(3) {
            let values =
                experiment.axes.iter().zip(&point.choice).map(|(axis, chosen)| match is_single(&axis.key) {
                    true => format!("{}={}", axis.key, axis.values[*chosen]),
                    false => format!("sweep.{}=[{}]", axis.key, axis.values[*chosen]),
                });
            let values: Vec<Setting> =
                values.map(|text| text.parse().unwrap_or_else(|e| panic!("{name}: {e}"))).collect();
            let set = Experiment::parse_with(&text, name, &Beside, &values);
            let set = set.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(set.points.len(), 1, "{name}");
            assert_eq!(
                format!("{:?}", set.points.first().scenario),
                format!("{:?}", point.scenario),
                "{name}: {values:?}"
            );
        }
    }
}
