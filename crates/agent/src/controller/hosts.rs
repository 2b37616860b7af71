//! The agents that an experiment names, and which flows run between which of them.

use std::collections::BTreeSet;

use trunkline_experiment::{Experiment, Scenario};

use crate::controller::error::FleetError;

/// The hosts of an experiment that flows run from or to, each with where its agent is; nothing if none has an agent, and
/// the experiment is to be measured within this machine.
///
/// # Errors
/// [`FleetError::Missing`] if some have an agent and some do not.
pub fn agents_of(experiment: &Experiment) -> Result<Vec<(String, String)>, FleetError> {
    let mut agents: BTreeSet<(String, String)> = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for scenario in experiment.points.iter().map(|point| point.scenario) {
        for index in used(&scenario) {
            let host = &scenario.hosts[index];
            match &host.agent {
                Some(agent) => _ = agents.insert((host.name.clone(), agent.clone())),
                None => _ = missing.insert(host.name.clone()),
            }
        }
    }
    match missing.is_empty() || agents.is_empty() {
        true => Ok(agents.into_iter().collect()),
        false => Err(FleetError::Missing { hosts: missing.into_iter().collect() }),
    }
}

/// The indices of the hosts that have flows.
fn used(scenario: &Scenario) -> BTreeSet<usize> {
    let flows = scenario.flows.iter();
    flows.flat_map(|flow| flow.to.iter().map(|sink| sink.host).chain([flow.from])).collect()
}

/// Flows from one host to one other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Their indices in the scenario.
    pub(crate) flows: Vec<usize>,
    pub(crate) near: usize,
    pub(crate) far: usize,
}

/// The pairs of hosts between which flows run, in the order of their first flows.
pub(crate) fn pairs(scenario: &Scenario) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        // Flows with several sinks are refused before.
        let Some(sink) = flow.to.first() else { continue };
        let (near, far) = (flow.from, sink.host);
        match pairs.iter_mut().find(|pair| (pair.near, pair.far) == (near, far)) {
            Some(pair) => pair.flows.push(index),
            None => pairs.push(Pair { flows: vec![index], near, far }),
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(hosts: &str) -> Experiment {
        let text = format!(
            "name = \"e\"\nduration = \"1 s\"\n{hosts}\n\
             [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
             [link.m]\nbetween = [\"b\", \"c\"]\nrate = \"1 Mbit/s\"\n\
             [flow.one]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\" }}\n\
             [flow.two]\nfrom = \"b\"\nto = \"a\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\" }}\n\
             [flow.three]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nsource = {{ kind = \"bulk\" }}\n"
        );
        Experiment::parse(&text, "e.toml", &()).unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn hosts_without_flows_need_no_agent() {
        let text = "[hosts]\na = { agent = \"10.0.0.1\" }\nb = { agent = \"10.0.0.2:99\" }\nc = {}";
        let agents = agents_of(&experiment(text)).unwrap();
        let expected = [("a", "10.0.0.1:4781"), ("b", "10.0.0.2:99")];
        assert_eq!(agents, expected.map(|(host, agent)| (host.to_owned(), agent.to_owned())));
        assert_eq!(agents_of(&experiment("[hosts]\na = {}\nb = {}\nc = {}")).unwrap(), []);
    }

    #[test]
    fn a_host_with_flows_and_no_agent_is_told() {
        let error =
            agents_of(&experiment("[hosts]\na = { agent = \"10.0.0.1\" }\nb = {}\nc = {}")).unwrap_err();
        assert!(matches!(&error, FleetError::Missing { hosts } if *hosts == ["b"]), "{error}");
        assert!(error.is_bad_input());
    }

    #[test]
    fn flows_are_in_one_pair_with_those_between_the_same_hosts() {
        let experiment = experiment("[hosts]\na = {}\nb = {}\nc = {}");
        let pairs = pairs(&experiment.points.first().scenario);
        let expected = [(vec![0, 2], 0, 1), (vec![1], 1, 0)];
        assert_eq!(pairs, expected.map(|(flows, near, far)| Pair { flows, near, far }));
    }
}
