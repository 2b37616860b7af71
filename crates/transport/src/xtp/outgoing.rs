//! The sending half of a stream: data that wait, data under way, and how much may be sent.

use std::collections::VecDeque;

use super::flight::{Flight, Sent};
use super::wire::Span;

/// Data from the user to the network. Bytes are numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    reliable: bool,
    capacity: usize,
    /// The bytes from `base` on: unacknowledged ones first if the stream is reliable, then those not sent yet.
    bytes: VecDeque<u8>,
    base: u64,
    next: u64,
    /// Where the messages end that are not wholly sent yet.
    ends: VecDeque<u64>,
    flight: Flight,
    /// Bytes below this number may be sent; `None` without flow control.
    limit: Option<u64>,
    /// Whether the receiver has allocated anything yet.
    allocated: bool,
    /// The widest window so far.
    widest: u64,
    /// The size of a message that found no room.
    refused: Option<usize>,
    /// The latest echo of a report.
    echo: u32,
}

/// Data for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) length: usize,
    /// The data end a message.
    pub(super) ends_message: bool,
    /// As it was sent before, if it was.
    pub(super) again: Option<Sent>,
}

/// A report that speaks of data that were never sent, or contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadReport;

impl Outgoing {
    /// `window` is what may be sent before the receiver said anything; `None` without flow control.
    pub(super) fn new(reliable: bool, capacity: usize, window: Option<u64>) -> Outgoing {
        Outgoing {
            reliable,
            capacity,
            bytes: VecDeque::new(),
            base: 0,
            next: 0,
            ends: VecDeque::new(),
            flight: Flight::default(),
            limit: window,
            allocated: false,
            widest: window.unwrap_or(0),
            refused: None,
            echo: 0,
        }
    }

    /// Takes a message, or a piece of one, or refuses it: then nothing was taken.
    pub(super) fn push(&mut self, bytes: &[u8], more: bool) -> bool {
        if !self.has_room(bytes.len()) {
            self.refused = Some(bytes.len());
            return false;
        }
        self.bytes.extend(bytes);
        let end = self.written();
        if !more && end > self.next && self.ends.back() != Some(&end) {
            self.ends.push_back(end);
        }
        true
    }

    /// Whether a message that was refused would be taken now; says so once.
    pub(super) fn has_room_again(&mut self) -> bool {
        let room = self.refused.is_some_and(|size| self.has_room(size));
        if room {
            self.refused = None;
        }
        room
    }

