//! How much a received recording differs from the one that was sent: objective measures for music and speech.
//!
//! [`compare`] finds out where the sent audio is in the received one ([delay, clock drift](Alignment), gain, channels) and
//! what has become of it ([`Measures`]). Nothing needs to be known of what lies between: cables, codecs, other sample
//! rates and other programs may.
//!
//! The result depends on the samples alone, and is the same each time.
//!
//! ```
//! use trunkline_audio::measure::{Recording, compare};
//!
//! // A second of noise.
//! let mut state = 1_u32;
//! let mut noise = || {
//!     state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
//!     (state >> 16) as f32 / 65_536.0 - 0.5
//! };
//! let sent: Vec<f32> = (0..48_000).map(|_| noise()).collect();
//! // Half as loud, and 100 samples later.
//! let received: Vec<f32> = std::iter::repeat_n(0.0, 100).chain(sent.iter().map(|s| s / 2.0)).collect();
//! let compared = compare(
//!     &Recording { sample_rate: 48_000, channels: vec![sent] },
//!     &Recording { sample_rate: 48_000, channels: vec![received] },
//! )?;
//! assert!((compared.channels[0].alignment.delay * 48_000.0 - 100.0).abs() < 0.01);
//! assert!((compared.channels[0].gain + 6.02).abs() < 0.01);
//! assert_eq!(compared.channels[0].measures.gaps, 0);
//! # Ok::<(), trunkline_audio::measure::CompareError>(())
//! ```

mod align;
mod coarse;
mod decide;
mod differences;
mod events;
mod excerpt;
mod interpolate;
mod line;
mod masking;
mod path;
mod search;
mod spectrum;
#[cfg(test)]
mod tests;
mod timbre;
mod track;

use crate::format::LOUDEST;

/// Audio in numbers from -1 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Samples of each channel per second.
    pub sample_rate: u32,
    /// The samples of each channel.
    pub channels: Vec<Vec<f32>>,
}

/// What [`compare`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Each channel that was sent, in its order.
    pub channels: Vec<Channel>,
}

/// Where a sent channel is in the received recording, and how well that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alignment {
    /// How much later something is in the received recording than in the sent one, at the beginning of what was compared,
    /// in seconds; less than zero if it is earlier.
    pub delay: f64,
    /// How far the delay may be from the truth, in seconds: twice its standard error, or, if that is more, what the differences
    /// could do as changes of phase.
    pub delay_error: f64,
    /// How much faster the receiving clock ran on the average, in millionths: by so much the received recording is longer.
    pub drift: f64,
    /// How far the drift may be from the truth, in millionths, as [`Alignment::delay_error`]; infinite if the recording is too short to tell.
    pub drift_error: f64,
    /// The most that a part of the recording is away from where delay and drift have it, in seconds: a playout buffer that
    /// was made deeper or shallower on the way has moved it, or a resampler that follows a clock. Undone before anything else
    /// is measured.
    pub wander: f64,
    /// How many seconds were compared: those of the sent channel that lie within the received one.
    pub compared: f64,
    /// How alike the parts are by which the channel was found, on the average, from 0 to 1.
    pub likeness: f64,
    /// Why delay and drift are not certain, if they are not.
    pub doubt: Option<Doubt>,
}

/// The reason why an [`Alignment`] is not certain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// The audio repeats itself: another delay fits nearly as well. The true one may also be several such steps away.
    Periodic {
        /// How much larger the other delay is, in seconds; less than zero if it is smaller.
        later: f64,
        /// Whether the other has the opposite polarity.
        flips: bool,
    },
    /// Less than half of the received channel resembles what was sent.
    Faint,
    /// Nothing in the received channel resembles it: delay and drift are those of the loudest channel.
    Unrelated,
}

/// A place at which the delay jumps: something was inserted into the received audio, or some of the sent audio was left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jump {
    /// Where in the sent recording, in seconds: what was inserted stands before this place, what was left out begins there.
    pub at: f64,
    /// How much longer the delay is from there on, in seconds: the length of what was inserted; less than zero for what was left
    /// out.
    pub by: f64,
}

/// What has become of a channel that was sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// The channel in which it was received, from 0.
    pub received: usize,
    /// When.
    pub alignment: Alignment,
    /// Every jump of the delay by 3 samples and more, in their order.
    pub jumps: Vec<Jump>,
    /// How much louder it is there, in dB. Taken out before everything else is measured.
    pub gain: f64,
    /// Whether its sign is the opposite.
    pub inverted: bool,
    /// True if each sample is the sent one, unchanged, there is no other sound, and none is missing behind a silent end.
    pub identical: bool,
    /// Length of the silence at the end of the received channel, in seconds, where the sent one goes on: the sender had ended,
    /// or the end was lost. It is not compared.
    pub silent_end: f64,
    /// The differences.
    pub measures: Measures,
}

