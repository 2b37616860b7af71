//! Parts by themselves, in virtual time: queues, and the E-model.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trunkline_core::{Bytes, Duration, Ecn, FlowId, Packet, PacketId, Ratio, Seed, Time};
use trunkline_experiment::Experiment;
use trunkline_metrics::quality::{CODECS, EModel, mos};
use trunkline_network::queue::{self, Dequeued};
use trunkline_network::{Fate, Fates};

use crate::errors;

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
    fn at(&mut self, now: u64) -> PyResult<Time> {
        let now = Time::from_nanos(now);
        if now < self.now {
            return Err(errors::bad_input(format_args!(
                "time goes back from {} to {} ns",
                self.now.as_nanos(),
                now.as_nanos()
            )));
        }
        self.now = now;
        Ok(now)
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

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let text = format!(
            "name = \"queue\"\nduration = \"1 s\"\nhosts = {{ a = {{}}, b = {{}} }}\n[link.link]\nbetween = [\"a\", \"b\"]\n\
             rate = \"1 Gbit/s\"\nqueue = {written}\n"
        );
        let read = Experiment::parse(&text, "<queue>", &()).map_err(|problems| errors::invalid(&problems))?;
        let (kind, values) = &read.points[0].scenario.links[0].directions[0].queue;
        let queue = (queue::KINDS[*kind].build)(values, Seed::new(seed, 0).stream("queue"));
        let state = State { queue, fates: Fates::default(), now: Time::ZERO, dropped: 0, marked: 0 };
        Ok(Queue { state: Mutex::new(state) })
    }

    /// Takes a packet. Returns the numbers of packets that were dropped for it, perhaps its own.
    fn enqueue(&self, now: u64, id: u64, size: u64, flow: u32, ecn: bool) -> PyResult<Vec<u64>> {
        let mut state = self.state();
        let at = state.at(now)?;
        let State { queue, fates, .. } = &mut *state;
        queue.enqueue(at, packet(id, size, flow, ecn), fates);
        Ok(state.count())
    }

    /// The packet that leaves now, if one does; and the time before which none may leave, if one waits for it.
    fn dequeue(&self, now: u64) -> PyResult<(Option<Left>, Option<u64>)> {
        let mut state = self.state();
        let at = state.at(now)?;
        let State { queue, fates, .. } = &mut *state;
        let left = queue.dequeue(at, fates);
        state.count();
        Ok(match left {
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
        let (departures, marks) = py.detach(|| {
            let mut state = self.state();
            let mut line = Line::new(arrivals.len(), rate);
            for (id, (&arrival, (&size, &flow))) in arrivals.iter().zip(sizes.iter().zip(&flows)).enumerate()
            {
                // What can leave before it leaves before it.
                line.send_until(&mut state, arrival);
                let at = state.at(arrival)?;
                let State { queue, fates, .. } = &mut *state;
                queue.enqueue(at, packet(id as u64, size.into(), flow, ecn), fates);
                state.count();
            }
            line.send_until(&mut state, u64::MAX);
            Ok::<_, PyErr>((line.departures, line.marks))
        })?;
        let departures: Vec<u8> = departures.iter().flat_map(|time| time.to_ne_bytes()).collect();
        Ok((PyBytes::new(py, &departures), PyBytes::new(py, &marks)))
    }

    /// Packets and bytes that wait.
    #[getter]
    fn backlog(&self) -> (u64, u64) {
        let backlog = self.state().queue.backlog();
        (backlog.packets, backlog.bytes.0)
    }

    /// Packets that were dropped until now.
    #[getter]
    fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// Packets that were marked until now.
    #[getter]
    fn marked(&self) -> u64 {
        self.state().marked
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
                    self.free = at + (packet.size.0 as f64 * self.nanos_per_byte).ceil() as u64;
                    at = self.free;
                    if let Some(departure) = self.departures.get_mut(packet.id.0 as usize) {
                        *departure = self.free as i64;
                        self.marks[packet.id.0 as usize] = u8::from(is_marked(&packet));
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
    let r = EModel::call(known, Duration::from_secs_f64(delay), loss, burst_ratio).r();
    Ok((r, mos(r)))
}
