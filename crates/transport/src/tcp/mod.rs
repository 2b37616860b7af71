//! TCP as hosts have it: RFC 9293 with what Linux adds and decides, and, by its options, what other systems have had.
//!
//! Packets are the segments themselves; the header of IPv4 counts in [`Transmit::size`]. The ports are those of the addresses.
//! Urgent data is delivered in line. The default options are Linux's.
//!
//! Where a behaviour is no standard's but Linux's, it was learned by reading about it, from measurements, and from its source;
//! the code here is our own.

mod config;
mod congestion;
mod counters;
mod ecn;
mod filter;
mod flow;
mod fuzz;
mod kind;
mod profile;
mod queue;
mod rate;
mod receive;
mod rtt;
mod scoreboard;
mod segment;
mod send;
mod stamps;
mod state;
mod telemetry;

use std::sync::Arc;

use trunkline_core::{Address, Bytes, Duration, Ecn as Codepoint, Seed, Time};

use crate::{
    Close, CloseReason, Conversation, Endpoint, Event, Features, Message, PendingEvents, Received, SendError,
    Transmit, features,
};
pub use config::{
    AckConfig, BufferConfig, CompressConfig, EcnConfig, Estimator, Hystart, KeepaliveConfig, MAX_BUFFER,
    MAX_MSS, Nagle, Pacing, Recovery, TcpConfig, TcpConfigError, TimeoutConfig, WindowUpdates,
};
pub use congestion::{ALGORITHMS, Algorithm, AlgorithmKind, UnknownAlgorithm};
use ecn::Ecn;
#[doc(hidden)]
pub use fuzz::fuzz_tcp;
pub use kind::{KIND, MULTIPATH, TcpOptions};
pub use profile::Profile;
use receive::{Pace, Receiver};
use segment::{Fault, Header, Options};
use send::{Piece, Sender, after as send_after};
use stamps::Stamps;
use state::State;
pub use telemetry::TcpFigures;

/// One end of a TCP connection.
///
/// `send` takes a message whole or answers [`SendError::Full`]: it is taken, however large, as long as less than the send
/// buffer waits here unsent or unacknowledged. A graceful close still delivers what was taken; [`Event::Closed`] comes when the
/// peer has acknowledged all of it. When the peer closes, [`Event::Closed`] comes after its last byte has been received; this
/// end may go on sending until it closes too.
pub struct TcpEndpoint {
    local: Address,
    /// The other end; a listening end has none until somebody connects.
    peer: Option<Address>,
    /// Whether it began by listening.
    is_passive: bool,
    config: Arc<TcpConfig>,
    seed: u64,
    state: State,
    sender: Sender,
    receiver: Receiver,
    ecn: Ecn,
    stamps: Stamps,
    /// A segment without data that leaves before all others: a reset, or an acknowledgement of what was before.
    reply: Option<(Address, Header)>,
    /// Whether both ends have offered window scaling, and the peer's shift.
    peer_scale: Option<u8>,
    /// When a challenge or an acknowledgement of an unacceptable segment was sent last.
    challenged_at: Option<Time>,
    /// When TIME-WAIT ends.
    linger: Option<Time>,
    /// When something came last, probes since then that were not answered, and when the next is due.
    heard_at: Time,
    keepalive_probes: u32,
    keepalive_at: Option<Time>,
    /// When memory of empty buffers is given back.
    release_at: Option<Time>,
    progress: Progress,
    pending: PendingEvents,
    counters: Counters,
    now: Time,
    next: Option<Time>,
}

/// How far the conversation has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// A message was refused, and nobody has been told that there is room again.
    refused: bool,
    closing: bool,
    ended: Option<CloseReason>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    segments_sent: u64,
    segments_received: u64,
    acknowledgements_sent: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
    paws_rejected: u64,
}

/// How long empty buffers keep their memory.
const RELEASE: Duration = Duration::from_secs(1);