/// How much a channel differs from what was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// Signal-to-noise ratio in dB: what was sent over the difference, within [`Measures::MOST_SNR`] of 0.
    pub snr: f64,
    /// Segmental SNR in dB: the mean over segments of 20 ms of their SNR, limited to -10 to 35 dB, without those more than
    /// 40 dB below the loudest. Hansen and Pellom, "An effective quality evaluation protocol for speech enhancement
    /// algorithms", ICSLP 1998.
    pub segmental_snr: f64,
    /// Log-spectral distance in dB: the mean over frames of the root mean square difference of the logarithmic power spectra,
    /// each limited to 50 dB below the highest peak. Gray and Markel, "Distance measures for speech processing", IEEE
    /// ASSP 24(5), 1976; the limit is that of Habets, "Single- and multi-microphone speech dereverberation using spectral
    /// enhancement", Eindhoven 2007.
    pub log_spectral_distance: f64,
    /// Noise-to-mask ratio in dB: how loud the difference is against what the sent audio hides from the ear, over bands a
    /// quarter of a Bark wide; below 0 less is heard of it, and below -10 hardly anything. At least
    /// [`Measures::LEAST_NMR`]. `Total NMR` of ITU-R BS.1387 (PEAQ), basic version.
    pub noise_to_mask: f64,
    /// The share of the time in which some band has a noise-to-mask ratio of 1.5 dB and more: in which the difference is
    /// heard. `RelDistFrames` of ITU-R BS.1387, in frames of 43 ms.
    pub disturbed: f64,
    /// The share of the time in which the received audio is not the sent: of segments of 5 ms those whose SNR is below 10 dB
    /// and 10 dB below the median, so that neither a codec's noise counts nor any other that is always there. Segments
    /// more than 40 dB below the loudest count for nothing.
    pub altered: f64,
    /// How often the sound was gone: at least 2 ms in which the received audio is 40 dB softer than the sent.
    pub gaps: u32,
    /// How long it was gone in all, in seconds.
    pub gap_time: f64,
    /// How often the received audio jumps, and the sent does not.
    pub clicks: u32,
    /// How long these jumps last, in seconds.
    pub click_time: f64,
}

impl Measures {
    /// More is not told apart from no difference: 24-bit samples have 146 dB.
    pub const MOST_SNR: f64 = 150.0;
    /// Less is not told apart from no difference.
    pub const LEAST_NMR: f64 = -100.0;
}

/// Why two recordings cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// Channels are missing, or too many.
    #[error(
        "the sent recording has {sent} channel(s) and the received one {received}: compare recordings with the same \
         number of channels, or split the channels first"
    )]
    Channels {
        /// Channels that were sent.
        sent: usize,
        /// Channels that were received.
        received: usize,
    },
    /// A sample rate that no audio has.
    #[error("a sample rate of {0} Hz cannot be compared; expected 1000 to 768000 Hz")]
    SampleRate(u32),
    /// Nothing to go by.
    #[error("the {0} recording is silent")]
    Silent(Which),
    /// Too little to go by.
    #[error("the {0} recording is too short: it has less than a tenth of a second")]
    Short(Which),
    /// Samples that are no numbers, or so large that nobody can have meant them.
    #[error("the {0} recording has invalid samples: not a number, or more than 24 dB above full scale")]
    NotAudio(Which),
    /// They have nothing in common.
    #[error("the received recording is not the sent one: nothing in it resembles that")]
    Unrelated,
}

/// One of the two recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// What was sent.
    Sent,
    /// What was received.
    Received,
}

impl core::fmt::Display for Which {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Which::Sent => "sent",
            Which::Received => "received",
        })
    }
}

/// Compares what was received with what was sent. Different sample rates are fine: the received recording is resampled.
///
/// Each channel has its own delay, which is looked for up to 43 s either way.
///
/// # Errors
/// If there is nothing to compare.
pub fn compare(sent: &Recording, received: &Recording) -> Result<Comparison, CompareError> {
    check(sent, received)?;
    let pairs = align::align(sent, received)?;
    let mut channels = Vec::with_capacity(pairs.len());
    for mut pair in pairs {
        let silent_end = pair.cut_silent_end(sent.sample_rate);
        let difference = differences::measure(sent.sample_rate, &pair.sent, &pair.received);
        let audible = masking::measure(sent.sample_rate, &pair.sent, &pair.received);
        let events = events::measure(sent.sample_rate, &pair.sent, &pair.received);
        channels.push(Channel {
            received: pair.channel,
            alignment: pair.alignment,
            jumps: pair.jumps,
            gain: 20.0 * libm::log10(pair.gain.abs()),
            inverted: pair.gain < 0.0,
            identical: pair.identical,
            silent_end,
            measures: Measures {
                snr: difference.snr,
                segmental_snr: difference.segmental_snr,
                log_spectral_distance: difference.log_spectral_distance,
                noise_to_mask: audible.noise_to_mask,
                disturbed: audible.disturbed,
                altered: difference.altered,
                gaps: events.gaps,
                gap_time: events.gap_time,
                clicks: events.clicks,
                click_time: events.click_time,
            },
        });
    }
    Ok(Comparison { channels })
}

fn check(sent: &Recording, received: &Recording) -> Result<(), CompareError> {
    let (of_sent, of_received) = (sent.channels.len(), received.channels.len());
    if of_sent != of_received || of_sent == 0 {
        return Err(CompareError::Channels { sent: of_sent, received: of_received });
    }
    for (which, recording) in [(Which::Sent, sent), (Which::Received, received)] {
        let rate = recording.sample_rate;
        if !(1_000..=768_000).contains(&rate) {
            return Err(CompareError::SampleRate(rate));
        }
        if recording.frames() < rate as usize / 10 {
            return Err(CompareError::Short(which));
        }
        if !recording.channels.iter().flatten().all(|sample| sample.abs() <= LOUDEST) {
            return Err(CompareError::NotAudio(which));
        }
        if recording.channels.iter().flatten().all(|sample| *sample == 0.0) {
            return Err(CompareError::Silent(which));
        }
    }
    Ok(())
}

impl Recording {
    /// Samples of the shortest channel.
    pub fn frames(&self) -> usize {
        self.channels.iter().map(Vec::len).min().unwrap_or(0)
    }
}

/// The sum of the products of two signals.
fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
