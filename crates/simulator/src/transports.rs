//! The conversations of a flow, as the simulator has them.

use trunkline_core::Seed;
use trunkline_endpoints::{Blueprint, Made};
use trunkline_experiment::Scenario;
use trunkline_transport::framing::Key;

use crate::conversation::{Conversation, End};
use crate::stream::Stream;

/// Finds what [`conversations`] would refuse.
pub(crate) fn check(scenario: &Scenario, flow: usize) -> Result<(), String> {
    conversations(scenario, flow, 1, Key(0), Seed::new(0, 0)).map(|_| ())
}

/// Makes the conversations of a flow with so many members: one for each, or one for all.
pub(crate) fn conversations(
    scenario: &Scenario,
    flow_index: usize,
    members: u32,
    key: Key,
    seed: Seed,
) -> Result<Vec<Conversation>, String> {
    let flow = &scenario.flows[flow_index];
    let blueprint = Blueprint::of(scenario, flow_index);
    let ids = flow.meta.first.0..flow.meta.first.0 + flow.meta.members;
    let end = |Made { address, endpoint }| {
        let is_stream = !endpoint.features().message_oriented;
        End::new(address, endpoint, is_stream.then(|| Stream::new(flow.framing, key, ids.clone())))
    };
    let is_shared = blueprint.is_shared();
    let conversation = |member| {
        let pair = blueprint.pair(member, seed)?;
        let first = flow.member(member);
        Ok(Conversation::new(end(pair.near), end(pair.far), flow_index as u32, first, is_shared))
    };
    (0..if is_shared { 1 } else { members }).map(conversation).collect()
}
