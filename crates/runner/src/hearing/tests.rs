use std::path::Path;

use trunkline_audio::conceal::Method;
use trunkline_core::{Duration, Time};
use trunkline_experiment::Experiment;
use trunkline_metrics::{Fate, PlaybackFifo, Record, VoicePath};
use trunkline_traffic::{AudioFormat, Coding};

use super::payloads::Payloads;
use super::track::{Playing, Track};
use super::*;

const PCM: AudioFormat =
    AudioFormat { sample_rate: 8_000, coding: Coding::Pcm { bytes: 2 }, is_silent: false };
const LOUD: u8 = 0x20;

/// What became of a message of 10 ms that is due at `due` ms.
fn record(sequence: u32, due: u64, received: Option<u64>, fate: Fate) -> Record {
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    Record {
        member: 0,
        channel: 0,
        sequence,
        due: at(due),
        sent: Some(at(due)),
        received: received.map(at),
        reflected: None,
        payload: 160,
        fate,
    }
}

fn played(playing: Playing, format: AudioFormat, records: &[Record]) -> Track {
    let mut payloads = Payloads::default();
    for record in records.iter().filter(|record| record.received.is_some()) {
        let bytes = record.payload as usize;
        payloads.keep(record.sequence, &vec![LOUD; bytes]);
    }
    let mut track = Track::new(format, Method::Silence, 80);
    track.play(playing, records, &payloads);
    track
}

/// The milliseconds in which something loud is played throughout, as runs from one to the other.
fn loud(track: &Track) -> Vec<(usize, usize)> {
    let is_loud: Vec<bool> = track.samples.chunks(8).map(|ms| ms.iter().all(|s| s.abs() > 0.2)).collect();
    let edges = (0..=is_loud.len()).filter(|&ms| {
        let at = |ms: Option<usize>| ms.and_then(|ms| is_loud.get(ms)).copied().unwrap_or(false);
        at(ms.checked_sub(1)) != at(Some(ms))
    });
    edges.collect::<Vec<_>>().chunks(2).map(|run| (run[0], run[1])).collect()
}

const DEADLINES: Playing = Playing { playout: Some(Duration::from_millis(40)), path: None, pauses: false };

#[test]
fn lost_late_and_refused_messages_are_concealed_where_they_were_due() {
    let records = [
        record(0, 100, Some(120), Fate::Received),
        record(1, 110, None, Fate::Refused),
        record(3, 130, Some(190), Fate::Received),
        record(3, 130, Some(195), Fate::Duplicate),
        record(2, 120, Some(191), Fate::Late),
        record(5, 150, Some(200), Fate::Received),
        record(4, 140, None, Fate::Lost),
    ];
    let track = played(DEADLINES, PCM, &records);
    // The first arrived at 120 ms, and is played 40 ms later. What follows a loss fades in.
    assert_eq!(loud(&track), [(160, 170), (194, 200), (211, 220)]);
    assert_eq!((track.received, track.concealed, track.samples.len()), (3 * 80, 3 * 80, 220 * 8));
}

#[test]
fn without_a_playout_only_what_was_lost_is_missing() {
    let records = [
        record(0, 0, Some(20), Fate::Received),
        record(2, 20, Some(90), Fate::Received),
        record(1, 10, None, Fate::Lost),
    ];
    let track = played(Playing { playout: None, ..DEADLINES }, PCM, &records);
    assert_eq!(loud(&track), [(70, 80), (91, 100)], "all is played 70 ms after it was due");
    assert_eq!(track.concealed, 80);
}

#[test]
fn a_message_given_up_that_comes_after_all_is_heard() {
    let records = [
        record(0, 0, Some(20), Fate::Received),
        record(1, 10, None, Fate::Lost),
        record(1, 10, Some(50), Fate::Received),
    ];
    assert_eq!(loud(&played(DEADLINES, PCM, &records)), [(60, 80)]);
}

#[test]
fn a_speaker_s_pause_is_silence_and_no_concealment() {
    let records = [record(0, 0, Some(20), Fate::Received), record(1, 50, Some(70), Fate::Received)];
    let paused = played(Playing { pauses: true, ..DEADLINES }, PCM, &records);
    assert_eq!((loud(&paused), paused.concealed), (vec![(60, 70), (110, 120)], 0));
    let missing = played(DEADLINES, PCM, &records);
    assert_eq!((loud(&missing), missing.concealed), (vec![(60, 70), (118, 120)], 40 * 8));
}

