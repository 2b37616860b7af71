//! Background load.

use trunkline_core::schema::{Default, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration};

use crate::draws::{Intervals, MAX_MESSAGE, Sizes, Volume};
use crate::paced::{CATCH_UP, First, Pace, paced};
use crate::source::{Answer, Built, SourceContext, SourceKind};

pub(crate) const KIND: SourceKind = SourceKind {
    name: "load",
    aliases: &[],
    doc: "Background load: messages with any distribution of sizes, at intervals with any distribution, regardless \
          of their fate (an open loop, Lamont et al. 1998 section 5.2.2). An exponential interval makes Poisson \
          arrivals. The first message is sent after one interval; constant intervals begin at a random phase, so \
          that several loads are not synchronised.",
    parameters: &[
        Parameter {
            name: "message",
            kind: Kind::Sizes { min: Bytes(1), max: Bytes(MAX_MESSAGE) },
            default: Default::Text("1000 B"),
            doc: "Size of a message, without headers.",
        },
        Parameter {
            name: "interval",
            kind: Kind::Durations { min: Duration::ZERO, max: Duration::from_secs(3600) },
            default: Default::Required,
            doc: "Time from one message to the next, at least 1 us on average. 0 s makes a burst; after 1,024 \
                  intervals below 1 us in a row, each counts as 1 us.",
        },
        Parameter {
            name: "burst",
            kind: Kind::Integer { min: 1, max: 10_000 },
            default: Default::Text("1"),
            doc: "Number of messages that are sent at once; `interval` is then the time from one burst to the next.",
        },
        CATCH_UP,
    ],
    build,
    answer: |_| Answer::None,
    needs_reliability: |_| false,
    needs_flow_control: |_| false,
    endless: |_| true,
    max_message: |values| Sizes::max(&values.distribution("message")),
    interval: |values| {
        Some(Intervals::mean(&values.distribution("interval")) / values.integer("burst").max(1))
    },
    samples_per_packet: |_| None,
    packetiser: |_| None,
    audio: |_| None,
};

fn build(values: &Values, context: &SourceContext) -> Built {
    let (sizes, intervals) = (values.distribution("message"), values.distribution("interval"));
    let pace = Pace {
        burst: values.integer("burst"),
        first: First::AfterInterval,
        catches_up: values.flag("catch-up"),
    };
    Ok(Box::new(paced(&sizes, &intervals, Volume::default(), pace, context)?))
}
