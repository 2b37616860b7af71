//! What is received: which TSNs are there and which are missing (RFC 9260 section 6.2), and messages put together and into
//! their order (section 6.5 and 6.6).

use std::collections::{BTreeMap, VecDeque};

use trunkline_core::{Duration, Time};

use super::sender::{EMPTY, FIRST, LAST, UNORDERED};
use super::wire::{self, is_later, kind};

/// The delay of acknowledgements (RFC 9260 section 6.2).
const DELAY: Duration = Duration::from_millis(200);
/// An acknowledgement for so many packets with data at least.
const EVERY: u32 = 2;
/// The flag of a DATA chunk that wants to be acknowledged at once.
const IMMEDIATE: u8 = 8;
/// How far behind the last TSN without a gap others may lie: gap blocks count no further than 16 bits, and sequence numbers
/// of a stream are told apart up to half of their range.
const FURTHEST: u32 = 32_767;
/// So many gaps are remembered; who sends more of them sends them again.
const MOST_GAPS: usize = 1024;
/// Maximum number of duplicates in a SACK.
const MOST_DUPLICATES: usize = 64;
/// So many buffers of messages are kept for the next.
const SPARE: usize = 64;

/// The receiving half of an association.
pub(super) struct Receiver {
    window: usize,
    /// How many streams the peer sends on.
    streams: u16,
    /// The window that was announced last.
    announced: usize,
    /// The last TSN before which none is missing, and that of all TSNs since the beginning.
    cumulative: u32,
    count: u64,
    /// What has been received behind it: the first and the last of each row, in their order, with gaps between them.
    rows: Vec<(u32, u32)>,
    /// Chunks of messages that are not complete, by their place among all TSNs.
    pieces: BTreeMap<u64, Piece>,
    /// The next sequence number of each stream that has been used.
    sequences: Vec<u16>,
    /// Complete messages that wait for others before them, by stream and sequence number.
    waiting: BTreeMap<(u16, u16), Vec<u8>>,
    ready: VecDeque<Vec<u8>>,
    /// Bytes of everything that is here.
    held: usize,
    acknowledgement: Acknowledgement,
    unacknowledged: u32,
    /// TSNs that came again since the last SACK, as often as they came.
    duplicates: Vec<u32>,
    spare: Vec<Vec<u8>>,
    /// Chunks for which there was no room.
    pub(super) refused: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledgement {
    None,
    Until(Time),
    Now,
}

struct Piece {
    flags: u8,
    stream: u16,
    sequence: u16,
    protocol: u32,
    bytes: Vec<u8>,
}

/// A DATA chunk (RFC 9260 section 3.3.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Data<'p> {
    flags: u8,
    tsn: u32,
    pub(super) stream: u16,
    sequence: u16,
    protocol: u32,
    pub(super) bytes: &'p [u8],
}

impl<'p> Data<'p> {
    /// Reads a chunk; `None` if it is too short.
    pub(super) fn parse(chunk: &wire::Chunk<'p>) -> Option<Data<'p>> {
        Some(Data {
            flags: chunk.flags,
            tsn: wire::u32_at(chunk.value, 0)?,
            stream: wire::u16_at(chunk.value, 4)?,
            sequence: wire::u16_at(chunk.value, 6)?,
            protocol: wire::u32_at(chunk.value, 8)?,
            bytes: &chunk.value[12..],
        })
    }
}

impl Receiver {
    /// With a window of so many bytes, of an association whose peer begins with the TSN `first` and sends on so many streams.
    pub(super) fn new(window: usize, first: u32, streams: u16) -> Receiver {
        Receiver {
            window,
            streams,
            announced: window,
            cumulative: first.wrapping_sub(1),
            count: 0,
            rows: Vec::new(),
            pieces: BTreeMap::new(),
            sequences: Vec::new(),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            held: 0,
            acknowledgement: Acknowledgement::None,
            unacknowledged: 0,
            duplicates: Vec::new(),
            spare: Vec::new(),
            refused: 0,
        }
    }

    /// The last TSN before which none is missing.
    pub(super) fn cumulative(&self) -> u32 {
        self.cumulative
    }

