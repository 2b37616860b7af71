//! The receiving half of a connection: bytes in order and behind gaps, what is reported of them (RFC 2018, RFC 2883), when
//! that is reported, and the window.
//!
//! Places are the peer's: its SYN has place 0, its first byte 1.

mod acks;
mod window;

use std::collections::VecDeque;

use trunkline_core::{Duration, Time};

use acks::Acks;
use window::{RightSizing, Window};

use super::config::{TcpConfig, WindowUpdates};

/// What the sending half knows that acknowledgements depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The smoothed round trip, zero without a sample.
    pub(super) round_trip: Duration,
    /// The retransmission timeout.
    pub(super) timeout: Duration,
}

/// What a segment brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'p> {
    /// The place of its first byte.
    pub(super) place: i64,
    pub(super) data: &'p [u8],
    pub(super) push: bool,
    pub(super) fin: bool,
    /// The age of the time stamp that it echoes, if that is another than the one before.
    pub(super) echo_age: Option<Duration>,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The peer's initial sequence number.
    initial: u32,
    /// What is unread, from `read` on; gaps are filled with zeros.
    bytes: VecDeque<u8>,
    read: u64,
    /// The first place of which nothing has come.
    next: u64,
    /// What has come behind it: first places and those after the last, in order, with gaps between them.
    rows: Vec<(u64, u64)>,
    /// Bytes in them.
    beyond: u64,
    /// Up to four of the rows, the one that was added to last first (RFC 2018 section 4).
    recent: [(u64, u64); 4],
    /// What has come twice and was not yet reported.
    duplicate: Option<(u64, u64)>,
    /// The place of the peer's FIN.
    fin: Option<u64>,
    is_classic: bool,
    window: Window,
    sizing: RightSizing,
    acks: Acks,
    /// Segments that had come before.
    pub(super) duplicates: u64,
}

impl Receiver {
    pub(super) fn new(config: &TcpConfig) -> Receiver {
        Receiver {
            initial: 0,
            bytes: VecDeque::new(),
            read: 1,
            next: 1,
            rows: Vec::new(),
            beyond: 0,
            recent: [(0, 0); 4],
            duplicate: None,
            fin: None,
            is_classic: config.window_updates != WindowUpdates::Doubled,
            window: Window::new(config),
            sizing: RightSizing::default(),
            acks: Acks::new(config.acks),
            duplicates: 0,
        }
    }

    /// The peer begins with this sequence number.
    pub(super) fn begin(&mut self, initial: u32) {
        self.initial = initial;
    }

    /// Both SYNs are acknowledged: segments have `mss` bytes at most.
    pub(super) fn establish(&mut self, now: Time, mss: u32) {
        // Better too small than too large: it grows with the first full segment.
        self.acks.mss = mss.min(self.window.wnd as u32 / 2).clamp(88, 536);
        self.window.mss = mss;
        self.sizing.begin(now, self.read, &self.window);
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
        self.sequence_of(self.next)
    }

    /// The sequence number of a place.
    pub(super) fn sequence_of(&self, place: u64) -> u32 {
        self.initial.wrapping_add(place as u32)
    }

    /// Whether the peer sends nothing more, and all of it is here.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// Bytes in order and unread.
    pub(super) fn readable(&self) -> usize {
        (self.fin.map_or(self.next, |fin| fin.min(self.next)) - self.read) as usize
    }

    /// Whether a segment with these places lies in what was announced (RFC 9293 section 3.4; Linux counts from the last
    /// acknowledgement on).
    pub(super) fn is_acceptable(&self, from: i64, to: i64) -> bool {
        to >= self.window.updated_at as i64 && from <= (self.next + self.open_window()) as i64
    }

    /// Where the last row ends that a reset may name (RFC 5961 section 3.2).
    pub(super) fn last_row_end(&self) -> Option<i64> {
        self.rows.last().map(|row| row.1 as i64)
    }

