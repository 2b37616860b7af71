//! The datagram services: every message is a context of its own, opened and closed by one FIRST packet.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use trunkline_core::{Address, Duration, Ecn, Seed, Stream, Time};

use super::config::{XtpConfig, XtpConfigError};
use super::promises;
use super::remembered::Remembered;
use super::sorted::Sorted;
use super::wait::Waiting;
use super::wire::{
    self, AddressSegment, Body, Control, Header, Key, Options, Packet, ParseError, Service, TrafficSpecifier,
    TrafficValues,
};
use crate::addressing::ipv4_of;
use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::endpoint::{Endpoint, Transmit};

/// One end of an exchange of XTP datagrams between two addresses, acknowledged or not.
///
/// The most urgent message (SORT) leaves first and is received first. An acknowledged datagram is sent again until it is
/// acknowledged, each by itself: they may arrive in another order. No datagram is delivered twice.
#[derive(Clone, Debug)]
pub struct XtpDatagrams {
    config: XtpConfig,
    service: Service,
    local: Address,
    peer: Address,
    keys: Stream,
    /// Packets that were never sent.
    unsent: Sorted<Key>,
    /// Packets without an acknowledgement.
    under_way: Vec<Option<UnderWay>>,
    unacknowledged: usize,
    unacknowledged_bytes: usize,
    vacant: Vec<usize>,
    /// When each of them is due again. May name those that were acknowledged since.
    timers: BinaryHeap<Reverse<(Time, usize, Key)>>,
    again: VecDeque<(usize, Key)>,
    /// All that was sent, the oldest first, with how many were sent before it. May name those that were acknowledged.
    oldest: VecDeque<(u64, usize, Key)>,
    sent: u64,
    acknowledgements: VecDeque<Acknowledgement>,
    received: Sorted<Ecn>,
    known: Remembered,
    waiting: Waiting,
    refused: Option<usize>,
    closing: bool,
    ended: Option<CloseReason>,
    pending: Pending,
    now: Time,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct UnderWay {
    key: Key,
    bytes: Vec<u8>,
    first_sent: Time,
    times: u32,
}

#[derive(Clone, Copy, Debug)]
struct Acknowledgement {
    key: Key,
    rseq: u64,
    echo: u32,
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
    duplicates: u64,
    receive_buffer_full: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
}

impl XtpDatagrams {
    /// An end at `local` that talks with `peer` and refuses others. All that it draws (its keys) comes from `seed`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn new(
        local: Address,
        peer: Address,
        config: &XtpConfig,
        acknowledged: bool,
        seed: u64,
    ) -> Result<XtpDatagrams, XtpConfigError> {
        config.check_sizes()?;
        Ok(XtpDatagrams {
            config: *config,
            service: if acknowledged { Service::AcknowledgedDatagram } else { Service::Datagram },
            local,
            peer,
            keys: Seed::new(seed, 0).stream("xtp/keys"),
            unsent: Sorted::new(),
            under_way: Vec::new(),
            unacknowledged: 0,
            unacknowledged_bytes: 0,
            vacant: Vec::new(),
            timers: BinaryHeap::new(),
            again: VecDeque::new(),
            oldest: VecDeque::new(),
            sent: 0,
            acknowledgements: VecDeque::new(),
            received: Sorted::new(),
            known: Remembered::default(),
            waiting: Waiting::new(config),
            refused: None,
            closing: false,
            ended: None,
            pending: Pending::default(),
            now: Time::ZERO,
            counters: Counters::default(),
        })
    }

    /// Sends a message with a priority of its own; smaller is more urgent.
    ///
    /// # Errors
    /// As [`Conversation::send`].
    pub fn send_sorted(&mut self, now: Time, sort: Option<u16>, message: &[u8]) -> Result<(), SendError> {
        self.now = now;
        if let Some(reason) = self.ended.or(self.closing.then_some(CloseReason::Local)) {
            return Err(SendError::Closed(reason));
        }
        let limit = self.config.max_first_data();
        if message.len() > limit {
            return Err(SendError::TooLarge { limit });
        }
        if !self.has_room(message.len()) {
            self.refused = Some(message.len());
            return Err(SendError::Full);
        }
        let key = Key::own(self.keys.bits());
        let options = match self.is_acknowledged() {
            true => Options::SREQ,
            false => Options::END.and(Options::NOERR).and(Options::NOFLOW),
        };
        let options = options.and(Options::WCLOSE).and(Options::EOM).and_if(sort.is_some(), Options::SORT);
        let header = Header { key, options, sort: sort.unwrap_or(0), sync: 1, seq: 0 };
        let (address, traffic) = (self.address(), self.traffic());
        self.unsent.push(header.sort, key, |into| {
            wire::write_first(&header, address, traffic, into, |into| into.extend_from_slice(message));
        });
        Ok(())
    }

