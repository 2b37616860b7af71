//! UDP (RFC 768) as an endpoint: messages to datagrams and back.
//!
//! The bytes of a packet are the UDP header and the payload. The checksum is real, over the pseudo-header of RFC 768
//! with the addresses of [`ipv4_of`], so that a flipped bit is found at the receiver, counted and dropped as it would
//! be by a kernel. There is no IP fragmentation in virtual time: a link drops what exceeds its MTU and says so.

use serde::{Deserialize, Serialize};
use trunkline_core::{Address, Bytes, Ecn, Time};

use crate::addressing::ipv4_of;
use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::datagrams::Datagrams;
use crate::endpoint::{Endpoint, Transmit};
use crate::features;

/// Length of the UDP header in bytes.
pub const UDP_HEADER_LENGTH: usize = 8;

/// Length of the IPv4 header in front of every datagram, in bytes; it counts on the link and is not in the packet's
/// bytes.
pub const IPV4_HEADER_LENGTH: usize = 20;

/// The largest message in bytes: what is left of IPv4's 65,535 without both headers.
pub const MAX_MESSAGE: usize = 65_535 - IPV4_HEADER_LENGTH - UDP_HEADER_LENGTH;

/// How much a UDP endpoint holds, and how its datagrams are marked. One datagram is always held, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Bytes of datagrams that wait to be sent, headers included; beyond it `send` answers [`SendError::Full`].
    pub send_buffer: usize,
    /// Bytes of messages that wait to be received; beyond it they are dropped and counted as `receive-buffer-full`.
    pub receive_buffer: usize,
    /// The ECN field of what it sends (RFC 3168 section 5, RFC 9331 for ECT(1)). It does not slow down when marks come
    /// back: that is up to the application.
    pub ecn: Ecn,
}

/// Who makes the UDP headers of an endpoint whose protocol travels in UDP.
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
        UdpConfig { send_buffer: 64 << 10, receive_buffer: 212_992, ecn: Ecn::NotCapable }
    }
}

/// One end of an exchange of datagrams between two addresses; its peer, reflecting or not, is another.
///
/// There is no connection: it can send at once, and [`Event::Connected`] never comes. It has no timers.
#[derive(Clone, Debug)]
pub struct UdpEndpoint {
    local: Address,
    peer: Address,
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
            outgoing: Datagrams::new(config.send_buffer),
            incoming: Datagrams::new(config.receive_buffer),
            ecn: config.ecn,
            refused: false,
            pending: Pending::default(),
            closed: false,
            counters: Counters::default(),
        }
    }

    /// Checks a packet as RFC 768 and RFC 1122 section 4.1.3 ask for, and gives its payload or the counter of its fault.
    pub(crate) fn check<'p>(&mut self, from: Address, packet: &'p [u8]) -> Result<&'p [u8], &mut u64> {
        let counters = &mut self.counters;
        let Some((header, payload)) = packet.split_first_chunk::<UDP_HEADER_LENGTH>() else {
            return Err(&mut counters.malformed);
        };
        let [source, destination, length, checksum] =
            [0, 2, 4, 6].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        if usize::from(length) != packet.len() {
            return Err(&mut counters.malformed);
        }
        // Zero means "none was computed". Our peers always compute it, so here zero is damage.
        if checksum == 0 || sum(from, self.local, packet) != u16::MAX {
            return Err(&mut counters.checksum_errors);
        }
        if from != self.peer || source != self.peer.port || destination != self.local.port {
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
}

impl Conversation for UdpEndpoint {
    fn send(&mut self, _now: Time, message: Message<'_>) -> Result<(), SendError> {
        if self.closed {
            return Err(SendError::Closed(CloseReason::Local));
        }
        if message.bytes.len() > MAX_MESSAGE {
            return Err(SendError::TooLarge { limit: MAX_MESSAGE });
        }
        let length = UDP_HEADER_LENGTH + message.bytes.len();
        if !self.outgoing.has_room(length) {
            self.refused = true;
            return Err(SendError::Full);
        }
        let (local, peer) = (self.local, self.peer);
        self.outgoing.push(self.ecn, |bytes| {
            let start = bytes.len();
            bytes.extend_from_slice(&local.port.to_be_bytes());
            bytes.extend_from_slice(&peer.port.to_be_bytes());
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
            bytes.extend_from_slice(&[0, 0]);
            bytes.extend_from_slice(message.bytes);
            // RFC 768: a checksum that comes out as zero is sent as all ones.
            let checksum = match !sum(local, peer, &bytes[start..]) {
                0 => u16::MAX,
                checksum => checksum,
            };
            bytes[start + 6..start + UDP_HEADER_LENGTH].copy_from_slice(&checksum.to_be_bytes());
        });
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
        &features::UDP
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
        self.counters.sent += 1;
        self.pending.writable |= core::mem::take(&mut self.refused) && !self.closed;
        Some(Transmit {
            to: self.peer,
            ecn,
            size: Bytes((IPV4_HEADER_LENGTH + length) as u64),
            earliest: Time::ZERO,
        })
    }

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.sent);
        count("packets-received", self.counters.received);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
        count("receive-buffer-full", self.counters.receive_buffer_full);
        count("after-close", self.counters.after_close);
    }
}

/// The ones' complement sum of the pseudo-header and the datagram (RFC 768, RFC 1071); all ones if the datagram holds
/// its right checksum.
pub fn sum(from: Address, to: Address, datagram: &[u8]) -> u16 {
    const UDP: u64 = 17;
    let [source, destination] =
        [from, to].map(|address| u64::from(u32::from_be_bytes(ipv4_of(address.host))));
    let mut sum = source + destination + UDP + datagram.len() as u64;
    // Ones' complement sums of 32-bit words fold into those of 16-bit words, and 2^32 words overflow no u64.
    let mut words = datagram.chunks_exact(4);
    for word in &mut words {
        sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u64::from(u32::from_be_bytes(last));
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;
