//! From packets of a line to what a device plays.

use rtrb::Consumer;
use trunkline_audio::pipeline::{Block, Stream, UnpackCounters, Unpacker};
use trunkline_audio::playout::Origin;
use trunkline_core::{Duration, Time};
use trunkline_metrics::Delays;

use super::exact::Recording;
use super::figures::Mean;
use super::halves::{Arrived, Played};
use super::ring::Writer;
use super::round_trips::RoundTrips;
use super::words::Sending;
use super::worker::End;

/// The network's end of what a device plays, or of a file that is written.
pub(super) struct PlaybackEnd {
    sink: Sink,
    /// What the callback has told last.
    pub(super) played: Played,
}

/// Time before its turn at which a block must be there: the callback takes it from the ring, and this thread may wake up late.
const GUARD: Duration = Duration::from_millis(2);

/// Where blocks go.
enum Sink {
    /// To the callback of a device, which tells how it is doing.
    Device { ring: Writer<Arrived>, told: Consumer<Played> },
    /// To a file, as they are.
    File(Box<Recording>),
}

impl PlaybackEnd {
    pub(super) fn new(ring: Writer<Arrived>, told: Consumer<Played>) -> PlaybackEnd {
        PlaybackEnd { sink: Sink::Device { ring, told }, played: Played::default() }
    }

    /// The end of a file.
    pub(super) fn file(recording: Recording) -> PlaybackEnd {
        PlaybackEnd { sink: Sink::File(Box::new(recording)), played: Played::default() }
    }

    /// Whether a device plays at its own pace.
    pub(super) fn is_device(&self) -> bool {
        matches!(self.sink, Sink::Device { .. })
    }

    /// Takes a block, or a part of one; says whether there was room.
    fn write(&mut self, arrived: Arrived, samples: &[f32]) -> bool {
        match &mut self.sink {
            Sink::Device { ring, .. } => ring.write(arrived, samples),
            Sink::File(recording) => recording.take(&arrived, samples),
        }
    }

    /// When a block must be here at the latest to be played; `None` where nothing is played at a time of its own.
    fn deadline(&self, sequence: u32, block: Duration) -> Option<Time> {
        let Played { at, stats } = self.played;
        let Some((playing, played)) = stats.position else { return self.is_device().then_some(Time::MAX) };
        let blocks = (sequence.wrapping_sub(playing) as i32).max(0) as u64;
        Some(Time::ZERO + (at + block * blocks).since(Time::ZERO + played + GUARD))
    }

    /// Completes a file, when the session has ended like this.
    pub(super) fn finish(&mut self, sender: &Sending, end: &End) {
        if let Sink::File(recording) = &mut self.sink {
            recording.finish(sender, end);
        }
    }

    /// Why a file can no longer be written.
    pub(super) fn failure(&mut self) -> Option<String> {
        match &mut self.sink {
            Sink::Device { .. } => None,
            Sink::File(recording) => recording.failure(),
        }
    }

    /// Whether a file has all that was sent, and if not, why not.
    ///
    /// # Errors
    /// A sentence without its full stop.
    pub(super) fn outcome(&self) -> Result<(), String> {
        match &self.sink {
            Sink::Device { .. } => Ok(()),
            Sink::File(recording) => recording.outcome.clone(),
        }
    }

    /// Receives what the callback has told meanwhile, or what a file has counted.
    pub(super) fn hear(&mut self, sender: &Sending, reliable: bool) {
        match &mut self.sink {
            Sink::Device { told, .. } => {
                while let Ok(played) = told.pop() {
                    self.played = played;
                }
            }
            Sink::File(recording) => {
                recording.settle(sender, crate::now(), reliable);
                self.played.stats.counters = recording.counters();
            }
        }
    }
}

/// The receiving half of a session.
pub(super) struct Incoming {
    unpacker: Box<dyn Unpacker>,
    /// Channels of the stream.
    channels: u16,
    /// Duration of a block.
    block: Duration,
    /// From the capture of a block, by the sender's clock, to the arrival of its last part by ours.
    pub(super) transit: Mean,
    /// By a reflector, from handing over to arrival.
    pub(super) round_trip: Mean,
    /// From the arrival of a part until it was where the callback takes it.
    pub(super) unpackings: Delays,
    /// Blocks that found no room on their way to the device.
    pub(super) overflowed: u64,
    pub(super) span: Span,
}

