//! One transmission for several sinks, each measured by itself, and packets for nobody.

mod support;

use support::{flow, parse, simulate};
use trunkline_core::{Duration, Rate};
use trunkline_metrics::{FlowSummary, Measured, RepetitionSummary, SinkSummary, ThroughputSummary};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Hosts `a` to `d` on a ring.
const RING: &str =
    "[link.ring]\nmedium = \"fddi\"\nbetween = [\"a\", \"b\", \"c\", \"d\"]\nclass = \"synchronous\"\n";

/// Behind a trunk from `a` to `r` a branch to each of `b`, `c` and `d`, with these keys.
fn tree(b: &str, c: &str, d: &str) -> String {
    let link = |name: &str, between: &str, keys: &str| {
        let delay = if keys.contains("delay") { "" } else { "delay = \"5 ms\"\n" };
        let rate = if keys.contains("rate") { "" } else { "rate = \"10 Mbit/s\"\n" };
        format!("[link.{name}]\nbetween = {between}\n{rate}{delay}{keys}\n")
    };
    let branches = [("b", b), ("c", c), ("d", d)]
        .map(|(host, keys)| link(&format!("to-{host}"), &format!("[\"r\", \"{host}\"]"), keys));
    link("trunk", "[\"a\", \"r\"]", "") + &branches.concat()
}

fn measure(links: &str, flows: &str) -> RepetitionSummary {
    let hosts = "a = {}\nb = {}\nc = {}\nd = {}\nr = {}\n";
    let text = format!("name = \"test\"\nduration = \"10 s\"\nseed = 7\n[hosts]\n{hosts}{links}{flows}");
    simulate(&parse(&text))
}

/// A flow of voice, 50 messages a second, from `a`.
fn voice(to: &str, transport: &str, rest: &str) -> String {
    format!(
        "[flow.it]\nfrom = \"a\"\nto = {to}\ntransport = {transport}\nsource = {{ kind = \"voice\", samples = 160 }}\n{rest}\n"
    )
}

fn sink<'f>(flow: &'f FlowSummary, name: &str) -> &'f SinkSummary {
    flow.sinks.iter().find(|sink| sink.sink == name).unwrap_or_else(|| panic!("no sink {name}"))
}

fn offered(summary: &RepetitionSummary, link: &str) -> u64 {
    summary.links.iter().find(|l| l.link == link).unwrap_or_else(|| panic!("no link {link}")).offered
}

fn mean(sink: &SinkSummary) -> Duration {
    sink.latency.unwrap_or_else(|| panic!("nothing reached {}", sink.sink)).mean
}

/// Messages under way to a sink that leaves are not lost, and its rate is that of its own time.
#[test]
fn a_sink_is_measured_while_it_is_there() {
    let to = "[\"b\", { host = \"c\", join = \"2 s\", leave = \"7 s\" }]";
    let summary = measure(&tree("", "delay = \"50 ms\"\n", ""), &voice(to, "\"udp\"", "channels = 4"));
    let it = flow(&summary, "it");
    let c = sink(it, "c");
    assert_eq!(c.counts.lost, 0, "{:?}", c.counts);
    assert!((8..=16).contains(&c.counts.unfinished), "{:?}", c.counts);
    assert!(c.user.bits_per_second().abs_diff(4 * 64_000) < 4_000, "{}", c.user);
    assert_eq!((c.voice_channels, sink(it, "b").voice_channels, it.voice_channels), (4, 4, 4));
}

/// The same of the only sink: the figures of the flow are its own.
#[test]
fn an_only_sink_is_measured_while_it_is_there() {
    let to = "{ host = \"c\", join = \"2 s\", leave = \"7 s\" }";
    let summary = measure(&tree("", "delay = \"50 ms\"\n", ""), &voice(to, "\"udp\"", "channels = 4"));
    let it = flow(&summary, "it");
    assert_eq!(it.counts.sent, 4 * 250, "{:?}", it.counts);
    let near = |rate: Rate, of: u64| rate.bits_per_second().abs_diff(of) < of / 20;
    let ThroughputSummary { offered, user, network, .. } = it.throughput;
    assert!(near(offered, 4 * 64_000) && near(user, 4 * 64_000), "{:?}", it.throughput);
    // Every message takes 28 bytes of UDP and IP.
    assert!(near(network.unwrap(), 4 * 50 * 8 * (160 + 28)), "{:?}", it.throughput);
    assert_eq!(it.voice_channels, 4);
}