    /// Whether something is missing before what is here.
    pub(super) fn has_gaps(&self) -> bool {
        !self.rows.is_empty()
    }

    /// How many messages can be read.
    pub(super) fn readable(&self) -> usize {
        self.ready.len()
    }

    /// Whether the peer may send on a stream.
    pub(super) fn has_stream(&self, stream: u16) -> bool {
        stream < self.streams
    }

    /// Takes a DATA chunk; one of no stream is received, but thrown away (RFC 9260 section 6.5).
    pub(super) fn take(&mut self, data: &Data<'_>) {
        let ahead = data.tsn.wrapping_sub(self.cumulative);
        let latest = self.rows.last().map_or(self.cumulative, |row| row.1);
        if !is_later(data.tsn, self.cumulative) || self.is_in_a_row(data.tsn) {
            if self.duplicates.len() < MOST_DUPLICATES {
                self.duplicates.push(data.tsn);
            }
            self.acknowledgement = Acknowledgement::Now;
            return;
        }
        // What closes a gap is let in beyond the window, for it may be what others wait for; as much as an honest sender can
        // have on its way.
        let limit = if is_later(data.tsn, latest) { self.window } else { 2 * self.window };
        if self.held >= limit || ahead > FURTHEST || (ahead > 1 && self.rows.len() >= MOST_GAPS) {
            self.refused += 1;
            self.acknowledgement = Acknowledgement::Now;
            return;
        }
        let place = self.count + u64::from(ahead);
        self.note(data.tsn);
        if data.flags & IMMEDIATE != 0 || self.has_gaps() {
            self.acknowledgement = Acknowledgement::Now;
        }
        if !self.has_stream(data.stream) {
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(data.bytes);
        self.held += bytes.len();
        let Data { flags, stream, sequence, protocol, .. } = *data;
        let piece = Piece { flags, stream, sequence, protocol, bytes };
        if flags & (FIRST | LAST) == FIRST | LAST {
            self.complete(piece);
        } else {
            self.pieces.insert(place, piece);
            self.assemble(place);
        }
    }

    /// A packet with data has been taken.
    pub(super) fn end_packet(&mut self, now: Time) {
        self.unacknowledged += 1;
        self.acknowledgement = match self.acknowledgement {
            Acknowledgement::None if self.unacknowledged < EVERY => Acknowledgement::Until(now + DELAY),
            _ if self.unacknowledged < EVERY => self.acknowledgement,
            _ => Acknowledgement::Now,
        };
    }

    /// Takes a FORWARD TSN (RFC 3758 section 3.6); `streams` are pairs of numbers of 16 bits.
    pub(super) fn forward(&mut self, to: u32, streams: &[u8]) {
        self.acknowledgement = Acknowledgement::Now;
        if is_later(to, self.cumulative) {
            self.count += u64::from(to.wrapping_sub(self.cumulative));
            self.cumulative = to;
        } else if u64::from(self.cumulative.wrapping_sub(to)) > self.count {
            return; // of what was before the association
        }
        self.rows.retain_mut(|row| {
            if is_later(to.wrapping_add(1), row.0) {
                row.0 = to.wrapping_add(1);
            }
            !is_later(row.0, row.1)
        });
        self.close_gap();
        // Of messages that were given up, no more comes, also if all that was sent of them is here.
        let later = self.pieces.split_off(&(self.count_of(to) + 1));
        for piece in core::mem::replace(&mut self.pieces, later).into_values() {
            self.held -= piece.bytes.len();
            self.recycle(piece.bytes);
        }
        for pair in streams.chunks_exact(4) {
            if let (Some(stream), Some(sequence)) = (wire::u16_at(pair, 0), wire::u16_at(pair, 2)) {
                self.skip(stream, sequence);
            }
        }
    }

    /// Appends the next message; says how long it is.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> Option<usize> {
        let message = self.ready.pop_front()?;
        into.extend_from_slice(&message);
        let length = message.len();
        self.held -= length.max(1);
        self.recycle(message);
        Some(length)
    }

