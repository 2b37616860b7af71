//! Where the two ends of a session live.

use std::io;
use std::process::{Child, Command};

/// A host, or a part of one with a network of its own.
pub trait Place: Sync {
    /// Does `work` there: the sockets that it opens and the threads that it starts stay there.
    ///
    /// # Errors
    /// If nothing can be done there; `work` has not begun then.
    fn run(&self, work: Box<dyn FnOnce() + Send + '_>) -> io::Result<()>;

    /// Starts a program there.
    ///
    /// # Errors
    /// If it cannot be started.
    fn spawn(&self, command: Command) -> io::Result<Child>;
}

/// This host, with the network that this process has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThisHost;

impl Place for ThisHost {
    fn run(&self, work: Box<dyn FnOnce() + Send + '_>) -> io::Result<()> {
        work();
        Ok(())
    }

    fn spawn(&self, mut command: Command) -> io::Result<Child> {
        command.spawn()
    }
}

/// Does `work` at a place and returns what it returns.
pub(crate) fn at<R: Send>(place: &dyn Place, work: impl FnOnce() -> R + Send) -> io::Result<R> {
    let mut done = None;
    place.run(Box::new(|| done = Some(work())))?;
    done.ok_or_else(|| io::Error::other("the place has done nothing"))
}
