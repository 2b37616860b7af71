//! One end of an RTP session between two, without a network below: messages to packets and back.

use std::collections::BTreeMap;

use trunkline_core::{Duration, Stream, Time};

use super::config::{RtpConfig, RtpConfigError};
use super::interval::{Census, Schedule};
use super::receiver::{Receiver, Reception, Verdict, round_trip};
use super::rtcp::{ReportBlock, RtcpPacket, decode_compound, encode_bye, encode_cname, encode_report};
use super::sender::{Sender, periods_to_duration};
use super::wire::{RtpPacket, is_rtcp};
use crate::udp::{IPV4_HEADER_LENGTH, UDP_HEADER_LENGTH};

/// The headers below an RTCP packet, which count in its bandwidth (RFC 3550 section 6.2).
const BELOW: usize = IPV4_HEADER_LENGTH + UDP_HEADER_LENGTH;
/// How long the memory of a collision lasts, in intervals of reports (section 8.2).
const COLLISION_MEMORY: u64 = 10;
/// Maximum number of further members of a group that are counted.
const MOST_OTHERS: usize = 4096;

/// One end of an RTP session with one other, for any driver that moves datagrams: [`RtpEndpoint`](super::RtpEndpoint)
/// is one of them, a socket is another. What is RTCP goes through the same port as the data (RFC 5761).
///
/// - [`write`](Self::write) makes a data packet of a message, [`handle`](Self::handle) takes a datagram that came.
/// - After either, and when [`next_timeout`](Self::next_timeout) has come and [`handle_timeout`](Self::handle_timeout) was
///   called, [`poll_control`](Self::poll_control) is asked for RTCP packets to be sent until there are none.
/// - Reports go back and forth as long as either end sends data, and stop after it has been quiet for about two of them.
#[derive(Clone, Debug)]
pub struct RtpSession {
    config: RtpConfig,
    stream: Stream,
    pub(super) sender: Sender,
    receiver: Option<Receiver>,
    /// A source that may replace the one that is heard.
    candidate: Option<Receiver>,
    /// The source that was heard before.
    former: Option<u32>,
    /// Further members of a group, and when they were heard last.
    others: BTreeMap<u32, Time>,
    schedule: Option<Schedule>,
    due: Due,
    /// Whether this end counts as a sender.
    sends: bool,
    /// The application makes the data packets, so this end's identifier cannot change.
    is_observer: bool,
    /// Whether anything was sent under this identifier.
    was_heard: bool,
    collided_at: Option<Time>,
    peer_report: Option<PeerReport>,
    pub(super) counters: Counters,
}

/// RTCP packets that wait to be polled.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    report: bool,
    bye: bool,
    /// An identifier that was given up after a collision.
    farewell: Option<Sender>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) malformed: u64,
    pub(super) duplicates: u64,
    pub(super) out_of_sequence: u64,
    pub(super) on_probation: u64,
    pub(super) strays: u64,
    pub(super) control_received: u64,
    pub(super) control_sent: u64,
    pub(super) byes_received: u64,
    pub(super) collisions: u64,
    pub(super) loops: u64,
    pub(super) peers_lost: u64,
}

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'p> {
    /// A data packet to be handed on, for the first time.
    Data(RtpPacket<'p>),
    /// RTCP, which has been taken note of.
    Control,
    /// Nothing of use; counted by its cause.
    Dropped,
}

/// What the peer has last reported of this end's data (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerReport {
    /// The report.
    pub block: ReportBlock,
    /// Its jitter as a time.
    pub jitter: Duration,
    /// From this end to the peer and back, without the time that the peer took to report; `None` before it has received
    /// a sender report.
    pub round_trip: Option<Duration>,
}

impl RtpSession {
    /// An end that has neither sent nor received anything.
    ///
    /// # Errors
    /// An option out of its range.
    pub fn new(config: RtpConfig) -> Result<RtpSession, RtpConfigError> {
        config.check()?;
        let mut stream = config.stream.clone();
        let sender = Sender::new(config.format, config.preamble, None, &mut stream);
        // A report with all there can be, and a description.
        let likely = BELOW + 52 + (8 + 2 + config.cname.len() + 1).next_multiple_of(4);
        let schedule = config.reporting.map(|reporting| Schedule::new(reporting, likely));
        Ok(RtpSession {
            config,
            stream,
            sender,
            receiver: None,
            candidate: None,
            former: None,
            others: BTreeMap::new(),
            schedule,
            due: Due::default(),
            sends: false,
            is_observer: false,
            was_heard: false,
            collided_at: None,
            peer_report: None,
            counters: Counters::default(),
        })
    }

