//! Shaping of packets in front of a line and policing behind it (RFC 2475 section 2.3.3, "traffic conditioners").

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Amount, Bytes, Duration, Packet, Rate, Time};

use crate::bucket::{Color, Excess, LEAST_URGENT, Policer, Shaper, TokenBucket};

const RATES: Kind =
    Kind::Rate { min: Rate::from_bits_per_second(1), max: Rate::from_bits_per_second(1_000_000_000_000) };
const BURSTS: Kind = Kind::Bytes { min: Bytes(1), max: Bytes(1 << 40) };

pub(crate) const SHAPE_RATE: Parameter = Parameter {
    name: "shape-rate",
    kind: RATES,
    default: Preset::Absent,
    doc: "Rate of a token bucket that shapes packets at the head of the queue, counted at the network layer \
          without framing. Without this key, packets are not shaped.",
};
pub(crate) const SHAPE_BURST: Parameter = Parameter {
    name: "shape-burst",
    kind: BURSTS,
    default: Preset::Text("1500 B"),
    doc: "With `shape-rate`, the size of the bucket: how much may be sent at once after a pause. A larger \
          packet waits until the bucket is full, and what it takes beyond that comes in before the next one.",
};
pub(crate) const SHAPE_PEAK_RATE: Parameter = Parameter {
    name: "shape-peak-rate",
    kind: RATES,
    default: Preset::Absent,
    doc: "With `shape-rate`, a second, higher rate at which a burst is sent at most (the `peakrate` of Linux's \
          `tc-tbf`). Without this key, a burst is sent at the rate of the line.",
};
pub(crate) const SHAPE_PEAK_BURST: Parameter = Parameter {
    name: "shape-peak-burst",
    kind: BURSTS,
    default: Preset::Text("1500 B"),
    doc: "Size of the bucket of `shape-peak-rate`: how much may be sent at the rate of the line.",
};
pub(crate) const COMMITTED_RATE: Parameter = Parameter {
    name: "committed-rate",
    kind: RATES,
    default: Preset::Absent,
    doc: "Committed information rate of the carrier (the CIR of RFC 2698), policed by a token bucket \
          behind the line and counted at the network layer. Without this key, packets are not policed.",
};
pub(crate) const COMMITTED_BURST: Parameter = Parameter {
    name: "committed-burst",
    kind: BURSTS,
    default: Preset::Text("15 KB"),
    doc: "Size of the bucket of `committed-rate` (the CBS). A larger packet never conforms.",
};
pub(crate) const PEAK_RATE: Parameter = Parameter {
    name: "peak-rate",
    kind: RATES,
    default: Preset::Absent,
    doc: "With `committed-rate`, a second rate that is at least as high (the PIR). Packets that exceed it too are discarded, \
          whatever `policing` is. Without this key, there is none.",
};
pub(crate) const PEAK_BURST: Parameter = Parameter {
    name: "peak-burst",
    kind: BURSTS,
    default: Preset::Text("15 KB"),
    doc: "Size of the bucket of `peak-rate` (the PBS).",
};
pub(crate) const POLICING: Parameter = Parameter {
    name: "policing",
    kind: Kind::Choice(&[
        Choice { name: "pass", doc: "Such packets are only counted (`packets-passed`)." },
        Choice {
            name: "tag",
            doc: "Such packets get the lowest priority: the `priority` queue of a later link sends them last \
                  and drops them first.",
        },
        Choice { name: "discard", doc: "Such packets are discarded." },
    ]),
    default: Preset::Text("discard"),
    doc: "Treatment of packets that exceed the committed rate.",
};

/// Those that do nothing without another.
pub(crate) const NEEDS: &[(&str, &str)] = &[
    (SHAPE_BURST.name, SHAPE_RATE.name),
    (SHAPE_PEAK_RATE.name, SHAPE_RATE.name),
    (SHAPE_PEAK_BURST.name, SHAPE_PEAK_RATE.name),
    (COMMITTED_BURST.name, COMMITTED_RATE.name),
    (POLICING.name, COMMITTED_RATE.name),
    (PEAK_RATE.name, COMMITTED_RATE.name),
    (PEAK_BURST.name, PEAK_RATE.name),
];

