use proptest::prelude::*;

use super::*;

const MOST: usize = 200;

/// Sends payloads through a block code and a network that loses, reorders and doubles packets; gives what arrived.
fn through(
    code: Code,
    first: u32,
    payloads: &[Vec<u8>],
    mut network: impl FnMut(Vec<Vec<u8>>) -> Vec<Vec<u8>>,
) -> Vec<(u32, Vec<u8>, bool)> {
    let mut encoder = BlockEncoder::new(code, MOST, first).unwrap();
    let mut decoder = BlockDecoder::new(code, MOST).unwrap();
    let (mut group, mut arrived) = (Vec::new(), Vec::new());
    for payload in payloads {
        encoder.encode(payload, |packet| group.push(packet.to_vec())).unwrap();
        if group.len() > code.data() {
            for packet in network(std::mem::take(&mut group)) {
                let deliver = |d: Delivered<'_>| arrived.push((d.sequence, d.payload.to_vec(), d.recovered));
                decoder.decode(&packet, deliver).unwrap();
            }
        }
    }
    arrived
}

fn code() -> impl Strategy<Value = Code> {
    prop_oneof![
        (1..20usize).prop_map(|data| Code::Xor { data }),
        (1..20usize, 1..10usize).prop_map(|(data, parity)| Code::ReedSolomon { data, parity }),
    ]
}

fn payloads(count: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=MOST), count)
}

proptest! {
    /// Any loss up to the code's power, in any order, with any packet doubled: everything arrives, once, unchanged.
    #[test]
    fn what_the_code_can_bear_is_recovered(
        (code, payloads) in code().prop_flat_map(|code| (Just(code), payloads(3 * code.data()))),
        first: u32,
        random in any::<u64>(),
    ) {
        let mut random = random;
        let mut below = move |bound: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % bound
        };
        let mut arrived = through(code, first, &payloads, |mut group| {
            for _ in 0..below(code.parity() + 1) {
                group.remove(below(group.len()));
            }
            group.extend([group[below(group.len())].clone()]);
            let swap = below(group.len());
            group.swap(0, swap);
            group
        });
        prop_assert_eq!(arrived.len(), payloads.len());
        arrived.sort_by_key(|(sequence, ..)| sequence.wrapping_sub(first));
        for ((n, payload), (sequence, got, _)) in (0u32..).zip(&payloads).zip(&arrived) {
            prop_assert_eq!((first.wrapping_add(n), payload), (*sequence, got));
        }
    }

    /// One loss more: the data that came is there, and nothing is made up.
    #[test]
    fn more_loss_makes_nothing_up(
        (data, payloads) in (2..20usize).prop_flat_map(|data| (Just(data), payloads(data))),
        parity in 1..10usize,
        start: usize,
    ) {
        let code = Code::ReedSolomon { data, parity };
        let lost = (parity + 1).min(data);
        let arrived = through(code, 0, &payloads, |mut group| {
            let start = start % (data - lost + 1);
            group.drain(start..start + lost);
            if lost == data { group.truncate(parity.min(data - 1)); }
            group
        });
        prop_assert_eq!(arrived.len(), data - lost);
        for (sequence, payload, recovered) in arrived {
            prop_assert!(!recovered && payload == payloads[sequence as usize]);
        }
    }

    /// Packets of any bytes, and true ones with a byte changed: no panic, and never a payload above the agreed length.
    #[test]
    fn hostile_packets_are_survived(
        code in code(),
        payloads in payloads(8),
        hostile in prop::collection::vec((any::<bool>(), any::<usize>(), any::<u8>()), 1..60),
        noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..10),
    ) {
        let mut encoder = BlockEncoder::new(code, MOST, 7).unwrap();
        let mut repeater = Repeater::new(3, MOST, 7).unwrap();
        let (mut blocks, mut repeats, mut packet) = (Vec::new(), Vec::new(), Vec::new());
        for payload in payloads.iter().cycle().take(40) {
            encoder.encode(payload, |packet| blocks.push(packet.to_vec())).unwrap();
            repeater.encode(payload, &mut packet).unwrap();
            repeats.push(packet.clone());
        }
        let mut block_decoder = BlockDecoder::new(code, MOST).unwrap();
        let mut repeat_decoder = RepeatDecoder::new();
        for (cut, at, value) in hostile {
            for packets in [&blocks, &repeats] {
                let mut packet = packets[at % packets.len()].clone();
                let place = at / packets.len() % packet.len();
                if cut { packet.truncate(place) } else { packet[place] = value }
                let _ = block_decoder.decode(&packet, |d| assert!(d.payload.len() <= MOST));
                let _ = repeat_decoder.decode(&packet, |d| assert!(d.payload.len() <= packet.len()));
            }
        }
        for packet in noise {
            let _ = block_decoder.decode(&packet, |d| assert!(d.payload.len() <= MOST));
            let _ = repeat_decoder.decode(&packet, |d| assert!(d.payload.len() <= packet.len()));
        }
    }

    /// Up to as many packets lost in a row as are repeated: everything arrives, once, in order.
    #[test]
    fn repetition_bridges_bursts(repeats in 0..=8usize, payloads in payloads(60), first: u32, bursts: u64) {
        let mut repeater = Repeater::new(repeats, MOST, first).unwrap();
        let mut decoder = RepeatDecoder::new();
        let (mut packet, mut arrived, mut lost) = (Vec::new(), Vec::new(), 0);
        for (n, payload) in payloads.iter().enumerate() {
            let sequence = repeater.encode(payload, &mut packet).unwrap();
            prop_assert_eq!(sequence, first.wrapping_add(n as u32));
            if bursts >> n & 1 == 1 && lost < repeats && n + 1 < payloads.len() {
                lost += 1;
                continue;
            }
            decoder.decode(&packet, |d| arrived.push((d.sequence, d.payload.to_vec(), d.recovered))).unwrap();
            let recovered = arrived.iter().filter(|(.., recovered)| *recovered).count();
            prop_assert!(recovered >= lost);
            lost = 0;
        }
        prop_assert_eq!(arrived.len(), payloads.len());
        for ((n, payload), (sequence, got, _)) in (0u32..).zip(&payloads).zip(&arrived) {
            prop_assert_eq!((first.wrapping_add(n), payload), (*sequence, got));
        }
    }
}

