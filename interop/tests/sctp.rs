//! SCTP with usrsctp, both ways, within UDP (RFC 6951) over sockets of this machine.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trunkline_core::{Address, Ecn, Time};
use trunkline_interop::{Program, compile};
use trunkline_transport::sctp::{Reliability, SctpConfig, SctpEndpoint};
use trunkline_transport::{Close, CloseReason, Conversation as _, Endpoint as _, Event, Message, SendError};

const USRSCTP: &str = "the Debian package `libusrsctp-dev`";
/// As in `peers/sctp.c`; the hosts are of no account.
const CONNECTS: Address = Address { host: 0, port: 5001 };
const LISTENS: Address = Address { host: 1, port: 5002 };
const MESSAGES: u32 = 300;
/// A path that loses every so-manieth of our packets.
const LOSSY: u32 = 40;

/// Message `n`, as the peer makes it.
fn message(n: u32) -> Vec<u8> {
    let length = if n % 50 == 49 { 60_000 } else { 4 + n.wrapping_mul(7919) % 6000 };
    let byte = |at: u32| (n.wrapping_mul(31).wrapping_add(at.wrapping_mul(7))) as u8;
    n.to_be_bytes().into_iter().chain((4..length).map(byte)).collect()
}

/// The peer's program; `None`, with a word on it, where it cannot be made.
fn peer(folder: &Path) -> Option<PathBuf> {
    compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/sctp.c"), "usrsctp", USRSCTP, folder)
}

/// Our end: an endpoint, a socket and a clock.
struct End {
    endpoint: SctpEndpoint,
    socket: UdpSocket,
    began: Instant,
    /// Of the packets that it sends until it closes, every so-manieth is lost; 0 for none.
    lose_every: u32,
    sent: u32,
    received: VecDeque<Vec<u8>>,
    closed: Option<CloseReason>,
}

impl End {
    /// An end that talks with a UDP port of loopback.
    fn new(endpoint: SctpEndpoint, socket: UdpSocket, peer: u16, lose_every: u32) -> End {
        socket.connect(("127.0.0.1", peer)).expect("loopback has every port");
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("any timeout but zero is good");
        End {
            endpoint,
            socket,
            began: Instant::now(),
            lose_every,
            sent: 0,
            received: VecDeque::new(),
            closed: None,
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let now = self.now();
        let result = self.endpoint.send(now, Message::new(message));
        self.drain();
        result
    }

    fn close(&mut self) {
        // Nobody turns it when it has closed: its last word could not be repeated.
        self.lose_every = 0;
        let now = self.now();
        self.endpoint.close(now, Close::Graceful);
        self.drain();
    }

    /// Takes what comes within a millisecond.
    fn turn(&mut self, peer: Address) {
        let mut datagram = [0; 65_536];
        // An error tells of a packet that found nobody yet.
        if let Ok(length) = self.socket.recv(&mut datagram) {
            let now = self.now();
            self.endpoint.handle_packet(now, peer, Ecn::NotCapable, &datagram[..length]);
            self.drain();
        }
        let now = self.now();
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.drain();
    }

    fn drain(&mut self) {
        let mut buffer = Vec::new();
        loop {
            let now = self.now();
            while self.endpoint.poll_transmit(now, &mut buffer).is_some() {
                self.sent += 1;
                if !self.sent.is_multiple_of(self.lose_every) {
                    // As in `turn`.
                    let _ = self.socket.send(&buffer);
                }
            }
            buffer.clear();
            if self.endpoint.receive(&mut buffer).is_none() {
                break;
            }
            self.received.push_back(core::mem::take(&mut buffer));
        }
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
        }
    }
}

/// A socket, and a UDP port for the peer that was free a moment ago.
fn sockets() -> (UdpSocket, u16) {
    let bind = || UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let (ours, theirs) = (bind(), bind());
    let port = |socket: &UdpSocket| socket.local_addr().expect("it is bound").port();
    (ours, port(&theirs))
}

