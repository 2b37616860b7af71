//! Devices without hardware: files, tones and noise at the pace of the clock.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trunkline_audio::format::Encoding;
use trunkline_core::Time;
use trunkline_sound::file::{Reader, Writer};
use trunkline_sound::{Callbacks, Device, Format, Place, Status, Wanted, open};

/// Plays what it captures, in the same block, and keeps it with its times.
#[derive(Clone, Default)]
struct Through(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    captured: Vec<f32>,
    blocks: Vec<(Time, usize)>,
    last: Vec<f32>,
}

impl Callbacks for Through {
    fn captured(&mut self, now: Time, frames: &[f32]) {
        let mut kept = self.0.lock().unwrap();
        kept.captured.extend_from_slice(frames);
        kept.blocks.push((now, frames.len()));
        kept.last = frames.to_vec();
    }

    fn render(&mut self, _: Time, frames: &mut [f32]) {
        let last = std::mem::take(&mut self.0.lock().unwrap().last);
        frames[..last.len()].copy_from_slice(&last);
    }
}

impl Through {
    fn open(&self, wanted: Wanted) -> Device {
        let through = self.clone();
        open(wanted, Box::new(move |_| Ok(Box::new(through.clone())))).unwrap()
    }

    fn captured(&self) -> usize {
        self.0.lock().unwrap().captured.len()
    }
}

fn place(text: &str) -> Place {
    text.parse().unwrap()
}

fn file(directory: &Path, name: &str) -> Place {
    place(directory.join(name).to_str().unwrap())
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not within half a minute");
}

fn ramp(frames: usize) -> Vec<f32> {
    (0..2 * frames).map(|index| index as f32 / 32_768.0).collect()
}

fn read_all(path: &Path) -> Vec<f32> {
    let mut reader = Reader::open(path).unwrap();
    let mut samples = Vec::new();
    while reader.read(&mut samples).unwrap() {}
    samples
}

#[test]
fn a_file_is_played_into_another_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut writer = Writer::create(path.join("in.wav"), 2, 32_000, Encoding::I16).unwrap();
    writer.write(&ramp(6_001)).unwrap();
    writer.finish().unwrap();
    for name in ["out.wav", "out.flac"] {
        let through = Through::default();
        let device = through.open(Wanted {
            capture: Some((file(path, "in.wav"), 1)),
            playback: Some((file(path, name), 2)),
            block_frames: Some(100),
            sample_rate: Some(48_000),
            ..Wanted::default()
        });
        let format =
            Format { sample_rate: 32_000, block_frames: 100, capture_channels: 2, playback_channels: 2 };
        assert_eq!(device.format(), format, "the file's own channels and rate");
        until("the file ends", || device.status() == Status::Finished);
        let xruns = device.xruns();
        drop(device);
        let kept = through.0.lock().unwrap();
        assert_eq!(kept.captured, ramp(6_001));
        assert_eq!(kept.blocks.last().unwrap().1, 2, "the last block has one frame");
        let is_paced = |pair: &[(Time, usize)]| pair[1].0.since(pair[0].0).as_nanos() == 3_125_000;
        assert!(xruns > 0 || kept.blocks.windows(2).all(is_paced), "100 frames at 32 kHz are 3.125 ms");
        let played = read_all(&path.join(name));
        assert_eq!(&played[..12_002], ramp(6_001));
        assert!(played[12_002..].iter().all(|sample| *sample == 0.0));
    }
}

#[test]
fn a_file_waits_while_it_is_held() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut writer = Writer::create(path.join("in.wav"), 2, 48_000, Encoding::I16).unwrap();
    writer.write(&ramp(6_000)).unwrap();
    writer.finish().unwrap();
    let through = Through::default();
    let capture = Some((file(path, "in.wav"), 2));
    let device = through.open(Wanted { capture, hold: true, ..Wanted::default() });
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(through.captured(), 0);
    device.hold(false);
    until("something is captured", || through.captured() > 0);
    device.hold(true);
    std::thread::sleep(Duration::from_millis(50));
    device.hold(false);
    until("the file ends", || device.status() == Status::Finished);
    drop(device);
    assert!(through.0.lock().unwrap().captured == ramp(6_000));
}

