//! Voice from A/D FIFO to D/A FIFO, over every transport.

mod support;

use support::{GoOn, Log, experiment, flow, parse, run, simulate};
use trunkline_core::{Duration, Time};
use trunkline_metrics::{Margin, Observation};

/// 80 bytes of voice, 8 of UDP, 20 of IPv4 at 1 Mbit/s, and 10 ms of propagation.
const ONE_WAY: Duration = Duration::from_nanos(108 * 8 * 1_000 + 10_000_000);

const FILL: Duration = Duration::from_millis(10);

fn voice(transport: &str, source: &str, rest: &str) -> String {
    format!(
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n\
         source = {{ kind = \"voice\", samples = 80, {source} }}\n{rest}\n"
    )
}

/// Everything at once after 3 s: the link is busy for about half a second.
const BURST: &str = "[flow.burst]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nstart = \"3 s\"\n\
                     source = { kind = \"bulk\", message = \"1000 B\", interval = \"10 us\", bytes = \"60 KB\" }\n";

const LONG_QUEUE: &str = "queue = { kind = \"fifo\", limit = \"1 MB\" }";

#[test]
fn start_up_is_the_time_to_fill_a_packet_and_one_latency() {
    let file = experiment("", &voice("\"udp\"", "fifo = 640", "playback = \"fifo\""));
    let path = flow(&simulate(&file), "voice").voice_path.unwrap();
    let start_up = path.start_up.unwrap();
    assert_eq!((start_up.count, start_up.mean), (1, FILL + ONE_WAY));
    let margin = path.margin.unwrap();
    assert_eq!((margin.count, margin.min, margin.max), (999, Margin::default(), Margin::default()));
    assert_eq!((path.underflows, path.capture_overflows, path.playback_overflows), (0, 0, 0));
    // A reserve of two more packets is a margin of as much.
    let rest = "playback = { kind = \"fifo\", fill = 240 }";
    let path =
        flow(&simulate(&experiment("", &voice("\"udp\"", "fifo = 640", rest))), "voice").voice_path.unwrap();
    assert_eq!(path.start_up.unwrap().max, FILL * 3 + ONE_WAY);
    assert_eq!(path.margin.unwrap().min, Margin::from(FILL * 2));
}

/// A call connects first, and speaks then: the time to connect is not part of what its listener hears.
#[test]
fn a_source_begins_when_its_connection_stands() {
    let quality = |transport: &str, rest: &str| {
        let rest = format!("playout = \"40 ms\"\n{rest}");
        let file = experiment("", &voice(&format!("\"{transport}\""), "phase = \"together\"", &rest));
        let summary = simulate(&file);
        let flow = flow(&summary, "voice").clone();
        (flow.quality.clone().unwrap(), flow)
    };
    let over_udp = FILL + ONE_WAY + Duration::from_millis(40);
    for transport in ["tcp", "sctp", "quic", "dccp", "xtp", "urp"] {
        let (good, flow) = quality(transport, "");
        let more = good.mouth_to_ear.unwrap().saturating_sub(over_udp);
        // Larger headers; the first message of QUIC is behind the end of its handshake, of 1,200 bytes and more.
        let most = Duration::from_millis(if transport == "quic" { 15 } else { 1 });
        assert!(more < most, "{transport}: {more:?} more");
        assert_eq!(good.ppl.value(), 0.0, "{transport}");
        // It is measured from its start to the end of the run, and delivers what it offers.
        let away = Duration::from_secs(10).saturating_sub(flow.throughput.active);
        let handshake = Duration::from_millis(20)..Duration::from_millis(60);
        assert!(handshake.contains(&away), "{transport}: {away:?}");
        let user = flow.throughput.user.bits_per_second();
        assert!((63_900..=64_100).contains(&user), "{transport}: {user}");
        // One that starts later is connected by then.
        let (_, late) = quality(transport, "start = \"1 s\"");
        assert_eq!(late.throughput.active, Duration::from_secs(9), "{transport}");
    }
}

#[test]
fn a_conversation_is_judged_by_what_its_listener_hears() {
    let alone = |source, rest| experiment("", &voice("\"udp\"", source, rest));
    let beside = |source, rest| experiment(LONG_QUEUE, &(voice("\"udp\"", source, rest) + BURST));
    let quality = |file| flow(&simulate(&file), "voice").quality.clone().unwrap();
    let playout = ("phase = \"together\"", "playout = \"40 ms\"\ncodec = \"g711-plc\"");
    let good = quality(alone(playout.0, playout.1));
    assert_eq!((good.mouth_to_ear, good.burst_r), (Some(FILL + ONE_WAY + Duration::from_millis(40)), 1.0));
    assert!(good.ppl.value() == 0.0 && good.mos > 4.3, "{good:?}");
    // For half a second nothing comes in time.
    let bad = quality(beside(playout.0, playout.1));
    assert!((0.03..0.06).contains(&bad.ppl.value()) && bad.burst_r > 30.0, "{bad:?}");
    assert!(bad.mos < 4.0, "{bad:?}");
    // A FIFO begins with the first packet, and goes on as much later as a packet came late.
    let fifo = ("fifo = 640", "playback = \"fifo\"");
    let good = quality(alone(fifo.0, fifo.1));
    assert_eq!((good.mouth_to_ear, good.codec.as_str()), (Some(FILL + ONE_WAY), "g711"));
    let bad = quality(beside(fifo.0, fifo.1));
    assert!(bad.mouth_to_ear > good.mouth_to_ear && bad.r < good.r, "{bad:?}");
}

#[test]
fn a_silence_of_the_speaker_is_followed_by_a_new_start_up() {
    let source = "talk = \"200 ms\", silence = \"300 ms\"";
    let file = experiment("", &voice("\"udp\"", source, "playback = \"fifo\""));
    let path = flow(&simulate(&file), "voice").voice_path.unwrap();
    let start_up = path.start_up.unwrap();
    assert!((20..=21).contains(&start_up.count), "{start_up:?}");
    assert_eq!((start_up.min, start_up.max, path.underflows), (FILL + ONE_WAY, FILL + ONE_WAY, 0));
}

#[test]
fn a_stall_runs_over_at_one_end_and_dry_at_the_other() {
    let transport = "{ kind = \"tcp\", window = \"4 KiB\" }";
    let rest = "channels = 2\nplayback = { kind = \"fifo\", depth = 1600 }";
    let flows = voice(transport, "fifo = 800, largest = 400", rest) + BURST;
    let summary = simulate(&experiment(LONG_QUEUE, &flows));
    let voice = flow(&summary, "voice");
    let path = voice.voice_path.unwrap();
    assert_eq!(voice.counts.lost + voice.counts.refused, 0, "TCP repairs");
    assert_eq!(path.capture_overflows, 2, "one of each channel: {path:?}");
    assert!(path.underflows >= 2 && path.silence_longest > Duration::from_millis(400), "{path:?}");
    assert_eq!(path.margin.unwrap().min, -Margin::from(path.silence_longest));
    assert_eq!(path.margin.unwrap().missed, path.underflows);
    assert!(path.playback_overflows > 0, "what was kept came faster than it was played: {path:?}");
    assert_eq!(simulate(&experiment(LONG_QUEUE, &flows)).flows, summary.flows, "the same again");
}

/// Samples that entered and left the A/D side of `channels` channels; the payloads that left.
fn samples(text: &str) -> (u64, u64, Vec<u64>) {
    let mut log = Log::default();
    let file = parse(text);
    run(&file.points.first().scenario, 7, &mut log, &mut GoOn);
    let (mut out, mut lost, mut lengths) = (0, 0, Vec::new());
    for (_, id, what) in log.0 {
        match what {
            Observation::Sent { payload, .. } | Observation::Refused { payload, .. } if id.0 == 0 => {
                out += payload.count();
                lengths.push(payload.count());
            }
            Observation::Overflowed { samples, .. } => lost += u64::from(samples),
            _ => {}
        }
    }
    (out, lost, lengths)
}

#[test]
fn over_every_transport_samples_are_sent_or_refused_or_lost() {
    let transports = [
        "\"udp\"",
        "{ kind = \"tcp\", window = \"4 KiB\" }",
        "{ kind = \"tcp\", window = \"4 KiB\", send-timeout = \"40 ms\" }",
        "{ kind = \"urp\", block = \"512 B\" }",
        "{ kind = \"xtp\", window = \"4 KiB\" }",
        "{ kind = \"sctp\", window = \"8 KiB\" }",
        "{ kind = \"quic\", mode = \"stream\", window = \"4 KiB\" }",
        "{ kind = \"quic\", mode = \"datagrams\", window = \"4 KiB\" }",
        "\"dccp\"",
        "\"rtp\"",
    ];
    for transport in transports {
        let flows =
            voice(transport, "fifo = 1000, largest = 400, phase = \"together\"", "channels = 3") + BURST;
        let text = format!(
            "name = \"test\"\nduration = \"5 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
             rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n{LONG_QUEUE}\n{flows}"
        );
        let (out, lost, lengths) = samples(&text);
        // 500 services of 3 channels, but for those of the time in which it connects.
        let services = (out + lost) / (3 * 80);
        let is_connectionless = ["\"udp\"", "\"rtp\""].contains(&transport);
        assert_eq!((out + lost) % (3 * 80), 0, "{transport}");
        let expected = if is_connectionless { 500..=500 } else { 494..=498 };
        assert!(expected.contains(&services), "{transport}: {services} services");
        assert!(lengths.iter().all(|&length| length <= 400), "{transport}");
        // A stall of half a second holds back what has a window.
        let accumulates = lengths.iter().any(|&length| length > 80);
        match transport {
            "\"udp\"" | "\"rtp\"" => assert!(!accumulates, "{transport}"),
            transport if transport.contains("datagrams") || transport.contains("dccp") => {}
            _ => assert!(accumulates, "{transport}: what accumulates is sent at once"),
        }
    }
}

#[test]
fn a_busy_host_lets_samples_accumulate() {
    // A packet takes 25 ms to be handed over, in which 200 samples come.
    let text = "name = \"test\"\nduration = \"5 s\"\n[hosts.a]\nsend-message = \"25 ms\"\n[hosts.b]\n[link.trunk]\n\
                between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n";
    let phase = "phase = \"together\"";
    let roomy = voice("\"udp\"", &format!("fifo = 640, {phase}"), "");
    let (out, lost, lengths) = samples(&format!("{text}{roomy}"));
    assert_eq!((out, lost), (500 * 80, 0));
    assert!(lengths[1..lengths.len() - 1].iter().all(|length| [160, 240].contains(length)), "{lengths:?}");
    let narrow = voice("\"udp\"", &format!("fifo = 160, {phase}"), "");
    let (out, lost, _) = samples(&format!("{text}{narrow}"));
    assert_eq!(out + lost, 500 * 80);
    assert!((7_000..9_000).contains(&lost), "a fifth finds no room: {lost}");
    // A telephone channel offers as much whatever becomes of it.
    let offered = simulate(&parse(&format!("{text}{narrow}"))).flows[0].throughput.offered;
    assert!((63_500..64_500).contains(&offered.bits_per_second()), "{offered}");
}

#[test]
fn many_channels_share_a_conversation_both_ways_at_once() {
    let one = |name: &str, from: &str, to: &str| {
        format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = {{ kind = \"xtp\", window = \"32 KiB\" }}\n\
             source = {{ kind = \"voice\", samples = 160, fifo = 640 }}\nchannels = 24\n\
             playback = {{ kind = \"fifo\", fill = 320 }}\n"
        )
    };
    let text = "name = \"test\"\nduration = \"5 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\n\
                between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n";
    let summary = simulate(&parse(&format!("{text}{}{}", one("there", "a", "b"), one("back", "b", "a"))));
    for name in ["there", "back"] {
        let voice = flow(&summary, name);
        // While it connects a channel may have wanted one of its messages.
        assert!((24 * 249..=24 * 250).contains(&voice.counts.sent), "{name}: {:?}", voice.counts);
        assert_eq!(voice.counts.lost, 0, "{name}");
        let path = voice.voice_path.unwrap();
        assert_eq!(path.start_up.unwrap().count, 24, "{name}");
        assert!(path.margin.unwrap().min > Margin::default(), "{name}: {path:?}");
        assert_eq!((path.underflows, path.capture_overflows, path.playback_overflows), (0, 0, 0), "{name}");
    }
}

#[test]
fn overflows_are_reported_at_the_time_of_the_first_sample_lost() {
    // Nothing gets through: the connection is never made.
    let transport = "{ kind = \"tcp\", send-timeout = \"1 s\" }";
    let file = experiment("loss = \"100 %\"", &voice(transport, "fifo = 800, phase = \"together\"", ""));
    let mut log = Log::default();
    run(&file.points.first().scenario, 7, &mut log, &mut GoOn);
    let overflows: Vec<(Time, u32)> = log
        .0
        .iter()
        .filter_map(|&(at, _, what)| match what {
            Observation::Overflowed { samples, .. } => Some((at, samples)),
            _ => None,
        })
        .collect();
    // No packet is ever taken: the FIFO is full with 800 samples, of which the first 80 were there at 0, and 79,200 more come.
    assert_eq!(overflows, [(Time::from_nanos(90_125_000), 79_200)]);
}
