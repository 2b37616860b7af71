//! UDP (RFC 768) and UDP-Lite (RFC 3828) as an endpoint: messages to datagrams and back.
//!
//! The bytes of a packet are the header and the payload. The checksum is real, over the pseudo-header of IPv4 with the
//! addresses of [`ipv4_of`](crate::ipv4_of), so that a flipped bit is found at the receiver, counted and dropped as it
//! would be by a kernel, unless UDP-Lite leaves it uncovered. There is no IP fragmentation in virtual time: a link drops
//! what exceeds its MTU and says so.

mod header;
mod kind;

use core::ops::Range;

use serde::{Deserialize, Serialize};
use trunkline_core::{Address, Bytes, Ecn, Time};

use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::datagrams::Datagrams;
use crate::endpoint::{Endpoint, Transmit};
use crate::features;

pub use header::{Fault, UDP_HEADER_LENGTH, Variant};
pub use kind::{KIND, LITE};

/// Length of the IPv4 header in front of every datagram, in bytes; it counts on the link and is not in the packet's
/// bytes.
pub const IPV4_HEADER_LENGTH: usize = 20;

/// The largest message in bytes: what is left of IPv4's 65,535 without both headers.
pub const MAX_MESSAGE: usize = 65_535 - IPV4_HEADER_LENGTH - UDP_HEADER_LENGTH;

/// How much a UDP endpoint holds, and how its datagrams are made. One datagram is always held, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// UDP or UDP-Lite.
    pub variant: Variant,
    /// Who makes their headers.
    pub encapsulation: Encapsulation,
    /// Bytes of datagrams that wait to be sent, their UDP headers included; beyond it `send` answers [`SendError::Full`].
    pub send_buffer: usize,
    /// Bytes of messages that wait to be received; beyond it they are dropped and counted as `receive-buffer-full`.
    pub receive_buffer: usize,
    /// The ECN field of what it sends (RFC 3168 section 5, RFC 9331 for ECT(1)). It does not slow down when marks come
    /// back: that is up to the application.
    pub ecn: Ecn,
}

/// Who makes the UDP headers of an endpoint that is UDP, or whose protocol travels in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encapsulation {
    /// The endpoint: its packets begin with one.
    #[default]
    Udp,
    /// Whoever sends and receives its packets adds, checks and removes them, as the kernel does for a socket.
    UdpPayload,
}

impl Default for UdpConfig {
    /// Not ECN-capable; 64 KiB to send, and to receive what Linux allows by default (`net.core.rmem_default`), 212,992 bytes.
    fn default() -> UdpConfig {
        UdpConfig {
            variant: Variant::Udp,
            encapsulation: Encapsulation::Udp,
            send_buffer: 64 << 10,
            receive_buffer: 212_992,
            ecn: Ecn::NotCapable,
        }
    }
}

/// One end of an exchange of datagrams between two addresses; its peer, reflecting or not, is another.
///
/// There is no connection: it can send at once, and [`Event::Connected`] never comes. It has no timers.
#[derive(Clone, Debug)]
pub struct UdpEndpoint {
    local: Address,
    /// To whom it sends.
    peer: Address,
    /// To whom what it receives was sent: itself, or a group.
    heard_at: Address,
    /// Whether it refuses all but its peer.
    one_peer: bool,
    variant: Variant,
    encapsulation: Encapsulation,
    outgoing: Datagrams,
    incoming: Datagrams,
    ecn: Ecn,
    refused: bool,
    pending: Pending,
    closed: bool,
    counters: Counters,
}

/// Events that have not been polled yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    readable: bool,
    writable: bool,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    sent: u64,
    received: u64,
    checksum_errors: u64,
    malformed: u64,
    covered_too_little: u64,
    strays: u64,
    receive_buffer_full: u64,
    after_close: u64,
}

impl UdpEndpoint {
    /// An endpoint at `local` that talks with `peer` and refuses others.
    pub fn new(local: Address, peer: Address, config: UdpConfig) -> UdpEndpoint {
        UdpEndpoint {
            local,
            peer,
            heard_at: local,
            one_peer: true,
            variant: config.variant,
            encapsulation: config.encapsulation,
            outgoing: Datagrams::new(config.send_buffer),
            incoming: Datagrams::new(config.receive_buffer),
            ecn: config.ecn,
            refused: false,
            pending: Pending::default(),
            closed: false,
            counters: Counters::default(),
        }
    }

    /// An endpoint at `local` that sends to all members of `group`, and hears each of them.
    pub fn to_group(local: Address, group: Address, config: UdpConfig) -> UdpEndpoint {
        UdpEndpoint { one_peer: false, ..UdpEndpoint::new(local, group, config) }
    }

    /// A member at `local` of `group`, which hears what `peer` sends there, and answers to `peer` alone.
    pub fn in_group(local: Address, group: Address, peer: Address, config: UdpConfig) -> UdpEndpoint {
        UdpEndpoint { heard_at: group, ..UdpEndpoint::new(local, peer, config) }
    }

