//! Bulk transfer.

use trunkline_core::schema::{Default, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Time};

use crate::draws::{Intervals, MAX_MESSAGE, Sizes, Volume};
use crate::paced::{First, Paced};
use crate::source::{Built, Feedback, MessageBuffer, Source, SourceContext, SourceKind};

pub(crate) const KIND: SourceKind = SourceKind {
    name: "bulk",
    aliases: &["mpuke"],
    doc: "Bulk transfer: message after message, as fast as the transport takes them or at intervals, up to a volume or \
          to the end of the run. The `mpuke` of Hawley (1989).",
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
            doc: "Time from one message to the next, at least 1 us on average. Absent: as fast as the transport takes \
                  them, which needs a transport with flow control.",
        },
        Parameter {
            name: "bytes",
            kind: Kind::Bytes { min: Bytes(1), max: Bytes(1 << 50) },
            default: Default::Absent,
            doc: "How much each channel transfers; its last message is cut to that. Absent: no limit.",
        },
        Parameter {
            name: "messages",
            kind: Kind::Integer { min: 1, max: 1 << 40 },
            default: Default::Absent,
            doc: "How many messages each channel sends. Absent: no limit. With `bytes`, whichever comes first.",
        },
    ],
    build,
    needs_answers: false,
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
};

fn build(values: &Values, context: &SourceContext) -> Built {
    let sizes = values.distribution("message");
    let volume = Volume {
        bytes: values.bytes_if_given("bytes").map(Bytes::count),
        messages: values.integer_if_given("messages"),
    };
    if let Some(intervals) = values.distribution_if_given("interval") {
        return Ok(Box::new(Paced::new(&sizes, &intervals, volume, First::AtStart, context)?));
    }
    let channels = (0..context.channels)
        .map(|channel| (channel, Sizes::new(&sizes, context, channel), volume))
        .collect();
    Ok(Box::new(Unlimited { channels, turn: 0, due: context.start, stop: context.stop }))
}

/// One message per call, each due at once: the transport sets the pace. The channels take turns.
#[derive(Debug)]
struct Unlimited {
    /// Those with volume left, with their numbers.
    channels: Vec<(u16, Sizes, Volume)>,
    /// Whose turn it is.
    turn: usize,
    /// The last call, before the first the start.
    due: Time,
    stop: Time,
}

impl Source for Unlimited {
    fn next_due(&self) -> Option<Time> {
        (!self.is_finished()).then_some(self.due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        if now < self.due || self.is_finished() {
            return;
        }
        self.due = now;
        if now >= self.stop {
            return;
        }
        let (channel, sizes, left) = &mut self.channels[self.turn];
        let size = left.take(sizes.draw());
        out.push(*channel, now, size as usize, |_| {});
        if left.is_used_up() {
            self.channels.remove(self.turn);
        } else {
            self.turn += 1;
        }
        if self.turn >= self.channels.len() {
            self.turn = 0;
        }
    }

    fn notify(&mut self, now: Time, _: Feedback) {
        // A transport that was blocked until after the stop.
        if now >= self.stop {
            self.due = self.stop;
        }
    }

    fn is_finished(&self) -> bool {
        self.channels.is_empty() || self.due >= self.stop
    }
}
