//! What an agent counts of itself.

use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_core::Bytes;

/// Counters since the start of the agent.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    connections: [AtomicU64; Connection::ALL.len()],
    parts: [AtomicU64; Outcome::ALL.len()],
    observations: AtomicU64,
    recorded_bytes: AtomicU64,
    streamed_chunks: AtomicU64,
    streamed_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    slept: AtomicU64,
    wall_steps: AtomicU64,
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// A controller's.
    Control,
    /// A new controller's.
    Paired,
    /// Another agent's.
    Joined,
    /// Nobody's whom we know.
    Refused,
    /// It did not speak our language, or fell silent.
    Failed,
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ended as it should.
    Finished,
    /// It began and failed.
    Failed,
    /// It did not begin: it was not allowed, or could not be.
    Refused,
}

impl Connection {
    pub(crate) const ALL: [(Connection, &str); 5] = [
        (Connection::Control, "control"),
        (Connection::Paired, "paired"),
        (Connection::Joined, "joined"),
        (Connection::Refused, "refused"),
        (Connection::Failed, "failed"),
    ];
}

impl Outcome {
    pub(crate) const ALL: [(Outcome, &str); 3] =
        [(Outcome::Finished, "finished"), (Outcome::Failed, "failed"), (Outcome::Refused, "refused")];
}

/// What the counters say at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) connections: Vec<(&'static str, u64)>,
    pub(crate) parts: Vec<(&'static str, u64)>,
    pub(crate) observations: u64,
    pub(crate) recorded: Bytes,
    pub(crate) streamed_chunks: u64,
    pub(crate) streamed: Bytes,
    pub(crate) sent: Bytes,
    pub(crate) slept: u64,
    pub(crate) wall_steps: u64,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Counters {
    pub(crate) fn connection(&self, what: Connection) {
        add(&self.connections[what as usize], 1);
    }

    pub(crate) fn part(&self, what: Outcome) {
        add(&self.parts[what as usize], 1);
    }

    pub(crate) fn recorded(&self, observations: u64, bytes: usize) {
        add(&self.observations, observations);
        add(&self.recorded_bytes, bytes as u64);
    }

    pub(crate) fn streamed(&self, bytes: usize) {
        add(&self.streamed_chunks, 1);
        add(&self.streamed_bytes, bytes as u64);
    }

    pub(crate) fn sent(&self, bytes: Bytes) {
        add(&self.sent_bytes, bytes.count());
    }

    pub(crate) fn slept(&self) {
        add(&self.slept, 1);
    }

    pub(crate) fn wall_stepped(&self) {
        add(&self.wall_steps, 1);
    }

    /// How often the clock that measures has lost time.
    pub(crate) fn clock_steps(&self) -> u64 {
        read(&self.slept)
    }

    pub(crate) fn read(&self) -> Counted {
        Counted {
            connections: Connection::ALL
                .iter()
                .map(|(what, name)| (*name, read(&self.connections[*what as usize])))
                .collect(),
            parts: Outcome::ALL
                .iter()
                .map(|(what, name)| (*name, read(&self.parts[*what as usize])))
                .collect(),
            observations: read(&self.observations),
            recorded: Bytes(read(&self.recorded_bytes)),
            streamed_chunks: read(&self.streamed_chunks),
            streamed: Bytes(read(&self.streamed_bytes)),
            sent: Bytes(read(&self.sent_bytes)),
            slept: read(&self.slept),
            wall_steps: read(&self.wall_steps),
        }
    }
}
