//! The transaction service: a request and its answer, in a context of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trunkline_core::{Address, Ecn, Seed, Stream, Time};

use super::config::{Open, XtpConfig, XtpConfigError};
use super::promises;
use super::remembered::Remembered;
use super::sorted::Sorted;
use super::stream::XtpEndpoint;
use super::wire::{Body, Control, Header, Key, Options, Packet, ParseError, Service};
use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::endpoint::{Endpoint, Transmit};

/// One end of transactions with XTP: at the one that asks, every message sent is a request; at the other, the n-th message
/// sent answers the n-th request received.
///
/// A request travels in FIRST, with the end of its direction, and its answer with the end of the other: three packets if
/// both fit into one each. Transactions do not wait for each other, so answers may come in another order; each carries
/// its own retransmissions. The most urgent one (SORT) sends first.
#[derive(Clone, Debug)]
pub struct XtpTransactions {
    config: XtpConfig,
    local: Address,
    peer: Address,
    asks: bool,
    keys: Stream,
    contexts: BTreeMap<Key, Transaction>,
    /// Contexts that may have packets to send, the most urgent first.
    busy: BTreeSet<(u16, u64, Key)>,
    timers: BTreeSet<(Time, Key)>,
    /// Requests that the user has not answered.
    unanswered: VecDeque<Key>,
    received: Sorted<Ecn>,
    over: Remembered,
    farewells: VecDeque<Header>,
    age: u64,
    refused: bool,
    closing: bool,
    ended: Option<CloseReason>,
    pending: Pending,
    now: Time,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Transaction {
    context: XtpEndpoint,
    sort: u16,
    age: u64,
    timer: Option<Time>,
    delivered: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    readable: bool,
    writable: bool,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    retransmissions: u64,
    transactions: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
}

/// How many transactions may be open at once; what asks for more is not heard, and asks again.
const MAX_OPEN: usize = 1024;

impl XtpTransactions {
    /// The end that asks `peer`. All that it draws (its keys) comes from `seed`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn connect(
        local: Address,
        peer: Address,
        config: &XtpConfig,
        seed: u64,
    ) -> Result<XtpTransactions, XtpConfigError> {
        XtpTransactions::new(local, peer, config, true, seed)
    }

