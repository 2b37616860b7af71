//! The first process of a kernel in virtual time: makes the path of a cell, sends over it and measures.
//!
//! Four hosts in a row, each a network namespace: the transfers and the call go from `home` over `a` and `b` to `server`.
//! The line is the device from `a` to `b`, a token bucket with the cell's queue below it, and the same on the way back. What
//! follows it delays by half the round trip, in each direction, and loses.

use std::error::Error;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anstream::println;
use nix::sched::{CloneFlags, setns};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::socket::{setsockopt, sockopt};

use crate::cell::{Cell, INTERVAL, Measured, OVERHEAD, Queue, SECONDS, VOICE};
use crate::kernel::ANSWER;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 2);
const BULK: u16 = 5001;
const CALL: u16 = 5002;
const LENGTH: Duration = Duration::from_secs(SECONDS as u64);
/// From the start of the program to that of the cell: all listen by then.
const PREPARATION: Duration = Duration::from_secs(1);

/// Measures a cell, prints the answer, and switches the machine off.
pub(crate) fn run(cell: &Cell) -> Result<(), Box<dyn Error>> {
    let measured = path(cell).and_then(|()| measure(cell));
    match measured {
        Ok(measured) => println!("{ANSWER}{}", serde_json::to_string(&measured)?),
        Err(error) => println!("{error}"),
    }
    reboot(RebootMode::RB_POWER_OFF)?;
    Ok(())
}

/// Makes the hosts and what connects them.
fn path(cell: &Cell) -> Result<(), Box<dyn Error>> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")] {
        command("mount", &format!("-t {kind} {kind} {place}"))?;
    }
    for host in ["home", "a", "b", "server"] {
        ip(&format!("netns add {host}"))?;
        ip(&format!("-n {host} link set lo up"))?;
    }
    for (number, (left, right)) in [("home", "a"), ("a", "b"), ("b", "server")].iter().enumerate() {
        let number = number + 1;
        ip(&format!("link add to-{right} netns {left} type veth peer name to-{left} netns {right}"))?;
        for (host, device, place) in [(left, right, 1), (right, left, 2)] {
            ip(&format!("-n {host} address add 10.0.{number}.{place}/24 dev to-{device}"))?;
            ip(&format!("-n {host} link set to-{device} up"))?;
        }
    }
    for (host, by) in [("home", "10.0.1.2"), ("a", "10.0.2.2"), ("b", "10.0.2.1"), ("server", "10.0.3.1")] {
        ip(&format!("-n {host} route add default via {by}"))?;
    }
    for host in ["a", "b"] {
        ip(&format!("netns exec {host} sysctl -q -w net.ipv4.ip_forward=1"))?;
    }
    if cell.negotiates_ecn() {
        ip("netns exec home sysctl -q -w net.ipv4.tcp_ecn=1")?;
    }
    line(cell, "a", "b")?;
    line(cell, "b", "a")?;
    let delay = cell.round_trip * 1000 / 2;
    tc("b", &format!("dev to-server root netem limit 1000000 delay {delay}us loss {}%", cell.loss))?;
    tc("a", &format!("dev to-home root netem limit 1000000 delay {delay}us"))
}

/// The cell's line from a host to the next.
fn line(cell: &Cell, from: &str, to: &str) -> Result<(), Box<dyn Error>> {
    let packet = 1500 + OVERHEAD;
    let rate = cell.rate;
    tc(from, &format!("dev to-{to} root handle 1: tbf rate {rate}mbit burst {packet} limit 100000000"))?;
    let queue = match cell.queue {
        // The packet that the token bucket lets wait stays in the FIFO; that which a line transmits does not.
        Queue::Fifo(products) => format!("bfifo limit {:.0}", products * cell.product() + packet as f64),
        Queue::Codel => "codel".to_owned(),
        Queue::CodelEcn => "codel ecn".to_owned(),
        Queue::FqCodel | Queue::FqCodelEcn => "fq_codel".to_owned(),
        Queue::Marking(milliseconds) => format!("fq_codel ce_threshold {milliseconds}ms"),
        Queue::Pie => "pie".to_owned(),
    };
    tc(from, &format!("dev to-{to} parent 1:1 {queue}"))
}

fn tc(host: &str, queue: &str) -> Result<(), Box<dyn Error>> {
    command("tc", &format!("-n {host} qdisc add {queue}"))
}

fn ip(arguments: &str) -> Result<(), Box<dyn Error>> {
    command("ip", arguments)
}

