//! Parts by themselves, in virtual time: queues, and the E-model.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use trunkline_core::{Bytes, Duration, Ecn, FlowId, Packet, PacketId, Ratio, Seed, Time};
use trunkline_experiment::Experiment;
use trunkline_metrics::quality::{CODECS, EModel, mos};
use trunkline_network::queue::{self, Dequeued};
use trunkline_network::{Fate, Fates};
use trunkline_runner::DirectoryFiles;

use crate::errors;
use crate::timed::goes_on;

/// A small experiment, of which a part is taken: a link from host `a` to host `b` with these keys, and a flow with these.
pub(crate) struct World<'w> {
    /// The part's name in problems.
    pub(crate) name: &'w str,
    pub(crate) link: &'w str,
    /// Empty for an experiment without flows.
    pub(crate) flow: &'w str,
    pub(crate) duration: &'w str,
    pub(crate) drain: &'w str,
}

impl<'w> World<'w> {
    pub(crate) fn new(name: &'w str) -> World<'w> {
        World { name, link: "rate = \"1 Gbit/s\"", flow: "", duration: "\"1 s\"", drain: "\"1 s\"" }
    }

    /// The validated experiment. Files that it names are relative to the current folder.
    pub(crate) fn read(&self) -> PyResult<Experiment> {
        let World { name, link, flow, duration, drain } = self;
        let flow = match flow.is_empty() {
            true => String::new(),
            false => format!("[flow.flow]\nfrom = \"a\"\nto = \"b\"\n{flow}\n"),
        };
        let text = format!(
            "name = \"part\"\nduration = {duration}\ndrain = {drain}\nhosts = {{ a = {{}}, b = {{}} }}\n\
             [link.link]\nbetween = [\"a\", \"b\"]\n{link}\n{flow}"
        );
        let beside = DirectoryFiles::beside(Path::new(name));
        let read = Experiment::parse(&text, name, &beside).map_err(|problems| errors::invalid(&problems))?;
        match read.points.first().scenario.custom_problem() {
            Some(_) => Err(errors::bad_input("a part has no function; use `custom` in experiments only")),
            None => Ok(read),
        }
    }
}

/// The packet of a call that dequeues: its number, size, flow, and whether it was marked.
type Left = (u64, u64, u32, bool);

/// A queue of the registry. All times are nanoseconds, and never decrease.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Queue {
    state: Mutex<State>,
}

struct State {
    queue: Box<dyn queue::Queue>,
    fates: Fates,
    now: Time,
    dropped: u64,
    marked: u64,
}

impl State {
    /// Takes the time of a call.
    fn at(&mut self, now: u64) -> Result<Time, String> {
        goes_on(self.now.as_nanos(), now)?;
        self.now = Time::from_nanos(now);
        Ok(self.now)
    }

    /// Counts what a call has dropped and marked; returns the dropped packets' numbers.
    fn count(&mut self) -> Vec<u64> {
        let mut gone = Vec::new();
        for fate in self.fates.0.drain(..) {
            match fate {
                Fate::Dropped { packet, .. } => gone.push(packet.id.0),
                Fate::Marked { .. } => self.marked += 1,
            }
        }
        self.dropped += gone.len() as u64;
        gone
    }
}

/// The number of the first packet of arrays; those that were enqueued one by one have lower ones.
const OF_ARRAYS: u64 = 1 << 63;

impl Queue {
    /// Does something with the state. Python does not run meanwhile: other threads of it may wait for the state.
    fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }
}

fn packet(id: u64, size: u64, flow: u32, ecn: bool) -> Packet {
    let ecn = if ecn { Ecn::Ect0 } else { Ecn::NotCapable };
    Packet { id: PacketId(id), flow: FlowId(flow), size: Bytes(size), ecn, ..Packet::default() }
}

fn is_marked(packet: &Packet) -> bool {
    packet.ecn == Ecn::CongestionExperienced
}

