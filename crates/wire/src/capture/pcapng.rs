//! Files in the format of pcapng (draft-ietf-opsawg-pcapng), as far as a capture of one interface needs it: a section header,
//! the interface, packets, and at the end the interface's counters. Little-endian.

/// Nanoseconds since 1970.
pub(super) type Epoch = u64;

/// What an interface's packets begin with (the LINKTYPE registry of tcpdump.org).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    Ethernet = 1,
    /// An IPv4 or IPv6 header.
    RawIp = 101,
}

/// Which way a packet goes, as its interface sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Inbound = 1,
    Outbound = 2,
}

/// A packet to be written.
pub(super) struct CapturedPacket<'p> {
    pub(super) at: Epoch,
    pub(super) bytes: &'p [u8],
    pub(super) way: Way,
    /// The same packet at another interface has the same.
    pub(super) id: u64,
    pub(super) comment: Option<&'p str>,
}

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_TEXT: u16 = 3;
const TIME_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;
const PACKET_ID: u16 = 5;
const RECEIVED: u16 = 4;
const MISSED: u16 = 5;

/// Appends the beginning of a file that holds the packets of one interface.
pub(super) fn begin(out: &mut Vec<u8>, name: &str, text: &str, link_type: LinkType) {
    block(out, SECTION_HEADER, |out| {
        out.extend(0x1A2B_3C4D_u32.to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        // The section's length is not known.
        out.extend(u64::MAX.to_le_bytes());
        option(out, USER_APPLICATION, concat!("trunkline ", env!("CARGO_PKG_VERSION")).as_bytes());
        end_of_options(out);
    });
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend((link_type as u16).to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        // No limit to what is captured of a packet.
        out.extend(0_u32.to_le_bytes());
        option(out, INTERFACE_NAME, name.as_bytes());
        option(out, INTERFACE_TEXT, text.as_bytes());
        // Times are in 10^-9 s.
        option(out, TIME_RESOLUTION, &[9]);
        end_of_options(out);
    });
}

/// Appends a packet.
pub(super) fn packet(out: &mut Vec<u8>, packet: &CapturedPacket<'_>) {
    block(out, ENHANCED_PACKET, |out| {
        let length = (packet.bytes.len() as u32).to_le_bytes();
        out.extend(0_u32.to_le_bytes());
        time(out, packet.at);
        out.extend(length);
        out.extend(length);
        padded(out, packet.bytes);
        if let Some(comment) = packet.comment {
            option(out, COMMENT, comment.as_bytes());
        }
        option(out, PACKET_FLAGS, &(packet.way as u32).to_le_bytes());
        option(out, PACKET_ID, &packet.id.to_le_bytes());
        end_of_options(out);
    });
}

/// Appends how many packets the interface has seen until `at`, and how many of them are not in the file.
pub(super) fn end(out: &mut Vec<u8>, at: Epoch, seen: u64, missed: u64) {
    block(out, INTERFACE_STATISTICS, |out| {
        out.extend(0_u32.to_le_bytes());
        time(out, at);
        option(out, RECEIVED, &seen.to_le_bytes());
        option(out, MISSED, &missed.to_le_bytes());
        end_of_options(out);
    });
}

/// A block: its type, its length before and behind its content.
fn block(out: &mut Vec<u8>, kind: u32, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    content(out);
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    out.extend(length);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Names and comments are ours; none is that long.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    padded(out, value);
}

fn end_of_options(out: &mut Vec<u8>) {
    out.extend([0; 4]);
}

/// High half first.
fn time(out: &mut Vec<u8>, at: Epoch) {
    out.extend(((at >> 32) as u32).to_le_bytes());
    out.extend((at as u32).to_le_bytes());
}

fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes);
    out.resize(out.len() + bytes.len().wrapping_neg() % 4, 0);
}
