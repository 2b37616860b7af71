//! Two ends, a path with a delay, and a record of everything that was on it.

use std::collections::BTreeMap;

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::xtp::wire::{Body, Format, Options, Packet, Span};
use trunkline_transport::xtp::{XtpConfig, XtpEndpoint};
use trunkline_transport::{Close, Endpoint, Event, Message, SendError};

/// A packet on the path.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Time,
    pub(crate) from: Address,
    pub(crate) bytes: Vec<u8>,
    pub(crate) lost: bool,
}

impl Seen {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet::parse(&self.bytes).expect("only whole packets are sent")
    }

    pub(crate) fn format(&self) -> Format {
        self.packet().body.format()
    }

    pub(crate) fn has(&self, options: Options) -> bool {
        self.packet().header.options.has(options)
    }

    /// Where its data begin and end.
    pub(crate) fn data(&self) -> Option<(u64, u64)> {
        let packet = self.packet();
        match packet.body {
            Body::Data { data, .. } | Body::First { data, .. } if !data.is_empty() => {
                Some((packet.header.seq, packet.header.seq + data.len() as u64))
            }
            _ => None,
        }
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        match self.packet().body {
            Body::ErrorControl { spans, .. } => spans.iter().collect(),
            _ => Vec::new(),
        }
    }
}

type Lose = Box<dyn FnMut(&Packet<'_>, Address) -> bool>;

/// The two ends and the path.
pub(crate) struct Wiretap<E> {
    pub(crate) ends: [E; 2],
    pub(crate) now: Time,
    pub(crate) seen: Vec<Seen>,
    pub(crate) latency: Duration,
    lose: Lose,
    flying: BTreeMap<(Time, usize), (usize, Vec<u8>)>,
    events: [Vec<Event>; 2],
    count: usize,
}

pub(crate) const ADDRESSES: [Address; 2] = [NEAR, FAR];

/// Two ends of a stream with these options, 10 ms apart, connected; what that took is forgotten.
pub(crate) fn streams(near: &XtpConfig, far: &XtpConfig) -> Wiretap<XtpEndpoint> {
    let near = XtpEndpoint::connect(NEAR, FAR, near, 1).unwrap();
    let far = XtpEndpoint::listen(FAR, far, 2).unwrap();
    let mut tap = Wiretap::new(near, far);
    tap.run_for(Duration::from_millis(50));
    tap.seen.clear();
    tap.events = Default::default();
    tap
}

impl<E: Endpoint> Wiretap<E> {
    pub(crate) fn new(near: E, far: E) -> Wiretap<E> {
        let mut tap = Wiretap {
            ends: [near, far],
            now: Time::ZERO,
            seen: Vec::new(),
            latency: Duration::from_millis(10),
            lose: Box::new(|_, _| false),
            flying: BTreeMap::new(),
            events: Default::default(),
            count: 0,
        };
        tap.drain(0);
        tap.drain(1);
        tap
    }

    /// From now on, loses the packets of which this is true.
    pub(crate) fn lose(&mut self, lose: impl FnMut(&Packet<'_>, Address) -> bool + 'static) {
        self.lose = Box::new(lose);
    }

    pub(crate) fn send(&mut self, end: usize, message: &[u8]) -> Result<(), SendError> {
        let result = self.ends[end].send(self.now, Message::new(message));
        self.drain(end);
        result
    }

    /// Hands over messages before anybody looks what there is to be sent.
    pub(crate) fn send_together(&mut self, end: usize, messages: &[&[u8]]) {
        for message in messages {
            self.ends[end].send(self.now, Message::new(message)).unwrap();
        }
        self.drain(end);
    }

    pub(crate) fn read(&mut self, end: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.ends[end].receive(&mut bytes).is_some() {
            self.drain(end);
        }
        bytes
    }

    pub(crate) fn close(&mut self, end: usize, how: Close) {
        self.ends[end].close(self.now, how);
        self.drain(end);
    }

    pub(crate) fn events(&mut self, end: usize) -> Vec<Event> {
        core::mem::take(&mut self.events[end])
    }

    pub(crate) fn counter(&self, end: usize, name: &str) -> u64 {
        let mut value = None;
        self.ends[end].counters(&mut |counter, count| {
            if counter == name {
                value = Some(count);
            }
        });
        value.unwrap_or_else(|| panic!("no counter `{name}`"))
    }

    /// Does what is due next, if that is not after `until`.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
        let timers = [0, 1].map(|end: usize| self.ends[end].next_timeout());
        let Some(at) = [arrival, timers[0], timers[1]].into_iter().flatten().min().filter(|&at| at <= until)
        else {
            return false;
        };
        assert!(at >= self.now && self.count < 100_000, "never comes to rest");
        self.now = at;
        if arrival == Some(at) {
            let (_, (to, bytes)) = self.flying.pop_first().unwrap();
            self.ends[to].handle_packet(at, ADDRESSES[1 - to], Ecn::NotCapable, &bytes);
            self.drain(to);
        } else {
            let end = usize::from(timers[0] != Some(at));
            self.ends[end].handle_timeout(at);
            self.drain(end);
        }
        true
    }

    pub(crate) fn run(&mut self) {
        while self.step(Time::MAX) {}
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// What one end has sent so far.
    pub(crate) fn from(&self, end: usize) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |seen| seen.from == ADDRESSES[end])
    }

    pub(crate) fn formats(&self, end: usize) -> Vec<Format> {
        self.from(end).map(Seen::format).collect()
    }

    pub(crate) fn drain(&mut self, end: usize) {
        let mut bytes = Vec::new();
        while self.ends[end].poll_transmit(self.now, &mut bytes).is_some() {
            let packet = Packet::parse(&bytes).expect("only whole packets are sent");
            let lost = (self.lose)(&packet, ADDRESSES[end]);
            self.seen.push(Seen { at: self.now, from: ADDRESSES[end], bytes: bytes.clone(), lost });
            if !lost {
                self.count += 1;
                self.flying.insert((self.now + self.latency, self.count), (1 - end, bytes.clone()));
            }
        }
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push(event);
        }
    }
}
