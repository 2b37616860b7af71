//! What a receiver of a multicast stream sends.

use trunkline_core::Address;

use super::super::super::wire::{
    self, AddressSegment, Body, Control, Header, Key, Options, Packet, TrafficSpecifier, TrafficValues,
};
use super::XtpGroupReceiver;
use crate::addressing::ipv4_of;

impl XtpGroupReceiver {
    /// Writes the next packet, and says to whom.
    pub(super) fn write(&mut self, into: &mut Vec<u8>) -> Option<Address> {
        let (sender, key) = self.sender?;
        if core::mem::take(&mut self.due.farewell) {
            self.write_status(Options::END, key, into);
            return Some(sender);
        }
        if core::mem::take(&mut self.due.join) {
            self.write_join(sender, key, into);
            return Some(sender);
        }
        if core::mem::take(&mut self.due.report) {
            // It says all that an answer would say.
            self.counters.reports_sent += 1;
            self.write_status(Options::NONE, key, into);
            return Some(self.config.group);
        }
        if core::mem::take(&mut self.due.reply) {
            self.write_status(Options::NONE, key, into);
            return Some(sender);
        }
        None
    }

    fn write_status(&mut self, options: Options, key: Key, into: &mut Vec<u8>) {
        let options = options.and(Options::MULTI).and_if(self.incoming.is_complete(), Options::RCLOSE);
        let control = self.control();
        let header = self.header(options, key);
        wire::write_status(&header, control, self.origin, self.incoming.spans(), into);
        self.counters.control_packets_sent += 1;
    }

    fn write_join(&mut self, sender: Address, key: Key, into: &mut Vec<u8>) {
        let address = AddressSegment::Ipv4 {
            destination: ipv4_of(sender.host),
            source: ipv4_of(self.local.host),
            destination_port: sender.port,
            source_port: self.local.port,
        };
        let maxdata = self.config.stream.max_data() as u32;
        let values = TrafficValues { maxdata, ..TrafficValues::default() };
        let traffic = TrafficSpecifier { service: self.service(), values: Some(values) };
        // From its first byte on: what has come meanwhile will not have to come again, unless something is missing.
        let control = Control {
            rseq: self.origin,
            alloc: self.origin.wrapping_add(self.config.stream.receive_buffer as u64),
            echo: self.echo,
        };
        let header = self.header(Options::MULTI, key);
        let body = Body::JoinControl { control, xkey: self.key, address, traffic };
        Packet { header, body }.emit(into);
        self.counters.control_packets_sent += 1;
    }

    fn control(&mut self) -> Control {
        Control {
            rseq: self.origin.wrapping_add(self.incoming.rseq()),
            alloc: self.origin.wrapping_add(self.incoming.allocate()),
            echo: self.echo,
        }
    }

    fn header(&self, options: Options, key: Key) -> Header {
        let sort = self.config.stream.sort.unwrap_or(0);
        Header { key: key.returned(), options, sort, sync: 0, seq: 0 }
    }
}
