//! What agents would refuse, and what their hosts cannot do, found before anything starts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use trunkline_control::RefusalKind;
use trunkline_control::facts::Facts;
use trunkline_core::{Duration, Rate};
use trunkline_experiment::{Answer, Scenario};
use trunkline_flows::{Carrier, FlowSpec};
use trunkline_io::tcp::StreamProtocol;

use crate::controller::agent::{Agent, resolved};
use crate::controller::agents::Host;
use crate::controller::error::FleetError;
use crate::controller::hosts::pairs;
use crate::demand::paced;

/// Finds what the agents of these hosts would refuse.
pub(crate) fn check(scenario: &Scenario, hosts: &[Host], agents: &[Agent]) -> Result<(), FleetError> {
    let host = |index: usize| {
        let name = &scenario.hosts[index].name;
        hosts.iter().find(|host| host.name == *name)
    };
    let mut asked: BTreeMap<usize, Asked> = BTreeMap::new();
    for pair in pairs(scenario) {
        let (Some(near), Some(far)) = (host(pair.near), host(pair.far)) else {
            let missing = [pair.near, pair.far].into_iter().filter(|index| host(*index).is_none());
            let names = missing.map(|index| scenario.hosts[index].name.clone()).collect();
            return Err(FleetError::Missing { hosts: names });
        };
        may_reach(&agents[near.agent], far)?;
        may_reach(&agents[far.agent], near)?;
        let back = sent_back(scenario, &pair.flows);
        for &index in &pair.flows {
            let flow = &scenario.flows[index];
            for end in [near, far] {
                has_feature(scenario, index, &agents[end.agent], end)?;
                asked.entry(end.agent).or_default().conversations += u64::from(flow.meta.members);
            }
            // What nothing but the network holds back, agents hold back themselves.
            let sent = paced(flow).unwrap_or_default();
            asked.entry(near.agent).or_default().add(sent);
        }
        asked.entry(far.agent).or_default().add(back.unwrap_or_default());
    }
    let length = scenario.duration + scenario.drain;
    asked.iter().try_for_each(|(agent, asked)| asked.fits(&agents[*agent], length))
}

/// What the far end of these flows sends back at most; `None` for as fast as the network takes.
pub(crate) fn sent_back(scenario: &Scenario, flows: &[usize]) -> Option<Rate> {
    let flows = flows.iter().map(|flow| &scenario.flows[*flow]);
    let answered = flows.filter(|flow| flow.reflect || flow.answer() != Answer::None);
    answered.map(paced).try_fold(Rate::default(), |sum, more| Some(plus(sum, more?)))
}

fn plus(a: Rate, b: Rate) -> Rate {
    Rate::from_bits_per_second(a.bits_per_second().saturating_add(b.bits_per_second()))
}

/// What a scenario asks of one agent.
#[derive(Default)]
struct Asked {
    conversations: u64,
    rate: Rate,
}

impl Asked {
    fn add(&mut self, rate: Rate) {
        self.rate = plus(self.rate, rate);
    }

    fn fits(&self, agent: &Agent, length: Duration) -> Result<(), FleetError> {
        let Some(Facts { limits, permissions, .. }) = &agent.facts else { return Ok(()) };
        let refuse =
            |why: String| FleetError::Refused { agent: agent.name.clone(), why, kind: RefusalKind::Limit };
        if let Some(most) = limits.duration.filter(|most| length > *most) {
            return Err(refuse(format!(
                "a repetition takes {length} with its drain time, but its owner allows {most}"
            )));
        }
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        if let Some(most) = least(limits.flows, permissions.flows).filter(|most| self.conversations > *most) {
            return Err(refuse(format!(
                "the experiment has {} conversations on this host, but its owner allows {most}",
                self.conversations
            )));
        }
        let bits = |rate: &Option<Rate>| rate.map(Rate::bits_per_second);
        let most = least(bits(&limits.rate), bits(&permissions.rate));
        if let Some(most) = most.filter(|most| self.rate.bits_per_second() > *most) {
            return Err(refuse(format!(
                "the experiment sends {} from this host, but its owner allows {}",
                self.rate,
                Rate::from_bits_per_second(most)
            )));
        }
        Ok(())
    }
}

