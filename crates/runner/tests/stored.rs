//! From an experiment to what is stored: summaries against the traces they come from.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Files, FilesError, Progress, Supervisor};
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_metrics::Fate;
use trunkline_metrics::summary::Counts;
use trunkline_runner::{ChannelSound, GrowingRun, Hear, KernelMeans, Observer, Plan, Request, channel_sound};
use trunkline_store::{Backend, Imported, Status, Store, StoredRun, read_trace};

struct Silent;

struct Onward;

impl Supervisor for Onward {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}

impl Observer for Silent {
    fn planned(&self, _: &Plan) {}
    fn advanced(&self, _: Duration) {}
    fn repetition_done(&self) {}
    fn point_done(&self) {}
    fn warning(&self, message: &str) {
        panic!("unexpected: {message}");
    }
}

fn request<'r>(experiment: &'r Experiment, file: &'r Path, live: &'r LiveOptions) -> Request<'r> {
    Request {
        experiment,
        file,
        backend: Backend::Sim,
        jobs: 2,
        live,
        wire: None,
        hear: Hear::nothing(),
        tap: None,
        kernels: None,
        fleet: None,
    }
}

fn stored(text: &str) -> (tempfile::TempDir, StoredRun) {
    stored_and_heard(text, Hear::nothing())
}

fn stored_and_heard(text: &str, hear: &Hear) -> (tempfile::TempDir, StoredRun) {
    let experiment =
        Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = Store::open(folder.path()).expect("a store can be made");
    let live = LiveOptions::new(FarEnd::Thread);
    let file = folder.path().join("test.toml");
    let request = Request { hear, ..request(&experiment, &file, &live) };
    let outcome = trunkline_runner::run(&store, request, &Silent, &AtomicBool::new(false)).expect("it runs");
    assert_eq!(outcome.run.status, Status::Complete);
    let run = store.run(outcome.run.id).expect("the run is there");
    (folder, run)
}

/// A wrong kernel is the user's to mend (exit code 2), and what the system does not do is not (1).
#[test]
#[cfg(target_os = "linux")]
fn a_kernel_that_does_not_start_is_bad_input_or_the_environments_fault() {
    for (kernel, is_bad_input) in [("/bin/true", true), ("/nowhere/linux", false)] {
        let text = format!(
            "name = \"kernels\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\nc = {{ kernel = \"{kernel}\" }}\n\
             [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n[link.other]\nbetween = [\"b\", \"c\"]\nrate = \"1 Mbit/s\"\n\
             [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\" }}\n"
        );
        let experiment =
            Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
        let live = LiveOptions::new(FarEnd::Thread);
        let init = Path::new("/bin/true");
        let file = Path::new("test.toml");
        let means = KernelMeans { init: init.to_path_buf(), folder: None };
        let request = Request { kernels: Some(&means), ..request(&experiment, file, &live) };
        let point = experiment.points.first();
        let failed = trunkline_runner::drive(request, point, Seed::new(1, 0), &mut (), &mut Onward);
        let failed = failed.expect_err("it is not a kernel");
        assert_eq!(failed.is_bad_input(), is_bad_input, "{failed}");
        let spaced = KernelMeans { init: "/a b/trunkline".into(), ..means.clone() };
        let spaced = Request { kernels: Some(&spaced), ..request };
        let refused = trunkline_runner::precheck(&spaced).expect_err("a parameter has no space").to_string();
        assert!(refused.contains("6:16: a kernel cannot start `/a b/trunkline`"), "{refused}");
    }
}

