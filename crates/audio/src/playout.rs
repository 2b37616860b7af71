//! The playout buffer: packets of interleaved samples go in as the network delivers them, blocks of any length come
//! out as the sound card asks for them.
//!
//! A packet's turn comes at a time that its sequence number decides. If it is not there by then it is concealed
//! ([`crate::conceal`]), and it is late if it comes afterwards. The delay between the fastest packet's arrival and its
//! turn is the **depth**: fixed, or [adaptive](Depth::Adaptive). The buffer never waits for a packet that is missing:
//! the depth stays what it is, as musicians need it.
//!
//! Hostile input costs nothing: memory is taken once, at [`Playout::new`]; a sequence number far from the expected ones
//! is refused unless the next packet continues it (RFC 3550, appendix A.1), so that a sender may start again and a
//! forged packet stops nobody.

mod delay;
mod packets;
#[cfg(test)]
mod tests;

use trunkline_core::{Duration, Time};

use crate::conceal::{Concealer, Method};
use crate::seen::{Seen, Sight};
use delay::DelayHistogram;
use packets::Packets;

/// What a [`Playout`] is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Channels, 1 to [`Settings::MOST_CHANNELS`].
    pub channels: usize,
    /// Frames per second, 1 to [`Settings::HIGHEST_RATE`].
    pub sample_rate: u32,
    /// Frames that every packet carries, 1 to [`Settings::LONGEST_PACKET`].
    pub packet_frames: usize,
    /// How long a packet waits.
    pub depth: Depth,
    /// What is played in the place of a missing packet.
    pub conceal: Method,
}

impl Settings {
    /// The most channels.
    pub const MOST_CHANNELS: usize = 256;
    /// The highest sample rate in Hz.
    pub const HIGHEST_RATE: u32 = 768_000;
    /// The most frames of a packet.
    pub const LONGEST_PACKET: usize = 65_536;
    /// The greatest depth.
    pub const DEEPEST: Duration = Duration::from_secs(10);
}

/// The delay between the arrival of the fastest packets and their turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Depth {
    /// Always the same.
    Fixed(Duration),
    /// As much as lets all but a share of the packets come in time, following the network.
    ///
    /// The method is that of NetEQ, the buffer of WebRTC (`delay_manager.cc`, `histogram.cc`): the delay of each packet
    /// against the fastest of the last seconds goes into a histogram that forgets exponentially; the depth is its
    /// quantile. A packet more or less of audio, concealed, takes the depth there.
    Adaptive {
        /// Never less than this; the depth at the start.
        least: Duration,
        /// Never more than this.
        most: Duration,
        /// Share of packets that may come too late, between 0 and 1; 0.01 is a good start.
        late: f64,
    },
}

/// Why a [`Playout`] cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No channels or too many.
    #[error("the number of channels must be between 1 and {}", Settings::MOST_CHANNELS)]
    Channels,
    /// No sample rate or too high a one.
    #[error("the sample rate must be between 1 and {} Hz", Settings::HIGHEST_RATE)]
    SampleRate,
    /// An empty packet or too long a one.
    #[error("a packet must have between 1 and {} frames", Settings::LONGEST_PACKET)]
    PacketFrames,
    /// Too deep, or the least depth above the greatest.
    #[error("the depth must be at most {} s, and the least at most the greatest", Settings::DEEPEST.as_secs_f64())]
    Depth,
    /// Not a share.
    #[error("the share of late packets must lie between 0 and 1")]
    Late,
    /// More memory than a buffer of audio should take.
    #[error("channels, sample rate and depth ask for more than {} MiB; choose less of one", MOST_BYTES >> 20)]
    TooLarge,
}

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

/// Bounds what one buffer takes: 64 channels of 96 kHz, a second deep, need 24 MiB.
const MOST_BYTES: usize = 256 << 20;

impl Settings {
    /// Checks the bounds and gives the number of packets to make room for, a power of two.
    fn check(&self) -> Result<usize, SettingsError> {
        let within = |value: usize, most: usize| (1..=most).contains(&value);
        if !within(self.channels, Settings::MOST_CHANNELS) {
            return Err(SettingsError::Channels);
        }
        if !within(self.sample_rate as usize, Settings::HIGHEST_RATE as usize) {
            return Err(SettingsError::SampleRate);
        }
        if !within(self.packet_frames, Settings::LONGEST_PACKET) {
            return Err(SettingsError::PacketFrames);
        }
        let deepest = match self.depth {
            Depth::Fixed(depth) => depth,
            Depth::Adaptive { least, most, late } => {
                if !(0.0..=1.0).contains(&late) {
                    return Err(SettingsError::Late);
                }
                if least > most {
                    return Err(SettingsError::Depth);
                }
                most
            }
        };
        if deepest > Settings::DEEPEST {
            return Err(SettingsError::Depth);
        }
        let packets = deepest.as_secs_f64() * f64::from(self.sample_rate) / self.packet_frames as f64;
        // Twice the depth, for packets that come in bursts.
        let capacity = (2 * packets as usize + LEAST_CAPACITY).next_power_of_two();
        let bytes =
            capacity * (self.packet_frames * self.channels * size_of::<f32>() + size_of::<Option<i64>>());
        if bytes > MOST_BYTES { Err(SettingsError::TooLarge) } else { Ok(capacity) }
    }
}

/// Room for packets however shallow the buffer.
const LEAST_CAPACITY: usize = 16;

/// When a packet is due after the one numbered 0, in nanoseconds.
fn nominal(settings: &Settings, place: i64) -> i128 {
    i128::from(place) * settings.packet_frames as i128 * 1_000_000_000 / i128::from(settings.sample_rate)
}
