//! What can be calculated by hand must come out of the simulator.

#[path = "laws/bbr3.rs"]
mod bbr3;
#[path = "laws/l4s.rs"]
mod l4s;
mod support;
#[path = "laws/tcp.rs"]
mod tcp;

use support::{Log, experiment, flow, parse, run, simulate};
use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_experiment::{Progress, Supervisor};
use trunkline_metrics::Observation;
use trunkline_metrics::figures::of_links;

const VOICE: &str = "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                     source = { kind = \"voice\", samples = 80 }\n";

/// 80 bytes of voice, 8 of UDP, 20 of IPv4 at 1 Mbit/s, and 10 ms of propagation.
const ONE_WAY: Duration = Duration::from_nanos(108 * 8 * 1_000 + 10_000_000);

#[test]
fn an_idle_link_delays_by_serialisation_and_propagation() {
    let summary = simulate(&experiment("", VOICE));
    let voice = flow(&summary, "voice");
    let latency = voice.latency.expect("messages were received");
    assert_eq!((latency.min, latency.p50, latency.max), (ONE_WAY, ONE_WAY, ONE_WAY));
    assert_eq!(voice.counts.sent, 1_000, "a message every 10 ms for 10 s");
    assert_eq!(voice.counts.received, 1_000);
    assert_eq!(summary.links[0].link, "trunk a>b");
    assert_eq!(summary.links[0].delivered, 1_000);
    assert!((summary.links[0].utilisation.value() - 0.0864).abs() < 1e-4, "{:?}", summary.links[0]);
    assert_eq!(summary.links[1].offered, 0);
}

/// Every packet offered to a link is delivered, dropped or waits, so one on a long line is delivered, as its definition says.
#[test]
fn a_packet_on_the_line_at_the_end_counts_as_delivered_by_the_link() {
    let summary = simulate(&parse(&format!(
        "name = \"test\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"60 s\"\n{VOICE}"
    )));
    let (counts, link) = (flow(&summary, "voice").counts, &summary.links[0]);
    assert_eq!((counts.received, counts.unfinished), (0, 100));
    assert_eq!((link.offered, link.delivered), (100, 100));
    let definition = of_links().find(|figure| figure.id == "delivered").unwrap().definition.text();
    assert!(definition.contains("They may arrive after the end of the run."), "{definition}");
}

#[test]
fn a_reflected_message_takes_twice_as_long() {
    let summary = simulate(&experiment("", &format!("{VOICE}reflect = true\n")));
    let latency = flow(&summary, "voice").latency.expect("messages were received");
    assert_eq!((latency.min, latency.max), (ONE_WAY * 2, ONE_WAY * 2));
    assert_eq!(summary.links[1].delivered, 1_000);
}

