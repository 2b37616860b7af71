//! Round trips of what a reflector sends back.

use trunkline_audio::pipeline::Stream;
use trunkline_audio::playout::Origin;
use trunkline_core::{Duration, Time};
use trunkline_metrics::Delays;

/// So many blocks may be on their way: ten seconds of the shortest.
const ON_THEIR_WAY: usize = 1 << 14;

/// When each block was handed over, and the round trips of its parts: from handing over the block's first packet to the
/// arrival of the part, whole and undamaged.
pub(super) struct RoundTrips {
    blocks: Vec<Handed>,
    newest: Option<u32>,
    pub(super) delays: Delays,
    /// Parts of blocks that were handed over.
    pub(super) sent: u64,
    /// Of these, those that came back.
    pub(super) returned: u64,
    /// Parts that came back a second time.
    pub(super) duplicate: u64,
    /// Parts that came back after one of a later block (RFC 4737, section 3), not by redundancy in that.
    pub(super) reordered: u64,
}

#[derive(Clone, Copy)]
struct Handed {
    sequence: u32,
    at: Time,
    /// Parts that have not come back.
    out: usize,
    /// The first channels of those that have, as bits.
    came: [u64; Stream::MOST_CHANNELS as usize / 64],
}

impl RoundTrips {
    /// Nothing was sent yet.
    pub(super) fn new() -> RoundTrips {
        RoundTrips {
            blocks: vec![
                Handed { sequence: 0, at: Time::ZERO, out: 0, came: Default::default() };
                ON_THEIR_WAY
            ],
            newest: None,
            delays: Delays::default(),
            sent: 0,
            returned: 0,
            duplicate: 0,
            reordered: 0,
        }
    }

    /// Notes the sending of a block in this number of parts.
    pub(super) fn hand(&mut self, sequence: u32, parts: usize, at: Time) {
        self.sent += parts as u64;
        let handed = Handed { sequence, at, out: parts, came: Default::default() };
        self.blocks[sequence as usize % ON_THEIR_WAY] = handed;
    }

    /// The part of a block that begins with this channel has come back; its round trip, if it is the first copy of one that was
    /// on its way.
    pub(super) fn arrive(
        &mut self,
        sequence: u32,
        first_channel: u16,
        origin: Origin,
        at: Time,
    ) -> Option<Duration> {
        let block = &mut self.blocks[sequence as usize % ON_THEIR_WAY];
        if block.sequence != sequence {
            return None;
        }
        let bit = 1 << (first_channel % 64);
        let came = block.came.get_mut(usize::from(first_channel / 64)).filter(|came| **came & bit == 0);
        let (Some(came), Some(out)) = (came, block.out.checked_sub(1)) else {
            self.duplicate += 1;
            return None;
        };
        *came |= bit;
        block.out = out;
        self.returned += 1;
        match self.newest {
            Some(newest) if (sequence.wrapping_sub(newest) as i32) < 0 => {
                self.reordered += u64::from(origin == Origin::Sent);
            }
            _ => self.newest = Some(sequence),
        }
        let delay = at.since(block.at);
        self.delays.record(delay);
        Some(delay)
    }

    /// Parts that have not come back.
    pub(super) fn out(&self) -> u64 {
        self.sent - self.returned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }

    #[test]
    fn each_part_counts_once() {
        let mut trips = RoundTrips::new();
        for block in 0..3u32 {
            trips.hand(u32::MAX.wrapping_add(block), 2, ms(10 * u64::from(block)));
        }
        assert_eq!(trips.out(), 6);
        assert_eq!(trips.arrive(u32::MAX, 0, Origin::Sent, ms(3)), Some(Duration::from_millis(3)));
        assert_eq!(trips.arrive(1, 0, Origin::Sent, ms(24)), Some(Duration::from_millis(4)));
        assert_eq!(
            trips.arrive(u32::MAX, 3, Origin::Sent, ms(25)),
            Some(Duration::from_millis(25)),
            "its other part"
        );
        assert_eq!(trips.arrive(u32::MAX, 3, Origin::Sent, ms(26)), None, "again");
        assert_eq!((trips.returned, trips.out()), (3, 3));
        assert_eq!((trips.duplicate, trips.reordered), (1, 1));
        assert_eq!(trips.delays.count(), 3);
    }

    #[test]
    fn what_redundancy_brings_back_was_not_overtaken() {
        let mut trips = RoundTrips::new();
        (0..3).for_each(|block| trips.hand(block, 1, ms(0)));
        for (block, origin) in [(2, Origin::Sent), (0, Origin::Recovered), (1, Origin::Sent)] {
            trips.arrive(block, 0, origin, ms(5));
        }
        assert_eq!((trips.returned, trips.reordered), (3, 1));
    }

    #[test]
    fn a_part_that_a_path_repeats_is_no_other_part() {
        let mut trips = RoundTrips::new();
        trips.hand(1, 2, ms(0));
        // Of nine channels eight and one.
        let mut arrive = |first_channel| trips.arrive(1, first_channel, Origin::Sent, ms(5)).is_some();
        assert_eq!([arrive(8), arrive(8), arrive(0), arrive(0)], [true, false, true, false]);
        assert_eq!((trips.out(), trips.duplicate), (0, 2));
        // A wrong reflector may name any channel.
        let mut arrive = |first_channel| trips.arrive(1, first_channel, Origin::Sent, ms(5)).is_some();
        assert_eq!([arrive(3), arrive(u16::MAX)], [false, false]);
    }

    #[test]
    fn what_was_never_sent_is_no_round_trip() {
        let mut trips = RoundTrips::new();
        assert_eq!(trips.arrive(7, 0, Origin::Sent, ms(1)), None);
        trips.hand(7, 1, ms(2));
        assert_eq!(trips.arrive(7 + ON_THEIR_WAY as u32, 0, Origin::Sent, ms(3)), None);
        assert_eq!(trips.returned, 0);
    }
}
