//! Cutting and joining are each other's opposite, for whatever the kernel hands over and for whatever leaves a link.

use proptest::prelude::*;
use trunkline_core::Time;

use super::*;

/// A packet of TCP with right checksums: some of its fields, and a payload.
#[derive(Clone, Debug)]
struct Tcp {
    layer: Layer,
    is_ipv6: bool,
    id: u16,
    number: u32,
    flags: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Tcp {
    fn headers(&self) -> Headers {
        let network = if self.layer == Layer::Ip { 0 } else { ETHERNET };
        let transport = network + if self.is_ipv6 { IPV6 } else { IPV4 };
        Headers { is_ipv6: self.is_ipv6, network, transport, length: transport + TCP + self.options.len() }
    }

    fn bytes(&self) -> Vec<u8> {
        let headers = self.headers();
        let kind = if self.is_ipv6 { [0x86, 0xDD] } else { [0x08, 0x00] };
        let mut bytes = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &kind[..]].concat();
        bytes.truncate(headers.network);
        if self.is_ipv6 {
            bytes.extend([0x60, 0x20, 0, 7, 0, 0, TCP_PROTOCOL, 64]);
            bytes.extend((0..32).map(|byte| byte * 3));
        } else {
            bytes.extend([0x45, 2, 0, 0]);
            bytes.extend(self.id.to_be_bytes());
            bytes.extend([0x40, 0, 64, TCP_PROTOCOL, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        }
        bytes.extend([20, 80, 200, 90]);
        bytes.extend(self.number.to_be_bytes());
        bytes.extend([1, 2, 3, 4, ((TCP + self.options.len()) as u8 / 4) << 4, self.flags, 1, 0, 0, 0, 0, 0]);
        bytes.extend(&self.options);
        headers.measure(&mut bytes, self.payload.len());
        let all = headers.pseudo(&bytes, self.payload.len())
            + sum(&bytes[headers.transport..])
            + sum(&self.payload);
        headers.put_checksum(&mut bytes, !fold(all));
        bytes.extend(&self.payload);
        bytes
    }

    /// The offload that the kernel would put in front of it.
    fn offload(&self, payload: u16) -> Offload {
        let headers = self.headers();
        let (is_ipv6, is_first_reduced) = (self.is_ipv6, self.flags & CWR != 0);
        let segments = Segments { is_ipv6, headers: headers.length as u16, payload, is_first_reduced };
        let missing = Checksum { start: headers.transport as u16, place: TCP_CHECKSUM as u16 };
        Offload { checksum: Some(missing), segments: Some(segments) }
    }
}

fn any_tcp() -> impl Strategy<Value = Tcp> {
    let flags = prop_oneof![Just(ACK), Just(ACK | PSH), Just(ACK | FIN), Just(ACK | ECE), Just(ACK | CWR)];
    let options = (0usize..=10).prop_flat_map(|words| prop::collection::vec(any::<u8>(), words * 4));
    let payload = prop::collection::vec(any::<u8>(), 1..9000);
    (any::<[bool; 2]>(), any::<u16>(), any::<u32>(), flags, options, payload).prop_map(
        |([is_ethernet, is_ipv6], id, number, flags, options, payload)| {
            let layer = if is_ethernet { Layer::Ethernet } else { Layer::Ip };
            Tcp { layer, is_ipv6, id, number, flags, options, payload }
        },
    )
}

fn cut_all(layer: Layer, offload: &Offload, frame: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let count = cut(layer, offload, frame, |head, rest| frames.push([head, rest].concat()));
    assert_eq!(count, frames.len());
    frames
}

fn at_once(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Frame> {
    frames.into_iter().map(|bytes| Frame { at: Time::from_nanos(5), bytes }).collect()
}

/// The packets that go to the kernel, each with its offload.
fn join_all(layer: Layer, frames: &[Frame]) -> Vec<(Offload, Vec<u8>)> {
    let mut joined = Vec::new();
    join(layer, frames, &mut joined);
    assert_eq!(joined.iter().map(|one| one.frames).sum::<usize>(), frames.len());
    let mut slices = vec![IoSlice::new(&[]); joined.len() + frames.len()];
    pieces(&joined, frames, &mut slices);
    let mut slices = &slices[..];
    let packet = |one: &Joined| {
        let (own, rest) = slices.split_at(one.frames + 1);
        slices = rest;
        let bytes: Vec<u8> = own.iter().flat_map(|slice| slice.iter().copied()).collect();
        let (front, bytes) = bytes.split_first_chunk().expect("an offload is in front");
        (Offload::read(front).expect("it is one of TCP"), bytes.to_vec())
    };
    joined.iter().map(packet).collect()
}

proptest! {
    #[test]
    fn segments_are_those_that_tcp_would_have_sent(tcp in any_tcp(), size in 1u16..3000) {
        let frames = cut_all(tcp.layer, &tcp.offload(size), &tcp.bytes());
        let count = frames.len();
        prop_assert_eq!(count, tcp.payload.len().div_ceil(size.into()));
        for (n, (frame, payload)) in frames.iter().zip(tcp.payload.chunks(size.into())).enumerate() {
            let not_last = if n + 1 < count { FIN | PSH } else { 0 };
            let not_first = if n > 0 { CWR } else { 0 };
            let own = Tcp {
                id: tcp.id.wrapping_add(n as u16),
                number: tcp.number.wrapping_add((n * usize::from(size)) as u32),
                flags: tcp.flags & !not_last & !not_first,
                payload: payload.to_vec(),
                ..tcp.clone()
            };
            prop_assert_eq!(frame, &own.bytes());
        }
    }

    #[test]
    fn what_is_cut_is_joined_again(tcp in any_tcp(), size in 500u16..3000) {
        let tcp = Tcp { flags: tcp.flags & !CWR, ..tcp };
        let (offload, bytes) = (tcp.offload(size), tcp.bytes());
        let frames = at_once(cut_all(tcp.layer, &offload, &bytes));
        prop_assume!(frames.len() > 1);
        let joined = join_all(tcp.layer, &frames);
        prop_assert_eq!(joined.len(), 1);
        prop_assert_eq!(joined[0].0, offload);
        prop_assert_eq!(joined[0].1.len(), bytes.len());
        let again = cut_all(tcp.layer, &joined[0].0, &joined[0].1);
        prop_assert!(frames.iter().map(|frame| &frame.bytes).eq(&again));
    }

    /// A bit here and there, and frames in any order: what arrives after the kernel has cut is what left the link.
    #[test]
    fn joining_changes_nothing(
        tcp in any_tcp(),
        size in 700u16..3000,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..120, 0u8..8), 0..4),
        swaps in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 0..2),
    ) {
        let mut frames = at_once(cut_all(tcp.layer, &tcp.offload(size), &tcp.bytes()));
        for (which, place, bit) in changes {
            let frame = which.get_mut(&mut frames[..]);
            if let Some(byte) = frame.bytes.get_mut(place) {
                *byte ^= 1 << bit;
            }
        }
        for [a, b] in swaps {
            let (a, b) = (a.index(frames.len()), b.index(frames.len()));
            frames.swap(a, b);
        }
        let joined = join_all(tcp.layer, &frames);
        let again: Vec<Vec<u8>> =
            joined.iter().flat_map(|(offload, bytes)| cut_all(tcp.layer, offload, bytes)).collect();
        prop_assert!(frames.iter().map(|frame| &frame.bytes).eq(&again));
    }