    fn is_acknowledged(&self) -> bool {
        self.service == Service::AcknowledgedDatagram
    }

    fn has_room(&self, size: usize) -> bool {
        let kept = self.unsent.bytes() + self.unacknowledged_bytes;
        kept == 0 || kept + size <= self.config.send_buffer
    }

    fn address(&self) -> AddressSegment {
        AddressSegment::Ipv4 {
            destination: ipv4_of(self.peer.host),
            source: ipv4_of(self.local.host),
            destination_port: self.peer.port,
            source_port: self.local.port,
        }
    }

    fn traffic(&self) -> TrafficSpecifier {
        let maxdata = self.config.max_data() as u32;
        TrafficSpecifier {
            service: self.service,
            values: Some(TrafficValues { maxdata, ..TrafficValues::default() }),
        }
    }

    fn take(&mut self, from: Address, ecn: Ecn, packet: &Packet<'_>) {
        let header = &packet.header;
        if from != self.peer || header.options.has(Options::MULTI) {
            return self.counters.strays += 1;
        }
        match packet.body {
            Body::First { traffic, data, .. }
                if traffic.service == self.service && !header.key.is_returned() =>
            {
                self.take_message(header, ecn, data);
            }
            Body::Control(_) if header.key.is_returned() => self.take_acknowledgement(header.key),
            Body::Diagnostic { .. } if header.key.is_returned() => self.give_up(CloseReason::Reset),
            _ => self.counters.strays += 1,
        }
    }

    fn take_message(&mut self, header: &Header, ecn: Ecn, data: &[u8]) {
        let known = self.known.has(header.key);
        if known {
            self.counters.duplicates += 1;
        } else if self.closing {
            return self.counters.strays += 1;
        } else if !self.received.is_empty() && self.received.bytes() + data.len() > self.config.receive_buffer
        {
            // Not acknowledged either: an acknowledged one comes again.
            return self.counters.receive_buffer_full += 1;
        } else {
            self.counters.packets_received += 1;
            self.known.add(header.key);
            self.received.push(header.sort, ecn, |bytes| bytes.extend_from_slice(data));
            self.pending.readable = true;
        }
        if header.options.has(Options::SREQ) {
            let rseq = header.seq.wrapping_add(data.len() as u64);
            self.acknowledgements.push_back(Acknowledgement { key: header.key, rseq, echo: header.sync });
        }
    }

    fn take_acknowledgement(&mut self, key: Key) {
        let key = key.chosen();
        let mut under_way = self.under_way.iter_mut().enumerate();
        let found = under_way.find_map(|(index, sent)| {
            Some((index, sent.as_mut()?)).filter(|(_, sent)| sent.key == key && sent.times > 0)
        });
        let Some((index, sent)) = found else { return self.counters.strays += 1 };
        // Of a repeated packet nobody knows which one was acknowledged (Karn).
        if sent.times == 1 {
            self.waiting.asked(sent.first_sent, 1);
            self.waiting.answered(self.now, 1);
        }
        sent.times = 0;
        self.unacknowledged_bytes -= sent.bytes.len();
        self.unacknowledged -= 1;
        self.vacant.push(index);
    }