    /// The end that answers `peer`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn listen(
        local: Address,
        peer: Address,
        config: &XtpConfig,
        seed: u64,
    ) -> Result<XtpTransactions, XtpConfigError> {
        XtpTransactions::new(local, peer, config, false, seed)
    }

    fn new(
        local: Address,
        peer: Address,
        config: &XtpConfig,
        asks: bool,
        seed: u64,
    ) -> Result<XtpTransactions, XtpConfigError> {
        let config = XtpConfig {
            open: Open::Implicit,
            error_control: super::config::ErrorControl::Selective,
            ..*config
        };
        config.check()?;
        Ok(XtpTransactions {
            config,
            local,
            peer,
            asks,
            keys: Seed::new(seed, 0).stream("xtp/keys"),
            contexts: BTreeMap::new(),
            busy: BTreeSet::new(),
            timers: BTreeSet::new(),
            unanswered: VecDeque::new(),
            received: Sorted::new(),
            over: Remembered::default(),
            farewells: VecDeque::new(),
            age: 0,
            refused: false,
            closing: false,
            ended: None,
            pending: Pending::default(),
            now: Time::ZERO,
            counters: Counters::default(),
        })
    }

    /// Sends a request with a priority of its own, or the answer to the oldest unanswered request.
    ///
    /// # Errors
    /// As [`Conversation::send`]; the end that answers says that it is not connected while there is no request.
    pub fn send_sorted(&mut self, now: Time, sort: Option<u16>, message: &[u8]) -> Result<(), SendError> {
        self.expire(now);
        if let Some(reason) = self.ended.or(self.closing.then_some(CloseReason::Local)) {
            return Err(SendError::Closed(reason));
        }
        // The receiver delivers a message when it has all of it.
        let limit = self.config.receive_buffer;
        if message.len() > limit {
            return Err(SendError::TooLarge { limit });
        }
        let key = if self.asks { self.open(sort)? } else { self.next_unanswered()? };
        if let Some(transaction) = self.contexts.get_mut(&key) {
            transaction.context.send(now, Message::new(message))?;
            transaction.context.close(now, Close::Graceful);
            self.busy.insert((transaction.sort, transaction.age, key));
        }
        Ok(())
    }

    fn open(&mut self, sort: Option<u16>) -> Result<Key, SendError> {
        if self.contexts.len() >= MAX_OPEN {
            self.refused = true;
            return Err(SendError::Full);
        }
        let key = Key::own(self.keys.bits());
        let config = XtpConfig { sort, ..self.config };
        let context = XtpEndpoint::transaction(self.local, Some(self.peer), &config, key);
        self.add(key, context, sort.unwrap_or(0));
        Ok(key)
    }

    fn next_unanswered(&mut self) -> Result<Key, SendError> {
        while let Some(key) = self.unanswered.pop_front() {
            if self.contexts.contains_key(&key) {
                return Ok(key);
            }
        }
        Err(SendError::Closed(CloseReason::NotConnected))
    }

    fn add(&mut self, key: Key, context: XtpEndpoint, sort: u16) {
        self.age += 1;
        self.counters.transactions += 1;
        let transaction = Transaction { context, sort, age: self.age, timer: None, delivered: false };
        self.contexts.insert(key, transaction);
    }

    fn take(&mut self, from: Address, ecn: Ecn, bytes: &[u8], packet: &Packet<'_>) {
        let header = &packet.header;
        if from != self.peer {
            return self.counters.strays += 1;
        }
        self.counters.packets_received += 1;
        let key = header.key.chosen();
        if self.over.has(key) {
            // Its peer has not heard of the end.
            let wants = header.options.has_any(Options::SREQ.and(Options::DREQ));
            if wants && !header.options.has(Options::END) {
                self.farewells.push_back(*header);
            }
            return;
        }
        let first = matches!(packet.body, Body::First { .. });
        let room = !self.closing && self.contexts.len() < MAX_OPEN;
        if first && !self.asks && room && !self.contexts.contains_key(&key) {
            // The answering end chooses the same key: both name this context alone.
            let config =
                XtpConfig { sort: header.options.has(Options::SORT).then_some(header.sort), ..self.config };
            let context = XtpEndpoint::transaction(self.local, None, &config, key);
            self.add(key, context, header.sort);
        }
        let Some(transaction) = self.contexts.get_mut(&key) else { return self.counters.strays += 1 };
        transaction.context.handle_packet(self.now, from, ecn, bytes);
        self.busy.insert((transaction.sort, transaction.age, key));
        self.observe(key, ecn);
    }

    /// Draws the conclusions from what happened to a transaction.
    fn observe(&mut self, key: Key, ecn: Ecn) {
        let Some(transaction) = self.contexts.get_mut(&key) else { return };
        let mut broken = None;
        while let Some(event) = transaction.context.poll_event() {
            if let Event::Closed(reason @ (CloseReason::Reset | CloseReason::TimedOut(_))) = event {
                broken = Some(reason);
            }
        }
        if let Some(reason) = broken {
            self.forget(key);
            // A request without its answer is the end of it; a lost asker is of no concern to the others.
            return if self.asks {
                self.give_up(reason)
            };
        }
        if transaction.context.has_whole_message() && !core::mem::replace(&mut transaction.delivered, true) {
            let context = &mut transaction.context;
            self.received.push(transaction.sort, ecn, |into| {
                let _ = context.receive(into);
            });
            self.pending.readable = true;
            if !self.asks {
                self.unanswered.push_back(key);
            }
        }
    }

    /// Forgets a transaction that is over, and remembers its key.
    fn forget(&mut self, key: Key) {
        if let Some(transaction) = self.contexts.remove(&key) {
            self.busy.remove(&(transaction.sort, transaction.age, key));
            if let Some(at) = transaction.timer {
                self.timers.remove(&(at, key));
            }
            transaction.context.counters(&mut |name, count| {
                if name == "retransmissions" {
                    self.counters.retransmissions += count;
                }
            });
            self.over.add(key);
        }
        if core::mem::take(&mut self.refused) {
            self.pending.writable = !self.closing && self.ended.is_none();
        }
    }

    fn give_up(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.pending.closed = true;
        }
        self.pending.writable = false;
        self.contexts.clear();
        self.busy.clear();
        self.timers.clear();
        self.unanswered.clear();
    }

    fn expire(&mut self, now: Time) {
        self.now = now;
        while let Some(&(at, key)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(transaction) = self.contexts.get_mut(&key) {
                transaction.timer = None;
                transaction.context.handle_timeout(now);
                self.busy.insert((transaction.sort, transaction.age, key));
            }
        }
    }

    /// Lets the most urgent transaction that has something to send write it.
    fn write(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(header) = self.farewells.pop_front() {
            let options = Options::RCLOSE.and(Options::WCLOSE).and(Options::END);
            let control = Control { rseq: header.seq, alloc: header.seq, echo: header.sync };
            let header = Header { key: header.key.chosen().returned(), options, ..Header::default() };
            into.clear();
            Packet { header, body: Body::Control(control) }.emit(into);
            let size = self.config.encapsulation.size(into);
            return Some(Transmit { to: self.peer, ecn: Ecn::NotCapable, size, earliest: Time::ZERO });
        }
        while let Some(&(sort, age, key)) = self.busy.first() {
            let Some(transaction) = self.contexts.get_mut(&key) else {
                self.busy.pop_first();
                continue;
            };
            if let Some(transmit) = transaction.context.poll_transmit(now, into) {
                return Some(transmit);
            }
            self.busy.remove(&(sort, age, key));
            let next = transaction.context.next_timeout();
            if let Some(at) = core::mem::replace(&mut transaction.timer, next) {
                self.timers.remove(&(at, key));
            }
            self.timers.extend(next.map(|at| (at, key)));
            let over = transaction.context.is_over();
            self.observe(key, Ecn::NotCapable);
            if over {
                self.forget(key);
            }
        }
        None
    }
}

