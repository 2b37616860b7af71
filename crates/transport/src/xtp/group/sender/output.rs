//! What the sender of a multicast stream sends, and when.

use trunkline_core::{Address, Time};

use super::super::super::config::Acknowledge;
use super::super::super::outgoing::Chunk;
use super::super::super::stream::options;
use super::super::super::wire::{
    self, AddressSegment, Body, Control, Header, Key, Options, Packet, TrafficSpecifier, TrafficValues,
};
use super::{Errand, State, XtpGroupSender};
use crate::addressing::ipv4_of;

/// How many data packets there are at least for each receiver that is asked: four of them for one answer.
const PACKETS_PER_MEMBER: u32 = 4;

impl XtpGroupSender {
    /// Writes the next packet, and says to whom.
    pub(super) fn write(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Address> {
        if let Some(errand) = self.errands.pop_front() {
            return Some(self.write_errand(errand, into));
        }
        if core::mem::take(&mut self.end_due) {
            let options = Options::WCLOSE.and(Options::END);
            self.write_control(options, self.key, into);
            return Some(self.config.group);
        }
        match self.state {
            State::Opening => {
                if !core::mem::take(&mut self.first_due) {
                    return None;
                }
                self.write_first(now, into);
                Some(self.config.group)
            }
            State::Active => {
                if self.write_data(now, into) {
                    return Some(self.config.group);
                }
                let tell = self.is_reliable() && self.has_sent_all() && !self.told;
                if !core::mem::take(&mut self.ask_due) && !tell {
                    return None;
                }
                let last = self.has_sent_all();
                self.told |= last;
                self.request(now);
                self.write_control(Options::SREQ.and_if(last, Options::WCLOSE), self.key, into);
                Some(self.config.group)
            }
            State::Ended => None,
        }
    }

    /// FIRST, without data: who listens, joins.
    fn write_first(&mut self, now: Time, into: &mut Vec<u8>) {
        self.opening_since.get_or_insert(now);
        if !self.is_reliable() {
            self.state = State::Active;
            self.pending.connected = true;
        }
        let options = Options::from_bits(self.options().bits() & !Options::NOCHECK.bits());
        let header = self.header(options, self.key, self.out.next());
        let (address, traffic) = (self.address(self.config.group), self.traffic());
        wire::write_first(&header, address, traffic, into, |_| {});
    }

    fn write_data(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        self.rate_blocked = false;
        let max = self.config.stream.max_data().min(self.rate.largest());
        let Some(chunk) = self.out.next_chunk(max, true) else { return false };
        if !self.rate.allows(now, chunk.length) {
            self.rate_blocked = true;
            return false;
        }
        let end = chunk.start + chunk.length as u64;
        let last = self.closing && end == self.out.written();
        let tag = self.sync.wrapping_add(1);
        let asks = self.is_reliable() && self.asks_with(&chunk, last);
        if asks {
            self.request(now);
        } else if chunk.again.is_some() {
            // A number of its own, so that reports tell whether this repair was seen.
            self.sync = tag;
        }
        if !self.members.any_owing() {
            // Something moves: what is asked after a silence waits for one.
            self.timer = None;
        }
        self.told |= last;
        self.rate.spend(now, chunk.length);
        self.counters.data_packets_sent += 1;
        self.counters.retransmissions += u64::from(chunk.again.is_some());
        let options = self
            .options()
            .and_if(asks, Options::SREQ)
            .and_if(chunk.ends_message, Options::EOM)
            .and_if(last, Options::WCLOSE);
        let header = self.header(options, self.key, chunk.start);
        wire::write_data(&header, into, |into| self.out.copy(&chunk, into));
        self.out.sent(&chunk, tag);
        true
    }

    /// Whether all are asked with this chunk: with every n-th, n being a multiple of their number, and when it cannot go
    /// on without.
    fn asks_with(&mut self, chunk: &Chunk, last: bool) -> bool {
        if chunk.again.is_some() {
            return last;
        }
        let behind = self.out.unsent() - chunk.length;
        let end = chunk.start + chunk.length as u64;
        let next = behind.min(self.config.stream.max_data()) as u64;
        let next_fits = self.out.limit().is_none_or(|limit| limit >= end + next);
        let needed = last || behind > 0 && !next_fits || behind == 0 && self.out.has_refused();
        self.unasked = self.unasked.saturating_add(1);
        let frequency = match self.config.stream.acknowledge {
            Acknowledge::Every(packets) => {
                packets.max(PACKETS_PER_MEMBER.saturating_mul(self.members.len() as u32))
            }
            Acknowledge::OnRequest | Acknowledge::Never => u32::MAX,
        };
        // One round at a time: who has not answered the last one is asked by himself.
        let asks = (needed || self.unasked >= frequency) && (last || !self.members.any_owing());
        if asks {
            self.unasked = 0;
        }
        asks
    }

    fn request(&mut self, now: Time) {
        self.sync = self.sync.wrapping_add(1);
        self.members.ask(self.sync);
        self.waiting.asked(now, self.sync);
        self.counters.requests += 1;
        self.timer = None;
    }

    fn write_errand(&mut self, errand: Errand, into: &mut Vec<u8>) -> Address {
        match errand {
            Errand::Confirm(to, key, start) => {
                let control = Control { rseq: 0, alloc: 0, echo: 0 };
                let header = self.header(Options::MULTI, key.returned(), start);
                let (address, traffic) = (self.address(to), self.traffic());
                let body = Body::JoinControl { control, xkey: self.key, address, traffic };
                Packet { header, body }.emit(into);
                to
            }
            Errand::Ask(to, key) => {
                self.counters.requests += 1;
                let last = self.has_sent_all();
                self.told |= last;
                self.write_control(Options::SREQ.and_if(last, Options::WCLOSE), key.returned(), into);
                to
            }
            Errand::Diagnose(to, key, code, reason) => {
                let key = if key == self.key { key } else { key.returned() };
                let header = self.header(Options::MULTI, key, self.out.next());
                Packet { header, body: Body::Diagnostic { code, reason, text: b"" } }.emit(into);
                to
            }
            Errand::Farewell(to, key) => {
                self.write_control(Options::WCLOSE.and(Options::END), key, into);
                to
            }
        }
    }

    fn write_control(&mut self, options: Options, key: Key, into: &mut Vec<u8>) {
        let header = self.header(options.and(Options::MULTI), key, self.out.next());
        wire::write_status(&header, Control::default(), 0, &[], into);
    }

    fn options(&self) -> Options {
        options(&self.config.stream).and(Options::MULTI)
    }

    fn header(&self, options: Options, key: Key, seq: u64) -> Header {
        Header { key, options, sort: self.config.stream.sort.unwrap_or(0), sync: self.sync, seq }
    }

    fn address(&self, to: Address) -> AddressSegment {
        AddressSegment::Ipv4 {
            destination: ipv4_of(to.host),
            source: ipv4_of(self.local.host),
            destination_port: to.port,
            source_port: self.local.port,
        }
    }

    fn traffic(&self) -> TrafficSpecifier {
        let maxdata = self.config.stream.max_data() as u32;
        let (outrate, outburst) = self.config.stream.send_rate.map_or((0, 0), |rate| (rate.rate, rate.burst));
        let values = TrafficValues { maxdata, outrate, outburst, ..TrafficValues::default() };
        TrafficSpecifier { service: self.service(), values: Some(values) }
    }
}
