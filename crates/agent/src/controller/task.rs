//! A repetition that is to be measured, and how long agents are waited for.

use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Point, Scenario};

use crate::controller::agents::{Host, PartKey};

/// An agent that is cut off, refuses connections, or cannot reach its far end is waited for so long: before a repetition, and
/// after the end of a part.
pub(crate) const RETURN: Duration = Duration::from_secs(30);
/// How long we wait before we try again to reach an agent.
pub(crate) const RETRY: Duration = Duration::from_millis(200);

/// What is to be measured.
pub(crate) struct Task<'t> {
    pub(crate) at: &'t PartKey,
    pub(crate) experiment: &'t Experiment,
    pub(crate) point: &'t Point,
    pub(crate) hosts: &'t [Host],
}

impl Task<'_> {
    /// The host with this index in the scenario.
    pub(crate) fn host(&self, scenario: &Scenario, index: usize) -> &Host {
        let name = &scenario.hosts[index].name;
        // All hosts with flows are there: the fleet was made for this experiment.
        self.hosts.iter().find(|host| host.name == *name).unwrap_or(&self.hosts[0])
    }

    /// The index of its agent.
    pub(crate) fn agent(&self, scenario: &Scenario, index: usize) -> usize {
        self.host(scenario, index).agent
    }
}
