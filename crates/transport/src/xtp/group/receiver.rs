//! A receiver of a multicast stream.

mod output;

use trunkline_core::{Address, Ecn, Seed, Stream, Time};

use super::super::config::XtpConfigError;
use super::super::incoming::{Incoming, LARGEST, Taken};
use super::super::promises;
use super::super::stream::draw_key;
use super::super::wait::{Waiting, reaches};
use super::super::wire::{Body, Header, Key, Options, Packet, ParseError, Service, Span};
use super::XtpGroupConfig;
use super::damping::{Reported, gaps};
use crate::conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
use crate::endpoint::{Endpoint, Transmit};

/// A receiver of an XTP multicast stream. It is given what is sent to the group, by the sender and by other receivers,
/// and what is sent to its own address. Reports of gaps go to the group, everything else to the sender.
///
/// [`Event::Connected`] comes when it has joined; if that is in mid-stream, it gets everything from there on.
/// [`Event::Closed`] comes after the last byte was read. It sends nothing.
#[derive(Clone, Debug)]
pub struct XtpGroupReceiver {
    config: XtpGroupConfig,
    local: Address,
    key: Key,
    state: State,
    /// The sender and its key, once it was heard.
    sender: Option<(Address, Key)>,
    /// The number of the first byte that this receiver gets.
    origin: u64,
    incoming: Incoming,
    echo: u32,
    slots: Stream,
    /// When to ask to join (again).
    join_at: Option<Time>,
    joining: Waiting,
    joining_since: Option<Time>,
    /// When to answer a request.
    reply_at: Option<Time>,
    /// When to report gaps.
    report_at: Option<Time>,
    reported: Reported,
    due: Due,
    ended: Option<CloseReason>,
    ecn: Ecn,
    now: Time,
    pending: Pending,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    Joining,
    Joined,
    Ended,
}

#[derive(Clone, Copy, Debug, Default)]
struct Due {
    join: bool,
    reply: bool,
    report: bool,
    farewell: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    connected: bool,
    readable: bool,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    data_packets_received: u64,
    control_packets_sent: u64,
    reports_sent: u64,
    reports_spared: u64,
    duplicates: u64,
    receive_buffer_full: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
}

impl XtpGroupReceiver {
    /// A receiver at `local` that joins the stream that it first hears in the group. All that it draws (its key and its
    /// slots) comes from `seed`.
    ///
    /// # Errors
    /// If `config` cannot be.
    pub fn new(
        local: Address,
        config: &XtpGroupConfig,
        seed: u64,
    ) -> Result<XtpGroupReceiver, XtpConfigError> {
        config.check()?;
        Ok(XtpGroupReceiver {
            config: *config,
            local,
            key: draw_key(seed),
            state: State::Listening,
            sender: None,
            origin: 0,
            incoming: XtpGroupReceiver::buffer(config),
            echo: 0,
            slots: Seed::new(seed, 0).stream("xtp/slots"),
            join_at: None,
            joining: Waiting::new(&config.stream),
            joining_since: None,
            reply_at: None,
            report_at: None,
            reported: Reported::default(),
            due: Due::default(),
            ended: None,
            ecn: Ecn::NotCapable,
            now: Time::ZERO,
            pending: Pending::default(),
            counters: Counters::default(),
        })
    }

    fn buffer(config: &XtpGroupConfig) -> Incoming {
        let stream = &config.stream;
        Incoming::new(stream.receive_buffer, stream.max_spans(), stream.max_data())
    }

    fn is_reliable(&self) -> bool {
        self.config.stream.is_reliable()
    }

    fn service(&self) -> Service {
        if self.is_reliable() { Service::Multicast } else { Service::UnacknowledgedMulticast }
    }

    fn take(&mut self, from: Address, ecn: Ecn, packet: &Packet<'_>) {
        let header = &packet.header;
        if !header.options.has(Options::MULTI) || self.state == State::Ended {
            return self.counters.strays += 1;
        }
        if self.state == State::Listening && !self.hear(from, packet) {
            return self.counters.strays += 1;
        }
        let Some((sender, key)) = self.sender else { return };
        let from_sender = from == sender;
        match header.key {
            k if from_sender && k == key => self.take_from_sender(ecn, packet, false),
            k if from_sender && k == self.key.returned() => self.take_from_sender(ecn, packet, true),
            k if !from_sender && k == key.returned() => self.overhear(packet),
            _ => self.counters.strays += 1,
        }
    }

