//! Messages at intervals of any distribution: what background load and paced bulk have in common.

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Distribution, Duration, Time};

use crate::draws::{Intervals, Sizes, Volume};
use crate::open_loop::{Channel, OpenLoop};
use crate::source::SourceContext;

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

/// Sends a burst of messages after each interval, regardless of the fate of those before.
#[derive(Debug)]
pub(crate) struct Paced {
    sizes: Sizes,
    intervals: Intervals,
    left: Volume,
    /// Messages at once.
    burst: u64,
    /// Messages sent of the burst that is due.
    of_burst: u64,
    catches_up: bool,
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

/// A source that sends sizes and intervals of these distributions.
pub(crate) fn paced(
    sizes: &Distribution,
    intervals: &Distribution,
    volume: Volume,
    pace: Pace,
    context: &SourceContext,
) -> Result<OpenLoop<Paced>, String> {
    Intervals::check(intervals)?;
    Ok(OpenLoop::new(context, |channel| {
        let sizes = Sizes::new(sizes, context, channel);
        let mut draws = Intervals::new(intervals, context, channel);
        let first = match (pace.first, intervals) {
            (First::AtStart, _) => context.start,
            (First::AfterInterval, Distribution::Constant(interval)) => {
                let mut phase = context.seed.stream(&format!("{}/{channel}/phase", context.place));
                context.start + Duration::from_nanos(phase.below(*interval))
            }
            (First::AfterInterval, _) => context.start + draws.draw(),
        };
        let Pace { burst, catches_up, .. } = pace;
        (Paced { sizes, intervals: draws, left: volume, burst, of_burst: 0, catches_up }, first)
    }))
}

impl Channel for Paced {
    fn next(&mut self, due: Time, now: Time) -> (u64, Time) {
        let size = self.left.take(self.sizes.draw());
        self.of_burst += 1;
        let next = if self.left.is_used_up() {
            Time::MAX
        } else if self.of_burst < self.burst {
            due
        } else {
            self.of_burst = 0;
            let from = if self.catches_up { due } else { due.max(now) };
            from + self.intervals.draw()
        };
        (size, next)
    }
}
