//! From device to device, through packets, some of which are lost.

use proptest::prelude::*;
use trunkline_core::Duration;
use trunkline_testkit::cases::cases;

use super::*;
use crate::conceal::Method;
use crate::format::Encoding;
use crate::playout::Depth;

const CODECS: [Codec; 5] = [
    Codec::Pcm(Encoding::I16),
    Codec::Pcm(Encoding::I24),
    Codec::Pcm(Encoding::F32),
    Codec::Pcmu,
    Codec::Pcma,
];

/// Mono to many channels at 48 kHz in blocks of 120 frames: what Opus takes too.
fn stream(channels: u16, codec: Codec) -> Stream {
    Stream { channels, sample_rate: 48_000, block_frames: 120, codec, ..Stream::default() }
}

fn opus(fec: bool) -> Codec {
    Codec::Opus { bitrate: if fec { 32_000 } else { 96_000 }, fec }
}

fn device(channels: u16, sample_rate: u32) -> DeviceFormat {
    DeviceFormat { channels, sample_rate, block_frames: 64 }
}

/// A different tone for each channel.
fn tone(frame: u64, channel: u16, sample_rate: u32) -> f32 {
    let turns = (200.0 + 50.0 * f64::from(channel)) * frame as f64 / f64::from(sample_rate);
    (0.4 * libm::sin(core::f64::consts::TAU * libm::fmod(turns, 1.0))) as f32
}

fn block_of(stream: &Stream, sequence: u32) -> Vec<f32> {
    let first = u64::from(sequence) * u64::from(stream.block_frames);
    let frame = |n| (0..stream.channels).map(move |channel| tone(n, channel, stream.sample_rate));
    (first..first + u64::from(stream.block_frames)).flat_map(frame).collect()
}

/// The packets of block after block.
fn packets(stream: &Stream, blocks: u32) -> Vec<Vec<u8>> {
    let mut packer = NativePacker::new(stream).unwrap();
    let mut packets = Vec::new();
    for sequence in 0..blocks {
        let samples = block_of(stream, sequence);
        let captured = Time::ZERO + stream.duration_of(u64::from(sequence) * u64::from(stream.block_frames));
        let block = Block {
            sequence,
            captured,
            arrived: Time::ZERO,
            first_channel: 0,
            channels: stream.channels,
            samples: &samples,
            origin: Origin::Sent,
        };
        packer.pack(&block, &mut |packet| packets.push(packet.to_vec()));
    }
    packets
}

/// A part of a block that was delivered.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    sequence: u32,
    captured: Time,
    first_channel: u16,
    channels: u16,
    samples: Vec<f32>,
    origin: Origin,
}

fn unpacked<'a>(
    stream: &Stream,
    packets: impl IntoIterator<Item = &'a Vec<u8>>,
) -> (Vec<Part>, UnpackCounters) {
    let mut unpacker = NativeUnpacker::new(stream).unwrap();
    let mut parts = Vec::new();
    let mut deliver = |block: Block<'_>| {
        let Block { sequence, captured, first_channel, channels, samples, origin, .. } = block;
        parts.push(Part { sequence, captured, first_channel, channels, samples: samples.to_vec(), origin });
    };
    for packet in packets {
        let _ = unpacker.unpack(Time::ZERO, packet, &mut deliver);
    }
    // The turn of all has come.
    while let Some(missing) = unpacker.missing() {
        unpacker.release(missing + 1, &mut deliver);
    }
    (parts, unpacker.counters())
}