impl Conversation for XtpTransactions {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.send_sorted(now, self.config.sort, message.bytes)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let before = into.len();
        let ecn = self.received.pop(into)?;
        Some(Received { length: into.len() - before, ecn })
    }

    fn poll_event(&mut self) -> Option<Event> {
        let done = self.contexts.is_empty();
        let Pending { readable, writable, closed } = &mut self.pending;
        if core::mem::take(readable) {
            Some(Event::Readable)
        } else if core::mem::take(writable) {
            Some(Event::Writable)
        } else if done && core::mem::take(closed) {
            Some(Event::Closed(self.ended.unwrap_or(CloseReason::Local)))
        } else {
            None
        }
    }

    fn close(&mut self, now: Time, how: Close) {
        self.expire(now);
        if !core::mem::replace(&mut self.closing, true) && self.ended.is_none() {
            self.pending.closed = true;
            self.pending.writable = false;
        }
        if how == Close::Abort {
            self.give_up(CloseReason::Local);
        } else if !self.asks {
            // Requests that nobody will answer any more.
            while let Some(key) = self.unanswered.pop_front() {
                if let Some(transaction) = self.contexts.get_mut(&key) {
                    transaction.context.close(now, Close::Abort);
                    self.busy.insert((transaction.sort, transaction.age, key));
                }
            }
        }
    }

    fn features(&self) -> &'static Features {
        promises::features(Service::Transaction, &self.config)
    }
}

impl Endpoint for XtpTransactions {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.now = now;
        match Packet::parse(packet) {
            Ok(parsed) => self.take(from, ecn, packet, &parsed),
            Err(ParseError::Checksum) => self.counters.checksum_errors += 1,
            Err(_) => self.counters.malformed += 1,
        }
        self.expire(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.expire(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.expire(now);
        into.clear();
        let transmit = self.write(now, into);
        self.counters.packets_sent += u64::from(transmit.is_some());
        transmit
    }

    fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at)
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let mut retransmissions = self.counters.retransmissions;
        for transaction in self.contexts.values() {
            transaction.context.counters(&mut |name, count| {
                if name == "retransmissions" {
                    retransmissions += count;
                }
            });
        }
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("transactions", self.counters.transactions);
        count("retransmissions", retransmissions);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
    }
}
