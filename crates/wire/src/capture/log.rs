//! What a relay saw since the writer looked last: the only thing that both of them touch.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::{PacketId, Port, Time};

use crate::relay::Capture;

/// More than this is not kept for a writer that does not come.
const MOST: usize = 64 << 20;

/// What happened to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Arrived,
    Delivered,
    Dropped(&'static str),
}

/// One thing that happened; its frame stands in [`Batch::bytes`], of drops without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) what: What,
    pub(super) at: Time,
    pub(super) port: Port,
    pub(super) id: PacketId,
    pub(super) frame: Range<usize>,
}

/// Things in their order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) seen: Vec<Seen>,
    pub(super) bytes: Vec<u8>,
    /// Frames that found no room, by port.
    pub(super) missed: Vec<u64>,
    /// Nothing earlier is still to come.
    pub(super) passed: Time,
}

/// Between a relay and the writer. The relay never waits for a disk: it appends to memory that is swapped for the writer's
/// own.
#[derive(Debug, Default)]
pub(super) struct Log {
    batch: Mutex<Batch>,
    closed: AtomicBool,
}

impl Log {
    /// Takes what there is, and leaves `empty` in its place, whose memory is used again.
    pub(super) fn swap(&self, mut empty: Batch) -> Batch {
        empty.seen.clear();
        empty.bytes.clear();
        empty.missed.clear();
        empty.passed = Time::ZERO;
        std::mem::replace(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner), empty)
    }

    /// Nobody takes anything any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.swap(Batch::default());
    }
}

/// The relay's end of a log.
pub(super) struct Tap(pub(super) Arc<Log>);

impl Tap {
    fn saw(&self, what: What, at: Time, port: Port, id: PacketId, frame: &[u8]) {
        if self.0.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut batch = self.0.batch.lock().unwrap_or_else(PoisonError::into_inner);
        let start = batch.bytes.len();
        if start + frame.len() > MOST {
            let port = usize::from(port.0);
            if batch.missed.len() <= port {
                batch.missed.resize(port + 1, 0);
            }
            batch.missed[port] += 1;
            return;
        }
        batch.bytes.extend_from_slice(frame);
        let frame = start..batch.bytes.len();
        batch.seen.push(Seen { what, at, port, id, frame });
    }
}

impl Capture for Tap {
    fn arrived(&mut self, at: Time, port: Port, id: PacketId, frame: &[u8]) {
        self.saw(What::Arrived, at, port, id, frame);
    }

    fn delivered(&mut self, at: Time, port: Port, id: PacketId, frame: &[u8]) {
        self.saw(What::Delivered, at, port, id, frame);
    }

    fn dropped(&mut self, at: Time, port: Port, id: PacketId, _frame: &[u8], cause: &'static str) {
        self.saw(What::Dropped(cause), at, port, id, &[]);
    }

    fn passed(&mut self, until: Time) {
        self.0.batch.lock().unwrap_or_else(PoisonError::into_inner).passed = until;
    }
}
