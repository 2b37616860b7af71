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
use trunkline_core::{Duration, Seed};
use trunkline_sound::Place;
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::tone::listen;
use trunkline_transport::rtp::{
    Arrival, PayloadFormat, ReportBlock, RtcpPacket, RtpConfig, RtpPacket, RtpSession, decode_compound,
    encode_cname, encode_report,
};

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

/// An even port that is free, as is the one above it.
fn two_sockets() -> [UdpSocket; 2] {
    let pair = || {
        let data = UdpSocket::bind((HERE, 0)).ok()?;
        let above = data.local_addr().ok()?.port().checked_add(1).filter(|above| above % 2 == 1)?;
        Some([data, UdpSocket::bind((HERE, above)).ok()?])
    };
    let sockets = (0..100).find_map(|_| pair()).expect("two free ports in a row");
    for socket in &sockets {
        socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
    }
    sockets
}

/// The parts of a report, each as its type.
fn types(report: &[u8]) -> Vec<&'static str> {
    let parts = decode_compound(report).expect("a compound packet");
    let name = |part| match part {
        RtcpPacket::SenderReport { .. } => "SR",
        RtcpPacket::ReceiverReport { .. } => "RR",
        RtcpPacket::Description(_) => "SDES",
        RtcpPacket::Bye { .. } => "BYE",
        RtcpPacket::Other { .. } => "?",
    };
    parts.map(name).collect()
}

/// The report of a receiver that has lost a quarter of its packets lately, at once after that of the sender.
fn answer(report: &[u8]) -> Vec<u8> {
    let Some(RtcpPacket::SenderReport { ssrc, info, .. }) = decode_compound(report).unwrap().next() else {
        panic!("{report:?}")
    };
    let last_report = (info.ntp >> 16) as u32;
    let jitter = 480;
    let block =
        ReportBlock { ssrc, fraction_lost: 64, lost: 9, jitter, last_report, ..ReportBlock::default() };
    let mut answer = Vec::new();
    encode_report(77, None, &[block], &mut answer);
    encode_cname(77, "receiver", &mut answer);
    answer
}

/// On the port above that of the data (RFC 3550 sections 6 and 11).
#[test]
fn a_sender_reports_what_it_sends_and_says_bye() {
    in_real_time(|| {
        let [data, control] = two_sockets();
        let host = data.local_addr().unwrap().to_string();
        // The first report comes after 1 to 3.1 s.
        let options = SendOptions { lasting: Some(Duration::from_millis(3500)), ..send(&host, 440.0) };
        let rtp = RtpOptions { packet_time: None, interface: None, ttl: 1 };
        let hears = thread::spawn(move || {
            let mut reports: Vec<Vec<u8>> = Vec::new();
            let mut buffer = [0; 2048];
            let start = std::time::Instant::now();
            while start.elapsed().as_secs() < 10
                && !reports.last().is_some_and(|last| types(last).contains(&"BYE"))
            {
                if let Ok((length, sender)) = control.recv_from(&mut buffer) {
                    reports.push(buffer[..length].to_vec());
                    control.send_to(&answer(&buffer[..length]), sender).unwrap();
                }
            }
            reports
        });
        let sent = send_rtp(&options, &rtp, |_| Ok(()), &AtomicBool::new(false), &Notes::default()).unwrap();
        let reports = hears.join().unwrap();
        let (first, last) = (reports.first().expect("a report"), reports.last().expect("a report"));
        assert_eq!((types(first), types(last)), (vec!["SR", "SDES"], vec!["SR", "SDES", "BYE"]));
        let Some(RtcpPacket::SenderReport { ssrc, info, .. }) = decode_compound(last).unwrap().next() else {
            panic!("{last:?}")
        };
        assert_eq!(u64::from(info.packets), sent.figures.counts.sent);
        let heard = sent.figures.reported.expect("the receiver has reported");
        assert_eq!(
            (heard.block.lost, heard.block.loss(), heard.jitter),
            (9, 0.25, Duration::from_millis(10))
        );
        assert!(heard.round_trip.expect("it has heard a report") < Duration::from_millis(500), "{heard:?}");
        let mut packet = [0; 2048];
        let (length, _) = data.recv_from(&mut packet).unwrap();
        assert_eq!(RtpPacket::decode(&packet[..length]).unwrap().header.ssrc, ssrc);
    });
}

/// Its reports go to where those of the sender come from.
#[test]
fn a_receiver_reports_what_it_hears_and_says_bye() {
    in_real_time(|| {
        let [data, control] = two_sockets();
        let [port, above] = {
            let [data, control] = two_sockets();
            [data, control].map(|socket| socket.local_addr().unwrap())
        };
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("take.wav"));
        let text = format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {} RTP/AVP 0\r\n",
            port.port()
        );
        let session: sdp::Session = text.parse().unwrap();
        let stop = Arc::new(Stop::new().unwrap());
        let receiving = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let options = ReceiveOptions { player: deep(), ..ReceiveOptions::new(place) };
                receive_rtp(&options, &session.media[0], None, &stop, &Notes::default())
            }
        });
        let seed = Seed::new(5, 0).stream("test");
        let mut sender = RtpSession::new(RtpConfig::new(PayloadFormat::PCMU, seed)).unwrap();
        let now = trunkline_calls::now;
        let mut reports: Vec<Vec<u8>> = Vec::new();
        let hear = |sender: &mut RtpSession, reports: &mut Vec<Vec<u8>>| {
            let mut buffer = [0; 2048];
            control.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
            if let Ok((length, from)) = control.recv_from(&mut buffer) {
                assert_eq!(from, above);
                assert_eq!(sender.handle(now(), &buffer[..length]), Arrival::Control);
                reports.push(buffer[..length].to_vec());
            }
        };
        // A packet every 20 ms, for as long as a report of each may take, and none of the tenth.
        let start = std::time::Instant::now();
        for n in 0.. {
            let (mut packet, mut report) = (Vec::new(), Vec::new());
            sender.write(now(), &[0xFF; 160], &mut packet);
            if n != 10 {
                data.send_to(&packet, port).unwrap();
            }
            while sender.poll_control(now(), &mut report) {
                control.send_to(&report, above).unwrap();
            }
            hear(&mut sender, &mut reports);
            let is_measured = sender.peer_report().is_some_and(|report| report.round_trip.is_some());
            if is_measured || start.elapsed().as_secs() > 20 {
                break;
            }
        }
        let report = sender.peer_report().expect("a report about what was sent");
        assert_eq!((report.block.ssrc, report.block.lost), (sender.ssrc(), 1));
        assert!(report.round_trip.is_some_and(|time| time < Duration::from_millis(500)), "{report:?}");
        stop.stop();
        receiving.join().unwrap().unwrap();
        hear(&mut sender, &mut reports);
        assert_eq!(types(reports.first().unwrap()), ["RR", "SDES"]);
        assert_eq!(types(reports.last().unwrap()), ["RR", "SDES", "BYE"]);
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
