use proptest::prelude::*;
use trunkline_core::{Packet, Seed, Time};

use super::stage::{Passage, Stage};
use super::*;

const PLACE: &str = "link.trunk/a-b";
const PACKETS: usize = 200_000;

fn share(value: f64) -> Ratio {
    Ratio::new(value).unwrap()
}

fn losses(loss: Loss) -> Vec<bool> {
    let mut model = LossModel::new(loss, Seed::new(11, 0).stream("loss"));
    (0..PACKETS as u64).map(|n| model.loses(due(n))).collect()
}

fn lost_share(losses: &[bool]) -> f64 {
    losses.iter().filter(|&&lost| lost).count() as f64 / losses.len() as f64
}

fn mean_burst(losses: &[bool]) -> f64 {
    let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(losses[0]);
    losses.iter().filter(|&&lost| lost).count() as f64 / bursts as f64
}

/// What happens to packets due every millisecond, of 100 zero bytes each, and their bytes afterwards.
fn passages(impairments: &Impairments, count: u64) -> Vec<(Passage, Vec<u8>)> {
    let mut stage = Stage::new(impairments, PLACE, Seed::new(5, 0));
    let pass = |n| {
        let mut packet = Packet { bytes: vec![0; 100], ..Packet::default() };
        let passage = stage.pass(due(n), &mut packet);
        (passage, packet.bytes)
    };
    (0..count).map(pass).collect()
}

fn due(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

/// Everything on, as one of its parts.
fn everything() -> Impairments {
    Impairments {
        loss: Loss::Bernoulli(share(0.1)),
        jitter: Some(Distribution::Exponential { mean: 2_000_000 }),
        jitter_memory: None,
        reorder: share(0.05),
        reorder_by: Duration::from_millis(7),
        duplicate: share(0.08),
        corrupt: share(0.2),
    }
}

#[test]
fn bernoulli_loss_converges_to_its_probability_without_memory() {
    for probability in [0.001, 0.01, 0.3] {
        let losses = losses(Loss::Bernoulli(share(probability)));
        let found = lost_share(&losses);
        // Four standard deviations of the binomial distribution.
        let tolerance = 4.0 * (probability * (1.0 - probability) / PACKETS as f64).sqrt();
        assert!((found - probability).abs() < tolerance, "{found} for {probability}");
        let burst = mean_burst(&losses);
        assert!((burst - 1.0 / (1.0 - probability)).abs() < 0.05, "mean burst {burst}");
    }
    assert!(losses(Loss::Bernoulli(Ratio::ZERO)).iter().all(|lost| !lost));
    assert!(losses(Loss::Bernoulli(Ratio::ONE)).iter().all(|lost| *lost));
}

#[test]
fn gilbert_elliott_bursts_have_the_stated_mean_length_and_share() {
    for (to_bad, to_good) in [(0.01, 0.25), (0.002, 0.1), (0.05, 0.9)] {
        let (to_bad, to_good) = (share(to_bad), share(to_good));
        let (loss_good, loss_bad) = (Ratio::ZERO, Ratio::ONE);
        let losses = losses(Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad });
        let (burst, expected) = (mean_burst(&losses), 1.0 / to_good.value());
        assert!((burst - expected).abs() < 0.1 * expected, "mean burst {burst} for {expected}");
        let (found, expected) = (lost_share(&losses), to_bad.value() / (to_bad.value() + to_good.value()));
        assert!((found - expected).abs() < 0.12 * expected, "{found} for {expected}");
    }
}

#[test]
fn gilbert_elliott_with_equal_states_is_bernoulli() {
    let (loss_good, loss_bad) = (share(0.05), share(0.05));
    let losses =
        losses(Loss::GilbertElliott { to_bad: share(0.5), to_good: share(0.5), loss_good, loss_bad });
    assert!((lost_share(&losses) - 0.05).abs() < 0.003);
    assert!((mean_burst(&losses) - 1.0 / 0.95).abs() < 0.02);
}

/// The share lost of packets with this gap, and of those behind a lost one.
fn bursts(gap: Duration, lost_good: f64, lost_bad: f64) -> (f64, f64) {
    let loss = Loss::Bursts {
        good: Duration::from_millis(900),
        bad: Duration::from_millis(100),
        loss_good: share(lost_good),
        loss_bad: share(lost_bad),
    };
    let mut model = LossModel::new(loss, Seed::new(3, 0).stream("loss"));
    let losses: Vec<bool> = (0..2_000_000).map(|n| model.loses(Time::ZERO + gap * n)).collect();
    let behind: Vec<bool> = losses.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
    (lost_share(&losses), lost_share(&behind))
}

