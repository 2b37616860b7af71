//! Our TCP with Linux's as its peer, over a TUN interface in a network namespace: every byte is compared, no end sends beyond
//! the other's window, and tshark finds nothing that it would not find between two kernels.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;

use trunkline_core::{Address, Bytes, Duration, Ecn, Rate, Seed, Stream, Time};
use trunkline_interop::kernel::{KernelHost, alone};
use trunkline_testkit::pair::{FAR, Line, NEAR, Path};
use trunkline_testkit::programs::tshark;
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::script::{EngineHost, Host, Outcome, Segment, Setting, bytes, flag};
use trunkline_transport::tcp::{
    AckConfig, BufferConfig, EcnConfig, Nagle, Pacing, Recovery, TcpConfig, TimeoutConfig, WindowUpdates,
};

const MS: Duration = Duration::from_millis(1);
/// An exchange that takes longer has stalled.
const PATIENCE: Duration = Duration::from_secs(25);
/// The kernel stands first, as in the interface's addresses.
const ADDRESSES: [Address; 2] = [NEAR, FAR];

/// An exchange between the kernel (end 0) and the engine (end 1).
struct Case {
    name: &'static str,
    config: TcpConfig,
    kernel: Vec<(&'static str, &'static str)>,
    path: Path,
    /// The share of ECN-capable packets that is marked.
    marks: f64,
    /// Bytes from either end.
    bytes: usize,
}

impl Case {
    fn new(name: &'static str) -> Case {
        Case {
            name,
            config: TcpConfig::default(),
            kernel: Vec::new(),
            path: Path::with_latency(MS * 2),
            marks: 0.0,
            bytes: 150_000,
        }
    }
}

/// What an end may send by what it has heard of the other's window.
#[derive(Default)]
struct Edge {
    scales: [Option<u8>; 2],
    /// By the end that sends: the sequence number behind the largest window.
    edges: [Option<u32>; 2],
}

impl Edge {
    /// Whether end `from` may send this segment.
    fn allows(&mut self, from: usize, segment: &Segment) -> bool {
        if segment.has(flag::SYN) {
            self.scales[from] = segment.scale;
        }
        let end = segment.sequence.wrapping_add(segment.length());
        let is_probe = segment.data.is_empty() || segment.has(flag::RST | flag::SYN);
        is_probe || self.edges[from].is_none_or(|edge| edge.wrapping_sub(end) as i32 >= 0)
    }

    /// A segment has reached the other end.
    fn take(&mut self, from: usize, segment: &Segment) {
        if !segment.has(flag::ACK) {
            return;
        }
        let is_scaled = !segment.has(flag::SYN) && self.scales.iter().all(Option::is_some);
        let shift = if is_scaled { self.scales[from].unwrap_or(0) } else { 0 };
        let edge = segment.acknowledgement.wrapping_add(u32::from(segment.window) << shift);
        let known = &mut self.edges[1 - from];
        *known = Some(known.filter(|known| edge.wrapping_sub(*known) as i32 <= 0).unwrap_or(edge));
    }
}

/// What passed the kernel's interface, each with its moment and its sender.
type Capture = Vec<(Time, Address, Vec<u8>)>;

/// A packet on its way: to which end, its bytes and its ECN field.
type Flying = BTreeMap<(Time, u64), (usize, Vec<u8>, Ecn)>;

struct Exchange<'c> {
    case: &'c Case,
    lines: [Line; 2],
    marks: Stream,
    flying: Flying,
    count: u64,
    edge: Edge,
    /// What passed the kernel's interface, with its sender.
    capture: Capture,
    written: [usize; 2],
    received: [Vec<u8>; 2],
    closed: [bool; 2],
    /// The ends whose connection is over.
    ended: [bool; 2],
}

