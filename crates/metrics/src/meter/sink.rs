//! Statistics of one of several sinks of a flow.

use trunkline_core::{Bytes, Duration, Rate};

use crate::delays::Delays;
use crate::meter::flow::share;
use crate::summary::{Counts, SinkSummary};
use crate::throughput::voice_channels;

/// What is kept of one sink.
#[derive(Debug, Default)]
pub(super) struct SinkMeter {
    name: String,
    pub(super) counts: Counts,
    latency: Delays,
    pub(super) latency_from_due: Delays,
    received: Bytes,
}

impl SinkMeter {
    pub(super) fn new(name: &str) -> SinkMeter {
        SinkMeter { name: name.to_owned(), ..SinkMeter::default() }
    }

    /// Takes the first arrival of a message.
    pub(super) fn arrived(&mut self, latency: Duration, payload: u32, reordered: u64) {
        self.latency.record(latency);
        self.received += Bytes(u64::from(payload));
        self.counts.reordered += reordered;
    }

    /// The sink's summary over the flow's active time.
    pub(super) fn finish(mut self, active: Duration) -> SinkSummary {
        let due = self.counts.sent + self.counts.refused;
        let user = Rate::of(self.received, active);
        SinkSummary {
            sink: self.name,
            counts: self.counts,
            loss: share(self.counts.lost + self.counts.refused, due),
            late: share(self.counts.late, due),
            latency: self.latency.summary(),
            latency_from_due: self.latency_from_due.summary(),
            mean_absolute_deviation: (self.latency.count() > 1)
                .then(|| self.latency.mean_absolute_deviation()),
            user,
            voice_channels: voice_channels(user),
        }
    }
}
