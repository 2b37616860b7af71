//! Protocol engines by themselves: both ends of a conversation, driven in virtual time.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trunkline_core::{Address, Ecn, Seed, Time};
use trunkline_flows::{FlowSpec, Made};
use trunkline_transport::endpoint;
use trunkline_transport::{Close, Event, Message, SendError};

use crate::errors;
use crate::parts::World;
use crate::timed::Timed;

/// A packet that an end sends: its bytes, its size at the network layer, its ECN field, and the time before which it waits.
type Sent<'p> = (Bound<'p, PyBytes>, u64, u8, u64);

/// One end of a conversation. All times are nanoseconds, and never decrease.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Endpoint {
    state: Timed<State>,
}

struct State {
    endpoint: Box<dyn endpoint::Endpoint + Send>,
    peer: Address,
    buffer: Vec<u8>,
}

impl Endpoint {
    fn new(made: Made, peer: Address) -> Endpoint {
        Endpoint { state: Timed::new(State { endpoint: made.endpoint, peer, buffer: Vec::new() }) }
    }
}

/// Both ends of a conversation over a transport of experiment files, `{ kind = "tcp", window = "64 KiB" }`, on a path of this
/// MTU. The first opens it.
#[pyfunction]
pub(crate) fn endpoints(written: &str, mtu: u64, seed: u64) -> PyResult<(Endpoint, Endpoint)> {
    let link = format!("rate = \"1 Gbit/s\"\nmtu = \"{mtu} B\"");
    let flow = format!(
        "transport = {written}\nsource = {{ kind = \"load\", message = \"1 B\", interval = \"1 s\" }}"
    );
    let read = World { link: &link, flow: &flow, ..World::new("<endpoints>") }.read()?;
    let spec = FlowSpec::of(&read.points.first().scenario, 0);
    let pair = spec.pair(0, Seed::new(seed, 0)).map_err(errors::bad_input)?;
    let (near, far) = (pair.near.address, pair.far.address);
    Ok((Endpoint::new(pair.near, far), Endpoint::new(pair.far, near)))
}

#[pymethods]
impl Endpoint {
    /// Hands a message over; false if the send buffer is full.
    fn send(&self, py: Python<'_>, now: u64, message: &[u8], more: bool) -> PyResult<bool> {
        let message = if more { Message::piece(message) } else { Message::new(message) };
        match self.state.at(py, now, |state, at| state.endpoint.send(at, message))? {
            Ok(()) => Ok(true),
            Err(SendError::Full) => Ok(false),
            Err(error @ SendError::TooLarge { .. }) => Err(errors::bad_input(error)),
            Err(error @ SendError::Closed(_)) => Err(errors::environment(error)),
        }
    }

    /// A message that has arrived, or all bytes of a stream that are there.
    fn receive<'p>(&self, py: Python<'p>) -> Option<Bound<'p, PyBytes>> {
        let message = self.state.with(py, |state| {
            let mut into = Vec::new();
            state.endpoint.receive(&mut into).map(|_| into)
        });
        message.map(|message| PyBytes::new(py, &message))
    }

    /// Takes a packet of the other end, with its ECN field.
    fn handle_packet(&self, py: Python<'_>, now: u64, packet: &[u8], ecn: u8) -> PyResult<()> {
        let ecn = ecn_of(ecn)?;
        self.state.at(py, now, |state, at| state.endpoint.handle_packet(at, state.peer, ecn, packet))
    }

    /// Does what is due.
    fn handle_timeout(&self, py: Python<'_>, now: u64) -> PyResult<()> {
        self.state.at(py, now, |state, at| state.endpoint.handle_timeout(at))
    }

    /// The next packet to send.
    fn poll_transmit<'p>(&self, py: Python<'p>, now: u64) -> PyResult<Option<Sent<'p>>> {
        let sent = self.state.at(py, now, |state, at| {
            let transmit = state.endpoint.poll_transmit(at, &mut state.buffer)?;
            let earliest = transmit.earliest.as_nanos().max(now);
            Some((state.buffer.clone(), transmit.size.0, transmit.ecn.bits(), earliest))
        });
        Ok(sent?.map(|(packet, size, ecn, earliest)| (PyBytes::new(py, &packet), size, ecn, earliest)))
    }

    /// The time at which `handle_timeout` wants to be called.
    #[getter]
    fn next_timeout(&self, py: Python<'_>) -> Option<u64> {
        self.state.with(py, |state| state.endpoint.next_timeout()).map(Time::as_nanos)
    }

    /// The next event: its name, and a reason or a member.
    fn poll_event(&self, py: Python<'_>) -> Option<(&'static str, String)> {
        Some(match self.state.with(py, |state| state.endpoint.poll_event())? {
            Event::Connected => ("connected", String::new()),
            Event::Readable => ("readable", String::new()),
            Event::Writable => ("writable", String::new()),
            Event::Closed(reason) => ("closed", reason.to_string()),
            Event::Member(change) => ("member", format!("{change:?}")),
        })
    }

    /// Ends the conversation: at once, or after what was taken is delivered.
    fn close(&self, py: Python<'_>, now: u64, abort: bool) -> PyResult<()> {
        let how = if abort { Close::Abort } else { Close::Graceful };
        self.state.at(py, now, |state, at| state.endpoint.close(at, how))
    }

    /// The engine's counters, by name.
    fn counters(&self, py: Python<'_>) -> Vec<(&'static str, u64)> {
        self.state.with(py, |state| {
            let mut counters = Vec::new();
            state.endpoint.counters(&mut |name, count| counters.push((name, count)));
            counters
        })
    }

    /// Congestion window, bytes in flight and smoothed round trip in seconds of a TCP connection.
    #[getter]
    fn window(&self, py: Python<'_>) -> Option<(u64, u64, Option<f64>)> {
        let figures = self.state.with(py, |state| state.endpoint.tcp_figures())?;
        let round_trip = figures.smoothed_round_trip.map(trunkline_core::Duration::as_secs_f64);
        Some((figures.congestion_window, figures.bytes_in_flight, round_trip))
    }
}

/// The ECN field of these two bits (RFC 3168 section 5).
pub(crate) fn ecn_of(bits: u8) -> PyResult<Ecn> {
    if bits > 3 {
        return Err(errors::bad_input("an ECN field is 0 (not capable), 1 (ECT(1)), 2 (ECT(0)) or 3 (CE)"));
    }
    Ok(Ecn::of_bits(bits))
}