impl TcpEndpoint {
    /// An end that connects to `peer`. Everything random (the initial sequence number, the clock of time stamps) comes from
    /// `seed`.
    ///
    /// # Errors
    /// If a port is 0, a value of `config` is out of its range, or two of them exclude each other.
    pub fn connect(
        local: Address,
        peer: Address,
        config: impl Into<Arc<TcpConfig>>,
        seed: u64,
    ) -> Result<TcpEndpoint, TcpConfigError> {
        let config = config.into();
        config.check_with(&[local.port, peer.port])?;
        Ok(TcpEndpoint::new(local, Some(peer), config, seed))
    }

    /// An end that waits for the first peer that connects to `local`.
    ///
    /// # Errors
    /// If the port is 0, a value of `config` is out of its range, or two of them exclude each other.
    pub fn listen(
        local: Address,
        config: impl Into<Arc<TcpConfig>>,
        seed: u64,
    ) -> Result<TcpEndpoint, TcpConfigError> {
        let config = config.into();
        config.check_with(&[local.port])?;
        Ok(TcpEndpoint::new(local, None, config, seed))
    }

    fn new(local: Address, peer: Option<Address>, config: Arc<TcpConfig>, seed: u64) -> TcpEndpoint {
        let random = Seed::new(seed, 0).stream("tcp").bits();
        TcpEndpoint {
            local,
            peer,
            is_passive: peer.is_none(),
            state: if peer.is_none() { State::Listen } else { State::SynSent },
            sender: Sender::new(&config, random as u32, &|| Seed::new(seed, 0).stream("tcp/congestion")),
            receiver: Receiver::new(&config),
            ecn: Ecn::new(&config),
            stamps: Stamps::new(config.timestamps, (random >> 32) as u32),
            config,
            seed,
            reply: None,
            peer_scale: None,
            challenged_at: None,
            linger: None,
            heard_at: Time::ZERO,
            keepalive_probes: 0,
            keepalive_at: None,
            release_at: None,
            progress: Progress::default(),
            pending: PendingEvents::default(),
            counters: Counters::default(),
            now: Time::ZERO,
            next: None,
        }
    }

    /// Why nothing more can be sent, if so.
    fn unsendable(&self) -> Option<CloseReason> {
        match (self.progress, self.state) {
            (Progress { closing: true, .. }, _) => Some(CloseReason::Local),
            (_, State::Established | State::CloseWait) => None,
            (Progress { ended: Some(reason), .. }, _) => Some(reason),
            _ => Some(CloseReason::NotConnected),
        }
    }

    /// What acknowledgements depend on.
    fn pace(&self) -> Pace {
        let rtt = &self.sender.flow.rtt;
        Pace { round_trip: rtt.smoothed().unwrap_or(Duration::ZERO), timeout: rtt.timeout() }
    }

    /// Computes when to be called next.
    fn schedule(&mut self) {
        let holds_memory = self.sender.holds_memory() || self.receiver.holds_memory();
        let is_idle = holds_memory && self.sender.is_idle();
        self.release_at = if is_idle { self.release_at.or(Some(self.now + RELEASE)) } else { None };
        let soon = self.now + Duration::from_nanos(1);
        let held = self.receiver.is_ack_held().then_some(soon);
        let is_closed = self.state == State::Closed;
        let acks = self.receiver.deadline().filter(|_| !is_closed);
        let keepalive = self.keepalive_at.filter(|_| !is_closed);
        let sending = self.sender.deadline().filter(|_| !is_closed);
        let all = [held, acks, sending, self.linger, keepalive, self.release_at];
        // All that was due has been done.
        self.next = all.into_iter().flatten().min().map(|at| at.max(soon));
    }

