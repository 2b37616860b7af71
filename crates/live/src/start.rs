//! The sessions of one run: they begin at the same time, and end when the flow has sent all with which the sending ends.

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use trunkline_core::{Duration, Time};
use trunkline_io::{MonotonicClock, clock};

/// What the sessions of a run share.
#[derive(Debug)]
pub(crate) struct Start {
    meeting: Mutex<Meeting>,
    changed: Condvar,
    /// How many sources are not over of those with which the sending ends.
    pub(crate) awaited: Arc<AtomicU32>,
    /// Time zero of the run by the undisciplined clock, once the sessions have agreed on it.
    pub(crate) epoch: AtomicU64,
}

#[derive(Debug)]
struct Meeting {
    sessions: usize,
    /// How many have come to this meeting, and whether all of them were on time.
    present: usize,
    on_time: bool,
    /// How many meetings there have been.
    held: u64,
    ahead: Duration,
    agreed: Agreed,
    is_abandoned: bool,
}

/// What a meeting has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Agreed {
    /// Time zero is that of this clock: it is told to the far ends, and then all meet again.
    On(MonotonicClock),
    /// Everybody knew it before it came.
    Begin,
}

/// Of [`Start::awaited`], if the sending ends with no flow.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Start {
    /// Of so many sessions, where the sending ends when so many sources are over.
    pub(crate) fn of(sessions: usize, sources: Option<u32>) -> Start {
        let meeting = Meeting {
            sessions,
            present: 0,
            on_time: true,
            held: 0,
            ahead: Duration::from_millis(10),
            agreed: Agreed::Begin,
            is_abandoned: false,
        };
        let awaited = Arc::new(AtomicU32::new(sources.unwrap_or(NOBODY)));
        Start { meeting: Mutex::new(meeting), changed: Condvar::new(), awaited, epoch: AtomicU64::new(0) }
    }

    /// Waits for the other sessions. `clock` is what the last meeting has agreed on, which lies a little ahead so that
    /// all ends know it before the first message is due; if it has begun meanwhile for somebody, another one is agreed on.
    /// `None` if a session has been given up, and with it the run.
    pub(crate) fn meet(&self, clock: Option<MonotonicClock>) -> Option<Agreed> {
        let mut meeting = self.meeting();
        let number = meeting.held;
        meeting.on_time &= clock.is_some_and(|clock| clock.now() == Time::ZERO);
        meeting.present += 1;
        if meeting.present == meeting.sessions {
            meeting.conclude();
            self.changed.notify_all();
        }
        while meeting.held == number && !meeting.is_abandoned {
            meeting = self.changed.wait(meeting).unwrap_or_else(PoisonError::into_inner);
        }
        (meeting.held > number).then_some(meeting.agreed)
    }

    /// A session has failed: the others need not wait for it, nor go on.
    pub(crate) fn abandon(&self) {
        self.meeting().is_abandoned = true;
        self.changed.notify_all();
    }

    /// Whether a session has failed.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.meeting().is_abandoned
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meeting {
    fn conclude(&mut self) {
        // The machine may stand still again and again: at some point the sources begin late.
        let begins = self.on_time || self.ahead > Duration::from_secs(1);
        self.ahead = self.ahead * 2;
        self.agreed = match begins {
            true => Agreed::Begin,
            false => Agreed::On(MonotonicClock::with_epoch(clock::raw_now() + self.ahead.as_nanos())),
        };
        (self.present, self.on_time) = (0, true);
        self.held += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sessions_begin_at_one_time() {
        let start = Start::of(3, None);
        let session = || {
            let mut clock = None;
            loop {
                match start.meet(clock) {
                    Some(Agreed::On(agreed)) => clock = Some(agreed),
                    Some(Agreed::Begin) => return clock.map(|clock| clock.epoch()),
                    None => return None,
                }
            }
        };
        let epochs: Vec<Option<u64>> = std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..3).map(|_| scope.spawn(session)).collect();
            sessions.into_iter().map(|session| session.join().unwrap()).collect()
        });
        assert!(epochs[0].is_some() && epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
    }

    #[test]
    fn nobody_waits_for_a_session_that_has_failed() {
        let start = Start::of(2, None);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| start.meet(None).is_none());
            start.abandon();
            assert!(waiting.join().unwrap());
        });
    }
}