    fn give_up(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.pending.closed = true;
        }
        self.pending.writable = false;
        self.unsent.clear();
        self.under_way.clear();
        self.vacant.clear();
        self.timers.clear();
        self.again.clear();
        self.oldest.clear();
        (self.unacknowledged, self.unacknowledged_bytes) = (0, 0);
    }

    fn expire(&mut self, now: Time) {
        while let Some(&Reverse((at, index, key))) = self.timers.peek() {
            let sent = self.under_way.get(index).and_then(Option::as_ref);
            let Some(sent) = sent.filter(|sent| sent.key == key && sent.times > 0) else {
                self.timers.pop();
                continue;
            };
            if at > now {
                break;
            }
            if let Some(patience) = self.config.patience
                && sent.first_sent + patience <= now
            {
                return self.give_up(CloseReason::TimedOut(patience));
            }
            self.timers.pop();
            self.again.push_back((index, key));
        }
    }

    /// Writes the next packet: an acknowledgement, an old message again, a new one.
    fn write(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if let Some(Acknowledgement { key, rseq, echo }) = self.acknowledgements.pop_front() {
            let options = Options::RCLOSE.and(Options::WCLOSE).and(Options::END);
            let header = Header { key: key.returned(), options, sort: 0, sync: 0, seq: 0 };
            let control = Control { rseq, alloc: rseq, echo };
            Packet { header, body: Body::Control(control) }.emit(into);
            return true;
        }
        while let Some((index, key)) = self.again.pop_front() {
            let sent = self.under_way.get_mut(index).and_then(Option::as_mut);
            if let Some(sent) = sent.filter(|sent| sent.key == key && sent.times > 0) {
                into.extend_from_slice(&sent.bytes);
                sent.times += 1;
                self.counters.retransmissions += 1;
                self.set_timer(now, index);
                return true;
            }
        }
        if self.is_too_far_ahead() {
            return false;
        }
        let Some(key) = self.unsent.pop(into) else { return false };
        if self.is_acknowledged() {
            self.keep(now, key, into);
        }
        true
    }

    /// Whether so many were sent since the oldest one without an acknowledgement that the peer might not remember that
    /// one, and take its repetition for a new message.
    fn is_too_far_ahead(&mut self) -> bool {
        while let Some(&(before, index, key)) = self.oldest.front() {
            let sent = self.under_way.get(index).and_then(Option::as_ref);
            if sent.is_some_and(|sent| sent.key == key && sent.times > 0) {
                return before + Remembered::AT_LEAST as u64 / 2 <= self.sent;
            }
            self.oldest.pop_front();
        }
        false
    }

    /// Keeps a packet until it is acknowledged.
    fn keep(&mut self, now: Time, key: Key, bytes: &[u8]) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        let mut buffer = self.under_way[index].take().map_or_else(Vec::new, |old| old.bytes);
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.unacknowledged_bytes += bytes.len();
        self.unacknowledged += 1;
        self.under_way[index] = Some(UnderWay { key, bytes: buffer, first_sent: now, times: 1 });
        self.oldest.push_back((self.sent, index, key));
        self.sent += 1;
        self.set_timer(now, index);
    }

    fn set_timer(&mut self, now: Time, index: usize) {
        let Some(sent) = &self.under_way[index] else { return };
        let period = self.waiting.period() * (1 << (sent.times - 1).min(20));
        let mut due = now + period.min(self.config.max_wait.max(Duration::from_nanos(1)));
        if let Some(patience) = self.config.patience {
            due = due.min(sent.first_sent + patience);
        }
        self.timers.push(Reverse((due, index, sent.key)));
    }
}

impl Conversation for XtpDatagrams {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.send_sorted(now, self.config.sort, message.bytes)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let before = into.len();
        let ecn = self.received.pop(into)?;
        Some(Received { length: into.len() - before, ecn })
    }

    fn poll_event(&mut self) -> Option<Event> {
        let done = self.unsent.is_empty() && self.unacknowledged == 0;
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
        self.now = now;
        if how == Close::Abort {
            self.give_up(CloseReason::Local);
        }
        if !core::mem::replace(&mut self.closing, true) && self.ended.is_none() {
            self.pending.writable = false;
            self.pending.closed = true;
        }
    }

    fn features(&self) -> &'static Features {
        promises::features(self.service, &self.config)
    }
}

impl Endpoint for XtpDatagrams {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.now = now;
        match Packet::parse(packet) {
            Ok(packet) => self.take(from, ecn, &packet),
            Err(ParseError::Checksum) => self.counters.checksum_errors += 1,
            Err(_) => self.counters.malformed += 1,
        }
        self.expire(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.expire(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        into.clear();
        self.now = now;
        self.expire(now);
        let written = self.write(now, into);
        if !self.closing && self.refused.is_some_and(|size| self.has_room(size)) {
            self.refused = None;
            self.pending.writable = self.ended.is_none();
        }
        if !written {
            return None;
        }
        self.counters.packets_sent += 1;
        let size = self.config.encapsulation.size(into);
        Some(Transmit { to: self.peer, ecn: Ecn::NotCapable, size, earliest: Time::ZERO })
    }

    fn next_timeout(&self) -> Option<Time> {
        self.timers.peek().map(|Reverse((at, ..))| *at)
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("retransmissions", self.counters.retransmissions);
        count("duplicates", self.counters.duplicates);
        count("receive-buffer-full", self.counters.receive_buffer_full);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
    }
}
