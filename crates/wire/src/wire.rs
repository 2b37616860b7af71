//! A running wire: its ground, and a relay for every link.

use trunkline_core::Seed;
use trunkline_experiment::Scenario;

use crate::WireError;
use crate::ground::{Access, Devices, Ground, GroundOptions, Namespace};
use crate::plan::Plan;

/// What a wire is to be.
#[derive(Clone, Debug)]
pub struct WireOptions {
    /// What is made in the kernel.
    pub ground: GroundOptions,
    /// From where the links' random streams are derived.
    pub seed: Seed,
    /// Whether relays spin instead of sleeping: the most exact times, and a core of its own for every link.
    pub spin: bool,
}

/// Links that run. Ends, and leaves nothing behind, when it is dropped.
pub struct Wire {
    devices: Devices,
    plan: Plan,
    ground: Ground,
}

impl Wire {
    /// Makes the hosts and joins them by the links of the scenario, which begin to run.
    ///
    /// # Errors
    /// If the scenario cannot be put on a wire, or the system refuses something; nothing of it remains then.
    pub fn up(scenario: &Scenario, access: &Access, options: &WireOptions) -> Result<Wire, WireError> {
        let plan = Plan::new(scenario)?;
        let (ground, devices) = Ground::build(&plan, access, &options.ground)?;
        Ok(Wire { devices, plan, ground })
    }

    /// What was made.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What it stands on.
    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// The host of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn host(&self, name: &str) -> Result<&Namespace, WireError> {
        self.plan.host(name).map(|host| &self.ground.hosts()[host]).ok_or_else(|| WireError::UnknownHost {
            name: name.to_owned(),
            known: self.plan.hosts.iter().map(|host| host.name.clone()).collect(),
        })
    }

    /// Ends it.
    pub fn down(self) {
        drop(self.devices);
    }
}
