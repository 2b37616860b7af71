//! What an endpoint makes of a packet: the steps of RFC 4340 section 8.5.

use trunkline_core::{Address, Duration, Ecn};

use super::config::{Ccid, Encapsulation, MAX_SEQUENCE_WINDOW};
use super::congestion::{Receiver, Sender};
use super::feedback::Feedback;
use super::loss::Arrival;
use super::negotiation::{Feature, Place};
use super::receive_options::Taken;
use super::received::{DropCode, State as AckState, runs};
use super::reset::{Reset, ResetCode};
use super::sent::Fate;
use super::seq::Seq;
use super::sequences::{Validity, Windows};
use super::transmit::{CLOSED, Refusal, pseudo_header, unwrap_udp};
use super::wire::{self, Body, Fault, Header, Packet};
use super::{DccpEndpoint, Peer, State};
use crate::conversation::CloseReason;
use crate::crc32c::CRC32C;

/// Packets that must have come after one of the peer before it counts as lost.
const NUMDUPACK: u64 = 3;
/// With 24-bit numbers a window must stay far below half their circle.
const MAX_SHORT_WINDOW: u64 = 1 << 20;

/// A packet's numbers in full, and what came before it.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    number: Seq,
    ack: Option<Seq>,
    /// GSR before this packet.
    greatest: Seq,
}

impl DccpEndpoint {
    /// Steps 1 and 2: is it a packet, and ours?
    pub(super) fn take_packet(&mut self, from: Address, ecn: Ecn, bytes: &[u8]) {
        let packet = match self.open(from, bytes) {
            Ok(packet) => packet,
            Err(Fault::Malformed) => return self.counters.malformed += 1,
            Err(Fault::Checksum) => return self.counters.checksum_errors += 1,
        };
        let Header { source, destination, .. } = packet.header;
        let is_from_peer = (from.host, source) == (self.peer.address.host, self.peer.port);
        if destination != self.local.port || self.peer.port != 0 && !is_from_peer {
            return self.counters.strays += 1;
        }
        self.counters.packets_received += 1;
        self.counters.marks += u64::from(ecn == Ecn::CongestionExperienced);
        if let Some(numbers) = self.place(from, &packet) {
            self.process(&packet, numbers, ecn);
        }
    }

