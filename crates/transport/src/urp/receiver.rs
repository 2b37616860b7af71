//! The receiving half: collects blocks, hands on those that fit, rejects what does not.

use trunkline_core::Ecn;

use super::wire::{Control, MAX_BLOCK, MODULUS, Trailer};

/// Bytes that may wait to be read before ECHOs are withheld. What the window then lets through comes on top.
pub(super) const RECEIVE_BUFFER: usize = 64 << 10;

/// One direction's receiver.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The next block, numbered from 1 without end.
    expected: u64,
    /// All blocks below this have been answered with ECHO.
    echoed: u64,
    /// Data envelopes since the last trailer.
    partial: Vec<u8>,
    /// The circuit has lost something since the last good block.
    missing: bool,
    /// The sender has been told so and has not recovered yet.
    rejecting: bool,
    /// Handed on, waiting to be read.
    ready: Vec<u8>,
    ecn: Ecn,
    ended: bool,
    reject_due: bool,
    echo_due: bool,
    state_due: bool,
    pub(super) counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) blocks: u64,
    pub(super) wrong_length: u64,
    pub(super) wrong_sequence: u64,
    pub(super) duplicates: u64,
    pub(super) rejects: u64,
}

impl Receiver {
    pub(super) fn new() -> Receiver {
        Receiver {
            expected: 1,
            echoed: 1,
            partial: Vec::new(),
            missing: false,
            rejecting: false,
            ready: Vec::new(),
            ecn: Ecn::NotCapable,
            ended: false,
            reject_due: false,
            echo_due: false,
            state_due: false,
            counters: Counters::default(),
        }
    }

    /// The circuit has lost a packet before the one that comes now. What was in it is unknown, so a block that has begun
    /// cannot be trusted: other bytes might make up its length.
    pub(super) fn lost(&mut self) {
        self.partial.clear();
        self.missing = true;
    }

    /// Takes data envelopes, and the trailer if it follows them. True if there is now more to read, or nothing ever more.
    pub(super) fn data(&mut self, ecn: Ecn, data: &[u8], trailer: Option<Trailer>) -> bool {
        if self.partial.len() + data.len() > 2 * MAX_BLOCK {
            // No block is as long: only its end can be of use.
            let surplus = self.partial.len().saturating_sub(MAX_BLOCK);
            self.partial.drain(..surplus);
        }
        self.partial.extend_from_slice(data);
        let Some(Trailer { length, sequence, .. }) = trailer else { return false };
        // Where the sender goes back in the middle of a block, what it had sent of that block comes before another. The
        // packets since the last loss or trailer are all that it sent meanwhile, so the block is their end.
        let surplus = self.partial.len().checked_sub(usize::from(length));
        let good = match surplus {
            Some(surplus) if u64::from(sequence) == self.expected % MODULUS && !self.ended => {
                self.accept(ecn, surplus);
                true
            }
            _ => {
                self.refuse(sequence);
                false
            }
        };
        self.partial.clear();
        good
    }

    /// ENQ: the peer asks what has arrived.
    pub(super) fn enquired(&mut self) {
        self.echo_due = true;
        self.state_due = true;
        // It will go back if something is missing; if that is lost too, it is told anew.
        self.rejecting = false;
    }

    /// The next answer.
    pub(super) fn poll(&mut self) -> Option<Control> {
        let last = |first: u64| ((first - 1) % MODULUS) as u8;
        let has_room = self.ready.len() < RECEIVE_BUFFER;
        if core::mem::take(&mut self.reject_due) {
            self.counters.rejects += 1;
            Some(Control::Reject(last(self.expected)))
        } else if has_room && self.echoed < self.expected || core::mem::take(&mut self.echo_due) {
            self.echo_due = false;
            if has_room {
                self.echoed = self.expected;
            }
            Some(Control::Echo(last(self.echoed)))
        } else if core::mem::take(&mut self.state_due) {
            Some(Control::Acknowledge(last(self.expected)))
        } else {
            None
        }
    }

    /// Appends all that can be read: how many bytes, and the ECN field of the packet that brought the last.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> Option<(usize, Ecn)> {
        if self.ready.is_empty() {
            return None;
        }
        let length = self.ready.len();
        into.append(&mut self.ready);
        Some((length, self.ecn))
    }

    /// Whether the peer has sent its end and everything before it was read.
    pub(super) fn is_finished(&self) -> bool {
        self.ended && self.ready.is_empty()
    }

    /// Forgets what could still be read.
    pub(super) fn clear(&mut self) {
        self.ready.clear();
    }

    fn accept(&mut self, ecn: Ecn, surplus: usize) {
        let block = &self.partial[surplus..];
        // A message of no bytes is the end of a stream.
        self.ended = block.is_empty();
        self.ready.extend_from_slice(block);
        self.ecn = ecn;
        self.expected += 1;
        self.missing = false;
        self.rejecting = false;
        self.counters.blocks += 1;
    }

    /// Only a loss is a reason to reject. Blocks that arrive twice, since the sender went back further than it had to, do
    /// not fit either; but rejecting them would make it go back again and again.
    fn refuse(&mut self, sequence: u8) {
        let counters = &mut self.counters;
        if !self.missing {
            counters.duplicates += 1;
            return;
        }
        if u64::from(sequence) == self.expected % MODULUS {
            counters.wrong_length += 1;
        } else {
            counters.wrong_sequence += 1;
        }
        if !self.rejecting {
            self.rejecting = true;
            self.reject_due = true;
        }
    }
}
