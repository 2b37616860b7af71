//! What an endpoint sends, in which order, and with which options.

use trunkline_core::{Address, Bytes, Duration, Ecn, Time};

use super::config::{DccpConfig, Encapsulation};
use super::congestion::{Receiver, Release};
use super::negotiation::{Feature, Place};
use super::options::Opt;
use super::reset::{Reset, ResetCode};
use super::seq::Seq;
use super::wire::{self, Body, Header, PseudoHeader};
use super::{DccpEndpoint, State};
use crate::addressing::ipv4_of;
use crate::crc32c::CRC32C;
use crate::endpoint::Transmit;
use crate::udp::{self, UDP_HEADER_LENGTH, Variant};

/// The UDP port of RFC 6773.
const UDP_PORT: u16 = 6511;
/// The room that acknowledgement options want beside data; with less, a packet of its own acknowledges.
const ROOM_FOR_ACK: usize = 160;
/// Without Ack Vectors there is no need to remember more of what has arrived.
const KEPT_WITHOUT_VECTORS: usize = 64;

/// A reset that answers a packet which belongs to no state of ours: its numbers come from that packet (RFC 4340 section
/// 8.3.1). If they are not valid there, a Sync will say what would be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub(super) to: Address,
    /// DCCP's port there.
    pub(super) port: u16,
    pub(super) sequence: Seq,
    pub(super) ack: Seq,
    pub(super) reset: Reset,
}

impl Refusal {
    /// Of a packet from `to`.
    pub(super) fn of(to: Address, header: &Header, reset: Reset) -> Refusal {
        let sequence = header.body.ack().map_or(0, |ack| ack + 1);
        Refusal {
            to,
            port: header.source,
            sequence: Seq::new(sequence),
            ack: Seq::new(header.sequence),
            reset,
        }
    }

    /// Writes the packet.
    pub(super) fn write(&self, local: Address, config: &DccpConfig, into: &mut Vec<u8>) -> Transmit {
        let Reset { code, data } = self.reset;
        let body = Body::Reset { ack: self.ack.value(), code: code as u8, data };
        let header = Header {
            source: local.port,
            destination: self.port,
            ccval: 0,
            coverage: 0,
            long: true,
            sequence: self.sequence.value(),
            body,
        };
        begin(config.encapsulation, into);
        wire::encode(&header, &[], &[], pseudo_header(config, local, self.to), into);
        complete(config.encapsulation, local, self.to, Ecn::NotCapable, into)
    }
}

/// Leaves room for the UDP header.
fn begin(encapsulation: Encapsulation, into: &mut Vec<u8>) {
    into.clear();
    if encapsulation == Encapsulation::Udp {
        into.extend_from_slice(&[0; UDP_HEADER_LENGTH]);
    }
}

/// Fills the UDP header in, if there is one.
fn complete(
    encapsulation: Encapsulation,
    local: Address,
    to: Address,
    ecn: Ecn,
    into: &mut [u8],
) -> Transmit {
    let network_header = match encapsulation {
        Encapsulation::Ip | Encapsulation::Udp => 20,
        Encapsulation::UdpPayload => 20 + UDP_HEADER_LENGTH,
    };
    if encapsulation == Encapsulation::Udp {
        Variant::Udp.write(udp_address(local), udp_address(to), into);
    }
    Transmit { to, ecn, size: Bytes((network_header + into.len()) as u64), earliest: Time::ZERO }
}

/// Where UDP finds a host's DCCP.
fn udp_address(address: Address) -> Address {
    Address { port: UDP_PORT, ..address }
}

/// What DCCP's own checksum covers besides the packet.
pub(super) fn pseudo_header(config: &DccpConfig, from: Address, to: Address) -> PseudoHeader {
    let virtual_ones = || [from, to].map(|address| ipv4_of(address.host).into());
    (config.encapsulation == Encapsulation::Ip).then(|| config.addresses.unwrap_or_else(virtual_ones))
}

