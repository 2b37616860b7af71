//! tshark's opinion of our packets: an independent reading of RFC 3550.
//!
//!     cargo test -p trunkline-transport --test rtp judge

use std::collections::BTreeMap;

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::programs::tshark;
use trunkline_transport::rtp::{PayloadFormat, RtpConfig, RtpEndpoint};
use trunkline_transport::{Close, Conversation as _, Endpoint as _, Message};

use super::config;

/// A call of 20 s both ways, of which near hears half: every packet with its sender.
fn call(format: PayloadFormat, length: usize) -> Vec<(Time, Address, Vec<u8>)> {
    let end = |local, peer, side| {
        let config = RtpConfig { format, cname: "voice@trunkline.example".into(), ..config(9, side) };
        RtpEndpoint::new(local, peer, config).expect("the configuration is possible")
    };
    let mut ends = [end(NEAR, FAR, "near"), end(FAR, NEAR, "far")];
    let addresses = [NEAR, FAR];
    let mut packets = Vec::new();
    let mut buffer = Vec::new();
    for round in 0..1000u64 {
        let now = Time::ZERO + Duration::from_millis(20 * round);
        for side in [0, 1] {
            ends[side].handle_timeout(now);
            // Far speaks for the first half only: afterwards it sends receiver reports.
            if round < 990 && (side == 0 || round < 200) {
                ends[side].send(now, Message::new(&vec![round as u8; length])).expect("there is room");
            }
            if round == 990 {
                ends[side].close(now, Close::Graceful);
            }
            while ends[side].poll_transmit(now, &mut buffer).is_some() {
                packets.push((now, addresses[side], buffer.clone()));
                let is_lost = side == 1 && round % 2 == 1;
                if !is_lost {
                    ends[1 - side].handle_packet(now, addresses[side], Ecn::NotCapable, &buffer);
                }
            }
            buffer.clear();
            while ends[side].receive(&mut buffer).is_some() {}
            while ends[side].poll_event().is_some() {}
        }
    }
    packets
}

/// What tshark prints with these arguments; `None` without tshark.
fn opinion(packets: &[(Time, Address, Vec<u8>)], arguments: &[&str]) -> Option<String> {
    let ports = format!("udp.port=={},rtp", FAR.port);
    let arguments = [&["-d", &ports], arguments].concat();
    tshark(17, packets.iter().map(|(at, from, bytes)| (*at, *from, &bytes[..])), &arguments)
}

#[test]
fn the_judge_finds_every_type_and_nothing_wrong() {
    for (format, length) in [(PayloadFormat::PCMU, 160), (PayloadFormat::l16(44_100, 2, 96), 3528)] {
        let packets = call(format, length);
        let fields = [
            "rtp.version",
            "rtp.p_type",
            "rtcp.pt",
            "rtcp.sdes.text",
            "rtcp.length_check",
            "udp.checksum.status",
            "_ws.malformed",
            "_ws.expert.message",
        ];
        let mut arguments = vec!["-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"];
        for field in fields {
            arguments.extend(["-e", field]);
        }
        let Some(lines) = opinion(&packets, &arguments) else { return };
        assert_eq!(lines.lines().count(), packets.len());
        let mut kinds = BTreeMap::new();
        let voice = format!("2|{}||", format.payload_type);
        for (line, (at, from, bytes)) in lines.lines().zip(&packets) {
            let fields: Vec<&str> = line.split('|').collect();
            assert_eq!(fields[5..], ["1", "", ""], "at {at} from {from}: {line}: {bytes:02x?}");
            if line.starts_with(&voice) {
                *kinds.entry("data").or_insert(0) += 1;
                continue;
            }
            // tshark writes what is true as 1, and newer ones as True.
            assert!(fields[3] == "voice@trunkline.example" && ["1", "True"].contains(&fields[4]), "{line}");
            let kind = match fields[2] {
                "200,202" => "sender report",
                "201,202" => "receiver report",
                "200,202,203" | "201,202,203" => "goodbye",
                other => panic!("{other}: {line}"),
            };
            *kinds.entry(kind).or_insert(0) += 1;
        }
        assert_eq!((kinds["data"], kinds["goodbye"]), (1190, 2), "{kinds:?}");
        assert!(kinds["sender report"] >= 3 && kinds["receiver report"] >= 2, "{kinds:?}");
    }
}

#[test]
fn the_judge_counts_the_packets_of_both_streams_and_misses_none() {
    let packets = call(PayloadFormat::PCMU, 160);
    let Some(statistics) = opinion(&packets, &["-q", "-z", "rtp,streams"]) else { return };
    let lines: Vec<&str> = statistics.lines().filter(|line| line.contains("g711U")).collect();
    assert_eq!(lines.len(), 2, "{statistics}");
    for count in [" 990 ", " 200 "] {
        let is_whole = |line: &&str| line.contains(count) && line.contains(" 0 (0.0%)");
        assert_eq!(lines.iter().filter(|&line| is_whole(line)).count(), 1, "{statistics}");
    }
}