    /// Has the peer told that the window is open again, if it was nearly closed and a good part of it is free or nothing is
    /// left.
    pub(super) fn announce_window(&mut self) {
        let open = self.window.saturating_sub(self.held);
        let has_opened = open.saturating_sub(self.announced) >= self.window / 4 || self.ready.is_empty();
        if self.announced < self.window / 2 && open > self.announced && has_opened {
            self.acknowledgement = Acknowledgement::Now;
        }
    }

    /// Whether an acknowledgement has to be sent now.
    pub(super) fn is_due(&self, now: Time) -> bool {
        match self.acknowledgement {
            Acknowledgement::None => false,
            Acknowledgement::Until(at) => at <= now,
            Acknowledgement::Now => true,
        }
    }

    /// When an acknowledgement has to be sent.
    pub(super) fn timer(&self) -> Option<Time> {
        match self.acknowledgement {
            Acknowledgement::Until(at) => Some(at),
            Acknowledgement::None | Acknowledgement::Now => None,
        }
    }

    /// Whether there is something to be acknowledged, by and by.
    pub(super) fn owes_acknowledgement(&self) -> bool {
        self.acknowledgement != Acknowledgement::None
    }

    /// How long the acknowledgement is, in a packet with so much room.
    pub(super) fn sack_length(&self, room: usize) -> usize {
        let (rows, duplicates) = self.sack_numbers(room);
        SACK + 4 * (rows + duplicates)
    }

    /// Numbers of gap blocks and duplicates that fit into this room. Gap blocks come first, the lowest before others.
    fn sack_numbers(&self, room: usize) -> (usize, usize) {
        let room = room.saturating_sub(SACK) / 4;
        let rows = self.rows.len().min(room);
        (rows, self.duplicates.len().min(room - rows))
    }

    /// Appends a SACK (RFC 9260 section 3.3.4) to a packet with so much room. It reports each duplicate since the last one
    /// (section 6.2); those without room are forgotten.
    pub(super) fn write_sack(&mut self, into: &mut Vec<u8>, room: usize) {
        let (rows, duplicates) = self.sack_numbers(room);
        let length = SACK + 4 * (rows + duplicates);
        self.announced = self.window.saturating_sub(self.held);
        into.extend_from_slice(&[kind::SACK, 0]);
        into.extend_from_slice(&(length as u16).to_be_bytes());
        into.extend_from_slice(&self.cumulative.to_be_bytes());
        into.extend_from_slice(&u32::try_from(self.announced).unwrap_or(u32::MAX).to_be_bytes());
        into.extend_from_slice(&(rows as u16).to_be_bytes());
        into.extend_from_slice(&(duplicates as u16).to_be_bytes());
        for (first, last) in &self.rows[..rows] {
            // At most `FURTHEST`.
            into.extend_from_slice(&(first.wrapping_sub(self.cumulative) as u16).to_be_bytes());
            into.extend_from_slice(&(last.wrapping_sub(self.cumulative) as u16).to_be_bytes());
        }
        for tsn in self.duplicates.drain(..).take(duplicates) {
            into.extend_from_slice(&tsn.to_be_bytes());
        }
        self.acknowledgement = Acknowledgement::None;
        self.unacknowledged = 0;
    }

    fn is_in_a_row(&self, tsn: u32) -> bool {
        let index = self.rows.partition_point(|row| is_later(tsn, row.1));
        self.rows.get(index).is_some_and(|row| !is_later(row.0, tsn))
    }

    /// Notes a TSN that was missing.
    fn note(&mut self, tsn: u32) {
        if tsn == self.cumulative.wrapping_add(1) {
            self.cumulative = tsn;
            self.count += 1;
            return self.close_gap();
        }
        let index = self.rows.partition_point(|row| is_later(tsn, row.1));
        let joins_before = index > 0 && self.rows[index - 1].1.wrapping_add(1) == tsn;
        let joins_behind = self.rows.get(index).is_some_and(|row| row.0 == tsn.wrapping_add(1));
        match (joins_before, joins_behind) {
            (true, true) => {
                self.rows[index - 1].1 = self.rows[index].1;
                self.rows.remove(index);
            }
            (true, false) => self.rows[index - 1].1 = tsn,
            (false, true) => self.rows[index].0 = tsn,
            (false, false) => self.rows.insert(index, (tsn, tsn)),
        }
    }

