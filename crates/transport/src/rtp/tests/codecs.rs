//! Bytes to packets and back.

use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use crate::rtp::fuzz::fuzz_rtp;
use crate::rtp::rtcp::{
    ReportBlock, RtcpPacket, SenderInfo, decode_compound, encode_bye, encode_cname, encode_report,
};
use crate::rtp::wire::{RtpHeader, RtpPacket, is_rtcp};

const HEADER: RtpHeader =
    RtpHeader { marker: true, payload_type: 0, sequence: 0x0102, timestamp: 0x0304_0506, ssrc: 0x0708_090A };

#[test]
fn the_header_stands_as_in_the_figure_of_section_5_1() {
    let mut bytes = Vec::new();
    RtpPacket {
        contributors: &[1, 2, 3, 4],
        extension: Some((0xBEDE, &[5, 6, 7, 8])),
        padding: 3,
        ..RtpPacket::new(HEADER, &[0xFF, 0x7F])
    }
    .encode(&mut bytes);
    let expected = [
        &[0b1011_0001, 0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10][..],
        &[1, 2, 3, 4],
        &[0xBE, 0xDE, 0, 1, 5, 6, 7, 8],
        &[0xFF, 0x7F],
        &[0, 0, 3],
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn what_breaks_the_rules_of_section_a_1_is_no_packet() {
    let mut good = Vec::new();
    RtpPacket { padding: 2, ..RtpPacket::new(HEADER, &[1, 2]) }.encode(&mut good);
    assert!(RtpPacket::decode(&good).is_some());
    let broken = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        RtpPacket::decode(&bytes).is_none()
    };
    assert!(broken(0, 0x60), "version 1");
    assert!(broken(0, 0xAF), "more contributors than bytes");
    assert!(broken(0, 0xB0), "a longer extension than bytes");
    assert!(broken(15, 5), "more padding than bytes");
    assert!(broken(15, 0), "padding of no bytes");
    assert!(RtpPacket::decode(&good[..11]).is_none(), "half a header");
}

#[test]
fn every_payload_type_that_is_allowed_is_told_from_rtcp() {
    for payload_type in (0..64).chain(96..128) {
        for marker in [false, true] {
            let mut bytes = Vec::new();
            RtpPacket::new(RtpHeader { payload_type, marker, ..HEADER }, &[]).encode(&mut bytes);
            assert!(!is_rtcp(&bytes), "{payload_type}");
        }
    }
    let mut bytes = Vec::new();
    encode_report(1, None, &[], &mut bytes);
    assert!(is_rtcp(&bytes));
}

/// A sender report with a block, a description and a BYE.
fn compound(block: ReportBlock) -> Vec<u8> {
    let info = SenderInfo { ntp: 0x0102_0304_0506_0708, rtp: 9, packets: 10, bytes: 11 };
    let mut bytes = Vec::new();
    encode_report(1, Some(&info), &[block], &mut bytes);
    encode_cname(1, "a@b", &mut bytes);
    encode_bye(1, "why", &mut bytes);
    bytes
}

const BLOCK: ReportBlock = ReportBlock {
    ssrc: 2,
    fraction_lost: 64,
    lost: -2,
    highest: 0x0001_0002,
    jitter: 3,
    last_report: 0x0304_0506,
    delay: 4,
};

#[test]
fn a_compound_packet_is_read_part_by_part() {
    let bytes = compound(BLOCK);
    let mut parts = decode_compound(&bytes).expect("it is sound");
    let Some(RtcpPacket::SenderReport { ssrc: 1, info, blocks }) = parts.next() else { panic!("no report") };
    assert_eq!((info.ntp, info.rtp, info.packets, info.bytes), (0x0102_0304_0506_0708, 9, 10, 11));
    assert_eq!(blocks.collect::<Vec<_>>(), [BLOCK]);
    let Some(RtcpPacket::Description(chunks)) = parts.next() else { panic!("no description") };
    assert_eq!(chunks.collect::<Vec<_>>(), [(1, Some(&b"a@b"[..]))]);
    let bye = RtcpPacket::Bye { sources: &[0, 0, 0, 1], reason: Some(b"why") };
    assert_eq!(parts.next(), Some(bye));
    assert_eq!(parts.next(), None);
}

#[test]
fn what_breaks_the_rules_of_section_a_2_is_no_compound_packet() {
    let good = compound(BLOCK);
    let is_broken = |bytes: &[u8]| decode_compound(bytes).is_none();
    assert!(is_broken(&[]));
    assert!(is_broken(&good[..good.len() - 1]), "shorter than it says");
    assert!(is_broken(&[&good[..], &[0]].concat()), "more than it says");
    let mut description = Vec::new();
    encode_cname(1, "a@b", &mut description);
    assert!(is_broken(&description), "does not begin with a report");
    for (at, value, why) in [
        (0, 0x41, "version 1"),
        (0, 0xA1, "a report with padding"),
        (0, 0x82, "more blocks than bytes"),
        (52, 0x82, "more chunks than bytes"),
        (61, 200, "an item longer than its packet"),
        (good.len() - 4, 200, "a reason longer than its packet"),
    ] {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert!(is_broken(&bytes), "{why}");
    }
}

#[test]
fn padding_may_stand_at_the_end_of_all_only() {
    let mut padded = Vec::new();
    encode_report(1, None, &[], &mut padded);
    let bye = padded.len();
    encode_bye(1, "", &mut padded);
    padded[bye] |= 0x20;
    padded[bye + 3] = 2;
    padded.extend_from_slice(&[0, 0, 0, 4]);
    let last = decode_compound(&padded).and_then(Iterator::last);
    assert_eq!(last, Some(RtcpPacket::Bye { sources: &[0, 0, 0, 1], reason: None }));
    encode_bye(1, "", &mut padded);
    assert!(decode_compound(&padded).is_none());
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn block() -> impl Strategy<Value = ReportBlock> {
    (any::<[u32; 5]>(), any::<u8>(), -(1 << 23)..(1 << 23)).prop_map(|(words, fraction_lost, lost)| {
        let [ssrc, highest, jitter, last_report, delay] = words;
        ReportBlock { ssrc, fraction_lost, lost, highest, jitter, last_report, delay }
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn data_packets_are_read_as_written(
        numbers: (bool, u8, u16, u32, u32), contributors in bytes(15), extension in bytes(40), payload in bytes(400),
        profile in any::<Option<u16>>(), padding: u8,
    ) {
        let (marker, payload_type, sequence, timestamp, ssrc) = numbers;
        let header = RtpHeader { marker, payload_type: payload_type & 0x7F, sequence, timestamp, ssrc };
        let contributors = contributors.repeat(4);
        let extension = extension.repeat(4);
        let packet = RtpPacket {
            header,
            contributors: &contributors,
            extension: profile.map(|profile| (profile, &extension[..])),
            payload: &payload,
            padding,
        };
        let mut written = Vec::new();
        packet.encode(&mut written);
        prop_assert_eq!(RtpPacket::decode(&written), Some(packet));
    }

    #[test]
    fn reports_are_read_as_written(
        ssrc: u32, info in any::<Option<(u64, u32, u32, u32)>>(), blocks in prop::collection::vec(block(), 0..32),
        cname in "[a-z@.]{0,255}", reason in "[ -~]{0,255}",
    ) {
        let info = info.map(|(ntp, rtp, packets, bytes)| SenderInfo { ntp, rtp, packets, bytes });
        let mut written = Vec::new();
        encode_report(ssrc, info.as_ref(), &blocks, &mut written);
        encode_cname(ssrc, &cname, &mut written);
        encode_bye(ssrc, &reason, &mut written);
        prop_assert_eq!(written.len() % 4, 0);
        let parts: Vec<_> = decode_compound(&written).expect("we wrote it").collect();
        let read = match parts[0] {
            RtcpPacket::SenderReport { ssrc, info, blocks } => (ssrc, Some(info), blocks),
            RtcpPacket::ReceiverReport { ssrc, blocks } => (ssrc, None, blocks),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!((read.0, read.1, read.2.collect::<Vec<_>>()), (ssrc, info, blocks));
        let RtcpPacket::Description(chunks) = parts[1] else { panic!("{:?}", parts[1]) };
        prop_assert_eq!(chunks.collect::<Vec<_>>(), vec![(ssrc, Some(cname.as_bytes()))]);
        let RtcpPacket::Bye { sources, reason: read } = parts[2] else { panic!("{:?}", parts[2]) };
        prop_assert_eq!(sources, ssrc.to_be_bytes());
        prop_assert_eq!(read.unwrap_or_default(), reason.as_bytes());
        prop_assert_eq!(parts.len(), 3);
    }

    #[test]
    fn no_bytes_break_it(data in bytes(400)) {
        fuzz_rtp(&data);
    }

    #[test]
    fn no_packets_break_it(packets in prop::collection::vec((0..6u8, 0..3u32, any::<u16>(), block()), 0..40)) {
        let mut input = Vec::new();
        for (kind, ssrc, number, block) in packets {
            let mut packet = Vec::new();
            let header = RtpHeader { marker: false, payload_type: 0, sequence: number % 8, timestamp: 5, ssrc };
            match kind {
                0..3 => RtpPacket::new(header, &[7; 9]).encode(&mut packet),
                3 => RtpPacket::new(RtpHeader { sequence: number, ..header }, &[]).encode(&mut packet),
                4 => encode_report(ssrc, None, &[block], &mut packet),
                _ => {
                    let info = SenderInfo { ntp: u64::from(number) << 40, rtp: 0, packets: 1, bytes: 2 };
                    encode_report(ssrc, Some(&info), &[block], &mut packet);
                    encode_bye(ssrc, "", &mut packet);
                }
            }
            input.push(packet.len() as u8);
            input.extend_from_slice(&packet);
        }
        fuzz_rtp(&input);
    }
}
