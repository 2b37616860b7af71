//! Events in virtual time.

use trunkline_core::FlowId;

/// Something that can be due. Small and `Copy`: the packet itself waits in a slot of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The source of the member at a place wants to produce.
    Source(u32),
    /// The packet in a slot arrives at the end of a link.
    Arrive(u32),
    /// A link has something to do.
    Medium(u32),
    /// The endpoint at a place of a conversation wants to be called.
    Timeout(u32, u16),
    /// The message at the head of a member's send queue has waited for the whole send timeout.
    GiveUp(u32),
    /// The packet in a slot, held back for pacing, departs.
    Depart(u32),
    /// The host's interface gives the packet in a slot to the processor.
    Fetch(u32),
    /// The host's processor has had time for the packet in a slot: its transport gets it.
    Take(u32),
    /// The next piece of the message at the head of a member's send queue is handed over.
    HandOver(u32),
    /// A packet of a member's source was dropped on its way.
    Left(FlowId),
    /// A socket that was full takes messages again.
    Room(FlowId),
    /// The host's processor has had time for a kept message.
    Kept(u32),
    /// The flow with which the measurement ends may be over.
    Until,
    /// The measurement ends, and the drain time begins.
    Measured,
    /// A sink of a conversation comes, goes or falls silent.
    Sink(u32, u16),
    /// A guest has something to do.
    Guests,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_takes_as_much_room_as_its_time() {
        assert!(size_of::<Event>() <= 8, "{} bytes", size_of::<Event>());
    }
}
