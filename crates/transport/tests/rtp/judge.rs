//! tshark's opinion of our packets: an independent reading of RFC 3550.
//!
//!     cargo test -p trunkline-transport --test rtp judge -- --nocapture

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a judge is a program, reads a file, or is missing"
)]

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::rtp::{PayloadFormat, RtpConfig, RtpEndpoint};
use trunkline_transport::{Close, Conversation as _, Endpoint as _, Message, ipv4_of};

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

/// A pcap file of IPv4 packets (link type 101).
fn pcap(packets: &[(Time, Address, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4u32, 0x0002_0004, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for (at, from, bytes) in packets {
        let to = if *from == NEAR { FAR } else { NEAR };
        let length = (20 + bytes.len()) as u16;
        let mut header = [0; 20];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&length.to_be_bytes());
        (header[8], header[9]) = (64, 17);
        header[12..16].copy_from_slice(&ipv4_of(from.host));
        header[16..20].copy_from_slice(&ipv4_of(to.host));
        let micros = at.as_nanos() / 1000;
        for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, length.into(), length.into()] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        file.extend_from_slice(&header);
        file.extend_from_slice(bytes);
    }
    file
}

/// What tshark prints with these arguments; `None`, with a word on it, where it is not installed.
fn tshark(name: &str, capture: &[u8], arguments: &[&str]) -> Option<String> {
    if let Err(error) = Command::new("tshark").arg("--version").stdout(Stdio::null()).status() {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        eprintln!("skipped: `tshark` is not installed; install the Debian package `tshark`");
        return None;
    }
    let path = std::env::temp_dir().join(format!("trunkline-rtp-{}-{name}.pcap", std::process::id()));
    std::fs::write(&path, capture).expect("the temporary folder can be written");
    let ports = format!("udp.port=={},rtp", FAR.port);
    let output = Command::new("tshark").arg("-r").arg(&path).args(["-d", &ports]).args(arguments).output();
    std::fs::remove_file(&path).expect("the file was written");
    let output = output.expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_judge_finds_every_type_and_nothing_wrong() {
    for (name, format, length) in
        [("pcmu", PayloadFormat::PCMU, 160), ("l16", PayloadFormat::l16(44_100, 2, 96), 3528)]
    {
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
        let Some(lines) = tshark(name, &pcap(&packets), &arguments) else { return };
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
    let Some(statistics) = tshark("streams", &pcap(&packets), &["-q", "-z", "rtp,streams"]) else { return };
    let lines: Vec<&str> = statistics.lines().filter(|line| line.contains("g711U")).collect();
    assert_eq!(lines.len(), 2, "{statistics}");
    for count in [" 990 ", " 200 "] {
        let is_whole = |line: &&str| line.contains(count) && line.contains(" 0 (0.0%)");
        assert_eq!(lines.iter().filter(|&line| is_whole(line)).count(), 1, "{statistics}");
    }
}
