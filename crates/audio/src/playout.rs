//! The playout buffer: packets of interleaved samples go in as the network delivers them, blocks of any length come
//! out as the sound card asks for them.
//!
//! A packet's turn comes at a time that its sequence number decides. If it is not there by then it is concealed
//! ([`crate::conceal`]), and it is late if it comes afterwards. The delay between the arrival of a typical packet and its
//! turn is the **depth**: [fixed](Depth::Fixed), or [adaptive](Depth::Adaptive). The buffer never waits for a packet that
//! is missing: the depth stays what it is, as musicians need it.
//!
//! Which packet is typical is not known when the first one comes, and the first ones seldom are: a sender may begin with
//! audio that is old already, a network may hold packets back at first. So the depth is **established** out of the packets
//! of the first second. Until audio is heard its beginning moves; after that, what is left of the error is put right at
//! once, by a splice, and not by playing faster or slower for minutes. A device that loses time begins anew in the same way.
//!
//! The channels of a stream may come in **parts**, each in a packet of its own. Parts of one sequence number have one
//! turn, so that channels stay aligned to the sample whatever is lost, and a part that is missing is concealed alone.
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
//!     part_channels: 2,
//!     ahead: Duration::ZERO,
//!     conceal: Method::Waveform,
//! })?;
//! playout.insert(Time::ZERO, 0, &[0.5; 96]);
//! let mut block = [0.0; 2 * 96];
//! let pulled = playout.pull(Time::ZERO, &mut block);
//! assert_eq!(pulled, Pulled { waiting: 48, concealed: 0 });
//! assert_eq!(block[96..], [0.5; 96]);
//! # Ok::<(), trunkline_audio::playout::SettingsError>(())
//! ```

mod counters;
mod delay;
mod packets;
mod part;
mod settings;
mod start;
#[cfg(test)]
mod tests;
mod turns;

use core::ops::Range;

use trunkline_core::{Duration, Time};

use crate::seen::Sight;
use delay::DelayHistogram;
use packets::Packets;
use part::{Part, parts};
use start::Transits;

pub use counters::Counters;
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
    /// Its length or its channels are wrong, or its sequence number is far from the expected ones: it is not played.
    Refused,
}

/// Where the samples of a block come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They were in its packet.
    Sent,
    /// It was lost, and redundancy in others brought it back.
    Recovered,
    /// It was lost, and the codec made it up.
    Concealed,
}

/// Some channels of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet<'a> {
    /// Which channels.
    pub channels: Range<usize>,
    /// Interleaved: [`Settings::packet_frames`] of each channel.
    pub samples: &'a [f32],
    /// Where they come from.
    pub origin: Origin,
}

/// What a block that was pulled is made of. The rest is received audio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// Frames before the first packet's turn: silence, or the end of an earlier stream fading.
    pub waiting: usize,
    /// Frames of which a channel or more was missing, and those added to deepen the buffer.
    pub concealed: usize,
}

/// A playout buffer. Feed it with [`insert`](Playout::insert), empty it with [`pull`](Playout::pull).
#[derive(Clone, Debug)]
pub struct Playout {
    settings: Settings,
    packets: Packets,
    parts: Vec<Part>,
    histogram: Option<DelayHistogram>,
    transits: Transits,
    counters: Counters,
    /// Sequence number whose turn is next, extended beyond 32 bits.
    next: i64,
    /// The highest that was queued.
    highest: i64,
    state: State,
    /// What is playing: one packet of each part, one behind the other.
    current: Vec<f32>,
    /// Whether something of it is made, not received.
    current_made: bool,
    /// Frames of it that were played.
    read: usize,
    /// When all that was pulled has been played, for [`fill`](Playout::fill).
    pulled_until: Time,
    /// By how much the device has been late lately, in frames: what it is late now and early later adds up to nothing.
    lag: f64,
    /// Frames to leave out, or if less than 0 to add, at the next turn.
    skip: i64,
    /// Frames that were left out since audio is heard, to establish the depth, less those that were added.
    moved: i64,
    /// Frames that were left out, of packets that had come.
    left_out: u64,
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
    /// The first packet's turn is to come.
    Starting,
    Playing,
}

