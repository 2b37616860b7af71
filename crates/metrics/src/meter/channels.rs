//! Where the channels of all members stand.

use std::ops::{Index, IndexMut};

use trunkline_core::FlowId;

use crate::meter::flow::Channel;
use crate::record::FlowMeta;

/// The channels of all members, in the order of their first use. Sources that send at regular intervals use them in the
/// same order again and again, so that the memory of ten thousand channels is read from one end to the other, which
/// caches foresee, and not here and there. The way from an id to a channel leads over two small tables.
#[derive(Debug)]
pub(super) struct Channels {
    /// The lowest id.
    first: u32,
    /// The index of the flow that has the member with the id `first + i`, or [`NOTHING`].
    flows: Vec<u32>,
    /// Where in `places` the channels of the member with the id `first + i` begin; at the end, where the last one's end.
    begins: Vec<usize>,
    /// Index into `channels` of each channel of each member, or [`NOTHING`].
    places: Vec<u32>,
    channels: Vec<Channel>,
    /// The id of each flow's first member.
    first_of_flow: Vec<u32>,
}

/// No flow; no channel yet.
const NOTHING: u32 = u32::MAX;

impl Channels {
    pub(super) fn new(flows: &[FlowMeta]) -> Channels {
        let first = flows.iter().map(|flow| flow.first.0).min().unwrap_or(0);
        let mut flow_of = Vec::new();
        for (number, flow) in (0u32..).zip(flows) {
            let offset = (flow.first.0 - first) as usize;
            let end = offset + flow.ids() as usize;
            if flow_of.len() < end {
                flow_of.resize(end, NOTHING);
            }
            flow_of[offset..end].fill(number);
        }
        let mut begins = vec![0];
        let mut end = 0;
        for &flow in &flow_of {
            end += flows.get(flow as usize).map_or(0, |flow| usize::from(flow.channels));
            begins.push(end);
        }
        Channels {
            first,
            flows: flow_of,
            begins,
            places: vec![NOTHING; end],
            channels: Vec::new(),
            first_of_flow: flows.iter().map(|flow| flow.first.0).collect(),
        }
    }

    /// The index of the flow that a member belongs to.
    #[inline]
    pub(super) fn flow(&self, member: FlowId) -> Option<usize> {
        let flow = *self.flows.get(member.0.checked_sub(self.first)? as usize)?;
        (flow != NOTHING).then_some(flow as usize)
    }

    /// Where a channel stands, made on its first use; `None` of what no member has.
    #[inline]
    pub(super) fn place(&mut self, member: FlowId, channel: u16) -> Option<u32> {
        let index = member.0.checked_sub(self.first)? as usize;
        let &[begin, end] = self.begins.get(index..index + 2)? else { return None };
        let place = self.places[begin..end].get_mut(usize::from(channel))?;
        if *place == NOTHING {
            *place = u32::try_from(self.channels.len()).ok().filter(|&place| place != NOTHING)?;
            let flow = self.flows[index];
            let member = member.0 - self.first_of_flow[flow as usize];
            self.channels.push(Channel::new(flow, member, channel));
        }
        Some(*place)
    }

    /// All that were used, in the order of first use.
    pub(super) fn into_used(self) -> Vec<Channel> {
        self.channels
    }
}

/// The channel that stands there.
impl Index<u32> for Channels {
    type Output = Channel;

    #[inline]
    fn index(&self, place: u32) -> &Channel {
        &self.channels[place as usize]
    }
}

impl IndexMut<u32> for Channels {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut Channel {
        &mut self.channels[place as usize]
    }
}

#[cfg(test)]
impl Channels {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.channels.iter()
    }
}
