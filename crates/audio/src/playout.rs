//! The playout buffer: packets of interleaved samples go in as the network delivers them, blocks of any length come
//! out as the sound card asks for them.
//!
//! A packet's turn comes at a time that its sequence number decides. If it is not there by then it is concealed
//! ([`crate::conceal`]), and it is late if it comes afterwards. The delay between the arrival of the first packet and its
//! turn is the **depth**: [fixed](Depth::Fixed), or [adaptive](Depth::Adaptive). The buffer never waits for a packet that
//! is missing: the depth stays what it is, as musicians need it.
//!
//! Hostile input costs nothing: memory is taken once, at [`Playout::new`]; a sequence number far from the expected ones
//! is refused unless the next packet continues it (RFC 3550, appendix A.1), so that a sender may start again and a
//! forged packet stops nobody.
//!
//! ```
//! use trunkline_audio::conceal::Method;
//! use trunkline_audio::playout::{Depth, Playout, Pulled, Settings};
//! use trunkline_core::{Duration, Time};
//!
//! let mut playout = Playout::new(Settings {
//!     channels: 2,
//!     sample_rate: 48_000,
//!     packet_frames: 48,
//!     depth: Depth::Fixed(Duration::from_millis(1)),
//!     conceal: Method::Waveform,
//! })?;
//! playout.insert(Time::ZERO, 0, &[0.5; 96]);
//! let mut block = [0.0; 2 * 96];
//! let pulled = playout.pull(Time::ZERO, &mut block);
//! assert_eq!(pulled, Pulled { waiting: 48, concealed: 0 });
//! assert_eq!(block[96..], [0.5; 96]);
//! # Ok::<(), trunkline_audio::playout::SettingsError>(())
//! ```

mod delay;
mod packets;
mod settings;
#[cfg(test)]
mod tests;

use trunkline_core::{Duration, Time};

use crate::conceal::Concealer;
use crate::seen::{Seen, Sight};
use delay::DelayHistogram;
use packets::Packets;

pub use settings::{Depth, Settings, SettingsError};

/// What became of a packet on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It waits for its turn.
    Queued,
    /// Its turn was over: it is not played.
    Late,
    /// It came before.
    Duplicate,
    /// Its length is wrong, or its sequence number is far from the expected ones: it is not played.
    Refused,
}

/// What a block that was pulled is made of. The rest is received audio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// Frames before the first packet's turn: silence, or the end of an earlier stream fading.
    pub waiting: usize,
    /// Frames in the place of missing packets, and those added to deepen the buffer.
    pub concealed: usize,
}

/// What happened since the start, in packets.
///
/// Every packet that was inserted is in exactly one of `played`, `late`, `duplicate`, `refused`, `skipped` and those
/// [waiting](Playout::waiting).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Played.
    pub played: u64,
    /// Not there at their turn.
    pub missing: u64,
    /// Came after their turn.
    pub late: u64,
    /// Came before.
    pub duplicate: u64,
    /// Wrong length, or far from the expected sequence numbers.
    pub refused: u64,
    /// Came after one with a higher sequence number (RFC 4737, section 3.3), late or not.
    pub reordered: u64,
    /// Thrown away to make the buffer shallower, or because the sender started again.
    pub skipped: u64,
    /// Concealed without being missing, to make the buffer deeper.
    pub added: u64,
    /// Times that the buffer ran dry: the missing packet's successors were missing too.
    pub underruns: u64,
    /// Times that playing started anew at a sequence number far from the expected ones.
    pub restarts: u64,
}

impl Counters {
    /// Packets that have not come at all so far.
    pub fn lost(&self) -> u64 {
        self.missing.saturating_sub(self.late)
    }
}

/// A playout buffer. Feed it with [`insert`](Playout::insert), empty it with [`pull`](Playout::pull).
#[derive(Clone, Debug)]
pub struct Playout {
    settings: Settings,
    packets: Packets,
    concealer: Concealer,
    histogram: Option<DelayHistogram>,
    seen: Seen,
    counters: Counters,
    /// Sequence number whose turn is next, extended beyond 32 bits.
    next: i64,
    /// The highest that was queued.
    highest: i64,
    state: State,
    /// What is playing: one packet.
    current: Vec<f32>,
    /// Whether it is made, not received.
    current_made: bool,
    /// Frames of it that were played.
    read: usize,
    /// When the last pull began and what it took, for [`fill`](Playout::fill).
    last_pull: (Time, usize),
    /// A refused sequence number's successor: if it comes next, the sender has started again.
    probation: Option<u32>,
    /// Turns in a row at which nothing was there.
    dry: u64,
    /// Packets still to play before the depth may be changed again.
    settle: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has arrived.
    Idle,
    /// The first packet's turn comes at this time.
    Starting(Time),
    Playing,
}

