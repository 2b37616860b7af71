//! Statistics of one of several sinks of a flow.

use trunkline_core::{Duration, Time};

use crate::delays::Delays;
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
}

impl SinkMeter {
    pub(super) fn new(name: &str) -> SinkMeter {
        SinkMeter { name: name.to_owned(), ..SinkMeter::default() }
    }

    /// Takes the first arrival of a message.
    pub(super) fn arrived(&mut self, latency: Duration, reordered: u64) {
        self.latency.record(latency);
        self.counts.reordered += reordered;
    }

    /// The sink's summary over the flow's active time.
    pub(super) fn finish(mut self, window: &Window, active: Option<(Time, Time)>) -> SinkSummary {
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
