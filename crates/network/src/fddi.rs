//! FDDI: a ring on which a token says who may send, and timers say for how long.
//!
//! The media access control of ANSI X3.139 in virtual time. What it promises follows from three rules, which stand in
//! `token.rs`: a station that gets the token early may send asynchronous frames for as long as it is early; one that gets
//! it late may not; synchronous frames may be sent either way, within an allocation. If the allocations, the ring's
//! latency and one asynchronous frame fit into the target token rotation time (TTRT), the token comes back within twice
//! that time, and within that time on average (Johnson 1987; Sevcik and Johnson 1987).

mod station;
#[cfg(test)]
mod tests;
mod token;
mod waiting;
#[cfg(test)]
mod walker;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Amount, Bytes, Duration, Packet, PacketId, Port, Rate, Seed, Time};

use crate::busy::share;
use crate::impairment::Impairments;
use crate::medium::{Figure, Medium, MediumCounters, MediumKind, Outcome, PortConfig};
use crate::queue::{Backlog, Queue};
use crate::serial::serialiser::Serialiser;
use station::{Hold, Station};
use token::{Ring, Token};
use waiting::Waiting;

/// Bytes of a token: preamble 8, start delimiter 1, frame control 1, end delimiter 1.
const TOKEN: Bytes = Bytes(11);
/// What a frame takes on the ring beside its own bytes and its declared overhead: preamble 8, start delimiter 1, frame
/// control 1, end delimiter 0.5 and the half byte of frame status that is not in Weaver and McNabb's count of 1.
const UNCOUNTED: Bytes = Bytes(11);
/// Light in fibre: 5.085 us per km (X3.148).
const NANOSECONDS_PER_KILOMETRE: f64 = 5085.0;

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "fddi",
    doc: "A timed-token ring (FDDI, ANSI X3.139). A token rotates in the order of `between`; the station that holds \
          it may send. All stations agree on the smallest requested `ttrt` (at least twice the ring's latency). A \
          frame reaches its destination when its last bit has travelled there, is visible to all stations, and is \
          removed from the ring by its sender. Late counters are reported, but the ring is not reinitialised, unlike \
          a real ring at a late count of 2. Impairments act on the packets that a station sends, separately for each \
          receiver. In addition to its own bytes and its `overhead`, a packet takes 11 B of time on the ring: \
          preamble 8, start delimiter 1, frame control 1, and 1 of the end delimiter and frame status.",
    parameters: &[
        Parameter {
            name: "class",
            kind: Kind::Choice(&[
                Choice {
                    name: "asynchronous",
                    doc: "The station sends only while the token is early, and finishes a frame that it has \
                          begun.",
                },
                Choice {
                    name: "synchronous",
                    doc: "The station sends whenever it holds the token, within its `synchronous` allocation.",
                },
            ]),
            default: Preset::Text("asynchronous"),
            doc: "Traffic class of everything that the station sends.",
        },
        Parameter {
            name: "synchronous",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(1) },
            default: Preset::Absent,
            doc: "Synchronous allocation: the time for which a station of the synchronous class may send per \
                  token. A packet that does not fit is dropped as too large. Without this key there is no \
                  limit, as on boards without allocation, and then the rotation time has no bound.",
        },
        Parameter {
            name: "frames-per-token",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Preset::Absent,
            doc: "Maximum number of frames per token. Without this key, only the timers limit the station.",
        },
        Parameter {
            name: "ttrt",
            kind: Kind::Duration { min: Duration::from_micros(100), max: Duration::from_millis(168) },
            default: Preset::Text("8 ms"),
            doc: "Target token rotation time that the station requests. Jain recommends 8 ms for any ring \
                  (\"Performance analysis of FDDI token ring networks\", 1990).",
        },
        Parameter {
            name: "latency",
            kind: Kind::Duration { min: Duration::from_nanos(1), max: Duration::from_millis(1) },
            default: Preset::Text("600 ns"),
            doc: "Delay of the station when it repeats a frame.",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes(68), max: Bytes(65_535) },
            default: Preset::Text("4352 B"),
            doc: "The largest packet, network header included and framing not; a larger one is dropped. The default is \
                  that of IP (RFC 1390), whose frames of at most 4500 B are the largest that the standard allows.",
        },
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1024) },
            default: Preset::Text("25 B"),
            doc: "Framing included in network throughput: LLC and SNAP 8 B, addresses 12 B, check sequence 4 \
                  B, frame status 1 B, as in Weaver and McNabb (1992, section 5.1); 17 B without LLC.",
        },
    ],
    needs: &[],
    shared: &[
        Parameter {
            name: "rate",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1_000),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Text("100 Mbit/s"),
            doc: "Bits per second on the ring.",
        },
        Parameter {
            name: "kilometres",
            kind: Kind::Number { min: 0.0, max: 200.0 },
            default: Preset::Text("1"),
            doc: "Length of the ring's fibre; the stations are equally spaced. Propagation takes 5.085 us \
                  per kilometre.",
        },
    ],
    stations: 2..=500,
    build: |shared, ports, seed| Box::new(FddiRing::new(FddiConfig::new(shared, ports), seed)),
};

