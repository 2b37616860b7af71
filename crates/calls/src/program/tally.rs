//! The figures of a session out of what its parts have counted.

use trunkline_audio::pipeline::{Stages, UnpackCounters};
use trunkline_core::Duration;

use super::figures::{Counts, Figures, Mean, RoundTrip};
use super::incoming::{Incoming, PlaybackEnd};
use super::outgoing::duration_of;
use super::words::Playing;
use super::worker::{Aim, Worker};

impl Worker<'_> {
    /// How it is doing lately, or how it went on the whole. The round trips' distribution is only for the end.
    pub(super) fn figures(&mut self, lately: bool) -> Figures {
        let mut figures = Figures {
            elapsed: crate::now().since(self.began),
            returns: self.aim == Aim::Echo,
            ..Figures::default()
        };
        self.count(&mut figures.counts);
        figures.reported = self.session.line().peer_report();
        if !lately {
            let packings = self.outgoing.as_mut().and_then(|outgoing| outgoing.packings.summary());
            let unpackings = self.incoming.as_mut().and_then(|incoming| incoming.unpackings.summary());
            figures.added = [packings, unpackings];
        }
        match self.aim {
            Aim::Echo => {
                self.capturing(&mut figures.stages, lately);
                self.returning(&mut figures, lately);
                self.playing(&mut figures);
                let sent = self.outgoing.as_ref().map(|outgoing| outgoing.blocks * self.parts);
                let beyond = self.turns().saturating_sub(sent.unwrap_or(u64::MAX));
                figures.counts.concealed = figures.counts.concealed.saturating_sub(beyond);
            }
            Aim::Send => {
                self.capturing(&mut figures.stages, lately);
                if let Some(player) = self.player {
                    far_player(&player, &mut figures);
                }
                if let Some(outgoing) = self.outgoing.as_ref().filter(|_| self.all_sent) {
                    within(&mut figures.counts, outgoing.blocks * self.parts);
                }
            }
            Aim::Play => {
                let sender = self.sender;
                let Stages { capture, block, packet, .. } = &mut figures.stages;
                (*capture, *block, *packet) = (sender.capture, sender.block, sender.packet);
                figures.resampled = sender.resampled;
                figures.narrowed = sender.narrowed;
                figures.left_out = self.played().map_or(Duration::ZERO, |played| played.stats.left_out);
                self.playing(&mut figures);
                self.crossing(&mut figures, lately);
                self.became(&mut figures.counts, sender.blocks.or(self.span()));
            }
            Aim::Talk => {
                self.capturing(&mut figures.stages, lately);
                self.playing(&mut figures);
                self.became(&mut figures.counts, self.span());
            }
        }
        figures
    }

    /// How many parts of blocks another program has sent, as far as it can be known: it does not tell.
    fn span(&self) -> Option<u64> {
        let incoming = self.incoming.as_ref().filter(|_| !self.session.is_answered())?;
        Some(incoming.span.blocks * self.parts)
    }

    /// What became of the parts of blocks whose turn has come; the sender may have told how many it has sent.
    fn became(&self, counts: &mut Counts, sent: Option<u64>) {
        let counters = self.played().map(|played| played.stats.counters).unwrap_or_default();
        let turns = self.turns();
        // Turns after the last block are those of nothing.
        let beyond = turns.saturating_sub(sent.unwrap_or(u64::MAX));
        counts.expected = turns - beyond;
        let unpacked = self.unpacked();
        counts.lost = counters.lost().saturating_sub(unpacked.late + beyond);
        counts.concealed = counts.concealed.saturating_sub(beyond);
        counts.reordered = counters.reordered + unpacked.reordered;
        counts.duplicate = counters.duplicate + unpacked.duplicate;
    }

    /// How many parts of blocks have had their turn, whether they were there or not.
    fn turns(&self) -> u64 {
        self.played().map_or(0, |played| played.stats.counters.turns())
    }

    /// Counters of the pipeline at this end.
    fn unpacked(&self) -> UnpackCounters {
        self.incoming.as_ref().map(Incoming::counters).unwrap_or_default()
    }

    /// What line and pipeline have counted at this end.
    fn count(&self, counts: &mut Counts) {
        let line = self.session.line().counters();
        counts.sent = line.sent;
        counts.received = line.received;
        counts.timed_out = line.timed_out;
        counts.refused = line.refused;
        counts.strange = line.strays;
        if let Some(incoming) = &self.incoming {
            let unpacked = incoming.counters();
            counts.strange += unpacked.damaged + unpacked.other;
            counts.recovered = unpacked.recovered;
            counts.overflowed = incoming.overflowed;
        }
    }

    /// The stages before the network.
    fn capturing(&mut self, stages: &mut Stages, lately: bool) {
        let capture = self.ends.as_ref().and_then(|ends| ends.capture.as_ref());
        let Some((outgoing, capture)) = self.outgoing.as_mut().zip(capture) else { return };
        stages.capture = capture.device_block();
        // What the device's own block takes is told apart.
        stages.block = mean(&mut outgoing.block, lately).saturating_sub(stages.capture);
        stages.packet = mean(&mut outgoing.packing, lately);
    }

    /// There and back.
    fn returning(&mut self, figures: &mut Figures, lately: bool) {
        let unpacked = self.unpacked();
        let Some((outgoing, incoming)) = self.outgoing.as_mut().zip(self.incoming.as_mut()) else { return };
        let trips = &mut outgoing.trips;
        figures.stages.network = (trips.returned > 0).then(|| mean(&mut incoming.round_trip, lately));
        figures.counts.expected = trips.sent;
        figures.counts.lost = trips.out().saturating_sub(unpacked.late);
        figures.counts.reordered = trips.reordered + unpacked.reordered;
        figures.counts.duplicate = trips.duplicate + unpacked.duplicate;
        if !lately {
            let delays = trips.delays.summary();
            figures.round_trip =
                delays.map(|delays| RoundTrip { delays, jitter: trips.delays.mean_absolute_deviation() });
        }
    }

    /// From the sender to here: what is left of the time from capture to arrival when the sender's stages are taken off and
    /// its clock is known.
    fn crossing(&mut self, figures: &mut Figures, lately: bool) {
        let Some((incoming, (offset, bound))) = self.incoming.as_mut().zip(self.sender.offset) else {
            return;
        };
        // The sender's stages are then those of the whole session.
        let lately = lately && self.sender.blocks.is_none();
        let transit = if lately { incoming.transit.lately() } else { incoming.transit.whole() };
        let Stages { capture, block, packet, .. } = figures.stages;
        let before = (capture + block + packet).as_nanos() as i64;
        figures.stages.network =
            transit.map(|transit| nanos(transit.saturating_sub(offset).saturating_sub(before)));
        figures.network_bound = Some(bound);
    }

    /// The stages behind the network.
    fn playing(&self, figures: &mut Figures) {
        let (Some(ends), Some(played)) = (self.ends.as_ref(), self.played()) else { return };
        if ends.playback.as_ref().is_some_and(PlaybackEnd::is_device) {
            figures.stages.playout = played.stats.playout;
            figures.stages.resampling = played.stats.resampling;
            figures.stages.playback = duration_of(ends.format.block_frames.into(), ends.format.sample_rate);
        }
        figures.drift_ppm = played.stats.drift_ppm;
        figures.counts.late = played.stats.counters.late + self.unpacked().late;
        figures.counts.concealed = played.stats.counters.concealed();
    }

    fn played(&self) -> Option<super::halves::Played> {
        self.ends.as_ref()?.playback.as_ref().map(|playback| playback.played)
    }
}

