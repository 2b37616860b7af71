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
    doc: "A link that replays the recorded capacity of another, such as a cellular link, whose rate changes \
          within milliseconds (Winstein et al. 2013; the format is that of mahimahi's `mm-link`). At each \
          delivery opportunity of the trace, a number of bytes leave the queue, of one or several packets \
          or a part of one; an opportunity is wasted if the queue is empty. A packet arrives `delay` \
          after its last byte has left.",
    parameters: &[
        Parameter {
            name: "file",
            kind: Kind::DeliveryTrace,
            default: Preset::Required,
            doc: "A text file with one line per delivery opportunity: the time in milliseconds since the \
                  start, in ascending order. The trace repeats after its end. Twelve lines with the same \
                  number are 144 kbit at that time.",
        },
        Parameter {
            name: "opportunity",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(65_535) },
            default: Preset::Text("1504 B"),
            doc: "Bytes delivered at each opportunity, framing included.",
        },
        point_to_point::DELAY,
        point_to_point::MTU,
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1024) },
            default: Preset::Text("4 B"),
            doc: "Framing of each packet, in addition to its own bytes. mahimahi counts 4 B that Linux puts \
                  in front of a packet, so that a packet of 1500 B takes one opportunity.",
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
        let direction = |port: PortConfig<'_>| (schedule(port.values), DirectionConfig::from(port));
        Box::new(PointToPoint::of(medium::two(ports).map(direction), seed))
    },
};

fn schedule(values: &Values) -> Schedule {
    Schedule::new(values.delivery_trace("file"), values.bytes("opportunity"))
}
