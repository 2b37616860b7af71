//! RTP and RTCP (RFC 3550, RFC 3551) over UDP, both on one port (RFC 5761), between two ends: what telephones and studios
//! speak.
//!
//! - **Data.** A message is the payload of one packet. Sequence numbers count packets; timestamps count the samples of
//!   messages, and the time that passes in a pause, after which the marker bit stands (RFC 3551 section 4.1). What is
//!   lost is not repaired. Duplicates never reach the application; packets that have overtaken others are handed on as
//!   they come, for order is up to the playout buffer.
//! - **Reports.** Sender and receiver reports with the RFC's statistics, source descriptions with a canonical name, and
//!   BYE, at the RFC's intervals: 5 % of the session's bandwidth, randomised, reconsidered. They stop when neither end has
//!   sent data for about two reports, and begin again with it; the RFC would have them go on for ever, which a
//!   conversation of a measurement does not need.
//! - **Identifiers.** Random; when both ends have the same, each takes another and says BYE for the old one, and this
//!   end's own packets are known when they come back (section 8.2). A peer that begins anew with another identifier is
//!   heard once two of its packets have come in sequence, or at once if it had left.
//!
//! Nothing here slows down when the network is congested. [`RtpSession`] is the protocol alone, for sockets;
//! [`RtpEndpoint`] is the same behind [`Endpoint`], with UDP below.

mod config;
mod fuzz;
mod interval;
mod kind;
mod receiver;
mod rtcp;
mod sender;
mod session;
#[cfg(test)]
mod tests;

use trunkline_core::rtp as wire;
use trunkline_core::{Address, Ecn, Time};

use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::datagrams::Datagrams;
use crate::endpoint::{Endpoint, Transmit};
use crate::features;
use crate::udp::{self, UdpEndpoint};

pub use crate::udp::Encapsulation;
pub use config::{PayloadFormat, Reporting, RtpConfig, RtpConfigError};
pub use fuzz::fuzz_rtp;
pub use kind::KIND;
pub use receiver::Reception;
pub use rtcp::{
    Blocks, Chunks, ReportBlock, RtcpPacket, SenderInfo, decode_compound, encode_bye, encode_cname,
    encode_report,
};
pub use session::{Arrival, PeerReport, RtpSession};
pub use wire::{HEADER_LENGTH, RtpHeader, RtpPacket, is_rtcp};

/// The largest message in bytes: what UDP carries, without RTP's header.
pub const MAX_MESSAGE: usize = udp::MAX_MESSAGE - HEADER_LENGTH;

/// All headers of a packet in bytes: those of IPv4, UDP and RTP.
pub const HEADERS: usize = udp::IPV4_HEADER_LENGTH + udp::UDP_HEADER_LENGTH + HEADER_LENGTH;

/// One end of an RTP session over UDP between two addresses.
///
/// There is no connection: it can send at once, and [`Event::Connected`] never comes. A graceful close sends what was
/// taken, and BYE behind it; an abort sends nothing more, which RTP allows. The peer's BYE ends nothing here, as it may
/// come back: [`RtpSession::is_peer_there`] tells.
#[derive(Clone, Debug)]
pub struct RtpEndpoint {
    udp: UdpEndpoint,
    session: RtpSession,
    incoming: Datagrams,
    packet: Vec<u8>,
    readable: bool,
    closing: Option<Close>,
    receive_buffer_full: u64,
}

impl RtpEndpoint {
    /// An end at `local` that talks with `peer` and refuses others.
    ///
    /// # Errors
    /// An option out of its range.
    pub fn new(local: Address, peer: Address, config: RtpConfig) -> Result<RtpEndpoint, RtpConfigError> {
        Ok(RtpEndpoint {
            udp: UdpEndpoint::new(local, peer, config.udp),
            incoming: Datagrams::new(config.udp.receive_buffer),
            session: RtpSession::new(config)?,
            packet: Vec::new(),
            readable: false,
            closing: None,
            receive_buffer_full: 0,
        })
    }

    /// What it has measured.
    pub fn session(&self) -> &RtpSession {
        &self.session
    }
}

impl Conversation for RtpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        if self.closing.is_some() {
            return Err(SendError::Closed(CloseReason::Local));
        }
        if message.bytes.len() > MAX_MESSAGE {
            return Err(SendError::TooLarge { limit: MAX_MESSAGE });
        }
        let before = self.session.sender;
        self.packet.clear();
        self.session.sender.write(now, message.bytes, &mut self.packet);
        let sent = self.udp.send(now, Message::new(&self.packet));
        match sent {
            Ok(()) => self.session.has_sent(now),
            // As if the packet had never been written: its number belongs to the next.
            Err(_) => self.session.sender = before,
        }
        sent
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let (length, ecn) = self.incoming.pop(into)?;
        Some(Received { length, ecn })
    }

    fn poll_event(&mut self) -> Option<Event> {
        if core::mem::take(&mut self.readable) {
            return Some(Event::Readable);
        }
        match self.udp.poll_event() {
            Some(Event::Writable) if self.closing.is_some() => self.udp.poll_event(),
            event => event,
        }
    }

    fn close(&mut self, now: Time, how: Close) {
        match (how, self.closing) {
            (Close::Abort, _) => {
                self.session.leave();
                self.udp.close(now, Close::Abort);
            }
            // UDP is closed behind the BYE.
            (Close::Graceful, None) => self.session.leave(),
            (Close::Graceful, Some(_)) => return,
        }
        self.closing = Some(how);
    }

    fn features(&self) -> &'static Features {
        &features::RTP
    }
}

impl Endpoint for RtpEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        let datagram = match self.udp.check(from, packet) {
            Ok(datagram) => datagram,
            Err(counter) => {
                *counter += 1;
                return;
            }
        };
        if let Arrival::Data(RtpPacket { payload, .. }) = self.session.handle(now, datagram) {
            if self.incoming.has_room(payload.len()) {
                self.incoming.push(ecn, |bytes| bytes.extend_from_slice(payload));
                self.readable = true;
            } else {
                self.receive_buffer_full += 1;
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.session.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        let data = self.udp.poll_transmit(now, into);
        if data.is_some() || self.closing == Some(Close::Abort) {
            return data;
        }
        self.packet.clear();
        if self.session.poll_control(now, &mut self.packet) {
            // Nothing waits, so there is room.
            let taken = self.udp.send(now, Message::new(&self.packet));
            debug_assert_eq!(taken, Ok(()));
            return self.udp.poll_transmit(now, into);
        }
        if self.closing == Some(Close::Graceful) {
            self.udp.close(now, Close::Graceful);
        }
        None
    }

    fn next_timeout(&self) -> Option<Time> {
        self.session.next_timeout()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let here = &self.session.counters;
        self.udp.counters(&mut |name, value| {
            let more = match name {
                "malformed" => here.malformed,
                "strays" => here.strays,
                "receive-buffer-full" => self.receive_buffer_full,
                _ => 0,
            };
            count(name, value + more);
        });
        count("duplicates", here.duplicates);
        count("out-of-sequence", here.out_of_sequence);
        count("on-probation", here.on_probation);
        count("control-sent", here.control_sent);
        count("control-received", here.control_received);
        count("byes-received", here.byes_received);
        count("collisions", here.collisions);
        count("loops", here.loops);
        count("peers-lost", here.peers_lost);
    }
}
