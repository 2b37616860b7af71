//! RTP to and from GStreamer, over sockets of this machine.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use trunkline_audio::g711::encode_mu_law;
use trunkline_audio::wav::{Pcm, read_pcm};
use trunkline_core::{Rate, Seed, Time};
use trunkline_interop::{Program, is_installed};
use trunkline_testkit::real_time::in_real_time;
use trunkline_transport::rtp::{
    Arrival, PayloadFormat, Reporting, RtcpPacket, RtpConfig, RtpPacket, RtpSession, decode_compound, is_rtcp,
};

const GSTREAMER: &str =
    "the Debian packages `gstreamer1.0-tools`, `gstreamer1.0-plugins-base` and `gstreamer1.0-plugins-good`";
const CLOCK: u32 = 8000;
/// 20 ms.
const SAMPLES: usize = 160;
const L16_STEREO: PayloadFormat = PayloadFormat::l16(CLOCK, 2, 96);

/// A kind of audio: its format, its packets, and how GStreamer calls its parts.
struct Voice {
    format: PayloadFormat,
    packets: Vec<Vec<u8>>,
    caps: &'static str,
    parse: &'static str,
    pay: &'static str,
    depay: &'static str,
}

impl Voice {
    fn bytes(&self) -> Vec<u8> {
        self.packets.concat()
    }

    /// How long it lasts, in packets of 20 ms.
    fn pace(&self, packet: usize) -> Duration {
        Duration::from_millis(20) * packet as u32
    }
}

/// Two channels of speech, of so many packets.
fn speech(packets: usize) -> [Vec<i16>; 2] {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/speech.wav");
    let Pcm { sample_rate, channels } =
        read_pcm(&std::fs::read(file).expect("the example is there")).expect("it is a WAV file");
    assert_eq!(sample_rate, CLOCK);
    let take = |channel: &Vec<i16>| channel.iter().copied().cycle().take(packets * SAMPLES).collect();
    [take(&channels[0]), take(&channels[1])]
}

fn pcmu(packets: usize) -> Voice {
    let [left, _] = speech(packets);
    let codes: Vec<u8> = left.into_iter().map(encode_mu_law).collect();
    Voice {
        format: PayloadFormat::PCMU,
        packets: codes.chunks(SAMPLES).map(<[u8]>::to_vec).collect(),
        caps: "application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0",
        parse: "format=mulaw sample-rate=8000 num-channels=1",
        pay: "rtppcmupay min-ptime=20000000 max-ptime=20000000",
        depay: "rtppcmudepay",
    }
}

fn l16(packets: usize) -> Voice {
    let [left, right] = speech(packets);
    let frames = left.iter().zip(&right).flat_map(|(l, r)| [*l, *r]);
    let bytes: Vec<u8> = frames.flat_map(i16::to_be_bytes).collect();
    Voice {
        format: L16_STEREO,
        packets: bytes.chunks(SAMPLES * 4).map(<[u8]>::to_vec).collect(),
        caps: "application/x-rtp,media=audio,clock-rate=8000,encoding-name=L16,channels=2,payload=96",
        parse: "format=pcm pcm-format=s16be sample-rate=8000 num-channels=2",
        pay: "rtpL16pay pt=96 min-ptime=20000000 max-ptime=20000000",
        depay: "rtpL16depay",
    }
}

/// Our end: a session, a socket and a clock.
struct End {
    session: RtpSession,
    socket: UdpSocket,
    began: Instant,
}

