//! SCTP between simulated hosts: what its services do to voice and to bulk.

mod support;

use support::{flow, parse, simulate};
use trunkline_metrics::{FlowSummary, RepetitionSummary};

/// Flows from `a` to `b` over 8 Mbit/s with 25 ms each way, and what else the link does.
fn over(link: &str, flows: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"20 s\"\ndrain = \"10 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"8 Mbit/s\"\ndelay = \"25 ms\"\n{link}\n{flows}"
    )))
}

fn one(link: &str, options: &str, source: &str) -> FlowSummary {
    let it = format!(
        "[flow.it]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"sctp\"{options} }}\nsource = {source}\n"
    );
    flow(&over(link, &it), "it").clone()
}

/// Both channels of a block as Schiavoni and Queiroz sent them, 940 bytes each.
const STEREO: &str = "{ kind = \"load\", message = \"1880 B\", interval = \"10.666667 ms\" }";
const VOICE: &str = "{ kind = \"voice\", samples = 80 }";
const BULK: &str = "{ kind = \"bulk\", message = \"1000 B\" }";
const LOSSY: &str = "loss = \"5 %\"";

#[test]
fn voice_arrives_over_ip_and_udp() {
    for (options, headers) in [("", 20), (", encapsulation = \"udp\"", 28)] {
        let voice = one("", options, VOICE);
        assert!(support::nearly(voice.counts.sent, 2000), "{:?}", voice.counts);
        assert_eq!(voice.counts.received, voice.counts.sent);
        let latency = voice.latency.expect("messages were received");
        // The payload, the headers of SCTP and of its chunk, and of what carries it.
        let line = f64::from(80 + 12 + 16 + headers) * 8.0 / 8e6 * 1e3;
        assert!((latency.min.as_millis_f64() - (25.0 + line)).abs() < 0.001, "{latency:?}");
    }
}

#[test]
fn repairs_delay_less_without_order_and_on_more_streams_and_give_up_in_time() {
    let mean = |summary: &FlowSummary| summary.latency.expect("messages were received").mean.as_millis_f64();
    let [one_stream, streams, unordered] =
        ["", ", streams = 10", ", ordered = false"].map(|options| one(LOSSY, options, VOICE));
    for summary in [&one_stream, &streams, &unordered] {
        assert!(
            support::nearly(summary.counts.sent, 2000) && summary.counts.lost == 0,
            "{:?}",
            summary.counts
        );
        assert!(summary.transport_counters["retransmissions"] > 50);
    }
    assert!(mean(&streams) < mean(&one_stream) && mean(&unordered) < mean(&one_stream));
    let lifetime = one(LOSSY, ", ordered = false, lifetime = \"50 ms\"", VOICE);
    let never = one(LOSSY, ", ordered = false, retransmissions = 0", VOICE);
    for summary in [&lifetime, &never] {
        assert!((50..200).contains(&summary.counts.lost), "{:?}", summary.counts);
        let given_up = summary.transport_counters["given-up"];
        assert!(given_up + 2 >= summary.counts.lost, "{given_up} given up of {:?}", summary.counts);
    }
    assert!(mean(&never) < mean(&unordered), "what is not repaired is not late");
}

#[test]
fn bulk_fills_the_link_and_shares_it_with_tcp() {
    let bulk = |name: &str, transport: &str, start: u64| {
        format!(
            "[flow.{name}]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {BULK}\nstart = \"{start} ms\"\n"
        )
    };
    let fifo = "queue = { kind = \"fifo\", limit = \"50 packets\" }";
    let sctp = bulk("one", "\"sctp\"", 100);
    let alone = over(fifo, &sctp);
    let rate = |summary: &RepetitionSummary, name: &str| {
        flow(summary, name).throughput.user.bits_per_second() as f64 / 1e6
    };
    assert!((5.0..8.0).contains(&rate(&alone, "one")), "{} Mbit/s of 8", rate(&alone, "one"));
    // The mean over five starts of the other: in a FIFO the phase decides whose packets are dropped (Floyd and Jacobson 1992). TCP
    // repairs a lost retransmission without its timer, SCTP does not (RFC 9260 section 7.2.4).
    let reno = "{ kind = \"tcp\", window = \"1 MiB\", congestion-control = \"reno\" }";
    let shares = [100, 130, 170, 230, 310].map(|start| {
        let both = over(fifo, &(sctp.clone() + &bulk("two", reno, start)));
        rate(&both, "one") / (rate(&both, "one") + rate(&both, "two"))
    });
    let share = shares.iter().sum::<f64>() / 5.0;
    assert!((0.2..0.8).contains(&share), "a share of {share} beside TCP: {shares:?}");
}

