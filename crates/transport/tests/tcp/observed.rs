//! An end of a connection whose segments a test looks at.

use trunkline_core::{Address, Ecn, Time};
use trunkline_transport::tcp::TcpEndpoint;
use trunkline_transport::{
    Close, Conversation, Endpoint, Event, Features, Message, Received, SendError, Transmit,
};

/// Looks at the segments of an end.
pub(crate) trait Observer {
    /// A segment has arrived, and the end has not seen it yet.
    fn takes(&mut self, _segment: &[u8]) {}

    /// The end sends a segment.
    fn sends(&mut self, now: Time, transmit: &Transmit, segment: &[u8]);
}

/// An end with its observer.
pub(crate) struct Observed<O> {
    pub(crate) endpoint: TcpEndpoint,
    pub(crate) observer: O,
}

impl<O: Observer> Conversation for Observed<O> {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.endpoint.send(now, message)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        self.endpoint.receive(into)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    fn close(&mut self, now: Time, how: Close) {
        self.endpoint.close(now, how);
    }

    fn features(&self) -> &'static Features {
        self.endpoint.features()
    }
}

impl<O: Observer> Endpoint for Observed<O> {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.observer.takes(packet);
        self.endpoint.handle_packet(now, from, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, into)?;
        self.observer.sends(now, &transmit, into);
        Some(transmit)
    }

    fn next_timeout(&self) -> Option<Time> {
        self.endpoint.next_timeout()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.endpoint.counters(count);
    }
}
