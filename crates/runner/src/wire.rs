//! A repetition on a wire: the hosts of the file as namespaces of this machine, its links as relays between them, and its
//! flows over real sockets.

use std::collections::BTreeSet;

use trunkline_core::schema::Value;
use trunkline_experiment::{Flow, Framing, Scenario, Transport};
use trunkline_live::{LiveError, LiveOptions};
use trunkline_transport::kind::{Sockets, StreamProtocol};
use trunkline_wire::{Plan, WireError};

use crate::error::RunnerError;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::run;
#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(target_os = "linux")]
mod drops;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

/// Refuses what cannot be on a wire, on any machine.
///
/// # Errors
/// With the first such thing.
pub(crate) fn refuse_unwired(scenario: &Scenario) -> Result<(), RunnerError> {
    trunkline_live::refuse_simulated(&on_sockets(scenario))?;
    for flow in &scenario.flows {
        if let Some(reason) = scenario.unlinked(flow) {
            return Err(LiveError::Flow { flow: flow.meta.name.clone(), reason }.into());
        }
    }
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
        if flow.framing == Framing::None {
            flow.framing = Framing::Within;
        }
    }
    scenario
}

/// By how much messages and answers are larger than asked for, in sentences.
pub(crate) fn sizes(scenario: &Scenario, on_sockets: bool) -> BTreeSet<String> {
    let of_flow = |flow: &Flow| [flow.larger(on_sockets), flow.larger_answers(on_sockets)];
    scenario.flows.iter().flat_map(of_flow).flatten().collect()
}

/// Differences between the simulator's transports and those on real sockets, flow by flow, in sentences.
pub(crate) fn differences(scenario: &Scenario) -> BTreeSet<String> {
    let of_flow = |flow: &Flow| {
        let name = flow.meta.name.clone();
        flow.transport.differences().into_iter().map(move |what| format!("flow `{name}`: {what}"))
    };
    scenario.flows.iter().flat_map(of_flow).collect()
}

/// The flows whose congestion control is this kernel's default and not the simulator's, in sentences. Agents have kernels of
/// their own.
pub(crate) fn congestion_controls(scenario: &Scenario) -> BTreeSet<String> {
    let kernels = trunkline_io::tcp::default_congestion_control();
    kernels.map_or_else(BTreeSet::new, |kernels| other_controls(scenario, &kernels))
}

fn other_controls(scenario: &Scenario, kernels: &str) -> BTreeSet<String> {
    let here = scenario.flows.iter().filter(|flow| scenario.hosts[flow.from].agent.is_none());
    let other = |flow: &&Flow| default_control(&flow.transport).filter(|ours| *ours != kernels);
    let notes = here.filter_map(|flow| Some((flow, other(&flow)?))).map(|(flow, ours)| {
            format!(
                "flow `{}`: its congestion control is this machine's default, `{kernels}`; the simulator's is `{ours}`. To \
                 compare the two, set `congestion-control` in its `transport`",
                flow.meta.name
            )
        });
    notes.collect()
}

/// The simulator's congestion control of a flow that leaves the choice to its host.
fn default_control(transport: &Transport) -> Option<&'static str> {
    match transport.sockets() {
        Sockets::Stream(StreamProtocol::Tcp, options) if options.congestion_control.is_none() => {
            Some(options.config.congestion_control.name())
        }
        _ => None,
    }
}

