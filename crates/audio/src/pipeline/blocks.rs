//! What a device captures, in blocks of the stream.

use trunkline_core::{Duration, Time};

use super::stream::duration_of;
use super::{Block, DeviceFormat, Stream, StreamError};
use crate::drift::{Quality, Resampler};
use crate::playout::Origin;

/// Cuts numbered blocks of a stream out of the frames of a device, whatever the device's sample rate.
///
/// A device of one channel is heard on every channel of the stream; one of fewer channels than the stream leaves the
/// rest silent.
#[derive(Debug)]
pub struct Blocks {
    stream: Stream,
    device: DeviceFormat,
    resampler: Option<Resampler>,
    /// Frames of the device that wait for their block, in the stream's channels.
    held: Vec<f32>,
    /// Frames of the device that the next block takes.
    needed: usize,
    /// What the resampler makes.
    block: Vec<f32>,
    /// Frames of the device that were taken, and blocks that were emitted.
    frames: u64,
    blocks: u64,
}

impl Blocks {
    /// For frames of `device`.
    ///
    /// # Errors
    /// The stream is out of bounds, or the device has more channels than it.
    pub fn new(stream: &Stream, device: DeviceFormat) -> Result<Blocks, StreamError> {
        stream.check()?;
        if !(1..=stream.channels).contains(&device.channels) {
            return Err(StreamError::DeviceChannels { device: device.channels, stream: stream.channels });
        }
        let (channels, frames) = (usize::from(stream.channels), stream.block_frames as usize);
        let resampler = match device.sample_rate == stream.sample_rate {
            true => None,
            false => {
                let rates = (device.sample_rate, stream.sample_rate);
                Some(Resampler::new(Quality::Sinc, channels, frames, rates.0, rates.1)?)
            }
        };
        let most_needed = resampler.as_ref().map_or(frames, Resampler::most_needed);
        Ok(Blocks {
            stream: *stream,
            device,
            needed: resampler.as_ref().map_or(frames, Resampler::needed),
            block: vec![0.0; if resampler.is_some() { frames * channels } else { 0 }],
            resampler,
            held: Vec::with_capacity(most_needed * channels),
            frames: 0,
            blocks: 0,
        })
    }

    /// Takes interleaved frames of the device, any number of them, of which the first was captured at `captured`, and
    /// hands the blocks that they fill to `emit`. Samples behind the last whole frame are left out.
    pub fn push(&mut self, captured: Time, frames: &[f32], emit: &mut dyn FnMut(Block<'_>)) {
        let (from, to) = (usize::from(self.device.channels), usize::from(self.stream.channels));
        let mut rest = frames.chunks_exact(from);
        let mut taken = 0u64;
        while rest.len() > 0 {
            let held = self.held.len() / to;
            for frame in rest.by_ref().take(self.needed - held) {
                taken += 1;
                let silence = if from == 1 { frame[0] } else { 0.0 };
                self.held.extend_from_slice(frame);
                self.held.extend(core::iter::repeat_n(silence, to - from));
            }
            if self.held.len() / to == self.needed {
                self.frames += self.needed as u64;
                // Counted from the start, the block's first frame is so long before the last that was taken.
                let emitted = self.stream.duration_of(self.blocks * u64::from(self.stream.block_frames));
                let lasted = duration_of(self.frames, self.device.sample_rate).saturating_sub(emitted);
                let end = captured + duration_of(taken, self.device.sample_rate);
                self.emit(Time::ZERO + end.since(Time::ZERO + lasted + self.delay()), emit);
            }
        }
    }

    /// Frames of the device that wait for their block to fill; `None` if they are resampled.
    pub fn held(&self) -> Option<u64> {
        let frames = self.held.len() / usize::from(self.stream.channels);
        self.resampler.is_none().then_some(frames as u64)
    }

    /// What resampling adds to the latency; waiting for a block to fill is not in it.
    pub fn delay(&self) -> Duration {
        let frames = self.resampler.as_ref().map_or(0.0, Resampler::delay);
        Duration::from_secs_f64(frames / f64::from(self.stream.sample_rate))
    }

    fn emit(&mut self, captured: Time, emit: &mut dyn FnMut(Block<'_>)) {
        let samples = match &mut self.resampler {
            None => &self.held,
            Some(resampler) => {
                // Never an error: the lengths are those that it asked for.
                let _ = resampler.resample(&self.held, &mut self.block);
                self.needed = resampler.needed();
                &self.block
            }
        };
        emit(Block {
            sequence: self.blocks as u32,
            captured,
            arrived: Time::ZERO,
            first_channel: 0,
            channels: self.stream.channels,
            samples,
            origin: Origin::Sent,
        });
        self.blocks += 1;
        self.held.clear();
    }
}
