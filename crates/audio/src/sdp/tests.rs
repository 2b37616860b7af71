use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::*;
use crate::pipeline::{self, Packing, Protection};

/// The example of AES67-2018, annex on session descriptions, with its clock lines.
const AES67: &str = "v=0\r\n\
    o=- 1311738121 1311738121 IN IP4 192.168.1.1\r\n\
    s=Stage left I/O\r\n\
    c=IN IP4 239.0.0.1/32\r\n\
    t=0 0\r\n\
    m=audio 5004 RTP/AVP 96\r\n\
    i=Channels 1-8\r\n\
    a=rtpmap:96 L24/48000/8\r\n\
    a=recvonly\r\n\
    a=ptime:1\r\n\
    a=ts-refclk:ptp=IEEE1588-2008:39-A7-94-FF-FE-07-CB-D0:0\r\n\
    a=mediaclk:direct=963214424\r\n";

fn read(text: &str) -> Session {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn only(text: &str) -> Media {
    let mut streams = read(text).media;
    assert_eq!(streams.len(), 1, "{streams:?}");
    streams.remove(0)
}

#[test]
fn an_aes67_device_is_understood() {
    let session = read(AES67);
    assert_eq!(session.name, "Stage left I/O");
    assert_eq!(session.origin.host, "192.168.1.1");
    let stream = Media {
        address: "239.0.0.1".parse().unwrap(),
        ttl: Some(32),
        port: 5004,
        sources: Vec::new(),
        payload_type: 96,
        encoding: Encoding::L24,
        clock: 48_000,
        channels: 8,
        packet_time: Some(Duration::from_millis(1)),
        reference_clock: Some("ptp=IEEE1588-2008:39-A7-94-FF-FE-07-CB-D0:0".to_owned()),
        media_clock: Some(MediaClock::Direct(963_214_424)),
    };
    assert_eq!(session.media, [stream]);
}

/// As `ffmpeg -f rtp` prints it.
#[test]
fn ffmpeg_is_understood() {
    let text = "SDP:\nv=0\no=- 0 0 IN IP4 127.0.0.1\ns=No Name\nc=IN IP4 127.0.0.1\nt=0 0\n\
        a=tool:libavformat 59.27.100\nm=audio 5004 RTP/AVP 97\nb=AS:96\na=rtpmap:97 opus/48000/2\n\
        a=fmtp:97 sprop-stereo=1\n\n";
    let stream = only(text);
    assert_eq!((stream.encoding, stream.clock, stream.channels), (Encoding::Opus, 48_000, 2));
    assert_eq!((stream.ttl, stream.packet_time), (None, None));
    assert_eq!(only(&text.replace("a=fmtp:97 sprop-stereo=1\n", "")).channels, 1);
}

#[test]
fn fixed_payload_types_need_no_map() {
    let text = "v=0\nc=IN IP6 ::1\nm=audio 4000/2 RTP/AVP 3 10 0\n";
    let stream = only(text);
    assert_eq!((stream.encoding, stream.clock, stream.channels), (Encoding::L16, 44_100, 2));
    assert_eq!((stream.payload_type, stream.port), (10, 4000));
    assert_eq!(Encoding::L16.payload_type(44_100, 2), Some(10));
    assert_eq!(Encoding::L16.payload_type(48_000, 2), None);
}

/// AES67 without PTP, as the documents say: time stamps count our own samples, and no common clock is promised.
#[test]
fn what_is_sent_names_no_ptp_clock() {
    let stream = Stream {
        channels: 8,
        sample_rate: 48_000,
        block_frames: 48,
        codec: Codec::Pcm(format::Encoding::I24),
        protection: Protection::None,
        packing: Packing::default(),
    };
    let media = Media::of(&stream, "239.69.1.2:5004".parse().unwrap()).expect("RTP has a format for it");
    assert_eq!(media.packet_time, Some(Duration::from_millis(1)), "eight channels fit a packet of 1 ms");
    let text = media.to_string();
    assert!(text.contains("a=mediaclk:sender\r\n") && !text.contains("ts-refclk"), "{text}");
    assert!(!text.to_lowercase().contains("ptp"), "{text}");
}

#[test]
fn what_cannot_be_played_is_passed_over() {
    let text = "v=0\nc=IN IP4 10.0.0.1\nx=?\nm=video 5000 RTP/AVP nonsense\nm=audio 0 RTP/AVP 0\n\
        m=audio 5002 RTP/SAVP 0\nm=audio 5004 RTP/AVP 98 0\na=rtpmap:98 AMR/8000\nm=audio 5006 RTP/AVP 8\n\
        c=IN IP4 10.0.0.2\n";
    let streams = read(text).media;
    let found: Vec<_> = streams.iter().map(|s| (s.port, s.encoding, s.address.to_string())).collect();
    assert_eq!(
        found,
        [(5004, Encoding::Pcmu, "10.0.0.1".to_owned()), (5006, Encoding::Pcma, "10.0.0.2".to_owned())]
    );
}

#[test]
fn source_filters_hold_for_their_destination() {
    let with = |filter: &str| {
        let text = format!("v=0\na=source-filter: {filter}\nm=audio 5004 RTP/AVP 0\nc=IN IP4 239.1.2.3/8\n");
        only(&text).sources.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(with("incl IN IP4 239.1.2.3 192.0.2.1 192.0.2.2"), ["192.0.2.1", "192.0.2.2"]);
    assert_eq!(with("incl IN IP4 * 192.0.2.1"), ["192.0.2.1"]);
    assert!(with("incl IN IP4 239.1.2.4 192.0.2.1").is_empty());
    assert!(with("excl IN IP4 * 192.0.2.1").is_empty());
}

/// The packet times of AES67 and what ST 2110-30 adds, as devices round them.
#[test]
fn packet_times_are_whole_samples() {
    let frames = |time: &str, clock: u32| {
        only(&format!(
            "v=0\nc=IN IP4 10.0.0.1\nm=audio 5004 RTP/AVP 96\na=rtpmap:96 L24/{clock}/2\na=ptime:{time}\n"
        ))
        .packet_frames()
    };
    for (time, clock, expected) in [
        ("1", 48_000, 48),
        ("0.125", 48_000, 6),
        ("0.12", 48_000, 6),
        ("0.25", 48_000, 12),
        ("0.333", 48_000, 16),
        ("0.33", 48_000, 16),
        ("4", 48_000, 192),
        ("4", 96_000, 384),
        ("1.09", 44_100, 48),
        ("0.136054", 44_100, 6),
    ] {
        assert_eq!(frames(time, clock), Some(expected), "{time} ms at {clock} Hz");
    }
    assert_eq!(frames("0.001", 48_000), None);
}

#[test]
fn a_stream_is_announced_and_found_again() {
    let group = "239.69.1.2:5004".parse().unwrap();
    let ours = pipeline::Stream {
        channels: 8,
        sample_rate: 48_000,
        block_frames: 48,
        codec: Codec::Pcm(format::Encoding::I24),
        ..pipeline::Stream::default()
    };
    let media = Media::of(&ours, group).unwrap();
    assert_eq!((media.payload_type, media.packet_time), (96, Some(Duration::from_millis(1))));
    assert_eq!(media.stream(), ours);
    // CD audio has a number of its own, and a block that is too long goes in parts.
    let cd = pipeline::Stream { block_frames: 441, ..pipeline::Stream::default() };
    let media = Media::of(&cd, group).unwrap();
    assert_eq!((media.payload_type, media.packet_frames()), (10, Some(221)));
    let float = pipeline::Stream { codec: Codec::Pcm(format::Encoding::F32), ..cd };
    assert_eq!(Media::of(&float, group), None);
}

#[test]
fn mistakes_are_shown_where_they_stand() {
    let problem = |from: &str, to: &str| {
        assert!(AES67.contains(from), "{from}");
        AES67.replacen(from, to, 1).parse::<Session>().expect_err(to).to_string()
    };
    for (from, to, expected) in [
        ("v=0", "v=1", "line 1, column 1: the line `v=0`, with which a description starts, is missing"),
        ("t=0 0", "t 0 0", "line 5, column 1: a line is a letter, `=` and a value"),
        ("5004", "65536", "line 6, column 9: `65536` is not a port, 0 to 65535"),
        ("AVP 96", "AVP 960", "line 6, column 22: `960` is not a payload type, 0 to 127"),
        ("239.0.0.1/32", "239.0.0/32", "line 4, column 10: `239.0.0` is not an address"),
        ("239.0.0.1/32", "", "line 4, column 10: `IN IP4` or `IN IP6` and an address is missing"),
        ("/32", "/320", "line 4, column 20: `320` is not a time to live, 0 to 255"),
        ("/48000", "/", "line 8, column 17: `` is not the clock's rate in Hz, 1 to 768000"),
        ("L24/48000/8", "L24", "line 8, column 16: `/` and the clock's rate is missing"),
        (
            "L24/48000/8",
            "opus/96000/2",
            "line 8, column 18: `96000` is not 48000, the clock of Opus (RFC 7587)",
        ),
        ("48000/8", "48000/0", "line 8, column 23: `0` is not a number of channels, 1 to 256"),
        ("ptime:1", "ptime:one", "line 10, column 9: `one` is not milliseconds"),
        ("direct=963214424", "direct=x", "line 12, column 19: `x` is not an offset of 32 bits"),
        (
            "L24",
            "L20",
            "line 6, column 3: nothing is audio over RTP/AVP in one of L16, L24, PCMU, PCMA, opus",
        ),
        ("c=IN IP4 239.0.0.1/32\r\n", "", "line 5, column 3: there is no `c=` line with the address"),
    ] {
        assert_eq!(problem(from, to), expected, "{to}");
    }
}

fn text() -> impl Strategy<Value = String> {
    "[ -~]{0,12}"
}

fn stream() -> impl Strategy<Value = Media> {
    let address = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u16; 8]>().prop_map(IpAddr::from),
        (224..240u8, any::<[u8; 3]>()).prop_map(|(a, [b, c, d])| IpAddr::from([a, b, c, d])),
    ];
    let format = (0..5usize, 1..768_000u32, 1..256u16).prop_map(|(encoding, clock, channels)| {
        match Encoding::ALL[encoding] {
            Encoding::Opus => (Encoding::Opus, 48_000, 1 + channels % 2),
            encoding => (encoding, clock, channels),
        }
    });
    let clocks = (
        prop::option::of("[!-~]{1,20}"),
        prop::option::of(prop_oneof![any::<u32>().prop_map(MediaClock::Direct), Just(MediaClock::Sender)]),
    );
    let time = prop::option::of((1..1_000_000_000u64).prop_map(Duration::from_nanos));
    let place = (address.clone(), any::<u8>(), 1..u16::MAX, prop::collection::vec(address, 0..3));
    (place, 0..128u8, format, time, clocks).prop_map(|(place, payload_type, format, packet_time, clocks)| {
        let (address, ttl, port, sources) = place;
        let is_group = address.is_ipv4() && address.is_multicast();
        let (encoding, clock, channels) = format;
        Media {
            address,
            ttl: is_group.then_some(ttl),
            port,
            sources,
            payload_type,
            encoding,
            clock,
            channels,
            packet_time,
            reference_clock: clocks.0,
            media_clock: clocks.1,
        }
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn what_is_written_is_read_again(name in "[!-~]([ -~]{0,20}[!-~])?", media in prop::collection::vec(stream(), 1..4)) {
        let origin = Origin { username: "-".to_owned(), session: 7, version: 8, host: "192.0.2.1".to_owned() };
        let session = Session { name, origin, media };
        let text = session.to_string();
        prop_assert_eq!(text.parse(), Ok(session), "{}", text);
    }

    /// No name breaks out of its line.
    #[test]
    fn what_is_written_can_be_read(name in any::<String>(), host in any::<String>(), clock in any::<String>(), stream in stream()) {
        let origin = Origin { username: name.clone(), host, ..Origin::default() };
        let stream = Media { reference_clock: Some(clock), ..stream };
        let text = Session { name, origin, media: vec![stream.clone()] }.to_string();
        let again = read(&text);
        prop_assert_eq!(again.media.len(), 1);
        prop_assert_eq!(&again.media[0].sources, &stream.sources);
    }

    #[test]
    fn any_text_is_a_description_or_a_place(lines in prop::collection::vec((prop::sample::select(vec!["v=0", "m=audio 5004 RTP/AVP 96", "a=rtpmap:96 ", "c=IN IP4 ", "a=ptime:", "a=source-filter:", "o=", "a=mediaclk:", "a=ts-refclk:", ""]), text()), 0..12)) {
        let text: String = lines.iter().map(|(start, rest)| format!("{start}{rest}\n")).collect();
        fuzz_sdp(&text);
    }
}
