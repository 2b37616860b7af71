//! A packet costs no allocation once the stream runs: the sound card's thread must never wait for memory.

use trunkline_audio::conceal::Method;
use trunkline_audio::drift::{Controller, Quality, Resampler};
use trunkline_audio::fec::{BlockDecoder, BlockEncoder, Code, RepeatDecoder, Repeater};
use trunkline_audio::format::{Encoding, Endian, Format};
use trunkline_audio::playout::{Depth, Playout, Settings};
use trunkline_core::{Duration, Time};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const CHANNELS: usize = 2;
const FRAMES: usize = 64;

#[test]
fn playing_allocates_nothing() {
    let (least, most) = (Duration::from_millis(2), Duration::from_millis(50));
    for (method, quality) in [(Method::Waveform, Quality::Sinc), (Method::Repetition, Quality::Polynomial)] {
        let mut playout = Playout::new(Settings {
            channels: CHANNELS,
            sample_rate: 48_000,
            packet_frames: FRAMES,
            part_channels: CHANNELS,
            depth: Depth::Adaptive { least, most, late: 0.01 },
            ahead: Duration::ZERO,
            conceal: method,
        })
        .unwrap();
        let mut controller = Controller::new(48_000, 160.0);
        let mut resampler = Resampler::new(quality, CHANNELS, FRAMES, 48_000, 48_000).unwrap();
        let mut input = vec![0.0; resampler.most_needed() * CHANNELS];
        let (packet, mut block) = ([0.1; CHANNELS * FRAMES], [0.0; CHANNELS * FRAMES]);
        let (allocations, ()) = allocations_during(|| {
            for n in 0..200u32 {
                let now = Time::from_nanos(u64::from(n) * FRAMES as u64 * 1_000_000_000 / 48_000);
                // Losses, a duplicate, a sender that starts again.
                let sequence = if n < 150 { n } else { n + 1_000_000 };
                if n % 7 != 0 {
                    playout.insert(now, sequence, &packet);
                    playout.insert(now, sequence, &packet);
                }
                if let Some(fill) = playout.fill(now) {
                    controller.observe(now, fill);
                }
                resampler.steer(controller.correction());
                let input = &mut input[..resampler.needed() * CHANNELS];
                playout.pull(now, input);
                resampler.resample(input, &mut block).unwrap();
            }
        });
        assert_eq!(allocations, 0, "{method:?}, {quality:?}");
        assert!(playout.counters().missing > 0 && playout.counters().restarts == 1);
    }
}

#[test]
fn coding_allocates_nothing() {
    let format = Format { encoding: Encoding::I24, endian: Endian::Big };
    let (mut bytes, mut samples) = (Vec::new(), Vec::new());
    let mut pcm = |_: &[u8]| {
        bytes.clear();
        samples.clear();
        format.encode(&[0.1; FRAMES], &mut bytes);
        format.decode(&bytes, &mut samples);
    };
    for code in [Code::Xor { data: 5 }, Code::ReedSolomon { data: 5, parity: 2 }] {
        let mut encoder = BlockEncoder::new(code, 400, 0).unwrap();
        let mut decoder = BlockDecoder::new(code, 400).unwrap();
        let (mut sent, mut recovered) = (0u32, 0);
        let mut packets = |count: u32| {
            for n in 0..count {
                let send = |packet: &[u8]| {
                    sent += 1;
                    if sent % 7 != 3 {
                        decoder
                            .decode(packet, |delivered| {
                                recovered += u32::from(delivered.recovered);
                                pcm(delivered.payload);
                            })
                            .unwrap();
                    }
                };
                encoder.encode(&[1; 400][..300 + n as usize % 100], send).unwrap();
            }
        };
        packets(50);
        let (allocations, ()) = allocations_during(|| packets(200));
        assert_eq!(allocations, 0, "{code:?}");
        assert!(recovered > 30, "{recovered}");
    }

    let mut repeater = Repeater::new(2, 400, 0).unwrap();
    let mut decoder = RepeatDecoder::new();
    let mut packet = Vec::with_capacity(2000);
    let (allocations, ()) = allocations_during(|| {
        for n in 0..100 {
            repeater.encode(&[1; 400], &mut packet).unwrap();
            if n % 3 == 0 {
                decoder.decode(&packet, |_| {}).unwrap();
            }
        }
    });
    assert_eq!(allocations, 0);
}
