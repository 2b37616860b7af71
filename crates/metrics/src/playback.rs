//! The D/A side of a voice channel (Weaver and McNabb 1992, sections 3 and 5.2).

use trunkline_core::{Duration, Time};

use crate::voice_path::{Margin, VoicePath};

/// How long a sample is played.
pub(crate) const SAMPLE: Duration = Duration::from_micros(125);

/// What the playback of a channel is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaybackFifo {
    /// How many samples the FIFO holds, the one that is being played among them.
    pub depth: u32,
    /// How many samples must be there before playback begins; with 0 it begins with the first packet.
    pub fill: u32,
}

impl PlaybackFifo {
    /// The time that the samples last for which it waits.
    pub fn delay(self) -> Duration {
        SAMPLE * u64::from(self.fill)
    }

    /// The same, but waiting for samples of another duration, or until it is full.
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> PlaybackFifo {
        let fill = u32::try_from(delay.as_nanos() / SAMPLE.as_nanos()).unwrap_or(u32::MAX);
        PlaybackFifo { fill: fill.min(self.depth), ..self }
    }
}

/// A FIFO that is drained one sample every 125 us once playback has begun. Time never decreases; if it does, it counts as
/// not having moved.
#[derive(Clone, Copy, Debug)]
pub struct Playback {
    state: State,
    now: Time,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Playback has not begun; so many samples wait for more.
    Filling { held: u32 },
    /// Everything there will have been played at this time.
    Playing { empty: Time },
}

/// What a packet's arrival has brought about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// When the playback of a talk spurt begins, if it is this packet that lets it begin.
    pub begins: Option<Time>,
    /// How much earlier than its deadline the packet came: than the moment at which everything before it has been played.
    /// `None` before playback, and of the first packet of a talk spurt.
    pub margin: Option<Margin>,
    /// Since when there was nothing to play, and for how long.
    pub underflow: Option<(Time, Duration)>,
    /// How many of its samples found no room.
    pub lost: u32,
}

impl Default for Playback {
    fn default() -> Playback {
        Playback { state: State::Filling { held: 0 }, now: Time::ZERO }
    }
}

impl Playback {
    /// Takes a packet of so many samples, which may be the first of a talk spurt. What such a packet finds played to the
    /// end was silence of the speaker, no underflow, and playback begins anew.
    pub fn arrival(&mut self, fifo: PlaybackFifo, at: Time, samples: u32, is_first: bool) -> Arrived {
        self.now = self.now.max(at);
        let now = self.now;
        if is_first && matches!(self.state, State::Playing { empty } if empty < now) {
            self.state = State::Filling { held: 0 };
        }
        let taken = samples.min(fifo.depth.saturating_sub(self.waiting(now)));
        let mut arrived = Arrived { lost: samples - taken, ..Arrived::default() };
        match &mut self.state {
            State::Filling { held } => {
                *held += taken;
                if *held >= fifo.fill {
                    arrived.begins = Some(now);
                    self.state = State::Playing { empty: now + SAMPLE * u64::from(*held) };
                }
            }
            State::Playing { empty } => {
                if is_first {
                    arrived.begins = Some(*empty);
                } else {
                    arrived.margin = Some(Margin::between(now, *empty));
                }
                if *empty < now {
                    arrived.underflow = Some((*empty, now.since(*empty)));
                    *empty = now;
                }
                *empty += SAMPLE * u64::from(taken);
            }
        }
        arrived
    }

    /// How many samples are in the FIFO, the one that is being played among them.
    pub fn waiting(&self, at: Time) -> u32 {
        match self.state {
            State::Filling { held } => held,
            // A FIFO's depth, and so what is in it, has 32 bits.
            State::Playing { empty } => empty.since(at).as_nanos().div_ceil(SAMPLE.as_nanos()) as u32,
        }
    }

    /// When everything there will have been played; `None` before playback has begun.
    pub fn empty_at(&self) -> Option<Time> {
        match self.state {
            State::Filling { .. } => None,
            State::Playing { empty } => Some(empty),
        }
    }
}

/// Where the talk spurts of a channel begin, by the messages that arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct TalkSpurts {
    /// The latest message that has arrived, by its number.
    latest: Option<Latest>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    sequence: u32,
    due: Time,
    samples: u32,
}

impl TalkSpurts {
    /// Takes a message, and says whether it is the first of a talk spurt: of a speaker who pauses, if it was due later than
    /// what came before it lasts, the lost messages between them included.
    pub fn begins(&mut self, path: VoicePath, sequence: u32, due: Time, samples: u32) -> bool {
        let Some(before) = self.latest.replace(Latest { sequence, due, samples }) else { return true };
        let ahead = sequence.wrapping_sub(before.sequence);
        if ahead > u32::MAX / 2 {
            self.latest = Some(before); // it was overtaken
            return false;
        }
        let lost = u64::from(ahead.saturating_sub(1)) * u64::from(path.samples);
        path.pauses && due > before.due + SAMPLE * (u64::from(before.samples) + lost)
    }

    /// When the latest message that has arrived was due, by its number.
    pub fn latest_due(&self) -> Option<Time> {
        Some(self.latest?.due)
    }
}

#[cfg(test)]
mod tests;
