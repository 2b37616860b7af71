use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;

fn stream(channels: u16, block_frames: u32) -> Stream {
    Stream { channels, sample_rate: 48_000, block_frames, ..Stream::default() }
}

/// Samples that every resolution keeps as they are.
fn samples(channels: u16, frames: u32, sequence: u32) -> Vec<f32> {
    let count = u32::from(channels) * frames;
    (0..count).map(|n| ((sequence * 7 + n) % 255) as f32 / 128.0 - 1.0).collect()
}

fn pack(packer: &mut JackTripPacker, sequence: u32, samples: &[f32]) -> Vec<u8> {
    let mut datagrams = Vec::new();
    let captured = Time::from_nanos(1_000_000);
    let channels = packer.header.channels.into();
    let block = Block {
        sequence,
        captured,
        arrived: Time::ZERO,
        first_channel: 0,
        channels,
        samples,
        origin: Origin::Sent,
    };
    packer.pack(&block, &mut |datagram| datagrams.push(datagram.to_vec()));
    assert_eq!(datagrams.len(), 1);
    datagrams.remove(0)
}

fn unpack(unpacker: &mut JackTripUnpacker, datagram: &[u8]) -> Vec<(u32, Vec<f32>)> {
    let mut blocks = Vec::new();
    let result = unpacker.unpack(Time::ZERO, datagram, &mut |block| {
        blocks.push((block.sequence, block.samples.to_vec()));
    });
    assert_eq!(result, Ok(()));
    blocks
}

#[test]
fn a_datagram_is_as_jacktrip_writes_it() {
    let mut packer = JackTripPacker::new(&stream(2, 3), Resolution::Bits16, 2, 1, 0x0102).unwrap();
    let datagram = pack(&mut packer, 0x1_0203, &[0.5, -0.5, 0.25, -0.25, 0.0, 1.0]);
    let expected = [
        &[0xEA, 4, 0, 0, 0, 0, 0, 0][..], // 1000 us later
        &[3, 2, 3, 0],
        &[3, 16, 2, 0],
        &[0, 0x40, 0, 0x20, 0, 0], // the left channel
        &[0, 0xC0, 0, 0xE0, 0xFF, 0x7F],
    ];
    assert_eq!(datagram, expected.concat());
    let outgoing = |channels, wanted| {
        let packer = JackTripPacker::new(&stream(channels, 3), Resolution::Bits8, wanted, 1, 0).unwrap();
        let mut header = Vec::new();
        packer.header.encode(&mut header);
        (header[14], header[15])
    };
    assert_eq!((outgoing(3, 3), outgoing(3, 4), outgoing(254, 0)), ((3, 0), (4, 3), (0, 254)));
}

/// JackTrip takes 24 bits for 16 that are rounded down and a remainder of 8.
#[test]
fn samples_are_as_jacktrip_reads_them() {
    let bytes = |resolution: Resolution, sample: f32| {
        let mut bytes = Vec::new();
        resolution.encode(&[sample], &mut bytes);
        bytes
    };
    let lowest = -1.0 / 8_388_608.0;
    assert_eq!(bytes(Resolution::Bits24, lowest), [0xFF, 0xFF, 0xFF]);
    assert_eq!(bytes(Resolution::Bits24, 0.5 + 3.0 / 8_388_608.0), [0x00, 0x40, 3]);
    assert_eq!(bytes(Resolution::Bits24, 9.0), [0xFF, 0x7F, 0xFF]);
    assert_eq!(bytes(Resolution::Bits8, -0.5), [0xC0]);
    assert_eq!(bytes(Resolution::Bits8, 1.0), [0x7F]);
    assert_eq!(bytes(Resolution::Bits32, -0.5), [0, 0, 0, 0xBF]);
    for resolution in Resolution::ALL {
        let mut samples = Vec::new();
        resolution.decode(&bytes(resolution, -0.75), &mut samples);
        assert_eq!(samples, [-0.75], "{resolution:?}");
    }
}

#[test]
fn redundancy_brings_lost_packets_back() {
    let stream = stream(1, 4);
    let mut packer = JackTripPacker::new(&stream, Resolution::Bits16, 1, 3, 0).unwrap();
    let mut unpacker = JackTripUnpacker::new(&stream);
    let datagrams: Vec<_> = (0..6).map(|n| pack(&mut packer, n, &samples(1, 4, n))).collect();
    assert!(datagrams.iter().all(|datagram| datagram.len() == 3 * (16 + 8)), "the first ones too");
    let mut numbers = |n: usize| -> Vec<u32> {
        let blocks = unpack(&mut unpacker, &datagrams[n]);
        assert!(blocks.iter().all(|(n, block)| *block == samples(1, 4, *n)));
        blocks.into_iter().map(|block| block.0).collect()
    };
    assert_eq!(numbers(0), [0]);
    assert_eq!(numbers(3), [1, 2, 3]);
    assert_eq!(numbers(2), [] as [u32; 0]);
    assert_eq!(numbers(5), [4, 5]);
    assert_eq!(unpacker.counters().recovered, 3);
}

