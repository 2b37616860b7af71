//! The packets of XTP 4.0 (XTP Forum, 1995) as bytes: the header, the segments behind it, and both ways between them.
//!
//! ```text
//!  0        8     11     12       16      18     20      24       32
//!  | key    | options | type | dlen   | check | sort | sync  | seq    | segments ...
//! ```
//! All fields are big-endian. The checksum is the Internet checksum over header and segments, or over the header alone
//! with [`Options::NOCHECK`]. [`Packet::parse`] takes any bytes and never panics; [`Packet::emit`] is its inverse.

mod segments;
#[cfg(test)]
mod tests;

use crate::checksum;

pub use segments::{
    AddressSegment, Code, Control, Reason, Service, Span, Spans, TrafficSpecifier, TrafficValues,
};

/// Length of the header in bytes.
pub const HEADER_LENGTH: usize = 32;
/// Length of the control segment of a CNTL packet in bytes.
pub const CONTROL_LENGTH: usize = 20;
/// Length of an error control segment without spans, in bytes.
pub const ERROR_CONTROL_LENGTH: usize = 24;
/// Length of one span of an error control segment in bytes.
pub const SPAN_LENGTH: usize = 16;
/// Length of a traffic control segment without its traffic specifier, in bytes.
pub const TRAFFIC_CONTROL_LENGTH: usize = 32;
/// Length of an IPv4 address segment in bytes.
pub const ADDRESS_LENGTH: usize = 16;
/// Length of a traffic specifier with rates, in bytes.
pub const TRAFFIC_LENGTH: usize = 24;
/// Length of the tag in front of tagged data, in bytes.
pub const TAG_LENGTH: usize = 8;

/// What names a context. The top bit says whose choice it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

impl Key {
    const RETURN: u64 = 1 << 63;

    /// A key as its owner chooses it: the top bit is clear.
    pub const fn own(bits: u64) -> Key {
        Key(bits & !Key::RETURN)
    }

    /// The key as the owner's peer writes it: a return key, which the owner finds without a search.
    #[must_use]
    pub const fn returned(self) -> Key {
        Key(self.0 | Key::RETURN)
    }

    /// Whether the packet's receiver chose this key (the RTN bit).
    pub const fn is_returned(self) -> bool {
        self.0 & Key::RETURN != 0
    }

    /// The key as its owner chose it.
    #[must_use]
    pub const fn chosen(self) -> Key {
        Key::own(self.0)
    }
}

/// The 24 option bits of the command field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options(u32);

impl Options {
    /// No options.
    pub const NONE: Options = Options(0);
    /// The checksum covers the header only.
    pub const NOCHECK: Options = Options(0x40_0000);
    /// Answer when this bit changes.
    pub const EDGE: Options = Options(0x20_0000);
    /// Nothing is retransmitted: the stream goes on past losses.
    pub const NOERR: Options = Options(0x10_0000);
    /// Of a multicast conversation.
    pub const MULTI: Options = Options(0x08_0000);
    /// Allocate only what the user has real buffers for.
    pub const RES: Options = Options(0x04_0000);
    /// The sort field is valid.
    pub const SORT: Options = Options(0x02_0000);
    /// The sender ignores the allocation.
    pub const NOFLOW: Options = Options(0x01_0000);
    /// Report data out of order at once.
    pub const FASTNAK: Options = Options(0x00_8000);
    /// Status request: answer at once.
    pub const SREQ: Options = Options(0x00_4000);
    /// Delivery request: answer once the data so far was delivered to the user.
    pub const DREQ: Options = Options(0x00_2000);
    /// The sender of this packet reads no more.
    pub const RCLOSE: Options = Options(0x00_1000);
    /// The sender of this packet sends no more data.
    pub const WCLOSE: Options = Options(0x00_0800);
    /// The data end a message.
    pub const EOM: Options = Options(0x00_0400);
    /// The sender's context is gone.
    pub const END: Options = Options(0x00_0200);
    /// A tag stands before the data.
    pub const BTAG: Options = Options(0x00_0100);

    /// The options with these bits of the command field, of which there are 24.
    pub const fn from_bits(bits: u32) -> Options {
        Options(bits & 0xFF_FFFF)
    }

