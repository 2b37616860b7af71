//! Where the channels of all members stand.

use std::ops::{Index, IndexMut};

use trunkline_core::{FlowId, Ranges};

use crate::meter::flow::Channel;
use crate::record::FlowMeta;

/// The channels of all members, in the order of their first use. Sources that send at regular intervals use them in the
/// same order again and again, so that the memory of ten thousand channels is read from one end to the other, which
/// caches foresee, and not here and there. For the same reason the channel behind the one used last is tried first; otherwise
/// the way from an id to a channel leads over a table.
#[derive(Debug)]
pub(super) struct Channels {
    /// The ids of each flow.
    ids: Ranges,
    flows: Vec<OfFlow>,
    /// Index into `channels` of each channel of each member, or [`NOTHING`].
    places: Vec<u32>,
    channels: Vec<Channel>,
    /// By [`Walk`], the index of the channel behind the one used last.
    next: [u32; 2],
}

/// The two walks over the channels, each at a place of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Walk {
    Sending,
    Arriving,
}

#[derive(Debug)]
struct OfFlow {
    /// The id of its first member.
    first: u32,
    /// Channels of each member.
    channels: u16,
    /// Index in `places` of its first channel.
    begin: usize,
}

/// No channel yet.
const NOTHING: u32 = u32::MAX;

impl Channels {
    pub(super) fn new(flows: &[FlowMeta]) -> Channels {
        let mut end = 0;
        let of_flow = |flow: &FlowMeta| {
            let (first, channels, begin) = (flow.first.0, flow.channels, end);
            end += flow.ids() as usize * usize::from(channels);
            OfFlow { first, channels, begin }
        };
        Channels {
            flows: flows.iter().map(of_flow).collect(),
            ids: flows.iter().map(|flow| flow.first.0..flow.first.0.saturating_add(flow.ids())).collect(),
            places: vec![NOTHING; end],
            channels: Vec::new(),
            next: [0; 2],
        }
    }

    /// The index of the flow that a member belongs to.
    #[inline]
    pub(super) fn flow(&self, member: FlowId) -> Option<usize> {
        self.ids.find(member.0)
    }

    /// Where a channel stands, made on its first use; `None` of what no member has.
    #[inline]
    pub(super) fn place(&mut self, walk: Walk, member: FlowId, channel: u16) -> Option<u32> {
        let mut place = self.next[walk as usize];
        let is_this = |there: &Channel| {
            there.channel == channel && self.flows[there.flow as usize].first + there.member == member.0
        };
        if !self.channels.get(place as usize).is_some_and(is_this) {
            place = self.look_up(member, channel)?;
        }
        let behind = place + 1;
        self.next[walk as usize] = if (behind as usize) < self.channels.len() { behind } else { 0 };
        Some(place)
    }

    fn look_up(&mut self, member: FlowId, channel: u16) -> Option<u32> {
        let flow = self.flow(member)?;
        let OfFlow { first, channels, begin } = self.flows[flow];
        if channel >= channels {
            return None;
        }
        let member = member.0 - first;
        let index = begin + member as usize * usize::from(channels) + usize::from(channel);
        let place = &mut self.places[index];
        if *place == NOTHING {
            *place = u32::try_from(self.channels.len()).ok().filter(|&place| place != NOTHING)?;
            self.channels.push(Channel::new(flow as u32, member, channel));
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
