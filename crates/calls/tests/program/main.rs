//! Sending, reflecting and receiving as users do it, over loopback and in real time. Playout buffers are deep, since the
//! machine that tests has other things to do.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use trunkline_audio::pipeline::{Packing, PlayerSettings, Stream};
use trunkline_audio::playout::Depth;
use trunkline_calls::program::{
    self, Event, Figures, Observer, ProgramError, ReceiveOptions, RecordingLimits, SendOptions, Sent,
};
use trunkline_calls::{Client, Line as _, Request, Role, ServerOptions, Stop, now};
use trunkline_core::{Bytes, Duration};
use trunkline_sound::Place;
use trunkline_testkit::middle::Middle;
use trunkline_testkit::mutation::{panics_of, seed};
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::tone;

/// Keeps what is told.
#[derive(Default)]
struct Notes {
    ended: Mutex<Vec<(Option<Figures>, Option<String>)>>,
    other: Mutex<Vec<String>>,
}

impl Observer for Notes {
    fn event(&self, _: u64, event: Event<'_>) {
        match event {
            Event::Ended { figures, why } => {
                self.ended.lock().unwrap().push((figures.cloned(), why.map(str::to_owned)));
            }
            Event::Going(_) => {}
            other => self.other.lock().unwrap().push(format!("{other:?}")),
        }
    }
}

/// A reflector or a receiver in a thread of its own, until it is dropped.
struct Serving {
    address: SocketAddr,
    stop: Arc<Stop>,
    notes: Arc<Notes>,
    thread: Option<JoinHandle<Result<(), ProgramError>>>,
}

impl Serving {
    fn start(
        serve: impl FnOnce(ServerOptions, &Stop, &Notes, &dyn Fn(SocketAddr)) -> Result<(), ProgramError>
        + std::marker::Send
        + 'static,
    ) -> Serving {
        let options = ServerOptions { address: "127.0.0.1:0".parse().unwrap(), ..ServerOptions::default() };
        let (stop, notes) = (Arc::new(Stop::new().unwrap()), Arc::new(Notes::default()));
        let (ready, address) = mpsc::channel();
        let (told, noted) = (Arc::clone(&stop), Arc::clone(&notes));
        let thread =
            thread::spawn(move || serve(options, &told, &noted, &|address| ready.send(address).unwrap()));
        Serving { address: address.recv().unwrap(), stop, notes, thread: Some(thread) }
    }

    fn reflector() -> Serving {
        Serving::start(|options, stop, notes, ready| program::reflect(options, stop, notes, ready))
    }

    fn receiver(options: ReceiveOptions) -> Serving {
        Serving::start(move |server, stop, notes, ready| {
            program::receive(ReceiveOptions { server, ..options }, stop, notes, ready)
        })
    }

