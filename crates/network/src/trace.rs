//! The trace-driven link: what it carries, and when, stands in a file.

mod schedule;

#[cfg(test)]
mod tests;

use trunkline_core::Bytes;
use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};

use crate::medium::{self, MediumKind, PortConfig};
use crate::point_to_point::{self, DirectionConfig, PointToPoint};
use crate::serial::conditioner;
use schedule::Schedule;

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "trace",
    doc: "A link that carries as much as a recorded one could, at the same moments: a cellular link, whose rate changes from \
          one millisecond to the next (Winstein et al. 2013; the format is that of mahimahi's `mm-link`). At every moment of \
          the trace so many bytes leave the queue, of one packet or of several or of a part of one; what finds nothing \
          waiting is wasted. A packet arrives `delay` after its last byte has left.",
    parameters: &[
        Parameter {
            name: "file",
            kind: Kind::DeliveryTrace,
            default: Preset::Required,
            doc: "A text file with one line per delivery opportunity: the milliseconds from the beginning, in rising order. \
                  After the last it begins again. Twelve lines with the same number are 144 kbit at that moment.",
        },
        Parameter {
            name: "opportunity",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(65_535) },
            default: Preset::Text("1504 B"),
            doc: "How much is delivered at each opportunity, framing included.",
        },
        point_to_point::DELAY,
        point_to_point::MTU,
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1024) },
            default: Preset::Text("4 B"),
            doc: "Framing that every packet takes beside its own bytes. mahimahi counts the 4 B that Linux puts in front of \
                  a packet: with those one of 1500 B takes one opportunity.",
        },
        conditioner::SHAPE_RATE,
        conditioner::SHAPE_BURST,
        conditioner::COMMITTED_RATE,
        conditioner::COMMITTED_BURST,
        conditioner::PEAK_RATE,
        conditioner::PEAK_BURST,
        conditioner::POLICING,
    ],
    shared: &[],
    stations: medium::TWO,
    build: |_, ports, seed| {
        let direction = |port: PortConfig<'_>| (schedule(port.values), DirectionConfig::from(port));
        Box::new(PointToPoint::of(medium::two(ports).map(direction), seed))
    },
};

fn schedule(values: &Values) -> Schedule {
    Schedule::new(values.delivery_trace("file"), values.bytes("opportunity"))
}
