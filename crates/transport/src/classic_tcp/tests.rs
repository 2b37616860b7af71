//! Two ends, a path with a delay, and a record of everything on it, at exact times.

mod acknowledgements;
mod connections;
mod repair;
mod windows;

use std::collections::BTreeMap;

use super::receiver::Text;
use super::wire::{ACK, FIN, PSH, RST, SYN};
use super::*;

const ENDS: [Address; 2] = [Address { host: 0, port: 40_001 }, Address { host: 1, port: 7_001 }];
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A segment on the path.
#[derive(Clone, Debug)]
struct Seen {
    at: Duration,
    from: usize,
    header: Header,
    length: usize,
}

/// Two ends, a path with a delay, and a record of everything that was on it.
struct Tap {
    ends: [TcpEndpoint; 2],
    now: Time,
    /// From when `Seen::at` counts.
    start: Time,
    latency: Duration,
    seen: Vec<Seen>,
    lose: Box<dyn FnMut(&Seen) -> bool>,
    /// Whether an end reads what arrives.
    reads: [bool; 2],
    received: [Vec<u8>; 2],
    events: [Vec<Event>; 2],
    flying: BTreeMap<(Time, usize), (usize, Vec<u8>)>,
    count: usize,
}

impl Tap {
    fn new(ends: [TcpEndpoint; 2], latency: Duration) -> Tap {
        let mut tap = Tap {
            ends,
            now: Time::ZERO,
            start: Time::ZERO,
            latency,
            seen: Vec::new(),
            lose: Box::new(|_| false),
            reads: [true; 2],
            received: Default::default(),
            events: Default::default(),
            flying: BTreeMap::new(),
            count: 0,
        };
        tap.drain(0);
        tap.drain(1);
        tap
    }

    /// Two ends with these options that have connected; what that took is forgotten.
    fn connected(config: &TcpConfig, latency: Duration) -> Tap {
        let mut tap = Tap::new(ends(config), latency);
        tap.run_for(latency * 4);
        assert_eq!(tap.events, [[Event::Connected], [Event::Connected]]);
        tap.restart();
        tap
    }

    /// Forgets what was seen.
    fn restart(&mut self) {
        self.seen.clear();
        self.events = Default::default();
        self.start = self.now;
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let timers = self.ends.each_ref().map(Endpoint::next_timeout);
            let Some(at) =
                [arrival, timers[0], timers[1]].into_iter().flatten().min().filter(|at| *at <= end)
            else {
                break;
            };
            self.now = at;
            if arrival == Some(at) {
                let Some((_, (to, packet))) = self.flying.pop_first() else { unreachable!("it is there") };
                self.ends[to].handle_packet(at, ENDS[1 - to], Ecn::NotCapable, &packet);
                self.drain(to);
            } else {
                let side = usize::from(timers[0] != Some(at));
                self.ends[side].handle_timeout(at);
                self.drain(side);
            }
        }
        self.now = end;
    }

    fn send(&mut self, side: usize, length: usize) -> Result<(), SendError> {
        let sent = self.ends[side].send(self.now, Message::new(&vec![7; length]));
        self.drain(side);
        sent
    }

    fn close(&mut self, side: usize, how: Close) {
        self.ends[side].close(self.now, how);
        self.drain(side);
    }

    /// Reads, whether or not the end does so by itself.
    fn read(&mut self, side: usize) -> usize {
        let before = self.received[side].len();
        while self.ends[side].receive(&mut self.received[side]).is_some() {
            self.transmit(side);
        }
        self.received[side].len() - before
    }

    fn drain(&mut self, side: usize) {
        self.transmit(side);
        if self.reads[side] {
            self.read(side);
        }
        while let Some(event) = self.ends[side].poll_event() {
            self.events[side].push(event);
        }
        assert!(self.ends[side].next_timeout().is_none_or(|next| next > self.now));
    }

    fn transmit(&mut self, side: usize) {
        let mut packet = Vec::new();
        while let Some(transmit) = self.ends[side].poll_transmit(self.now, &mut packet) {
            assert_eq!(transmit.size, Bytes(packet.len() as u64 + 20));
            let (header, data) = Header::verify(ENDS[side], transmit.to, &packet).expect("it is well-formed");
            let seen = Seen { at: self.now.since(self.start), from: side, header, length: data.len() };
            if !(self.lose)(&seen) {
                self.count += 1;
                self.flying.insert((self.now + self.latency, self.count), (1 - side, packet.clone()));
            }
            self.seen.push(seen);
        }
    }

    /// When one end sent data, and how much.
    fn data(&self, from: usize) -> Vec<(Duration, usize)> {
        self.seen
            .iter()
            .filter(|seen| seen.from == from && seen.length > 0)
            .map(|seen| (seen.at, seen.length))
            .collect()
    }

    /// When one end sent nothing but an acknowledgement.
    fn acknowledgements(&self, from: usize) -> Vec<Duration> {
        let of =
            self.seen.iter().filter(|seen| seen.from == from && seen.length == 0 && seen.header.flags == ACK);
        of.map(|seen| seen.at).collect()
    }

    fn count(&self, side: usize, name: &str) -> u64 {
        let mut value = None;
        self.ends[side].counters(&mut |counter, count| {
            if counter == name {
                value = Some(count);
            }
        });
        value.expect("there is such a counter")
    }
}

fn ends(config: &TcpConfig) -> [TcpEndpoint; 2] {
    [TcpEndpoint::connect(ENDS[0], ENDS[1], config, 1), TcpEndpoint::listen(ENDS[1], config, 2)]
        .map(Result::unwrap)
}

/// Segments of 1000 bytes, each acknowledged at once.
fn plain() -> TcpConfig {
    TcpConfig { mss: 1000, delayed_ack: Duration::ZERO, ..TcpConfig::default() }
}

/// Segments as on FDDI, acknowledgements that wait for 50 ms.
fn fddi() -> TcpConfig {
    TcpConfig { mss: 4312, delayed_ack: MS * 50, initial_window: 10, ..TcpConfig::default() }
}
