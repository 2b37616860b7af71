//! Brings the files of a run to the bucket while it is measured, on a thread of its own.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::sweep::{bring, mark, sweep, unmark};
use super::{Bucket, FETCHED};
use crate::StoreError;
use crate::catalogue::Catalogue;
use crate::model::RunInfo;

/// How long the end of a run waits for a server that takes nothing, unless told otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a file that was not taken waits for the next attempt.
const PAUSE: Duration = Duration::from_secs(2);

/// The uploads of one run.
#[derive(Debug)]
pub(crate) struct Uploads {
    shared: Arc<Shared>,
    patience: Duration,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Files, by their paths in the run's folder.
    waiting: VecDeque<String>,
    /// Nothing more will come: what the folder has besides is brought too.
    is_closing: bool,
    stop: bool,
    /// Everything is there.
    is_done: bool,
    /// Why the last attempt failed, if it did.
    problem: Option<String>,
    /// How many files were taken.
    taken: u64,
}

impl Uploads {
    /// Begins with the files of this run, which is measured here from now on. Its end waits so long for a server that takes
    /// nothing.
    pub(crate) fn start(
        bucket: Arc<Bucket>,
        mut catalogue: Box<dyn Catalogue>,
        run: RunInfo,
        patience: Duration,
    ) -> Result<Uploads, StoreError> {
        mark(&run, &bucket)?;
        let fetched = run.directory.join(FETCHED);
        if fetched.exists() {
            fs::remove_file(&fetched).map_err(StoreError::io("removed", &fetched))?;
        }
        let (shared, directory) = (Arc::new(Shared::default()), run.directory.clone());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("uploads".to_owned())
            .spawn(move || own.work(&bucket, &mut *catalogue, &run))
            .map_err(StoreError::io("watched", &directory))?;
        Ok(Uploads { shared, patience, thread: Some(thread) })
    }

    /// Brings these files, which nobody changes any more.
    pub(crate) fn add(&self, files: impl IntoIterator<Item = String>) {
        self.shared.state().waiting.extend(files);
        self.shared.changed.notify_all();
    }

    /// Waits until all of the run's folder is there; if the server takes nothing for too long, says why. What is left
    /// stays marked, for the next opening of the store.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let mut state = self.shared.state();
        state.is_closing = true;
        self.shared.changed.notify_all();
        let (mut taken, mut since) = (state.taken, Instant::now());
        while !state.is_done && (since.elapsed() < self.patience || state.problem.is_none()) {
            let waited = self.shared.changed.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.taken != taken {
                (taken, since) = (state.taken, Instant::now());
            }
        }
        let left = if state.is_done { None } else { Some(state.problem.clone().unwrap_or_default()) };
        drop(state);
        self.stop();
        left.map_or(Ok(()), Err)
    }

    fn stop(&mut self) {
        self.shared.state().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn work(&self, bucket: &Bucket, catalogue: &mut dyn Catalogue, run: &RunInfo) {
        let go_on = || !self.state().stop;
        while let Some(file) = self.next() {
            let brought = match &file {
                Some(file) => bring(bucket, catalogue, run, file, &go_on),
                None => sweep(bucket, catalogue, run, &go_on).and_then(|()| unmark(run)),
            };
            let mut state = self.state();
            match brought {
                Ok(()) => {
                    state.problem = None;
                    state.taken += 1;
                    state.is_done = file.is_none();
                    if file.is_some() {
                        state.waiting.pop_front();
                    }
                }
                // A file that is gone or cannot be read: the sweep at the end says so again.
                Err(StoreError::Io { .. }) if file.is_some() => drop(state.waiting.pop_front()),
                Err(error) => {
                    state.problem = Some(error.to_string());
                    let paused = self.changed.wait_timeout_while(state, PAUSE, |state| !state.stop);
                    state = paused.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The next file to bring, which stays the first in the queue; `Some(None)` if all the rest is to be brought. Waits for
    /// it; `None` at the end.
    fn next(&self) -> Option<Option<String>> {
        let state = self.state();
        let idle = |state: &mut State| {
            !state.stop && !state.is_done && state.waiting.is_empty() && !state.is_closing
        };
        let state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        match state.stop || state.is_done {
            true => None,
            false => Some(state.waiting.front().cloned()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