    /// The bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Options) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is set.
    pub const fn has_any(self, other: Options) -> bool {
        self.0 & other.0 != 0
    }

    /// These and `other`.
    #[must_use]
    pub const fn and(self, other: Options) -> Options {
        Options(self.0 | other.0)
    }

    /// These, and `other` if `condition` holds.
    #[must_use]
    pub const fn and_if(self, condition: bool, other: Options) -> Options {
        if condition { self.and(other) } else { self }
    }
}

/// Which segments follow the header. JOIN (6) is obsolete and refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Format {
    /// User data.
    Data = 0,
    /// Control: acknowledgement and allocation.
    Control = 1,
    /// The first packet of a context.
    First = 2,
    /// Control with the spans that were received.
    ErrorControl = 3,
    /// Control with a traffic specifier.
    TrafficControl = 5,
    /// Control by which receivers join a multicast conversation.
    JoinControl = 7,
    /// A diagnosis.
    Diagnostic = 8,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 7] = [
        Format::Data,
        Format::Control,
        Format::First,
        Format::ErrorControl,
        Format::TrafficControl,
        Format::JoinControl,
        Format::Diagnostic,
    ];
}

impl Format {
    /// The format in the low bits of a command field.
    fn of(command: u32) -> Option<Format> {
        Format::ALL.into_iter().find(|&format| format as u32 == command & 31)
    }
}

/// The format of a packet, by its header alone.
pub(super) fn format_of(packet: &[u8]) -> Option<Format> {
    packet.get(11).and_then(|byte| Format::of(u32::from(*byte)))
}

/// The header's fields, without those that follow from the rest of the packet (type, length, checksum).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Which context.
    pub key: Key,
    /// The option bits.
    pub options: Options,
    /// Priority, valid with [`Options::SORT`]; smaller is more urgent.
    pub sort: u16,
    /// Counts the sender's requests for status.
    pub sync: u32,
    /// The first data byte's number; in control packets that of the next byte to be sent.
    pub seq: u64,
}

/// A packet: the header and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'p> {
    /// The header.
    pub header: Header,
    /// The segments.
    pub body: Body<'p>,
}

/// What follows the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'p> {
    /// DATA.
    Data {
        /// The tag, present with [`Options::BTAG`].
        tag: Option<u64>,
        /// User data.
        data: &'p [u8],
    },
    /// CNTL.
    Control(Control),
    /// FIRST.
    First {
        /// Who talks to whom.
        address: AddressSegment,
        /// What it will be like.
        traffic: TrafficSpecifier,
        /// User data.
        data: &'p [u8],
    },
    /// ECNTL.
    ErrorControl {
        /// The common part.
        control: Control,
        /// What was received above `control.rseq`.
        spans: Spans<'p>,
    },
    /// TCNTL.
    TrafficControl {
        /// The common part.
        control: Control,
        /// The sender's own key, for the receiver to return.
        xkey: Key,
        /// What the sender agrees to.
        traffic: TrafficSpecifier,
    },
    /// JCNTL.
    JoinControl {
        /// The common part.
        control: Control,
        /// The sender's own key, for the receiver to return.
        xkey: Key,
        /// Who joins what.
        address: AddressSegment,
        /// What the sender agrees to.
        traffic: TrafficSpecifier,
    },
    /// DIAG.
    Diagnostic {
        /// What is wrong.
        code: Code,
        /// Why.
        reason: Reason,
        /// For people.
        text: &'p [u8],
    },
}

/// Why bytes are no XTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ParseError {
    /// There are fewer bytes than a header has.
    #[error("shorter than an XTP header of {HEADER_LENGTH} bytes")]
    TooShort,
    /// The announced length is not that of the packet.
    #[error("announces a length other than that of the packet")]
    Length,
    /// The checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// Not version 1, which XTP 4.0 writes.
    #[error("not XTP 4.0, but another version")]
    Version,
    /// The packet format is none of XTP 4.0, or obsolete.
    #[error("the packet format is unknown")]
    Format,
    /// A segment is truncated or inconsistent.
    #[error("the {0} is truncated or inconsistent")]
    Segment(&'static str),
}