    /// The header of a segment with this piece of what is to be sent, or of an acknowledgement alone.
    fn header(&mut self, piece: Option<&Piece>) -> Header {
        let acknowledges = self.state != State::SynSent;
        let is = |flag: u16, value: bool| if value { flag } else { 0 };
        let piece_flags = piece.map_or(0, |piece| {
            is(segment::SYN, piece.syn) | is(segment::FIN, piece.fin) | is(segment::PSH, piece.push)
        });
        let sequence = match piece {
            Some(piece) => self.sender.sequence_of(piece.place),
            None => self.sender.acceptable_sequence(),
        };
        let mut header = Header {
            sequence,
            acknowledgement: if acknowledges { self.receiver.acknowledgement() } else { 0 },
            flags: is(segment::ACK, acknowledges) | piece_flags,
            window: 0,
            options: Options::default(),
        };
        match piece {
            Some(Piece { syn: true, is_new, .. }) => self.complete_syn(&mut header, *is_new),
            _ => self.complete(&mut header, piece.is_some_and(|piece| piece.is_new && piece.length > 0)),
        }
        header
    }

    /// Options, window and ECN's bits of a SYN.
    fn complete_syn(&mut self, header: &mut Header, is_new: bool) {
        let answers = header.has(segment::ACK);
        let (window, scale) = self.receiver.announce_first();
        header.window = window;
        let offers = |offered: bool, wanted: bool| if answers { offered } else { wanted };
        let options = &mut header.options;
        options.mss = Some(self.config.mss as u16);
        options.window_scale = offers(self.peer_scale.is_some(), self.config.window_scaling).then_some(scale);
        options.sack_permitted = offers(self.sender.agreed.sack, self.config.sack);
        options.timestamps = offers(self.sender.agreed.timestamps, self.config.timestamps)
            .then(|| self.stamps.write(self.now, answers));
        header.flags |= if answers { self.ecn.syn_ack_flags() } else { self.ecn.syn_flags(!is_new) };
    }

    /// Options, window and ECN's bits of any other segment.
    fn complete(&mut self, header: &mut Header, is_new_data: bool) {
        header.window = self.receiver.announce();
        let mut room = segment::MAX_OPTIONS;
        if self.sender.agreed.timestamps {
            header.options.timestamps = Some(self.stamps.write(self.now, true));
            room -= Options::TIMESTAMPS_LENGTH;
        }
        if self.sender.agreed.sack {
            let sacks = &mut header.options.sacks;
            self.receiver.take_blocks((room - 4) / 8, |from, to| sacks.push((from, to)));
        }
        header.flags |= self.ecn.flags();
        if is_new_data && self.ecn.says_reduced() && self.sender.take_reduction() {
            header.flags |= segment::CWR;
        }
        self.stamps.acknowledged(self.receiver.acknowledgement());
    }

    /// Writes the next segment; where it goes, its field of ECN and when it departs, or `None` if there is none to be sent now.
    fn write(&mut self, now: Time, into: &mut Vec<u8>) -> Option<(Address, Codepoint, Time)> {
        if let Some((to, header)) = self.reply.take() {
            header.write(self.local, to, [&[]; 2], into);
            return Some((to, Codepoint::NotCapable, Time::ZERO));
        }
        let peer = self.peer.filter(|_| self.state != State::Closed)?;
        let blocks = if self.sender.agreed.sack { self.receiver.block_count() } else { 0 };
        let most = (segment::MAX_OPTIONS - self.stamps.length() - 4) / 8;
        let piece = self.sender.poll(now, Options::sacks_length(blocks.min(most)), &self.config);
        let is_new = piece.is_some_and(|piece| piece.is_new && piece.length > 0);
        if let Some(piece) = &piece {
            let header = self.header(Some(piece));
            header.write(self.local, peer, self.sender.data_of(piece), into);
            if piece.length > 0 {
                self.receiver.data_sent(now);
            }
        } else if self.receiver.is_ack_due() {
            self.counters.acknowledgements_sent += 1;
            self.header(None).write(self.local, peer, [&[]; 2], into);
        } else {
            return None;
        }
        self.receiver.ack_sent();
        self.ecn.ack_sent();
        let departs = self.sender.depart(segment::IPV4_HEADER + into.len(), &self.config);
        let is_syn = piece.is_some_and(|piece| piece.syn);
        let field = if is_syn { Codepoint::NotCapable } else { self.ecn.field(is_new) };
        Some((peer, field, departs))
    }

