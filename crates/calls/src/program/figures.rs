//! Figures of a session, while it goes on and at its end.

use trunkline_audio::pipeline::Stages;
use trunkline_core::Duration;
use trunkline_metrics::DelaySummary;
use trunkline_transport::rtp::PeerReport;

/// The figures of a session until now, or of all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Since it began.
    pub elapsed: Duration,
    /// The latency of each stage: lately, and at the end on the average of the whole session.
    pub stages: Stages,
    /// True if the network's stage is there and back, by a reflector.
    pub returns: bool,
    /// Bound on the error of the network's latency, from the uncertain offset of the two hosts' clocks.
    pub network_bound: Option<Duration>,
    /// Round trips by a reflector; at the end only, for it takes time to find percentiles.
    pub round_trip: Option<RoundTrip>,
    /// What this program itself adds, at the end: from the callback that captures until the packets of a block were handed
    /// over, and from the arrival of a part of a block until it is where the callback that plays takes it.
    pub added: [Option<DelaySummary>; 2],
    /// True if the sender has reported that it resamples what its device captures.
    pub resampled: bool,
    /// True if the sender has reported that the samples of its file have more bits than those of the stream.
    pub narrowed: bool,
    /// Received audio that was not played, to set the playout delay.
    pub left_out: Duration,
    /// The last report of the receiver of RTP.
    pub reported: Option<PeerReport>,
    /// Counters.
    pub counts: Counts,
    /// Frequency offset of the sender's clock from that of the device that plays, in parts per million.
    pub drift_ppm: Option<f64>,
}

/// The distribution of round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// Mean, standard deviation, percentiles.
    pub delays: DelaySummary,
    /// The mean absolute deviation from the mean (Schiavoni, Queiroz and Wanderley 2013, equation 2).
    pub jitter: Duration,
}

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[schema(as = SessionCounts)]
pub struct Counts {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Blocks expected; each packet of a block that needs several counts, redundancy does not.
    pub expected: u64,
    /// Expected blocks that neither arrived nor were restored from redundancy.
    pub lost: u64,
    /// Blocks that arrived too late to be played.
    pub late: u64,
    /// Blocks that were concealed, because they were lost or late.
    pub concealed: u64,
    /// Blocks, or parts of them, that redundancy restored.
    pub recovered: u64,
    /// Packets that arrived after one of a later block (RFC 4737, section 3).
    pub reordered: u64,
    /// Packets that arrived again.
    pub duplicate: u64,
    /// Packets that the transport did not accept within the send timeout.
    pub timed_out: u64,
    /// Packets that were not sent because the send queue was full.
    pub refused: u64,
    /// Unmatched packets: damaged, or not of the stream.
    pub strange: u64,
    /// Blocks dropped between the device's thread and the network's, in either direction.
    pub overflowed: u64,
    /// Blocks that the device lost to an overrun or underrun.
    pub xruns: u64,
}

impl Counts {
    /// The share that was lost, from 0 to 1; `None` if nothing was to arrive.
    pub fn loss(&self) -> Option<f64> {
        (self.expected > 0).then(|| self.lost as f64 / self.expected as f64)
    }
}

/// A mean that is taken over the session and, apart from that, since it was last asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    whole: (i128, u64),
    lately: (i128, u64),
}

impl Mean {
    pub(super) fn add(&mut self, nanos: i64) {
        for (sum, count) in [&mut self.whole, &mut self.lately] {
            *sum += i128::from(nanos);
            *count += 1;
        }
    }

    /// In nanoseconds, since it was last asked for; if there was nothing, of the whole session.
    pub(super) fn lately(&mut self) -> Option<i64> {
        let (sum, count) = core::mem::take(&mut self.lately);
        mean(sum, count).or_else(|| self.whole())
    }

    /// In nanoseconds, of the whole session.
    pub(super) fn whole(&self) -> Option<i64> {
        mean(self.whole.0, self.whole.1)
    }
}

fn mean(sum: i128, count: u64) -> Option<i64> {
    (count > 0).then(|| (sum / i128::from(count)) as i64)
}
