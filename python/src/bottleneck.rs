//! A sender with a rate over the links' medium of an experiment: the world of `trunkline.gym`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use trunkline_core::{Bytes, Duration, Ecn, Packet, PacketId, Port, Rate, Seed, Time};
use trunkline_experiment::Scenario;
use trunkline_network::{Fate, Medium, Outcome};

use crate::errors;
use crate::experiment::Experiment;

/// The result of a step: bytes that arrived, mean and largest one-way delay of them in seconds, packets sent, arrived, lost,
/// marked, and the time in seconds.
type Seen = (u64, f64, f64, u64, u64, u64, u64, f64);

/// A link of an experiment, over which one sender sends packets of one size at a rate that its owner sets.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Bottleneck {
    scenario: std::sync::Arc<Scenario>,
    link: usize,
    size: Bytes,
    /// None while a step is under way.
    state: Mutex<Option<State>>,
    /// Bits per second of the line; the most if the rate changes over time.
    #[pyo3(get)]
    rate: u64,
    /// Seconds of propagation.
    #[pyo3(get)]
    delay: f64,
}

struct State {
    medium: Box<dyn Medium>,
    now: Time,
    /// The time of the next packet.
    next: Time,
    sent: u64,
    out: Outcome,
    /// Packets that are on their way: when they arrive, and how long that takes, by arrival.
    arriving: std::collections::VecDeque<(Time, Duration, bool)>,
    /// When each packet that is in the medium was sent, by its number.
    first: u64,
    departures: std::collections::VecDeque<Time>,
}

impl Bottleneck {
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, Option<State>> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn medium(scenario: &Scenario, link: usize, seed: u64) -> State {
        let medium = scenario.build_links(Seed::new(seed, 0)).swap_remove(link);
        State {
            medium,
            now: Time::ZERO,
            next: Time::ZERO,
            sent: 0,
            out: Outcome::default(),
            arriving: Default::default(),
            first: 0,
            departures: Default::default(),
        }
    }
}

#[pymethods]
impl Bottleneck {
    #[new]
    fn new(
        py: Python<'_>,
        experiment: &Experiment,
        link: Option<&str>,
        size: u64,
        seed: u64,
    ) -> PyResult<Bottleneck> {
        let read = experiment.read(py)?;
        let scenario = std::sync::Arc::clone(&read.points.first().scenario);
        if let Some(problem) = scenario.custom_problem() {
            return Err(errors::bad_input(problem));
        }
        let links = &scenario.links;
        let place = match link {
            None => 0,
            Some(name) => links.iter().position(|link| link.name == name).ok_or_else(|| {
                let names = links.iter().map(|link| link.name.as_str());
                errors::bad_input(format_args!(
                    "there is no link `{name}`{}",
                    trunkline_experiment::suggestion(name, names)
                ))
            })?,
        };
        let Some(of) = links.get(place).filter(|link| link.directions.len() == 2) else {
            return Err(errors::bad_input("the environment needs a link between two hosts"));
        };
        let direction = &of.directions[0];
        if size == 0 || Bytes(size) > direction.mtu {
            return Err(errors::bad_input(format_args!("packets must have 1 to {} bytes", direction.mtu.0)));
        }
        let (rate, delay) = (direction.rate.bits_per_second(), direction.delay.as_secs_f64());
        let state = Mutex::new(Some(Bottleneck::medium(&scenario, place, seed)));
        Ok(Bottleneck { scenario, link: place, size: Bytes(size), state, rate, delay })
    }

    /// Begins again with an empty link, and random numbers of this seed.
    fn reset(&self, py: Python<'_>, seed: u64) {
        let begun = Bottleneck::medium(&self.scenario, self.link, seed);
        *self.state(py) = Some(begun);
    }

    /// Sends at this rate for this many seconds.
    fn step(&self, py: Python<'_>, rate: f64, seconds: f64) -> PyResult<Seen> {
        if !(rate.is_finite() && rate >= 0.0 && seconds.is_finite() && seconds > 0.0) {
            return Err(errors::bad_input("the rate must not be negative, and the time must be positive"));
        }
        if seconds > LONGEST {
            return Err(errors::bad_input(format_args!("a step must not be longer than {LONGEST} s")));
        }
        let length = Duration::from_secs_f64(seconds);
        let pace = (rate >= 1.0).then(|| Rate::from_bits_per_second(rate as u64).time_for(self.size));
        if pace.is_some_and(|pace| length.as_nanos() / pace.as_nanos().max(1) > MOST) {
            return Err(errors::bad_input(format_args!(
                "a step must not send more than {MOST} packets: lower the rate or shorten the step"
            )));
        }
        // Handlers of signals and other threads run meanwhile, and may ask for a step too.
        let taken = self.state(py).take();
        let Some(mut state) = taken else {
            return Err(errors::environment("another step of this link is not over"));
        };
        let seen = state.step(py, self.size, pace, length);
        self.state(py).get_or_insert(state);
        seen
    }
}

