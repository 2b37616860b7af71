//! DCCP, the Datagram Congestion Control Protocol (RFC 4340): connections that carry messages without repairing their
//! loss, at a rate that the network bears. The congestion control is agreed on when a connection is opened: CCID 2, a
//! window like TCP's (RFC 4341); CCID 3, a smooth rate (RFC 4342, RFC 5348); CCID 4, that rate for the small packets of
//! voice (RFC 5622).
//!
//! What congestion control does not let out waits in a send queue, and a message that waits too long or finds no room is
//! dropped there and counted ([`WhenFull`], [`DccpConfig::lifetime`]): a sender of voice wants its newest sample out, not
//! its oldest.
//!
//! Packets are DCCP's, directly over IP (protocol 33) or within UDP (RFC 6773); the addresses of [`ipv4_of`] fill the
//! checksum's pseudo-header. ECN is used as RFC 8311 left it: ECT(0) only, and no nonces. A connection has no half-open
//! state: when one end closes, neither can send any more. TIMEWAIT lasts as long as the driver keeps the endpoint.
//!
//! [`ipv4_of`]: crate::ipv4_of

mod acceptor;
mod ccid2;
mod config;
mod congestion;
mod feature;
mod feedback;
mod fuzz;
mod kind;
mod loss;
mod negotiation;
mod options;
mod queue;
mod receive;
mod receive_options;
mod received;
mod reset;
mod rtt;
mod sent;
mod seq;
mod sequences;
mod small_packets;
#[cfg(test)]
mod tests;
mod tfrc;
mod tfrc_receiver;
mod tfrc_sender;
mod timers;
mod transmit;
mod wire;

use trunkline_core::{Address, Duration, Ecn, Seed, Time};

pub use acceptor::DccpAcceptor;
pub use config::{Ccid, DccpConfig, DccpConfigError, Encapsulation, HEADERS, UnknownWord, WhenFull};
#[doc(hidden)]
pub use fuzz::fuzz_dccp;
pub use kind::KIND;
pub use options::{FeatureOption, Opt, Options};
pub use reset::{Reset, ResetCode};
pub use tfrc::throughput;
pub use wire::{Body, Fault, Header, IP_PROTOCOL, Packet, PseudoHeader, decode, encode};

use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::datagrams::Datagrams;
use crate::endpoint::{Endpoint, Transmit};
use crate::features;
use crate::pending::PendingEvents;
use congestion::{Receiver, Sender};
use negotiation::Negotiation;
use queue::{Joined, SendQueue};
use rtt::RoundTrip;
use sent::Sent;
use seq::Seq;
use sequences::Sequences;
use timers::Timers;

/// One end of a DCCP connection.
///
/// Messages arrive whole, once, in whatever order the network delivers them, or not at all. [`Event::Connected`] comes
/// when the handshake lets this end send; [`Event::Closed`] names how it ended, after everything that arrived has been
/// received. A graceful close first sends what waits, as congestion control lets it out.
#[derive(Clone, Debug)]
pub struct DccpEndpoint {
    local: Address,
    peer: Peer,
    config: DccpConfig,
    is_server: bool,
    state: State,
    /// The application has closed; what waits is still sent.
    closing: bool,
    /// A packet with a right Data Checksum has arrived.
    has_data_checksums: bool,
    ended: Option<CloseReason>,
    reset: Option<Reset>,
    sequences: Sequences,
    negotiation: Negotiation,
    arrived: received::Received,
    /// When the packet with the greatest number arrived, and the last valid one.
    greatest_at: Time,
    valid_at: Option<Time>,
    sent: Sent,
    rtt: RoundTrip,
    /// Packets up to this one give no sample of the round-trip time any more: one per round trip is enough.
    sampled: Seq,
    sender: Sender,
    receiver: Receiver,
    /// The congestion control of what is sent and of what is received.
    agreed: [Ccid; 2],
    /// The number of the last Response.
    responded: Seq,
    queue: SendQueue,
    incoming: Datagrams,
    outbox: Outbox,
    pending: PendingEvents,
    /// The length of a message that was refused, when nobody has been told that there is room again.
    refused: Option<usize>,
    timers: Timers,
    now: Time,
    counters: Counters,
}

/// Where the peer is.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Where packets go; the port is UDP's if a UDP socket carries them.
    address: Address,
    /// DCCP's port.
    port: u16,
}