    /// Takes what a segment brings. Returns whether there is more to read.
    pub(super) fn accept(&mut self, now: Time, text: Text<'_>, pace: Pace) -> bool {
        let Text { place, data, fin, .. } = text;
        if data.is_empty() && !fin {
            return false;
        }
        let end = place + data.len() as i64;
        let next = self.next as i64;
        let is_old = end + i64::from(fin) <= next;
        if is_old {
            self.note_duplicate(place.max(1) as u64, (end.max(1) as u64).min(self.next));
            self.duplicates += 1;
            self.reject(now, pace);
            return false;
        }
        let window = self.open_window();
        let is_bare_fin = fin && data.is_empty() && place == next;
        if window == 0 && !is_bare_fin || place > next && place >= next + window as i64 {
            if place < next {
                self.note_duplicate(place.max(1) as u64, self.next);
            }
            self.reject(now, pace);
            return false;
        }
        if place > next {
            self.accept_beyond(now, text, pace);
            return false;
        }
        if place < next {
            self.note_duplicate(place.max(1) as u64, self.next);
        }
        self.accept_in_order(now, text, pace)
    }

    fn accept_in_order(&mut self, now: Time, text: Text<'_>, pace: Pace) -> bool {
        let Text { place, data, fin, .. } = text;
        let before = self.readable();
        let known = (self.next as i64 - place) as usize;
        let had_gaps = !self.rows.is_empty();
        let (from, to) = (self.next, self.next + data.len().saturating_sub(known) as u64);
        self.note_fin(fin, to);
        let to = self.fin.map_or(to, |fin| to.min(fin));
        if from < to {
            self.store(from, &data[known..][..(to - from) as usize]);
            self.sizing.take(now, &text, self.next, &self.window, self.acks.mss);
            self.acks.take_data(now, data.len() - known, text.push, self.window.wnd, pace, self.window.mss);
        }
        self.acks.is_scheduled = true;
        if data.len() >= 128 && self.grow_window(data.len()) {
            self.acks.quicken(1);
        }
        if self.fin == Some(self.next) {
            self.next += 1;
        }
        if self.is_finished() {
            self.acks.peer_finished();
        }
        if had_gaps {
            self.forget_filled();
            // RFC 5681 section 4.2: at once where a gap is filled.
            self.acks.is_due |= self.rows.is_empty() || !self.acks.config.adaptive;
        }
        let is_new = self.readable() > before;
        self.decide(now, is_new && (text.push || !self.acks.config.unpushed), pace);
        is_new
    }

    fn accept_beyond(&mut self, now: Time, text: Text<'_>, pace: Pace) {
        let Text { place, data, fin, .. } = text;
        let (from, to) = (place as u64, place as u64 + data.len() as u64);
        self.note_fin(fin, to);
        let to = self.fin.map_or(to, |fin| to.min(fin));
        if from < to {
            self.keep(from, &data[..(to - from) as usize]);
        }
        // A FIN has a place like a byte, and is reported like one.
        let end = to + u64::from(fin && self.fin == Some(to));
        if from < end {
            self.join_rows(from, end);
        }
        if data.len() >= 128 {
            self.grow_window(data.len());
        }
        if !self.acks.is_overdue {
            self.acks.is_scheduled = true;
            self.decide(now, false, pace);
        }
    }

    /// Notes the peer's FIN behind the byte before `at`, unless something lies behind it. It cannot move: its place may be in a
    /// row, as one without a byte.
    fn note_fin(&mut self, fin: bool, at: u64) {
        if fin && self.fin.is_none() && self.rows.last().is_none_or(|last| last.1 <= at) {
            self.fin = Some(at);
        }
    }

    /// Appends what is there to be read; an acknowledgement may follow from that.
    pub(super) fn read(&mut self, now: Time, into: &mut Vec<u8>, config: &TcpConfig) -> usize {
        let length = self.readable();
        if length == 0 {
            return 0;
        }
        let (front, back) = self.bytes.as_slices();
        let split = length.min(front.len());
        into.extend_from_slice(&front[..split]);
        into.extend_from_slice(&back[..length - split]);
        self.bytes.drain(..length);
        self.read += length as u64;
        self.sizing.read(now, self.read, &mut self.window, config);
        self.acks.is_held = false;
        self.announce_reading(config);
        length
    }