#[pymethods]
impl Queue {
    /// The queue that an experiment file names, `{ kind = "fq-codel", target = "5 ms" }`.
    #[new]
    fn new(written: &str, seed: u64) -> PyResult<Queue> {
        let link = format!("rate = \"1 Gbit/s\"\nqueue = {written}");
        let read = World { link: &link, ..World::new("<queue>") }.read()?;
        let (kind, values) = &read.points.first().scenario.links[0].directions[0].queue;
        let queue = (queue::KINDS[*kind].build)(values, Seed::new(seed, 0).stream("queue"));
        let state = State { queue, fates: Fates::default(), now: Time::ZERO, dropped: 0, marked: 0 };
        Ok(Queue { state: Mutex::new(state) })
    }

    /// Takes a packet. Returns the numbers of packets that were dropped for it, perhaps its own.
    fn enqueue(
        &self,
        py: Python<'_>,
        now: u64,
        id: u64,
        size: u64,
        flow: u32,
        ecn: bool,
    ) -> PyResult<Vec<u64>> {
        if id >= OF_ARRAYS {
            return Err(errors::bad_input("the packet's number must be less than 2^63"));
        }
        let dropped = self.with(py, |state| {
            let at = state.at(now)?;
            state.queue.enqueue(at, packet(id, size, flow, ecn), &mut state.fates);
            Ok(state.count())
        });
        dropped.map_err(|why: String| errors::bad_input(why))
    }

    /// The packet that leaves now, if one does; and the time before which none may leave, if one waits for it.
    fn dequeue(&self, py: Python<'_>, now: u64) -> PyResult<(Option<Left>, Option<u64>)> {
        let left = self.with(py, |state| {
            let at = state.at(now)?;
            let left = state.queue.dequeue(at, &mut state.fates);
            state.count();
            Ok(left)
        });
        Ok(match left.map_err(|why: String| errors::bad_input(why))? {
            Dequeued::Packet(packet) => {
                (Some((packet.id.0, packet.size.0, packet.flow.0, is_marked(&packet))), None)
            }
            Dequeued::Empty => (None, None),
            Dequeued::NotBefore(time) => (None, Some(time.as_nanos())),
        })
    }

    /// Sends packets through the queue onto a line: their arrival times (nanoseconds, 64-bit), sizes and flows (32-bit) in
    /// the machine's byte order. Returns the times at which each has been transmitted, with -1 for a dropped one, and a
    /// byte for each, 1 if it was marked.
    fn transmit<'p>(
        &self,
        py: Python<'p>,
        arrivals: &[u8],
        sizes: &[u8],
        flows: &[u8],
        rate: f64,
        ecn: bool,
    ) -> PyResult<(Bound<'p, PyBytes>, Bound<'p, PyBytes>)> {
        let arrivals: Vec<u64> =
            arrivals.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
        let words = |bytes: &[u8]| -> Vec<u32> {
            bytes.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect()
        };
        let (sizes, flows) = (words(sizes), words(flows));
        if sizes.len() != arrivals.len() || flows.len() != arrivals.len() {
            return Err(errors::bad_input("arrivals, sizes and flows must have the same length"));
        }
        if !(rate.is_finite() && rate > 0.0) {
            return Err(errors::bad_input("the rate must be positive"));
        }
        arrivals
            .array_windows()
            .try_for_each(|&[one, next]| goes_on(one, next))
            .map_err(errors::bad_input)?;
        let line = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let mut line = Line::new(arrivals.len(), rate);
            // Before anything is enqueued: what is refused changes nothing.
            goes_on(state.now.as_nanos(), arrivals.first().copied().unwrap_or(u64::MAX))?;
            let bytes: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
            line.is_fast_enough(&state, arrivals.last().copied().unwrap_or(0), bytes)?;
            for (id, (&arrival, (&size, &flow))) in
                (OF_ARRAYS..).zip(arrivals.iter().zip(sizes.iter().zip(&flows)))
            {
                // What can leave before it leaves before it.
                line.send_until(&mut state, arrival);
                let at = state.at(arrival)?;
                let State { queue, fates, .. } = &mut *state;
                queue.enqueue(at, packet(id, size.into(), flow, ecn), fates);
                state.count();
            }
            line.send_until(&mut state, u64::MAX);
            Ok(line)
        });
        let Line { departures, marks, .. } = line.map_err(|why: String| errors::bad_input(why))?;
        let departures: Vec<u8> = departures.iter().flat_map(|time| time.to_ne_bytes()).collect();
        Ok((PyBytes::new(py, &departures), PyBytes::new(py, &marks)))
    }

    /// Packets and bytes that wait.
    #[getter]
    fn backlog(&self, py: Python<'_>) -> (u64, u64) {
        let backlog = self.with(py, |state| state.queue.backlog());
        (backlog.packets, backlog.bytes.0)
    }

    /// Packets that were dropped until now.
    #[getter]
    fn dropped(&self, py: Python<'_>) -> u64 {
        self.with(py, |state| state.dropped)
    }

    /// Packets that were marked until now.
    #[getter]
    fn marked(&self, py: Python<'_>) -> u64 {
        self.with(py, |state| state.marked)
    }
}