impl Playout {
    /// An empty buffer.
    ///
    /// # Errors
    /// Settings outside their bounds.
    pub fn new(settings: Settings) -> Result<Playout, SettingsError> {
        let Settings { channels, sample_rate, packet_frames, depth, conceal } = settings;
        let capacity = settings.check()?;
        Ok(Playout {
            settings,
            packets: Packets::new(capacity, packet_frames * channels),
            concealer: Concealer::new(conceal, channels, sample_rate, packet_frames),
            histogram: match depth {
                Depth::Fixed(_) => None,
                Depth::Adaptive { most, late, .. } => Some(DelayHistogram::new(most, late)),
            },
            seen: Seen::default(),
            counters: Counters::default(),
            next: 0,
            highest: 0,
            state: State::Idle,
            current: vec![0.0; packet_frames * channels],
            current_made: false,
            read: packet_frames,
            last_pull: (Time::ZERO, 0),
            probation: None,
            dry: 0,
            settle: 0,
        })
    }

    /// Takes a packet that arrived at `now`: interleaved samples, [`Settings::packet_frames`] of each channel. Sequence
    /// numbers count packets and wrap at 2^32.
    pub fn insert(&mut self, now: Time, sequence: u32, samples: &[f32]) -> Arrival {
        let arrival = self.sort(now, sequence, samples);
        match arrival {
            Arrival::Queued => {}
            Arrival::Late => self.counters.late += 1,
            Arrival::Duplicate => self.counters.duplicate += 1,
            Arrival::Refused => self.counters.refused += 1,
        }
        arrival
    }

    /// Fills `out` with what is played from `now` on: interleaved, any number of frames. Samples beyond the last whole
    /// frame become silence.
    pub fn pull(&mut self, now: Time, out: &mut [f32]) -> Pulled {
        let mut pulled = Pulled::default();
        let channels = self.settings.channels;
        let frames = out.len() / channels;
        self.last_pull = (now, frames);
        let (mut rest, odd) = out.split_at_mut(frames * channels);
        odd.fill(0.0);
        while !rest.is_empty() {
            let left = rest.len() / channels;
            let at = now + self.time_of((frames - left) as u64);
            if self.read < self.settings.packet_frames {
                let count = left.min(self.settings.packet_frames - self.read);
                let (filled, later) = rest.split_at_mut(count * channels);
                filled.copy_from_slice(&self.current[self.read * channels..][..count * channels]);
                pulled.concealed += if self.current_made { count } else { 0 };
                self.read += count;
                rest = later;
            } else if let Some(count) = self.wait(at, left) {
                let (silence, later) = rest.split_at_mut(count * channels);
                // After a stream that ended suddenly, its last sound fades.
                if self.counters.played > 0 {
                    self.concealer.lost(silence)
                } else {
                    silence.fill(0.0)
                }
                pulled.waiting += count;
                rest = later;
            } else {
                self.turn(at);
            }
        }
        pulled
    }

    /// What happened since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets that wait for their turn.
    pub fn waiting(&self) -> u64 {
        self.packets.len()
    }

    /// The depth aimed at: fixed, or what the histogram says at present.
    pub fn depth(&self) -> Duration {
        match (self.settings.depth, &self.histogram) {
            (Depth::Adaptive { least, most, .. }, Some(histogram)) => histogram.depth().clamp(least, most),
            (Depth::Adaptive { least: depth, .. } | Depth::Fixed(depth), _) => depth,
        }
    }

    /// Frames between what is playing at `now` and the end of the newest packet; `None` before playing has begun, and
    /// negative if the newest packet's turn is over.
    ///
    /// Read just after an [`insert`](Playout::insert) it is free of the steps of packets and blocks, since what a
    /// pull took is counted as it is played: this is what [`crate::drift`] controls.
    pub fn fill(&self, now: Time) -> Option<f64> {
        if self.state != State::Playing {
            return None;
        }
        let packet = self.settings.packet_frames as f64;
        let ahead = (self.highest + 1 - self.next) as f64 * packet + packet - self.read as f64;
        let (pulled_at, frames) = self.last_pull;
        let played = now.since(pulled_at).as_secs_f64() * f64::from(self.settings.sample_rate);
        Some(ahead + (frames as f64 - played).max(0.0))
    }

    fn sort(&mut self, now: Time, sequence: u32, samples: &[f32]) -> Arrival {
        if samples.len() != self.current.len() {
            return Arrival::Refused;
        }
        if self.state == State::Idle {
            self.begin(now, sequence);
        }
        let mut place = self.extend(sequence);
        let capacity = self.packets.capacity() as i64;
        let near = (self.next - MISORDER..self.next + capacity).contains(&place);
        // Nothing but late packets: the network's delay has grown for good.
        let outrun = place < self.next && self.dry > OUTRUN;
        if !near || outrun {
            if self.probation != Some(sequence) {
                self.probation = Some(sequence.wrapping_add(1));
                return Arrival::Refused;
            }
            self.restart(now, sequence);
            place = self.next;
        }
        self.probation = None;
        if self.seen.note(sequence) == Sight::Again {
            return Arrival::Duplicate;
        }
        self.counters.reordered += u64::from(place < self.highest);
        if let Some(histogram) = &mut self.histogram {
            histogram.note(now, nominal(&self.settings, place));
        }
        if place < self.next {
            let State::Starting(turn) = self.state else { return Arrival::Late };
            if self.highest - place >= capacity {
                return Arrival::Late;
            }
            // Its turn is before that of the packet that came first, or at once if that is over.
            let earlier = self.time_of((self.next - place) as u64 * self.settings.packet_frames as u64);
            self.state = State::Starting(Time::ZERO + turn.since(Time::ZERO + earlier));
            self.next = place;
        }
        self.highest = self.highest.max(place);
        self.packets.put(place, samples);
        Arrival::Queued
    }

