//! A group of packets that a decoder completes.

use super::{LENGTH_FIELD, fill_shard};
use crate::fec::PacketError;

/// What a packet is in its group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Data(usize),
    Parity(usize),
}

/// The shards of one group that came, with room for all of them.
pub(super) struct Group {
    /// Number of its first payload; `None` before its first packet.
    first: Option<u32>,
    data: usize,
    /// Bytes between one shard and the next.
    room: usize,
    /// The data shards, then those of parity.
    shards: Vec<u8>,
    present: Vec<bool>,
    data_present: usize,
    parity_present: usize,
    /// The longest payload that came.
    longest: usize,
    /// The length of all shards, once a packet of parity has said it.
    parity_length: Option<usize>,
    /// Nothing is missing any more, or what came cannot complete it.
    done: bool,
}

impl Group {
    pub(super) fn new(data: usize, parity: usize, room: usize) -> Group {
        Group {
            first: None,
            data,
            room,
            shards: vec![0; (data + parity) * room],
            present: vec![false; data + parity],
            data_present: 0,
            parity_present: 0,
            longest: 0,
            parity_length: None,
            done: false,
        }
    }

    pub(super) fn begin(&mut self, first: u32) {
        self.first = Some(first);
        self.present.fill(false);
        (self.data_present, self.parity_present, self.longest) = (0, 0, 0);
        self.parity_length = None;
        self.done = false;
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.first
    }

    /// Keeps a packet's body; says whether it is new.
    pub(super) fn put(&mut self, part: Part, body: &[u8]) -> Result<bool, PacketError> {
        let at = match part {
            Part::Data(index) => index,
            Part::Parity(index) => self.data + index,
        };
        if self.done || self.present[at] {
            return Ok(false);
        }
        let (longest, parity_length) = match part {
            Part::Data(_) => (self.longest.max(body.len()), self.parity_length),
            Part::Parity(_) => (self.longest, Some(body.len())),
        };
        let too_short = parity_length.is_some_and(|length| length < LENGTH_FIELD + longest);
        if too_short || (self.parity_length.is_some() && self.parity_length != parity_length) {
            return Err(PacketError::Contradiction);
        }
        (self.longest, self.parity_length) = (longest, parity_length);
        let shard = &mut self.shards[at * self.room..][..self.room];
        match part {
            Part::Data(_) => {
                fill_shard(shard, body);
                self.data_present += 1;
            }
            Part::Parity(_) => {
                shard[..body.len()].copy_from_slice(body);
                self.parity_present += 1;
            }
        }
        self.present[at] = true;
        self.done = self.data_present == self.data;
        Ok(true)
    }

    pub(super) fn can_be_completed(&self) -> bool {
        !self.done && self.data_present + self.parity_present >= self.data
    }

    /// It is being completed: nothing more is wanted.
    pub(super) fn complete(&mut self) {
        self.done = true;
    }

    /// Whether this data shard came.
    pub(super) fn has(&self, index: usize) -> bool {
        self.present[index]
    }

    pub(super) fn parity_length(&self) -> usize {
        self.parity_length.unwrap_or(self.room)
    }

    /// The data shards that came, as long as those of parity.
    pub(super) fn data_shards(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.shards_of(0..self.data)
    }

    /// The parity shards that came.
    pub(super) fn parity_shards(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.shards_of(self.data..self.present.len()).map(|(at, shard)| (at - self.data, shard))
    }

    /// The sum without carry of all shards that came: the one that is missing.
    pub(super) fn sum(&self, into: &mut [u8]) {
        into.fill(0);
        for (_, shard) in self.shards_of(0..self.present.len()) {
            add_without_carry(into, shard);
        }
    }

    fn shards_of(&self, places: core::ops::Range<usize>) -> impl Iterator<Item = (usize, &[u8])> {
        let shard = |at: usize| (at, &self.shards[at * self.room..][..self.parity_length()]);
        places.filter(|&at| self.present[at]).map(shard)
    }
}

/// Adds `other` to `sum`, bit by bit, over the length of `sum`.
pub(super) fn add_without_carry(sum: &mut [u8], other: &[u8]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum ^= other;
    }
}
