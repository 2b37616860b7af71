//! Media that are changed while they run: what must hold of all media holds of them too.

use proptest::prelude::*;
use trunkline_core::{Port, Seed, Stream, Time};
use trunkline_network::medium::{self, MediumKind, PortConfig};
use trunkline_network::{Change, Impairments, Loss, Medium, Outcome, queue};
use trunkline_testkit::accounting::Accounted;
use trunkline_testkit::split;
use trunkline_testkit::values::{share, values};

/// A medium at random, and what it is changed to and when: all of it follows from the seed.
struct Case {
    kind: &'static MediumKind,
    seed: u64,
}

impl Case {
    fn stream(&self, what: &str) -> Stream {
        Seed::new(self.seed, 3).stream(what)
    }

    fn build(&self) -> Box<dyn Medium> {
        let values = self.values(&mut self.stream("first"));
        let port = |place: &str| PortConfig {
            place: place.to_owned(),
            values: &values,
            queue: self.queue(&mut self.stream("queue")),
            impairments: Impairments::default(),
        };
        (self.kind.build)(
            &Default::default(),
            vec![port("link.t/a-b"), port("link.t/b-a")],
            Seed::new(self.seed, 0),
        )
    }

    fn values(&self, stream: &mut Stream) -> trunkline_core::schema::Values {
        let mut one_of = |texts: [&'static str; 4]| texts[stream.below(4) as usize];
        let given = [
            (
                "rate",
                one_of(["64 kbit/s", "1 Mbit/s", "0 s: 30 Mbit/s, 20 ms: 1 Mbit/s; 35 ms", "10 Gbit/s"]),
            ),
            ("file", one_of(["0\n200", "7\n7\n8\n40", "1\n1\n1\n2", "1"])),
            ("delay", one_of(["0 ms", "1 ms", "0 s: 30 ms, 7 ms: 1 ms; 9 ms", "3 s"])),
            ("overhead", one_of(["0 B", "4 B", "38 B", "100 B"])),
            ("shape-rate", one_of(["64 kbit/s", "1 Mbit/s", "2 Mbit/s", "1 Gbit/s"])),
            ("shape-peak-rate", one_of(["3 Mbit/s", "4 Mbit/s", "5 Mbit/s", "2 Gbit/s"])),
            ("committed-rate", one_of(["64 kbit/s", "1 Mbit/s", "2 Mbit/s", "1 Gbit/s"])),
        ];
        values(self.kind.parameters, &given)
    }

    fn queue(&self, stream: &mut Stream) -> Box<dyn queue::Queue> {
        let kind = &queue::KINDS[stream.below(queue::KINDS.len() as u64) as usize];
        let limit = ["5 packets", "60 packets", "9 KB"][stream.below(3) as usize];
        (kind.build)(&values(kind.parameters, &[("limit", limit)]), stream.clone())
    }

    /// Offers a workload with a change now and then. With `punctual` the medium is called whenever it asks.
    fn run(&self, punctual: bool) -> (Accounted, Outcome) {
        let (mut medium, mut out) = (Accounted::new(self.build()), Outcome::default());
        let mut stream = self.stream("changes");
        for offer in split::workload(self.seed) {
            while let Some(next) = medium.next_event().filter(|&next| punctual && next <= offer.at) {
                medium.advance(next, &mut out);
            }
            if stream.chance(0.05) {
                let values = self.values(&mut stream);
                let queue = stream.chance(0.5).then(|| self.queue(&mut stream));
                let loss = if stream.chance(0.5) { Loss::Bernoulli(share(0.1)) } else { Loss::None };
                let impairments = Impairments { loss, corrupt: share(0.1), ..Impairments::default() };
                let port = Port(stream.below(2) as u16);
                let change = Change { values: &values, queue, impairments };
                assert_eq!(medium.change(offer.at, port, change, &mut out), Ok(()));
            }
            medium.offer(offer.at, offer.from, offer.packet, &mut out);
        }
        medium.finish(&mut out);
        (medium, out)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn changes_lose_nothing_in_silence_and_do_not_hang_on_when_the_medium_is_called(seed: u64, trace: bool) {
        let kind = medium::find(if trace { "trace" } else { "serial" }).expect("it is registered");
        let case = Case { kind, seed };
        let ((lazy, early), (punctual, late)) = (case.run(false), case.run(true));
        prop_assert_eq!(&early.deliveries, &late.deliveries);
        prop_assert_eq!(&early.fates.0, &late.fates.0);
        for port in [Port(0), Port(1)] {
            let counted = lazy.counters(port);
            prop_assert_eq!(&counted, &punctual.counters(port));
            prop_assert_eq!(counted.offered, counted.delivered + counted.dropped.iter().sum::<u64>());
            // In the order of transmission, whatever became of the delay.
            let arrivals: Vec<Time> =
                early.deliveries.iter().filter(|delivery| delivery.to != port).map(|delivery| delivery.at).collect();
            prop_assert!(arrivals.is_sorted());
        }
    }
}