/// The server, plans, studies and advice do not name the first process: a file must not start programs there.
#[test]
#[cfg(target_os = "linux")]
fn kernels_start_only_where_their_first_process_is_named() {
    let text = "name = \"kernels\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\nc = { kernel = \"/bin/true\", run = \"true\" }\n\
                [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
                [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\" }\n";
    let experiment =
        Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let live = LiveOptions::new(FarEnd::Thread);
    let request = request(&experiment, Path::new("test.toml"), &live);
    let refused =
        trunkline_runner::precheck(&request).expect_err("nobody names the first process").to_string();
    assert!(
        refused.contains("test.toml:6:16: only `trunkline run` starts hosts with a `kernel`"),
        "{refused}"
    );
    let outcome =
        trunkline_runner::drive(request, experiment.points.first(), Seed::new(1, 0), &mut (), &mut Onward);
    let refused = outcome.expect_err("there is nobody to start them").to_string();
    assert!(refused.contains("host `c` is a kernel (`kernel`)"), "{refused}");
}

#[test]
fn percentiles_of_a_long_trace_are_exact() {
    // More messages than are kept in memory, delayed by a distribution without gaps.
    let (_folder, run) = stored(
        "name = \"long\"\nduration = \"12 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
         rate = \"100 Mbit/s\"\njitter = { kind = \"exponential\", mean = \"5 ms\" }\nduplicate = \"1 %\"\nloss = \"1 %\"\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\" }\nchannels = 64\n",
    );
    let repetition = &run.points[0].repetitions[0];
    let summary = repetition.summary.as_ref().expect("a summary was made");
    let flow = &summary.flows[0];
    let mut latencies = Vec::new();
    let mut fates = [0u64; 5];
    read_trace(&repetition.traces[0].1, &mut |record| {
        fates[record.fate as usize] += 1;
        if let (Some(sent), Some(received), false) =
            (record.sent, record.received, record.fate == Fate::Duplicate)
        {
            latencies.push(received.since(sent));
        }
    })
    .expect("the trace can be read");
    assert!(latencies.len() > 70_000, "{}", latencies.len());
    latencies.sort_unstable();
    let latency = flow.latency.expect("messages were received");
    assert!(latency.exact);
    // Nearest rank: the smallest value that at least so many per mille do not exceed.
    for (per_mille, stated) in
        [(500, latency.p50), (900, latency.p90), (990, latency.p99), (999, latency.p999)]
    {
        let rank = (latencies.len() * per_mille).div_ceil(1000);
        assert_eq!(stated, latencies[rank - 1], "{per_mille} per mille");
    }
    assert_eq!((latency.min, latency.max), (latencies[0], latencies[latencies.len() - 1]));
    let counts = flow.counts;
    assert_eq!(fates, [counts.received, counts.late, counts.lost, counts.duplicate, counts.refused]);
}

/// The reconstructed sound equals the received files, message by message.
#[test]
fn the_sound_of_a_channel_is_that_of_the_received_files() {
    let text = "name = \"sound\"\nduration = \"4 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
                rate = \"10 Mbit/s\"\nloss = \"5 %\"\njitter = { kind = \"exponential\", mean = \"8 ms\" }\n\
                [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\ncount = 2\nchannels = 2\naudio = true\n\
                playout = \"10 ms\"\nsource = { kind = \"voice\", samples = 80, talk = \"500 ms\", silence = \"300 ms\" }\n";
    let (_folder, run) = stored(text);
    let experiment =
        Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let one = &run.points[0].repetitions[0];
    let sound = |channel: (u32, u16)| {
        let (scenario, seed) = (&experiment.points.first().scenario, Seed::new(run.info.seed, 0));
        channel_sound(scenario, 0, channel, seed, &one.traces[0].1, None).expect("the trace can be read")
    };
    for (member, channel) in [(0, 0), (1, 1)] {
        let sound = sound((member, channel)).expect("it is voice");
        let name = format!("voice-{member}-{channel}.wav");
        let file = one.audio.iter().find(|path| path.ends_with(&name)).expect("it was received");
        let bytes = std::fs::read(file).expect("the file can be read");
        let received: Vec<i16> =
            bytes[44..].as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
        let pcm =
            |samples: &[f32]| samples.iter().map(|sample| (sample * 32_768.0) as i16).collect::<Vec<_>>();
        let (sent, heard) = (pcm(&sound.sent), pcm(&sound.heard));
        assert_eq!((sent.len(), heard.len()), (80 * sound.fates.len(), sent.len()));
        let mut same = 0;
        for (place, fate) in sound.fates.iter().enumerate() {
            let message = place * 80..place * 80 + 80;
            assert_eq!(sound.places[place], message);
            match fate {
                Fate::Lost => assert!(received[message.clone()].iter().all(|sample| *sample == 0)),
                _ => assert_eq!(received[message.clone()], sent[message.clone()], "{place}: {fate:?}"),
            }
            same += usize::from(heard[message.clone()] == sent[message]);
        }
        let count = |wanted: Fate| sound.fates.iter().filter(|fate| **fate == wanted).count();
        assert!(count(Fate::Lost) > 2 && count(Fate::Late) > 2, "{:?}", sound.fates);
        // What follows a loss is mixed with its concealment.
        assert!(same > sound.fates.len() / 2 && same <= count(Fate::Received), "{same} of {:?}", sound.fates);
    }
    assert!(sound((2, 0)).is_none() && sound((0, 2)).is_none());
}

/// The samples of a WAV file of one channel.
fn samples_of(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("the file can be read");
    let pairs = bytes[44..].as_chunks::<2>().0;
    pairs.iter().map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32_768.0).collect()
}

