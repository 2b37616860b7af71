//! How well the live driver keeps time, answers and counts, always beside a bare loop over the same system calls in the
//! same run: this says what our part of a figure is, whatever the machine.
//!
//! `cargo run --release -p trunkline-benches --bin live`

mod blast;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::println;
use clap::Parser;
use trunkline_benches::{GoOn, Spread, experiment};
use trunkline_core::{Duration, FlowId, Seed, Time};
use trunkline_io::udp::{SocketOptions, open, set_receive_timeout};
use trunkline_io::{MonotonicClock, bare};
use trunkline_live::{FarEnd, LiveOptions, Receive, Spin, far_end};
use trunkline_metrics::{Observation, Recorder};
use trunkline_transport::framing::{HEADER_LENGTH, Header, Key, MessageKind};

use self::blast::Blast;

/// Speed and timing of the live driver.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement, ours and the bare loop in turn
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Which to measure: schedule, round-trip, voice, blast; all if none is named
    #[arg(value_name = "WHAT")]
    what: Vec<String>,
    /// The far end, in its own process
    #[arg(long, hide = true)]
    far_end: bool,
}

fn main() {
    let options = Options::parse();
    if options.far_end {
        // The near end has been told of an error.
        let _ = far_end::serve_standard_streams();
        return;
    }
    let wanted = |what: &str| options.what.is_empty() || options.what.iter().any(|named| named == what);
    println!("{}\n", trunkline_live::machine_description());
    if wanted("schedule") {
        schedules(options.rounds);
    }
    if wanted("round-trip") {
        round_trips(options.rounds);
    }
    if wanted("voice") {
        voices();
    }
    if wanted("blast") {
        blasts(options.rounds);
    }
}

/// This program again, as the far end.
fn other_process() -> FarEnd {
    let program = std::env::current_exe().expect("a running program has a path");
    FarEnd::Process { program, arguments: vec!["--far-end".into()] }
}

/// The value below which a share of the sorted values lies, by nearest rank.
fn percentile(sorted: &[u64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64
}

// ---------------------------------------------------------------------------------------------------------------------

/// Keeps how late each message left.
#[derive(Default)]
struct Errors(Vec<u64>);

impl Recorder for Errors {
    fn record(&mut self, _: Time, _: FlowId, what: Observation) {
        if let Observation::SendCall { error_nanos, .. } = what {
            self.0.push(error_nanos);
        }
    }
}

/// How late one channel's messages leave, every 10 ms and every 1 ms, with and without spinning.
fn schedules(rounds: usize) {
    println!(
        "Schedule error in us (ours: p50, p99 · bare: p50, p99), ratios as median (smallest to largest)"
    );
    for (interval, samples) in [(10, 80), (1, 8)] {
        let text = format!(
            "name = \"pace\"\nduration = \"1500 ms\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\n\
             between = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
             transport = \"udp\"\nsource = {{ kind = \"voice\", samples = {samples} }}\n"
        );
        let experiment = experiment(&text);
        for (name, spin) in [("spinning", Spin::Always), ("sleeping", Spin::Never)] {
            let (mut ours, mut theirs) = ([vec![], vec![]], [vec![], vec![]]);
            for round in 0..rounds {
                let options = LiveOptions { spin, ..LiveOptions::new(other_process()) };
                let mut errors = Errors::default();
                let scenario = &experiment.points.first().scenario;
                trunkline_live::run(scenario, Seed::new(7, round as u32), &options, &mut errors, &mut GoOn)
                    .unwrap_or_else(|error| panic!("{error}"));
                let stretch = if spin == Spin::Always { 300_000 } else { 0 };
                let mut bare = bare::pace(interval * 1_000_000, stretch, errors.0.len());
                for (errors, into) in [(&mut errors.0, &mut ours), (&mut bare, &mut theirs)] {
                    errors.sort_unstable();
                    into[0].push(percentile(errors, 0.5) / 1e3);
                    into[1].push(percentile(errors, 0.99) / 1e3);
                }
            }
            println!(
                "  every {interval:2} ms, {name}: {:.2}, {:.1} · {:.2}, {:.1} · ratio p50 {}, p99 {}",
                Spread::of(&ours[0]).median,
                Spread::of(&ours[1]).median,
                Spread::of(&theirs[0]).median,
                Spread::of(&theirs[1]).median,
                Spread::of_ratios(&ours[0], &theirs[0]),
                Spread::of_ratios(&ours[1], &theirs[1]),
            );
        }
    }
    println!("  goals: spinning p50 < 1 us and p99 ratio <= 1.5; sleeping ratio <= 1.2\n");
}

// ---------------------------------------------------------------------------------------------------------------------

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const KEY: Key = Key(0x7472_756e);

fn socket(peer: Option<SocketAddr>) -> UdpSocket {
    let options = SocketOptions { receive_buffer: Some(8 << 20), ..SocketOptions::default() };
    let (socket, _) = open(SocketAddr::new(LOCAL, 0), peer, options).expect("loopback has free ports");
    set_receive_timeout(&socket, Duration::from_millis(20)).expect("sockets have receive timeouts");
    socket
}

/// Round trips of 940-byte messages, the same client against our reflector and against a bare echo.
fn round_trips(rounds: usize) {
    println!("Round trip of 940 bytes in us (ours · bare), ratio of medians as median (smallest to largest)");
    for (name, receive) in [("blocking", Receive::Blocking), ("polling", Receive::Polling)] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let (mut ours_p99, mut theirs_p99) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            for (medians, tails, reflector) in
                [(&mut ours, &mut ours_p99, true), (&mut theirs, &mut theirs_p99, false)]
            {
                let far = socket(None);
                let over = AtomicBool::new(false);
                let trips = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        if reflector {
                            far_end::reflect(&far, KEY, LOCAL, receive, &over);
                        } else {
                            bare::echo(&far, receive == Receive::Polling, &over);
                        }
                    });
                    let near = socket(far.local_addr().ok());
                    let count = if receive == Receive::Polling { 40_000 } else { 8_000 };
                    let trips = ping(&near, receive == Receive::Polling, count);
                    over.store(true, Ordering::Relaxed);
                    trips
                });
                medians.push(percentile(&trips, 0.5) / 1e3);
                tails.push(percentile(&trips, 0.99) / 1e3);
            }
        }
        println!(
            "  {name}: p50 {:.2} · {:.2} · ratio {} · p99 {:.1} · {:.1}",
            Spread::of(&ours).median,
            Spread::of(&theirs).median,
            Spread::of_ratios(&ours, &theirs),
            Spread::of(&ours_p99).median,
            Spread::of(&theirs_p99).median,
        );
    }
    println!("  goal: ratio <= 1.15\n");
}

