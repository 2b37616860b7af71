//! Runs a point in virtual time: owns the clock and the event queue, nothing else. Links, queues, endpoints and sources
//! are the same objects that the other drivers use; all results follow from the scenario and the seed.

mod conversation;
mod covered;
mod drops;
mod engine;
mod event;
mod events;
mod first_link;
mod guests;
mod hosts;
mod member;
mod network;
mod observed;
mod outlet;
mod places;
mod sockets;
mod telemetry;
mod transports;
mod tree;
mod watch;

use trunkline_core::Seed;
use trunkline_experiment::{Scenario, Supervisor};
use trunkline_metrics::{DriverOutcome, Recorder};

pub use guests::{GuestFailure, GuestPacket, Guests};

/// Why a point cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// A flow asks for what the simulator's version of its transport does not have.
    #[error("flow `{flow}` cannot be simulated: {reason}")]
    Flow {
        /// The flow's name.
        flow: String,
        /// What is missing, and what to write instead.
        reason: String,
    },
    /// There is nobody to run a host that is a kernel.
    #[error("host `{0}` is a kernel (`kernel`), which only `trunkline run --on sim` starts")]
    NoGuests(String),
    /// A custom source or loss model has no function, or its function has failed.
    #[error("{0}")]
    Custom(String),
}

/// Refuses custom sources and loss models without a function, and what has been drawn by one that has failed.
fn refuse_custom(scenario: &Scenario) -> Result<(), SimulationError> {
    scenario.custom_problem().map_or(Ok(()), |problem| Err(SimulationError::Custom(problem)))
}

/// Finds what [`run`] would refuse, without running it.
pub fn check(scenario: &Scenario) -> Result<(), SimulationError> {
    let scenario = &*scenario.singles();
    guests::check(scenario)?;
    refuse_custom(scenario)?;
    for (index, flow) in scenario.flows.iter().enumerate() {
        let refused = |reason| SimulationError::Flow { flow: flow.meta.name.clone(), reason };
        transports::check(scenario, index).map_err(refused)?;
    }
    Ok(())
}

/// Simulates `scenario` to the end of its drain time, or until `supervisor` says stop.
///
/// Every message of every flow is reported to `recorder` at its virtual time. A run told to stop returns what it has,
/// marked partial. What waits in the queues is told to a supervisor that wants to know.
pub fn run(
    scenario: &Scenario,
    seed: Seed,
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> Result<DriverOutcome, SimulationError> {
    // Only guests fail.
    run_with(scenario, seed, None, recorder, supervisor).map(|(outcome, _)| outcome)
}

/// As [`run`], with hosts that run outside the simulator. If one of them fails, the outcome is of the time until then, and
/// partial, and comes with the failure.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    scenario: &Scenario,
    seed: Seed,
    guests: Option<&mut dyn Guests>,
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> Result<(DriverOutcome, Option<GuestFailure>), SimulationError> {
    let singles = scenario.singles();
    refuse_custom(scenario)?;
    if let Some(host) = scenario.hosts.iter().find(|host| host.kernel.is_some() && guests.is_none()) {
        return Err(SimulationError::NoGuests(host.name.clone()));
    }
    let (outcome, failed) = engine::Engine::new(&singles, seed, guests)?.run(recorder, supervisor);
    refuse_custom(scenario)?;
    Ok((scenario.together(outcome), failed))
}