/// The samples of whole blocks, put together from their parts.
fn joined(stream: &Stream, parts: &[Part], sequence: u32) -> Option<Vec<f32>> {
    let (all, frames) = (usize::from(stream.channels), stream.block_frames as usize);
    let mut samples = vec![0.0; all * frames];
    let mut channels = 0;
    for part in parts.iter().filter(|part| part.sequence == sequence) {
        let (first, width) = (usize::from(part.first_channel), usize::from(part.channels));
        for (frame, from) in samples.chunks_exact_mut(all).zip(part.samples.chunks_exact(width)) {
            frame[first..first + width].copy_from_slice(from);
        }
        channels += width;
    }
    (channels == all).then_some(samples)
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn what_is_packed_is_unpacked_whatever_the_packing() {
    let packings = [
        Packing::default(),
        Packing { per_channel: true, ..Packing::default() },
        Packing { most_packet: 400, ..Packing::default() },
        Packing { fragment: Some(1024), ..Packing::default() },
        Packing { fragment: Some(100), per_channel: true, ..Packing::default() },
        // A single channel does not fit: pieces of their own accord.
        Packing { most_packet: 100, ..Packing::default() },
    ];
    let protections = [
        Protection::None,
        Protection::Repeat(1),
        Protection::Xor { data: 3 },
        Protection::ReedSolomon { data: 3, parity: 2 },
    ];
    for codec in CODECS {
        let most = if matches!(codec, Codec::Pcmu | Codec::Pcma) { 0.02 } else { 1e-4 };
        for (packing, protection) in packings.into_iter().flat_map(|p| protections.map(|q| (p, q))) {
            let stream = Stream { packing, protection, ..stream(9, codec) };
            let packets = packets(&stream, 6);
            let longest = packets.iter().map(Vec::len).max().unwrap();
            assert!(longest <= packing.most_packet, "{longest}: {stream:?}");
            let (parts, counters) = unpacked(&stream, &packets);
            for sequence in 0..6 {
                let heard =
                    joined(&stream, &parts, sequence).unwrap_or_else(|| panic!("{sequence}: {stream:?}"));
                let difference = largest_difference(&heard, &block_of(&stream, sequence));
                assert!(difference < most, "{difference}: {stream:?}");
            }
            assert!(
                parts.iter().all(|part| part.captured.as_nanos() == u64::from(part.sequence) * 2_500_000)
            );
            assert_eq!(counters.delivered, parts.len() as u64);
            assert_eq!(
                (counters.damaged, counters.skipped_bytes, counters.recovered),
                (0, 0, 0),
                "{stream:?}"
            );
        }
    }
}

#[test]
fn channels_share_packets_as_far_as_they_fit() {
    let parts = |channels, packing| {
        let stream = Stream { packing, ..stream(channels, Codec::default()) };
        unpacked(&stream, &packets(&stream, 1)).0.iter().map(|part| part.channels).collect::<Vec<_>>()
    };
    // 120 frames of 16 bit are 240 bytes, the header 29: 5 channels in 1400 bytes.
    assert_eq!(parts(12, Packing::default()), [5, 5, 2]);
    assert_eq!(parts(3, Packing { per_channel: true, ..Packing::default() }), [1, 1, 1]);
    assert_eq!(parts(12, Packing { fragment: Some(1024), ..Packing::default() }), [12]);
}

#[test]
fn pieces_have_the_size_asked_for_and_the_last_of_a_block_is_short() {
    let packing = Packing { fragment: Some(1024), ..Packing::default() };
    let stream = Stream { packing, block_frames: 470, ..stream(2, Codec::default()) };
    let sizes: Vec<usize> = packets(&stream, 2).iter().map(Vec::len).collect();
    // 2 times 940 bytes and a header.
    assert_eq!(sizes, [1024, 885, 1024, 885]);
}

#[test]
fn redundancy_brings_back_what_is_lost() {
    for protection in
        [Protection::Repeat(2), Protection::Xor { data: 4 }, Protection::ReedSolomon { data: 4, parity: 2 }]
    {
        let stream = Stream { protection, ..stream(2, Codec::default()) };
        let packets = packets(&stream, 40);
        let kept = packets.iter().enumerate().filter(|(n, _)| n % 6 != 1).map(|(_, packet)| packet);
        let (parts, counters) = unpacked(&stream, kept);
        let heard = (0..36).filter(|&sequence| joined(&stream, &parts, sequence).is_some()).count();
        assert_eq!(heard, 36, "{protection:?}");
        assert!(counters.recovered >= 4, "{protection:?}: {counters:?}");
    }
}

/// Blocks of three pieces, in groups that end anywhere.
#[test]
fn pieces_that_are_lost_come_back_in_their_place() {
    for protection in [Protection::Xor { data: 4 }, Protection::ReedSolomon { data: 4, parity: 2 }] {
        let packing = Packing { fragment: Some(200), ..Packing::default() };
        let stream = Stream { protection, packing, ..stream(2, Codec::default()) };
        let packets = packets(&stream, 60);
        let kept = packets.iter().enumerate().filter(|(n, _)| n % 12 != 1).map(|(_, packet)| packet);
        let (parts, counters) = unpacked(&stream, kept);
        let sequences: Vec<u32> = parts.iter().map(|part| part.sequence).collect();
        assert_eq!(sequences, (0..60).collect::<Vec<u32>>(), "{protection:?}");
        assert_eq!((counters.skipped_bytes, counters.damaged), (0, 0));
        assert!(counters.recovered > 10, "{counters:?}");

        // What cannot be recovered holds up nothing but its group.
        let kept =
            packets.iter().enumerate().filter(|(n, _)| !(30..36).contains(n)).map(|(_, packet)| packet);
        let (parts, _) = unpacked(&stream, kept);
        assert!(parts.len() >= 56 && parts.last().is_some_and(|part| part.sequence == 59), "{}", parts.len());
        assert!(parts.is_sorted_by(|a, b| a.sequence < b.sequence));
    }
}

#[test]
fn packets_of_another_stream_are_refused_with_the_reason() {
    let ours = stream(2, Codec::default());
    let others = [
        (Stream { codec: Codec::Pcm(Encoding::I24), ..ours }, "another codec"),
        (Stream { block_frames: 60, ..ours }, "blocks of another length"),
        (Stream { channels: 1, ..ours }, "other channels"),
        (Stream { channels: 4, ..ours }, "other channels"),
    ];
    for (other, why) in others {
        let mut unpacker = NativeUnpacker::new(&ours).unwrap();
        let packet = &packets(&other, 1)[0];
        let refused = unpacker.unpack(Time::ZERO, packet, &mut |block| panic!("{block:?}"));
        assert_eq!(refused, Err(UnpackError::OtherStream(why)));
        assert_eq!(unpacker.counters(), UnpackCounters { packets: 1, other: 1, ..UnpackCounters::default() });
    }
}

#[test]
fn opus_makes_up_what_is_lost_and_says_so() {
    for (fec, frames) in [(false, 120), (true, 960)] {
        let stream = Stream { block_frames: frames, ..stream(3, opus(fec)) };
        let packets = packets(&stream, 30);
        assert_eq!(packets.len(), 30);
        let lost = [10, 20, 21];
        let kept = packets.iter().enumerate().filter(|(n, _)| !lost.contains(n)).map(|(_, packet)| packet);
        let (parts, counters) = unpacked(&stream, kept);
        let sequences: Vec<u32> = parts.iter().map(|part| part.sequence).collect();
        assert_eq!(sequences, (0..30).collect::<Vec<u32>>());
        let concealed: Vec<u32> =
            parts.iter().filter(|part| part.origin == Origin::Concealed).map(|part| part.sequence).collect();
        // With copies, only the first of two that are lost in a row.
        assert_eq!(concealed, if fec { vec![20] } else { vec![10, 20, 21] });
        assert_eq!((counters.concealed, counters.recovered), if fec { (1, 2) } else { (3, 0) });
        let block = stream.block_duration().as_nanos();
        assert!(parts.iter().all(|part| part.captured.as_nanos() == u64::from(part.sequence) * block));
    }
}

#[test]
fn opus_waits_for_what_was_overtaken_or_can_be_recovered() {
    let ours = stream(2, opus(false));
    let mut swapped = packets(&ours, 12);
    swapped.swap(4, 6);
    swapped.push(swapped[3].clone());
    let (parts, counters) = unpacked(&ours, &swapped);
    assert!(parts.iter().map(|part| part.sequence).eq(0..12));
    assert_eq!((counters.late, counters.concealed, counters.reordered, counters.duplicate), (0, 0, 2, 1));

    for protection in [Protection::Xor { data: 4 }, Protection::ReedSolomon { data: 8, parity: 2 }] {
        let protected = Stream { protection, ..ours };
        let packets = packets(&protected, 40);
        let kept = packets.iter().enumerate().filter(|(n, _)| n % 10 != 3).map(|(_, packet)| packet);
        let (parts, counters) = unpacked(&protected, kept);
        assert!(parts.iter().map(|part| part.sequence).eq(0..40), "{protection:?}");
        assert_eq!((counters.late, counters.concealed, counters.reordered), (0, 0, 0));
        assert!(counters.recovered >= 3, "{counters:?}");
    }
}

#[test]
fn opus_does_not_play_a_block_twice() {
    for (fec, frames) in [(false, 120), (true, 960)] {
        let stream = Stream { block_frames: frames, ..stream(1, opus(fec)) };
        let packets = packets(&stream, 12);
        let mut unpacker = NativeUnpacker::new(&stream).unwrap();
        let mut sequences = Vec::new();
        let mut deliver = |block: Block<'_>| sequences.push(block.sequence);
        for packet in packets.iter().take(8).enumerate().filter(|(n, _)| *n != 5).map(|(_, packet)| packet) {
            unpacker.unpack(Time::ZERO, packet, &mut deliver).unwrap();
        }
        assert_eq!(unpacker.missing(), Some(5));
        unpacker.release(5, &mut deliver);
        assert_eq!(unpacker.missing(), Some(5), "its turn has not come");
        unpacker.release(6, &mut deliver);
        for packet in packets[5..6].iter().chain(&packets[8..]) {
            unpacker.unpack(Time::ZERO, packet, &mut deliver).unwrap();
        }
        assert_eq!(sequences, (0..12).collect::<Vec<u32>>());
        let UnpackCounters { late, duplicate, concealed, recovered, .. } = unpacker.counters();
        // What a copy has brought back is not late.
        let expected = if fec { (0, 1, 0, 1) } else { (1, 0, 1, 0) };
        assert_eq!((late, duplicate, concealed, recovered), expected);
    }
}

#[test]
fn settings_that_cannot_be_are_refused_in_a_sentence() {
    let good = stream(2, Codec::default());
    let said = |stream: Stream| stream.check().unwrap_err().to_string();
    assert_eq!(said(Stream { channels: 0, ..good }), "a stream of 0 channels; expected 1 to 256");
    assert_eq!(said(Stream { sample_rate: 1, ..good }), "a stream at 1 Hz; expected 1000 to 768000 Hz");
    assert_eq!(said(Stream { block_frames: 9000, ..good }), "blocks of 9000 frames; expected 1 to 8192");
    let packing = Packing { most_packet: 20, ..Packing::default() };
    assert_eq!(said(Stream { packing, ..good }), "packets of at most 20 bytes; expected 64 to 9000");
    let packing = Packing { fragment: Some(100_000), ..Packing::default() };
    assert_eq!(said(Stream { packing, ..good }), "packets of at most 100000 bytes; expected 64 to 9000");
    let packing = Packing { most_packet: 64, ..Packing::default() };
    assert!(
        said(Stream { packing, protection: Protection::Repeat(8), ..good }).contains("fewer repetitions")
    );
    assert!(said(Stream { protection: Protection::Repeat(9), ..good }).contains("at most 8"));
    assert!(said(Stream { protection: Protection::Xor { data: 0 }, ..good }).contains("expected 1 to 64"));
    let opus = Codec::Opus { bitrate: 96_000, fec: false };
    assert!(said(Stream { codec: opus, sample_rate: 44_100, ..good }).contains("44100 Hz"));
    let refused = Blocks::new(&good, device(3, 48_000)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the device has 3 channels and the stream 2; choose a stream of 3 channels or a device of 2"
    );
    assert!(Player::new(&good, device(1, 48_000), PlayerSettings::default()).is_err());
}

/// The blocks of a device that captures the tones.
fn captured(
    stream: &Stream,
    device: DeviceFormat,
    frames: u64,
    push: u64,
) -> (Vec<(u32, Time, Vec<f32>)>, Duration) {
    let mut blocks = Blocks::new(stream, device).unwrap();
    let mut emitted = Vec::new();
    for first in (0..frames).step_by(push as usize) {
        let frame = |n| (0..device.channels).map(move |channel| tone(n, channel, device.sample_rate));
        let samples: Vec<f32> = (first..first + push).flat_map(frame).collect();
        // A second is enough for any delay before it.
        let at = Time::from_nanos(1_000_000_000) + stream::duration_of(first, device.sample_rate);
        blocks.push(at, &samples, &mut |block| {
            emitted.push((block.sequence, block.captured, block.samples.to_vec()))
        });
    }
    (emitted, blocks.delay())
}

#[test]
fn blocks_are_cut_wherever_the_device_ends_its_own() {
    let stream = stream(2, Codec::default());
    for push in [1, 64, 120, 1000] {
        let (blocks, delay) = captured(&stream, device(2, 48_000), 3000, push);
        assert_eq!((blocks.len(), delay), (25 * 3000 / 3000, Duration::ZERO), "{push}");
        for (n, (sequence, captured, samples)) in (0u32..).zip(&blocks) {
            assert_eq!((*sequence, samples), (n, &block_of(&stream, n)));
            let expected = 1_000_000_000 + u64::from(n) * 2_500_000;
            assert!(captured.as_nanos().abs_diff(expected) < 3, "{push}: {captured}");
        }
    }
}

/// The study's devices at 48 kHz and network at 44.1 kHz.
#[test]
fn another_sample_rate_is_resampled_and_the_time_stamps_know() {
    for (from, to) in [(48_000, 44_100), (44_100, 48_000), (96_000, 48_000)] {
        let stream = Stream { sample_rate: to, ..stream(2, Codec::default()) };
        let (blocks, delay) = captured(&stream, device(2, from), u64::from(from) / 2, 64);
        assert!(delay > Duration::ZERO && delay < Duration::from_millis(2), "{delay}");
        for (sequence, captured, samples) in blocks.iter().skip(20) {
            let since = captured.since(Time::from_nanos(1_000_000_000)).as_secs_f64();
            let turns = |frame: usize| 200.0 * (since + frame as f64 / f64::from(to));
            for (frame, pair) in samples.chunks_exact(2).enumerate() {
                let expected = 0.4 * libm::sin(core::f64::consts::TAU * turns(frame));
                let off = (f64::from(pair[0]) - expected).abs();
                assert!(off < 3e-3, "{from} to {to}, block {sequence}, frame {frame}: {off}");
            }
        }
    }
}

#[test]
fn one_channel_is_heard_everywhere_and_two_leave_the_rest_silent() {
    let stream = stream(3, Codec::default());
    let (mono, _) = captured(&stream, device(1, 48_000), 120, 120);
    assert!(mono[0].2.chunks_exact(3).all(|frame| frame[0] == frame[1] && frame[1] == frame[2]));
    assert!(mono[0].2.iter().any(|&sample| sample != 0.0));
    let (stereo, _) = captured(&stream, device(2, 48_000), 120, 120);
    assert!(stereo[0].2.chunks_exact(3).all(|frame| frame[2] == 0.0));
    assert_eq!(stereo[0].2[4], tone(1, 1, 48_000));
}

fn plain(depth_ms: u64) -> PlayerSettings {
    PlayerSettings {
        depth: Depth::Fixed(Duration::from_millis(depth_ms)),
        conceal: Method::Waveform,
        drift: false,
    }
}

#[test]
fn a_player_is_pulled_in_any_lengths() {
    let stream = stream(2, Codec::Pcm(Encoding::F32));
    let mut player = Player::new(&stream, device(4, 48_000), plain(10)).unwrap();
    let packets = packets(&stream, 100);
    let mut unpacker = NativeUnpacker::new(&stream).unwrap();
    let (mut heard, mut next, mut now) = (Vec::new(), 0, Time::ZERO);
    for length in (0..).map(|n: usize| 1 + n * 37 % 300) {
        while next < packets.len() && Time::from_nanos(next as u64 * 2_500_000) <= now {
            let at = Time::from_nanos(next as u64 * 2_500_000);
            unpacker.unpack(at, &packets[next], &mut |block| _ = player.insert(at, block)).unwrap();
            next += 1;
        }
        if next == packets.len() {
            break;
        }
        let mut out = vec![9.0; 4 * length];
        player.pull(now, &mut out);
        heard.extend(out);
        now += stream.duration_of(length as u64);
    }
    let first = heard.chunks_exact(4).position(|frame| frame[1] != 0.0).unwrap() as u64 - 1;
    assert!((544..=545).contains(&first), "the depth is 480 frames, a block 64: {first}");
    for (n, frame) in (0u64..).zip(heard.chunks_exact(4)).skip(first as usize) {
        assert_eq!(frame, [tone(n - first, 0, 48_000), tone(n - first, 1, 48_000), 0.0, 0.0]);
    }
    assert_eq!(player.stats().counters.missing, 0);
}

#[test]
fn a_part_that_is_lost_is_concealed_alone() {
    let packing = Packing { per_channel: true, ..Packing::default() };
    let stream = Stream { packing, ..stream(3, Codec::Pcm(Encoding::F32)) };
    let device = DeviceFormat { block_frames: 120, ..device(3, 48_000) };
    let mut player = Player::new(&stream, device, plain(5)).unwrap();
    let mut unpacker = NativeUnpacker::new(&stream).unwrap();
    let mut heard = Vec::new();
    for (n, packets) in packets(&stream, 60).chunks(3).enumerate() {
        let now = Time::from_nanos(n as u64 * 2_500_000);
        // The middle channel of every tenth block.
        for (_, packet) in packets.iter().enumerate().filter(|(channel, _)| n % 10 != 9 || *channel != 1) {
            unpacker.unpack(now, packet, &mut |block| _ = player.insert(now, block)).unwrap();
        }
        let mut out = [0.0; 3 * 120];
        let pulled = player.pull(now, &mut out);
        assert_eq!(pulled.concealed, if n >= 10 && (n - 3) % 10 == 9 { 120 } else { 0 }, "block {n}");
        heard.extend(out);
    }
    for (n, frame) in (0u64..).zip(heard.chunks_exact(3).skip(360)) {
        assert_eq!((frame[0], frame[2]), (tone(n, 0, 48_000), tone(n, 2, 48_000)));
        assert!((frame[1] - tone(n, 1, 48_000)).abs() < 0.2);
    }
    let counters = player.stats().counters;
    assert_eq!((counters.missing, counters.played), (5, 3 * 57 - 5));
}

#[test]
fn what_opus_made_up_is_played_and_counted() {
    let stream = Stream { block_frames: 240, ..stream(2, opus(false)) };
    let mut player = Player::new(&stream, device(2, 48_000), plain(10)).unwrap();
    let mut unpacker = NativeUnpacker::new(&stream).unwrap();
    let (mut concealed, mut last, mut step) = (0, 0.0f32, 0.0f32);
    for (n, packet) in (0u64..).zip(packets(&stream, 100)) {
        let now = Time::from_nanos(n * 5_000_000);
        if n % 20 != 10 {
            unpacker.unpack(now, &packet, &mut |block| _ = player.insert(block.arrived, block)).unwrap();
        }
        // The next pull plays the end of one block and the beginning of the next.
        if let Some((playing, _)) = player.stats().position {
            unpacker.release(playing + 2, &mut |block| _ = player.insert(block.arrived, block));
        }
        let mut out = [0.0; 480];
        concealed += player.pull(now, &mut out).concealed;
        for frame in out.chunks_exact(2) {
            step = step.max((frame[0] - last).abs());
            last = frame[0];
        }
    }
    let counters = player.stats().counters;
    assert_eq!((counters.made, counters.missing, counters.lost(), counters.concealed()), (5, 0, 5, 5));
    assert_eq!(concealed, 5 * 240);
    // A tone of 200 Hz moves by 0.011 from frame to frame.
    assert!(step < 0.03, "{step}");
}

#[test]
fn the_player_knows_when_what_it_plays_was_captured() {
    for (codec, frames, drift) in [
        (Codec::Pcm(Encoding::F32), 120, false),
        (Codec::Pcm(Encoding::F32), 120, true),
        (opus(false), 240, false),
    ] {
        let stream = Stream { block_frames: frames, ..stream(1, codec) };
        let settings = PlayerSettings { drift, ..plain(10) };
        let mut player = Player::new(&stream, device(1, 48_000), settings).unwrap();
        let mut unpacker = NativeUnpacker::new(&stream).unwrap();
        let packets = packets(&stream, 120);
        for (n, packet) in (0u64..).zip(&packets) {
            let now = Time::ZERO + stream.duration_of(n * u64::from(frames));
            unpacker.unpack(now, packet, &mut |block| _ = player.insert(now, block)).unwrap();
            let captured = player.stats().captured;
            let mut out = vec![0.0; frames as usize];
            player.pull(now, &mut out);
            let Some(captured) = captured.filter(|_| n > 60) else { continue };
            let turns = 200.0 * captured.as_secs_f64();
            let expected = 0.4 * libm::sin(core::f64::consts::TAU * turns);
            let off = (f64::from(out[0]) - expected).abs();
            // 50 microseconds: the resampler stands between two frames.
            assert!(off < 0.025, "{codec:?} at {captured}: {} for {expected}", out[0]);
        }
        let latency = player.stats().playout + player.stats().resampling;
        assert!((10.5..13.5).contains(&latency.as_millis_f64()), "{latency}");
    }
}

proptest! {
    #![proptest_config(cases(64))]

    /// Random packets, and true ones with any byte changed, do nothing but count.
    #[test]
    fn hostile_packets_are_survived(
        codec in prop::sample::select(vec![CODECS[0], CODECS[3], opus(false)]),
        fragment in prop::sample::select(vec![None, Some(100)]),
        protection in prop::sample::select(vec![Protection::None, Protection::Repeat(1)]),
        hostile in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), any::<usize>(), any::<u8>()), 1..60),
    ) {
        let packing = Packing { fragment, ..Packing::default() };
        let stream = Stream { packing, protection, ..stream(2, codec) };
        let true_ones = packets(&stream, 30);
        let mut unpacker = NativeUnpacker::new(&stream).unwrap();
        let mut player = Player::new(&stream, device(2, 44_100), PlayerSettings::default()).unwrap();
        let mut delivered = 0;
        for (n, (random, at, change)) in hostile.into_iter().enumerate() {
            let now = Time::from_nanos(n as u64 * 1_000_000);
            let mut damaged = true_ones[at % true_ones.len()].clone();
            let place = at / true_ones.len() % damaged.len();
            damaged[place] ^= change;
            let mut deliver = |block: Block<'_>| {
                delivered += 1;
                assert_eq!(block.samples.len(), usize::from(block.channels) * 120);
                assert!(block.samples.iter().all(|sample| sample.abs() <= crate::format::LOUDEST));
                player.insert(now, block);
            };
            for packet in [&random, &damaged] {
                let _ = unpacker.unpack(now, packet, &mut deliver);
            }
            if let Some(missing) = unpacker.missing().filter(|_| n % 3 == 0) {
                unpacker.release(missing.wrapping_add(1), &mut deliver);
            }
            let mut out = [0.0; 128];
            player.pull(now, &mut out);
            prop_assert!(out.iter().all(|sample| sample.is_finite()));
        }
        prop_assert_eq!(unpacker.counters().delivered, delivered);
    }
}