impl Playout {
    /// An empty buffer.
    ///
    /// # Errors
    /// Settings outside their bounds.
    pub fn new(settings: Settings) -> Result<Playout, SettingsError> {
        let Settings { channels, packet_frames, depth, .. } = settings;
        let capacity = settings.check()?;
        let parts = parts(&settings);
        Ok(Playout {
            settings,
            packets: Packets::new(capacity, parts.iter().map(|part| part.samples.clone()).collect()),
            parts,
            histogram: match depth {
                Depth::Fixed(_) => None,
                Depth::Adaptive { most, late, .. } => Some(DelayHistogram::new(most, late)),
            },
            transits: Transits::new(),
            counters: Counters::default(),
            next: 0,
            highest: 0,
            state: State::Idle,
            current: vec![0.0; packet_frames * channels],
            current_made: false,
            read: packet_frames,
            pulled_until: Time::ZERO,
            lag: 0.0,
            skip: 0,
            moved: 0,
            left_out: 0,
            probation: None,
            dry: 0,
            settle: 0,
        })
    }

    /// Takes a packet of all channels that arrived at `now`: interleaved samples, [`Settings::packet_frames`] of each
    /// channel. Sequence numbers count packets and wrap at 2^32.
    pub fn insert(&mut self, now: Time, sequence: u32, samples: &[f32]) -> Arrival {
        let channels = 0..self.settings.channels;
        self.insert_part(now, sequence, Packet { channels, samples, origin: Origin::Sent })
    }

    /// As [`insert`](Playout::insert), for some of the channels: those of one part, or of several.
    pub fn insert_part(&mut self, now: Time, sequence: u32, packet: Packet<'_>) -> Arrival {
        let covered = |part: &Part| {
            packet.channels.start <= part.channels.start && part.channels.end <= packet.channels.end
        };
        let first = self.parts.iter().position(covered).unwrap_or(0);
        let parts = first..first + self.parts.iter().filter(|part| covered(part)).count();
        let channels: usize = self.parts[parts.clone()].iter().map(|part| part.channels.len()).sum();
        let fits = channels == packet.channels.len()
            && channels > 0
            && packet.samples.len() == channels * self.settings.packet_frames;
        let count = parts.len().max(1) as u64;
        let Some(place) = fits.then(|| self.place(sequence)).flatten() else {
            self.counters.refused += count;
            return Arrival::Refused;
        };
        let new = |part: &mut Part| part.seen.note(sequence) == Sight::New;
        self.parts[parts.clone()].iter_mut().for_each(|part| part.new = new(part));
        let news = self.parts[parts.clone()].iter().filter(|part| part.new).count() as u64;
        self.counters.duplicate += count - news;
        if news == 0 {
            return Arrival::Duplicate;
        }
        // What was lost and brought back by later packets has overtaken nothing.
        let is_overtaken = place < self.highest && packet.origin == Origin::Sent;
        self.counters.reordered += if is_overtaken { news } else { 0 };
        // What a codec made says nothing about the path.
        let has_come = packet.origin != Origin::Concealed;
        if has_come {
            let nominal = nominal(&self.settings, place);
            self.transits.note(now, place, nominal);
            if let Some(histogram) = &mut self.histogram {
                histogram.note(now, nominal);
            }
        }
        if !self.is_in_time(place) {
            self.counters.late += if has_come { news } else { 0 };
            return Arrival::Late;
        }
        self.highest = self.highest.max(place);
        for (n, part) in parts.clone().zip(&self.parts[parts]).filter(|(_, part)| part.new) {
            let skipped = part.channels.start - packet.channels.start;
            self.packets.put((place, n), &packet, skipped);
        }
        Arrival::Queued
    }

