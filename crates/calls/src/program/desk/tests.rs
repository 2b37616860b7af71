use trunkline_audio::pipeline::{Codec, NativePacker, NativeUnpacker, Packer, Packing};
use trunkline_audio::playout::Origin;
use trunkline_core::{Duration, Time};
use trunkline_sound::Callbacks as _;
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::real_time::in_real_time;

use super::*;
use crate::program::incoming::Incoming;

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
    let mut incoming = Incoming::new(Box::new(NativeUnpacker::new(&stream).unwrap()), stream.channels);
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
