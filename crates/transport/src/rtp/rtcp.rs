//! The codec of RTCP (RFC 3550 section 6.4 to 6.6): compound packets of reports, source descriptions and BYE.

use super::wire::{PADDING, VERSION, VERSION_MASK};

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const SOURCE_DESCRIPTION: u8 = 202;
const BYE: u8 = 203;

const CNAME: u8 = 1;
const SENDER_INFO_LENGTH: usize = 20;
const REPORT_BLOCK_LENGTH: usize = 24;

/// What a sender says of itself in a sender report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// The wall clock, as NTP counts it: seconds since 1900 in the upper half, their fraction in the lower.
    pub ntp: u64,
    /// The same moment by the clock of its data packets' timestamps.
    pub rtp: u32,
    /// Data packets that it has sent.
    pub packets: u32,
    /// Bytes of payload in them.
    pub bytes: u32,
}

/// What a receiver says of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The source.
    pub ssrc: u32,
    /// Packets lost since the last report, in 256ths of those expected.
    pub fraction_lost: u8,
    /// Packets lost since the beginning, 24 bits with a sign: duplicates count against losses.
    pub lost: i32,
    /// The highest sequence number received, and how often it went round in the upper half.
    pub highest: u32,
    /// Interarrival jitter (section 6.4.1), in periods of the media clock.
    pub jitter: u32,
    /// The middle of the NTP time in the last sender report received; 0 if there was none.
    pub last_report: u32,
    /// Since when that has been here, in 65536ths of a second.
    pub delay: u32,
}

impl ReportBlock {
    /// Share of packets lost since the report before, from 0 to 1.
    #[must_use]
    pub fn loss(&self) -> f64 {
        f64::from(self.fraction_lost) / 256.0
    }
}

/// A part of a compound packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtcpPacket<'p> {
    /// SR.
    SenderReport {
        /// Who reports.
        ssrc: u32,
        /// On itself.
        info: SenderInfo,
        /// On those that it hears.
        blocks: Blocks<'p>,
    },
    /// RR.
    ReceiverReport {
        /// Who reports.
        ssrc: u32,
        /// On those that it hears.
        blocks: Blocks<'p>,
    },
    /// SDES.
    Description(Chunks<'p>),
    /// BYE.
    Bye {
        /// Who leaves, four bytes each.
        sources: &'p [u8],
        /// Why, in words.
        reason: Option<&'p [u8]>,
    },
    /// Another type; to be passed over.
    Other {
        /// The type.
        packet_type: u8,
    },
}

/// The report blocks of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks<'p>(&'p [u8]);

/// The chunks of a source description, already known to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks<'p>(&'p [u8]);

/// Takes a compound packet apart, part by part; `None` if it breaks the rules of RFC 3550 section A.2, in which case
/// nothing of it may be used: it begins with a report that has no padding, every part is of version 2 and as long as it
/// says, and what it says of its inside fits.
pub fn decode_compound(packet: &[u8]) -> Option<impl Iterator<Item = RtcpPacket<'_>>> {
    let mut rest = packet;
    let mut is_first = true;
    while !rest.is_empty() {
        let (part, behind) = decode_part(rest)?;
        let is_report = matches!(part, RtcpPacket::SenderReport { .. } | RtcpPacket::ReceiverReport { .. });
        let is_padded = rest[0] & PADDING != 0;
        if (is_first && !is_report) || (is_padded && (is_first || !behind.is_empty())) {
            return None;
        }
        is_first = false;
        rest = behind;
    }
    let mut rest = packet;
    (!is_first).then_some(core::iter::from_fn(move || {
        let (part, behind) = decode_part(rest)?;
        rest = behind;
        Some(part)
    }))
}

/// Appends a sender report, or without `info` a receiver report. At most 31 blocks have room.
pub fn encode_report(ssrc: u32, info: Option<&SenderInfo>, blocks: &[ReportBlock], into: &mut Vec<u8>) {
    let blocks = &blocks[..blocks.len().min(31)];
    let packet_type = if info.is_some() { SENDER_REPORT } else { RECEIVER_REPORT };
    let start = begin(blocks.len() as u8, packet_type, into);
    into.extend_from_slice(&ssrc.to_be_bytes());
    if let Some(info) = info {
        into.extend_from_slice(&info.ntp.to_be_bytes());
        for word in [info.rtp, info.packets, info.bytes] {
            into.extend_from_slice(&word.to_be_bytes());
        }
    }
    for block in blocks {
        let lost = block.lost.clamp(-(1 << 23), (1 << 23) - 1) as u32 & 0x00FF_FFFF;
        let fraction_and_lost = u32::from(block.fraction_lost) << 24 | lost;
        for word in
            [block.ssrc, fraction_and_lost, block.highest, block.jitter, block.last_report, block.delay]
        {
            into.extend_from_slice(&word.to_be_bytes());
        }
    }
    finish(start, into);
}

/// Appends a source description with one chunk: the canonical name, of which at most 255 bytes have room.
pub fn encode_cname(ssrc: u32, cname: &str, into: &mut Vec<u8>) {
    let cname = &cname.as_bytes()[..cname.len().min(255)];
    let start = begin(1, SOURCE_DESCRIPTION, into);
    into.extend_from_slice(&ssrc.to_be_bytes());
    into.extend_from_slice(&[CNAME, cname.len() as u8]);
    into.extend_from_slice(cname);
    // The list of items ends with at least one zero, and the chunk at a word.
    into.push(0);
    finish(start, into);
}

