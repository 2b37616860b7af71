//! A repetition on a wire: the hosts of the file as namespaces of this machine, its links as relays between them, and its
//! flows over real sockets.

use std::collections::BTreeSet;

use trunkline_experiment::{Experiment, Framing, Scenario, TcpEngine, Transport};
use trunkline_live::LiveOptions;

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

/// Finds what real sockets, or a wire, would refuse.
pub(crate) fn check(scenario: &Scenario, live: &LiveOptions) -> Result<(), crate::RunnerError> {
    let loopback = LiveOptions::new(live.far_end.clone());
    trunkline_live::check(&on_sockets(scenario), &loopback)?;
    trunkline_wire::Plan::new(scenario).map_err(trunkline_wire::WireError::from)?;
    Ok(())
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

/// What [`on_sockets`] replaces, in sentences.
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
    }
    notes
}
