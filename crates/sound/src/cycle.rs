//! What a device does once per block, whoever calls it.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use trunkline_core::Time;

use crate::device::Shared;
use crate::soft::Soft;
use crate::wanted::Format;

/// What is done with the sound, in the real-time thread of a device: no waiting, no lock, no allocation, no panic.
///
/// `now` is `CLOCK_MONOTONIC` ([`trunkline_io::clock::raw_now`]) at the start of the device's cycle and never decreases: the
/// last captured frame has just arrived, the first rendered frame is about to leave. Samples are interleaved, 1.0 is full
/// scale, and one call has whole frames: [`Format::block_frames`], or fewer.
pub trait Callbacks: Send {
    /// Takes what was captured. The last block of a file is short.
    fn captured(&mut self, now: Time, frames: &[f32]);

    /// Fills all of `frames` (which hold silence) with what is to be played.
    fn render(&mut self, now: Time, frames: &mut [f32]);
}

/// One block after the other, in a device's real-time thread.
pub(crate) struct Cycle {
    callbacks: Box<dyn Callbacks>,
    soft: Soft,
    /// Where what is soft goes when this device is gone: to the next one.
    home: Sender<Soft>,
    shared: Arc<Shared>,
    captured: Vec<f32>,
    rendered: Vec<f32>,
    format: Format,
    last: Time,
}

impl Cycle {
    pub(crate) fn new(
        callbacks: Box<dyn Callbacks>,
        soft: Soft,
        home: Sender<Soft>,
        shared: Arc<Shared>,
        format: Format,
    ) -> Cycle {
        let samples = |channels: u16| vec![0.0; format.block_frames as usize * usize::from(channels)];
        Cycle {
            callbacks,
            soft,
            home,
            shared,
            captured: samples(format.capture_channels),
            rendered: samples(format.playback_channels),
            format,
            last: Time::ZERO,
        }
    }

    /// Frames of a turn at most.
    pub(crate) fn most_frames(&self) -> usize {
        self.format.block_frames as usize
    }

    /// The first half of a turn: so many frames come in. `copy` brings them from the hardware; it is not called where they
    /// come from elsewhere.
    pub(crate) fn capture(&mut self, now: Time, frames: usize, copy: impl FnOnce(&mut [f32])) {
        self.last = self.last.max(now);
        let captured = &mut self.captured[..frames * usize::from(self.format.capture_channels)];
        let count = match &mut self.soft.source {
            Some(source) => source.fill(captured, &self.shared),
            None => {
                copy(captured);
                captured.len()
            }
        };
        if count > 0 {
            self.callbacks.captured(self.last, &captured[..count]);
        }
    }

    /// The second half: as many frames go out. `copy` brings them to the hardware; it is not called where they go elsewhere.
    pub(crate) fn play(&mut self, now: Time, frames: usize, copy: impl FnOnce(&[f32])) {
        self.last = self.last.max(now);
        let rendered = &mut self.rendered[..frames * usize::from(self.format.playback_channels)];
        if rendered.is_empty() {
            return;
        }
        rendered.fill(0.0);
        self.callbacks.render(self.last, rendered);
        match &mut self.soft.sink {
            Some(sink) => sink.take(rendered, &self.shared),
            None => copy(rendered),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for Cycle {
    fn drop(&mut self) {
        // Nobody waits for it when the device is closed.
        let _ = self.home.send(std::mem::take(&mut self.soft));
    }
}