/// Appends a BYE of one source, with a reason of which at most 255 bytes have room unless it is empty.
pub fn encode_bye(ssrc: u32, reason: &str, into: &mut Vec<u8>) {
    let reason = &reason.as_bytes()[..reason.len().min(255)];
    let start = begin(1, BYE, into);
    into.extend_from_slice(&ssrc.to_be_bytes());
    if !reason.is_empty() {
        into.push(reason.len() as u8);
        into.extend_from_slice(reason);
    }
    finish(start, into);
}

fn begin(count: u8, packet_type: u8, into: &mut Vec<u8>) -> usize {
    let start = into.len();
    into.extend_from_slice(&[VERSION | count, packet_type, 0, 0]);
    start
}

/// Fills the part that begins at `start` up to a whole word with zeros and writes its length: words less one.
fn finish(start: usize, into: &mut Vec<u8>) {
    let length = (into.len() - start).next_multiple_of(4);
    into.resize(start + length, 0);
    into[start + 2..start + 4].copy_from_slice(&((length / 4 - 1) as u16).to_be_bytes());
}

/// The first part of the bytes, and what follows it.
fn decode_part(bytes: &[u8]) -> Option<(RtcpPacket<'_>, &[u8])> {
    let (&[first, packet_type, l0, l1], _) = bytes.split_first_chunk::<4>()?;
    if first & VERSION_MASK != VERSION {
        return None;
    }
    let length = (usize::from(u16::from_be_bytes([l0, l1])) + 1) * 4;
    let (part, behind) = bytes.split_at_checked(length)?;
    let mut body = &part[4..];
    if first & PADDING != 0 {
        let padding = usize::from(*body.last()?);
        if padding == 0 || padding % 4 != 0 {
            return None;
        }
        body = &body[..body.len().checked_sub(padding)?];
    }
    let count = usize::from(first & 0x1F);
    let part = match packet_type {
        SENDER_REPORT => {
            let (&ssrc, body) = body.split_first_chunk::<4>()?;
            let (info, body) = body.split_first_chunk::<SENDER_INFO_LENGTH>()?;
            let (&ntp, words) = info.split_first_chunk::<8>()?;
            let info = SenderInfo {
                ntp: u64::from_be_bytes(ntp),
                rtp: word(words, 0),
                packets: word(words, 1),
                bytes: word(words, 2),
            };
            RtcpPacket::SenderReport { ssrc: u32::from_be_bytes(ssrc), info, blocks: blocks(body, count)? }
        }
        RECEIVER_REPORT => {
            let (&ssrc, body) = body.split_first_chunk::<4>()?;
            RtcpPacket::ReceiverReport { ssrc: u32::from_be_bytes(ssrc), blocks: blocks(body, count)? }
        }
        SOURCE_DESCRIPTION => {
            let mut rest = body;
            for _ in 0..count {
                rest = chunk(rest)?.2;
            }
            RtcpPacket::Description(Chunks(&body[..body.len() - rest.len()]))
        }
        BYE => {
            let (sources, rest) = body.split_at_checked(count * 4)?;
            let reason = match rest.split_first() {
                Some((&length, text)) if length > 0 => Some(text.get(..usize::from(length))?),
                _ => None,
            };
            RtcpPacket::Bye { sources, reason }
        }
        packet_type => RtcpPacket::Other { packet_type },
    };
    Some((part, behind))
}

/// The blocks at the front of a report's body; what follows belongs to a profile.
fn blocks(body: &[u8], count: usize) -> Option<Blocks<'_>> {
    body.get(..count * REPORT_BLOCK_LENGTH).map(Blocks)
}

/// The source and the items of the chunk at the front, and what follows it.
fn chunk(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (&ssrc, items) = bytes.split_first_chunk::<4>()?;
    let mut at = 0;
    while *items.get(at)? != 0 {
        at += 2 + usize::from(*items.get(at + 1)?);
    }
    let length = (at + 1).next_multiple_of(4);
    Some((u32::from_be_bytes(ssrc), &items[..at], items.get(length..)?))
}

fn word(bytes: &[u8], index: usize) -> u32 {
    let at = index * 4;
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Iterator for Blocks<'_> {
    type Item = ReportBlock;

    fn next(&mut self) -> Option<ReportBlock> {
        let (block, rest) = self.0.split_first_chunk::<REPORT_BLOCK_LENGTH>()?;
        self.0 = rest;
        let lost = word(block, 1);
        Some(ReportBlock {
            ssrc: word(block, 0),
            fraction_lost: (lost >> 24) as u8,
            // Shifted up and down again, the 24th bit is the sign.
            lost: (lost << 8) as i32 >> 8,
            highest: word(block, 2),
            jitter: word(block, 3),
            last_report: word(block, 4),
            delay: word(block, 5),
        })
    }
}

/// Sources with their canonical names, which a chunk may lack.
impl<'p> Iterator for Chunks<'p> {
    type Item = (u32, Option<&'p [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (ssrc, mut items, rest) = chunk(self.0)?;
        self.0 = rest;
        let mut cname = None;
        while let [kind, length, text @ ..] = items {
            let (text, behind) = text.split_at_checked(usize::from(*length))?;
            if *kind == CNAME {
                cname = Some(text);
            }
            items = behind;
        }
        Some((ssrc, cname))
    }
}