/// The path takes a second: what was sent in the last one before a sink leaves is never heard, and the rates of a bundle, of its
/// members and their fairness are over the time before, as the flow's and the sink's are.
#[test]
fn a_bundle_is_measured_while_its_sinks_are_there() {
    let links = tree("", "delay = \"1 s\"\n", "");
    let near = |rate: Rate, of: u64| rate.bits_per_second().abs_diff(of) < of / 50;
    let to = "{ host = \"c\", leave = \"5 s\" }";
    let bundle = "count = 2\n[bundle.all]\nflows = [\"it\"]";
    let summary = measure(&links, &voice(to, "\"udp\"", bundle));
    let (it, bundle) = (flow(&summary, "it"), &summary.bundles[0]);
    assert!(near(it.throughput.user, 2 * 64_000), "{:?}", it.throughput);
    assert_eq!(bundle.user, it.throughput.user);
    let of_members = bundle.classes[0].throughput.unwrap();
    assert!(near(of_members.min, 64_000) && near(of_members.max, 64_000), "{of_members:?}");

    let to = "[\"b\", { host = \"c\", leave = \"5 s\" }]";
    let summary = measure(&links, &voice(to, "\"udp\"", "count = 2"));
    let it = flow(&summary, "it");
    assert!(it.sinks.iter().all(|sink| near(sink.user, 2 * 64_000)), "{:?}", it.sinks);
    assert!(it.fairness.is_some_and(|index| index > 0.9995), "{:?}", it.fairness);
}

/// Half of the messages are lost. Those that were under way as the sink joined are not for it, whether they arrive or not: they
/// would count only where they arrive.
#[test]
fn messages_sent_before_a_sink_joined_count_nowhere() {
    let to = "{ host = \"c\", join = \"9 s\" }";
    let rest = "codec = \"g711\"\nplayout = \"60 ms\"\nchannels = 4";
    for to in [to.to_owned(), format!("[\"b\", {to}]")] {
        let lossy = "loss = \"50 %\"\ndelay = \"900 ms\"\n";
        let summary = measure(&tree("", lossy, ""), &voice(&to, "\"udp\"", rest));
        let it = flow(&summary, "it");
        let counts = it.sinks.iter().find(|sink| sink.sink == "c").map_or(it.counts, |sink| sink.counts);
        assert_eq!(counts.sent, 4 * 50, "{to}: {counts:?}");
        assert_eq!(counts.sent, counts.received + counts.late + counts.lost + counts.unfinished);
        if it.sinks.is_empty() {
            let quality = it.quality.as_ref().expect("speech is played");
            let share = it.undelivered() + it.late.value();
            assert!((quality.ppl.value() - share).abs() < 1e-9, "{quality:?} {share}");
        }
    }
}

/// Messages that wait in a transport which never sends them count for a sink from its joining on.
#[test]
fn messages_due_before_a_sink_joined_are_not_refused_for_it() {
    let links = tree("", "", "").replacen("delay", "loss = \"100 %\"\ndelay", 1);
    let to = "[\"b\", { host = \"c\", join = \"2 s\" }]";
    let summary = measure(&links, &voice(to, "{ kind = \"xtp\", service = \"reliable-multicast\" }", ""));
    let refused = ["b", "c"].map(|name| sink(flow(&summary, "it"), name).counts.refused);
    assert_eq!(refused, [500, 400]);
}

/// A sink's silence ends as it leaves.
#[test]
fn nobody_waits_for_sound_after_a_sink_has_left() {
    let rest = "playback = { kind = \"fifo\", depth = 4096 }";
    for to in ["{ host = \"c\", leave = \"4 s\" }", "[\"b\", { host = \"c\", leave = \"4 s\" }]"] {
        let summary = measure(&tree("", "delay = \"50 ms\"\n", ""), &voice(to, "\"udp\"", rest));
        let silence = flow(&summary, "it").voice_path.as_ref().unwrap().silence;
        assert!(silence < MS(100), "{to}: {silence}");
    }
}

