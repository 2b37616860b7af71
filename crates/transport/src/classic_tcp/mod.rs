//! A TCP of the 1990s: RFC 793, with what RFC 1122 asks of hosts, the congestion control of RFC 2001 and the timer of Jacobson
//! and Karn; for experiments of that time, and for those that vary what a modern TCP leaves no choice about.
//!
//! Packets are the segments themselves; the header of IPv4 counts in [`Transmit::size`]. The ports are those of the addresses.
//! After a timeout the sender goes back to the first unacknowledged byte, as the BSD code did. There is no window scaling, no
//! selective acknowledgement, no timestamp and no urgent data; the congestion window outlives idleness; and timers are exact
//! where hosts of the time had ticks of up to half a second. An empty segment outside the window is not answered, as RFC 793
//! would have it: two ends that disagree would answer each other for ever.

mod config;
mod congestion;
mod connection;
mod fuzz;
mod receiver;
mod rto;
mod sender;
#[cfg(test)]
mod tests;
mod wire;

use trunkline_core::{Address, Bytes, Duration, Ecn, Seed, Time};

use crate::{
    Close, CloseReason, Conversation, Endpoint, Event, Features, Message, PendingEvents, Received, SendError,
    Transmit, features,
};
pub use config::{MAX_MSS, MAX_WINDOW, TcpConfig, TcpConfigError, TimerConfig};
use connection::State;
#[doc(hidden)]
pub use fuzz::fuzz_tcp;
use receiver::Receiver;
use sender::{Piece, Sender};
use wire::{Fault, Header};

/// One end of a classic TCP connection.
///
/// `send` takes a message whole or answers [`SendError::Full`]: it is taken, however large, as long as less than
/// [`TcpConfig::window`] waits here unsent or unacknowledged (as STREAMS does). A graceful close still delivers what was
/// taken; [`Event::Closed`] comes when the peer has acknowledged all of it. When the peer closes, [`Event::Closed`] comes
/// after its last byte has been received; this end may go on sending until it closes too.
pub struct TcpEndpoint {
    local: Address,
    /// Whom it talks with; a listening end has none until somebody connects.
    peer: Option<Address>,
    /// Whether it began by listening.
    is_passive: bool,
    config: TcpConfig,
    state: State,
    sender: Sender,
    receiver: Receiver,
    /// A segment that resets a connection: one input makes one at most.
    reset: Option<(Address, Header)>,
    /// Data has arrived and the application has not had its turn to read it. What is sent waits for that (a nanosecond at
    /// most): sent at once it would announce a window smaller by what is about to be read, and another segment the window.
    is_held: bool,
    /// There is room and the application has not had its turn to write. What is less than a segment and empties the buffer
    /// waits for that (a nanosecond at most): more may come to fill it.
    awaits_writer: bool,
    /// When TIME-WAIT ends.
    linger: Option<Time>,
    /// Since when something that needs an answer has had none.
    unanswered: Option<Time>,
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
}

impl TcpEndpoint {
    /// An end that connects to `peer`. All that it draws (the initial sequence number) comes from `seed`.
    ///
    /// # Errors
    /// If a port is 0 or a value of `config` out of its range.
    pub fn connect(
        local: Address,
        peer: Address,
        config: &TcpConfig,
        seed: u64,
    ) -> Result<TcpEndpoint, TcpConfigError> {
        config.check(&[local.port, peer.port])?;
        Ok(TcpEndpoint::new(local, Some(peer), config, seed))
    }

    /// An end that waits for the first peer who connects to `local`.
    ///
    /// # Errors
    /// If the port is 0 or a value of `config` out of its range.
    pub fn listen(local: Address, config: &TcpConfig, seed: u64) -> Result<TcpEndpoint, TcpConfigError> {
        config.check(&[local.port])?;
        Ok(TcpEndpoint::new(local, None, config, seed))
    }