/// The format, byte by byte.
#[test]
fn a_packet_of_repetitions_is_written_as_documented() {
    let mut repeater = Repeater::new(1, MOST, 0x0102_0304).unwrap();
    let mut packet = Vec::new();
    repeater.encode(b"ab", &mut packet).unwrap();
    assert_eq!(packet, *b"\x01\x02\x03\x04\x01\x00\x02ab");
    repeater.encode(b"cde", &mut packet).unwrap();
    assert_eq!(packet, *b"\x01\x02\x03\x05\x02\x00\x02\x00\x03abcde");
    repeater.encode(b"", &mut packet).unwrap();
    assert_eq!(packet, *b"\x01\x02\x03\x06\x02\x00\x03\x00\x00cde");
}

/// The format, byte by byte: parity over `0 1 a 0` and `0 2 b c`.
#[test]
fn a_group_of_xor_is_written_as_documented() {
    let mut encoder = BlockEncoder::new(Code::Xor { data: 2 }, MOST, 0x0A0B_0C0D).unwrap();
    let mut packets = Vec::new();
    for payload in [&b"a"[..], b"bc", b"", b""] {
        encoder.encode(payload, |packet| packets.push(packet.to_vec())).unwrap();
    }
    assert_eq!(packets[0], *b"\x00\x02\x01\x00\x0A\x0B\x0C\x0Da");
    assert_eq!(packets[1], *b"\x00\x02\x01\x01\x0A\x0B\x0C\x0Dbc");
    assert_eq!(packets[2], *b"\x01\x02\x01\x00\x0A\x0B\x0C\x0D\x00\x03\x03c");
    assert_eq!(packets[5], *b"\x01\x02\x01\x00\x0A\x0B\x0C\x0F\x00\x00");
    assert_eq!(packets.len(), 6);
}

/// A version of the crate that computed other parity could not talk to this one.
#[test]
fn the_reed_solomon_parity_stays_what_it_is() {
    let code = Code::ReedSolomon { data: 2, parity: 2 };
    let mut encoder = BlockEncoder::new(code, MOST, 0).unwrap();
    let mut packets = Vec::new();
    for payload in [&b"ab"[..], b"cd"] {
        encoder.encode(payload, |packet| packets.push(packet.to_vec())).unwrap();
    }
    let parity: Vec<&[u8]> = packets[2..].iter().map(|packet| &packet[8..]).collect();
    assert_eq!(parity, [[159, 162, 98, 106], [159, 162, 96, 108]]);
}

