//! ALSA without a sound card: its `file` and `null` plugins take a card's place, in a configuration that the test makes. They
//! have no clock, so nothing here says when anything happens.

#![cfg(feature = "alsa")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trunkline_core::Time;
use trunkline_sound::{Callbacks, Device, Format, Place, Status, Wanted, open};

/// Where ALSA finds its configuration: it reads that once per process, so the tests run in another, which has this set.
const CONFIGURATION: &str = "ALSA_CONFIG_PATH";

/// Runs this test again, alone, with cards whose files are in a directory; says which directory if this is that run.
fn with_cards(test: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(CONFIGURATION) {
        return Some(Path::new(&path).parent().unwrap().to_owned());
    }
    let directory = tempfile::tempdir().unwrap();
    let configuration = directory.path().join("asoundrc");
    let card = |name: &str, slave: &str, format: &str| {
        format!(
            r#"
            pcm.{name} {{
                type plug
                slave {{
                    format {format}
                    pcm {{ type file file "{0}/{name}.out" infile "{0}/{name}.in" format raw slave.pcm {slave} }}
                }}
                hint {{ show on description "{name}" }}
            }}
            "#,
            directory.path().display()
        )
    };
    let text = [
        "</usr/share/alsa/alsa.conf>\npcm.nowhere { type null }".to_owned(),
        card("floats", "nowhere", "FLOAT_LE"),
        card("shorts", "nowhere", "S16_LE"),
    ];
    std::fs::write(&configuration, text.concat()).unwrap();
    for name in ["floats", "shorts"] {
        std::fs::write(directory.path().join(format!("{name}.in")), [0x40; 1 << 20]).unwrap();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CONFIGURATION, &configuration)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    None
}

/// Plays a ramp on two channels and keeps what it captures.
#[derive(Clone, Default)]
struct Ramp {
    frames: Arc<AtomicU32>,
    captured: Arc<Mutex<Vec<f32>>>,
}

/// Exact in 16 bits.
fn ramp(frame: u32) -> [f32; 2] {
    [frame % 30_000, frame % 29_999].map(|value| value as f32 / 32_768.0)
}

impl Callbacks for Ramp {
    fn captured(&mut self, _: Time, frames: &[f32]) {
        self.captured.lock().unwrap().extend_from_slice(frames);
    }

    fn render(&mut self, _: Time, frames: &mut [f32]) {
        let first = self.frames.fetch_add(frames.len() as u32 / 2, Ordering::Relaxed);
        for (to, frame) in frames.chunks_mut(2).zip(first..) {
            to.copy_from_slice(&ramp(frame));
        }
    }
}

fn open_card(ramp: &Ramp, capture: Option<&str>, playback: Option<&str>) -> Device {
    let side = |card: Option<&str>| card.map(|card| (format!("alsa:{card}").parse::<Place>().unwrap(), 2));
    let wanted = Wanted { capture: side(capture), playback: side(playback), ..Wanted::default() };
    let ramp = ramp.clone();
    open(wanted, Box::new(move |_| Ok(Box::new(ramp.clone())))).unwrap()
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

#[test]
fn what_is_rendered_reaches_a_card_whatever_its_samples() {
    let Some(directory) = with_cards("what_is_rendered_reaches_a_card_whatever_its_samples") else { return };
    let player = Ramp::default();
    let device = open_card(&player, None, Some("floats"));
    let format = Format { sample_rate: 48_000, block_frames: 128, capture_channels: 0, playback_channels: 2 };
    assert_eq!((device.format(), device.status()), (format, Status::Running));
    until("it plays", || player.frames.load(Ordering::Relaxed) > 2_000);
    drop(device);
    let bytes = std::fs::read(directory.join("floats.out")).unwrap();
    let samples = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let played: Vec<f32> = samples.skip_while(|sample| *sample == 0.0).collect();
    // The very first sample is zero.
    let expected: Vec<f32> =
        (0..).flat_map(ramp).skip_while(|sample| *sample == 0.0).take(played.len()).collect();
    assert!(played.len() > 2_000, "{}", played.len());
    assert!(played == expected);
}

#[test]
fn what_a_card_captures_arrives() {
    let Some(_) = with_cards("what_a_card_captures_arrives") else { return };
    let recorder = Ramp::default();
    let device = open_card(&recorder, Some("shorts"), None);
    until("it records", || recorder.captured.lock().unwrap().len() > 4_000);
    drop(device);
    let captured = recorder.captured.lock().unwrap();
    let expected = f32::from(0x4040i16) / 32_768.0;
    assert!(captured[..4_000].iter().all(|sample| *sample == expected), "{:?}", &captured[..8]);
}

#[test]
fn both_directions_have_one_owner() {
    let Some(_) = with_cards("both_directions_have_one_owner") else { return };
    let both = Ramp::default();
    let device = open_card(&both, Some("floats"), Some("shorts"));
    until("it plays and records", || {
        both.frames.load(Ordering::Relaxed) > 2_000 && both.captured.lock().unwrap().len() > 4_000
    });
    assert_eq!((device.format().capture_channels, device.format().playback_channels), (2, 2));
    drop(device);
    let expected = f32::from_bits(0x4040_4040);
    assert!(both.captured.lock().unwrap()[..4_000].iter().all(|sample| *sample == expected));
}

#[test]
fn a_card_that_is_not_there_is_named() {
    let Some(_) = with_cards("a_card_that_is_not_there_is_named") else { return };
    let wanted = Wanted { playback: Some(("alsa:hw:7".parse().unwrap(), 2)), ..Wanted::default() };
    let error = open(wanted, Box::new(|_| Ok(Box::new(Ramp::default())))).unwrap_err();
    assert_eq!(error.to_string(), "there is no ALSA device `hw:7`; `aplay -L` and `arecord -L` list them");
}