    fn new(local: Address, peer: Option<Address>, config: &TcpConfig, seed: u64) -> TcpEndpoint {
        let initial = Seed::new(seed, 0).stream("tcp").bits() as u32;
        TcpEndpoint {
            local,
            peer,
            is_passive: peer.is_none(),
            config: config.clone(),
            state: if peer.is_none() { State::Listen } else { State::SynSent },
            sender: Sender::new(config, initial),
            receiver: Receiver::new(config),
            reset: None,
            is_held: false,
            awaits_writer: false,
            linger: None,
            unanswered: None,
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

    /// When the peer counts as gone.
    fn deadline(&self) -> Option<Time> {
        Some(self.unanswered? + self.config.timeout?)
    }

    /// Says when to be called next.
    fn schedule(&mut self) {
        let soon = self.now + Duration::from_nanos(1);
        let held = (self.is_held || self.awaits_writer).then_some(soon);
        let delayed = self.receiver.timer().filter(|_| self.state != State::Closed);
        let all = [held, delayed, self.sender.timer(), self.linger, self.deadline()];
        // All that was due has been done.
        self.next = all.into_iter().flatten().min().map(|at| at.max(soon));
    }

    /// The header of a segment with this piece of what is to be sent, or of an acknowledgement alone.
    fn header(&mut self, piece: Option<&Piece>) -> Header {
        let acknowledges = self.state != State::SynSent;
        let is = |flag: u8, value: bool| if value { flag } else { 0 };
        let (syn, fin, push) =
            piece.map_or((false, false, false), |piece| (piece.syn, piece.fin, piece.push));
        Header {
            sequence: piece.map_or(self.sender.sequence(), |piece| self.sender.sequence_of(piece)),
            acknowledgement: if acknowledges { self.receiver.acknowledgement() } else { 0 },
            flags: is(wire::ACK, acknowledges)
                | is(wire::SYN, syn)
                | is(wire::FIN, fin)
                | is(wire::PSH, push),
            window: self.receiver.announce(),
            // At most 65,495.
            mss: syn.then_some(self.config.mss as u16),
        }
    }

    /// Writes the next segment; where it goes, or `None` if there is none to be sent now.
    fn write(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Address> {
        if let Some((to, header)) = self.reset.take() {
            header.write(self.local, to, [&[]; 2], into);
            return Some(to);
        }
        let peer = self.peer.filter(|_| !self.is_held && self.state != State::Closed)?;
        if let Some(piece) = self.sender.poll(now, self.awaits_writer) {
            let header = self.header(Some(&piece));
            header.write(self.local, peer, self.sender.data_of(&piece), into);
            self.unanswered.get_or_insert(now);
        } else if self.receiver.is_due(now) {
            self.counters.acknowledgements_sent += 1;
            self.header(None).write(self.local, peer, [&[]; 2], into);
        } else {
            return None;
        }
        Some(peer)
    }
}

impl Conversation for TcpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.now = now;
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        if !self.sender.has_room() {
            self.progress.refused = true;
            return Err(SendError::Full);
        }
        (self.is_held, self.awaits_writer) = (false, false);
        self.sender.push(message.bytes);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let length = self.receiver.read(into);
        if length == 0 {
            return None;
        }
        self.is_held = false;
        self.receiver.update_window();
        Some(Received { length, ecn: Ecn::NotCapable })
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.pending.poll(self.receiver.readable() > 0);
        self.awaits_writer &= event != Some(Event::Writable);
        event
    }

    fn close(&mut self, now: Time, how: Close) {
        self.now = now;
        let was_closing = core::mem::replace(&mut self.progress.closing, true);
        if how == Close::Graceful && was_closing {
            return;
        }
        self.progress.refused = false;
        self.pending.writable = false;
        (self.is_held, self.awaits_writer) = (false, false);
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
    fn handle_packet(&mut self, now: Time, from: Address, _ecn: Ecn, packet: &[u8]) {
        self.now = now;
        match Header::verify(from, self.local, packet) {
            Err(Fault::Malformed) => self.counters.malformed += 1,
            Err(Fault::Checksum) => self.counters.checksum_errors += 1,
            Err(Fault::Stray) => self.counters.strays += 1,
            Ok(_) if self.peer.is_some_and(|peer| peer != from) => self.counters.strays += 1,
            Ok((header, data)) => {
                self.counters.segments_received += 1;
                self.take(from, &header, data);
            }
        }
        self.settle();
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        (self.is_held, self.awaits_writer) = (false, false);
        if self.linger.is_some_and(|at| at <= now) {
            self.linger = None;
            self.state = State::Closed;
        }
        if let (Some(deadline), Some(timeout)) = (self.deadline(), self.config.timeout)
            && deadline <= now
        {
            self.abort(CloseReason::TimedOut(timeout));
        }
        self.sender.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        into.clear();
        let Some(to) = self.write(now, into) else {
            self.schedule();
            return None;
        };
        self.counters.segments_sent += 1;
        let size = Bytes((wire::IPV4_HEADER + into.len()) as u64);
        Some(Transmit { to, ecn: Ecn::NotCapable, size, earliest: Time::ZERO })
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let (own, sender) = (&self.counters, &self.sender.counters);
        count("segments-sent", own.segments_sent);
        count("segments-received", own.segments_received);
        count("retransmitted-segments", sender.retransmitted);
        count("timeouts", sender.timeouts);
        count("fast-retransmits", sender.fast_retransmits);
        count("window-probes", sender.probes);
        count("duplicate-segments-received", self.receiver.duplicates);
        count("acknowledgements-sent", own.acknowledgements_sent);
        count("checksum-errors", own.checksum_errors);
        count("malformed", own.malformed);
        count("strays", own.strays);
    }
}
