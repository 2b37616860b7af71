//! The sender of a multicast stream.

mod output;

use std::collections::VecDeque;

use trunkline_core::{Address, Ecn, Time};

use super::super::config::XtpConfigError;
use super::super::outgoing::Outgoing;
use super::super::promises;
use super::super::rate::RateControl;
use super::super::stream::draw_key;
use super::super::wait::{Waiting, reaches};
use super::super::wire::{
    Body, Code, Control, Header, Key, Options, Packet, ParseError, Reason, Service, Spans,
};
use super::XtpGroupConfig;
use super::members::{Member, Members};
use crate::conversation::{
    Close, CloseReason, Conversation, Event, Features, Membership, Message, Received, SendError,
};
use crate::endpoint::{Endpoint, Transmit};

/// The sender of an XTP multicast stream. Packets go to the group's address, and to single receivers where they concern
/// nobody else; reports come from any receiver's address.
///
/// [`Event::Member`] tells of receivers, [`Event::Connected`] comes when the quorum has joined, [`Event::Closed`] after a close when every receiver has
/// confirmed that it has everything, has left, or was dropped. It receives nothing.
#[derive(Clone, Debug)]
pub struct XtpGroupSender {
    config: XtpGroupConfig,
    local: Address,
    key: Key,
    state: State,
    out: Outgoing,
    rate: RateControl,
    rate_blocked: bool,
    members: Members,
    memberships: VecDeque<Membership>,
    waiting: Waiting,
    sync: u32,
    timer: Option<Time>,
    /// Since when the quorum is waited for.
    opening_since: Option<Time>,
    unasked: u32,
    errands: VecDeque<Errand>,
    first_due: bool,
    ask_due: bool,
    closing: bool,
    told: bool,
    end_due: bool,
    ended: Option<CloseReason>,
    pending: Pending,
    now: Time,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Active,
    Ended,
}

/// A packet for one receiver.
#[derive(Clone, Copy, Debug)]
enum Errand {
    /// JCNTL: it has joined, and gets everything from this number on.
    Confirm(Address, Key, u64),
    /// CNTL with a request.
    Ask(Address, Key),
    /// DIAG.
    Diagnose(Address, Key, Code, Reason),
    /// CNTL with END.
    Farewell(Address, Key),
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    connected: bool,
    writable: bool,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    data_packets_sent: u64,
    control_packets_received: u64,
    requests: u64,
    retransmissions: u64,
    joined: u64,
    left: u64,
    dropped: u64,
    refused_reports: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
}