    /// Passes on to the end of the first row, if nothing is missing before it.
    fn close_gap(&mut self) {
        if let Some(&(first, last)) = self.rows.first()
            && first == self.cumulative.wrapping_add(1)
        {
            self.count += u64::from(last.wrapping_sub(self.cumulative));
            self.cumulative = last;
            self.rows.remove(0);
        }
    }

    /// The place among all TSNs of one that is not later than the cumulative one.
    fn count_of(&self, tsn: u32) -> u64 {
        self.count - u64::from(self.cumulative.wrapping_sub(tsn))
    }

    /// Puts a message together if the piece at this place was the last that was missing.
    fn assemble(&mut self, place: u64) {
        // Pieces mostly come in their order: then what follows is not there.
        let Some(last) = self.end_of_run(place, LAST, |place| place.checked_add(1)) else { return };
        let Some(first) = self.end_of_run(place, FIRST, |place| place.checked_sub(1)) else { return };
        let Some(mut whole) = self.pieces.remove(&first) else { return };
        for place in first + 1..=last {
            if let Some(piece) = self.pieces.remove(&place) {
                whole.bytes.extend_from_slice(&piece.bytes);
                self.recycle(piece.bytes);
            }
        }
        self.complete(whole);
    }

    /// The nearest piece with this flag from a place on, if all between are there.
    fn end_of_run(&self, mut place: u64, flag: u8, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let other = (FIRST | LAST) & !flag;
        let begin = place;
        loop {
            let piece = self.pieces.get(&place)?;
            if piece.flags & flag != 0 {
                return Some(place);
            }
            // Another message's.
            if place != begin && piece.flags & other != 0 {
                return None;
            }
            place = next(place)?;
        }
    }

    /// Takes a whole message: it can be read when those before it can.
    fn complete(&mut self, whole: Piece) {
        let Piece { flags, stream, sequence, protocol, mut bytes } = whole;
        if protocol == EMPTY {
            // It counts as the byte that it is sent as.
            self.held -= bytes.len() - 1;
            bytes.clear();
        }
        if flags & UNORDERED != 0 {
            return self.ready.push_back(bytes);
        }
        let next = self.sequence_of(stream);
        if sequence == *next {
            *next = next.wrapping_add(1);
            self.ready.push_back(bytes);
            return self.follow(stream);
        }
        // One from before, or a second, is none of an honest sender.
        let is_late = (sequence.wrapping_sub(*next) as i16) < 0;
        if is_late || self.waiting.contains_key(&(stream, sequence)) {
            self.held -= bytes.len().max(1);
            return self.recycle(bytes);
        }
        self.waiting.insert((stream, sequence), bytes);
    }

    /// Passes on messages of a stream that have waited for the one before them.
    fn follow(&mut self, stream: u16) {
        while !self.waiting.is_empty() {
            let next = *self.sequence_of(stream);
            let Some(bytes) = self.waiting.remove(&(stream, next)) else { return };
            self.ready.push_back(bytes);
            *self.sequence_of(stream) = next.wrapping_add(1);
        }
    }

    /// Of a stream, no more messages come up to this one.
    fn skip(&mut self, stream: u16, sequence: u16) {
        let next = *self.sequence_of(stream);
        if (sequence.wrapping_sub(next) as i16) < 0 {
            return;
        }
        let of_stream = self.waiting.range((stream, 0)..=(stream, u16::MAX)).map(|(key, _)| key.1);
        let until = sequence.wrapping_sub(next);
        let mut before: Vec<u16> = of_stream.filter(|other| other.wrapping_sub(next) <= until).collect();
        before.sort_unstable_by_key(|other| other.wrapping_sub(next));
        for other in before {
            self.ready.extend(self.waiting.remove(&(stream, other)));
        }
        *self.sequence_of(stream) = sequence.wrapping_add(1);
        self.follow(stream);
    }

    fn sequence_of(&mut self, stream: u16) -> &mut u16 {
        let index = usize::from(stream);
        if self.sequences.len() <= index {
            self.sequences.resize(index + 1, 0);
        }
        &mut self.sequences[index]
    }

    fn recycle(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }
}

/// Bytes of a SACK without gap blocks and duplicates.
const SACK: usize = 16;
