//! URP, the Universal Receiver Protocol of Datakit (A. G. Fraser and W. T. Marshall, "Data Transport in a Byte Stream
//! Network", IEEE JSAC 7(7), 1989), in block mode, as Hawley 1989 measured it over a T1 trunk (section 1.1).
//!
//! - **Blocks.** What is sent is cut into blocks of at most [`UrpConfig::block`] bytes; the end of a message ends a block
//!   too. A trailer of four envelopes follows: BOT, or BOTM if the message goes on, two bytes of length, and SEQ(i) with
//!   the block's number modulo eight.
//! - **Window.** At most [`UrpConfig::window`] blocks are under way; the sender chooses it by itself. Nothing reacts to
//!   congestion.
//! - **Receiver.** A block with the right number and length is handed on and answered by ECHO(i), which opens the window;
//!   when the application does not read, ECHOs are withheld. If something is missing, REJ(i) names the last good block,
//!   once until the sender has recovered, and all that does not fit is thrown away.
//! - **Recovery.** On REJ the sender goes back to the block after i. If nothing has moved for [`UrpConfig::timeout`], it
//!   asks by ENQ; the receiver answers with its last ECHO and with ACK(i), the last good block, and the sender goes back
//!   if a block is missing that was sent before the question.
//! - **Pieces.** Data leave as soon as they are there: a piece of a message ([`Message::piece`]) is a packet of data
//!   envelopes, and the trailer rides on the packet that completes the block. A packet holds data of one block only.
//! - **Opening and closing.** INIT1, answered by AINIT, opens the circuit in both directions. A block of no bytes ends one
//!   direction, as a message of no bytes does in Version 9 and Plan 9; an empty message therefore sends nothing.
//!   [`Close::Abort`] tears the circuit down, of which the network tells the other end.
//!
//! On a link a data envelope counts one byte and a control envelope two, as a trunk stuffs it: a block of B bytes counts
//! B + 6, an answer 2. There is no network header.
//!
//! # What the circuit does
//!
//! URP was made for virtual circuits, which lose but never reorder or duplicate, and whose trunks discard damaged frames
//! by their CRC. It depends on that: three bits of sequence cannot tell a late packet from a new one, and a length is no
//! check. Links of an experiment may do all of it. So every packet has a header here that stands for the circuit's
//! services and counts on no link: a CRC-32, by which damaged packets are discarded, and a number, by which those are
//! discarded that come twice or too late. Over a circuit of that kind a window of up to seven blocks is safe (see
//! the types `Sender` and `Receiver`).
//!
//! The number also shows the receiver that something was lost, and it uses that in two places where URP as published does
//! not: a block that had begun before the loss is forgotten, since what follows might make up its length; and blocks
//! that do not fit are rejected only after a loss, since rejecting mere duplicates would keep a busy sender going back
//! for ever.

mod config;
mod fuzz;
mod kind;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod wire;

use trunkline_core::{Address, Bytes, Ecn, Time};

use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::endpoint::{Endpoint, Transmit};
use crate::{features, framing};

pub use config::{BLOCK, UrpConfig, UrpConfigError, WINDOW};
pub use fuzz::fuzz_urp;
pub use kind::KIND;
use receiver::Receiver;
use sender::{Outgoing, Sender};
pub use wire::TRAILER_LENGTH;
use wire::{Body, CONTROL_LENGTH, Control, Fault, Packet};

/// The largest message that is handed over at once: what one measured message may have.
pub const MAX_MESSAGE: usize = framing::HEADER_LENGTH + framing::MAX_PAYLOAD;

/// One end of a URP conversation: a reliable byte stream in both directions.
///
/// `send` takes a message whole or answers [`SendError::Full`]: what [`UrpConfig::send_buffer`] says waits here for being
/// sent and acknowledged, and a larger message is taken when nothing waits to be sent. A graceful close still delivers what was taken;
/// [`Event::Closed`] comes when the peer has acknowledged all of it. When the peer closes, [`Event::Closed`] comes after
/// its last byte has been received; this end may go on sending until it closes too.
#[derive(Debug)]
pub struct UrpEndpoint {
    local: Address,
    peer: Address,
    config: UrpConfig,
    phase: Phase,
    sender: Sender,
    receiver: Receiver,
    /// The number of the last packet sent.
    sent: u64,
    /// The number of the last packet received in its order.
    received: u64,
    due: Due,
    /// When the peer will be asked for its state.
    deadline: Option<Time>,
    /// Since when the peer owes an answer.
    unanswered_since: Time,
    /// The length of the last message that was refused for want of room.
    refused: Option<usize>,
    closing: bool,
    news: News,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Listening,
    Open,
    Over(CloseReason),
}

/// Control envelopes to be sent, besides the receiver's.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    hang_up: bool,
    initialise: bool,
    initialised: bool,
    enquire: bool,
}

/// What the application has not been told yet, and whether it knows of the end.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    connected: bool,
    readable: bool,
    end_told: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    blocks_sent: u64,
    retransmissions: u64,
    rejects_received: u64,
    timeouts: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
    late: u64,
    unexpected: u64,
}

