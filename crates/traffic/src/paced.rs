//! Messages at intervals of any distribution: what background load and paced bulk have in common.

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Distribution, Duration, Time};

use crate::agenda::Agenda;
use crate::draws::{Intervals, Sizes, Volume};
use crate::per_channel::PerChannel;
use crate::source::{Feedback, MessageBuffer, Source, SourceContext};

/// An open loop: every channel sends a burst of messages after each interval, whatever becomes of the ones before.
#[derive(Debug)]
pub(crate) struct Paced {
    agenda: Agenda,
    /// Messages at once.
    burst: u64,
    catches_up: bool,
    channels: PerChannel<Channel>,
}

/// How a paced source goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Messages at once.
    pub(crate) burst: u64,
    /// When each channel sends its first one.
    pub(crate) first: First,
    /// Whether intervals are counted from when a message was due; otherwise from when it could be sent.
    pub(crate) catches_up: bool,
}

/// Whether a source that was held up makes good for it.
pub(crate) const CATCH_UP: Parameter = Parameter {
    name: "catch-up",
    kind: Kind::Flag,
    default: Preset::Text("true"),
    doc: "Whether a source that was delayed by its host or its transport sends all messages that have become due \
          meanwhile at once. Otherwise the next interval begins when it can continue, as in a process that sleeps \
          between its writes.",
};

#[derive(Debug)]
struct Channel {
    sizes: Sizes,
    intervals: Intervals,
    left: Volume,
    /// Messages sent of the burst that is due.
    of_burst: u64,
}

/// When a channel sends its first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// At the start.
    AtStart,
    /// After an interval; constant intervals begin at a random phase, so that sources that are alike do not send in
    /// step.
    AfterInterval,
}

impl Paced {
    pub(crate) fn new(
        sizes: &Distribution,
        intervals: &Distribution,
        volume: Volume,
        pace: Pace,
        context: &SourceContext,
    ) -> Result<Paced, String> {
        Intervals::check(intervals)?;
        let mut agenda = Agenda::new(context.channels, context.stop);
        let channel = |channel| {
            let sizes = Sizes::new(sizes, context, channel);
            let mut draws = Intervals::new(intervals, context, channel);
            let due = match (pace.first, intervals) {
                (First::AtStart, _) => context.start,
                (First::AfterInterval, Distribution::Constant(interval)) => {
                    let mut phase = context.seed.stream(&format!("{}/{channel}/phase", context.place));
                    context.start + Duration::from_nanos(phase.below(*interval))
                }
                (First::AfterInterval, _) => context.start + draws.draw(),
            };
            agenda.set(channel, due);
            Channel { sizes, intervals: draws, left: volume, of_burst: 0 }
        };
        let channels = (0..context.channels).map(channel).collect();
        Ok(Paced { agenda, burst: pace.burst, catches_up: pace.catches_up, channels })
    }
}

impl Source for Paced {
    fn next_due(&self) -> Option<Time> {
        self.agenda.first().map(|(due, _)| due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some((due, number)) = self.agenda.first_by(now) {
            let channel = self.channels.of(number);
            let size = channel.left.take(channel.sizes.draw());
            out.push(number, due, size as usize, |_| {});
            channel.of_burst += 1;
            if channel.left.is_used_up() {
                self.agenda.clear(number);
            } else if channel.of_burst >= self.burst {
                channel.of_burst = 0;
                let from = if self.catches_up { due } else { due.max(now) };
                self.agenda.set(number, from + channel.intervals.draw());
            }
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
