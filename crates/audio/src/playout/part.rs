//! Channels that come in one packet.

use core::ops::Range;

use super::Settings;
use crate::conceal::Concealer;
use crate::seen::Seen;

/// Some channels of a stream.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Which channels.
    pub(super) channels: Range<usize>,
    /// Where their samples are in a block whose parts stand one behind the other.
    pub(super) samples: Range<usize>,
    pub(super) concealer: Concealer,
    pub(super) seen: Seen,
    /// Whether the packet that is being inserted is the first of its number with this part.
    pub(super) new: bool,
}

/// The parts of a stream.
pub(super) fn parts(settings: &Settings) -> Vec<Part> {
    let Settings { channels, sample_rate, packet_frames, conceal, part_channels, .. } = *settings;
    let part = |first: usize| {
        let end = channels.min(first + part_channels);
        Part {
            channels: first..end,
            samples: first * packet_frames..end * packet_frames,
            concealer: Concealer::new(conceal, end - first, sample_rate, packet_frames),
            seen: Seen::default(),
            new: false,
        }
    };
    (0..channels).step_by(part_channels).map(part).collect()
}
