//! Strangers who have connected and said nothing: they cost a descriptor and no thread.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use trunkline_control::{Incoming, Listener, PeerError};
use trunkline_core::Duration;
use trunkline_io::admission::Ticket;

use super::Daemon;
use super::door::GREETING;

/// Connections at which nothing has come yet.
#[derive(Default)]
pub(crate) struct Lobby {
    waiting: Vec<Waiting>,
}

struct Waiting {
    incoming: Incoming,
    ticket: Ticket,
    since: Instant,
}

/// So many connections are accepted before those that wait are looked at.
const AT_ONCE: usize = 64;

impl Lobby {
    /// Waits no longer than this for new connections, and for the first bytes of those that wait; hands the latter to the
    /// daemon.
    ///
    /// # Errors
    /// If the system has no socket left, or the listener is broken. Rest a little before trying again.
    pub(crate) fn turn(
        &mut self,
        daemon: &Arc<Daemon>,
        listener: &Listener,
        patience: Duration,
    ) -> Result<(), PeerError> {
        let ready = self.poll(listener, patience)?;
        let (has_new, spoken) = ready.split_first().map_or((true, &[][..]), |(new, spoken)| (*new, spoken));
        let waiting = std::mem::take(&mut self.waiting);
        for (place, one) in waiting.into_iter().enumerate() {
            match spoken.get(place) {
                Some(true) => daemon.receive(one.incoming, one.ticket),
                _ if one.since.elapsed() >= GREETING.to_std() => daemon.refused_silent(),
                _ => self.waiting.push(one),
            }
        }
        for _ in 0..if has_new { AT_ONCE } else { 0 } {
            let Some(incoming) = listener.accept_within(Duration::ZERO)? else { break };
            match daemon.ticket(&incoming) {
                Some(ticket) => self.waiting.push(Waiting { incoming, ticket, since: Instant::now() }),
                None => daemon.refused_silent(),
            }
        }
        // Those that were cut to make room.
        self.waiting.retain(|one| !one.ticket.is_cut());
        Ok(())
    }

    /// Whether there is something to read, first at the listener, then at each that waits.
    fn poll(&self, listener: &Listener, patience: Duration) -> Result<Vec<bool>, PeerError> {
        let all =
            std::iter::once(listener.as_fd()).chain(self.waiting.iter().map(|one| one.incoming.as_fd()));
        let mut set: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let milliseconds = u16::try_from(patience.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
        match poll(&mut set, PollTimeout::from(milliseconds)) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => {
                return Err(PeerError::System { what: "cannot wait for connections", error: error.into() });
            }
        }
        Ok(set.iter().map(|fd| fd.any().unwrap_or(false)).collect())
    }
}
