//! What the headers of messages are written over, for flows whose payload somebody keeps.

use std::collections::BTreeMap;

use trunkline_core::FlowId;
use trunkline_transport::framing::{HEADER_LENGTH, Header};

/// The first bytes of messages whose headers stand in their place. The simulator carries both ends, so that a receiver
/// finds them here; they are kept to the end of the run, since a message may come twice, or to several sinks.
#[derive(Default)]
pub(crate) struct Covered(BTreeMap<(FlowId, u16, u32), (usize, [u8; HEADER_LENGTH])>);

impl Covered {
    /// Keeps the first `covered` bytes of a message. A message that is offered again is covered already.
    pub(crate) fn keep(&mut self, header: &Header, covered: usize, message: &[u8]) {
        let mut first = [0; HEADER_LENGTH];
        first[..covered].copy_from_slice(&message[..covered]);
        self.0.entry((header.flow, header.channel, header.sequence)).or_insert((covered, first));
    }

    /// The message of a member as its source has written it.
    pub(crate) fn uncovered(&self, member: FlowId, channel: u16, sequence: u32, message: &[u8]) -> Vec<u8> {
        let mut whole = message.to_vec();
        if let Some((covered, first)) = self.0.get(&(member, channel, sequence)) {
            whole[..*covered].copy_from_slice(&first[..*covered]);
        }
        whole
    }
}
