//! What is known, seen and summed up of a flow's voice path: A/D FIFO, packetiser, transport, D/A FIFO.

use core::ops::Neg;

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Time};

use crate::playback::PlaybackFifo;
use crate::summary::DelaySummary;

/// What a recorder needs to know of a flow's voice path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoicePath {
    /// A packet is made for so many samples; what accumulates may be more.
    pub samples: u16,
    /// Whether the speaker pauses: then a gap between due times is silence.
    pub pauses: bool,
    /// Samples wait in an A/D FIFO for their packet.
    pub captures: bool,
    /// The D/A side, if there is one.
    pub playback: Option<PlaybackFifo>,
}

/// Something that a listener hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoiceEvent {
    /// The member of the flow, from 0.
    pub member: u32,
    /// The channel within the member, from 0.
    pub channel: u16,
    /// What it is.
    pub kind: VoiceEventKind,
    /// When it began.
    pub at: Time,
    /// How long it lasted: of an underflow the silence, of an A/D overflow what was not taken in; zero of a D/A overflow.
    pub length: Duration,
    /// Samples lost; zero of an underflow.
    pub samples: u32,
}

/// What can go wrong at a FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoiceEventKind {
    /// Samples found no room in the A/D FIFO.
    CaptureOverflow,
    /// The D/A FIFO had nothing to play.
    Underflow,
    /// Samples found no room in the D/A FIFO.
    PlaybackOverflow,
}

impl VoiceEventKind {
    /// As written in files.
    pub fn name(self) -> &'static str {
        match self {
            VoiceEventKind::CaptureOverflow => "capture-overflow",
            VoiceEventKind::Underflow => "underflow",
            VoiceEventKind::PlaybackOverflow => "playback-overflow",
        }
    }
}

/// The voice path of a flow in figures, over all channels of all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoicePathSummary {
    /// How often an A/D FIFO ran over.
    pub capture_overflows: u64,
    /// Samples that found no room in an A/D FIFO.
    pub capture_lost: u64,
    /// Number of times that a D/A FIFO had nothing to play.
    pub underflows: u64,
    /// Total time in which D/A FIFOs had nothing to play.
    pub silence: Duration,
    /// The longest silence.
    pub silence_longest: Duration,
    /// Packets of which a full D/A FIFO dropped samples.
    pub playback_overflows: u64,
    /// Samples that found no room in a D/A FIFO.
    pub playback_lost: u64,
    /// From the first sample of a talk spurt to its playback.
    pub start_up: Option<DelaySummary>,
    /// How much earlier than its deadline each packet came.
    pub margin: Option<MarginSummary>,
}

/// How much earlier than its deadline something came; less than zero if it missed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Margin(i64);

/// A distribution of margins in figures. Percentiles are by nearest rank, and those of the tail that matters: of the
/// packets that came closest to their deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginSummary {
    /// How many packets had a deadline.
    pub count: u64,
    /// How many of them missed it.
    pub missed: u64,
    /// The mean.
    pub mean: Margin,
    /// The smallest.
    pub min: Margin,
    /// 0.1 % are at most this.
    pub p001: Margin,
    /// 1 % are at most this.
    pub p01: Margin,
    /// 10 % are at most this.
    pub p10: Margin,
    /// The median.
    pub p50: Margin,
    /// The largest.
    pub max: Margin,
    /// Whether the percentiles are exact; otherwise they come from histograms and are right within 0.1 %.
    pub exact: bool,
}

impl Margin {
    /// Of what came at `at` and had to be there at `deadline`.
    pub fn between(at: Time, deadline: Time) -> Margin {
        if at > deadline { -Margin::from(at.since(deadline)) } else { Margin::from(deadline.since(at)) }
    }

    /// So many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Margin {
        Margin(nanos)
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether it is less than zero.
    pub const fn is_missed(self) -> bool {
        self.0 < 0
    }

    /// Without its sign.
    pub const fn magnitude(self) -> Duration {
        Duration::from_nanos(self.0.unsigned_abs())
    }
}

/// Durations over 292 years count as that.
impl From<Duration> for Margin {
    fn from(duration: Duration) -> Margin {
        Margin(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Neg for Margin {
    type Output = Margin;

    fn neg(self) -> Margin {
        Margin(self.0.saturating_neg())
    }
}
