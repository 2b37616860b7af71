//! What a device does once per block, whoever calls it.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use trunkline_core::Time;

use crate::shared::Shared;
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use trunkline_testkit::alloc::{CountingAllocator, allocations_during};

    use super::*;
    use crate::file::{Reader, Writer};
    use crate::place::Place;
    use crate::wanted::Wanted;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    /// Plays the first channel of what it captures on all channels.
    struct Through(f32);

    impl Callbacks for Through {
        fn captured(&mut self, _: Time, frames: &[f32]) {
            self.0 = frames[0];
        }

        fn render(&mut self, _: Time, frames: &mut [f32]) {
            frames.fill(self.0);
        }
    }

    /// Sound from a file and a tone, into a file and to hardware: also when a file is at its end or its ring is full.
    #[test]
    fn a_turn_allocates_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| Place::File(directory.path().join(name));
        let encoding = trunkline_audio::format::Encoding::I16;
        let mut writer = Writer::create(directory.path().join("in.wav"), 2, 8000, encoding).unwrap();
        writer.write(&[0.5; 2 * 3000]).unwrap();
        writer.finish().unwrap();
        let jack = || Place::Jack { ports: None };
        for (capture, playback) in [
            (path("in.wav"), jack()),
            (Place::Tone { hertz: vec![440.0] }, path("out.flac")),
            (Place::Noise { seed: 1 }, Place::None),
            (jack(), path("out.wav")),
        ] {
            let wanted =
                Wanted { capture: Some((capture, 2)), playback: Some((playback, 2)), ..Wanted::default() };
            let format = Format { sample_rate: 8000, block_frames: 64, ..wanted.channels() };
            let shared = Arc::<Shared>::default();
            let input: Option<Reader> = Soft::input(&wanted).unwrap();
            let soft = Soft::make(&wanted, input, format, &shared).unwrap();
            let (home, returned) = mpsc::channel();
            let mut cycle = Cycle::new(Box::new(Through(0.0)), soft, home, shared, format);
            let (allocations, ()) = allocations_during(|| {
                for block in 0..400 {
                    let now = Time::from_nanos(block * 8_000_000);
                    cycle.capture(now, 64, |samples| samples.fill(0.25));
                    cycle.play(now, 64, |samples| assert_eq!(samples.len(), 128));
                }
            });
            assert_eq!(allocations, 0);
            drop(cycle);
            assert!(returned.recv().is_ok(), "what is soft comes home");
        }
    }
}
