//! The line: which chunks share a frame, and when each is through.

use trunkline_core::{Bytes, Duration, FlowId, Rate, Time};

use crate::serial::serialiser::Serialiser;

/// The output state machine and the line behind it.
#[derive(Debug)]
pub(super) struct Frames {
    line: Serialiser,
    overhead: u64,
    most: u64,
    join: bool,
    /// The channel of the last frame and the data in it; it can grow only while the line has not been free since.
    last: Option<(FlowId, u64)>,
}

impl Frames {
    /// An idle line of this rate, synchronisation included.
    pub(super) fn new(rate: Rate, overhead: Bytes, most: Bytes, join: bool) -> Frames {
        let data = u128::from(rate.bits_per_second()) * 192 / 193;
        Frames {
            line: Serialiser::new(Rate::from_bits_per_second(u64::try_from(data).unwrap_or(u64::MAX))),
            overhead: overhead.count(),
            most: most.count().max(1),
            join,
            last: None,
        }
    }

    /// Transmits a chunk from `now` on, when the line is free: when its last bit is through, how long that takes, and how
    /// many bytes it was on the line, with those of the frames that it began.
    pub(super) fn transmit(&mut self, now: Time, channel: FlowId, size: u64) -> (Time, Duration, Bytes) {
        let grows = self.join && now == self.line.free();
        let used = match self.last {
            Some((last, used)) if grows && last == channel => used,
            _ => self.most, // a full frame takes nothing more
        };
        let rest = size.saturating_sub(self.most - used);
        let begun = rest.div_ceil(self.most);
        let used = if begun == 0 { used + size } else { rest - (begun - 1) * self.most };
        self.last = Some((channel, used));
        let on_line = Bytes(size + begun * self.overhead);
        let (end, busy) = self.line.transmit(now, on_line);
        (end, busy, on_line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(join: bool) -> Frames {
        Frames::new(Rate::from_bits_per_second(1_544_000), Bytes(8), Bytes(256), join)
    }

    /// Bytes on the line of a chunk that follows without a pause.
    fn next(line: &mut Frames, channel: u32, size: u64) -> u64 {
        line.transmit(line.line.free(), FlowId(channel), size).2.count()
    }

    #[test]
    fn a_channel_that_follows_itself_fills_frames() {
        let mut line = line(true);
        let sizes = [64u64, 64, 64, 64, 6, 64];
        let on_line: Vec<u64> = sizes.iter().map(|&size| next(&mut line, 1, size)).collect();
        assert_eq!(on_line, [72, 64, 64, 64, 14, 64]);
        assert_eq!(next(&mut line, 1, 256), 264, "186 in the frame, 70 in the next");
    }

    #[test]
    fn another_channel_a_pause_or_a_board_that_does_not_join_begin_a_frame() {
        let mut joins = line(true);
        joins.transmit(Time::ZERO, FlowId(1), 64);
        assert_eq!(next(&mut joins, 2, 64), 72);
        let later = joins.line.free() + Duration::from_nanos(1);
        assert_eq!(joins.transmit(later, FlowId(2), 64).2, Bytes(72));
        let mut apart = line(false);
        apart.transmit(Time::ZERO, FlowId(1), 64);
        assert_eq!(next(&mut apart, 1, 64), 72);
    }

    #[test]
    fn the_line_carries_192_000_bytes_per_second() {
        let mut line = line(false);
        for _ in 0..750 {
            next(&mut line, 1, 248);
        }
        assert_eq!(line.line.free(), Time::from_nanos(1_000_000_000));
    }
}
