use trunkline_core::{Bytes, Duration, FlowId, Ratio, Time};

use crate::Meter;
use crate::meter::tests::meta;
use crate::playback::PlaybackFifo;
use crate::quality::{Codec, Listening, QualitySummary};
use crate::record::{DriverOutcome, FlowMeta, Observation, Recorder};
use crate::summary::{FlowSummary, Measured};
use crate::voice_path::VoicePath;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

/// Two members of two channels each; one of them sends 80 samples each 10 ms, of which one after the other takes so many
/// milliseconds, or never arrives.
fn judged(flow: FlowMeta, latencies: &[Option<u64>]) -> Option<QualitySummary> {
    summary(flow, latencies).quality
}

fn summary(flow: FlowMeta, latencies: &[Option<u64>]) -> FlowSummary {
    let listening = Some(Listening { codec: Codec::G711, packet: MS(10) });
    let flow = FlowMeta { listening, ..flow };
    let mut trace = ();
    let mut meter = Meter::new(&[flow], &mut trace);
    let (id, channel, payload) = (FlowId(8), 1, Bytes(80));
    for (sequence, latency) in (0..).zip(latencies) {
        let sent = ms(10 * u64::from(sequence));
        meter.record(sent, id, Observation::Sent { channel, sequence, due: sent, payload });
        if let Some(latency) = latency {
            let what = Observation::Received { channel, sequence, sent, reflected: Time::ZERO, payload };
            meter.record(sent + MS(*latency), id, what);
        }
    }
    meter.finish(DriverOutcome { duration: MS(1_000), ..DriverOutcome::default() }).flows.remove(0)
}

fn with_playout() -> FlowMeta {
    FlowMeta { playout: Some(MS(40)), ..meta(7, 2, 2) }
}

fn with_playback() -> FlowMeta {
    let playback = Some(PlaybackFifo { depth: 800, fill: 160 });
    FlowMeta {
        voice_path: Some(VoicePath { samples: 80, pauses: false, captures: false, playback }),
        ..meta(7, 2, 2)
    }
}

#[test]
fn a_playout_plays_everything_as_long_after_it_was_due() {
    // 10 ms of packet, 20 ms of the first message's latency, 40 ms of playout, whatever the others take.
    let quality = judged(with_playout(), &[Some(20), Some(50), Some(25), Some(60)]).unwrap();
    assert_eq!((quality.mouth_to_ear, quality.ppl, quality.burst_r), (Some(MS(70)), Ratio::ZERO, 1.0));
    assert_eq!(quality.codec, "g711");
    assert!(quality.mos > 4.3 && quality.r > 90.0, "{quality:?}");
}

#[test]
fn late_and_lost_messages_are_not_heard() {
    // One burst of a lost and a late one, and a lost one at the end.
    let quality =
        judged(with_playout(), &[Some(20), None, Some(61), Some(20), Some(20), Some(20), Some(20), None])
            .unwrap();
    assert_eq!(quality.ppl, Ratio::new(3.0 / 8.0).unwrap());
    assert_eq!(quality.burst_r, 1.5 * (1.0 - 3.0 / 8.0));
    assert_eq!(quality.mouth_to_ear, Some(MS(70)));
    assert!(quality.mos < 2.0, "{quality:?}");
}

#[test]
fn audio_that_is_not_heard_in_time_is_affected() {
    let latencies = [Some(20), None, Some(61), Some(20), Some(20), Some(20), Some(20), None];
    let audio = FlowMeta { carries_audio: true, ..with_playout() };
    assert_eq!(summary(audio.clone(), &latencies).affected, Ratio::new(3.0 / 8.0));
    // Without a playout nothing is late.
    assert_eq!(summary(FlowMeta { playout: None, ..audio.clone() }, &latencies).affected, Ratio::new(0.25));
    // Behind a FIFO it is what comes after its deadline.
    let latencies = [Some(20), Some(20), Some(20), Some(45), Some(35), Some(25)];
    let played = FlowMeta { carries_audio: true, ..with_playback() };
    assert_eq!(summary(played, &latencies).affected, Ratio::new(1.0 / 6.0));
    // The silence of a lost message is that of no other: of two, of which the FIFO bridged none.
    let latencies = [Some(20), Some(20), None, Some(20), None, Some(20), Some(20), Some(20)];
    let played = FlowMeta { carries_audio: true, ..with_playback() };
    assert_eq!(summary(played.clone(), &latencies).affected, Ratio::new(0.25));
    // A message that comes later than the silence that the lost one explains is late itself.
    let latencies = [Some(20), Some(20), None, Some(45), Some(35), Some(25), Some(25), Some(25)];
    assert_eq!(summary(played, &latencies).affected, Ratio::new(0.25));
    // Nobody knows how much of the time it would be of what is no audio, and of nothing.
    assert_eq!(summary(with_playout(), &latencies).affected, None);
    assert_eq!(summary(audio.clone(), &[]).affected, None);
    assert_eq!(summary(FlowMeta { measured: Measured::Nothing, ..audio }, &latencies).affected, None);
}

#[test]
fn audio_that_found_no_room_is_affected() {
    let mut trace = ();
    let mut meter = Meter::new(&[FlowMeta { carries_audio: true, ..with_playback() }], &mut trace);
    let (id, channel, payload) = (FlowId(7), 0, Bytes(80));
    meter.record(ms(5), id, Observation::Overflowed { channel, samples: 20 });
    meter.record(ms(10), id, Observation::Sent { channel, sequence: 0, due: ms(10), payload });
    let what = Observation::Received { channel, sequence: 0, sent: ms(10), reflected: Time::ZERO, payload };
    meter.record(ms(20), id, what);
    assert_eq!(meter.finish(DriverOutcome::default()).flows.remove(0).affected, Ratio::new(0.2));
}

#[test]
fn a_fifo_plays_when_everything_before_has_been_played() {
    // Playback begins when the second message comes, 30 ms after the first was due. The fourth comes 15 ms late, and all
    // after it are played as much later.
    let latencies = [Some(20), Some(20), Some(20), Some(45), Some(35), Some(25)];
    let quality = judged(with_playback(), &latencies).unwrap();
    assert_eq!(quality.ppl, Ratio::new(1.0 / 6.0).unwrap());
    // The packet's 10 ms and the mean of 30, 30, 45 and 45.
    assert_eq!(quality.mouth_to_ear, Some(Duration::from_micros(47_500)));
}

#[test]
fn samples_that_found_no_room_are_not_heard() {
    let listening = Some(Listening { codec: Codec::G711, packet: MS(10) });
    let mut trace = ();
    let mut meter = Meter::new(&[FlowMeta { listening, ..with_playback() }], &mut trace);
    meter.record(ms(5), FlowId(7), Observation::Overflowed { channel: 0, samples: 100 });
    let quality = meter.finish(DriverOutcome::default()).flows.remove(0).quality.unwrap();
    assert_eq!((quality.ppl, quality.mouth_to_ear, quality.mos), (Ratio::ONE, None, 1.0));
}

#[test]
fn nobody_listens_to_a_flow_without_messages() {
    assert_eq!(judged(with_playout(), &[]), None);
}
