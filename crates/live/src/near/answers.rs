//! From the thread that receives reflected messages to the thread whose sources wait for them.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use trunkline_core::Time;
use trunkline_flows::Answer;
use trunkline_io::poll::Interest;
use trunkline_io::{MonotonicClock, Pacer, Poller, Wakeup, clock};

/// Answers that the sending thread has not seen yet. Locked once per batch of arrivals and once per look.
#[derive(Debug)]
pub(crate) struct Answers {
    waiting: Mutex<Vec<Answer>>,
    /// Whether there are any: looked at without the lock.
    any: AtomicBool,
    /// Whether the sending thread sleeps and wants to be woken by an answer.
    asleep: AtomicBool,
    wakeup: Wakeup,
}

impl Answers {
    pub(crate) fn new() -> io::Result<Answers> {
        Ok(Answers {
            waiting: Mutex::default(),
            any: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            wakeup: Wakeup::new()?,
        })
    }

    /// Moves these to the sending thread, and wakes it if it waits for them.
    pub(crate) fn give(&self, answers: &mut Vec<Answer>) {
        if answers.is_empty() {
            return;
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).append(answers);
        self.any.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wakeup.set();
        }
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::SeqCst)
    }

    /// Exchanges `into`, which must be empty, for what is there.
    pub(crate) fn take(&self, into: &mut Vec<Answer>) {
        if self.any.swap(false, Ordering::SeqCst) {
            core::mem::swap(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner), into);
        }
    }

    /// Sleeps until `due` or an answer, whichever is first; spins over the last stretch as the pacer would.
    pub(crate) fn sleep_until(&self, due: Time, clock: MonotonicClock, pacer: &Pacer) {
        let wake = clock.to_raw(due).saturating_sub(pacer.spin().as_nanos());
        self.asleep.store(true, Ordering::SeqCst);
        // An answer that came before the line above did not wake us: look again.
        let left = wake.saturating_sub(clock::raw_now());
        if !self.any() && left > 0 {
            let mut poller = Poller::new([(self.wakeup.as_fd(), Interest::Read)]);
            // Fails for lack of kernel memory only; the caller looks again at once.
            let _ = poller.wait(trunkline_core::Duration::from_nanos(left));
        }
        if !self.asleep.swap(false, Ordering::SeqCst) {
            self.wakeup.clear();
        }
        while !self.any() && clock.now() < due && clock::raw_now() >= wake {
            core::hint::spin_loop();
        }
    }
}