impl Exchange<'_> {
    /// Sends a packet of one end on its way.
    fn carry(&mut self, from: usize, now: Time, packet: &[u8], ecn: Ecn) {
        if from == 0 {
            self.capture.push((now, ADDRESSES[0], packet.to_vec()));
        }
        let segment = Segment::read(ADDRESSES[from], ADDRESSES[1 - from], packet);
        let segment = segment.unwrap_or_else(|problem| panic!("{}: end {from}: {problem}", self.case.name));
        let name = self.case.name;
        assert!(
            self.edge.allows(from, &segment),
            "{name}: end {from} sends beyond {:?}: {segment:?}",
            self.edge.edges
        );
        // An end that remembers no connection refuses a late segment (RFC 9293, section 3.10.7.1).
        assert!(!segment.has(flag::RST) || self.ended[from], "{name}: end {from} resets: {segment:?}");
        let is_marked = self.marks.chance(self.case.marks) && ecn != Ecn::NotCapable;
        let ecn = if is_marked { Ecn::CongestionExperienced } else { ecn };
        for (at, bytes) in self.lines[from].carry(now, Bytes(20 + packet.len() as u64), packet) {
            self.count += 1;
            self.flying.insert((at, self.count), (1 - from, bytes, ecn));
        }
    }

    /// Everything that an application does, and whether both are done.
    fn apply(&mut self, ends: &mut [&mut dyn Host; 2], now: Time) -> bool {
        for (end, host) in ends.iter_mut().enumerate() {
            if matches!(host.outcome(now), Outcome::Pending) {
                continue;
            }
            let got = host.read(now);
            self.received[end].extend(got);
            while self.written[end] < self.case.bytes {
                let piece =
                    bytes(1 + self.written[end] as u64, (self.case.bytes - self.written[end]).min(8192));
                match host.write(now, &piece, false) {
                    0 => break,
                    taken => self.written[end] += taken,
                }
            }
            if self.written[end] == self.case.bytes && !self.closed[end] {
                self.closed[end] = true;
                host.close(now, false);
            }
        }
        for (ended, host) in self.ended.iter_mut().zip(&mut *ends) {
            *ended = host.outcome(now) == Outcome::Ended;
        }
        let is_whole = self.received.iter().all(|received| received.len() >= self.case.bytes);
        is_whole && self.closed == [true; 2] && self.ended[0]
    }
}

/// Runs a case in a namespace of its own; returns what passed the interface, or `None` where that is refused.
fn run(case: &Case, seed: u64, kernel_connects: bool) -> Option<Capture> {
    alone(|| {
        let setting =
            |(key, value): &(&str, &str)| Setting { key: (*key).to_owned(), value: (*value).to_owned() };
        let settings: Vec<Setting> = case.kernel.iter().map(setting).collect();
        let mut kernel = KernelHost::new(&settings).expect("the kernel has these settings");
        let mut engine = EngineHost::with(case.config.clone(), [FAR, NEAR], seed);
        let seed = Seed::new(seed, kernel_connects.into());
        let line = |place| Line::new(case.path.clone(), seed.stream(place));
        let mut exchange = Exchange {
            case,
            lines: [line("back"), line("out")],
            marks: seed.stream("marks"),
            flying: BTreeMap::new(),
            count: 0,
            edge: Edge::default(),
            capture: Vec::new(),
            written: [0; 2],
            received: Default::default(),
            closed: [false; 2],
            ended: [false; 2],
        };
        engine.open(kernel.now(), kernel_connects);
        kernel.open(Time::ZERO, !kernel_connects);
        let mut over: Option<Time> = None;
        loop {
            let now = kernel.now();
            assert!(
                now < Time::ZERO + PATIENCE,
                "{}: stalled with {:?} of {} bytes, {:?} written",
                case.name,
                exchange.received.each_ref().map(Vec::len),
                case.bytes,
                exchange.written
            );
            while let Some((at, packet, ecn)) = engine.next_sent(now) {
                exchange.carry(1, at.max(now), &packet, ecn);
            }
            let mut wait = now + MS;
            while let Some((&(at, number), _)) = exchange.flying.first_key_value() {
                if at > now {
                    wait = wait.min(at);
                    break;
                }
                let Some((to, packet, ecn)) = exchange.flying.remove(&(at, number)) else { break };
                let segment = Segment::read(ADDRESSES[1 - to], ADDRESSES[to], &packet);
                if let Ok(segment) = &segment {
                    exchange.edge.take(1 - to, segment);
                }
                if to == 0 {
                    // A damaged packet stays out of the capture, as the kernel drops it: tshark would follow the sequence
                    // numbers in it, and doubt every true one after.
                    if segment.is_ok() {
                        exchange.capture.push((now, FAR, packet.clone()));
                    }
                    kernel.deliver(now, &packet, ecn);
                } else {
                    engine.deliver(now, &packet, ecn);
                }
            }
            if exchange.apply(&mut [&mut kernel, &mut engine], now) {
                let end = *over.get_or_insert(now + case.path.latency * 4 + MS * 50);
                if now >= end {
                    break;
                }
            }
            while let Some((at, packet, ecn)) = kernel.next_sent(wait) {
                exchange.carry(0, at, &packet, ecn);
                wait = at;
            }
        }
        for (end, received) in exchange.received.iter().enumerate() {
            assert!(*received == bytes(1, case.bytes), "{}: end {end} got other bytes", case.name);
        }
        let lost = exchange.lines.iter().map(|line| line.counters().lost).sum::<u64>();
        if case.path.loss == 0.0 {
            assert_eq!(lost, 0);
        }
        if case.marks > 0.0 {
            assert!(engine.counter("reductions-by-marks") > 0, "{}: no mark was heard of", case.name);
        }
        exchange.capture
    })
}

