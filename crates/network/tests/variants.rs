//! What every medium must do, of media that are told to be otherwise than by default.

use trunkline_core::{Distribution, Duration, Port, Seed};
use trunkline_network::impairment::{Impairments, Loss};
use trunkline_network::medium::{self, Medium, MediumKind, Outcome, PortConfig};
use trunkline_network::queue;
use trunkline_testkit::accounting::Accounted;
use trunkline_testkit::split;
use trunkline_testkit::values::{share, values};

type Given = &'static [(&'static str, &'static str)];

/// A medium with keys of its own and keys of all its stations.
struct Variant {
    kind: &'static str,
    shared: Given,
    stations: Given,
}

const VARIANTS: &[Variant] = &[
    Variant { kind: "wifi", shared: &[("mode", "access-point")], stations: &[] },
    Variant {
        kind: "wifi",
        shared: &[
            ("mode", "access-point"),
            ("fallback-after", "2"),
            ("occupied", "40 %"),
            ("retry-limit", "3"),
        ],
        stations: &[("frame-errors", "10 %"), ("bit-errors", "0.00002")],
    },
    Variant {
        kind: "wifi",
        shared: &[("occupied", "20 %"), ("cw-min", "1"), ("cw-max", "3"), ("slot", "20 us")],
        stations: &[("frame-errors", "20 %"), ("rate", "11 Mbit/s")],
    },
    Variant {
        kind: "ethernet",
        shared: &[("switching", "cut-through"), ("switch-latency", "0 us")],
        stations: &[("rate", "10 Mbit/s"), ("delay", "0 us"), ("switch-buffer", "4 KB")],
    },
    Variant {
        kind: "serial",
        shared: &[],
        stations: &[
            ("rate", "10 Mbit/s"),
            ("shape-rate", "4 Mbit/s"),
            ("shape-burst", "6 KB"),
            ("shape-peak-rate", "6 Mbit/s"),
            ("shape-peak-burst", "2 KB"),
            ("committed-rate", "1 Mbit/s"),
            ("peak-rate", "3 Mbit/s"),
            ("policing", "tag"),
        ],
    },
    Variant {
        kind: "serial",
        shared: &[],
        stations: &[
            ("rate", "0 s: 10 Mbit/s, 3 ms: 64 kbit/s, 9 ms: 2 Mbit/s; 20 ms"),
            ("delay", "0 s: 20 ms, 11 ms: 1 ms, 2 s: 4 ms"),
        ],
    },
    Variant {
        kind: "atm",
        shared: &[],
        stations: &[
            ("line", "10 Mbit/s"),
            ("shape-pcr", "6 Mbit/s"),
            ("shape-scr", "2 Mbit/s"),
            ("shape-mbs", "32"),
            ("pcr", "5 Mbit/s"),
            ("policing", "tag"),
            ("rate", "4 Mbit/s"),
            ("buffer", "64"),
            ("clp-threshold", "20"),
        ],
    },
    Variant {
        kind: "atm",
        shared: &[],
        stations: &[
            ("vc", "flow"),
            ("vc-limit", "10 packets"),
            ("line", "10 Mbit/s"),
            ("shape-pcr", "6 Mbit/s"),
            ("scr", "1 Mbit/s"),
            ("mbs", "200"),
            ("ppd", "true"),
            ("rate", "8 Mbit/s"),
            ("buffer", "100"),
            ("epd", "50"),
        ],
    },
];

impl Variant {
    /// A number of stations that it may have.
    fn stations(&self, seed: u64) -> u16 {
        let kind = medium::find(self.kind).expect("a medium of that name");
        let several = [2, 3, 6][(seed % 3) as usize];
        if kind.stations.contains(&usize::from(several)) { several } else { 2 }
    }

    fn build(&self, stations: u16, seed: u64) -> Box<dyn Medium> {
        let kind: &MediumKind = medium::find(self.kind).expect("a medium of that name");
        let own = values(kind.parameters, self.stations);
        // Round robin lets packets wait of which others are dropped; CoDel drops what leaves and marks.
        let queue = queue::find(["round-robin", "codel"][(seed % 2) as usize]).expect("a queue of that name");
        let given = [("limit", "20 packets"), ("ecn", "true"), ("target", "1 ms"), ("interval", "5 ms")];
        let limits = values(queue.parameters, &given);
        let impairments = Impairments {
            loss: Loss::Bernoulli(share(0.02)),
            jitter_memory: None,
            jitter: seed.is_multiple_of(3).then_some(Distribution::Exponential { mean: 100_000 }),
            reorder: share(0.03),
            reorder_by: Duration::from_millis(1),
            duplicate: share(0.03),
            corrupt: share(0.03),
        };
        let seed = Seed::new(seed, 0);
        let port = |port: u16| PortConfig {
            place: format!("link.test/{port}"),
            values: &own,
            queue: (queue.build)(&limits, seed.stream(&format!("queue/{port}"))),
            impairments: impairments.clone(),
        };
        (kind.build)(&values(kind.shared, self.shared), (0..stations).map(port).collect(), seed)
    }
}

#[test]
fn when_it_is_called_changes_nothing() {
    for variant in VARIANTS {
        for seed in 0..60 {
            let stations = variant.stations(seed);
            split::check_among(stations, || variant.build(stations, seed), seed);
        }
    }
}

#[test]
fn every_packet_is_accounted_for() {
    for variant in VARIANTS {
        for seed in 0..60 {
            let stations = variant.stations(seed);
            let (mut medium, mut out) = (Accounted::new(variant.build(stations, seed)), Outcome::default());
            for offer in split::workload_among(stations, seed) {
                medium.offer(offer.at, offer.from, offer.packet, &mut out);
            }
            medium.finish(&mut out);
            for port in (0..stations).map(Port) {
                let counted = medium.counters(port);
                let dropped: u64 = counted.dropped.iter().sum();
                assert_eq!(counted.offered + counted.copied, counted.delivered + dropped, "seed {seed}");
            }
        }
    }
}
