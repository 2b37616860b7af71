//! Keys of contexts that are over, so that a late or repeated packet is not mistaken for a new one.

use super::wire::Key;

/// The latest keys: never fewer than [`Remembered::AT_LEAST`], once there were so many. Finding one takes a few steps,
/// and memory is taken once.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    /// Open addressing; 0 is vacant, and keys are kept as return keys, which are never 0.
    young: Vec<u64>,
    old: Vec<u64>,
    count: usize,
}

const SLOTS: usize = 8192;

impl Remembered {
    /// So many keys back a repetition is recognized for certain.
    pub(super) const AT_LEAST: usize = SLOTS / 2;

    pub(super) fn has(&self, key: Key) -> bool {
        find(&self.young, key).is_ok() || find(&self.old, key).is_ok()
    }

    pub(super) fn add(&mut self, key: Key) {
        if self.count == Remembered::AT_LEAST || self.young.is_empty() {
            core::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
            self.young.resize(SLOTS, 0);
            self.count = 0;
        }
        if let Err(Some(vacant)) = find(&self.young, key) {
            self.young[vacant] = key.returned().0;
            self.count += 1;
        }
    }
}

/// Where a key stands, or the vacant slot where it would. A table is never more than half full.
fn find(table: &[u64], key: Key) -> Result<usize, Option<usize>> {
    if table.is_empty() {
        return Err(None);
    }
    let wanted = key.returned().0;
    // Keys are the peer's choice: multiplied, they are spread whatever it is.
    let mut slot = (wanted.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51) as usize;
    loop {
        match table[slot] {
            0 => return Err(Some(slot)),
            found if found == wanted => return Ok(slot),
            _ => slot = (slot + 1) % SLOTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_known_and_the_oldest_forgotten() {
        let mut known = Remembered::default();
        assert!(!known.has(Key(0)));
        for n in 0..20_000 {
            assert!(!known.has(Key(n)));
            known.add(Key(n));
            known.add(Key(n));
            let back = n.saturating_sub(Remembered::AT_LEAST as u64 - 1);
            assert!(known.has(Key(n)) && known.has(Key(back)), "{back} of {n}");
        }
        assert!(!known.has(Key(0)));
    }
}