/// The states of RFC 4340 section 4.3; CLOSED stands for TIMEWAIT too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Listen,
    Request,
    Respond,
    PartOpen,
    Open,
    CloseReq,
    Closing,
    Closed,
}

/// What is to be sent besides data.
#[derive(Clone, Debug, Default)]
struct Outbox {
    request: bool,
    response: bool,
    /// An acknowledgement of the peer's data, or of its Response.
    ack: bool,
    close: bool,
    /// Acknowledging this number.
    sync: Option<Seq>,
    /// Acknowledging this number.
    sync_ack: Option<Seq>,
    /// Ends the connection, acknowledging this number.
    reset: Option<(Seq, Reset)>,
    /// Answers a packet that belongs to no state of ours.
    refusal: Option<transmit::Refusal>,
    /// To be echoed: a timestamp, and when it came.
    timestamp: Option<(u32, Time)>,
    /// Init Cookie options that every packet of PARTOPEN repeats.
    cookies: Vec<u8>,
    /// Packets without data since the last with.
    without_data: u64,
    /// The peer has acknowledged something with state that it keeps until we acknowledge that.
    owes_ack_of_ack: bool,
    /// The peer reported that its application does not listen.
    nobody_listens: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    malformed: u64,
    checksum_errors: u64,
    strays: u64,
    sequence_invalid: u64,
    duplicates: u64,
    receive_buffer_full: u64,
    not_listening: u64,
    coverage_refused: u64,
    data_checksum_errors: u64,
    marks: u64,
    syncs_sent: u64,
    resets_sent: u64,
}

impl DccpEndpoint {
    /// An end that connects to `peer`. All that it draws (the initial sequence number) comes from `seed`.
    ///
    /// # Errors
    /// If a port is 0 or a value of `config` out of its range.
    pub fn connect(
        local: Address,
        peer: Address,
        config: &DccpConfig,
        seed: u64,
    ) -> Result<DccpEndpoint, DccpConfigError> {
        config.check(&[local.port, peer.port])?;
        let mut endpoint = DccpEndpoint::new(local, peer, config, seed, State::Request);
        endpoint.outbox.request = true;
        Ok(endpoint)
    }

    /// An end that waits for the first peer who connects to `local`. [`DccpAcceptor`] makes one for every peer.
    ///
    /// # Errors
    /// If the port is 0 or a value of `config` out of its range.
    pub fn listen(local: Address, config: &DccpConfig, seed: u64) -> Result<DccpEndpoint, DccpConfigError> {
        config.check(&[local.port])?;
        Ok(DccpEndpoint::new(local, Address::default(), config, seed, State::Listen))
    }

    fn new(local: Address, peer: Address, config: &DccpConfig, seed: u64, state: State) -> DccpEndpoint {
        let iss = Seq::new(Seed::new(seed, 0).stream("dccp/initial-sequence-number").bits());
        let is_server = state == State::Listen;
        DccpEndpoint {
            local,
            peer: Peer { address: peer, port: peer.port },
            is_server,
            state,
            closing: false,
            has_data_checksums: false,
            ended: None,
            reset: None,
            sequences: Sequences::new(iss),
            negotiation: Negotiation::new(config, is_server),
            arrived: received::Received::default(),
            greatest_at: Time::ZERO,
            valid_at: None,
            sent: Sent::new(iss),
            rtt: RoundTrip::default(),
            sampled: iss.minus(1),
            sender: Sender::new(Ccid::default(), config.max_message(), None),
            receiver: Receiver::new(Ccid::default(), None),
            agreed: [Ccid::default(); 2],
            responded: iss,
            queue: SendQueue::new(config.send_queue, config.when_full, config.lifetime),
            incoming: Datagrams::new(config.receive_buffer),
            outbox: Outbox::default(),
            pending: PendingEvents::default(),
            refused: None,
            timers: Timers::default(),
            now: Time::ZERO,
            counters: Counters::default(),
            config: config.clone(),
        }
    }

    /// The reset that ended the connection, from whichever end, with its code. The normal end is
    /// [`ResetCode::Closed`].
    pub fn reset(&self) -> Option<Reset> {
        self.reset
    }

    /// The congestion control of what this end sends, as agreed on.
    pub fn ccid(&self) -> Ccid {
        self.negotiation.ccid(negotiation::Place::Local)
    }

