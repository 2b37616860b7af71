//! The segments behind the header.

use super::{Key, ParseError, SPAN_LENGTH};

/// What every control packet says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// All bytes below this number are here.
    pub rseq: u64,
    /// Bytes below this number may be sent.
    pub alloc: u64,
    /// The largest sync seen.
    pub echo: u32,
}

impl Control {
    pub(super) fn parse(bytes: &[u8]) -> Result<(Control, &[u8]), ParseError> {
        let (segment, rest) =
            bytes.split_first_chunk::<20>().ok_or(ParseError::Segment("control segment"))?;
        let control =
            Control { rseq: u64_at(segment, 0), alloc: u64_at(segment, 8), echo: u32_at(segment, 16) };
        Ok((control, rest))
    }

    /// With the reserved field and the exchange key of traffic and join control.
    pub(super) fn parse_with_key(bytes: &[u8]) -> Result<(Control, Key, &[u8]), ParseError> {
        let (control, rest) = Control::parse(bytes)?;
        let (segment, rest) =
            rest.split_first_chunk::<12>().ok_or(ParseError::Segment("traffic control segment"))?;
        Ok((control, Key(u64_at(segment, 4)), rest))
    }

    pub(super) fn emit(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.rseq.to_be_bytes());
        into.extend_from_slice(&self.alloc.to_be_bytes());
        into.extend_from_slice(&self.echo.to_be_bytes());
    }

    pub(super) fn emit_with_key(self, xkey: Key, into: &mut Vec<u8>) {
        self.emit(into);
        into.extend_from_slice(&[0; 4]);
        into.extend_from_slice(&xkey.0.to_be_bytes());
    }
}

/// Bytes that were received: from `left` up to, not including, `right`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Number of the first byte.
    pub left: u64,
    /// Number of the byte after the last.
    pub right: u64,
}

/// The spans of an error control segment: as read from a packet, or as a list to be written.
#[derive(Clone, Copy, Debug)]
pub enum Spans<'p> {
    /// As they stand in a packet.
    Read(&'p [[u8; SPAN_LENGTH]]),
    /// To be written.
    List(&'p [Span]),
}

impl<'p> Spans<'p> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Spans::Read(spans) => spans.len(),
            Spans::List(spans) => spans.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = Span> + 'p {
        (0..self.len()).map(move |index| match self {
            Spans::Read(spans) => Span { left: u64_at(&spans[index], 0), right: u64_at(&spans[index], 8) },
            Spans::List(spans) => spans[index],
        })
    }

    pub(super) fn parse(bytes: &'p [u8]) -> Result<Spans<'p>, ParseError> {
        const SEGMENT: ParseError = ParseError::Segment("error control segment");
        let (count, spans) = bytes.split_first_chunk::<4>().ok_or(SEGMENT)?;
        let (spans, rest) = spans.as_chunks();
        if !rest.is_empty() || u64::from(u32::from_be_bytes(*count)) != spans.len() as u64 {
            return Err(SEGMENT);
        }
        Ok(Spans::Read(spans))
    }

    pub(super) fn emit(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&(self.len() as u32).to_be_bytes());
        for span in self.iter() {
            into.extend_from_slice(&span.left.to_be_bytes());
            into.extend_from_slice(&span.right.to_be_bytes());
        }
    }
}

impl PartialEq for Spans<'_> {
    fn eq(&self, other: &Spans<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Spans<'_> {}

/// Who talks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSegment {
    /// Nothing is said (format 0).
    Null,
    /// IPv4 addresses and ports (format 1).
    Ipv4 {
        /// The destination's address.
        destination: [u8; 4],
        /// The source's address.
        source: [u8; 4],
        /// The destination's port.
        destination_port: u16,
        /// The source's port.
        source_port: u16,
    },
}

impl AddressSegment {
    pub(super) fn parse(bytes: &[u8]) -> Result<(AddressSegment, &[u8]), ParseError> {
        const SEGMENT: ParseError = ParseError::Segment("address segment");
        let start = bytes.first_chunk::<4>().ok_or(SEGMENT)?;
        match (u16_at(start, 0), start[3]) {
            (8, 0) => {
                let (_, rest) = bytes.split_first_chunk::<8>().ok_or(SEGMENT)?;
                Ok((AddressSegment::Null, rest))
            }
            (16, 1) => {
                let (segment, rest) = bytes.split_first_chunk::<16>().ok_or(SEGMENT)?;
                let address = AddressSegment::Ipv4 {
                    destination: u32_at(segment, 4).to_be_bytes(),
                    source: u32_at(segment, 8).to_be_bytes(),
                    destination_port: u16_at(segment, 12),
                    source_port: u16_at(segment, 14),
                };
                Ok((address, rest))
            }
            _ => Err(SEGMENT),
        }
    }

    pub(super) fn emit(self, into: &mut Vec<u8>) {
        match self {
            AddressSegment::Null => into.extend_from_slice(&[0, 8, 0, 0, 0, 0, 0, 0]),
            AddressSegment::Ipv4 { destination, source, destination_port, source_port } => {
                into.extend_from_slice(&[0, 16, 0, 1]);
                into.extend_from_slice(&destination);
                into.extend_from_slice(&source);
                into.extend_from_slice(&destination_port.to_be_bytes());
                into.extend_from_slice(&source_port.to_be_bytes());
            }
        }
    }
}

