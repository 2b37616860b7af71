//! What is received: bytes in their order and behind gaps, when they are acknowledged (RFC 1122 section 4.2.3.2), and the
//! window that is announced (section 4.2.3.3).
//!
//! Bytes have places: that of the peer's SYN is 0, that of its first byte 1.

use std::collections::VecDeque;

use trunkline_core::{Duration, Time};

use super::config::TcpConfig;

/// The receiving half of a connection.
pub(super) struct Receiver {
    /// What may wait here unread, and so be announced.
    capacity: usize,
    /// The largest segment that the peer sends.
    mss: usize,
    delay: Duration,
    every: u32,
    unpushed: bool,
    updates: bool,
    /// The peer's initial sequence number.
    initial: u32,
    /// What is unread, from `read` on; gaps are filled up with zeros.
    bytes: VecDeque<u8>,
    read: u64,
    /// The first place of which nothing has come.
    next: u64,
    /// What has come behind it: first places and those after the last, in order, with gaps between them.
    rows: Vec<(u64, u64)>,
    /// The place of the peer's FIN.
    fin: Option<u64>,
    /// The place behind the announced window. It never moves back (RFC 1122 section 4.2.2.16).
    edge: u64,
    /// Whether the peer was told of no room, or of too little for it to use.
    is_closed: bool,
    /// What was acknowledged last.
    acknowledged: u64,
    due: Due,
    /// Segments that had come before.
    pub(super) duplicates: u64,
}

/// When the next acknowledgement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Never,
    At(Time),
    Now,
}

