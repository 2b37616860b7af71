//! Packet loss concealment: what is played in the place of a packet that is not there.
//!
//! Three methods of Perkins, Hodson and Hardman, "A survey of packet loss recovery techniques for streaming audio"
//! (IEEE Network 12(5), 1998), section 4: silence, repetition with a fade, and waveform substitution. The last follows
//! ITU-T G.711 Appendix I (09/1999): the pitch is the lag of the highest normalised correlation, the last pitch
//! period is repeated, it loses 20 % of its amplitude every 10 ms after the first 10 ms, and the first packet that
//! arrives again is mixed with its continuation. It differs from the Appendix in three points:
//!
//! - **No delay.** The Appendix holds the output back by 3.75 ms to overlap the last good samples with the repeated
//!   period. Here the step at the seam is added to the beginning of the period and fades over its first quarter: what
//!   follows a good sample continues it, and 3.75 ms are a long time for musicians.
//! - **Any sample rate and number of channels.** Lengths are times. One pitch, that of the loudest channel, serves
//!   all channels, so that they keep their phases.
//! - **One period throughout**, where the Appendix takes up to three after 20 ms; and pitches down to 40 Hz.
//!
//! Nothing is allocated after [`Concealer::new`].

mod history;
mod pitch;
#[cfg(test)]
mod tests;

use history::History;

/// How a missing packet is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Silence, after the last sample has faded over 1 ms.
    Silence,
    /// The last packet again and again, fading to silence within 60 ms.
    Repetition,
    /// The last pitch period again and again, fading to silence within 60 ms.
    #[default]
    Waveform,
}

/// Conceals lost packets of one stream of interleaved samples.
///
/// Every packet goes through here in playing order: [`received`](Concealer::received) for one that is there,
/// [`lost`](Concealer::lost) for one that is not.
#[derive(Clone, Debug)]
pub struct Concealer {
    method: Method,
    channels: usize,
    sample_rate: u32,
    /// Frames of a packet: what [`Method::Repetition`] repeats.
    packet_frames: usize,
    history: History,
    /// Room for the pitch search.
    searched: Vec<f32>,
    /// What is repeated: interleaved, of `period` frames.
    cycle: Vec<f32>,
    period: usize,
    /// Per channel: the step between the last sample played and the one before the cycle.
    step: Vec<f32>,
    /// Per channel: the largest magnitude within the cycle, which the output does not exceed.
    peak: Vec<f32>,
    /// Frames made since the last good one; `None` while nothing is missing.
    made: Option<usize>,
    /// The end of a loss that is still mixed with what is received.
    ending: Option<Ending>,
}

/// The end of a loss, which may last for several short packets.
#[derive(Clone, Copy, Debug)]
struct Ending {
    /// Frames that were made.
    made: usize,
    /// Frames that were mixed since.
    mixed: usize,
}

impl Concealer {
    /// For a stream of `channels` channels at `sample_rate` Hz in packets of `packet_frames` frames. Zeros count as
    /// ones.
    pub fn new(method: Method, channels: usize, sample_rate: u32, packet_frames: usize) -> Concealer {
        let (channels, sample_rate, packet_frames) =
            (channels.max(1), sample_rate.max(1), packet_frames.max(1));
        let longest = packet_frames.max(pitch::longest(sample_rate));
        // One frame more: the step at the seam is measured against the frame before the cycle.
        let remembered = longest.max(pitch::span(sample_rate)) + 1;
        Concealer {
            method,
            channels,
            sample_rate,
            packet_frames,
            history: History::new(channels, remembered),
            searched: vec![0.0; pitch::span(sample_rate)],
            cycle: vec![0.0; longest * channels],
            period: 1,
            step: vec![0.0; channels],
            peak: vec![0.0; channels],
            made: None,
            ending: None,
        }
    }

    /// Takes the interleaved samples that are played next. After a loss, their beginning is mixed with the continuation
    /// of what concealed it, in place.
    pub fn received(&mut self, samples: &mut [f32]) {
        if let Some(made) = self.made.take() {
            self.ending = Some(Ending { made, mixed: 0 });
        }
        self.fade_in(samples);
        self.history.push(samples);
    }