/// Connects to usrsctp, which sends back what it is sent; returns what came back, in its order.
fn usrsctp_echoes(config: &SctpConfig, lose_every: u32) -> Option<Vec<Vec<u8>>> {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let program = peer(folder.path())?;
    let (socket, port) = sockets();
    let ours = socket.local_addr().expect("it is bound").port().to_string();
    let mut program = Program::start(&program.to_string_lossy(), &["listen", &port.to_string(), &ours]);
    program.wait_until_it_says("ready");
    let endpoint =
        SctpEndpoint::connect(CONNECTS, LISTENS, config, 1).expect("the configuration is possible");
    let mut end = End::new(endpoint, socket, port, lose_every);
    let mut waiting: VecDeque<Vec<u8>> = (0..MESSAGES).map(message).collect();
    let is_reliable = config.reliability == Reliability::Full;
    let mut last = Instant::now();
    let mut heard = 0;
    while end.received.len() < MESSAGES as usize {
        end.turn(LISTENS);
        while let Some(next) = waiting.pop_front() {
            if end.send(&next).is_err() {
                waiting.push_front(next);
                break;
            }
        }
        if end.received.len() > heard {
            (heard, last) = (end.received.len(), Instant::now());
        }
        assert_eq!(end.closed, None, "after {heard} of {MESSAGES} messages");
        // What was given up does not come back.
        if !is_reliable && waiting.is_empty() && last.elapsed() > Duration::from_secs(2) {
            break;
        }
        assert!(last.elapsed() < PATIENCE, "{heard} of {MESSAGES} messages have come back");
    }
    end.close();
    while end.closed.is_none() {
        end.turn(LISTENS);
        assert!(last.elapsed() < PATIENCE, "it does not close");
    }
    assert_eq!(end.closed, Some(CloseReason::Local));
    program.wait_until_it_says(&format!("echoed {heard} messages"));
    program.wait_until_it_ends();
    Some(end.received.into())
}

/// Programs are slow on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets usrsctp connect to us, send messages, and check what we send back.
fn usrsctp_sends(config: &SctpConfig, order: &str, lose_every: u32) {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let Some(program) = peer(folder.path()) else { return };
    let (socket, port) = sockets();
    let ours = socket.local_addr().expect("it is bound").port().to_string();
    let endpoint = SctpEndpoint::listen(LISTENS, config, 2).expect("the configuration is possible");
    let mut end = End::new(endpoint, socket, port, lose_every);
    let arguments = ["connect", &port.to_string(), &ours, &MESSAGES.to_string(), order];
    let mut program = Program::start(&program.to_string_lossy(), &arguments);
    let began = Instant::now();
    while end.closed.is_none() {
        end.turn(CONNECTS);
        while let Some(next) = end.received.pop_front() {
            if end.send(&next).is_err() {
                end.received.push_front(next);
                break;
            }
        }
        assert!(began.elapsed() < PATIENCE, "it has neither come nor gone");
    }
    assert_eq!(end.closed, Some(CloseReason::Peer));
    program.wait_until_it_says(&format!("all {MESSAGES} messages have come back"));
    program.wait_until_it_ends();
}

fn all() -> Vec<Vec<u8>> {
    (0..MESSAGES).map(message).collect()
}

#[test]
fn usrsctp_echoes_what_we_send_in_order() {
    for lose_every in [0, LOSSY] {
        let Some(received) = usrsctp_echoes(&SctpConfig::default(), lose_every) else { return };
        assert!(received == all(), "{} of {MESSAGES} messages, or others", received.len());
    }
}

#[test]
fn usrsctp_echoes_what_we_send_in_any_order_and_on_many_streams() {
    // More streams than it accepts.
    for config in [
        SctpConfig { ordered: false, ..SctpConfig::default() },
        SctpConfig { streams: 10, ..SctpConfig::default() },
    ] {
        let Some(mut received) = usrsctp_echoes(&config, LOSSY) else { return };
        received.sort();
        assert!(received == all(), "{} of {MESSAGES} messages, or others", received.len());
    }
}

#[test]
fn usrsctp_passes_over_what_we_give_up() {
    let reliability = Reliability::Retransmissions(0);
    let Some(received) = usrsctp_echoes(&SctpConfig { reliability, ..SctpConfig::default() }, LOSSY) else {
        return;
    };
    assert!(received.is_sorted() && received.iter().all(|echo| all().contains(echo)));
    let count = received.len();
    assert!((200..MESSAGES as usize).contains(&count), "{count} of {MESSAGES} messages have come back");
}

#[test]
fn usrsctp_hears_its_messages_from_us_in_order() {
    for lose_every in [0, LOSSY] {
        usrsctp_sends(&SctpConfig::default(), "ordered", lose_every);
    }
}

#[test]
fn usrsctp_hears_its_messages_from_us_in_any_order() {
    let config = SctpConfig { ordered: false, streams: 3, ..SctpConfig::default() };
    usrsctp_sends(&config, "unordered", LOSSY);
}
