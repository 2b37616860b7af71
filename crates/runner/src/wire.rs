//! A repetition on a wire: the hosts of the file as namespaces of this machine, its links as relays between them, and its
//! flows over real sockets.

use std::collections::BTreeSet;

use trunkline_experiment::{Experiment, Framing, Scenario, TcpEngine, Transport};
use trunkline_live::LiveOptions;
use trunkline_wire::{Plan, WireError};

use crate::schedule::RunnerError;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::WireMeans;
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::run;
#[cfg(target_os = "linux")]
pub use linux::WireMeans;
#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

/// Refuses what cannot be on a wire, on any machine.
///
/// # Errors
/// With the first such thing.
pub fn refuse_unwired(scenario: &Scenario) -> Result<(), RunnerError> {
    trunkline_live::refuse_simulated(&on_sockets(scenario))?;
    Plan::new(scenario).map_err(WireError::from)?;
    Ok(())
}

/// Finds what this machine would refuse as well.
pub(crate) fn check(scenario: &Scenario, live: &LiveOptions) -> Result<(), RunnerError> {
    refuse_unwired(scenario)?;
    // Hosts have addresses and ports of their own there.
    let anywhere = LiveOptions::new(live.far_end.clone());
    Ok(trunkline_live::check(&on_sockets(scenario), &anywhere)?)
}

/// The scenario with what only the simulator has replaced by what stands in for it between real sockets.
fn on_sockets(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        flow.framing = Framing::Header;
        if let Transport::Tcp(options) = &mut flow.transport {
            options.engine = TcpEngine::Modern;
        }
    }
    scenario
}

/// What [`on_sockets`] replaces, and what sockets do not say, in sentences.
pub(crate) fn changes(experiment: &Experiment) -> BTreeSet<String> {
    let mut notes = BTreeSet::new();
    for flow in experiment.points.iter().flat_map(|point| &point.scenario.flows) {
        let name = &flow.meta.name;
        if flow.framing == Framing::None {
            notes.insert(format!(
                "flow `{name}`: on the wire messages carry a header of 40 bytes, by which they are measured"
            ));
        }
        if matches!(&flow.transport, Transport::Tcp(options) if options.engine != TcpEngine::Modern) {
            notes.insert(format!(
                "flow `{name}`: on the wire the kernel's TCP stands in for `engine = \"classic\"`"
            ));
        }
        if flow.priority != 0 {
            notes.insert(format!(
                "flow `{name}`: on the wire its `priority` does not reach the links, since the kernel's packets have none"
            ));
        }
    }
    notes
}
