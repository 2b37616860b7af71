//! `hound` is the independent judge here: it writes what we read, and reads what we write.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::g711::decode_mu_law;

fn hound_wav(sample_rate: u32, bits: u16, channels: u16, samples: &[i32]) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels,
        sample_rate,
        bits_per_sample: bits,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Vec::new();
    let mut writer = hound::WavWriter::new(Cursor::new(&mut bytes), spec).unwrap();
    for &sample in samples {
        writer.write_sample(sample).unwrap();
    }
    writer.finalize().unwrap();
    bytes
}

fn chunk(id: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = [&id[..], &(body.len() as u32).to_le_bytes(), body].concat();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    [&b"RIFF"[..], &(body.len() as u32 + 4).to_le_bytes(), b"WAVE", &body].concat()
}

fn format(tag: u16, channels: u16, sample_rate: u32, bits: u16) -> Vec<u8> {
    let frame = channels * (bits / 8);
    let rate = sample_rate * u32::from(frame);
    let (tag, channels, frame, bits) =
        (tag.to_le_bytes(), channels.to_le_bytes(), frame.to_le_bytes(), bits.to_le_bytes());
    chunk(
        b"fmt ",
        &[&tag[..], &channels, &sample_rate.to_le_bytes(), &rate.to_le_bytes(), &frame, &bits].concat(),
    )
}

fn message(bytes: &[u8]) -> String {
    read_pcm(bytes).unwrap_err().to_string()
}

#[test]
fn integer_pcm_of_every_width_keeps_its_upper_16_bits() {
    for bits in [8u16, 16, 24, 32] {
        let full = [0i64, 1 << (bits - 2), -(1 << (bits - 1)), (1 << (bits - 1)) - 1].map(|s| s as i32);
        let upper =
            full.map(|s| if bits < 16 { (s << (16 - bits)) as i16 } else { (s >> (bits - 16)) as i16 });
        let pcm = read_pcm(&hound_wav(44_100, bits, 2, &full)).unwrap();
        assert_eq!(pcm.sample_rate, 44_100);
        assert_eq!(pcm.channels, [vec![upper[0], upper[2]], vec![upper[1], upper[3]]], "{bits} bits");
    }
}

#[test]
fn chunks_of_odd_length_and_unknown_ones_are_passed_over() {
    let list = chunk(b"LIST", b"odd");
    let data = chunk(b"data", &[1, 0, 2, 0]);
    let pcm = read_pcm(&riff(&[list.clone(), format(1, 1, 8000, 16), list.clone(), data, list])).unwrap();
    assert_eq!(pcm.channels, [vec![1, 2]]);
}

#[test]
fn an_extensible_format_is_what_its_sub_format_says() {
    for (sub_format, problem) in [(1u16, None), (3, Some("is not PCM but IEEE float (format 3)"))] {
        let mut body = format(0xFFFE, 1, 8000, 16)[8..].to_vec();
        body.extend([22, 0, 16, 0, 0, 0, 0, 0]);
        body.extend(sub_format.to_le_bytes());
        body.extend([0; 14]);
        let bytes = riff(&[chunk(b"fmt ", &body), chunk(b"data", &[5, 0])]);
        match problem {
            None => assert_eq!(read_pcm(&bytes).unwrap().channels, [vec![5]]),
            Some(problem) => assert!(message(&bytes).starts_with(problem)),
        }
    }
}

