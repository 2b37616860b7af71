//! From what a device captured to packets on a line.

#[cfg(test)]
mod tests;

use trunkline_audio::pipeline::{Block, Blocks, DeviceFormat, Packer, Stream, StreamError};
use trunkline_core::{Duration, Time};
use trunkline_metrics::Delays;

use super::figures::Mean;
use super::halves::Captured;
use super::ring::Reader;
use super::round_trips::RoundTrips;
use crate::line::{Ended, Line, Packets};

/// The network's end of what a device captures. A device that comes back may be another one, and has a new one.
pub(super) struct CaptureEnd {
    ring: Reader<Captured>,
    blocks: Blocks,
    device: DeviceFormat,
}

impl CaptureEnd {
    /// For what `device` captures.
    ///
    /// # Errors
    /// The device does not fit the stream.
    pub(super) fn new(
        ring: Reader<Captured>,
        stream: &Stream,
        device: DeviceFormat,
    ) -> Result<CaptureEnd, StreamError> {
        Ok(CaptureEnd { ring, blocks: Blocks::new(stream, device)?, device })
    }

    /// How long a block of the device lasts.
    pub(super) fn device_block(&self) -> Duration {
        duration_of(self.device.block_frames.into(), self.device.sample_rate)
    }

    /// What was captured and not yet sent.
    #[cfg(test)]
    pub(super) fn taken(&mut self) -> Vec<f32> {
        let mut samples = Vec::new();
        while let Some((_, frames)) = self.ring.read() {
            samples.extend_from_slice(frames);
        }
        samples
    }

    /// Whether the device has another sample rate than the stream.
    pub(super) fn is_resampled(&self) -> bool {
        self.blocks.held().is_none()
    }

    /// Forgets what was captured until now.
    pub(super) fn clear(&mut self) {
        while self.ring.read().is_some() {}
    }
}

/// The sending half of a session.
pub(super) struct Outgoing {
    stream: Stream,
    packer: Box<dyn Packer>,
    /// The packets of a block.
    packets: Packets,
    /// What is added to the number of each block: a device that has come back counts from nought.
    base: u32,
    /// The block that was handed over last, and when it was captured.
    last: Option<(u32, Time)>,
    /// Blocks that were sent, and those that may be.
    pub(super) blocks: u64,
    most_blocks: u64,
    /// Frames of all blocks, without the silence that fills the last one; known when everything was captured that there is.
    pub(super) frames: Option<u64>,
    /// From the first frame of a block to the callback, and from there until its packets were handed over.
    pub(super) block: Mean,
    pub(super) packing: Mean,
    pub(super) packings: Delays,
    pub(super) trips: RoundTrips,
}

impl Outgoing {
    /// Sends at most so many blocks of a stream, in the packets of `packer`.
    pub(super) fn new(stream: &Stream, packer: Box<dyn Packer>, most_blocks: u64) -> Outgoing {
        Outgoing {
            stream: *stream,
            packer,
            packets: Packets::default(),
            base: 0,
            last: None,
            blocks: 0,
            most_blocks,
            frames: None,
            block: Mean::default(),
            packing: Mean::default(),
            packings: Delays::default(),
            trips: RoundTrips::new(),
        }
    }

    /// Whether all blocks were sent that may be.
    pub(super) fn is_done(&self) -> bool {
        self.blocks >= self.most_blocks
    }

    /// Another device captures from now on. Numbers of blocks go on as if it had captured all the time: so the other end
    /// knows how long nothing came.
    pub(super) fn begin_anew(&mut self, now: Time) {
        if let Some((sequence, captured)) = self.last.take() {
            let block = self.stream.block_duration().as_nanos().max(1);
            let missed = now.since(captured).as_nanos() / block;
            self.base = sequence.wrapping_add(missed.max(1) as u32);
        }
    }

    /// Sends what was captured meanwhile.
    ///
    /// # Errors
    /// That the conversation is over.
    pub(super) fn turn(&mut self, end: &mut CaptureEnd, line: &mut dyn Line) -> Result<(), Ended> {
        let mut result = Ok(());
        while let Some((captured, frames)) = end.ring.read() {
            end.blocks.push(captured.first, frames, &mut |block| {
                if result.is_ok() {
                    result = self.send(&block, captured.called, line);
                }
            });
        }
        result
    }

    /// Sends silence until every frame that was captured has left its block and the resampler.
    ///
    /// # Errors
    /// That the conversation is over.
    pub(super) fn flush(&mut self, end: &mut CaptureEnd, line: &mut dyn Line) -> Result<(), Ended> {
        self.turn(end, line)?;
        let full = self.blocks * u64::from(self.stream.block_frames);
        self.frames = end.blocks.held().filter(|_| !self.is_done()).map(|held| full + held);
        let now = crate::now();
        let lasting = self.stream.block_duration() + end.blocks.delay();
        let frames = lasting.as_secs_f64() * f64::from(end.device.sample_rate);
        let silence = vec![0.0; (frames as usize + 1) * usize::from(end.device.channels)];
        let mut result = Ok(());
        end.blocks.push(now, &silence, &mut |block| {
            if result.is_ok() {
                result = self.send(&block, now, line);
            }
        });
        result
    }

    fn send(&mut self, block: &Block<'_>, called: Time, line: &mut dyn Line) -> Result<(), Ended> {
        if self.is_done() {
            return Ok(());
        }
        self.blocks += 1;
        let block = Block { sequence: block.sequence.wrapping_add(self.base), ..*block };
        self.last = Some((block.sequence, block.captured));
        let Outgoing { packer, packets, .. } = self;
        packets.clear();
        packer.pack(&block, &mut |packet| packets.push(packet));
        let now = crate::now();
        self.trips.hand(block.sequence, self.stream.parts(), now);
        let result = line.send_all(now, &self.packets);
        self.block.add(called.since(block.captured).as_nanos() as i64);
        let packing = crate::now().since(called);
        self.packing.add(packing.as_nanos() as i64);
        self.packings.record(packing);
        result
    }
}

/// How long so many frames last.
pub(super) fn duration_of(frames: u64, sample_rate: u32) -> Duration {
    Duration::from_nanos(frames * 1_000_000_000 / u64::from(sample_rate.max(1)))
}
