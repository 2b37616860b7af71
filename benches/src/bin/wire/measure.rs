//! The measurements.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::println;
use clap::Parser;
use trunkline_benches::Spread;
use trunkline_core::Duration;
use trunkline_io::bare::{self, relay::Waiting};
use trunkline_io::clock::raw_now;
use trunkline_io::{Machine, pace};

use crate::ground::{ADDRESSES, Between, Ground, Kind, pin};
use crate::probes;

/// Speed and timing of the wire's relay.
///
/// Beside mahimahi, whose shells give their programs the address of this machine: start `wire --sink 7000`, then
/// `mm-link TRACE TRACE -- sh -c 'wire --flood $MAHIMAHI_BASE:7000'`; start `wire --probe-sink 7000 --delay 10`, then
/// `mm-delay 10 sh -c 'wire --probe $MAHIMAHI_BASE:7000'`. `wire sockets` measures the same of ours.
#[derive(Parser)]
#[command(verbatim_doc_comment)]
struct Options {
    /// Rounds of each measurement, ours and the bare loop in turn
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Which to measure: rate, latency, delay, shape, sockets; all if none is named
    #[arg(value_name = "WHAT")]
    what: Vec<String>,
    /// Only count what comes to this port for two seconds
    #[arg(long)]
    sink: Option<u16>,
    /// Only send 64-byte packets there for two seconds, as fast as it goes
    #[arg(long)]
    flood: Option<SocketAddr>,
    /// Only time what `--probe` sends to this port
    #[arg(long)]
    probe_sink: Option<u16>,
    /// With `--probe-sink`, how long the way should take, in milliseconds
    #[arg(long, default_value_t = 0)]
    delay: u64,
    /// Only send 2,000 packets there, about one every millisecond
    #[arg(long)]
    probe: Option<SocketAddr>,
}

pub(crate) fn main() {
    let options = Options::parse();
    if alone(&options) {
        return;
    }
    let wanted = |what: &str| options.what.is_empty() || options.what.iter().any(|named| named == what);
    println!("{}\n", Machine::describe());
    for kind in [Kind::Tun, Kind::Ring] {
        if wanted("rate") {
            rates(kind, options.rounds);
        }
        if wanted("latency") {
            latencies(kind, options.rounds);
        }
        if wanted("delay") {
            delays(kind, options.rounds);
        }
        if wanted("shape") {
            shape(kind);
        }
        if wanted("sockets") {
            sockets_alone(kind);
        }
    }
}

const SLEEPING: Waiting = Waiting { delay: 0, spin: 0 };
const SPINNING: Waiting = Waiting { delay: 0, spin: u64::MAX };
const FAST: &str = "rate = \"10 Gbit/s\"\nqueue = { kind = \"fifo\", limit = \"1 MB\" }";

/// Thousands of packets per second through a 10 Gbit/s FIFO, and the processor's time for each on the relay's thread, which
/// tells more where other programs run.
fn rates(kind: Kind, rounds: usize) {
    println!(
        "{kind:?}: thousands of packets per second (ours · bare) and per second of the relay's processor time"
    );
    for size in [64, 1500] {
        let (mut ours, mut theirs) = ([vec![], vec![]], [vec![], vec![]]);
        for _ in 0..rounds {
            for (between, into) in [(Between::Ours(FAST), &mut ours), (Between::Bare, &mut theirs)] {
                let figures = rate(&Ground::new(kind, between, SLEEPING), size);
                into.iter_mut().zip(figures).for_each(|(into, figure)| into.push(figure));
            }
        }
        for (name, which) in [("by the clock", 0), ("by processor time", 1)] {
            println!(
                "  {size} bytes, {name}: {:.0} · {:.0} · ratio {}",
                Spread::of(&ours[which]),
                Spread::of(&theirs[which]).median,
                Spread::of_ratios(&ours[which], &theirs[which])
            );
        }
    }
    println!("  goal: ratio >= 0.7\n");
}

fn rate(ground: &Ground, size: usize) -> [f64; 2] {
    let over = Arc::new(AtomicBool::new(false));
    let injector = ground.inject(ground.frame(size), Arc::clone(&over));
    let look = || (ground.received(), raw_now(), ground.worked());
    pace::sleep(Duration::from_millis(200));
    let before = look();
    pace::sleep(Duration::from_millis(800));
    let after = look();
    over.store(true, Ordering::Relaxed);
    injector.join().expect("no panic");
    let packets = (after.0 - before.0) as f64 * 1e6;
    [packets / (after.1 - before.1) as f64, packets / (after.2 - before.2) as f64]
}

