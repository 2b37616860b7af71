//! tshark's opinion of our packets: an independent reading of RFC 9260, RFC 3758 and RFC 6951.
//!
//!     cargo test -p trunkline-transport --test sctp judge

use std::collections::BTreeMap;

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::programs::tshark;
use trunkline_transport::sctp::{Encapsulation, Reliability, SctpConfig, SctpEndpoint};
use trunkline_transport::{Close, Conversation as _, Endpoint as _, Message};

/// Everything that passed between two ends, with its sender.
#[derive(Default)]
struct Capture {
    packets: Vec<(Time, Address, Vec<u8>)>,
}

/// How a recorded conversation ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Graceful,
    Abort,
    /// One end aborts and the other does not hear of it until it sends.
    Unnoticed,
}

const ADDRESSES: [Address; 2] = [NEAR, FAR];

impl Capture {
    /// A conversation with losses, messages of several sizes both ways, and what nobody should send.
    fn record(&mut self, config: &SctpConfig, closer: usize, end: End) {
        let near = SctpEndpoint::connect(NEAR, FAR, config, 1).expect("the configuration is possible");
        let far = SctpEndpoint::listen(FAR, config, 2).expect("the configuration is possible");
        let mut ends = [near, far];
        let mut now = Time::ZERO;
        let mut buffer = Vec::new();
        let mut flying: Vec<(usize, Vec<u8>)> = Vec::new();
        for round in 0..400u32 {
            now += Duration::from_millis(20);
            for (side, packet) in core::mem::take(&mut flying) {
                ends[1 - side].handle_packet(now, ADDRESSES[side], Ecn::NotCapable, &packet);
            }
            for (side, endpoint) in ends.iter_mut().enumerate() {
                endpoint.handle_timeout(now);
                if (10..200).contains(&round) && (side == 0 || round % 3 == 0) || round == 350 {
                    // What is refused was more than the window, which is not the matter here.
                    let _ = endpoint.send(now, Message::new(&vec![round as u8; round as usize * 20]));
                }
                match (round, end) {
                    (300, End::Graceful) if side == closer => endpoint.close(now, Close::Graceful),
                    (300, End::Abort | End::Unnoticed) if side == closer => endpoint.close(now, Close::Abort),
                    (205, _) => flying.push((1 - side, self.forged(side, HEARTBEAT))),
                    (206, _) => flying.push((1 - side, self.forged(side, UNKNOWN))),
                    _ => {}
                }
                while endpoint.poll_transmit(now, &mut buffer).is_some() {
                    self.packets.push((now, ADDRESSES[side], buffer.clone()));
                    let is_lost = (10..190).contains(&round) && round % 17 == 3;
                    if !(is_lost || round == 300 && end == End::Unnoticed) {
                        flying.push((side, buffer.clone()));
                    }
                }
                buffer.clear();
                while endpoint.receive(&mut buffer).is_some() {}
                while endpoint.poll_event().is_some() {}
            }
        }
    }

    /// A chunk that an end has not sent, in a packet as if the other end had.
    fn forged(&self, to: usize, chunk: &[u8]) -> Vec<u8> {
        let theirs = self.packets.iter().rev().find(|(_, from, _)| *from == ADDRESSES[1 - to]);
        let (_, _, packet) = theirs.expect("they have been talking for long");
        let mut forged = packet[..12].to_vec();
        forged[8..12].fill(0);
        forged.extend_from_slice(chunk);
        let checksum = crc32c(&forged);
        forged[8..12].copy_from_slice(&checksum.to_le_bytes());
        forged
    }

    /// What tshark prints of these fields, a line per packet; `None` without tshark.
    fn lines(&self, encapsulation: Encapsulation, fields: &[&str]) -> Option<Vec<String>> {
        let mut arguments = vec!["-o", "sctp.checksum:CRC 32c", "-T", "fields", "-E", "separator=|"];
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        let is_udp = encapsulation == Encapsulation::Udp;
        let carried: Vec<(Time, Address, Vec<u8>)> = self
            .packets
            .iter()
            .map(|(at, from, bytes)| (*at, *from, if is_udp { within_udp(bytes) } else { bytes.clone() }))
            .collect();
        let packets = carried.iter().map(|(at, from, bytes)| (*at, *from, &bytes[..]));
        let text = tshark(if is_udp { 17 } else { 132 }, packets, &arguments)?;
        Some(text.lines().map(str::to_owned).collect())
    }
}

/// Between the ports that RFC 6951 gives to SCTP at both ends, without a checksum, which a socket would make.
fn within_udp(packet: &[u8]) -> Vec<u8> {
    let words = [9899, 9899, 8 + packet.len() as u16, 0];
    [&words.map(u16::to_be_bytes).concat()[..], packet].concat()
}

/// A HEARTBEAT chunk with eight bytes of information (RFC 9260 section 3.3.5).
const HEARTBEAT: &[u8] = &[4, 0, 0, 16, 0, 1, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8];
/// A chunk of a type that there is not, which wants to be reported (RFC 9260 section 3.2).
const UNKNOWN: &[u8] = &[0x7E, 0, 0, 4];

/// Bit by bit, unlike ours.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82F6_3B78))
    })
}

#[test]
fn the_judge_finds_every_type_of_chunk_and_nothing_wrong() {
    let mut capture = Capture::default();
    let plain = SctpConfig { heartbeat: Some(Duration::from_millis(100)), ..SctpConfig::default() };
    let streams =
        SctpConfig { streams: 7, max_packet: 576, encapsulation: Encapsulation::Ip, ..plain.clone() };
    let unordered = Reliability::Retransmissions(0);
    let unordered = SctpConfig { ordered: false, reliability: unordered, ..plain.clone() };
    let brief = Reliability::Lifetime(Duration::from_millis(500));
    let brief = SctpConfig { streams: 3, reliability: brief, ..plain.clone() };
    for (config, closer, end) in [
        (plain, 0, End::Graceful),
        (streams, 1, End::Graceful),
        (unordered, 0, End::Abort),
        (brief, 1, End::Unnoticed),
    ] {
        capture.record(&config, closer, end);
    }
    let wrong = [
        "sctp.checksum.status",
        "_ws.malformed",
        "sctp.chunk_length.bad",
        "sctp.parameter_length.bad",
        "sctp.sack_gap_block_malformed",
    ];
    for encapsulation in [Encapsulation::Ip, Encapsulation::Udp] {
        let fields = [&["sctp.chunk_type"][..], &wrong].concat();
        let Some(lines) = capture.lines(encapsulation, &fields) else { return };
        assert_eq!(lines.len(), capture.packets.len());
        let mut types = BTreeMap::new();
        for (line, (at, from, bytes)) in lines.iter().zip(&capture.packets) {
            let (chunks, verdict) = line.split_once('|').expect("there are several fields");
            assert_eq!(verdict, "1||||", "at {at} from {from}: {bytes:02x?}");
            for chunk in chunks.split(',') {
                *types.entry(chunk.parse::<u8>().expect("every packet has chunks")).or_insert(0) += 1;
            }
        }
        // What an ERROR quotes is read as well.
        types.remove(&UNKNOWN[0]);
        assert_eq!(types.keys().copied().collect::<Vec<_>>(), CHUNKS, "{types:?}");
    }
}

/// DATA, INIT, INIT ACK, SACK, HEARTBEAT, HEARTBEAT ACK, ABORT, SHUTDOWN, SHUTDOWN ACK, ERROR, COOKIE ECHO, COOKIE ACK,
/// SHUTDOWN COMPLETE and FORWARD TSN: all that RFC 9260 and RFC 3758 have.
const CHUNKS: [u8; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 192];
