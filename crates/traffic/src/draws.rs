//! Sizes and intervals as sources draw them: kept within what a run can carry, whatever the file says.

use trunkline_core::distribution::Sampler;
use trunkline_core::{Distribution, Duration};

use crate::source::SourceContext;

/// The largest message of any source, in bytes: what the measurement header can announce.
pub(crate) const MAX_MESSAGE: u64 = 16 << 20;

/// The shortest mean interval: a million messages per second and channel.
const MIN_INTERVAL: Duration = Duration::from_micros(1);

/// How many intervals below [`MIN_INTERVAL`] may follow each other.
const MAX_BURST: u32 = 1024;

/// Draws message sizes.
#[derive(Debug)]
pub(crate) struct Sizes(Sampler);

impl Sizes {
    /// Sizes of one channel, from its own stream.
    pub(crate) fn new(sizes: &Distribution, context: &SourceContext, channel: u16) -> Sizes {
        Sizes(sizes.sampler(context.seed.stream(&format!("{}/{channel}/size", context.place))))
    }

    /// The next size in bytes, from 1 to [`MAX_MESSAGE`].
    pub(crate) fn draw(&mut self) -> u64 {
        self.0.draw().clamp(1, MAX_MESSAGE)
    }

    /// The largest size that can be drawn.
    pub(crate) fn max(sizes: &Distribution) -> u64 {
        sizes.max().clamp(1, MAX_MESSAGE)
    }
}

/// Draws intervals between messages.
///
/// An interval of zero is a burst: both messages are due at once. So that no choice of values makes time stand still,
/// after 1,024 intervals below 1 us in a row every further one counts as 1 us until a longer one is drawn.
#[derive(Debug)]
pub(crate) struct Intervals {
    sampler: Sampler,
    burst: Burst,
}

/// Counts intervals below [`MIN_INTERVAL`] in a row.
#[derive(Debug, Default)]
pub(crate) struct Burst(u32);

impl Burst {
    /// The interval that counts in place of this next one.
    pub(crate) fn keep(&mut self, interval: Duration) -> Duration {
        if interval >= MIN_INTERVAL {
            self.0 = 0;
        } else if self.0 < MAX_BURST {
            self.0 += 1;
        } else {
            return MIN_INTERVAL;
        }
        interval
    }
}

impl Intervals {
    /// Intervals of one channel, from its own stream.
    pub(crate) fn new(intervals: &Distribution, context: &SourceContext, channel: u16) -> Intervals {
        let stream = context.seed.stream(&format!("{}/{channel}/interval", context.place));
        Intervals { sampler: intervals.sampler(stream), burst: Burst::default() }
    }

    /// Refuses intervals that are too short on average.
    pub(crate) fn check(intervals: &Distribution) -> Result<(), String> {
        let mean = Intervals::mean(intervals);
        if mean < MIN_INTERVAL {
            return Err(format!(
                "`interval` is {mean} on average; expected at least {MIN_INTERVAL}, a million messages per second"
            ));
        }
        Ok(())
    }

    /// The mean interval.
    pub(crate) fn mean(intervals: &Distribution) -> Duration {
        Duration::from_nanos(intervals.mean() as u64)
    }

    /// The next interval.
    pub(crate) fn draw(&mut self) -> Duration {
        self.burst.keep(Duration::from_nanos(self.sampler.draw()))
    }
}

/// How much a channel may still send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Volume {
    /// Bytes; `None` for any number.
    pub(crate) bytes: Option<u64>,
    /// Messages; `None` for any number.
    pub(crate) messages: Option<u64>,
}

impl Volume {
    /// Takes a message of at most `size` bytes away and returns its size: the last one may be cut. Not to be called
    /// when it is used up.
    pub(crate) fn take(&mut self, size: u64) -> u64 {
        let size = self.bytes.map_or(size, |left| left.min(size));
        self.bytes = self.bytes.map(|left| left - size);
        self.messages = self.messages.map(|left| left.saturating_sub(1));
        size
    }

    /// Whether it ends at all.
    pub(crate) fn is_limited(&self) -> bool {
        self.bytes.is_some() || self.messages.is_some()
    }

    /// Whether nothing is left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.bytes == Some(0) || self.messages == Some(0)
    }
}
