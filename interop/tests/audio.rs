//! Audio over RTP to and from GStreamer and ffmpeg, each told by a session description: the right tone, without a gap.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use trunkline_audio::format::{Encoding, Endian, Format};
use trunkline_audio::pipeline::{Codec, Stream};
use trunkline_audio::sdp::{Media, Origin, Session};
use trunkline_calls::Settings;
use trunkline_calls::foreign::rtp;
use trunkline_interop::live::{converse, converse_while};
use trunkline_interop::tone::{deviation, windows_of_tone};
use trunkline_interop::{Program, is_installed};
use trunkline_testkit::real_time::in_real_time;

const GSTREAMER: &str =
    "the Debian packages `gstreamer1.0-tools`, `gstreamer1.0-plugins-base` and `gstreamer1.0-plugins-good`";
const FFMPEG: &str = "the Debian package `ffmpeg`";

const RATE: u32 = 48_000;
/// 100 samples in a period.
const HZ: f64 = 480.0;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A second.
const ENOUGH: usize = RATE as usize;

fn stream(codec: Codec, block_frames: u32) -> Stream {
    Stream { channels: 2, sample_rate: RATE, block_frames, codec, ..Stream::default() }
}

const L16: Codec = Codec::Pcm(Encoding::I16);
const L24: Codec = Codec::Pcm(Encoding::I24);
const OPUS: Codec = Codec::Opus { bitrate: 96_000, fec: false };

/// A port of loopback that was free a moment ago, as was the next, where ffmpeg hears reports.
fn free_ports() -> SocketAddr {
    for _ in 0..100 {
        let socket = UdpSocket::bind((HERE, 0)).expect("loopback has a free port");
        let address = socket.local_addr().expect("it is bound");
        if address.port().is_multiple_of(2) && UdpSocket::bind((HERE, address.port() + 1)).is_ok() {
            return address;
        }
    }
    panic!("loopback has no two free ports in a row");
}

fn announce(media: &Media) -> String {
    let origin = Origin { host: "127.0.0.1".to_owned(), ..Origin::default() };
    Session { name: "interop".to_owned(), origin, media: vec![media.clone()] }.to_string()
}

/// Raw samples of two channels as floating point, of which the first is given back.
fn first_channel(file: &Path) -> Vec<f32> {
    let mut samples = Vec::new();
    let bytes = std::fs::read(file).expect("it was written");
    Format { encoding: Encoding::F32, endian: Endian::Little }.decode(&bytes, &mut samples);
    samples.into_iter().step_by(2).collect()
}

/// Nothing but the tone: of PCM at every sample; Opus changes a little. What comes first is passed over: a codec begins with
/// silence.
fn assert_is_tone(samples: &[f32], codec: Codec) {
    let most = if codec == OPUS { 0.1 } else { 0.001 };
    let samples = &samples[4_800..];
    assert!(samples.len() >= ENOUGH / 2, "{} samples", samples.len());
    let off = deviation(samples, HZ, RATE);
    let windows = windows_of_tone(samples, 4_800, HZ, RATE, most);
    assert!(off < most, "deviates by {off} of its amplitude; {windows:?} windows are a tone");
}

/// Sends until ffmpeg, which knows our description only, has a second of it.
fn ffmpeg_hears(codec: Codec, block_frames: u32) {
    in_real_time(|| {
        if !is_installed("ffmpeg", FFMPEG) {
            return;
        }
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let [sdp, file] = ["ours.sdp", "heard"].map(|name| folder.path().join(name));
        let stream = stream(codec, block_frames);
        let media = Media::of(&stream, free_ports()).expect("RTP carries it");
        std::fs::write(&sdp, announce(&media)).expect("our folder can be written");
        let foreign = rtp::send(&media, &stream, HERE, &Settings::default()).expect("loopback is there");
        converse_while(foreign, HZ, || {
            let [sdp, file] = [&sdp, &file].map(|path| path.to_str().expect("it is plain"));
            let arguments = format!(
                "-hide_banner -nostdin -protocol_whitelist file,udp,rtp -i {sdp} -t 1.2 -f f32le -c:a pcm_f32le -y {file}"
            );
            Program::start("ffmpeg", &arguments.split(' ').collect::<Vec<_>>()).wait_until_it_ends();
        });
        assert_is_tone(&first_channel(&file), codec);
    });
}

