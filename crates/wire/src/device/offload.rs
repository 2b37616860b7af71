//! Segmentation offload of TCP. The kernel hands over packets of up to 64 KiB, without checksums; [`cut`] makes packets of the MTU
//! from them, with checksums, so that the link sees those. [`join`] makes large packets for the receiver from packets that leave the
//! link at nearly the same time. A packet with a wrong checksum is never joined, so the receiver still finds the error.

use std::io::IoSlice;

use trunkline_core::{Duration, Time};
use trunkline_io::offload::{Checksum, Offload, Segments};

use super::{Frame, Layer};
use crate::checksum::{checksum, fold, sum};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const TCP: usize = 20;
const TCP_PROTOCOL: u8 = 6;
/// The place of the checksum in the header of TCP.
const TCP_CHECKSUM: usize = 16;
/// The place of the checksum in the header of UDP.
const UDP_CHECKSUM: usize = 6;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;
/// Room for all headers: of Ethernet with two tags, IPv4 and TCP with their options.
const HEADERS: usize = 144;
/// The largest packet of IP.
const LARGEST: usize = 0xFFFF;
/// Joined frames are due within this time. They leave together anyway, and a network card that moderates its interrupts lets the
/// kernel join as many.
const TOGETHER: Duration = Duration::from_micros(50);

/// Calls `each` with every packet of a frame, in two pieces, and returns their number: 0 if the frame is malformed.
fn cut(layer: Layer, offload: &Offload, frame: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> usize {
    let mut room = [0; HEADERS];
    let Offload { checksum: Some(missing), segments } = *offload else {
        each(&[], frame);
        return 1;
    };
    let Some(segments) = segments else {
        let (start, end) =
            (usize::from(missing.start), usize::from(missing.start) + usize::from(missing.place) + 2);
        let (Some(head), Some((front, rest))) = (room.get_mut(..end), frame.split_at_checked(end)) else {
            return 0;
        };
        head.copy_from_slice(front);
        // In UDP, 0 means no checksum (RFC 768). All others have the checksum as it is: 0xFFFF is none of TCP's (RFC 1624, section 3).
        let sum = match checksum(&[&frame[start..]]) {
            0 if usize::from(missing.place) == UDP_CHECKSUM => u16::MAX,
            sum => sum,
        };
        head[end - 2..].copy_from_slice(&sum.to_be_bytes());
        each(head, rest);
        return 1;
    };
    let Some(headers) = Headers::of_segments(layer, &segments, missing, frame) else { return 0 };
    let (head, payload) = frame.split_at(headers.length);
    let own = &mut room[..headers.length];
    let count = payload.len().div_ceil(segments.payload.into());
    for (number, piece) in payload.chunks(segments.payload.into()).enumerate() {
        own.copy_from_slice(head);
        let flags = &mut own[headers.transport + 13];
        *flags &= if number + 1 < count { !(FIN | PSH) } else { !0 };
        *flags &= if number > 0 && segments.is_first_reduced { !CWR } else { !0 };
        headers.count(own, number as u16, (number * usize::from(segments.payload)) as u32);
        headers.measure(own, piece.len());
        let sum = headers.pseudo(own, piece.len()) + sum(&own[headers.transport..]) + sum(piece);
        headers.put_checksum(own, !fold(sum));
        each(own, piece);
    }
    count
}

/// Calls `take` with every packet of a frame that arrived at `at`, each in a buffer of its own. Returns the number of those that
/// are not taken because they are larger than `largest`: 1 for a frame that is malformed.
pub(super) fn take_apart(
    layer: Layer,
    (offload, frame): (Option<Offload>, &[u8]),
    (at, largest): (Time, usize),
    buffer: &mut dyn FnMut() -> Vec<u8>,
    take: &mut dyn FnMut(Frame),
) -> u64 {
    let mut refused = 0;
    let each = |head: &[u8], rest: &[u8]| {
        if head.len() + rest.len() > largest {
            refused += 1;
            return;
        }
        let mut bytes = buffer();
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(rest);
        take(Frame { at, bytes });
    };
    let count = offload.map_or(0, |offload| cut(layer, &offload, frame, each));
    refused + u64::from(count == 0)
}

/// The offsets of a TCP packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Headers {
    is_ipv6: bool,
    network: usize,
    transport: usize,
    /// The length of all headers.
    length: usize,
}