#[test]
fn bursts_in_time_are_the_same_whatever_the_gap_between_packets() {
    // With a relaxation time of 1 / (1/900 + 1/100) = 90 ms, a bad state lasts on with 0.1 + 0.9 exp(-gap / 90 ms).
    for (gap, tolerance) in [(1, 0.012), (20, 0.004), (90, 0.004), (1_000, 0.003)] {
        let (lost, behind) = bursts(Duration::from_millis(gap), 0.0, 1.0);
        assert!((lost - 0.1).abs() < tolerance, "{lost} every {gap} ms");
        let expected = 0.1 + 0.9 * libm::exp(-(gap as f64) / 90.0);
        assert!((behind - expected).abs() < 0.006, "{behind} behind a loss for {expected} every {gap} ms");
    }
    let (lost, _) = bursts(Duration::from_millis(50), 0.02, 0.52);
    assert!((lost - 0.07).abs() < 0.002, "{lost} with losses in both states");
}

#[test]
fn a_burst_in_time_does_not_end_between_packets_at_the_same_time() {
    let (good, bad) = (Duration::from_millis(1), Duration::from_millis(1));
    let loss = Loss::Bursts { good, bad, loss_good: Ratio::ZERO, loss_bad: Ratio::ONE };
    let mut model = LossModel::new(loss, Seed::new(3, 0).stream("loss"));
    for n in 0..1_000 {
        let first = model.loses(due(n));
        assert!((0..20).all(|_| model.loses(due(n)) == first));
    }
}

