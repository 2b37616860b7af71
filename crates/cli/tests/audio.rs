//! The received audio is the sent G.711, bit by bit, and silence where messages were lost.

mod support;

use support::Bench;
use trunkline_testkit::real_time::in_real_time;

const SAMPLES: usize = 8_000;

/// A mono WAV of 16-bit PCM at 8 kHz.
fn wav(channels: &[Vec<i16>]) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels: channels.len() as u16,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).expect("a WAV can be written to memory");
    for sample in 0..channels[0].len() {
        for channel in channels {
            writer.write_sample(channel[sample]).expect("a WAV can be written to memory");
        }
    }
    writer.finalize().expect("a WAV can be written to memory");
    bytes.into_inner()
}

/// A sweep through all levels, different per channel, so that every code word is used.
fn speech(channel: usize) -> Vec<i16> {
    (0..SAMPLES).map(|i| ((i * (37 + 12 * channel) * 7) % 65_536) as u16 as i16).collect()
}

fn samples(path: &std::path::Path) -> Vec<i16> {
    let mut reader = hound::WavReader::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(reader.spec().sample_rate, 8_000);
    assert_eq!(reader.spec().channels, 1);
    reader.samples::<i16>().map(|sample| sample.expect("the file is whole")).collect()
}

/// What G.711 makes of a sample, by the reference code of the recommendation's software tool library: written here anew
/// and in another way than in the program.
fn through_mulaw(sample: i16) -> i16 {
    let magnitude = i32::from(sample).abs().min(32_635) + 132;
    let segment = (0..8).rev().find(|s| magnitude >> (s + 7) > 0).unwrap_or(0);
    let step = (magnitude >> (segment + 3)) & 0x0f;
    let decoded = ((step * 2 + 33) << (segment + 2)) - 132;
    (if sample < 0 { -decoded } else { decoded }) as i16
}

fn experiment(link: &str, reflect: bool) -> String {
    format!(
        "name = \"audio\"\nduration = \"1 s\"\ndrain = \"300 ms\"\nseed = 5\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n{link}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nchannels = 2\nreflect = {reflect}\n\
         source = {{ kind = \"voice\", samples = 80, file = \"speech.wav\", phase = \"together\" }}\n"
    )
}

/// The received files of the only run.
fn received(bench: &Bench) -> Vec<Vec<i16>> {
    let files = support::files_below(&bench.run_folder(1).join("audio"));
    assert_eq!(files.len(), 2, "one file per channel: {files:#?}");
    files.iter().map(|file| samples(file)).collect()
}

fn prepared(link: &str, reflect: bool) -> Bench {
    let bench = Bench::new();
    bench.write("speech.wav", wav(&[speech(0), speech(1)]));
    bench.write("audio.toml", experiment(link, reflect));
    bench
}

fn expected(channel: usize) -> Vec<i16> {
    speech(channel).into_iter().map(through_mulaw).collect()
}

#[test]
fn simulated_audio_is_bit_exact() {
    for reflect in [false, true] {
        let bench = prepared("", reflect);
        bench.run(&["run", "audio.toml", "--no-report"]).ok();
        for (channel, samples) in received(&bench).into_iter().enumerate() {
            assert!(samples == expected(channel), "channel {channel}, reflect = {reflect}");
        }
    }
}

#[test]
fn live_audio_is_bit_exact_where_it_arrived() {
    in_real_time(|| {
        for reflect in [false, true] {
            let bench = prepared("", reflect);
            bench.run(&["run", "audio.toml", "--on", "live", "--no-report"]).ok();
            let lost = exact_or_silent(&received(&bench));
            assert!(lost <= 5, "loopback lost {lost} packets");
        }
    });
}

#[test]
fn lost_packets_are_silent_and_nothing_else_is() {
    let bench =
        prepared("loss = \"20 %\"\nreorder = \"10 %\"\nreorder-by = \"25 ms\"\nduplicate = \"5 %\"", false);
    let ran = bench.run(&["run", "audio.toml", "--json", "--no-report"]).ok();
    let lost = exact_or_silent(&received(&bench));
    let counted = &ran.json()["points"][0]["runs"][0]["flows"][0]["figures"]["lost"]["mean"];
    assert_eq!(counted.as_f64(), Some(lost as f64));
    assert!(lost > 10, "20 % of 200 packets");
}

/// Every packet of 80 samples is either exact or silent; counts the silent ones.
fn exact_or_silent(channels: &[Vec<i16>]) -> usize {
    let mut silent = 0;
    for (channel, samples) in channels.iter().enumerate() {
        let expected = expected(channel);
        assert_eq!(samples.len(), expected.len());
        for (packet, (got, sent)) in samples.chunks(80).zip(expected.chunks(80)).enumerate() {
            if got == sent {
                continue;
            }
            assert!(
                got.iter().all(|&sample| sample == 0),
                "channel {channel}, packet {packet} is neither exact nor silent"
            );
            silent += 1;
        }
    }
    silent
}
