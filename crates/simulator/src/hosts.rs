//! The hosts of a scenario, with what they cost messages and packets.

use trunkline_core::{Seed, Time};
use trunkline_experiment::Scenario;
use trunkline_network::host::{Costs, HostModel};

/// The hosts of a scenario.
pub(crate) struct Hosts {
    models: Vec<HostModel>,
    /// By host, whose model is its.
    processors: Vec<usize>,
    /// True if any of them costs anything.
    cost: bool,
    /// Whether the clock of any of them goes in steps.
    in_steps: bool,
}

impl Hosts {
    pub(crate) fn new(scenario: &Scenario, seed: Seed) -> Hosts {
        let host = |host: &trunkline_experiment::Host| {
            HostModel::new(&host.values, &format!("hosts.{}", host.name), seed)
        };
        let models: Vec<HostModel> = scenario.hosts.iter().map(host).collect();
        let any = |has: fn(Costs) -> bool| models.iter().any(|host| has(host.costs()));
        let cost = any(|costs| costs != Costs::default());
        let in_steps = any(|costs| costs.clock);
        let processors = scenario.hosts.iter().map(|host| host.processor).collect();
        Hosts { models, processors, cost, in_steps }
    }

    pub(crate) fn get(&mut self, host: usize) -> &mut HostModel {
        &mut self.models[self.processors[host]]
    }

    /// True if any host costs anything. Where none does, there is nothing to look up.
    #[inline]
    pub(crate) fn cost(&self) -> bool {
        self.cost
    }

    #[inline]
    fn costly(&mut self, host: u16) -> Option<&mut HostModel> {
        if self.cost { Some(self.get(usize::from(host))) } else { None }
    }

    /// The host if packets wait for its processor before they leave.
    #[inline]
    pub(crate) fn slow_sender(&mut self, host: u16) -> Option<&mut HostModel> {
        self.costly(host).filter(|host| host.costs().send_packet)
    }

    /// The host if packets wait for its interface before its processor gets them.
    #[inline]
    pub(crate) fn slow_interface(&mut self, host: u16) -> Option<&mut HostModel> {
        self.costly(host).filter(|host| host.costs().interface)
    }

    /// When a message that is here now was sent if it was under way as long as the clocks of the two hosts say.
    #[inline]
    pub(crate) fn measured(&mut self, [from, to]: [usize; 2], sent: Time, now: Time) -> Time {
        if !self.in_steps {
            return sent;
        }
        let took = self.get(to).clock(now).since(self.get(from).clock(sent));
        Time::ZERO + now.since(Time::ZERO).saturating_sub(took)
    }

    /// The host if packets wait for its processor after they have arrived.
    #[inline]
    pub(crate) fn slow_receiver(&mut self, host: u16) -> Option<&mut HostModel> {
        self.costly(host).filter(|host| host.costs().receive_packet)
    }

    /// The host if messages wait for its processor before their application has them.
    #[inline]
    pub(crate) fn slow_reader(&mut self, host: u16) -> Option<&mut HostModel> {
        self.costly(host).filter(|host| host.costs().receive_message)
    }

    /// The host if it takes time to hand messages over, or does so in pieces.
    #[inline]
    pub(crate) fn slow_writer(&mut self, host: u16) -> Option<&mut HostModel> {
        self.costly(host).filter(|host| host.costs().send_message)
    }
}