/// What tshark says of any exchange between two kernels over a path that loses, duplicates or reorders, or on a machine that
/// stands still for longer than a probe waits.
const USUAL: [&str; 22] = [
    "Connection establish request (SYN)",
    "Connection establish acknowledge (SYN+ACK)",
    "Connection finish (FIN)",
    "This frame initiates the connection closing",
    "This frame undergoes the connection closing",
    "This frame is a (suspected) retransmission",
    "This frame is a (suspected) fast retransmission",
    "This frame is a (suspected) spurious retransmission",
    "This frame is a (suspected) out-of-order segment",
    "Previous segment(s) not captured (common at capture start)",
    "Duplicate ACK",
    "D-SACK Sequence",
    "TCP keep-alive segment",
    "ACK to a TCP keep-alive segment",
    "TCP window update",
    "TCP window specified by the receiver is now completely full",
    "TCP Zero Window segment",
    "TCP Zero Window Probe",
    "ACK to a TCP Zero Window Probe",
    // The exchange itself judges it: only an end whose connection is over may.
    "Connection reset (RST)",
    // Only Linux's are let pass by the sum's own status.
    "TCP Checksum 0xffff instead of 0x0000",
    // One exchange after the other.
    "A new tcp session is started with the same ports",
];

/// Has tshark look at what passed the interface in all cases, one after the other.
fn judge(captures: &[(&Case, Capture)]) {
    let later = |number: u64, at: Time| at + Duration::from_secs(1000) * number;
    let packets: Vec<(&Case, Time, Address, &[u8])> = (0..)
        .zip(captures)
        .flat_map(|(number, (case, capture))| {
            capture.iter().map(move |(at, from, bytes)| (*case, later(number, *at), *from, &bytes[..]))
        })
        .collect();
    let given = packets.iter().map(|(_, at, from, bytes)| (*at, *from, *bytes));
    let options = ["-o", "tcp.check_checksum:TRUE", "-d", "tcp.port==7001,data", "-T", "fields"];
    let format = ["-E", "separator=|", "-E", "aggregator=;"];
    let fields = ["-e", "tcp.checksum.status", "-e", "_ws.malformed", "-e", "_ws.expert.message"];
    let Some(text) = tshark(6, given, &[&options[..], &format, &fields].concat()) else { return };
    assert_eq!(text.lines().count(), packets.len());
    let mut found: BTreeMap<(&str, &str), (usize, String)> = BTreeMap::new();
    for (line, (case, at, from, bytes)) in text.lines().zip(&packets) {
        let mut columns = line.splitn(3, '|');
        let (checksum, malformed) = (columns.next().unwrap_or(""), columns.next().unwrap_or(""));
        // Linux writes the sum of zero as either of its two forms, and tshark knows one.
        let is_minus_zero = *from == NEAR && bytes[16..18] == [0xFF; 2];
        let is_good = checksum == "1" || is_minus_zero;
        assert!(is_good && malformed.is_empty(), "{} at {at} from {from}: {bytes:02x?}", case.name);
        let messages = columns.next().unwrap_or("").split(';').filter(|message| !message.is_empty());
        for message in messages.filter(|message| !USUAL.iter().any(|usual| message.starts_with(usual))) {
            found
                .entry((case.name, message))
                .or_insert_with(|| (0, format!("first at {at} from {from}")))
                .0 += 1;
        }
    }
    assert!(found.is_empty(), "tshark finds {found:#?}");
}

fn lossy(loss: f64) -> Path {
    Path { loss, ..Path::with_latency(MS * 5) }
}