#[test]
fn delays_of_a_path_add_up() {
    let text = "name = \"test\"\nduration = \"1 s\"\n[hosts]\na = {}\nm = {}\nb = {}\n\
                [link.first]\nbetween = [\"a\", \"m\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
                [link.second]\nbetween = [\"b\", \"m\"]\nrate = \"2 Mbit/s\"\ndelay = \"5 ms\"\noverhead = \"52 B\"\n";
    let summary = simulate(&parse(&format!("{text}{VOICE}")));
    let second = Duration::from_nanos(160 * 8 * 500 + 5_000_000);
    let latency = flow(&summary, "voice").latency.expect("messages were received");
    assert_eq!((latency.min, latency.max), (ONE_WAY + second, ONE_WAY + second));
}

#[test]
fn datagrams_that_say_they_are_capable_are_marked_instead_of_dropped() {
    // 12 channels of 86.4 kbit/s are too much for 1 Mbit/s.
    let voice = |ecn| {
        let transport = format!("transport = {{ kind = \"udp\", ecn = \"{ecn}\" }}");
        VOICE.replace("transport = \"udp\"", &transport) + "channels = 12\n"
    };
    let fates = |queue, ecn| {
        let queue = format!("queue = {{ kind = \"{queue}\", limit = \"100000 packets\" }}");
        let link = simulate(&experiment(&queue, &voice(ecn))).links[0].clone();
        let names = |causes: std::collections::BTreeMap<String, u64>| causes.into_keys().collect::<Vec<_>>();
        (names(link.dropped), names(link.marked))
    };
    let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<String>>();
    assert_eq!(fates("fq-codel", "not-ect"), (list(&["sojourn"]), list(&[])));
    assert_eq!(fates("fq-codel", "ect0"), (list(&[]), list(&["sojourn"])));
    assert_eq!(fates("dualpi2", "not-ect"), (list(&["probability"]), list(&[])));
    // What does not slow down is dropped in the end.
    assert_eq!(fates("dualpi2", "ect1"), (list(&["overload"]), list(&["coupled", "threshold"])));
}

#[test]
fn loss_is_what_the_link_is_told() {
    let voice = format!("{VOICE}channels = 8\n");
    let summary = simulate(&experiment("loss = \"5 %\"", &voice));
    let voice = flow(&summary, "voice");
    // 8,000 messages: the standard deviation of the share is 0.24 %.
    assert!((voice.loss.value() - 0.05).abs() < 0.01, "{}", voice.loss);
    assert_eq!(voice.counts.lost, summary.links[0].dropped["link-loss"]);
    assert_eq!(voice.counts.sent, voice.counts.received + voice.counts.lost);
}

#[test]
fn corrupted_messages_are_never_received() {
    let summary = simulate(&experiment("corrupt = \"10 %\"", VOICE));
    let voice = flow(&summary, "voice");
    assert!((50..150).contains(&voice.counts.lost), "{:?}", voice.counts);
    // A flipped bit in the header's length shows before the checksum does.
    let found = ["checksum-errors", "malformed", "strays"].map(|name| voice.transport_counters[name]);
    assert_eq!(voice.counts.lost, found.iter().sum::<u64>());
}

/// Messages that a checksum discards are lost, also where drops of the network are known.
#[test]
fn corrupted_messages_are_lost() {
    for share in ["90 %", "100 %"] {
        let voice = flow(&simulate(&experiment(&format!("corrupt = \"{share}\""), VOICE)), "voice").counts;
        assert!(voice.unfinished < 5 && voice.lost + 5 > voice.sent - voice.received, "{share}: {voice:?}");
    }
}

/// 64 channels of 48 kHz and 24 bit over SCTP's default window of 256 KiB and 30 ms: 69.9 of 73.7 Mbit/s. What waits at the
/// sender drains after the sources have ended.
#[test]
fn a_window_that_holds_a_flow_back_is_named_even_if_all_arrives_in_the_end() {
    let music = "[flow.music]\nfrom = \"a\"\nto = \"b\"\ntransport = \"sctp\"\nchannels = 1\n\
                 source = { kind = \"bulk\", message = \"9216 B\", interval = \"1 ms\" }\n";
    let summary = simulate(&parse(&format!(
        "name = \"test\"\nduration = \"3 s\"\ndrain = \"5 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.wan]\n\
         between = [\"a\", \"b\"]\nrate = \"200 Mbit/s\"\ndelay = \"15 ms\"\nqueue = {{ kind = \"fifo\", limit = \"4 MB\" }}\n{music}"
    )));
    let music = flow(&summary, "music");
    assert_eq!(
        (music.counts.lost, music.counts.refused, music.counts.unfinished),
        (0, 0, 0),
        "{:?}",
        music.counts
    );
    let limited = music.limited_by.as_ref().expect("the window is named");
    assert_eq!((limited.option.as_str(), limited.bytes), ("window", Bytes(256 << 10)));
}

#[test]
fn tcp_is_limited_by_window_over_round_trip_time() {
    // A window is announced in whole segments of 1460 bytes and filled with whole segments of 1448, as time stamps take 12; and
    // only every second segment is acknowledged at once (RFC 5681 section 4.2). So these windows hold even numbers of them.
    for (window, expected) in [("11680 B", 8.0 * 1448.0), ("23360 B", 16.0 * 1448.0)] {
        let bulk = format!(
            "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"tcp\", window = \"{window}\" }}\n\
             source = {{ kind = \"bulk\", message = \"4 KiB\" }}\n"
        );
        let summary = simulate(&parse(&format!(
            "name = \"test\"\nduration = \"30 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n{bulk}"
        )));
        let bulk = flow(&summary, "bulk");
        let user = bulk.throughput.user.bits_per_second() as f64;
        // A window each round trip of 100 ms and a segment's serialisation, less the headers of our messages.
        let law = expected * 8.0 / 0.1012 * 4_096.0 / 4_136.0;
        assert!((0.93..1.02).contains(&(user / law)), "{window}: {user} bit/s, the law says {law}");
        assert_eq!(bulk.counts.lost, 0);
    }
}

#[test]
fn the_option_that_limits_the_window_of_tcp_is_named() {
    for (options, option, bytes) in [
        ("window = \"32 KiB\"", "window", 32 << 10),
        ("max-window = \"48 KiB\"", "max-window", 48 << 10),
        ("window-scaling = false", "window-scaling", 65_535),
        ("window-scaling = false, window = \"1 MiB\"", "window-scaling", 65_535),
        ("window-scaling = false, max-window = \"48 KiB\"", "max-window", 48 << 10),
    ] {
        let summary = simulate(&parse(&format!(
            "name = \"test\"\nduration = \"5 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"50 Mbit/s\"\ndelay = \"50 ms\"\n[flow.bulk]\nfrom = \"a\"\nto = \"b\"\n\
             transport = {{ kind = \"tcp\", {options} }}\nsource = \"bulk\"\n"
        )));
        let limited = flow(&summary, "bulk").limited_by.as_ref().expect(options);
        assert_eq!((limited.option.as_str(), limited.bytes), (option, Bytes(bytes)), "{options}");
    }
}

/// Two segments are announced of 3 and 4 KiB, three of 5.
#[test]
fn windows_of_a_few_segments_are_named_with_what_whole_ones_allow() {
    for (window, segments) in [(3, 2), (4, 2), (5, 3)] {
        let summary = simulate(&parse(&format!(
            "name = \"test\"\nduration = \"10 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n[flow.data]\nfrom = \"a\"\n\
             to = \"b\"\ntransport = {{ kind = \"tcp\", send-timeout = \"40 ms\", window = \"{window} KiB\" }}\n\
             source = {{ kind = \"load\", message = \"1000 B\", interval = \"1 ms\" }}\n"
        )));
        let limited = flow(&summary, "data").limited_by.as_ref().expect("the window is named");
        assert_eq!((limited.option.as_str(), limited.bytes), ("window", Bytes(window << 10)));
        let allows = segments as f64 * 1448.0 * 8.0 / limited.round_trip.as_secs_f64();
        let at_most = limited.at_most.bits_per_second() as f64;
        assert!(
            (at_most - allows).abs() < 2.0,
            "{window} KiB: {at_most} bit/s, {segments} segments allow {allows}"
        );
    }
}

/// The hint names the option that limits XTP: a window that is acknowledged on request takes two round trips, and a burst takes whole packets.
#[test]
fn xtp_names_its_window_and_its_burst() {
    let paced = "{ kind = \"load\", message = \"1000 B\", interval = \"1 ms\" }";
    let bulk = "{ kind = \"bulk\", message = \"1000 B\" }";
    let burst = "rate = \"10 Mbit/s\", burst = \"1500 B\"";
    let unhindered = "flow-control = \"none\", error-control = \"none\", acknowledge = \"never\"";
    for (options, source, option, twice) in [
        ("window = \"16 KiB\"", paced, Some("window"), false),
        ("window = \"16 KiB\", acknowledge = \"on-request\"", paced, Some("window"), true),
        ("acknowledge = \"on-request\"", bulk, Some("window"), true),
        (burst, paced, Some("burst"), false),
        (burst, bulk, Some("burst"), false),
        (&format!("{burst}, {unhindered}"), paced, Some("burst"), false),
        ("rate = \"4 Mbit/s\"", paced, None, false),
        ("window = \"1 MiB\"", paced, None, false),
    ] {
        let summary = simulate(&parse(&format!(
            "name = \"test\"\nduration = \"10 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
             rate = \"20 Mbit/s\"\ndelay = \"30 ms\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n\
             transport = {{ kind = \"xtp\", {options} }}\nsource = {source}\n"
        )));
        let flow = flow(&summary, "f");
        let found = flow.limited_by.as_ref().map(|limited| (limited.option.as_str(), limited.twice));
        assert_eq!(found, option.map(|option| (option, twice)), "{options}: {:?}", flow.throughput);
    }
}

/// An acknowledgement of 40 B takes 2.5 ms of the way back at 128 kbit/s.
#[test]
fn the_round_trip_of_a_window_is_that_of_both_ways() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"5 s\"\n[hosts]\na = {}\nb = {}\n[link.dsl]\nbetween = [\"a\", \"b\"]\n\
         rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n[link.dsl.backward]\nrate = \"128 kbit/s\"\ndelay = \"30 ms\"\n\
         [flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = { kind = \"tcp\", window = \"16 KiB\" }\nsource = \"bulk\"\n",
    ));
    let limited = flow(&summary, "bulk").limited_by.as_ref().expect("the window is named");
    let least = Duration::from_micros(50_000 + 600 + 2_500);
    assert!((least..least + Duration::from_millis(1)).contains(&limited.round_trip), "{limited:?}");
}

