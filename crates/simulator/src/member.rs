//! Where messages come from: a member of a flow.

use trunkline_core::Time;
use trunkline_flows::Talker;

/// A member of a flow. With 10,000 of them every field that is touched per message is a line fetched into the cache, so
/// all that a message needs stands in 64 bytes.
pub(crate) struct Member {
    pub(crate) talker: Talker,
    /// When its source is queued to produce; [`Time::MAX`] if it is not.
    pub(crate) source_scheduled: Time,
    /// Index of the flow in the scenario.
    pub(crate) flow: u32,
    /// Index of its conversation.
    pub(crate) conversation: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_one_cache_line() {
        assert!(size_of::<Member>() <= 64, "{} bytes", size_of::<Member>());
    }
}