    /// The largest message that this conversation takes, in bytes.
    pub fn max_message(&self) -> usize {
        self.config.max_message()
    }

    /// The conversation is over. What was received can still be read.
    fn end(&mut self, reason: CloseReason) {
        self.queue.clear();
        self.pending.writable = false;
        self.refused = None;
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.pending.closed = Some(reason);
        }
    }

    /// Nothing more is exchanged, except for a reset that may wait in the outbox.
    fn shut(&mut self, reset: Reset, reason: CloseReason) {
        self.reset = self.reset.or(Some(reset));
        self.state = State::Closed;
        let waiting = self.outbox.reset.take();
        self.outbox = Outbox { reset: waiting, ..Outbox::default() };
        self.timers = Timers::default();
        self.end(reason);
    }

    /// Ends the connection with a reset of ours.
    fn abort(&mut self, reset: Reset, reason: CloseReason) {
        // As long as the peer's numbers are not known, it acknowledges 0 (RFC 4340 section 8.1.1).
        let ack = if self.valid_at.is_none() { Seq::default() } else { self.sequences.gsr };
        if self.state != State::Listen {
            self.outbox.reset = Some((ack, reset));
        }
        self.shut(reset, reason);
    }

    fn is_established(&self) -> bool {
        matches!(self.state, State::PartOpen | State::Open)
    }

    /// Tells an application that waits for room when there is some.
    fn notice_room(&mut self) {
        if let Some(length) = self.refused
            && self.queue.has_room(length)
        {
            self.refused = None;
            self.pending.writable = !self.closing && self.ended.is_none();
        }
    }
}

impl Conversation for DccpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.now = now;
        let limit = self.max_message();
        match self.ended {
            Some(reason) => return Err(SendError::Closed(reason)),
            None if self.closing => return Err(SendError::Closed(CloseReason::Local)),
            None if !self.is_established() => return Err(SendError::Closed(CloseReason::NotConnected)),
            None if self.outbox.nobody_listens => return Err(SendError::Closed(CloseReason::Peer)),
            None if message.bytes.len() > limit => return Err(SendError::TooLarge { limit }),
            None => {}
        }
        match self.queue.push(now, message.bytes) {
            Joined::Yes | Joined::Dropped => Ok(()),
            Joined::Refused => {
                self.refused = Some(message.bytes.len());
                Err(SendError::Full)
            }
        }
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let (length, ecn) = self.incoming.pop(into)?;
        Some(Received { length, ecn })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.pending.poll(!self.incoming.is_empty())
    }

    fn close(&mut self, now: Time, how: Close) {
        self.now = now;
        if self.ended.is_some() {
            return;
        }
        self.closing = true;
        self.pending.writable = false;
        if how == Close::Abort || self.state < State::PartOpen {
            self.abort(Reset::plain(ResetCode::Aborted), CloseReason::Local);
        }
    }

    fn features(&self) -> &'static Features {
        let is_partial = self.config.checksum_coverage != 0 && !self.config.data_checksum;
        if is_partial { &features::DCCP_PARTIAL } else { &features::DCCP }
    }
}

impl Endpoint for DccpEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.now = now;
        self.take_packet(from, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.do_what_is_due();
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        into.clear();
        let transmit = self.next_packet(into);
        self.notice_room();
        transmit
    }

    fn next_timeout(&self) -> Option<Time> {
        // What is due already is done by the next call, whichever it is.
        self.next_deadline().map(|at| at.max(self.now + Duration::from_nanos(1)))
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let counters = &self.counters;
        count("packets-sent", counters.packets_sent);
        count("packets-received", counters.packets_received);
        count("dropped-newest", self.queue.dropped.newest);
        count("dropped-oldest", self.queue.dropped.oldest);
        count("expired", self.queue.dropped.expired);
        count("unsent", self.queue.dropped.unsent);
        count("malformed", counters.malformed);
        count("checksum-errors", counters.checksum_errors);
        count("strays", counters.strays);
        count("sequence-invalid", counters.sequence_invalid);
        count("duplicates", counters.duplicates);
        count("receive-buffer-full", counters.receive_buffer_full);
        count("not-listening", counters.not_listening);
        count("coverage-refused", counters.coverage_refused);
        count("data-checksum-errors", counters.data_checksum_errors);
        count("congestion-marks", counters.marks);
        count("syncs-sent", counters.syncs_sent);
        count("resets-sent", counters.resets_sent);
    }
}
