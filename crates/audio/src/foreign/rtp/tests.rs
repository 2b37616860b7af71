use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;
use crate::format::Encoding;
use crate::pipeline::{Codec, Packing};
use crate::playout::Origin;

const START: RtpStart = RtpStart { payload_type: 96, ssrc: 0xABCD, sequence: 0xFFFE, timestamp: 0xFFFF_FFF0 };

fn stream(channels: u16, block_frames: u32, codec: Codec) -> Stream {
    Stream { channels, sample_rate: 48_000, block_frames, codec, ..Stream::default() }
}

/// Samples that every codec here keeps as they are.
fn samples(stream: &Stream, sequence: u32) -> Vec<f32> {
    let count = usize::from(stream.channels) as u32 * stream.block_frames;
    (0..count).map(|n| ((sequence * count + n) % 200) as f32 / 256.0 - 0.5).collect()
}

fn pack(packer: &mut RtpPacker, sequence: u32, samples: &[f32]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let channels = packer.stream.channels;
    let block = Block {
        sequence,
        captured: Time::ZERO,
        arrived: Time::ZERO,
        first_channel: 0,
        channels,
        samples,
        origin: Origin::Sent,
    };
    packer.pack(&block, &mut |packet| packets.push(packet.to_vec()));
    packets
}

type Unpacked = (Result<(), UnpackError>, Vec<(u32, Vec<f32>)>);

fn unpack(unpacker: &mut RtpUnpacker, packet: &[u8]) -> Unpacked {
    let mut blocks = Vec::new();
    let result = unpacker.unpack(Time::ZERO, packet, &mut |block| {
        blocks.push((block.sequence, block.samples.to_vec()));
    });
    (result, blocks)
}

/// Eight channels of 24 bits for 1 ms: what every AES67 device can.
#[test]
fn an_aes67_packet_is_as_the_standards_have_it() {
    let stream = stream(8, 48, Codec::Pcm(Encoding::I24));
    let mut packer = RtpPacker::new(&stream, START).unwrap();
    let mut block = vec![0.0; 8 * 48];
    block[1] = -0.5;
    let packets = pack(&mut packer, 1, &block);
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].len(), 12 + 8 * 48 * 3);
    assert_eq!(
        packets[0][..18],
        [0x80, 96, 0xFF, 0xFE, 0, 0, 0, 0x20, 0, 0, 0xAB, 0xCD, 0, 0, 0, 0xC0, 0, 0]
    );
}

#[test]
fn a_long_block_is_divided_evenly() {
    let stream = stream(2, 1024, Codec::Pcm(Encoding::I24));
    let mut packer = RtpPacker::new(&stream, START).unwrap();
    let packets = pack(&mut packer, 0, &samples(&stream, 0));
    let headers: Vec<_> = packets.iter().map(|packet| RtpPacket::decode(packet).unwrap().header).collect();
    let stamps: Vec<u32> =
        headers.iter().map(|header| header.timestamp.wrapping_sub(START.timestamp)).collect();
    assert_eq!(stamps, [0, 205, 410, 615, 820]);
    let numbers: Vec<u16> = headers.iter().map(|header| header.sequence).collect();
    assert_eq!(numbers, [0xFFFE, 0xFFFF, 0, 1, 2]);
    assert!(packets.iter().all(|packet| packet.len() <= 1400), "they fit");
}

/// A block that the sound card lost is a hole in the time stamps, not in the numbers.
#[test]
fn what_was_never_captured_is_not_lost_on_the_way() {
    let stream = stream(1, 48, Codec::Pcmu);
    let mut packer = RtpPacker::new(&stream, START).unwrap();
    let headers = [7, 9].map(|sequence| {
        let packets = pack(&mut packer, sequence, &[0.0; 48]);
        RtpPacket::decode(&packets[0]).unwrap().header
    });
    assert_eq!(headers[1].sequence.wrapping_sub(headers[0].sequence), 1);
    assert_eq!(headers[1].timestamp.wrapping_sub(headers[0].timestamp), 96);
}

#[test]
fn what_others_put_around_the_payload_is_passed_over() {
    let stream = stream(1, 4, Codec::Pcm(Encoding::I16));
    let mut unpacker = RtpUnpacker::new(&stream, 96).unwrap();
    let header = RtpHeader { marker: true, payload_type: 96, sequence: 1, timestamp: 5, ssrc: 9 };
    let mut packet = Vec::new();
    RtpPacket {
        contributors: &[1, 2, 3, 4],
        extension: Some((0xBEDE, &[0x10, 0, 0, 0])),
        padding: 5,
        ..RtpPacket::new(header, &[0x40, 0, 0xC0, 0, 0, 0, 0x20, 0])
    }
    .encode(&mut packet);
    assert_eq!(unpack(&mut unpacker, &packet), (Ok(()), vec![(0, vec![0.5, -0.5, 0.0, 0.25])]));
    // A receiver report on the same port (RFC 5761).
    assert_eq!(unpack(&mut unpacker, &[0x80, 201, 0, 1, 0, 0, 0, 9]), (Ok(()), vec![]));
}