/// Runs an experiment with one flow `voice` from a to b and `--hear`, and returns its reconstructed sound, and what `--hear`
/// wrote from the received payloads.
fn heard_both_ways(link: &str, flow: &str) -> (ChannelSound, Vec<f32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "name = \"sound\"\nduration = \"6 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n{link}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\n{flow}\n\
         [flow.burst]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nstart = \"2 s\"\n\
         source = {{ kind = \"bulk\", message = \"1000 B\", interval = \"10 us\", bytes = \"60 KB\" }}\n"
    );
    let wav = folder.path().join("heard.wav");
    let sound = format!("flow.voice.1.1={}", wav.display()).parse().expect("it is a channel");
    let hear = Hear { sounds: vec![sound], conceal: None };
    let (_store, run) = stored_and_heard(&text, &hear);
    let experiment =
        Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let (scenario, seed) = (&experiment.points.first().scenario, Seed::new(run.info.seed, 0));
    let trace =
        &run.points[0].repetitions[0].traces.iter().find(|(flow, _)| flow == "voice").expect("a trace").1;
    let sound = channel_sound(scenario, 0, (0, 0), seed, trace, None).expect("the trace can be read");
    (sound.expect("it is audio"), samples_of(&wav))
}

/// Of `--hear`, whose file begins with the run, what begins with the sound.
fn same_but_for_the_delay(sound: &ChannelSound, heard: &[f32]) -> usize {
    let first = heard.iter().position(|sample| *sample != 0.0).expect("something is heard");
    let own = sound.heard.iter().position(|sample| *sample != 0.0).expect("something is heard");
    let delay = first - own;
    let length = sound.heard.len().min(heard.len() - delay);
    let differs = (0..length).find(|at| (sound.heard[*at] - heard[delay + at]).abs() > 1.0 / 32_768.0);
    assert_eq!(differs, None, "of {length} samples");
    assert!(length + 8_000 > sound.heard.len(), "{length} of {}", sound.heard.len());
    delay
}

const TRUNK: &str = "rate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nqueue = { kind = \"fifo\", limit = \"1 MB\" }";

#[test]
fn what_a_playback_plays_is_heard_in_step_with_what_was_sent() {
    // The burst blocks the trunk for half a second, and the reserve is 100 ms.
    let flow = "transport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n\
                playback = { kind = \"fifo\", depth = 2000, fill = 800 }";
    let (sound, heard) = heard_both_ways(TRUNK, flow);
    let delay = same_but_for_the_delay(&sound, &heard);
    // Its transmission, and the reserve, which is complete with the tenth message.
    assert!((90 * 8..120 * 8).contains(&delay), "{delay}");
    assert_eq!(sound.sent[..15_000], sound.heard[..15_000]);
    assert!(!sound.late.is_empty() && sound.late.iter().all(|gap| gap.start > 15_000), "{:?}", sound.late);
    assert!(!sound.lost.is_empty(), "the burst of late messages finds no room: {:?}", sound.fates.len());
    // A reserve of 240 ms has fewer gaps.
    let gaps = |sound: &ChannelSound| sound.late.iter().map(|gap| gap.len()).sum::<usize>();
    let patient = sound.with_playout(Duration::from_millis(240));
    assert!(gaps(&patient) < gaps(&sound), "{} and {}", gaps(&patient), gaps(&sound));
    assert_eq!(sound.with_playout(Duration::from_millis(100)).heard, sound.heard);
}