impl<'p> Packet<'p> {
    /// Reads a packet.
    ///
    /// # Errors
    /// If the bytes are not exactly one intact packet.
    pub fn parse(bytes: &'p [u8]) -> Result<Packet<'p>, ParseError> {
        let (header, body) = bytes.split_first_chunk::<HEADER_LENGTH>().ok_or(ParseError::TooShort)?;
        let [_, _, command, length, _, sync, ..] = *header.as_chunks::<4>().0 else {
            return Err(ParseError::TooShort);
        };
        let command = u32::from_be_bytes(command);
        let options = Options::from_bits(command >> 8);
        if u64::from(u32::from_be_bytes(length)) != body.len() as u64 {
            return Err(ParseError::Length);
        }
        let covered = if options.has(Options::NOCHECK) { &header[..] } else { bytes };
        if checksum::sum(0, covered) != u16::MAX {
            return Err(ParseError::Checksum);
        }
        if (command >> 5) & 7 != VERSION {
            return Err(ParseError::Version);
        }
        let format = Format::of(command).ok_or(ParseError::Format)?;
        let header = Header {
            key: Key(segments::u64_at(header, 0)),
            options,
            sort: segments::u16_at(header, 18),
            sync: u32::from_be_bytes(sync),
            seq: segments::u64_at(header, 24),
        };
        Ok(Packet { header, body: Body::parse(format, options, body)? })
    }

    /// Appends the packet to `into`, with length and checksum.
    pub fn emit(&self, into: &mut Vec<u8>) {
        let options = match self.body {
            Body::Data { tag, .. } => Options::from_bits(self.header.options.bits() & !Options::BTAG.bits())
                .and_if(tag.is_some(), Options::BTAG),
            _ => self.header.options,
        };
        write(&Header { options, ..self.header }, self.body.format(), into, |into| self.body.emit(into));
    }
}

impl<'p> Body<'p> {
    /// The packet format that carries this.
    pub fn format(&self) -> Format {
        match self {
            Body::Data { .. } => Format::Data,
            Body::Control(_) => Format::Control,
            Body::First { .. } => Format::First,
            Body::ErrorControl { .. } => Format::ErrorControl,
            Body::TrafficControl { .. } => Format::TrafficControl,
            Body::JoinControl { .. } => Format::JoinControl,
            Body::Diagnostic { .. } => Format::Diagnostic,
        }
    }

