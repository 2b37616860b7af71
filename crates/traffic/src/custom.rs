//! Messages of a function of the program that runs the experiment.

use trunkline_core::custom::Draws;
use trunkline_core::schema::{Default, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Time};

use crate::draws::{Burst, MAX_MESSAGE};
use crate::open_loop::{Channel, OpenLoop};
use crate::source::{Answer, Built, SourceContext, SourceKind};

/// The name of the kind.
pub const CUSTOM: &str = "custom";

const LARGEST: &str = "largest";

pub(crate) const KIND: SourceKind = SourceKind {
    name: CUSTOM,
    aliases: &[],
    doc: "Messages by a function of the program that runs the experiment, only in `sim`, regardless of their fate (an open \
          loop): see `Experiment.source` of the Python package.",
    parameters: &[Parameter {
        name: LARGEST,
        kind: Kind::Bytes { min: Bytes(1), max: Bytes(MAX_MESSAGE) },
        default: Default::Text("1200 B"),
        doc: "Size of the largest message that the function may make, without headers.",
    }],
    build,
    answer: |_| Answer::None,
    needs_reliability: |_| false,
    needs_flow_control: |_| false,
    endless: |_| true,
    max_message: |values| values.bytes(LARGEST).count(),
    interval: |_| None,
    samples_per_packet: |_| None,
    packetiser: |_| None,
    audio: |_| None,
};

#[derive(Debug)]
struct Drawn {
    draws: Draws<(Duration, u32)>,
    burst: Burst,
    largest: u64,
    /// Size of the message that is due next.
    size: u64,
}

fn build(values: &Values, context: &SourceContext) -> Built {
    let largest = values.bytes(LARGEST).count();
    Ok(Box::new(OpenLoop::new(context, |number| {
        let mut stream = context.seed.stream(&format!("{}/{number}/custom", context.place));
        let draws = context.custom.draws(stream.bits());
        let mut channel = Drawn { draws, burst: Burst::default(), largest, size: 0 };
        let first = channel.after(context.start);
        (channel, first)
    })))
}

impl Drawn {
    /// Draws the message after one that was due at `due`, and returns its time.
    fn after(&mut self, due: Time) -> Time {
        let Some((interval, size)) = self.draws.next() else { return Time::MAX };
        self.size = u64::from(size).clamp(1, self.largest);
        due + self.burst.keep(interval)
    }
}

impl Channel for Drawn {
    fn next(&mut self, due: Time, _: Time) -> (u64, Time) {
        (self.size, self.after(due))
    }
}
