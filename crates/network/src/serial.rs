//! The serial link: a line in each direction that transmits one packet at a time.

pub(crate) mod conditioner;
pub(crate) mod serialiser;

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration, OverTime, Rate, Seed};

use crate::bucket::{Policer, Shaper};
use crate::impairment::Impairments;
use crate::medium::{self, MediumKind, PortConfig};
use crate::point_to_point::{self, DirectionConfig, PointToPoint};
use crate::queue::Queue;
use serialiser::Serialiser;

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "serial",
    doc: "A point-to-point line that transmits one packet at a time in each direction: a leased line, a \
          radio relay, a full-duplex Ethernet cable. A packet waits in the queue, is transmitted with its \
          size and `overhead` at `rate`, passes the impairments, and arrives after `delay`. It may be \
          shaped before transmission, and policed behind the line, where the network begins.",
    parameters: &[
        Parameter {
            name: "rate",
            kind: Kind::OverTime(&Kind::Rate {
                min: Rate::from_bits_per_second(1),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            }),
            default: Preset::Required,
            doc: "Bits per second on the line, framing included. If it changes during a transmission, the bits that are \
                  left are sent at the new rate.",
        },
        point_to_point::DELAY,
        point_to_point::MTU,
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1024) },
            default: Preset::Text("0 B"),
            doc: "Framing of each packet on the line, in addition to its own bytes. Ethernet: 38 B (preamble \
                  8, header 14, check sequence 4, gap 12); PPP in HDLC-like framing: about 8 B.",
        },
        conditioner::SHAPE_RATE,
        conditioner::SHAPE_BURST,
        conditioner::SHAPE_PEAK_RATE,
        conditioner::SHAPE_PEAK_BURST,
        conditioner::COMMITTED_RATE,
        conditioner::COMMITTED_BURST,
        conditioner::PEAK_RATE,
        conditioner::PEAK_BURST,
        conditioner::POLICING,
    ],
    needs: conditioner::NEEDS,
    shared: &[],
    stations: medium::TWO,
    build: |_, ports, seed| {
        let line = |port: &PortConfig<'_>| Serialiser::over_time(&port.values.over_time("rate"));
        let direction = |port| (line(&port), DirectionConfig::from(port));
        Box::new(PointToPoint::of(medium::two(ports).map(direction), seed))
    },
};

/// One direction of a serial link.
pub struct SerialConfig {
    /// The place in the experiment, from which random streams are named: `link.trunk/berlin-ottawa`.
    pub place: String,
    /// Bits per second on the line, at least 1.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// The largest packet at the network layer; larger ones are dropped.
    pub mtu: Bytes,
    /// Framing added to every packet on the line.
    pub overhead: Bytes,
    /// What packets wait for at the head of the queue.
    pub shaper: Option<Shaper>,
    /// What they are held to where they enter the line.
    pub policer: Option<Policer>,
    /// The queue in front of the line, empty.
    pub queue: Box<dyn Queue>,
    /// What happens to packets beside that.
    pub impairments: Impairments,
}

/// A link of two independent lines, from port 0 to port 1 and back.
pub type SerialLink = PointToPoint<Serialiser>;

impl SerialLink {
    /// The link whose first direction leads from port 0 to port 1 and whose second leads back.
    pub fn new(directions: [SerialConfig; 2], seed: Seed) -> SerialLink {
        PointToPoint::of(directions.map(|config| (Serialiser::new(config.rate), config.into())), seed)
    }
}

impl From<SerialConfig> for DirectionConfig {
    fn from(config: SerialConfig) -> DirectionConfig {
        let SerialConfig { place, delay, mtu, overhead, shaper, policer, queue, impairments, rate: _ } =
            config;
        let delay = OverTime::Always(delay.as_nanos());
        DirectionConfig { place, delay, mtu, overhead, shaper, policer, queue, impairments }
    }
}
