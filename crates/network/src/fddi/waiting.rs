//! Which stations wait for the token.

/// A set of stations, for rings of hundreds of which few wait.
#[derive(Debug)]
pub(super) struct Waiting {
    /// A bit per station that has packets.
    words: Vec<u64>,
    stations: usize,
    /// A bit per station whose queue hands nothing out yet, all of them in `words` too.
    held_back: Vec<u64>,
    held_back_count: usize,
}

impl Waiting {
    pub(super) fn new(stations: usize) -> Waiting {
        let words = vec![0; stations.div_ceil(64)];
        Waiting { held_back: words.clone(), words, stations, held_back_count: 0 }
    }

    /// Notes whether a station has packets, and whether its queue holds them back.
    #[inline]
    pub(super) fn set(&mut self, station: usize, waits: bool, is_held_back: bool) {
        let (word, bit) = (station / 64, 1 << (station % 64));
        let put = |words: &mut [u64], value: bool| {
            let before = words[word] & bit != 0;
            words[word] = if value { words[word] | bit } else { words[word] & !bit };
            usize::from(before)
        };
        put(&mut self.words, waits);
        let now = waits && is_held_back;
        self.held_back_count = self.held_back_count - put(&mut self.held_back, now) + usize::from(now);
    }

    pub(super) fn any(&self) -> bool {
        self.words.iter().any(|&word| word != 0)
    }

    pub(super) fn any_held_back(&self) -> bool {
        self.held_back_count > 0
    }

    /// The station that waits to which the token comes first after `station`; that one itself comes last.
    #[inline]
    pub(super) fn first_after(&self, station: usize) -> Option<usize> {
        let from = (station + 1) % self.stations;
        self.first_in(from, self.words[from / 64] >> (from % 64) << (from % 64))
    }

    /// All that wait.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        (0..self.stations).filter(|station| self.words[station / 64] >> (station % 64) & 1 != 0)
    }

    /// The first in what is left of the word of `from`, in the words after it, and then in those up to it.
    fn first_in(&self, from: usize, rest: u64) -> Option<usize> {
        let (own, words) = (from / 64, self.words.len());
        if rest != 0 {
            return Some(own * 64 + rest.trailing_zeros() as usize);
        }
        let others = (own + 1..words).chain(0..=own);
        let found = others.into_iter().find(|&word| self.words[word] != 0)?;
        Some(found * 64 + self.words[found].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_in_the_order_of_the_ring(
            stations in prop_oneof![2usize..70, Just(64), Just(128), Just(500)],
            steps in prop::collection::vec((0usize..500, any::<bool>(), any::<bool>()), 0..200),
            from in 0usize..500,
        ) {
            let (mut waiting, mut model, mut held_back) = (Waiting::new(stations), BTreeSet::new(), BTreeSet::new());
            for (station, waits, holds) in steps {
                let station = station % stations;
                waiting.set(station, waits, holds);
                if waits { model.insert(station); } else { model.remove(&station); }
                if waits && holds { held_back.insert(station); } else { held_back.remove(&station); }
            }
            let from = from % stations;
            let expected = (1..=stations).map(|step| (from + step) % stations).find(|next| model.contains(next));
            prop_assert_eq!(waiting.first_after(from), expected);
            prop_assert_eq!(waiting.any(), !model.is_empty());
            prop_assert_eq!(waiting.any_held_back(), !held_back.is_empty());
            prop_assert!(waiting.all().eq(model));
        }
    }
}
