//! Packets of other programs cost no allocation once the stream runs.

use trunkline_audio::foreign::jacktrip::{JackTripPacker, JackTripUnpacker, Resolution};
use trunkline_audio::foreign::rtp::{RtpPacker, RtpStart, RtpUnpacker};
use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{Block, Codec, Packer, Stream, Unpacker};
use trunkline_audio::playout::Origin;
use trunkline_core::Time;
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn assert_no_allocation(stream: &Stream, packer: &mut dyn Packer, unpacker: &mut dyn Unpacker) {
    let samples = vec![0.1; usize::from(stream.channels) * stream.block_frames as usize];
    let mut delivered = 0u32;
    let (allocations, ()) = allocations_during(|| {
        for sequence in 0..200 {
            let block = Block {
                sequence,
                captured: Time::ZERO,
                arrived: Time::ZERO,
                first_channel: 0,
                channels: stream.channels,
                samples: &samples,
                origin: Origin::Sent,
            };
            packer.pack(&block, &mut |packet| {
                // Losses and duplicates.
                for _ in 0..sequence % 7 {
                    let unpacked = unpacker.unpack(Time::ZERO, packet, &mut |_| delivered += 1);
                    assert_eq!(unpacked, Ok(()));
                }
            });
        }
    });
    assert_eq!(allocations, 0);
    assert!(delivered > 150, "{delivered}");
}

#[test]
fn rtp_allocates_nothing() {
    let stream = Stream {
        channels: 8,
        sample_rate: 48_000,
        block_frames: 48,
        codec: Codec::Pcm(Encoding::I24),
        ..Stream::default()
    };
    let start = RtpStart { payload_type: 96, ssrc: 1, sequence: 65_500, timestamp: 7 };
    // A block in parts: the packets of one that is too long.
    for block_frames in [48, 256] {
        let stream = Stream { block_frames, ..stream };
        let mut packer = RtpPacker::new(&stream, start).unwrap();
        assert_no_allocation(&stream, &mut packer, &mut RtpUnpacker::new(&stream, 96).unwrap());
    }
}

#[test]
fn jacktrip_allocates_nothing() {
    let stream = Stream { channels: 2, sample_rate: 48_000, block_frames: 128, ..Stream::default() };
    for resolution in Resolution::ALL {
        let mut packer = JackTripPacker::new(&stream, resolution, 2, 3, 0).unwrap();
        assert_no_allocation(&stream, &mut packer, &mut JackTripUnpacker::new(&stream));
    }
}
