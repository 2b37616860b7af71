//! What every medium of the registry, with every queue of the registry, must do.

use proptest::prelude::*;
use trunkline_core::{Bytes, Distribution, Duration, Port, Rate, Seed, Time};
use trunkline_network::DropCause;
use trunkline_network::impairment::{Impairments, Loss};
use trunkline_network::medium::{self, Medium, MediumKind, Outcome, PortConfig};
use trunkline_network::queue::{self, QueueKind};
use trunkline_testkit::accounting::Accounted;
use trunkline_testkit::split::{self, Offer};
use trunkline_testkit::values::{share, values};

const RATES: [&str; 4] = ["64 kbit/s", "1544 kbit/s", "100 Mbit/s", "10 Gbit/s"];

/// A medium whose rate, queue limits and impairments differ from seed to seed.
fn build(medium: &MediumKind, queue: &QueueKind, impairments: &Impairments, seed: u64) -> Box<dyn Medium> {
    let rate = RATES[(seed % 4) as usize];
    let given = [("rate", rate), ("delay", "3 ms"), ("overhead", "38 B"), ("mtu", "1500 B")];
    let medium_values = values(medium.parameters, &given);
    let queue_values =
        values(queue.parameters, &[("limit", ["20 packets", "9 KB"][(seed / 4 % 2) as usize])]);
    let seed = Seed::new(seed, 0);
    let port = |place: &str| PortConfig {
        place: place.to_owned(),
        values: &medium_values,
        queue: (queue.build)(&queue_values, seed.stream(&format!("{place}/queue"))),
        impairments: impairments.clone(),
    };
    let shared = values(medium.shared, &[]);
    (medium.build)(&shared, vec![port("link.test/a-b"), port("link.test/b-a")], seed)
}

fn every_pair() -> impl Iterator<Item = (&'static MediumKind, &'static QueueKind)> {
    medium::KINDS.iter().flat_map(|medium| queue::KINDS.iter().map(move |queue| (medium, queue)))
}

/// One of them, each as likely as any other.
fn pair(which: u64) -> (&'static MediumKind, &'static QueueKind) {
    let pairs: Vec<_> = every_pair().collect();
    pairs[(which % pairs.len() as u64) as usize]
}

fn impairments(which: u64) -> Impairments {
    let bursts = Loss::GilbertElliott {
        to_bad: share(0.02),
        to_good: share(0.3),
        loss_good: share(0.001),
        loss_bad: share(0.9),
    };
    match which % 4 {
        0 => Impairments::default(),
        1 => Impairments { loss: Loss::Bernoulli(share(0.05)), ..Impairments::default() },
        2 => Impairments {
            jitter: Some(Distribution::Uniform { min: 0, max: 5_000_000 }),
            duplicate: share(0.1),
            ..Impairments::default()
        },
        _ => Impairments {
            loss: bursts,
            jitter: Some(Distribution::Exponential { mean: 100_000 }),
            reorder: share(0.05),
            reorder_by: Duration::from_millis(4),
            duplicate: share(0.03),
            corrupt: share(0.1),
        },
    }
}

/// Offers a workload to an accounted medium and lets it finish.
fn drive(medium: Box<dyn Medium>, offers: &[Offer]) -> (Accounted, Outcome) {
    let (mut medium, mut out) = (Accounted::new(medium), Outcome::default());
    for offer in offers {
        while let Some(next) = medium.next_event().filter(|&next| next < offer.at) {
            medium.advance(next, &mut out);
        }
        medium.offer(offer.at, offer.from, offer.packet.clone(), &mut out);
    }
    medium.finish(&mut out);
    (medium, out)
}

#[test]
fn when_it_is_called_changes_nothing() {
    for (medium, queue) in every_pair() {
        // A medium that cuts packets has many events for each.
        let seeds = if medium.name == "serial" { 500 } else { 60 };
        for seed in 0..seeds {
            split::check(|| build(medium, queue, &impairments(seed / 8), seed), seed);
        }
    }
}

