//! Two endpoints joined by a path, in virtual time: the harness of every transport's tests.

use core::hash::Hasher as _;
use std::collections::BTreeMap;

use siphasher::sip::SipHasher24;
use trunkline_core::{Address, Bytes, Duration, Ecn, Rate, Seed, Stream, Time};
use trunkline_transport::{Close, Conversation as _, Endpoint, Event, Features, Message, SendError, drain};

use crate::checked::Checked;

/// Which end of a [`Pair`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The one that connects.
    Near = 0,
    /// The one that is connected to.
    Far = 1,
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::Near, Side::Far];

    /// The other one.
    pub const fn other(self) -> Side {
        match self {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        }
    }
}

/// One direction of the path between the ends.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// Propagation delay.
    pub latency: Duration,
    /// Bits per second, with an unlimited queue in front; `None` for no serialisation at all.
    pub rate: Option<Rate>,
    /// The largest packet in bytes at the network layer; larger ones are lost. `None` for no limit.
    pub mtu: Option<Bytes>,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that it arrives twice.
    pub duplicate: f64,
    /// Probability that it is held back by twice the latency, so that later ones overtake it.
    pub reorder: f64,
    /// Probability that one of its bits is flipped.
    pub corrupt: f64,
    /// Packets that are lost for certain, counted from 0 in this direction, in ascending order.
    pub drop: Vec<u64>,
    /// From when on nothing passes: the cable is cut.
    pub cut: Option<Time>,
}

impl Path {
    /// A path that only delays.
    pub fn with_latency(latency: Duration) -> Path {
        Path { latency, ..Path::default() }
    }
}

/// What happened to the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets that were given to the path.
    pub sent: u64,
    /// Of them, lost.
    pub lost: u64,
    /// Extra copies delivered.
    pub duplicated: u64,
    /// Packets of which a bit was flipped.
    pub corrupted: u64,
    /// Bytes at the network layer.
    pub bytes: u64,
    /// The largest packet there.
    pub largest: Bytes,
}

/// Two endpoints and the path between them. Every input is followed by the draining that the contract asks for.
pub struct Pair {
    addresses: [Address; 2],
    ends: [End; 2],
    now: Time,
    flying: BTreeMap<(Time, u64), Arrival>,
    order: u64,
    buffer: Vec<u8>,
    trace: SipHasher24,
    shapes: SipHasher24,
    lateness: Duration,
    steps: u64,
}

struct End {
    endpoint: Checked<Box<dyn Endpoint>>,
    events: Vec<Event>,
    away: Line,
}

/// One direction of a path, at work.
pub struct Line {
    path: Path,
    stream: Stream,
    free: Time,
    counters: PathCounters,
}

struct Arrival {
    to: Side,
    bytes: Vec<u8>,
}

/// The address of the near end.
pub const NEAR: Address = Address { host: 0, port: 40_001 };
/// The address of the far end.
pub const FAR: Address = Address { host: 1, port: 7_001 };

/// Steps after which [`Pair::drive`] gives up: two ends that answer each other for ever.
const MAX_STEPS: u64 = 20_000_000;

impl Pair {
    /// Joins two endpoints, which must have the addresses [`NEAR`] and [`FAR`]. `paths` are from near to far and back;
    /// what goes wrong on them is drawn from `seed`.
    pub fn new(near: Box<dyn Endpoint>, far: Box<dyn Endpoint>, paths: [Path; 2], seed: Seed) -> Pair {
        Pair::between((NEAR, near), (FAR, far), paths, seed)
    }