/// Sends and waits, one message after the other; sorted round trips in nanoseconds.
fn ping(socket: &UdpSocket, polling: bool, count: usize) -> Vec<u64> {
    let clock = MonotonicClock::starting_now();
    socket.set_nonblocking(polling).expect("sockets can be polled");
    let mut message = [0u8; 940];
    let mut trips = Vec::with_capacity(count);
    let mut sequence = 0;
    while trips.len() < count {
        let sent = clock.now();
        let header = Header {
            place: trunkline_transport::framing::Place::Before,
            key: KEY,
            length: (message.len() - HEADER_LENGTH) as u32,
            flow: FlowId(0),
            sequence,
            channel: 0,
            kind: MessageKind::Forward,
            late: Duration::ZERO,
            sent,
            reflected: Time::ZERO,
        };
        sequence += 1;
        header.encode(&mut message);
        let sent = clock.now();
        // A datagram that does not come back within some milliseconds is given up: the next one tells.
        if socket.send(&message).is_err() {
            continue;
        }
        let mut back = [0u8; 1024];
        loop {
            match socket.recv(&mut back) {
                Ok(_) => {
                    trips.push(clock.now().since(sent).as_nanos());
                    break;
                }
                Err(_) if clock.now().since(sent) > Duration::from_millis(50) => break,
                Err(_) => {}
            }
        }
    }
    trips.sort_unstable();
    trips
}

// ---------------------------------------------------------------------------------------------------------------------