/// What [`on_sockets`] replaces, and what sockets do not say, in sentences.
pub(crate) fn changes(scenario: &Scenario) -> BTreeSet<String> {
    let mut notes = sizes(scenario, true);
    notes.extend(congestion_controls(scenario));
    notes.extend(differences(scenario));
    for link in scenario.links.iter().filter(|_| scenario.links.len() > 1) {
        let tags = |(name, value): (&str, &Value)| matches!((name, value), ("policing", Value::Text(does)) if does == "tag");
        if link.directions.iter().any(|direction| direction.values.iter().any(tags)) {
            notes.insert(format!(
                "link `{}`: on the wire its tags do not reach the next links, because the kernel's packets do not carry \
                 them",
                link.name
            ));
        }
    }
    for flow in &scenario.flows {
        let name = &flow.meta.name;
        if flow.priority != 0 {
            notes.insert(format!(
                "flow `{name}`: on the wire its `priority` does not reach the links, because the kernel's packets do \
                 not carry it"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use trunkline_experiment::Experiment;
    use trunkline_store::Backend;

    use super::*;

    const TEXT: &str = r#"
name = "controls"
duration = "1 s"
[hosts]
a = {}
b = {}
far = { agent = "192.0.2.1:4783" }
[link.l]
between = ["a", "b"]
rate = "1 Mbit/s"
[link.m]
between = ["b", "far"]
rate = "1 Mbit/s"
[flow.default]
from = "a"
to = "b"
transport = "tcp"
source = { kind = "bulk" }
[flow.chosen]
from = "a"
to = "b"
transport = { kind = "tcp", congestion-control = "cubic" }
source = { kind = "bulk" }
[flow.agent]
from = "far"
to = "b"
transport = "tcp"
source = { kind = "bulk" }
[flow.carried]
from = "a"
to = "b"
transport = "urp"
source = { kind = "bulk" }
[flow.old]
from = "a"
to = "b"
transport = { kind = "tcp", profile = "solaris-2.5", congestion-control = "reno" }
source = { kind = "bulk" }
"#;

    #[test]
    fn what_differs_from_the_simulator_is_named() {
        let experiment =
            Experiment::parse(TEXT, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
        let scenario = &experiment.points.first().scenario;
        assert_eq!(other_controls(scenario, "cubic"), BTreeSet::new());
        assert_eq!(sizes(scenario, false), BTreeSet::new());
        assert_eq!(sizes(scenario, true), BTreeSet::new());
        let notes: Vec<String> = differences(scenario).into_iter().collect();
        assert!(notes.len() == 2 && notes[0].ends_with("packets are 44 bytes larger"), "{notes:?}");
        assert_eq!(
            notes[1],
            "flow `old`: `profile` does not apply on real sockets, where the kernel's TCP runs"
        );
        let notes = other_controls(scenario, "bbr");
        let expected = "flow `default`: its congestion control is this machine's default, `bbr`; the simulator's is `cubic`.";
        assert!(notes.len() == 1 && notes.iter().all(|note| note.starts_with(expected)), "{notes:?}");
    }

    #[test]
    fn a_drain_shorter_than_the_path_is_named() {
        let notes = |drain: &str, backend| {
            let text = format!("drain = \"{drain}\"\n{TEXT}").replace(
                "rate = \"1 Mbit/s\"\n[link.m]",
                "rate = \"1 Mbit/s\"\ndelay = \"300 ms\"\n[link.m]",
            );
            let experiment =
                Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
            let notes = crate::backend::notes(experiment.points.iter(), backend).into_iter();
            notes.filter(|note| note.contains("`drain`")).collect::<Vec<_>>()
        };
        for backend in [Backend::Sim, Backend::Wire] {
            let found = notes("200 ms", backend);
            assert_eq!(found.len(), 4, "{found:?}");
            assert_eq!(
                found[0],
                "flow `carried`: its path takes at least 300 ms, longer than the `drain` of 200 ms, so what is sent \
                 in the last 100 ms of the run cannot arrive and counts as unfinished; set `drain` to more than 300 ms"
            );
            assert_eq!(notes("300 ms", backend), Vec::<String>::new());
        }
        assert_eq!(
            notes("200 ms", Backend::Live),
            Vec::<String>::new(),
            "the links of the file are not there"
        );
    }

    #[test]
    fn keys_of_tcp_that_no_socket_has_are_named() {
        let keys =
            r#"{ kind = "tcp", profile = "windows", sack = false, rto-min = "1 s", user-timeout = "9 s" }"#;
        let text = TEXT.replace(r#"{ kind = "tcp", congestion-control = "cubic" }"#, keys);
        let experiment =
            Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
        let expected = "flow `chosen`: `profile`, `sack` (the hosts' `net.ipv4.tcp_sack` holds) and `rto-min` (the routes' \
                        `rto_min` holds) do not apply on real sockets, where the kernel's TCP runs";
        let differences = differences(&experiment.points.first().scenario);
        assert!(differences.contains(expected), "{differences:?}");
    }
}