#[test]
fn what_does_not_belong_to_the_stream_is_refused() {
    let stream = stream(2, 4, Codec::Pcm(Encoding::I16));
    let mut unpacker = RtpUnpacker::new(&stream, 96).unwrap();
    let mut send = |payload_type, payload: &[u8]| {
        let mut packet = Vec::new();
        let header = RtpHeader { marker: false, payload_type, sequence: 1, timestamp: 5, ssrc: 9 };
        RtpPacket::new(header, payload).encode(&mut packet);
        unpack(&mut unpacker, &packet).0
    };
    assert_eq!(send(97, &[0; 16]), Err(UnpackError::OtherStream("payload type")));
    assert_eq!(send(96, &[0; 18]), Err(UnpackError::OtherStream("number of channels")));
    assert_eq!(send(96, &[0; 16]), Ok(()));
    assert_eq!(unpack(&mut unpacker, &[0x80; 11]).0, Err(UnpackError::Damaged));
    let counters = unpacker.counters();
    assert_eq!((counters.packets, counters.other, counters.damaged, counters.delivered), (4, 2, 1, 1));
}

#[test]
fn a_sender_that_begins_anew_is_heard_and_a_forged_one_is_not() {
    let stream = stream(1, 4, Codec::Pcm(Encoding::I16));
    let mut unpacker = RtpUnpacker::new(&stream, 96).unwrap();
    let mut old = RtpPacker::new(&stream, START).unwrap();
    let mut forged = RtpPacker::new(&stream, RtpStart { ssrc: 1, timestamp: 77, ..START }).unwrap();
    let mut new = RtpPacker::new(&stream, RtpStart { ssrc: 2, sequence: 9, timestamp: 5, ..START }).unwrap();
    let mut blocks = |packer: &mut RtpPacker, sequence| {
        let packets = pack(packer, sequence, &[0.0; 4]);
        unpack(&mut unpacker, &packets[0]).1.iter().map(|block| block.0).collect::<Vec<u32>>()
    };
    assert_eq!(blocks(&mut old, 50), [0]);
    assert_eq!(blocks(&mut forged, 50), []);
    assert_eq!(blocks(&mut old, 51), [1]);
    assert_eq!(blocks(&mut forged, 51), [], "the true one was heard in between");
    assert_eq!(blocks(&mut new, 0), []);
    assert_eq!(blocks(&mut new, 1), [3001], "far from the old, so that the playout buffer begins anew");
    assert_eq!(blocks(&mut new, 2), [3002]);
}

/// A lost packet of Opus is made up by its decoder, which the next continues from.
#[test]
fn opus_conceals_what_is_lost() {
    let stream = stream(2, 480, Codec::Opus { bitrate: 96_000, fec: false });
    let mut packer = RtpPacker::new(&stream, START).unwrap();
    let mut unpacker = RtpUnpacker::new(&stream, 96).unwrap();
    let mut came = Vec::new();
    let mut deliver = |block: Block<'_>| {
        came.push((block.sequence, block.origin == Origin::Concealed));
        let loudest = block.samples.iter().fold(0.0, |most: f32, sample| most.max(sample.abs()));
        assert!(block.sequence < 2 || (0.4..0.6).contains(&loudest), "{loudest}");
    };
    for sequence in 0..20u32 {
        let tone: Vec<f32> = (0..480u32)
            .map(|n| libm::sin(f64::from(sequence * 480 + n) * 0.0576) as f32 / 2.0)
            .flat_map(|sample| [sample, -sample])
            .collect();
        let packets = pack(&mut packer, sequence, &tone);
        assert_eq!((packets.len(), packets[0].len()), (1, 12 + 240));
        if sequence != 10 {
            unpacker.unpack(Time::ZERO, &packets[0], &mut deliver).unwrap();
        }
        if sequence == 15 {
            assert_eq!(unpacker.missing(), Some(10));
            unpacker.release(11, &mut deliver);
        }
    }
    assert!(came.iter().map(|block| block.0).eq(0..20));
    assert!(came.iter().all(|&(sequence, concealed)| concealed == (sequence == 10)));
    assert_eq!(unpacker.counters().concealed, 1);
    // Two frames in a packet (RFC 6716 section 3.2.2).
    let mut packet = Vec::new();
    let header = RtpHeader { marker: false, payload_type: 96, sequence: 1, timestamp: 5, ssrc: 9 };
    RtpPacket::new(header, &[0xF1, 1, 2]).encode(&mut packet);
    assert_eq!(unpack(&mut unpacker, &packet).0, Err(UnpackError::OtherStream("length of Opus packets")));
}

