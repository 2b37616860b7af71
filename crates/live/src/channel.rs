//! A far end that is reached over a connection which somebody else has made.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_peer::frames::{FrameSink, FrameSource};

/// A connection to a far end that serves one session ([`serve_far`](crate::far_end::serve_far)). Copies are the same
/// channel: the first session that starts takes it.
///
/// Both ends of it should give up after a while when the other host is gone (a read that waits for ever holds a thread for
/// ever): the ends exchange messages several times a second.
#[derive(Clone)]
pub struct Channel(Arc<Mutex<Option<Frames>>>);

/// From the far end, and to it.
pub(crate) type Frames = (Box<dyn FrameSource>, Box<dyn FrameSink>);

impl Channel {
    /// Over a connection whose two ends have greeted each other. Dropping `to` must end the other side's reading.
    pub fn new(from: impl FrameSource + 'static, to: impl FrameSink + 'static) -> Channel {
        Channel(Arc::new(Mutex::new(Some((Box::new(from), Box::new(to))))))
    }

    /// For one session.
    pub(crate) fn take(&self) -> Option<Frames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channel")
    }
}