fn command(program: &str, arguments: &str) -> Result<(), Box<dyn Error>> {
    // A kernel gives its first process no search path that has the programs of the administrator.
    let path = "/usr/sbin:/usr/bin:/sbin:/bin";
    let output = Command::new(program).args(arguments.split_whitespace()).env("PATH", path).output();
    let output = output.map_err(|e| format!("{program} {arguments}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Sends and receives, in virtual time.
fn measure(cell: &Cell) -> Result<Measured, Box<dyn Error>> {
    let start = Instant::now() + PREPARATION;
    let call = on("server", move || receive_call(start));
    let sinks = on("server", {
        let cell = cell.clone();
        move || sinks(&cell, start)
    })
    .join()
    .map_err(|_| "the server does not start")??;
    on("home", move || send_call(start));
    let sources: Vec<JoinHandle<std::io::Result<u64>>> = (0..cell.flows)
        .map(|_| {
            let cell = cell.clone();
            on("home", move || send(&cell, start))
        })
        .collect();
    // Nothing may wait for a transfer that has no end.
    thread::sleep((start + LENGTH).saturating_duration_since(Instant::now()));
    let delivered: Vec<u64> = sinks.iter().map(|sink| sink.bytes.load(Relaxed)).collect();
    let last = sinks.iter().map(|sink| sink.last.load(Relaxed)).max().unwrap_or_default();
    let last = last as f64 / 1e9;
    let delays = call.join().map_err(|_| "the call's sink ended early")??;
    let mut retransmitted = 0;
    for source in sources {
        retransmitted += source.join().map_err(|_| "a transfer ended early")??;
    }
    let is_endless = cell.volume == 0;
    let sent = (LENGTH.as_nanos() as u64 / INTERVAL) as usize;
    let measured = Measured::of_call(delays, sent)
        .with_transfers(&delivered, if is_endless { LENGTH.as_secs_f64() } else { last });
    Ok(Measured { completion: if is_endless { 0.0 } else { last * 1000.0 }, retransmitted, ..measured })
}

/// Starts a thread on a host.
fn on<T: Send + 'static>(host: &str, job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let namespace =
        File::open(format!("/run/netns/{host}")).unwrap_or_else(|error| panic!("{host}: {error}"));
    thread::spawn(move || {
        setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap_or_else(|error| panic!("setns: {error}"));
        job()
    })
}

/// The delivered part of a transfer.
#[derive(Default)]
struct Sink {
    bytes: AtomicU64,
    /// When the last byte came, in nanoseconds from the start of the cell.
    last: AtomicU64,
}

/// Accepts every transfer.
fn sinks(cell: &Cell, start: Instant) -> std::io::Result<Arc<Vec<Sink>>> {
    let sinks: Arc<Vec<Sink>> = Arc::new((0..cell.flows).map(|_| Sink::default()).collect());
    let listener = TcpListener::bind(SocketAddrV4::new(SERVER, BULK))?;
    // DCTCP's receiver echoes each mark, that of others echoes until the sender has reduced its window.
    setsockopt(&listener, sockopt::TcpCongestion, &cell.control.clone().into())?;
    let all = Arc::clone(&sinks);
    thread::spawn(move || {
        for (number, connection) in listener.incoming().take(all.len()).enumerate() {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                let Ok(mut connection) = connection else { return };
                let mut buffer = vec![0; 1 << 17];
                while let Ok(read @ 1..) = connection.read(&mut buffer) {
                    all[number].bytes.fetch_add(read as u64, Relaxed);
                    all[number].last.store(start.elapsed().as_nanos() as u64, Relaxed);
                }
            });
        }
    });
    Ok(sinks)
}

/// One transfer. Returns the segments that were sent again.
fn send(cell: &Cell, start: Instant) -> std::io::Result<u64> {
    // The kernel's routes are there, and the server listens.
    thread::sleep(start.saturating_duration_since(Instant::now()));
    let mut connection = {
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Inet,
            nix::sys::socket::SockType::Stream,
            nix::sys::socket::SockFlag::empty(),
            None,
        )?;
        setsockopt(&socket, sockopt::TcpCongestion, &cell.control.clone().into())?;
        let server = nix::sys::socket::SockaddrIn::from(SocketAddrV4::new(SERVER, BULK));
        nix::sys::socket::connect(std::os::fd::AsRawFd::as_raw_fd(&socket), &server)?;
        TcpStream::from(socket)
    };
    let ends = start + LENGTH;
    let block = vec![0; 1 << 15];
    let mut left = if cell.volume == 0 { u64::MAX } else { cell.volume };
    // The last writes of a transfer without an end wait for room until others end it.
    connection.set_write_timeout(Some(Duration::from_secs(1)))?;
    while left > 0 && Instant::now() < ends {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        match connection.write(&block[..most]) {
            Ok(written) => left -= written as u64,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    thread::sleep(ends.saturating_duration_since(Instant::now()));
    Ok(trunkline_io::tcp::state(&connection).map_or(0, |state| state.retransmissions))
}

fn send_call(start: Instant) -> std::io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((SERVER, CALL))?;
    let mut packet = [0; VOICE];
    // The hosts learn each other's addresses before the cell starts.
    socket.send(&[0])?;
    for number in 0..LENGTH.as_nanos() as u64 / INTERVAL {
        let due = start + Duration::from_nanos(number * INTERVAL);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        packet[..8].copy_from_slice(&number.to_be_bytes());
        socket.send(&packet)?;
    }
    Ok(())
}

/// The delays of the packets that arrive, in milliseconds.
fn receive_call(start: Instant) -> std::io::Result<Vec<f64>> {
    let socket = UdpSocket::bind((SERVER, CALL))?;
    let ends = start + LENGTH + Duration::from_secs(1);
    let mut delays = Vec::new();
    let mut packet = [0; VOICE];
    loop {
        let left = ends.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(delays);
        }
        socket.set_read_timeout(Some(left))?;
        if let Ok(VOICE) = socket.recv(&mut packet) {
            let number = u64::from_be_bytes(std::array::from_fn(|index| packet[index]));
            let due = start + Duration::from_nanos(number * INTERVAL);
            delays.push(Instant::now().saturating_duration_since(due).as_secs_f64() * 1000.0);
        }
    }
}