/// Packets of eight groups, in turn, each with one lost.
#[test]
fn groups_may_overlap() {
    let code = Code::Xor { data: 3 };
    let mut encoder = BlockEncoder::new(code, MOST, 0).unwrap();
    let mut groups = vec![Vec::new(); 8];
    for n in 0..24 {
        encoder.encode(&[n as u8; 5], |packet| groups[n / 3].push(packet.to_vec())).unwrap();
    }
    let mut decoder = BlockDecoder::new(code, MOST).unwrap();
    let mut arrived = Vec::new();
    for place in [0, 1, 3] {
        for group in &groups {
            decoder.decode(&group[place], |d| arrived.push((d.sequence, d.payload.to_vec()))).unwrap();
        }
    }
    arrived.sort();
    assert_eq!(arrived, (0..24u32).map(|n| (n, vec![n as u8; 5])).collect::<Vec<_>>());
}

#[test]
fn malformed_repetitions_are_refused() {
    for (packet, error) in [
        (&b""[..], PacketError::Length),
        (b"\0\0\0\0", PacketError::Length),
        (b"\0\0\0\0\x00", PacketError::Header),
        (b"\0\0\0\0\x0A", PacketError::Header),
        (b"\0\0\0\0\x01\x00", PacketError::Length),
        (b"\0\0\0\0\x01\x00\x02a", PacketError::Length),
        (b"\0\0\0\0\x01\x00\x02abc", PacketError::Length),
    ] {
        let nothing = |_: Delivered<'_>| panic!("handed out");
        assert_eq!(RepeatDecoder::new().decode(packet, nothing), Err(error), "{packet:?}");
    }
}

#[test]
fn settings_have_bounds() {
    assert_eq!(Repeater::new(9, MOST, 0).err(), Some(CodeError::Repeats(9)));
    assert_eq!(Repeater::new(1, 9_001, 0).err(), Some(CodeError::Payload(9_001)));
    for (data, parity) in [(0, 1), (1, 0), (65, 1), (1, 65), (usize::MAX, usize::MAX)] {
        let code = Code::ReedSolomon { data, parity };
        let error = Some(CodeError::Group { data, parity });
        assert_eq!(
            (BlockEncoder::new(code, MOST, 0).err(), BlockDecoder::new(code, MOST).err()),
            (error, error)
        );
    }
    for code in [Code::Xor { data: 64 }, Code::ReedSolomon { data: 64, parity: 64 }] {
        let mut encoder = BlockEncoder::new(code, MOST_PAYLOAD, 0).unwrap();
        assert_eq!(
            encoder.encode(&[0; 9_001], |_| panic!("sent")),
            Err(TooLong { length: 9_001, most: MOST_PAYLOAD })
        );
        assert!(BlockDecoder::new(code, MOST_PAYLOAD).is_ok());
    }
}

#[test]
fn contradictions_are_refused() {
    let header = |kind, data, parity, index| [kind, data, parity, index, 0, 0, 0, 0];
    let mut decoder = BlockDecoder::new(Code::ReedSolomon { data: 3, parity: 2 }, MOST).unwrap();
    let mut send = |header: [u8; 8], body: &[u8]| decoder.decode(&[&header, body].concat(), |_| {});
    assert_eq!(send(header(2, 3, 2, 0), &[0; 8]), Ok(()));
    assert_eq!(send(header(2, 3, 2, 1), &[0; 10]), Err(PacketError::Contradiction));
    assert_eq!(send(header(0, 3, 2, 0), &[0; 7]), Err(PacketError::Contradiction));
    assert_eq!(send(header(0, 3, 2, 0), &[0; 201]), Err(PacketError::Length));
    assert_eq!(send(header(2, 3, 2, 1), &[0; 7]), Err(PacketError::Length));
    for wrong in
        [header(1, 3, 2, 0), header(3, 3, 2, 0), header(0, 3, 2, 3), header(2, 3, 2, 2), header(0, 4, 2, 0)]
    {
        assert_eq!(send(wrong, &[0; 8]), Err(PacketError::Header));
    }
}