impl End {
    fn new(format: PayloadFormat, reporting: Option<Reporting>) -> End {
        let stream = Seed::new(1, 0).stream("interop");
        let config = RtpConfig { reporting, ..RtpConfig::new(format, stream) };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("any timeout but zero is good");
        End {
            session: RtpSession::new(config).expect("the configuration is possible"),
            socket,
            began: Instant::now(),
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().expect("it is bound").port()
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn send(&mut self, message: &[u8], to: SocketAddr) {
        let mut packet = Vec::new();
        self.session.write(self.now(), message, &mut packet);
        self.socket.send_to(&packet, to).expect("loopback takes it");
    }

    fn send_reports(&mut self, to: SocketAddr) {
        let now = self.now();
        self.session.handle_timeout(now);
        let mut packet = Vec::new();
        while self.session.poll_control(now, &mut packet) {
            assert!(is_rtcp(&packet));
            self.socket.send_to(&packet, to).expect("loopback takes it");
            packet.clear();
        }
    }

    /// Takes what comes within a millisecond, and gives its RTCP to `look`.
    fn receive(&mut self, audio: &mut Vec<u8>, mut look: impl FnMut(RtcpPacket<'_>)) {
        let mut datagram = [0; 2048];
        while let Ok((length, _)) = self.socket.recv_from(&mut datagram) {
            let now = self.now();
            match self.session.handle(now, &datagram[..length]) {
                Arrival::Data(packet) => audio.extend_from_slice(packet.payload),
                Arrival::Control => {
                    decode_compound(&datagram[..length]).into_iter().flatten().for_each(&mut look)
                }
                Arrival::Dropped => panic!("GStreamer sent what is of no use: {:02x?}", &datagram[..length]),
            }
        }
    }
}

/// A port of loopback that was free a moment ago.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    socket.local_addr().expect("it is bound").port()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Runs a pipeline that is written as on a command line.
fn launch(pipeline: &str) -> Program {
    Program::start("gst-launch-1.0", &pipeline.split_whitespace().collect::<Vec<_>>())
}

/// Sends a second of voice to GStreamer, and compares what it has written.
fn gstreamer_receives(voice: &Voice) {
    in_real_time(|| {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let file = folder.path().join("received");
        let (port, count) = (free_port(), voice.packets.len());
        let mut program = launch(&format!(
            "udpsrc address=127.0.0.1 port={port} num-buffers={count} caps={} ! {} ! filesink location={}",
            voice.caps,
            voice.depay,
            file.display()
        ));
        program.wait_until_it_says("PLAYING");
        let mut end = End::new(voice.format, None);
        for (number, packet) in voice.packets.iter().enumerate() {
            end.send(packet, loopback(port));
            let due = end.began + voice.pace(number + 1);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        program.wait_until_it_ends();
        let received = std::fs::read(&file).expect("GStreamer wrote it");
        assert!(received == voice.bytes(), "{} of {} bytes, or others", received.len(), voice.bytes().len());
    });
}

/// Lets GStreamer send a second of voice, and compares what has come.
fn gstreamer_sends(voice: &Voice) {
    in_real_time(|| {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let file = folder.path().join("sent");
        std::fs::write(&file, voice.bytes()).expect("our folder can be written");
        let mut end = End::new(voice.format, None);
        let mut program = launch(&format!(
            "filesrc location={} ! rawaudioparse {} ! {} ! udpsink host=127.0.0.1 port={}",
            file.display(),
            voice.parse,
            voice.pay,
            end.port()
        ));
        let mut audio = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        while audio.len() < voice.bytes().len() && Instant::now() < deadline {
            end.receive(&mut audio, |_| {});
        }
        program.wait_until_it_ends();
        assert!(audio == voice.bytes(), "{} of {} bytes, or others", audio.len(), voice.bytes().len());
        let reception = end.session.reception().expect("data has come");
        assert_eq!(
            (reception.lost, reception.received, reception.expected),
            (0, reception.received, reception.received)
        );
    });
}

#[test]
fn gstreamer_hears_our_pcmu() {
    if is_installed("gst-launch-1.0", GSTREAMER) {
        gstreamer_receives(&pcmu(50));
    }
}

#[test]
fn gstreamer_hears_our_l16() {
    if is_installed("gst-launch-1.0", GSTREAMER) {
        gstreamer_receives(&l16(50));
    }
}

#[test]
fn we_hear_gstreamers_pcmu() {
    if is_installed("gst-launch-1.0", GSTREAMER) {
        gstreamer_sends(&pcmu(50));
    }
}

#[test]
fn we_hear_gstreamers_l16() {
    if is_installed("gst-launch-1.0", GSTREAMER) {
        gstreamer_sends(&l16(50));
    }
}

const REPORTS: Reporting = Reporting {
    session_bandwidth: Rate::from_bits_per_second(1_000_000),
    minimum: trunkline_core::Duration::from_millis(300),
};

/// Of our voice, every tenth packet is left out: GStreamer's receiver reports say so, and measure a round trip by our
/// sender reports.
#[test]
fn gstreamer_reports_what_it_misses_of_ours() {
    in_real_time(|| {
        if !is_installed("gst-launch-1.0", GSTREAMER) {
            return;
        }
        let voice = pcmu(1);
        let mut end = End::new(voice.format, Some(REPORTS));
        let [rtp, rtcp] = [free_port(), free_port()];
        let mut program = launch(&format!(
            "rtpsession name=s rtcp-min-interval=300000000 udpsrc address=127.0.0.1 port={rtp} caps={} ! s.recv_rtp_sink \
             s.recv_rtp_src ! {} ! fakesink udpsrc address=127.0.0.1 port={rtcp} ! s.recv_rtcp_sink s.send_rtcp_src ! \
             udpsink host=127.0.0.1 port={} sync=false async=false",
            voice.caps,
            voice.depay,
            end.port()
        ));
        program.wait_until_it_says("PLAYING");
        let mut names = 0;
        let began = Instant::now();
        let (mut sent, mut before_first) = (0, 0);
        let report = loop {
            if Instant::now() >= began + voice.pace(sent) {
                sent += 1;
                if sent % 10 == 0 {
                    // Written, so that it has a number, and lost.
                    let (now, mut lost) = (end.now(), Vec::new());
                    end.session.write(now, &voice.packets[0], &mut lost);
                    if sent == 10 {
                        let header = RtpPacket::decode(&lost).unwrap().header;
                        before_first = header.sequence.wrapping_sub(10);
                    }
                } else {
                    end.send(&voice.packets[0], loopback(rtp));
                }
            }
            end.send_reports(loopback(rtcp));
            end.receive(&mut Vec::new(), |part| {
                names += u32::from(matches!(part, RtcpPacket::Description(_)))
            });
            let report = end.session.peer_report();
            if let Some(report) =
                report.filter(|r| r.round_trip.is_some() && r.block.fraction_lost > 0 && sent > 100)
            {
                break report;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no report after {sent} packets: {report:?}");
        };
        assert!(names > 0, "it has no name");
        assert_eq!(report.block.ssrc, end.session.ssrc());
        // Every tenth of what it should have by the last that it has. It counts the packet by which a source is on probation
        // as received, though it begins to count what it expects with the next: one less.
        let missed = i32::from((report.block.highest as u16).wrapping_sub(before_first)) / 10;
        assert!(
            (missed - 1..=missed).contains(&report.block.lost),
            "{report:?}, and {missed} missed of {sent}"
        );
        // A tenth is 26 of 256, but a report of few packets is a matter of one more or less.
        assert!(report.block.fraction_lost < 100, "{report:?}");
        let around = report.round_trip.unwrap();
        assert!(around < trunkline_core::Duration::from_secs(1), "{around}");
    });
}

/// GStreamer's sender reports name the same moment on its two clocks and count what we have received, and its end is a
/// BYE.
#[test]
fn gstreamer_reports_what_it_sends() {
    in_real_time(|| {
        if !is_installed("gst-launch-1.0", GSTREAMER) {
            return;
        }
        let voice = pcmu(150);
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let file = folder.path().join("sent");
        std::fs::write(&file, voice.bytes()).expect("our folder can be written");
        let mut end = End::new(voice.format, Some(REPORTS));
        let port = end.port();
        // RTP and RTCP to one port, as RFC 5761 has it.
        let program = launch(&format!(
            "rtpsession name=s rtcp-min-interval=300000000 filesrc location={} ! rawaudioparse {} ! {} ! s.send_rtp_sink \
             s.send_rtp_src ! udpsink host=127.0.0.1 port={port} s.send_rtcp_src ! \
             udpsink host=127.0.0.1 port={port} sync=false async=false",
            file.display(),
            voice.parse,
            voice.pay,
        ));
        let mut audio = Vec::new();
        let mut infos = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        while end.session.reception().is_none() || end.session.is_peer_there() {
            end.receive(&mut audio, |part| {
                if let RtcpPacket::SenderReport { info, .. } = part {
                    infos.push(info);
                }
            });
            assert!(
                Instant::now() < deadline,
                "it has not said BYE; {} bytes, reports {infos:?}",
                audio.len()
            );
        }
        // It has said all; whether its pipeline then ends by itself is not sure: now and then it waits for ever.
        drop(program);
        assert!(audio == voice.bytes(), "{} of {} bytes, or others", audio.len(), voice.bytes().len());
        let (first, last) = (infos.first().unwrap(), infos.last().unwrap());
        assert!(infos.len() > 2 && last.packets <= 150 && last.packets > first.packets, "{infos:?}");
        let by_wall = (last.ntp - first.ntp) as f64 / 4_294_967_296.0;
        let by_media = f64::from(last.rtp.wrapping_sub(first.rtp)) / f64::from(CLOCK);
        assert!((by_wall - by_media).abs() < 0.02, "{by_wall} s and {by_media} s");
    });
}
