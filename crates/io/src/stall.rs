//! How often the machine did not run us: what part of a tail is the machine's and not the network's.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use trunkline_core::Duration;

use crate::clock;
use crate::pace;

/// A thread that sleeps a millisecond at a time and notes how much too late it wakes.
#[derive(Debug)]
pub struct StallProbe {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Stalls>>,
}

/// What a [`StallProbe`] saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// How long it watched.
    pub watched: Duration,
    /// Wake-ups that came too late by more than so much, and how many; thresholds increasing. A gap counts at every
    /// threshold that it exceeds.
    pub gaps: [(Duration, u64); THRESHOLDS.len()],
    /// The sum of all lateness beyond [`THRESHOLDS`]`[0]`.
    pub lost: Duration,
    /// The longest.
    pub longest: Duration,
}

/// The thresholds above which gaps are counted.
pub const THRESHOLDS: [Duration; 12] = [
    Duration::from_micros(20),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
];

const PERIOD: u64 = 1_000_000;

impl StallProbe {
    /// The probe's name in summaries.
    pub const NAME: &'static str = "sleeping";

    /// Starts to watch.
    pub fn start() -> io::Result<StallProbe> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread =
            std::thread::Builder::new().name("stall-probe".to_owned()).spawn(move || watch(&told))?;
        Ok(StallProbe { stop, thread: Some(thread) })
    }

    /// Ends it and says what it saw.
    pub fn finish(mut self) -> Stalls {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for StallProbe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(stop: &AtomicBool) -> Stalls {
    pace::reduce_timer_slack();
    let start = clock::raw_now();
    let mut stalls = Stalls::default();
    let mut now = start;
    while !stop.load(Ordering::Relaxed) {
        let due = now + PERIOD;
        pace::sleep_until_raw(due);
        now = clock::raw_now();
        stalls.note(Duration::from_nanos(now.saturating_sub(due)));
    }
    stalls.watched = Duration::from_nanos(now - start);
    for (gap, threshold) in stalls.gaps.iter_mut().zip(THRESHOLDS) {
        gap.0 = threshold;
    }
    stalls
}

impl Stalls {
    fn note(&mut self, late: Duration) {
        if late <= THRESHOLDS[0] {
            return;
        }
        self.lost += late;
        self.longest = self.longest.max(late);
        for ((_, count), _) in
            self.gaps.iter_mut().zip(THRESHOLDS).take_while(|(_, threshold)| late > *threshold)
        {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_at_every_threshold_that_it_exceeds() {
        let mut stalls = Stalls::default();
        stalls.note(Duration::from_micros(20));
        assert_eq!(stalls, Stalls::default(), "not above the first threshold");
        stalls.note(Duration::from_micros(150));
        stalls.note(Duration::from_millis(3));
        let counts: Vec<u64> = stalls.gaps.iter().map(|gap| gap.1).collect();
        assert_eq!(counts, [2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(stalls.longest, Duration::from_millis(3));
        assert_eq!(stalls.lost, Duration::from_micros(3_150));
    }

    #[test]
    fn the_probe_watches_until_it_is_finished() {
        let probe = StallProbe::start().unwrap();
        pace::sleep(Duration::from_millis(5));
        let stalls = probe.finish();
        assert!(stalls.watched >= Duration::from_millis(1));
        assert_eq!(stalls.gaps[0].0, THRESHOLDS[0]);
    }
}
