//! Packets that are sent together.

/// Packets in one piece of memory, which is used again.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Packets {
    /// Adds a copy.
    pub fn push(&mut self, packet: &[u8]) {
        self.push_parts([packet]);
    }

    /// Adds a packet of these parts.
    pub(crate) fn push_parts<const N: usize>(&mut self, parts: [&[u8]; N]) {
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
    }

    /// The packet at this place.
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        let end = *self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    /// All, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.ends.len()).map(|place| self.get(place).unwrap_or_default())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