/// Takes off the turns beyond the last part that was sent, of a player that did not know yet which that was.
fn within(counts: &mut Counts, sent: u64) {
    let beyond = counts.expected.saturating_sub(sent);
    counts.expected -= beyond;
    counts.lost = counts.lost.saturating_sub(beyond);
    counts.concealed = counts.concealed.saturating_sub(beyond);
}

/// What the other end says of its playing.
fn far_player(player: &Playing, figures: &mut Figures) {
    let stages = &mut figures.stages;
    (stages.playout, stages.resampling, stages.playback) =
        (player.playout, player.resampling, player.playback);
    (stages.network, figures.network_bound) = player.network.unzip();
    figures.drift_ppm = player.drift_ppm;
    let counts = &mut figures.counts;
    counts.received = player.received;
    counts.expected = player.expected;
    counts.lost = player.lost;
    counts.late = player.late;
    counts.concealed = player.concealed;
    counts.recovered = player.recovered;
    counts.reordered = player.reordered;
    counts.duplicate = player.duplicate;
}

fn mean(mean: &mut Mean, lately: bool) -> Duration {
    nanos(if lately { mean.lately() } else { mean.whole() }.unwrap_or_default())
}

/// Clocks that are known only so well may show less than nothing.
fn nanos(nanos: i64) -> Duration {
    Duration::from_nanos(nanos.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report of a player that ran dry before it learned how much was sent.
    #[test]
    fn nothing_is_lost_of_more_than_was_sent() {
        let mut counts = Counts { expected: 4516, lost: 1020, concealed: 1069, ..Counts::default() };
        within(&mut counts, 4468);
        assert_eq!((counts.expected, counts.lost, counts.concealed), (4468, 972, 1021));
        within(&mut counts, 4468);
        assert_eq!((counts.expected, counts.lost, counts.concealed), (4468, 972, 1021));
    }
}
