//! What a thread of the far end observes, on its way to the pipe.

use std::sync::mpsc::{SyncSender, TrySendError};

use trunkline_core::{Duration, FlowId, Time};
use trunkline_flows::Observer;
use trunkline_metrics::Observation;

use crate::events::Report;
use crate::protocol::FromFar;

/// Gathers observations of one thread and passes them on in packets.
pub(crate) struct Reporter {
    say: SyncSender<FromFar>,
    report: Report,
    /// When the oldest went in.
    since: Time,
}

/// A report is passed on when it is so large, or so old.
const FULL: usize = 32 << 10;
const OLD: Duration = Duration::from_millis(50);
/// Beyond this a thread waits for the pipe: memory is bounded, timing then suffers.
const TOO_MUCH: usize = 16 << 20;

impl Reporter {
    pub(crate) fn new(say: SyncSender<FromFar>) -> Reporter {
        Reporter { say, report: Report { bytes: Vec::with_capacity(FULL * 2) }, since: Time::MAX }
    }

    fn push(&mut self, at: Time, flow: FlowId, what: &Observation, payload: Option<&[u8]>) {
        if self.since == Time::MAX {
            self.since = at;
        }
        self.report.push(at, flow, what, payload);
    }

    /// Passes on what is large or old enough.
    pub(crate) fn tick(&mut self, now: Time) {
        if self.report.bytes.len() >= FULL || self.since + OLD <= now {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.report.bytes.is_empty() {
            return;
        }
        let waits = self.report.bytes.len() >= TOO_MUCH;
        // The frame takes the memory along: one allocation per some hundred messages.
        let bytes = core::mem::replace(&mut self.report.bytes, Vec::with_capacity(FULL * 2));
        let frame = FromFar::Report(bytes);
        self.since = Time::MAX;
        if waits {
            // Without a near end the report is nobody's.
            let _ = self.say.send(frame);
        } else if let Err(TrySendError::Full(FromFar::Report(bytes))) = self.say.try_send(frame) {
            self.report.bytes = bytes;
            self.since = Time::ZERO;
        }
    }
}

impl Observer for Reporter {
    fn observe(&mut self, at: Time, flow: FlowId, what: Observation, payload: Option<&[u8]>) {
        self.push(at, flow, &what, payload);
    }

    /// Nothing is sent here that a source has made.
    fn oversize(&mut self, _: usize) {}
}

/// The last report goes through whatever it takes.
impl Drop for Reporter {
    fn drop(&mut self) {
        let bytes = core::mem::take(&mut self.report.bytes);
        if !bytes.is_empty() {
            let _ = self.say.send(FromFar::Report(bytes));
        }
    }
}