#[test]
fn what_an_a_d_fifo_captures_is_heard_message_by_message() {
    // TCP's window stops the sender during the burst, so that samples accumulate, and some find no room.
    let flow = "transport = { kind = \"tcp\", window = \"4 KiB\", nodelay = true }\nchannels = 4\n\
                source = { kind = \"voice\", samples = 80, fifo = 800, largest = 400 }\n\
                playback = { kind = \"fifo\", depth = 2000, fill = 800 }";
    let (sound, heard) = heard_both_ways(TRUNK, flow);
    same_but_for_the_delay(&sound, &heard);
    let lengths: BTreeSet<usize> = sound.places.iter().map(|place| place.len()).collect();
    assert!(lengths.contains(&80) && lengths.iter().any(|length| *length > 80), "{lengths:?}");
    assert!(!sound.lost.is_empty() && !sound.late.is_empty(), "{:?}, {:?}", sound.lost, sound.late);
    // What found no room is a gap of both, so that they are in step again at the end.
    let (end, shift) = (sound.sent.len() - 8_000, 4_000);
    let alike = |lag: usize| {
        let pairs = sound.sent[end - shift..end].iter().zip(&sound.heard[end - shift + lag..]);
        pairs.filter(|(sent, heard)| (**sent - **heard).abs() < 1e-4).count()
    };
    let best = (0..2_000).max_by_key(|lag| alike(*lag)).expect("a lag");
    assert!(alike(best) > shift * 9 / 10, "{} of {shift} at {best}", alike(best));
}

#[test]
fn pauses_of_a_speaker_behind_a_playback_are_kept() {
    let flow = "transport = \"udp\"\nsource = { kind = \"voice\", samples = 80, talk = \"500 ms\", silence = \"300 ms\" }\n\
                playback = { kind = \"fifo\", depth = 2000, fill = 800 }";
    let (sound, heard) = heard_both_ways(TRUNK, flow);
    same_but_for_the_delay(&sound, &heard);
    let pauses = sound.places.windows(2).filter(|pair| pair[1].start > pair[0].end + 800).count();
    assert!(pauses > 2, "{pauses} pauses");
}

#[test]
fn blocks_of_a_sound_card_that_differ_in_length_have_sound() {
    let flow = "transport = \"udp\"\nsource = { kind = \"audio\", signal = \"tones\" }\nplayout = \"20 ms\"";
    let (sound, heard) = heard_both_ways("rate = \"2 Mbit/s\"\nloss = \"3 %\"", flow);
    same_but_for_the_delay(&sound, &heard);
    let lengths: BTreeSet<usize> = sound.places.iter().map(|place| place.len()).collect();
    assert_eq!((sound.sample_rate, lengths), (44_100, BTreeSet::from([470, 471])));
    assert!(sound.fates.contains(&Fate::Lost) && sound.lost.iter().all(|piece| piece.len() >= 470));
}

#[test]
fn members_of_a_flow_that_is_made_for_several_hosts_have_their_own_sound() {
    let text = "name = \"phones\"\nduration = \"2 s\"\n[hosts]\nphone = { count = 2 }\nb = {}\n[link.trunk]\n\
                between = [\"phone\", \"b\"]\nrate = \"10 Mbit/s\"\n[flow.voice]\nfrom = \"phone\"\nto = \"b\"\n\
                transport = \"udp\"\ncount = 2\naudio = true\nsource = { kind = \"voice\", samples = 80, phase = \"random\" }\n";
    let (_folder, run) = stored(text);
    let experiment =
        Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let (scenario, seed) = (&experiment.points.first().scenario, Seed::new(run.info.seed, 0));
    let one = &run.points[0].repetitions[0];
    for member in 0..4 {
        let sound = channel_sound(scenario, 0, (member, 0), seed, &one.traces[0].1, None);
        let sound = sound.expect("the trace can be read").expect("it is voice");
        let file = one.audio.iter().find(|path| path.ends_with(format!("voice-{member}-0.wav")));
        let bytes = std::fs::read(file.expect("it was received")).expect("the file can be read");
        let sent: Vec<u8> =
            sound.sent.iter().flat_map(|sample| ((sample * 32_768.0) as i16).to_le_bytes()).collect();
        assert!(sent.len() > 30_000 && sent == bytes[44..], "member {member}");
    }
}

