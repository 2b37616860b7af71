//! The packets of a capture that are kept: few bytes each, with what identifies them.

use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::io::Read;
use std::ops::ControlFlow;

use siphasher::sip::SipHasher13;

use super::super::description::Learned;
use super::super::{ImportError, MAX_PACKETS};
use super::frame::{Addresses, Seen, Tcp, packet};
use super::reader::{self, Ending};

/// The most conversations that are distinguished; later ones are ignored.
const MAX_FLOWS: usize = 1 << 16;

/// Bytes of a payload that identify a packet: a snap length of 96 B leaves as many behind IPv6 and UDP.
const IDENTIFYING: usize = 24;

/// All packets that count.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) flows: Vec<Flow>,
    pub(super) packets: Vec<Kept>,
    /// Nanoseconds since 1970 of the first packet.
    pub(super) start: i128,
    ending: Ending,
    /// Frames that are not IP, or too short.
    others: u64,
    is_full: bool,
    goes_back: bool,
}

/// One direction of a conversation.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) addresses: Addresses,
    /// Largest payload of a segment, as both ends have announced it, or as it was seen.
    mss: Option<u32>,
    pub(super) outbound: u32,
    pub(super) inbound: u32,
    pub(super) ttl: u8,
}

/// A packet, or a part of one that offloading joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Nanoseconds since the log's start.
    pub(super) at: i64,
    pub(super) flow: u32,
    pub(super) bytes: u32,
    /// The same at both ends, even behind NAT.
    pub(super) key: u64,
    pub(super) tcp: Option<KeptTcp>,
    /// Sequence number and timestamp, if it looks like RTP.
    pub(super) rtp: Option<(u16, u32, u8)>,
}

/// Fields of TCP for round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptTcp {
    pub(super) sequence: u32,
    /// Sequence numbers that it takes.
    pub(super) length: u32,
    pub(super) acknowledged: Option<u32>,
    pub(super) timestamps: Option<(u32, u32)>,
}

/// Nanoseconds from the first frame of a capture to a frame whose time is believed: 9 years.
const FARTHEST: i64 = 1 << 58;

impl Log {
    pub(super) fn read(from: &mut dyn Read) -> Result<Log, ImportError> {
        let mut log = Log::default();
        let mut by_addresses = BTreeMap::new();
        let mut start = None;
        let ending = reader::read(from, &mut |frame| {
            if log.packets.len() >= MAX_PACKETS {
                log.is_full = true;
                return ControlFlow::Break(());
            }
            let Some(seen) = packet(&frame) else {
                log.others += 1;
                return ControlFlow::Continue(());
            };
            let start = *start.get_or_insert(frame.at);
            // Beyond some years a time is damage, and differences of two of them must have room.
            let at = i64::try_from(frame.at - start).ok().filter(|at| at.abs() < FARTHEST);
            let Some(at) = at else {
                log.others += 1;
                return ControlFlow::Continue(());
            };
            log.take(at, &seen, &mut by_addresses);
            ControlFlow::Continue(())
        })?;
        log.start = start.unwrap_or_default();
        log.ending = ending;
        if log.packets.is_empty() {
            let why = match (log.ending.frames, log.ending.without_time) {
                (0, 0) => "is a capture without packets".to_owned(),
                (0, n) => format!("is a capture of {n} packets without times (simple packet blocks)"),
                (n, _) => format!(
                    "is a capture of {n} frames, none of which is an IP packet over a link that is known here"
                ),
            };
            return Err(ImportError::new(why));
        }
        log.packets.sort_by_key(|packet| packet.at);
        Ok(log)
    }

    fn take(&mut self, at: i64, seen: &Seen<'_>, by_addresses: &mut BTreeMap<Addresses, u32>) {
        let next = self.flows.len() as u32;
        let id = match by_addresses.get(&seen.addresses) {
            Some(id) => *id,
            None if self.flows.len() >= MAX_FLOWS => return,
            None => {
                by_addresses.insert(seen.addresses, next);
                let addresses = seen.addresses;
                self.flows.push(Flow { addresses, mss: None, outbound: 0, inbound: 0, ttl: seen.ttl });
                next
            }
        };
        let flow = &mut self.flows[id as usize];
        flow.outbound += u32::from(seen.is_outbound == Some(true));
        flow.inbound += u32::from(seen.is_outbound == Some(false));
        self.goes_back |= self.packets.last().is_some_and(|last| last.at > at);
        let Some(tcp) = seen.tcp else {
            let key = key(seen);
            let kept = Kept { at, flow: id, bytes: seen.bytes, key, tcp: None, rtp: rtp(seen) };
            self.packets.push(kept);
            return;
        };
        if tcp.syn
            && let Some(mss) = tcp.mss
        {
            // The smaller of both announcements counts for both directions.
            let reverse = by_addresses.get(&seen.addresses.reversed()).copied();
            let known = reverse.and_then(|reverse| self.flows[reverse as usize].mss);
            let mss = known.map_or(u32::from(mss), |known| known.min(mss.into()));
            [Some(id), reverse]
                .into_iter()
                .flatten()
                .for_each(|flow| self.flows[flow as usize].mss = Some(mss));
        }
        self.take_segments(at, id, seen, tcp);
    }

