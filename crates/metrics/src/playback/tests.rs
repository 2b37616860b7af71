use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn margin(at: u64, deadline: u64) -> Option<Margin> {
    Some(Margin::between(ms(at), ms(deadline)))
}

const FIFO: PlaybackFifo = PlaybackFifo { depth: 240, fill: 0 };

#[test]
fn a_packet_is_wanted_when_its_predecessor_has_been_played() {
    let mut playback = Playback::default();
    let mut arrival = |at| playback.arrival(FIFO, ms(at), 80, false);
    assert_eq!(arrival(100), Arrived { begins: Some(ms(100)), ..Arrived::default() });
    assert_eq!(arrival(104), Arrived { margin: margin(104, 110), ..Arrived::default() });
    assert_eq!(arrival(120), Arrived { margin: margin(120, 120), ..Arrived::default() }, "just in time");
    // 5 ms of silence, and all that follows is played 5 ms later.
    let late = Arrived {
        margin: margin(135, 130),
        underflow: Some((ms(130), Duration::from_millis(5))),
        ..Arrived::default()
    };
    assert_eq!(arrival(135), late);
    assert_eq!(arrival(140), Arrived { margin: margin(140, 145), ..Arrived::default() });
}

#[test]
fn what_finds_no_room_is_lost() {
    let mut playback = Playback::default();
    let mut lost = |at| playback.arrival(FIFO, ms(at), 80, false).lost;
    assert_eq!([lost(0), lost(0), lost(0), lost(0)], [0, 0, 0, 80]);
    // 72 have been played at 9 ms, and 8 more at 10 ms.
    assert_eq!([lost(9), lost(10), lost(10)], [8, 72, 80]);
}

#[test]
fn playback_waits_until_the_fifo_is_filled() {
    let fifo = PlaybackFifo { fill: 161, ..FIFO };
    let mut playback = Playback::default();
    let mut begins = |at| playback.arrival(fifo, ms(at), 80, false).begins;
    assert_eq!([begins(0), begins(10), begins(20)], [None, None, Some(ms(20))]);
    assert_eq!(playback.empty_at(), Some(ms(50)));
}

#[test]
fn the_silence_of_a_speaker_is_no_underflow() {
    let mut playback = Playback::default();
    playback.arrival(FIFO, ms(0), 80, true);
    let first = playback.arrival(FIFO, ms(500), 80, true);
    assert_eq!(first, Arrived { begins: Some(ms(500)), ..Arrived::default() });
    // A spurt that comes while the one before is still being played has no deadline.
    let early = playback.arrival(FIFO, ms(503), 80, true);
    assert_eq!(early, Arrived { begins: Some(ms(510)), ..Arrived::default() });
}

/// The same FIFO, sample by sample.
#[derive(Default)]
struct Model {
    waiting: u32,
    /// When the sample that is being played has been played.
    done: Option<Time>,
    played: u64,
    silence: Duration,
    dry_since: Option<Time>,
}

impl Model {
    fn advance(&mut self, to: Time) {
        while let Some(done) = self.done.filter(|&done| done <= to) {
            self.waiting -= 1;
            self.played += 1;
            self.done = (self.waiting > 0).then_some(done + SAMPLE);
            self.dry_since = self.done.is_none().then_some(done);
        }
    }

    fn arrival(&mut self, fifo: PlaybackFifo, at: Time, samples: u32) -> u32 {
        self.advance(at);
        let taken = samples.min(fifo.depth - self.waiting);
        self.waiting += taken;
        let resumes = self.dry_since.take().map(|since| self.silence += at.since(since)).is_some();
        let has_begun = resumes || self.done.is_some() || self.played > 0;
        if self.done.is_none() && (has_begun || self.waiting >= fifo.fill) {
            self.done = Some(at + SAMPLE);
        }
        samples - taken
    }
}

proptest! {
    #[test]
    fn samples_in_are_samples_played_and_lost_and_waiting(
        depth in 1u32..300,
        fill in 0u32..300,
        packets in prop::collection::vec((0u64..40_000, 1u32..120), 1..200),
    ) {
        let fifo = PlaybackFifo { depth, fill: fill.min(depth) };
        let (mut playback, mut model) = (Playback::default(), Model::default());
        let (mut at, mut came, mut lost, mut silence) = (Time::ZERO, 0, 0, Duration::ZERO);
        for (pause, samples) in packets {
            at += Duration::from_micros(pause);
            let arrived = playback.arrival(fifo, at, samples, false);
            prop_assert_eq!(arrived.lost, model.arrival(fifo, at, samples));
            came += u64::from(samples);
            lost += u64::from(arrived.lost);
            if let Some((since, length)) = arrived.underflow {
                prop_assert_eq!(since + length, at);
                silence += length;
            }
            let is_late = arrived.margin.is_some_and(|margin| margin.is_missed());
            prop_assert_eq!(is_late, arrived.underflow.is_some());
            prop_assert!(playback.waiting(at) <= depth);
            prop_assert_eq!((playback.waiting(at), silence), (model.waiting, model.silence));
            prop_assert_eq!(came, model.played + lost + u64::from(playback.waiting(at)));
        }
    }
}
