//! What a playout buffer is made for, and its bounds.

use trunkline_core::Duration;

use crate::conceal::Method;

/// What a [`Playout`](super::Playout) is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Channels, 1 to [`Settings::MOST_CHANNELS`].
    pub channels: usize,
    /// Frames per second, 1 to [`Settings::HIGHEST_RATE`].
    pub sample_rate: u32,
    /// Frames that every packet carries, 1 to [`Settings::LONGEST_PACKET`].
    pub packet_frames: usize,
    /// Channels that come in one packet: all, or as many as a part of a block has (the last may have fewer).
    pub part_channels: usize,
    /// How long a packet waits.
    pub depth: Depth,
    /// How long before its turn a packet has to be there, beyond the depth: a block of the sound card, which takes its
    /// frames all at once at its beginning. Zero if frames are pulled as they are played.
    pub ahead: Duration,
    /// What is played in the place of a missing packet.
    pub conceal: Method,
}

impl Settings {
    /// The most channels.
    pub const MOST_CHANNELS: usize = 256;
    /// The highest sample rate in Hz.
    pub const HIGHEST_RATE: u32 = 768_000;
    /// The most frames of a packet.
    pub const LONGEST_PACKET: usize = 65_536;
    /// The greatest depth.
    pub const DEEPEST: Duration = Duration::from_secs(10);
}

/// The delay between the arrival of packets and their turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Depth {
    /// Always the same, measured from the typical packet of the first second: half of them come sooner.
    Fixed(Duration),
    /// As much as lets all but a share of the packets come in time, measured from the fastest of the last seconds.
    ///
    /// The method is that of NetEQ, the buffer of WebRTC (`delay_manager.cc`, `histogram.cc`): the delay of each packet
    /// against the fastest of the last seconds goes into a histogram that forgets exponentially; the depth is its
    /// quantile. A packet more or less of audio, concealed, takes the depth there.
    Adaptive {
        /// Never less than this; the depth at the start.
        least: Duration,
        /// Never more than this.
        most: Duration,
        /// Share of packets that may come too late, between 0 and 1; 0.01 is a good start.
        late: f64,
    },
}

/// Why a [`Playout`](super::Playout) cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No channels or too many.
    #[error("the number of channels must be between 1 and {}", Settings::MOST_CHANNELS)]
    Channels,
    /// Parts of no channels, or of more than there are.
    #[error("a packet must have at least one channel, and at most as many as the stream")]
    PartChannels,
    /// No sample rate or too high a one.
    #[error("the sample rate must be between 1 and {} Hz", Settings::HIGHEST_RATE)]
    SampleRate,
    /// An empty packet or too long a one.
    #[error("a packet must have between 1 and {} frames", Settings::LONGEST_PACKET)]
    PacketFrames,
    /// Too deep, or the least depth above the greatest.
    #[error("the depth must be at most {} s less one block, and its minimum at most its maximum", Settings::DEEPEST.as_secs_f64())]
    Depth,
    /// Not a share.
    #[error("the share of late packets must lie between 0 and 1")]
    Late,
    /// More memory than a buffer of audio should take.
    #[error("channels, sample rate and depth need more than {} MiB of memory; reduce one of them", MOST_BYTES >> 20)]
    TooLarge,
}

impl Settings {
    /// Checks the bounds and gives the number of packets to make room for, a power of two.
    pub(super) fn check(&self) -> Result<usize, SettingsError> {
        let within = |value: usize, most: usize| (1..=most).contains(&value);
        if !within(self.channels, Settings::MOST_CHANNELS) {
            return Err(SettingsError::Channels);
        }
        if !within(self.part_channels, self.channels) {
            return Err(SettingsError::PartChannels);
        }
        if !within(self.sample_rate as usize, Settings::HIGHEST_RATE as usize) {
            return Err(SettingsError::SampleRate);
        }
        if !within(self.packet_frames, Settings::LONGEST_PACKET) {
            return Err(SettingsError::PacketFrames);
        }
        let deepest = match self.depth {
            Depth::Fixed(depth) => depth,
            Depth::Adaptive { least, most, late } => {
                if !(0.0..=1.0).contains(&late) {
                    return Err(SettingsError::Late);
                }
                if least > most {
                    return Err(SettingsError::Depth);
                }
                most
            }
        };
        let deepest = deepest + self.ahead;
        if deepest > Settings::DEEPEST {
            return Err(SettingsError::Depth);
        }
        let packets = deepest.as_secs_f64() * f64::from(self.sample_rate) / self.packet_frames as f64;
        // Twice the depth, for packets that come in bursts.
        let capacity = (2 * packets as usize + LEAST_CAPACITY).next_power_of_two();
        let bytes = capacity
            * (self.packet_frames * self.channels * size_of::<f32>() + size_of::<Option<(i64, bool)>>());
        if bytes > MOST_BYTES { Err(SettingsError::TooLarge) } else { Ok(capacity) }
    }
}

/// Bounds what one buffer takes: a second of 64 channels at 96 kHz takes up to 94 MiB.
const MOST_BYTES: usize = 256 << 20;

/// Room for packets however shallow the buffer.
const LEAST_CAPACITY: usize = 16;
