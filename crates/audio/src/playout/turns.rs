//! Turn by turn: which packet is played when, and what in its place.

use trunkline_core::{Duration, Time};

use super::delay::DelayHistogram;
use super::{Playout, State, nominal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    Deepen,
    Shallow,
}

/// An error of the depth that is put right by a splice; what is less, the clocks' correction brings in within seconds.
const EARLY_ERROR: Duration = Duration::from_millis(1);
/// The same when the depth is as well known as it will be.
const LAST_ERROR: Duration = Duration::from_micros(250);
/// Who is further off even then has not seen the end of what happens at a start.
const UNSETTLED: Duration = Duration::from_millis(5);

/// A device that has been late by so much has lost time, and a block if that is longer.
const LOST: Duration = Duration::from_millis(2);
/// How long it is remembered by how much the device was late, in seconds.
const REMEMBERED: f64 = 2.0;

impl Playout {
    /// How many of `frames` frames from `now` on pass before the first packet's turn; `None` once it has come.
    pub(super) fn wait(&mut self, now: Time, frames: usize) -> Option<usize> {
        match self.state {
            State::Playing => None,
            State::Idle => Some(frames),
            State::Starting => {
                let nanos = self.early(now)?;
                let wait =
                    (nanos.max(0) * i128::from(self.settings.sample_rate) + 999_999_999) / 1_000_000_000;
                if wait >= frames as i128 {
                    return Some(frames);
                }
                self.state = State::Playing;
                self.transits.heard(now);
                // What should have been heard already is not heard at all.
                self.skip = self.bounded(-nanos).max(0);
                self.moved -= self.skip;
                Some(wait as usize).filter(|&wait| wait > 0)
            }
        }
    }

    /// How much too early it is at `now` for the turn of `next`, by what is typical of the packets that have come, in
    /// nanoseconds; `None` if none has.
    fn early(&mut self, now: Time) -> Option<i128> {
        let transit = match self.histogram.as_ref().map(DelayHistogram::fastest) {
            Some(fastest) => fastest?,
            None => self.transits.typical()?.transit,
        };
        Some(self.turn_of_next(transit) - i128::from(now.as_nanos()))
    }

    /// When the turn of `next` comes if packets typically take so long, in nanoseconds.
    fn turn_of_next(&self, transit: i128) -> i128 {
        let depth = self.depth() + self.settings.ahead;
        nominal(&self.settings, self.next) + transit + i128::from(depth.as_nanos())
    }

    /// Notes that the device takes frames at `now`. One that has lost time has made the buffer deeper: the depth is
    /// established anew.
    pub(super) fn watch(&mut self, now: Time, frames: usize) {
        if self.state != State::Playing || !self.transits.is_established() {
            self.lag = 0.0;
            return;
        }
        let early = self.frames_in(self.pulled_until.since(now));
        let late = self.frames_in(now.since(self.pulled_until));
        let forgotten = frames as f64 / (REMEMBERED * f64::from(self.settings.sample_rate));
        self.lag = self.lag * (1.0 - forgotten.min(1.0)) + late - early;
        if self.lag > self.frames_in(self.settings.ahead.max(LOST)) {
            self.transits.restart(true);
        }
    }

    /// It is `next`'s turn at `now`: fills `current`.
    pub(super) fn turn(&mut self, now: Time) {
        self.read = 0;
        self.correct(now);
        if self.skip < 0 {
            let frames = self.skip.unsigned_abs().min(self.settings.packet_frames as u64) as usize;
            self.skip += frames as i64;
            self.moved -= frames as i64;
            return self.add(frames);
        }
        let change = self.change(now);
        if change == Change::Deepen {
            return self.add(self.settings.packet_frames);
        }
        let frames = self.settings.packet_frames as i64;
        self.moved += self.skip;
        let skip = core::mem::take(&mut self.skip) + if change == Change::Shallow { frames } else { 0 };
        self.discard(self.next + skip / frames);
        self.read = (skip % frames) as usize;
        self.left_out += if self.packets.is_whole(self.next) { self.read as u64 } else { 0 };
        self.play(skip > 0 && self.counters.played > 0);
    }

    /// Plays something made, so many frames of it, to make the buffer deeper.
    fn add(&mut self, frames: usize) {
        self.read = self.settings.packet_frames - frames;
        self.counters.added += self.parts.len() as u64;
        self.current_made = true;
        for part in &mut self.parts {
            let samples = &mut self.current[part.samples.clone()];
            part.concealer.lost(&mut samples[self.read * part.channels.len()..]);
        }
    }

