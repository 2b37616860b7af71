//! RTP between simulated hosts: what it costs, and what becomes of duplicates.

mod support;

use support::{flow, parse, simulate};
use trunkline_metrics::RepetitionSummary;

/// A minute of voice, 80 bytes every 10 ms, from `a` to `b` over a link with these impairments.
fn voice(transport: &str, link: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"60 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n{link}[flow.voice]\nfrom = \"a\"\n\
         to = \"b\"\ntransport = {transport}\nsource = {{ kind = \"voice\", samples = 80 }}\n"
    )))
}

#[test]
fn a_packet_is_twelve_bytes_longer_than_one_of_udp() {
    let [over_udp, over_rtp] = ["\"udp\"", "{ kind = \"rtp\", reports = \"none\" }"].map(|t| voice(t, ""));
    let [over_udp, over_rtp] = [&over_udp, &over_rtp].map(|summary| flow(summary, "voice"));
    assert_eq!(over_rtp.counts.received, over_udp.counts.received);
    let [one, other] = [over_udp, over_rtp].map(|flow| flow.latency.as_ref().unwrap().min.as_nanos());
    // 12 bytes at 10 Mbit/s.
    assert_eq!(other - one, 9600);
    assert_eq!(over_rtp.transport_counters["control-sent"], 0);
}

#[test]
fn reports_come_as_rarely_as_asked_for() {
    let reports = |options: &str| {
        let summary = voice(&format!("{{ kind = \"rtp\"{options} }}"), "");
        flow(&summary, "voice").transport_counters["control-sent"]
    };
    // Both ends, for a minute: every 5 s; every second; at 5 % of 4 kbit/s, 25 bytes/s for reports of about 110.
    assert!((18..36).contains(&reports("")), "{}", reports(""));
    let reduced = reports(", reports = \"reduced\", session-bandwidth = \"360 kbit/s\"");
    assert!((100..150).contains(&reduced), "{reduced}");
    let slow = reports(", session-bandwidth = \"4 kbit/s\"");
    assert!((8..20).contains(&slow), "{slow}");
}

#[test]
fn duplicates_are_dropped_and_losses_are_not_repaired() {
    let link = "loss = \"5 %\"\nduplicate = \"10 %\"\n";
    let [over_udp, over_rtp] = ["\"udp\"", "\"rtp\""].map(|transport| voice(transport, link));
    let [over_udp, over_rtp] = [&over_udp, &over_rtp].map(|summary| flow(summary, "voice"));
    assert!(over_udp.counts.duplicate > 400, "{:?}", over_udp.counts);
    assert_eq!(over_rtp.counts.duplicate, 0);
    assert!(over_rtp.transport_counters["duplicates"] > 400);
    assert!((200..400).contains(&over_rtp.counts.lost), "{:?}", over_rtp.counts);
}

#[test]
fn a_telephone_call_has_the_packets_of_a_real_one() {
    // 20 ms of G.711 (160 bytes) or G.729 (20), 12 of RTP, 8 of UDP and 20 of IPv4.
    for (transport, message, bytes) in [
        ("\"udp\"", 160, 188),
        ("\"udp\"", 20, 48),
        ("\"udp-lite\"", 20, 48),
        ("{ kind = \"rtp\", reports = \"none\" }", 160, 200),
        ("{ kind = \"rtp\", reports = \"none\" }", 20, 60),
        // Too short for a short header: 16 bytes more.
        ("\"udp\"", 15, 15 + 16 + 28),
    ] {
        let summary = simulate(&parse(&format!(
            "name = \"test\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
             transport = {transport}\nsource = {{ kind = \"load\", message = \"{message} B\", interval = \"20 ms\" }}\n"
        )));
        let voice = flow(&summary, "voice");
        assert_eq!((voice.counts.received, voice.stray.count()), (voice.counts.sent, 0));
        assert_eq!(voice.latency.as_ref().unwrap().min.as_nanos(), bytes * 800, "{transport} {message}");
    }
}
