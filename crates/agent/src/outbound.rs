//! Rate limit on connections that a controller asks for and that reach no agent, so that an agent is no port scanner.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trunkline_control::Fingerprint;

/// Failures in a burst: the agents of an experiment may be starting.
const AT_ONCE: u32 = 20;
/// Time after which one more failure is allowed.
const EACH: Duration = Duration::from_secs(6);

/// The failures of all controllers.
#[derive(Debug, Default)]
pub(crate) struct Outbound(Mutex<BTreeMap<Fingerprint, Failures>>);

#[derive(Debug)]
struct Failures {
    /// Failures that still count.
    count: u32,
    since: Instant,
}

/// An attempt for a controller. It counts as a failure unless it reaches an agent.
#[derive(Debug)]
pub(crate) struct Attempt<'o> {
    outbound: &'o Outbound,
    controller: Fingerprint,
}

impl Outbound {
    /// Begins an attempt.
    ///
    /// # Errors
    /// The time until the next attempt, if too many have failed.
    pub(crate) fn attempt(&self, controller: Fingerprint, now: Instant) -> Result<Attempt<'_>, Duration> {
        let mut all = self.all();
        let own = all.entry(controller).or_insert(Failures { count: 0, since: now });
        own.forget(now);
        if own.count >= AT_ONCE {
            return Err(EACH.saturating_sub(now.saturating_duration_since(own.since)));
        }
        own.count += 1;
        Ok(Attempt { outbound: self, controller })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Fingerprint, Failures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failures {
    fn forget(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let forgotten = u32::try_from(passed.as_nanos() / EACH.as_nanos()).unwrap_or(u32::MAX);
        if forgotten >= self.count {
            (self.count, self.since) = (0, now);
        } else {
            self.count -= forgotten;
            self.since += EACH * forgotten;
        }
    }
}

impl Attempt<'_> {
    /// There was an agent with the key that was expected.
    pub(crate) fn succeeded(self) {
        if let Some(own) = self.outbound.all().get_mut(&self.controller) {
            own.count = own.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_few_and_successes_do_not_count() {
        let outbound = Outbound::default();
        let [one, other] = ["0", "1"].map(|digit| format!("{}0", digit.repeat(51)).parse().unwrap());
        let now = Instant::now();
        for _ in 0..1000 {
            outbound.attempt(one, now).unwrap().succeeded();
        }
        (0..AT_ONCE).for_each(|_| _ = outbound.attempt(one, now).unwrap());
        assert_eq!(outbound.attempt(one, now).unwrap_err(), EACH);
        outbound.attempt(other, now).unwrap();
        assert_eq!(outbound.attempt(one, now + EACH / 2).unwrap_err(), EACH / 2);
        _ = outbound.attempt(one, now + EACH).unwrap();
        assert!(outbound.attempt(one, now + EACH).is_err());
        let later = now + 100 * EACH;
        assert_eq!((0..100).take_while(|_| outbound.attempt(one, later).is_ok()).count(), AT_ONCE as usize);
    }
}