/// The DCCP packet within a UDP datagram; `Err` with whether its checksum is wrong. Without one nothing would protect
/// DCCP's header (RFC 6773 section 3.3).
pub(super) fn unwrap_udp(from: Address, to: Address, datagram: &[u8]) -> Result<&[u8], wire::Fault> {
    Variant::Udp.read(udp_address(from), udp_address(to), datagram).map_err(|fault| match fault {
        udp::Fault::Checksum => wire::Fault::Checksum,
        udp::Fault::Malformed | udp::Fault::Coverage | udp::Fault::Stray => wire::Fault::Malformed,
    })
}

/// What goes into a packet besides its type's fields.
#[derive(Clone, Copy, Debug, Default)]
struct Content {
    /// The next message of the queue.
    message: bool,
    /// The options that acknowledge the peer's data.
    acknowledgement: bool,
    /// Every feature negotiation without an answer, not only new ones.
    repeat_changes: bool,
}

impl DccpEndpoint {
    /// Writes the next packet, if there is one.
    pub(super) fn next_packet(&mut self, into: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(refusal) = self.outbox.refusal.take() {
            self.counters.resets_sent += 1;
            self.counters.packets_sent += 1;
            return Some(refusal.write(self.local, &self.config, into));
        }
        if let Some((ack, Reset { code, data })) = self.outbox.reset.take() {
            self.counters.resets_sent += 1;
            let body = Body::Reset { ack: ack.value(), code: code as u8, data };
            return Some(self.write(body, Content::default(), into));
        }
        let nothing = Content::default();
        let handshake =
            Content { repeat_changes: true, acknowledgement: self.arrived.has_dropped(), ..nothing };
        let gsr = self.sequences.gsr.value();
        let service = self.config.service_code;
        if core::mem::take(&mut self.outbox.request) {
            return Some(self.write(Body::Request { service }, handshake, into));
        }
        if core::mem::take(&mut self.outbox.response) {
            let transmit = self.write(Body::Response { ack: gsr, service }, handshake, into);
            self.responded = self.sequences.gss;
            return Some(transmit);
        }
        if let Some(ack) = self.outbox.sync_ack.take() {
            return Some(self.write(Body::SyncAck { ack: ack.value() }, nothing, into));
        }
        if let Some(ack) = self.outbox.sync.take() {
            self.counters.syncs_sent += 1;
            let transmit = self.write(Body::Sync { ack: ack.value() }, nothing, into);
            self.timers.challenge = Some(self.sequences.gss);
            return Some(transmit);
        }
        if self.is_established() {
            if let Some(transmit) = self.data_packet(into) {
                return Some(transmit);
            }
            if self.outbox.ack || self.negotiation.is_pressing() {
                self.outbox.ack = false;
                let content = Content { acknowledgement: true, ..nothing };
                return Some(self.write(Body::Ack { ack: gsr }, content, into));
            }
            if self.closing && self.queue.is_empty() {
                self.begin_closing();
            }
        }
        if core::mem::take(&mut self.outbox.close) {
            let body = match self.state {
                State::CloseReq => Body::CloseReq { ack: gsr },
                _ => Body::Close { ack: gsr },
            };
            return Some(self.write(body, nothing, into));
        }
        None
    }

    /// A message, if one waits and congestion control lets it out.
    fn data_packet(&mut self, into: &mut Vec<u8>) -> Option<Transmit> {
        self.queue.expire(self.now);
        let length = self.queue.front()?;
        if !self.may_send_data() || self.sender.release(self.now) != Release::Now {
            return None;
        }
        let ack = self.sequences.gsr.value();
        let is_pressing = self.outbox.ack || self.negotiation.is_pressing();
        let wants_ack = is_pressing || self.state == State::PartOpen || self.owes_ack_of_ack();
        let body = if wants_ack { Body::DataAck { ack } } else { Body::Data };
        let room = self.config.max_message().saturating_sub(length);
        let acknowledgement = wants_ack && room >= ROOM_FOR_ACK;
        if acknowledgement {
            self.outbox.ack = false;
        }
        Some(self.write(body, Content { message: true, acknowledgement, ..Content::default() }, into))
    }

