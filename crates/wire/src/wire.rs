//! A running wire: its ground, and a relay for every link.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Files, Scenario};
use trunkline_io::MonotonicClock;
use trunkline_io::process::pin_to_core;

use crate::WireError;
use crate::capture::{CapturedLink, Captures};
use crate::control::{ControlServer, ControlledLink, Controller, Drive};
use crate::device::{Device, Layer};
use crate::dropped::{Drops, OnDrop};
use crate::ground::{Access, DeviceKind, Ground, GroundOptions, Namespace};
use crate::plan::Plan;
use crate::relay::{self, CoreConfig, RelayCounters, RelayHandle, RelayOptions, Stations};

/// What a wire is to be.
#[derive(Clone, Debug)]
pub struct WireOptions {
    /// What is made in the kernel.
    pub ground: GroundOptions,
    /// From where the links' random streams are derived.
    pub seed: Seed,
    /// How long before something is due relays stop sleeping, see [`RelayOptions::spin`].
    pub spin: Duration,
    /// The cores on which relays run, in turn; on any if there are none.
    pub cores: Vec<usize>,
}

/// Links that run. Ends, and leaves nothing behind, when it is dropped.
pub struct Wire {
    // Those who look at the relays end before them, and they before what they stand on.
    control: Option<ControlServer>,
    captures: Option<Arc<Captures>>,
    relays: Vec<Arc<RelayHandle>>,
    clock: MonotonicClock,
    layer: Layer,
    seed: Seed,
    plan: Plan,
    ground: Ground,
}

/// How a wire went.
#[derive(Debug)]
pub struct WireEnd {
    /// By link: what it has counted, or what ended it before.
    pub links: Vec<io::Result<RelayCounters>>,
    /// Why the capture is not complete, if there was one and it is not: one sentence.
    pub capture_failure: Option<String>,
}

impl Wire {
    /// Makes the hosts and joins them by the links of the scenario, which begin to run.
    ///
    /// # Errors
    /// If the scenario cannot be put on a wire, or the system refuses something; nothing of it remains then.
    pub fn up(scenario: &Scenario, access: &Access, options: &WireOptions) -> Result<Wire, WireError> {
        let plan = Plan::new(scenario)?;
        options.cores.iter().try_for_each(|core| usable(*core))?;
        let outside = plan.hosts.len().checked_sub(1).filter(|_| options.ground.outside);
        let plan = match outside {
            Some(host) => plan.with_way_out(host),
            None => plan,
        };
        let (ground, devices) = Ground::build(&plan, access, &options.ground)?;
        let clock = MonotonicClock::starting_now();
        let layer = match options.ground.devices {
            DeviceKind::Tun => Layer::Ip,
            DeviceKind::Ring => Layer::Ethernet,
        };
        let start = |(link, (medium, devices)): (usize, (_, Vec<Box<dyn Device>>))| {
            let name = &plan.links[link].name;
            let mtus = plan.links[link].stations.iter().map(|station| station.mtu).collect();
            let config = CoreConfig { medium, layer, stations: Stations::of(&plan, link, layer), mtus };
            let core = options.cores.get(link % options.cores.len().max(1)).copied();
            let options = RelayOptions { clock, spin: options.spin, core };
            relay::start(name, config, devices, options)
                .map(Arc::new)
                .map_err(WireError::system(format!("starting the relay of link `{name}`")))
        };
        let media = scenario.build_links(options.seed).into_iter().zip(devices);
        let relays = media.enumerate().map(start).collect::<Result<_, _>>()?;
        Ok(Wire { control: None, captures: None, relays, clock, layer, seed: options.seed, plan, ground })
    }

    /// Writes from now on what crosses the ends of links into files of a folder, which is made.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn capture(&mut self, folder: &Path) -> Result<(), WireError> {
        let link = |link: usize| CapturedLink {
            name: self.plan.links[link].name.clone(),
            hosts: self.station_names(link),
            layer: self.layer,
        };
        let links: Vec<CapturedLink> = (0..self.plan.links.len()).map(link).collect();
        let captures = Captures::start(folder, &links, self.clock)?;
        for (link, relay) in self.relays.iter().enumerate() {
            // One that has ended has nothing to show.
            let _ = relay.capture(Some(captures.of_link(link)));
        }
        self.captures = Some(Arc::new(captures));
        Ok(())
    }

    /// Shows the datagrams that links drop from now on, in place of a [capture](Self::capture).
    pub fn watch_drops(&self, on_drop: &OnDrop) {
        for relay in &self.relays {
            // One that has ended drops nothing.
            let _ = relay.capture(Some(Box::new(Drops { layer: self.layer, on_drop: Arc::clone(on_drop) })));
        }
    }

    /// Lets others ask for counters and change links, at the socket of the wire. `experiment` is that of the scenario, its
    /// first point; `files` reads what it names.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn listen(
        &mut self,
        experiment: Experiment,
        files: Box<dyn Files + Send + Sync>,
    ) -> Result<(), WireError> {
        let link = |(link, relay): (usize, &Arc<RelayHandle>)| ControlledLink {
            name: self.plan.links[link].name.clone(),
            stations: self.station_names(link),
            drive: Arc::clone(relay) as Arc<dyn Drive>,
        };
        let links = self.relays.iter().enumerate().map(link).collect();
        let controller = Controller::new(self.ground.name(), experiment, files, self.seed, links);
        let controller = match &self.captures {
            Some(captures) => controller.with_captures(Arc::clone(captures)),
            None => controller,
        };
        self.control = Some(ControlServer::start(&self.ground.socket(), Arc::new(controller))?);
        Ok(())
    }

    /// Why the hosts reach nothing beyond this machine, if it is the last host and they do not.
    pub fn way_out_failure(&self) -> Option<&io::Error> {
        self.ground.way_out_failure()
    }

    /// What was made.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The relays of the links, in the file's order.
    pub fn relays(&self) -> &[Arc<RelayHandle>] {
        &self.relays
    }

    /// The clock of all links.
    pub fn clock(&self) -> MonotonicClock {
        self.clock
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

    /// The hosts, in the file's order.
    pub fn hosts(&self) -> &[Namespace] {
        self.ground.hosts()
    }

    /// Ends it, and says how it went.
    pub fn down(mut self) -> WireEnd {
        drop(self.control.take());
        let links = self.relays.iter().map(|relay| relay.stop()).collect();
        let capture_failure = self.captures.take().and_then(|captures| captures.finish().err());
        WireEnd { links, capture_failure }
    }

    fn station_names(&self, link: usize) -> Vec<String> {
        let stations = self.plan.links[link].stations.iter();
        stations.map(|station| self.plan.hosts[station.host].name.clone()).collect()
    }
}

/// Whether a relay could run on that core.
fn usable(core: usize) -> Result<(), WireError> {
    let pinned = thread::scope(|scope| scope.spawn(|| pin_to_core(core).is_ok()).join());
    if pinned.unwrap_or(false) { Ok(()) } else { Err(WireError::Core(core)) }
}