#[test]
fn what_a_flow_counts_its_parts_by_host_count_too() {
    // The line drops, and its queue of half a second is full at the end: what waits in it is unfinished, not lost.
    let text = "name = \"phones\"\nduration = \"2 s\"\ndrain = \"0 s\"\n[hosts]\nphone = { count = 3 }\nb = {}\n[link.trunk]\n\
                between = [\"phone\", \"b\"]\nrate = \"100 kbit/s\"\nqueue = { kind = \"fifo\", limit = \"60 packets\" }\n\
                [flow.voice]\nfrom = \"phone\"\nto = \"b\"\ntransport = \"udp\"\ncount = 2\n\
                source = { kind = \"voice\", samples = 80, phase = \"random\" }\n";
    let (_folder, run) = stored(text);
    let flow = &run.points[0].repetitions[0].summary.as_ref().expect("a summary").flows[0];
    let sum = |count: fn(&Counts) -> u64| flow.each.iter().map(|each| count(&each.counts)).sum::<u64>();
    assert_eq!(flow.each.len(), 3);
    assert!(flow.counts.lost > 0 && flow.counts.unfinished > 0, "{:?}", flow.counts);
    assert_eq!(
        [flow.counts.lost, flow.counts.unfinished, flow.counts.received],
        [sum(|c| c.lost), sum(|c| c.unfinished), sum(|c| c.received)]
    );
}

#[test]
fn the_sound_of_a_long_run_is_that_of_its_first_ten_minutes() {
    let text = "name = \"long\"\nduration = \"603 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
                rate = \"10 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                source = { kind = \"voice\", samples = 80 }\n";
    let (_folder, run) = stored(text);
    let experiment =
        Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let (scenario, seed) = (&experiment.points.first().scenario, Seed::new(run.info.seed, 0));
    let trace = &run.points[0].repetitions[0].traces[0].1;
    let sound = channel_sound(scenario, 0, (0, 0), seed, trace, None).expect("the trace can be read");
    assert_eq!(sound.map(|sound| (sound.fates.len(), sound.sent.len())), Some((60_000, 600 * 8_000)));
}

#[test]
fn points_and_repetitions_are_all_measured_and_repetitions_differ() {
    let (_folder, run) = stored(
        "name = \"sweep\"\nduration = \"2 s\"\nrepetitions = 3\n[hosts]\na = {}\nb = {}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\nloss = \"10 %\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
         transport = \"udp\"\nsource = { kind = \"voice\" }\n[sweep]\n\"flow.voice.channels\" = [1, 2]\n\
         \"link.trunk.delay\" = [\"1 ms\", \"5 ms\"]\n",
    );
    assert_eq!(run.points.len(), 4);
    let lost = |point: usize, repetition: usize| {
        run.points[point].repetitions[repetition].summary.as_ref().expect("a summary").flows[0].counts.lost
    };
    for point in &run.points {
        assert_eq!(point.repetitions.len(), 3);
    }
    // Common random numbers: the delay does not change which packets are lost, another repetition does.
    assert_eq!([0, 1, 2].map(|r| lost(0, r)), [0, 1, 2].map(|r| lost(1, r)));
    assert!(lost(0, 0) != lost(0, 1) || lost(0, 1) != lost(0, 2));
}