impl Headers {
    /// The headers of a packet that is to be cut.
    fn of_segments(layer: Layer, segments: &Segments, missing: Checksum, frame: &[u8]) -> Option<Headers> {
        let mut network = if layer == Layer::Ip { 0 } else { ETHERNET };
        // Tags of VLANs (IEEE 802.1Q).
        while network > 0 && matches!(frame.get(network - 2..network)?, [0x81, 0x00] | [0x88, 0xA8]) {
            network += 4;
        }
        let transport = usize::from(missing.start);
        let fixed = if segments.is_ipv6 { IPV6 } else { IPV4 };
        let version = if segments.is_ipv6 { 6 } else { 4 };
        let length = transport + usize::from(frame.get(transport + 12)? >> 4) * 4;
        let makes_sense = frame.get(network)? >> 4 == version
            && transport >= network + fixed
            && usize::from(missing.place) == TCP_CHECKSUM
            && length >= transport + TCP
            && length <= HEADERS
            && length < frame.len()
            && segments.payload > 0;
        makes_sense.then_some(Headers { is_ipv6: segments.is_ipv6, network, transport, length })
    }

    /// The headers of a packet that may be joined with others: it has data, no options of IP, and only the flags of data.
    fn of_packet(layer: Layer, frame: &[u8]) -> Option<Headers> {
        let network = if layer == Layer::Ip { 0 } else { ETHERNET };
        let ip = frame.get(network..)?;
        let word = |at: usize| Some(u16::from_be_bytes(*ip.get(at..)?.first_chunk()?));
        let is_ipv6 = ip.first()? >> 4 == 6;
        let (fixed, protocol, kind) = if is_ipv6 { (IPV6, 6, [0x86, 0xDD]) } else { (IPV4, 9, [0x08, 0x00]) };
        let (length, whole) = if is_ipv6 {
            (IPV6 + usize::from(word(4)?), true)
        } else {
            (word(2)?.into(), word(6)? & 0x3FFF == 0)
        };
        let may_be = layer == Layer::Ip || frame.get(network - 2..network) == Some(&kind);
        if !may_be
            || !whole
            || length != ip.len()
            || !(is_ipv6 || ip[0] == 0x45)
            || *ip.get(protocol)? != TCP_PROTOCOL
        {
            return None;
        }
        let transport = network + fixed;
        let headers = transport + usize::from(frame.get(transport + 12)? >> 4) * 4;
        let flags = frame.get(transport + 13)?;
        let fits = headers >= transport + TCP && headers <= HEADERS && headers < frame.len();
        (fits && flags & !(FIN | PSH | ECE) == ACK).then_some(Headers {
            is_ipv6,
            network,
            transport,
            length: headers,
        })
    }

    /// True if `next` is the segment after `last` and their headers agree.
    fn follows(&self, last: &[u8], next: &[u8]) -> bool {
        let (network, transport) = (self.network, self.transport);
        let number = |frame: &[u8]| {
            frame.get(transport + 4..).and_then(|rest| rest.first_chunk()).map(|at| u32::from_be_bytes(*at))
        };
        let id = |frame: &[u8]| u16::from_be_bytes([frame[network + 4], frame[network + 5]]);
        let same = |from: usize, to: usize| last[from..to] == next[from..to];
        let sent = (last.len() - self.length) as u32;
        number(next) == number(last).map(|number| number.wrapping_add(sent))
            && same(0, network + 2)
            && if self.is_ipv6 {
                same(network + 2, network + 4) && same(network + 6, transport)
            } else {
                id(next) == id(last).wrapping_add(1)
                    && same(network + 6, network + 10)
                    && same(network + 12, transport)
            }
            && same(transport, transport + 4)
            && same(transport + 8, transport + 13)
            && (last[transport + 13] ^ next[transport + 13]) & !(FIN | PSH) == 0
            && last[transport + 13] & (FIN | PSH) == 0
            && same(transport + 14, transport + TCP_CHECKSUM)
            && same(transport + 18, self.length)
    }

    /// True if the checksums are right.
    fn is_intact(&self, frame: &[u8]) -> bool {
        let sum = self.pseudo(frame, frame.len() - self.length) + sum(&frame[self.transport..]);
        let is_of_ip = self.is_ipv6 || checksum(&[&frame[self.network..self.transport]]) == 0;
        is_of_ip && fold(sum) == u16::MAX
    }

    /// Moves the identification and the sequence number on.
    fn count(&self, head: &mut [u8], packets: u16, bytes: u32) {
        if !self.is_ipv6 {
            let id = &mut head[self.network + 4..self.network + 6];
            let next = u16::from_be_bytes([id[0], id[1]]).wrapping_add(packets);
            id.copy_from_slice(&next.to_be_bytes());
        }
        let number = &mut head[self.transport + 4..self.transport + 8];
        let next = u32::from_be_bytes([number[0], number[1], number[2], number[3]]).wrapping_add(bytes);
        number.copy_from_slice(&next.to_be_bytes());
    }