    /// The first packet of a stream that it hears. False if it opens none.
    fn hear(&mut self, from: Address, packet: &Packet<'_>) -> bool {
        let header = &packet.header;
        let fits = match packet.body {
            Body::First { traffic, .. } => traffic.service == self.service(),
            Body::Data { .. } | Body::Control(_) => {
                header.options.has(Options::NOERR) != self.is_reliable()
                    || matches!(packet.body, Body::Control(_))
            }
            _ => false,
        };
        if !fits || header.key.is_returned() || header.options.has(Options::END) || from == self.local {
            return false;
        }
        self.sender = Some((from, header.key));
        self.origin = header.seq;
        self.echo = header.sync;
        if self.is_reliable() {
            self.state = State::Joining;
            self.joining_since = Some(self.now);
            self.join_at = Some(self.draw_slot());
        } else {
            self.state = State::Joined;
            self.pending.connected = true;
        }
        true
    }

    /// `alone`: the packet is for this receiver only.
    fn take_from_sender(&mut self, ecn: Ecn, packet: &Packet<'_>, alone: bool) {
        let header = &packet.header;
        self.counters.packets_received += 1;
        if reaches(header.sync, self.echo) {
            self.echo = header.sync;
        }
        let length = match packet.body {
            Body::Data { data, .. } | Body::First { data, .. } => {
                self.take_data(header, ecn, data);
                data.len()
            }
            Body::JoinControl { .. } if alone => {
                self.confirm(header.seq);
                return;
            }
            Body::Control(_) => 0,
            Body::Diagnostic { .. } => return self.end(CloseReason::Reset),
            _ => return self.counters.strays += 1,
        };
        let end = header.seq.wrapping_sub(self.origin).wrapping_add(length as u64);
        let was_complete = self.incoming.is_complete();
        if header.options.has(Options::WCLOSE) {
            self.incoming.finish(end);
        }
        let completed = self.incoming.is_complete() && !was_complete;
        if self.is_reliable() && self.state == State::Joined {
            if alone && header.options.has(Options::SREQ) {
                self.due.reply = true;
            } else if header.options.has(Options::SREQ) || completed {
                let slot = self.draw_slot();
                self.reply_at.get_or_insert(slot);
            }
            self.consider_report(header.options.has(Options::FASTNAK));
        }
        if header.options.has(Options::END) {
            if self.incoming.is_complete() {
                self.state = State::Ended;
                self.stop();
            } else {
                self.end(CloseReason::Reset);
            }
        }
        self.observe();
    }

    fn take_data(&mut self, header: &Header, ecn: Ecn, data: &[u8]) {
        self.counters.data_packets_received += 1;
        self.incoming.set_repaired(!header.options.has(Options::NOERR));
        let start = header.seq.wrapping_sub(self.origin);
        if data.is_empty() {
            return;
        }
        let readable = self.incoming.readable();
        match self.incoming.take(start, data) {
            Taken::InOrder | Taken::BehindGap | Taken::NewGap => {}
            Taken::Old => self.counters.duplicates += 1,
            Taken::NoRoom => self.counters.receive_buffer_full += 1,
        }
        if self.incoming.readable() > readable && self.state == State::Joined {
            self.pending.readable = true;
            if self.ecn != Ecn::CongestionExperienced {
                self.ecn = ecn;
            }
        }
    }

    /// The sender counts on this receiver from byte `start` on.
    fn confirm(&mut self, start: u64) {
        if self.state != State::Joining {
            return;
        }
        self.state = State::Joined;
        (self.join_at, self.joining_since) = (None, None);
        if start != self.origin {
            // What was heard before is not what it gets: begin anew.
            self.origin = start;
            self.incoming = XtpGroupReceiver::buffer(&self.config);
        }
        self.pending.connected = true;
        self.pending.readable = self.incoming.readable() > 0;
        self.consider_report(true);
        self.observe();
    }

    /// Another receiver's report: what it misses will be repaired without a word from here.
    fn overhear(&mut self, packet: &Packet<'_>) {
        let Body::ErrorControl { control, spans } = packet.body else { return };
        let until = self.now + self.config.repair_wait;
        let origin = self.origin;
        let offset = |number: u64| number.wrapping_sub(origin);
        let spans = spans.iter().map(|span| Span { left: offset(span.left), right: offset(span.right) });
        // What lies before this receiver's first byte wraps around, and is in nobody's way.
        for gap in gaps(offset(control.rseq), spans) {
            if gap.left < gap.right && gap.right <= LARGEST {
                self.reported.add(gap, until);
            }
        }
        self.reported.tidy(self.now, self.incoming.rseq());
    }

    /// Sets the time for a report if there are gaps that nobody has reported, and stops it if there are none at all.
    fn consider_report(&mut self, at_once: bool) {
        if self.incoming.spans().is_empty() {
            self.report_at = None;
        } else if at_once && self.report_at.is_none() {
            self.report_at = Some(self.draw_slot());
        }
    }