/// Lets ffmpeg send, and hears it by its own description.
fn ffmpeg_speaks(codec: &str, expected: Codec) {
    in_real_time(|| {
        if !is_installed("ffmpeg", FFMPEG) {
            return;
        }
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let sdp = folder.path().join("theirs.sdp");
        let arguments = format!(
            "-hide_banner -nostdin -re -f lavfi -i sine=frequency={HZ}:sample_rate={RATE} -ac 2 -c:a {codec} -f rtp -sdp_file {} \
             rtp://{}",
            sdp.display(),
            free_ports()
        );
        let _program = Program::start("ffmpeg", &arguments.split(' ').collect::<Vec<_>>());
        let deadline = Instant::now() + trunkline_interop::PATIENCE;
        let session: Session = loop {
            match std::fs::read_to_string(&sdp).unwrap_or_default().parse() {
                Ok(session) => break session,
                Err(error) => assert!(Instant::now() < deadline, "no description: {error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let media = &session.media[0];
        let foreign = rtp::receive(media, HERE, &Settings::default()).expect("loopback is there");
        let (stream, _) = foreign.receives.as_ref().expect("it listens");
        assert_eq!((stream.channels, stream.sample_rate), (2, RATE));
        assert_eq!(core::mem::discriminant(&stream.codec), core::mem::discriminant(&expected));
        let heard = converse(foreign, 0.0, |heard| heard.samples.len() >= ENOUGH);
        assert!(
            heard.blocks.is_sorted_by(|before, block| before + 1 == *block),
            "a gap in {:?}",
            heard.blocks
        );
        assert_is_tone(&heard.samples, expected);
    });
}

/// Sends until GStreamer, whose caps come from our description, has a second of it.
fn gstreamer_hears(codec: Codec, block_frames: u32, depay: &str) {
    in_real_time(|| {
        if !is_installed("gst-launch-1.0", GSTREAMER) {
            return;
        }
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let file = folder.path().join("heard");
        let stream = stream(codec, block_frames);
        let address = free_ports();
        let media: Session =
            announce(&Media::of(&stream, address).expect("RTP carries it")).parse().expect("it is ours");
        let media = &media.media[0];
        let channels = if codec == OPUS { String::new() } else { format!(",channels={}", media.channels) };
        let packets = ENOUGH as u32 * 6 / 5 / block_frames;
        let pipeline = format!(
            "udpsrc address={} port={} num-buffers={packets} \
             caps=application/x-rtp,media=audio,clock-rate={},encoding-name={},payload={}{channels} ! {depay} ! audioconvert ! \
             audio/x-raw,format=F32LE,rate={RATE},channels=2 ! filesink location={}",
            media.address,
            media.port,
            media.clock,
            media.encoding.name().to_uppercase(),
            media.payload_type,
            file.display()
        );
        let mut program = Program::start("gst-launch-1.0", &pipeline.split_whitespace().collect::<Vec<_>>());
        program.wait_until_it_says("PLAYING");
        let foreign = rtp::send(media, &stream, HERE, &Settings::default()).expect("loopback is there");
        converse_while(foreign, HZ, || program.wait_until_it_ends());
        assert_is_tone(&first_channel(&file), codec);
    });
}

/// Lets GStreamer send, and hears it by the description that an AES67 device would have.
fn gstreamer_speaks(pay: &str, map: &str, expected: Codec) {
    in_real_time(|| {
        if !is_installed("gst-launch-1.0", GSTREAMER) {
            return;
        }
        let address = free_ports();
        let text = format!(
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=GStreamer\r\nt=0 0\r\nm=audio {} RTP/AVP 96\r\nc=IN IP4 127.0.0.1\r\n{map}",
            address.port()
        );
        let session: Session = text.parse().expect("it is a description");
        let foreign = rtp::receive(&session.media[0], HERE, &Settings::default()).expect("loopback is there");
        let pipeline = format!(
            "audiotestsrc is-live=true freq={HZ} ! audio/x-raw,rate={RATE},channels=2 ! audioconvert ! {pay} ! \
             udpsink host=127.0.0.1 port={}",
            address.port()
        );
        let _program = Program::start("gst-launch-1.0", &pipeline.split_whitespace().collect::<Vec<_>>());
        let heard = converse(foreign, 0.0, |heard| heard.samples.len() >= ENOUGH);
        assert!(
            heard.blocks.is_sorted_by(|before, block| before + 1 == *block),
            "a gap in {:?}",
            heard.blocks
        );
        assert_is_tone(&heard.samples, expected);
    });
}

#[test]
fn ffmpeg_hears_our_l16() {
    ffmpeg_hears(L16, 128);
}

/// AES67's packet of 1 ms.
#[test]
fn ffmpeg_hears_our_l24() {
    ffmpeg_hears(L24, 48);
}

#[test]
fn ffmpeg_hears_our_opus() {
    ffmpeg_hears(OPUS, 480);
}

#[test]
fn we_hear_ffmpegs_l16() {
    ffmpeg_speaks("pcm_s16be", L16);
}

#[test]
fn we_hear_ffmpegs_l24() {
    ffmpeg_speaks("pcm_s24be", L24);
}

#[test]
fn we_hear_ffmpegs_opus() {
    ffmpeg_speaks("libopus -b:a 128k", OPUS);
}

#[test]
fn gstreamer_hears_our_l16() {
    gstreamer_hears(L16, 128, "rtpL16depay");
}

/// AES67's packet of 125 us.
#[test]
fn gstreamer_hears_our_l24() {
    gstreamer_hears(L24, 6, "rtpL24depay");
}

#[test]
fn gstreamer_hears_our_opus() {
    gstreamer_hears(OPUS, 960, "rtpopusdepay ! opusdec");
}

#[test]
fn we_hear_gstreamers_l16() {
    gstreamer_speaks("rtpL16pay pt=96", "a=rtpmap:96 L16/48000/2\r\na=ptime:4\r\n", L16);
}

#[test]
fn we_hear_gstreamers_l24() {
    let pay = "rtpL24pay pt=96 min-ptime=1000000 max-ptime=1000000";
    gstreamer_speaks(pay, "a=rtpmap:96 L24/48000/2\r\na=ptime:1\r\n", L24);
}

#[test]
fn we_hear_gstreamers_opus() {
    let map = "a=rtpmap:96 opus/48000/2\r\na=fmtp:96 sprop-stereo=1\r\n";
    gstreamer_speaks("opusenc bitrate=128000 ! rtpopuspay pt=96", map, OPUS);
}