#[test]
fn a_shared_link_is_full_and_never_more() {
    let bulk = "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = { kind = \"tcp\", window = \"32 KiB\" }\n\
                source = { kind = \"bulk\" }\ncount = 3\n";
    // Room for three windows, so that nothing is lost.
    let queue = "queue = { kind = \"fifo\", limit = \"1 MB\" }";
    let summary = simulate(&experiment(queue, &format!("{VOICE}{bulk}")));
    assert!(summary.links[0].utilisation.value() > 0.98, "{:?}", summary.links[0]);
    let user: u64 = summary.flows.iter().map(|flow| flow.throughput.user.bits_per_second()).sum();
    assert!((870_000..1_000_000).contains(&user), "{user} bit/s of user data on a link of 1 Mbit/s");
    let network: u64 =
        summary.flows.iter().filter_map(|f| f.throughput.network).map(|r| r.bits_per_second()).sum();
    assert!((950_000..1_000_001).contains(&network), "{network} bit/s on the line");
    let fairness = flow(&summary, "bulk").fairness.expect("there are three members");
    assert!(fairness > 0.9, "{fairness}");
    let voice = flow(&summary, "voice").latency.expect("messages were received");
    assert!(voice.mean > ONE_WAY * 5, "voice waits behind bulk: {}", voice.mean);
}

