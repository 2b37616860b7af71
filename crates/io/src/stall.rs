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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The start of gaps of a millisecond and more, by the undisciplined clock, and their lengths. Of more than
    /// [`MOST_KEPT`] the longest ones.
    pub long: Vec<(u64, Duration)>,
    /// The shortest gap that is kept.
    kept_from: Duration,
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

/// The shortest gap that is kept with its time.
const SHORTEST_KEPT: Duration = Duration::from_millis(1);

/// The largest number of gaps that are kept with their times.
pub const MOST_KEPT: usize = 1_000;

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
        stalls.note(due, Duration::from_nanos(now.saturating_sub(due)));
    }
    stalls.watched = Duration::from_nanos(now - start);
    for (gap, threshold) in stalls.gaps.iter_mut().zip(THRESHOLDS) {
        gap.0 = threshold;
    }
    stalls
}

impl Stalls {
    fn note(&mut self, due: u64, late: Duration) {
        if late <= THRESHOLDS[0] {
            return;
        }
        if late >= SHORTEST_KEPT.max(self.kept_from) {
            if self.long.len() >= MOST_KEPT {
                let mut lengths: Vec<Duration> = self.long.iter().map(|gap| gap.1).collect();
                let (_, median, _) = lengths.select_nth_unstable(MOST_KEPT / 2);
                self.kept_from = *median + Duration::from_nanos(1);
                self.long.retain(|gap| gap.1 >= self.kept_from);
            }
            self.long.push((due, late));
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
        stalls.note(7, Duration::from_micros(20));
        assert_eq!(stalls, Stalls::default(), "not above the first threshold");
        stalls.note(7, Duration::from_micros(150));
        stalls.note(7, Duration::from_millis(3));
        let counts: Vec<u64> = stalls.gaps.iter().map(|gap| gap.1).collect();
        assert_eq!(counts, [2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(stalls.longest, Duration::from_millis(3));
        assert_eq!(stalls.lost, Duration::from_micros(3_150));
        assert_eq!(stalls.long, [(7, Duration::from_millis(3))]);
    }

    #[test]
    fn the_longest_gaps_are_kept_in_the_order_of_time() {
        let mut stalls = Stalls::default();
        for i in 0..10_000u64 {
            stalls.note(i, Duration::from_micros(1_000 + i * 7_919 % 10_000));
        }
        assert!((MOST_KEPT / 2..=MOST_KEPT).contains(&stalls.long.len()), "{}", stalls.long.len());
        assert!(stalls.long.iter().any(|gap| gap.1 == stalls.longest));
        assert!(stalls.long.is_sorted_by_key(|gap| gap.0));
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
