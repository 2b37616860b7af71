//! The hosts of a scenario, with what they cost messages and packets.

use trunkline_core::{Seed, Time};
use trunkline_experiment::Scenario;
use trunkline_network::host::HostModel;

/// The hosts of a scenario.
pub(crate) struct Hosts {
    models: Vec<HostModel>,
    /// By host, whose model is its.
    processors: Vec<usize>,
    /// Whether the clock of any of them goes in steps.
    in_steps: bool,
}

impl Hosts {
    pub(crate) fn new(scenario: &Scenario, seed: Seed) -> Hosts {
        let host = |host: &trunkline_experiment::Host| {
            HostModel::new(&host.values, &format!("hosts.{}", host.name), seed)
        };
        let models: Vec<HostModel> = scenario.hosts.iter().map(host).collect();
        let in_steps = models.iter().any(|host| host.costs().clock);
        Hosts { models, processors: scenario.hosts.iter().map(|host| host.processor).collect(), in_steps }
    }

    pub(crate) fn get(&mut self, host: usize) -> &mut HostModel {
        &mut self.models[self.processors[host]]
    }

    /// The host if packets wait for its processor before they leave.
    pub(crate) fn slow_sender(&mut self, host: u16) -> Option<&mut HostModel> {
        Some(self.get(usize::from(host))).filter(|host| host.costs().send_packet)
    }

    /// The host if packets wait for its interface before its processor gets them.
    pub(crate) fn slow_interface(&mut self, host: u16) -> Option<&mut HostModel> {
        Some(self.get(usize::from(host))).filter(|host| host.costs().interface)
    }

    /// When a message that is here now was sent if it was under way as long as the clocks of the two hosts say.
    pub(crate) fn measured(&mut self, [from, to]: [usize; 2], sent: Time, now: Time) -> Time {
        if !self.in_steps {
            return sent;
        }
        let took = self.get(to).clock(now).since(self.get(from).clock(sent));
        Time::ZERO + now.since(Time::ZERO).saturating_sub(took)
    }

    /// The host if packets wait for its processor after they have arrived.
    pub(crate) fn slow_receiver(&mut self, host: u16) -> Option<&mut HostModel> {
        Some(self.get(usize::from(host))).filter(|host| host.costs().receive_packet)
    }

    /// The host if messages wait for its processor before their application has them.
    pub(crate) fn slow_reader(&mut self, host: u16) -> Option<&mut HostModel> {
        Some(self.get(usize::from(host))).filter(|host| host.costs().receive_message)
    }

    /// The host if it takes time to hand messages over, or does so in pieces.
    pub(crate) fn slow_writer(&mut self, host: u16) -> Option<&mut HostModel> {
        Some(self.get(usize::from(host))).filter(|host| host.costs().send_message)
    }
}