/// The shaper of these values.
pub(crate) fn shaper(values: &Values) -> Option<Shaper> {
    let sustained = bucket(values, SHAPE_RATE.name, SHAPE_BURST.name)?;
    Some(Shaper::new(sustained, bucket(values, SHAPE_PEAK_RATE.name, SHAPE_PEAK_BURST.name)))
}

/// The policer of these values.
pub(crate) fn policer(values: &Values) -> Option<Policer> {
    let committed = bucket(values, COMMITTED_RATE.name, COMMITTED_BURST.name)?;
    let peak = bucket(values, PEAK_RATE.name, PEAK_BURST.name);
    let excess = match values.text(POLICING.name).as_str() {
        "pass" => Excess::Pass,
        "tag" => Excess::Tag,
        _ => Excess::Discard,
    };
    Some(Policer::new(committed, peak, excess))
}

fn bucket(values: &Values, rate: &str, burst: &str) -> Option<TokenBucket> {
    values.rate_if_given(rate).map(|rate| TokenBucket::new(rate, values.bytes(burst)))
}

/// The shaper and the policer of one direction, and what they have seen.
#[derive(Debug)]
pub(crate) struct Conditioner {
    shaper: Option<Shaper>,
    policer: Option<Policer>,
    packets: u64,
    waited: Duration,
    waited_most: Duration,
    conforming: u64,
    passed: u64,
    tagged: u64,
    discarded: u64,
}

impl Conditioner {
    pub(crate) fn new(shaper: Option<Shaper>, policer: Option<Policer>) -> Conditioner {
        Conditioner {
            shaper,
            policer,
            packets: 0,
            waited: Duration::ZERO,
            waited_most: Duration::ZERO,
            conforming: 0,
            passed: 0,
            tagged: 0,
            discarded: 0,
        }
    }

    /// Takes other terms; tokens that are there stay there.
    pub(crate) fn change(&mut self, at: Time, shaper: Option<Shaper>, policer: Option<Policer>) {
        match (&mut self.shaper, shaper) {
            (Some(own), Some(new)) => own.change(at, new),
            (own, new) => *own = new,
        }
        match (&mut self.policer, policer) {
            (Some(own), Some(new)) => own.change(at, new),
            (own, new) => *own = new,
        }
    }

    /// When a packet that could leave at `now` may.
    #[inline]
    pub(crate) fn shape(&mut self, now: Time, size: Bytes) -> Time {
        let Some(shaper) = &mut self.shaper else { return now };
        let start = shaper.shape(now, size);
        self.packets += 1;
        self.waited += start.since(now);
        self.waited_most = self.waited_most.max(start.since(now));
        start
    }

    /// True if a packet whose last bit has left the line at `at` may go on; tags it if it may, but exceeds what was promised.
    #[inline]
    pub(crate) fn admit(&mut self, at: Time, packet: &mut Packet) -> bool {
        let Some(policer) = &mut self.policer else { return true };
        let color = policer.meter(at, packet.size);
        self.conforming += u64::from(color == Color::Green);
        match policer.action(color) {
            None => true,
            Some(Excess::Pass) => {
                self.passed += 1;
                true
            }
            Some(Excess::Tag) => {
                packet.priority = LEAST_URGENT;
                self.tagged += 1;
                true
            }
            Some(Excess::Discard) => {
                self.discarded += 1;
                false
            }
        }
    }

    /// Of the shaper, if there is one, and of the policer.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&'static str, Option<Amount>)> {
        let if_shaped = |time| (self.packets > 0).then_some(Amount::Time(time));
        let of_shaper = [
            ("shaper-wait-mean", if_shaped(self.waited / self.packets.max(1))),
            ("shaper-wait-max", if_shaped(self.waited_most)),
        ];
        let of_policer = [
            ("packets-conforming", Some(Amount::Count(self.conforming))),
            ("packets-passed", Some(Amount::Count(self.passed))),
            ("packets-tagged", Some(Amount::Count(self.tagged))),
            ("packets-policed", Some(Amount::Count(self.discarded))),
        ];
        let shaper = self.shaper.is_some().then_some(of_shaper);
        let policer = self.policer.is_some().then_some(of_policer);
        shaper.into_iter().flatten().chain(policer.into_iter().flatten())
    }
}
