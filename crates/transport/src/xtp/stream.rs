//! One end of a stream between two: the context of XTP 4.0.

mod input;
mod output;

use trunkline_core::{Address, Duration, Ecn, Seed, Time};

use super::asking::Asking;
use super::config::{Acknowledge, FlowControl, Open, XtpConfig, XtpConfigError};
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::promises;
use super::rate::RateControl;
use super::wire::{Code, Key, Options, Reason, Service};
use super::withheld::Withheld;
use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::endpoint::{Endpoint, Transmit};
use crate::pending::PendingEvents;

/// One end of an XTP stream.
///
/// It is a byte stream: whatever has gathered since packets were last asked for leaves together, as many whole messages
/// in a packet as fit. Reliable, it delivers everything in order and once; without error control it delivers what
/// arrives, in order and once, and goes on past what does not.
///
/// A graceful close still delivers what was taken; [`Event::Closed`] comes when the peer has confirmed that it has all
/// of it (RCLOSE). When the peer closes, [`Event::Closed`] comes after its last byte was read; this end may go on
/// sending until it closes too. After that it stays, to answer late packets.
#[derive(Clone, Debug)]
pub struct XtpEndpoint {
    config: XtpConfig,
    service: Service,
    local: Address,
    /// With whom it talks; while it listens, nobody.
    peer: Address,
    initiates: bool,
    state: State,
    key: Key,
    their_key: Option<Key>,
    /// The options of every packet with data.
    options: Options,
    /// The most data in a packet, as both ends agreed.
    max_data: usize,
    out: Outgoing,
    incoming: Incoming,
    /// Arrivals that are kept from the sender, if any are to be.
    withheld: Option<Box<Withheld>>,
    /// The number that the peer gave to its first byte.
    origin: u64,
    /// The largest sync seen.
    echo: u32,
    /// The last state of the peer's EDGE bit.
    edge: bool,
    rate: RateControl,
    asking: Asking,
    /// What the packets that wait to be sent are for.
    due: Due,
    /// Data packets since the last request.
    unasked: u32,
    /// The sender waits for the rate's next period.
    rate_blocked: bool,
    closing: Closing,
    ended: Option<CloseReason>,
    last_heard: Time,
    ecn: Ecn,
    now: Time,
    pending: PendingEvents,
    counters: Counters,
}

/// How far the context has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for a FIRST packet.
    Listening,
    /// FIRST was not answered yet. Holds how much data it carries, once it was sent.
    Opening(Option<usize>),
    /// Both ends know each other.
    Active,
    /// Over; answers late packets. Holds whether both directions were closed gracefully.
    Ended(bool),
}

/// Packets that are to be sent beside data.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    diagnosis: Option<(Code, Reason)>,
    reply: Option<Reply>,
    /// FIRST, again.
    first: bool,
    /// A request for status.
    ask: bool,
    /// The user asked for an acknowledgement of what it sends next.
    user_asks: bool,
}

/// An answer to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reply {
    /// CNTL or ECNTL.
    Status,
    /// TCNTL, the answer to FIRST.
    Traffic,
}

/// How far this end's closing has come.
#[derive(Clone, Copy, Debug, Default)]
struct Closing {
    /// The user closed.
    asked: bool,
    /// WCLOSE was sent.
    told: bool,
    /// The peer has all, and reads no more (RCLOSE).
    confirmed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    data_packets_sent: u64,
    data_packets_received: u64,
    control_packets_sent: u64,
    control_packets_received: u64,
    requests: u64,
    retransmissions: u64,
    duplicates: u64,
    receive_buffer_full: u64,
    refused_reports: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
}

