//! What a listener hears is what the report says of it.

mod support;

use std::path::Path;

use support::{Bench, Ran};
use trunkline_testkit::real_time::in_real_time;

const PACKET: usize = 80;

/// A second of a loud tone at 8 kHz, of which 80 samples are a whole number of periods.
fn tone() -> Vec<u8> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).expect("a WAV can be written to memory");
    for n in 0..8_000 {
        let sample = (f64::from(n) * std::f64::consts::TAU * 400.0 / 8_000.0 + 0.1).sin() * 16_000.0;
        writer.write_sample(sample as i16).expect("a WAV can be written to memory");
    }
    writer.finalize().expect("a WAV can be written to memory");
    bytes.into_inner()
}

fn bench(link: &str, flow: &str, more: &str) -> Bench {
    let bench = Bench::new();
    bench.write("tone.wav", tone());
    let text = format!(
        "name = \"heard\"\nduration = \"4 s\"\ndrain = \"500 ms\"\nseed = 5\n{more}[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\ndelay = \"5 ms\"\n{link}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         source = {{ kind = \"voice\", file = \"tone.wav\", phase = \"together\" }}\n{flow}\n"
    );
    bench.write("heard.toml", text);
    bench
}

fn samples(path: &Path, channels: u16) -> Vec<i16> {
    let mut reader = hound::WavReader::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!((reader.spec().sample_rate, reader.spec().channels), (8_000, channels));
    reader.samples::<i16>().map(|sample| sample.expect("the file is whole")).collect()
}

fn figure(ran: &Ran, name: &str) -> f64 {
    let flow = &ran.json()["points"][0]["runs"][0]["flows"][0];
    flow["figures"][name]["mean"].as_f64().unwrap_or_else(|| panic!("no {name}"))
}

/// The share of the 400 packets in whose place is silence.
fn silent_share(samples: &[i16]) -> f64 {
    let played = &samples[samples.len() - 400 * PACKET..];
    // Before silence the last sound fades, over a millisecond.
    let is_silent = |packet: &&[i16]| packet[8..].iter().all(|sample| *sample == 0);
    played.chunks(PACKET).filter(is_silent).count() as f64 / 400.0
}

const TROUBLE: &str = "loss = \"10 %\"\njitter = { kind = \"exponential\", mean = \"6 ms\" }";

#[test]
fn silence_is_where_the_report_has_lost_and_late_messages() {
    let bench = bench(TROUBLE, "playout = \"15 ms\"", "");
    let run = ["run", "heard.toml", "--no-report", "--json", "--hear", "flow.voice.1=heard.wav"];
    let ran = bench.run(&run).ok();
    let (late, loss) = (figure(&ran, "late"), figure(&ran, "loss"));
    assert!(late > 0.01 && loss > 0.05, "{late} late, {loss} lost");
    let affected = figure(&ran, "affected");
    assert!((affected - late - loss).abs() < 1e-12);
    let heard = samples(&bench.path("heard.wav"), 1);
    assert!((silent_share(&heard) - affected).abs() < 1e-12, "{}", silent_share(&heard));
    let told = format!("heard: flow.voice.1 in heard.wav, 4.0 s, {:.2} % concealed", 100.0 * affected);
    assert!(ran.err.contains(&told), "{told}: {}", ran.err);
    let json = ran.json();
    let heard = &json["heard"][0];
    assert_eq!((&heard["key"], &heard["file"]), (&"flow.voice.1".into(), &"heard.wav".into()), "{json:#}");
    assert_eq!((&heard["point"], &heard["repetition"]), (&0.into(), &0.into()));
    let seconds = heard["frames"].as_f64().unwrap() / heard["sample_rate"].as_f64().unwrap();
    assert!(
        (seconds - 4.0).abs() < 0.05 && (heard["concealed"].as_f64().unwrap() - affected).abs() < 1e-12,
        "{heard:#}"
    );
    assert_eq!(json["html"], serde_json::Value::Null, "no report was asked for");
}

#[test]
fn the_same_seed_sounds_the_same_and_concealment_is_chosen() {
    let bench = bench(TROUBLE, "playout = \"15 ms\"", "");
    let mut files = Vec::new();
    for (name, more) in [("a", None), ("b", None), ("c", Some("waveform")), ("d", Some("repetition"))] {
        let hear = format!("flow.voice.1={name}.wav");
        let mut run = vec!["run", "heard.toml", "--no-report", "--hear", &hear];
        run.extend(more.into_iter().flat_map(|method| ["--conceal", method]));
        bench.run(&run).ok();
        files.push(std::fs::read(bench.path(&format!("{name}.wav"))).expect("it was written"));
    }
    assert!(files[0] == files[1] && files[0] != files[2] && files[2] != files[3]);
    // A tone is easy to go on with.
    let heard = samples(&bench.path("c.wav"), 1);
    assert!(silent_share(&heard) < 0.02, "{}", silent_share(&heard));
}

