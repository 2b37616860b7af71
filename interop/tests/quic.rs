//! QUIC to and from aioquic, over sockets of this machine.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use trunkline_adapters::quic::{Encapsulation, Fingerprint, Identity, Mode, QuicConfig, QuicEndpoint};
use trunkline_core::{Address, Ecn, Time};
use trunkline_interop::{Program, skip};
use trunkline_transport::{
    Close, CloseReason, Conversation as _, Endpoint as _, Event, Message, SendError, drain,
};

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/quic.py");

/// The Python that has aioquic: `$PYTHON`, or the one on the path. If neither has, says how to get it.
fn python() -> Option<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import aioquic"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skip(&format!(
        "`{python}` has no aioquic; install the Debian package `python3-aioquic`, or \
         `interop/peers/quic-requirements.txt` in a virtual environment whose Python `$PYTHON` names"
    ));
    None
}

/// Our end: an endpoint, a socket and a clock.
struct End {
    endpoint: QuicEndpoint,
    socket: UdpSocket,
    began: Instant,
    packet: Vec<u8>,
    received: Vec<Vec<u8>>,
    events: Vec<Event>,
}

impl End {
    fn new(make: impl FnOnce(Address) -> QuicEndpoint) -> End {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("any timeout but zero is good");
        let local = address(socket.local_addr().expect("it is bound").port());
        End {
            endpoint: make(local),
            socket,
            began: Instant::now(),
            packet: Vec::new(),
            received: Vec::new(),
            events: Vec::new(),
        }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().expect("it is bound").port()
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Sends what there is to send, takes what comes within a millisecond, and does what is due.
    fn turn(&mut self) {
        let mut datagram = [0; 2048];
        while let Ok((length, from)) = self.socket.recv_from(&mut datagram) {
            let now = self.now();
            self.endpoint.handle_packet(now, address(from.port()), Ecn::NotCapable, &datagram[..length]);
            self.drain();
        }
        if self.endpoint.next_timeout().is_some_and(|at| at <= self.now()) {
            let now = self.now();
            self.endpoint.handle_timeout(now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        loop {
            let now = self.now();
            drain(&mut self.endpoint, now, &mut self.packet, |transmit, packet| {
                let to = SocketAddr::from(([127, 0, 0, 1], transmit.to.port));
                self.socket.send_to(packet, to).expect("loopback takes it");
            });
            self.events.extend(std::iter::from_fn(|| self.endpoint.poll_event()));
            let mut message = Vec::new();
            if self.endpoint.receive(&mut message).is_none() {
                return;
            }
            self.received.push(message);
        }
    }

    /// Goes on until `over` says so.
    fn turn_until(&mut self, mut over: impl FnMut(&mut End) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        self.drain();
        while !over(self) {
            assert!(
                Instant::now() < deadline,
                "{} messages came, and {:?}",
                self.received.len(),
                self.events
            );
            self.turn();
        }
    }

    /// Sends as many of the messages as there is room for, and forgets them.
    fn send(&mut self, messages: &mut Vec<Vec<u8>>) {
        let mut taken = 0;
        for message in &*messages {
            let now = self.now();
            match self.endpoint.send(now, Message::new(message)) {
                Ok(()) => taken += 1,
                Err(SendError::Full) => break,
                Err(other) => panic!("a message was refused: {other}"),
            }
        }
        messages.drain(..taken);
        self.drain();
    }

    fn close(&mut self) {
        let now = self.now();
        self.endpoint.close(now, Close::Graceful);
        self.drain();
    }

    fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|event| match event {
            Event::Closed(reason) => Some(*reason),
            _ => None,
        })
    }
}

/// Both ends are this machine.
fn address(port: u16) -> Address {
    Address { host: 0, port }
}

fn config(mode: Mode) -> QuicConfig {
    QuicConfig { mode, encapsulation: Encapsulation::UdpPayload, ..QuicConfig::default() }
}

fn bytes_in(messages: &[Vec<u8>]) -> usize {
    messages.iter().map(Vec::len).sum()
}

/// No two alike; datagrams fit into aioquic's packets, and are few enough for a socket's buffer.
fn messages(mode: Mode) -> Vec<Vec<u8>> {
    let (count, most) = if mode == Mode::Datagrams { (40, 1000) } else { (300, 4000) };
    let message = |n: u32| [&n.to_be_bytes()[..], &vec![n as u8; (n * n % most) as usize]].concat();
    (0..count).map(message).collect()
}

/// Starts aioquic's listening end; it, its port and the fingerprint of its certificate.
fn listening(python: &str, mode: Mode) -> (Program, u16, Fingerprint) {
    let mut peer = Program::start(python, &[PEER, "listen", mode.name()]);
    let line = peer.wait_until_it_says("listening");
    let [_, port, fingerprint] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(fingerprint.as_bytes().chunks(2)) {
        let digits = str::from_utf8(digits).expect("its lines are text");
        *byte = u8::from_str_radix(digits, 16).expect("a fingerprint is hexadecimal");
    }
    (peer, port.parse().expect("it says its port"), Fingerprint(bytes))
}

fn connecting(mode: Mode, port: u16, fingerprint: Fingerprint) -> End {
    End::new(|local| {
        let end = QuicEndpoint::connect(local, address(port), &config(mode), fingerprint, 1);
        end.expect("the configuration is possible")
    })
}

/// We connect to aioquic, which sends everything back.
fn aioquic_listens(mode: Mode) {
    let Some(python) = python() else { return };
    let (mut peer, port, fingerprint) = listening(&python, mode);
    let mut end = connecting(mode, port, fingerprint);
    end.turn_until(|end| end.events.contains(&Event::Connected));
    let sent = messages(mode);
    let mut waiting = sent.clone();
    end.turn_until(|end| {
        end.send(&mut waiting);
        bytes_in(&end.received) >= bytes_in(&sent)
    });
    let mut received = core::mem::take(&mut end.received);
    if mode == Mode::Stream {
        assert!(received.concat() == sent.concat(), "the bytes are others");
    } else {
        received.sort();
        assert!(received == sent, "the messages are others");
    }
    end.close();
    end.turn_until(|end| end.closed().is_some());
    assert_eq!(end.closed(), Some(CloseReason::Local));
    // Until the connection itself is closed, and without an error.
    end.turn_until(|end| end.endpoint.next_timeout().is_none());
    peer.wait_until_it_says("terminated 0x0");
    peer.wait_until_it_ends();
}

/// aioquic connects to us, and we send everything back.
fn aioquic_connects(mode: Mode) {
    let Some(python) = python() else { return };
    let identity = Identity::new([7; 32]).expect("any seed makes a certificate");
    let mut end = End::new(|local| {
        let end = QuicEndpoint::listen(local, &config(mode), &identity, 1);
        end.expect("the configuration is possible")
    });
    let (port, fingerprint) = (end.port().to_string(), identity.fingerprint().to_string());
    let mut peer = Program::start(&python, &[PEER, "connect", mode.name(), &port, &fingerprint]);
    let mut waiting = Vec::new();
    end.turn_until(|end| {
        waiting.append(&mut end.received);
        end.send(&mut waiting);
        end.closed().is_some()
    });
    assert_eq!(end.closed(), Some(CloseReason::Peer));
    end.close();
    end.turn_until(|end| end.endpoint.next_timeout().is_none());
    peer.wait_until_it_says("all came back");
    peer.wait_until_it_ends();
}

#[test]
fn aioquic_sends_our_datagrams_back() {
    aioquic_listens(Mode::Datagrams);
}

#[test]
fn aioquic_sends_our_stream_back() {
    aioquic_listens(Mode::Stream);
}

#[test]
fn aioquic_sends_our_streams_back() {
    aioquic_listens(Mode::Streams);
}

#[test]
fn we_send_aioquics_datagrams_back() {
    aioquic_connects(Mode::Datagrams);
}

#[test]
fn we_send_aioquics_stream_back() {
    aioquic_connects(Mode::Stream);
}

#[test]
fn we_send_aioquics_streams_back() {
    aioquic_connects(Mode::Streams);
}

#[test]
fn a_certificate_that_is_not_the_pinned_one_is_refused() {
    let Some(python) = python() else { return };
    let (mut peer, port, Fingerprint(mut bytes)) = listening(&python, Mode::Datagrams);
    bytes[31] ^= 1;
    let mut end = connecting(Mode::Datagrams, port, Fingerprint(bytes));
    end.turn_until(|end| end.closed().is_some());
    assert_eq!(end.closed(), Some(CloseReason::Untrusted));
    assert!(!end.events.contains(&Event::Connected));
    // TLS's alert `access_denied`, as an error of QUIC (RFC 9001 section 4.8).
    peer.wait_until_it_says("terminated 0x1");
    peer.wait_until_it_ends();
}
