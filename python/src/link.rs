//! A link by itself: its media, queues, losses and other impairments, driven in virtual time.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trunkline_core::{Bytes, Destination, FlowId, Packet, PacketId, Port, Seed, Time};
use trunkline_network::{Fate, Medium, Outcome};

use crate::endpoint::ecn_of;
use crate::errors;
use crate::parts::World;
use crate::timed::Timed;

/// A packet's arrival: time, number, end at which it comes out, bytes, size, flow, ECN field.
type Arrival<'p> = (u64, u64, u16, Bound<'p, PyBytes>, u64, u32, u8);
/// A dropped packet: time, number, cause.
type Dropped = (u64, u64, &'static str);

/// A link between two hosts. All times are nanoseconds, and never decrease.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Link {
    state: Timed<State>,
}

struct State {
    medium: Box<dyn Medium>,
    out: Outcome,
}

impl Link {
    /// Does something at a time, and returns what has become of packets by it.
    fn at<'p>(
        &self,
        py: Python<'p>,
        now: u64,
        act: impl FnOnce(&mut State, Time),
    ) -> PyResult<(Vec<Arrival<'p>>, Vec<Dropped>)> {
        let (deliveries, fates) = self.state.at(py, now, |state, at| {
            act(state, at);
            state.out.carried.clear();
            (std::mem::take(&mut state.out.deliveries), std::mem::take(&mut state.out.fates.0))
        })?;
        let arrival = |delivery: trunkline_network::Delivery| {
            let Packet { id, size, flow, ecn, bytes, .. } = delivery.packet;
            let bytes = PyBytes::new(py, &bytes);
            (delivery.at.as_nanos(), id.0, delivery.to.0, bytes, size.0, flow.0, ecn.bits())
        };
        let dropped = |fate| match fate {
            Fate::Dropped { at, packet, cause } => Some((at.as_nanos(), packet.id.0, cause.name())),
            Fate::Marked { .. } => None,
        };
        Ok((deliveries.into_iter().map(arrival).collect(), fates.into_iter().filter_map(dropped).collect()))
    }
}

#[pymethods]
impl Link {
    /// The link that a table `[link.NAME]` of an experiment file describes; `written` are its keys.
    #[new]
    fn new(written: &str, seed: u64) -> PyResult<Link> {
        let read = World { link: written, ..World::new("<link>") }.read()?;
        let medium = read.points.first().scenario.build_links(Seed::new(seed, 0)).swap_remove(0);
        Ok(Link { state: Timed::new(State { medium, out: Outcome::default() }) })
    }

    /// Accepts a packet at an end, 0 or 1, after all that is due.
    #[expect(clippy::too_many_arguments, reason = "the fields of a packet")]
    fn offer<'p>(
        &self,
        py: Python<'p>,
        now: u64,
        id: u64,
        size: u64,
        end: u16,
        packet: &[u8],
        flow: u32,
        ecn: u8,
    ) -> PyResult<(Vec<Arrival<'p>>, Vec<Dropped>)> {
        if end > 1 {
            return Err(errors::bad_input(format_args!("a link has the ends 0 and 1, and no {end}")));
        }
        let packet = Packet {
            id: PacketId(id),
            flow: FlowId(flow),
            size: Bytes(size),
            ecn: ecn_of(ecn)?,
            backward: end == 1,
            to: Destination::Port(Port(1 - end)),
            bytes: packet.to_vec(),
            ..Packet::default()
        };
        self.at(py, now, |state, at| state.medium.offer(at, Port(end), packet, &mut state.out))
    }

    /// Does everything that is due.
    fn advance<'p>(&self, py: Python<'p>, now: u64) -> PyResult<(Vec<Arrival<'p>>, Vec<Dropped>)> {
        self.at(py, now, |state, at| state.medium.advance(at, &mut state.out))
    }

    /// The time at which `advance` has something to do next, if nothing is offered until then.
    #[getter]
    fn next_event(&self, py: Python<'_>) -> Option<u64> {
        self.state.with(py, |state| state.medium.next_event()).map(Time::as_nanos)
    }

    /// Packets and bytes that wait at an end.
    fn backlog(&self, py: Python<'_>, end: u16) -> PyResult<(u64, u64)> {
        if end > 1 {
            return Err(errors::bad_input(format_args!("a link has the ends 0 and 1, and no {end}")));
        }
        let backlog = self.state.with(py, |state| state.medium.backlog(Port(end)));
        Ok((backlog.packets, backlog.bytes.0))
    }
}