/// Whether the owner lets an agent exchange messages with a host.
fn may_reach(agent: &Agent, other: &Host) -> Result<(), FleetError> {
    let permitted = agent.facts.as_ref().and_then(|facts| facts.permissions.to.as_ref());
    let Some(permitted) = permitted else { return Ok(()) };
    // A name that stands for nothing here may stand for something there: the agent decides.
    let Some(to) = resolved(&other.address).first().map(std::net::SocketAddr::ip) else { return Ok(()) };
    match permitted.iter().any(|network| contains(network, to)) {
        true => Ok(()),
        false => Err(FleetError::Refused {
            agent: agent.name.clone(),
            why: format!(
                "its owner does not allow this controller to exchange messages between it and {to} (host \
                `{}`); allowed are {}; to allow it, the owner adds the address to `to` in \
                 [controller.NAME] of the agent's configuration, with this controller's name there",
                other.name,
                permitted.join(", ")
            ),
            kind: RefusalKind::Permission,
        }),
    }
}

/// Whether an address is in a network, written `10.0.0.0/8`, or is the one written.
fn contains(network: &str, address: IpAddr) -> bool {
    let (base, length) =
        network.split_once('/').map_or((network, None), |(base, length)| (base, Some(length)));
    let Ok(base) = base.trim().parse::<IpAddr>() else { return false };
    let bits = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let ((base, width), (address, other_width)) = (bits(base), bits(address));
    let length = match length.map(|length| length.trim().parse::<u32>()) {
        None => width,
        Some(Ok(length)) if length <= width => length,
        Some(_) => return false,
    };
    let mask = if length == 0 { 0 } else { u128::MAX << (128 - length) };
    width == other_width && base & mask == address & mask
}

/// Whether a host can do what a flow needs beside UDP and TCP.
fn has_feature(scenario: &Scenario, index: usize, agent: &Agent, host: &Host) -> Result<(), FleetError> {
    let flow = &scenario.flows[index];
    let Some(facts) = &agent.facts else { return Ok(()) };
    let (feature, what) = match trunkline_live::kernel_stream(&flow.transport) {
        Some((StreamProtocol::Tcp, _)) => return Ok(()),
        Some((StreamProtocol::Mptcp, _)) => ("mptcp", "the kernel's MPTCP"),
        Some((StreamProtocol::Sctp, _)) => ("sctp", "the kernel's SCTP"),
        None => match carrier(scenario, index) {
            Some(Carrier::UdpLite { .. }) => ("udp-lite", "the kernel's UDP-Lite"),
            Some(Carrier::Ip { .. }) => ("raw", "raw IP sockets, for which the agent needs the capability"),
            Some(Carrier::Udp) | None => return Ok(()),
        },
    };
    match facts.features.contains(feature) {
        true => Ok(()),
        false => Err(FleetError::Flow {
            flow: flow.meta.name.clone(),
            reason: format!(
                "it needs {what}, which host `{}` (agent `{}`, {}) does not have",
                host.name, agent.name, facts.kernel
            ),
        }),
    }
}

/// What carries a flow over engines of ours.
fn carrier(scenario: &Scenario, index: usize) -> Option<Carrier> {
    let localhost = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let spec = FlowSpec::of(scenario, index).over_sockets([localhost; 2]).ok()?;
    Some(spec.carrier())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_its_messages_and_40_bytes_for_each() {
        let text = "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
            rate = \"1 Mbit/s\"\n[flow.call]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
            source = { kind = \"voice\", samples = 160 }\n";
        let experiment = trunkline_experiment::Experiment::parse(text, "x.toml", &()).unwrap();
        let flow = &experiment.points.first().scenario.flows[0];
        assert_eq!(paced(flow), Some(Rate::from_bits_per_second((160 + 40) * 8 * 50)));
    }

    #[test]
    fn addresses_are_in_their_networks() {
        let is_in = |network, address: &str| contains(network, address.parse().unwrap());
        assert!(is_in("10.0.0.0/8", "10.200.3.4") && !is_in("10.0.0.0/8", "11.0.0.1"));
        assert!(is_in("192.0.2.7", "192.0.2.7") && !is_in("192.0.2.7", "192.0.2.8"));
        assert!(is_in("0.0.0.0/0", "8.8.8.8") && !is_in("0.0.0.0/0", "::1"));
        assert!(is_in("fd00::/8", "fd12::1") && !is_in("fd00::/8", "fe80::1"));
        assert!(is_in("10.0.0.0/8", "::ffff:10.1.2.3"), "mapped addresses are those of IPv4");
        for wrong in ["", "x/8", "10.0.0.0/33", "10.0.0.0/x"] {
            assert!(!is_in(wrong, "10.0.0.1"), "{wrong}");
        }
    }
}