impl XtpEndpoint {
    /// An end that opens a stream to `peer`. All that it draws (its key) comes from `seed`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn connect(
        local: Address,
        peer: Address,
        config: &XtpConfig,
        seed: u64,
    ) -> Result<XtpEndpoint, XtpConfigError> {
        XtpEndpoint::new(local, peer, config, Service::Stream, State::Opening(None), draw_key(seed))
    }

    /// An end that waits for the first who opens a stream to `local`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn listen(local: Address, config: &XtpConfig, seed: u64) -> Result<XtpEndpoint, XtpConfigError> {
        let nobody = Address::default();
        XtpEndpoint::new(local, nobody, config, Service::Stream, State::Listening, draw_key(seed))
    }

    /// One end of a transaction: the one that asks `peer`, or the one that waits for the request. `config` was checked.
    pub(super) fn transaction(
        local: Address,
        peer: Option<Address>,
        config: &XtpConfig,
        key: Key,
    ) -> XtpEndpoint {
        let state = if peer.is_some() { State::Opening(None) } else { State::Listening };
        XtpEndpoint::make(local, peer.unwrap_or_default(), config, Service::Transaction, state, key)
    }

    /// Whether everything that the peer sends is here.
    pub(super) fn has_whole_message(&self) -> bool {
        self.incoming.is_complete()
    }

    /// Whether both directions are closed and nobody has to be told.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Ended(_)) && self.due.reply.is_none()
    }

    fn new(
        local: Address,
        peer: Address,
        config: &XtpConfig,
        service: Service,
        state: State,
        key: Key,
    ) -> Result<XtpEndpoint, XtpConfigError> {
        config.check()?;
        Ok(XtpEndpoint::make(local, peer, config, service, state, key))
    }

    fn make(
        local: Address,
        peer: Address,
        config: &XtpConfig,
        service: Service,
        state: State,
        key: Key,
    ) -> XtpEndpoint {
        // Until the peer allocates more, an implicit opening sends what FIRST carries.
        let window = (config.flow_control != FlowControl::None).then_some(config.max_first_data() as u64);
        XtpEndpoint {
            config: *config,
            service,
            local,
            peer,
            initiates: state != State::Listening,
            state,
            key,
            their_key: None,
            options: options(config),
            max_data: config.max_data(),
            out: Outgoing::new(config.is_reliable(), config.send_buffer, window),
            incoming: Incoming::new(config.receive_buffer, config.max_spans(), config.max_data()),
            withheld: Withheld::new(config.withhold, key.0),
            origin: 0,
            echo: 0,
            edge: false,
            rate: RateControl::new(config.send_rate),
            asking: Asking::new(config),
            due: Due::default(),
            unasked: 0,
            rate_blocked: false,
            closing: Closing::default(),
            ended: None,
            last_heard: Time::ZERO,
            ecn: Ecn::NotCapable,
            now: Time::ZERO,
            pending: PendingEvents::default(),
            counters: Counters::default(),
        }
    }

    /// Asks for an acknowledgement: with the next data packet, or by itself if no data wait.
    pub fn request_status(&mut self, now: Time) {
        self.begin(now);
        if self.state == State::Active {
            if self.out.unsent() > 0 {
                self.due.user_asks = true;
            } else {
                self.due.ask = true;
            }
        }
    }

    /// Asks the peer for `bytes` more, where it uses [`FlowControl::Reserved`].
    pub fn reserve(&mut self, now: Time, bytes: u64) {
        self.begin(now);
        self.incoming.reserve(bytes);
        self.after_reading();
    }

    /// The priority of everything that is sent from now on (SORT).
    pub fn set_sort(&mut self, sort: Option<u16>) {
        self.config.sort = sort;
        self.options = options(&self.config);
    }

    /// The smoothed round trip, if one was measured.
    pub fn round_trip(&self) -> Option<Duration> {
        self.asking.round_trip()
    }

    /// What was agreed on: the most data in a packet, in bytes.
    pub fn max_data(&self) -> usize {
        self.max_data
    }

    /// Why nothing more can be sent, if so.
    fn unsendable(&self) -> Option<CloseReason> {
        match (self.ended, self.state) {
            (Some(reason @ (CloseReason::Reset | CloseReason::TimedOut(_))), _) => Some(reason),
            _ if self.closing.asked => Some(CloseReason::Local),
            (_, State::Listening) => Some(CloseReason::NotConnected),
            (_, State::Opening(_)) if self.config.open == Open::Handshake => Some(CloseReason::NotConnected),
            _ => None,
        }
    }

    /// The time of an input: does first what was due before.
    fn begin(&mut self, now: Time) {
        self.now = now;
        self.expire(now);
    }

    /// Notes that the conversation is over for its user.
    fn end(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.pending.closed = Some(reason);
            self.pending.writable &= reason == CloseReason::Peer;
        }
    }

    /// Ends the context at once.
    fn break_off(&mut self, reason: CloseReason) {
        self.end(reason);
        self.state = State::Ended(false);
        self.out.clear();
        self.asking.stop();
        self.due = Due::default();
        self.rate_blocked = false;
        self.pending.writable = false;
    }

    /// The user has read, or asked for more.
    fn after_reading(&mut self) {
        let known = matches!(self.state, State::Active | State::Opening(Some(_)));
        if known && (self.incoming.has_opened() || self.incoming.delivery_is_due()) {
            self.due.reply = self.due.reply.max(Some(Reply::Status));
        }
        self.observe();
    }

    /// Draws the conclusions from the state of both directions.
    fn observe(&mut self) {
        let over = matches!(self.state, State::Ended(_));
        if self.closing.confirmed && self.incoming.is_complete() && !over {
            self.state = State::Ended(true);
            self.asking.stop();
            (self.due.ask, self.due.first) = (false, false);
        }
        if self.closing.confirmed {
            self.end(CloseReason::Local);
        }
        if self.incoming.is_finished() {
            self.end(CloseReason::Peer);
        }
        if !self.closing.asked && self.unsendable().is_none() && self.out.has_room_again() {
            self.pending.writable = true;
        }
    }

    /// Whether the sender may ask for status in the course of a transfer.
    fn asks(&self) -> bool {
        self.config.acknowledge != Acknowledge::Never
    }

    /// Whether all data were sent and nothing more will come.
    fn has_sent_all(&self) -> bool {
        self.closing.asked && self.out.unsent() == 0
    }

    /// Whether something is to be known that nobody has asked for.
    fn wants_to_know(&self) -> bool {
        // The peer's agreement is still missing, even if reports have come already.
        let opening = matches!(self.state, State::Opening(_));
        if opening || self.has_sent_all() && !self.closing.confirmed {
            return true;
        }
        self.asks() && (self.out.in_flight() || self.is_blocked())
    }

    /// Whether there are data for which the window has no room.
    fn is_blocked(&self) -> bool {
        let end = self.out.next() + self.out.unsent() as u64;
        self.out.unsent() > 0 && self.out.limit().is_some_and(|limit| limit < end)
    }
}