/// A ring.
pub struct FddiConfig {
    /// Bits per second.
    pub rate: Rate,
    /// How long light takes around it.
    pub propagation: Duration,
    /// The stations, at least two, in the order in which the token comes to them.
    pub stations: Vec<StationConfig>,
}

/// A station.
pub struct StationConfig {
    /// The place in the experiment, from which random streams are named: `link.ring/ottawa`.
    pub place: String,
    /// What it sends, and for how long.
    pub class: Class,
    /// The most frames at each token.
    pub frames_per_token: Option<u64>,
    /// The target token rotation time that it asks for.
    pub ttrt: Duration,
    /// How long it takes to repeat a bit, at least 1 ns.
    pub latency: Duration,
    /// The largest packet at the network layer.
    pub mtu: Bytes,
    /// Framing that counts, beside the 11 B that every frame takes.
    pub overhead: Bytes,
    /// The queue in which packets wait for the token, empty.
    pub queue: Box<dyn Queue>,
    /// What happens to packets that it has sent.
    pub impairments: Impairments,
}

/// The class of service of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// For so long at each token; without limit if there is no allocation.
    Synchronous(Option<Duration>),
    /// While the token is early.
    Asynchronous,
}

impl FddiConfig {
    /// # Panics
    /// If the values are not those of this medium's parameters: a mistake in the program, never in a file.
    fn new(shared: &Values, ports: Vec<PortConfig<'_>>) -> FddiConfig {
        let propagation = shared.number("kilometres") * NANOSECONDS_PER_KILOMETRE;
        FddiConfig {
            rate: shared.rate("rate"),
            propagation: Duration::from_nanos(propagation as u64),
            stations: ports.into_iter().map(StationConfig::from).collect(),
        }
    }
}

impl From<PortConfig<'_>> for StationConfig {
    /// # Panics
    /// If the values are not those of this medium's parameters: a mistake in the program, never in a file.
    fn from(port: PortConfig<'_>) -> StationConfig {
        let values = port.values;
        StationConfig {
            place: port.place,
            class: match values.text("class").as_str() {
                "synchronous" => Class::Synchronous(values.duration_if_given("synchronous")),
                _ => Class::Asynchronous,
            },
            frames_per_token: values.integer_if_given("frames-per-token"),
            ttrt: values.duration("ttrt"),
            latency: values.duration("latency"),
            mtu: values.bytes("mtu"),
            overhead: values.bytes("overhead"),
            queue: port.queue,
            impairments: port.impairments,
        }
    }
}

/// A ring with its token.
///
/// A packet waits at its station until the token comes. When its transmission begins, everything about it is decided,
/// and its deliveries or its loss are handed out at once; a driver is needed only while packets wait. While none does,
/// the token's rounds cost nothing: where it is, is computed when the next packet comes.
#[derive(Debug)]
pub struct FddiRing {
    stations: Vec<Station>,
    waiting: Waiting,
    token: Token,
    /// The station that sends, if the token is not on its way.
    hold: Option<Hold>,
    line: Serialiser,
    rate: Rate,
}

impl FddiRing {
    /// The ring, which has been idle for a while; its token is at the first station.
    pub fn new(config: FddiConfig, seed: Seed) -> FddiRing {
        let ring = Ring::new(config.propagation, config.stations.iter().map(|station| station.latency));
        let bids = config.stations.iter().map(|station| station.ttrt);
        let ttrt = bids.min().unwrap_or(Duration::ZERO).max(ring.latency() + ring.latency());
        FddiRing {
            waiting: Waiting::new(config.stations.len()),
            token: Token::new(ring, ttrt),
            stations: config.stations.into_iter().map(|station| Station::new(station, seed)).collect(),
            hold: None,
            line: Serialiser::new(config.rate),
            rate: config.rate,
        }
    }

    /// When a station next has to decide something: the sender at the end of its frame, whoever waits when the token
    /// comes.
    fn next(&self) -> Option<Time> {
        match self.hold {
            Some(hold) => Some(hold.until),
            None => self.next_stop().map(|(_, at)| at),
        }
    }

    /// The station at which the token is next of use, and when it is there.
    fn next_stop(&self) -> Option<(usize, Time)> {
        if !self.waiting.any_held_back() {
            let station = self.waiting.first_after(self.token.at())?;
            return Some((station, self.token.arrival(station)));
        }
        let stops = self
            .waiting
            .all()
            .map(|station| (station, self.token.arrival_from(station, self.stations[station].not_before())));
        stops.min_by_key(|&(_, at)| at)
    }

