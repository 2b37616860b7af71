//! A device without hardware: a thread that follows the monotonic clock as a sound card follows its crystal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use trunkline_core::{Duration, Time};
use trunkline_io::{MonotonicClock, Pacer, process};

use crate::cycle::Cycle;
use crate::error::SoundError;
use crate::hardware::{Hardware, Running};
use crate::wanted::Format;

/// As JACK gives its clients by default, below its own thread.
pub(crate) const PRIORITY: u8 = 5;

/// What may be late and made up for at once. A machine that stalls longer has lost the time, as a sound card would have.
const PATIENCE: Duration = Duration::from_millis(100);

/// A clock for those who have none.
pub(crate) struct Clock {
    pub(crate) format: Format,
}

impl Hardware for Clock {
    fn format(&self) -> Format {
        self.format
    }

    fn start(self: Box<Self>, cycle: Cycle) -> Result<Box<dyn Running>, SoundError> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("sound".to_owned())
            .spawn(move || run(cycle, self.format, &told))
            .map_err(|error| SoundError::Thread(error.to_string()))?;
        Ok(Box::new(Clocked { stop, thread: Some(thread) }))
    }
}

struct Clocked {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running for Clocked {
    fn check(&mut self) -> Result<(), String> {
        match &self.thread {
            Some(thread) if thread.is_finished() => {
                Err("the thread that paces the audio has ended".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Clocked {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If it has panicked, that was its last word.
            let _ = thread.join();
        }
    }
}

fn run(mut cycle: Cycle, format: Format, stop: &AtomicBool) {
    if process::run_in_real_time(PRIORITY).is_err() {
        cycle.shared().real_time_refused();
    }
    let pacer = Pacer::new(MonotonicClock::with_epoch(0), Duration::ZERO);
    let mut grid = Grid::new(Time::from_nanos(trunkline_io::clock::raw_now()), format);
    while !stop.load(Ordering::Relaxed) {
        let due = grid.next();
        let now = pacer.sleep_until(due);
        let lost = grid.catch_up(now);
        if lost > 0 {
            cycle.shared().lose(lost);
        }
        cycle.capture(due, format.block_frames as usize, |_| ());
        cycle.play(due, format.block_frames as usize, |_| ());
    }
}

/// The moments at which blocks begin.
struct Grid {
    start: Time,
    blocks: u64,
    format: Format,
}

impl Grid {
    fn new(start: Time, format: Format) -> Grid {
        Grid { start, blocks: 0, format }
    }

    /// When the next block begins.
    fn next(&mut self) -> Time {
        self.blocks += 1;
        self.at(self.blocks)
    }

    /// Leaves out blocks that are too late to be made up for; says how many.
    fn catch_up(&mut self, now: Time) -> u64 {
        let mut lost = 0;
        if now.since(self.at(self.blocks)) > PATIENCE {
            while self.at(self.blocks + 1) <= now {
                self.blocks += 1;
                lost += 1;
            }
        }
        lost
    }

    fn at(&self, block: u64) -> Time {
        let frames = u128::from(block) * u128::from(self.format.block_frames);
        let nanos = frames * 1_000_000_000 / u128::from(self.format.sample_rate);
        self.start + Duration::from_nanos(nanos as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format =
        Format { sample_rate: 44_100, block_frames: 128, capture_channels: 1, playback_channels: 1 };

    #[test]
    fn blocks_follow_the_clock_without_drift() {
        let mut grid = Grid::new(Time::from_nanos(7), FORMAT);
        let mut last = Time::ZERO;
        for _ in 0..44_100 {
            let next = grid.next();
            assert!(next > last);
            last = next;
        }
        assert_eq!(last, Time::from_nanos(7) + Duration::from_secs(128));
    }

    #[test]
    fn a_short_stall_is_made_up_for_and_a_long_one_is_lost() {
        let mut grid = Grid::new(Time::ZERO, FORMAT);
        let due = grid.next();
        assert_eq!(grid.catch_up(due + PATIENCE), 0);
        let late = due + Duration::from_secs(1);
        assert_eq!(grid.catch_up(late), 344, "one second has 344.5 blocks");
        assert!(grid.next() > late);
    }
}