    #[test]
    fn any_bytes_are_cut_or_refused(
        is_ethernet: bool,
        front in any::<[u8; Offload::LENGTH]>(),
        frame in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let layer = if is_ethernet { Layer::Ethernet } else { Layer::Ip };
        if let Some(offload) = Offload::read(&front) {
            cut(layer, &offload, &frame, |_, _| ());
        }
        let half = frame.len() / 2;
        let frames = at_once([frame[..half].to_vec(), frame[half..].to_vec()]);
        let joined = join_all(layer, &frames);
        prop_assert_eq!(joined.len(), 2);
    }
}

fn some_tcp() -> Tcp {
    let payload = vec![7; 3000];
    Tcp { layer: Layer::Ip, is_ipv6: false, id: 9, number: 1, flags: ACK, options: Vec::new(), payload }
}

#[test]
fn frames_of_different_moments_stay_apart() {
    let tcp = some_tcp();
    let mut frames = at_once(cut_all(tcp.layer, &tcp.offload(1000), &tcp.bytes()));
    frames[2].at = frames[2].at + TOGETHER + Duration::from_nanos(1);
    let lengths: Vec<usize> = join_all(tcp.layer, &frames).iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lengths, [2040, 1040]);
}

#[test]
fn what_a_link_has_spoilt_stays_spoilt() {
    let tcp = some_tcp();
    let mut frames = at_once(cut_all(tcp.layer, &tcp.offload(1000), &tcp.bytes()));
    frames[1].bytes[500] ^= 1;
    let joined = join_all(tcp.layer, &frames);
    assert_eq!(joined.len(), 3);
    assert!(
        joined.iter().all(|(offload, _)| *offload == Offload::default()),
        "the receiver looks at the checksums"
    );
}

