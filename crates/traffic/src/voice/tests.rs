use trunkline_audio::g711::decode_mu_law;
use trunkline_core::schema::Value;
use trunkline_core::{Duration, Time};

use crate::registry::find;
use crate::source::{MessageBuffer, SourceContext};
use crate::testing::{build, context, exponential, produce_until, run, values};

use super::synthetic;

fn samples(samples: u64) -> (&'static str, Value) {
    ("samples", Value::Integer(samples))
}

fn phase(word: &str) -> (&'static str, Value) {
    ("phase", Value::Text(word.to_owned()))
}

#[test]
fn due_times_are_exact_for_hours() {
    // 81 samples are 10.125 ms: a rounded interval would drift.
    let hours = Duration::from_secs(2 * 3600);
    let context = SourceContext { stop: context().start + hours, ..context() };
    let mut source = build("voice", &[samples(81)], &context);
    let first = source.next_due().unwrap();
    assert!(first < context.start + Duration::from_micros(10_125));
    let sent = run(&mut *source);
    assert!(sent.iter().zip(0u64..).all(|(s, k)| s.due == first + Duration::from_micros(125) * (81 * k)));
    assert!(sent.iter().all(|s| s.length == 81));
    let rest = context.stop.since(first).as_nanos();
    assert_eq!(sent.len() as u64, rest.div_ceil(10_125_000), "every one before the stop");
}

#[test]
fn every_channel_has_its_rate_of_64_kbit_per_second() {
    let channels = 200;
    let context = SourceContext { channels, ..context() };
    let sent = run(&mut *build("voice", &[samples(160)], &context));
    let mut bytes = vec![0usize; usize::from(channels)];
    for message in &sent {
        bytes[usize::from(message.channel)] += message.length;
    }
    assert!(bytes.iter().all(|&b| b == 80_000), "10 s of 8000 bytes each");
}

#[test]
fn a_late_call_gives_all_packets_with_their_own_due_times() {
    let mut source = build("voice", &[phase("together")], &context());
    let mut buffer = MessageBuffer::with_headroom(40);
    source.produce(context().start + Duration::from_millis(35), &mut buffer);
    let dues: Vec<u64> = buffer.messages().iter().map(|m| m.due.since(context().start).as_nanos()).collect();
    assert_eq!(dues, [0, 10_000_000, 20_000_000, 30_000_000]);
}

#[test]
fn spread_channels_of_all_members_divide_the_interval_evenly() {
    let mut firsts = Vec::new();
    for member in 0..4 {
        let context = SourceContext { channels: 2, member, members: 4, ..context() };
        let mut sent = Vec::new();
        let mut source = build("voice", &[phase("spread")], &context);
        produce_until(&mut *source, context.start + Duration::from_nanos(9_999_999), &mut sent);
        firsts.extend(sent.iter().map(|s| s.due.since(context.start).as_nanos()));
    }
    firsts.sort_unstable();
    assert_eq!(firsts, [0, 1_250_000, 2_500_000, 3_750_000, 5_000_000, 6_250_000, 7_500_000, 8_750_000]);
}

#[test]
fn random_phases_fill_the_interval() {
    let source = SourceContext { channels: 1000, stop: Time::from_nanos(1_010_000_000), ..context() };
    let sent = run(&mut *build("voice", &[], &source));
    assert_eq!(sent.len(), 1000);
    let mean = sent.iter().map(|s| s.due.since(source.start).as_millis_f64()).sum::<f64>() / 1000.0;
    assert!((mean - 5.0).abs() < 0.5, "{mean} ms");
}

