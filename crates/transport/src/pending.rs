//! Events that an endpoint has not been asked for yet.

use crate::conversation::{CloseReason, Event};

/// What [`poll_event`](crate::Conversation::poll_event) still has to say, each event once and in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingEvents {
    /// Both ends agreed to talk.
    pub connected: bool,
    /// There is something to receive.
    pub readable: bool,
    /// There is room again.
    pub writable: bool,
    /// The conversation is over, or the peer sends nothing more.
    pub closed: Option<CloseReason>,
}

impl PendingEvents {
    /// The next event. `unread`: something waits to be received, which must be before the peer's end is told.
    pub fn poll(&mut self, unread: bool) -> Option<Event> {
        if core::mem::take(&mut self.connected) {
            Some(Event::Connected)
        } else if core::mem::take(&mut self.readable) {
            Some(Event::Readable)
        } else if core::mem::take(&mut self.writable) {
            Some(Event::Writable)
        } else if unread && self.closed == Some(CloseReason::Peer) {
            None
        } else {
            self.closed.take().map(Event::Closed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_comes_once_and_the_peers_end_after_what_it_sent() {
        let closed = Some(CloseReason::Peer);
        let mut pending = PendingEvents { connected: true, readable: true, writable: true, closed };
        assert_eq!(pending.poll(true), Some(Event::Connected));
        assert_eq!(pending.poll(true), Some(Event::Readable));
        assert_eq!(pending.poll(true), Some(Event::Writable));
        assert_eq!(pending.poll(true), None);
        assert_eq!(pending.poll(false), Some(Event::Closed(CloseReason::Peer)));
        assert_eq!(pending.poll(false), None);
    }
}