impl UrpEndpoint {
    /// An end at `local` that opens a conversation with `peer`.
    ///
    /// # Errors
    /// An option out of its range.
    pub fn connect(local: Address, peer: Address, config: UrpConfig) -> Result<UrpEndpoint, UrpConfigError> {
        let mut endpoint = UrpEndpoint::new(local, peer, config, Phase::Connecting)?;
        endpoint.due.initialise = true;
        Ok(endpoint)
    }

    /// An end at `local` that waits for `peer` to open the conversation.
    ///
    /// # Errors
    /// An option out of its range.
    pub fn listen(local: Address, peer: Address, config: UrpConfig) -> Result<UrpEndpoint, UrpConfigError> {
        UrpEndpoint::new(local, peer, config, Phase::Listening)
    }

    fn new(
        local: Address,
        peer: Address,
        config: UrpConfig,
        phase: Phase,
    ) -> Result<UrpEndpoint, UrpConfigError> {
        config.check()?;
        Ok(UrpEndpoint {
            local,
            peer,
            config,
            phase,
            sender: Sender::new(&config),
            receiver: Receiver::new(),
            sent: 0,
            received: 0,
            due: Due::default(),
            deadline: None,
            unanswered_since: Time::ZERO,
            refused: None,
            closing: false,
            news: News::default(),
            counters: Counters::default(),
        })
    }

    /// Where this end is.
    pub fn local(&self) -> Address {
        self.local
    }

    /// Does what the circuit does: discards what is damaged, comes twice or too late, and notices what is missing.
    fn pass<'p>(&mut self, from: Address, packet: &'p [u8]) -> Option<Body<'p>> {
        if from != self.peer {
            self.counters.strays += 1;
            return None;
        }
        match Packet::decode(packet) {
            Err(Fault::Malformed) => self.counters.malformed += 1,
            Err(Fault::Checksum) => self.counters.checksum_errors += 1,
            Ok(Packet { number, .. }) if number <= self.received => self.counters.late += 1,
            Ok(Packet { number, body }) => {
                if number != self.received + 1 {
                    self.receiver.lost();
                }
                self.received = number;
                return Some(body);
            }
        }
        None
    }

    fn handle_open(&mut self, now: Time, ecn: Ecn, body: Body<'_>) {
        self.unanswered_since = now;
        let answered = match body {
            Body::HangUp => return self.end(CloseReason::Reset),
            Body::Data { pieces: [data, _], trailer } => {
                self.news.readable |= self.receiver.data(ecn, data, trailer);
                return;
            }
            Body::Control(Control::Enquire) => return self.receiver.enquired(),
            // Our answer was lost.
            Body::Control(Control::Initialise) => {
                self.due.initialised = true;
                return;
            }
            Body::Control(Control::Initialised) => return,
            Body::Control(Control::Echo(last)) => self.sender.echoed(last),
            Body::Control(Control::Acknowledge(last)) => self.sender.state(last),
            Body::Control(Control::Reject(last)) => {
                self.counters.rejects_received += 1;
                self.sender.rejected(last)
            }
        };
        if answered {
            self.deadline = self.sender.is_waiting().then_some(now + self.config.timeout);
        } else {
            self.counters.unexpected += 1;
        }
    }

    fn open(&mut self) {
        self.phase = Phase::Open;
        self.news.connected = true;
        self.deadline = None;
    }

    /// Ends the conversation at once.
    fn end(&mut self, reason: CloseReason) {
        self.phase = Phase::Over(reason);
        self.sender = Sender::new(&self.config);
        self.due = Due::default();
        self.deadline = None;
    }

    /// Waits for an answer from now on.
    fn expect_answer(&mut self, now: Time) {
        if self.deadline.is_none() {
            self.unanswered_since = now;
        }
        self.deadline = Some(now + self.config.timeout);
    }

    fn write(&mut self, body: Body<'_>, into: &mut Vec<u8>, size: usize) -> Transmit {
        self.sent += 1;
        Packet { number: self.sent, body }.encode(into);
        self.transmit(size)
    }

    fn transmit(&self, size: usize) -> Transmit {
        Transmit { to: self.peer, ecn: Ecn::NotCapable, size: Bytes(size as u64), earliest: Time::ZERO }
    }

    /// The next control envelope that is to be sent before any data.
    fn next_control(&mut self, now: Time) -> Option<Control> {
        if core::mem::take(&mut self.due.initialised) {
            return Some(Control::Initialised);
        }
        if core::mem::take(&mut self.due.initialise) {
            self.expect_answer(now);
            return Some(Control::Initialise);
        }
        if let Some(answer) = self.receiver.poll() {
            return Some(answer);
        }
        if core::mem::take(&mut self.due.enquire) {
            self.sender.asks();
            self.expect_answer(now);
            return Some(Control::Enquire);
        }
        None
    }
}

