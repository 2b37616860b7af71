//! Network throughput is what a flow took of the line that it entered, with that line's framing, delivered or not.

mod support;

use support::{flow, parse, simulate};
use trunkline_core::Amount;
use trunkline_metrics::RepetitionSummary;

/// Network throughput of flow `x` in bytes per message, with a message every so often for 2 s.
fn bytes_per_message(link: &str, message: &str, interval: &str) -> f64 {
    let summary = simulate(&parse(&format!(
        "name = \"test\"\nduration = \"2 s\"\ndrain = \"10 s\"\n[hosts]\na = {{}}\nc = {{}}\nd = {{}}\n{link}\n\
         [flow.x]\nfrom = \"a\"\nto = \"d\"\ntransport = \"udp\"\n\
         source = {{ kind = \"load\", message = \"{message}\", interval = \"{interval}\" }}\n"
    )));
    let flow = flow(&summary, "x");
    let throughput = flow.throughput;
    let bits =
        throughput.network.expect("sim knows it").bits_per_second() as f64 * throughput.active.as_secs_f64();
    bits / 8.0 / flow.counts.sent as f64
}

fn near(is: f64, expected: f64) -> bool {
    (is - expected).abs() < 0.01 * expected
}

/// Two messages of 500 KB over a line of 1 Mbit/s for 8 s, with the drain time.
#[test]
fn a_volume_that_does_not_all_arrive_takes_no_more_than_the_line_carries() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"7 s\"\ndrain = \"1 s\"\n[hosts]\na = {}\nd = {}\n\
         [link.t]\nbetween = [\"a\", \"d\"]\nrate = \"1 Mbit/s\"\n\
         [flow.x]\nfrom = \"a\"\nto = \"d\"\ntransport = \"tcp\"\n\
         source = { kind = \"bulk\", message = \"500 KB\", bytes = \"1 MB\" }\n",
    ));
    let flow = flow(&summary, "x");
    assert_eq!((flow.counts.received, flow.counts.unfinished), (1, 1));
    let network = flow.throughput.network.expect("sim knows it").bits_per_second();
    assert!((990_000..=1_000_000).contains(&network), "{network} bit/s");
}

/// 328 B in frames of at most 256 B, each with 8 B of its own.
#[test]
fn a_packet_of_two_frames_has_the_framing_of_two() {
    let bytes = bytes_per_message("[link.t]\nmedium = \"t1\"\nbetween = [\"a\", \"d\"]", "300 B", "20 ms");
    assert!(near(bytes, 344.0), "{bytes}");
}

/// 512 B in two frames, three times what the trunk carries: most packets lose a chunk, whose other chunk crosses the line in vain.
#[test]
fn chunks_of_packets_that_were_dropped_take_their_part_of_the_line() {
    let summary = simulate(&parse(
        "name = \"test\"\nduration = \"5 s\"\n[hosts]\na = {}\nd = {}\n[link.t]\nmedium = \"t1\"\nbetween = [\"a\", \"d\"]\n\
         [flow.x]\nfrom = \"a\"\nto = \"d\"\ntransport = \"udp\"\n\
         source = { kind = \"load\", message = \"484 B\", interval = \"900 us\" }\n",
    ));
    let flow = flow(&summary, "x");
    assert!(flow.counts.lost > flow.counts.sent / 2, "{:?}", flow.counts);
    let network = flow.throughput.network.expect("sim knows it").bits_per_second() as f64;
    let line = summary.links[0].utilisation.value() * 1_536_000.0;
    assert!((network - line).abs() < 0.02 * line, "{network} bit/s of {line}");
}

/// 1028 B and the trailer's 8 fill 22 cells of 53 B.
#[test]
fn a_packet_of_cells_has_all_of_them() {
    let bytes = bytes_per_message("[link.t]\nmedium = \"atm\"\nbetween = [\"a\", \"d\"]", "1000 B", "20 ms");
    assert!(near(bytes, 22.0 * 53.0), "{bytes}");
}

