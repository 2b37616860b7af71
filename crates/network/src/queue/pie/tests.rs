use proptest::prelude::*;
use trunkline_core::{Ecn, PacketId, Seed};

use super::super::workload::{Line, Loop, Reaction, mean};
use super::*;

const RATE: u64 = 10_000_000;

fn config() -> PieConfig {
    PieConfig {
        limit: Limit::Packets(100_000),
        target: Duration::from_millis(15),
        t_update: Duration::from_millis(15),
        alpha: 0.125,
        beta: 1.25,
        max_burst: Duration::from_millis(150),
        mtu: Bytes(1500),
        ecn: false,
        ecn_threshold: 0.1,
        derandomise: false,
        cap_increase: false,
        raise_above_250ms: false,
    }
}

fn pie(config: PieConfig) -> Pie {
    Pie::new(config, Seed::new(1, 0).stream("queue"))
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// The law of RFC 8033 section 4.2 over a list of delays in seconds, written down a second time: rungs as powers of
/// four, and probabilities in millionths.
fn by_the_rfc(delays: &[f64]) -> f64 {
    let (mut ppm, mut old) = (0.0, 0.0);
    for &delay in delays {
        let rungs = [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0];
        let below = rungs.iter().filter(|&&rung| ppm < rung).count() as i32;
        let scale = if below == 0 { 1.0 } else { 0.5 * 0.25_f64.powi(below - 1) };
        ppm += 1e6 * scale * (0.125 * (delay - 0.015) + 1.25 * (delay - old));
        if delay == 0.0 && old == 0.0 {
            ppm *= 0.98;
        }
        ppm = ppm.clamp(0.0, 1e6);
        old = delay;
    }
    ppm / 1e6
}

proptest! {
    #[test]
    fn the_probability_follows_the_law(
        delays in prop::collection::vec(prop_oneof![2 => 0u64..100_000_000, 1 => Just(0)], 1..200),
    ) {
        let mut control = Control::new(&config());
        for &delay in &delays {
            control.delay = Duration::from_nanos(delay);
            control.update(&config());
        }
        let seconds: Vec<f64> = delays.iter().map(|&nanos| nanos as f64 / 1e9).collect();
        let expected = by_the_rfc(&seconds);
        prop_assert!(
            (control.probability - expected).abs() <= 1e-9,
            "{} instead of {expected}", control.probability
        );
    }
}

#[test]
fn each_rung_of_the_ladder_divides_the_step() {
    // 10 ms above the target, unchanged: alpha alone adds 0.125 * 0.010.
    for (probability, divisor) in [
        (0.0, 2048.0),
        (0.000_000_9, 2048.0),
        (0.000_001, 512.0),
        (0.000_009, 512.0),
        (0.000_01, 128.0),
        (0.000_1, 32.0),
        (0.001, 8.0),
        (0.01, 2.0),
        (0.1, 1.0),
        (0.9, 1.0),
    ] {
        let delay = Duration::from_millis(25);
        let mut control = Control { probability, delay, previous_delay: delay, ..Control::new(&config()) };
        control.update(&config());
        let step = control.probability - probability;
        assert!((step * divisor - 0.00125).abs() < 1e-12, "{probability}: {step}");
    }
}

#[test]
fn without_congestion_the_probability_also_decays_exponentially() {
    let mut control = Control { probability: 0.5, ..Control::new(&config()) };
    control.update(&config());
    assert!((control.probability - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    // Once a packet waited, only the law counts.
    control = Control { probability: 0.5, delay: Duration::from_nanos(1), ..Control::new(&config()) };
    control.update(&config());
    assert!((control.probability - (0.5 - 0.125 * 0.015)).abs() < 1e-7);
}

#[test]
fn the_delay_is_that_of_the_packet_that_left_last_and_zero_once_nothing_waits() {
    let (mut queue, mut fates) = (pie(config()), Fates::default());
    for _ in 0..3 {
        queue.enqueue(Time::ZERO, Packet::default(), &mut fates);
    }
    let mut delay_after = |millis| {
        queue.dequeue(at(millis), &mut fates);
        queue.control.delay
    };
    assert_eq!([3, 8, 20].map(&mut delay_after).map(Duration::as_millis_f64), [3.0, 8.0, 0.0]);
}

#[test]
fn a_capped_increase_is_two_percent_from_ten_percent_on() {
    let cap = PieConfig { cap_increase: true, ..config() };
    let step = |config: &PieConfig, probability: f64| {
        let mut control = Control { probability, ..Control::new(config) };
        control.delay = Duration::from_millis(200);
        control.update(config);
        control.probability - probability
    };
    assert!((step(&cap, 0.1) - 0.02).abs() < 1e-12);
    assert!((step(&cap, 0.099) - (0.125 * 0.185 + 1.25 * 0.2) / 2.0).abs() < 1e-12);
    assert!((step(&config(), 0.1) - (0.125 * 0.185 + 1.25 * 0.2)).abs() < 1e-12);
}

#[test]
fn a_delay_above_250_ms_adds_two_percent_also_to_a_capped_step() {
    let linux = PieConfig { cap_increase: true, raise_above_250ms: true, ..config() };
    let step = |config: &PieConfig, millis: u64| {
        let delay = Duration::from_millis(millis);
        let mut control = Control { probability: 0.5, delay, previous_delay: delay, ..Control::new(config) };
        control.update(config);
        control.probability - 0.5
    };
    assert!((step(&linux, 251) - 0.04).abs() < 1e-12);
    assert!((step(&linux, 250) - 0.02).abs() < 1e-12);
    assert!((step(&config(), 251) - 0.125 * 0.236).abs() < 1e-12);
}

#[test]
fn a_queue_may_grow_for_the_burst_allowance_before_anything_is_dropped() {
    let mut line = Line::new(pie(config()), RATE);
    line.flood((Time::ZERO, at(1_000)), 60_000_000, 1000, Ecn::NotCapable);
    let first = line.drops(DropCause::Probability)[0];
    // The tenth update takes the last of the allowance away; six times the line's rate leaves no doubt about the
    // probability by then.
    assert!(first >= at(150) && first < at(200), "{first}");

    let eager = PieConfig { max_burst: Duration::ZERO, ..config() };
    let mut line = Line::new(pie(eager), RATE);
    line.flood((Time::ZERO, at(1_000)), 60_000_000, 1000, Ecn::NotCapable);
    assert!(line.drops(DropCause::Probability)[0] < at(150));
}

#[test]
fn the_burst_allowance_returns_when_congestion_is_over() {
    let allowance_after = |control: &mut Control, delay_ms: u64| {
        control.delay = Duration::from_millis(delay_ms);
        control.update(&config());
        control.burst_allowance.as_millis_f64()
    };
    let mut control = Control::new(&config());
    for left in [135.0, 120.0, 105.0, 90.0, 75.0, 60.0, 45.0, 30.0, 15.0, 0.0, 0.0] {
        assert_eq!(allowance_after(&mut control, 100), left);
    }
    // The delay falls so much that the probability is zero, but the sample before was long.
    assert_eq!(allowance_after(&mut control, 7), 0.0);
    assert_eq!(control.probability, 0.0);
    assert_eq!(allowance_after(&mut control, 7), 150.0);
    // Short samples alone do not bring it back.
    control = Control { probability: 0.5, burst_allowance: Duration::ZERO, ..control };
    assert_eq!(allowance_after(&mut control, 7), 0.0);
    assert!(control.probability > 0.4);
    // Nor does half the target count as short.
    control = Control { probability: 0.0, previous_delay: Duration::from_micros(7_500), ..control };
    assert_eq!(allowance_after(&mut control, 7), 0.0);
}

/// A queue with the given probability and no burst allowance, in which 100 packets wait.
fn loaded(config: PieConfig, probability: f64, previous_delay: Duration) -> Pie {
    let mut queue = pie(config);
    for _ in 0..100 {
        queue.enqueue(Time::ZERO, Packet { size: Bytes(1000), ..Packet::default() }, &mut Fates::default());
    }
    let delay = previous_delay;
    queue.control =
        Control { probability, delay, previous_delay, burst_allowance: Duration::ZERO, accumulated: 0.0 };
    queue
}

/// Offers `n` packets, letting one leave for each so that the queue stays, and returns the numbers of those dropped
/// and marked.
fn offer(queue: &mut Pie, n: u64, ecn: Ecn) -> (Vec<u64>, Vec<u64>) {
    let mut fates = Fates::default();
    for id in 0..n {
        let packet = Packet { id: PacketId(id), size: Bytes(1000), ecn, ..Packet::default() };
        let before = queue.packets.len();
        queue.enqueue(Time::ZERO, packet, &mut fates);
        if queue.packets.len() > before {
            queue.dequeue(Time::ZERO, &mut fates);
        }
    }
    let (mut drops, mut marks) = (Vec::new(), Vec::new());
    for fate in fates.0 {
        match fate {
            Fate::Dropped { packet, cause, .. } => {
                assert_eq!(cause, DropCause::Probability);
                drops.push(packet.id.0);
            }
            Fate::Marked { id, cause, .. } => {
                assert_eq!(cause, MarkCause::Probability);
                marks.push(id.0);
            }
        }
    }
    (drops, marks)
}

#[test]
fn packets_are_dropped_with_the_probability() {
    for probability in [0.01, 0.1, 0.5] {
        let mut queue = loaded(config(), probability, Duration::from_millis(20));
        let (drops, _) = offer(&mut queue, 100_000, Ecn::NotCapable);
        let share = drops.len() as f64 / 100_000.0;
        let deviation = (probability * (1.0 - probability) / 100_000.0).sqrt();
        assert!((share - probability).abs() < 4.0 * deviation, "{share} instead of {probability}");
    }
}

#[test]
fn a_short_delay_or_a_short_queue_saves_from_early_drops() {
    let drops = |probability, delay_ms, keep: usize| {
        let mut queue = loaded(config(), probability, Duration::from_millis(delay_ms));
        queue.packets.truncate(keep);
        queue.bytes = Bytes(1000 * keep as u64);
        offer(&mut queue, 1000, Ecn::NotCapable).0.len()
    };
    assert!(drops(0.19, 8, 100) > 100);
    assert_eq!(drops(0.19, 7, 100), 0, "below half the target and 20 %");
    assert!(drops(0.21, 7, 100) > 100);
    assert_eq!(drops(0.21, 20, 3), 0, "two packets of 1500 B");
    assert!(drops(0.21, 20, 4) > 100);
}

#[test]
fn capable_packets_are_marked_below_the_threshold_and_others_dropped() {
    let ecn = PieConfig { ecn: true, ..config() };
    for (config, probability, capability, marked) in [
        (ecn, 0.09, Ecn::Ect0, true),
        (ecn, 0.11, Ecn::Ect0, false),
        (ecn, 0.09, Ecn::NotCapable, false),
        (config(), 0.09, Ecn::Ect0, false),
    ] {
        let mut queue = loaded(config, probability, Duration::from_millis(20));
        let (drops, marks) = offer(&mut queue, 1000, capability);
        assert_eq!(marks.is_empty(), !marked, "{capability:?} at {probability}");
        assert_eq!(drops.is_empty(), marked, "{capability:?} at {probability}");
    }
}

#[test]
fn without_randomness_drops_are_neither_close_nor_far_apart() {
    let gaps = |derandomise| {
        let mut queue = loaded(PieConfig { derandomise, ..config() }, 0.1, Duration::from_millis(20));
        let (drops, _) = offer(&mut queue, 20_000, Ecn::NotCapable);
        let gaps: Vec<u64> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap())
    };
    let (least, most) = gaps(true);
    // Nine tenths are the first sum above 0.85; rounding of the sums may add one packet at either end.
    assert!(least >= 9 && most <= 86, "{least}..{most}");
    assert_eq!(gaps(false).0, 1);
}

#[test]
fn senders_that_back_off_are_held_at_the_target() {
    for ecn in [false, true] {
        let line = Line::new(pie(PieConfig { ecn, ..config() }), RATE);
        let capability = if ecn { Ecn::Ect0 } else { Ecn::NotCapable };
        let mut senders = Loop::new(line, Duration::from_millis(50), &[(Reaction::Reno, capability); 5]);
        senders.run(at(80_000));
        let sojourns = senders.line.sojourns(|time, _| time > at(20_000));
        // 60 s at 10 Mbit/s are 50 000 packets of 1500 B.
        assert!(sojourns.len() > 48_500, "{}", sojourns.len());
        let mean = mean(&sojourns);
        assert!((12.0..18.0).contains(&mean), "{mean}");
    }
}

#[test]
fn long_idleness_costs_no_updates_and_ends_where_it_must() {
    let mut queue = loaded(config(), 0.8, Duration::from_millis(500));
    let mut stepwise = queue.clone();
    let mut fates = Fates::default();
    while let Dequeued::Packet(_) = queue.dequeue(Time::ZERO, &mut fates) {}
    while let Dequeued::Packet(_) = stepwise.dequeue(Time::ZERO, &mut fates) {}
    for minute in 1..=60 {
        stepwise.dequeue(at(minute * 60_000), &mut fates);
    }
    // 500 years are 10^12 updates.
    queue.dequeue(at(60 * 60_000), &mut fates);
    assert_eq!(queue.control, stepwise.control);
    queue.dequeue(at(500 * 365 * 86_400_000), &mut fates);
    assert_eq!(queue.control, Control::new(&config()));
}
