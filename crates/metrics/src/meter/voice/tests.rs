use trunkline_core::{Bytes, Duration, FlowId, Time};

use crate::Meter;
use crate::meter::tests::meta;
use crate::playback::PlaybackFifo;
use crate::record::{DriverOutcome, FlowMeta, Observation, Record, Recorder, TraceSink};
use crate::voice_path::{Margin, VoiceEvent, VoiceEventKind, VoicePath, VoicePathSummary};

/// Keeps every event.
#[derive(Default)]
struct Events(Vec<VoiceEvent>);

impl TraceSink for Events {
    fn write(&mut self, _: usize, _: &Record) {}

    fn event(&mut self, _: usize, event: &VoiceEvent) {
        self.0.push(*event);
    }
}

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

const MS: fn(u64) -> Duration = Duration::from_millis;

const PLAYBACK: PlaybackFifo = PlaybackFifo { depth: 400, fill: 0 };

fn path(pauses: bool, playback: PlaybackFifo) -> VoicePath {
    VoicePath { samples: 80, pauses, captures: true, playback: Some(playback) }
}

/// Two members of two channels each, for half a second.
fn measure(path: VoicePath, run: impl FnOnce(&mut Meter<'_>)) -> (VoicePathSummary, Vec<VoiceEvent>) {
    let mut events = Events::default();
    let flow = FlowMeta { voice_path: Some(path), ..meta(7, 2, 2) };
    let mut meter = Meter::new(&[flow], &mut events);
    run(&mut meter);
    let outcome = DriverOutcome { duration: MS(500), ..DriverOutcome::default() };
    (meter.finish(outcome).flows.remove(0).voice_path.unwrap(), events.0)
}

/// A message of channel 1 of member 1, which arrives 20 ms after it was due unless it is to arrive at another time or never.
fn message(meter: &mut Meter<'_>, sequence: u32, due: u64, at: Option<u64>) {
    let (id, channel, payload) = (FlowId(8), 1, Bytes(80));
    meter.record(ms(due), id, Observation::Sent { channel, sequence, due: ms(due), payload });
    if let Some(at) = at {
        let (sent, reflected) = (ms(due), Time::ZERO);
        meter.record(ms(at), id, Observation::Received { channel, sequence, sent, reflected, payload });
    }
}

fn silence(at: u64, length: u64) -> VoiceEvent {
    let (kind, length) = (VoiceEventKind::Underflow, MS(length));
    VoiceEvent { member: 1, channel: 1, kind, at: ms(at), length, samples: 0 }
}

#[test]
fn start_up_is_the_time_to_fill_a_packet_and_its_latency() {
    let (summary, events) = measure(path(false, PLAYBACK), |meter| {
        for k in 0..49 {
            message(meter, k, 10 + u64::from(k) * 10, Some(30 + u64::from(k) * 10));
        }
    });
    let start_up = summary.start_up.unwrap();
    assert_eq!((start_up.count, start_up.mean), (1, MS(30)));
    let margin = summary.margin.unwrap();
    assert_eq!((margin.count, margin.missed), (48, 0));
    assert_eq!((margin.min, margin.max), (Margin::from_nanos(0), Margin::from_nanos(0)), "just in time");
    assert_eq!((summary.underflows, summary.silence, events), (0, Duration::ZERO, vec![]));
}

#[test]
fn a_stall_is_a_silence_and_then_a_reserve() {
    let (summary, events) = measure(path(false, PLAYBACK), |meter| {
        message(meter, 0, 10, Some(30));
        for k in 1..6 {
            message(meter, k, 10 + u64::from(k) * 10, Some(75));
        }
        for k in 6..49 {
            message(meter, k, 10 + u64::from(k) * 10, Some(30 + u64::from(k) * 10));
        }
    });
    // Played until 40; five packets come at 75, when room is for 400 samples, and play until 125.
    assert_eq!(events, [silence(40, 35)]);
    assert_eq!((summary.underflows, summary.silence, summary.silence_longest), (1, MS(35), MS(35)));
    let margin = summary.margin.unwrap();
    assert_eq!((margin.min, margin.missed, margin.count), (-Margin::from(MS(35)), 1, 48));
    assert_eq!((margin.p50, margin.max), (Margin::from(MS(35)), Margin::from(MS(40))));
}

#[test]
fn what_finds_no_room_is_an_event_at_either_end() {
    let (summary, events) = measure(path(false, PLAYBACK), |meter| {
        meter.record(ms(3), FlowId(7), Observation::Overflowed { channel: 0, samples: 8 });
        for k in 0..6 {
            message(meter, k, 10 + u64::from(k) * 10, Some(400));
        }
    });
    let kind = VoiceEventKind::CaptureOverflow;
    let capture = VoiceEvent { member: 0, channel: 0, kind, at: ms(3), length: MS(1), samples: 8 };
    let kind = VoiceEventKind::PlaybackOverflow;
    let playback =
        VoiceEvent { member: 1, channel: 1, kind, at: ms(400), length: Duration::ZERO, samples: 80 };
    assert_eq!(events, [capture, playback]);
    assert_eq!((summary.capture_overflows, summary.capture_lost), (1, 8));
    assert_eq!((summary.playback_overflows, summary.playback_lost), (1, 80));
}

#[test]
fn silence_lasts_to_the_end_if_messages_were_due() {
    let run = |meter: &mut Meter<'_>| {
        message(meter, 0, 10, Some(30));
        message(meter, 1, 20, None);
    };
    let (summary, events) = measure(path(false, PLAYBACK), run);
    assert_eq!((summary.silence, events), (MS(460), vec![silence(40, 460)]));
    let (summary, _) = measure(path(true, PLAYBACK), run);
    assert_eq!(summary.underflows, 0, "the speaker may have paused");
    let (summary, _) = measure(path(false, PLAYBACK), |meter| message(meter, 0, 10, Some(30)));
    assert_eq!(summary.underflows, 0, "nothing was due");
}

