//! Packets to bytes and back (RFC 4340 section 5).

use core::net::IpAddr;

use crate::checksum;

/// DCCP's protocol number in IP (IANA).
pub const IP_PROTOCOL: u8 = 33;
/// The largest header: Data Offset counts 255 words of 32 bits.
const MAX_HEADER: usize = 1020;
const CHECKSUM: core::ops::Range<usize> = 6..8;

/// What stands in front of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// Four bits from the congestion control of the sender to that of the receiver.
    pub ccval: u8,
    /// What the checksum covers of the data (RFC 4340 section 9.2): all if 0, else the first `4 * (coverage - 1)` bytes.
    pub coverage: u8,
    /// Whether numbers have 48 bits; else 24, which only Data, Ack and DataAck may have.
    pub long: bool,
    /// The sequence number: 48 bits, or the low 24.
    pub sequence: u64,
    /// The packet's type and what belongs to it.
    pub body: Body,
}

/// The ten types of packets, with their fixed fields. `ack` is the acknowledgement number, 48 bits or the low 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of RFC 4340 section 5")]
pub enum Body {
    Request { service: u32 },
    Response { ack: u64, service: u32 },
    Data,
    Ack { ack: u64 },
    DataAck { ack: u64 },
    CloseReq { ack: u64 },
    Close { ack: u64 },
    Reset { ack: u64, code: u8, data: [u8; 3] },
    Sync { ack: u64 },
    SyncAck { ack: u64 },
}

/// A packet taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'p> {
    /// Its header.
    pub header: Header,
    /// The bytes of its options.
    pub options: &'p [u8],
    /// The application data area.
    pub data: &'p [u8],
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They break the format.
    Malformed,
    /// The checksum is wrong.
    Checksum,
}

/// What a checksum covers besides the packet: the addresses of its sender and its receiver, in either order. Within UDP the datagram's
/// checksum does the work, and DCCP's own is zero and ignored (RFC 6773 section 3.3).
pub type PseudoHeader = Option<[IpAddr; 2]>;

impl Body {
    /// The Type field.
    pub const fn kind(&self) -> u8 {
        match self {
            Body::Request { .. } => 0,
            Body::Response { .. } => 1,
            Body::Data => 2,
            Body::Ack { .. } => 3,
            Body::DataAck { .. } => 4,
            Body::CloseReq { .. } => 5,
            Body::Close { .. } => 6,
            Body::Reset { .. } => 7,
            Body::Sync { .. } => 8,
            Body::SyncAck { .. } => 9,
        }
    }

    /// The acknowledgement number of the types that have one.
    pub const fn ack(&self) -> Option<u64> {
        match *self {
            Body::Request { .. } | Body::Data => None,
            Body::Response { ack, .. }
            | Body::Ack { ack }
            | Body::DataAck { ack }
            | Body::CloseReq { ack }
            | Body::Close { ack }
            | Body::Reset { ack, .. }
            | Body::Sync { ack }
            | Body::SyncAck { ack } => Some(ack),
        }
    }

    /// Whether the type counts as a data packet (RFC 4340 section 7.7).
    pub const fn is_data(&self) -> bool {
        matches!(self, Body::Request { .. } | Body::Response { .. } | Body::Data | Body::DataAck { .. })
    }

    const fn may_be_short(&self) -> bool {
        matches!(self, Body::Data | Body::Ack { .. } | Body::DataAck { .. })
    }
}

impl Header {
    /// Length in front of the options, in bytes.
    pub const fn length(&self) -> usize {
        let generic = if self.long { 16 } else { 12 };
        let ack = match (self.body.ack(), self.long) {
            (None, _) => 0,
            (Some(_), false) => 4,
            (Some(_), true) => 8,
        };
        let rest = match self.body {
            Body::Request { .. } | Body::Response { .. } | Body::Reset { .. } => 4,
            _ => 0,
        };
        generic + ack + rest
    }

    /// Appends the header without options; [`finish`] completes the packet.
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.source.to_be_bytes());
        into.extend_from_slice(&self.destination.to_be_bytes());
        into.extend_from_slice(&[0, self.ccval << 4 | self.coverage, 0, 0]);
        let kind = self.body.kind() << 1 | u8::from(self.long);
        let number = |number: u64, into: &mut Vec<u8>| {
            let bytes = number.to_be_bytes();
            into.extend_from_slice(if self.long { &bytes[2..] } else { &bytes[5..] });
        };
        into.push(kind);
        if self.long {
            into.push(0);
        }
        number(self.sequence, into);
        if let Some(ack) = self.body.ack() {
            into.extend_from_slice(if self.long { &[0, 0] } else { &[0] });
            number(ack, into);
        }
        match self.body {
            Body::Request { service } | Body::Response { service, .. } => {
                into.extend_from_slice(&service.to_be_bytes());
            }
            Body::Reset { code, data: [a, b, c], .. } => into.extend_from_slice(&[code, a, b, c]),
            _ => {}
        }
    }
}