#[test]
fn what_is_not_the_streams_is_refused() {
    let mut unpacker = JackTripUnpacker::new(&stream(2, 4));
    let mut refused =
        |datagram: &[u8]| unpacker.unpack(Time::ZERO, datagram, &mut |_| panic!("it is played"));
    let mut packer = JackTripPacker::new(&stream(1, 4), Resolution::Bits16, 2, 1, 0).unwrap();
    let mono = pack(&mut packer, 0, &[0.0; 4]);
    assert_eq!(refused(&mono), Err(UnpackError::OtherStream("number of channels")));
    let slow = Stream { sample_rate: 44_100, ..stream(2, 4) };
    let mut packer = JackTripPacker::new(&slow, Resolution::Bits16, 2, 1, 0).unwrap();
    let slow = pack(&mut packer, 0, &[0.0; 8]);
    assert_eq!(refused(&slow), Err(UnpackError::OtherStream("sample rate")));
    assert_eq!(refused(&slow[..slow.len() - 1]), Err(UnpackError::OtherStream("sample rate")));
    assert_eq!(refused(&[0; 15]), Err(UnpackError::Damaged));
    assert_eq!(refused(&EXIT), Ok(()));
}

#[test]
fn what_jacktrip_has_no_room_for_is_said() {
    let new =
        |stream: &Stream, redundancy| JackTripPacker::new(stream, Resolution::Bits32, 2, redundancy, 0).err();
    let study = Stream { sample_rate: 24_000, ..stream(2, 64) };
    assert_eq!(new(&study, 1), Some(JackTripError::SampleRate(24_000)));
    assert_eq!(new(&stream(255, 64), 1), Some(JackTripError::Channels(255)));
    assert_eq!(new(&stream(2, 65_536), 1), Some(JackTripError::Frames(65_536)));
    assert_eq!(new(&stream(2, 64), 0), Some(JackTripError::Datagram { packets: 0, bytes: 528 }));
    assert_eq!(new(&stream(2, 64), 125), Some(JackTripError::Datagram { packets: 125, bytes: 528 }));
    assert_eq!(new(&stream(2, 64), 124), None);
}

proptest! {
    #![proptest_config(cases(128))]

    /// Any resolution, redundancy and length of packets, numbers that wrap: what was sent comes once, but for losses that
    /// redundancy does not reach.
    #[test]
    fn blocks_survive_the_network(
        resolution in prop::sample::select(Resolution::ALL.to_vec()),
        redundancy in 1..5usize,
        channels in 1..9u16,
        frames in prop::sample::select(vec![16u32, 64, 128]),
        start in prop::sample::select(vec![0u32, 65_500]),
        lost in prop::collection::vec(prop::bool::weighted(0.2), 60),
    ) {
        let stream = stream(channels, frames);
        let mut packer = JackTripPacker::new(&stream, resolution, 2, redundancy, 0).unwrap();
        let mut unpacker = JackTripUnpacker::new(&stream);
        let mut last_came = None;
        for (n, lost) in (0u32..).zip(lost) {
            let sequence = start + n;
            let datagram = pack(&mut packer, sequence, &samples(channels, frames, n));
            if lost {
                continue;
            }
            let blocks = unpack(&mut unpacker, &datagram);
            // No older than the first, and none twice.
            let oldest = (n + 1).saturating_sub(redundancy as u32);
            let expected: Vec<u32> = (oldest.max(last_came.map_or(0, |last| last + 1))..=n).collect();
            prop_assert_eq!(blocks.iter().map(|block| block.0 - start).collect::<Vec<_>>(), expected.clone());
            for (block, n) in blocks.iter().zip(expected) {
                prop_assert!(block.1 == samples(channels, frames, n));
            }
            last_came = Some(n);
        }
    }

    #[test]
    fn a_peer_may_have_another_buffer(theirs in 16..300u32, ours in 16..300u32) {
        let mut packer = JackTripPacker::new(&stream(2, theirs), Resolution::Bits16, 2, 1, 0).unwrap();
        let mut unpacker = JackTripUnpacker::new(&stream(2, ours));
        let (mut sent, mut came) = (Vec::new(), Vec::new());
        for n in 0..20 {
            let block = samples(2, theirs, n);
            let blocks = unpack(&mut unpacker, &pack(&mut packer, n, &block));
            sent.extend(block);
            came.extend(blocks.into_iter().flat_map(|block| block.1));
        }
        prop_assert!(sent.len() - came.len() < 2 * ours as usize);
        prop_assert!(came == sent[..came.len()]);
    }

    #[test]
    fn headers_survive(bytes in any::<[u8; HEADER_LENGTH]>()) {
        if let Some(header) = Header::decode(&bytes) {
            let mut written = Vec::new();
            header.encode(&mut written);
            prop_assert_eq!(Header::decode(&written), Some(header));
        }
    }
}
