//! Frames out of a file: pcap in both byte orders with microseconds or nanoseconds, and pcapng
//! (draft-ietf-opsawg-pcapng) with any number of interfaces and sections.
//!
//! Of each frame the first [`KEPT`] bytes are read, and all others are skipped: no length in the file reserves memory.

use std::io::Read;
use std::ops::ControlFlow;

use super::super::ImportError;

/// Bytes of a frame that are read: more than all headers have.
const KEPT: usize = 256;

/// Interfaces of a section at most.
const MAX_INTERFACES: usize = 4096;

/// The largest block or frame that is believed: libpcap's own bound is 256 KiB.
const MAX_BLOCK: u64 = 64 << 20;

/// A frame as it was captured.
pub(super) struct Frame<'b> {
    /// Nanoseconds since 1970.
    pub(super) at: i128,
    /// Its first header: a number of the LINKTYPE registry.
    pub(super) link_type: u32,
    /// Its first bytes.
    pub(super) bytes: &'b [u8],
    /// Its bytes on the line.
    pub(super) length: u32,
    /// True if this host sent it; `None` if the file has no direction.
    pub(super) is_outbound: Option<bool>,
}

/// The end of a file.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Frames that were passed on.
    pub(super) frames: u64,
    /// Frames without a time: pcapng's simple packets.
    pub(super) without_time: u64,
    /// Frames that the capturing interface reports as lost.
    pub(super) dropped: u64,
    /// Why reading ended before the file's end, with the place.
    pub(super) cut: Option<String>,
}

/// Passes every frame to `take` until it breaks.
///
/// # Errors
/// If the file is not a capture, or has nothing behind its header.
pub(super) fn read(
    from: &mut dyn Read,
    take: &mut dyn FnMut(Frame<'_>) -> ControlFlow<()>,
) -> Result<Ending, ImportError> {
    let mut reader = Reader { from, at: 0, order: Order::Little, ending: Ending::default(), take };
    let stop = match reader.file() {
        Ok(()) => Stop::End,
        Err(stop) => stop,
    };
    match stop {
        Stop::End => {}
        Stop::Not(why) => return Err(ImportError::new(why)),
        Stop::Cut(why) if reader.ending.frames == 0 => {
            return Err(ImportError::new(format!("is a capture without a whole packet: {why}")));
        }
        Stop::Cut(why) => reader.ending.cut = Some(why),
    }
    Ok(reader.ending)
}

/// Why reading ends.
enum Stop {
    /// All is read, or enough.
    End,
    /// It is not a capture; continues "`FILE` ...".
    Not(String),
    /// The file is damaged from here on: a sentence with the place.
    Cut(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Big,
    Little,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let pair = [bytes[at], bytes[at + 1]];
        if self == Order::Big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self == Order::Big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(bytes, at)), u64::from(self.u32(bytes, at + 4)));
        if self == Order::Big { first << 32 | second } else { second << 32 | first }
    }
}

/// An interface of a section of pcapng.
struct Interface {
    link_type: u32,
    /// Units of its times in a second.
    units: u128,
    /// Seconds to be added.
    offset: i64,
    dropped: u64,
}

struct Reader<'r, 't> {
    from: &'r mut dyn Read,
    /// Bytes read so far.
    at: u64,
    order: Order,
    ending: Ending,
    take: &'t mut dyn FnMut(Frame<'_>) -> ControlFlow<()>,
}