/// What a segment brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'p> {
    /// The place of its first byte, which may lie before that of the SYN.
    pub(super) place: i64,
    pub(super) data: &'p [u8],
    pub(super) push: bool,
    pub(super) fin: bool,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig) -> Receiver {
        Receiver {
            capacity: config.window.min(usize::from(u16::MAX)),
            mss: config.mss,
            delay: config.delayed_ack,
            every: config.ack_every,
            unpushed: config.ack_unpushed,
            updates: config.window_updates,
            initial: 0,
            bytes: VecDeque::new(),
            read: 1,
            next: 1,
            rows: Vec::new(),
            fin: None,
            edge: 1,
            is_closed: false,
            acknowledged: 1,
            due: Due::Never,
            duplicates: 0,
        }
    }

    /// The peer begins with this sequence number, and sends no larger segments.
    pub(super) fn begin(&mut self, initial: u32, mss: usize) {
        (self.initial, self.mss) = (initial, mss);
    }

    /// The place of a sequence number: the nearest to what is expected.
    pub(super) fn place(&self, sequence: u32) -> i64 {
        self.next as i64 + i64::from(sequence.wrapping_sub(self.acknowledgement()) as i32)
    }

    /// The place that is expected.
    pub(super) fn expected(&self) -> i64 {
        self.next as i64
    }

    /// The sequence number that is expected.
    pub(super) fn acknowledgement(&self) -> u32 {
        self.initial.wrapping_add(self.next as u32)
    }

    /// How many sequence numbers from the expected one on may come.
    pub(super) fn room(&self) -> u64 {
        self.end_of_room().saturating_sub(self.next)
    }

    /// Whether the peer sends nothing more, and all of it is here.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// Bytes in order and unread.
    pub(super) fn readable(&self) -> usize {
        (self.fin.map_or(self.next, |fin| fin.min(self.next)) - self.read) as usize
    }

    /// Takes what a segment brings; whether there is more to read.
    pub(super) fn accept(&mut self, now: Time, text: Text<'_>) -> bool {
        let Text { place, data, push, fin } = text;
        if data.is_empty() && !fin {
            return false;
        }
        let end = place + data.len() as i64;
        if end + i64::from(fin) <= self.next as i64 {
            self.duplicates += 1;
            self.due = Due::Now;
            return false;
        }
        let known = (self.next as i64 - place).clamp(0, data.len() as i64);
        let from = place.max(self.next as i64) as u64;
        let to = (end as u64).min(self.end_of_room());
        if fin && to == end as u64 && self.rows.last().is_none_or(|last| last.1 <= to) {
            self.fin = Some(to);
        }
        let before = self.readable();
        let had_gaps = !self.rows.is_empty();
        if from < to {
            self.store(from, &data[known as usize..][..(to - from) as usize]);
        }
        if self.fin == Some(self.next) {
            self.next += 1;
        }
        let is_new = self.readable() > before;
        let in_order = is_new && !had_gaps && self.rows.is_empty() && !self.is_finished();
        self.acknowledge(now, in_order && (push || !self.unpushed));
        is_new
    }

    /// Appends what is there to be read.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> usize {
        let length = self.readable();
        let (front, back) = self.bytes.as_slices();
        let split = length.min(front.len());
        into.extend_from_slice(&front[..split]);
        into.extend_from_slice(&back[..length - split]);
        self.bytes.drain(..length);
        self.read += length as u64;
        length
    }

    /// Tells the peer of room that reading has made, if it is worth a segment: two of its segments, or half the buffer.
    pub(super) fn update_window(&mut self) {
        let gain = self.end_of_room().saturating_sub(self.edge) as usize;
        let is_told = self.updates || self.is_closed;
        if is_told && gain >= (2 * self.mss).min(self.capacity / 2).max(1) && !self.is_finished() {
            self.due = Due::Now;
        }
    }

    /// The window to be announced with an acknowledgement that is sent now: nothing rather than a little (RFC 1122 section
    /// 4.2.3.3).
    pub(super) fn announce(&mut self) -> u16 {
        let free = (self.capacity - self.readable()) as u64;
        let least = self.mss.min(self.capacity / 2).max(1) as u64;
        let edge = self.next + if free < least { 0 } else { free };
        self.edge = self.edge.max(edge);
        self.is_closed = self.edge - self.next < least;
        self.acknowledged = self.next;
        self.due = Due::Never;
        // The room after the expected place is at most the capacity, which the field can hold.
        (self.edge - self.next) as u16
    }

    /// An acknowledgement is to be sent at once.
    pub(super) fn acknowledge_now(&mut self) {
        self.due = Due::Now;
    }

    /// Whether an acknowledgement is to be sent.
    pub(super) fn is_due(&self, now: Time) -> bool {
        match self.due {
            Due::Never => false,
            Due::At(at) => at <= now,
            Due::Now => true,
        }
    }

    /// When an acknowledgement will be due.
    pub(super) fn timer(&self) -> Option<Time> {
        if let Due::At(at) = self.due { Some(at) } else { None }
    }

    fn acknowledge(&mut self, now: Time, may_wait: bool) {
        let most = u64::from(self.every) * self.mss as u64;
        if !may_wait || self.delay.is_zero() || self.next - self.acknowledged >= most {
            self.due = Due::Now;
        } else if self.due == Due::Never {
            self.due = Due::At(now + self.delay);
        }
    }

    /// Where the buffer ends, or what the peer sends.
    fn end_of_room(&self) -> u64 {
        let end = self.read + self.capacity as u64;
        self.fin.map_or(end, |fin| fin.min(end))
    }

    /// Puts bytes into their places, of which the first is not before the expected one.
    fn store(&mut self, from: u64, data: &[u8]) {
        let (at, to) = ((from - self.read) as usize, from + data.len() as u64);
        if at == self.bytes.len() {
            self.bytes.extend(data);
        } else {
            self.bytes.resize(self.bytes.len().max(at + data.len()), 0);
            self.bytes.range_mut(at..).zip(data).for_each(|(old, new)| *old = *new);
        }
        if from == self.next && self.rows.is_empty() {
            self.next = to;
            return;
        }
        let first = self.rows.partition_point(|row| row.1 < from);
        let behind = self.rows.partition_point(|row| row.0 <= to);
        let joined = match self.rows.get(first..behind) {
            Some([one, .., other]) => (from.min(one.0), to.max(other.1)),
            Some([one]) => {
                self.duplicates += u64::from(one.0 <= from && to <= one.1);
                (from.min(one.0), to.max(one.1))
            }
            _ => (from, to),
        };
        self.rows.splice(first..behind, [joined]);
        if let Some(&(start, end)) = self.rows.first()
            && start <= self.next
        {
            self.next = end;
            self.rows.remove(0);
        }
    }
}