    /// Checks a packet as RFC 768 and RFC 1122 section 4.1.3 ask for, and gives its payload or the counter of its fault.
    pub(crate) fn check<'p>(&mut self, from: Address, packet: &'p [u8]) -> Result<&'p [u8], &mut u64> {
        let opened = match self.encapsulation {
            Encapsulation::Udp => self.variant.read(from, self.heard_at, packet),
            Encapsulation::UdpPayload => Ok(packet),
        };
        let counters = &mut self.counters;
        let payload = match opened {
            Ok(payload) => payload,
            Err(Fault::Malformed) => return Err(&mut counters.malformed),
            Err(Fault::Checksum) => return Err(&mut counters.checksum_errors),
            Err(Fault::Coverage) => return Err(&mut counters.covered_too_little),
            Err(Fault::Stray) => return Err(&mut counters.strays),
        };
        if self.one_peer && from != self.peer {
            return Err(&mut counters.strays);
        }
        if self.closed {
            return Err(&mut counters.after_close);
        }
        if !self.incoming.has_room(payload.len()) {
            return Err(&mut counters.receive_buffer_full);
        }
        counters.received += 1;
        Ok(payload)
    }

    /// An error if this end is closed or the message is too large.
    #[inline(always)]
    fn check_message(&self, message: Message<'_>) -> Result<(), SendError> {
        if self.closed {
            return Err(SendError::Closed(CloseReason::Local));
        }
        if message.bytes.len() > MAX_MESSAGE {
            return Err(SendError::TooLarge { limit: MAX_MESSAGE });
        }
        Ok(())
    }

    /// Instructions for a packet of this length, which leaves now.
    #[inline(always)]
    fn transmit(&mut self, length: usize, ecn: Ecn) -> Transmit {
        let headers = IPV4_HEADER_LENGTH + UDP_HEADER_LENGTH - self.header_length();
        self.counters.sent += 1;
        Transmit { to: self.peer, ecn, size: Bytes((headers + length) as u64), earliest: Time::ZERO }
    }

    /// Bytes of the header that packets begin with.
    fn header_length(&self) -> usize {
        match self.encapsulation {
            Encapsulation::Udp => UDP_HEADER_LENGTH,
            Encapsulation::UdpPayload => 0,
        }
    }
}

/// Appends the datagram of a message to `bytes`, with a header of this length, if any.
#[inline(always)]
fn append(
    message: Message<'_>,
    header: usize,
    (local, peer, variant): (Address, Address, Variant),
    bytes: &mut Vec<u8>,
) {
    let start = bytes.len();
    bytes.resize(start + header, 0);
    bytes.extend_from_slice(message.bytes);
    if header > 0 {
        variant.write(local, peer, &mut bytes[start..]);
    }
}

impl Conversation for UdpEndpoint {
    fn send(&mut self, _now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.check_message(message)?;
        let header = self.header_length();
        if !self.outgoing.has_room(header + message.bytes.len()) {
            self.refused = true;
            return Err(SendError::Full);
        }
        let (local, peer, variant) = (self.local, self.peer, self.variant);
        self.outgoing.push(self.ecn, |bytes| append(message, header, (local, peer, variant), bytes));
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let (length, ecn) = self.incoming.pop(into)?;
        Some(Received { length, ecn })
    }

    fn poll_event(&mut self) -> Option<Event> {
        let Pending { readable, writable, closed } = &mut self.pending;
        if core::mem::take(readable) {
            Some(Event::Readable)
        } else if core::mem::take(writable) {
            Some(Event::Writable)
        } else if self.outgoing.is_empty() && core::mem::take(closed) {
            Some(Event::Closed(CloseReason::Local))
        } else {
            None
        }
    }

    fn close(&mut self, _now: Time, how: Close) {
        if how == Close::Abort {
            self.outgoing.clear();
        }
        if !self.closed {
            self.closed = true;
            self.pending.writable = false;
            self.pending.closed = true;
        }
    }

    fn features(&self) -> &'static Features {
        match self.variant {
            Variant::Udp => &features::UDP,
            Variant::Lite { coverage: None } => &features::UDP_LITE,
            Variant::Lite { coverage: Some(_) } => &features::UDP_LITE_PARTIAL,
        }
    }
}

impl Endpoint for UdpEndpoint {
    fn handle_packet(&mut self, _now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        match self.check(from, packet) {
            Ok(payload) => {
                self.incoming.push(ecn, |bytes| bytes.extend_from_slice(payload));
                self.pending.readable = true;
            }
            Err(counter) => *counter += 1,
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        into.clear();
        let (length, ecn) = self.outgoing.pop(into)?;
        self.pending.writable |= core::mem::take(&mut self.refused) && !self.closed;
        Some(self.transmit(length, ecn))
    }

    fn send_now(&mut self, message: Message<'_>, into: &mut Vec<u8>) -> Option<Result<Transmit, SendError>> {
        if !self.outgoing.is_empty() {
            return None;
        }
        into.clear();
        Some(self.check_message(message).map(|()| {
            append(message, self.header_length(), (self.local, self.peer, self.variant), into);
            self.transmit(into.len(), self.ecn)
        }))
    }

    fn receive_now(&mut self, from: Address, packet: &[u8]) -> Option<Option<Range<usize>>> {
        if !self.incoming.is_empty() {
            return None;
        }
        let length = match self.check(from, packet) {
            Ok(payload) => payload.len(),
            Err(counter) => {
                *counter += 1;
                return Some(None);
            }
        };
        Some(Some(packet.len() - length..packet.len()))
    }

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.sent);
        count("packets-received", self.counters.received);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        if let Variant::Lite { .. } = self.variant {
            count("covered-too-little", self.counters.covered_too_little);
        }
        count("strays", self.counters.strays);
        count("receive-buffer-full", self.counters.receive_buffer_full);
        count("after-close", self.counters.after_close);
    }
}

#[cfg(test)]
mod tests;
