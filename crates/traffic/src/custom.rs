//! Messages of a function of the program that runs the experiment.

use trunkline_core::custom::Draws;
use trunkline_core::schema::{Default, Kind, Parameter, Values};
use trunkline_core::{Bytes, Duration, Time};

use crate::agenda::Agenda;
use crate::draws::{Burst, MAX_MESSAGE};
use crate::per_channel::PerChannel;
use crate::source::{Answer, Built, Feedback, MessageBuffer, Source, SourceContext, SourceKind};

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
    agenda: Agenda,
    channels: PerChannel<Channel>,
}

#[derive(Debug)]
struct Channel {
    draws: Draws<(Duration, u32)>,
    burst: Burst,
    largest: u64,
    /// Size of the message that is due next.
    size: u64,
}

fn build(values: &Values, context: &SourceContext) -> Built {
    let largest = values.bytes(LARGEST).count();
    let mut agenda = Agenda::new(context.channels, context.stop);
    let channel = |number| {
        let mut stream = context.seed.stream(&format!("{}/{number}/custom", context.place));
        let draws = context.custom.draws(stream.bits());
        let mut channel = Channel { draws, burst: Burst::default(), largest, size: 0 };
        agenda.set(number, channel.after(context.start));
        channel
    };
    let channels = (0..context.channels).map(channel).collect();
    Ok(Box::new(Drawn { agenda, channels }))
}

impl Channel {
    /// Draws the message after one that was due at `due`, and returns its time.
    fn after(&mut self, due: Time) -> Time {
        let Some((interval, size)) = self.draws.next() else { return Time::MAX };
        self.size = u64::from(size).clamp(1, self.largest);
        due + self.burst.keep(interval)
    }
}

impl Source for Drawn {
    fn next_due(&self) -> Option<Time> {
        self.agenda.first().map(|(due, _)| due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some((due, number)) = self.agenda.first_by(now) {
            let channel = self.channels.of(number);
            out.push_zeros(number, due, channel.size as usize, false);
            self.agenda.set(number, channel.after(due));
            if out.has_enough() {
                break;
            }
        }
    }

    fn notify(&mut self, _: Time, _: Feedback) {}

    fn is_finished(&self) -> bool {
        self.agenda.first().is_none()
    }
}
