//! The codec of RTP data packets (RFC 3550 section 5.1), and what tells them from RTCP (RFC 5761 section 4). It stands
//! here because sessions (`trunkline_transport::rtp`) and sound (`trunkline_audio::foreign`) both need it.

/// The fixed header's length in bytes.
pub const HEADER_LENGTH: usize = 12;

/// The version that RFC 3550 defines, in the two upper bits of the first byte of RTP and RTCP.
pub const VERSION: u8 = 2 << 6;
/// Where the version stands in the first byte.
pub const VERSION_MASK: u8 = 3 << 6;
/// The bit of the first byte, in RTP and RTCP, that announces padding.
pub const PADDING: u8 = 1 << 5;
const EXTENSION: u8 = 1 << 4;
const CSRC_COUNT: u8 = 0x0F;
const MARKER: u8 = 1 << 7;

/// The fixed header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpHeader {
    /// In audio: the first packet after a silence in which nothing was sent (RFC 3551 section 4.1).
    pub marker: bool,
    /// What the payload is, 7 bits (RFC 3551 section 6).
    pub payload_type: u8,
    /// Counts packets, modulo 2^16.
    pub sequence: u16,
    /// When the payload's first sample was taken, in periods of the media clock.
    pub timestamp: u32,
    /// Who sends it.
    pub ssrc: u32,
}

/// A data packet: its fixed header, and the rest as it stands in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket<'p> {
    /// The fixed header.
    pub header: RtpHeader,
    /// Sources that a mixer has joined, four bytes each.
    pub contributors: &'p [u8],
    /// The header extension: its profile's number and its body, a multiple of four bytes.
    pub extension: Option<(u16, &'p [u8])>,
    /// What is carried.
    pub payload: &'p [u8],
    /// Bytes of padding behind the payload, 0 to 255, the last of which says how many there are.
    pub padding: u8,
}

impl<'p> RtpPacket<'p> {
    /// A packet with nothing but a header and a payload.
    pub fn new(header: RtpHeader, payload: &'p [u8]) -> RtpPacket<'p> {
        RtpPacket { header, contributors: &[], extension: None, payload, padding: 0 }
    }

    /// Appends the packet to `into`. Contributors beyond fifteen and parts of words are left out: the format has no room
    /// for them.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let RtpHeader { marker, payload_type, sequence, timestamp, ssrc } = self.header;
        let contributors = self.contributors.len().min(15 * 4) / 4;
        let mut first = VERSION | contributors as u8;
        if self.padding > 0 {
            first |= PADDING;
        }
        if self.extension.is_some() {
            first |= EXTENSION;
        }
        into.push(first);
        into.push(payload_type & !MARKER | if marker { MARKER } else { 0 });
        into.extend_from_slice(&sequence.to_be_bytes());
        into.extend_from_slice(&timestamp.to_be_bytes());
        into.extend_from_slice(&ssrc.to_be_bytes());
        into.extend_from_slice(&self.contributors[..contributors * 4]);
        if let Some((profile, body)) = self.extension {
            let words = (body.len() / 4).min(usize::from(u16::MAX));
            into.extend_from_slice(&profile.to_be_bytes());
            into.extend_from_slice(&(words as u16).to_be_bytes());
            into.extend_from_slice(&body[..words * 4]);
        }
        into.extend_from_slice(self.payload);
        if self.padding > 0 {
            into.resize(into.len() + usize::from(self.padding) - 1, 0);
            into.push(self.padding);
        }
    }

    /// Takes a packet apart; `None` if the bytes are none (RFC 3550 section A.1: another version, or lengths that do not
    /// fit).
    pub fn decode(packet: &'p [u8]) -> Option<RtpPacket<'p>> {
        let (&header, rest) = packet.split_first_chunk::<HEADER_LENGTH>()?;
        let [first, second, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = header;
        if first & VERSION_MASK != VERSION {
            return None;
        }
        let (contributors, mut rest) = rest.split_at_checked(usize::from(first & CSRC_COUNT) * 4)?;
        let mut extension = None;
        if first & EXTENSION != 0 {
            let (&[p0, p1, l0, l1], behind) = rest.split_first_chunk::<4>()?;
            let (body, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes([l0, l1])) * 4)?;
            extension = Some((u16::from_be_bytes([p0, p1]), body));
            rest = behind;
        }
        let mut padding = 0;
        if first & PADDING != 0 {
            padding = *rest.last()?;
            if padding == 0 {
                return None;
            }
        }
        let payload = &rest[..rest.len().checked_sub(usize::from(padding))?];
        let header = RtpHeader {
            marker: second & MARKER != 0,
            payload_type: second & !MARKER,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes([c0, c1, c2, c3]),
        };
        Some(RtpPacket { header, contributors, extension, payload, padding })
    }
}

/// Whether a packet that came to a port shared by both is RTCP and not RTP: RFC 5761 section 4 leaves the payload types
/// 64 to 95, which look alike, to RTCP.
pub fn is_rtcp(packet: &[u8]) -> bool {
    packet.get(1).is_some_and(|second| (192..=223).contains(second))
}
