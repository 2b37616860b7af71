//! Options of the TCP header: maximum segment size (RFC 9293 section 3.2), window scale and time stamps (RFC 7323),
//! selective acknowledgements (RFC 2018).

/// Kinds of options (IANA).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// The beginning of a header's options if it has time stamps and they are padded as RFC 7323 appendix A recommends.
const ALIGNED_TIMESTAMPS: [u8; 4] = [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10];

/// The largest shift of a window (RFC 7323 section 2.3).
pub(crate) const MAX_WINDOW_SCALE: u8 = 14;

/// The options of a segment that this implementation knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The largest segment that the sender takes, in a SYN.
    pub(crate) mss: Option<u16>,
    /// The shift of the sender's window, in a SYN.
    pub(crate) window_scale: Option<u8>,
    /// Whether the sender takes selective acknowledgements, in a SYN.
    pub(crate) sack_permitted: bool,
    /// The sender's clock, and the echo of the receiver's.
    pub(crate) timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub(crate) sacks: SackBlocks,
}

/// A block of a selective acknowledgement: its first sequence number, and the one after its last.
pub(crate) type SackBlock = (u32, u32);

/// Up to four blocks: more do not fit into a header (RFC 2018 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block, unless there are four already.
    pub(crate) fn push(&mut self, block: SackBlock) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.count)) {
            *free = block;
            self.count += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl Options {
    /// Bytes of the option area that time stamps take, with their padding.
    pub(crate) const TIMESTAMPS_LENGTH: usize = 12;

    /// Bytes of the option area that this many blocks take, with their padding.
    pub(crate) const fn sacks_length(blocks: usize) -> usize {
        if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }

    /// Writes the options into an area that has room for [`MAX_OPTIONS`](super::MAX_OPTIONS) bytes, padded to whole words.
    /// Returns their length. The order is Linux's: with it all options of a SYN fit into 20 bytes.
    pub(crate) fn write(&self, area: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            area[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            put(&[MAXIMUM_SEGMENT_SIZE, 4, high, low]);
        }
        match (self.sack_permitted, self.timestamps) {
            (true, Some(_)) => put(&[SACK_PERMITTED, 2, TIMESTAMPS, 10]),
            (false, Some(_)) => put(&ALIGNED_TIMESTAMPS),
            (true, None) => put(&[NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]),
            (false, None) => {}
        }
        if let Some((value, echo)) = self.timestamps {
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            put(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        let blocks = self.sacks.as_slice();
        if !blocks.is_empty() {
            put(&[NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks.len() as u8]);
            for (first, after) in blocks {
                put(&first.to_be_bytes());
                put(&after.to_be_bytes());
            }
        }
        at
    }

    /// Reads an option area. Unknown options are skipped. What follows an option with an impossible length is not read
    /// (RFC 9293 section 3.1, MUST-7).
    pub(crate) fn read(area: &[u8]) -> Options {
        if let Some((&[a, b, c, d, value @ .., e0, e1, e2, e3], [])) = area.split_first_chunk::<12>()
            && [a, b, c, d] == ALIGNED_TIMESTAMPS
        {
            let timestamps = Some((u32::from_be_bytes(value), u32::from_be_bytes([e0, e1, e2, e3])));
            return Options { timestamps, ..Options::default() };
        }
        let mut options = Options::default();
        let mut rest = area;
        while let Some((option, after)) = next_option(rest) {
            options.take(option);
            rest = after;
        }
        options
    }

    /// Takes one option: its kind, its length and its value. One with a length that its kind cannot have is ignored.
    fn take(&mut self, option: &[u8]) {
        match *option {
            [MAXIMUM_SEGMENT_SIZE, 4, high, low] => self.mss = Some(u16::from_be_bytes([high, low])),
            [WINDOW_SCALE, 3, shift] => self.window_scale = Some(shift),
            [SACK_PERMITTED, 2] => self.sack_permitted = true,
            [TIMESTAMPS, 10, a, b, c, d, e, f, g, h] => {
                self.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            [SACK, _, ref blocks @ ..] if blocks.len().is_multiple_of(8) => {
                for &[a, b, c, d, e, f, g, h] in blocks.as_chunks::<8>().0 {
                    self.sacks.push((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                }
            }
            _ => {}
        }
    }
}

/// The next option of an area, without padding before it, and what follows it.
fn next_option(mut area: &[u8]) -> Option<(&[u8], &[u8])> {
    while let [NO_OPERATION, rest @ ..] = area {
        area = rest;
    }
    match *area {
        [] | [END, ..] => None,
        [_, length, ..] if length >= 2 => area.split_at_checked(usize::from(length)),
        _ => None,
    }
}