    /// Whether data may be sent at all; when is congestion control's business.
    pub(super) fn may_send_data(&self) -> bool {
        // CCID 2 needs the peer's Ack Vectors (RFC 4341 section 4); cookies and data would not fit into one packet.
        let is_heard = self.sender.ack_ratio().is_none()
            || self.negotiation.is_on(Place::Remote, Feature::SendAckVector);
        let has_cookies = self.state == State::PartOpen && !self.outbox.cookies.is_empty();
        self.is_established() && is_heard && !has_cookies
    }

    /// Whether the peer keeps state until we acknowledge its acknowledgements: once per round trip is enough.
    fn owes_ack_of_ack(&self) -> bool {
        self.outbox.owes_ack_of_ack && self.now.since(self.timers.acknowledged_at) >= self.rtt.smoothed()
    }

    /// Sends Close, or as a server CloseReq, so that the client keeps TIMEWAIT.
    fn begin_closing(&mut self) {
        self.state = if self.is_server { State::CloseReq } else { State::Closing };
        self.outbox.close = true;
        self.start_closing_timers();
    }

    /// Writes a packet and does the books.
    fn write(&mut self, body: Body, content: Content, into: &mut Vec<u8>) -> Transmit {
        let number = self.sequences.advance();
        let is_data = matches!(body, Body::Data | Body::DataAck { .. });
        let ccval = if is_data { self.sender.ccval(self.now) } else { 0 };
        let length = if content.message { self.queue.front().unwrap_or(0) } else { 0 };
        let header = Header {
            source: self.local.port,
            destination: self.peer.port,
            ccval,
            coverage: if is_data { self.coverage(length) } else { 0 },
            long: !self.is_short(&body),
            sequence: number.value(),
            body,
        };
        let header = if header.long { header } else { shortened(header) };
        let encapsulation = self.config.encapsulation;
        begin(encapsulation, into);
        let start = into.len();
        header.write(into);
        let room = wire::room_for_options(&header)
            .min(self.config.max_packet.saturating_sub(encapsulation.overhead() + header.length() + length));
        // Whole words: the options are padded.
        self.write_options(&body, number, content, room & !3, into);
        let pseudo_header = pseudo_header(&self.config, self.local, self.peer.address);
        wire::finish(into, start, pseudo_header, |into| {
            if content.message {
                self.queue.pop(into);
            }
        });
        self.note_sent(&body, number, is_data, ccval, length);
        let may_be_marked = matches!(body, Body::Data | Body::Ack { .. } | Body::DataAck { .. })
            && self.config.ecn
            && !self.negotiation.is_on(Place::Remote, Feature::EcnIncapable);
        let ecn = if may_be_marked { Ecn::Ect0 } else { Ecn::NotCapable };
        complete(encapsulation, self.local, self.peer.address, ecn, into)
    }

    fn write_options(&mut self, body: &Body, number: Seq, content: Content, room: usize, into: &mut Vec<u8>) {
        let end = into.len() + room;
        let counts = self.negotiation.is_on(Place::Local, Feature::SendNdpCount);
        if counts && self.outbox.without_data > 0 && room >= 8 {
            Opt::NdpCount(self.outbox.without_data).write(into);
        }
        if content.message && self.config.data_checksum {
            Opt::DataChecksum(CRC32C.checksum(self.queue.peek())).write(into);
        }
        let left = |into: &Vec<u8>| end.saturating_sub(into.len());
        if let Some((echo, at)) = self.outbox.timestamp
            && left(into) >= 10
        {
            self.outbox.timestamp = None;
            Opt::TimestampEcho { echo, elapsed: hundredths(self.now.since(at)) }.write(into);
        }
        if matches!(body, Body::Data) {
            return;
        }
        if self.state == State::PartOpen && left(into) >= self.outbox.cookies.len() {
            into.extend_from_slice(&self.outbox.cookies);
        }
        let has_ack = body.ack().is_some();
        if !matches!(body, Body::Reset { .. } | Body::Close { .. } | Body::CloseReq { .. }) {
            let room = left(into);
            self.negotiation.write(self.now, number, has_ack, content.repeat_changes, room, into);
        }
        if content.acknowledgement {
            self.write_acknowledgement(number, left(into), into);
        }
    }

