use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

const LONG: u64 = (1 << 48) - 1;
const SHORT: u64 = (1 << 24) - 1;

fn header() -> impl Strategy<Value = Header> {
    let numbers = (any::<u16>(), any::<u16>(), 0u8..16, any::<bool>(), 0..=LONG, 0..=LONG);
    (numbers, 0u8..10, any::<u32>(), any::<[u8; 4]>()).prop_map(
        |((source, destination, ccval, short, sequence, ack), kind, service, [code, data @ ..])| {
            let long = !(short && (2..=4).contains(&kind));
            let mask = if long { LONG } else { SHORT };
            let (sequence, ack) = (sequence & mask, ack & mask);
            let body = match kind {
                0 => Body::Request { service },
                1 => Body::Response { ack, service },
                2 => Body::Data,
                3 => Body::Ack { ack },
                4 => Body::DataAck { ack },
                5 => Body::CloseReq { ack },
                6 => Body::Close { ack },
                7 => Body::Reset { ack, code, data },
                8 => Body::Sync { ack },
                _ => Body::SyncAck { ack },
            };
            Header { source, destination, ccval, coverage: 0, long, sequence, body }
        },
    )
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..100).prop_map(|mut bytes| {
        bytes.truncate(bytes.len() / 4 * 4);
        bytes
    })
}

fn encoded(header: &Header, options: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(header, options, data, PSEUDO_HEADER, &mut bytes);
    bytes
}

fn data_header(coverage: u8) -> Header {
    let body = Body::Data;
    Header { source: 4000, destination: 5000, ccval: 0, coverage, long: true, sequence: 1, body }
}

#[test]
fn headers_are_those_of_rfc_4340_section_5() {
    let header = Header {
        source: 0x1234,
        destination: 0x5678,
        ccval: 9,
        coverage: 0,
        long: true,
        sequence: 0x0102_0304_0506,
        body: Body::DataAck { ack: 0x1112_1314_1516 },
    };
    let bytes = encoded(&header, &[2, 0, 0, 0], b"data");
    let checksum = &bytes[6..8];
    let expected = [
        &[0x12, 0x34, 0x56, 0x78, 7, 0x90][..],
        checksum,
        &[4 << 1 | 1, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 2, 0, 0, 0],
        b"data",
    ];
    assert_eq!(bytes, expected.concat());
    let short = Header { long: false, sequence: 0x04_0506, body: Body::Ack { ack: 0x14_1516 }, ..header };
    let bytes = encoded(&short, &[], &[]);
    assert_eq!(bytes[4], 4);
    assert_eq!(bytes[8..], [3 << 1, 4, 5, 6, 0, 0x14, 0x15, 0x16]);
}

#[test]
fn the_checksum_is_that_of_rfc_4340_section_9() {
    // By hand: pseudo-header 0a00 0001 0a00 0101 0021 0011, header 0fa0 1388 0400 0000 0500 0000 0000 0001, data 4100.
    let bytes = encoded(&data_header(0), &[], b"A");
    let words =
        [0x0a00u32, 0x0001, 0x0a00, 0x0101, 0x21, 0x11, 0x0fa0, 0x1388, 0x0400, 0x0500, 0, 0, 0x0001, 0x4100];
    let sum: u32 = words.iter().sum();
    assert_eq!(bytes[6..8], (!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes());
}

#[test]
fn packets_that_break_the_format_are_malformed() {
    let good = encoded(&data_header(0), &[], b"data");
    let decode = |bytes: &[u8]| decode(bytes, None).err();
    assert_eq!(decode(&good), None);
    assert_eq!(decode(&good[..11]), Some(Fault::Malformed));
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        bad
    };
    for (what, bad) in [
        ("Data Offset within the header", with(4, 3)),
        ("Data Offset beyond the packet", with(4, 6)),
        ("a reserved type", with(8, 10 << 1 | 1)),
        ("a Close with short numbers", with(8, 6 << 1)),
        ("an Ack without room for its number", with(8, 3 << 1 | 1)),
        ("more coverage than data", with(5, 3)),
    ] {
        assert_eq!(decode(&bad), Some(Fault::Malformed), "{what}");
    }
    assert_eq!(decode(&with(5, 2)), None, "coverage of exactly the data");
}