/// Messages that a sender holds back for a sink that has failed, without its knowing, were due there.
#[test]
fn what_waits_for_a_sink_that_has_failed_is_refused() {
    let to = "{ host = \"c\", fail = \"5 s\" }";
    let transport = "{ kind = \"tcp\", send-buffer = \"8 KiB\" }";
    let summary = measure(&tree("", "", ""), &voice(to, transport, ""));
    let counts = flow(&summary, "it").counts;
    assert!(support::nearly(counts.sent + counts.refused, 500) && counts.refused > 100, "{counts:?}");
}

#[test]
fn one_frame_on_a_ring_is_for_all_sinks_and_for_no_other_station() {
    let summary = measure(RING, &voice("[\"b\", \"c\"]", "\"udp\"", ""));
    let it = flow(&summary, "it");
    assert_eq!((offered(&summary, "ring a"), offered(&summary, "ring b")), (500, 0));
    assert_eq!((it.counts.sent, it.counts.received, it.counts.lost), (1000, 1000, 0));
    assert_eq!((sink(it, "b").counts.received, sink(it, "c").counts.received), (500, 500));
    assert!(mean(sink(it, "b")) <= mean(sink(it, "c")), "the ring passes b first");
    // 160 B of voice, 28 B of UDP and IP, 25 B of FDDI; twice 160 B were received.
    let network = it.throughput.network.unwrap().bits_per_second() as f64;
    let ratio = network / it.throughput.user.bits_per_second() as f64;
    assert!((ratio - 213.0 / 320.0).abs() < 0.01, "{ratio}");
    assert_eq!(it.voice_channels, 1, "for each of the two, not two");
}

#[test]
fn packets_for_several_sinks_cross_every_link_of_their_tree_once() {
    let summary = measure(&tree("", "loss = \"10 %\"", ""), &voice("[\"b\", \"c\"]", "\"udp\"", ""));
    let it = flow(&summary, "it");
    for link in ["trunk a>r", "to-b r>b", "to-c r>c"] {
        assert_eq!(offered(&summary, link), 500, "{link}");
    }
    assert_eq!((offered(&summary, "to-d r>d"), offered(&summary, "trunk r>a")), (0, 0));
    assert_eq!((sink(it, "b").counts.received, sink(it, "b").counts.lost), (500, 0));
    let lost = sink(it, "c").counts.lost;
    assert!((25..80).contains(&lost), "{lost}");
    assert_eq!((it.counts.lost, it.counts.sent), (lost, 1000));
    assert_eq!(sink(it, "c").loss.value(), lost as f64 / 500.0);
}

#[test]
fn every_sink_of_a_reflected_flow_has_its_own_round_trip() {
    let reliable = "{ kind = \"xtp\", service = \"reliable-multicast\", slot = \"100 us\" }";
    for transport in ["\"udp\"", "{ kind = \"xtp\", service = \"multicast\" }", reliable] {
        let flows = voice("[\"b\", \"c\"]", transport, "reflect = true\ncount = 3");
        let summary = measure(&tree("", "delay = \"30 ms\"", ""), &flows);
        let it = flow(&summary, "it");
        assert_eq!(it.measured, Measured::RoundTrip);
        let [b, c] = ["b", "c"].map(|name| sink(it, name));
        let sent = b.counts.sent;
        assert!(support::nearly(sent, 1500), "{transport}: {sent}");
        for sink in [b, c] {
            assert_eq!((sink.counts.sent, sink.counts.received), (sent, sent), "{transport}");
        }
        assert!((MS(20)..MS(24)).contains(&mean(b)), "{transport}: {}", mean(b));
        assert!((MS(70)..MS(74)).contains(&mean(c)), "{transport}: {}", mean(c));
    }
}

