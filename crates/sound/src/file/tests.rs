use std::fs;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tempfile::TempDir;
use trunkline_audio::format::{Endian, Format};

use super::*;
use crate::shared::Shared;

const ENCODINGS: [Encoding; 3] = [Encoding::I16, Encoding::I24, Encoding::F32];

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A different wave on each channel, exact in 16 bits.
fn music(channels: u16, frames: usize) -> Vec<f32> {
    let sample =
        |index: usize| (libm::sin(index as f64 * index as f64 / 9e4) * 30_000.0).round() as f32 / 32_768.0;
    (0..frames * usize::from(channels)).map(sample).collect()
}

fn read_all(path: &Path) -> Result<(u16, u32, Vec<f32>), SoundError> {
    let mut reader = Reader::open(path)?;
    let mut samples = Vec::new();
    while reader.read(&mut samples)? {}
    Ok((reader.channels(), reader.sample_rate(), samples))
}

fn write(path: &Path, channels: u16, rate: u32, encoding: Encoding, samples: &[f32]) {
    if path.is_file() {
        // One with content is left alone.
        assert!(Writer::create(path, channels, rate, encoding).is_err());
        fs::write(path, []).unwrap();
    }
    let mut writer = Writer::create(path, channels, rate, encoding).unwrap();
    for piece in samples.chunks(usize::from(channels) * 1000) {
        writer.write(piece).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn what_is_written_is_read_again() {
    let directory = directory();
    for (name, encoding) in [
        ("a.wav", Encoding::I16),
        ("b.wav", Encoding::I24),
        ("c.wav", Encoding::F32),
        ("d.flac", Encoding::I16),
        ("e.FLAC", Encoding::I24),
    ] {
        let path = directory.path().join(name);
        for (channels, rate, frames) in
            [(1, 8000, 1), (1, 44_100, 10_001), (2, 48_000, 4096), (8, 96_000, 5000), (3, 44_100, 0)]
        {
            let samples = music(channels, frames);
            write(&path, channels, rate, encoding, &samples);
            assert_eq!(read_all(&path).unwrap(), (channels, rate, samples), "{name}, {channels} channels");
        }
    }
    let samples = music(64, 5000);
    write(&directory.path().join("many.wav"), 64, 48_000, Encoding::I24, &samples);
    assert_eq!(read_all(&directory.path().join("many.wav")).unwrap(), (64, 48_000, samples));
}

/// Of the last quarter of a second, and of the last block of FLAC, nothing need be there.
#[test]
fn a_recording_that_is_cut_off_is_there_up_to_the_last_moments() {
    let directory = directory();
    for name in ["cut.wav", "cut.flac"] {
        let (path, samples) = (directory.path().join(name), music(2, 60_000));
        let mut writer = Writer::create(&path, 2, 44_100, Encoding::I16).unwrap();
        for (index, piece) in samples.chunks(2 * 500).enumerate() {
            writer.write(piece).unwrap();
            let (_, _, heard) = read_all(&path).unwrap();
            assert!(heard.len() + 2 * 11_525 >= 1000 * (index + 1), "{name}: {} of {index}", heard.len());
            assert_eq!(heard, samples[..heard.len()]);
        }
    }
}

/// hound is another's reader and writer of WAV files.
#[test]
fn other_programs_read_our_files_and_we_theirs() {
    let directory = directory();
    let path = directory.path().join("hound.wav");
    for (encoding, channels) in
        ENCODINGS.into_iter().flat_map(|encoding| [(encoding, 1), (encoding, 2), (encoding, 5)])
    {
        let samples = music(channels, 777);
        write(&path, channels, 44_100, encoding, &samples);
        let mut reader = hound::WavReader::open(&path).unwrap();
        let bits = reader.spec().bits_per_sample;
        let full_scale = (1u32 << (bits - 1)) as f32;
        let heard: Vec<f32> = match reader.spec().sample_format {
            hound::SampleFormat::Float => reader.samples::<f32>().map(Result::unwrap).collect(),
            hound::SampleFormat::Int => {
                reader.samples::<i32>().map(|sample| sample.unwrap() as f32 / full_scale).collect()
            }
        };
        assert_eq!((reader.spec().channels, reader.spec().sample_rate), (channels, 44_100));
        assert_eq!(heard, samples);

        for bits in [16, 24, 32] {
            let spec = hound::WavSpec {
                channels,
                sample_rate: 96_000,
                bits_per_sample: bits,
                sample_format: hound::SampleFormat::Int,
            };
            let mut writer = hound::WavWriter::create(&path, spec).unwrap();
            for sample in &samples {
                writer.write_sample((f64::from(*sample) * f64::from(1u32 << (bits - 1))) as i32).unwrap();
            }
            writer.finalize().unwrap();
            assert_eq!(read_all(&path).unwrap(), (channels, 96_000, samples.clone()), "{bits} bits");
        }
    }
}

#[test]
fn a_file_begins_again() {
    let directory = directory();
    let path = directory.path().join("loop.flac");
    write(&path, 2, 44_100, Encoding::I16, &music(2, 5000));
    let mut reader = Reader::open(&path).unwrap();
    let mut samples = Vec::new();
    while reader.read(&mut samples).unwrap() {}
    reader.rewind().unwrap();
    while reader.read(&mut samples).unwrap() {}
    assert_eq!(samples, [music(2, 5000), music(2, 5000)].concat());

    write(&path, 1, 44_100, Encoding::I16, &music(1, 10));
    assert!(reader.rewind().unwrap_err().to_string().contains("has changed since it was opened"));
}

#[test]
fn a_file_that_is_cut_short_is_played_as_far_as_it_goes_and_says_so() {
    let directory = directory();
    let path = directory.path().join("cut.wav");
    write(&path, 2, 8_000, Encoding::I16, &music(2, 8_000));
    assert_eq!(Reader::open(&path).unwrap().cut_short(), None);
    let bytes = fs::read(&path).unwrap();
    // In the middle of a frame.
    fs::write(&path, &bytes[..bytes.len() - 4 * 2_000 + 1]).unwrap();
    let said = Reader::open(&path).unwrap().cut_short().unwrap();
    assert!(said.ends_with("cut.wav` is cut short: it announces 1.000 s and has 0.750 s of them"), "{said}");
    assert_eq!(read_all(&path).unwrap().2.len(), 2 * 6_000);
    // A program that could not go back to write the length.
    let at = bytes.windows(4).position(|four| four == b"data").unwrap() + 4;
    let unknown = [&bytes[..at], &u32::MAX.to_le_bytes(), &bytes[at + 4..]].concat();
    fs::write(&path, unknown).unwrap();
    assert_eq!(Reader::open(&path).unwrap().cut_short(), None);
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let directory = directory();
    let path = directory.path().join("wrong.wav");
    let problem = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let text = read_all(&path).unwrap_err().to_string();
        text.strip_prefix(&format!("`{}` ", path.display())).unwrap().to_owned()
    };
    assert_eq!(problem(b""), "is empty");
    assert_eq!(problem(b"I am a text"), "is neither a WAV nor a FLAC file");
    assert_eq!(problem(b"RIFF1234AVI LIST"), "is not a WAV file: it begins as one, but without `WAVE`");
    assert_eq!(problem(b"RIFF1234WAVEfmt "), "is not a complete WAV file: it ends before its data");
    assert_eq!(problem(b"RIFF1234WAVEdata\0\0\0\0"), "is not a WAV file: it has data before their format");
    let with_format = |tag: u8, bits: u8, frame: u8| {
        let format = [tag, 0, 2, 0, 0x44, 0xAC, 0, 0, 0, 0, 0, 0, frame, 0, bits, 0];
        [b"RIFF1234WAVEfmt \x10\0\0\0".as_slice(), &format, b"data\0\0\0\0"].concat()
    };
    assert!(
        problem(&with_format(2, 4, 1)).starts_with("has samples of 4 bits in format 2; expected integers")
    );
    assert!(problem(&with_format(1, 16, 3)).contains("2 channels of 16 bits do not fit into 3 bytes"));
    assert!(problem(b"fLaC\0\0\0\x22").starts_with("cannot be read"));
    let refused = |name: &str, channels, rate, encoding| {
        Writer::create(directory.path().join(name), channels, rate, encoding).err().unwrap().to_string()
    };
    assert!(
        refused("a.flac", 9, 48_000, Encoding::I16).contains("cannot have 9 channels: FLAC has 8 at most")
    );
    assert!(refused("a.flac", 2, 48_000, Encoding::F32).contains("floating-point samples, which FLAC lacks"));
    assert!(refused("a.flac", 2, 1_536_000, Encoding::I16).contains("sample rate of 1536000 Hz in FLAC"));
    assert!(refused("no/such/a.wav", 2, 48_000, Encoding::I16).contains("cannot be written: No such file"));
    assert!(!directory.path().join("a.flac").exists(), "nothing is left of a file that is refused");
}

#[test]
fn full_scale_is_clipped_and_what_is_no_number_is_silent() {
    let directory = directory();
    let path = directory.path().join("loud.flac");
    write(&path, 1, 48_000, Encoding::I24, &[1.0, -1.0, 7.0, f32::NAN, f32::NEG_INFINITY]);
    let mut bytes = Vec::new();
    let format = Format { encoding: Encoding::I24, endian: Endian::Little };
    format.encode(&[1.0, -1.0, 7.0, 0.0, -1.0], &mut bytes);
    let mut expected = Vec::new();
    format.decode(&bytes, &mut expected);
    assert_eq!(read_all(&path).unwrap().2, expected);
}

/// A disk that waits, and then fails or not.
struct Slow {
    gate: Receiver<()>,
    written: Written,
    fails: bool,
}

impl Encoder for Slow {
    fn write(&mut self, samples: &[f32]) -> Result<(), String> {
        // Open once it is dropped at the other end.
        let _ = self.gate.recv();
        if self.fails {
            return Err("cannot be written: the disk is full".to_owned());
        }
        self.written.lock().unwrap().extend_from_slice(samples);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

const SLOW: Layout = Layout { channels: 2, sample_rate: 100 };

type Written = Arc<Mutex<Vec<f32>>>;

fn slow(fails: bool) -> (Sender<()>, Written, Arc<Shared>, FileSink) {
    let (open, gate) = mpsc::channel();
    let (written, shared) = (Written::default(), Arc::default());
    let encoder = Box::new(Slow { gate, written: Arc::clone(&written), fails });
    let format = crate::Format {
        sample_rate: SLOW.sample_rate,
        block_frames: 10,
        capture_channels: 0,
        playback_channels: SLOW.channels,
    };
    let writer = Writer { path: "slow.wav".into(), encoder };
    let sink = FileSink::start(writer, &format, Arc::clone(&shared)).unwrap();
    (open, written, shared, sink)
}

/// The ring has room for two seconds; what comes then is silence in the file, as long as it was.
#[test]
fn a_slow_disk_holds_nobody_up_and_what_follows_stays_at_its_time() {
    let (open, written, shared, mut sink) = slow(false);
    let block = |number: usize| [number as f32; 20];
    for number in 1..=100 {
        sink.take(&block(number), &shared);
    }
    assert!(shared.xruns() >= 79, "{}", shared.xruns());
    drop(open);
    while written.lock().unwrap().len() < 20 * 20 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // The silence takes its time; then sound is heard again.
    let mut number = 100;
    while written.lock().unwrap().last().is_none_or(|sample| *sample <= 100.0) {
        number += 1;
        sink.take(&block(number), &shared);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    drop(sink);
    let written = written.lock().unwrap();
    for (index, sample) in written.iter().enumerate() {
        let number = (index / 20 + 1) as f32;
        assert!(*sample == number || *sample == 0.0, "sample {index} is {sample}");
    }
    assert_eq!(written.iter().filter(|sample| **sample > 0.0).count() % 20, 0, "whole blocks");
}

#[test]
fn a_disk_that_fails_is_told_and_holds_nobody_up() {
    let (open, _, shared, mut sink) = slow(true);
    drop(open);
    for _ in 0..100 {
        sink.take(&[0.5; 20], &shared);
    }
    while shared.failure().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(shared.failure().unwrap(), "`slow.wav` cannot be written: the disk is full");
    sink.take(&[0.5; 20], &shared);
}

/// A valid file of each kind.
fn valid() -> Vec<Vec<u8>> {
    let directory = directory();
    let file = |name: &str, encoding| {
        let path = directory.path().join(name);
        write(&path, 2, 44_100, encoding, &music(2, 600));
        fs::read(path).unwrap()
    };
    vec![
        file("a.wav", Encoding::I16),
        file("b.wav", Encoding::F32),
        file("c.flac", Encoding::I16),
        file("d.flac", Encoding::I24),
    ]
}

proptest! {
    #[test]
    fn nothing_in_a_file_makes_us_panic(
        kind in 0..4usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        early in prop::collection::vec((0..120usize, any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = valid().swap_remove(kind);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for (at, byte) in early {
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let directory = directory();
        let path = directory.path().join("file");
        fs::write(&path, &bytes).unwrap();
        if let Ok((channels, _, samples)) = read_all(&path) {
            prop_assert!(samples.len().is_multiple_of(channels.into()));
        }
    }
}