#[test]
fn a_run_that_grows_is_at_any_moment_an_ordinary_one() {
    let text = |channels: &str| {
        format!(
            "name = \"grows\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
             rate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
             source = {{ kind = \"voice\" }}\n[sweep]\n\"flow.voice.channels\" = [{channels}]\n"
        )
    };
    let experiments = ["4", "1, 4", "1, 2, 4"].map(|channels| {
        Experiment::parse(&text(channels), "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"))
    });
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let store = Store::open(folder.path()).expect("a store can be made");
    let live = LiveOptions::new(FarEnd::Thread);
    let file = folder.path().join("test.toml");
    let request = |experiment| request(experiment, &file, &live);
    let stop = AtomicBool::new(false);

    let mut run = GrowingRun::begin(&store, &request(&experiments[0])).expect("it begins");
    for (experiment, wanted) in
        experiments.iter().zip([vec![(0, 0), (0, 1)], vec![(0, 0)], vec![(1, 0), (0, 1)]])
    {
        let channels = |summary: &trunkline_metrics::RepetitionSummary, _| summary.flows[0].channels;
        let kept =
            run.measure(request(experiment), "grows", &wanted, channels, &Silent, &stop).expect("it runs");
        let asked = |point: usize| u32::from(experiment.points.at(point).scenario.flows[0].meta.channels);
        assert_eq!(kept, wanted.iter().map(|(point, _)| Some(asked(*point))).collect::<Vec<_>>());
    }
    let id = run.finish(Status::Partial).expect("it ends").id;

    let stored = store.run(id).expect("the run is there");
    let measured: Vec<_> =
        stored.points.iter().map(|p| (p.index, p.choice.clone(), p.repetitions.len())).collect();
    assert_eq!(measured, [(1, vec![0], 2), (2, vec![1], 1), (0, vec![2], 2)], "in the product's order");
    assert_eq!((stored.text.as_str(), stored.info.repetitions), (text("1, 2, 4").as_str(), 2));

    // What it lacks is measured at the right points.
    let outcome =
        trunkline_runner::resume(&store, id, request(&experiments[2]), &Silent, &stop).expect("it resumes");
    assert_eq!(outcome.run.status, Status::Complete);
    for (point, channels) in store.run(id).expect("the run is there").points.iter().zip([1, 2, 4]) {
        let summaries = point.repetitions.iter().filter_map(|repetition| repetition.summary.as_ref());
        let found: Vec<u32> = summaries.map(|summary| summary.flows[0].channels).collect();
        assert_eq!(found, [channels; 2]);
    }
}

/// What was on a disk once.
struct Once(&'static str, Vec<u8>);

impl Files for Once {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        match path == self.0 {
            true => Ok(self.1.clone()),
            false => Err(FilesError::new("does not exist")),
        }
    }
}

#[test]
fn what_an_experiment_names_is_kept_with_its_run_wherever_that_goes() {
    let text = "name = \"trace\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
                medium = \"trace\"\nfile = \"../networks/trace\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                source = { kind = \"voice\" }\n";
    let once = Once("../networks/trace", b"5\n10\n".to_vec());
    let experiment =
        Experiment::parse(text, "test.toml", &once).unwrap_or_else(|problems| panic!("{problems}"));
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    let (here, there) = (place.path().join("here"), place.path().join("there"));
    let (here, there) = (Store::open(&here).expect("a store"), Store::open(&there).expect("a store"));
    let live = LiveOptions::new(FarEnd::Thread);
    let file = place.path().join("test.toml");
    let stop = AtomicBool::new(true);
    let request = request(&experiment, &file, &live);
    let partial = trunkline_runner::run(&here, request, &Silent, &stop).expect("it begins").run;
    assert_eq!(partial.status, Status::Partial);

    let mut archive = Vec::new();
    here.export(partial.id, &mut archive).expect("it is exported");
    here.remove(partial.id).expect("it is removed");
    let Imported::New(id) = there.import(archive.as_slice()).expect("it is imported") else {
        panic!("it is new");
    };
    let run = there.run(id).expect("the run is there");
    let again = trunkline_runner::stored(&there, &run, "test.toml", &()).unwrap_or_else(|p| panic!("{p}"));
    assert_eq!(again.files, experiment.files);
    let name = |path: &str| again.files.read(path).map(drop).map_err(|error| error.to_string());
    assert_eq!(name("../networks/trace"), Ok(()));
    assert!(name("trace").is_err());
}