/// Counts what each channel sent and received.
struct Counts {
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl Recorder for Counts {
    fn record(&mut self, _: Time, flow: FlowId, what: Observation) {
        match what {
            Observation::Sent { .. } => self.sent[flow.0 as usize] += 1,
            Observation::Received { .. } => self.received[flow.0 as usize] += 1,
            _ => {}
        }
    }
}

/// 4,000 voice channels of 64 kbit/s, 160 bytes every 20 ms, from one process to one process.
fn voices() {
    const CHANNELS: u32 = 4_000;
    let text = format!(
        "name = \"voices\"\nduration = \"4 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\n\
         between = [\"a\", \"b\"]\nrate = \"10 Gbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
         transport = \"udp\"\nsource = {{ kind = \"voice\", samples = 160 }}\ncount = {CHANNELS}\n"
    );
    let experiment = experiment(&text);
    println!("{CHANNELS} voice channels (160 bytes every 20 ms) for 4 s, one process to one process");
    for reflect in [false, true] {
        let mut scenario = (*experiment.points.first().scenario).clone();
        scenario.flows[0].reflect = reflect;
        let mut counts = Counts { sent: vec![0; CHANNELS as usize], received: vec![0; CHANNELS as usize] };
        let options = LiveOptions::new(other_process());
        let outcome = trunkline_live::run(&scenario, Seed::new(7, 0), &options, &mut counts, &mut GoOn)
            .unwrap_or_else(|error| panic!("{error}"));
        let total = |counts: &[u32]| counts.iter().map(|&n| u64::from(n)).sum::<u64>();
        let (sent, received) = (total(&counts.sent), total(&counts.received));
        let whole = counts.sent.iter().filter(|&&n| n == 200).count();
        println!(
            "  {}: sent {sent}, received {received}, loss {:.4} %, channels at their full rate {whole} of {CHANNELS}, \
             cpu {:.0} % of a core",
            if reflect { "reflected (no goal)" } else { "one way" },
            100.0 * (1.0 - received as f64 / sent as f64),
            100.0 * outcome.cpu.unwrap_or_default().as_secs_f64() / outcome.duration.as_secs_f64(),
        );
    }
    println!("  goal: loss < 0.1 %, every channel's rate kept\n");
}

// ---------------------------------------------------------------------------------------------------------------------

/// Datagrams of 80 bytes from one core to another, each with its number and time; the bare loop counts only.
fn blasts(rounds: usize) {
    println!(
        "Datagrams of 80 bytes per second, received, in thousands (ours · bare), ratio as median (smallest to largest)"
    );
    for (name, offload) in [("sendmmsg and recvmmsg of 64", false), ("offload of 64 to recvmmsg", true)] {
        let (mut ours, mut theirs, mut missing) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..rounds {
            let (rate, lost) = blast_once(offload);
            ours.push(rate);
            missing += 100.0 * lost / rounds as f64;
            theirs.push(flood_once(offload));
        }
        println!(
            "  {name}: {:.0} · {:.0} · ratio {} · not received {missing:.1} %",
            Spread::of(&ours),
            Spread::of(&theirs).median,
            Spread::of_ratios(&ours, &theirs),
        );
    }
    println!("  goals: 700 and 1200\n");
}

const LENGTH: Duration = Duration::from_millis(600);

/// Without offload a receiver that sleeps has to be woken for every datagram, at the sender's expense; with it there are
/// enough at once, and a receiver that polls is in the way.
fn how_to_receive(offload: bool) -> Receive {
    if offload { Receive::Blocking } else { Receive::Polling }
}

/// Thousands received per second, and the share that was not received.
fn blast_once(offload: bool) -> (f64, f64) {
    let sink = socket(None);
    let source = socket(sink.local_addr().ok());
    let clock = MonotonicClock::starting_now();
    let over = AtomicBool::new(false);
    let blast = Blast { datagram: 80, batch: 64, offload, duration: LENGTH };
    let (sent, account) = std::thread::scope(|scope| {
        let receiving =
            scope.spawn(|| blast::receiver(&sink, KEY, clock, 80, how_to_receive(offload), &over));
        let sent = blast::sender(&source, KEY, clock, &blast);
        over.store(true, Ordering::Relaxed);
        (sent.expect("the socket sends"), receiving.join().expect("no panic").expect("the socket receives"))
    });
    assert_eq!(account.latency.len(), account.received, "every datagram has its latency");
    assert_eq!(account.duplicate + account.stray, 0);
    let lost = 1.0 - account.received as f64 / sent.packets as f64;
    (account.received as f64 / account.elapsed.as_secs_f64() / 1e3, lost)
}

/// Thousands received per second.
fn flood_once(offload: bool) -> f64 {
    let sink = socket(None);
    let source = socket(sink.local_addr().ok());
    if offload {
        trunkline_io::udp::set_segment_size(&source, 80).expect("the kernel segments");
    }
    let over = AtomicBool::new(false);
    let clock = MonotonicClock::starting_now();
    let received = std::thread::scope(|scope| {
        let receiving =
            scope.spawn(|| bare::sink(&sink, 80, how_to_receive(offload) == Receive::Polling, &over));
        scope.spawn(|| bare::flood(&source, 80, 64, offload, &over));
        trunkline_io::pace::sleep(LENGTH);
        over.store(true, Ordering::Relaxed);
        receiving.join().expect("no panic")
    });
    // The sink ends one receive timeout after the last datagram.
    received as f64 / (clock.now().as_secs_f64() - 0.02) / 1e3
}
