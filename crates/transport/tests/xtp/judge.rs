//! tshark's opinion of our packets: an independent reading of the specification.
//!
//!     cargo test -p trunkline-transport --test xtp judge

use std::collections::BTreeMap;

use trunkline_core::{Address, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::programs::tshark;
use trunkline_transport::xtp::{
    IP_PROTOCOL, Open, XtpAcceptor, XtpConfig, XtpDatagrams, XtpEndpoint, XtpGroupConfig, XtpGroupReceiver,
    XtpGroupSender, XtpTransactions,
};
use trunkline_transport::{Acceptor as _, Close, Endpoint};

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

#[test]
fn the_judge_finds_every_type_and_nothing_wrong() {
    let packets = capture();
    let seen = packets.iter().map(|seen| (seen.at, seen.from, &seen.bytes[..]));
    let Some(text) = tshark(IP_PROTOCOL, seen, &["-V"]) else { return };
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
    assert_eq!(formats.len(), 7, "{formats:?}");
}