    /// The first packet: its turn comes when the depth has passed.
    fn begin(&mut self, now: Time, sequence: u32) {
        self.next = i64::from(sequence);
        self.highest = self.next;
        self.state = State::Starting(now + self.depth());
        self.dry = 0;
        self.settle = 0;
        if let Some(histogram) = &mut self.histogram {
            histogram.restart();
        }
    }

    fn restart(&mut self, now: Time, sequence: u32) {
        self.counters.restarts += 1;
        self.counters.skipped += self.packets.clear();
        self.seen = Seen::default();
        self.begin(now, sequence);
    }

    /// How many of `frames` frames from `now` on pass before the first packet's turn; `None` once it has come.
    fn wait(&mut self, now: Time, frames: usize) -> Option<usize> {
        match self.state {
            State::Playing => None,
            State::Idle => Some(frames),
            State::Starting(turn) => {
                let nanos = u128::from(turn.since(now).as_nanos());
                let wait = (nanos * u128::from(self.settings.sample_rate)).div_ceil(1_000_000_000);
                if wait >= frames as u128 {
                    return Some(frames);
                }
                self.state = State::Playing;
                Some(wait as usize).filter(|&wait| wait > 0)
            }
        }
    }

    /// It is `next`'s turn at `now`: fills `current`.
    fn turn(&mut self, now: Time) {
        self.read = 0;
        let change = self.change(now);
        if change == Change::Deepen {
            self.counters.added += 1;
            self.current_made = true;
            self.concealer.lost(&mut self.current);
            return;
        }
        if change == Change::Shallow && self.packets.take(self.next, &mut self.current) {
            self.counters.skipped += 1;
            self.next += 1;
        }
        let there = self.packets.take(self.next, &mut self.current);
        self.next += 1;
        self.current_made = !there;
        if there {
            self.counters.played += 1;
            self.dry = 0;
            match change {
                Change::Shallow => self.concealer.spliced(&mut self.current),
                _ => self.concealer.received(&mut self.current),
            }
        } else {
            self.counters.missing += 1;
            if self.packets.len() == 0 {
                self.counters.underruns += u64::from(self.dry == 0);
                self.dry += 1;
            }
            self.concealer.lost(&mut self.current);
        }
    }

    /// Whether this turn changes the depth: by one packet, and not again before a while has passed.
    fn change(&mut self, now: Time) -> Change {
        let Some(fastest) = self.histogram.as_ref().and_then(DelayHistogram::fastest) else {
            return Change::None;
        };
        self.settle = self.settle.saturating_sub(1);
        if self.settle > 0 {
            return Change::None;
        }
        let depth = i128::from(now.as_nanos()) - nominal(&self.settings, self.next) - fastest;
        let (target, packet) = (i128::from(self.depth().as_nanos()), nominal(&self.settings, 1));
        let change = if depth + packet / 2 < target {
            Change::Deepen
        } else if depth > target + packet + packet / 2
            && self.packets.has(self.next)
            && self.packets.has(self.next + 1)
        {
            Change::Shallow
        } else {
            return Change::None;
        };
        // Deeper at once, for audio is being lost; shallower in no hurry, for every step may be heard.
        self.settle = if change == Change::Deepen { 2 } else { 50 };
        change
    }

    /// The extended number nearest to `next` that ends in `sequence`.
    fn extend(&self, sequence: u32) -> i64 {
        self.next + i64::from(sequence.wrapping_sub(self.next as u32) as i32)
    }

    fn time_of(&self, frames: u64) -> Duration {
        let nanos = u128::from(frames) * 1_000_000_000 / u128::from(self.settings.sample_rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    Deepen,
    Shallow,
}

/// Packets further behind than this are of another stream (RFC 3550, appendix A.1, `MAX_MISORDER`).
const MISORDER: i64 = 100;

/// Turns in a row with nothing there after which late packets are taken for a path that has become longer.
const OUTRUN: u64 = 25;

/// When a packet is due after the one numbered 0, in nanoseconds.
fn nominal(settings: &Settings, place: i64) -> i128 {
    i128::from(place) * settings.packet_frames as i128 * 1_000_000_000 / i128::from(settings.sample_rate)
}