    /// Takes the segments of which offloading has made one packet: all at its time.
    fn take_segments(&mut self, at: i64, id: u32, seen: &Seen<'_>, tcp: Tcp) {
        const LARGEST: u32 = 1500;
        let mss = self.flows[id as usize].mss.map(|mss| mss.saturating_sub(options(tcp)));
        let mss = mss.unwrap_or(LARGEST.saturating_sub(tcp.headers)).max(64);
        let is_joined = tcp.payload > mss && seen.bytes > LARGEST;
        let mut left = tcp.payload;
        let mut sequence = tcp.sequence;
        loop {
            let payload = if is_joined { left.min(mss) } else { left };
            let part = Tcp { sequence, payload, ..tcp };
            let length = payload + u32::from(tcp.syn) + u32::from(tcp.fin && payload == left);
            let kept =
                KeptTcp { sequence, length, acknowledged: tcp.acknowledged, timestamps: tcp.timestamps };
            let bytes = tcp.headers + payload;
            let key = key_of_tcp(seen, part);
            self.packets.push(Kept { at, flow: id, bytes, key, tcp: Some(kept), rtp: None });
            left -= payload;
            sequence = sequence.wrapping_add(payload);
            if left == 0 || self.packets.len() >= MAX_PACKETS {
                return;
            }
        }
    }

    /// Gaps that the file itself reports.
    pub(super) fn add_warnings(&self, name: &str, learned: &mut Learned) {
        let mut warn = |text: String| learned.warnings.push(text);
        if let Some(cut) = &self.ending.cut {
            warn(format!(
                "`{name}` is damaged or cut off: {cut}; the {} packets before it were used.",
                self.ending.frames
            ));
        }
        if self.is_full {
            warn(format!("`{name}` has more than {MAX_PACKETS} packets; those behind them were not read."));
        }
        if self.ending.dropped > 0 {
            warn(format!(
                "The interface of `{name}` did not capture {} packets, which may pass for losses of the path.",
                self.ending.dropped
            ));
        }
        if self.ending.without_time > 0 {
            warn(format!("{} packets of `{name}` have no time and were skipped.", self.ending.without_time));
        }
        if self.goes_back {
            warn(format!("Times in `{name}` go back: several interfaces, or a clock that was set."));
        }
    }
}

/// Bytes of TCP's options.
fn options(tcp: Tcp) -> u32 {
    if tcp.timestamps.is_some() { 12 } else { 0 }
}

/// The key of a packet without TCP: identification, length and the start of the payload.
fn key(seen: &Seen<'_>) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u8(seen.addresses.protocol);
    hasher.write_u32(seen.identification);
    hasher.write_u16(seen.fragment);
    hasher.write_u32(seen.bytes);
    hasher.write(&seen.payload[..seen.payload.len().min(IDENTIFYING)]);
    hasher.finish()
}

/// The key of a segment: sequence number, acknowledgement, flags and time stamps. A sender that offloads gives all parts of a packet
/// the same acknowledgement, and a receiver that joins them keeps the last: it counts only without payload.
fn key_of_tcp(seen: &Seen<'_>, tcp: Tcp) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u8(6);
    hasher.write_u32(tcp.sequence);
    hasher.write_u32(tcp.payload);
    hasher.write_u32(tcp.timestamps.map_or(0, |(value, _)| value));
    if tcp.payload == 0 {
        hasher.write(seen.header);
        hasher.write_u32(tcp.timestamps.map_or(0, |(_, echo)| echo));
        hasher.write_u32(seen.identification);
    }
    hasher.finish()
}

/// Sequence number, timestamp and payload type of RTP.
fn rtp(seen: &Seen<'_>) -> Option<(u16, u32, u8)> {
    const UDP: u8 = 17;
    let header: &[u8; 12] = seen.payload.first_chunk()?;
    // Version 2, and not RTCP (RFC 5761).
    let is_rtp =
        seen.addresses.protocol == UDP && header[0] >> 6 == 2 && !(64..96).contains(&(header[1] & 0x7f));
    is_rtp.then(|| {
        let sequence = u16::from_be_bytes([header[2], header[3]]);
        let timestamp = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        (sequence, timestamp, header[1] & 0x7f)
    })
}
