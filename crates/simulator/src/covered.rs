//! What the headers of messages are written over, for flows whose payload somebody keeps.

use std::collections::BTreeMap;

use trunkline_core::FlowId;
use trunkline_experiment::Flow;
use trunkline_transport::framing::{HEADER_LENGTH, Header};

/// The first bytes of messages whose headers stand in their place. The simulator carries both ends, so that a receiver
/// finds them here; they are kept to the end of the run, since a message may come twice, or to several sinks.
#[derive(Default)]
pub(crate) struct Covered(BTreeMap<(FlowId, u16, u32), [u8; HEADER_LENGTH]>);

impl Covered {
    /// Keeps what the header of a message will cover. A message that is offered again is covered already.
    pub(crate) fn keep(&mut self, flow: &Flow, header: &Header, room_and_message: &[u8]) {
        let message = &room_and_message[HEADER_LENGTH..];
        let place = flow.cover().place(message.len());
        if flow.meta.keeps_payload && place.is_within() {
            let mut first = [0; HEADER_LENGTH];
            first[..place.length()].copy_from_slice(&message[..place.length()]);
            self.0.entry(name(header)).or_insert(first);
        }
    }

    /// The message as its source has written it.
    pub(crate) fn uncovered(&self, header: &Header, message: &[u8]) -> Vec<u8> {
        let mut whole = message.to_vec();
        if header.place.is_within()
            && let Some(first) = self.0.get(&name(header))
        {
            let covered = header.place.length();
            whole[..covered].copy_from_slice(&first[..covered]);
        }
        whole
    }
}

/// What tells a message from all others of the run.
fn name(header: &Header) -> (FlowId, u16, u32) {
    (header.flow, header.channel, header.sequence)
}
