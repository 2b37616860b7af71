//! The receiving half of a stream: putting data in order again, and saying what is here and what may come.

use std::collections::VecDeque;

use super::wire::Span;

/// Data from the network to the user. Bytes are numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    capacity: usize,
    max_spans: usize,
    /// The least by which the window is opened, unless it is half of the buffer.
    step: u64,
    /// Whether missing data will come yet. Otherwise the stream goes on past them.
    repaired: bool,
    /// The bytes from `read` on; where the stream is repaired, with holes between the spans.
    bytes: VecDeque<u8>,
    read: u64,
    rseq: u64,
    spans: Vec<Span>,
    /// What was allocated last.
    alloc: u64,
    /// With reservation, up to where the user has asked for data.
    reserved: Option<u64>,
    /// The number of the byte after the last, once the sender said so.
    end: Option<u64>,
    /// The user was promised a report when it has read up to here.
    promised: Option<u64>,
    lost: u64,
}

/// Streams are shorter than this; a larger number is one from before the first byte, wrapped around.
pub(super) const LARGEST: u64 = u64::MAX / 2;

/// What became of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// They continue what is here.
    InOrder,
    /// Something before them is missing that was not missing before.
    NewGap,
    /// They lie behind a gap that is known.
    BehindGap,
    /// They were here already, or are too late.
    Old,
    /// There is no room for them.
    NoRoom,
}

impl Incoming {
    /// `step` is the data of an ordinary packet, in bytes.
    pub(super) fn new(capacity: usize, max_spans: usize, step: usize) -> Incoming {
        Incoming {
            capacity,
            max_spans,
            step: step.min(capacity.div_ceil(2)) as u64,
            repaired: true,
            bytes: VecDeque::new(),
            read: 0,
            rseq: 0,
            spans: Vec::new(),
            alloc: capacity as u64,
            reserved: None,
            end: None,
            promised: None,
            lost: 0,
        }
    }

    /// Says how the sender treats losses. It cannot change its mind once data are here.
    pub(super) fn set_repaired(&mut self, repaired: bool) {
        if self.rseq == 0 && self.spans.is_empty() {
            self.repaired = repaired;
        }
    }

    /// Takes data that begin with the byte `start`.
    pub(super) fn take(&mut self, start: u64, data: &[u8]) -> Taken {
        let end = start.saturating_add(data.len() as u64);
        if end > LARGEST || end <= self.rseq || self.end.is_some_and(|last| end > last) {
            return Taken::Old;
        }
        if self.repaired { self.put(start, end, data) } else { self.append(start, end, data) }
    }

    /// Into its place.
    fn put(&mut self, start: u64, end: u64, data: &[u8]) -> Taken {
        // The next packet is taken into an empty buffer, whatever its size: sent without flow control, or before the
        // sender knew the buffer, it would never come smaller.
        let next = start <= self.rseq && self.bytes.is_empty();
        if end > self.read + self.capacity as u64 && !next {
            return Taken::NoRoom;
        }
        if start > self.rseq {
            return self.put_behind_gap(start, end, data);
        }
        let new = &data[(self.rseq - start) as usize..];
        self.write(self.rseq, new);
        self.rseq = end;
        let joined = self.spans.iter().take_while(|span| span.left <= end).count();
        if let Some(last) = self.spans[..joined].last() {
            self.rseq = end.max(last.right);
            self.spans.drain(..joined);
        }
        Taken::InOrder
    }

    fn put_behind_gap(&mut self, start: u64, end: u64, data: &[u8]) -> Taken {
        // The spans that the new one touches become one with it.
        let first = self.spans.partition_point(|span| span.right < start);
        let after = first + self.spans[first..].iter().take_while(|span| span.left <= end).count();
        if first == after && self.spans.len() == self.max_spans {
            return Taken::NoRoom;
        }
        if let Some(span) = self.spans[first..after].first()
            && span.left <= start
            && span.right >= end
        {
            return Taken::Old;
        }
        self.write(start, data);
        let behind_all = first == self.spans.len();
        let touched = &self.spans[first..after];
        let left = touched.first().map_or(start, |span| span.left.min(start));
        let right = touched.last().map_or(end, |span| span.right.max(end));
        if touched.is_empty() {
            self.spans.insert(first, Span { left, right });
        } else {
            self.spans[first] = Span { left, right };
            self.spans.drain(first + 1..after);
        }
        if behind_all { Taken::NewGap } else { Taken::BehindGap }
    }

