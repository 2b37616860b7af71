//! Blocks of a stream in, frames of a device out.

use trunkline_core::{Duration, Time};

use super::stream::duration_of;
use super::{Block, DeviceFormat, Stream, StreamError};
use crate::conceal::Method;
use crate::drift::{Controller, Quality, Resampler};
use crate::playout::{Arrival, Counters, Depth, Playout, Pulled, Settings};

/// How a [`Player`] plays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerSettings {
    /// How long blocks wait for their turn.
    pub depth: Depth,
    /// What is played in the place of one that is missing.
    pub conceal: Method,
    /// Whether the device's clock is followed: off, a difference of the clocks empties or fills the buffer in the end.
    pub drift: bool,
}

impl Default for PlayerSettings {
    fn default() -> PlayerSettings {
        PlayerSettings {
            depth: Depth::Fixed(Duration::from_millis(10)),
            conceal: Method::default(),
            drift: true,
        }
    }
}

/// How a [`Player`] is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlayerStats {
    /// What became of the packets, and of those that are missing.
    pub counters: Counters,
    /// The depth aimed at.
    pub depth: Duration,
    /// What is in the buffer: how long a block that arrives now waits for its turn. Smoothed over a second.
    pub playout: Duration,
    /// What resampling to the device's rate adds.
    pub resampling: Duration,
    /// How much faster the sender's clock is than the device's, in parts per million, as far as it is known.
    pub drift_ppm: f64,
    /// When the frame that is played next was captured, by the sender's clock.
    pub captured: Option<Time>,
}

/// A playout buffer, a drift controller and a resampler. Owned by the callback that plays.
#[derive(Debug)]
pub struct Player {
    stream: Stream,
    device: DeviceFormat,
    playout: Playout,
    controller: Option<Controller>,
    resampler: Option<Resampler>,
    /// What the resampler takes.
    input: Vec<f32>,
    /// What it made, in the stream's channels, and how much of it was played.
    made: Vec<f32>,
    read: usize,
    /// The block that came last, and when it was captured.
    last: Option<(u32, Time)>,
}

impl Player {
    /// A player of `stream` on `device`. A stream of one channel is heard on every channel of the device; channels of the
    /// device beyond those of the stream stay silent.
    ///
    /// # Errors
    /// The stream or the settings are out of bounds, or the stream has more channels than the device.
    pub fn new(
        stream: &Stream,
        device: DeviceFormat,
        settings: PlayerSettings,
    ) -> Result<Player, StreamError> {
        stream.check()?;
        if device.channels < stream.channels {
            return Err(StreamError::DeviceChannels { device: device.channels, stream: stream.channels });
        }
        let (channels, frames) = (usize::from(stream.channels), stream.block_frames as usize);
        let playout = Playout::new(Settings {
            channels,
            sample_rate: stream.sample_rate,
            packet_frames: frames,
            depth: settings.depth,
            conceal: settings.conceal,
        })?;
        let target = playout.depth().as_secs_f64() * f64::from(stream.sample_rate) + frames as f64;
        let same_rate = device.sample_rate == stream.sample_rate;
        let chunk = chunk(device.block_frames as usize);
        let resampler = match same_rate && !settings.drift {
            true => None,
            false => {
                Some(Resampler::new(Quality::Sinc, channels, chunk, stream.sample_rate, device.sample_rate)?)
            }
        };
        let made = chunk * channels;
        Ok(Player {
            stream: *stream,
            device,
            playout,
            controller: settings.drift.then(|| Controller::new(stream.sample_rate, target)),
            input: vec![0.0; resampler.as_ref().map_or(chunk, Resampler::most_needed) * channels],
            resampler,
            made: vec![0.0; made],
            read: made,
            last: None,
        })
    }

    /// Takes a block, or a part of one, that arrived at `arrived`: not later than the next [`pull`](Player::pull).
    pub fn insert(&mut self, arrived: Time, block: Block<'_>) -> Arrival {
        if block.first_channel != 0 || block.channels != self.stream.channels {
            return Arrival::Refused;
        }
        let arrival = self.playout.insert(arrived, block.sequence, block.samples);
        if arrival == Arrival::Queued {
            self.last = Some((block.sequence, block.captured));
            if let (Some(controller), Some(fill)) = (&mut self.controller, self.playout.fill(arrived)) {
                controller.observe(arrived, fill);
            }
        }
        arrival
    }

    /// Fills `out` with what the device plays from `now` on: interleaved in the device's channels, any number of frames.
    pub fn pull(&mut self, now: Time, out: &mut [f32]) -> Pulled {
        let (from, to) = (usize::from(self.stream.channels), usize::from(self.device.channels));
        let frames = out.len() / to;
        let (whole, odd) = out.split_at_mut(frames * to);
        odd.fill(0.0);
        let mut pulled = Pulled::default();
        for (n, frame) in whole.chunks_exact_mut(to).enumerate() {
            if self.read == self.made.len() {
                let at = now + duration_of(n as u64, self.device.sample_rate);
                let part = self.make(at);
                pulled.waiting += part.waiting;
                pulled.concealed += part.concealed;
            }
            let samples = &self.made[self.read..self.read + from];
            self.read += from;
            frame[..from].copy_from_slice(samples);
            frame[from..].fill(if from == 1 { samples[0] } else { 0.0 });
        }
        pulled
    }

    /// How it is doing.
    pub fn stats(&self) -> PlayerStats {
        let resampling = self.resampler.as_ref().map_or(0, Resampler::delay) as u64;
        PlayerStats {
            counters: self.playout.counters(),
            depth: self.playout.depth(),
            playout: self.playout.depth(),
            resampling: duration_of(resampling, self.device.sample_rate),
            drift_ppm: self.controller.as_ref().map_or(0.0, |controller| 1e6 * controller.drift()),
            captured: self.last.map(|(_, captured)| captured),
        }
    }

    /// Makes the next chunk.
    fn make(&mut self, now: Time) -> Pulled {
        self.read = 0;
        let Some(resampler) = &mut self.resampler else {
            return self.playout.pull(now, &mut self.made);
        };
        if let Some(controller) = &self.controller {
            resampler.steer(controller.correction());
        }
        let input = &mut self.input[..resampler.needed() * usize::from(self.stream.channels)];
        let pulled = self.playout.pull(now, input);
        // Never an error: the lengths are those that it asked for.
        let _ = resampler.resample(input, &mut self.made);
        pulled
    }
}

/// Frames that are made at a time: a block of the device, or an even part of it if that is long.
fn chunk(block_frames: usize) -> usize {
    let mut chunk = block_frames.max(1);
    while chunk > 128 && chunk.is_multiple_of(2) {
        chunk /= 2;
    }
    chunk.min(1024)
}
