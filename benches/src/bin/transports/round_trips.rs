//! Round trips over UDP sockets of loopback, both sides polling.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anstream::println;
use trunkline_benches::{Spread, experiment};
use trunkline_core::{Address, Duration, Ecn, Seed};
use trunkline_flows::{FlowSpec, Made};
use trunkline_io::MonotonicClock;
use trunkline_transport::{Conversation as _, Endpoint, Event, Message, drain};

/// Bytes of a message: a block of audio of Schiavoni & Queiroz (2013, section 4).
const MESSAGE: usize = 940;

/// Between two round trips.
const PAUSE: Duration = Duration::from_micros(50);

/// What is measured, as an experiment file names it, and how many times as long as bare UDP it may take.
const TRANSPORTS: [(&str, &str, Option<f64>); 8] = [
    ("dccp", "{ kind = \"dccp\", encapsulation = \"udp\" }", Some(2.0)),
    ("xtp", "{ kind = \"xtp\", encapsulation = \"udp\", every = 8 }", Some(2.0)),
    // Two more packets in a round trip.
    ("xtp, every 1", "{ kind = \"xtp\", encapsulation = \"udp\", every = 1 }", None),
    ("sctp", "{ kind = \"sctp\", encapsulation = \"udp\" }", Some(2.0)),
    ("quic datagrams", "{ kind = \"quic\", mode = \"datagrams\" }", Some(4.0)),
    ("quic streams", "{ kind = \"quic\", mode = \"streams\" }", Some(4.0)),
    ("rtp", "\"rtp\"", None),
    ("urp", "{ kind = \"urp\", block = \"1024 B\" }", None),
];

/// Median round trips of each transport, and as multiples of bare UDP's, over rounds in which each has its turn.
pub(crate) fn measure(rounds: usize, count: usize, only: &str, threads: usize) {
    let transports: Vec<_> = TRANSPORTS.iter().filter(|(name, ..)| name.contains(only)).collect();
    let mut bare = Vec::new();
    let mut ours = vec![Vec::new(); transports.len()];
    for round in 0..rounds {
        bare.push(median(Trip::bare().measure(count, threads)));
        for ((_, transport, _), ours) in transports.iter().zip(&mut ours) {
            ours.push(median(Trip::over(transport, round as u32).measure(count, threads)));
        }
    }
    let how =
        if threads == 1 { "both ends polled in turn by one thread" } else { "each end polled by its thread" };
    println!(
        "Round trip of {MESSAGE} bytes in us, {how}; median (smallest to largest) of {rounds} rounds' medians"
    );
    println!("  {:14} {:.2}", "bare UDP", Spread::of(&bare));
    for ((name, _, goal), ours) in transports.iter().zip(&ours) {
        let goal = goal.map_or(String::new(), |goal| format!("   goal: at most {goal:.0}"));
        println!("  {name:14} {:.2}   x {:.2}{goal}", Spread::of(ours), Spread::of_ratios(ours, &bare));
    }
    println!();
}

fn median(mut nanos: Vec<u64>) -> f64 {
    nanos.sort_unstable();
    nanos[nanos.len() / 2] as f64 / 1e3
}

/// One end: a socket that is connected to the other's, and what makes messages of its packets.
struct End {
    socket: UdpSocket,
    engine: Option<Engine>,
    datagram: Vec<u8>,
    message: Vec<u8>,
}

struct Engine {
    endpoint: Box<dyn Endpoint + Send>,
    peer: Address,
    clock: MonotonicClock,
    packet: Vec<u8>,
    connected: bool,
}

/// Both ends.
struct Trip {
    near: End,
    far: End,
}

impl Trip {
    fn bare() -> Trip {
        let [near, far] = sockets();
        Trip { near: End::new(near, None), far: End::new(far, None) }
    }

    fn over(transport: &str, round: u32) -> Trip {
        let text = format!(
            "name = \"trip\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\n\
             between = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\n[flow.audio]\nfrom = \"a\"\nto = \"b\"\n\
             transport = {transport}\nsource = {{ kind = \"voice\", samples = 80 }}\n"
        );
        let spec = FlowSpec::of(&experiment(&text).points.first().scenario, 0);
        let pair = spec
            .over_sockets([IpAddr::V4(Ipv4Addr::LOCALHOST); 2])
            .and_then(|spec| spec.pair(0, Seed::new(7, round)))
            .unwrap_or_else(|error| panic!("{transport}: {error}"));
        let clock = MonotonicClock::starting_now();
        let addresses = [pair.near.address, pair.far.address];
        let engine = |made: Made, peer| Engine {
            endpoint: made.endpoint,
            peer,
            clock,
            packet: Vec::new(),
            connected: false,
        };
        let [near, far] = sockets();
        let mut trip = Trip {
            near: End::new(near, Some(engine(pair.near, addresses[1]))),
            far: End::new(far, Some(engine(pair.far, addresses[0]))),
        };
        while [&mut trip.near, &mut trip.far].into_iter().any(|end| !end.is_ready()) {
            trip.near.poll();
            trip.far.poll();
        }
        trip
    }

