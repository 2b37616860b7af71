//! A part on its way to a controller: the chunks that are kept, those that are added, and how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trunkline_control::message::{Chunk, Finished};
use trunkline_control::{FrameWriter, FromAgent, PeerError, Refusal, RefusalKind};

use super::Daemon;
use super::parts::End as Side;
use crate::spool::{Ending, PartSpool, SpoolError};

/// How often progress is told, and how soon the end of the session is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// Streams a part from this chunk on, until its end is told, the session ends or nobody wants it.
pub(super) fn stream(
    daemon: &Daemon,
    spool: &Arc<PartSpool>,
    from: u64,
    to: &FrameWriter,
    is_over: &AtomicBool,
) -> Result<(), PeerError> {
    let part = &spool.meta().part;
    let refuse = |kind, why| {
        to.send(&FromAgent::Refused { part: Some(part.clone()), refusal: Refusal::new(kind, why) })
    };
    if from < spool.kept_from() {
        let why = format!("chunks before {} were acknowledged and are gone", spool.kept_from());
        return refuse(RefusalKind::Part, why);
    }
    let parent = daemon.parts.find(part, Side::Near).map(|running| running.trace()).unwrap_or_default();
    let _span = daemon.traces.span("collect", &parent, &[("trunkline.from", from.to_string())]);
    let (mut next, mut told, mut told_over) = (from, None, false);
    while !is_over.load(Ordering::Relaxed) {
        let extent = spool.wait_beyond(next, LOOK);
        while next < extent.chunks && !is_over.load(Ordering::Relaxed) {
            let data = match spool.read(next) {
                Ok(data) => data,
                Err(SpoolError::NotKept { .. } | SpoolError::Discarded) => return Ok(()),
                Err(error) => return refuse(RefusalKind::Environment, error.to_string()),
            };
            let length = data.len();
            to.send(&Chunk { part: part.clone(), number: next, data })?;
            daemon.counters.streamed(length);
            next += 1;
        }
        if extent.is_discarded {
            return Ok(());
        }
        if let Some(running) = daemon.parts.find(part, Side::Near) {
            let done = running.done();
            if !done.is_zero() && told != Some(done) {
                to.send(&FromAgent::Progress { part: part.clone(), done })?;
                told = Some(done);
            }
            if !told_over && running.are_sources_over() {
                to.send(&FromAgent::SourcesOver { part: part.clone() })?;
                told_over = true;
            }
        }
        if let (true, Some(end)) = (extent.is_over && next >= extent.chunks, spool.end()) {
            return to.send(&said(spool, end.how, extent.chunks));
        }
    }
    Ok(())
}

/// How a part ended, as its controller is told.
fn said(spool: &PartSpool, how: Ending, chunks: u64) -> FromAgent {
    let part = spool.meta().part.clone();
    match how {
        Ending::Finished { outcome, clock_errors } => {
            FromAgent::Finished(Box::new(Finished { part, outcome, clock_errors, chunks }))
        }
        Ending::Failed { refusal, outcome } => FromAgent::Failed { part, refusal, outcome, chunks },
    }
}
