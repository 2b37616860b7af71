//! tshark's opinion of our packets: an independent reading of the specification.
//!
//!     cargo test -p trunkline-transport --test xtp -- --ignored judge

#![allow(clippy::disallowed_methods, reason = "a judge is a program, and reads a file")]

use std::collections::BTreeMap;
use std::process::Command;

use trunkline_core::{Address, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::xtp::{
    IP_PROTOCOL, Open, XtpAcceptor, XtpConfig, XtpDatagrams, XtpEndpoint, XtpGroupConfig, XtpGroupReceiver,
    XtpGroupSender, XtpTransactions,
};
use trunkline_transport::{Acceptor as _, Close, Endpoint, ipv4_of};

use super::wiretap::{Seen, Wiretap, streams};

/// Everything that every service sends, with losses, and a refusal.
fn capture() -> Vec<Seen> {
    let mut all = Vec::new();
    for (checksum, sort, max_packet) in [(true, None, 1480), (false, Some(4), 601)] {
        let config = XtpConfig { checksum, sort, max_packet, ..XtpConfig::default() };
        let near = XtpEndpoint::connect(NEAR, FAR, &XtpConfig { open: Open::Implicit, ..config }, 1).unwrap();
        exchange(Wiretap::new(near, XtpEndpoint::listen(FAR, &config, 2).unwrap()), &mut all);
        exchange(streams(&config, &config), &mut all);
        for acknowledged in [false, true] {
            let end =
                |local, peer, seed| XtpDatagrams::new(local, peer, &config, acknowledged, seed).unwrap();
            exchange(Wiretap::new(end(NEAR, FAR, 1), end(FAR, NEAR, 2)), &mut all);
        }
        let near = XtpTransactions::connect(NEAR, FAR, &config, 1).unwrap();
        exchange(Wiretap::new(near, XtpTransactions::listen(FAR, NEAR, &config, 2).unwrap()), &mut all);
        for group in [XtpGroupConfig::reliable(FAR), XtpGroupConfig::unacknowledged(FAR)] {
            let sender: Box<dyn Endpoint> = Box::new(XtpGroupSender::new(NEAR, &group, 1).unwrap());
            let receiver: Box<dyn Endpoint> = Box::new(XtpGroupReceiver::new(FAR, &group, 2).unwrap());
            exchange(Wiretap::new(sender, receiver), &mut all);
        }
    }
    let mut elsewhere = XtpAcceptor::new(Address { host: 1, port: 9 }, &XtpConfig::default(), 1).unwrap();
    let mut bytes = Vec::new();
    elsewhere.accept(Time::ZERO, NEAR, &all[0].bytes, &mut bytes);
    all.push(Seen { at: Time::ZERO, from: FAR, bytes, lost: false });
    all
}

fn exchange<E: Endpoint>(mut tap: Wiretap<E>, all: &mut Vec<Seen>) {
    let mut count = 0;
    tap.lose(move |_, _| {
        count += 1;
        count % 13 == 5
    });
    for n in 0..60u8 {
        for end in 0..2 {
            let _ = tap.send(end, &vec![n; 7 + usize::from(n) * 9]);
            tap.run_for(trunkline_core::Duration::from_millis(5));
            tap.read(1 - end);
        }
    }
    for end in 0..2 {
        tap.close(end, Close::Graceful);
        tap.run();
        tap.read(0);
        tap.read(1);
    }
    all.append(&mut tap.seen);
}

/// As a pcap file of IPv4 packets (link type 101).
fn pcap(packets: &[Seen]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4u32, 0x0002_0004, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for Seen { at, from, bytes, .. } in packets {
        let to = if *from == NEAR { FAR } else { NEAR };
        let length = (20 + bytes.len()) as u16;
        let mut header = [0; 20];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&length.to_be_bytes());
        (header[8], header[9]) = (64, IP_PROTOCOL);
        header[12..16].copy_from_slice(&ipv4_of(from.host));
        header[16..20].copy_from_slice(&ipv4_of(to.host));
        let micros = at.as_nanos() / 1_000;
        for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, length.into(), length.into()] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        file.extend_from_slice(&header);
        file.extend_from_slice(bytes);
    }
    file
}

#[test]
#[ignore = "needs tshark"]
fn the_judge_finds_every_type_and_nothing_wrong() {
    let packets = capture();
    let path = std::env::temp_dir().join(format!("trunkline-{}-xtp.pcap", std::process::id()));
    std::fs::write(&path, pcap(&packets)).expect("the temporary folder can be written");
    let output = Command::new("tshark").arg("-V").arg("-r").arg(&path).output().expect("tshark is installed");
    std::fs::remove_file(&path).expect("the file was written");
    let text = String::from_utf8_lossy(&output.stdout);
    let frames: Vec<&str> = text.split("\nFrame ").collect();
    assert_eq!(frames.len(), packets.len());
    let mut formats = BTreeMap::new();
    for (frame, seen) in frames.iter().zip(&packets) {
        let xtp = frame.split_once("\nXpress Transport Protocol").expect("tshark knows XTP").1;
        for wrong in ["bogus", "Malformed", "Unknown", "Unsupported", "incorrect", "Expert"] {
            assert!(!xtp.contains(wrong), "{wrong}: {frame}");
        }
        let unchecked = "[unverified]";
        assert!(xtp.contains("[correct]") && !xtp.contains(unchecked), "{frame}");
        let line = xtp.lines().find(|line| line.trim().starts_with("Format: ")).expect("it has a format");
        *formats.entry(line.trim().to_owned()).or_insert(0) += 1;
        assert!(line.contains(&format!("({})", seen.format() as u8)), "{line} of {seen:?}");
    }
    println!("{formats:?}");
    assert_eq!(formats.len(), 7, "{formats:?}");
}