    /// The same for endpoints with these addresses.
    pub fn between(
        near: (Address, Box<dyn Endpoint>),
        far: (Address, Box<dyn Endpoint>),
        paths: [Path; 2],
        seed: Seed,
    ) -> Pair {
        let ([out, back], addresses) = (paths, [near.0, far.0]);
        let end = |endpoint, path, place| End {
            endpoint: Checked::new(endpoint),
            events: Vec::new(),
            away: Line::new(path, seed.stream(place)),
        };
        let mut pair = Pair {
            addresses,
            ends: [end(near.1, out, "pair/near-far"), end(far.1, back, "pair/far-near")],
            now: Time::ZERO,
            flying: BTreeMap::new(),
            order: 0,
            buffer: Vec::new(),
            trace: SipHasher24::new(),
            shapes: SipHasher24::new(),
            lateness: Duration::ZERO,
            steps: 0,
        };
        for side in Side::BOTH {
            pair.drain(side);
        }
        pair
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a message from one end.
    ///
    /// # Errors
    /// The endpoint's own.
    pub fn send(&mut self, from: Side, message: &[u8]) -> Result<(), SendError> {
        self.send_message(from, Message::new(message))
    }

    /// Sends a message, or a piece of one, from one end.
    ///
    /// # Errors
    /// The endpoint's own.
    pub fn send_message(&mut self, from: Side, message: Message<'_>) -> Result<(), SendError> {
        let now = self.now;
        let result = self.end(from).endpoint.send(now, message);
        self.drain(from);
        result
    }

    /// Appends what one end has received next; false if there is nothing.
    pub fn receive(&mut self, at: Side, into: &mut Vec<u8>) -> bool {
        let received = self.end(at).endpoint.receive(into).is_some();
        if received {
            self.drain(at);
        }
        received
    }

    /// All whole messages, or pieces of a byte stream, that one end has received.
    pub fn receive_all(&mut self, at: Side) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut next = Vec::new();
        while self.receive(at, &mut next) {
            all.push(core::mem::take(&mut next));
        }
        all
    }

    /// Closes one end.
    pub fn close(&mut self, side: Side, how: Close) {
        let now = self.now;
        self.end(side).endpoint.close(now, how);
        self.drain(side);
    }

    /// The events of one end since the last call.
    pub fn events(&mut self, side: Side) -> Vec<Event> {
        core::mem::take(&mut self.end(side).events)
    }

    /// Whether this event has come to one end since it was last asked for; other events stay.
    pub fn take_event(&mut self, side: Side, event: Event) -> bool {
        let events = &mut self.end(side).events;
        let before = events.len();
        events.retain(|&other| other != event);
        events.len() < before
    }

    /// Gives one end a packet as if it had come from the other.
    pub fn inject(&mut self, to: Side, packet: &[u8]) {
        let (now, from) = (self.now, self.addresses[to.other() as usize]);
        self.end(to).endpoint.handle_packet(now, from, Ecn::NotCapable, packet);
        self.drain(to);
    }

    /// The path away from one end, to be changed.
    pub fn path(&mut self, from: Side) -> &mut Path {
        &mut self.end(from).away.path
    }

    /// What happened on the path away from one end.
    pub fn path_counters(&self, from: Side) -> PathCounters {
        self.ends[from as usize].away.counters
    }

    /// One of an endpoint's counters; 0 if it has none of that name.
    pub fn counter(&self, side: Side, name: &str) -> u64 {
        let mut value = 0;
        self.ends[side as usize].endpoint.counters(&mut |counter, count| {
            if counter == name {
                value = count;
            }
        });
        value
    }

    /// Does what is due next and says whether there was anything before or at `until`.
    pub fn step_until(&mut self, until: Time) -> bool {
        let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
        let [near, far] =
            [0, 1].map(|side: usize| Some(self.ends[side].endpoint.next_timeout()? + self.lateness));
        let Some(at) = [arrival, near, far].into_iter().flatten().min().filter(|&at| at <= until) else {
            return false;
        };
        self.steps += 1;
        assert!(self.steps < MAX_STEPS, "the ends never come to rest");
        self.now = at;
        if arrival == Some(at) {
            if let Some((_, Arrival { to, bytes })) = self.flying.pop_first() {
                self.inject(to, &bytes);
                self.buffer = bytes;
            }
        } else {
            let side = if near == Some(at) { Side::Near } else { Side::Far };
            self.end(side).endpoint.handle_timeout(at);
            self.drain(side);
        }
        true
    }

