//! Statistics of one of several sinks of a flow.

use core::ops::Range;

use trunkline_core::{Duration, Time};

use crate::delays::Delays;
use crate::meter::activity::within;
use crate::meter::delivery::{Delivery, Window};
use crate::summary::{Counts, SinkSummary};

/// What is kept of one sink.
#[derive(Debug, Default)]
pub(super) struct SinkMeter {
    name: String,
    pub(super) counts: Counts,
    latency: Delays,
    pub(super) latency_from_due: Delays,
    pub(super) delivery: Delivery,
    /// From when until when it is there, if that is not all the time.
    presence: Option<Range<Time>>,
}

impl SinkMeter {
    pub(super) fn new(name: &str, presence: Option<Range<Time>>) -> SinkMeter {
        SinkMeter { name: name.to_owned(), presence, ..SinkMeter::default() }
    }

    /// Takes the first arrival of a message.
    pub(super) fn arrived(&mut self, latency: Duration, reordered: u64) {
        self.latency.record(latency);
        self.counts.reordered += reordered;
    }

    /// The sink's summary over the part of the flow's active time in which it was there.
    pub(super) fn finish(
        mut self,
        number: usize,
        window: &Window,
        active: Option<(Time, Time)>,
    ) -> SinkSummary {
        let clipped = self.presence.as_ref().map(|there| window.within(number, there));
        let window = clipped.as_ref().unwrap_or(window);
        let active = within(active, self.presence.as_ref());
        let counts = self.counts;
        SinkSummary {
            sink: self.name,
            counts,
            loss: counts.share(counts.lost),
            unfinished: counts.share(counts.unfinished),
            refused: counts.share(counts.refused),
            late: counts.share(counts.late),
            latency: self.latency.summary(),
            latency_from_due: self.latency_from_due.summary(),
            mean_absolute_deviation: (self.latency.count() > 1)
                .then(|| self.latency.mean_absolute_deviation()),
            user: self.delivery.rate(window, active),
            voice_channels: self.delivery.voice_channels(window, active),
        }
    }
}
