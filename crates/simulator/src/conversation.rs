//! The two ends between which messages go.
//!
//! The members of a UDP flow share one socket at either end, as they would on a real host whose reflector answers all of
//! them; each packet still carries its member's flow id, by which queues tell them apart. Every member of a TCP flow has
//! a connection of its own. The members of an SCTP flow have associations of their own, or share one.

use trunkline_core::{Address, FlowId, Time};
use trunkline_flows::{Listener, NOT_REFLECTED, Reader};
use trunkline_transport::Endpoint;

/// Which end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end with the sources.
    Near,
    /// The end with a sink or a reflector, by its place among those of the flow.
    Far(u16),
}

impl Side {
    /// The end in the least room: 0 is the near one.
    pub(crate) fn place(self) -> u16 {
        match self {
            Side::Near => 0,
            Side::Far(sink) => sink + 1,
        }
    }

    /// The end at that place.
    pub(crate) fn at(place: u16) -> Side {
        place.checked_sub(1).map_or(Side::Near, Side::Far)
    }
}

impl From<Side> for trunkline_flows::Side {
    fn from(side: Side) -> trunkline_flows::Side {
        match side {
            Side::Near => trunkline_flows::Side::Source,
            Side::Far(sink) => trunkline_flows::Side::Sink(sink),
        }
    }
}

/// A conversation, used by one member or by all of a flow.
pub(crate) struct Conversation {
    pub(crate) near: End,
    /// At the first sink.
    pub(crate) far: End,
    /// At the other sinks.
    pub(crate) others: Vec<End>,
    /// Packets that the near end sends there are for all sinks.
    pub(crate) group: Option<Address>,
    /// Index of the flow in the scenario.
    pub(crate) flow: u32,
    /// The one member that it belongs to; `None` if all of its flow share it.
    pub(crate) member: Option<FlowId>,
    /// True if its members' sources wait until it is connected.
    pub(crate) is_awaited: bool,
    /// True if its sources have ended before that.
    pub(crate) is_never_connected: bool,
    /// As whose packets those leave that no message caused, if it has a state of its own, which wants to be looked after.
    pub(crate) owner: Option<FlowId>,
    /// How often the members that share it have been told that there is room, the first of them another each time.
    pub(crate) turns: u32,
    /// Packets of the near end on their way, counted where its interface waits for them.
    pub(crate) on_their_way: u32,
}

/// One end of a conversation.
pub(crate) struct End {
    pub(crate) address: Address,
    pub(crate) endpoint: Box<dyn Endpoint>,
    /// Finds messages in what it receives.
    pub(crate) reader: Reader,
    pub(crate) listener: Listener,
    pub(crate) scheduled: Time,
    /// Of a sink; the sources are always there.
    pub(crate) presence: Presence,
}

/// Whether messages reach a sink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    /// Whether nothing reaches it: its host does not listen, or is silent.
    pub(crate) is_away: bool,
    /// Whether messages that are sent now are for it.
    pub(crate) is_awaited: bool,
}

impl Conversation {
    /// The conversation of a member, or of all members from this one on.
    pub(crate) fn new(near: End, far: End, flow: u32, first: FlowId, is_shared: bool) -> Conversation {
        let (others, group) = (Vec::new(), None);
        let member = (!is_shared).then_some(first);
        let has_state = !is_shared || near.endpoint.features().connection_oriented;
        let owner = has_state.then_some(first);
        let is_awaited = near.endpoint.features().connection_oriented;
        Conversation {
            near,
            far,
            others,
            group,
            flow,
            member,
            is_awaited,
            is_never_connected: false,
            owner,
            turns: 0,
            on_their_way: 0,
        }
    }

    #[inline]
    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Near => &mut self.near,
            Side::Far(0) => &mut self.far,
            Side::Far(sink) => &mut self.others[usize::from(sink) - 1],
        }
    }

    /// The ends at the sinks, in their order.
    pub(crate) fn sinks(&self) -> impl Iterator<Item = &End> {
        core::iter::once(&self.far).chain(&self.others)
    }

    /// The transport's counters, of all ends.
    pub(crate) fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        for end in core::iter::once(&self.near).chain(self.sinks()) {
            end.endpoint.counters(count);
            if end.listener.not_reflected() > 0 {
                count(NOT_REFLECTED, end.listener.not_reflected());
            }
        }
    }
}

impl End {
    pub(crate) fn new(
        address: Address,
        endpoint: Box<dyn Endpoint>,
        reader: Reader,
        listener: Listener,
    ) -> End {
        let presence = Presence { is_away: false, is_awaited: true };
        End { address, endpoint, reader, listener, scheduled: Time::MAX, presence }
    }
}