#[test]
fn the_example_speech_is_four_voices_of_eight_seconds() {
    let pcm = read_pcm(include_bytes!("../../../../examples/speech.wav")).unwrap();
    let mu_law = pcm.to_mulaw_8k().unwrap();
    assert_eq!(mu_law.len(), 4);
    for voice in mu_law {
        assert!((60_000..68_000).contains(&voice.len()));
        let loud = voice.iter().filter(|&&code| decode_mu_law(code).unsigned_abs() > 1000).count();
        assert!(loud > voice.len() / 5, "only {loud} samples can be heard");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let data = chunk(b"data", &[0; 8]);
    let truncated = {
        let whole = riff(&[format(1, 1, 8000, 16), chunk(b"data", &[0; 1000])]);
        whole[..whole.len() - 300].to_vec()
    };
    let narrow = riff(&[format(1, 1, 8000, 12), data.clone()]);
    for (bytes, expected) in [
        (b"".to_vec(), "is not a WAV file (it does not begin with `RIFF` and `WAVE`)"),
        (b"OggS, or anything else".to_vec(), "is not a WAV file"),
        (
            riff(&[format(7, 1, 8000, 8), data.clone()]),
            "is not PCM but mu-law (format 7); convert it with `sox",
        ),
        (riff(&[format(3, 1, 8000, 32), data.clone()]), "is not PCM but IEEE float (format 3)"),
        (riff(&[format(4711, 1, 8000, 16), data.clone()]), "is not PCM but an unknown format (format 4711)"),
        (
            truncated,
            "is truncated: its data chunk announces 1000 bytes, but the file has only 700 of them (300 are missing)",
        ),
        (riff(&[format(1, 1, 8000, 16), chunk(b"data", &[])]), "has no samples"),
        (riff(&[format(1, 0, 8000, 16), data.clone()]), "has no channels"),
        (riff(&[format(1, 1, 0, 16), data.clone()]), "has a sample rate of 0 Hz"),
        (narrow, "has samples of 12 bits in 1 bytes"),
        (riff(&[format(1, 3, 8000, 16), data.clone()]), "is cut inside a sample: its data chunk has 8 bytes"),
        (riff(&[format(1, 1, 8000, 16)]), "is not a complete WAV file: its `data` chunk"),
        (riff(std::slice::from_ref(&data)), "is not a complete WAV file: its `fmt ` chunk"),
        (riff(&[chunk(b"fmt ", &[1, 0]), data]), "is not a complete WAV file: its `fmt ` chunk"),
    ] {
        assert!(message(&bytes).starts_with(expected), "{} instead of {expected}", message(&bytes));
    }
}

#[test]
fn mu_law_needs_8000_hz() {
    let pcm = Pcm { sample_rate: 44_100, channels: vec![vec![0]] };
    let expected =
        "has a sample rate of 44100 Hz; expected 8000 Hz: convert it with `sox in.wav -r 8000 -b 16 out.wav`";
    assert_eq!(pcm.to_mulaw_8k().unwrap_err().to_string(), expected);
    let pcm = Pcm { sample_rate: 8000, channels: vec![vec![0, -32_768], vec![32_767, 1000]] };
    assert_eq!(pcm.to_mulaw_8k().unwrap(), [[0xFF, 0x00], [0x80, encode_mu_law(1000)]]);
}

#[test]
fn packets_written_at_their_offsets_make_a_file_with_silence_where_one_is_lost() {
    let (samples_per_packet, packets) = (80u64, 4u32);
    let payload = |packet: u32| -> Vec<u8> { (0..80).map(|i| (packet * 80 + i) as u8).collect() };
    let mut file = ReceivedWav::header(samples_per_packet * u64::from(packets)).to_vec();
    file.resize(ReceivedWav::offset_of(packets, samples_per_packet) as usize, 0);
    for packet in [3, 0, 2] {
        let mut pcm = Vec::new();
        ReceivedWav::decode_into(&payload(packet), &mut pcm);
        let at = ReceivedWav::offset_of(packet, samples_per_packet) as usize;
        file[at..at + pcm.len()].copy_from_slice(&pcm);
    }

    let mut reader = hound::WavReader::new(Cursor::new(&file)).unwrap();
    assert_eq!((reader.spec().sample_rate, reader.spec().channels, reader.duration()), (8000, 1, 320));
    let heard: Vec<i16> = reader.samples().map(Result::unwrap).collect();
    assert_eq!(heard, read_pcm(&file).unwrap().channels[0]);
    for packet in 0..packets {
        let expected: Vec<i16> = match packet {
            1 => vec![0; 80],
            _ => payload(packet).into_iter().map(decode_mu_law).collect(),
        };
        assert_eq!(heard[packet as usize * 80..][..80], expected);
    }
}

#[test]
fn headers_of_files_that_are_too_long_stay_consistent() {
    for samples in [u64::MAX, u64::from(u32::MAX) / 2, u64::from(u32::MAX)] {
        let header = ReceivedWav::header(samples);
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!(number(4) - 36, number(40));
        assert_eq!(number(40) % 2, 0);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_pcm(&bytes);
        let _ = read_pcm(&[&b"RIFF\0\0\0\0WAVE"[..], &bytes].concat());
        let _ = read_pcm(&[&b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0"[..], &bytes].concat());
    }

    #[test]
    fn mutated_files_are_read_or_refused(
        bits in prop::sample::select(vec![8u16, 16, 24, 32]),
        changes in prop::collection::vec((0usize..100, any::<u8>()), 1..6),
        cut in 0usize..120,
    ) {
        let mut bytes = hound_wav(8000, bits, 2, &[0; 16]);
        for (at, value) in changes {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        bytes.truncate(cut.max(12));
        if let Ok(pcm) = read_pcm(&bytes) {
            prop_assert!(!pcm.channels.is_empty());
            prop_assert!(pcm.channels.iter().all(|c| !c.is_empty() && c.len() == pcm.channels[0].len()));
            let _ = pcm.to_mulaw_8k();
        }
    }

    #[test]
    fn what_hound_writes_is_read_sample_by_sample(
        channels in 1u16..9,
        frames in prop::collection::vec(any::<i16>(), 1..50),
    ) {
        let interleaved: Vec<i32> =
            frames.iter().flat_map(|&s| (0..channels).map(move |c| i32::from(s.rotate_left(c.into())))).collect();
        let pcm = read_pcm(&hound_wav(8000, 16, channels, &interleaved)).unwrap();
        for (channel, samples) in pcm.channels.iter().enumerate() {
            let expected: Vec<i16> = frames.iter().map(|s| s.rotate_left(channel as u32)).collect();
            prop_assert_eq!(samples, &expected);
        }
    }
}
