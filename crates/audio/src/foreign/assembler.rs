//! Blocks of one length out of pieces of any.

/// Puts pieces of interleaved samples, each with its place in the stream, together to blocks.
///
/// A block is handed out when it is complete; one of which a piece is lost is not, and is concealed whole at its turn. A
/// place far from the others is only believed if the next piece continues it (RFC 3550 section A.1): a sender may start
/// again, and a forged packet stops nobody.
#[derive(Clone, Debug)]
pub(super) struct Assembler {
    channels: usize,
    block_frames: usize,
    /// The blocks at work, at the place that their number gives them.
    samples: Vec<f32>,
    slots: [Slot; WINDOW],
    /// The newest block of which something has come.
    newest: Option<i64>,
    /// Where the next piece must begin for a new place to be believed.
    probation: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    block: i64,
    filled: usize,
}

impl Assembler {
    pub(super) fn new(channels: usize, block_frames: usize) -> Assembler {
        Assembler {
            channels,
            block_frames,
            samples: vec![0.0; WINDOW * block_frames * channels],
            slots: [EMPTY; WINDOW],
            newest: None,
            probation: None,
        }
    }

    /// Takes whole frames that begin at frame `position` of the stream, and hands every block that is complete with them
    /// to `deliver`, with its number.
    pub(super) fn put(&mut self, position: i64, piece: &[f32], deliver: &mut dyn FnMut(u32, &[f32])) {
        let frames = (piece.len() / self.channels) as i64;
        if !self.is_near(position) {
            if self.probation.replace(position + frames) != Some(position) {
                return;
            }
            self.restart();
        }
        self.probation = None;
        let (mut position, mut rest) = (position, piece);
        while rest.len() >= self.channels {
            let block = position.div_euclid(self.block_frames as i64);
            let at = position.rem_euclid(self.block_frames as i64) as usize;
            let count = (self.block_frames - at).min(rest.len() / self.channels);
            let (samples, behind) = rest.split_at(count * self.channels);
            self.newest = Some(self.newest.map_or(block, |newest| newest.max(block)));
            if count == self.block_frames {
                deliver(block as u32, samples);
            } else if let Some(whole) = self.fill(block, at, samples) {
                deliver(block as u32, whole);
            }
            position += count as i64;
            rest = behind;
        }
    }

    /// Forgets what is at work: the next piece may be anywhere.
    pub(super) fn restart(&mut self) {
        self.slots = [EMPTY; WINDOW];
        self.newest = None;
    }

    /// The first frame of a block that is far behind all that have come.
    pub(super) fn far_ahead(&self) -> i64 {
        self.newest.map_or(0, |newest| newest + FAR) * self.block_frames as i64
    }

    fn is_near(&self, position: i64) -> bool {
        let block = position.div_euclid(self.block_frames as i64);
        self.newest.is_none_or(|newest| (newest - MISORDER..newest + FAR).contains(&block))
    }

    /// Writes a part of a block, and gives the block if that was the last.
    fn fill(&mut self, block: i64, at: usize, samples: &[f32]) -> Option<&[f32]> {
        let place = block.rem_euclid(WINDOW as i64) as usize;
        let slot = &mut self.slots[place];
        if slot.block > block {
            return None;
        }
        let length = self.block_frames * self.channels;
        let whole = &mut self.samples[place * length..][..length];
        if slot.block < block {
            *slot = Slot { block, filled: 0 };
            whole.fill(0.0);
        }
        let was_complete = slot.filled >= self.block_frames;
        whole[at * self.channels..][..samples.len()].copy_from_slice(samples);
        slot.filled += samples.len() / self.channels;
        (!was_complete && slot.filled >= self.block_frames).then_some(whole)
    }
}

/// Blocks at work at once.
pub(super) const WINDOW: usize = 8;
const EMPTY: Slot = Slot { block: i64::MIN, filled: 0 };

/// Blocks behind the newest, and before it, that are of the same stream (RFC 3550 section A.1: `MAX_MISORDER` and
/// `MAX_DROPOUT`).
const MISORDER: i64 = 100;
const FAR: i64 = 3000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frame `n` of two channels is (n, -n).
    fn frames(from: i64, count: usize) -> Vec<f32> {
        (from..from + count as i64).flat_map(|n| [n as f32, -n as f32]).collect()
    }

    fn put(assembler: &mut Assembler, position: i64, count: usize) -> Vec<u32> {
        let mut blocks = Vec::new();
        let block_frames = assembler.block_frames;
        assembler.put(position, &frames(position, count), &mut |block, samples| {
            assert_eq!(samples, frames(i64::from(block as i32) * block_frames as i64, block_frames));
            blocks.push(block);
        });
        blocks
    }

    #[test]
    fn a_block_comes_with_its_last_piece() {
        let mut assembler = Assembler::new(2, 48);
        assert_eq!(put(&mut assembler, -48, 60), [u32::MAX]);
        assert_eq!(put(&mut assembler, 24, 48), [] as [u32; 0]);
        assert_eq!(put(&mut assembler, 12, 12), [0]);
        assert_eq!(put(&mut assembler, 12, 12), [] as [u32; 0], "again");
        assert_eq!(put(&mut assembler, 72, 72), [1, 2]);
    }

    #[test]
    fn a_new_place_is_believed_once_it_is_continued() {
        let mut assembler = Assembler::new(2, 10);
        assert_eq!(put(&mut assembler, 0, 10), [0]);
        let far = 10 * (FAR + 5);
        assert_eq!(put(&mut assembler, far, 10), [] as [u32; 0]);
        assert_eq!(put(&mut assembler, 10, 10), [1], "the forged one stopped nobody");
        assert_eq!(put(&mut assembler, far, 10), [] as [u32; 0]);
        assert_eq!(put(&mut assembler, far + 10, 10), [FAR as u32 + 6]);
        assert_eq!(put(&mut assembler, far, 5), [] as [u32; 0]);
        assert_eq!(put(&mut assembler, far + 5, 5), [FAR as u32 + 5]);
    }

    proptest! {
        /// Pieces of any lengths, swapped with their neighbours: every block comes once.
        #[test]
        fn pieces_of_any_length_make_all_blocks(
            lengths in prop::collection::vec(1..40usize, 2..60),
            swaps in prop::collection::vec(any::<bool>(), 60),
            block_frames in 1..50usize,
            start in -100..100i64,
        ) {
            let mut end = start;
            let mut pieces: Vec<_> = lengths.iter().map(|&length| {
                end += length as i64;
                (end - length as i64, length)
            }).collect();
            for n in (0..pieces.len() - 1).step_by(2) {
                if swaps[n] {
                    pieces.swap(n, n + 1);
                }
            }
            // Two pieces are within the window.
            prop_assume!(block_frames * (WINDOW - 1) > 80);
            let mut assembler = Assembler::new(2, block_frames);
            let mut blocks: Vec<i64> = pieces
                .into_iter()
                .flat_map(|(position, length)| put(&mut assembler, position, length))
                .map(|block| i64::from(block as i32))
                .collect();
            blocks.sort_unstable();
            let length = block_frames as i64;
            let whole: Vec<i64> =
                (start.div_euclid(length)..=end.div_euclid(length))
                    .filter(|block| block * length >= start && (block + 1) * length <= end)
                    .collect();
            prop_assert_eq!(blocks, whole);
        }
    }
}
