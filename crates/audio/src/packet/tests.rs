use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

fn header(sequence: u32) -> Header {
    Header {
        sequence,
        captured: Time::from_nanos(0x0102_0304_0506_0708),
        first_channel: 2,
        channels: 3,
        frames: 4,
        codec: 1,
    }
}

fn packet(sequence: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header(sequence).append(&mut bytes, |bytes| bytes.extend_from_slice(data));
    bytes
}

#[test]
fn fields_are_where_the_table_says() {
    let bytes = packet(0xA0A1_A2A3, &[9, 8, 7]);
    let fields = [
        &KEY[..],
        &[0xA0, 0xA1, 0xA2, 0xA3],
        &[1, 2, 3, 4, 5, 6, 7, 8],
        &[0, 3],
        &[0, 2],
        &[0, 3],
        &[0, 4],
        &[1],
    ];
    assert_eq!(bytes[..CHECK], fields.concat());
    assert_eq!(bytes[Header::BYTES..], [9, 8, 7]);
    assert_eq!(Header::read_packet(&bytes), Some((header(0xA0A1_A2A3), &[9, 8, 7][..])));
}

#[test]
fn a_packet_that_was_changed_is_none() {
    let bytes = packet(1, &[5; 20]);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert_eq!(Header::read_packet(&changed), None, "byte {at}");
    }
    for length in 0..bytes.len() {
        assert_eq!(Header::read_packet(&bytes[..length]), None);
    }
    assert_eq!(Header::read_packet(&[&bytes[..], &[0]].concat()), None);
}

const MOST_DATA: usize = 100;

fn found(finder: &mut Finder, bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut packets = Vec::new();
    finder.push(bytes, |_, _| true, |header, data| packets.push((header.sequence, data.to_vec())));
    packets
}

#[test]
fn a_packet_may_come_byte_by_byte() {
    let mut finder = Finder::new(MOST_DATA);
    let bytes = [packet(1, &[7; 50]), packet(2, &[]), packet(3, &[8; 100])].concat();
    let packets: Vec<_> = bytes.iter().flat_map(|byte| found(&mut finder, &[*byte])).collect();
    assert_eq!(packets, [(1, vec![7; 50]), (2, vec![]), (3, vec![8; 100])]);
    assert_eq!((finder.skipped(), finder.damaged()), (0, 0));
}

#[test]
fn after_a_lost_piece_the_next_packet_is_found_at_once() {
    let (first, second) = (packet(1, &[7; 100]), packet(2, &[8; 100]));
    let mut finder = Finder::new(MOST_DATA);
    // The end of the first is lost: what follows fills it up, and is looked through.
    assert_eq!(found(&mut finder, &[&first[..100], &second].concat()), [(2, vec![8; 100])]);
    assert_eq!((finder.skipped(), finder.damaged()), (100, 1));
}

#[test]
fn a_header_that_promises_too_much_keeps_nobody_waiting() {
    let long = packet(1, &[7; MOST_DATA + 1]);
    let mut finder = Finder::new(MOST_DATA);
    assert_eq!(found(&mut finder, &[&long[..40], &packet(2, &[])].concat()), [(2, vec![])]);
    let mut finder = Finder::new(MOST_DATA);
    let mut seen = 0;
    let bytes = [packet(1, &[7; 20]), packet(2, &[8; 20])].concat();
    finder.push(
        &bytes,
        |header, size| header.sequence == 2 && size == 20,
        |header, _| seen += header.sequence,
    );
    assert_eq!(seen, 2);
}

/// What becomes of a piece on its way.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Fine,
    Lost,
    Twice,
    /// It arrives after its successor.
    Overtaken,
    /// One of its bytes is another.
    Changed(usize, u8),
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Fine),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Overtaken),
        1 => (any::<usize>(), 1..=u8::MAX).prop_map(|(at, change)| Fate::Changed(at, change)),
    ]
}

/// Data with keys in it, as music may have them.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let run = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        Just(KEY.to_vec()),
        Just(packet(77, &[1; 3])[..20].to_vec()),
    ];
    prop::collection::vec(run, 0..5).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_packet_that_came_whole_is_found(
        packets in prop::collection::vec(data(), 1..20),
        size in 1..150usize,
        fates in prop::collection::vec(fates(), 1..40),
        read in 1..300usize,
    ) {
        let packets: Vec<Vec<u8>> = (0..).zip(&packets).map(|(n, data)| packet(n, data)).collect();
        let stream = packets.concat();
        // Each byte with where it was in the stream, unless it was changed.
        let pieces: Vec<Vec<(u8, Option<usize>)>> = stream
            .iter()
            .enumerate()
            .map(|(at, &byte)| (byte, Some(at)))
            .collect::<Vec<_>>()
            .chunks(size)
            .map(<[_]>::to_vec)
            .collect();
        let mut arrived: Vec<Vec<(u8, Option<usize>)>> = Vec::new();
        let mut overtaken = None;
        for (piece, fate) in pieces.iter().zip(fates.iter().cycle()) {
            let mut piece = piece.clone();
            match *fate {
                Fate::Fine | Fate::Overtaken => {}
                Fate::Lost => continue,
                Fate::Twice => arrived.push(piece.clone()),
                Fate::Changed(at, change) => {
                    let at = at % piece.len();
                    piece[at] = (piece[at].0 ^ change, None);
                }
            }
            if let (Fate::Overtaken, None) = (fate, &overtaken) {
                overtaken = Some(piece);
                continue;
            }
            arrived.push(piece);
            arrived.extend(overtaken.take());
        }
        let arrived: Vec<(u8, Option<usize>)> = arrived.concat();
        let mut bytes: Vec<u8> = arrived.iter().map(|(byte, _)| *byte).collect();
        // As many bytes as the longest packet has settle what the last header was.
        bytes.resize(bytes.len() + Header::BYTES + MOST_DATA, 0);

        let mut finder = Finder::new(MOST_DATA);
        let found: Vec<(u32, Vec<u8>)> = bytes.chunks(read).flat_map(|bytes| found(&mut finder, bytes)).collect();
        let mut start = 0;
        for (n, packet) in (0u32..).zip(&packets) {
            let place = |at: usize| {
                let run = arrived.get(at..at + packet.len());
                run.is_some_and(|run| run.iter().zip(start..).all(|((_, origin), at)| *origin == Some(at)))
            };
            let was_found = |n: u32| found.iter().any(|(sequence, _)| *sequence == n);
            // Another packet may have lost its end, and the same bytes may have come in its place: then it is whole too, and
            // which of the two is meant cannot be told.
            let is_hidden = |at: usize| {
                (0u32..).zip(&packets).filter(|(other, _)| *other != n && was_found(*other)).any(|(_, other)| {
                    let overlapping = (at + 1).saturating_sub(other.len())..at + packet.len();
                    bytes.windows(other.len()).enumerate().any(|(at, run)| overlapping.contains(&at) && run == other)
                })
            };
            let came = (0..arrived.len()).any(|at| place(at) && !is_hidden(at));
            prop_assert!(was_found(n) || !came, "packet {} of {:?}", n, packets.len());
            start += packet.len();
        }
        for (sequence, data) in &found {
            prop_assert_eq!(&packets[*sequence as usize][Header::BYTES..], &data[..], "nothing is invented");
        }
        let taken: usize = found.iter().map(|(_, data)| Header::BYTES + data.len()).sum();
        prop_assert!(taken + finder.skipped() as usize <= bytes.len());
    }
}