#[test]
fn the_workloads_reach_every_outcome() {
    for (medium, queue) in every_pair() {
        let mut sum = medium::MediumCounters::default();
        for seed in 0..32 {
            let (medium, _) =
                drive(build(medium, queue, &impairments(seed / 8), seed), &split::workload(seed));
            let counted = medium.counters(Port(0));
            sum.delivered += counted.delivered;
            sum.duplicated += counted.duplicated;
            sum.corrupted += counted.corrupted;
            sum.reordered += counted.reordered;
            sum.dropped.iter_mut().zip(counted.dropped).for_each(|(sum, n)| *sum += n);
        }
        let [on_the_line, too_large] =
            [DropCause::LinkLoss, DropCause::TooLarge].map(|c| sum.dropped[c.index()]);
        let by_queue = sum.dropped.iter().sum::<u64>() - on_the_line - too_large;
        assert!(on_the_line > 0 && too_large > 0 && by_queue > 0, "{}, {}: {sum:?}", medium.name, queue.name);
        assert!(sum.delivered > 0 && sum.duplicated > 0 && sum.corrupted > 0 && sum.reordered > 0, "{sum:?}");
    }
}

#[test]
fn impairments_draw_by_place_and_seed_only() {
    let (medium, queue) = (&medium::KINDS[0], &queue::KINDS[0]);
    let offers = split::workload(3);
    let outcome = |seed| drive(build(medium, queue, &impairments(3), seed), &offers).1.deliveries;
    assert_eq!(outcome(3), outcome(3));
    assert_ne!(outcome(3), outcome(3 + 8), "the same link with another seed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_packet_is_accounted_for(seed in 0u64..1 << 40) {
        let (medium, queue) = pair(seed / 16);
        let medium = build(medium, queue, &impairments(seed / 8), seed);
        let (medium, out) = drive(medium, &split::workload(seed));
        for port in [Port(0), Port(1)] {
            let counted = medium.counters(port);
            let dropped: u64 = counted.dropped.iter().sum();
            prop_assert_eq!(counted.offered, counted.delivered + dropped);
        }
        prop_assert!(out.deliveries.len() <= 2 * split::PACKETS as usize);
    }

    #[test]
    fn without_reordering_the_order_of_each_flow_is_kept(seed in 0u64..1 << 40) {
        let (medium, queue) = pair(seed / 16);
        let impairments = Impairments { reorder: share(0.0), ..impairments(seed / 8) };
        let medium = build(medium, queue, &impairments, seed);
        let (medium, out) = drive(medium, &split::workload(seed));
        let mut arrived: Vec<_> = out.deliveries.iter().collect();
        arrived.sort_by_key(|delivery| delivery.at); // stable: equal times in the order of commitment
        let mut last = std::collections::BTreeMap::new();
        for delivery in arrived {
            let id = delivery.packet.id.0;
            let before = last.insert((delivery.to, delivery.packet.flow), id);
            prop_assert!(before.is_none_or(|before| before <= id), "{before:?} arrived before {id}");
        }
        prop_assert_eq!(medium.counters(Port(0)).reordered, 0);
    }

    #[test]
    fn nothing_arrives_faster_than_rate_and_delay_allow(seed in 0u64..1 << 40) {
        let (medium, queue) = pair(seed / 16);
        // On a T1 one bit in 193 carries no data, and packets of a channel may share a frame.
        let (overhead, of_line) = if medium.name == "t1" { (0, (192, 193)) } else { (38, (1, 1)) };
        let medium = build(medium, queue, &impairments(seed / 8), seed);
        let offers = split::workload(seed);
        let (medium, out) = drive(medium, &offers);
        let rate = RATES[(seed % 4) as usize].parse::<Rate>().expect("a rate").bits_per_second();
        let rate = Rate::from_bits_per_second(rate * of_line.0 / of_line.1);
        for delivery in &out.deliveries {
            let offered: Time = offers[delivery.packet.id.0 as usize].at;
            let on_line = delivery.packet.size + Bytes(overhead);
            // A transmission may begin within the nanosecond before an arrival at the same whole nanosecond.
            let least = rate.time_for(on_line) + Duration::from_millis(3) - Duration::from_nanos(1);
            prop_assert!(delivery.at >= offered + least);
        }
        for port in [Port(0), Port(1)] {
            let counted = medium.counters(port);
            prop_assert!(counted.busy <= rate.time_for(counted.transmitted) + Duration::from_nanos(counted.dequeued));
        }
    }
}
