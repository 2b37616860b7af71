//! The same seed gives the same bytes, in another process too.

mod support;

use support::{Log, parse, run};

/// Everything that draws numbers, at once.
const EVERYTHING: &str = r#"
name = "everything"
duration = "3 s"
seed = 11
[hosts]
a = {}
b = {}
[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "10 ms"
loss = { kind = "gilbert-elliott", to-bad = "1 %", to-good = "30 %" }
jitter = { kind = "exponential", mean = "3 ms" }
reorder = "2 %"
duplicate = "1 %"
corrupt = "1 %"
[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", talk = { kind = "exponential", mean = "400 ms" }, silence = { kind = "exponential", mean = "600 ms" } }
channels = 5
reflect = true
[flow.load]
from = "b"
to = "a"
transport = "udp"
source = { kind = "load", message = { kind = "uniform", min = "40 B", max = "1400 B" }, interval = { kind = "exponential", mean = "20 ms" } }
count = 3
[flow.reno]
from = "a"
to = "b"
transport = { kind = "tcp", window = "32 KiB", congestion-control = "reno" }
source = { kind = "bulk" }
[flow.cubic]
from = "b"
to = "a"
transport = { kind = "tcp", congestion-control = "cubic" }
source = { kind = "bulk", message = { kind = "bivalue", first = "100 B", second = "9 KB", probability = 0.3 } }
count = 2
"#;

fn observed(seed: u64) -> String {
    let experiment = parse(EVERYTHING);
    let mut log = Log::default();
    let outcome = run(&experiment.points.first().scenario, seed, &mut log, &mut support::GoOn);
    assert!(log.0.len() > 2_000, "{} observations", log.0.len());
    // FNV-1a over everything observed: 64 bits are enough to tell two runs apart.
    let text = format!("{:?} {outcome:?}", log.0);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[test]
fn the_same_seed_gives_the_same_observations_in_another_process() {
    trunkline_testkit::two_process::assert_same_in_another_process(
        "the_same_seed_gives_the_same_observations_in_another_process",
        || observed(11),
    );
}

#[test]
fn another_seed_gives_others() {
    assert_ne!(observed(11), observed(12));
}
