//! What every medium of the registry, with every queue of the registry, must do.

use proptest::prelude::*;
use trunkline_core::{Amount, Bytes, Destination, Distribution, Duration, Packet, Port, Rate, Seed, Time};
use trunkline_metrics::figures::{self, Quantity};
use trunkline_network::DropCause;
use trunkline_network::impairment::{Impairments, Loss};
use trunkline_network::medium::{self, Medium, MediumKind, Outcome, PortConfig};
use trunkline_network::queue::{self, Backlog, QueueKind};
use trunkline_testkit::accounting::Accounted;
use trunkline_testkit::split::{self, Offer};
use trunkline_testkit::values::{share, values};

const RATES: [&str; 4] = ["64 kbit/s", "1544 kbit/s", "100 Mbit/s", "10 Gbit/s"];
/// Packet-delivery traces from slow to fast, a line to an opportunity.
const TRACES: [&str; 4] = ["0\n200", "7\n7\n8\n40", "1\n1\n1\n2", "1"];

/// A kind of medium with a queue and so many stations.
#[derive(Clone, Copy)]
struct Setup {
    medium: &'static MediumKind,
    queue: &'static QueueKind,
    stations: u16,
}

impl Setup {
    /// A medium whose rate, queue limits and impairments differ from seed to seed.
    fn build(&self, impairments: &Impairments, seed: u64) -> Box<dyn Medium> {
        let rate = RATES[(seed % 4) as usize];
        let trace = TRACES[(seed % 4) as usize];
        let given =
            [("rate", rate), ("file", trace), ("delay", "3 ms"), ("overhead", "38 B"), ("mtu", "1500 B")];
        let values_of = |table| values(table, &given);
        let (shared, own) = (values_of(self.medium.shared), values_of(self.medium.parameters));
        let limit = ["20 packets", "9 KB"][(seed / 4 % 2) as usize];
        let queue_values = values(self.queue.parameters, &[("limit", limit)]);
        let seed = Seed::new(seed, 0);
        let port = |port: u16| {
            let place = match self.stations {
                2 => ["link.test/a-b", "link.test/b-a"][usize::from(port)].to_owned(),
                _ => format!("link.test/{port}"),
            };
            PortConfig {
                values: &own,
                queue: (self.queue.build)(&queue_values, seed.stream(&format!("{place}/queue"))),
                impairments: impairments.clone(),
                place,
            }
        };
        (self.medium.build)(&shared, self.ports().map(|Port(number)| port(number)).collect(), seed)
    }

    fn ports(&self) -> impl Iterator<Item = Port> {
        (0..self.stations).map(Port)
    }

    fn name(&self) -> String {
        format!("{} of {} stations, {}", self.medium.name, self.stations, self.queue.name)
    }

    fn has(&self, parameter: &str) -> bool {
        self.medium.parameters.iter().chain(self.medium.shared).any(|known| known.name == parameter)
    }
}

/// Every medium with every queue; those that can have more than two stations with more.
fn every_setup() -> impl Iterator<Item = Setup> {
    let sizes = |medium: &'static MediumKind| {
        [2, 5].into_iter().filter(|&stations| medium.stations.contains(&usize::from(stations)))
    };
    let media =
        medium::KINDS.iter().flat_map(move |medium| sizes(medium).map(move |stations| (medium, stations)));
    media.flat_map(|(medium, stations)| {
        queue::KINDS.iter().map(move |queue| Setup { medium, queue, stations })
    })
}

/// One of them, each as likely as any other.
fn setup(which: u64) -> Setup {
    let setups: Vec<_> = every_setup().collect();
    setups[(which % setups.len() as u64) as usize]
}