impl XtpGroupSender {
    /// A sender at `local`. All that it draws (its key) comes from `seed`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn new(local: Address, config: &XtpGroupConfig, seed: u64) -> Result<XtpGroupSender, XtpConfigError> {
        config.check()?;
        let reliable = config.stream.is_reliable();
        Ok(XtpGroupSender {
            config: *config,
            local,
            key: draw_key(seed),
            state: State::Opening,
            out: Outgoing::new(reliable, config.stream.send_buffer, reliable.then_some(0)),
            rate: RateControl::new(config.stream.send_rate),
            rate_blocked: false,
            members: Members::default(),
            memberships: VecDeque::new(),
            waiting: Waiting::new(&config.stream),
            sync: 0,
            timer: None,
            opening_since: None,
            unasked: 0,
            errands: VecDeque::new(),
            first_due: true,
            ask_due: false,
            closing: false,
            told: false,
            end_due: false,
            ended: None,
            pending: Pending::default(),
            now: Time::ZERO,
            counters: Counters::default(),
        })
    }

    /// How many receivers are active.
    pub fn receivers(&self) -> usize {
        self.members.len()
    }

    fn is_reliable(&self) -> bool {
        self.config.stream.is_reliable()
    }

    fn service(&self) -> Service {
        if self.is_reliable() { Service::Multicast } else { Service::UnacknowledgedMulticast }
    }

    fn unsendable(&self) -> Option<CloseReason> {
        match self.ended {
            Some(reason) => Some(reason),
            None if self.closing => Some(CloseReason::Local),
            None if self.state == State::Opening => Some(CloseReason::NotConnected),
            None => None,
        }
    }

    fn has_sent_all(&self) -> bool {
        self.closing && self.out.unsent() == 0
    }

    fn end(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.pending.closed = true;
        }
        self.pending.writable = false;
        self.state = State::Ended;
        self.end_due = true;
        self.timer = None;
        self.out.clear();
    }

    fn take(&mut self, from: Address, packet: &Packet<'_>) {
        let header = &packet.header;
        if header.key != self.key.returned() || from == self.local {
            return self.counters.strays += 1;
        }
        self.counters.packets_received += 1;
        if !self.is_reliable() {
            return;
        }
        self.counters.control_packets_received += 1;
        match packet.body {
            Body::JoinControl { control, xkey, .. } => self.join(from, xkey.chosen(), control),
            Body::Control(control) => self.report(from, header, control, Spans::List(&[])),
            Body::ErrorControl { control, spans } => self.report(from, header, control, spans),
            _ => self.counters.strays += 1,
        }
    }

    fn join(&mut self, from: Address, key: Key, control: Control) {
        if let Some(member) = self.members.get(from) {
            // It has not heard yet that it has joined.
            let start = member.rseq;
            return self.errands.push_back(Errand::Confirm(from, key, start));
        }
        let reason = if self.closing || self.state == State::Ended {
            Some(Reason::IMPROPER_STATE)
        } else {
            (self.members.len() >= self.config.max_receivers).then_some(Reason::NO_RESOURCE)
        };
        if let Some(reason) = reason {
            return self.errands.push_back(Errand::Diagnose(from, key, Code::JOIN_REFUSED, reason));
        }
        // What is still kept it can have; what is not, not.
        let rseq = control.rseq.clamp(self.out.base(), self.out.next());
        let window = control.alloc.saturating_sub(control.rseq);
        self.members.add(Member {
            address: from,
            key,
            rseq,
            alloc: rseq.saturating_add(window),
            echo: 0,
            silent_since: None,
            finished: false,
        });
        self.counters.joined += 1;
        self.tell(Membership::Joined(from));
        self.errands.push_back(Errand::Confirm(from, key, rseq));
        if self.state == State::Opening && self.members.len() >= self.config.quorum {
            self.state = State::Active;
            self.first_due = false;
            self.timer = None;
            self.pending.connected = true;
        }
        self.follow_slowest();
    }

    fn report(&mut self, from: Address, header: &Header, control: Control, spans: Spans<'_>) {
        if self.state == State::Ended {
            return self.errands.push_back(Errand::Farewell(from, self.key));
        }
        let valid = control.rseq <= self.out.next() && reaches(self.sync, control.echo);
        let Some(member) = self.members.get(from) else {
            // It was dropped, and asks for what may be gone.
            let errand =
                Errand::Diagnose(from, self.key, Code::CONTEXT_ABANDONED, Reason::INVALID_RETRANSMISSION);
            return self.errands.push_back(errand);
        };
        if !valid {
            return self.counters.refused_reports += 1;
        }
        if header.options.has(Options::END) {
            self.remove(from, Membership::Left(from));
            return self.observe();
        }
        let outdated = control.rseq < member.rseq || !reaches(control.echo, member.echo);
        member.rseq = member.rseq.max(control.rseq);
        member.alloc = member.alloc.max(control.alloc);
        member.finished |= header.options.has(Options::RCLOSE) && self.told;
        self.members.answer(from, control.echo);
        self.waiting.answered(self.now, control.echo);
        if !outdated && self.out.find_missing(control.rseq, control.echo, spans.iter()).is_err() {
            self.counters.refused_reports += 1;
        }
        self.follow_slowest();
        self.observe();
    }

    /// Keeps news for the user; the oldest are forgotten if nobody asks for them.
    fn tell(&mut self, news: Membership) {
        if self.memberships.len() >= 2 * self.config.max_receivers {
            self.memberships.pop_front();
        }
        self.memberships.push_back(news);
    }

    fn remove(&mut self, address: Address, how: Membership) {
        if self.members.remove(address).is_some() {
            match how {
                Membership::Dropped(_) => self.counters.dropped += 1,
                _ => self.counters.left += 1,
            }
            self.tell(how);
            self.follow_slowest();
        }
    }

    /// The slowest receiver decides what is kept and what may be sent; without any, nothing is sent.
    fn follow_slowest(&mut self) {
        if let Some((rseq, alloc)) = self.members.slowest() {
            self.out.acknowledge(rseq);
            self.out.set_limit(alloc);
        } else {
            self.out.acknowledge(self.out.next());
            self.out.set_limit(self.out.next());
        }
    }

    fn observe(&mut self) {
        if self.closing && self.state != State::Ended {
            let confirmed = match self.is_reliable() {
                true => self.members.is_empty() || self.told && self.members.all_finished(),
                false => self.out.unsent() == 0,
            };
            if confirmed {
                return self.end(CloseReason::Local);
            }
        }
        if self.unsendable().is_none() && self.out.has_room_again() {
            self.pending.writable = true;
        }
    }

    fn expire(&mut self, now: Time) {
        self.now = now;
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timer = None;
        let patience = self.config.stream.patience;
        if self.state == State::Opening {
            if let (Some(since), Some(patience)) = (self.opening_since, patience)
                && since + patience <= now
            {
                return self.end(CloseReason::TimedOut(patience));
            }
            self.first_due = true;
        } else if self.members.any_owing() {
            self.waiting.unanswered();
            let mut silent = Vec::new();
            for member in self.members.owing() {
                let since = *member.silent_since.get_or_insert(now);
                if patience.is_some_and(|patience| since + patience <= now) {
                    silent.push((member.address, member.key));
                } else {
                    self.errands.push_back(Errand::Ask(member.address, member.key));
                }
            }
            for (address, key) in silent {
                let errand = Errand::Diagnose(address, key, Code::CONTEXT_ABANDONED, Reason::UNSPECIFIED);
                self.errands.push_back(errand);
                self.remove(address, Membership::Dropped(address));
            }
        } else {
            self.ask_due = true;
        }
        self.observe();
    }

    /// Sets the timer if there is something to wait for.
    fn set_timer(&mut self, now: Time) {
        let blocked = self.out.unsent() > 0 && !self.members.is_empty();
        let waits = match self.state {
            State::Opening => self.is_reliable(),
            State::Active if self.is_reliable() => {
                self.members.any_owing() || self.out.in_flight() || blocked || self.closing
            }
            _ => false,
        };
        let listens = self.state == State::Active && !self.members.is_empty();
        if !waits {
            // Idle receivers are asked whether they live (CTIMER).
            let idle = self.config.stream.keep_alive.filter(|_| listens);
            self.timer = idle.map(|period| self.timer.unwrap_or(now + period));
        } else if self.timer.is_none() {
            // Answers are held back by a slot.
            self.timer = Some(now + self.waiting.period() + self.config.spread());
        }
    }
}