    /// What the congestion control of the peer's data wants to be told.
    fn write_acknowledgement(&mut self, number: Seq, room: usize, into: &mut Vec<u8>) {
        let end = into.len() + room;
        let left = |into: &Vec<u8>| end.saturating_sub(into.len());
        let elapsed = hundredths(self.now.since(self.greatest_at));
        if self.incoming.is_nearly_full() {
            Opt::SlowReceiver.write(into);
        }
        match &mut self.receiver {
            Receiver::TcpLike(receiver) => {
                receiver.on_acknowledged();
                if elapsed > 0 && left(into) >= 6 {
                    Opt::ElapsedTime(elapsed).write(into);
                }
            }
            Receiver::Tfrc(receiver) => {
                if receiver.has_news() && left(into) >= ROOM_FOR_ACK - 16 {
                    Opt::ElapsedTime(elapsed).write(into);
                    let with_rate = self.negotiation.is_on(Place::Local, Feature::SendLossEventRate);
                    receiver.write(self.now, self.sequences.gsr, with_rate, into);
                }
            }
        }
        self.arrived.write_data_dropped(left(into) / 2, into);
        if self.negotiation.is_on(Place::Local, Feature::SendAckVector) {
            self.arrived.write_ack_vectors(left(into), into);
        } else if !self.arrived.has_dropped() {
            self.arrived.keep(KEPT_WITHOUT_VECTORS);
        }
        self.arrived.told(number);
        self.outbox.owes_ack_of_ack = false;
        self.timers.acknowledged_at = self.now;
    }

    fn note_sent(&mut self, body: &Body, number: Seq, is_data: bool, ccval: u8, length: usize) {
        self.counters.packets_sent += 1;
        self.outbox.without_data = if body.is_data() { 0 } else { self.outbox.without_data + 1 };
        if self.sent.push(self.now, is_data, ccval).is_some_and(|packet| packet.is_data) {
            self.sender.on_forgotten();
        }
        if is_data {
            self.sender.on_sent(self.now, number, length, &self.rtt);
        }
        let wants_answer = is_data
            || matches!(
                body,
                Body::Request { .. } | Body::Sync { .. } | Body::Close { .. } | Body::CloseReq { .. }
            );
        self.note_sent_in_timers(wants_answer);
    }

    /// The coverage of a message: as configured, where the peer takes it and the message is long enough.
    fn coverage(&self, length: usize) -> u8 {
        let least = self.negotiation.value(Place::Remote, Feature::MinChecksumCoverage);
        let wanted = self.config.checksum_coverage;
        if least == 0 || u64::from(wanted) < least {
            return 0;
        }
        let covered = (usize::from(wanted) - 1) * 4;
        if covered <= length { wanted } else { 0 }
    }

    fn is_short(&self, body: &Body) -> bool {
        matches!(body, Body::Data | Body::Ack { .. } | Body::DataAck { .. })
            && self.state != State::PartOpen
            && self.negotiation.is_on(Place::Local, Feature::AllowShortSequenceNumbers)
    }
}

/// With the low 24 bits of the numbers only.
fn shortened(header: Header) -> Header {
    const LOW: u64 = (1 << 24) - 1;
    let body = match header.body {
        Body::Ack { ack } => Body::Ack { ack: ack & LOW },
        Body::DataAck { ack } => Body::DataAck { ack: ack & LOW },
        other => other,
    };
    Header { sequence: header.sequence & LOW, body, ..header }
}

/// In units of 10 us, as DCCP counts time.
fn hundredths(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / 10_000).unwrap_or(u32::MAX)
}

/// The reset of a normal end.
pub(super) const CLOSED: Reset = Reset::plain(ResetCode::Closed);