#[test]
fn what_waits_longer_than_the_send_timeout_is_refused() {
    // More than the line carries, through a small buffer.
    let narrow = "queue = { kind = \"fifo\", limit = \"20 packets\" }\nloss = \"10 %\"";
    let options = ", window = \"16 KiB\", send-timeout = \"40 ms\"";
    let stereo = one(narrow, options, STEREO);
    let wanted = stereo.counts.sent + stereo.counts.refused;
    assert!(support::nearly(wanted, 1875), "{wanted}");
    // What is on its way at the end of the run is lost.
    assert!(stereo.counts.refused > 100 && stereo.counts.lost < 20, "{:?}", stereo.counts);
}

#[test]
fn the_same_seed_gives_the_same_records() {
    let run = || {
        let summary = one(LOSSY, ", streams = 3, lifetime = \"100 ms\"", VOICE);
        format!("{:?} {:?} {:?}", summary.counts, summary.latency, summary.transport_counters)
    };
    assert_eq!(run(), run());
}

#[test]
fn members_on_one_socket_share_one_association() {
    let many = |style: &str, link: &str, options: &str, source: &str| {
        let it = format!(
            "[flow.it]\nfrom = \"a\"\nto = \"b\"\ncount = 5\n\
             transport = {{ kind = \"sctp\", style = \"{style}\"{options} }}\nsource = {source}\n"
        );
        flow(&over(link, &it), "it").clone()
    };
    let latency =
        |summary: &FlowSummary| summary.latency.expect("messages were received").mean.as_millis_f64();
    let [own, shared] = ["one-to-one", "one-to-many"].map(|style| many(style, LOSSY, "", VOICE));
    for summary in [&own, &shared] {
        assert!(
            support::nearly(summary.counts.sent, 10_000) && summary.counts.lost == 0,
            "{:?}",
            summary.counts
        );
    }
    assert!(latency(&shared) > 1.1 * latency(&own), "a loss holds up everybody who shares the association");
    let packets = |style: &str| many(style, "", "", VOICE).transport_counters["packets-sent"];
    assert!(packets("one-to-many") < packets("one-to-one"), "one handshake instead of five");
    // Through a buffer that is always full, nothing is lost.
    let small = ", window = \"16 KiB\", send-timeout = \"40 ms\"";
    let crowded = many("one-to-many", "", small, STEREO);
    let wanted = crowded.counts.sent + crowded.counts.refused;
    assert!(support::nearly(wanted, 5 * 1875), "{wanted}");
    assert!(crowded.counts.refused > 0 && crowded.counts.lost < 20, "{:?}", crowded.counts);
}

/// A queue drops a window of messages, and they are given up. The sender sends one FORWARD TSN in a round trip for each gap, however
/// many SACKs are under way: answered one by one, with another SACK for each answer, they would fill the way back for the rest of the run.
#[test]
fn sacks_that_are_under_way_are_not_answered_one_by_one() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"20 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
         rate = \"500 kbit/s\"\ndelay = \"20 ms\"\nqueue = { kind = \"fifo\", limit = \"100 packets\" }\n\
         [flow.it]\nfrom = \"a\"\nto = \"b\"\ntransport = { kind = \"sctp\", lifetime = \"100 ms\" }\n\
         source = { kind = \"load\", message = \"1000 B\", interval = \"10 ms\" }\n",
    ));
    let it = flow(&summary, "it");
    let offered = |name: &str| summary.links.iter().find(|link| link.link == name).expect("the link").offered;
    let (there, back) = (offered("l a>b"), offered("l b>a"));
    assert!(it.throughput.user.bits_per_second() > 350_000, "{:?}", it.throughput);
    assert!(it.counts.unfinished < 200, "{:?}", it.counts);
    assert!(there < it.counts.sent + 200 && back < there, "{there} and {back} packets: {:?}", it.counts);
}
