//! tshark's opinion of our segments: an independent reading of RFC 793.
//!
//!     cargo test -p trunkline-transport --test tcp judge

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::programs::tshark;
use trunkline_transport::classic_tcp::{TcpConfig, TcpEndpoint};
use trunkline_transport::{Close, Conversation as _, Endpoint as _, Message};

const ADDRESSES: [Address; 2] = [NEAR, FAR];
const PROTOCOL: u8 = 6;

/// Everything that passed between two ends, with its sender, and the stream that went each way.
#[derive(Default)]
struct Capture {
    packets: Vec<(Time, Address, Vec<u8>)>,
    sent: [Vec<u8>; 2],
}

impl Capture {
    /// A conversation with losses, messages of several sizes both ways, and a reader that stops for a while.
    fn record(config: &TcpConfig, end: Close) -> Capture {
        let near = TcpEndpoint::connect(NEAR, FAR, config, 1).expect("the configuration is possible");
        let far = TcpEndpoint::listen(FAR, config, 2).expect("the configuration is possible");
        let (mut ends, mut capture) = ([near, far], Capture::default());
        let (mut now, mut buffer) = (Time::ZERO, Vec::new());
        let mut flying: Vec<(usize, Vec<u8>)> = Vec::new();
        for round in 0..1000u32 {
            now += Duration::from_millis(20);
            for (side, packet) in core::mem::take(&mut flying) {
                ends[1 - side].handle_packet(now, ADDRESSES[side], Ecn::NotCapable, &packet);
            }
            for (side, endpoint) in ends.iter_mut().enumerate() {
                endpoint.handle_timeout(now);
                let message = vec![(round + side as u32) as u8; round as usize * 20];
                if (10..200).contains(&round)
                    && (side == 0 || round % 3 == 0)
                    && endpoint.send(now, Message::new(&message)).is_ok()
                {
                    capture.sent[side].extend(message);
                }
                if round == 900 {
                    endpoint.close(now, end);
                }
                buffer.clear();
                let reads = !(50..150).contains(&round);
                while reads && endpoint.receive(&mut buffer).is_some() {}
                while endpoint.poll_transmit(now, &mut buffer).is_some() {
                    capture.packets.push((now, ADDRESSES[side], buffer.clone()));
                    let is_lost = (150..190).contains(&round) && round % 17 == 3;
                    if !is_lost {
                        flying.push((side, buffer.clone()));
                    }
                }
                while endpoint.poll_event().is_some() {}
            }
        }
        capture
    }

    /// What tshark prints with these arguments; `None` without it.
    fn judged(&self, arguments: &[&str]) -> Option<String> {
        let packets = self.packets.iter().map(|(at, from, bytes)| (*at, *from, &bytes[..]));
        tshark(PROTOCOL, packets, &[&["-o", "tcp.check_checksum:TRUE"], arguments].concat())
    }
}

#[test]
fn the_judge_finds_whole_connections_and_nothing_wrong() {
    let fields = ["tcp.checksum.status", "_ws.malformed", "tcp.flags", "tcp.options.mss_val"];
    let asked: Vec<&str> = ["-T", "fields", "-E", "separator=|"]
        .into_iter()
        .chain(fields.iter().flat_map(|field| ["-e", field]))
        .collect();
    let small = TcpConfig { window: 8 << 10, mss: 536, nagle: 536, ..TcpConfig::default() };
    for (config, end) in [(TcpConfig::default(), Close::Graceful), (small, Close::Abort)] {
        let capture = Capture::record(&config, end);
        let Some(text) = capture.judged(&asked) else { return };
        assert_eq!(text.lines().count(), capture.packets.len());
        let mut flags = [0; 64];
        for (line, (at, from, bytes)) in text.lines().zip(&capture.packets) {
            let fields: Vec<&str> = line.split('|').collect();
            assert_eq!(fields[..2], ["1", ""], "at {at} from {from}: {bytes:02x?}");
            let bits = u8::from_str_radix(fields[2].trim_start_matches("0x"), 16).expect("it is a number");
            flags[usize::from(bits)] += 1;
            let mss = if bits & 2 != 0 { config.mss.to_string() } else { String::new() };
            assert_eq!(fields[3], mss);
        }
        // SYN, SYN and ACK, ACK, ACK and PSH, and either end.
        assert_eq!([flags[0x02], flags[0x12]], [1, 1]);
        assert!(flags[0x10] > 100 && flags[0x18] > 20, "{flags:?}");
        assert_eq!(flags[0x11] + flags[0x19], if end == Close::Graceful { 2 } else { 0 }, "{flags:?}");
        assert_eq!(flags[0x14] > 0, end == Close::Abort, "{flags:?}");
    }
}

#[test]
fn the_judge_puts_the_streams_together() {
    let capture = Capture::record(&TcpConfig::default(), Close::Graceful);
    let Some(text) = capture.judged(&["-q", "-z", "follow,tcp,raw,0"]) else { return };
    let mut streams = [Vec::new(), Vec::new()];
    for line in text.lines() {
        // What the second end sent is indented.
        let hex = line.trim_start_matches('\t');
        let is_hex =
            !hex.is_empty() && hex.len() % 2 == 0 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex {
            let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
            streams[usize::from(line.starts_with('\t'))]
                .extend(bytes.map(|byte| byte.expect("they are digits")));
        }
    }
    for side in [0, 1] {
        assert!(
            streams[side] == capture.sent[side],
            "{side}: {} of {} bytes",
            streams[side].len(),
            capture.sent[side].len()
        );
    }
}
