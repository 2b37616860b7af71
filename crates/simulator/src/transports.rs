//! The conversations of a flow, as the simulator has them.

use trunkline_core::Seed;
use trunkline_endpoints::{Blueprint, Group, Made};
use trunkline_experiment::{Scenario, Sink};
use trunkline_transport::framing::Key;

use crate::conversation::{Conversation, End};
use crate::group::knows_its_sinks;
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
    let ids = flow.meta.first.0..flow.meta.first.0 + flow.meta.ids();
    let end = |Made { address, endpoint }| {
        let is_stream = !endpoint.features().message_oriented;
        End::new(address, endpoint, is_stream.then(|| Stream::new(flow.framing, key, ids.clone())))
    };
    let is_shared = blueprint.is_shared();
    let sink = |(made, sink): (Made, &Sink)| {
        let is_away = !sink.join.is_zero();
        End { is_away, is_awaited: !is_away && !knows_its_sinks(flow), ..end(made) }
    };
    let conversation = |member| {
        let first = flow.member(member);
        if flow.is_multicast() {
            let Group { near, address, far } = blueprint.group(member, seed)?;
            let mut sinks = far.into_iter().zip(&flow.to).map(sink);
            let first_sink = sinks.next().ok_or("a multicast needs a sink")?;
            let others = sinks.collect();
            let conversation = Conversation::new(end(near), first_sink, flow_index as u32, first, is_shared);
            return Ok(Conversation { others, group: Some(address), ..conversation });
        }
        let pair = blueprint.pair(member, seed)?;
        let far = match flow.to.first() {
            Some(only) => sink((pair.far, only)),
            None => end(pair.far),
        };
        Ok(Conversation::new(end(pair.near), far, flow_index as u32, first, is_shared))
    };
    (0..if is_shared { 1 } else { members }).map(conversation).collect()
}
