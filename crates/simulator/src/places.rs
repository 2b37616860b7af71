//! Indices of members and conversations by id, without a look at the members themselves.

use trunkline_core::FlowId;
use trunkline_metrics::FlowMeta;

/// The member and the conversation of an id, whose flow is known.
#[derive(Default)]
pub(crate) struct Places {
    flows: Vec<OfFlow>,
    /// By flow and member, the index in the engine's members.
    members: Vec<u32>,
}

struct OfFlow {
    first: FlowId,
    members: u32,
    /// Index in `members` of the first of them.
    begin: u32,
    /// The index of its first conversation.
    conversation: u32,
    /// True if it has no other.
    is_shared: bool,
}

impl Places {
    /// Adds the next flow of the file.
    pub(crate) fn add(&mut self, meta: &FlowMeta, conversation: u32, is_shared: bool) {
        let begin = self.members.len() as u32;
        self.members.resize(self.members.len() + meta.members as usize, 0);
        self.flows.push(OfFlow { first: meta.first, members: meta.members, begin, conversation, is_shared });
    }

    /// The index of a member with this id.
    pub(crate) fn member(&self, flow: usize, id: FlowId) -> u32 {
        let flow = &self.flows[flow];
        self.members[(flow.begin + flow.member(id)) as usize]
    }

    pub(crate) fn set_member(&mut self, flow: usize, id: FlowId, member: u32) {
        let flow = &self.flows[flow];
        self.members[(flow.begin + flow.member(id)) as usize] = member;
    }

    /// The index of its conversation.
    #[inline]
    pub(crate) fn conversation(&self, flow: usize, id: FlowId) -> u32 {
        let flow = &self.flows[flow];
        if flow.is_shared { flow.conversation } else { flow.conversation + flow.member(id) }
    }
}

impl OfFlow {
    /// The member with this id, which a further sink has under a higher one.
    fn member(&self, id: FlowId) -> u32 {
        (id.0 - self.first.0) % self.members
    }
}