    /// Ends it, and gives what it told of its sessions.
    fn end(mut self) -> Vec<(Option<Figures>, Option<String>)> {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
        std::mem::take(&mut *self.notes.ended.lock().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// A tone of 440 Hz for a second and a half.
fn tone(to: SocketAddr) -> SendOptions {
    SendOptions {
        lasting: Some(Duration::from_millis(1500)),
        player: deep(),
        ..SendOptions::new(&to.to_string(), Place::Tone { hertz: vec![440.0] })
    }
}

fn deep() -> PlayerSettings {
    PlayerSettings { depth: Depth::Fixed(Duration::from_millis(300)), ..PlayerSettings::default() }
}

fn send(options: &SendOptions) -> Result<Sent, ProgramError> {
    program::send(options, &AtomicBool::new(false), &Notes::default())
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

#[track_caller]
fn assert_whole(path: &Path, seconds: f64) {
    let mut reader = hound::WavReader::open(path).unwrap();
    let spec = reader.spec();
    let samples = reader.samples::<i16>().step_by(spec.channels.into());
    let samples: Vec<f32> = samples.map(|sample| f32::from(sample.unwrap()) / 32_768.0).collect();
    let heard = tone::listen(&samples, spec.sample_rate, 0.1);
    assert!((heard.frequency - 440.0).abs() < 0.2, "{heard:?}");
    assert!((heard.peak - 0.5).abs() < 0.01, "{heard:?}");
    assert!(heard.breaks.is_empty(), "{heard:?}");
    assert!((heard.lasting - seconds).abs() < 0.15, "{heard:?}");
}

/// Round trips are measured, and what comes back is the tone that was sent.
fn comes_back(transport: &str) {
    in_real_time(|| {
        let (folder, reflector) = (Folder::new(), Serving::reflector());
        let back = folder.path("back.wav");
        let options = SendOptions {
            to: Some(Place::File(back.clone())),
            transport: transport.parse().unwrap(),
            ..tone(reflector.address)
        };
        let sent = send(&options).unwrap_or_else(|error| panic!("{transport}: {error}"));
        let (counts, trip) = (sent.figures.counts, sent.figures.round_trip.expect("it came back"));
        assert_eq!((counts.lost, counts.late, counts.timed_out), (0, 0, 0), "{counts:?}");
        assert!(trip.delays.mean < Duration::from_millis(200), "{trip:?}");
        assert!(sent.figures.returns && sent.figures.stages.network.is_some());
        assert_whole(&back, 1.5);
        assert_eq!(reflector.end().len(), 1);
    });
}

#[test]
fn a_tone_comes_back_whole_over_udp() {
    comes_back("udp");
}

#[test]
fn a_tone_comes_back_whole_over_tcp() {
    comes_back("tcp");
}

#[test]
fn a_tone_comes_back_whole_over_sctp() {
    comes_back("sctp");
}

#[test]
fn a_tone_comes_back_whole_over_dccp() {
    comes_back("dccp");
}

#[test]
fn a_tone_is_recorded_by_a_receiver() {
    in_real_time(|| {
        let folder = Folder::new();
        let take = folder.path("take.wav");
        let options = ReceiveOptions { player: deep(), ..ReceiveOptions::new(Place::File(take.clone())) };
        let receiver = Serving::receiver(options);
        let sent = send(&tone(receiver.address)).unwrap();
        let ended = receiver.end();
        assert_whole(&take, 1.5);
        let [(Some(received), Some(why))] = ended.as_slice() else { panic!("{ended:?}") };
        assert!(why.contains("client has ended"), "{why}");
        assert_eq!(received.counts.lost, 0, "{received:?}");
        let network = received.stages.network.expect("the clocks are one");
        assert!(network < Duration::from_millis(200), "{received:?}");
        assert!(received.network_bound.is_some());
        // And so the sender knows it.
        assert_eq!(sent.figures.counts.lost, 0);
        assert!(sent.figures.stages.playout > Duration::from_millis(100), "{:?}", sent.figures);
    });
}

/// The time to fill blocks and to resample belongs to the sender's stage until the end, and not to the network's.
#[test]
fn stages_are_told_of_the_whole_session() {
    in_real_time(|| {
        let folder = Folder::new();
        let path = folder.path("noise.wav");
        noise(&path, 1, 16);
        let take = Place::File(folder.path("take.wav"));
        let receiver = Serving::receiver(ReceiveOptions { player: deep(), ..ReceiveOptions::new(take) });
        let options = SendOptions {
            from: Place::File(path),
            lasting: None,
            codec: trunkline_audio::pipeline::Codec::Pcmu,
            ..tone(receiver.address)
        };
        let sent = send(&options).unwrap();
        let ended = receiver.end();
        let [(Some(received), Some(_))] = ended.as_slice() else { panic!("{ended:?}") };
        let [ours, theirs] = [&sent.figures, received].map(|figures| figures.stages.block);
        assert!(ours > Duration::from_millis(2), "resampling takes time: {ours}");
        assert_eq!(ours, theirs);
    });
}

/// A file of noise that is no whole number of blocks long, and its samples as integers.
fn noise(path: &Path, channels: u16, bits: u32) -> Vec<i32> {
    use trunkline_audio::format::Encoding;

    let encoding = if bits == 16 { Encoding::I16 } else { Encoding::I24 };
    let full_scale = (1u32 << (bits - 1)) as f32;
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state as i32) >> (32 - bits)
    };
    let samples: Vec<i32> = (0..33_333 * u32::from(channels)).map(|_| random()).collect();
    let mut writer = trunkline_sound::file::Writer::create(path, channels, 44_100, encoding).unwrap();
    writer.write(&samples.iter().map(|sample| *sample as f32 / full_scale).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    samples
}

/// The samples of a file, as integers.
fn samples(path: &Path, bits: u32) -> Vec<i32> {
    let mut reader = trunkline_sound::file::Reader::open(path).unwrap();
    let mut samples = Vec::new();
    while reader.read(&mut samples).unwrap() {}
    samples.iter().map(|sample| (sample * (1u32 << (bits - 1)) as f32) as i32).collect()
}

#[test]
fn an_exact_recording_has_the_samples_that_were_sent() {
    use trunkline_audio::format::Encoding;
    use trunkline_audio::pipeline::Codec;

    for (take, transport, channels, bits) in
        [("take.wav", "tcp", 2, 24), ("take.flac", "tcp", 1, 16), ("take.wav", "udp", 3, 16)]
    {
        in_real_time(|| {
            let folder = Folder::new();
            let (from, to) = (folder.path("from.wav"), folder.path(take));
            let sent = noise(&from, channels, bits);
            let options = ReceiveOptions { exact: true, ..ReceiveOptions::new(Place::File(to.clone())) };
            let receiver = Serving::receiver(options);
            let figures = send(&SendOptions {
                from: Place::File(from),
                lasting: None,
                codec: Codec::Pcm(if bits == 16 { Encoding::I16 } else { Encoding::I24 }),
                transport: transport.parse().unwrap(),
                ..tone(receiver.address)
            })
            .unwrap()
            .figures;
            let ended = receiver.end();
            let [(Some(received), Some(why))] = ended.as_slice() else { panic!("{ended:?}") };
            assert!(why.contains("client has ended"), "{why}");
            assert!(samples(&to, bits) == sent, "{take} {transport} {received:?}");
            for counts in [figures.counts, received.counts] {
                assert_eq!((counts.lost, counts.concealed, counts.late), (0, 0, 0), "{counts:?}");
                assert!(counts.expected > 60, "{counts:?}");
            }
        });
    }
}

/// Audio packets have a checksum of their own, so that no transport has to detect changes.
const TRANSPORTS: [&str; 8] =
    ["udp", "tcp", "dccp", "sctp", "xtp", "quic", "{ kind = \"quic\", mode = \"streams\" }", "urp"];

#[test]
fn a_path_that_changes_packets_of_a_recording_stops_nothing_and_no_change_is_recorded() {
    let panics = panics_of(&["session", "network", "recording", "connect"]);
    thread::scope(|scope| {
        let all = TRANSPORTS.map(|transport| (transport, scope.spawn(move || changed_on_the_way(transport))));
        for (transport, one) in all {
            let summary = one.join();
            println!("{transport}: {}", summary.as_deref().unwrap_or("failed"));
            assert!(summary.is_ok(), "{transport}, with seed {}", seed());
        }
    });
    assert_eq!(panics(), 0, "with seed {} the same happens", seed());
}

/// Sends a file through a path that changes one packet in five, then another to the same receiver directly.
fn changed_on_the_way(transport: &str) -> String {
    let folder = Folder::new();
    let from = folder.path("from.wav");
    let sent = noise(&from, 1, 16);
    let options = ReceiveOptions { exact: true, ..ReceiveOptions::new(Place::File(folder.path("take.wav"))) };
    let receiver = Serving::receiver(options);
    let middle = Middle::start(receiver.address, [127, 0, 0, 9].into(), 5, seed()).unwrap();
    let options = |to, transport: &str| SendOptions {
        from: Place::File(from.clone()),
        lasting: None,
        transport: transport.parse().unwrap(),
        ..tone(to)
    };
    let began = now();
    // That a sender reports an error is what should happen.
    while send(&options(middle.address(), transport)).is_err() {
        assert!(now().since(began) < Duration::from_secs(60), "no session lasted");
    }
    let changed = middle.changed();
    drop(middle);
    let direct = options(receiver.address, "tcp");
    send(&direct).unwrap();
    let recordings = receiver.end().len();
    let files = (1..).map(|number| match number {
        1 => folder.path("take.wav"),
        _ => folder.path(&format!("take-{number}.wav")),
    });
    let files: Vec<_> = files.take_while(|path| path.exists()).collect();
    let block = direct.block_frames as usize;
    // The first blocks may be missing.
    let foreign = |path: &PathBuf| {
        let recorded = samples(path, 16);
        let at = |start: usize| {
            recorded.iter().zip(&sent[start..]).filter(|(one, other)| one != other && **one != 0).count()
        };
        (0..20).map(|blocks| at(blocks * block)).min().unwrap()
    };
    let foreign: Vec<usize> = files.iter().map(foreign).collect();
    let summary = format!("{changed} packets changed, {recordings} sessions, other samples {foreign:?}");
    assert!(changed > 2, "nothing was tested: {summary}");
    assert!(samples(files.last().unwrap(), 16) == sent, "a client that nobody disturbs: {summary}");
    assert_eq!(foreign.iter().sum::<usize>(), 0, "{summary}");
    let is_heard = |path: &PathBuf| samples(path, 16).iter().any(|sample| *sample != 0);
    assert!(files[..files.len() - 1].iter().any(is_heard), "nothing was recorded: {summary}");
    summary
}

/// An exact recording of 16 bits does not have the samples of a file of 24.
#[test]
fn a_file_of_more_bits_than_the_stream_is_told() {
    for (bits, is_told) in [(24, true), (16, false)] {
        in_real_time(|| {
            let folder = Folder::new();
            let from = folder.path("from.wav");
            noise(&from, 1, bits);
            let to = Place::File(folder.path("take.wav"));
            let receiver = Serving::receiver(ReceiveOptions { exact: true, ..ReceiveOptions::new(to) });
            let notes = Arc::clone(&receiver.notes);
            let transport = "tcp".parse().unwrap();
            let options =
                SendOptions { from: Place::File(from), lasting: None, transport, ..tone(receiver.address) };
            send(&options).unwrap();
            receiver.end();
            let told = notes.other.lock().unwrap().concat();
            assert_eq!(told.contains("have more bits than those of the stream"), is_told, "{told}");
        });
    }
}

/// A client of a receiver that was started again must not replace its earlier recordings, nor the target of a link.
#[test]
fn no_recording_replaces_an_earlier_one() {
    let folder = Folder::new();
    let [take, link, elsewhere] = ["take.wav", "take-2.wav", "elsewhere.wav"].map(|name| folder.path(name));
    std::fs::write(&take, "earlier").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    let receiver = Serving::receiver(ReceiveOptions::new(Place::File(take.clone())));
    let notes = Arc::clone(&receiver.notes);
    let one = SendOptions { lasting: Some(Duration::from_millis(200)), ..tone(receiver.address) };
    send(&one).unwrap();
    send(&one).unwrap();
    receiver.end();
    assert!(std::fs::read(&take).unwrap() == b"earlier", "it was replaced");
    assert!(!elsewhere.exists());
    for name in ["take-3.wav", "take-4.wav"] {
        assert!(hound::WavReader::open(folder.path(name)).unwrap().duration() > 0, "{name}");
    }
    let told = notes.other.lock().unwrap().concat();
    assert!(told.contains("take-3.wav") && !told.contains("take-4.wav"), "{told}");
}

#[test]
fn a_recording_ends_at_its_limit_and_the_next_is_refused() {
    let folder = Folder::new();
    let take = folder.path("take.wav");
    let recordings = RecordingLimits { bytes: Bytes(20_000), files: 1, ..RecordingLimits::default() };
    let options = ReceiveOptions { recordings, ..ReceiveOptions::new(Place::File(take.clone())) };
    let receiver = Serving::receiver(options);
    // Without an end of its own.
    let why = send(&SendOptions { lasting: None, ..tone(receiver.address) }).unwrap_err().to_string();
    assert!(why.contains("its recordings have reached their limit of 20 KB"), "{why}");
    assert!(!why.contains("--reconnect"), "it would come to the same: {why}");
    let why = send(&tone(receiver.address)).unwrap_err().to_string();
    assert!(why.contains("`--max-files` of `receive`"), "{why}");
    let ended = receiver.end();
    let [(Some(_), Some(why))] = ended.as_slice() else { panic!("{ended:?}") };
    assert!(why.contains("`--max-size` of `receive`"), "{why}");
    // What was recorded until then can be played.
    assert!(hound::WavReader::open(&take).unwrap().duration() > 0);
    assert!(!folder.path("take-2.wav").exists());
}

/// An exact recording that is cut off says what cut it off, not that the sender has not reported its end.
#[test]
fn an_exact_recording_that_ends_early_says_why() {
    let exact = |folder: &Folder, length| ReceiveOptions {
        exact: true,
        once: true,
        recordings: RecordingLimits { length, ..RecordingLimits::default() },
        ..ReceiveOptions::new(Place::File(folder.path("take.wav")))
    };
    let endless = |address| SendOptions { lasting: None, ..tone(address) };
    let folder = Folder::new();
    let mut receiver = Serving::receiver(exact(&folder, Duration::from_millis(500)));
    let why = send(&endless(receiver.address)).unwrap_err().to_string();
    assert!(why.contains("`--max-length` of `receive`"), "{why}");
    let why = receiver.thread.take().unwrap().join().unwrap().unwrap_err().to_string();
    assert!(why.contains("`--max-length` of `receive`"), "{why}");

    let folder = Folder::new();
    let mut receiver = Serving::receiver(exact(&folder, Duration::MAX));
    let address = receiver.address;
    let sender = thread::spawn(move || send(&endless(address)));
    while !folder.path("take.wav").exists() {
        thread::sleep(std::time::Duration::from_millis(10));
    }
    receiver.stop.stop();
    let why = receiver.thread.take().unwrap().join().unwrap().unwrap_err().to_string();
    assert!(why.contains("the receiver stopped before the sender had sent everything"), "{why}");
    assert!(sender.join().unwrap().is_err());
}

#[test]
fn what_cannot_be_recorded_exactly_is_refused() {
    use trunkline_audio::format::Encoding;
    use trunkline_audio::pipeline::Codec;

    let folder = Folder::new();
    let exact =
        |name: &str| ReceiveOptions { exact: true, ..ReceiveOptions::new(Place::File(folder.path(name))) };
    for (name, codec, why) in [
        ("take.wav", Codec::Pcmu, "which a lossy codec cannot carry"),
        ("take.flac", Codec::Pcm(Encoding::F32), "has no floating-point samples"),
    ] {
        let receiver = Serving::receiver(exact(name));
        let refused = send(&SendOptions { codec, ..tone(receiver.address) }).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let options = ReceiveOptions { exact: true, ..ReceiveOptions::new(Place::None) };
    let stop = Stop::new().unwrap();
    let refused = program::receive(options, &stop, &Notes::default(), |_| {}).unwrap_err();
    assert!(
        refused.to_string().contains("`--exact` records to a file, but `none` is not a file"),
        "{refused}"
    );
    assert!(refused.is_bad_input());
}

/// The device plays on when the file has ended.
#[test]
fn what_is_played_after_the_last_block_is_not_concealed() {
    in_real_time(|| {
        let (folder, reflector) = (Folder::new(), Serving::reflector());
        let take = folder.path("take.wav");
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: 44_100,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::create(&take, spec).unwrap();
        (0..22_050).for_each(|_| writer.write_sample(0i16).unwrap());
        writer.finalize().unwrap();
        let player =
            PlayerSettings { depth: Depth::Fixed(Duration::from_millis(60)), ..PlayerSettings::default() };
        let from = Place::File(take);
        let options =
            SendOptions { from, to: Some(Place::None), lasting: None, player, ..tone(reflector.address) };
        let counts = send(&options).unwrap().figures.counts;
        assert_eq!((counts.lost, counts.late, counts.concealed), (0, 0, 0), "{counts:?}");
    });
}

#[test]
fn both_ends_know_in_the_end_what_became_of_every_part() {
    in_real_time(|| {
        let receiver =
            Serving::receiver(ReceiveOptions { player: deep(), ..ReceiveOptions::new(Place::None) });
        let packing = Packing { per_channel: true, ..Packing::default() };
        let options =
            SendOptions { channels: 8, lasting: None, blocks: Some(40), packing, ..tone(receiver.address) };
        let sent = send(&options).unwrap().figures.counts;
        let ended = receiver.end();
        let [(Some(received), _)] = ended.as_slice() else { panic!("{ended:?}") };
        for counts in [sent, received.counts] {
            assert_eq!((counts.received, counts.expected, counts.lost), (320, 320, 0), "{counts:?}");
        }
    });
}

#[test]
fn a_sender_that_follows_at_once_is_played_too() {
    let receiver = Serving::receiver(ReceiveOptions { player: deep(), ..ReceiveOptions::new(Place::None) });
    let options = SendOptions { lasting: None, blocks: Some(10), ..tone(receiver.address) };
    for _ in 0..2 {
        send(&options).unwrap();
    }
    assert_eq!(receiver.end().len(), 2);
}

#[test]
fn who_measures_only_plays_nothing() {
    in_real_time(|| {
        let reflector = Serving::reflector();
        let options = SendOptions { lasting: None, blocks: Some(20), ..tone(reflector.address) };
        let counts = send(&options).unwrap().figures.counts;
        assert_eq!((counts.expected, counts.lost), (40, 0), "20 blocks of two channels: {counts:?}");
        assert_eq!(counts.late + counts.concealed, 0);
    });
}

#[test]
fn a_sender_that_is_stopped_tells_how_it_went() {
    in_real_time(|| {
        let reflector = Serving::reflector();
        let options = SendOptions { lasting: None, ..tone(reflector.address) };
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let later = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_millis(500));
            stopping.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let sent = program::send(&options, &stop, &Notes::default()).unwrap();
        later.join().unwrap();
        assert!(sent.stopped && sent.figures.counts.expected > 0, "{sent:?}");
    });
}

#[test]
fn a_sender_that_is_stopped_does_not_wait_for_a_server_that_says_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stop = AtomicBool::new(false);
    let options = tone(silent.local_addr().unwrap());
    thread::scope(|scope| {
        let sending = scope.spawn(|| program::send(&options, &stop, &Notes::default()));
        let _connection = silent.accept().unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(sending.join().unwrap().unwrap().stopped);
    });
}

#[test]
fn a_reflector_that_ends_is_told() {
    let reflector = Serving::reflector();
    let options = SendOptions { lasting: Some(Duration::from_secs(60)), ..tone(reflector.address) };
    let sending = thread::spawn(move || send(&options).unwrap_err().to_string());
    until(|| !reflector.notes.other.lock().unwrap().is_empty());
    reflector.end();
    assert_eq!(sending.join().unwrap(), "the server is being stopped; `--reconnect` keeps trying");
}

#[test]
fn who_reconnects_goes_on_with_the_next_reflector() {
    in_real_time(|| {
        let first = Serving::reflector();
        let address = first.address;
        let options = SendOptions { lasting: None, reconnect: true, ..tone(address) };
        let (stop, notes) = (Arc::new(AtomicBool::new(false)), Arc::new(Notes::default()));
        let (stopping, noted) = (Arc::clone(&stop), Arc::clone(&notes));
        let sending = thread::spawn(move || program::send(&options, &stopping, &*noted));
        let sessions = || notes.other.lock().unwrap().iter().filter(|note| note.starts_with("Began")).count();
        until(|| sessions() == 1);
        first.end();
        let second = Serving::start(move |options, stop, notes, ready| {
            program::reflect(ServerOptions { address, ..options }, stop, notes, ready)
        });
        until(|| sessions() == 2);
        thread::sleep(std::time::Duration::from_millis(300));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let sent = sending.join().unwrap().unwrap();
        assert!(sent.figures.counts.expected > 0 && sent.figures.counts.lost == 0, "{sent:?}");
        assert!(notes.other.lock().unwrap().iter().any(|note| note.contains("Retrying")));
        assert_eq!(second.end().len(), 1);
    });
}

#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not within a minute");
}

#[test]
fn what_a_receiver_cannot_play_is_refused_at_both_ends() {
    let options = ReceiveOptions { channels: Some(2), ..ReceiveOptions::new(Place::None) };
    let receiver = Serving::receiver(options);
    let error = send(&SendOptions { channels: 3, ..tone(receiver.address) }).unwrap_err().to_string();
    assert!(error.contains("it plays 2 channels, but the stream has 3"), "{error}");
    // With `mix` it is played.
    drop(receiver);
    let options = ReceiveOptions { channels: Some(2), mix: true, ..ReceiveOptions::new(Place::None) };
    let receiver = Serving::receiver(options);
    let sent = send(&SendOptions { channels: 3, ..tone(receiver.address) }).unwrap();
    assert_eq!(sent.figures.counts.lost, 0, "{sent:?}");
}

/// Random bytes over a session of its own, as fast as it can, and as many lines that say nothing to the control port.
#[test]
fn a_hostile_sender_does_not_disturb_another() {
    in_real_time(|| {
        let folder = Folder::new();
        let take = folder.path("take.wav");
        let options =
            ReceiveOptions { player: deep(), senders: 2, ..ReceiveOptions::new(Place::File(take.clone())) };
        let receiver = Serving::receiver(options);
        let address = receiver.address;
        let good = thread::spawn(move || send(&tone(address)));
        until(|| !receiver.notes.other.lock().unwrap().is_empty());
        let flood = thread::spawn(move || flood(address));
        let sent = good.join().unwrap().unwrap();
        flood.join().unwrap();
        assert_eq!(sent.figures.counts.lost, 0, "{sent:?}");
        let ended = receiver.end();
        assert!(
            ended.iter().any(|(figures, _)| figures.as_ref().is_some_and(|f| f.counts.strange > 100)),
            "{ended:?}"
        );
        assert_whole(&take, 1.5);
    });
}

fn flood(address: SocketAddr) {
    use std::io::Write as _;
    let mut request = Request::new(Role::Play, "udp".parse().unwrap());
    request.stream = Some(Stream::default());
    let mut session = Client::default().connect(&address.to_string(), request).unwrap();
    let (began, mut random) = (now(), 1u64);
    let mut packet = [0; 600];
    while now().since(began) < Duration::from_secs(1) {
        for _ in 0..20 {
            for byte in &mut packet {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (random >> 56) as u8;
            }
            // What is not taken is no matter.
            let _ = session.send(now(), &packet[..(random >> 20) as usize % 600]);
        }
        session.turn(now(), &mut |_, _| {}).unwrap();
        if let Ok(mut stranger) = std::net::TcpStream::connect(address) {
            let _ = stranger.write_all(&packet);
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_reflector_tells_of_every_session() {
    let reflector = Serving::reflector();
    let request = Request::new(Role::Echo, "udp".parse().unwrap());
    drop(Client::default().connect(&reflector.address.to_string(), request).unwrap());
    until(|| reflector.notes.ended.lock().unwrap().len() == 1);
    assert_eq!(reflector.notes.other.lock().unwrap().len(), 1);
}