/// A socket of each host, and the address of the second.
fn sockets(ground: &Ground) -> ([UdpSocket; 2], SocketAddr) {
    let sockets = [0, 1].map(|host: usize| {
        let address = SocketAddr::from((ADDRESSES[host], 7000));
        ground.hosts[host].run(move || UdpSocket::bind(address)).expect("the address is its own")
    });
    (sockets, SocketAddr::from((ADDRESSES[1], 7000)))
}

/// The median and the 99th percentile of how long packets took beyond `expected`, in us, and how many were missing.
fn timed(ground: &Ground, interval: u64, count: usize, expected: u64) -> [f64; 3] {
    let ([from, to], address) = sockets(ground);
    let measure = std::thread::spawn(move || {
        pin(0);
        // The first wait for addresses to be resolved.
        probes::one_way(&from, &to, address, 2_000_000, 20);
        probes::one_way(&from, &to, address, interval, count)
    });
    let (times, missing) = measure.join().expect("no panic");
    let error = |share: f64| percentile(&times, share) - expected as f64 / 1e3;
    [error(0.5), error(0.99), missing as f64]
}

/// One-way times from socket to socket at no delay.
fn latencies(kind: Kind, rounds: usize) {
    println!(
        "{kind:?}: one way from socket to socket in us (ours: p50, p99 · bare: p50, p99), ratio of medians"
    );
    for (name, waiting) in [("sleeping", SLEEPING), ("spinning", SPINNING)] {
        compare(name, rounds, kind, FAST, waiting, |ground| timed(ground, 200_000, 4_000, 0));
    }
    println!("  goal: ratio of medians <= 1.3\n");
}

/// How far a delay of 10 ms is off.
fn delays(kind: Kind, rounds: usize) {
    println!("{kind:?}: error of a 10 ms delay in us (ours: p50, p99 · bare: p50, p99), ratio");
    let keys = format!("{FAST}\ndelay = \"10 ms\"");
    for (name, spin) in [("sleeping", 0), ("spinning the last 200 us", 200_000), ("spinning", u64::MAX)] {
        let waiting = Waiting { delay: 10_000_000, spin };
        compare(name, rounds, kind, &keys, waiting, |ground| timed(ground, 1_000_000, 2_000, 10_000_000));
    }
    println!("  goals: spinning, 10 us at the median; p99 no more than the bare loop's\n");
}

fn compare(
    name: &str,
    rounds: usize,
    kind: Kind,
    keys: &str,
    waiting: Waiting,
    measure: impl Fn(&Ground) -> [f64; 3],
) {
    let (mut ours, mut theirs) = ([vec![], vec![], vec![]], [vec![], vec![], vec![]]);
    for _ in 0..rounds {
        for (between, into) in [(Between::Ours(keys), &mut ours), (Between::Bare, &mut theirs)] {
            let figures = measure(&Ground::new(kind, between, waiting));
            into.iter_mut().zip(figures).for_each(|(into, figure)| into.push(figure));
        }
    }
    let median = |of: &[Vec<f64>; 3], which: usize| Spread::of(&of[which]).median;
    let missing = |of: &[Vec<f64>; 3]| of[2].iter().sum::<f64>();
    println!(
        "  {name}: {:.1}, {:.1} · {:.1}, {:.1} · ratio p50 {}, p99 {} · missing {} · {}",
        median(&ours, 0),
        median(&ours, 1),
        median(&theirs, 0),
        median(&theirs, 1),
        Spread::of_ratios(&ours[0], &theirs[0]),
        Spread::of_ratios(&ours[1], &theirs[1]),
        missing(&ours),
        missing(&theirs),
    );
}