    /// As [`received`](Concealer::received), for samples that do not follow those before: the seam is concealed as the
    /// end of a loss of length zero.
    pub fn spliced(&mut self, samples: &mut [f32]) {
        let made = self.made.take().unwrap_or_else(|| {
            self.prepare();
            0
        });
        self.ending = Some(Ending { made, mixed: 0 });
        self.fade_in(samples);
        self.history.push(samples);
    }

    /// Fills `samples`, interleaved, in the place of samples that are missing.
    pub fn lost(&mut self, samples: &mut [f32]) {
        let mut made = self.made.unwrap_or_else(|| {
            self.prepare();
            0
        });
        self.ending = None;
        for frame in samples.chunks_exact_mut(self.channels) {
            for (channel, sample) in frame.iter_mut().enumerate() {
                *sample = self.substitute(made, channel);
            }
            made = made.saturating_add(1);
        }
        self.made = Some(made);
        self.history.push(samples);
    }

    /// Mixes the end of a loss with what is received.
    ///
    /// As in the Appendix over a quarter of the period, and 4 ms more for every 10 ms of loss after the first; over
    /// 10 ms at most.
    fn fade_in(&mut self, samples: &mut [f32]) {
        let Some(Ending { made, mixed }) = self.ending else { return };
        let lost = (made / 5 * 2).saturating_sub(self.frames_in_ms(4));
        let length = (self.seam() + lost).min(self.frames_in_ms(10)).max(1);
        let frames = samples.len() / self.channels;
        for (n, frame) in (mixed..length).zip(samples.chunks_exact_mut(self.channels)) {
            let weight = (n + 1) as f32 / (length + 1) as f32;
            for (channel, sample) in frame.iter_mut().enumerate() {
                let substitute = self.substitute(made.saturating_add(n), channel);
                *sample = substitute + weight * (*sample - substitute);
            }
        }
        let mixed = mixed + frames;
        self.ending = (mixed < length).then_some(Ending { made, mixed });
    }

    /// Decides what is repeated, and copies it out of the history, which goes on with what is made of it.
    fn prepare(&mut self) {
        self.period = match self.method {
            Method::Silence => 1,
            Method::Repetition => self.packet_frames,
            Method::Waveform => pitch::search(&self.history, self.sample_rate, &mut self.searched),
        };
        self.peak.fill(0.0);
        for (n, frame) in self.cycle.chunks_exact_mut(self.channels).take(self.period).enumerate() {
            for (channel, sample) in frame.iter_mut().enumerate() {
                let played = self.history.back(self.period - n, channel);
                self.peak[channel] = self.peak[channel].max(played.abs());
                *sample = if self.method == Method::Silence { 0.0 } else { played };
            }
        }
        for (channel, step) in self.step.iter_mut().enumerate() {
            let before = match self.method {
                Method::Silence => 0.0,
                _ => self.history.back(self.period + 1, channel),
            };
            *step = self.history.back(1, channel) - before;
        }
    }

    /// Sample `n` of a loss.
    fn substitute(&self, n: usize, channel: usize) -> f32 {
        let at = match self.method {
            Method::Silence => n, // one seam only
            _ => n % self.period,
        };
        let seam = self.seam();
        let step = self.step[channel] * seam.saturating_sub(at) as f32 / seam as f32;
        let repeated = self.cycle[at % self.period * self.channels + channel] + step;
        let peak = self.peak[channel];
        // The limit keeps steps as small as they are, for the last sample played is within it.
        self.gain(n) * repeated.clamp(-peak, peak)
    }

    /// Frames over which the step at a seam fades: a quarter of the period (1 ms for silence), 10 ms at most.
    fn seam(&self) -> usize {
        match self.method {
            Method::Silence => self.frames_in_ms(1).max(1),
            _ => (self.period / 4).clamp(1, self.frames_in_ms(10).max(1)),
        }
    }

    /// As in the Appendix: full for 10 ms, then 20 % less every 10 ms, nothing after 60 ms.
    fn gain(&self, n: usize) -> f32 {
        let (full, none) = (self.frames_in_ms(10), self.frames_in_ms(60).max(1));
        none.saturating_sub(n).min(none - full) as f32 / (none - full) as f32
    }

    fn frames_in_ms(&self, milliseconds: u64) -> usize {
        pitch::frames(self.sample_rate, milliseconds)
    }
}
