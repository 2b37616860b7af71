//! Kills at random moments: some with every run of the tests, a hundred with `cargo xtask attack`.
#![allow(clippy::print_stderr, reason = "what fails says its seed")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::mutation::{Mutator, seed};

/// The variable with the number of kills of a test.
pub const NUMBER: &str = "TRUNKLINE_ATTACK_KILLS";
const OF_THE_SUITE: usize = 3;

/// Calls `kill` for each kill, some at the same time. What is random in it comes from its `Mutator`, which the seed of the
/// run and the number of the kill determine.
///
/// # Panics
/// If one of them does; all others have ended then, and the first says its number and the seed.
pub fn at_random_moments(lanes: usize, kill: impl Fn(&mut Mutator) + Sync) {
    let number = std::env::var(NUMBER).ok().and_then(|text| text.parse().ok()).unwrap_or(OF_THE_SUITE);
    let (next, kill) = (&AtomicUsize::new(0), &kill);
    thread::scope(|scope| {
        for _ in 0..lanes.min(number) {
            scope.spawn(move || {
                loop {
                    let which = next.fetch_add(1, Ordering::Relaxed);
                    if which >= number {
                        return;
                    }
                    let says = Says { which };
                    kill(&mut Mutator::new(seed() * 10_000 + which as u64));
                    core::mem::forget(says);
                }
            });
        }
    });
}

/// A random time below this one.
pub fn moment(mutator: &mut Mutator, below: Duration) -> Duration {
    Duration::from_micros(mutator.below(below.as_micros() as usize) as u64)
}

/// Says which kill fails.
struct Says {
    which: usize,
}

impl Drop for Says {
    fn drop(&mut self) {
        eprintln!("kill {} of seed {} failed", self.which, seed());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_kill_has_a_moment_of_its_own() {
        let moments = Mutex::new(BTreeSet::new());
        at_random_moments(2, |mutator| {
            moments.lock().unwrap().insert(moment(mutator, Duration::from_secs(1)));
        });
        let moments = moments.into_inner().unwrap();
        assert!(moments.len() >= OF_THE_SUITE && moments.iter().all(|at| *at < Duration::from_secs(1)));
    }
}
