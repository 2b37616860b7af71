//! A session's figures for programs: what `trunkline send`, `receive` and `reflect` print with `--json`.
//!
//! Times are in seconds, shares from 0 to 1; null where nothing is known.

use serde::Serialize;
use trunkline_audio::pipeline::Stages;
use trunkline_core::Duration;
use trunkline_metrics::DelaySummary;
use utoipa::ToSchema;

use super::figures::{Counts, Figures, RoundTrip};

/// The figures of a session.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionFigures {
    /// Its length, in seconds.
    pub elapsed: f64,
    /// The latency of each stage.
    pub stages: SessionStages,
    /// Round trips by a reflector, from passing a packet to the transport to its return; null without a reflector.
    #[schema(required = true)]
    pub round_trip: Option<SessionRoundTrip>,
    /// The last RTCP report of the receiver; null without one.
    #[schema(required = true)]
    pub peer_report: Option<SessionPeerReport>,
    /// Delays within the program itself.
    pub added: AddedDelays,
    /// Share of the expected blocks that did not arrive; null if nothing was expected.
    #[schema(required = true)]
    pub loss: Option<f64>,
    /// Counts.
    pub counts: Counts,
    /// Frequency offset of the sender's clock from the player's, in parts per million; null until it has been followed for a
    /// minute.
    #[schema(required = true)]
    pub drift_ppm: Option<f64>,
}

/// The mean latency of each stage of a session, in seconds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct SessionStages {
    /// The capturing device's block, in seconds.
    pub capture: f64,
    /// Resampling, and filling a block of the stream, in seconds.
    pub block: f64,
    /// Filling a packet, in seconds.
    pub packet: f64,
    /// The network, round trip if `network_returns`; in seconds, null if it is not known.
    #[schema(required = true)]
    pub network: Option<f64>,
    /// Whether `network` is a round trip.
    pub network_returns: bool,
    /// Bound on the error of `network` from the offset of two hosts' clocks; in seconds, null if it is not known.
    #[schema(required = true)]
    pub network_bound: Option<f64>,
    /// The playout buffer, in seconds.
    pub playout: f64,
    /// Resampling to the playing device's clock, in seconds.
    pub resampling: f64,
    /// The playing device's block, in seconds.
    pub playback: f64,
    /// Their sum, from mouth to ear, in seconds; only of the known stages while `network` is null.
    pub total: f64,
}

/// Round trips, in seconds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct SessionRoundTrip {
    /// Their distribution.
    #[serde(flatten)]
    pub delays: DelayFigures,
    /// The mean absolute deviation from the mean, in seconds.
    pub jitter: f64,
}

/// A receiver's report by RTCP (RFC 3550, section 6.4.1).
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct SessionPeerReport {
    /// Packets lost since the beginning; duplicates count against losses, so it can be negative.
    pub lost: i32,
    /// Share of packets lost since the report before.
    pub loss: f64,
    /// Interarrival jitter, in seconds.
    pub jitter: f64,
    /// Round trip without the receiver's time to report, in seconds; null until the receiver has heard a sender report.
    #[schema(required = true)]
    pub round_trip: Option<f64>,
}

/// Delays within the program itself.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct AddedDelays {
    /// From the capture callback to the socket; null if nothing was captured.
    #[schema(required = true)]
    pub capture: Option<DelayFigures>,
    /// From the socket to the playback callback; null if nothing was played.
    #[schema(required = true)]
    pub playback: Option<DelayFigures>,
}

/// A distribution of delays, in seconds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct DelayFigures {
    /// Number of delays.
    pub count: u64,
    /// The mean, in seconds.
    pub mean: f64,
    /// The sample standard deviation, in seconds; null of a single delay.
    #[schema(required = true)]
    pub standard_deviation: Option<f64>,
    /// The smallest, in seconds.
    pub min: f64,
    /// The median, in seconds.
    pub p50: f64,
    /// The 90th percentile, in seconds.
    pub p90: f64,
    /// The 99th percentile, in seconds.
    pub p99: f64,
    /// The 99.9th percentile, in seconds.
    pub p999: f64,
    /// The largest, in seconds.
    pub max: f64,
}

impl From<&Figures> for SessionFigures {
    fn from(figures: &Figures) -> SessionFigures {
        let round_trip = |RoundTrip { delays, jitter }: &RoundTrip| SessionRoundTrip {
            delays: delays.into(),
            jitter: seconds(*jitter),
        };
        SessionFigures {
            elapsed: seconds(figures.elapsed),
            stages: stages(&figures.stages, figures),
            round_trip: figures.round_trip.as_ref().map(round_trip),
            peer_report: figures.reported.as_ref().map(|report| SessionPeerReport {
                lost: report.block.lost,
                loss: report.block.loss(),
                jitter: seconds(report.jitter),
                round_trip: report.round_trip.map(seconds),
            }),
            added: AddedDelays {
                capture: figures.added[0].as_ref().map(Into::into),
                playback: figures.added[1].as_ref().map(Into::into),
            },
            loss: figures.counts.loss(),
            counts: figures.counts,
            drift_ppm: figures.drift_ppm,
        }
    }
}

fn stages(stages: &Stages, figures: &Figures) -> SessionStages {
    SessionStages {
        capture: seconds(stages.capture),
        block: seconds(stages.block),
        packet: seconds(stages.packet),
        network: stages.network.map(seconds),
        network_returns: figures.returns,
        network_bound: figures.network_bound.map(seconds),
        playout: seconds(stages.playout),
        resampling: seconds(stages.resampling),
        playback: seconds(stages.playback),
        total: seconds(stages.total()),
    }
}

impl From<&DelaySummary> for DelayFigures {
    fn from(delays: &DelaySummary) -> DelayFigures {
        DelayFigures {
            count: delays.count,
            mean: seconds(delays.mean),
            standard_deviation: delays.deviation().map(seconds),
            min: seconds(delays.min),
            p50: seconds(delays.p50),
            p90: seconds(delays.p90),
            p99: seconds(delays.p99),
            p999: seconds(delays.p999),
            max: seconds(delays.max),
        }
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