#[test]
fn every_talk_spurt_starts_up_anew() {
    let spurts = |meter: &mut Meter<'_>| {
        message(meter, 0, 10, Some(30));
        message(meter, 1, 20, None);
        message(meter, 2, 30, Some(50));
        message(meter, 3, 200, Some(225));
        message(meter, 4, 210, Some(230));
    };
    let (summary, events) = measure(path(true, PLAYBACK), spurts);
    assert_eq!(events, [silence(40, 10)], "a loss is a silence, a pause is not");
    let start_up = summary.start_up.unwrap();
    assert_eq!((start_up.count, start_up.min, start_up.max), (2, MS(30), MS(35)));
    assert_eq!(summary.margin.unwrap().count, 2);
    let (summary, events) = measure(path(false, PLAYBACK), spurts);
    assert_eq!((summary.start_up.unwrap().count, events), (1, vec![silence(40, 10), silence(60, 165)]));
}

#[test]
fn filling_the_fifo_delays_the_start() {
    let fifo = PlaybackFifo { fill: 160, ..PLAYBACK };
    let (summary, _) = measure(path(false, fifo), |meter| {
        for k in 0..3 {
            message(meter, k, 10 + u64::from(k) * 10, Some(30 + u64::from(k) * 10));
        }
    });
    assert_eq!(summary.start_up.unwrap().max, MS(40));
    assert_eq!(summary.margin.unwrap().min, Margin::from(MS(10)));
}

#[test]
fn a_message_that_was_overtaken_begins_no_talk_spurt() {
    let (summary, events) = measure(path(true, PLAYBACK), |meter| {
        message(meter, 0, 10, Some(30));
        message(meter, 2, 30, Some(36));
        message(meter, 1, 20, Some(37));
        message(meter, 3, 40, Some(55));
    });
    assert_eq!((summary.start_up.unwrap().count, summary.margin.unwrap().count, events), (1, 3, vec![]));
}