    fn open<'p>(&self, from: Address, bytes: &'p [u8]) -> Result<Packet<'p>, Fault> {
        let bytes = match self.config.encapsulation {
            Encapsulation::Udp => unwrap_udp(from, self.local, bytes)?,
            Encapsulation::Ip | Encapsulation::UdpPayload => bytes,
        };
        wire::decode(bytes, pseudo_header(&self.config, from, self.local))
    }

    /// Steps 2 to 7: does it belong to the connection now? Gives its numbers if so.
    fn place(&mut self, from: Address, packet: &Packet<'_>) -> Option<Numbers> {
        let header = &packet.header;
        let body = &header.body;
        let first = Seq::new(header.sequence);
        match (self.state, body) {
            (State::Closed | State::Listen, Body::Reset { .. }) => return None,
            (State::Listen, &Body::Request { service }) => {
                if service != self.config.service_code {
                    self.refuse(from, header, ResetCode::BadServiceCode);
                    return None;
                }
                self.peer = Peer { address: from, port: header.source };
                self.state = State::Respond;
                self.start_respond_timer();
                self.sequences.begin(first);
                self.arrived.begin(first);
            }
            (State::Closed | State::Listen, _) => {
                self.counters.strays += 1;
                self.refuse(from, header, ResetCode::NoConnection);
                return None;
            }
            (State::Request, &Body::Response { ack, service })
                if service == self.config.service_code && self.acks_us(ack) =>
            {
                self.sequences.begin(first);
                self.arrived.begin(first);
            }
            (State::Request, &Body::Reset { ack, .. }) if self.acks_us(ack) => {
                self.sequences.begin(first.minus(1));
                self.arrived.begin(first);
            }
            (State::Request, Body::Reset { .. }) => {
                self.counters.sequence_invalid += 1;
                return None;
            }
            (State::Request, _) => {
                if self.may_refuse() {
                    let reset = Reset::packet_error(header.body.kind());
                    self.outbox.refusal = Some(Refusal::of(from, header, reset));
                }
                return None;
            }
            _ => {}
        }
        let greatest = self.sequences.gsr;
        let (number, ack) = self.full_numbers(header)?;
        let active = self.valid_at.is_some_and(|at| self.now.since(at) <= self.rtt.smoothed() * 3);
        let windows = Windows {
            local: self.negotiation.value(Place::Local, Feature::SequenceWindow),
            remote: self.negotiation.value(Place::Remote, Feature::SequenceWindow),
            active,
            challenge: self.timers.challenge,
        };
        let is_unexpected = self.is_unexpected(body, number);
        let before = self.sequences;
        match self.sequences.check(body, number, ack, &windows) {
            Validity::Valid if self.arrived.is_duplicate(number) => {
                self.counters.duplicates += 1;
                None
            }
            Validity::Valid if is_unexpected => {
                // It is not processed, so GSR must not say that it was: Ack Vectors begin there.
                self.sequences = before;
                self.challenge(number);
                None
            }
            Validity::Valid => Some(Numbers { number, ack, greatest }),
            Validity::Sync(acknowledge) => {
                self.counters.sequence_invalid += 1;
                self.challenge(acknowledge);
                None
            }
            Validity::Ignore => {
                self.counters.sequence_invalid += 1;
                None
            }
        }
    }

    fn acks_us(&mut self, ack: u64) -> bool {
        let window = self.negotiation.value(Place::Local, Feature::SequenceWindow);
        self.sequences.acks_us(Seq::new(ack), window)
    }

    /// The numbers in 48 bits; `None` for short ones that were not agreed on.
    fn full_numbers(&mut self, header: &Header) -> Option<(Seq, Option<Seq>)> {
        if header.long {
            return Some((Seq::new(header.sequence), header.body.ack().map(Seq::new)));
        }
        if !self.negotiation.is_on(Place::Remote, Feature::AllowShortSequenceNumbers) {
            self.counters.sequence_invalid += 1;
            return None;
        }
        let number = Seq::extend(header.sequence, self.sequences.gsr);
        let ack = header.body.ack().map(|ack| Seq::extend(ack, self.sequences.gss));
        Some((number, ack))
    }

    /// Step 7: packets of a type that this end cannot expect.
    fn is_unexpected(&self, body: &Body, number: Seq) -> bool {
        let is_new = self.sequences.osr.is_some_and(|first| !first.is_after(number));
        let is_open = self.state >= State::Open && is_new;
        match body {
            Body::CloseReq { .. } => self.is_server,
            Body::Response { .. } => self.is_server || is_open,
            Body::Request { .. } => !self.is_server || is_open,
            Body::Data => self.state == State::Respond,
            _ => false,
        }
    }

    /// Steps 8 to 16.
    fn process(&mut self, packet: &Packet<'_>, numbers: Numbers, ecn: Ecn) {
        let Numbers { number, ack, greatest } = numbers;
        let body = &packet.header.body;
        self.valid_at = Some(self.now);
        self.note_valid_in_timers(ack);
        if number == self.sequences.gsr {
            self.greatest_at = self.now;
        }
        let taken = match self.take_options(packet, number, ack) {
            Ok(taken) => taken,
            Err(reset) => return self.abort(reset, CloseReason::Reset),
        };
        let marked = ecn == Ecn::CongestionExperienced;
        self.arrived.insert(number, marked);
        self.notice_lost_acks(body, greatest, marked);
        if matches!(body, Body::Request { .. } | Body::Response { .. }) && !packet.data.is_empty() {
            // No application here takes data before the connection stands.
            self.arrived.drop_data(number, DropCode::ProtocolConstraints);
        }

        if let &Body::Reset { code, data, .. } = body {
            return self.take_reset(Reset { code: ResetCode::of_number(code), data });
        }
        if let Some(feedback) = taken.feedback.filter(|_| !matches!(body, Body::Sync { .. })) {
            self.take_feedback(&feedback);
        }
        self.agree_on_congestion_control();
        self.advance_handshake(body, number, ack);
        match body {
            Body::CloseReq { .. } if self.state < State::CloseReq => {
                self.queue.clear();
                self.state = State::Closing;
                self.outbox.close = true;
                self.start_closing_timers();
                self.end(CloseReason::Peer);
            }
            Body::Close { .. } => {
                let reason =
                    if self.state >= State::CloseReq { CloseReason::Local } else { CloseReason::Peer };
                return self.abort(CLOSED, reason);
            }
            Body::Sync { .. } => self.outbox.sync_ack = Some(number),
            _ => {}
        }
        self.take_data(packet, number, greatest, marked, ecn, &taken);
    }

    /// Step 9.
    fn take_reset(&mut self, reset: Reset) {
        let reason = match self.state {
            State::CloseReq | State::Closing => CloseReason::Local,
            _ if reset.code == ResetCode::Closed => CloseReason::Peer,
            _ => CloseReason::Reset,
        };
        self.shut(reset, reason);
    }

    /// What the peer says of our packets.
    fn take_feedback(&mut self, feedback: &Feedback<'_>) {
        let ack = feedback.ack;
        if let Some(packet) = self.sent.get(ack)
            && packet.fate == Fate::Outstanding
            && ack.is_after(self.sampled)
        {
            let elapsed = Duration::from_micros(10) * feedback.elapsed.unwrap_or(0).into();
            self.rtt.sample(self.now.since(packet.at) - elapsed);
            self.sampled = self.sequences.gss;
        }
        let mut vectors = feedback.ack_vectors().peekable();
        self.outbox.owes_ack_of_ack |= vectors.peek().is_some() || feedback.data_dropped().next().is_some();
        self.arrived.acknowledged(|packet| {
            packet == ack
                || runs(ack, feedback.ack_vectors()).any(|(newest, length, state)| {
                    state != AckState::Missing && packet.within(newest.minus(length - 1), newest)
                })
        });
        if self.sent.reports_nobody_listening(ack, feedback.data_dropped()) {
            self.outbox.nobody_listens = true;
            self.queue.clear();
        }
        self.sender.on_feedback(self.now, feedback, &mut self.sent, self.sequences.gss, &self.rtt);
        self.adapt_features();
    }

    /// The window of valid numbers follows the rate, and the Ack Ratio follows the loss of acknowledgements.
    pub(super) fn adapt_features(&mut self) {
        let packets = self.sender.packets_per_round_trip();
        let window = self.negotiation.value(Place::Local, Feature::SequenceWindow);
        let is_short = self.negotiation.is_on(Place::Local, Feature::AllowShortSequenceNumbers);
        let most = if is_short { MAX_SHORT_WINDOW } else { MAX_SEQUENCE_WINDOW };
        // RFC 4340 section 7.5.2: about five times what is under way; with some room, so that it changes seldom.
        let grows = packets.saturating_mul(5) > window && window < most;
        let ratio = self.negotiation.value(Place::Local, Feature::AckRatio);
        let wanted_ratio = self.sender.ack_ratio().filter(|&wanted| wanted != ratio);
        if self.state == State::Open && (grows || wanted_ratio.is_some()) && self.may_announce() {
            if grows {
                self.negotiation.announce(Feature::SequenceWindow, packets.saturating_mul(10).min(most));
            }
            if let Some(ratio) = wanted_ratio {
                self.negotiation.announce(Feature::AckRatio, ratio);
            }
        }
    }

    /// CCID 2's congestion control of acknowledgements: without better knowledge every lost packet of the peer was one.
    fn notice_lost_acks(&mut self, body: &Body, greatest: Seq, marked: bool) {
        if self.state != State::Open || self.sender.ack_ratio().is_none() {
            return;
        }
        let passed = self.sequences.gsr.distance(greatest).clamp(0, 64) as u64;
        let late = |step: u64| greatest.plus(step).minus(NUMDUPACK);
        let is_lost = |number: Seq| number.is_after(self.sequences.isr) && !self.arrived.has(number);
        if marked && !body.is_data() || (1..=passed).any(|step| is_lost(late(step))) {
            self.sender.on_ack_congestion();
        }
    }

    fn agree_on_congestion_control(&mut self) {
        let agreed = [Place::Local, Place::Remote].map(|place| self.negotiation.ccid(place));
        if agreed != self.agreed {
            self.renew_congestion_control(agreed);
        }
        if agreed[0] == Ccid::TcpLike && !self.negotiation.is_on(Place::Remote, Feature::SendAckVector) {
            self.negotiation.insist(Place::Remote, Feature::SendAckVector);
        }
    }

    /// Congestion control as agreed on, with the round-trip time known by now.
    fn renew_congestion_control(&mut self, [sender, receiver]: [Ccid; 2]) {
        let rtt = self.rtt.known();
        self.sender = Sender::new(sender, self.config.max_message(), rtt);
        self.receiver = Receiver::new(receiver, rtt);
        self.agreed = [sender, receiver];
    }

    /// Steps 10 to 12.
    fn advance_handshake(&mut self, body: &Body, number: Seq, ack: Option<Seq>) {
        let opens = match (self.state, body) {
            (State::Request, _) => {
                self.state = State::PartOpen;
                self.start_partopen_timers();
                self.pending.connected = true;
                self.outbox.ack = true;
                self.renew_congestion_control(self.agreed);
                false
            }
            (State::Respond, Body::Request { .. }) => {
                self.outbox.response = true;
                false
            }
            (State::Respond, Body::Sync { .. }) => false,
            (State::Respond, _) => {
                self.pending.connected = true;
                self.renew_congestion_control(self.agreed);
                true
            }
            (State::PartOpen, Body::Response { .. }) => {
                self.outbox.ack = true;
                false
            }
            (State::PartOpen, Body::Sync { .. }) => false,
            (State::PartOpen, _) => true,
            _ => false,
        };
        if opens {
            self.sequences.osr = Some(number);
            self.state = State::Open;
            self.outbox.cookies.clear();
            self.stop_handshake_timers();
        }
        // The client stays in PARTOPEN until it hears something from OPEN: whoever acknowledges nothing later than our
        // Response has not.
        let is_in_partopen = self.is_server
            && self.state == State::Open
            && matches!(body, Body::Ack { .. } | Body::DataAck { .. })
            && ack.is_some_and(|ack| !ack.is_after(self.responded));
        self.outbox.ack |= is_in_partopen;
    }

    /// Step 16, and what the congestion control of the peer's data learns.
    fn take_data(
        &mut self,
        packet: &Packet<'_>,
        number: Seq,
        greatest: Seq,
        marked: bool,
        ecn: Ecn,
        taken: &Taken<'_>,
    ) {
        if !self.is_established() {
            return;
        }
        let header = &packet.header;
        let is_data = matches!(header.body, Body::Data | Body::DataAck { .. });
        let dropped =
            if is_data { self.deliver(header, packet.data, ecn, taken.data_checksum) } else { None };
        if let Some(code) = dropped {
            self.arrived.drop_data(number, code);
            self.outbox.ack = true;
        }
        let arrival = Arrival {
            number,
            is_data,
            marked: marked || dropped == Some(DropCode::Corrupt),
            counter: header.ccval,
            ndp_count: taken.ndp_count,
        };
        let in_order = number == greatest.next();
        let ratio = self.negotiation.value(Place::Remote, Feature::AckRatio);
        self.outbox.ack |= self.receiver.on_packet(self.now, arrival, packet.data.len(), in_order, ratio);
    }

    /// Hands data to the application, or says why not.
    fn deliver(
        &mut self,
        header: &Header,
        data: &[u8],
        ecn: Ecn,
        data_checksum: Option<u32>,
    ) -> Option<DropCode> {
        let least = self.negotiation.value(Place::Local, Feature::MinChecksumCoverage);
        let coverage = u64::from(header.coverage);
        if coverage > 0 && (least == 0 || coverage < least) {
            self.counters.coverage_refused += 1;
            return Some(DropCode::ProtocolConstraints);
        }
        let is_right = data_checksum.map(|expected| CRC32C.checksum(data) == expected);
        self.has_data_checksums |= is_right == Some(true);
        // An option that its sender has always written was changed on the way, or the border of the options.
        let is_missing = is_right.is_none() && self.config.data_checksum && self.has_data_checksums;
        if is_right == Some(false) || is_missing {
            self.counters.data_checksum_errors += 1;
            return Some(DropCode::Corrupt);
        }
        if self.closing {
            self.counters.not_listening += 1;
            return Some(DropCode::NotListening);
        }
        if !self.incoming.has_room(data.len()) {
            self.counters.receive_buffer_full += 1;
            return Some(DropCode::ReceiveBuffer);
        }
        self.incoming.push(ecn, |bytes| bytes.extend_from_slice(data));
        self.pending.readable = true;
        None
    }

    /// Answers a packet that is not valid with a Sync, unless that happens too often.
    fn challenge(&mut self, acknowledge: Seq) {
        if self.state < State::Closed && self.may_sync() {
            self.outbox.sync = Some(acknowledge);
        }
    }

    fn refuse(&mut self, from: Address, header: &Header, code: ResetCode) {
        if self.may_refuse() {
            self.outbox.refusal = Some(Refusal::of(from, header, Reset::plain(code)));
        }
    }
}
