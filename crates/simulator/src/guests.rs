//! Hosts that run outside the simulator: real kernels that follow the simulation's clock, and whose packets cross its links.

use trunkline_core::{Packet, Port, Time};
use trunkline_experiment::{PathStep, Scenario};

use crate::SimulationError;

/// Hosts that run outside the simulator.
///
/// They run in lock-step with the simulation: [`run`](Self::run) is called when a guest is the next that has something to
/// do, and returns when all guests wait.
pub trait Guests {
    /// When a guest next has something to do.
    fn next_event(&self) -> Option<Time>;

    /// Lets the guests do what is due at `now`. Nothing else happens before `until`, so that a guest may go on until then,
    /// if it cannot be reached any earlier by what it sends. Pushes the packets that it sends.
    ///
    /// # Errors
    /// If a guest fails.
    fn run(&mut self, now: Time, until: Time, sent: &mut Vec<GuestPacket>) -> Result<(), GuestFailure>;

    /// True for a guest.
    fn is_guest(&self, host: usize) -> bool;

    /// Gives a packet to a guest, at the port of a link at which it stands.
    ///
    /// # Errors
    /// If the guest fails.
    fn receive(&mut self, now: Time, link: usize, port: Port, packet: Packet) -> Result<(), GuestFailure>;

    /// The next link for a packet of a guest at a host that is not one; `None` if there is no route.
    fn forward(&self, host: usize, packet: &Packet) -> Option<PathStep>;
}

/// A packet of a guest: bytes of the network layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPacket {
    /// When it was sent.
    pub at: Time,
    /// The link that it enters.
    pub step: PathStep,
    /// The packet. Its flow is a number among those of the guests.
    pub packet: Packet,
}

/// Why a guest cannot go on: a sentence that names its host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GuestFailure(pub String);

/// Finds flows at hosts that are kernels.
pub(crate) fn check(scenario: &Scenario) -> Result<(), SimulationError> {
    for flow in &scenario.flows {
        let ends = flow.to.iter().map(|sink| sink.host).chain([flow.from]);
        let kernel = ends.map(|host| &scenario.hosts[host]).find(|host| host.kernel.is_some());
        if let Some(host) = kernel {
            let reason = format!(
                "host `{}` is a kernel, on which programs run (`run`), not flows; let the flow begin and end at other hosts",
                host.name
            );
            return Err(SimulationError::Flow { flow: flow.meta.name.clone(), reason });
        }
    }
    Ok(())
}