    /// The next data to be sent: missing ones first, then new ones if `new`. Not more than `max` bytes, and not more
    /// than flow control allows.
    pub(super) fn next_chunk(&mut self, max: usize, new: bool) -> Option<Chunk> {
        if let Some(sent) = self.flight.next_again() {
            let allowed = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(sent.start));
            let length = sent.length.min(max).min(usize::try_from(allowed).unwrap_or(usize::MAX));
            let ends_message = sent.ends_message && length == sent.length;
            return (length > 0).then_some(Chunk {
                start: sent.start,
                length,
                ends_message,
                again: Some(sent),
            });
        }
        if new { self.next_new(max) } else { None }
    }

    /// Whole messages as far as they fit into one packet, or as much of a larger one as does.
    fn next_new(&mut self, max: usize) -> Option<Chunk> {
        let waiting = self.unsent();
        if waiting == 0 {
            return None;
        }
        let largest_end = self.next + max as u64;
        let whole = self.ends.iter().take_while(|&&end| end <= largest_end).last();
        let (mut length, mut ends_message) = match whole {
            Some(&end) => ((end - self.next) as usize, true),
            None => (waiting.min(max), false),
        };
        if let Some(limit) = self.limit {
            let window = limit.saturating_sub(self.next);
            if window < length as u64 {
                // Not a little for every little that opens, as long as more is to be expected ("silly window").
                if window == 0 || window < self.widest / 2 && !self.flight.is_empty() {
                    return None;
                }
                length = window as usize;
                ends_message = self.ends.contains(&(self.next + window));
            }
        }
        Some(Chunk { start: self.next, length, ends_message, again: None })
    }

    /// Appends a chunk's bytes to `into`.
    pub(super) fn copy(&self, chunk: &Chunk, into: &mut Vec<u8>) {
        let from = chunk.start.saturating_sub(self.base) as usize;
        let to = (from + chunk.length).min(self.bytes.len());
        let (front, back) = self.bytes.as_slices();
        let cut = front.len();
        into.extend_from_slice(&front[from.min(cut)..to.min(cut)]);
        into.extend_from_slice(&back[from.saturating_sub(cut)..to.saturating_sub(cut)]);
    }

    /// Notes that a chunk was sent, with the tag of [`Flight`].
    pub(super) fn sent(&mut self, chunk: &Chunk, tag: u32) {
        match chunk.again {
            Some(sent) => self.flight.sent_again(sent, chunk.length, tag),
            None => {
                self.next += chunk.length as u64;
                while self.ends.front().is_some_and(|&end| end <= self.next) {
                    self.ends.pop_front();
                }
                if self.reliable {
                    self.flight.sent(chunk.start, chunk.length, chunk.ends_message, tag);
                } else {
                    self.release(self.next);
                }
            }
        }
    }

    /// Takes a report: everything below `rseq` arrived, everything below `alloc` may be sent, `spans` arrived too, and
    /// the receiver has seen the request `echo`. Returns how many packets are newly to be sent again.
    pub(super) fn report(
        &mut self,
        rseq: u64,
        alloc: u64,
        echo: u32,
        spans: impl Iterator<Item = Span>,
    ) -> Result<usize, BadReport> {
        if rseq > self.next {
            return Err(BadReport);
        }
        self.allow(alloc);
        let outdated = rseq < self.base || !super::wait::reaches(echo, self.echo);
        self.acknowledge(rseq);
        if !self.reliable || outdated {
            return Ok(0);
        }
        self.echo = echo;
        self.find_missing(rseq, echo, spans)
    }

    /// Marks what a report misses as to be sent again.
    pub(super) fn find_missing(
        &mut self,
        rseq: u64,
        echo: u32,
        spans: impl Iterator<Item = Span>,
    ) -> Result<usize, BadReport> {
        let (mut from, mut found) = (rseq, 0);
        for Span { left, right } in spans {
            if left < from || right <= left || right > self.next {
                return Err(BadReport);
            }
            found += self.flight.missing(from, left, echo, true);
            from = right;
        }
        Ok(found + self.flight.missing(from, self.next, echo, false))
    }

    /// Bytes below this number may be sent. What was allocated once stays so; what was assumed before does not.
    pub(super) fn allow(&mut self, alloc: u64) {
        if let Some(limit) = &mut self.limit {
            let assumed = !core::mem::replace(&mut self.allocated, true);
            *limit = if assumed { alloc } else { alloc.max(*limit) };
            self.widest = self.widest.max(limit.saturating_sub(self.base));
        }
    }

    /// As [`allow`](Outgoing::allow), but it may also be less than before: another receiver has less room.
    pub(super) fn set_limit(&mut self, alloc: u64) {
        if let Some(limit) = &mut self.limit {
            *limit = alloc;
            self.widest = self.widest.max(limit.saturating_sub(self.base));
        }
    }

    /// Forgets what arrived: everything below this number.
    pub(super) fn acknowledge(&mut self, below: u64) {
        if self.reliable && below > self.base {
            let below = below.min(self.next);
            self.flight.acknowledge(below);
            self.release(below);
        }
    }

    /// Forgets everything, and takes nothing more.
    pub(super) fn clear(&mut self) {
        self.bytes = VecDeque::new();
        self.ends.clear();
        self.flight.clear();
        self.base = self.next;
        self.refused = None;
    }

    /// The number of the next byte that was never sent.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The number of the first byte that is still kept.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The number of the byte after all that was taken.
    pub(super) fn written(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// How many bytes were never sent.
    pub(super) fn unsent(&self) -> usize {
        (self.written() - self.next) as usize
    }

    /// Whether data are under way that are not acknowledged.
    pub(super) fn in_flight(&self) -> bool {
        !self.flight.is_empty()
    }

    /// Whether a message was refused, and is waited for.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Whether the chunk after this one is another one that was missing.
    pub(super) fn several_again(&self) -> bool {
        self.flight.several_again()
    }

    /// How far flow control lets the sender go on; `None` without it.
    pub(super) fn limit(&self) -> Option<u64> {
        self.limit
    }

    fn has_room(&self, size: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len().saturating_add(size) <= self.capacity
    }

    fn release(&mut self, below: u64) {
        self.bytes.drain(..(below - self.base) as usize);
        self.base = below;
    }
}