#[test]
fn every_point_and_repetition_has_a_file_and_all_channels_are_in_it() {
    let flow = "channels = 2\n[sweep]\n\"link.trunk.loss\" = [\"0 %\", \"50 %\"]";
    let bench = bench("", flow, "repetitions = 2\n");
    let run =
        ["run", "heard.toml", "--no-report", "--hear", "flow.voice.1=x.wav", "--hear", "flow.voice.1.2"];
    bench.run(&run).ok();
    let of = |point, repetition| samples(&bench.path(&format!("x-p00{point}-r0{repetition}.wav")), 2);
    // Nothing is lost at first: the tone as it was, in both channels.
    assert!(of(0, 0) == of(0, 1) && of(1, 0) != of(1, 1));
    assert!(of(0, 0).chunks(2).all(|frame| frame[0] == frame[1]));
    let audio = support::files_below(&bench.run_folder(1).join("audio"));
    let second: Vec<_> = audio.iter().filter(|file| file.ends_with("heard-voice.1.2.wav")).collect();
    assert_eq!(second.len(), 4, "{audio:#?}");
    let whole = of(1, 1);
    let alone = samples(second[3], 1);
    // The second channel may end before the first.
    assert!(alone.iter().eq(whole.iter().skip(1).step_by(2).take(alone.len())));
}

#[test]
fn a_live_run_is_heard_too() {
    in_real_time(|| {
        let bench = bench("", "playout = \"500 ms\"", "");
        let run =
            ["run", "heard.toml", "--on", "live", "--no-report", "--json", "--hear", "flow.voice.1=live.wav"];
        let ran = bench.run(&run).ok();
        let heard = samples(&bench.path("live.wav"), 1);
        let affected = figure(&ran, "affected");
        assert!((silent_share(&heard) - affected).abs() < 1e-12 && affected < 0.05, "{affected}");
        assert!(heard.len() >= 4 * 8_000, "{}", heard.len());
    });
}

#[test]
fn what_cannot_be_heard_stops_the_run_before_it_begins() {
    let bench = bench("", "", "");
    for (hear, says) in [
        ("flow.vioce.1", "there is no flow `vioce`; the flow with audio is `voice`"),
        ("flow.voice.2", "`flow.voice.2`: the flow `voice` has member 1 with channel 1"),
        ("voice.1", "expected `flow.NAME.MEMBER`"),
    ] {
        let ran = bench.run(&["run", "heard.toml", "--hear", hear]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains(says), "{hear}: {}", ran.err);
    }
    assert!(!bench.store().exists(), "bad input writes nothing");
}

#[test]
fn no_sound_replaces_what_the_run_reads_by_whatever_name() {
    let bench = bench("", "", "");
    std::fs::hard_link(bench.path("tone.wav"), bench.path("link.wav")).unwrap();
    std::os::unix::fs::symlink("heard.toml", bench.path("soft.wav")).unwrap();
    std::fs::hard_link(bench.path("tone.wav"), bench.path("take-p000-r01.wav")).unwrap();
    let read = || ["heard.toml", "tone.wav"].map(|name| std::fs::read(bench.path(name)).unwrap());
    let before = read();
    for (file, repetitions, named) in [
        ("heard.toml", "1", "heard.toml"),
        ("./heard.toml", "1", "./heard.toml"),
        ("soft.wav", "1", "soft.wav"),
        ("tone.wav", "1", "tone.wav"),
        ("link.wav", "1", "link.wav"),
        ("take.wav", "2", "take-p000-r01.wav"),
    ] {
        let (hear, set) = (format!("flow.voice.1={file}"), format!("repetitions={repetitions}"));
        let ran = bench.run(&["run", "heard.toml", "--no-report", "--set", &set, "--hear", &hear]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains(&format!("`{named}` is a file that the run reads")), "{}", ran.err);
        assert!(read() == before, "{file}");
    }
    assert!(!bench.store().exists(), "bad input writes nothing");
}