impl Conversation for UrpEndpoint {
    fn send(&mut self, _now: Time, message: Message<'_>) -> Result<(), SendError> {
        match self.phase {
            Phase::Connecting | Phase::Listening => {
                return Err(SendError::Closed(CloseReason::NotConnected));
            }
            Phase::Over(reason) => return Err(SendError::Closed(reason)),
            Phase::Open if self.closing => return Err(SendError::Closed(CloseReason::Local)),
            Phase::Open => {}
        }
        let length = message.bytes.len();
        if length > MAX_MESSAGE {
            return Err(SendError::TooLarge { limit: MAX_MESSAGE });
        }
        if !self.sender.has_room(length) {
            self.refused = Some(length);
            return Err(SendError::Full);
        }
        self.sender.push(message.bytes, message.more);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let (length, ecn) = self.receiver.read(into)?;
        Some(Received { length, ecn })
    }

    fn poll_event(&mut self) -> Option<Event> {
        let news = &mut self.news;
        if core::mem::take(&mut news.connected) {
            return Some(Event::Connected);
        }
        if core::mem::take(&mut news.readable) && !self.receiver.is_finished() {
            return Some(Event::Readable);
        }
        let open = self.phase == Phase::Open && !self.closing;
        if open && self.refused.is_some_and(|length| self.sender.has_room(length)) {
            self.refused = None;
            return Some(Event::Writable);
        }
        let reason = match self.phase {
            Phase::Over(reason) => reason,
            Phase::Open if self.closing && self.sender.is_finished() => CloseReason::Local,
            Phase::Open if !self.closing && self.receiver.is_finished() => CloseReason::Peer,
            _ => return None,
        };
        (!core::mem::replace(&mut news.end_told, true)).then_some(Event::Closed(reason))
    }

    fn close(&mut self, _now: Time, how: Close) {
        match (self.phase, how) {
            (Phase::Over(_), _) => {}
            (Phase::Open, Close::Graceful) => {
                self.closing = true;
                self.sender.finish();
            }
            (phase, _) => {
                self.end(CloseReason::Local);
                self.receiver.clear();
                // Nobody listens to one who has only listened.
                self.due.hang_up = phase != Phase::Listening;
            }
        }
    }

    fn features(&self) -> &'static Features {
        &features::URP
    }
}

impl Endpoint for UrpEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        let Some(body) = self.pass(from, packet) else { return };
        match (self.phase, body) {
            (Phase::Open, body) => self.handle_open(now, ecn, body),
            // The peer has hung up, too, or has heard so already.
            (Phase::Over(_), Body::HangUp) | (Phase::Over(CloseReason::Reset), _) => {}
            (Phase::Over(_), _) => self.due.hang_up = true,
            (_, Body::HangUp) => self.end(CloseReason::Reset),
            (Phase::Connecting, Body::Control(Control::Initialised)) => self.open(),
            (_, Body::Control(Control::Initialise)) => {
                self.due.initialised = true;
                if self.phase == Phase::Listening {
                    self.open();
                }
            }
            // The answer was lost, and data came after it: as lost as the answer.
            (Phase::Connecting | Phase::Listening, _) => {
                self.counters.unexpected += 1;
                self.receiver.lost();
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        self.counters.timeouts += 1;
        if let Some(patience) = self.config.patience
            && now.since(self.unanswered_since) >= patience
        {
            return self.end(CloseReason::TimedOut(patience));
        }
        self.deadline = Some(now + self.config.timeout);
        match self.phase {
            Phase::Connecting => self.due.initialise = true,
            _ => self.due.enquire = true,
        }
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        into.clear();
        // A packet may come, or a message be sent, at the very moment at which a timeout is due.
        self.handle_timeout(now);
        if core::mem::take(&mut self.due.hang_up) {
            return Some(self.write(Body::HangUp, into, CONTROL_LENGTH));
        }
        if let Phase::Over(_) = self.phase {
            return None;
        }
        if let Some(control) = self.next_control(now) {
            return Some(self.write(Body::Control(control), into, CONTROL_LENGTH));
        }
        let Outgoing { body, length, complete, again } = self.sender.poll()?;
        self.sent += 1;
        Packet { number: self.sent, body }.encode(into);
        if !complete {
            return Some(self.transmit(length));
        }
        self.counters.blocks_sent += u64::from(!again);
        self.counters.retransmissions += u64::from(again);
        self.expect_answer(now);
        Some(self.transmit(length + TRAILER_LENGTH))
    }

    fn next_timeout(&self) -> Option<Time> {
        self.deadline
    }

    fn carrier_header(&self) -> usize {
        wire::HEADER_LENGTH
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let (own, receiver) = (&self.counters, &self.receiver.counters);
        count("blocks-sent", own.blocks_sent);
        count("retransmissions", own.retransmissions);
        count("blocks-received", receiver.blocks);
        count("blocks-of-wrong-length", receiver.wrong_length);
        count("blocks-out-of-sequence", receiver.wrong_sequence);
        count("duplicate-blocks", receiver.duplicates);
        count("rejects-sent", receiver.rejects);
        count("rejects-received", own.rejects_received);
        count("timeouts", own.timeouts);
        count("checksum-errors", own.checksum_errors);
        count("malformed", own.malformed);
        count("strays", own.strays);
        count("late-packets", own.late);
        count("unexpected", own.unexpected);
    }
}
