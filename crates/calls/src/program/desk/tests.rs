use trunkline_audio::pipeline::{
    Codec, NativePacker, NativeUnpacker, Packer, Packing, Protection, UnpackCounters,
};
use trunkline_audio::playout::{Depth, Origin};
use trunkline_core::{Duration, Time};
use trunkline_sound::Callbacks as _;
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::real_time::in_real_time;

use super::*;
use crate::program::incoming::Incoming;
use crate::program::words::Sending;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const FORMAT: Format =
    Format { sample_rate: 48_000, block_frames: 64, capture_channels: 3, playback_channels: 2 };

fn kit(mix: bool) -> Kit {
    Kit {
        player: PlayerSettings::default(),
        mix,
        wakeup: Arc::new(Wakeup::new().unwrap()),
        overflows: Arc::default(),
    }
}

fn stream() -> Stream {
    Stream {
        channels: 3,
        sample_rate: 44_100,
        block_frames: 59,
        codec: Codec::default(),
        packing: Packing { per_channel: true, ..Packing::default() },
        ..Stream::default()
    }
}

/// In parts, with gaps and repetitions, mixed down, while nobody empties the ring of what is captured.
#[test]
fn callbacks_allocate_nothing() {
    let (kit, stream) = (kit(true), stream());
    let (mut halves, mut ends) = kit.make(&stream, FORMAT).unwrap();
    let mut packer = NativePacker::new(&stream).unwrap();
    let mut incoming = Incoming::new(Box::new(NativeUnpacker::new(&stream).unwrap()), &stream);
    let samples = vec![0.25; 3 * 59];
    let (captured, mut rendered) = ([0.5; 3 * 64], [0.0; 2 * 64]);
    let mut loud = 0;
    for round in 0..2_000u32 {
        let now = Time::ZERO + Duration::from_micros(1_333) * u64::from(round);
        let sequence =
            if round.is_multiple_of(7) { round.wrapping_mul(0x9E37_79B9) } else { round - round % 3 };
        let block = trunkline_audio::pipeline::Block {
            sequence,
            captured: now,
            arrived: Time::ZERO,
            first_channel: 0,
            channels: 3,
            samples: &samples,
            origin: Origin::Sent,
        };
        packer.pack(&block, &mut |packet| incoming.take(now, packet, None, ends.playback.as_mut()));
        let (allocations, ()) = allocations_during(|| {
            halves.captured(now, &captured);
            halves.render(now, &mut rendered);
        });
        assert_eq!(allocations, 0, "round {round}");
        loud += usize::from(rendered.iter().any(|sample| sample.abs() > 0.1));
    }
    assert!(loud > 500, "of 2000 blocks {loud} were heard");
    assert!(
        kit.overflows.captured.load(std::sync::atomic::Ordering::Relaxed) > 1_000,
        "half a second has room"
    );
}

/// Plays ten seconds of Opus in blocks of 20 ms with a delay of 200 ms. `delays` says when each packet arrives after it was
/// sent, in milliseconds.
fn opus(
    protection: Protection,
    delays: impl Fn(u64) -> Option<u64>,
) -> (trunkline_audio::playout::Counters, UnpackCounters) {
    let codec = Codec::Opus { bitrate: 64_000, fec: false };
    let stream = Stream {
        channels: 2,
        sample_rate: 48_000,
        block_frames: 960,
        codec,
        protection,
        ..Stream::default()
    };
    let depth = Depth::Fixed(Duration::from_millis(200));
    let kit = Kit { player: PlayerSettings { depth, ..PlayerSettings::default() }, ..kit(false) };
    let format = Format { capture_channels: 0, block_frames: 480, ..FORMAT };
    let (mut halves, mut ends) = kit.make(&stream, format).unwrap();
    let mut packer = NativePacker::new(&stream).unwrap();
    let mut incoming = Incoming::new(Box::new(NativeUnpacker::new(&stream).unwrap()), &stream);
    let (mut sent, mut on_the_way, mut rendered) = (0, Vec::new(), [0.0; 2 * 480]);
    for millisecond in 0..10_000u64 {
        let now = Time::ZERO + Duration::from_millis(millisecond);
        if millisecond.is_multiple_of(20) {
            let block = trunkline_audio::pipeline::Block {
                sequence: (millisecond / 20) as u32,
                captured: now,
                arrived: Time::ZERO,
                first_channel: 0,
                channels: 2,
                samples: &[0.25; 2 * 960],
                origin: Origin::Sent,
            };
            packer.pack(&block, &mut |packet| {
                on_the_way.extend(delays(sent).map(|delay| (millisecond + delay, packet.to_vec())));
                sent += 1;
            });
        }
        let playback = ends.playback.as_mut().unwrap();
        for (_, packet) in on_the_way.extract_if(.., |(at, _)| *at <= millisecond) {
            incoming.take(now, &packet, None, Some(playback));
        }
        playback.hear(&Sending::default(), false);
        incoming.release(now, None, Some(playback));
        if millisecond.is_multiple_of(10) {
            halves.render(now, &mut rendered);
        }
    }
    let playback = ends.playback.as_mut().unwrap();
    playback.hear(&Sending::default(), false);
    (playback.played.stats.counters, incoming.counters())
}

