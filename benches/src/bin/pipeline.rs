//! What our pipeline adds between a sound card and a socket, beside a bare loop with the same wake-ups and packets in the same
//! run; and what 64 channels each way cost.
//!
//! `cargo run --release -p trunkline-benches --bin pipeline`

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anstream::println;
use clap::Parser;
use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::Codec;
use trunkline_benches::Spread;
use trunkline_calls::program::{self, Event, Figures, Observer, SendOptions};
use trunkline_calls::{ServerOptions, Stop};
use trunkline_core::{Duration, Time};
use trunkline_io::{Interest, MonotonicClock, Pacer, PollSet, Wakeup, pace, process};
use trunkline_metrics::{DelaySummary, Delays};
use trunkline_sound::Place;

/// Added latency and CPU time of the audio pipeline.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement, ours and the bare loop in turn
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each round
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Which to measure: duet (2 channels), stage (64); both if none is named
    #[arg(value_name = "WHAT")]
    what: Vec<String>,
    /// The reflector and the bare echo, in a process of their own
    #[arg(long, hide = true)]
    far_end: bool,
}

fn main() {
    let options = Options::parse();
    if options.far_end {
        return far_end();
    }
    let wanted = |what: &str| options.what.is_empty() || options.what.iter().any(|named| named == what);
    println!("{}\n", trunkline_live::machine_description());
    let far = FarEnd::start();
    let lasting = Duration::from_secs(options.seconds);
    for (name, load) in [("duet", DUET), ("stage", STAGE)] {
        if wanted(name) {
            measure(&far, &load, options.rounds, lasting);
        }
    }
}

/// Nobody is told.
struct Silent;

