//! Packets that wait, at the place that their sequence number gives them.

/// A ring of equally long packets, taken once.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    samples: Vec<f32>,
    /// Per place: the number of the packet there.
    held: Vec<Option<i64>>,
    packet: usize,
    len: u64,
}

impl Packets {
    /// `capacity` packets of `packet` samples.
    pub(super) fn new(capacity: usize, packet: usize) -> Packets {
        Packets { samples: vec![0.0; capacity * packet], held: vec![None; capacity], packet, len: 0 }
    }

    pub(super) fn capacity(&self) -> usize {
        self.held.len()
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn has(&self, number: i64) -> bool {
        self.held[self.place(number)] == Some(number)
    }

    /// Stores a packet. All that are held lie within one capacity of each other, so that its place is free.
    pub(super) fn put(&mut self, number: i64, samples: &[f32]) {
        let place = self.place(number);
        self.len += u64::from(self.held[place].is_none());
        self.held[place] = Some(number);
        self.samples[place * self.packet..][..self.packet].copy_from_slice(samples);
    }

    /// Moves a packet out, if it is there.
    pub(super) fn take(&mut self, number: i64, into: &mut [f32]) -> bool {
        if !self.has(number) {
            return false;
        }
        let place = self.place(number);
        self.held[place] = None;
        self.len -= 1;
        into.copy_from_slice(&self.samples[place * self.packet..][..self.packet]);
        true
    }

    /// Throws all away and says how many.
    pub(super) fn clear(&mut self) -> u64 {
        self.held.fill(None);
        core::mem::take(&mut self.len)
    }

    fn place(&self, number: i64) -> usize {
        number.rem_euclid(self.held.len() as i64) as usize
    }
}
