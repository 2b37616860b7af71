//! The conversations of a flow, as the simulator has them.

use std::sync::Arc;

use trunkline_core::Seed;
use trunkline_experiment::{Flow, Framing, Scenario, Sink};
use trunkline_flows::{FlowSpec, Group, Listener, ListenerSpec, Made, Reader};
use trunkline_transport::framing::Key;

use crate::conversation::{Conversation, End, Presence, Side};

/// Whether the senders of a flow are told which sinks listen, instead of hoping that they do.
pub(crate) fn knows_its_sinks(flow: &Flow) -> bool {
    let features = flow.transport.features();
    features.multicast && features.reliable
}

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
    if let Some(reason) = scenario.unlinked(flow) {
        return Err(reason);
    }
    let spec = FlowSpec::of(scenario, flow_index);
    let ids = flow.meta.first.0..flow.meta.first.0 + flow.meta.ids();
    let listens: Arc<[ListenerSpec]> = Arc::new([ListenerSpec::of(flow)]);
    let is_shared = spec.is_shared();
    let end = |member, side: Side, Made { address, endpoint }| {
        let features = endpoint.features();
        let first = flow.member(member).0;
        let own = first..if is_shared { flow.meta.first.0 + flow.meta.members } else { first + 1 };
        // An answer in a stream does not name its member.
        let of_one = !features.message_oriented && !flow.is_multicast();
        let reader = match flow.framing {
            Framing::None if !features.message_oriented => Reader::unframed(),
            _ => Reader::new(features, key, if of_one { own.clone() } else { ids.clone() }),
        };
        End::new(address, endpoint, reader, Listener::new(side.into(), Arc::clone(&listens), own))
    };
    let sink = |member, place, made, sink: &Sink| {
        let is_away = !sink.join.is_zero();
        let presence = Presence { is_away, is_awaited: !is_away && !knows_its_sinks(flow) };
        End { presence, ..end(member, Side::Far(place), made) }
    };
    let conversation = |member| {
        let first = flow.member(member);
        if flow.is_multicast() {
            let Group { near, address, far } = spec.group(member, seed)?;
            let sinks = (0..).zip(far).zip(&flow.to);
            let mut sinks = sinks.map(|((place, made), at)| sink(member, place, made, at));
            let first_sink = sinks.next().ok_or("a multicast needs a sink")?;
            let others = sinks.collect();
            let near = end(member, Side::Near, near);
            let conversation = Conversation::new(near, first_sink, flow_index as u32, first, is_shared);
            return Ok(Conversation { others, group: Some(address), ..conversation });
        }
        let pair = spec.pair(member, seed)?;
        let far = match flow.to.first() {
            Some(only) => sink(member, 0, pair.far, only),
            None => end(member, Side::Far(0), pair.far),
        };
        let near = end(member, Side::Near, pair.near);
        Ok(Conversation::new(near, far, flow_index as u32, first, is_shared))
    };
    (0..if is_shared { 1 } else { members }).map(conversation).collect()
}
