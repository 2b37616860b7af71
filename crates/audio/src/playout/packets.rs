//! Packets that wait, at the place that their sequence number and their channels give them.

use core::ops::Range;

use super::{Origin, Packet};

/// A ring of blocks in parts, taken once. A packet's key is its extended sequence number and its part.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    samples: Vec<f32>,
    /// Per place and part: the number of the packet there, and whether it was made.
    held: Vec<Option<(i64, bool)>>,
    /// Where the parts are within a block.
    parts: Vec<Range<usize>>,
    block: usize,
    len: u64,
}

impl Packets {
    /// `capacity` blocks of these parts, one behind the other.
    pub(super) fn new(capacity: usize, parts: Vec<Range<usize>>) -> Packets {
        let block = parts.last().map_or(0, |part| part.end);
        let held = vec![None; capacity * parts.len()];
        Packets { samples: vec![0.0; capacity * block], held, parts, block, len: 0 }
    }

    /// Blocks that there is room for.
    pub(super) fn capacity(&self) -> i64 {
        (self.held.len() / self.parts.len()) as i64
    }

    /// Packets that are held.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether all parts of a block are there.
    pub(super) fn is_whole(&self, number: i64) -> bool {
        (0..self.parts.len()).all(|part| self.made((number, part)).is_some())
    }

    /// Stores a part of what came in `packet`, whose channels begin so many channels before those of the part. All
    /// blocks that are held lie within one capacity of each other, so that its place is free.
    pub(super) fn put(&mut self, key: (i64, usize), packet: &Packet<'_>, skipped: usize) {
        let (place, at) = (self.place(key), self.samples_of(key));
        self.len += u64::from(self.held[place].is_none());
        self.held[place] = Some((key.0, packet.origin == Origin::Concealed));
        let (width, samples) = (packet.channels.len(), &mut self.samples[at]);
        if samples.len() == packet.samples.len() {
            samples.copy_from_slice(packet.samples);
            return;
        }
        let part_width = samples.len() * width / packet.samples.len();
        for (frame, from) in samples.chunks_exact_mut(part_width).zip(packet.samples.chunks_exact(width)) {
            frame.copy_from_slice(&from[skipped..skipped + part_width]);
        }
    }

    /// Moves a packet to its part of a block, if it is there, and says whether it was made.
    pub(super) fn take(&mut self, key: (i64, usize), into: &mut [f32]) -> Option<bool> {
        let made = self.made(key)?;
        let place = self.place(key);
        self.held[place] = None;
        self.len -= 1;
        into[self.parts[key.1].clone()].copy_from_slice(&self.samples[self.samples_of(key)]);
        Some(made)
    }

    /// Throws all away and says how many.
    pub(super) fn clear(&mut self) -> u64 {
        self.held.fill(None);
        core::mem::take(&mut self.len)
    }

    /// Whether a packet was made; `None` if it is not there.
    fn made(&self, key: (i64, usize)) -> Option<bool> {
        self.held[self.place(key)].filter(|&(number, _)| number == key.0).map(|(_, made)| made)
    }

    fn row(&self, number: i64) -> usize {
        number.rem_euclid(self.capacity()) as usize
    }

    fn place(&self, (number, part): (i64, usize)) -> usize {
        self.row(number) * self.parts.len() + part
    }

    fn samples_of(&self, (number, part): (i64, usize)) -> Range<usize> {
        let (start, part) = (self.row(number) * self.block, &self.parts[part]);
        start + part.start..start + part.end
    }
}
