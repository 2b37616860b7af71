//! The device's side of a session: what its real-time thread does once per block. It takes no lock, allocates nothing and
//! waits for nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use trunkline_audio::pipeline::{Block, Player, PlayerStats};
use trunkline_audio::playout::Origin;
use trunkline_core::{Duration, Time};
use trunkline_io::Wakeup;
use trunkline_sound::{Callbacks, Format};

use super::ring::{Reader, Writer};

/// What has to be known of a stretch that was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Captured {
    /// When its first frame was captured.
    pub(super) first: Time,
    /// When the device handed it over.
    pub(super) called: Time,
}

/// What has to be known of a block, or a part of one, that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// When.
    pub(super) at: Time,
    pub(super) sequence: u32,
    /// When its first frame was captured, by the sender's clock.
    pub(super) captured: Time,
    pub(super) first_channel: u16,
    pub(super) channels: u16,
    pub(super) origin: Origin,
}

/// What the callback tells of its player.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Played {
    /// When the block began that was played last.
    pub(super) at: Time,
    pub(super) stats: PlayerStats,
}

/// Stretches that found no room on their way, since the program started.
#[derive(Debug, Default)]
pub(super) struct Overflows {
    pub(super) captured: AtomicU64,
}

/// Both directions of a device.
pub(super) struct Halves {
    pub(super) capture: Option<CaptureHalf>,
    pub(super) playback: Option<PlaybackHalf>,
}

impl Callbacks for Halves {
    fn captured(&mut self, now: Time, frames: &[f32]) {
        if let Some(capture) = &mut self.capture {
            capture.take(now, frames);
        }
    }

    fn render(&mut self, now: Time, frames: &mut [f32]) {
        if let Some(playback) = &mut self.playback {
            playback.render(now, frames);
        }
    }
}

/// From the device to the network's thread.
pub(super) struct CaptureHalf {
    pub(super) ring: Writer<Captured>,
    pub(super) wakeup: Arc<Wakeup>,
    pub(super) overflows: Arc<Overflows>,
    pub(super) channels: usize,
    pub(super) sample_rate: u32,
}

impl CaptureHalf {
    fn take(&mut self, now: Time, frames: &[f32]) {
        let count = frames.len() / self.channels.max(1);
        let nanos = count as u64 * 1_000_000_000 / u64::from(self.sample_rate.max(1));
        let first = Time::ZERO + now.since(Time::ZERO + Duration::from_nanos(nanos));
        if self.ring.write(Captured { first, called: now }, frames) {
            self.wakeup.set();
        } else {
            self.overflows.captured.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// From the network's thread to the device.
pub(super) struct PlaybackHalf {
    ring: Reader<Arrived>,
    player: Player,
    mix: Option<Mix>,
    /// Where it tells how it is doing; while nobody listens, nothing is told.
    told: Producer<Played>,
    played: Played,
}

impl PlaybackHalf {
    /// Plays what comes out of `ring`; tells how that goes at the other end of what is returned.
    pub(super) fn new(
        ring: Reader<Arrived>,
        player: Player,
        mix: Option<Mix>,
    ) -> (PlaybackHalf, Consumer<Played>) {
        let (told, listening) = RingBuffer::new(16);
        (PlaybackHalf { ring, player, mix, told, played: Played::default() }, listening)
    }

    fn render(&mut self, now: Time, frames: &mut [f32]) {
        let before = self.played.at;
        while let Some((arrived, samples)) = self.ring.read() {
            let block = Block {
                sequence: arrived.sequence,
                captured: arrived.captured,
                arrived: arrived.at,
                first_channel: arrived.first_channel,
                channels: arrived.channels,
                samples,
                origin: arrived.origin,
            };
            // To the player no block arrives later than it plays.
            self.player.insert(arrived.at.min(now.max(before)), block);
        }
        match &mut self.mix {
            None => drop(self.player.pull(now, frames)),
            Some(mix) => {
                let all = mix.room(frames.len());
                self.player.pull(now, all);
                mix.down(frames);
            }
        }
        self.played = Played { at: now, stats: self.player.stats() };
        // A full ring: it is told next time.
        let _ = self.told.push(self.played);
    }
}

/// Mixes a stream down for a device of fewer channels: each channel of the device has every so many-th of the stream, as
/// loud as their mean.
pub(super) struct Mix {
    from: usize,
    to: usize,
    all: Vec<f32>,
    used: usize,
}

impl Mix {
    /// From so many channels to those of the device.
    pub(super) fn new(from: u16, device: Format) -> Mix {
        let from = usize::from(from);
        let all = vec![0.0; from * device.block_frames as usize];
        Mix { from, to: usize::from(device.playback_channels.max(1)), all, used: 0 }
    }

    /// Where all channels go for so many samples of the device.
    fn room(&mut self, samples: usize) -> &mut [f32] {
        self.used = (samples / self.to * self.from).min(self.all.len());
        &mut self.all[..self.used]
    }

    fn down(&mut self, frames: &mut [f32]) {
        let all = self.all[..self.used].chunks_exact(self.from);
        for (frame, all) in frames.chunks_exact_mut(self.to).zip(all) {
            for (channel, sample) in frame.iter_mut().enumerate() {
                let folded = all[channel..].iter().step_by(self.to);
                let count = folded.len() as f32;
                *sample = folded.sum::<f32>() / count;
            }
        }
    }
}