/// The services of XTP 4.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Service {
    /// Nothing is said.
    #[default]
    Unspecified = 0,
    /// One packet, not acknowledged.
    Datagram = 1,
    /// One packet, acknowledged.
    AcknowledgedDatagram = 2,
    /// A request and its answer.
    Transaction = 3,
    /// A reliable stream between two.
    Stream = 4,
    /// A stream to a group, not acknowledged.
    UnacknowledgedMulticast = 5,
    /// A reliable stream to a group.
    Multicast = 6,
}

impl Service {
    /// All of them, in the order of their numbers.
    pub const ALL: [Service; 7] = [
        Service::Unspecified,
        Service::Datagram,
        Service::AcknowledgedDatagram,
        Service::Transaction,
        Service::Stream,
        Service::UnacknowledgedMulticast,
        Service::Multicast,
    ];
}

/// What a conversation will be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficSpecifier {
    /// Which service.
    pub service: Service,
    /// Sizes and rates (format 1); `None` if nothing is said of them (format 0).
    pub values: Option<TrafficValues>,
}

/// Sizes and rates, as the packet's sender sees them. Zero stands for "no limit".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficValues {
    /// The most data in one packet, in bytes.
    pub maxdata: u32,
    /// Data towards the packet's sender, in bytes per second.
    pub inrate: u32,
    /// The same in one burst, in bytes.
    pub inburst: u32,
    /// Data from the packet's sender, in bytes per second.
    pub outrate: u32,
    /// The same in one burst, in bytes.
    pub outburst: u32,
}

impl TrafficSpecifier {
    pub(super) fn parse(bytes: &[u8]) -> Result<(TrafficSpecifier, &[u8]), ParseError> {
        const SEGMENT: ParseError = ParseError::Segment("traffic specifier");
        let start = bytes.first_chunk::<4>().ok_or(SEGMENT)?;
        let service = *Service::ALL.get(usize::from(start[2])).ok_or(SEGMENT)?;
        match (u16_at(start, 0), start[3]) {
            (8, 0) => {
                let (_, rest) = bytes.split_first_chunk::<8>().ok_or(SEGMENT)?;
                Ok((TrafficSpecifier { service, values: None }, rest))
            }
            (24, 1) => {
                let (segment, rest) = bytes.split_first_chunk::<24>().ok_or(SEGMENT)?;
                let [maxdata, inrate, inburst, outrate, outburst] =
                    [4, 8, 12, 16, 20].map(|at| u32_at(segment, at));
                let values = TrafficValues { maxdata, inrate, inburst, outrate, outburst };
                Ok((TrafficSpecifier { service, values: Some(values) }, rest))
            }
            _ => Err(SEGMENT),
        }
    }

    pub(super) fn emit(self, into: &mut Vec<u8>) {
        let service = self.service as u8;
        match self.values {
            None => into.extend_from_slice(&[0, 8, service, 0, 0, 0, 0, 0]),
            Some(TrafficValues { maxdata, inrate, inburst, outrate, outburst }) => {
                into.extend_from_slice(&[0, 24, service, 1]);
                for value in [maxdata, inrate, inburst, outrate, outburst] {
                    into.extend_from_slice(&value.to_be_bytes());
                }
            }
        }
    }
}

/// What a diagnosis is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// The receiver of a FIRST packet refuses the context.
    pub const CONTEXT_REFUSED: Code = Code(1);
    /// The sender gave the context up.
    pub const CONTEXT_ABANDONED: Code = Code(2);
    /// The key names no context.
    pub const INVALID_CONTEXT: Code = Code(3);
    /// A request cannot be granted.
    pub const REQUEST_REFUSED: Code = Code(4);
    /// The sender of a multicast conversation refuses a receiver.
    pub const JOIN_REFUSED: Code = Code(5);
    /// A packet broke the protocol.
    pub const PROTOCOL_ERROR: Code = Code(6);
    /// A packet was larger than the receiver can take.
    pub const PACKET_TOO_LARGE: Code = Code(7);
}

/// Why a diagnosis was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason(pub u32);

impl Reason {
    /// Nothing is said.
    pub const UNSPECIFIED: Reason = Reason(0);
    /// Nobody listens there.
    pub const NO_LISTENER: Reason = Reason(1);
    /// These options are not offered.
    pub const OPTIONS_REFUSED: Reason = Reason(2);
    /// The address format is not known.
    pub const ADDRESS_FORMAT: Reason = Reason(3);
    /// The address segment contradicts itself.
    pub const MALFORMED_ADDRESS: Reason = Reason(4);
    /// The traffic format is not known.
    pub const TRAFFIC_FORMAT: Reason = Reason(5);
    /// The traffic cannot be carried.
    pub const TRAFFIC_REFUSED: Reason = Reason(6);
    /// The traffic specifier contradicts itself.
    pub const MALFORMED_TRAFFIC: Reason = Reason(7);
    /// There is no provider of the service.
    pub const NO_PROVIDER: Reason = Reason(8);
    /// There is no room.
    pub const NO_RESOURCE: Reason = Reason(9);
    /// The host is going down.
    pub const GOING_DOWN: Reason = Reason(10);
    /// The data asked for again are gone.
    pub const INVALID_RETRANSMISSION: Reason = Reason(11);
    /// The context is in another state.
    pub const IMPROPER_STATE: Reason = Reason(12);
    /// The receiver may not join.
    pub const JOIN_DENIED: Reason = Reason(13);
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}