#[test]
fn a_missing_checksum_is_computed() {
    // UDP, with the sum of the pseudo-header in the place of its checksum.
    let mut packet = vec![0x45, 0, 0, 33, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0, 7, 0, 9, 0, 13, 0, 0, b'h', b'e', b'l', b'l', b'o']);
    let pseudo = fold(sum(&packet[12..20]) + 17 + 13);
    packet[26..28].copy_from_slice(&pseudo.to_be_bytes());
    let offload = Offload { checksum: Some(Checksum { start: 20, place: 6 }), segments: None };
    let frames = cut_all(Layer::Ip, &offload, &packet);
    assert_eq!(fold(sum(&frames[0][12..20]) + 17 + 13 + sum(&frames[0][20..])), u16::MAX);
    assert_eq!((frames.len(), frames[0].len()), (1, packet.len()));
}

#[test]
fn a_tag_does_not_hide_the_packet() {
    let tcp = Tcp { layer: Layer::Ethernet, ..some_tcp() };
    let (mut bytes, mut offload) = (tcp.bytes(), tcp.offload(1000));
    bytes.splice(12..12, [0x81, 0x00, 0, 5]);
    offload.checksum = Some(Checksum { start: 38, place: 16 });
    let frames = cut_all(tcp.layer, &offload, &bytes);
    assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [1058; 3]);
}

#[test]
fn a_checksum_of_zero_is_written_as_the_opposite_in_udp_only() {
    // A header whose words add up to 0xFFFF with the sum of the pseudo-header in the checksum's place.
    for (length, place, written) in [(20, TCP_CHECKSUM, 0), (8, UDP_CHECKSUM, u16::MAX)] {
        let mut bytes = some_tcp().bytes();
        let start = some_tcp().headers().transport;
        bytes.truncate(start + length);
        bytes[start..].fill(0);
        bytes[start..start + 2].copy_from_slice(&0xABCDu16.to_be_bytes());
        bytes[start + place..start + place + 2].copy_from_slice(&(!0xABCDu16).to_be_bytes());
        let missing = Checksum { start: start as u16, place: place as u16 };
        let offload = Offload { checksum: Some(missing), segments: None };
        let [cut]: [Vec<u8>; 1] = cut_all(some_tcp().layer, &offload, &bytes).try_into().unwrap();
        assert_eq!(cut[start + place..start + place + 2], written.to_be_bytes(), "at {place}");
    }
}
