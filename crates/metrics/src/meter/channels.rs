//! Where the channels of all members stand.

use std::ops::{Index, IndexMut};

use trunkline_core::FlowId;

use crate::meter::flow::Channel;
use crate::record::FlowMeta;

/// The channels of all members, by slot: those of one member side by side, in the order of ids. The slot is computed,
/// so that the way from an id to a channel's state leads over a few small tables and not from one cold line to the
/// next. Memory is taken in pages, when a channel is first used.
#[derive(Debug)]
pub(super) struct Channels {
    /// The lowest id.
    first: u32,
    /// The index of the flow that has the member with the id `first + i`, or [`Channel::UNUSED`].
    flows: Vec<u32>,
    /// The first slot of the member with the id `first + i`, and the end of the last one's.
    slots: Vec<u32>,
    /// Empty until one of its channels is used.
    pages: Vec<Box<[Channel]>>,
    /// In the order of first use.
    used: Vec<u32>,
    /// The id of each flow's first member.
    first_of_flow: Vec<u32>,
}

/// How many channels are made at once.
const PAGE: usize = 64;

impl Channels {
    pub(super) fn new(flows: &[FlowMeta]) -> Channels {
        let first = flows.iter().map(|flow| flow.first.0).min().unwrap_or(0);
        let mut flow_of = Vec::new();
        for (number, flow) in (0u32..).zip(flows) {
            let offset = (flow.first.0 - first) as usize;
            let end = offset + flow.members as usize;
            if flow_of.len() < end {
                flow_of.resize(end, Channel::UNUSED);
            }
            flow_of[offset..end].fill(number);
        }
        let mut slots = vec![0];
        let mut end = 0u32;
        for &flow in &flow_of {
            let channels = flows.get(flow as usize).map_or(0, |flow| flow.channels);
            end = end.saturating_add(u32::from(channels));
            slots.push(end);
        }
        Channels {
            first,
            flows: flow_of,
            slots,
            pages: Vec::new(),
            used: Vec::new(),
            first_of_flow: flows.iter().map(|flow| flow.first.0).collect(),
        }
    }

    /// The index of the flow that a member belongs to.
    #[inline]
    pub(super) fn flow(&self, member: FlowId) -> Option<usize> {
        let flow = *self.flows.get(member.0.checked_sub(self.first)? as usize)?;
        (flow != Channel::UNUSED).then_some(flow as usize)
    }

    /// The slot of a channel, made on its first use; `None` of what no member has.
    #[inline]
    pub(super) fn slot(&mut self, member: FlowId, channel: u16) -> Option<u32> {
        let index = member.0.checked_sub(self.first)? as usize;
        let &[begin, end] = self.slots.get(index..index + 2)? else { return None };
        let slot = begin.checked_add(u32::from(channel)).filter(|&slot| slot < end)?;
        let page = self.pages.get(slot as usize / PAGE);
        if page
            .and_then(|page| page.get(slot as usize % PAGE))
            .is_none_or(|there| there.flow == Channel::UNUSED)
        {
            self.begin(slot, member, channel);
        }
        Some(slot)
    }

    /// The channels that were used, in the order of first use.
    pub(super) fn into_used(mut self) -> impl Iterator<Item = Channel> {
        let used = std::mem::take(&mut self.used);
        used.into_iter().map(move |slot| std::mem::take(&mut self[slot]))
    }

    #[cold]
    fn begin(&mut self, slot: u32, member: FlowId, channel: u16) {
        let flow = self.flows[(member.0 - self.first) as usize];
        let index = member.0 - self.first_of_flow[flow as usize];
        let (page, place) = (slot as usize / PAGE, slot as usize % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, Box::default);
        }
        if self.pages[page].is_empty() {
            self.pages[page] = std::iter::repeat_with(Channel::default).take(PAGE).collect();
        }
        self.pages[page][place] = Channel::new(flow, index, channel);
        self.used.push(slot);
    }
}

/// The channel of a slot that is in use.
impl Index<u32> for Channels {
    type Output = Channel;

    #[inline]
    fn index(&self, slot: u32) -> &Channel {
        &self.pages[slot as usize / PAGE][slot as usize % PAGE]
    }
}

impl IndexMut<u32> for Channels {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Channel {
        &mut self.pages[slot as usize / PAGE][slot as usize % PAGE]
    }
}

#[cfg(test)]
impl Channels {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.used.iter().map(|&slot| &self[slot])
    }
}