#[test]
fn a_full_transport_gives_messages_up_after_the_send_timeout() {
    // 20 messages of 1,000 bytes per second, through a window of 2 KiB per round trip of 200 ms: half of them fit.
    let slow = parse(
        "name = \"slow\"\nduration = \"10 s\"\ndrain = \"5 s\"\n[hosts]\na = {}\nb = {}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"100 ms\"\n[flow.load]\nfrom = \"a\"\nto = \"b\"\n\
         transport = { kind = \"tcp\", window = \"2 KiB\", send-timeout = \"40 ms\" }\n\
         source = { kind = \"load\", message = \"1000 B\", interval = \"50 ms\" }\n",
    );
    let summary = simulate(&slow);
    let load = flow(&summary, "load");
    assert!(support::nearly(load.counts.sent + load.counts.refused, 200), "{:?}", load.counts);
    assert_eq!(load.counts.received, load.counts.sent, "what was taken arrives");
    assert!((50..150).contains(&load.counts.refused), "{:?}", load.counts);
    let from_due = load.latency_from_due.expect("messages were received");
    assert!(
        from_due.mean > load.latency.expect("messages were received").mean,
        "waiting counts from the due time"
    );
}

#[test]
fn what_a_blocked_sender_never_sent_is_not_forgotten() {
    // Twice what the link carries, and nobody gives up: half of the messages still wait when the run ends.
    let flows = "[flow.load]\nfrom = \"a\"\nto = \"b\"\n\
                 transport = { kind = \"tcp\", window = \"64 KiB\" }\n\
                 source = { kind = \"load\", message = \"2500 B\", interval = \"10 ms\" }\n";
    let summary = simulate(&experiment("", flows));
    let load = flow(&summary, "load");
    assert!(support::nearly(load.counts.sent + load.counts.refused, 1_000), "{:?}", load.counts);
    assert!(load.counts.refused > 350, "{:?}", load.counts);
}

#[test]
fn interactive_sends_one_message_per_round_trip() {
    let flows = "[flow.typing]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
                 source = { kind = \"interactive\", message = \"80 B\" }\n";
    let summary = simulate(&experiment("", flows));
    let typing = flow(&summary, "typing");
    let round_trips = Duration::from_secs(10).as_nanos() / (ONE_WAY * 2).as_nanos();
    assert!(typing.counts.sent.abs_diff(round_trips) <= 1, "{} messages", typing.counts.sent);
}

#[test]
fn another_flow_never_changes_what_a_flow_draws() {
    let sent = |flows: &str| {
        let experiment = experiment("queue = { kind = \"fifo\", limit = \"10 MB\" }", flows);
        let mut log = Log::default();
        run(&experiment.points.first().scenario, 7, &mut log, &mut support::GoOn);
        let of_first = log.0.into_iter().filter(|(_, flow, _)| *flow == FlowId(0));
        let sent = of_first.filter(|(.., what)| matches!(what, Observation::Sent { .. }));
        sent.map(|(at, ..)| at).collect::<Vec<Time>>()
    };
    let load = "[flow.a-load]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                source = { kind = \"load\", interval = { kind = \"exponential\", mean = \"10 ms\" } }\n";
    let alone = sent(load);
    assert!(alone.len() > 800);
    assert_eq!(alone, sent(&format!("{load}{VOICE}channels = 3\n")));
}

#[test]
fn a_stopped_run_keeps_what_it_has() {
    struct StopAt(Duration);
    impl Supervisor for StopAt {
        fn progress(&mut self, done: Duration) -> Progress {
            if done >= self.0 { Progress::Stop } else { Progress::Continue }
        }
    }
    let experiment = experiment("", &format!("{VOICE}channels = 8\n"));
    let mut log = Log::default();
    let outcome = run(&experiment.points.first().scenario, 7, &mut log, &mut StopAt(Duration::from_secs(5)));
    assert!(outcome.partial);
    assert!((5..10).contains(&(outcome.duration.as_nanos() / 1_000_000_000)), "{}", outcome.duration);
    let last = log.0.last().expect("something was recorded").0;
    assert!(last >= Time::ZERO + Duration::from_secs(5) && last <= Time::ZERO + outcome.duration);
}
