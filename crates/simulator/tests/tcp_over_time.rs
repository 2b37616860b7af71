//! Samples of TCP connections agree with the engine's counters, and cost no more than their bound.

mod support;

use proptest::prelude::*;
use support::{GoOn, Log, flow, parse, run, simulate};
use trunkline_core::{Bytes, Time};
use trunkline_experiment::Experiment;
use trunkline_metrics::{ConnectionOverTime, ConnectionSample};

fn bulk(duration: &str, transport: &str, link: &str, flows: usize) -> Experiment {
    let mut text = format!(
        "name = \"test\"\nduration = \"{duration}\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"4 Mbit/s\"\ndelay = \"15 ms\"\n{link}\n"
    );
    for n in 0..flows {
        text += &format!(
            "[flow.bulk{n}]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {{ kind = \"bulk\" }}\n"
        );
    }
    parse(&text)
}

/// Retransmissions by cause.
fn causes(sample: &ConnectionSample) -> [u64; 4] {
    let of = &sample.retransmissions;
    [of.fast, of.rack, of.tail_probe, of.timeout].map(|cause| cause.expect("the engine knows all causes"))
}

/// Retransmissions by the name of the engine's counter.
fn named(sample: &ConnectionSample) -> [(&'static str, u64); 6] {
    let [fast, rack, tail_probe, timeout] = causes(sample);
    [
        ("retransmissions", sample.retransmissions.all),
        ("retransmissions-fast", fast),
        ("retransmissions-rack", rack),
        ("retransmissions-tail-probe", tail_probe),
        ("retransmissions-timeout", timeout),
        ("retransmissions-spurious", sample.retransmissions.spurious.expect("the engine knows them")),
    ]
}

/// The counters are those of both ends. The sink sends no data, but it may repeat its SYN and its FIN so often.
const OF_FAR_END: u64 = 8;

/// A connection that pauses is sampled in its pauses too: the mean is that over time.
#[test]
fn pauses_are_sampled_like_the_rest() {
    let experiment = parse(
        "name = \"test\"\nduration = \"10 s\"\nseed = 7\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
         rate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\n\
         source = { kind = \"load\", message = \"100 KB\", interval = \"2 s\" }\n",
    );
    let outcome = run(&experiment.points.first().scenario, 7, &mut Log::default(), &mut GoOn);
    let samples = &outcome.flows[0].connection;
    let steps: Vec<u64> =
        samples.windows(2).map(|pair| pair[1].at.as_nanos() - pair[0].at.as_nanos()).collect();
    let regular = &steps[..steps.len() - 1];
    assert!(steps.len() > 300 && regular.iter().all(|step| *step == regular[0]), "{steps:?}");
    // 50 KB/s that stay for a round trip of 0.1 s: 5 KB in the mean.
    let mean =
        samples.iter().map(|sample| sample.in_flight.count() as f64).sum::<f64>() / samples.len() as f64;
    assert!((4000.0..7000.0).contains(&mean), "{mean}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn causes_add_up_to_the_counters(
        loss in 0u32..60,
        reorder in 0u32..30,
        duplicate in 0u32..20,
        control in prop::sample::select(vec!["cubic", "reno", "bbr"]),
        recovery in prop::sample::select(vec!["", ", recovery = \"dupack\", tail-loss-probe = false", ", sack = false"]),
        seed in any::<u64>(),
    ) {
        let link = format!(
            "loss = \"{} %\"\nreorder = \"{} %\"\nduplicate = \"{} %\"\njitter = {{ kind = \"exponential\", mean = \"1 ms\" }}",
            f64::from(loss) / 10.0, f64::from(reorder) / 10.0, f64::from(duplicate) / 10.0,
        );
        let transport = format!("{{ kind = \"tcp\", congestion-control = \"{control}\"{recovery} }}");
        let experiment = bulk("4 s", &transport, &link, 2);
        let outcome = run(&experiment.points.first().scenario, seed, &mut Log::default(), &mut GoOn);
        for flow in &outcome.flows {
            let samples = &flow.connection;
            prop_assert!((2..=ConnectionOverTime::SAMPLES).contains(&samples.len()), "{}", samples.len());
            prop_assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
            for pair in samples.windows(2) {
                let [before, after] = [causes(&pair[0]), causes(&pair[1])];
                prop_assert!(before.iter().zip(after).all(|(before, after)| *before <= after));
            }
            for sample in samples {
                prop_assert_eq!(causes(sample).iter().sum::<u64>(), sample.retransmissions.all);
                prop_assert!(sample.congestion_window > Bytes::ZERO);
            }
            let last = samples[samples.len() - 1];
            prop_assert_eq!(last.at, Time::ZERO + outcome.duration + experiment.points.first().scenario.drain);
            for (name, own) in named(&last) {
                let both = flow.transport_counters[name];
                prop_assert!((own..=own + OF_FAR_END).contains(&both), "{name}: {own} of {both}");
            }
        }
    }
}

#[test]
fn the_window_grows_in_slow_start_and_falls_after_loss() {
    let queue = "queue = { kind = \"fifo\", limit = \"15 KB\" }";
    let experiment = bulk("10 s", "\"tcp\"", queue, 1);
    let summary = simulate(&experiment);
    let summary = flow(&summary, "bulk0");
    let samples = &summary.connection;
    // Nothing is lost on the way back, so the sink repeats nothing.
    for (name, own) in named(&samples[samples.len() - 1]) {
        assert_eq!(summary.transport_counters[name], own, "{name}");
    }
    assert!(samples.len() > 300, "{}", samples.len());
    let first_loss = samples.iter().position(|s| s.retransmissions.all > 0).expect("the queue drops");
    let before = &samples[..first_loss];
    assert!(before.iter().all(|s| s.slow_start_threshold.is_none()), "{before:?}");
    // In the handshake the ends agree on smaller segments, of which the window counts as many as before.
    let connected = before.iter().skip_while(|s| s.smoothed_round_trip.is_none());
    let windows = connected.map(|s| s.congestion_window);
    assert!(windows.is_sorted(), "{before:?}");
    let largest = before.iter().map(|s| s.congestion_window).max().unwrap();
    let smallest = samples[first_loss..].iter().map(|s| s.congestion_window).min().unwrap();
    assert!(smallest < largest, "{largest} before the loss, then {smallest}");
    assert!(samples[first_loss + 4].slow_start_threshold.is_some(), "{:?}", samples[first_loss + 4]);
    // 30 ms there and back, and a queue of 15 KB at 4 Mbit/s: 30 ms more.
    let round_trips = samples.iter().filter_map(|s| s.smoothed_round_trip).map(|rtt| rtt.as_millis_f64());
    assert!(round_trips.clone().count() > 300 && round_trips.clone().all(|rtt| (30.0..65.0).contains(&rtt)));
    assert!(
        samples.iter().any(|s| s.in_flight > Bytes(10_000))
            && samples.iter().any(|s| s.pacing_rate.is_some())
    );
}

/// Linux 6.1 in virtual time, over 20 Mbit/s and 40 ms through 50 KB: a train of acknowledgements ends slow start at 75 segments.
#[test]
fn hystart_ends_slow_start_where_linux_does() {
    let link = "queue = { kind = \"fifo\", limit = \"50 KB\" }";
    let text = "{ kind = \"tcp\", congestion-control = \"cubic\" }";
    let experiment = parse(&format!(
        "name = \"test\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n{link}\n\
         [flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = {text}\nsource = {{ kind = \"bulk\", message = \"8 KiB\" }}\n"
    ));
    let summary = simulate(&experiment);
    let mut thresholds = flow(&summary, "bulk").connection.iter().filter_map(|s| s.slow_start_threshold);
    let first = thresholds.next().expect("slow start ends").count() / 1448;
    assert!((72..=78).contains(&first), "{first} segments");
}

#[test]
fn samples_are_taken_of_a_bounded_number_of_tcp_flows_only() {
    let mut experiment = bulk("1 s", "\"tcp\"", "", ConnectionOverTime::FLOWS + 2);
    let summary = simulate(&experiment);
    let sampled: Vec<bool> = summary.flows.iter().map(|flow| !flow.connection.is_empty()).collect();
    assert_eq!(sampled.iter().filter(|sampled| **sampled).count(), ConnectionOverTime::FLOWS);
    assert!(sampled[..ConnectionOverTime::FLOWS].iter().all(|sampled| *sampled));
    experiment = bulk("1 s", "\"quic\"", "", 1);
    assert!(simulate(&experiment).flows[0].connection.is_empty());
}
