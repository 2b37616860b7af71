//! The sending half: cuts what it is given into blocks, keeps within the window, goes back.

use std::collections::VecDeque;

use super::config::UrpConfig;
use super::wire::{Body, MODULUS, Trailer};

/// One direction's sender. Blocks are numbered from 1 without end; only what is sent counts modulo eight.
///
/// `acknowledged <= resend <= next` and `opened <= next <= opened + window` always hold. The peer's answers arrive in the
/// order in which they were given, so none lies below the newest; and none lies above `next`. These are at most eight
/// values in a row, which is why three bits tell them apart.
#[derive(Debug)]
pub(super) struct Sender {
    block: u64,
    window: u64,
    packet: u64,
    low_water: u64,
    /// Whether a full window waits until no more than that is under way.
    drains: bool,
    buffer: usize,
    /// What the peer is not known to have received, and what has not been sent.
    bytes: VecDeque<u8>,
    /// Where in the whole stream `bytes` begins.
    base: u64,
    /// Where in the stream messages end, of those that are not in blocks yet.
    ends: VecDeque<u64>,
    /// The blocks from `acknowledged` to `next`.
    blocks: VecDeque<Block>,
    /// The first block that the peer is not known to have received.
    acknowledged: u64,
    /// The first block that the peer has not handed on: where the window begins.
    opened: u64,
    /// The block after the last complete one.
    next: u64,
    /// The first of those that are to be sent again; `next` if there is none.
    resend: u64,
    /// Where in the stream the block `next` begins.
    start: u64,
    /// How much of that block has been sent already.
    begun: u64,
    /// What had been sent when the peer was last asked for its state: blocks below this; 0 if its answer is of no use.
    asked: u64,
    end: End,
}

/// A complete block: sent with its trailer at least once.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: u64,
    length: u16,
    more: bool,
}

/// How far the end of all data has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Asked,
    Sent,
}

/// The next packet of data.
#[derive(Debug)]
pub(super) struct Outgoing<'s> {
    pub(super) body: Body<'s>,
    pub(super) length: usize,
    pub(super) complete: bool,
    pub(super) again: bool,
}

impl Sender {
    pub(super) fn new(config: &UrpConfig) -> Sender {
        Sender {
            block: config.block as u64,
            window: u64::from(config.window),
            packet: config.packet.max(1) as u64,
            // At most one less than the window: an ECHO that says nothing new must not open a full one.
            low_water: u64::from(config.low_water.unwrap_or(u8::MAX).min(config.window.saturating_sub(1))),
            drains: false,
            buffer: config.send_buffer,
            bytes: VecDeque::new(),
            base: 0,
            ends: VecDeque::new(),
            blocks: VecDeque::with_capacity(MODULUS as usize),
            acknowledged: 1,
            opened: 1,
            next: 1,
            resend: 1,
            start: 0,
            begun: 0,
            asked: 0,
            end: End::Open,
        }
    }

