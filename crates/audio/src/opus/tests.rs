use super::*;

fn settings(frames: usize, fec: bool) -> Settings {
    let (channels, bitrate) = if fec { (1, 24_000) } else { (2, 96_000) };
    Settings { sample_rate: 48_000, channels, frames, bitrate, fec }
}

/// A tone of 440 Hz left and of 660 Hz right.
fn tone(frame: usize, frames: usize) -> Vec<f32> {
    let sample =
        |n: usize, hz: f64| 0.5 * libm::sin(core::f64::consts::TAU * hz * n as f64 / 48_000.0) as f32;
    (frame * frames..(frame + 1) * frames).flat_map(|n| [sample(n, 440.0), sample(n, 660.0)]).collect()
}

/// Root of the mean square of what differs from the tone, `lag` frames later.
fn error(heard: &[f32], lag: usize) -> f64 {
    let sent = tone(0, heard.len() / 2);
    let pairs = heard[2 * lag..].iter().zip(&sent);
    let squares: f64 = pairs.clone().skip(9_600).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    (squares / (pairs.count() - 9_600) as f64).sqrt()
}

#[test]
fn music_comes_back_after_the_delay_it_states() {
    for frames in [120, 240, 480, 960] {
        let settings = settings(frames, false);
        let (mut encoder, mut decoder) = (Encoder::new(settings).unwrap(), Decoder::new(settings).unwrap());
        let mut heard = Vec::new();
        for n in 0..48_000 / frames {
            let (mut bytes, mut samples) = (Vec::new(), vec![0.0; 2 * frames]);
            encoder.encode(&tone(n, frames), &mut bytes);
            assert_eq!(bytes.len(), settings.bytes());
            assert!(decoder.decode(&bytes, &mut samples));
            heard.extend(samples);
        }
        let lag = (settings.delay().as_nanos() * 48 / 1_000_000) as usize;
        let error = error(&heard, lag);
        assert!(error < 0.02, "{frames} frames: {error}");
    }
}

#[test]
fn a_lost_frame_is_made_up_without_a_gap() {
    let settings = settings(240, false);
    let (mut encoder, mut decoder) = (Encoder::new(settings).unwrap(), Decoder::new(settings).unwrap());
    let mut heard = Vec::new();
    for n in 0..200 {
        let (mut bytes, mut samples) = (Vec::new(), vec![0.0; 480]);
        encoder.encode(&tone(n, 240), &mut bytes);
        if n % 20 == 10 {
            decoder.conceal(&mut samples)
        } else {
            assert!(decoder.decode(&bytes, &mut samples))
        }
        heard.extend(samples);
    }
    let error = error(&heard, 120);
    assert!(error < 0.06, "{error}");
}

/// Something with a voice's pitch and formants, without which an encoder does not take it for speech.
fn voice(frame: usize, frames: usize) -> Vec<f32> {
    let harmonic = |n: usize, k: u32| {
        let turns = 140.0 * f64::from(k) * n as f64 / 48_000.0;
        libm::sin(core::f64::consts::TAU * turns) / f64::from(k)
    };
    let sample = |n: usize| 0.2 * (1..12).map(|k| harmonic(n, k)).sum::<f64>() as f32;
    (frame * frames..(frame + 1) * frames).map(sample).collect()
}

#[test]
fn a_copy_in_the_next_frame_is_better_than_concealment() {
    let settings = settings(960, true);
    let energy_of_difference = |recover: bool| {
        let mut encoder = Encoder::new(settings).unwrap();
        let (mut whole, mut lossy) = (Decoder::new(settings).unwrap(), Decoder::new(settings).unwrap());
        let frames: Vec<Vec<u8>> = (0..60)
            .map(|n| {
                let mut bytes = Vec::new();
                // A new pitch every now and then, which extrapolation cannot know.
                encoder.encode(&voice(n * (1 + n / 7 % 3), 960), &mut bytes);
                bytes
            })
            .collect();
        let mut difference = 0.0;
        for n in 0..59 {
            let (mut expected, mut heard) = (vec![0.0; 960], vec![0.0; 960]);
            whole.decode(&frames[n], &mut expected);
            if n % 7 != 0 {
                lossy.decode(&frames[n], &mut heard);
                continue;
            }
            if recover {
                assert!(lossy.recover(&frames[n + 1], &mut heard), "frame {n} has no copy");
            } else {
                lossy.conceal(&mut heard);
            }
            difference += expected.iter().zip(heard).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        }
        difference
    };
    let (recovered, concealed) = (energy_of_difference(true), energy_of_difference(false));
    assert!(recovered < 0.7 * concealed, "{recovered} against {concealed}");
}

#[test]
fn what_is_no_frame_is_concealed() {
    let settings = settings(240, false);
    let mut decoder = Decoder::new(settings).unwrap();
    let mut samples = vec![9.0; 480];
    for bytes in [&[][..], &[0xFF], &[0xFC, 1, 2, 3], &[3, 0xFF, 0xFF], &[0; 400]] {
        assert!(!decoder.decode(bytes, &mut samples), "{bytes:?}");
        assert!(samples.iter().all(|sample| sample.abs() <= 1.0));
    }
}

#[test]
fn settings_outside_opus_are_refused_in_a_sentence() {
    let good = settings(240, false);
    let said = |settings: Settings| settings.check().unwrap_err().to_string();
    assert_eq!(
        said(Settings { sample_rate: 44_100, ..good }),
        "Opus cannot code 44100 Hz; expected 8000, 12000, 16000, 24000 or 48000 Hz"
    );
    assert_eq!(
        said(Settings { frames: 256, ..good }),
        "Opus cannot code blocks of 256 frames at 48000 Hz; expected 120, 240, 480 or 960 frames (2.5, 5, 10 or 20 ms)"
    );
    assert_eq!(
        said(Settings { frames: 120, bitrate: 20_000, ..good }),
        "Opus cannot code a channel at 20000 bit/s; expected 25600 to 255000 bit/s"
    );
    let speech = settings(480, true);
    for settings in [
        Settings { frames: 240, bitrate: 32_000, ..speech },
        Settings { bitrate: 80_000, ..speech },
        Settings { channels: 2, ..speech },
    ] {
        let said = said(settings);
        assert!(
            said.starts_with(
                "Opus supports forward error correction only in blocks of 10 or 20 ms, at up to 64000"
            ),
            "{said}"
        );
    }
    assert!(said(Settings { channels: 3, ..good }).contains("1 or 2"));
}
