//! A far end that is reached over a connection which somebody else has made.

use std::fmt;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A pair of byte streams to a far end that serves one session ([`serve_far`](crate::part::serve_far)). Copies are the same
/// channel: the first session that starts takes it.
///
/// Both should give up after a while when the other host is gone (a read that waits for ever holds a thread for ever):
/// the ends say something to each other several times a second.
#[derive(Clone)]
pub struct Channel(Arc<Mutex<Option<Streams>>>);

/// From the far end, and to it.
pub(crate) type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

impl Channel {
    /// What is read from `from` and written to `to`. Dropping `to` must end the other side's reading; what is written
    /// must not wait for a buffer to fill beyond `flush`.
    pub fn new(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> Channel {
        Channel(Arc::new(Mutex::new(Some((Box::new(from), Box::new(to))))))
    }

    /// For one session.
    pub(crate) fn take(&self) -> Option<Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channel")
    }
}
