//! Lengths of loss bursts.

use std::collections::BTreeMap;

/// Joins lost messages of one channel into runs of consecutive sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(4))]
pub struct LossRun {
    /// The sequence number after the last lost one.
    next: u64,
    length: u32,
}

impl LossRun {
    /// Takes the next lost message of the channel, in the order of sequence numbers; a run that it does
    /// not continue is counted in `bursts`.
    pub fn lost(&mut self, sequence: u64, bursts: &mut BTreeMap<u32, u64>) {
        if self.length > 0 && sequence != self.next {
            self.end(bursts);
        }
        self.length = self.length.saturating_add(1);
        self.next = sequence.wrapping_add(1);
    }

    /// Counts the run that is still open.
    pub fn end(&mut self, bursts: &mut BTreeMap<u32, u64>) {
        if self.length > 0 {
            *bursts.entry(self.length).or_default() += 1;
            self.length = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_length() {
        let mut bursts = BTreeMap::new();
        let mut run = LossRun::default();
        for sequence in [0, 4, 5, 9, 10, 11, 20, 22] {
            run.lost(sequence, &mut bursts);
        }
        run.end(&mut bursts);
        run.end(&mut bursts);
        assert_eq!(bursts, BTreeMap::from([(1, 3), (2, 1), (3, 1)]));
    }
}