#[test]
fn the_file_is_played_from_its_start_and_over_again() {
    let speech = [(0..200u8).collect::<Vec<_>>(), vec![7; 3]].into();
    let context = SourceContext { channels: 3, speech, ..context() };
    let file = ("file", Value::Text("speech.wav".to_owned()));
    let mut source = build("voice", &[samples(80), file, phase("together")], &context);
    let mut buffer = MessageBuffer::with_headroom(40);
    source.produce(context.start + Duration::from_millis(20), &mut buffer);
    let mut heard = vec![Vec::new(); 3];
    for index in 0..buffer.messages().len() {
        let channel = usize::from(buffer.messages()[index].channel);
        let bytes = buffer.bytes_mut(index);
        assert_eq!(bytes[..40], [0; 40]);
        heard[channel].extend_from_slice(&bytes[40..]);
    }
    let expected: Vec<u8> = (0..240).map(|i| (i % 200) as u8).collect();
    assert_eq!(heard, [expected.clone(), vec![7; 240], expected]);
}

#[test]
fn the_first_32_channels_of_a_flow_say_different_things() {
    let mut said: Vec<Vec<u8>> = Vec::new();
    for member in 0..16 {
        let context = SourceContext { channels: 2, member, members: 16, ..context() };
        let mut source = build("voice", &[samples(1600), phase("together")], &context);
        let mut buffer = MessageBuffer::with_headroom(0);
        source.produce(context.start, &mut buffer);
        said.extend((0..2).map(|message| buffer.bytes(message).to_vec()));
    }
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), 32);
}

#[test]
fn a_voice_of_one_channel_fits_in_a_cache_line() {
    // With the eight bytes that allocators put in front.
    assert!(size_of::<super::Voice>() <= 56, "{}", size_of::<super::Voice>());
}

#[test]
fn talk_spurts_send_for_the_share_of_time_that_is_talked() {
    // ITU-T P.59; with long packets too, since whether one is sent is decided at its due time.
    let talk = ("talk", exponential(Duration::from_millis(1004)));
    let silence = ("silence", exponential(Duration::from_millis(1587)));
    for samples_per_packet in [80, 2048] {
        let context =
            SourceContext { channels: 50, stop: context().start + Duration::from_secs(300), ..context() };
        let given = [samples(samples_per_packet), talk.clone(), silence.clone()];
        let sent = run(&mut *build("voice", &given, &context));
        let talked = sent.len() as f64 * samples_per_packet as f64 / 8000.0;
        let activity = talked / (300.0 * 50.0);
        assert!((activity - 0.3875).abs() < 0.01, "{samples_per_packet} samples: {activity}");
        // Packets stay on the channel's grid, and the pauses are there.
        let interval = Duration::from_micros(125) * samples_per_packet;
        let dues: Vec<Time> = sent.iter().filter(|s| s.channel == 9).map(|s| s.due).collect();
        assert!(dues.iter().all(|d| d.since(dues[0]).as_nanos().is_multiple_of(interval.as_nanos())));
        assert!(dues.windows(2).filter(|d| d[1].since(d[0]) > interval).count() > 50);
    }
}

#[test]
fn talk_and_silence_belong_together() {
    let half = values("voice", &[("talk", exponential(Duration::from_secs(1)))]);
    let Err(problem) = (find("voice").unwrap().1.build)(&half, &context()) else { panic!("was built") };
    assert!(problem.starts_with("`talk` needs `silence`"), "{problem}");
}

#[test]
fn the_synthetic_voices_differ_can_be_heard_and_pause() {
    let voices = synthetic::voices();
    assert_eq!(voices.len(), 4);
    for (index, voice) in voices.iter().enumerate() {
        assert_eq!(voice.len(), synthetic::LENGTH);
        assert!(voices[..index].iter().all(|other| other != voice));
        let loud =
            |samples: &[u8]| samples.iter().filter(|&&s| decode_mu_law(s).unsigned_abs() > 500).count();
        assert!(loud(voice) > voice.len() / 5, "voice {index}: {}", loud(voice));
        let pause = &voice[4 * 1600 + 800..5 * 1600];
        assert_eq!(loud(pause), 0, "voice {index}");
    }
}