#[test]
fn a_fifo_plays_what_comes_and_conceals_while_it_is_empty() {
    let mu_law = AudioFormat { sample_rate: 8_000, coding: Coding::MuLaw, is_silent: false };
    let fifo = PlaybackFifo { depth: 400, fill: 160 };
    let path = VoicePath { samples: 80, pauses: false, captures: false, playback: Some(fifo) };
    let of =
        |sequence, due, received| Record { payload: 80, ..record(sequence, due, received, Fate::Received) };
    // Playback begins with the second. The third is lost: everything there is played at 50 ms, and the fourth comes at 65.
    let records = [
        of(0, 0, Some(20)),
        of(1, 10, Some(30)),
        Record { fate: Fate::Lost, ..of(2, 20, None) },
        of(3, 30, Some(65)),
    ];
    let track = played(Playing { path: Some((path, fifo)), ..DEADLINES }, mu_law, &records);
    assert_eq!(loud(&track), [(30, 50), (68, 75)]);
    assert_eq!((track.received, track.concealed), (240, 15 * 8));
}

#[test]
fn what_found_no_room_in_a_fifo_is_not_heard() {
    let mu_law = AudioFormat { sample_rate: 8_000, coding: Coding::MuLaw, is_silent: false };
    let fifo = PlaybackFifo { depth: 104, fill: 80 };
    let path = VoicePath { samples: 80, pauses: false, captures: false, playback: Some(fifo) };
    let of =
        |sequence, due, received| Record { payload: 80, ..record(sequence, due, received, Fate::Received) };
    let records = [of(0, 0, Some(20)), of(1, 10, Some(20))];
    let track = played(Playing { path: Some((path, fifo)), ..DEADLINES }, mu_law, &records);
    assert_eq!((loud(&track), track.received), (vec![(20, 33)], 104));
}

fn experiment(flows: &str) -> Experiment {
    let text = format!(
        "name = \"heard\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
         rate = \"10 Mbit/s\"\n{flows}"
    );
    Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn what_cannot_be_heard_is_told_with_what_can() {
    let flow = |name: &str, rest: &str| format!("[flow.{name}]\nfrom = \"a\"\ntransport = \"udp\"\n{rest}\n");
    let flows = [
        flow("voice", "to = \"b\"\nsource = { kind = \"voice\" }\ncount = 3\nchannels = 2"),
        flow("out", "to = []\nsource = { kind = \"voice\" }"),
        flow("load", "to = \"b\"\nsource = { kind = \"load\", interval = \"10 ms\" }"),
        flow("music", "to = \"b\"\nsource = { kind = \"audio\" }"),
    ];
    let known = experiment(&flows.concat());
    let told = |text: &str, experiment: &Experiment| {
        let sounds = text.split(' ').map(|text| text.parse::<Sound>()).collect::<Result<_, _>>();
        let checked =
            sounds.and_then(|sounds| Hear { sounds, conceal: None }.check(experiment, Path::new("x.toml")));
        checked.map_err(|error| error.to_string())
    };
    for good in ["flow.voice.1", "flow.voice.3.2", "flow.voice.3.1=a.wav flow.voice.3.2=b.wav"] {
        assert_eq!(told(good, &known), Ok(()), "{good}");
    }
    for (bad, says) in [
        ("voice", "expected `flow.NAME.MEMBER`, or `flow.NAME.MEMBER.CHANNEL`, both counted from 1"),
        ("flow.voice", "invalid `--hear flow.voice`"),
        ("flow.voice.0", "counted from 1"),
        ("flow.voice.1.0", "counted from 1"),
        ("flow.voice.1.1.1", "invalid `--hear flow.voice.1.1.1`"),
        ("flow.voice.1=", "invalid `--hear flow.voice.1=`"),
        ("flow.vioce.1", "there is no flow `vioce`; flows with audio are `music`, `out`, `voice`"),
        ("flow.voice.4", "`flow.voice.4`: the flow `voice` has members 1 to 3 with channels 1 to 2"),
        ("flow.voice.1.3", "channels 1 to 2"),
        ("flow.load.1", "the source `load` of the flow `load` carries no audio; flows with audio are"),
        ("flow.out.1", "has no sink and therefore no listener"),
        ("flow.music.1", "sends silence; set `signal"),
        ("flow.voice.1=a.wav flow.voice.2=a.wav", "`a.wav` would be written twice"),
        ("flow.voice.1=no/such/folder/a.wav", "its folder does not exist"),
    ] {
        let message = told(bad, &known).expect_err(bad);
        assert!(message.contains(says), "{bad}: {message}");
    }
    let silent = experiment(&flow("load", "to = \"b\"\nsource = { kind = \"load\", interval = \"10 ms\" }"));
    assert!(told("flow.load.1", &silent).unwrap_err().contains("no flow carries audio"));
}

#[test]
fn files_of_several_points_and_repetitions_have_names_of_their_own() {
    let path = |text: &str, is_alone| {
        text.parse::<Sound>().expect("it is a sound").path(Path::new("audio"), (3, 1), is_alone)
    };
    assert_eq!(path("flow.voice.1.2", false), Path::new("audio/heard-voice.1.2.wav"));
    assert_eq!(path("flow.voice.1=to/take.wav", true), Path::new("to/take.wav"));
    assert_eq!(path("flow.voice.1=to/take.wav", false), Path::new("to/take-p003-r01.wav"));
    assert_eq!(path("flow.voice.1=take", false), Path::new("take-p003-r01"));
}
