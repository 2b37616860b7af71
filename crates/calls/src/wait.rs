//! Waiting for lines.

use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::{Duration, Time};
use trunkline_io::{Interest, PollSet, Wakeup};

use crate::line::Line;

/// Waits until a line wants to be turned; its memory is used again.
#[derive(Debug, Default)]
pub struct Waiter {
    set: PollSet,
}

impl Waiter {
    /// Waits until something has happened to the line, something of it is due, `wakeup` is set or it is `until`.
    pub fn wait(&mut self, line: &dyn Line, wakeup: Option<&Wakeup>, until: Time) {
        let until = line.next_timeout().map_or(until, |due| due.min(until));
        // A line has its own descriptors, those of its control connection, and each perhaps twice.
        let mut descriptors: [Option<(BorrowedFd<'_>, Interest)>; 8] = [None; 8];
        let mut places = descriptors.iter_mut();
        let mut add = |descriptor, interest| {
            if let Some(place) = places.next() {
                *place = Some((descriptor, interest));
            }
        };
        line.descriptors(&mut add);
        if let Some(wakeup) = wakeup {
            add(wakeup.as_fd(), Interest::Read);
        }
        let patience = until.since(crate::now());
        if self.set.wait(descriptors.into_iter().flatten(), patience).is_err() {
            // For lack of memory; a moment later there may be some.
            trunkline_io::pace::sleep(Duration::from_millis(1));
        }
    }
}