    /// How long each round trip took, from handing the message over to having the answer. Between two of them is time for
    /// what the ends have to tell each other beside, as there is between blocks of audio.
    fn measure(mut self, count: usize, threads: usize) -> Vec<u64> {
        let warm_up = count / 10;
        let message = [0x5a; MESSAGE];
        let clock = MonotonicClock::starting_now();
        let mut took = Vec::with_capacity(count);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut far = self.far;
            let mut answer = move || {
                if far.poll() {
                    let message = core::mem::take(&mut far.message);
                    far.send(&message);
                    far.message = message;
                    far.message.clear();
                }
            };
            let mut in_turn: Option<Box<dyn FnMut()>> = None;
            if threads == 1 {
                in_turn = Some(Box::new(answer));
            } else {
                let over = &over;
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        answer();
                    }
                });
            }
            let mut turn = |near: &mut End| {
                if let Some(answer) = &mut in_turn {
                    answer();
                }
                near.poll()
            };
            for number in 0..warm_up + count {
                let began = clock.now();
                self.near.send(&message);
                while !turn(&mut self.near) {}
                let answered = clock.now();
                assert!(self.near.message == message, "another message came back");
                self.near.message.clear();
                if number >= warm_up {
                    took.push(answered.since(began).as_nanos());
                }
                while clock.now().since(answered) < PAUSE {
                    turn(&mut self.near);
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        took
    }
}

impl End {
    fn new(socket: UdpSocket, engine: Option<Engine>) -> End {
        End { socket, engine, datagram: vec![0; 65_536], message: Vec::new() }
    }

    /// Sends a message.
    fn send(&mut self, message: &[u8]) {
        match &mut self.engine {
            None => write(&self.socket, message),
            Some(engine) => {
                let now = engine.clock.now();
                engine.endpoint.send(now, Message::new(message)).expect("one message at a time is taken");
                engine.drain(&self.socket);
            }
        }
    }

    /// Takes a packet if one is there, and does what is due. True if that completed a message, which it appends.
    fn poll(&mut self) -> bool {
        let length = match self.socket.recv(&mut self.datagram) {
            Ok(length) => Some(length),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("a socket of loopback failed: {error}"),
        };
        let packet = length.map(|length| &self.datagram[..length]);
        match (&mut self.engine, packet) {
            (None, packet) => {
                self.message.extend_from_slice(packet.unwrap_or_default());
                packet.is_some()
            }
            (Some(engine), packet) => {
                engine.take(packet, &self.socket);
                if packet.is_some() {
                    while engine.endpoint.receive(&mut self.message).is_some() {
                        engine.drain(&self.socket);
                    }
                }
                self.message.len() >= MESSAGE
            }
        }
    }

    fn is_ready(&mut self) -> bool {
        let Some(engine) = &mut self.engine else { return true };
        engine.connected || !engine.endpoint.features().connection_oriented
    }
}

impl Engine {
    fn take(&mut self, packet: Option<&[u8]>, socket: &UdpSocket) {
        let now = self.clock.now();
        if let Some(packet) = packet {
            self.endpoint.handle_packet(now, self.peer, Ecn::NotCapable, packet);
        } else if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        } else if self.connected {
            return;
        }
        self.drain(socket);
    }

    fn drain(&mut self, socket: &UdpSocket) {
        let now = self.clock.now();
        drain(&mut self.endpoint, now, &mut self.packet, |_, packet| write(socket, packet));
        while let Some(event) = self.endpoint.poll_event() {
            self.connected |= event == Event::Connected;
        }
    }
}

fn write(socket: &UdpSocket, packet: &[u8]) {
    // One message at a time fits into any socket's buffer.
    let sent = socket.send(packet).expect("loopback takes it");
    assert_eq!(sent, packet.len());
}

/// Two sockets of loopback that are connected with each other and do not block.
fn sockets() -> [UdpSocket; 2] {
    let sockets =
        [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports"));
    let addresses = [&sockets[1], &sockets[0]].map(|socket| socket.local_addr().expect("it is bound"));
    for (socket, peer) in sockets.iter().zip(addresses) {
        socket.connect(peer).expect("loopback is there");
        socket.set_nonblocking(true).expect("sockets can be told not to block");
    }
    sockets
}