#[test]
fn feature_options_are_those_of_rfc_4340_section_6_5() {
    use FeatureOption::{ChangeL, ChangeR, ConfirmL, ConfirmR};
    for (option, number, values, bytes) in [
        (ChangeL, 1, &[2, 3][..], &[32, 5, 1, 2, 3][..]),
        (ChangeL, 3, &[0, 0, 0, 0, 4, 0], &[32, 9, 3, 0, 0, 0, 0, 4, 0]),
        (ConfirmL, 1, &[2, 2, 3], &[33, 6, 1, 2, 2, 3]),
        (ConfirmL, 126, &[], &[33, 3, 126]),
        (ChangeR, 1, &[3, 2], &[34, 5, 1, 3, 2]),
        (ConfirmR, 1, &[2, 3, 2], &[35, 6, 1, 2, 3, 2]),
        (ConfirmR, 3, &[0, 0, 0, 0, 4, 0], &[35, 9, 3, 0, 0, 0, 0, 4, 0]),
        (ConfirmR, 126, &[], &[35, 3, 126]),
    ] {
        let option = Opt::Feature { option, number, values };
        let mut written = Vec::new();
        option.write(&mut written);
        assert_eq!(written, bytes);
        assert_eq!(Options::new(bytes).collect::<Vec<_>>(), [option]);
    }
}

#[test]
fn numbers_take_the_smallest_form() {
    for (option, length) in [
        (Opt::NdpCount(0), 3),
        (Opt::NdpCount(255), 3),
        (Opt::NdpCount(256), 4),
        (Opt::NdpCount((1 << 48) - 1), 8),
        (Opt::ElapsedTime(65_535), 4),
        (Opt::ElapsedTime(65_536), 6),
        (Opt::TimestampEcho { echo: 1, elapsed: 0 }, 6),
        (Opt::TimestampEcho { echo: 1, elapsed: 1 }, 8),
        (Opt::TimestampEcho { echo: 1, elapsed: 65_536 }, 10),
        (Opt::Mandatory, 1),
    ] {
        let mut written = Vec::new();
        option.write(&mut written);
        assert_eq!(written.len(), length, "{option:?}");
        assert_eq!(Options::new(&written).next(), Some(option));
    }
}

#[test]
fn a_nonsensical_length_ends_the_options() {
    let read = |bytes: &[u8]| Options::new(bytes).count();
    assert_eq!(read(&[2, 37, 1, 2, 2]), 1);
    assert_eq!(read(&[2, 37, 9, 2, 2]), 1);
    assert_eq!(read(&[2, 37]), 1);
    assert_eq!(read(&[0, 1, 0, 2, 0]), 1, "Mandatory in front of padding is padding");
    let short = Options::new(&[44, 4, 7, 7]).next();
    assert_eq!(short, Some(Opt::Unknown { kind: 44, data: &[7, 7] }), "a length that the type cannot have");
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn packets_come_back(
        header in header(), options in options(), data in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = encoded(&header, &options, &data);
        let packet = decode(&bytes, PSEUDO_HEADER).unwrap();
        prop_assert_eq!(packet, Packet { header, options: &options, data: &data });
    }

    #[test]
    fn one_flipped_bit_is_found_wherever_the_checksum_reaches(
        coverage in 0u8..6, data in prop::collection::vec(any::<u8>(), 20..60), bit: usize,
    ) {
        let header = data_header(coverage);
        let mut bytes = encoded(&header, &[], &data);
        let bit = bit % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let covered = if coverage == 0 { bytes.len() } else { header.length() + (usize::from(coverage) - 1) * 4 };
        prop_assert_eq!(decode(&bytes, PSEUDO_HEADER).is_ok(), bit / 8 >= covered);
    }

    #[test]
    fn any_bytes_are_a_packet_or_not(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = decode(&bytes, PSEUDO_HEADER);
        fuzz_dccp(&bytes);
    }

    #[test]
    fn whatever_happens_between_two_ends_breaks_neither(bytes in prop::collection::vec(any::<u8>(), 500..1500)) {
        fuzz_dccp(&bytes);
    }

    #[test]
    fn options_come_back(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        for option in Options::new(&bytes) {
            let mut written = Vec::new();
            option.write(&mut written);
            let mut read = Options::new(&written);
            prop_assert_eq!(read.next(), Some(option));
            prop_assert_eq!(read.next(), None);
        }
    }
}