#[derive(Clone, Debug)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    /// Behind the next.
    Overtaken,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![4 => Just(Fate::Arrives), 1 => Just(Fate::Lost), 1 => Just(Fate::Twice), 1 => Just(Fate::Overtaken)]
}

fn codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(vec![Codec::Pcm(Encoding::I16), Codec::Pcm(Encoding::I24)])
}

proptest! {
    #![proptest_config(cases(128))]

    /// Whatever the network does, each block comes at most once, as it was, and only those of which something is lost do
    /// not.
    #[test]
    fn blocks_survive_the_network(
        codec in codec(),
        channels in 1..9u16,
        block_frames in prop::sample::select(vec![6u32, 12, 16, 48, 192, 441, 1024]),
        fates in prop::collection::vec(fate(), 1..80),
    ) {
        let stream = Stream {
            packing: Packing { most_packet: 700, ..Packing::default() },
            ..stream(channels, block_frames, codec)
        };
        let mut packer = RtpPacker::new(&stream, START).unwrap();
        let packets: Vec<(u32, Vec<u8>)> = (0..fates.len() as u32)
            .flat_map(|sequence| {
                pack(&mut packer, sequence, &samples(&stream, sequence)).into_iter().map(move |packet| (sequence, packet))
            })
            .collect();
        // The first decides where blocks begin.
        let mut arriving = vec![packets[0].clone()];
        let mut expected: Vec<u32> = (0..fates.len() as u32).collect();
        let mut held: Option<(u32, Vec<u8>)> = None;
        for ((sequence, packet), fate) in packets.into_iter().skip(1).zip(fates.into_iter().cycle()) {
            match fate {
                Fate::Arrives => arriving.push((sequence, packet)),
                Fate::Twice => arriving.extend([(sequence, packet.clone()), (sequence, packet)]),
                Fate::Lost => expected.retain(|&kept| kept != sequence),
                Fate::Overtaken => {
                    arriving.extend(held.replace((sequence, packet)));
                    continue;
                }
            }
            arriving.extend(held.take());
        }
        arriving.extend(held);
        let mut unpacker = RtpUnpacker::new(&stream, 96).unwrap();
        let mut came = Vec::new();
        for (_, packet) in &arriving {
            let (result, blocks) = unpack(&mut unpacker, packet);
            prop_assert_eq!(result, Ok(()));
            for (sequence, samples_came) in blocks {
                prop_assert!(samples_came == samples(&stream, sequence), "block {}", sequence);
                came.push(sequence);
            }
        }
        came.sort_unstable();
        prop_assert_eq!(came, expected);
    }

    /// Senders choose the length of their packets: those of a tenth of a second or of 6 samples make the same blocks.
    #[test]
    fn packets_may_have_any_length(lengths in prop::collection::vec(1..500u32, 1..40), block_frames in 64..600u32) {
        let stream = stream(2, block_frames, Codec::Pcm(Encoding::I16));
        let mut unpacker = RtpUnpacker::new(&stream, 96).unwrap();
        let total: u32 = lengths.iter().sum();
        let bytes: Vec<u8> = (0..total * 4).map(|n| (n / 4) as u8).collect();
        let (mut at, mut came) = (0u32, Vec::new());
        for (sequence, length) in (0u16..).zip(lengths) {
            let header =
                RtpHeader { marker: false, payload_type: 96, sequence, timestamp: at.wrapping_sub(7), ssrc: 1 };
            let mut packet = Vec::new();
            RtpPacket::new(header, &bytes[at as usize * 4..][..length as usize * 4]).encode(&mut packet);
            at += length;
            came.extend(unpack(&mut unpacker, &packet).1);
        }
        prop_assert!(came.iter().map(|block| block.0).eq(0..total / block_frames));
        let mut expected = Vec::new();
        stream.codec.decode(&bytes, &mut expected);
        let played: Vec<f32> = came.into_iter().flat_map(|block| block.1).collect();
        prop_assert!(played == expected[..played.len()]);
    }
}