    /// Behind all that is here: what is missing before it will not come.
    fn append(&mut self, start: u64, end: u64, data: &[u8]) -> Taken {
        if start > self.rseq {
            self.lost += start - self.rseq;
        }
        let new = &data[self.rseq.saturating_sub(start) as usize..];
        self.rseq = end;
        if self.bytes.len() + new.len() > self.capacity {
            self.lost += new.len() as u64;
            return Taken::NoRoom;
        }
        self.bytes.extend(new);
        Taken::InOrder
    }

    fn write(&mut self, start: u64, data: &[u8]) {
        let from = (start - self.read) as usize;
        let known = self.bytes.len();
        if from == known {
            self.bytes.extend(data);
            return;
        }
        let to = from + data.len();
        if to > known {
            self.bytes.resize(to, 0);
        }
        let (front, back) = self.bytes.as_mut_slices();
        let cut = front.len();
        let in_front = cut.clamp(from, to) - from;
        front[from.min(cut)..to.min(cut)].copy_from_slice(&data[..in_front]);
        back[from.saturating_sub(cut)..to.saturating_sub(cut)].copy_from_slice(&data[in_front..]);
    }

    /// The sender says that its last byte is before this number. False if that cannot be.
    pub(super) fn finish(&mut self, end: u64) -> bool {
        let highest = self.spans.last().map_or(self.rseq, |span| span.right);
        if end < highest || end > LARGEST || self.end.is_some_and(|known| known != end) {
            return false;
        }
        self.end = Some(end);
        if !self.repaired {
            self.lost += end - self.rseq;
            self.rseq = end;
        }
        true
    }

    /// Whether everything up to the end is here.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.rseq)
    }

    /// Whether everything up to the end was read.
    pub(super) fn is_finished(&self) -> bool {
        self.is_complete() && self.readable() == 0
    }

    /// Appends all that can be read to `into`, and says how many bytes that is.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> usize {
        let length = self.readable();
        let (front, back) = self.bytes.as_slices();
        let cut = front.len().min(length);
        into.extend_from_slice(&front[..cut]);
        into.extend_from_slice(&back[..length - cut]);
        self.bytes.drain(..length);
        self.read = if self.repaired { self.read + length as u64 } else { self.rseq };
        if let Some(reserved) = &mut self.reserved {
            *reserved += length as u64;
        }
        length
    }

    /// How many bytes can be read.
    pub(super) fn readable(&self) -> usize {
        if self.repaired { (self.rseq - self.read) as usize } else { self.bytes.len() }
    }

    /// From now on allocates only what the user asks for; the first time as much as the buffer holds.
    pub(super) fn use_reservation(&mut self) {
        self.reserved.get_or_insert(self.alloc);
    }

    /// The user asks for so many bytes more. Without reservation that changes nothing.
    pub(super) fn reserve(&mut self, bytes: u64) {
        if let Some(reserved) = &mut self.reserved {
            *reserved = reserved.saturating_add(bytes);
        }
    }

    /// Whether the window has opened so far that the sender should be told without asking. A step by step opening would
    /// make it send little packets.
    pub(super) fn has_opened(&self) -> bool {
        let enough = match self.reserved {
            Some(_) => 1,
            None => self.step.max(self.capacity as u64 / 2),
        };
        self.end.is_none() && self.open_to() >= self.alloc + enough
    }

    /// What to allocate, now that the sender is told.
    pub(super) fn allocate(&mut self) -> u64 {
        let open_to = self.open_to();
        if open_to >= self.alloc + self.step || self.reserved.is_some() {
            self.alloc = open_to.max(self.alloc);
        }
        self.alloc
    }

    fn open_to(&self) -> u64 {
        let held = if self.repaired { self.read } else { self.rseq - self.bytes.len() as u64 };
        let buffer = held + self.capacity as u64;
        self.reserved.map_or(buffer, |reserved| reserved.min(buffer))
    }

    /// Promises a report when the user has read everything before this number.
    pub(super) fn promise_delivery(&mut self, before: u64) {
        self.promised = self.promised.max(Some(before));
    }

    /// Whether a promised report is due now; says so once.
    pub(super) fn delivery_is_due(&mut self) -> bool {
        let due = self.promised.is_some_and(|before| match self.repaired {
            true => self.read >= before,
            false => self.bytes.is_empty() && self.rseq >= before,
        });
        if due {
            self.promised = None;
        }
        due
    }

    /// All bytes below this number are here, or will never be.
    pub(super) fn rseq(&self) -> u64 {
        self.rseq
    }

    /// What is here above [`rseq`](Incoming::rseq).
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Bytes that will never come.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests;