/// Blocks from the first that came to the newest.
#[derive(Debug, Default)]
pub(super) struct Span {
    newest: Option<u32>,
    pub(super) blocks: u64,
}

impl Span {
    /// Blocks further apart are of a sender that has begun anew.
    const FAR: i32 = 1000;

    fn note(&mut self, sequence: u32) {
        let ahead = self.newest.map_or(1, |newest| sequence.wrapping_sub(newest) as i32);
        if (1 - Span::FAR..=0).contains(&ahead) {
            return;
        }
        self.blocks += if (1..Span::FAR).contains(&ahead) { ahead as u64 } else { 1 };
        self.newest = Some(sequence);
    }
}

impl Incoming {
    /// For packets of this stream that `unpacker` reads.
    pub(super) fn new(unpacker: Box<dyn Unpacker>, stream: &Stream) -> Incoming {
        Incoming {
            unpacker,
            channels: stream.channels,
            block: stream.block_duration(),
            transit: Mean::default(),
            round_trip: Mean::default(),
            unpackings: Delays::default(),
            overflowed: 0,
            span: Span::default(),
        }
    }

    /// What happened to packets.
    pub(super) fn counters(&self) -> UnpackCounters {
        self.unpacker.counters()
    }

    /// Takes a packet that arrived. What is wrong with it is counted.
    pub(super) fn take(
        &mut self,
        at: Time,
        packet: &[u8],
        trips: Option<&mut RoundTrips>,
        playback: Option<&mut PlaybackEnd>,
    ) {
        // Its counters know of the error.
        self.pass_on(Some(at), trips, playback, |unpacker, deliver| {
            _ = unpacker.unpack(at, packet, deliver);
        });
    }

    /// Waits no longer for missing blocks whose turn has come at `now`; returns when the next one's comes.
    pub(super) fn release(
        &mut self,
        now: Time,
        mut trips: Option<&mut RoundTrips>,
        mut playback: Option<&mut PlaybackEnd>,
    ) -> Option<Time> {
        while let Some(missing) = self.unpacker.missing() {
            let deadline = playback.as_ref().and_then(|playback| playback.deadline(missing, self.block));
            if deadline.is_some_and(|deadline| deadline > now) {
                return deadline;
            }
            self.pass_on(None, trips.as_deref_mut(), playback.as_deref_mut(), |unpacker, deliver| {
                unpacker.release(missing.wrapping_add(1), deliver);
            });
        }
        None
    }

    /// Passes on the blocks that `unpack` makes available, of a packet that arrived at `came`.
    fn pass_on(
        &mut self,
        came: Option<Time>,
        mut trips: Option<&mut RoundTrips>,
        mut playback: Option<&mut PlaybackEnd>,
        unpack: impl FnOnce(&mut dyn Unpacker, &mut dyn FnMut(Block<'_>)),
    ) {
        let Incoming { unpacker, channels, transit, round_trip, unpackings, overflowed, span, .. } = self;
        unpack(unpacker.as_mut(), &mut |block| {
            let at = block.arrived;
            if block.origin != Origin::Concealed {
                if let Some(trip) = trips
                    .as_mut()
                    .and_then(|trips| trips.arrive(block.sequence, block.first_channel, block.origin, at))
                {
                    round_trip.add(trip.as_nanos() as i64);
                }
                if block.first_channel + block.channels == *channels {
                    transit.add(at.as_nanos().wrapping_sub(block.captured.as_nanos()) as i64);
                }
            }
            // What waits for others costs no work.
            if came == Some(at) {
                unpackings.record(crate::now().since(at));
            }
            span.note(block.sequence);
            let arrived = Arrived {
                at,
                sequence: block.sequence,
                captured: block.captured,
                first_channel: block.first_channel,
                channels: block.channels,
                origin: block.origin,
            };
            if let Some(playback) = &mut playback
                && !playback.write(arrived, block.samples)
            {
                *overflowed += 1;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_what_came_and_what_is_missing_between() {
        let mut span = Span::default();
        for (sequence, blocks) in
            [(u32::MAX, 1), (0, 2), (3, 5), (2, 5), (4, 6), (5_000, 7), (5_001, 8), (7, 9), (8, 10)]
        {
            span.note(sequence);
            assert_eq!(span.blocks, blocks, "{sequence}");
        }
    }
}
