//! The best value of a sliding window in constant space, after Kathleen Nichols: three candidates, each the best of what
//! came after the one before it. Linux keeps its smallest round trip and BBR its largest bandwidth in such a filter.

/// A filter over a window of time, of round trips, or of whatever else its moments count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Windowed {
    /// Best first; each with its moment.
    candidates: [(u64, u64); 3],
}

impl Windowed {
    /// A filter that has seen only `value`, at `at`.
    pub(super) const fn new(at: u64, value: u64) -> Windowed {
        Windowed { candidates: [(at, value); 3] }
    }

    /// The best value of the window.
    pub(super) const fn best(&self) -> u64 {
        self.candidates[0].1
    }

    /// Takes a value and keeps the smallest of the last `window`.
    pub(super) fn min(&mut self, window: u64, at: u64, value: u64) {
        self.take(window, (at, value), |new, old| new <= old);
    }

    /// Takes a value and keeps the largest of the last `window`.
    pub(super) fn max(&mut self, window: u64, at: u64, value: u64) {
        self.take(window, (at, value), |new, old| new >= old);
    }

    fn take(&mut self, window: u64, new: (u64, u64), is_as_good: fn(u64, u64) -> bool) {
        let (at, value) = new;
        let candidates = &mut self.candidates;
        if is_as_good(value, candidates[0].1) || at.saturating_sub(candidates[2].0) > window {
            *candidates = [new; 3];
            return;
        }
        if is_as_good(value, candidates[1].1) {
            (candidates[1], candidates[2]) = (new, new);
        } else if is_as_good(value, candidates[2].1) {
            candidates[2] = new;
        }
        self.age(window, new);
    }

    /// Drops candidates that have left the window, and takes the newest value as a later one where a quarter or half of the
    /// window has passed without another.
    fn age(&mut self, window: u64, new: (u64, u64)) {
        let candidates = &mut self.candidates;
        let passed = new.0.saturating_sub(candidates[0].0);
        if passed > window {
            for _ in 0..2 {
                if new.0.saturating_sub(candidates[0].0) > window {
                    *candidates = [candidates[1], candidates[2], new];
                }
            }
        } else if candidates[1].0 == candidates[0].0 && passed > window / 4 {
            (candidates[1], candidates[2]) = (new, new);
        } else if candidates[2].0 == candidates[1].0 && passed > window / 2 {
            candidates[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::*;

    proptest! {
        #![proptest_config(cases(256))]

        /// The filter may forget a value that is not the best early, but never invents one, is never better than the window's
        /// best, and never keeps a value beyond the window.
        #[test]
        fn the_filter_is_within_the_window(steps in prop::collection::vec((0..50u64, 0..1000u64), 1..200)) {
            let (mut filter, mut at) = (Windowed::new(0, u64::MAX), 0);
            let mut seen: Vec<(u64, u64)> = Vec::new();
            for (step, value) in steps {
                at += step;
                seen.push((at, value));
                filter.min(100, at, value);
                let recent = seen.iter().filter(|(moment, _)| at - moment <= 100);
                let best = recent.clone().map(|(_, value)| *value).min();
                prop_assert!(Some(filter.best()) >= best);
                prop_assert!(recent.clone().any(|(_, value)| *value == filter.best()));
            }
        }
    }

    #[test]
    fn the_best_lasts_for_a_window() {
        let mut filter = Windowed::new(0, 0);
        filter.max(10, 1, 50);
        filter.max(10, 5, 30);
        assert_eq!(filter.best(), 50);
        filter.max(10, 12, 20);
        assert_eq!(filter.best(), 30);
        filter.max(10, 13, 60);
        assert_eq!(filter.best(), 60);
    }
}