/// A line that transmits one packet at a time.
struct Line {
    free: u64,
    nanos_per_byte: f64,
    departures: Vec<i64>,
    marks: Vec<u8>,
}

impl Line {
    fn new(packets: usize, rate: f64) -> Line {
        Line { free: 0, nanos_per_byte: 8e9 / rate, departures: vec![-1; packets], marks: vec![0; packets] }
    }

    /// Refuses a rate at which times would not fit into 64 bits with a sign.
    fn is_fast_enough(&self, state: &State, last: u64, bytes: u64) -> Result<(), String> {
        let bytes = bytes as f64 + state.queue.backlog().bytes.0 as f64;
        let begin = last.max(state.now.as_nanos()) as f64;
        if begin + bytes * self.nanos_per_byte < i64::MAX as f64 {
            return Ok(());
        }
        Err("the rate is too low: the last packet would leave after more than 292 years".to_owned())
    }

    /// Transmits what may leave before `end`.
    fn send_until(&mut self, state: &mut State, end: u64) {
        let mut at = self.free.max(state.now.as_nanos());
        while at < end {
            state.now = Time::from_nanos(at);
            let left = state.queue.dequeue(state.now, &mut state.fates);
            state.count();
            match left {
                Dequeued::Empty => return,
                Dequeued::NotBefore(time) => at = time.as_nanos(),
                Dequeued::Packet(packet) => {
                    self.free = at.saturating_add((packet.size.0 as f64 * self.nanos_per_byte).ceil() as u64);
                    at = self.free;
                    // Packets that waited before have no place in the arrays.
                    let Some(place) = packet.id.0.checked_sub(OF_ARRAYS) else { continue };
                    if let Some(departure) = self.departures.get_mut(place as usize) {
                        *departure = i64::try_from(self.free).unwrap_or(i64::MAX);
                        self.marks[place as usize] = u8::from(is_marked(&packet));
                    }
                }
            }
        }
    }
}

/// The transmission rating R of a call and its MOS (ITU-T G.107): one-way delay in seconds, share of lost packets, codec, burst
/// ratio.
#[pyfunction]
pub(crate) fn e_model(delay: f64, loss: f64, codec: &str, burst_ratio: f64) -> PyResult<(f64, f64)> {
    let known = CODECS.iter().find(|known| known.name == codec).ok_or_else(|| {
        let names = CODECS.iter().map(|codec| codec.name);
        errors::bad_input(format_args!(
            "unknown codec `{codec}`{}",
            trunkline_experiment::suggestion(codec, names)
        ))
    })?;
    let (true, Some(loss)) = (delay >= 0.0 && delay.is_finite(), Ratio::new(loss)) else {
        return Err(errors::bad_input("the delay must not be negative, and the loss between 0 and 1"));
    };
    if !(burst_ratio.is_finite() && burst_ratio >= 1.0) {
        return Err(errors::bad_input("the burst ratio must be 1 (random loss) or more"));
    }
    let r = EModel::call(known, Duration::from_secs_f64(delay), loss, burst_ratio).r();
    Ok((r, mos(r)))
}