    /// Does what is due next, at the time `now` that [`Self::next`] said.
    fn step(&mut self, now: Time, out: &mut Outcome) {
        let hold = self.hold.take().or_else(|| {
            let (station, at) = self.next_stop()?;
            let early_until = self.token.stop(station, at);
            self.stations[station].hold(station, at, early_until)
        });
        if let Some(hold) = hold {
            self.send(hold, now, out);
        }
    }

    /// Lets the station that has the token send a frame, or pass it on.
    fn send(&mut self, mut hold: Hold, now: Time, out: &mut Outcome) {
        let index = hold.station;
        let station = &mut self.stations[index];
        match station.next_packet(now, &mut hold, self.rate, &mut out.fates) {
            Some(packet) => {
                hold.until = station.transmit(now, packet, &mut self.line, self.token.ring(), index, out);
                self.hold = Some(hold);
            }
            None if hold.has_sent() => self.token.leave(now + self.rate.time_for(TOKEN)),
            None => {} // it passes by
        }
        self.waiting.set(index, station.is_waiting(), station.not_before() > now);
    }
}

impl Medium for FddiRing {
    /// # Panics
    /// If the ring has no station `from`: a mistake in the driver.
    fn offer(&mut self, at: Time, from: Port, packet: Packet, out: &mut Outcome) {
        self.advance(at, out);
        let index = usize::from(from.0);
        let station = &mut self.stations[index];
        station.offer(at, packet, self.rate, &mut out.fates);
        self.waiting.set(index, station.is_waiting(), station.not_before() > at);
    }

    fn advance(&mut self, to: Time, out: &mut Outcome) {
        while let Some(at) = self.next().filter(|&at| at <= to) {
            self.step(at, out);
        }
        if self.hold.is_none() {
            self.token.pass_until(to);
        }
    }

    fn next_event(&self) -> Option<Time> {
        // The end of the last frame matters to nobody.
        self.waiting.any().then(|| self.next()).flatten()
    }

    fn counters(&self, from: Port) -> MediumCounters {
        self.stations.get(usize::from(from.0)).map(Station::counters).unwrap_or_default()
    }

    fn backlog(&self, from: Port) -> Backlog {
        self.stations.get(usize::from(from.0)).map(Station::waiting).unwrap_or_default()
    }

    fn under_way(&self, from: Port, at: Time) -> Option<(PacketId, f64)> {
        self.stations[usize::from(from.0)].under_way(at)
    }

    fn end_measurement(&mut self, at: Time) {
        self.stations.iter_mut().for_each(|station| station.end_measurement(at));
    }

    fn figures(&self, over: Duration) -> Vec<Figure> {
        // Whoever has it sends it on, unless the run ends before.
        let left = self.hold.map_or(self.token.left(), |hold| hold.until + self.rate.time_for(TOKEN));
        let rotations = self.token.rotations_until(left, Time::ZERO + over);
        let busy: Duration =
            self.stations.iter().map(|station| station.busy(over)).fold(Duration::ZERO, |sum, one| sum + one);
        let sum_of = |synchronous: bool, of: fn(&Station) -> u64| {
            let alike = self.stations.iter().filter(|station| station.is_synchronous() == synchronous);
            alike.map(of).sum::<u64>()
        };
        let rotated = |time| (rotations.count() > 0).then_some(Amount::Time(time));
        let quantile = |thousandths| rotations.quantile(thousandths).map(Amount::Time);
        let ring = [
            ("ttrt", Some(Amount::Time(self.token.ttrt()))),
            ("ring-latency", Some(Amount::Time(self.token.ring().latency()))),
            ("ring-utilisation", Some(Amount::Share(share(busy, over)))),
            ("token-rotations", Some(Amount::Count(rotations.count()))),
            ("token-rotation-mean", rotated(rotations.mean())),
            ("token-rotation-p50", quantile(500)),
            ("token-rotation-p99", quantile(990)),
            ("token-rotation-p999", quantile(999)),
            ("token-rotation-max", rotated(rotations.longest())),
            ("late-counter-max", Some(Amount::Count(self.token.late_most()))),
            ("frames-synchronous", Some(Amount::Count(sum_of(true, Station::frames)))),
            ("bytes-synchronous", Some(Amount::Bytes(Bytes(sum_of(true, Station::bytes))))),
            ("frames-asynchronous", Some(Amount::Count(sum_of(false, Station::frames)))),
            ("bytes-asynchronous", Some(Amount::Bytes(Bytes(sum_of(false, Station::bytes))))),
        ];
        let figure = |station, (name, amount)| Figure { station, name, amount };
        let of_stations = self.stations.iter().enumerate().flat_map(|(index, station)| {
            let own = [
                ("frames", Some(Amount::Count(station.frames()))),
                ("bytes", Some(Amount::Bytes(Bytes(station.bytes())))),
                ("late-counter-max", Some(Amount::Count(self.token.late_max(index)))),
            ];
            own.map(|own| figure(Some(Port(index as u16)), own))
        });
        ring.map(|own| figure(None, own)).into_iter().chain(of_stations).collect()
    }
}