    /// Throws away what is to be played before this packet.
    pub(super) fn discard(&mut self, until: i64) {
        while self.next < until {
            self.left_out +=
                if self.packets.is_whole(self.next) { self.settings.packet_frames as u64 } else { 0 };
            for n in 0..self.parts.len() {
                match self.packets.take((self.next, n), &mut self.current) {
                    Some(_) => self.counters.skipped += 1,
                    None => self.counters.missing += 1,
                }
            }
            self.next += 1;
        }
    }

    /// Plays `next` from frame `read` on, or conceals it; after something was left out, without a seam.
    fn play(&mut self, is_spliced: bool) {
        self.current_made = false;
        let mut missing = 0;
        for (n, part) in self.parts.iter_mut().enumerate() {
            let taken = self.packets.take((self.next, n), &mut self.current);
            let samples = &mut self.current[part.samples.clone()][self.read * part.channels.len()..];
            let Some(made) = taken else {
                missing += 1;
                part.concealer.lost(samples);
                continue;
            };
            self.counters.made += u64::from(made);
            self.current_made |= made;
            match is_spliced {
                true => part.concealer.spliced(samples),
                false => part.concealer.received(samples),
            }
        }
        self.next += 1;
        self.current_made |= missing > 0;
        self.counters.missing += missing;
        self.counters.played += self.parts.len() as u64 - missing;
        if missing < self.parts.len() as u64 {
            self.dry = 0;
        } else if self.packets.len() == 0 {
            self.counters.underruns += u64::from(self.dry == 0);
            self.dry += 1;
        }
    }

    /// Fills the beginning of `current` with silence; after a stream that ended suddenly, its last sound fades.
    pub(super) fn make_silence(&mut self, frames: usize) {
        for part in &mut self.parts {
            let samples = &mut self.current[part.samples.clone()][..frames * part.channels.len()];
            if self.counters.played > 0 { part.concealer.lost(samples) } else { samples.fill(0.0) }
        }
    }

    /// Copies frames of `current`, from this one on, to `out`.
    pub(super) fn interleave(&self, from: usize, out: &mut [f32]) {
        let channels = self.settings.channels;
        for part in &self.parts {
            let width = part.channels.len();
            let samples = &self.current[part.samples.clone()][from * width..];
            if width == channels {
                out.copy_from_slice(&samples[..out.len()]);
                return;
            }
            for (frame, samples) in out.chunks_exact_mut(channels).zip(samples.chunks_exact(width)) {
                frame[part.channels.clone()].copy_from_slice(samples);
            }
        }
    }

    /// Looks at the depth while it is being established, and decides what to leave out or to add.
    fn correct(&mut self, now: Time) {
        let Some((typical, is_early)) = self.transits.check(now) else { return };
        let fastest = self.histogram.as_ref().and_then(DelayHistogram::fastest);
        let late = i128::from(now.as_nanos()) - self.turn_of_next(fastest.unwrap_or(typical.transit));
        let is_beyond = |least: Duration| {
            late.unsigned_abs() > u128::from(least.as_nanos()) + 2 * u128::from(typical.error)
        };
        let packet = self.time_of(self.settings.packet_frames as u64);
        let (is_far, is_off) = match fastest {
            // An adaptive depth moves by packets anyway.
            Some(_) => (is_beyond(packet), is_beyond(packet)),
            None => (is_beyond(EARLY_ERROR), is_beyond(LAST_ERROR)),
        };
        if is_far || is_off && !is_early {
            self.skip = self.bounded(late);
        }
        self.transits.settle(now, is_far && is_beyond(UNSETTLED));
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
        let target = i128::from((self.depth() + self.settings.ahead).as_nanos());
        let packet = nominal(&self.settings, 1);
        let change = if depth + packet / 2 < target {
            Change::Deepen
        } else if depth > target + packet + packet / 2
            && self.packets.is_whole(self.next)
            && self.packets.is_whole(self.next + 1)
        {
            Change::Shallow
        } else {
            return Change::None;
        };
        // Deeper at once, for audio is being lost; shallower in no hurry, for every step may be heard.
        self.settle = if change == Change::Deepen { 2 } else { 50 };
        change
    }

    /// Whole frames in so many nanoseconds, to leave out or to add: no more than have come, and than there is room for.
    fn bounded(&self, nanos: i128) -> i64 {
        let frames = nanos.saturating_mul(i128::from(self.settings.sample_rate)) / 1_000_000_000;
        let packet = self.settings.packet_frames as i128;
        let (room, there) = (self.packets.capacity(), (self.highest + 1 - self.next).max(0));
        frames.clamp(-i128::from(room) * packet, i128::from(there) * packet) as i64
    }
}