/// Four seconds that are nowhere alike, loud throughout.
fn speech() -> Vec<u8> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 8_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).expect("a WAV can be written to memory");
    let (mut state, mut low) = (1u32, 0i32);
    for _ in 0..4 * 8_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        low += ((state >> 16) as i32 - 32_768 - low) / 4;
        writer.write_sample(low as i16).expect("a WAV can be written to memory");
    }
    writer.finalize().expect("a WAV can be written to memory");
    bytes.into_inner()
}

#[test]
fn what_was_lost_is_found_by_listening() {
    let listened = |link: &str| {
        let bench = bench(link, "playout = \"15 ms\"", "");
        bench.write("tone.wav", speech());
        let run = ["run", "heard.toml", "--no-report", "--json", "--hear", "flow.voice.1=heard.wav"];
        let affected = figure(&bench.run(&run).ok(), "affected");
        let ran = bench.run(&["listen", "tone.wav", "heard.wav", "--json"]).ok();
        let text = bench.run(&["listen", "tone.wav", "heard.wav"]).ok().out;
        assert!(text.contains("s compared") && text.contains("noise/mask dB"), "{text}");
        (ran.json(), affected)
    };
    let ((whole, nothing), (holey, affected)) = (listened(""), listened("loss = \"5 %\""));
    let of = |value: &serde_json::Value, name: &str| {
        value["channels"][0][name].as_f64().unwrap_or_else(|| panic!("no {name}: {value:#}"))
    };
    // G.711 alone has some 37 dB.
    assert!(of(&whole, "snr_db") > 35.0, "{whole:#}");
    assert_eq!([of(&whole, "gaps"), of(&whole, "clicks"), of(&whole, "altered"), nothing], [0.0; 4]);
    // 5 ms of the link, 15 ms of playout, and a microsecond for the packet.
    let delay = of(&whole, "delay_s");
    assert!((delay - 0.020).abs() < 0.000_130, "{delay}");
    assert!(of(&holey, "snr_db") < 20.0 && of(&holey, "gaps") > 5.0, "{holey:#}");
    // After a loss the sound fades in.
    let altered = of(&holey, "altered");
    assert!((affected..affected + 0.03).contains(&(altered + 0.005)), "{altered} of {affected}");
    assert!(of(&holey, "noise_to_mask_db") > of(&whole, "noise_to_mask_db") + 10.0, "{holey:#}");
}

#[test]
fn what_cannot_be_listened_to_is_bad_input() {
    let bench = Bench::new();
    bench.write("tone.wav", tone());
    bench.write("text.wav", "no audio");
    for (files, says) in [
        (["tone.wav", "missing.wav"], "missing.wav"),
        (["text.wav", "tone.wav"], "is neither a WAV nor a FLAC file"),
    ] {
        let ran = bench.run(&["listen", files[0], files[1]]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.err.contains(says), "{}", ran.err);
    }
}

#[test]
fn music_is_heard_in_all_its_channels() {
    let text = |link: &str| {
        format!(
            "name = \"music\"\nduration = \"3 s\"\nseed = 2\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\n{link}\n[flow.music]\nfrom = \"a\"\nto = \"b\"\n\
             transport = \"udp\"\nchannels = 2\nplayout = \"10 ms\"\nsource = {{ kind = \"audio\", signal = \"tones\" }}\n"
        )
    };
    let bench = Bench::new();
    let mut affected = 0.0;
    for (name, link) in [("whole", ""), ("holey", "loss = \"3 %\"")] {
        bench.write("music.toml", text(link));
        let hear = format!("flow.music.1={name}.wav");
        let run = ["run", "music.toml", "--no-report", "--json", "--hear", &hear, "--conceal", "silence"];
        affected = figure(&bench.run(&run).ok(), "affected");
    }
    assert!(affected > 0.01, "{affected}");
    let reader = hound::WavReader::open(bench.path("whole.wav")).expect("it was written");
    assert_eq!((reader.spec().sample_rate, reader.spec().channels), (44_100, 2));
    let compared = bench.run(&["listen", "whole.wav", "holey.wav", "--json"]).ok().json();
    let of = |channel: usize, name: &str| compared["channels"][channel][name].as_f64().expect(name);
    assert_eq!([of(0, "received"), of(1, "received")], [1.0, 2.0]);
    // Both channels together; what fades out and in around a loss is a little of it.
    let altered = (of(0, "altered") + of(1, "altered")) / 2.0;
    assert!((altered - affected).abs() < 0.02, "{altered} of {affected}");
    assert!(of(0, "gaps") > 0.0 && of(1, "gaps") > 0.0, "{compared:#}");
}