impl Conversation for XtpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.begin(now);
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        if self.out.push(message.bytes, message.more) { Ok(()) } else { Err(SendError::Full) }
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let length = self.incoming.read(into);
        if length == 0 {
            return None;
        }
        self.after_reading();
        Some(Received { length, ecn: core::mem::take(&mut self.ecn) })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.pending.poll(false)
    }

    fn close(&mut self, now: Time, how: Close) {
        self.begin(now);
        let first = !core::mem::replace(&mut self.closing.asked, true);
        self.pending.writable = false;
        // A stream that was never begun; a transaction may have nothing to say but that it has.
        let silent = self.out.unsent() == 0 && self.config.open == Open::Implicit;
        let unheard_of = matches!(self.state, State::Listening)
            || self.state == State::Opening(None) && silent && self.service != Service::Transaction;
        match how {
            _ if matches!(self.state, State::Ended(_)) => self.end(CloseReason::Local),
            _ if unheard_of => self.break_off(CloseReason::Local),
            Close::Abort => {
                self.break_off(CloseReason::Local);
                self.due.reply = Some(Reply::Status);
            }
            Close::Graceful => self.due.ask |= first && self.has_sent_all() && self.state == State::Active,
        }
    }

    fn features(&self) -> &'static Features {
        promises::features(self.service, &self.config)
    }
}

impl Endpoint for XtpEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.now = now;
        self.take_packet(from, ecn, packet);
        // After it: an answer that comes at the last moment is in time.
        self.expire(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.begin(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        into.clear();
        self.begin(now);
        if self.write_packet(now, into) {
            self.counters.packets_sent += 1;
            let size = self.config.encapsulation.size(into);
            return Some(Transmit { to: self.peer, ecn: Ecn::NotCapable, size, earliest: Time::ZERO });
        }
        self.observe();
        let waits = matches!(self.state, State::Active | State::Opening(Some(_)));
        self.asking.set_timer(now, waits && self.wants_to_know());
        None
    }

    fn next_timeout(&self) -> Option<Time> {
        let renewal = self.rate.renewal().filter(|_| self.rate_blocked);
        [self.asking.next_timeout(), self.keep_alive_due(), renewal].into_iter().flatten().min()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("data-packets-sent", self.counters.data_packets_sent);
        count("data-packets-received", self.counters.data_packets_received);
        count("control-packets-sent", self.counters.control_packets_sent);
        count("control-packets-received", self.counters.control_packets_received);
        count("requests", self.counters.requests);
        count("retransmissions", self.counters.retransmissions);
        count("duplicates", self.counters.duplicates);
        count("bytes-lost", self.incoming.lost());
        count("receive-buffer-full", self.counters.receive_buffer_full);
        count("refused-reports", self.counters.refused_reports);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
    }
}

/// The options of every packet with data.
pub(super) fn options(config: &XtpConfig) -> Options {
    Options::NONE
        .and_if(!config.checksum, Options::NOCHECK)
        .and_if(!config.is_reliable(), Options::NOERR)
        .and_if(config.sort.is_some(), Options::SORT)
        .and_if(config.flow_control == FlowControl::None, Options::NOFLOW)
        .and_if(config.flow_control == FlowControl::Reserved, Options::RES)
        .and_if(config.fast_nak && config.is_reliable(), Options::FASTNAK)
}

pub(super) fn draw_key(seed: u64) -> Key {
    Key::own(Seed::new(seed, 0).stream("xtp/key").bits())
}