fn impairments(which: u64) -> Impairments {
    let bursts = Loss::GilbertElliott {
        to_bad: share(0.02),
        to_good: share(0.3),
        loss_good: share(0.001),
        loss_bad: share(0.9),
    };
    match which % 5 {
        0 => Impairments::default(),
        1 => Impairments { loss: Loss::Bernoulli(share(0.05)), ..Impairments::default() },
        2 => Impairments {
            jitter: Some(Distribution::Uniform { min: 0, max: 5_000_000 }),
            duplicate: share(0.1),
            ..Impairments::default()
        },
        3 => Impairments {
            loss: bursts,
            jitter: Some(Distribution::Exponential { mean: 100_000 }),
            reorder: share(0.05),
            reorder_by: Duration::from_millis(4),
            duplicate: share(0.03),
            corrupt: share(0.1),
            ..Impairments::default()
        },
        _ => Impairments {
            loss: Loss::Bursts {
                good: Duration::from_millis(20),
                bad: Duration::from_millis(5),
                loss_good: share(0.01),
                loss_bad: share(0.8),
            },
            jitter: Some(Distribution::Normal { mean: 2_000_000, deviation: 1_000_000 }),
            jitter_memory: Some(Duration::from_millis(30)),
            ..Impairments::default()
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
    for setup in every_setup() {
        // The other media have many events for each packet.
        let seeds = if setup.medium.name == "serial" { 200 } else { 40 };
        for seed in 0..seeds {
            split::check_among(setup.stations, || setup.build(&impairments(seed / 8), seed), seed);
        }
    }
}

#[test]
fn the_workloads_reach_every_outcome() {
    for setup in every_setup() {
        let mut sum = medium::MediumCounters::default();
        for seed in 0..32 {
            let medium = setup.build(&impairments(seed / 8), seed);
            let (medium, _) = drive(medium, &split::workload_among(setup.stations, seed));
            for counted in setup.ports().map(|port| medium.counters(port)) {
                sum.delivered += counted.delivered;
                sum.copied += counted.copied;
                sum.duplicated += counted.duplicated;
                sum.corrupted += counted.corrupted;
                sum.reordered += counted.reordered;
                sum.dropped.iter_mut().zip(counted.dropped).for_each(|(sum, n)| *sum += n);
            }
        }
        let [on_the_line, too_large, nobodys] =
            [DropCause::LinkLoss, DropCause::TooLarge, DropCause::NoStation].map(|c| sum.dropped[c.index()]);
        let by_queue = sum.dropped.iter().sum::<u64>() - on_the_line - too_large - nobodys;
        let name = setup.name();
        assert!(on_the_line > 0 && too_large > 0 && by_queue > 0, "{name}: {sum:?}");
        assert!(sum.delivered > 0 && sum.duplicated > 0 && sum.corrupted > 0 && sum.reordered > 0, "{sum:?}");
        let several = setup.stations > 2;
        assert_eq!((sum.copied > 0, nobodys > 0), (several, several), "{name}: {sum:?}");
    }
}

/// What is told to wait does wait: it reaches the most that is counted, and in the end nothing is left.
#[test]
fn backlogs_reach_their_most_and_drain() {
    for setup in every_setup() {
        let mut reached = 0;
        for seed in 0..16 {
            let mut medium = Accounted::new(setup.build(&Impairments::default(), seed));
            let mut out = Outcome::default();
            let mut most = vec![Backlog::default(); usize::from(setup.stations)];
            for offer in split::workload_among(setup.stations, seed) {
                while let Some(next) = medium.next_event().filter(|&next| next < offer.at) {
                    medium.advance(next, &mut out);
                }
                let from = usize::from(offer.from.0);
                medium.offer(offer.at, offer.from, offer.packet.clone(), &mut out);
                let waiting = medium.backlog(offer.from);
                most[from].bytes = most[from].bytes.max(waiting.bytes);
                most[from].packets = most[from].packets.max(waiting.packets);
            }
            medium.finish(&mut out);
            for (port, most) in setup.ports().zip(most) {
                let counted = medium.counters(port);
                let name = setup.name();
                assert!(most.bytes <= counted.backlog_max, "{name}: {most:?} of {counted:?}");
                assert!(most.packets <= counted.backlog_packets_max, "{name}: {most:?} of {counted:?}");
                assert_eq!(medium.backlog(port), Backlog::default(), "{name}: nothing is left");
                reached += most.packets;
            }
        }
        assert!(reached > 0, "{}: nothing has ever waited", setup.name());
    }
}

/// The first packet on an idle medium: where it is sent at once, nothing has waited, in no queue of it.
#[test]
fn a_packet_that_has_not_waited_is_no_backlog() {
    let mut at_once = 0;
    for setup in every_setup() {
        let mut medium = setup.build(&Impairments::default(), 1);
        let mut out = Outcome::default();
        let packet = Packet { size: Bytes(200), to: Destination::Port(Port(1)), ..Packet::default() };
        medium.offer(Time::ZERO + Duration::from_millis(5), Port(0), packet, &mut out);
        while let Some(next) = medium.next_event() {
            medium.advance(next, &mut out);
        }
        let name = setup.name();
        let figures = medium.figures(Duration::from_secs(1));
        let has_waited = |name: &str| {
            figures
                .iter()
                .any(|figure| figure.name == name && figure.amount != Some(Amount::Time(Duration::ZERO)))
        };
        let backlog = |name: &str| {
            figures
                .iter()
                .any(|figure| figure.name == name && figure.amount != Some(Amount::Bytes(Bytes::ZERO)))
        };
        assert!(has_waited("switch-sojourn-max") || !backlog("switch-backlog-max"), "{name}: {figures:?}");
        for counted in setup.ports().map(|port| medium.counters(port)) {
            let most = (counted.backlog_max, counted.backlog_packets_max);
            if counted.sojourns.count() > 0 && counted.sojourns.longest().is_zero() {
                assert_eq!(most, (Bytes::ZERO, 0), "{name}");
                at_once += 1;
            }
        }
    }
    assert!(at_once >= 4, "{at_once}");
}

/// The gap behind a frame keeps its line busy and delays the next frame, not the frame itself (IEEE 802.3, clause 4.4.2).
#[test]
fn the_gap_on_an_ethernet_delays_the_next_frame() {
    let setup =
        every_setup().find(|setup| setup.medium.name == "ethernet" && setup.queue.name == "fifo").unwrap();
    // At 100 Mbit/s, with 3 ms to the switch and 3 ms from it.
    let mut medium = setup.build(&Impairments::default(), 2);
    let mut out = Outcome::default();
    for _ in 0..2 {
        let packet = Packet { size: Bytes(1000), to: Destination::Port(Port(1)), ..Packet::default() };
        medium.offer(Time::ZERO, Port(0), packet, &mut out);
    }
    while let Some(next) = medium.next_event() {
        medium.advance(next, &mut out);
    }
    let [frame, with_gap] = [1026, 1038].map(|bytes: u64| Duration::from_nanos(bytes * 80));
    let first = Duration::from_millis(6) + Duration::from_micros(2) + frame * 2;
    let arrived: Vec<Duration> =
        out.deliveries.iter().map(|delivery| delivery.at.since(Time::ZERO)).collect();
    assert_eq!(arrived, [first, first + with_gap]);
    let counted = medium.counters(Port(0));
    assert_eq!((counted.transmitted, counted.busy.total()), (Bytes(2 * 1038), with_gap * 2));
}

#[test]
fn impairments_draw_by_place_and_seed_only() {
    let offers = split::workload(3);
    let outcome = |seed| drive(setup(0).build(&impairments(3), seed), &offers).1.deliveries;
    assert_eq!(outcome(3), outcome(3));
    assert_ne!(outcome(3), outcome(3 + 8), "the same link with another seed");
}

#[test]
fn every_figure_of_a_medium_is_in_the_table_of_figures_in_its_quantity() {
    for setup in every_setup() {
        for figure in setup.build(&Impairments::default(), 0).figures(Duration::from_secs(1)) {
            let known = figures::of_media().find(|known| known.id == figure.name);
            let quantity = known.map(|known| known.quantity);
            assert!(quantity.is_some(), "{}", figure.name);
            let measured = figure.amount.map(|amount| Quantity::of(amount).0);
            assert!(measured.is_none() || measured == quantity, "{}", figure.name);
        }
    }
}

/// Nothing was sent: there are counts of nothing and shares of the time, but no mean, no largest delay and no share of packets.
#[test]
fn an_idle_medium_has_no_figures_of_packets_that_it_did_not_have() {
    let is_of_all_the_time = |name: &str| name.starts_with("token-rotation") || name == "late-counter-max";
    for setup in every_setup() {
        for figure in setup.build(&Impairments::default(), 0).figures(Duration::from_secs(1)) {
            let words: Vec<&str> = figure.name.split('-').collect();
            let is_of_packets = ["mean", "max", "deviation", "variation", "ratio", "p50", "p99", "p999"]
                .iter()
                .any(|word| words.contains(word));
            let is_backlog = words.contains(&"backlog");
            if is_of_packets && !is_backlog && !is_of_all_the_time(figure.name) {
                assert_eq!(figure.amount, None, "{}: {}", setup.name(), figure.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_packet_is_accounted_for(seed in 0u64..1 << 40) {
        let setup = setup(seed / 16);
        let medium = setup.build(&impairments(seed / 8), seed);
        let (medium, out) = drive(medium, &split::workload_among(setup.stations, seed));
        for counted in setup.ports().map(|port| medium.counters(port)) {
            let dropped: u64 = counted.dropped.iter().sum();
            prop_assert_eq!(counted.offered + counted.copied, counted.delivered + dropped);
        }
        let most = 2 * split::PACKETS as usize * usize::from(setup.stations - 1);
        prop_assert!(out.deliveries.len() <= most);
    }

    #[test]
    fn without_reordering_the_order_of_each_flow_is_kept(seed in 0u64..1 << 40) {
        let setup = setup(seed / 16);
        let impairments = Impairments { reorder: share(0.0), ..impairments(seed / 8) };
        let medium = setup.build(&impairments, seed);
        let offers = split::workload_among(setup.stations, seed);
        let (medium, out) = drive(medium, &offers);
        let mut arrived: Vec<_> = out.deliveries.iter().collect();
        arrived.sort_by_key(|delivery| delivery.at); // stable: equal times in the order of commitment
        let mut last = std::collections::BTreeMap::new();
        for delivery in arrived {
            let id = delivery.packet.id.0;
            let from = offers[id as usize].from;
            let before = last.insert((from, delivery.to, delivery.packet.flow), id);
            prop_assert!(before.is_none_or(|before| before <= id), "{before:?} arrived before {id}");
        }
        for counted in setup.ports().map(|port| medium.counters(port)) {
            prop_assert_eq!(counted.reordered, 0);
        }
    }

    #[test]
    fn nothing_arrives_faster_than_rate_and_delay_allow(seed in 0u64..1 << 40) {
        let setup = setup(seed / 16);
        // The rates of a cell are the standard's, and a trace has none.
        prop_assume!(!matches!(setup.medium.name, "wifi" | "trace"));
        // On a T1 one bit in 193 carries no data, and packets of a channel may share a frame.
        let (overhead, of_line) = if setup.medium.name == "t1" { (0, (192, 193)) } else { (38, (1, 1)) };
        let delay = Duration::from_millis(if setup.has("delay") { 3 } else { 0 });
        let medium = setup.build(&impairments(seed / 8), seed);
        let offers = split::workload_among(setup.stations, seed);
        let (medium, out) = drive(medium, &offers);
        let rate = RATES[(seed % 4) as usize].parse::<Rate>().expect("a rate").bits_per_second();
        let rate = Rate::from_bits_per_second(rate * of_line.0 / of_line.1);
        for delivery in &out.deliveries {
            let offered: Time = offers[delivery.packet.id.0 as usize].at;
            let on_line = delivery.packet.size + Bytes(overhead);
            // A transmission may begin within the nanosecond before an arrival at the same whole nanosecond.
            let least = rate.time_for(on_line) + delay - Duration::from_nanos(1);
            prop_assert!(delivery.at >= offered + least);
        }
        for counted in setup.ports().map(|port| medium.counters(port)) {
            prop_assert!(counted.busy.total() <= rate.time_for(counted.transmitted) + Duration::from_nanos(counted.dequeued));
        }
    }
}
