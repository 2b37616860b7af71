//! The lower half: a protocol engine that a driver runs, in any time.

use core::ops::Range;

use trunkline_core::{Address, Bytes, Ecn, Time};

use crate::conversation::{Close, Conversation, Event, Features, Message, Received, SendError};
use crate::tcp::TcpFigures;

/// A protocol engine: given packets and the time, it says what to send and when to be called.
pub trait Endpoint: Conversation {
    /// Takes a packet that arrived. A bad packet is counted by cause inside and is never an error of the driver.
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]);

    /// Does what is due at `now`. Calling later than asked for is legal.
    fn handle_timeout(&mut self, now: Time);

    /// Writes the next packet to send into `into` (which it clears first), or returns `None` when there is none.
    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit>;

    /// Sends a message that leaves at once, as one packet, which is written into `into` (cleared first): the same as `send` and
    /// then `poll_transmit`, without a copy in between. `None`, and nothing is done, from an engine that does not send so,
    /// or not now.
    ///
    /// # Errors
    /// As [`Conversation::send`].
    fn send_now(
        &mut self,
        _message: Message<'_>,
        _into: &mut Vec<u8>,
    ) -> Option<Result<Transmit, SendError>> {
        None
    }

    /// Takes a packet that is one message for an application that reads it at once, and returns where in the packet it
    /// is, or that there is none: the same as `handle_packet` and then `receive`, without a copy in between. `None`, and
    /// nothing is done, from an engine that does not receive so, or not now.
    fn receive_now(&mut self, _from: Address, _packet: &[u8]) -> Option<Option<Range<usize>>> {
        None
    }

    /// When `handle_timeout` wants to be called: later than the last input, or `None`.
    fn next_timeout(&self) -> Option<Time>;

    /// How many bytes at the beginning of every packet stand for a service of the network below it, and so have no part
    /// in [`Transmit::size`].
    fn carrier_header(&self) -> usize {
        0
    }

    /// Counters of the engine by name (retransmissions, checksum errors ...), for the report.
    fn counters(&self, count: &mut dyn FnMut(&'static str, u64));

    /// Returns the state of a TCP connection; `None` for other engines.
    fn tcp_figures(&self) -> Option<TcpFigures> {
        None
    }
}

/// What to do with the packet that [`Endpoint::poll_transmit`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: Address,
    /// The ECN field to send.
    pub ecn: Ecn,
    /// Bytes at the network layer, with the network header that the written bytes lack.
    pub size: Bytes,
    /// Not before this time (pacing); [`Time::ZERO`] for at once.
    pub earliest: Time,
}

/// Passive open: what to do with a packet that belongs to no conversation.
pub trait Acceptor {
    /// Decides on a packet; a stateless reply is written into `reply`.
    fn accept(&mut self, now: Time, from: Address, packet: &[u8], reply: &mut Vec<u8>) -> Accept;
}

/// The answer of [`Acceptor::accept`].
pub enum Accept {
    /// A new conversation, which has already taken the packet.
    New(Box<dyn Endpoint>),
    /// Send the reply; no state was made.
    Reply(Transmit),
    /// Nothing to do.
    Ignore,
}

/// Drains every packet an endpoint wants to send: the one loop that all drivers share. `send` is given each packet and
/// the buffer it stands in; it may swap the buffer for an empty one to keep the bytes without a copy.
pub fn drain<E: Endpoint + ?Sized>(
    endpoint: &mut E,
    now: Time,
    buffer: &mut Vec<u8>,
    mut send: impl FnMut(Transmit, &mut Vec<u8>),
) {
    while let Some(transmit) = endpoint.poll_transmit(now, buffer) {
        send(transmit, buffer);
    }
}

impl<E: Endpoint + ?Sized> Conversation for Box<E> {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        (**self).send(now, message)
    }
    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        (**self).receive(into)
    }
    fn poll_event(&mut self) -> Option<Event> {
        (**self).poll_event()
    }
    fn close(&mut self, now: Time, how: Close) {
        (**self).close(now, how);
    }
    fn features(&self) -> &'static Features {
        (**self).features()
    }
}

impl<E: Endpoint + ?Sized> Endpoint for Box<E> {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        (**self).handle_packet(now, from, ecn, packet);
    }
    fn handle_timeout(&mut self, now: Time) {
        (**self).handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        (**self).poll_transmit(now, into)
    }
    fn send_now(&mut self, message: Message<'_>, into: &mut Vec<u8>) -> Option<Result<Transmit, SendError>> {
        (**self).send_now(message, into)
    }
    fn receive_now(&mut self, from: Address, packet: &[u8]) -> Option<Option<Range<usize>>> {
        (**self).receive_now(from, packet)
    }
    fn next_timeout(&self) -> Option<Time> {
        (**self).next_timeout()
    }
    fn carrier_header(&self) -> usize {
        (**self).carrier_header()
    }
    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        (**self).counters(count);
    }
    fn tcp_figures(&self) -> Option<TcpFigures> {
        (**self).tcp_figures()
    }
}