    /// Blocks to be reported with an acknowledgement that has room for so many: what came twice first, then rows by how
    /// recently they were added to.
    pub(super) fn take_blocks(&mut self, most: usize, mut push: impl FnMut(u32, u32)) {
        let mut left = most;
        if let Some((from, to)) = self.duplicate.take().filter(|_| left > 0) {
            push(self.sequence_of(from), self.sequence_of(to));
            left -= 1;
        }
        let newest = usize::from(self.acks.is_overdue);
        for (from, to) in self.recent.into_iter().skip(newest).filter(|row| row.0 < row.1).take(left) {
            push(self.sequence_of(from), self.sequence_of(to));
        }
    }

    /// How many blocks there are to be reported.
    pub(super) fn block_count(&self) -> usize {
        let rows = self.recent.iter().skip(usize::from(self.acks.is_overdue)).filter(|row| row.0 < row.1);
        usize::from(self.duplicate.is_some()) + rows.count()
    }

    /// Whether an empty buffer holds memory.
    pub(super) fn holds_memory(&self) -> bool {
        // A FIN behind a gap is a row without bytes.
        self.bytes.is_empty()
            && (self.bytes.capacity() > 0 || self.rows.is_empty() && self.rows.capacity() > 0)
    }

    /// Gives memory of empty buffers back.
    pub(super) fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = VecDeque::new();
        }
        if self.rows.is_empty() {
            self.rows = Vec::new();
        }
    }

    /// Bytes that wait here, behind gaps or unread.
    fn queued(&self) -> u64 {
        self.readable() as u64 + self.beyond
    }

    fn note_duplicate(&mut self, from: u64, to: u64) {
        if from < to {
            self.duplicate = Some((from, to));
        }
    }

    /// Puts bytes into their places, of which the first is not before the expected one.
    fn keep(&mut self, from: u64, data: &[u8]) {
        let at = (from - self.read) as usize;
        if at == self.bytes.len() {
            self.bytes.extend(data);
        } else {
            self.bytes.resize(self.bytes.len().max(at + data.len()), 0);
            self.bytes.range_mut(at..).zip(data).for_each(|(old, new)| *old = *new);
        }
    }

    /// The same, and notes that they are there.
    fn store(&mut self, from: u64, data: &[u8]) {
        self.keep(from, data);
        let to = from + data.len() as u64;
        if from == self.next && self.rows.is_empty() {
            self.next = to;
            return;
        }
        self.join_rows(from, to);
    }

    /// Adds a row, and joins it with those that it touches.
    fn join_rows(&mut self, from: u64, to: u64) {
        let first = self.rows.partition_point(|row| row.1 < from);
        let behind = self.rows.partition_point(|row| row.0 <= to);
        let (mut joined, mut known) = ((from, to), 0);
        for &(start, end) in &self.rows[first..behind] {
            if start < to && from < end {
                self.duplicate = Some((start.max(from), end.min(to)));
                self.duplicates += u64::from(start <= from && to <= end);
            }
            known += end - start;
            joined = (joined.0.min(start), joined.1.max(end));
        }
        self.rows.splice(first..behind, [joined]);
        self.beyond += joined.1 - joined.0 - known;
        if joined.0 <= self.next {
            self.next = joined.1;
            self.beyond -= joined.1 - joined.0;
            self.rows.remove(0);
        } else {
            self.note_recent(joined);
        }
    }

    /// A row that was just added to is reported first; those that it has taken in disappear.
    fn note_recent(&mut self, row: (u64, u64)) {
        let is_known = |other: &(u64, u64)| row.0 <= other.1 && other.0 <= row.1;
        let others =
            self.recent.iter().filter(|other| other.0 < other.1).take_while(|other| !is_known(other));
        self.acks.changed_row(others.count());
        let mut kept = [row, (0, 0), (0, 0), (0, 0)];
        let others = self.recent.iter().filter(|other| other.1 < row.0 || row.1 < other.0);
        for (place, other) in kept[1..].iter_mut().zip(others.filter(|other| other.0 < other.1)) {
            *place = *other;
        }
        self.recent = kept;
    }

    /// Forgets reports of what is in order now.
    fn forget_filled(&mut self) {
        let next = self.next;
        let mut kept = [(0, 0); 4];
        for (place, row) in kept.iter_mut().zip(self.recent.iter().filter(|row| row.0 > next)) {
            *place = *row;
        }
        self.recent = kept;
    }
}
