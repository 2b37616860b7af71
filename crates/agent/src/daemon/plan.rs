//! What a controller asks a near end for: parsed, judged against the owner's limits, and resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Instant;

use trunkline_control::message::Prepare;
use trunkline_control::{Held, Refusal, RefusalKind, Share};
use trunkline_core::{Bytes, Seed};
use trunkline_experiment::{Bounds, Experiment, Files, FilesError, Scenario};
use trunkline_io::networks;
use trunkline_live::Limited;
use trunkline_live::part::only;

use super::Daemon;
use super::connected::Controller;
use super::parts::{End as Side, Place};
use crate::outbound::Attempt;
use crate::{demand, memory, permission};

/// What is to be measured, and with whom.
pub(super) struct Planned {
    pub(super) experiment: String,
    pub(super) scenario: Scenario,
    /// Its greedy flows, and what holds them back.
    pub(super) limited: Limited,
    pub(super) seed: Seed,
    /// Where the far end may be, in the order in which it is tried.
    pub(super) far: Vec<SocketAddr>,
    /// Memory for the buffers of its engines, until the part is over.
    _buffers: Held,
}

/// Finds what is asked for, and judges it.
pub(super) fn plan(
    daemon: &Arc<Daemon>,
    controller: &Controller,
    share: &Share,
    request: &Prepare,
) -> Result<(Planned, Place), Refusal> {
    let input = |why: String| Refusal::new(RefusalKind::Input, why);
    let files = Sent(&request.files);
    let text = &request.experiment;
    let experiment =
        Experiment::parse_point(text, "the experiment", &files, &Bounds::FOREIGN, &request.choice)
            .map_err(|problems| input(format!("the experiment is not valid here: {problems}")))?;
    let point = experiment.points.first();
    if let Some(flow) = request.flows.iter().find(|flow| **flow >= point.scenario.flows.len()) {
        return Err(input(format!("the experiment has no flow with the index {flow}")));
    }
    let mut asked = BTreeSet::new();
    if let Some(flow) = request.flows.iter().find(|flow| !asked.insert(**flow)) {
        return Err(input(format!("the flow with the index {flow} is requested twice")));
    }
    let seed = Seed::new(request.seed, request.part.repetition);
    let demand = demand::of_near_end(&point.scenario, &request.flows, seed).map_err(input)?;
    let scenario = only(&point.scenario, &request.flows);
    let buffers = scenario.flows.iter().map(|flow| flow.buffers().count()).fold(0, u64::saturating_add);
    let buffers = memory::take_buffers(share, &daemon.config.name, Bytes(buffers))?;

    let resolved = resolve(daemon, controller, &request.far.address)?;
    // Nothing goes to an address that the owner does not want, not even the question whether somebody is there.
    let (mut far, mut forbidden) = (Vec::new(), None);
    for candidate in resolved {
        let (ip, name) = (candidate.ip(), &controller.name);
        match permission::may_connect(&daemon.config, name, ip, networks::is_own(ip)) {
            Ok(()) => far.push(candidate),
            Err(refusal) => forbidden = Some(refusal),
        }
    }
    if let ([], Some(refusal)) = (&far[..], forbidden) {
        return Err(refusal);
    }
    let who = (controller.fingerprint, controller.name.as_str());
    let place = daemon.parts.admit(&daemon.config, (request.part.clone(), Side::Near), who, &demand)?;
    // By the indices of the part's own scenario.
    let is_greedy = |flow: &usize| demand.greedy.as_ref().is_some_and(|greedy| greedy.flows.contains(flow));
    let greedy =
        (0..).zip(&request.flows).filter(|(_, flow)| is_greedy(flow)).map(|(place, _)| place).collect();
    let limited = Limited::new(greedy, place.part().ceilings.clone());
    Ok((Planned { experiment: experiment.name, scenario, limited, seed, far, _buffers: buffers }, place))
}

/// The addresses of a far end. Resolving a name counts as an attempt: it shows which names exist.
fn resolve(daemon: &Daemon, controller: &Controller, address: &str) -> Result<Vec<SocketAddr>, Refusal> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let attempt = attempt(daemon, controller)?;
    let host = &daemon.config.name;
    let addresses = address.to_socket_addrs().map_err(|error| {
        let address = address.escape_debug();
        Refusal::new(RefusalKind::FarEnd, format!("{host} cannot resolve {address}: {error}"))
    })?;
    attempt.succeeded();
    Ok(addresses.collect())
}

/// Begins an attempt to reach something for a controller, if not too many have failed.
pub(super) fn attempt<'d>(daemon: &'d Daemon, controller: &Controller) -> Result<Attempt<'d>, Refusal> {
    daemon.outbound.attempt(controller.fingerprint, Instant::now()).map_err(|wait| {
        let why = format!(
            "too many connections that {} requested from {} did not reach an agent; retry in {} s",
            controller.name,
            daemon.config.name,
            wait.as_secs() + 1
        );
        Refusal::new(RefusalKind::FarEnd, why)
    })
}

/// The files that came with the experiment.
struct Sent<'r>(&'r BTreeMap<String, Vec<u8>>);

impl Files for Sent<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        self.0.get(path).cloned().ok_or_else(|| FilesError::new("was not sent by the controller"))
    }
}
