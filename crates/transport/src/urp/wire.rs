//! The codec of URP's packets: a header for what the virtual circuit does, and behind it, byte for byte, what counts on
//! a trunk.
//!
//! | bytes | header |
//! | --- | --- |
//! | 0 | kind: 1 envelopes, 2 the circuit is gone |
//! | 1 | zero |
//! | 2..4 | number of data envelopes |
//! | 4..8 | CRC-32 of the whole packet without this field |
//! | 8..16 | the packet's number in its direction, from 1 |
//!
//! Behind the header stand the data envelopes, one byte each, and the control envelopes, two bytes each: a mark, as a
//! trunk stuffs it, and the control character. All numbers of the header are big-endian; the length in a trailer is
//! little-endian, as in URP.

/// Length of the header that stands for the circuit's services; it counts on no trunk.
pub(super) const HEADER_LENGTH: usize = 16;

/// Bytes that a block's trailer counts on a link: BOT and SEQ with their stuffing, and two bytes of length.
pub const TRAILER_LENGTH: usize = 6;

/// Bytes of a control envelope on a trunk.
pub(super) const CONTROL_LENGTH: usize = 2;

/// The largest block in bytes.
pub(super) const MAX_BLOCK: usize = 1024;

/// Blocks, and so SEQ, ECHO, REJ and ACK, count modulo this.
pub(super) const MODULUS: u64 = 8;

const ENVELOPES: u8 = 1;
const HANG_UP: u8 = 2;
/// What a trunk puts before a control character.
const MARK: u8 = 0x80;

const SEQ: u8 = 0o10;
const ECHO: u8 = 0o20;
const REJ: u8 = 0o30;
const ACK: u8 = 0o40;
const BOT: u8 = 0o50;
const BOTM: u8 = 0o51;
const ENQ: u8 = 0o55;
const INIT1: u8 = 0o61;
const AINIT: u8 = 0o62;

/// A packet, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'p> {
    /// Its number in its direction, from 1.
    pub(super) number: u64,
    pub(super) body: Body<'p>,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'p> {
    /// Data of one block in two pieces (the ends of a ring buffer), and its trailer if these are its last.
    Data { pieces: [&'p [u8]; 2], trailer: Option<Trailer> },
    /// A single control envelope.
    Control(Control),
    /// The circuit is gone: not of URP, but what the node's controller tells the other end.
    HangUp,
}

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    /// BOTM instead of BOT: the message goes on in the next block.
    pub(super) more: bool,
    /// Bytes of the block; zero for the end of all data.
    pub(super) length: u16,
    /// The block's number modulo [`MODULUS`].
    pub(super) sequence: u8,
}

/// A control envelope outside of a trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Blocks up to this have been handed on: opens the window.
    Echo(u8),
    /// A block was damaged; this is the last good one.
    Reject(u8),
    /// This is the last good block: the second part of the answer to [`Control::Enquire`].
    Acknowledge(u8),
    /// Asks the receiver for its state.
    Enquire,
    /// Asks the peer to begin.
    Initialise,
    /// The answer to it.
    Initialised,
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They do not have a packet's form.
    Malformed,
    /// A bit was damaged under way.
    Checksum,
}

impl Packet<'_> {
    /// Writes the packet into `into`, which it clears first.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.clear();
        into.resize(HEADER_LENGTH, 0);
        into[0] = ENVELOPES;
        into[8..].copy_from_slice(&self.number.to_be_bytes());
        match self.body {
            Body::Data { pieces, trailer } => {
                let data = pieces[0].len() + pieces[1].len();
                into[2..4].copy_from_slice(&(data as u16).to_be_bytes());
                into.extend_from_slice(pieces[0]);
                into.extend_from_slice(pieces[1]);
                if let Some(Trailer { more, length, sequence }) = trailer {
                    let [low, high] = length.to_le_bytes();
                    let begin = if more { BOTM } else { BOT };
                    into.extend_from_slice(&[MARK, begin, low, high, MARK, SEQ | sequence]);
                }
            }
            Body::Control(control) => into.extend_from_slice(&[MARK, control.character()]),
            Body::HangUp => into[0] = HANG_UP,
        }
        seal(into);
    }

    /// Takes a packet apart. All data stands in the first of the two pieces.
    pub(super) fn decode(packet: &[u8]) -> Result<Packet<'_>, Fault> {
        let (header, body) = packet.split_first_chunk::<HEADER_LENGTH>().ok_or(Fault::Malformed)?;
        let [kind, zero, d0, d1, c0, c1, c2, c3, number @ ..] = *header;
        if u32::from_be_bytes([c0, c1, c2, c3]) != checksum(packet) {
            return Err(Fault::Checksum);
        }
        let number = u64::from_be_bytes(number);
        let data = usize::from(u16::from_be_bytes([d0, d1]));
        if zero != 0 || number == 0 || data > MAX_BLOCK {
            return Err(Fault::Malformed);
        }
        let (data, controls) = body.split_at_checked(data).ok_or(Fault::Malformed)?;
        let body = match (kind, controls) {
            (HANG_UP, []) if data.is_empty() => Body::HangUp,
            (ENVELOPES, []) if !data.is_empty() => Body::Data { pieces: [data, &[]], trailer: None },
            (ENVELOPES, &[MARK, begin, low, high, MARK, last]) => {
                let trailer = Trailer::parse(begin, [low, high], last).ok_or(Fault::Malformed)?;
                Body::Data { pieces: [data, &[]], trailer: Some(trailer) }
            }
            (ENVELOPES, &[MARK, character]) if data.is_empty() => {
                Body::Control(Control::parse(character).ok_or(Fault::Malformed)?)
            }
            _ => return Err(Fault::Malformed),
        };
        Ok(Packet { number, body })
    }
}

impl Trailer {
    fn parse(begin: u8, length: [u8; 2], last: u8) -> Option<Trailer> {
        let length = u16::from_le_bytes(length);
        let more = begin == BOTM;
        let known = (more || begin == BOT) && last & !7 == SEQ;
        // Nothing can follow the end of all data.
        let sound = usize::from(length) <= MAX_BLOCK && !(more && length == 0);
        (known && sound).then_some(Trailer { more, length, sequence: last & 7 })
    }
}

impl Control {
    fn character(self) -> u8 {
        match self {
            Control::Echo(last) => ECHO | last,
            Control::Reject(last) => REJ | last,
            Control::Acknowledge(last) => ACK | last,
            Control::Enquire => ENQ,
            Control::Initialise => INIT1,
            Control::Initialised => AINIT,
        }
    }

    fn parse(character: u8) -> Option<Control> {
        let last = character & 7;
        Some(match (character & !7, character) {
            (ECHO, _) => Control::Echo(last),
            (REJ, _) => Control::Reject(last),
            (ACK, _) => Control::Acknowledge(last),
            (_, ENQ) => Control::Enquire,
            (_, INIT1) => Control::Initialise,
            (_, AINIT) => Control::Initialised,
            _ => return None,
        })
    }
}

/// Writes the checksum into a packet that is at least a header long.
pub(super) fn seal(packet: &mut [u8]) {
    let checksum = checksum(packet);
    packet[4..8].copy_from_slice(&checksum.to_be_bytes());
}

fn checksum(packet: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&packet[..4]);
    crc.update(&packet[8..]);
    crc.finalize()
}