/// Packets that wait in the switch for a slow station have crossed the sender's line.
#[test]
fn a_switch_s_buffer_is_behind_the_line() {
    let lan = "[link.t]\nmedium = \"ethernet\"\nbetween = [\"a\", \"c\", \"d\"]\nswitch-buffer = \"8 MiB\"\n\
               [link.t.station.d]\nrate = \"1 Mbit/s\"";
    let bytes = bytes_per_message(lan, "1000 B", "5 ms");
    assert!(near(bytes, 1066.0), "{bytes}");
}

/// Packets that wait in the access point have crossed the channel once: 1000 B and 28 of UDP and IP and 42 of framing. Both senders
/// get their turns, but the access point, which sends as much as both of them, gets too few.
#[test]
fn an_access_point_s_queue_is_behind_the_line() {
    let flow = |name: &str, from: &str| {
        format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"d\"\ntransport = \"udp\"\n\
             source = {{ kind = \"load\", message = \"1000 B\", interval = \"1100 us\" }}\n"
        )
    };
    let summary = simulate(&parse(&format!(
        "name = \"test\"\nduration = \"2 s\"\ndrain = \"10 s\"\n[hosts]\na = {{}}\nb = {{}}\nc = {{}}\nd = {{}}\n\
         [link.t]\nmedium = \"wifi\"\nmode = \"access-point\"\nbetween = [\"c\", \"a\", \"b\", \"d\"]\n\
         queue = {{ kind = \"fifo\", limit = \"10 MB\" }}\n{}{}",
        flow("x", "a"),
        flow("y", "b")
    )));
    for name in ["x", "y"] {
        let throughput = support::flow(&summary, name).throughput;
        let network = throughput.network.expect("sim knows it").bits_per_second() as f64;
        assert!(near(network, 1070.0 * 8.0 / 0.0011), "{name}: {network} bit/s");
        // It takes longer than the measurement until all is there.
        assert!((throughput.user.bits_per_second() as f64) < 0.9 * network, "{name}: {throughput:?}");
    }
}

/// A frame has at least 46 B of data.
#[test]
fn a_short_frame_is_padded() {
    let lan = "[link.t]\nmedium = \"ethernet\"\nbetween = [\"a\", \"c\", \"d\"]";
    let bytes = bytes_per_message(lan, "16 B", "20 ms");
    assert!(near(bytes, 46.0 + 38.0), "{bytes}");
}

/// The network polices what it receives: behind the line.
#[test]
fn what_a_policer_discards_has_crossed_the_line() {
    let link = "[link.t]\nbetween = [\"a\", \"d\"]\nrate = \"100 Mbit/s\"\ncommitted-rate = \"100 kbit/s\"\n\
                committed-burst = \"2 KB\"\npeak-rate = \"150 kbit/s\"\npeak-burst = \"2 KB\"\npolicing = \"tag\"";
    let bytes = bytes_per_message(link, "1000 B", "20 ms");
    assert!(near(bytes, 1028.0), "{bytes}");
}

/// A policer of ATM discards cells behind the adapter.
#[test]
fn what_atm_discards_has_left_the_adapter() {
    let link =
        "[link.t]\nmedium = \"atm\"\nbetween = [\"a\", \"d\"]\npcr = \"100 kbit/s\"\npolicing = \"discard\"";
    let bytes = bytes_per_message(link, "1000 B", "20 ms");
    assert!(near(bytes, 22.0 * 53.0), "{bytes}");
}

/// Network throughput of a flow to `to` that sends more than the link carries for a second, and its summary.
fn overloads(link: &str, to: &str, message: &str) -> (f64, RepetitionSummary) {
    let summary = simulate(&parse(&format!(
        "name = \"test\"\nduration = \"1 s\"\ndrain = \"10 s\"\n[hosts]\na = {{}}\nc = {{}}\nd = {{}}\n{link}\n\
         [flow.x]\nfrom = \"a\"\nto = {to}\ntransport = \"udp\"\n\
         source = {{ kind = \"load\", message = \"{message}\", interval = \"1 ms\" }}\n"
    )));
    let network = flow(&summary, "x").throughput.network.expect("sim knows it");
    (network.bits_per_second() as f64, summary)
}

