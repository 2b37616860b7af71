//! Keys as lines of numbers: ranges, units, and values that are read as they were written.

use proptest::prelude::*;
use trunkline_experiment::{Experiment, Searchable};

const FILE: &str = r#"name = "searchable"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "1594 kbit/s"
delay = "51.5 ms"
loss = "1 %"
queue = { kind = "fifo", limit = "64 KiB" }

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice" }

[flow.bulk]
from = "a"
to = "b"
transport = { kind = "tcp", window = "16 KiB" }
source = { kind = "bulk", message = "8 KB" }
"#;

fn searchable(key: &str) -> Result<Searchable, String> {
    Experiment::parse(FILE, "x.toml", &()).unwrap_or_else(|e| panic!("{e}")).searchable(key)
}

#[test]
fn keys_know_what_they_are() {
    for (key, now, unit, count) in [
        ("flow.voice.count", "1", "", true),
        ("flow.bulk.transport.window", "16 KiB", "KiB", false),
        ("flow.bulk.source.message", "8 KB", "KB", false),
        ("link.trunk.rate", "1594 kbit/s", "kbit/s", false),
        ("link.trunk.delay", "51.5 ms", "ms", false),
        ("link.trunk.backward.delay", "51.5 ms", "ms", false),
        ("link.trunk.loss", "1 %", "%", false),
        ("link.trunk.queue.limit", "64 KiB", "KiB", false),
    ] {
        let found = searchable(key).unwrap_or_else(|e| panic!("{e}"));
        let value = found.now().unwrap_or_else(|| panic!("{key} has a value"));
        assert_eq!(
            (found.written(value).as_str(), found.unit(), found.is_count()),
            (now, unit, count),
            "{key}"
        );
    }
    assert!(searchable("flow.voice.count").unwrap().range().contains(&1000));
}

#[test]
fn both_ends_of_a_range_have_the_same_unit() {
    let delay = searchable("link.trunk.delay").unwrap().in_unit_of("1 h");
    let hour = 3_600_000_000_000;
    assert_eq!(delay.written_range(hour, 2 * hour), "1 h to 2 h");
    assert_eq!(delay.written_range(hour, hour + 1), "3600000000000 to 3600000000001 ns");
}

#[test]
fn keys_that_vary_together_are_searched_together() {
    let both = searchable("flow.voice.count, flow.bulk.count").unwrap();
    assert_eq!(
        (both.key(), both.now(), both.is_count()),
        ("flow.voice.count, flow.bulk.count", Some(1), true)
    );
    let apart = searchable("flow.voice.count, link.trunk.rate").unwrap_err();
    assert_eq!(
        apart,
        "`flow.voice.count` and `link.trunk.rate` do not take the same values; search for them one by one"
    );
}

#[test]
fn what_cannot_be_searched_is_refused_in_a_sentence() {
    for (key, says) in [
        ("flow.voice.cont", "did you mean `flow.voice.count`?"),
        ("flow.voice.transport", "takes a name, a word or a table"),
        ("flow.voice.reflect", "takes `true` or `false`"),
        ("repetitions", "applies to all points"),
    ] {
        let refused = searchable(key).map(|_| key).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
    let rate = searchable("link.trunk.rate").unwrap();
    assert!(rate.parse("12 ms").unwrap_err().contains("must be a rate"), "{:?}", rate.parse("12 ms"));
    let limit = searchable("link.trunk.queue.limit").unwrap();
    assert!(limit.parse("12 packets").unwrap_err().contains("a limit in KiB"));
    assert!(limit.in_unit_of("12 packets").parse("12 packets").is_ok());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        value in 1u64..1_000_000_000_000, unit in prop_oneof![Just("kbit/s"), Just("Gbit/s"), Just("bit/s")],
        time in 0u64..3_600_000_000_000, time_unit in prop_oneof![Just("ns"), Just("ms"), Just("min"), Just("h")],
        size in 1u64..1 << 40, size_unit in prop_oneof![Just("B"), Just("KiB"), Just("GB"), Just("GiB")],
        parts in 0u64..=1000,
    ) {
        for (key, unit, value) in [
            ("link.trunk.rate", unit, value),
            ("link.trunk.delay", time_unit, time),
            ("link.trunk.queue.limit", size_unit, size),
            ("link.trunk.loss", "%", parts * 1_000_000),
        ] {
            let searchable = searchable(key).unwrap().in_unit_of(&format!("1 {unit}"));
            prop_assert_eq!(searchable.parse(&searchable.written(value)), Ok(value));
        }
    }
}