    fn parse(format: Format, options: Options, bytes: &'p [u8]) -> Result<Body<'p>, ParseError> {
        Ok(match format {
            Format::Data if options.has(Options::BTAG) => {
                let (tag, data) =
                    bytes.split_first_chunk::<TAG_LENGTH>().ok_or(ParseError::Segment("tag"))?;
                Body::Data { tag: Some(u64::from_be_bytes(*tag)), data }
            }
            Format::Data => Body::Data { tag: None, data: bytes },
            Format::Control => {
                let (control, rest) = Control::parse(bytes)?;
                nothing_left(rest, "control segment")?;
                Body::Control(control)
            }
            Format::First => {
                let (address, rest) = AddressSegment::parse(bytes)?;
                let (traffic, data) = TrafficSpecifier::parse(rest)?;
                Body::First { address, traffic, data }
            }
            Format::ErrorControl => {
                let (control, rest) = Control::parse(bytes)?;
                Body::ErrorControl { control, spans: Spans::parse(rest)? }
            }
            Format::TrafficControl => {
                let (control, xkey, rest) = Control::parse_with_key(bytes)?;
                let (traffic, rest) = TrafficSpecifier::parse(rest)?;
                nothing_left(rest, "traffic control segment")?;
                Body::TrafficControl { control, xkey, traffic }
            }
            Format::JoinControl => {
                let (control, xkey, rest) = Control::parse_with_key(bytes)?;
                let (address, rest) = AddressSegment::parse(rest)?;
                let (traffic, rest) = TrafficSpecifier::parse(rest)?;
                nothing_left(rest, "join control segment")?;
                Body::JoinControl { control, xkey, address, traffic }
            }
            Format::Diagnostic => {
                let (code, rest) =
                    bytes.split_first_chunk::<4>().ok_or(ParseError::Segment("diagnostic segment"))?;
                let (reason, text) =
                    rest.split_first_chunk::<4>().ok_or(ParseError::Segment("diagnostic segment"))?;
                let code = Code(u32::from_be_bytes(*code));
                Body::Diagnostic { code, reason: Reason(u32::from_be_bytes(*reason)), text }
            }
        })
    }

    fn emit(&self, into: &mut Vec<u8>) {
        match *self {
            Body::Data { tag, data } => {
                if let Some(tag) = tag {
                    into.extend_from_slice(&tag.to_be_bytes());
                }
                into.extend_from_slice(data);
            }
            Body::Control(control) => control.emit(into),
            Body::First { address, traffic, data } => {
                address.emit(into);
                traffic.emit(into);
                into.extend_from_slice(data);
            }
            Body::ErrorControl { control, spans } => {
                control.emit(into);
                spans.emit(into);
            }
            Body::TrafficControl { control, xkey, traffic } => {
                control.emit_with_key(xkey, into);
                traffic.emit(into);
            }
            Body::JoinControl { control, xkey, address, traffic } => {
                control.emit_with_key(xkey, into);
                address.emit(into);
                traffic.emit(into);
            }
            Body::Diagnostic { code, reason, text } => {
                into.extend_from_slice(&code.0.to_be_bytes());
                into.extend_from_slice(&reason.0.to_be_bytes());
                into.extend_from_slice(text);
            }
        }
    }
}

/// Appends a DATA packet whose data `data` appends: they may lie in pieces.
pub(super) fn write_data(header: &Header, into: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    write(header, Format::Data, into, data);
}

/// Appends a FIRST packet whose data `data` appends.
pub(super) fn write_first(
    header: &Header,
    address: AddressSegment,
    traffic: TrafficSpecifier,
    into: &mut Vec<u8>,
    data: impl FnOnce(&mut Vec<u8>),
) {
    write(header, Format::First, into, |into| {
        address.emit(into);
        traffic.emit(into);
        data(into);
    });
}

/// Appends a control packet: ECNTL if there are spans to report, which are counted from `origin`, otherwise CNTL.
pub(super) fn write_status(
    header: &Header,
    control: Control,
    origin: u64,
    spans: &[Span],
    into: &mut Vec<u8>,
) {
    if spans.is_empty() {
        return write(header, Format::Control, into, |into| control.emit(into));
    }
    write(header, Format::ErrorControl, into, |into| {
        control.emit(into);
        into.extend_from_slice(&(spans.len() as u32).to_be_bytes());
        for span in spans {
            into.extend_from_slice(&origin.wrapping_add(span.left).to_be_bytes());
            into.extend_from_slice(&origin.wrapping_add(span.right).to_be_bytes());
        }
    });
}

/// Appends a packet whose segments `body` appends.
fn write(header: &Header, format: Format, into: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    let mut head = [0; HEADER_LENGTH];
    let command = header.options.bits() << 8 | VERSION << 5 | format as u32;
    head[0..8].copy_from_slice(&header.key.0.to_be_bytes());
    head[8..12].copy_from_slice(&command.to_be_bytes());
    head[18..20].copy_from_slice(&header.sort.to_be_bytes());
    head[20..24].copy_from_slice(&header.sync.to_be_bytes());
    head[24..32].copy_from_slice(&header.seq.to_be_bytes());
    into.extend_from_slice(&head);
    body(into);
    let packet = &mut into[start..];
    let length = (packet.len() - HEADER_LENGTH) as u32;
    packet[12..16].copy_from_slice(&length.to_be_bytes());
    let covered = if header.options.has(Options::NOCHECK) { HEADER_LENGTH } else { packet.len() };
    let check = !checksum::sum(0, &packet[..covered]);
    packet[16..18].copy_from_slice(&check.to_be_bytes());
}

fn nothing_left(rest: &[u8], segment: &'static str) -> Result<(), ParseError> {
    if rest.is_empty() { Ok(()) } else { Err(ParseError::Segment(segment)) }
}

/// What XTP 4.0 writes into the three bits of its version.
const VERSION: u32 = 1;