impl State {
    fn step(
        &mut self,
        py: Python<'_>,
        size: Bytes,
        pace: Option<Duration>,
        length: Duration,
    ) -> PyResult<Seen> {
        let (sent, end, mut lost) = (self.sent, self.now + length, 0);
        // A pace that is faster than before begins now, and not after the old, longer gap.
        self.next = pace.map_or(end, |pace| self.next.min(self.now + pace).max(self.now));
        while let Some(pace) = pace.filter(|_| self.next < end) {
            lost += py.detach(|| self.send_some(size, pace, end));
            if let Err(signal) = py.check_signals() {
                // The next step goes on here.
                self.advance(self.next.min(end));
                return Err(signal);
            }
        }
        lost += py.detach(|| self.advance(end));
        Ok(self.seen(size, sent, lost))
    }

    /// Sends until `end`, or as many packets as are sent between two looks for signals. Returns the packets that were dropped.
    fn send_some(&mut self, size: Bytes, pace: Duration, end: Time) -> u64 {
        let mut lost = 0;
        for _ in 0..UNHEARD {
            if self.next >= end {
                break;
            }
            lost += self.send(size);
            self.next += pace;
        }
        lost
    }

    fn send(&mut self, size: Bytes) -> u64 {
        let at = self.next;
        let packet = Packet { id: PacketId(self.sent), size, ecn: Ecn::Ect0, ..Packet::default() };
        self.departures.push_back(at);
        self.sent += 1;
        self.medium.offer(at, Port(0), packet, &mut self.out);
        self.note()
    }

    fn advance(&mut self, to: Time) -> u64 {
        self.medium.advance(to, &mut self.out);
        self.now = to;
        self.note()
    }

    /// Takes note of what the medium has done; returns the packets that it has dropped.
    fn note(&mut self) -> u64 {
        for delivery in self.out.deliveries.drain(..) {
            let of = delivery
                .packet
                .id
                .0
                .checked_sub(self.first)
                .and_then(|place| self.departures.get(place as usize));
            let Some(sent) = of else { continue };
            let marked = delivery.packet.ecn == Ecn::CongestionExperienced;
            let place = self.arriving.partition_point(|(at, ..)| *at <= delivery.at);
            self.arriving.insert(place, (delivery.at, delivery.at.since(*sent), marked));
        }
        self.out.fates.0.drain(..).filter(|fate| matches!(fate, Fate::Dropped { .. })).count() as u64
    }

    fn seen(&mut self, size: Bytes, sent: u64, lost: u64) -> Seen {
        let (mut arrived, mut marked, mut sum, mut worst) = (0, 0, 0.0, 0.0_f64);
        while self.arriving.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, took, mark)) = self.arriving.pop_front() else { break };
            let took = took.as_secs_f64();
            (arrived, sum, worst) = (arrived + 1, sum + took, worst.max(took));
            marked += u64::from(mark);
        }
        // Times of departure that no delivery asks for any more.
        let waiting = self.medium.backlog(Port(0)).packets as usize + KEPT;
        while self.departures.len() > waiting {
            self.departures.pop_front();
            self.first += 1;
        }
        let mean = if arrived == 0 { f64::NAN } else { sum / arrived as f64 };
        let worst = if arrived == 0 { f64::NAN } else { worst };
        (
            arrived * size.0,
            mean,
            worst,
            self.sent - sent,
            arrived,
            lost,
            marked,
            self.now.since(Time::ZERO).as_secs_f64(),
        )
    }
}

/// Packets behind the queue whose times of departure are kept: in transmission, reordered or repeated.
const KEPT: usize = 4096;

/// The longest step, in seconds.
const LONGEST: f64 = 3600.0;
/// Packets that a step sends at most.
const MOST: u64 = 10_000_000;
/// Packets between two looks for signals.
const UNHEARD: u32 = 1 << 16;
