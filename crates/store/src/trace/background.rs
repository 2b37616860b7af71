//! Takes records from a driver without making it wait for encoding or disk: a thread of its own per repetition writes
//! them, at least twice a second, so that a kill loses less than a second even of a flow that has fallen silent.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trunkline_metrics::Record;

use super::file::{TraceFile, Workshop};
use super::row::{self, ROW};

/// How long a record waits in memory at most, twice over: half a second leaves the other half to a slow disk.
const EVERY: Duration = Duration::from_millis(500);

/// Bytes of rows that wait for their row group in the journals of all open traces of a run: on disk, not in memory.
const JOURNALS: usize = 512 << 20;

/// The rows of a group at most, however few traces are open: they are in memory while it is made.
const GROUP_ROWS: usize = 128 << 10;

/// Bytes of rows on their way to the thread, over all open traces of a run; half of them are being filled.
const CHUNKS: usize = 32 << 20;

/// The rows of a chunk at most, however few traces are open.
const CHUNK_ROWS: usize = 4096;

/// Bytes in full chunks that wait for the thread before the driver does.
const QUEUE: usize = 8 * CHUNK_ROWS * ROW;

/// The open traces of a run, over all repetitions that are measured at once: they share the memory.
pub(crate) type OpenTraces = Arc<AtomicUsize>;

/// The traces of one repetition.
pub(crate) struct TraceWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Vec<io::Result<PathBuf>>>>,
    /// Bytes of a full chunk.
    chunk: usize,
    /// Full chunks that wait before the driver does.
    queue: usize,
    open: OpenTraces,
    traces: usize,
}

struct Shared {
    state: Mutex<State>,
    /// There is something to write.
    work: Condvar,
    /// There is room again, or what was asked for is on disk.
    done: Condvar,
}

struct State {
    /// The chunk of each flow that is being filled.
    filling: Vec<Vec<u8>>,
    /// Full chunks, in order.
    full: VecDeque<(usize, Vec<u8>)>,
    /// Empty ones, for use again.
    spare: Vec<Vec<u8>>,
    /// The thread is to be woken when so many are full.
    wake_at: usize,
    /// Whether it sleeps.
    sleeping: bool,
    syncs_wanted: u64,
    syncs_done: u64,
    closing: bool,
    /// The first thing that went wrong: records after it are dropped.
    problem: Option<(io::ErrorKind, String)>,
}

