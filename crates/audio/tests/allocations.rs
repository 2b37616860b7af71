//! A packet costs no allocation once the stream runs: the sound card's thread must never wait for memory.

use trunkline_audio::conceal::Method;
use trunkline_audio::drift::{Controller, Quality, Resampler};
use trunkline_audio::fec::{BlockDecoder, BlockEncoder, Code, RepeatDecoder, Repeater};
use trunkline_audio::format::{Encoding, Endian, Format};
use trunkline_audio::pipeline::{
    Block, Blocks, Codec, DeviceFormat, NativePacker, NativeUnpacker, Packer, Packing, Player,
    PlayerSettings, Protection, Stream, Unpacker,
};
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

/// Both ends of a stream between a card of 48 kHz and one of 44.1 kHz, a seventh of whose packets are lost.
struct Session {
    blocks: Blocks,
    packer: NativePacker,
    unpacker: NativeUnpacker,
    player: Player,
    packets: u64,
    played: u64,
}

impl Session {
    fn new(stream: &Stream) -> Session {
        let device = |sample_rate| DeviceFormat {
            channels: stream.channels,
            sample_rate,
            block_frames: FRAMES as u32,
        };
        Session {
            blocks: Blocks::new(stream, device(48_000)).expect("a common stream"),
            packer: NativePacker::new(stream).expect("a common stream"),
            unpacker: NativeUnpacker::new(stream).expect("a common stream"),
            player: Player::new(stream, device(44_100), PlayerSettings::default()).expect("a common stream"),
            packets: 0,
            played: 0,
        }
    }

    /// So many blocks of the first card.
    fn run(&mut self, count: u64, captured: &[f32], played: &mut [f32]) {
        for _ in 0..count {
            let now = Time::from_nanos(self.played * FRAMES as u64 * 1_000_000_000 / 44_100);
            self.played += 1;
            let Session { blocks, packer, unpacker, player, packets, .. } = self;
            blocks.push(now, captured, &mut |block| {
                packer.pack(&block, &mut |packet| {
                    *packets += 1;
                    if *packets % 7 != 3 {
                        let _ = unpacker.unpack(now, packet, &mut |block| _ = player.insert(now, block));
                    }
                });
            });
            player.pull(now, played);
        }
    }
}

#[test]
fn a_stream_allocates_nothing() {
    let channels = 9u16;
    let (captured, mut played) = (vec![0.1; 9 * FRAMES], vec![0.0; 9 * FRAMES]);
    let pieces = Packing { fragment: Some(300), ..Packing::default() };
    for (codec, protection, packing) in [
        (Codec::Pcm(Encoding::I24), Protection::None, Packing::default()),
        (Codec::Pcm(Encoding::F32), Protection::Repeat(2), pieces),
        (
            Codec::Pcm(Encoding::I16),
            Protection::Xor { data: 4 },
            Packing { per_channel: true, ..Packing::default() },
        ),
        (Codec::Pcmu, Protection::ReedSolomon { data: 4, parity: 2 }, Packing::default()),
        (Codec::Pcm(Encoding::I24), Protection::ReedSolomon { data: 4, parity: 2 }, pieces),
        (Codec::Pcma, Protection::None, pieces),
    ] {
        let stream = Stream { channels, sample_rate: 44_100, block_frames: 60, codec, protection, packing };
        let mut session = Session::new(&stream);
        session.run(100, &captured, &mut played);
        let (allocations, ()) = allocations_during(|| session.run(300, &captured, &mut played));
        assert_eq!(allocations, 0, "{stream:?}");
        assert!(session.player.stats().counters.played > 200 && session.unpacker.counters().delivered > 200);
    }
}

/// Whatever is thrown at a receiver: noise, noise that begins as a packet does, and a packet that promises much.
#[test]
fn a_flood_allocates_nothing() {
    let key = trunkline_audio::packet::KEY;
    for fragment in [None, Some(1024)] {
        let packing = Packing { fragment, ..Packing::default() };
        for protection in [Protection::None, Protection::Repeat(2), Protection::Xor { data: 4 }] {
            let stream = Stream { packing, protection, ..Stream::default() };
            let Ok(mut unpacker) = NativeUnpacker::new(&stream) else { continue };
            let mut noise = 1u64;
            let mut packet = [0u8; 1400];
            let (allocations, ()) = allocations_during(|| {
                for n in 0..2_000usize {
                    for bytes in packet.chunks_exact_mut(8) {
                        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        bytes.copy_from_slice(&(noise ^ noise >> 32).to_be_bytes());
                    }
                    for at in (0..n % 40).map(|at| at * 29) {
                        packet[at..at + key.len()].copy_from_slice(&key);
                    }
                    let length = n * 37 % packet.len();
                    let _ = unpacker.unpack(Time::ZERO, &packet[..length], &mut |block| panic!("{block:?}"));
                }
            });
            let counters = unpacker.counters();
            assert_eq!(allocations, 0, "{stream:?}");
            assert_eq!((counters.packets, counters.delivered), (2_000, 0));
            assert!(counters.damaged + counters.skipped_bytes > 1_000, "{counters:?}");
        }
    }
}

/// Encoding takes a few short blocks of memory for each frame, on the thread of the socket.
#[test]
fn decoding_and_playing_opus_allocates_nothing() {
    let codec = Codec::Opus { bitrate: 96_000, fec: false };
    let stream = Stream { channels: 2, sample_rate: 48_000, block_frames: 120, codec, ..Stream::default() };
    let device = DeviceFormat { channels: 2, sample_rate: 48_000, block_frames: 120 };
    let mut packets = Vec::new();
    let mut blocks = Blocks::new(&stream, device).unwrap();
    let mut packer = NativePacker::new(&stream).unwrap();
    for n in 0..200 {
        let pack = &mut |block: Block<'_>| packer.pack(&block, &mut |packet| packets.push(packet.to_vec()));
        blocks.push(Time::from_nanos(n * 2_500_000), &[0.1; 240], pack);
    }
    let mut unpacker = NativeUnpacker::new(&stream).unwrap();
    let mut player = Player::new(&stream, device, PlayerSettings::default()).unwrap();
    let mut played = [0.0; 240];
    let mut play = |packets: &[Vec<u8>], first: u64| {
        for (n, packet) in (first..).zip(packets) {
            let now = Time::from_nanos(n * 2_500_000);
            unpacker.unpack(now, packet, &mut |block| _ = player.insert(now, block)).unwrap();
            player.pull(now, &mut played);
        }
        player.stats().counters.played
    };
    play(&packets[..50], 0);
    let (allocations, played) = allocations_during(|| play(&packets[50..], 50));
    assert_eq!(allocations, 0);
    assert!(played > 180, "{played}");
}