#[test]
fn a_sink_counts_from_its_joining_to_its_leaving() {
    let to = "[\"b\", { host = \"c\", join = \"2 s\", leave = \"6 s\" }]";
    for transport in ["\"udp\"", "{ kind = \"xtp\", service = \"multicast\" }"] {
        let summary = measure(&tree("", "", ""), &voice(to, transport, ""));
        let it = flow(&summary, "it");
        let (b, c) = (sink(it, "b").counts, sink(it, "c").counts);
        assert_eq!((b.sent, b.lost), (500, 0), "{transport}");
        assert!((199..=201).contains(&c.sent), "{transport}: {c:?}");
        assert!(c.lost <= 1, "but for what was under way: {transport}: {c:?}");
        let fairness = it.fairness.expect("there are two sinks");
        assert!(fairness > 0.999, "both have the whole rate while they are there: {fairness}");
    }
}

#[test]
fn of_packets_for_nobody_only_the_sending_is_measured() {
    let flows = "[flow.load]\nfrom = \"a\"\nto = []\ntransport = \"udp\"\n\
                 source = { kind = \"load\", message = \"4000 B\", interval = \"1280 us\" }\n";
    let summary = measure(RING, flows);
    let load = flow(&summary, "load");
    assert_eq!(
        (load.measured, load.latency, load.counts.received, load.counts.lost),
        (Measured::Nothing, None, 0, 0)
    );
    assert!(load.counts.sent > 7_000, "{:?}", load.counts);
    let rate = load.throughput.network.unwrap().bits_per_second();
    assert!((25_000_000..26_000_000).contains(&rate), "{rate}");
    let a = summary.links.iter().find(|link| link.link == "ring a").unwrap();
    assert!((0.24..0.28).contains(&a.utilisation.value()), "{:?}", a.utilisation);
}

/// What counts `name` in the transport.
fn counter(flow: &FlowSummary, name: &str) -> u64 {
    flow.transport_counters
        .get(name)
        .copied()
        .unwrap_or_else(|| panic!("no `{name}`: {:?}", flow.transport_counters))
}

#[test]
fn a_reliable_multicast_reaches_all_the_slow_the_late_and_outlives_the_dead() {
    let to = "[\"b\", { host = \"c\", join = \"2 s\" }, { host = \"d\", fail = \"5 s\" }]";
    let transport = "{ kind = \"xtp\", service = \"reliable-multicast\", patience = \"500 ms\" }";
    let links = tree("loss = \"5 %\"", "loss = \"1 %\"", "")
        .replace("delay = \"5 ms\"\nloss = \"5 %\"", "delay = \"50 ms\"\nloss = \"5 %\"");
    let summary = measure(&links, &voice(to, transport, ""));
    let it = flow(&summary, "it");
    let [b, c, d] = ["b", "c", "d"].map(|name| sink(it, name));
    assert!(support::nearly(b.counts.sent, 500), "{:?}", b.counts);
    assert_eq!((b.counts.received, b.counts.lost), (b.counts.sent, 0));
    assert!((395..=400).contains(&c.counts.sent) && c.counts.lost == 0, "{:?}", c.counts);
    // What was sent until it was given up is lost for the one that fell silent.
    assert!((250..350).contains(&d.counts.sent), "{:?}", d.counts);
    assert!((1..100).contains(&d.counts.lost), "{:?}", d.counts);
    assert!(mean(b) > mean(c) + MS(40), "{} and {}", mean(b), mean(c));
    assert!(counter(it, "retransmissions") > 20);
    for (name, count) in [
        ("receivers-joined", 3),
        ("receivers-dropped", 1),
        ("receivers-joined b", 1),
        ("receivers-joined c", 1),
        ("receivers-dropped d", 1),
    ] {
        assert_eq!(counter(it, name), count, "{name}");
    }
}

#[test]
fn the_slowest_receiver_sets_the_pace_of_a_reliable_multicast() {
    let to = "[\"b\", { host = \"c\", leave = \"5 s\" }]";
    let flows = format!(
        "[flow.it]\nfrom = \"a\"\nto = {to}\ntransport = {{ kind = \"xtp\", service = \"reliable-multicast\" }}\n\
         source = {{ kind = \"bulk\", message = \"1000 B\" }}\n"
    );
    let summary = measure(&tree("", "rate = \"1 Mbit/s\"", ""), &flows);
    let it = flow(&summary, "it");
    let (b, c) = (sink(it, "b"), sink(it, "c"));
    assert_eq!((counter(it, "receivers-left c"), b.counts.lost), (1, 0));
    // Five seconds at the pace of c, and five at its own.
    assert!((400..700).contains(&c.counts.received), "{:?}", c.counts);
    assert!(b.counts.received > 2 * c.counts.received + 500, "{:?} and {:?}", b.counts, c.counts);
}

