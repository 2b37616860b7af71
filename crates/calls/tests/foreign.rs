//! RTP and JackTrip as other programs speak them, here at both ends, over loopback and in real time.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

use trunkline_audio::conceal::Method;
use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{Codec, PlayerSettings, Protection};
use trunkline_audio::playout::Depth;
use trunkline_audio::sdp;
use trunkline_calls::Stop;
use trunkline_calls::program::{
    Event, Observer, ReceiveOptions, RtpOptions, SendOptions, receive_jacktrip, receive_rtp, send_jacktrip,
    send_rtp,
};
use trunkline_core::Duration;
use trunkline_sound::Place;
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::tone::listen;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Keeps why sessions ended.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn event(&self, _: u64, event: Event<'_>) {
        if let Event::Ended { why: Some(why), .. } = event {
            self.0.lock().unwrap().push(why.to_owned());
        }
    }
}

/// The machine that tests has other things to do.
fn deep() -> PlayerSettings {
    PlayerSettings {
        depth: Depth::Fixed(Duration::from_millis(300)),
        conceal: Method::Waveform,
        ..PlayerSettings::default()
    }
}

fn free_port() -> u16 {
    UdpSocket::bind((HERE, 0)).unwrap().local_addr().unwrap().port()
}

fn send(host: &str, hertz: f64) -> SendOptions {
    SendOptions {
        sample_rate: Some(48_000),
        block_frames: 128,
        lasting: Some(Duration::from_millis(1500)),
        player: deep(),
        ..SendOptions::new(host, Place::Tone { hertz: vec![hertz] })
    }
}

#[track_caller]
fn assert_tone(path: &Path, hertz: f64) {
    let mut recording = hound::WavReader::open(path).unwrap();
    let spec = recording.spec();
    let full = f64::powi(2.0, i32::from(spec.bits_per_sample) - 1) as f32;
    let samples = recording.samples::<i32>().step_by(spec.channels.into());
    let samples: Vec<f32> = samples.map(|sample| sample.unwrap() as f32 / full).collect();
    let heard = listen(&samples, spec.sample_rate, 0.1);
    assert!((heard.frequency - hertz).abs() < 0.2, "{heard:?}");
    assert!(heard.breaks.is_empty(), "{heard:?}");
    assert!(heard.lasting > 0.9 && (heard.peak - 0.5).abs() < 0.01, "{heard:?}");
}

/// Packets of 1 ms to a group, heard by the description that the sender writes.
#[test]
fn a_group_hears_what_is_announced() {
    in_real_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let take = folder.path().join("take.wav");
        let options = SendOptions {
            codec: Codec::Pcm(Encoding::I24),
            ..send(&format!("239.255.77.9:{}", free_port()), 440.0)
        };
        let rtp = RtpOptions { packet_time: Some(Duration::from_millis(1)), interface: Some(HERE), ttl: 1 };
        let stop = Arc::new(Stop::new().unwrap());
        let mut listening = None;
        let announce = |session: &sdp::Session| {
            let text = session.to_string();
            assert!(text.contains("a=ptime:1\r\n") && text.contains("/1\r\n"), "{text}");
            let session: sdp::Session = text.parse().unwrap();
            let (stop, to) = (Arc::clone(&stop), Place::File(take.clone()));
            listening = Some(thread::spawn(move || {
                let options = ReceiveOptions { player: deep(), ..ReceiveOptions::new(to) };
                receive_rtp(&options, &session.media[0], Some(HERE), &stop, &Notes::default())
            }));
            Ok(())
        };
        let sent = send_rtp(&options, &rtp, announce, &AtomicBool::new(false), &Notes::default()).unwrap();
        assert_eq!((sent.stream.block_frames, sent.figures.counts.timed_out), (48, 0));
        assert!(sent.figures.counts.sent >= 1400, "{sent:?}");
        stop.stop();
        listening.unwrap().join().unwrap().unwrap();
        assert_tone(&take, 440.0);
    });
}

/// Each hears the other's tone, and who is called learns that the caller has left.
#[test]
fn two_talk_as_jacktrip_does() {
    in_real_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let [here, there] = ["here.wav", "there.wav"].map(|name| folder.path().join(name));
        let port = free_port();
        let (stop, notes) = (Arc::new(Stop::new().unwrap()), Arc::new(Notes::default()));
        let (stopping, noted, to) = (Arc::clone(&stop), Arc::clone(&notes), Place::File(there.clone()));
        let answering = thread::spawn(move || {
            let options = ReceiveOptions { player: deep(), once: true, ..ReceiveOptions::new(to) };
            let from = Place::Tone { hertz: vec![550.0] };
            receive_jacktrip(&options, &from, (HERE, port).into(), &stopping, &*noted)
        });
        let options = SendOptions {
            to: Some(Place::File(here.clone())),
            protection: Protection::Repeat(1),
            ..send(&format!("127.0.0.1:{port}"), 440.0)
        };
        let sent = send_jacktrip(&options, None, &AtomicBool::new(false), &Notes::default()).unwrap();
        answering.join().unwrap().unwrap();
        assert_eq!(*notes.0.lock().unwrap(), ["JackTrip at the other end has disconnected"]);
        assert_eq!(sent.figures.counts.strange, 0, "{sent:?}");
        assert_tone(&there, 440.0);
        assert_tone(&here, 550.0);
    });
}

#[test]
fn what_jacktrip_cannot_carry_is_said() {
    let refused = |options: SendOptions| {
        send_jacktrip(&options, None, &AtomicBool::new(false), &Notes::default()).unwrap_err()
    };
    let error = refused(SendOptions { codec: Codec::Pcmu, ..send("127.0.0.1", 440.0) });
    assert!(error.is_bad_input());
    assert_eq!(error.to_string(), "JackTrip carries uncompressed audio only; choose `i16`, `i24` or `f32`");
    let error = refused(SendOptions { sample_rate: Some(24_000), ..send("127.0.0.1", 440.0) }).to_string();
    assert!(error.contains("JackTrip does not support a sample rate of 24000 Hz"), "{error}");
}
