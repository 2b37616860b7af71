//! Keys of contexts that are over, so that a late or repeated packet is not mistaken for a new one.

use std::collections::VecDeque;

use super::wire::Key;

/// The last so many keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    keys: VecDeque<Key>,
}

/// How many keys are remembered. A repetition that comes after so many others counts as new.
const LIMIT: usize = 4096;

impl Remembered {
    pub(super) fn has(&self, key: Key) -> bool {
        // The latest are the likeliest.
        self.keys.iter().rev().any(|&known| known == key)
    }

    pub(super) fn add(&mut self, key: Key) {
        if self.keys.len() == LIMIT {
            self.keys.pop_front();
        }
        self.keys.push_back(key);
    }
}