impl Conversation for XtpGroupSender {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.expire(now);
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        if self.out.push(message.bytes, message.more) { Ok(()) } else { Err(SendError::Full) }
    }

    fn receive(&mut self, _: &mut Vec<u8>) -> Option<Received> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        if let Some(news) = self.memberships.pop_front() {
            return Some(Event::Member(news));
        }
        let Pending { connected, writable, closed } = &mut self.pending;
        if core::mem::take(connected) {
            Some(Event::Connected)
        } else if core::mem::take(writable) {
            Some(Event::Writable)
        } else if core::mem::take(closed) {
            Some(Event::Closed(self.ended.unwrap_or(CloseReason::Local)))
        } else {
            None
        }
    }

    fn close(&mut self, now: Time, how: Close) {
        self.expire(now);
        self.closing = true;
        self.pending.writable = false;
        if self.state != State::Ended && (how == Close::Abort || self.state == State::Opening) {
            self.end(CloseReason::Local);
        }
        self.observe();
    }

    fn features(&self) -> &'static Features {
        promises::features(self.service(), &self.config.stream)
    }
}

impl Endpoint for XtpGroupSender {
    fn handle_packet(&mut self, now: Time, from: Address, _: Ecn, packet: &[u8]) {
        self.now = now;
        match Packet::parse(packet) {
            Ok(packet) => self.take(from, &packet),
            Err(ParseError::Checksum) => self.counters.checksum_errors += 1,
            Err(_) => self.counters.malformed += 1,
        }
        self.expire(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.expire(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        into.clear();
        self.expire(now);
        let mut to = self.write(now, into);
        if to.is_none() {
            self.observe();
            // What it concluded may be something to say.
            to = self.write(now, into);
        }
        let Some(to) = to else {
            self.set_timer(now);
            return None;
        };
        self.counters.packets_sent += 1;
        let size = self.config.stream.encapsulation.size(into);
        Some(Transmit { to, ecn: Ecn::NotCapable, size, earliest: Time::ZERO })
    }

    fn next_timeout(&self) -> Option<Time> {
        let renewal = self.rate.renewal().filter(|_| self.rate_blocked);
        [self.timer, renewal].into_iter().flatten().min()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("data-packets-sent", self.counters.data_packets_sent);
        count("control-packets-received", self.counters.control_packets_received);
        count("requests", self.counters.requests);
        count("retransmissions", self.counters.retransmissions);
        count("receivers-joined", self.counters.joined);
        count("receivers-left", self.counters.left);
        count("receivers-dropped", self.counters.dropped);
        count("refused-reports", self.counters.refused_reports);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
    }
}