/// Routers forward nothing to hosts that have not joined, or have left.
#[test]
fn links_to_sinks_that_are_not_there_carry_nothing_of_the_group() {
    let to = "[\"b\", { host = \"c\", join = \"2 s\", leave = \"6 s\" }]";
    for transport in ["\"udp\"", "{ kind = \"xtp\", service = \"multicast\" }"] {
        let summary = measure(&tree("", "", ""), &voice(to, transport, ""));
        let [trunk, b, c] = ["trunk a>r", "to-b r>b", "to-c r>c"].map(|link| offered(&summary, link));
        assert!((500..=502).contains(&trunk) && b == trunk, "{transport}: {trunk} {b}");
        assert!((199..=201).contains(&c), "{transport}: {c}");
    }
    // A source knows of no members: its link carries all that it sends, and the others nothing before somebody joins.
    let to = "[{ host = \"b\", join = \"4 s\" }, { host = \"c\", join = \"5 s\" }]";
    let summary = measure(&tree("", "", ""), &voice(to, "\"udp\"", ""));
    let links = ["trunk a>r", "to-b r>b", "to-c r>c"].map(|link| offered(&summary, link));
    assert!(links[0] == 500 && links[1].abs_diff(300) <= 1 && links[2].abs_diff(250) <= 1, "{links:?}");
}

/// The queue of a slow line is free when its host joins: 188 B take 25.07 ms, of which 39 end in the second, 5.15 ms later.
#[test]
fn a_sink_that_joins_finds_an_idle_line() {
    let to = "[\"b\", { host = \"c\", join = \"5 s\", leave = \"6 s\" }]";
    let slow = "rate = \"60 kbit/s\"\ndelay = \"0 ms\"\n";
    let summary = measure(&tree("", slow, ""), &voice(to, "\"udp\"", ""));
    let c = sink(flow(&summary, "it"), "c").counts;
    assert_eq!((c.sent, c.received, c.lost, c.unfinished), (50, 39, 0, 11));
}

/// Messages under way to a sink that leaves are unfinished, even if none has arrived there, and those that were dropped are lost.
#[test]
fn nothing_is_lost_that_waits_while_a_sink_leaves() {
    let full = "[flow.full]\nfrom = \"r\"\nto = \"c\"\ntransport = \"udp\"\n\
                source = { kind = \"load\", message = \"972 B\", interval = \"10 ms\" }\n";
    let leaves = "{ host = \"c\", join = \"5 s\", leave = \"6 s\" }";
    for to in [leaves.to_owned(), format!("[\"b\", {leaves}]")] {
        let counts = |keys: &str, flows: &str| {
            let summary = measure(&tree("", keys, ""), &(voice(&to, "\"udp\"", "") + flows));
            let it = flow(&summary, "it");
            let counts = it.sinks.iter().find(|sink| sink.sink == "c").map_or(it.counts, |sink| sink.counts);
            (counts.sent, counts.received, counts.lost, counts.unfinished)
        };
        // Half of the load waits before the voice: some 250 packets, each of which takes 20 ms.
        let long = "rate = \"400 kbit/s\"\nqueue = { kind = \"fifo\", limit = \"1000 packets\" }\n";
        let waits = counts(long, full);
        assert_eq!(waits, (50, 0, 0, 50), "{to}");
        assert_eq!(counts("loss = \"100 %\"\n", ""), (50, 0, 50, 0), "{to}");
        // 20 packets of the queue are from before, and its limit drops the others.
        let dropped =
            counts("rate = \"400 kbit/s\"\nqueue = { kind = \"fifo\", limit = \"20 packets\" }\n", full);
        assert!(dropped.2 > 10 && dropped.0 == dropped.1 + dropped.2 + dropped.3, "{to}: {dropped:?}");
    }
}