/// How exactly a link of 100 Mbit/s carries 100 Mbit/s over ten seconds, offered half as much again.
fn shape(kind: Kind) {
    let keys = "rate = \"100 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"1 MB\" }";
    let ground = Ground::new(kind, Between::Ours(keys), SLEEPING);
    let ([from, _to], address) = sockets(&ground);
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    let sending = std::thread::spawn(move || {
        pin(0);
        let mut due = raw_now();
        while !told.load(Ordering::Relaxed) {
            for _ in 0..25 {
                // Those that the interface does not take are missing from the surplus.
                let _ = from.send_to(&[0; 1472], address);
            }
            due += 2_000_000;
            pace::sleep_until_raw(due);
        }
    });
    pace::sleep(Duration::from_millis(500));
    let (packets, start) = (ground.received(), raw_now());
    pace::sleep(Duration::from_secs(10));
    let (after, end) = (ground.received(), raw_now());
    over.store(true, Ordering::Relaxed);
    sending.join().expect("no panic");
    let rate = (after - packets) as f64 * 1500.0 * 8.0 / ((end - start) as f64 / 1e3);
    println!("{kind:?}: a 100 Mbit/s link carries {rate:.3} Mbit/s, {:+.3} %", rate - 100.0);
    println!("  goal: within 0.5 %\n");
}

/// What `--flood`, `--probe` and their sinks measure, through ours.
fn sockets_alone(kind: Kind) {
    println!("{kind:?}, between ordinary sockets");
    let ground = Ground::new(kind, Between::Ours(FAST), SLEEPING);
    let ([from, to], address) = sockets(&ground);
    from.connect(address).expect("there is a route");
    let sinking = std::thread::spawn(move || sink(&to));
    flood(&from);
    sinking.join().expect("no panic");
    let keys = format!("{FAST}\ndelay = \"10 ms\"");
    for waiting in [SLEEPING, SPINNING] {
        let ground = Ground::new(kind, Between::Ours(&keys), waiting);
        let ([from, to], address) = sockets(&ground);
        from.connect(address).expect("there is a route");
        let sinking = std::thread::spawn(move || probe_sink(&to, 10));
        probes::send(&from, PROBES);
        sinking.join().expect("no panic");
    }
    println!();
}

/// Does the part of a measurement that another program stands around.
fn alone(options: &Options) -> bool {
    let any = |port: u16| UdpSocket::bind(("0.0.0.0", port)).expect("the port is free");
    let to = |address: SocketAddr| {
        let socket = any(0);
        socket.connect(address).expect("there is a route");
        socket
    };
    match (options.flood, options.sink, options.probe, options.probe_sink) {
        (Some(address), ..) => flood(&to(address)),
        (_, Some(port), ..) => sink(&any(port)),
        (_, _, Some(address), _) => probes::send(&to(address), PROBES),
        (.., Some(port)) => probe_sink(&any(port), options.delay),
        _ => return false,
    }
    true
}

/// Sends for two seconds.
fn flood(socket: &UdpSocket) {
    let sent = for_two_seconds(|over| bare::flood(socket, 64 - 28, 64, false, over));
    println!("  sent {:.0} thousand packets per second", sent as f64 / 2e3);
}

/// Receives for two seconds from the first packet on.
fn sink(socket: &UdpSocket) {
    socket.recv(&mut [0; 64]).expect("the socket receives");
    socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("sockets have timeouts");
    let received = for_two_seconds(|over| bare::sink(socket, 64, false, over));
    println!("  received {:.0} thousand packets per second", received as f64 / 2e3);
}

/// Says how far off the delay is, too long or too short.
fn probe_sink(socket: &UdpSocket, delay: u64) {
    let times = probes::receive(socket);
    let mut errors: Vec<u64> = times.iter().map(|time| time.abs_diff(delay * 1_000_000)).collect();
    errors.sort_unstable();
    println!(
        "  error of the delay: p50 {:.1} us, p99 {:.1} us, missing {}",
        percentile(&errors, 0.5),
        percentile(&errors, 0.99),
        PROBES.saturating_sub(times.len())
    );
}

/// How many packets time a delay.
const PROBES: usize = 2_000;

fn for_two_seconds(work: impl FnOnce(&AtomicBool) -> u64 + Send) -> u64 {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work(&over));
        pace::sleep(Duration::from_secs(2));
        over.store(true, Ordering::Relaxed);
        working.join().expect("no panic")
    })
}

/// In us, the value below which a share of the sorted values lies, by nearest rank.
fn percentile(sorted: &[u64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).map_or(f64::NAN, |&nanos| nanos as f64 / 1e3)
}