    /// Runs until nothing flies and no timer is set.
    ///
    /// # Panics
    /// If that never happens.
    pub fn drive(&mut self) {
        while self.step_until(Time::MAX) {}
    }

    /// Runs until `until`, which is then the time.
    pub fn drive_until(&mut self, until: Time) {
        while self.step_until(until) {}
        self.now = self.now.max(until);
    }

    /// Runs on for this long.
    pub fn drive_for(&mut self, time: Duration) {
        self.drive_until(self.now + time);
    }

    /// From now on, calls every timer so much later than asked for.
    pub fn wake_late_by(&mut self, lateness: Duration) {
        self.lateness = lateness;
    }

    /// What the transport promises.
    pub fn features(&self) -> &'static Features {
        self.ends[0].endpoint.features()
    }

    /// A fingerprint of every packet sent so far: when, which way, and its bytes.
    pub fn trace_hash(&self) -> u64 {
        self.trace.finish()
    }

    /// A fingerprint of every packet sent so far but for its bytes: when, which way, and its size. Encryption makes the
    /// bytes of an otherwise equal run differ.
    pub fn shape_hash(&self) -> u64 {
        self.shapes.finish()
    }

    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    fn drain(&mut self, side: Side) {
        let mut buffer = core::mem::take(&mut self.buffer);
        let End { endpoint, events, away } = &mut self.ends[side as usize];
        let (now, flying, order) = (self.now, &mut self.flying, &mut self.order);
        let (trace, shapes) = (&mut self.trace, &mut self.shapes);
        drain(endpoint, now, &mut buffer, |transmit, bytes| {
            trace.write_u64(now.as_nanos());
            trace.write_u8(side as u8);
            trace.write(bytes);
            shapes.write_u64(now.as_nanos());
            shapes.write_u8(side as u8);
            shapes.write_usize(bytes.len());
            for (arrives, bytes) in away.carry(now.max(transmit.earliest), transmit.size, bytes) {
                *order += 1;
                flying.insert((arrives, *order), Arrival { to: side.other(), bytes });
            }
        });
        while let Some(event) = endpoint.poll_event() {
            events.push(event);
        }
        self.buffer = buffer;
    }
}

impl Line {
    /// A path, whose faults are drawn from `stream`.
    pub fn new(path: Path, stream: Stream) -> Line {
        Line { path, stream, free: Time::ZERO, counters: PathCounters::default() }
    }

    /// What happened on it.
    pub fn counters(&self) -> PathCounters {
        self.counters
    }

    /// Carries a packet that enters at `at`: when it arrives and what arrives; nothing if it is lost, twice if it is
    /// duplicated. Draws the same numbers for every packet, so that a changed probability changes no other draw.
    pub fn carry(&mut self, at: Time, size: Bytes, packet: &[u8]) -> Vec<(Time, Vec<u8>)> {
        let Line { path, stream, free, counters } = self;
        let number = counters.sent;
        counters.sent += 1;
        counters.bytes += size.count();
        counters.largest = counters.largest.max(size);
        let [lost, duplicated, reordered, corrupted] =
            [path.loss, path.duplicate, path.reorder, path.corrupt]
                .map(|probability| stream.chance(probability));
        let bit = stream.below(packet.len() as u64 * 8) as usize;
        let departs = match path.rate {
            Some(rate) => {
                *free = at.max(*free) + rate.time_for(size);
                *free
            }
            None => at,
        };
        let too_large = path.mtu.is_some_and(|mtu| size > mtu);
        if lost
            || too_large
            || path.drop.binary_search(&number).is_ok()
            || path.cut.is_some_and(|cut| at >= cut)
        {
            counters.lost += 1;
            return Vec::new();
        }
        let mut bytes = packet.to_vec();
        if corrupted {
            counters.corrupted += 1;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let held_back = if reordered { path.latency * 2 } else { Duration::ZERO };
        let arrives = departs + path.latency + held_back;
        if duplicated {
            counters.duplicated += 1;
            return vec![(arrives, bytes.clone()), (arrives, bytes)];
        }
        vec![(arrives, bytes)]
    }
}
