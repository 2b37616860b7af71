//! Bulk transfer.

mod unpaced;

use trunkline_core::schema::{Default, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration};

use crate::draws::{Intervals, MAX_MESSAGE, Sizes, Volume};
use crate::paced::{CATCH_UP, First, Pace, paced};
use crate::source::{Answer, Built, SourceContext, SourceKind};
use unpaced::Unpaced;

/// Payload of the answer with which a sink ends a transfer: the count of Hawley's `meat`.
const COUNT: u64 = 4;

pub(crate) const KIND: SourceKind = SourceKind {
    name: "bulk",
    aliases: &["mpuke"],
    doc: "Bulk transfer: message after message, as fast as the transport accepts them or at intervals, up to a \
          volume or to the end of the run; or a volume several times, each transfer measured separately. The `mpuke` \
          of Hawley (1989).",
    parameters: &[
        Parameter {
            name: "message",
            kind: Kind::Sizes { min: Bytes(1), max: Bytes(MAX_MESSAGE) },
            default: Default::Text("8 KiB"),
            doc: "Size of a message, without headers.",
        },
        Parameter {
            name: "interval",
            kind: Kind::Durations { min: Duration::ZERO, max: Duration::from_secs(3600) },
            default: Default::Absent,
            doc: "Time from one message to the next, at least 1 us on average. Without this key, messages are sent \
                  as fast as the transport accepts them, which needs a transport with flow control.",
        },
        Parameter {
            name: "bytes",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(1 << 50) },
            default: Default::Absent,
            doc: "Volume that each channel transfers; its last message is shortened to fit. Without this key, there \
                  is no limit.",
        },
        Parameter {
            name: "messages",
            kind: Kind::Integer { min: 1, max: 1 << 40 },
            default: Default::Absent,
            doc: "Number of messages that each channel sends. Without this key, there is no limit. With `bytes`, the \
                  limit that is reached first applies.",
        },
        Parameter {
            name: "transfers",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Default::Absent,
            doc: "Number of times that each channel transfers its volume of `bytes` or `messages`. The sink answers \
                  the last message of each transfer with 4 B; then the next one begins. Each is measured from its \
                  first message to that answer (Hawley 1989 section 4.1.1: 10 transfers of 1 MB). Without this key, \
                  there is one transfer, without an answer.",
        },
        CATCH_UP,
    ],
    build,
    answer: |values| match values.integer_if_given("transfers") {
        Some(_) => Answer::Bytes(COUNT),
        None => Answer::None,
    },
    needs_reliability: |values| values.integer_if_given("transfers").is_some(),
    needs_flow_control: |values| values.distribution_if_given("interval").is_none(),
    endless: |values| {
        values.bytes_if_given("bytes").is_none() && values.integer_if_given("messages").is_none()
    },
    max_message: |values| {
        let most = values.bytes_if_given("bytes").map_or(MAX_MESSAGE, Bytes::count);
        Sizes::max(&values.distribution("message")).min(most)
    },
    interval: |values| values.distribution_if_given("interval").as_ref().map(Intervals::mean),
    samples_per_packet: |_| None,
    packetiser: |_| None,
    audio: |_| None,
};

fn build(values: &Values, context: &SourceContext) -> Built {
    let sizes = values.distribution("message");
    let volume = Volume {
        bytes: values.bytes_if_given("bytes").map(Bytes::count),
        messages: values.integer_if_given("messages"),
    };
    let transfers = values.integer_if_given("transfers");
    if transfers.is_some() && !volume.is_limited() {
        return Err("`transfers` needs the volume of one; give it `bytes` or `messages`".to_owned());
    }
    let Some(intervals) = values.distribution_if_given("interval") else {
        return Ok(Box::new(Unpaced::new(&sizes, volume, transfers, context)));
    };
    if transfers.is_some() {
        return Err("`transfers` are sent as fast as the transport allows; omit `interval`".to_owned());
    }
    let pace = Pace { burst: 1, first: First::AtStart, catches_up: values.flag("catch-up") };
    Ok(Box::new(paced(&sizes, &intervals, volume, pace, context)?))
}