impl Observer for Silent {
    fn event(&self, _: u64, _: Event<'_>) {}
}

const SAMPLE_RATE: u32 = 48_000;
const BLOCK: u32 = 128;

/// Silence of a device without hardware to the reflector and back into one.
fn session(far: &FarEnd, channels: u16, encoding: Encoding, lasting: Duration) -> Figures {
    let options = SendOptions {
        to: Some(Place::None),
        channels,
        sample_rate: Some(SAMPLE_RATE),
        block_frames: BLOCK,
        codec: Codec::Pcm(encoding),
        lasting: Some(lasting),
        ..SendOptions::new(&far.reflector.to_string(), Place::None)
    };
    let sent = program::send(&options, &AtomicBool::new(false), &Silent);
    sent.unwrap_or_else(|error| panic!("{error}")).figures
}

/// What is carried each way, and what a bare loop sends in its place.
struct Load {
    channels: u16,
    encoding: Encoding,
    packets: usize,
    packet: usize,
}

const DUET: Load = Load { channels: 2, encoding: Encoding::I16, packets: 1, packet: 550 };
/// Three channels in a packet.
const STAGE: Load = Load { channels: 64, encoding: Encoding::I24, packets: 22, packet: 1190 };

/// Both ways of our pipeline with its playout buffer and the resampler that follows the other clock, and a bare loop.
fn measure(far: &FarEnd, load: &Load, rounds: usize, lasting: Duration) {
    println!(
        "{} channels of {:?} in blocks of {BLOCK} frames at {SAMPLE_RATE} Hz",
        load.channels, load.encoding
    );
    println!("  in us: p50; p99, each as median (smallest to largest) of {rounds} rounds");
    let mut columns: [[Vec<f64>; 2]; 5] = Default::default();
    let (mut added, mut cpu, mut loss) = ([vec![], vec![]], vec![], vec![]);
    for _ in 0..rounds {
        let before = process::cpu_time();
        let ours = session(far, load.channels, load.encoding, lasting);
        let busy = process::cpu_time().saturating_sub(before);
        cpu.push(100.0 * busy.as_secs_f64() / ours.elapsed.as_secs_f64());
        loss.push(100.0 * ours.counts.loss().unwrap_or_default());
        let [Some(capture), Some(playback)] = ours.added else { panic!("nothing was measured: {ours:?}") };
        let trip = ours.round_trip.expect("it came back").delays;
        let (bare, bare_trip) = bare_loop(far.echo, load, lasting);
        for (column, delays) in columns.iter_mut().zip([&capture, &bare, &playback, &trip, &bare_trip]) {
            column[0].push(micros(delays.p50));
            column[1].push(micros(delays.p99));
        }
        for (column, of) in added.iter_mut().zip([|d: &DelaySummary| d.p50, |d: &DelaySummary| d.p99]) {
            column.push(micros(of(&capture)) - micros(of(&bare)) + micros(of(&playback)));
        }
    }
    let [capture, bare, playback, trip, bare_trip] = &columns;
    let line = |name: &str, [p50, p99]: &[Vec<f64>; 2]| {
        println!("  {name:50} {:.1}; {:.1}", Spread::of(p50), Spread::of(p99));
    };
    let ratio = |ours: &[Vec<f64>; 2], bare: &[Vec<f64>; 2]| {
        let [p50, p99] = [0, 1].map(|which| Spread::of_ratios(&ours[which], &bare[which]));
        println!("  {:50} {p50}; {p99}", "  ratio");
    };
    line("capture callback to socket, ours", capture);
    line("  bare", bare);
    ratio(capture, bare);
    line("socket to playback callback, ours", playback);
    line("added to the bare loop, both ways", &added);
    line("round trip through another process, ours", trip);
    line("  bare", bare_trip);
    ratio(trip, bare_trip);
    println!("  {:50} {:.1}", "CPU of one core, %", Spread::of(&cpu));
    println!("  {:50} {:.2}", "lost, %", Spread::of(&loss));
    println!("  goals: added below 200 us at p99; 64 channels each way below 30 % of a core\n");
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

// ---------------------------------------------------------------------------------------------------------------------

/// A paced thread that wakes another one, which sends packets; what comes back is taken by the same. Gives the time from the
/// moment when the first thread was due until the last packet was sent, and the round trips since the first one's.
fn bare_loop(echo: SocketAddr, load: &Load, lasting: Duration) -> (DelaySummary, DelaySummary) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    socket.connect(echo).expect("loopback is there");
    socket.set_nonblocking(true).expect("sockets can be non-blocking");
    let wakeup = Arc::new(Wakeup::new().expect("there are descriptors"));
    let (called, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let callback = {
        let (wakeup, called, done) = (Arc::clone(&wakeup), Arc::clone(&called), Arc::clone(&done));
        thread::spawn(move || {
            // As our threads do, as far as that is allowed.
            let _ = process::run_in_real_time(5);
            let clock = MonotonicClock::with_epoch(0);
            let pacer = Pacer::new(clock, Duration::ZERO);
            let (start, block) = (
                clock.now(),
                Duration::from_nanos(1_000_000_000 * u64::from(BLOCK) / u64::from(SAMPLE_RATE)),
            );
            let mut due = start + block;
            while due.since(start) < lasting {
                pacer.sleep_until(due);
                called.store(due.as_nanos(), Ordering::Release);
                wakeup.set();
                due += block;
            }
            done.store(true, Ordering::Release);
            wakeup.set();
        })
    };
    let (packets, size) = (load.packets, load.packet);
    let network = thread::spawn(move || {
        let _ = process::run_in_real_time(4);
        pace::reduce_timer_slack();
        let now = || Time::from_nanos(trunkline_io::clock::raw_now());
        let (mut set, mut packet, mut last) = (PollSet::default(), vec![0; size], 0);
        let (mut sending, mut returning) = (Delays::default(), Delays::default());
        while !done.load(Ordering::Acquire) {
            let both = [(socket.as_fd(), Interest::Read), (wakeup.as_fd(), Interest::Read)];
            set.wait(both, Duration::from_secs(1)).expect("there is memory");
            wakeup.clear();
            let due = called.load(Ordering::Acquire);
            if due != last {
                last = due;
                let sent = now();
                packet[..8].copy_from_slice(&sent.as_nanos().to_be_bytes());
                for _ in 0..packets {
                    // A full socket loses it, as it would ours.
                    let _ = socket.send(&packet);
                }
                sending.record(now().since(Time::from_nanos(due)));
            }
            while let Ok(8..) = socket.recv(&mut packet) {
                let sent = packet.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
                returning.record(now().since(Time::from_nanos(sent)));
            }
        }
        (sending, returning)
    });
    callback.join().expect("it does not panic");
    let (mut sending, mut returning) = network.join().expect("it does not panic");
    (sending.summary().expect("packets were sent"), returning.summary().expect("packets came back"))
}

/// The process that packets are sent to.
struct FarEnd {
    process: Child,
    reflector: SocketAddr,
    echo: SocketAddr,
}

impl FarEnd {
    fn start() -> FarEnd {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut process = Command::new(program)
            .arg("--far-end")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let mut address = || lines.next().and_then(Result::ok).and_then(|line| line.parse().ok());
        let (echo, reflector) = (address(), address());
        let expected = "the far end says where it is";
        FarEnd { process, echo: echo.expect(expected), reflector: reflector.expect(expected) }
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        // It ends with its standard input too.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn far_end() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    println!("{}", socket.local_addr().expect("it is bound"));
    thread::spawn(move || {
        let _ = process::run_in_real_time(4);
        let mut packet = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            // Whoever has gone gets no answer.
            let _ = socket.send_to(&packet[..length], from);
        }
    });
    let stop = Arc::new(Stop::new().expect("there are descriptors"));
    let ending = Arc::clone(&stop);
    thread::spawn(move || {
        let _ = std::io::stdin().lines().next();
        ending.stop();
    });
    let address = SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), 0);
    let options = ServerOptions { address, ..ServerOptions::default() };
    program::reflect(options, &stop, &Silent, |address| println!("{address}"))
        .expect("loopback has free ports");
}
