//! Blocks of a stream in, frames of a device out.

use trunkline_core::{Duration, Time};

use super::stream::duration_of;
use super::{Block, DeviceFormat, Stream, StreamError};
use crate::conceal::Method;
use crate::drift::{Controller, Quality, Resampler};
use crate::playout::{Arrival, Counters, Depth, Packet, Playout, Pulled, Settings};

/// How a [`Player`] plays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerSettings {
    /// How long blocks wait for their turn, beyond a block of the device: how much their delays may differ.
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
    /// How long a block that arrives waits for its turn, smoothed: on average the depth and a block of the device.
    pub playout: Duration,
    /// Received audio that was left out, to set the delay.
    pub left_out: Duration,
    /// What resampling to the device's rate adds.
    pub resampling: Duration,
    /// How much faster the sender's clock is than the device's, in parts per million; `None` until that is known.
    pub drift_ppm: Option<f64>,
    /// When the frame that is played next was captured, by the sender's clock.
    pub captured: Option<Time>,
    /// The number of the block that is played next, and how much of it has been played.
    pub position: Option<(u32, Duration)>,
}

/// A playout buffer, a drift controller and a resampler. Owned by the callback that plays.
#[derive(Debug)]
pub struct Player {
    stream: Stream,
    device: DeviceFormat,
    playout: Playout,
    controller: Option<Controller>,
    surpluses: Surpluses,
    resampler: Option<Resampler>,
    /// What the resampler takes.
    input: Vec<f32>,
    /// What it made, in the stream's channels, and how much of it was played.
    made: Vec<f32>,
    read: usize,
    /// The block that came last, and when it was captured.
    last: Option<(u32, Time)>,
    /// How long blocks wait for their turn, in frames, smoothed; and by how many frames the buffer has been moved in all.
    waits: f64,
    moved: i64,
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
        let ahead = duration_of(device.block_frames.into(), device.sample_rate);
        let playout = Playout::new(Settings {
            channels,
            sample_rate: stream.sample_rate,
            packet_frames: frames,
            part_channels: stream.layout().part_channels,
            depth: settings.depth,
            ahead,
            conceal: settings.conceal,
        })?;
        let waits = (playout.depth() + ahead).as_secs_f64() * f64::from(stream.sample_rate);
        let same_rate = device.sample_rate == stream.sample_rate;
        let chunk = chunk(device.block_frames as usize);
        let quality = match same_rate && frames <= SHORT_BLOCK {
            true => Quality::ShortSinc,
            false => Quality::Sinc,
        };
        let resampler = match same_rate && !settings.drift {
            true => None,
            false => Some(Resampler::new(quality, channels, chunk, stream.sample_rate, device.sample_rate)?),
        };
        let made = chunk * channels;
        Ok(Player {
            stream: *stream,
            device,
            playout,
            controller: settings.drift.then(|| Controller::new(stream.sample_rate, 0.0)),
            surpluses: Surpluses::new(),
            input: vec![0.0; resampler.as_ref().map_or(chunk, Resampler::most_needed) * channels],
            resampler,
            made: vec![0.0; made],
            read: made,
            last: None,
            waits,
            moved: 0,
        })
    }

    /// Takes a block, or a part of one, that arrived at `arrived`: not later than the next [`pull`](Player::pull). A codec that
    /// decodes in order may have held it back since.
    pub fn insert(&mut self, arrived: Time, block: Block<'_>) -> Arrival {
        let first = usize::from(block.first_channel);
        let end = first + usize::from(block.channels);
        let packet = Packet { channels: first..end, samples: block.samples, origin: block.origin };
        let arrival = self.playout.insert_part(arrived, block.sequence, packet);
        if arrival != Arrival::Queued {
            return arrival;
        }
        self.last = Some((block.sequence, block.captured));
        if end < self.stream.channels.into() {
            // A block has come with its last part: over a slow line the first one waits for longer.
            return arrival;
        }
        let is_established = self.playout.is_established();
        if let Some(fill) = self.playout.fill(arrived) {
            let waits = fill - f64::from(self.stream.block_frames);
            let over = if is_established { SMOOTHING } else { EARLY_SMOOTHING };
            let moved = self.playout.moved();
            self.waits -= (moved - core::mem::replace(&mut self.moved, moved)) as f64;
            let share = self.stream.block_duration().as_secs_f64() / over.as_secs_f64();
            self.waits += (waits - self.waits) * share.min(1.0);
        }
        if let Some(controller) = &mut self.controller {
            match self.playout.surplus(arrived).filter(|_| is_established) {
                Some(surplus) => {
                    if let Some(typical) = self.surpluses.note(arrived, surplus) {
                        controller.observe(arrived, typical);
                    }
                }
                // What is wrong with the depth is put right by the buffer itself.
                None => {
                    self.surpluses.restart();
                    controller.restart();
                }
            }
        }
        arrival
    }

    /// Fills `out` with what the device plays from `now` on: interleaved in the device's channels, any number of frames.
    pub fn pull(&mut self, now: Time, out: &mut [f32]) -> Pulled {
        let (from, to) = (usize::from(self.stream.channels), usize::from(self.device.channels));
        let whole = out.len() / to * to;
        let mut pulled = Pulled::default();
        let mut done = 0;
        while done < whole {
            if self.read == self.made.len() {
                let at = now + duration_of((done / to) as u64, self.device.sample_rate);
                let made = self.make(at, (whole - done) / to);
                pulled.waiting += made.waiting;
                pulled.concealed += made.concealed;
            }
            let frames = ((self.made.len() - self.read) / from).min((whole - done) / to);
            let samples = &self.made[self.read..self.read + frames * from];
            spread(samples, from, &mut out[done..done + frames * to], to);
            self.read += samples.len();
            done += frames * to;
        }
        out[whole..].fill(0.0);
        pulled
    }

    /// How it is doing.
    pub fn stats(&self) -> PlayerStats {
        let waits = self.waits.max(0.0) / f64::from(self.stream.sample_rate);
        PlayerStats {
            counters: self.playout.counters(),
            depth: self.playout.depth(),
            playout: Duration::from_secs_f64(waits),
            left_out: self.stream.duration_of(self.playout.left_out()),
            resampling: self.resampling(),
            drift_ppm: self.controller.as_ref().and_then(Controller::drift).map(|drift| 1e6 * drift),
            captured: self.captured(),
            position: self
                .playout
                .position()
                .map(|(block, frame)| (block, self.stream.duration_of(frame as u64))),
        }
    }

    /// What the resampler adds, in the device's time.
    fn resampling(&self) -> Duration {
        let frames = self.resampler.as_ref().map_or(0.0, Resampler::delay);
        Duration::from_secs_f64(frames / f64::from(self.device.sample_rate))
    }

    /// When the frame that is played next was captured: as many blocks before the last that came as it is behind.
    fn captured(&self) -> Option<Time> {
        let ((playing, frame), (last, captured)) = self.playout.position().zip(self.last)?;
        let blocks = last.wrapping_sub(playing) as i32;
        let frames = i64::from(blocks) * i64::from(self.stream.block_frames) - frame as i64;
        let unread = (self.made.len() - self.read) / usize::from(self.stream.channels);
        let unread = duration_of(unread as u64, self.device.sample_rate);
        let held = self.stream.codec_delay() + self.resampling() + unread;
        let behind = self.stream.duration_of(frames.unsigned_abs());
        let position =
            if frames < 0 { captured + behind } else { Time::ZERO + captured.since(Time::ZERO + behind) };
        Some(Time::ZERO + position.since(Time::ZERO + held))
    }

    /// Makes the next frames: a chunk, or without a resampler no more than are wanted.
    fn make(&mut self, now: Time, wanted: usize) -> Pulled {
        let Some(resampler) = &mut self.resampler else {
            let wanted = wanted * usize::from(self.stream.channels);
            self.read = self.made.len().saturating_sub(wanted);
            return self.playout.pull(now, &mut self.made[self.read..]);
        };
        self.read = 0;
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

/// The surplus of blocks that come one after the other. The depth is that of the typical block, so the clocks' correction
/// follows the median too: the mean is further off where a few blocks come much later than the others.
#[derive(Debug)]
struct Surpluses {
    begin: Option<Time>,
    frames: Vec<f64>,
}

impl Surpluses {
    /// Time and number of the blocks of one median, at most.
    const WINDOW: Duration = Duration::from_millis(500);
    const MOST: usize = 256;

    fn new() -> Surpluses {
        Surpluses { begin: None, frames: Vec::with_capacity(Surpluses::MOST) }
    }

    /// Takes that of a block; returns the median when there are enough.
    fn note(&mut self, now: Time, frames: f64) -> Option<f64> {
        self.frames.push(frames);
        let begin = *self.begin.get_or_insert(now);
        if now.since(begin) < Surpluses::WINDOW && self.frames.len() < Surpluses::MOST {
            return None;
        }
        let middle = self.frames.len() / 2;
        let median = *self.frames.select_nth_unstable_by(middle, f64::total_cmp).1;
        self.restart();
        Some(median)
    }

    fn restart(&mut self) {
        self.begin = None;
        self.frames.clear();
    }
}

/// Frames of a block, up to which the resampler has half the delay for less treble: short blocks are chosen for their delay.
const SHORT_BLOCK: usize = 64;
/// Over how long the waiting time is smoothed; and while the depth is still put right.
const SMOOTHING: Duration = Duration::from_millis(250);
const EARLY_SMOOTHING: Duration = Duration::from_millis(50);

/// Copies frames of `from` channels to as many of `to` channels: one channel to all of them, several to the first.
fn spread(samples: &[f32], from: usize, out: &mut [f32], to: usize) {
    if from == to {
        out.copy_from_slice(samples);
        return;
    }
    for (frame, out) in samples.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
        let (there, beyond) = out.split_at_mut(from);
        there.copy_from_slice(frame);
        beyond.fill(if from == 1 { frame[0] } else { 0.0 });
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