#[test]
fn a_file_goes_round() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.wav");
    let mut writer = Writer::create(&path, 2, 48_000, Encoding::I16).unwrap();
    writer.write(&ramp(333)).unwrap();
    writer.finish().unwrap();
    let through = Through::default();
    let capture = Some((place(&format!("loop:{}", path.display())), 2));
    let device = through.open(Wanted { capture, ..Wanted::default() });
    until("it has gone round", || through.captured() > 2 * 2000);
    assert_eq!(device.status(), Status::Running);
    drop(device);
    let captured = &through.0.lock().unwrap().captured;
    assert!(captured.chunks(2 * 333).all(|round| round == &ramp(333)[..round.len()]));
}

#[test]
fn tones_noise_and_silence_are_captured_at_any_rate() {
    for (text, rate) in [("tone:1000,250", 8000), ("noise:3", 44_100), ("none", 192_000)] {
        let through = Through::default();
        let wanted = Wanted {
            capture: Some((place(text), 2)),
            playback: Some((Place::None, 2)),
            sample_rate: Some(rate),
            block_frames: Some(64),
            ..Wanted::default()
        };
        let device = through.open(wanted);
        until("there is sound", || through.captured() >= 2 * 800);
        drop(device);
        let kept = through.0.lock().unwrap();
        let crossings = |channel: usize| {
            let samples: Vec<f32> = kept.captured.chunks(2).take(800).map(|frame| frame[channel]).collect();
            samples.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count()
        };
        match text {
            "none" => assert!(kept.captured.iter().all(|sample| *sample == 0.0)),
            "noise:3" => assert!((100..300).contains(&crossings(0)), "{}", crossings(0)),
            _ => assert_eq!(
                (crossings(0), crossings(1)),
                (99, 24),
                "1000 Hz and 250 Hz for a tenth of a second"
            ),
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |wanted: Wanted| {
        open(wanted, Box::new(|_| Ok(Box::new(Through::default())))).map(|_| ()).unwrap_err().to_string()
    };
    let capture =
        |text: &str, channels| Wanted { capture: Some((place(text), channels)), ..Wanted::default() };
    assert!(refused(Wanted::default()).starts_with("a device neither captures nor plays"));
    assert!(refused(capture("tone", 0)).contains("cannot have 0 channels; expected 1 to 1024"));
    assert!(refused(Wanted { sample_rate: Some(0), ..capture("tone", 1) }).contains("0 frames per second"));
    let too_high = Wanted { sample_rate: Some(48_000), ..capture("tone:440,30000", 2) };
    assert!(refused(too_high).contains("there is no tone of 30000 Hz at 48000 samples per second"));
    assert!(refused(Wanted { block_frames: Some(1 << 20), ..capture("tone", 1) }).contains("1048576 frames"));
    assert!(
        refused(Wanted { playback: Some((place("tone"), 1)), ..Wanted::default() })
            .contains("be played to `tone:440`")
    );
    assert!(
        refused(Wanted { playback: Some((place("jack"), 1)), ..capture("alsa", 1) })
            .contains("different clocks")
    );
    #[cfg(not(feature = "alsa"))]
    assert!(refused(capture("alsa", 1)).contains("was built without ALSA; build it with"));
    assert_eq!(
        refused(capture("no/such.wav", 1)),
        "`no/such.wav` cannot be read: No such file or directory (os error 2)"
    );

    let directory = tempfile::tempdir().unwrap();
    let never = directory.path().join("never.wav");
    let wanted = Wanted { playback: Some((place(never.to_str().unwrap()), 1)), ..Wanted::default() };
    let error =
        open(wanted, Box::new(|format| Err(format!("{} Hz are refused", format.sample_rate)))).unwrap_err();
    assert_eq!(error.to_string(), "48000 Hz are refused");
    assert!(!never.exists(), "no file for a device that is refused");
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    let through = Through::default();
    let wanted = Wanted {
        capture: Some((place("noise"), 2)),
        playback: Some((Place::File("/dev/full".into()), 2)),
        ..Wanted::default()
    };
    let opened = open(wanted, Box::new(move |_| Ok(Box::new(through.clone()))));
    assert_eq!(
        opened.map(|_| ()).unwrap_err().to_string(),
        "`/dev/full` cannot be written: No space left on device (os error 28)"
    );
}
