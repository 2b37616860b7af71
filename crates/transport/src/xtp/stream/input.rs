//! What packets and timers do to a stream.

use trunkline_core::{Address, Ecn, Time};

use super::super::config::RateLimit;
use super::super::incoming::Taken;
use super::super::outgoing::BadReport;
use super::super::rate::RateControl;
use super::super::wait::reaches;
use super::super::wire::{
    AddressSegment, Body, Code, Control, Header, Key, Options, Packet, ParseError, Reason, Service, Spans,
    TrafficSpecifier, TrafficValues,
};
use super::{Reply, State, XtpEndpoint};
use crate::conversation::CloseReason;

impl XtpEndpoint {
    /// Takes a packet of any content from anybody.
    pub(super) fn take_packet(&mut self, from: Address, ecn: Ecn, packet: &[u8]) {
        match Packet::parse(packet) {
            Ok(packet) => self.take_parsed(from, ecn, &packet),
            Err(ParseError::Checksum) => self.counters.checksum_errors += 1,
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn take_parsed(&mut self, from: Address, ecn: Ecn, packet: &Packet<'_>) {
        let header = &packet.header;
        if self.state == State::Listening
            && let Body::First { address, traffic, .. } = &packet.body
            && self.admits(header, address, traffic)
        {
            self.accept(from, header, traffic);
        }
        let known = self.state != State::Listening && from == self.peer && self.owns(header.key);
        if !known || header.options.has(Options::MULTI) {
            return self.counters.strays += 1;
        }
        self.counters.packets_received += 1;
        self.last_heard = self.now;
        self.asking.heard(self.now);
        if let State::Ended(_) = self.state {
            // The peer does not know yet that it is over.
            let wants = header.options.has_any(Options::SREQ.and(Options::DREQ));
            if wants && !header.options.has(Options::END) {
                self.due.reply = Some(Reply::Status);
            }
            return;
        }
        let length = match packet.body {
            Body::Data { data, .. } | Body::First { data, .. } => {
                let taken = self.take_data(header, ecn, data);
                if self.withholds(header, taken, data.len()) {
                    // A report comes as ever, as if it had left before the data were here: it echoes an earlier request.
                    if header.options.has_any(Options::SREQ.and(Options::DREQ)) {
                        self.due.reply = self.due.reply.max(Some(Reply::Status));
                    }
                    return self.observe();
                }
                data.len()
            }
            Body::Control(control) => self.take_report(control, Some(Spans::List(&[]))),
            Body::ErrorControl { control, spans } => self.take_report(control, Some(spans)),
            Body::TrafficControl { control, xkey, traffic } => {
                self.take_agreement(xkey, &traffic);
                self.take_report(control, None)
            }
            Body::Diagnostic { code, .. } => return self.take_diagnosis(code),
            Body::JoinControl { .. } => return self.counters.strays += 1,
        };
        if reaches(header.sync, self.echo) {
            self.echo = header.sync;
        }
        self.take_options(header, length);
        if let Body::First { .. } = packet.body
            && self.due.reply.is_some()
            && !self.initiates
        {
            self.due.reply = Some(Reply::Traffic);
        }
        self.observe();
    }

    /// Does what is due: WTIMER, CTIMER, CTIMEOUT. RTIMER does nothing by itself.
    pub(super) fn expire(&mut self, now: Time) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        if let Some(patience) = self.asking.gave_up(now) {
            self.break_off(CloseReason::TimedOut(patience));
            self.due.diagnosis = Some((Code::CONTEXT_ABANDONED, Reason::UNSPECIFIED));
            return;
        }
        let alive = self.keep_alive_due().is_none_or(|at| at > now);
        let expired = self.asking.expire(now).is_some();
        match self.state {
            State::Opening(_) => self.due.first |= expired,
            _ => self.due.ask |= expired || !alive,
        }
    }

    /// When an idle peer is asked whether it lives (CTIMER).
    pub(super) fn keep_alive_due(&self) -> Option<Time> {
        let idle = self.state == State::Active && !self.asking.is_unanswered();
        self.config.keep_alive.filter(|_| idle).map(|period| self.last_heard + period)
    }

    /// Whether a FIRST packet opens a stream here.
    fn admits(&self, header: &Header, address: &AddressSegment, traffic: &TrafficSpecifier) -> bool {
        let here = match address {
            AddressSegment::Null => true,
            AddressSegment::Ipv4 { destination_port, .. } => *destination_port == self.local.port,
        };
        let served = matches!(traffic.service, Service::Unspecified) || traffic.service == self.service;
        let over = header.options.has_any(Options::END.and(Options::MULTI));
        here && served && !header.key.is_returned() && !over
    }

    fn accept(&mut self, from: Address, header: &Header, traffic: &TrafficSpecifier) {
        self.peer = from;
        self.their_key = Some(header.key);
        self.origin = header.seq;
        self.echo = header.sync;
        self.state = State::Active;
        self.pending.connected = true;
        if let Some(values) = traffic.values {
            self.agree(&values);
        }
    }

    /// The initiator learns what the responder agrees to.
    fn take_agreement(&mut self, xkey: Key, traffic: &TrafficSpecifier) {
        if !self.initiates || !matches!(self.state, State::Opening(_)) {
            return;
        }
        self.state = State::Active;
        self.due.first = false;
        self.pending.connected = true;
        self.their_key = Some(xkey.chosen());
        if let Some(values) = traffic.values {
            self.agree(&values);
        }
    }

    /// Both ends keep to the smaller packet and to the slower rate.
    fn agree(&mut self, theirs: &TrafficValues) {
        if theirs.maxdata > 0 {
            self.max_data = self.max_data.min(theirs.maxdata as usize);
        }
        if theirs.inrate > 0 && theirs.inburst > 0 {
            let theirs = RateLimit { rate: theirs.inrate, burst: theirs.inburst };
            let agreed = self.config.send_rate.map_or(theirs, |own| RateLimit {
                rate: own.rate.min(theirs.rate),
                burst: own.burst.min(theirs.burst),
            });
            if self.config.send_rate != Some(agreed) {
                self.config.send_rate = Some(agreed);
                self.rate = RateControl::new(Some(agreed));
            }
        }
    }

    /// Whether a key names this context.
    fn owns(&self, key: Key) -> bool {
        match key.is_returned() {
            true => key.chosen() == self.key,
            false => !self.initiates && self.their_key == Some(key),
        }
    }

    fn take_data(&mut self, header: &Header, ecn: Ecn, data: &[u8]) -> Taken {
        self.counters.data_packets_received += 1;
        self.incoming.set_repaired(!header.options.has(Options::NOERR));
        if header.options.has(Options::RES) {
            self.incoming.use_reservation();
        }
        if data.is_empty() {
            return Taken::Old;
        }
        let start = header.seq.wrapping_sub(self.origin);
        let readable = self.incoming.readable();
        let taken = self.incoming.take(start, data);
        match taken {
            Taken::InOrder | Taken::BehindGap => {}
            Taken::NewGap => {
                if header.options.has(Options::FASTNAK) {
                    self.due.reply = self.due.reply.max(Some(Reply::Status));
                }
            }
            Taken::Old => self.counters.duplicates += 1,
            Taken::NoRoom => self.counters.receive_buffer_full += 1,
        }
        if self.incoming.readable() > readable {
            self.pending.readable = true;
            // A mark stays until the user has seen it.
            if self.ecn != Ecn::CongestionExperienced {
                self.ecn = ecn;
            }
        }
        taken
    }

    /// Whether the sender is not to know that these data have come.
    fn withholds(&mut self, header: &Header, taken: Taken, length: usize) -> bool {
        let Some(withheld) = &mut self.withheld else { return false };
        let start = header.seq.wrapping_sub(self.origin);
        let end = start.wrapping_add(length as u64);
        // What closes a direction is not withheld: the sender would wait for it alone.
        let is_last = header.options.has_any(Options::WCLOSE.and(Options::RCLOSE));
        match taken {
            Taken::InOrder | Taken::NewGap | Taken::BehindGap if !is_last => withheld.hides(start, end),
            _ => {
                withheld.came_again(start, end);
                false
            }
        }
    }

    /// A control packet. `spans` are `None` where the packet has no room for them. It has no data: 0.
    fn take_report(&mut self, control: Control, spans: Option<Spans<'_>>) -> usize {
        self.counters.control_packets_received += 1;
        let before = (self.out.base(), self.out.limit());
        let taken = match spans {
            _ if control.rseq > self.out.next() || !self.asking.answer(self.now, control.echo) => {
                Err(BadReport)
            }
            Some(spans) => self.out.report(control.rseq, control.alloc, control.echo, spans.iter()),
            None => {
                self.out.allow(control.alloc);
                self.out.acknowledge(control.rseq);
                Ok(0)
            }
        };
        if taken.is_err() {
            self.counters.refused_reports += 1;
        }
        if before != (self.out.base(), self.out.limit()) {
            self.asking.progressed();
        }
        0
    }

    /// What the option bits ask for, after data and segments were taken.
    fn take_options(&mut self, header: &Header, length: usize) {
        let options = header.options;
        let data_end = header.seq.wrapping_sub(self.origin).wrapping_add(length as u64);
        if options.has(Options::WCLOSE) && !self.incoming.finish(data_end) {
            self.counters.refused_reports += 1;
        }
        let edge = options.has(Options::EDGE);
        let toggled = core::mem::replace(&mut self.edge, edge) != edge;
        if options.has(Options::DREQ) {
            self.incoming.promise_delivery(data_end);
        }
        if options.has(Options::SREQ) || toggled || self.incoming.delivery_is_due() {
            self.due.reply = self.due.reply.max(Some(Reply::Status));
        }
        if options.has(Options::RCLOSE) && self.closing.told {
            self.out.acknowledge(self.out.written());
            self.closing.confirmed = true;
        } else if options.has(Options::RCLOSE) && !options.has(Options::END) {
            // It reads no more, whatever is sent.
            self.break_off(CloseReason::Reset);
            self.due.reply = Some(Reply::Status);
        }
        let graceful = self.closing.confirmed && self.incoming.is_complete();
        if options.has(Options::END) && !graceful {
            self.break_off(CloseReason::Reset);
        }
    }

    fn take_diagnosis(&mut self, code: Code) {
        // Data that overtook FIRST are of a context that the peer does not know yet. FIRST is sent again if it must be.
        if code != Code::INVALID_CONTEXT || !matches!(self.state, State::Opening(_)) {
            self.break_off(CloseReason::Reset);
        }
    }
}