#[test]
fn opus_is_decoded_when_it_is_played() {
    let parity = Protection::ReedSolomon { data: 8, parity: 2 };
    let lossy: fn(u64) -> Option<u64> = |n| (n % 20 != 13).then_some(10);
    let overtaking: fn(u64) -> Option<u64> = |n| Some(if n % 20 == 13 { 55 } else { 10 });
    for (protection, delays, recovered, reordered) in [
        (parity, lossy, 20, 0),
        (Protection::Xor { data: 4 }, lossy, 20, 0),
        (Protection::Repeat(1), lossy, 20, 0),
        (Protection::None, overtaking, 0, 20),
    ] {
        let (played, unpacked) = opus(protection, delays);
        assert_eq!((played.concealed(), played.late, unpacked.late), (0, 0, 0), "{protection:?}");
        assert!(played.played > 480, "{played:?}");
        assert!(unpacked.recovered >= recovered && unpacked.reordered >= reordered, "{unpacked:?}");
    }
    // What never comes, and what comes after its turn.
    let (played, unpacked) = opus(Protection::None, |n| match n % 20 {
        13 => None,
        7 => Some(400),
        _ => Some(10),
    });
    assert_eq!((unpacked.late, played.late, played.missing), (24, 0, 0), "{played:?}");
    assert!((47..=50).contains(&played.concealed()), "{played:?}");
}

#[test]
fn channels_that_do_not_fit_are_refused_or_mixed() {
    let error = kit(false).make(&stream(), FORMAT).map(|_| ()).unwrap_err();
    assert!(error.contains("3"), "{error}");
    assert!(kit(true).make(&stream(), FORMAT).is_ok());
}

fn opened(from: &str) -> Desk {
    let wanted = Wanted { capture: Some((from.parse().unwrap(), 1)), ..Wanted::default() };
    let wakeup = Arc::new(Wakeup::new().unwrap());
    let stream = Stream { channels: 1, sample_rate: 48_000, ..Stream::default() };
    Desk::open(wanted, move |_| Ok(stream), (PlayerSettings::default(), false), wakeup).unwrap()
}

fn taken(desk: &mut Desk) -> Vec<f32> {
    desk.ends.as_mut().and_then(|ends| ends.capture.as_mut()).expect("it captures").taken()
}

/// It takes three round trips to connect: what is captured meanwhile would be played too late.
#[test]
fn what_is_captured_before_a_session_is_not_sent() {
    in_real_time(|| {
        let mut desk = opened("tone");
        std::thread::sleep(std::time::Duration::from_millis(300));
        desk.begin();
        let first = taken(&mut desk).len();
        assert!(first <= 48_000 / 20, "{first} frames are older than the session");
    });
}

#[test]
fn a_file_begins_with_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("take.wav");
    let mut writer =
        trunkline_sound::file::Writer::create(&path, 1, 48_000, trunkline_audio::format::Encoding::I16)
            .unwrap();
    let ramp: Vec<f32> = (0..9_600u16).map(|n| f32::from(n) / 32_768.0).collect();
    writer.write(&ramp).unwrap();
    writer.finish().unwrap();
    let mut desk = opened(path.to_str().unwrap());
    std::thread::sleep(std::time::Duration::from_millis(100));
    desk.begin();
    let mut heard = Vec::new();
    while desk.device.status() != trunkline_sound::Status::Finished {
        heard.extend(taken(&mut desk));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    heard.extend(taken(&mut desk));
    assert!(heard == ramp, "{} of {} frames", heard.len(), ramp.len());
}
