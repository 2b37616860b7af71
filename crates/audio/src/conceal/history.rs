//! The last frames that were played.

/// A ring of interleaved frames; what was never written is silence.
#[derive(Clone, Debug)]
pub(super) struct History {
    samples: Vec<f32>,
    channels: usize,
    frames: usize,
    /// Frame that is written next: the oldest one.
    next: usize,
}

impl History {
    pub(super) fn new(channels: usize, frames: usize) -> History {
        History { samples: vec![0.0; channels * frames], channels, frames, next: 0 }
    }

    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// Appends whole frames.
    pub(super) fn push(&mut self, samples: &[f32]) {
        for frame in samples.chunks_exact(self.channels) {
            let at = self.next * self.channels;
            self.samples[at..at + self.channels].copy_from_slice(frame);
            self.next = (self.next + 1) % self.frames;
        }
    }

    /// A sample of the frame `back` places before the next one: 1 is the last that was played. `back` must not exceed
    /// the length of the ring.
    pub(super) fn back(&self, back: usize, channel: usize) -> f32 {
        debug_assert!((1..=self.frames).contains(&back));
        let frame = if back <= self.next { self.next - back } else { self.next + self.frames - back };
        self.samples[frame * self.channels + channel]
    }

    /// Copies the last samples of a channel, oldest first, as many as there is room for; no more than the ring holds.
    pub(super) fn copy_last(&self, channel: usize, into: &mut [f32]) {
        for (back, sample) in (1..=into.len()).rev().zip(into) {
            *sample = self.back(back, channel);
        }
    }
}