    /// What of the connection is told over time.
    pub fn figures(&self) -> TcpFigures {
        TcpFigures::of(&self.sender)
    }
}

impl Conversation for TcpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.now = now;
        self.sender.flow.now = now;
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        if !self.sender.has_room() {
            self.progress.refused = true;
            self.sender.is_writer_waiting = true;
            return Err(SendError::Full);
        }
        self.sender.push(message.bytes, message.more, &self.config);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let length = self.receiver.read(self.now, into, &self.config);
        (length > 0).then_some(Received { length, ecn: Codepoint::NotCapable })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.pending.poll(self.receiver.readable() > 0)
    }

    fn close(&mut self, now: Time, how: Close) {
        self.now = now;
        self.sender.flow.now = now;
        let was_closing = core::mem::replace(&mut self.progress.closing, true);
        if how == Close::Graceful && was_closing {
            return;
        }
        self.progress.refused = false;
        self.pending.writable = false;
        match how {
            Close::Graceful => self.finish(),
            Close::Abort => self.abort(CloseReason::Local),
        }
    }

    fn features(&self) -> &'static Features {
        &features::TCP
    }
}

impl Endpoint for TcpEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Codepoint, packet: &[u8]) {
        self.now = now;
        match Header::read(from, self.local, packet) {
            Err(Fault::Malformed) => self.counters.malformed += 1,
            Err(Fault::Checksum) => self.counters.checksum_errors += 1,
            Err(Fault::Stray) => self.counters.strays += 1,
            Ok(_) if self.peer.is_some_and(|peer| peer != from) => self.counters.strays += 1,
            Ok((header, data)) => {
                self.counters.segments_received += 1;
                self.take(from, ecn, &header, data);
            }
        }
        self.sender.check_counts();
        self.settle();
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if self.linger.is_some_and(|at| at <= now) {
            self.linger = None;
            self.state = State::Closed;
        }
        if self.release_at.is_some_and(|at| at <= now) {
            self.release_at = None;
            self.sender.release();
            self.receiver.release();
        }
        let pace = self.pace();
        self.receiver.handle_timeout(now, pace);
        self.handle_send_timeout();
        self.handle_keepalive();
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        into.clear();
        let Some((to, ecn, earliest)) = self.write(now, into) else {
            self.sender.check_counts();
            self.schedule();
            return None;
        };
        self.counters.segments_sent += 1;
        let size = Bytes((segment::IPV4_HEADER + into.len()) as u64);
        Some(Transmit { to, ecn, size, earliest })
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next
    }

    fn tcp_figures(&self) -> Option<TcpFigures> {
        Some(self.figures())
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let (own, sender) = (&self.counters, &self.sender.counters);
        count("segments-sent", own.segments_sent);
        count("segments-received", own.segments_received);
        count("acknowledgements-sent", own.acknowledgements_sent);
        count("retransmissions", sender.repeated());
        count("retransmissions-fast", sender.fast);
        count("retransmissions-rack", sender.rack);
        count("retransmissions-tail-probe", sender.tlp);
        count("retransmissions-timeout", sender.timeout);
        count("retransmissions-spurious", sender.spurious);
        count("timeouts", sender.timeouts);
        count("timeouts-spurious", sender.spurious_timeouts);
        count("recoveries", sender.recoveries);
        count("reductions-undone", sender.undone);
        count("reductions-by-marks", sender.marks);
        count("window-probes", sender.window_probes);
        count("tail-probes", sender.tail_probes);
        count("duplicate-segments-received", self.receiver.duplicates);
        count("paws-rejected", own.paws_rejected);
        count("checksum-errors", own.checksum_errors);
        count("malformed", own.malformed);
        count("strays", own.strays);
    }
}
