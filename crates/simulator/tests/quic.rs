//! QUIC between simulated hosts, in each of its modes.

mod support;

use support::{flow, parse, simulate};
use trunkline_metrics::RepetitionSummary;

/// Flows from `a` to `b` over 8 Mbit/s with 25 ms each way, and what else the link does.
fn over(link: &str, flows: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"20 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"8 Mbit/s\"\ndelay = \"25 ms\"\n{link}\n{flows}"
    )))
}

fn voice(mode: &str) -> String {
    format!(
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"quic\", mode = \"{mode}\" }}\n\
         source = {{ kind = \"voice\", samples = 80 }}\n"
    )
}

fn bulk(name: &str, transport: &str, start: &str) -> String {
    format!(
        "[flow.{name}]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nstart = \"{start}\"\n\
         source = {{ kind = \"bulk\", message = \"1000 B\" }}\n"
    )
}

const MODES: [&str; 3] = ["stream", "streams", "datagrams"];

#[test]
fn voice_arrives_in_every_mode() {
    for mode in MODES {
        let summary = over("", &voice(mode));
        let voice = flow(&summary, "voice");
        assert!(support::nearly(voice.counts.sent, 2000), "{mode}: {:?}", voice.counts);
        assert_eq!(voice.counts.received, voice.counts.sent, "{mode}");
        let latency = voice.latency.expect("messages were received");
        // 25 ms and some 200 bytes at 8 Mbit/s; the first wait for the handshake.
        assert!((25.0..26.0).contains(&latency.min.as_millis_f64()), "{mode}: {latency:?}");
    }
}

#[test]
fn loss_is_repaired_on_streams_and_delays_others_only_on_one() {
    let [stream, streams, datagrams] = MODES.map(|mode| {
        let summary = over("loss = \"5 %\"", &voice(mode));
        let voice = flow(&summary, "voice");
        let latency = voice.latency.expect("messages were received");
        (voice.counts.lost, latency.mean.as_millis_f64(), latency.max.as_millis_f64())
    });
    assert_eq!((stream.0, streams.0), (0, 0));
    assert!((60..150).contains(&datagrams.0), "{datagrams:?} of 2000");
    assert!(streams.1 < stream.1, "mean latency with streams {streams:?}, with one {stream:?}");
}

#[test]
fn it_fills_a_link_and_shares_it_with_its_like() {
    let fifo = "queue = { kind = \"fifo\", limit = \"100 packets\" }";
    for (mode, control) in MODES.iter().zip(["cubic", "new-reno", "cubic"]) {
        let quic = format!("{{ kind = \"quic\", mode = \"{mode}\", congestion-control = \"{control}\" }}");
        let alone = over(fifo, &bulk("quic", &quic, "0 s"));
        let rate = flow(&alone, "quic").throughput.user.bits_per_second();
        assert!(rate > 6_500_000, "{quic} alone: {rate} bit/s of 8 Mbit/s");
        let both = over(fifo, &(bulk("one", &quic, "0 s") + &bulk("two", &quic, "100 ms")));
        let [one, two] =
            ["one", "two"].map(|name| flow(&both, name).throughput.user.bits_per_second() as f64);
        let share = one / (one + two);
        assert!((0.3..0.7).contains(&share), "{quic}: {share} of what both have");
        assert!(one + two > 6_500_000.0, "{quic}: {one} and {two} bit/s");
    }
}

#[test]
fn a_run_repeats_in_every_figure() {
    for mode in MODES {
        let run = || {
            let link = "loss = \"2 %\"\njitter = { kind = \"uniform\", min = \"0 ms\", max = \"5 ms\" }";
            format!("{:?}", flow(&over(link, &voice(mode)), "voice"))
        };
        assert_eq!(run(), run(), "{mode}");
    }
}