    fn misses_unreported(&self) -> bool {
        let spans = self.incoming.spans().iter().copied();
        gaps(self.incoming.rseq(), spans).any(|gap| !self.reported.covers(gap))
    }

    fn draw_slot(&mut self) -> Time {
        let slot = self.slots.below(u64::from(self.config.slots)) + 1;
        self.now + self.config.slot * slot
    }

    fn expire(&mut self, now: Time) {
        self.now = now;
        if self.reply_at.is_some_and(|at| at <= now) {
            self.reply_at = None;
            self.due.reply = true;
        }
        if self.join_at.is_some_and(|at| at <= now) {
            let patience = self.config.stream.patience;
            if let (Some(since), Some(patience)) = (self.joining_since, patience)
                && since + patience <= now
            {
                return self.end(CloseReason::TimedOut(patience));
            }
            self.due.join = true;
            self.join_at = Some(now + self.joining.period());
            self.joining.unanswered();
        }
        if self.report_at.is_some_and(|at| at <= now) {
            self.reported.tidy(now, self.incoming.rseq());
            if self.misses_unreported() {
                self.due.report = true;
                let until = now + self.config.repair_wait;
                for index in 0..self.incoming.spans().len() {
                    let left = match index {
                        0 => self.incoming.rseq(),
                        _ => self.incoming.spans()[index - 1].right,
                    };
                    self.reported.add(Span { left, right: self.incoming.spans()[index].left }, until);
                }
            } else {
                self.counters.reports_spared += 1;
            }
            let overdue = self.reported.next_overdue().unwrap_or(now);
            let slot = self.draw_slot();
            self.report_at = Some(slot.max(overdue + self.config.slot));
        }
    }

    fn end(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.pending.closed = true;
        }
        self.state = State::Ended;
        self.stop();
    }

    fn stop(&mut self) {
        (self.join_at, self.reply_at, self.report_at) = (None, None, None);
        self.due = Due::default();
    }

    fn observe(&mut self) {
        if self.incoming.is_finished()
            && matches!(self.state, State::Joined | State::Ended)
            && self.ended.is_none()
        {
            self.ended = Some(CloseReason::Peer);
            self.pending.closed = true;
        }
    }
}

impl Conversation for XtpGroupReceiver {
    fn send(&mut self, _: Time, _: Message<'_>) -> Result<(), SendError> {
        Err(SendError::Closed(self.ended.unwrap_or(CloseReason::NotConnected)))
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        if !matches!(self.state, State::Joined | State::Ended) {
            return None;
        }
        let length = self.incoming.read(into);
        if length == 0 {
            return None;
        }
        if self.is_reliable() && self.state == State::Joined && self.incoming.has_opened() {
            let slot = self.draw_slot();
            self.reply_at.get_or_insert(slot);
        }
        self.observe();
        Some(Received { length, ecn: core::mem::take(&mut self.ecn) })
    }

    fn poll_event(&mut self) -> Option<Event> {
        let Pending { connected, readable, closed } = &mut self.pending;
        if core::mem::take(connected) {
            Some(Event::Connected)
        } else if core::mem::take(readable) {
            Some(Event::Readable)
        } else if core::mem::take(closed) {
            Some(Event::Closed(self.ended.unwrap_or(CloseReason::Local)))
        } else {
            None
        }
    }

    fn close(&mut self, now: Time, _: Close) {
        self.expire(now);
        let member = self.is_reliable() && matches!(self.state, State::Joined | State::Joining);
        self.end(CloseReason::Local);
        self.due.farewell = member;
    }

    fn features(&self) -> &'static Features {
        promises::features(self.service(), &self.config.stream)
    }
}

impl Endpoint for XtpGroupReceiver {
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
        self.expire(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        into.clear();
        self.expire(now);
        let to = self.write(into)?;
        self.counters.packets_sent += 1;
        let size = self.config.stream.encapsulation.size(into);
        Some(Transmit { to, ecn: Ecn::NotCapable, size, earliest: Time::ZERO })
    }

    fn next_timeout(&self) -> Option<Time> {
        [self.join_at, self.reply_at, self.report_at].into_iter().flatten().min()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("data-packets-received", self.counters.data_packets_received);
        count("control-packets-sent", self.counters.control_packets_sent);
        count("reports-sent", self.counters.reports_sent);
        count("reports-spared", self.counters.reports_spared);
        count("duplicates", self.counters.duplicates);
        count("bytes-lost", self.incoming.lost());
        count("receive-buffer-full", self.counters.receive_buffer_full);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
    }
}