/// How many bytes of options fit behind this header.
pub(super) const fn room_for_options(header: &Header) -> usize {
    MAX_HEADER - header.length()
}

/// Completes the packet that begins at `start` with [`Header::write`] and the options behind it: pads the options, sets
/// Data Offset, lets `data` append the data, and computes the checksum.
pub(super) fn finish(
    into: &mut Vec<u8>,
    start: usize,
    pseudo_header: PseudoHeader,
    data: impl FnOnce(&mut Vec<u8>),
) {
    while !(into.len() - start).is_multiple_of(4) {
        into.push(0);
    }
    let header = into.len() - start;
    debug_assert!(header <= MAX_HEADER, "options beyond what Data Offset can say");
    into[start + 4] = (header / 4) as u8;
    data(into);
    if let Some(addresses) = pseudo_header {
        let packet = &into[start..];
        // A packet with less data than its coverage says is invalid: whoever builds it limits the coverage.
        let covered = covered_length(packet[5] & 0xF, header, packet.len()).unwrap_or(packet.len());
        let checksum = !sum(addresses, packet.len(), &packet[..covered]);
        into[start + CHECKSUM.start..start + CHECKSUM.end].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The whole packet at once.
pub fn encode(header: &Header, options: &[u8], data: &[u8], pseudo_header: PseudoHeader, into: &mut Vec<u8>) {
    let start = into.len();
    header.write(into);
    into.extend_from_slice(options);
    finish(into, start, pseudo_header, |into| into.extend_from_slice(data));
}

/// Takes a packet apart and checks it as step 1 of RFC 4340 section 8.5 says.
///
/// # Errors
/// Says whether its form or its checksum is wrong.
pub fn decode(bytes: &[u8], pseudo_header: PseudoHeader) -> Result<Packet<'_>, Fault> {
    let header = header(bytes).ok_or(Fault::Malformed)?;
    let offset = usize::from(bytes[4]) * 4;
    if offset < header.length() || offset > bytes.len() {
        return Err(Fault::Malformed);
    }
    let covered = covered_length(header.coverage, offset, bytes.len()).ok_or(Fault::Malformed)?;
    if let Some(addresses) = pseudo_header
        && (bytes.len() > usize::from(u16::MAX) || sum(addresses, bytes.len(), &bytes[..covered]) != u16::MAX)
    {
        return Err(Fault::Checksum);
    }
    Ok(Packet { header, options: &bytes[header.length()..offset], data: &bytes[offset..] })
}

/// All ones if what is covered of a packet of this length holds its right checksum.
fn sum(addresses: [IpAddr; 2], length: usize, covered: &[u8]) -> u16 {
    checksum::sum(checksum::pseudo_header(IP_PROTOCOL, addresses, length), covered)
}

/// How much of a packet its checksum covers; `None` if it has too little data for its coverage.
fn covered_length(coverage: u8, header: usize, length: usize) -> Option<usize> {
    match coverage {
        0 => Some(length),
        n => Some(header + (usize::from(n) - 1) * 4).filter(|&covered| covered <= length),
    }
}

fn header(bytes: &[u8]) -> Option<Header> {
    let mut rest = bytes;
    let mut take = |count: usize| {
        let (front, back) = rest.split_at_checked(count)?;
        rest = back;
        Some(front.iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    let source = take(2)? as u16;
    let destination = take(2)? as u16;
    let _data_offset = take(1)?;
    let fields = take(1)? as u8;
    let _checksum = take(2)?;
    let kind = take(1)? as u8;
    let long = kind & 1 == 1;
    let sequence = if long { take(7)? & ((1 << 48) - 1) } else { take(3)? };
    let mut ack = || if long { Some(take(8)? & ((1 << 48) - 1)) } else { Some(take(4)? & ((1 << 24) - 1)) };
    let body = match kind >> 1 & 0xF {
        0 => Body::Request { service: take(4)? as u32 },
        1 => Body::Response { ack: ack()?, service: take(4)? as u32 },
        2 => Body::Data,
        3 => Body::Ack { ack: ack()? },
        4 => Body::DataAck { ack: ack()? },
        5 => Body::CloseReq { ack: ack()? },
        6 => Body::Close { ack: ack()? },
        7 => {
            let ack = ack()?;
            let [code, data @ ..] = (take(4)? as u32).to_be_bytes();
            Body::Reset { ack, code, data }
        }
        8 => Body::Sync { ack: ack()? },
        9 => Body::SyncAck { ack: ack()? },
        _ => return None,
    };
    let header =
        Header { source, destination, ccval: fields >> 4, coverage: fields & 0xF, long, sequence, body };
    (long || body.may_be_short()).then_some(header)
}
