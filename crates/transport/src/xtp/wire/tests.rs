use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::super::fuzz::{fuzz_packet, mended};
use super::*;

fn key() -> impl Strategy<Value = Key> {
    any::<u64>().prop_map(Key)
}

fn control() -> impl Strategy<Value = Control> {
    any::<(u64, u64, u32)>().prop_map(|(rseq, alloc, echo)| Control { rseq, alloc, echo })
}

fn address() -> impl Strategy<Value = AddressSegment> {
    prop_oneof![
        Just(AddressSegment::Null),
        any::<([u8; 4], [u8; 4], u16, u16)>().prop_map(
            |(destination, source, destination_port, source_port)| AddressSegment::Ipv4 {
                destination,
                source,
                destination_port,
                source_port
            }
        ),
    ]
}

fn traffic() -> impl Strategy<Value = TrafficSpecifier> {
    let values = any::<[u32; 5]>().prop_map(|[maxdata, inrate, inburst, outrate, outburst]| TrafficValues {
        maxdata,
        inrate,
        inburst,
        outrate,
        outburst,
    });
    let service = prop::sample::select(Service::ALL.to_vec());
    (service, prop::option::of(values)).prop_map(|(service, values)| TrafficSpecifier { service, values })
}

fn header() -> impl Strategy<Value = Header> {
    (key(), any::<(u32, u16, u32, u64)>()).prop_map(|(key, (options, sort, sync, seq))| {
        // Whether there is a tag follows from the body.
        let options = Options::from_bits(options & !Options::BTAG.bits());
        Header { key, options, sort, sync, seq }
    })
}

/// Writes a packet of any kind, with its own bytes for data, and hands it on.
fn with_packet(check: impl Fn(&Packet<'_>) -> Result<(), TestCaseError>) {
    let bytes = prop::collection::vec(any::<u8>(), 0..50);
    let spans = prop::collection::vec(any::<(u64, u64)>(), 0..5);
    let strategy = (header(), 0..8usize, bytes, spans, control(), key(), address(), traffic(), any::<u64>());
    proptest!(cases(500), |((
        header, kind, bytes, spans, control, xkey, address, traffic, number,
    ) in strategy)| {
        let spans: Vec<Span> = spans.iter().map(|&(left, right)| Span { left, right }).collect();
        let (body, extra) = match kind {
            0 => (Body::Data { tag: None, data: &bytes }, Options::NONE),
            1 => (Body::Data { tag: Some(number), data: &bytes }, Options::BTAG),
            2 => (Body::Control(control), Options::NONE),
            3 => (Body::First { address, traffic, data: &bytes }, Options::NONE),
            4 => (Body::ErrorControl { control, spans: Spans::List(&spans) }, Options::NONE),
            5 => (Body::TrafficControl { control, xkey, traffic }, Options::NONE),
            6 => (Body::JoinControl { control, xkey, address, traffic }, Options::NONE),
            _ => {
                let (code, reason) = (Code(number as u32), Reason((number >> 32) as u32));
                (Body::Diagnostic { code, reason, text: &bytes }, Options::NONE)
            }
        };
        let header = Header { options: header.options.and(extra), ..header };
        check(&Packet { header, body })?;
    });
}

fn written(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(&mut bytes);
    bytes
}

#[test]
fn what_is_written_is_read() {
    with_packet(|packet| {
        let bytes = written(packet);
        prop_assert_eq!(Packet::parse(&bytes), Ok(*packet));
        Ok(())
    });
}

#[test]
fn every_flipped_bit_under_the_checksum_is_found() {
    with_packet(|packet| {
        let mut bytes = written(packet);
        let covered = if packet.header.options.has(Options::NOCHECK) { HEADER_LENGTH } else { bytes.len() };
        for bit in 0..covered * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Packet::parse(&bytes).is_err(), "bit {} of {:?}", bit, packet);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        Ok(())
    });
}

#[test]
fn every_cut_is_found() {
    with_packet(|packet| {
        let bytes = written(packet);
        for length in 0..bytes.len() {
            prop_assert!(Packet::parse(&bytes[..length]).is_err(), "{} of {:?}", length, packet);
        }
        Ok(())
    });
}

#[test]
fn any_bytes_are_a_packet_or_not() {
    proptest!(cases(2000), |(
        mut bytes in prop::collection::vec(any::<u8>(), 0..120), format in 0..10u8, honest: bool,
    )| {
        fuzz_packet(&bytes);
        if bytes.len() >= HEADER_LENGTH && honest {
            // Nearly right: version, format and length are those of a packet.
            bytes[11] = 0x20 | format;
            let length = (bytes.len() - HEADER_LENGTH) as u32;
            bytes[12..16].copy_from_slice(&length.to_be_bytes());
            fuzz_packet(&mended(&bytes));
        }
    });
}

#[test]
fn the_fields_stand_where_the_specification_puts_them() {
    let header = Header {
        key: Key(0x8102_0304_0506_0708),
        options: Options::SREQ.and(Options::EOM).and(Options::SORT),
        sort: 0x1112,
        sync: 0x2122_2324,
        seq: 0x3132_3334_3536_3738,
    };
    let bytes = written(&Packet { header, body: Body::Data { tag: None, data: b"ab" } });
    assert_eq!(
        bytes[..16],
        [0x81, 2, 3, 4, 5, 6, 7, 8, 0x02, 0x44, 0x00, 0x20, 0, 0, 0, 2],
        "key, options, version 1 with format 0, length"
    );
    assert_eq!(
        bytes[18..],
        [0x11, 0x12, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, b'a', b'b']
    );
}

#[test]
fn other_versions_formats_and_lengths_are_refused() {
    let header = Header::default();
    let bytes = written(&Packet { header, body: Body::Control(Control::default()) });
    let changed = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        Packet::parse(&mended(&bytes)).map(|_| ())
    };
    assert_eq!(changed(11, 0x21), Ok(()));
    assert_eq!(changed(11, 0x41), Err(ParseError::Version));
    assert_eq!(changed(11, 0x26), Err(ParseError::Format), "JOIN is obsolete");
    assert_eq!(changed(11, 0x25), Err(ParseError::Segment("traffic control segment")));
    let mut short = bytes.clone();
    short[15] = 19;
    assert_eq!(Packet::parse(&short).map(|_| ()), Err(ParseError::Length));
    assert_eq!(Packet::parse(&bytes[..31]).map(|_| ()), Err(ParseError::TooShort));
}
