//! A part of a run that is spread over hosts: its two ends live in different daemons, which talk over a connection, and
//! somebody else says when it begins.
//!
//! The near end is [`run_near`](crate::run_near), the far end [`serve_far`](crate::far_end::serve_far); what connects them is a
//! [`Channel`](crate::Channel), the frames of a TLS connection between the two hosts. Their clocks are different ones: they are related by
//! exchanges over the channel, before and during the run, and what the far end observes is brought to the near end's
//! clock with a bound that holds however unequal the ways are ([`FlowOutcome::clock_error`]). Times in the near end's
//! records count from the moment that [`Gate::begin`] gives.
//!
//! [`FlowOutcome::clock_error`]: trunkline_metrics::FlowOutcome::clock_error

use std::net::IpAddr;
use std::sync::Arc;

use trunkline_core::{Bytes, Rate, Seed};
use trunkline_experiment::Scenario;

use crate::ceiling::{Ceiling, Limited};
use crate::options::LiveOptions;
use crate::protocol::FlowTerms;

/// The near end of a part: what is sent from this host to one other.
#[derive(Clone, Copy)]
pub struct NearPart<'p> {
    /// The flows of this part and no others. Members keep the ids that they have in the whole experiment, see
    /// [`only`].
    pub scenario: &'p Scenario,
    /// From which the sources draw.
    pub seed: Seed,
    /// How it is measured: [`FarEnd::Channel`](crate::FarEnd::Channel) says how the far end is reached, `address` is that
    /// of the far end's sockets and `near_address` that of ours: those of the two ends of the connection.
    pub options: &'p LiveOptions,
    /// Who says when it begins.
    pub gate: &'p dyn Gate,
}

/// What holds the parts of a run together. Its methods are called from the thread that called [`run_near`](crate::run_near) and from one
/// beside it.
pub trait Gate: Sync {
    /// All is open and connected, and the clocks are related: the part can begin.
    fn ready(&self);

    /// Waits until it is said when the part begins: that moment as a value of this host's raw monotonic clock
    /// ([`trunkline_io::clock::raw_now`]), which should be half a second ahead. `None` if it does not begin at all.
    fn begin(&self) -> Option<u64>;

    /// The sources with which the sending ends (`until`) are over, and they were in this part. Told once.
    fn sources_over(&self);

    /// Whether the sending is to end because they are over elsewhere. Asked many times a second.
    fn end_sending(&self) -> bool;
}

/// What the far end grants whoever has opened the session.
#[derive(Clone, Debug)]
pub struct FarLimits {
    /// Nobody else is answered: the address from which the session's connection came, which is proved by that. What the
    /// near end says of its address does not count.
    pub peer: IpAddr,
    /// Where the sockets are opened: the address of this host to which the connection came.
    pub address: IpAddr,
    /// How many conversations at most.
    pub members: u32,
    /// The most that the engines of all conversations hold in buffers.
    pub buffers: Bytes,
    /// What is sent back to flows with a pace of their own; `None` for whatever they bring.
    pub rate: Option<Rate>,
    /// What is sent back to the others waits for all of these; without any it counts as the rest.
    pub ceilings: Vec<Arc<Ceiling>>,
}

impl FarLimits {
    /// Replies to the flows of a session, first those without a pace of their own.
    pub(crate) fn replies(&self, flows: &[FlowTerms]) -> [Limited; 2] {
        let waits = |flow: &usize| flows[*flow].is_greedy && !self.ceilings.is_empty();
        let (greedy, others) = (0..flows.len()).partition(waits);
        let lenient = self.rate.map(|rate| Arc::new(Ceiling::lenient(rate)));
        [Limited::new(greedy, self.ceilings.clone()), Limited::new(others, lenient.into_iter().collect())]
    }
}

/// A scenario without its other flows. Members keep their ids, and what the flow with which the sending ends is, stays
/// known if it is among them.
pub fn only(scenario: &Scenario, flows: &[usize]) -> Scenario {
    Scenario {
        flows: flows.iter().map(|flow| scenario.flows[*flow].clone()).collect(),
        until: scenario.until.and_then(|until| flows.iter().position(|flow| *flow == until)),
        ..scenario.clone()
    }
}