    /// Whether a message of this length is taken: as much as the buffer holds, or any when nothing waits unsent.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.bytes.len() + length <= self.buffer || self.start + self.begun == self.stream_end()
    }

    /// Takes a message, or a piece of one.
    pub(super) fn push(&mut self, bytes: &[u8], more: bool) {
        self.bytes.extend(bytes);
        if !more {
            self.end_message();
        }
    }

    /// Ends the stream behind all that was taken.
    pub(super) fn finish(&mut self) {
        self.end_message();
        if self.end == End::Open {
            self.end = End::Asked;
        }
    }

    /// Whether the peer has everything, the end included.
    pub(super) fn is_finished(&self) -> bool {
        self.end == End::Sent && self.acknowledged == self.next
    }

    /// Whether it waits for the peer to hand blocks on.
    pub(super) fn is_waiting(&self) -> bool {
        self.opened < self.next
    }

    /// ECHO: blocks up to this have been handed on. False if that cannot be.
    pub(super) fn echoed(&mut self, last: u8) -> bool {
        let Some(opened) = self.behind(self.opened, last) else { return false };
        self.opened = opened;
        self.drains &= self.next > self.opened.saturating_add(self.low_water);
        self.acknowledge(opened);
        true
    }

    /// REJ: what follows this block was damaged, so all of it is sent again. False if that cannot be.
    pub(super) fn rejected(&mut self, last: u8) -> bool {
        let Some(first) = self.behind(self.acknowledged, last) else { return false };
        self.acknowledge(first);
        self.go_back();
        true
    }

    /// ACK: the answer to an enquiry. If a block is missing that was sent before the question, the circuit has lost it
    /// or what told of its loss. False if that cannot be.
    pub(super) fn state(&mut self, last: u8) -> bool {
        let Some(first) = self.behind(self.acknowledged, last) else { return false };
        self.acknowledge(first);
        if first < self.asked {
            self.go_back();
        }
        self.asked = 0;
        true
    }

    /// Notes that the peer is asked for its state behind all that was sent so far.
    pub(super) fn asks(&mut self) {
        self.asked = self.resend;
    }

    /// What to send next.
    pub(super) fn poll(&mut self) -> Option<Outgoing<'_>> {
        if self.resend < self.next {
            let Block { start, length, more } = self.blocks[(self.resend - self.acknowledged) as usize];
            let sequence = (self.resend % MODULUS) as u8;
            self.resend += 1;
            let trailer = Some(Trailer { more, length, sequence });
            return Some(self.outgoing(start, u64::from(length), trailer, true));
        }
        if self.drains {
            return None;
        }
        while self.ends.front().is_some_and(|&end| end <= self.start) {
            self.ends.pop_front();
        }
        let full = self.start + self.block;
        let bound = self.ends.front().map_or(full, |&end| full.min(end));
        let at = self.start + self.begun;
        let available = self.stream_end().min(bound).min(at + self.packet);
        if available == bound {
            let more = self.ends.front() != Some(&bound);
            return Some(self.complete(at, bound, more));
        }
        if at < available {
            self.begun = available - self.start;
            return Some(self.outgoing(at, available - at, None, false));
        }
        if self.end == End::Asked && self.begun == 0 {
            self.end = End::Sent;
            return Some(self.complete(at, at, false));
        }
        None
    }

    /// Blocks that are sent and not handed on, for tests.
    #[cfg(test)]
    pub(super) fn outstanding(&self) -> u64 {
        self.next - self.opened
    }

    fn stream_end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Marks the end of a message, unless a full block has ended there already.
    fn end_message(&mut self) {
        let end = self.stream_end();
        if end > self.start && self.ends.back() != Some(&end) {
            self.ends.push_back(end);
        }
    }

    /// Sends the rest of the block `next`, from `at` to `bound`, with its trailer.
    fn complete(&mut self, at: u64, bound: u64, more: bool) -> Outgoing<'_> {
        // A block is at most 1024 bytes.
        let length = (bound - self.start) as u16;
        let trailer = Trailer { more, length, sequence: (self.next % MODULUS) as u8 };
        self.blocks.push_back(Block { start: self.start, length, more });
        self.next += 1;
        self.drains = self.next == self.opened + self.window;
        self.resend = self.next;
        self.start = bound;
        self.begun = 0;
        self.outgoing(at, bound - at, Some(trailer), false)
    }

    fn outgoing(&self, at: u64, length: u64, trailer: Option<Trailer>, again: bool) -> Outgoing<'_> {
        let (from, length) = ((at - self.base) as usize, length as usize);
        let (front, back) = self.bytes.as_slices();
        let pieces = if from >= front.len() {
            [&back[from - front.len()..][..length], &[]]
        } else {
            let first = length.min(front.len() - from);
            [&front[from..][..first], &back[..length - first]]
        };
        Outgoing { body: Body::Data { pieces, trailer }, length, complete: trailer.is_some(), again }
    }

    /// The block behind the one that the peer names by its last three bits, at or after `lowest`; `None` if no such
    /// block has been sent.
    fn behind(&self, lowest: u64, last: u8) -> Option<u64> {
        let first = lowest + (u64::from(last) + 1).wrapping_sub(lowest) % MODULUS;
        (first <= self.next).then_some(first)
    }

    fn acknowledge(&mut self, first: u64) {
        while self.acknowledged < first && self.blocks.pop_front().is_some() {
            self.acknowledged += 1;
        }
        self.resend = self.resend.max(self.acknowledged);
        let kept = self.blocks.front().map_or(self.start, |block| block.start);
        self.bytes.drain(..(kept - self.base) as usize);
        self.base = kept;
    }

    /// Sends everything again that the peer is not known to have received, what there is of an unfinished block included.
    fn go_back(&mut self) {
        if self.acknowledged < self.next {
            self.resend = self.acknowledged;
            self.begun = 0;
            // What the peer may still say about the time before that is overtaken.
            self.asked = 0;
        }
    }
}
