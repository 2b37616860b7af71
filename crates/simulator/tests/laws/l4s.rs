//! TCP Prague through DualPI2: what RFC 9330 and 9332 promise.

use trunkline_core::Duration;
use trunkline_metrics::RepetitionSummary;

use crate::support::{flow, parse, simulate};

/// Flows of 20 s over one DualPI2 queue, and a call whose packets ask for the low-latency service.
fn run(megabits: u32, round_trip: u32, flows: &[&str]) -> RepetitionSummary {
    let delay = f64::from(round_trip) / 2.0;
    let mut text = format!(
        "name = \"test\"\nduration = \"20 s\"\ndrain = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"{megabits} Mbit/s\"\ndelay = \"{delay} ms\"\nqueue = \"dualpi2\"\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"udp\", ecn = \"ect1\" }}\n\
         source = {{ kind = \"voice\", samples = 80 }}\n"
    );
    for (number, name) in flows.iter().enumerate() {
        text += &format!(
            "[flow.bulk-{number}]\nfrom = \"a\"\nto = \"b\"\n\
             transport = {{ kind = \"tcp\", congestion-control = \"{name}\" }}\n\
             source = {{ kind = \"bulk\", message = \"8 KiB\" }}\n"
        );
    }
    simulate(&parse(&text))
}

/// Goodput of a flow in Mbit/s.
fn goodput(summary: &RepetitionSummary, number: usize) -> f64 {
    flow(summary, &format!("bulk-{number}")).throughput.user.bits_per_second() as f64 / 1e6
}

/// Mean and 99th percentile of what a packet of the call waited in the queue, in ms.
fn queueing(summary: &RepetitionSummary, megabits: u32, round_trip: u32) -> [f64; 2] {
    let delay = flow(summary, "voice").latency.expect("packets of the call arrived");
    let base = f64::from(round_trip) / 2.0 + 108.0 * 8.0 / f64::from(megabits) / 1e3;
    [delay.mean, delay.p99].map(|delay: Duration| delay.as_secs_f64() * 1e3 - base)
}

/// RFC 9330 section 1: below a millisecond on average, one to two at the 99th percentile, at full utilisation.
#[test]
fn prague_keeps_the_low_latency_queue_below_a_millisecond_at_full_utilisation() {
    for round_trip in [5, 15] {
        let summary = run(40, round_trip, &["prague"]);
        let [mean, p99] = queueing(&summary, 40, round_trip);
        let used = summary.links[0].utilisation.value();
        assert!(mean < 1.0 && p99 < 2.0, "{round_trip} ms: {mean} ms, {p99} ms");
        // The whole run counts, with slow start and what is silent after it.
        assert!(used > 0.95, "{round_trip} ms: {used}");
        assert_eq!(summary.links[0].dropped.values().sum::<u64>(), 0, "{round_trip} ms");
    }
}

/// RFC 9332 section 2.1: with a coupling of 2, a flow of either kind gets about the same rate. De Schepper, Albisser, Tilmans and
/// Briscoe 2022 measured ratios between a half and two.
#[test]
fn prague_and_cubic_share_a_dual_queue_while_the_call_waits_less_than_a_millisecond() {
    for round_trip in [10, 40] {
        let summary = run(40, round_trip, &["prague", "cubic"]);
        let [prague, cubic] = [0, 1].map(|number| goodput(&summary, number));
        let [mean, p99] = queueing(&summary, 40, round_trip);
        let used = summary.links[0].utilisation.value();
        assert!((0.5..2.0).contains(&(prague / cubic)), "{round_trip} ms: {prague} and {cubic} Mbit/s");
        assert!(mean < 1.0 && p99 < 2.0 && used > 0.95, "{round_trip} ms: {mean} ms, {p99} ms, {used}");
    }
}