impl Reader<'_, '_> {
    /// Reads as many bytes as there are, up to the buffer's length.
    fn some(&mut self, buffer: &mut [u8]) -> Result<usize, Stop> {
        let mut read = 0;
        while read < buffer.len() {
            match self.from.read(&mut buffer[read..]) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Cut(format!("byte {} cannot be read: {error}", self.at))),
            }
        }
        self.at += read as u64;
        Ok(read)
    }

    fn all(&mut self, buffer: &mut [u8], of: &str) -> Result<(), Stop> {
        let from = self.at;
        match self.some(buffer)? {
            n if n == buffer.len() => Ok(()),
            _ => Err(Stop::Cut(format!("the file ends within {of} that begins at byte {from}"))),
        }
    }

    fn skip(&mut self, bytes: u64, of: &str) -> Result<(), Stop> {
        let from = self.at;
        let skipped = std::io::copy(&mut (&mut *self.from).take(bytes), &mut std::io::sink());
        let skipped = skipped.map_err(|error| Stop::Cut(format!("byte {from} cannot be read: {error}")))?;
        self.at += skipped;
        if skipped == bytes {
            Ok(())
        } else {
            Err(Stop::Cut(format!("the file ends at byte {}, within {of}", self.at)))
        }
    }

    fn file(&mut self) -> Result<(), Stop> {
        let mut magic = [0; 4];
        match self.some(&mut magic)? {
            0 => return Err(Stop::Not("is empty".to_owned())),
            4 => {}
            n => return Err(Stop::Not(format!("is not a capture: it has {n} bytes"))),
        }
        let nanos = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => return self.pcapng(),
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xd4, 0xc3, 0xb2, 0xa1] => 1_000,
            [0xa1, 0xb2, 0x3c, 0x4d] | [0x4d, 0x3c, 0xb2, 0xa1] => 1,
            _ => {
                return Err(Stop::Not("is not a capture: it begins like neither pcap nor pcapng".to_owned()));
            }
        };
        self.order = if magic[0] == 0xa1 { Order::Big } else { Order::Little };
        self.pcap(nanos)
    }

    /// The rest of a pcap file, whose times have a second part in units of `nanos`.
    fn pcap(&mut self, nanos: i128) -> Result<(), Stop> {
        let mut header = [0; 20];
        self.all(&mut header, "the file's header")?;
        // The upper bits are a length of check sequences.
        let link_type = self.order.u32(&header, 16) & 0xffff;
        let mut record = [0; 16];
        loop {
            let from = self.at;
            match self.some(&mut record)? {
                0 => return Ok(()),
                16 => {}
                _ => {
                    return Err(Stop::Cut(format!(
                        "the file ends within the packet that begins at byte {from}"
                    )));
                }
            }
            let [seconds, fraction, captured, length] = [0, 4, 8, 12].map(|at| self.order.u32(&record, at));
            if u64::from(captured) > MAX_BLOCK || captured > length.max(1 << 18) {
                return Err(Stop::Cut(format!(
                    "the packet that begins at byte {from} claims {captured} captured bytes of {length}"
                )));
            }
            let at = i128::from(seconds) * 1_000_000_000 + i128::from(fraction) * nanos;
            self.frame(at, link_type, captured, length)?;
        }
    }

    /// Reads the start of a frame's bytes, skips its rest, and passes it on.
    fn frame(&mut self, at: i128, link_type: u32, captured: u32, length: u32) -> Result<(), Stop> {
        let mut buffer = [0; KEPT];
        let kept = KEPT.min(captured as usize);
        self.all(&mut buffer[..kept], "a packet")?;
        self.skip(u64::from(captured) - kept as u64, "a packet")?;
        self.ending.frames += 1;
        match (self.take)(Frame { at, link_type, bytes: &buffer[..kept], length, is_outbound: None }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::End),
        }
    }

    /// The rest of a pcapng file, behind the type of the first section's header.
    fn pcapng(&mut self) -> Result<(), Stop> {
        let mut interfaces: Vec<Interface> = Vec::new();
        self.section()?;
        let mut head = [0; 8];
        loop {
            let from = self.at;
            match self.some(&mut head)? {
                0 => return Ok(()),
                8 => {}
                _ => {
                    return Err(Stop::Cut(format!(
                        "the file ends within the block that begins at byte {from}"
                    )));
                }
            }
            // The type of a section's header reads the same in both orders; its length does not.
            if head[..4] == [0x0a, 0x0d, 0x0d, 0x0a] {
                let mut order = [0; 4];
                self.all(&mut order, "a section's header")?;
                self.section_behind(from, [head[4], head[5], head[6], head[7]], order)?;
                interfaces.clear();
                continue;
            }
            let (kind, length) = (self.order.u32(&head, 0), u64::from(self.order.u32(&head, 4)));
            if !(12..=MAX_BLOCK).contains(&length) || length % 4 != 0 {
                return Err(Stop::Cut(format!("the block that begins at byte {from} claims {length} bytes")));
            }
            // Without type and both lengths.
            let content = length - 12;
            match kind {
                1 => self.interface(content, &mut interfaces)?,
                5 => self.statistics(content, &mut interfaces)?,
                2 | 6 => self.packet(kind, content, from, &interfaces)?,
                3 => {
                    self.ending.without_time += 1;
                    self.skip(content, "a block")?;
                }
                _ => self.skip(content, "a block")?,
            }
            self.skip(4, "a block")?;
        }
    }

    /// The first section's header behind its type.
    fn section(&mut self) -> Result<(), Stop> {
        let mut rest = [0; 8];
        self.all(&mut rest, "the file's header")?;
        self.section_behind(0, [rest[0], rest[1], rest[2], rest[3]], [rest[4], rest[5], rest[6], rest[7]])
    }

    fn section_behind(&mut self, from: u64, length: [u8; 4], order: [u8; 4]) -> Result<(), Stop> {
        self.order = match order {
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            _ if from == 0 => {
                return Err(Stop::Not("is not a capture: its pcapng header has no byte order".to_owned()));
            }
            _ => return Err(Stop::Cut(format!("the section that begins at byte {from} has no byte order"))),
        };
        let length = u64::from(self.order.u32(&length, 0));
        if !(28..=MAX_BLOCK).contains(&length) {
            return Err(Stop::Cut(format!(
                "the section that begins at byte {from} claims a header of {length} bytes"
            )));
        }
        self.skip(length - 12, "a section's header")
    }

    fn interface(&mut self, content: u64, interfaces: &mut Vec<Interface>) -> Result<(), Stop> {
        let mut fixed = [0; 8];
        if content < 8 || interfaces.len() >= MAX_INTERFACES {
            return Err(Stop::Cut(format!(
                "the description of an interface before byte {} is not one",
                self.at
            )));
        }
        self.all(&mut fixed, "a block")?;
        let link_type = self.order.u16(&fixed, 0);
        let mut interface =
            Interface { link_type: link_type.into(), units: 1_000_000, offset: 0, dropped: 0 };
        let order = self.order;
        self.options(content - 8, &mut |code, value| match (code, value) {
            (9, [resolution, ..]) => {
                let exponent = u32::from(resolution & 0x7f);
                interface.units = match resolution & 0x80 {
                    0 => 10_u128.pow(exponent.min(30)),
                    _ => 1 << exponent.min(100),
                };
            }
            (14, value) if value.len() >= 8 => interface.offset = order.u64(value, 0) as i64,
            _ => {}
        })?;
        interfaces.push(interface);
        Ok(())
    }

    fn statistics(&mut self, content: u64, interfaces: &mut [Interface]) -> Result<(), Stop> {
        let mut fixed = [0; 12];
        if content < 12 {
            return self.skip(content, "a block");
        }
        self.all(&mut fixed, "a block")?;
        let (id, order) = (self.order.u32(&fixed, 0) as usize, self.order);
        let (mut by_interface, mut by_system) = (0, 0);
        self.options(content - 12, &mut |code, value| match code {
            5 if value.len() >= 8 => by_interface = order.u64(value, 0),
            7 if value.len() >= 8 => by_system = order.u64(value, 0),
            _ => {}
        })?;
        if let Some(interface) = interfaces.get_mut(id) {
            // Each count is of the whole capture.
            let dropped = by_interface.saturating_add(by_system);
            self.ending.dropped =
                self.ending.dropped.saturating_add(dropped.saturating_sub(interface.dropped));
            interface.dropped = interface.dropped.max(dropped);
        }
        Ok(())
    }

    /// A packet: the block of today, or that of the first drafts.
    fn packet(&mut self, kind: u32, content: u64, from: u64, interfaces: &[Interface]) -> Result<(), Stop> {
        let mut fixed = [0; 20];
        if content < 20 {
            return Err(Stop::Cut(format!("the block that begins at byte {from} is too short for a packet")));
        }
        self.all(&mut fixed, "a packet")?;
        let id = match kind {
            2 => u32::from(self.order.u16(&fixed, 0)),
            _ => self.order.u32(&fixed, 0),
        };
        let [high, low, captured, length] = [4, 8, 12, 16].map(|at| self.order.u32(&fixed, at));
        let padded = u64::from(captured).next_multiple_of(4);
        let Some(options) = (content - 20).checked_sub(padded) else {
            return Err(Stop::Cut(format!(
                "the packet that begins at byte {from} claims {captured} captured bytes"
            )));
        };
        let Some(interface) = interfaces.get(id as usize) else {
            return Err(Stop::Cut(format!(
                "the packet that begins at byte {from} is of interface {id}, which is not described"
            )));
        };
        let units = u128::from(high) << 32 | u128::from(low);
        let nanos = (units / interface.units) * 1_000_000_000
            + (units % interface.units) * 1_000_000_000 / interface.units;
        let at = nanos as i128 + i128::from(interface.offset) * 1_000_000_000;
        let mut buffer = [0; KEPT];
        let kept = KEPT.min(captured as usize);
        self.all(&mut buffer[..kept], "a packet")?;
        self.skip(padded - kept as u64, "a packet")?;
        let (order, mut is_outbound) = (self.order, None);
        self.options(options, &mut |code, value| {
            if code == 2 && value.len() >= 4 {
                is_outbound = match order.u32(value, 0) & 3 {
                    1 => Some(false),
                    2 => Some(true),
                    _ => None,
                };
            }
        })?;
        self.ending.frames += 1;
        let frame = Frame { at, link_type: interface.link_type, bytes: &buffer[..kept], length, is_outbound };
        match (self.take)(frame) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::End),
        }
    }

    /// Passes the start of each option's value to `take`.
    fn options(&mut self, mut left: u64, take: &mut dyn FnMut(u16, &[u8])) -> Result<(), Stop> {
        while left >= 4 {
            let mut head = [0; 4];
            self.all(&mut head, "a block")?;
            left -= 4;
            let (code, length) = (self.order.u16(&head, 0), self.order.u16(&head, 2));
            let padded = u64::from(length).next_multiple_of(4);
            if code == 0 || padded > left {
                break;
            }
            let mut value = [0; 16];
            let kept = value.len().min(length.into());
            self.all(&mut value[..kept], "a block")?;
            self.skip(padded - kept as u64, "a block")?;
            left -= padded;
            take(code, &value[..kept]);
        }
        self.skip(left, "a block")
    }
}