/// A group's packets that wait, or find the queue full, have taken nothing of the line.
#[test]
fn packets_for_a_group_take_of_the_line_only_what_it_has_carried() {
    for (link, rate) in [
        (
            "medium = \"ethernet\"\nrate = \"1 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"50 packets\" }",
            1e6,
        ),
        ("medium = \"ethernet\"\nrate = \"4 Mbit/s\"\n[link.t.station.d]\nrate = \"1 Mbit/s\"", 4e6),
        ("medium = \"fddi\"\nrate = \"1 Mbit/s\"\nclass = \"synchronous\"", 1e6),
    ] {
        let link = format!("[link.t]\nbetween = [\"a\", \"c\", \"d\"]\n{link}");
        let (network, _) = overloads(&link, "[\"c\", \"d\"]", "1000 B");
        assert!((0.95 * rate..=rate + 1.0).contains(&network), "{link}: {network} bit/s");
    }
}

/// The end of the measurement cuts the transmission of a packet: the part before it counts, on every kind of line.
#[test]
fn of_the_last_packet_counts_what_is_through_by_the_end() {
    let shaper = "rate = \"1 Mbit/s\"\nshape-rate = \"900 kbit/s\"\nshape-burst = \"9 KB\"";
    let atm = "medium = \"atm\"\nline = \"1 Mbit/s\"";
    let per_flow = format!("{atm}\nvc = \"flow\"");
    let discards = format!("{per_flow}\npcr = \"400 kbit/s\"\nppd = true");
    let shaped = format!("{atm}\nshape-pcr = \"500 kbit/s\"");
    let lan = "medium = \"ethernet\"\nrate = \"1 Mbit/s\"";
    let slow = "medium = \"ethernet\"\nrate = \"4 Mbit/s\"\n[link.t.station.d]\nrate = \"1 Mbit/s\"";
    for (link, message, rate, whole) in [
        ("rate = \"1 Mbit/s\"", "1463 B", 1e6, Some(1.0)),
        (shaper, "1463 B", 1e6, None),
        (lan, "1463 B", 1e6, Some(1.0)),
        (slow, "1463 B", 4e6, Some(1.0)),
        // Every 193rd bit is of the framing.
        ("medium = \"t1\"\nrate = \"1 Mbit/s\"", "1463 B", 1e6 * 192.0 / 193.0, Some(1.0)),
        (atm, "9001 B", 1e6, Some(1.0)),
        (&per_flow, "9001 B", 1e6, Some(1.0)),
        (&discards, "9001 B", 1e6, Some(1.0)),
        (&shaped, "9001 B", 1e6, Some(0.5)),
    ] {
        let is_lan = link.contains("ethernet");
        let between = if is_lan { "[\"a\", \"c\", \"d\"]" } else { "[\"a\", \"d\"]" };
        let link = format!("[link.t]\nbetween = {between}\n{link}");
        let (network, summary) = overloads(&link, "\"d\"", message);
        let from_a = summary.media.iter().filter(|medium| medium.station.as_deref() == Some("a"));
        let host_line = from_a.flat_map(|medium| &medium.figures).find_map(|(name, amount)| match amount {
            Some(Amount::Share(share)) if name == "host-line-utilisation" => Some(share.value()),
            _ => None,
        });
        let busy = host_line.unwrap_or(summary.links[0].utilisation.value());
        assert!((network / rate - busy).abs() < 0.001, "{link}: {network} bit/s, busy for {busy}");
        assert!(whole.is_none_or(|whole| (busy - whole).abs() < 0.001), "{link}: busy for {busy}");
    }
}
