//! Links whose rate, delay and loss change over time, against closed formulas.

mod support;

use support::{flow, parse, simulate};
use trunkline_metrics::RepetitionSummary;

fn run(link: &str, duration: &str, source: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"{duration}\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
         {link}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = {source}\n"
    )))
}

#[test]
fn an_overloaded_line_carries_the_mean_of_its_rates() {
    // 0.2 s at 6 Mbit/s and 0.3 s at 1 Mbit/s, 20 times: 3 Mbit/s. The queue never empties.
    let link = r#"rate = { kind = "steps", steps = [["0 s", "6 Mbit/s"], ["200 ms", "1 Mbit/s"]], every = "500 ms" }"#;
    let summary = run(link, "10 s", r#"{ kind = "load", message = "1000 B", interval = "1 ms" }"#);
    let network = flow(&summary, "f").throughput.network.map_or(0, |rate| rate.bits_per_second());
    assert!(network.abs_diff(3_000_000) < 15_000, "{network}");
    let utilisation = summary.links[0].utilisation.value();
    assert!(utilisation > 0.999, "{utilisation}");
}

#[test]
fn a_burst_of_bits_takes_as_long_as_the_rates_say() {
    // A message of 972 B is 1,000 B on the line, 8 ms at 1 Mbit/s and 2 ms at 4 Mbit/s: of the first only half.
    let link = r#"rate = { kind = "steps", steps = [["0 s", "1 Mbit/s"], ["4 ms", "4 Mbit/s"], ["1 s", "8 Mbit/s"]] }"#;
    let source = r#"{ kind = "bulk", message = "972 B", interval = "2 s", messages = 2 }"#;
    let summary = run(link, "5 s", source);
    let latency = flow(&summary, "f").latency.expect("both arrive");
    assert_eq!((latency.count, latency.min.as_nanos(), latency.max.as_nanos()), (2, 1_000_000, 5_000_000));
}

#[test]
fn latency_follows_the_delay_and_packets_wait_for_earlier_ones() {
    // Voice of 10 ms: 108 B at 8.64 Mbit/s take 0.1 ms. Down from 40 ms to 20 ms a packet waits for the one before.
    let link = "rate = \"8640 kbit/s\"\n\
                delay = { kind = \"steps\", steps = [[\"0 s\", \"20 ms\"], [\"1 s\", \"40 ms\"]], every = \"2 s\" }";
    let summary = run(link, "100 s", "\"voice\"");
    let latency = flow(&summary, "f").latency.expect("they arrive");
    assert_eq!((latency.min.as_nanos(), latency.max.as_nanos()), (20_100_000, 40_100_000));
    // Of 200 packets of a period 100 have the one delay; of the others one or two wait up to 20 ms for those before.
    let mean = latency.mean.as_millis_f64();
    assert!((30.1..30.25).contains(&mean), "{mean}");
}

#[test]
fn losses_in_time_hit_their_share_at_any_packet_rate() {
    for (samples, seconds) in [(80, 1_000), (8, 500)] {
        let link = "rate = \"100 Mbit/s\"\nloss = { kind = \"bursts\", good = \"900 ms\", bad = \"100 ms\" }";
        let source = format!("{{ kind = \"voice\", samples = {samples} }}");
        let summary = run(link, &format!("{seconds} s"), &source);
        let lost = flow(&summary, "f").loss.value();
        // The deviation of a mean over a time T is sqrt(2 * 0.1 * 0.9 * 0.09 s / T): 0.4 % and 0.6 %.
        assert!((lost - 0.1).abs() < 0.018, "{lost} with {samples} samples");
    }
}

#[test]
fn jitter_with_memory_keeps_its_distribution() {
    let link = "rate = \"100 Mbit/s\"\njitter = { kind = \"normal\", mean = \"20 ms\", deviation = \"3 ms\" }\n\
                jitter-memory = \"100 ms\"";
    let summary = run(link, "1000 s", "\"voice\"");
    let flow = flow(&summary, "f");
    let latency = flow.latency.expect("they arrive");
    let (mean, deviation) = (latency.mean.as_millis_f64(), latency.standard_deviation.as_millis_f64());
    // Waiting for the packet before adds a little; packets 10 ms apart differ by 3 ms * sqrt(2 (1 - exp(-0.1))) = 1.3 ms.
    assert!((mean - 20.0).abs() < 0.2 && (deviation - 3.0).abs() < 0.2, "{mean} {deviation}");
}