impl TraceWriter {
    pub(crate) fn start(files: Vec<TraceFile>, open: OpenTraces) -> io::Result<TraceWriter> {
        let traces = files.len();
        let workshop = Workshop::new()?;
        let now_open = open.fetch_add(traces, Ordering::Relaxed) + traces;
        let chunk = (CHUNKS / 2 / ROW / now_open.max(1)).clamp(64, CHUNK_ROWS) * ROW;
        let queue = QUEUE / chunk;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                filling: vec![Vec::new(); traces],
                full: VecDeque::new(),
                spare: Vec::new(),
                wake_at: queue / 2,
                sleeping: false,
                syncs_wanted: 0,
                syncs_done: 0,
                closing: false,
                problem: None,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let theirs = (Arc::clone(&shared), Arc::clone(&open));
        let thread = std::thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || write_all(&theirs.0, files, workshop, &theirs.1));
        if thread.is_err() {
            open.fetch_sub(traces, Ordering::Relaxed);
        }
        Ok(TraceWriter { shared, thread: Some(thread?), chunk, queue, open, traces })
    }

    /// Takes one record of the flow with this index; of an unknown flow it is dropped.
    #[inline]
    pub(crate) fn write(&mut self, flow: usize, record: &Record) {
        let row = row::encode(record);
        let mut state = self.shared.lock();
        let Some(filling) = state.filling.get_mut(flow) else { return };
        filling.extend_from_slice(&row);
        if filling.len() >= self.chunk {
            self.pass_on(state, flow);
        }
    }

    /// Returns when everything written so far survives a kill, or says why it does not.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.syncs_wanted += 1;
        let wanted = state.syncs_wanted;
        self.shared.work.notify_one();
        let finished = || self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        while state.syncs_done < wanted && !finished() {
            state = self.shared.wait(&self.shared.done, state);
        }
        state.check()
    }

    /// The first thing that went wrong so far.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.shared.lock().check()
    }

    /// Ends the thread; one result per trace.
    pub(crate) fn close(&mut self) -> io::Result<Vec<PathBuf>> {
        let Some(thread) = self.thread.take() else { return Ok(Vec::new()) };
        self.shared.lock().closing = true;
        self.shared.work.notify_one();
        let finished = thread.join();
        self.open.fetch_sub(self.traces, Ordering::Relaxed);
        let finished =
            finished.map_err(|_| io::Error::other("the trace writer's thread ended unexpectedly"))?;
        self.check()?;
        finished.into_iter().collect()
    }

    #[cold]
    fn pass_on(&self, mut state: MutexGuard<'_, State>, flow: usize) {
        while state.full.len() >= self.queue
            && self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
        {
            state = self.shared.wait(&self.shared.done, state);
        }
        let empty = state.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.chunk + ROW));
        let chunk = std::mem::replace(&mut state.filling[flow], empty);
        state.full.push_back((flow, chunk));
        if state.sleeping && state.full.len() >= state.wake_at {
            self.shared.work.notify_one();
        }
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        // What was recorded stays readable; there is nobody left to tell of a failure, and the next opening repairs it.
        let _ = self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a signal, and looks again now and then in case its sender has died.
    fn wait<'s>(&self, signal: &Condvar, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        signal.wait_timeout(state, EVERY).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    fn check(&self) -> io::Result<()> {
        self.problem.as_ref().map_or(Ok(()), |(kind, text)| Err(io::Error::new(*kind, text.clone())))
    }

    fn nothing_to_do(&self) -> bool {
        self.full.len() < self.wake_at && !self.closing && self.syncs_done == self.syncs_wanted
    }
}

/// The thread's life.
fn write_all(
    shared: &Shared,
    mut files: Vec<TraceFile>,
    mut workshop: Workshop,
    open: &OpenTraces,
) -> Vec<io::Result<PathBuf>> {
    let spare = files.len().max(QUEUE / CHUNK_ROWS / ROW);
    let mut last = Instant::now();
    let mut failed = false;
    loop {
        let mut state = shared.lock();
        while state.nothing_to_do() && last.elapsed() < EVERY {
            let rest = EVERY.saturating_sub(last.elapsed());
            state.sleeping = true;
            state = shared.work.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
            state.sleeping = false;
        }
        let closing = state.closing;
        let syncs = state.syncs_wanted;
        let all = closing || syncs > state.syncs_done || last.elapsed() >= EVERY;
        let mut chunks = std::mem::take(&mut state.full);
        if all {
            last = Instant::now();
            for flow in 0..state.filling.len() {
                if !state.filling[flow].is_empty() {
                    let empty = state.spare.pop().unwrap_or_default();
                    chunks.push_back((flow, std::mem::replace(&mut state.filling[flow], empty)));
                }
            }
        }
        drop(state);
        shared.done.notify_all();

        let group_rows = (JOURNALS / ROW / open.load(Ordering::Relaxed).max(1)).clamp(512, GROUP_ROWS);
        let mut problem = None;
        for (flow, chunk) in &chunks {
            if !failed && let Err(error) = files[*flow].append(chunk, group_rows, &mut workshop) {
                failed = true;
                problem = Some((error.kind(), error.to_string()));
            }
        }

        let mut state = shared.lock();
        state.spare.extend(chunks.into_iter().map(|(_, mut chunk)| {
            chunk.clear();
            chunk
        }));
        state.spare.truncate(spare);
        state.problem = state.problem.take().or(problem);
        if all {
            state.syncs_done = syncs;
        }
        drop(state);
        shared.done.notify_all();
        if closing {
            return files.into_iter().map(|file| file.finish(&mut workshop)).collect();
        }
    }
}