/// Additional delays in seconds of packets with this gap, without the rule that none overtakes.
fn delays(distribution: Distribution, memory: Duration, gap: Duration, count: u64) -> Vec<f64> {
    let impairments =
        Impairments { jitter: Some(distribution), jitter_memory: Some(memory), ..Impairments::default() };
    let mut jitter = super::jitter::Jitter::new(&impairments, Seed::new(8, 0).stream("jitter"));
    (0..count).map(|n| jitter.draw(Time::ZERO + gap * n).as_secs_f64()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The correlation of values that stand so far from each other.
fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let mean = mean(values);
    let product = |n: usize| (values[n] - mean) * (values[n + lag] - mean);
    let covariance = (0..values.len() - lag).map(product).sum::<f64>() / (values.len() - lag) as f64;
    covariance / variance(values)
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64
}

#[test]
fn jitter_with_memory_has_the_same_distribution_and_correlation_in_time_at_any_packet_rate() {
    let normal = Distribution::Normal { mean: 20_000_000, deviation: 3_000_000 };
    let memory = Duration::from_millis(100);
    for gap in [1, 20, 100, 1_000] {
        // As many correlation times each time, but no fewer packets than a mean needs.
        let count = (2_000_000 / gap).max(200_000);
        let delays = delays(normal.clone(), memory, Duration::from_millis(gap), count);
        let independent = count as f64 / (1.0 + 200.0 / gap as f64);
        let tolerance = 4.0 / independent.sqrt();
        assert!((mean(&delays) - 0.020).abs() < 0.003 * tolerance, "mean {} every {gap} ms", mean(&delays));
        let deviation = variance(&delays).sqrt();
        assert!((deviation - 0.003).abs() < 0.003 * tolerance, "deviation {deviation} every {gap} ms");
        for apart in [gap, 100, 200].map(|apart| apart.max(gap) / gap) {
            let found = autocorrelation(&delays, apart as usize);
            let expected = libm::exp(-((apart * gap) as f64) / 100.0);
            assert!((found - expected).abs() < tolerance, "{found} for {expected} at {apart} x {gap} ms");
        }
    }
}

#[test]
fn jitter_with_memory_keeps_the_shape_of_its_distribution() {
    let memory = Duration::from_millis(10);
    let exponential = Distribution::Exponential { mean: 2_000_000 };
    let delays = delays(exponential, memory, Duration::from_millis(5), 400_000);
    for (value, share) in [(0.001, 0.393_47), (0.002, 0.632_12), (0.006, 0.950_21)] {
        let below = delays.iter().filter(|delay| **delay <= value).count() as f64 / delays.len() as f64;
        assert!((below - share).abs() < 0.008, "{below} below {value} s for {share}");
    }
    // Packets at the same time have the same delay.
    let impairments = Impairments {
        jitter: Some(Distribution::Uniform { min: 0, max: 9_000_000 }),
        jitter_memory: Some(memory),
        ..Impairments::default()
    };
    let mut jitter = super::jitter::Jitter::new(&impairments, Seed::new(8, 0).stream("jitter"));
    for n in 0..1_000 {
        let first = jitter.draw(due(n));
        assert!((0..5).all(|_| jitter.draw(due(n)) == first));
    }
}

#[test]
fn shares_converge() {
    let impairments = everything();
    let passed = passages(&impairments, 100_000);
    let of = |what: fn(&Passage) -> bool| {
        let arrived = passed.iter().filter(|(passage, _)| !passage.lost);
        let (hit, all) = arrived.fold((0, 0), |(hit, all), (p, _)| (hit + u32::from(what(p)), all + 1));
        f64::from(hit) / f64::from(all)
    };
    assert!((of(|p| p.corrupted) - 0.2).abs() < 0.01);
    assert!((of(|p| p.duplicated) - 0.08).abs() < 0.01);
    assert!(of(|p| p.overtakes) > 0.05);
}

#[test]
fn a_corrupted_packet_differs_in_one_bit_and_every_bit_has_its_turn() {
    let impairments = Impairments { corrupt: Ratio::ONE, ..Impairments::default() };
    let mut flipped = [0u8; 100];
    for (passage, bytes) in passages(&impairments, 20_000) {
        assert!(passage.corrupted);
        assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        flipped.iter_mut().zip(bytes).for_each(|(all, byte)| *all |= byte);
    }
    assert!(flipped.iter().all(|&byte| byte == 0xFF));
}

#[test]
fn a_packet_without_bytes_cannot_be_corrupted() {
    let impairments = Impairments { corrupt: Ratio::ONE, ..Impairments::default() };
    let mut stage = Stage::new(&impairments, PLACE, Seed::new(5, 0));
    assert!(!stage.pass(due(0), &mut Packet::default()).corrupted);
}

#[test]
fn headers_are_spared() {
    let impairments = Impairments { corrupt: Ratio::ONE, ..Impairments::default() };
    let mut stage = Stage::new(&impairments, PLACE, Seed::new(5, 0));
    for headers in 0..40 {
        let mut packet = Packet { headers, bytes: vec![0; 39], ..Packet::default() };
        assert_eq!(stage.pass(due(0), &mut packet).corrupted, headers < 39);
        let (spared, rest) = packet.bytes.split_at(usize::from(headers.min(39)));
        assert!(spared.iter().all(|&byte| byte == 0));
        assert_eq!(rest.iter().any(|&byte| byte != 0), headers < 39);
    }
}

#[test]
fn switching_one_impairment_never_changes_what_another_hits() {
    let all = everything();
    let with = |change: fn(&mut Impairments)| {
        let mut impairments = everything();
        change(&mut impairments);
        passages(&impairments, 5_000)
    };
    let reference = passages(&all, 5_000);
    let variants = [
        ("loss", with(|i| i.loss = Loss::None)),
        ("corrupt", with(|i| i.corrupt = Ratio::ZERO)),
        ("duplicate", with(|i| i.duplicate = Ratio::ZERO)),
        ("jitter", with(|i| i.jitter = None)),
        ("reorder", with(|i| i.reorder = Ratio::ZERO)),
    ];
    for (off, variant) in variants {
        for ((before, bytes), (after, bytes_after)) in reference.iter().zip(&variant) {
            assert!(off == "loss" || before.lost == after.lost, "{off} changed losses");
            if before.lost || after.lost {
                continue;
            }
            assert!(off == "corrupt" || bytes == bytes_after, "{off} changed the flipped bits");
            assert!(off == "duplicate" || before.duplicated == after.duplicated, "{off} changed duplicates");
            let moves = matches!(off, "jitter" | "reorder");
            assert!(moves || before.arrival == after.arrival, "{off} changed arrivals");
        }
    }
}

#[test]
fn held_back_packets_are_overtaken_and_counted_by_their_overtakers() {
    let impairments = Impairments {
        reorder: share(0.02),
        reorder_by: Duration::from_micros(2_500),
        ..Impairments::default()
    };
    let passed = passages(&impairments, 10_000);
    let held = |n: usize| passed[n].0.arrival == due(n as u64) + Duration::from_micros(2_500);
    for (n, (passage, _)) in passed.iter().enumerate().skip(2) {
        // Due every millisecond: a packet overtakes if one of the two before it is held back and it is not.
        assert_eq!(passage.overtakes, !held(n) && (held(n - 1) || held(n - 2)), "packet {n}");
    }
    let share = (0..passed.len()).filter(|&n| held(n)).count() as f64 / passed.len() as f64;
    assert!((share - 0.02).abs() < 0.005, "{share}");
}

#[test]
fn without_impairments_nothing_happens() {
    let none = Impairments { reorder_by: Duration::from_millis(10), ..Impairments::default() };
    for (n, (passage, bytes)) in passages(&none, 100).into_iter().enumerate() {
        assert_eq!(passage, Passage { arrival: due(n as u64), ..Passage::default() });
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
}

proptest! {
    #[test]
    fn jitter_alone_keeps_the_order_and_never_hurries(
        mean in 1u64..20_000_000,
        memory in prop::option::of(1u64..100_000_000),
        seed: u64,
    ) {
        let impairments = Impairments {
            jitter: Some(Distribution::Exponential { mean }),
            jitter_memory: memory.map(Duration::from_nanos),
            ..Impairments::default()
        };
        let mut stage = Stage::new(&impairments, PLACE, Seed::new(seed, 0));
        let mut last = Time::ZERO;
        for n in 0..200 {
            let passage = stage.pass(due(n), &mut Packet::default());
            prop_assert!(passage.arrival >= last.max(due(n)));
            prop_assert!(!passage.overtakes);
            last = passage.arrival;
        }
    }
}

#[test]
fn a_function_decides_until_its_last_draw() {
    let batches = |seed: u64| -> trunkline_core::custom::Batches<bool> {
        Box::new([vec![true, false], vec![], vec![seed > 0]].into_iter())
    };
    let lost = losses(Loss::Custom(trunkline_core::Custom::new(batches)));
    assert_eq!(lost[..4], [true, false, true, false]);
    assert_eq!(losses(Loss::Custom(Default::default())), vec![false; PACKETS]);
}