    /// This end's identifier. It changes when the peer turns out to have the same.
    pub fn ssrc(&self) -> u32 {
        self.sender.ssrc
    }

    /// What has been received from the peer, once data has.
    pub fn reception(&self) -> Option<Reception> {
        self.receiver.as_ref()?.reception()
    }

    /// What the peer says of this end's data, once it has.
    pub fn peer_report(&self) -> Option<PeerReport> {
        self.peer_report
    }

    /// Whether the peer has been heard, has not said BYE, and has not been silent for five intervals of reports
    /// (section 6.3.5).
    pub fn is_peer_there(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::is_there)
    }

    /// Appends the data packet of a message to `into`.
    pub fn write(&mut self, now: Time, message: &[u8], into: &mut Vec<u8>) {
        self.sender.write(now, message, into);
        self.has_sent(now);
    }

    /// Counts a data packet that the application has made and sent. Reports describe its source. Ignores everything but data
    /// packets.
    pub fn observe(&mut self, now: Time, packet: &[u8]) {
        if let Some(packet) = RtpPacket::decode(packet).filter(|_| !is_rtcp(packet)) {
            self.is_observer = true;
            self.sender.note(now, &packet);
            self.has_sent(now);
        }
    }

    /// A data packet that the sender wrote has been sent.
    pub(super) fn has_sent(&mut self, now: Time) {
        self.handle_timeout(now);
        self.sends = true;
        self.was_heard = true;
        self.start(now);
    }

    /// Takes a datagram that came from the peer.
    pub fn handle<'p>(&mut self, now: Time, datagram: &'p [u8]) -> Arrival<'p> {
        // What is overdue comes first: afterwards the next timeout is later than this datagram.
        self.handle_timeout(now);
        if is_rtcp(datagram) {
            return self.handle_control(now, datagram);
        }
        let Some(packet) = RtpPacket::decode(datagram) else {
            self.counters.malformed += 1;
            return Arrival::Dropped;
        };
        let header = packet.header;
        if header.payload_type != self.config.format.payload_type || Some(header.ssrc) == self.former {
            self.counters.strays += 1;
            return Arrival::Dropped;
        }
        if header.ssrc == self.ssrc() && !self.resolve_collision(now) {
            return Arrival::Dropped;
        }
        let (receiver, is_current) = self.source(now, header.ssrc);
        let verdict = receiver.data(now, &header);
        if verdict == Verdict::New && !is_current {
            self.replace();
        }
        let count = match verdict {
            Verdict::New => {
                self.start(now);
                return Arrival::Data(packet);
            }
            Verdict::Duplicate => &mut self.counters.duplicates,
            Verdict::OnProbation => &mut self.counters.on_probation,
            Verdict::OutOfSequence => &mut self.counters.out_of_sequence,
        };
        *count += 1;
        Arrival::Dropped
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        let Some(schedule) = &self.schedule else { return };
        if schedule.next().is_none_or(|next| next > now) {
            return;
        }
        let census = self.census(now);
        let Some(schedule) = &mut self.schedule else { return };
        if let Some(receiver) = &mut self.receiver
            && receiver.is_there()
            && receiver.silence(now) > schedule.patience(census)
        {
            receiver.is_silent = true;
            self.counters.peers_lost += 1;
        }
        let patience = schedule.patience(census);
        self.others.retain(|_, heard| now.since(*heard) <= patience);
        self.sends &= self.sender.last_sent().is_some_and(|last| schedule.still_sends(now, last));
        let census = self.census(now);
        let Some(schedule) = &mut self.schedule else { return };
        if census.senders == 0 {
            schedule.stop();
        } else if schedule.rings(now, census, &mut self.stream) {
            self.due.report = true;
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn next_timeout(&self) -> Option<Time> {
        self.schedule.as_ref()?.next()
    }

    /// Leaves the session: a BYE is sent unless the peer has never heard of this end (section 6.3.7), and no more reports.
    pub fn leave(&mut self) {
        self.due = Due { report: false, bye: self.was_heard, farewell: None };
        self.schedule = None;
    }

    /// Appends the next RTCP packet to be sent to `into`; false if there is none.
    pub fn poll_control(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let start = into.len();
        if let Some(former) = self.due.farewell.take() {
            encode_report(former.ssrc, None, &[], into);
            encode_cname(former.ssrc, &self.config.cname, into);
            encode_bye(former.ssrc, "identifier collision", into);
        } else if self.due.report || self.due.bye {
            let ssrc = self.ssrc();
            let info = self.sends.then(|| self.sender.info(now, self.ntp(now)));
            let block = self.receiver.as_mut().and_then(|receiver| receiver.block(now));
            encode_report(ssrc, info.as_ref(), block.as_slice(), into);
            encode_cname(ssrc, &self.config.cname, into);
            if self.due.bye {
                encode_bye(ssrc, "", into);
            }
            (self.due.report, self.due.bye) = (false, false);
            self.was_heard = true;
        } else {
            return false;
        }
        self.counters.control_sent += 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.packet(into.len() - start + BELOW);
        }
        true
    }

    fn handle_control<'p>(&mut self, now: Time, datagram: &'p [u8]) -> Arrival<'p> {
        let Some(parts) = decode_compound(datagram) else {
            self.counters.malformed += 1;
            return Arrival::Dropped;
        };
        self.counters.control_received += 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.packet(datagram.len() + BELOW);
        }
        // An end that gives up an identifier which is ours too says BYE for it, and has another: no second collision.
        let says_bye = |ssrc: u32| {
            let names = |part| matches!(part, RtcpPacket::Bye { sources, .. } if has(sources, ssrc));
            decode_compound(datagram).is_some_and(|mut parts| parts.any(names))
        };
        for part in parts {
            let (ssrc, ntp, blocks) = match part {
                RtcpPacket::SenderReport { ssrc, info, blocks } => (ssrc, Some(info.ntp), blocks),
                RtcpPacket::ReceiverReport { ssrc, blocks } => (ssrc, None, blocks),
                RtcpPacket::Bye { sources, .. } => {
                    self.handle_bye(now, sources);
                    continue;
                }
                RtcpPacket::Description(_) | RtcpPacket::Other { .. } => continue,
            };
            if Some(ssrc) == self.former {
                continue;
            }
            if ssrc == self.ssrc() && (says_bye(ssrc) || !self.resolve_collision(now)) {
                continue;
            }
            if self.is_other(ssrc) {
                if self.others.len() < MOST_OTHERS || self.others.contains_key(&ssrc) {
                    self.others.insert(ssrc, now);
                }
            } else {
                let (receiver, _) = self.source(now, ssrc);
                receiver.heard(now);
                if let Some(ntp) = ntp {
                    receiver.report(now, ntp);
                }
            }
            for block in blocks.filter(|block| block.ssrc == self.sender.ssrc) {
                let middle = (self.ntp(now) >> 16) as u32;
                self.peer_report = Some(PeerReport {
                    block,
                    jitter: periods_to_duration(u64::from(block.jitter), self.config.format.clock),
                    round_trip: round_trip(middle, &block),
                });
            }
        }
        Arrival::Control
    }

    /// True for a member of a group that is not the source whose data is received.
    fn is_other(&self, ssrc: u32) -> bool {
        self.config.is_group && self.receiver.as_ref().is_none_or(|receiver| receiver.ssrc != ssrc)
    }

    fn handle_bye(&mut self, now: Time, sources: &[u8]) {
        let before = self.others.len();
        self.others.retain(|ssrc, _| !has(sources, *ssrc));
        if self.others.len() < before {
            self.counters.byes_received += 1;
            let census = self.census(now);
            if let Some(schedule) = &mut self.schedule {
                schedule.left(now, census);
            }
        }
        let Some(receiver) = self.receiver.as_mut().filter(|r| !r.has_left && has(sources, r.ssrc)) else {
            return;
        };
        receiver.has_left = true;
        self.counters.byes_received += 1;
        let census = self.census(now);
        if let Some(schedule) = &mut self.schedule {
            schedule.left(now, census);
        }
    }

    /// The source with this identifier, and whether it is the one that is heard: if that has gone, or there was none, a
    /// new one takes its place at once; otherwise it must prove itself first.
    fn source(&mut self, now: Time, ssrc: u32) -> (&mut Receiver, bool) {
        let (clock, probation) = (self.config.format.clock, self.config.probation);
        let current = self.receiver.as_ref();
        let is_known = current.is_some_and(|receiver| receiver.ssrc == ssrc);
        if !is_known && current.is_none_or(|receiver| !receiver.is_there()) {
            self.former = current.map(|receiver| receiver.ssrc);
            self.others.remove(&ssrc);
            self.receiver = Some(Receiver::new(ssrc, clock, probation, now));
        }
        match &mut self.receiver {
            Some(receiver) if receiver.ssrc == ssrc => (receiver, true),
            _ => {
                let candidate = self.candidate.take().filter(|candidate| candidate.ssrc == ssrc);
                let new = || Receiver::new(ssrc, clock, probation.max(2), now);
                (self.candidate.insert(candidate.unwrap_or_else(new)), false)
            }
        }
    }

    /// Puts the candidate in the place of the source that was heard.
    fn replace(&mut self) {
        if let Some(candidate) = self.candidate.take() {
            self.former = self.receiver.replace(candidate).map(|receiver| receiver.ssrc);
        }
    }

    /// The peer has this end's identifier: takes another one. False if it is this end's own packets that come back
    /// (section 8.2): the peer's address has collided before, not long ago.
    fn resolve_collision(&mut self, now: Time) -> bool {
        let census = self.census(now);
        let interval = self.schedule.as_ref().map_or(Duration::from_secs(25), |s| s.patience(census)) / 5;
        let is_loop = self.collided_at.is_some_and(|before| now.since(before) <= interval * COLLISION_MEMORY);
        self.collided_at = Some(now);
        if is_loop {
            self.counters.loops += 1;
            return false;
        }
        self.counters.collisions += 1;
        if self.is_observer {
            return false;
        }
        let RtpConfig { format, preamble, .. } = self.config;
        let former = self.sender;
        self.sender = Sender::new(format, preamble, Some(former.ssrc), &mut self.stream);
        self.due.farewell = self.was_heard.then_some(former);
        (self.sends, self.was_heard, self.peer_report) = (false, false, None);
        true
    }

    /// Data flows: reports begin, unless they are under way.
    fn start(&mut self, now: Time) {
        let census = self.census(now);
        let Some(schedule) = self.schedule.as_mut().filter(|schedule| schedule.next().is_none()) else {
            return;
        };
        schedule.start(now, census, &mut self.stream);
        // Nobody was expected to say anything before now.
        if let Some(receiver) = self.receiver.as_mut().filter(|receiver| receiver.is_there()) {
            receiver.heard(now);
        }
    }

    /// Who is there at `now`.
    fn census(&self, now: Time) -> Census {
        let peer = self.receiver.as_ref().filter(|receiver| receiver.is_there());
        let peer_sends = peer.and_then(|receiver| receiver.data_at).is_some_and(|last| {
            // Before the first report there is no interval yet by which it could be forgotten.
            self.schedule.as_ref().is_none_or(|s| s.next().is_none() || s.still_sends(now, last))
        });
        Census {
            // No more than `MOST_OTHERS`.
            members: 1 + u32::from(peer.is_some()) + self.others.len() as u32,
            senders: u32::from(self.sends) + u32::from(peer_sends),
            we_send: self.sends,
        }
    }

    /// The wall clock.
    fn ntp(&self, now: Time) -> u64 {
        let nanos = u128::from(now.as_nanos());
        self.config.wall_clock.wrapping_add(((nanos << 32) / 1_000_000_000) as u64)
    }
}

/// Whether an identifier is among these, four bytes each.
fn has(sources: &[u8], ssrc: u32) -> bool {
    sources.chunks_exact(4).any(|source| *source == ssrc.to_be_bytes())
}
