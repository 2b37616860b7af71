//! What a stream sends, and when.

use trunkline_core::Time;

use super::super::config::{Acknowledge, Meaning, Open, RateLimit};
use super::super::outgoing::Chunk;
use super::super::wire::{
    self, AddressSegment, Body, Control, Header, Key, Options, Packet, TrafficSpecifier, TrafficValues,
};
use super::{Reply, State, XtpEndpoint};
use crate::addressing::ipv4_of;

impl XtpEndpoint {
    /// Writes the next packet: a diagnosis, an answer, missing data, new data, a request. False if there is none.
    pub(super) fn write_packet(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        if let Some((code, reason)) = self.due.diagnosis.take() {
            let header = self.header(Options::NONE, self.asking.sync(), self.out.next());
            Packet { header, body: Body::Diagnostic { code, reason, text: b"" } }.emit(into);
            return true;
        }
        match self.state {
            State::Listening => false,
            State::Ended(_) => self.due.reply.take().is_some() && self.write_status(now, into, false),
            State::Opening(None) => self.write_first(now, into),
            State::Opening(Some(length)) if self.due.first => self.write_first_again(now, into, length),
            State::Opening(Some(_)) | State::Active => match self.due.reply.take() {
                Some(Reply::Traffic) => self.write_agreement(into),
                Some(Reply::Status) => self.write_status(now, into, self.due.ask),
                None if self.write_data(now, into) => true,
                // While it opens, it asks by FIRST.
                None if self.state != State::Active => false,
                None => {
                    let unknown = self.asks() && self.unasked > 0 && !self.asking.is_unanswered();
                    let ask = self.due.ask
                        || self.has_sent_all() && !self.closing.told
                        // The window may have opened long ago, with the data that nobody asked about.
                        || unknown && self.is_blocked();
                    ask && self.write_status(now, into, true)
                }
            },
        }
    }

    /// FIRST, with the first data if there are any.
    fn write_first(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let max = self.data_limit().min(self.config.max_first_data());
        let nothing = Chunk { start: 0, length: 0, ends_message: false, again: None };
        let chunk = match self.out.next_chunk(max, true) {
            Some(chunk) => chunk,
            None if self.config.open == Open::Handshake || self.closing.asked => nothing,
            None => return false,
        };
        self.state = State::Opening(Some(chunk.length));
        let tag = self.asking.tag();
        self.write_first_packet(now, into, &chunk);
        if chunk.length > 0 {
            self.counters.data_packets_sent += 1;
            self.out.sent(&chunk, tag);
        }
        true
    }

    /// FIRST once more: with the same data if they are still kept, so that it opens the same context.
    fn write_first_again(&mut self, now: Time, into: &mut Vec<u8>, length: usize) -> bool {
        let kept = self.config.is_reliable() && self.out.base() == 0;
        let start = if self.config.is_reliable() { 0 } else { self.out.next() };
        let length = if kept { length } else { 0 };
        if self.delayed_by_rate(now, length) {
            return false;
        }
        self.due.first = false;
        self.counters.retransmissions += u64::from(length > 0);
        self.write_first_packet(now, into, &Chunk { start, length, ends_message: false, again: None });
        true
    }

    fn write_first_packet(&mut self, now: Time, into: &mut Vec<u8>, chunk: &Chunk) {
        let last = self.is_last(chunk);
        // The checksum covers addresses and traffic, whatever it covers later.
        let options = Options::from_bits(self.options.bits() & !Options::NOCHECK.bits())
            .and(Options::SREQ)
            .and_if(chunk.ends_message, Options::EOM)
            .and_if(last, Options::WCLOSE);
        self.closing.told |= last;
        self.rate.spend(now, chunk.length);
        let sync = self.ask(now);
        let address = AddressSegment::Ipv4 {
            destination: ipv4_of(self.peer.host),
            source: ipv4_of(self.local.host),
            destination_port: self.peer.port,
            source_port: self.local.port,
        };
        let header = self.header(options, sync, chunk.start);
        wire::write_first(&header, address, self.traffic(), into, |into| self.out.copy(chunk, into));
    }

    /// DATA: missing ones first, then new ones.
    fn write_data(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        self.rate_blocked = false;
        // What is not repaired need not wait until both ends agree on what is missing.
        let new = !self.asking.in_handshake() || !self.config.is_reliable();
        let Some(chunk) = self.out.next_chunk(self.data_limit(), new) else { return false };
        if self.delayed_by_rate(now, chunk.length) {
            return false;
        }
        let last = self.is_last(&chunk);
        let request = self.request_with(&chunk, last);
        let tag = self.asking.tag();
        let sync = match request {
            Options::NONE => {
                self.asking.postpone();
                self.asking.sync()
            }
            _ => self.ask(now),
        };
        let options = self
            .options
            .and(request)
            .and_if(chunk.ends_message, Options::EOM)
            .and_if(last, Options::WCLOSE)
            .and_if(self.incoming.is_complete(), Options::RCLOSE);
        self.closing.told |= last;
        self.rate.spend(now, chunk.length);
        self.counters.data_packets_sent += 1;
        self.counters.retransmissions += u64::from(chunk.again.is_some());
        let header = self.header(options, sync, chunk.start);
        wire::write_data(&header, into, |into| self.out.copy(&chunk, into));
        self.out.sent(&chunk, tag);
        true
    }