    /// Writes the lengths with so much payload, and the checksum of IPv4; that of TCP is 0 then.
    fn measure(&self, head: &mut [u8], payload: usize) {
        let (network, length) = (self.network, self.length - self.network + payload);
        if self.is_ipv6 {
            head[network + 4..network + 6].copy_from_slice(&((length - IPV6) as u16).to_be_bytes());
        } else {
            head[network + 2..network + 4].copy_from_slice(&(length as u16).to_be_bytes());
            head[network + 10..network + 12].fill(0);
            let sum = checksum(&[&head[network..self.transport]]);
            head[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
        }
        self.put_checksum(head, 0);
    }

    fn put_checksum(&self, head: &mut [u8], sum: u16) {
        let place = self.transport + TCP_CHECKSUM;
        head[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// The sum of the pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1).
    fn pseudo(&self, head: &[u8], payload: usize) -> u64 {
        let addresses = if self.is_ipv6 { 8..IPV6 } else { 12..IPV4 };
        let length = self.length - self.transport + payload;
        sum(&head[self.network..][addresses]) + u64::from(TCP_PROTOCOL) + length as u64
    }
}

/// A packet for the kernel: an offload and, for several frames, their common headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    head: [u8; Offload::LENGTH + HEADERS],
    length: usize,
    /// The number of frames in it.
    pub(super) frames: usize,
    /// Bytes that are left out at the beginning of each frame.
    skipped: usize,
}

/// Joins consecutive segments that are due within [`TOGETHER`]. [`cut`] would make the same frames again.
pub(super) fn join(layer: Layer, frames: &[Frame], joined: &mut Vec<Joined>) {
    let mut rest = frames;
    while let Some(first) = rest.first() {
        let group = Group::begin(layer, first, &rest[1..]);
        let mut next = Joined { head: [0; _], length: Offload::LENGTH, frames: 1, skipped: 0 };
        if let Some(group) = group {
            group.write(&mut next, &rest[..group.frames]);
        }
        rest = &rest[next.frames..];
        joined.push(next);
    }
}

/// Frames that become one packet.
struct Group {
    headers: Headers,
    frames: usize,
    payload: usize,
}

impl Group {
    /// The first frame with those that may be joined with it; `None` if there are none.
    fn begin(layer: Layer, first: &Frame, others: &[Frame]) -> Option<Group> {
        others.first().filter(|next| next.at.since(first.at) <= TOGETHER)?;
        let headers = Headers::of_packet(layer, &first.bytes)?;
        let payload = first.bytes.len() - headers.length;
        let mut group = Group { headers, frames: 1, payload };
        let mut last = first;
        for next in others {
            let size = next.bytes.len().saturating_sub(headers.length);
            let belongs = next.at.since(first.at) <= TOGETHER
                && last.bytes.len() == first.bytes.len()
                && size <= payload
                && headers.length - headers.network + group.payload + size <= LARGEST
                && Headers::of_packet(layer, &next.bytes) == Some(headers)
                && headers.follows(&last.bytes, &next.bytes)
                && (group.frames > 1 || headers.is_intact(&first.bytes))
                && headers.is_intact(&next.bytes);
            if !belongs {
                break;
            }
            group.frames += 1;
            group.payload += size;
            last = next;
        }
        (group.frames > 1).then_some(group)
    }

    fn write(&self, joined: &mut Joined, frames: &[Frame]) {
        let Group { headers, payload, .. } = *self;
        let (front, head) = joined.head.split_at_mut(Offload::LENGTH);
        let head = &mut head[..headers.length];
        head.copy_from_slice(&frames[0].bytes[..headers.length]);
        let flags = headers.transport + 13;
        head[flags] |= frames.last().map_or(0, |last| last.bytes[flags]);
        headers.measure(head, payload);
        headers.put_checksum(head, fold(headers.pseudo(head, payload)));
        let segments = Segments {
            is_ipv6: headers.is_ipv6,
            headers: headers.length as u16,
            payload: (frames[0].bytes.len() - headers.length) as u16,
            is_first_reduced: false,
        };
        let missing = Checksum { start: headers.transport as u16, place: TCP_CHECKSUM as u16 };
        front.copy_from_slice(&Offload { checksum: Some(missing), segments: Some(segments) }.write());
        (joined.length, joined.frames, joined.skipped) =
            (Offload::LENGTH + headers.length, self.frames, headers.length);
    }
}

/// Fills in the pieces of all packets in order: [`Joined::frames`] and one more for each packet.
pub(super) fn pieces<'f>(joined: &'f [Joined], frames: &'f [Frame], into: &mut [IoSlice<'f>]) {
    let (mut frames, mut into) = (frames.iter(), into.iter_mut());
    for one in joined {
        let head = IoSlice::new(&one.head[..one.length]);
        let payloads =
            frames.by_ref().take(one.frames).map(|frame| IoSlice::new(&frame.bytes[one.skipped..]));
        for piece in std::iter::once(head).chain(payloads) {
            if let Some(place) = into.next() {
                *place = piece;
            }
        }
    }
}

#[cfg(test)]
mod tests;
