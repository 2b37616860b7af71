//! Congestion controls that a backend does not have, at their place in the file.
//!
//! The file may name any: the simulator has a list, and every kernel loads its own. So only the backend can refuse one.

use std::cell::LazyCell;

use trunkline_experiment::{Flow, Scenario, enumerate, nearest};
use trunkline_io::tcp::offered_congestion_controls;
use trunkline_store::Backend;
use trunkline_transport::kind::Sockets;
use trunkline_transport::tcp::ALGORITHMS;

use crate::error::RunnerError;
use crate::request::Request;

/// Refuses a congestion control that the simulator, this machine's kernel or that of an agent does not have.
pub(crate) fn check(request: &Request<'_>, scenario: &Scenario) -> Result<(), RunnerError> {
    let fleet = request.fleet.filter(|_| request.backend == Backend::Live);
    for (flow, wanted) in scenario.flows.iter().filter_map(|flow| Some((flow, named(flow)?))) {
        let refused = match fleet {
            Some(fleet) => {
                fleet.congestion_controls(scenario, flow).into_iter().find_map(|(agent, kernel)| {
                    by_kernel(&format!("agent `{agent}`'s kernel"), &wanted, &kernel)
                })
            }
            None => refusal(request.backend, &wanted, &offered_congestion_controls()),
        };
        if let Some(message) = refused {
            let path = ["flow", &flow.meta.name, "transport", KEY];
            return Err(request.wrong(&path, &wanted, &message));
        }
    }
    Ok(())
}

/// The reason why a congestion control that a flow names is refused here by the simulator and by the kernel; `None` if one has it.
pub(crate) fn unknown_everywhere(scenario: &Scenario) -> Option<String> {
    let kernel = LazyCell::new(offered_congestion_controls);
    let unknown = |flow: &Flow| {
        let wanted = named(flow)?;
        refusal(Backend::Sim, &wanted, &kernel)?;
        refusal(Backend::Live, &wanted, &kernel)
    };
    scenario.flows.iter().find_map(|flow| Some(format!("flow `{}`: {}", flow.meta.name, unknown(flow)?)))
}

const KEY: &str = "congestion-control";

/// The congestion control that a flow's TCP names.
fn named(flow: &Flow) -> Option<String> {
    match flow.transport.sockets() {
        Sockets::Stream(_, options) => options.congestion_control,
        Sockets::Datagrams | Sockets::Carried(_) => None,
    }
}

/// A sentence if a backend has no such congestion control: what it has, what was probably meant, and what else has it.
fn refusal(backend: Backend, wanted: &str, kernel: &[String]) -> Option<String> {
    if !backend.is_simulated() {
        return by_kernel("this kernel", wanted, kernel);
    }
    let loaded: Vec<&str> = kernel.iter().map(String::as_str).collect();
    let elsewhere = (loaded.as_slice(), "; this kernel has it: use `--on wire` or `--on live`");
    let is = |shown: &str, has: &str| format!("the simulator has no `{shown}`; it has {has}");
    refused(wanted, &simulated(), elsewhere, is)
}

/// A sentence if a kernel has no such congestion control. Where it does not tell, nothing is known to be missing.
fn by_kernel(whose: &str, wanted: &str, kernel: &[String]) -> Option<String> {
    let loaded: Vec<&str> = kernel.iter().map(String::as_str).collect();
    let (simulated, hint) = (simulated(), "; the simulator has it: use `--on sim`");
    let is = |shown: &str, has: &str| format!("{whose} does not offer `{shown}`; it has loaded {has}");
    if loaded.is_empty() { None } else { refused(wanted, &loaded, (&simulated, hint), is) }
}

fn simulated() -> Vec<&'static str> {
    ALGORITHMS.iter().map(|kind| kind.name).collect()
}

fn refused(
    wanted: &str,
    has: &[&str],
    (elsewhere, hint): (&[&str], &str),
    is: impl Fn(&str, &str) -> String,
) -> Option<String> {
    if has.contains(&wanted) {
        return None;
    }
    let hint = match nearest(wanted, has.iter().copied()) {
        _ if elsewhere.contains(&wanted) => hint.to_owned(),
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => String::new(),
    };
    let reason = is(&wanted.escape_debug().to_string(), &enumerate(has.iter().copied()));
    Some(format!("`{KEY}`: {reason}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_what_there_is_what_was_meant_and_what_else_has_it() {
        let kernel = ["reno".to_owned(), "cubic".to_owned(), "vegas".to_owned()];
        let said = |backend, wanted| refusal(backend, wanted, &kernel).unwrap_or_default();
        assert_eq!(
            said(Backend::Sim, "cubicc"),
            "`congestion-control`: the simulator has no `cubicc`; it has `reno`, `cubic`, `bbr`, `bbr3`, `dctcp`, \
             `prague` and `none`; did you mean `cubic`?"
        );
        assert_eq!(
            said(Backend::Live, "cubicc"),
            "`congestion-control`: this kernel does not offer `cubicc`; it has loaded `reno`, `cubic` and `vegas`; did you \
             mean `cubic`?"
        );
        assert!(
            said(Backend::Sim, "vegas").ends_with("; this kernel has it: use `--on wire` or `--on live`")
        );
        assert!(said(Backend::Wire, "dctcp").ends_with("; the simulator has it: use `--on sim`"));
        assert_eq!(said(Backend::Sim, "bbr") + &said(Backend::Wire, "vegas"), "");
        assert_eq!(refusal(Backend::Live, "anything", &[]), None);
    }
}
