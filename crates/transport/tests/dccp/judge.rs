//! tshark's opinion of our packets: an independent reading of RFC 4340, RFC 4342, RFC 5622 and RFC 6773.
//!
//!     cargo test -p trunkline-transport --test dccp judge

use std::collections::BTreeMap;

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::programs::tshark;
use trunkline_transport::dccp::{Ccid, DccpConfig, DccpEndpoint, Encapsulation};
use trunkline_transport::{Close, Conversation as _, Endpoint as _, Message, ipv4_of};

/// Everything that passed between two ends, with its sender.
#[derive(Default)]
struct Capture {
    packets: Vec<(Time, Address, Vec<u8>)>,
}

impl Capture {
    /// A conversation with losses, marks and both kinds of closing.
    fn record(&mut self, config: &DccpConfig, closer: usize) {
        let near = DccpEndpoint::connect(NEAR, FAR, config, 1).expect("the configuration is possible");
        let far = DccpEndpoint::listen(FAR, config, 2).expect("the configuration is possible");
        let mut ends = [near, far];
        let addresses = [NEAR, FAR];
        let mut now = Time::ZERO;
        let mut buffer = Vec::new();
        let mut flying: Vec<(usize, Vec<u8>)> = Vec::new();
        for round in 0..1000u32 {
            now += Duration::from_millis(5);
            for (side, packet) in core::mem::take(&mut flying) {
                let ecn = if round % 50 == 20 { Ecn::CongestionExperienced } else { Ecn::Ect0 };
                ends[1 - side].handle_packet(now, addresses[side], ecn, &packet);
            }
            for (side, end) in ends.iter_mut().enumerate() {
                end.handle_timeout(now);
                if round < 300 && (side == 0 || round % 3 == 0) || round == 505 {
                    let _ = end.send(now, Message::new(&vec![round as u8; 100 + round as usize]));
                }
                if round == 900 && side == closer {
                    end.close(now, Close::Graceful);
                }
                if round == 200 {
                    // Beyond every window: it will be asked what it is about.
                    self.forge(config, addresses[1 - side], side, &mut flying);
                }
                while end.poll_transmit(now, &mut buffer).is_some() {
                    self.packets.push((now, addresses[side], buffer.clone()));
                    // The last message is lost, so that its sender asks for a sign of life.
                    let is_lost = round % 17 == 3 || side == 0 && (500..510).contains(&round);
                    if !is_lost {
                        flying.push((side, buffer.clone()));
                    }
                }
                buffer.clear();
                while end.receive(&mut buffer).is_some() {}
                while end.poll_event().is_some() {}
            }
        }
    }

    /// Puts an old packet of the other end on its way, with another sequence number.
    fn forge(&self, config: &DccpConfig, from: Address, to: usize, flying: &mut Vec<(usize, Vec<u8>)>) {
        use trunkline_transport::dccp::{Header, decode, encode};
        if config.encapsulation != Encapsulation::Ip {
            return;
        }
        let side = 1 - to;
        let pseudo_header = Some([NEAR, FAR].map(|end| ipv4_of(end.host).into()));
        let old = self.packets.iter().rev().find(|(_, sender, _)| *sender == from);
        let Some((_, _, bytes)) = old else { return };
        let packet = decode(bytes, pseudo_header).expect("we sent it");
        let sequence = packet.header.sequence ^ if packet.header.long { 1 << 40 } else { 1 << 22 };
        let mut forged = Vec::new();
        encode(&Header { sequence, ..packet.header }, &[], &[], pseudo_header, &mut forged);
        flying.push((side, forged));
    }
}

/// What tshark prints of these fields, a line per packet, with the protocol that IPv4 names; `None` without tshark.
fn lines(capture: &Capture, protocol: u8, preference: &str, fields: &[&str]) -> Option<Vec<String>> {
    // What is within UDP is data: by chance its first bytes look like one of the protocols at which tshark guesses.
    let mut arguments =
        vec!["-o", preference, "-d", "udp.port==6511,data", "-T", "fields", "-E", "separator=|"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let packets = capture.packets.iter().map(|(at, from, bytes)| (*at, *from, &bytes[..]));
    let text = tshark(protocol, packets, &arguments)?;
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn the_judge_finds_every_type_and_nothing_wrong() {
    let mut capture = Capture::default();
    for ccid in Ccid::ALL {
        for (closer, short) in [(0, false), (1, true)] {
            let config = DccpConfig {
                ccid,
                short_sequence_numbers: short,
                data_checksum: short,
                checksum_coverage: if short { 5 } else { 0 },
                min_checksum_coverage: 1,
                ..DccpConfig::default()
            };
            capture.record(&config, closer);
        }
    }
    let fields = ["dccp.type", "dccp.checksum.status", "_ws.malformed", "_ws.expert.message"];
    let Some(lines) = lines(&capture, 33, "dccp.check_checksum:TRUE", &fields) else { return };
    assert_eq!(lines.len(), capture.packets.len());
    let mut types = BTreeMap::new();
    for (line, (at, from, bytes)) in lines.iter().zip(&capture.packets) {
        let mut fields = line.split('|');
        *types.entry(fields.next().unwrap_or("").to_owned()).or_insert(0) += 1;
        let verdict: Vec<&str> = fields.collect();
        assert_eq!(verdict, ["1", "", ""], "at {at} from {from}: {bytes:02x?}");
    }
    assert_eq!(types.len(), 10, "{types:?}");
}

#[test]
fn the_judge_reads_dccp_within_udp() {
    let mut capture = Capture::default();
    let config = DccpConfig { encapsulation: Encapsulation::Udp, ..DccpConfig::default() };
    capture.record(&config, 0);
    let fields = ["udp.port", "udp.checksum.status", "_ws.malformed"];
    let Some(outer) = lines(&capture, 17, "udp.check_checksum:TRUE", &fields) else { return };
    assert_eq!(outer.len(), capture.packets.len());
    assert!(outer.iter().all(|line| line == "6511,6511|1|"), "{outer:?}");
    // tshark does not look for DCCP within UDP: the packets alone, whose own checksum is none.
    for (_, _, bytes) in &mut capture.packets {
        bytes.drain(..8);
    }
    let fields = ["dccp.type", "dccp.checksum", "_ws.malformed"];
    let Some(inner) = lines(&capture, 33, "dccp.check_checksum:FALSE", &fields) else { return };
    for line in inner {
        let fields: Vec<&str> = line.split('|').collect();
        assert!(!fields[0].is_empty() && fields[1..] == ["0x0000", ""], "{line}");
    }
}