    /// Fills `out` with what is played from `now` on: interleaved, any number of frames. Samples beyond the last whole
    /// frame become silence.
    pub fn pull(&mut self, now: Time, out: &mut [f32]) -> Pulled {
        let mut pulled = Pulled::default();
        let channels = self.settings.channels;
        let frames = out.len() / channels;
        self.watch(now, frames);
        self.pulled_until = now + self.time_of(frames as u64);
        let (mut rest, odd) = out.split_at_mut(frames * channels);
        odd.fill(0.0);
        while !rest.is_empty() {
            let left = rest.len() / channels;
            let at = now + self.time_of((frames - left) as u64);
            let from = self.read;
            let count = if from < self.settings.packet_frames {
                let count = left.min(self.settings.packet_frames - from);
                pulled.concealed += if self.current_made { count } else { 0 };
                self.read += count;
                count
            } else if let Some(count) = self.wait(at, left.min(self.settings.packet_frames)) {
                pulled.waiting += count;
                self.make_silence(count);
                count
            } else {
                self.turn(at);
                continue;
            };
            let from = if from < self.settings.packet_frames { from } else { 0 };
            let (filled, later) = rest.split_at_mut(count * channels);
            self.interleave(from, filled);
            rest = later;
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

    /// Whether the depth has come to be what was asked: after that only the clocks have to be followed
    /// ([`crate::drift`]), and until then nothing has.
    pub fn is_established(&self) -> bool {
        self.state == State::Playing && self.transits.is_established()
    }

    /// By how many frames the buffer was made shallower, or if less than 0 deeper, to establish the depth, since audio is
    /// heard.
    pub(crate) fn moved(&self) -> i64 {
        self.moved
    }

    /// Frames of packets that had come, but were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
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
        Some(ahead + self.frames_in(self.pulled_until.since(now)))
    }

    /// What is played next: the sequence number of a packet and the frame within it; `None` before playing has begun.
    pub fn position(&self) -> Option<(u32, usize)> {
        let within = self.read < self.settings.packet_frames;
        let (place, frame) = if within { (self.next - 1, self.read) } else { (self.next, 0) };
        (self.state == State::Playing).then_some((place as u32, frame))
    }

    /// How far the fill is above what keeps the depth as it should be, in frames: what [`crate::drift`] brings to
    /// zero. Asked for just after an [`insert`](Playout::insert), as [`fill`](Playout::fill).
    ///
    /// A fixed depth is kept on average. An adaptive one is measured against the fastest packets, so that the jitter
    /// of this one is not in it, and kept in the middle of what its steps of a packet leave it.
    pub fn surplus(&self, now: Time) -> Option<f64> {
        let packet = self.settings.packet_frames as f64;
        let waits = self.fill(now)? - packet;
        let depth = self.frames_in(self.depth() + self.settings.ahead);
        let Some(histogram) = &self.histogram else { return Some(waits - depth) };
        let late =
            i128::from(now.as_nanos()) - nominal(&self.settings, self.highest) - histogram.fastest()?;
        let late = self.frames_in(Duration::from_nanos(u64::try_from(late).unwrap_or(0)));
        Some(waits + late - depth - packet / 2.0)
    }

    /// The extended number of a packet; `None` if it is far from the expected ones and no sender that starts again.
    fn place(&mut self, sequence: u32) -> Option<i64> {
        if self.state == State::Idle {
            self.begin(sequence);
        }
        let mut place = self.extend(sequence);
        if self.state == State::Starting && place == self.highest + 1 {
            // More comes at once than there is room for: the oldest of it would be played too late.
            self.discard(place + 1 - self.packets.capacity());
        }
        let near = (self.next - MISORDER..self.next + self.packets.capacity()).contains(&place);
        // Nothing but late packets: the network's delay has grown for good.
        let outrun = place < self.next && self.dry > OUTRUN;
        if !near || outrun {
            if self.probation != Some(sequence) {
                self.probation = Some(sequence.wrapping_add(1));
                return None;
            }
            self.restart(sequence);
            place = self.next;
        }
        self.probation = None;
        Some(place)
    }

    /// Whether the packet's turn is to come. Before playing has begun it may be earlier than that of the first packet.
    fn is_in_time(&mut self, place: i64) -> bool {
        if place >= self.next {
            return true;
        }
        if self.state != State::Starting || self.highest - place >= self.packets.capacity() {
            return false;
        }
        self.next = place;
        true
    }

    /// The first packet.
    fn begin(&mut self, sequence: u32) {
        self.next = i64::from(sequence);
        self.highest = self.next;
        self.state = State::Starting;
        self.dry = 0;
        self.settle = 0;
        self.skip = 0;
        self.transits.restart(false);
        if let Some(histogram) = &mut self.histogram {
            histogram.restart();
        }
    }

    fn restart(&mut self, sequence: u32) {
        self.counters.restarts += 1;
        self.counters.skipped += self.packets.clear();
        self.parts.iter_mut().for_each(|part| part.seen = Default::default());
        self.begin(sequence);
    }

    /// The extended number nearest to `next` that ends in `sequence`.
    fn extend(&self, sequence: u32) -> i64 {
        self.next + i64::from(sequence.wrapping_sub(self.next as u32) as i32)
    }

    fn time_of(&self, frames: u64) -> Duration {
        let nanos = u128::from(frames) * 1_000_000_000 / u128::from(self.settings.sample_rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn frames_in(&self, time: Duration) -> f64 {
        time.as_secs_f64() * f64::from(self.settings.sample_rate)
    }
}

/// Packets further behind than this are of another stream (RFC 3550, appendix A.1, `MAX_MISORDER`).
const MISORDER: i64 = 100;

/// Turns in a row with nothing there after which late packets are taken for a path that has become longer.
const OUTRUN: u64 = 25;

/// When a packet is due after the one numbered 0, in nanoseconds.
fn nominal(settings: &Settings, place: i64) -> i128 {
    i128::from(place) * settings.packet_frames as i128 * 1_000_000_000 / i128::from(settings.sample_rate)
}
