//! TCP segments as scripts need them: written and read independently of the engine under test.

use trunkline_core::Address;
use trunkline_transport::ipv4_of;

/// Control bits (RFC 9293 section 3.1, RFC 3168, RFC 9768).
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u16 = 1;
    /// Synchronises sequence numbers.
    pub const SYN: u16 = 2;
    /// Ends the connection at once.
    pub const RST: u16 = 4;
    /// Data is to be handed on.
    pub const PSH: u16 = 8;
    /// The acknowledgement number counts.
    pub const ACK: u16 = 16;
    /// The echo of a mark.
    pub const ECE: u16 = 64;
    /// The window was reduced.
    pub const CWR: u16 = 128;
    /// Accurate ECN.
    pub const AE: u16 = 256;
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The first sequence number.
    pub sequence: u32,
    /// The acknowledgement number.
    pub acknowledgement: u32,
    /// Bits of [`flag`].
    pub flags: u16,
    /// As it stands in the header.
    pub window: u16,
    /// The largest segment that the sender takes.
    pub mss: Option<u16>,
    /// The shift of its windows.
    pub scale: Option<u8>,
    /// Whether it takes selective acknowledgements.
    pub sack_permitted: bool,
    /// Time stamp and echo.
    pub stamps: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub sacks: Vec<(u32, u32)>,
    /// The payload.
    pub data: Vec<u8>,
}

impl Segment {
    /// Whether any of these bits is set.
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Sequence numbers that it takes.
    pub fn length(&self) -> u32 {
        self.data.len() as u32 + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }

    /// Writes it.
    pub fn write(&self, from: Address, to: Address) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some(mss) = self.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if self.sack_permitted {
            options.extend([4, 2]);
        }
        if let Some((stamp, echo)) = self.stamps {
            options.extend([8, 10]);
            options.extend(stamp.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if let Some(scale) = self.scale {
            options.extend([3, 3, scale]);
        }
        if !self.sacks.is_empty() {
            options.extend([5, 2 + 8 * self.sacks.len() as u8]);
            for (first, after) in &self.sacks {
                options.extend(first.to_be_bytes());
                options.extend(after.to_be_bytes());
            }
        }
        options.resize(options.len().next_multiple_of(4), 1);
        let mut bytes = Vec::new();
        bytes.extend(from.port.to_be_bytes());
        bytes.extend(to.port.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        bytes.extend((((5 + options.len() / 4) as u16) << 12 | self.flags).to_be_bytes());
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        bytes.extend(&self.data);
        let sum = checksum(from, to, &bytes);
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(from: Address, to: Address, bytes: &[u8]) -> Result<Segment, String> {
        let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        if bytes.len() < 20 {
            return Err(format!("{} bytes are no TCP header", bytes.len()));
        }
        if checksum(from, to, bytes) != 0 {
            return Err("the checksum is wrong".to_owned());
        }
        if [u16_at(0), u16_at(2)] != [from.port, to.port] {
            return Err(format!("it is from port {} to port {}", u16_at(0), u16_at(2)));
        }
        let words = u16_at(12);
        let header = usize::from(words >> 12) * 4;
        let options = bytes.get(20..header).ok_or("its options end behind it")?;
        let mut segment = Segment {
            sequence: u32_at(4),
            acknowledgement: u32_at(8),
            flags: words & 0x1FF,
            window: u16_at(14),
            data: bytes[header..].to_vec(),
            ..Segment::default()
        };
        segment.read_options(options)?;
        Ok(segment)
    }

    fn read_options(&mut self, mut rest: &[u8]) -> Result<(), String> {
        loop {
            match rest {
                [] | [0, ..] => return Ok(()),
                [1, behind @ ..] => rest = behind,
                [kind, length, ..] if *length >= 2 && rest.len() >= usize::from(*length) => {
                    let (option, behind) = rest.split_at(usize::from(*length));
                    self.read_option(*kind, &option[2..])?;
                    rest = behind;
                }
                _ => return Err("an option has an impossible length".to_owned()),
            }
        }
    }

    fn read_option(&mut self, kind: u8, value: &[u8]) -> Result<(), String> {
        let word = |at: usize| u32::from_be_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]]);
        match (kind, value.len()) {
            (2, 2) => self.mss = Some(u16::from_be_bytes([value[0], value[1]])),
            (3, 1) => self.scale = Some(value[0]),
            (4, 0) => self.sack_permitted = true,
            (5, 8 | 16 | 24 | 32) => {
                self.sacks.extend((0..value.len() / 8).map(|block| (word(8 * block), word(8 * block + 4))));
            }
            (8, 8) => self.stamps = Some((word(0), word(4))),
            (2..=5 | 8, length) => return Err(format!("option {kind} has {length} bytes")),
            _ => {}
        }
        Ok(())
    }
}

/// The Internet checksum of a segment with its pseudo-header (RFC 9293 section 3.1): 0 if the one in it is right.
fn checksum(from: Address, to: Address, bytes: &[u8]) -> u16 {
    let pseudo =
        [&ipv4_of(from.host)[..], &ipv4_of(to.host), &[0, 6], &(bytes.len() as u16).to_be_bytes()].concat();
    let words = |bytes: &[u8]| -> u64 {
        bytes
            .chunks(2)
            .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
            .sum()
    };
    let mut sum = words(&pseudo) + words(bytes);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