fn cases() -> Vec<Case> {
    let fast = |name| TcpConfig { congestion_control: name, ..TcpConfig::default() };
    let algorithm = |name: &str| name.parse().expect("it exists");
    let rate = Some(Rate::from_bits_per_second(100_000_000));
    let queue = Path { rate, ..Path::with_latency(MS * 5) };
    vec![
        Case { bytes: 2_000_000, ..Case::new("clean") },
        Case { path: lossy(0.01), ..Case::new("1 % loss") },
        Case { path: lossy(0.03), ..Case::new("3 % loss") },
        Case { path: lossy(0.1), bytes: 100_000, ..Case::new("10 % loss") },
        Case { path: Path { reorder: 0.05, ..lossy(0.0) }, ..Case::new("reordering") },
        Case { path: Path { duplicate: 0.05, ..lossy(0.0) }, ..Case::new("duplication") },
        Case { path: Path { corrupt: 0.02, ..lossy(0.0) }, ..Case::new("corruption") },
        Case {
            path: Path { loss: 0.02, reorder: 0.02, duplicate: 0.02, corrupt: 0.01, ..lossy(0.0) },
            ..Case::new("everything")
        },
        Case {
            config: TcpConfig { ecn: EcnConfig::On, ..TcpConfig::default() },
            kernel: vec![("ecn", "on")],
            marks: 0.05,
            bytes: 600_000,
            ..Case::new("marks")
        },
        Case {
            config: TcpConfig { ecn: EcnConfig::Accurate, ..TcpConfig::default() },
            kernel: vec![("ecn", "on")],
            marks: 0.05,
            bytes: 600_000,
            ..Case::new("marks, where only one end counts them")
        },
        Case {
            config: TcpConfig {
                receive_buffer: BufferConfig::fixed(1000),
                send_buffer: BufferConfig::fixed(1000),
                mss: 536,
                ..TcpConfig::default()
            },
            kernel: vec![("receive-buffer", "1200")],
            path: Path::with_latency(Duration::from_micros(200)),
            bytes: 20_000,
            ..Case::new("tiny windows")
        },
        Case {
            config: TcpConfig {
                receive_buffer: BufferConfig::fixed(8 << 20),
                send_buffer: BufferConfig::fixed(8 << 20),
                ..TcpConfig::default()
            },
            kernel: vec![("receive-buffer", "4000000")],
            path: Path::with_latency(MS * 20),
            bytes: 4_000_000,
            ..Case::new("huge windows")
        },
        Case {
            config: TcpConfig {
                window_scaling: false,
                timestamps: false,
                sack: false,
                tail_loss_probe: false,
                recovery: Recovery::Dupack,
                ..TcpConfig::default()
            },
            path: lossy(0.01),
            ..Case::new("the engine without options")
        },
        Case {
            kernel: vec![("sack", "off"), ("timestamps", "off"), ("window-scaling", "off")],
            path: lossy(0.01),
            ..Case::new("the kernel without options")
        },
        Case {
            config: TcpConfig { mss: 88, nagle: Nagle::Minshall, ..TcpConfig::default() },
            path: lossy(0.01),
            bytes: 50_000,
            ..Case::new("tiny segments")
        },
        Case {
            config: TcpConfig { pacing: Pacing::Always, ..fast(algorithm("bbr")) },
            kernel: vec![("congestion", "bbr")],
            path: Path { loss: 0.01, ..queue.clone() },
            ..Case::new("BBR")
        },
        Case {
            config: fast(algorithm("reno")),
            kernel: vec![("congestion", "reno")],
            path: queue,
            bytes: 1_000_000,
            ..Case::new("Reno behind a queue")
        },
        Case {
            config: TcpConfig {
                window_scaling: false,
                timestamps: false,
                sack: false,
                tail_loss_probe: false,
                frto: false,
                recovery: Recovery::Reno,
                nagle: Nagle::Below(1460),
                half_window_segments: false,
                wakes_writer_late: false,
                window_updates: WindowUpdates::TwoSegments,
                receive_buffer: BufferConfig::fixed(8 << 10),
                send_buffer: BufferConfig::fixed(8 << 10),
                burst: 0,
                congestion_control: algorithm("reno"),
                acks: AckConfig { adaptive: false, ..AckConfig::default() },
                timeout: TimeoutConfig { keep_backoff: false, ..TimeoutConfig::default() },
                ..TcpConfig::default()
            },
            path: lossy(0.005),
            bytes: 60_000,
            ..Case::new("a host of the 1990s")
        },
    ]
}

/// Runs all cases one way, some at a time.
fn every_case(kernel_connects: bool) {
    if alone(|| ()).is_none() {
        return;
    }
    in_real_time(|| {
        let all = cases();
        let run_some = |first: usize| {
            let mine = (0..).zip(&all).skip(first).step_by(AT_ONCE);
            mine.filter_map(|(seed, case)| Some((case, run(case, seed, kernel_connects)?)))
                .collect::<Vec<_>>()
        };
        let captures = std::thread::scope(|scope| {
            let run_some = &run_some;
            let running: Vec<_> = (0..AT_ONCE).map(|first| scope.spawn(move || run_some(first))).collect();
            let ended = running.into_iter().map(|thread| thread.join());
            ended
                .flat_map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        judge(&captures);
    });
}

/// So many run at the same time: they mostly wait.
const AT_ONCE: usize = 9;

#[test]
fn every_byte_arrives_both_ways_when_the_engine_connects_to_the_kernel() {
    every_case(false);
}

#[test]
fn every_byte_arrives_both_ways_when_the_kernel_connects_to_the_engine() {
    every_case(true);
}