    /// CNTL or ECNTL: what is here and what may come, and a request if `ask`.
    fn write_status(&mut self, now: Time, into: &mut Vec<u8>, ask: bool) -> bool {
        let (ended, graceful) = match self.state {
            State::Ended(graceful) => (true, graceful),
            _ => (false, false),
        };
        let last = self.has_sent_all() && !ended;
        let ask = ask || last && !self.closing.told;
        self.closing.told |= last;
        self.due.ask &= !ask;
        let options = Options::NONE
            .and_if(self.config.sort.is_some(), Options::SORT)
            .and_if(ask, Options::SREQ)
            .and_if(last || graceful, Options::WCLOSE)
            .and_if(graceful || !ended && self.incoming.is_complete(), Options::RCLOSE)
            .and_if(ended, Options::END);
        let sync = if ask { self.ask(now) } else { self.asking.sync() };
        self.unasked = if ask { 0 } else { self.unasked };
        let control = self.control();
        let header = self.header(options, sync, self.out.next());
        let (rseq, spans, most) = (self.incoming.rseq(), self.incoming.spans(), self.config.max_spans());
        let spans = match &mut self.withheld {
            Some(withheld) => withheld.show(rseq, spans, most),
            None => spans,
        };
        wire::write_status(&header, control, self.origin, spans, into);
        self.counters.control_packets_sent += 1;
        true
    }

    /// TCNTL: what this end agrees to.
    fn write_agreement(&mut self, into: &mut Vec<u8>) -> bool {
        let options = Options::NONE.and_if(self.config.sort.is_some(), Options::SORT);
        let control = self.control();
        let header = self.header(options, self.asking.sync(), self.out.next());
        let body = Body::TrafficControl { control, xkey: self.key, traffic: self.traffic() };
        Packet { header, body }.emit(into);
        self.counters.control_packets_sent += 1;
        true
    }

    /// Which request goes with a chunk.
    fn request_with(&mut self, chunk: &Chunk, last: bool) -> Options {
        if !self.asks() {
            return Options::NONE.and_if(last, Options::SREQ);
        }
        let behind = match chunk.again {
            Some(_) => self.out.unsent(),
            None => self.out.unsent() - chunk.length,
        };
        let end = chunk.start + chunk.length as u64;
        let next_fits = self.out.limit().is_none_or(|limit| limit >= end + behind.min(self.max_data) as u64);
        // Without an answer it could not go on, or would not learn whether a repair succeeded.
        let needed = last
            || behind > 0 && !next_fits
            || behind == 0 && self.out.has_refused()
            || chunk.again.is_some() && !self.out.several_again();
        self.unasked = self.unasked.saturating_add(1);
        let wanted = core::mem::take(&mut self.due.user_asks)
            || matches!(self.config.acknowledge, Acknowledge::Every(packets) if self.unasked >= packets);
        if !needed && !wanted {
            return Options::NONE;
        }
        self.unasked = 0;
        if needed || self.config.meaning == Meaning::Arrived { Options::SREQ } else { Options::DREQ }
    }

    fn ask(&mut self, now: Time) -> u32 {
        self.counters.requests += 1;
        self.asking.ask(now)
    }

    /// Whether a packet with so much data has to wait for the next period of rate control.
    fn delayed_by_rate(&mut self, now: Time, length: usize) -> bool {
        self.rate_blocked = !self.rate.allows(now, length);
        self.rate_blocked
    }

    /// Whether nothing follows these data.
    fn is_last(&self, chunk: &Chunk) -> bool {
        self.closing.asked && chunk.start + chunk.length as u64 == self.out.written()
    }

    /// The most data that a packet may hold.
    fn data_limit(&self) -> usize {
        self.max_data.min(self.rate.largest())
    }

    fn header(&self, options: Options, sync: u32, seq: u64) -> Header {
        Header { key: self.key_for_peer(), options, sort: self.config.sort.unwrap_or(0), sync, seq }
    }

    /// The key by which the peer finds its context: its own, once it is known.
    fn key_for_peer(&self) -> Key {
        self.their_key.map_or(self.key, Key::returned)
    }

    fn control(&mut self) -> Control {
        let rseq = self.incoming.rseq();
        let rseq = self.withheld.as_ref().map_or(rseq, |withheld| withheld.rseq(rseq));
        Control {
            rseq: self.origin.wrapping_add(rseq),
            alloc: self.origin.wrapping_add(self.incoming.allocate()),
            echo: self.echo,
        }
    }

    /// What this end wants, or agrees to.
    fn traffic(&self) -> TrafficSpecifier {
        let rate = |limit: Option<RateLimit>| limit.map_or((0, 0), |limit| (limit.rate, limit.burst));
        let (inrate, inburst) = rate(self.config.receive_rate);
        let (outrate, outburst) = rate(self.config.send_rate);
        let maxdata = self.max_data as u32;
        let values = TrafficValues { maxdata, inrate, inburst, outrate, outburst };
        TrafficSpecifier { service: self.service, values: Some(values) }
    }
}
