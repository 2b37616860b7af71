//! A record as a row of fixed width: how it waits in memory and in the journal.

use trunkline_core::Time;
use trunkline_metrics::{Fate, Record};

/// Bytes of a row.
pub(crate) const ROW: usize = 48;

/// The names of the fates in a trace, by their number.
pub(crate) const FATES: [(Fate, &str); 6] = [
    (Fate::Received, "received"),
    (Fate::Late, "late"),
    (Fate::Lost, "lost"),
    (Fate::Duplicate, "duplicate"),
    (Fate::Refused, "refused"),
    (Fate::Unfinished, "unfinished"),
];

const SENT: u8 = 1;
const RECEIVED: u8 = 2;
const REFLECTED: u8 = 4;

/// Writes `record` as a row; all numbers are little-endian.
#[inline]
pub(crate) fn encode(record: &Record) -> [u8; ROW] {
    let mut row = [0; ROW];
    let nanos = |time: Option<Time>| time.unwrap_or(Time::ZERO).as_nanos().to_le_bytes();
    row[0..8].copy_from_slice(&record.due.as_nanos().to_le_bytes());
    row[8..16].copy_from_slice(&nanos(record.sent));
    row[16..24].copy_from_slice(&nanos(record.received));
    row[24..32].copy_from_slice(&nanos(record.reflected));
    row[32..36].copy_from_slice(&record.member.to_le_bytes());
    row[36..40].copy_from_slice(&record.sequence.to_le_bytes());
    row[40..44].copy_from_slice(&record.payload.to_le_bytes());
    row[44..46].copy_from_slice(&record.channel.to_le_bytes());
    row[46] = record.fate as u8;
    row[47] = if record.sent.is_some() { SENT } else { 0 }
        | if record.received.is_some() { RECEIVED } else { 0 }
        | if record.reflected.is_some() { REFLECTED } else { 0 };
    row
}

/// A view of one row.
#[derive(Clone, Copy)]
pub(crate) struct Row<'b>(&'b [u8; ROW]);

/// The whole rows in `bytes`.
pub(crate) fn rows(bytes: &[u8]) -> impl ExactSizeIterator<Item = Row<'_>> {
    bytes.as_chunks::<ROW>().0.iter().map(Row)
}

impl Row<'_> {
    pub(crate) fn member(self) -> i32 {
        self.int(32)
    }
    pub(crate) fn channel(self) -> i32 {
        i32::from(u16::from_le_bytes([self.0[44], self.0[45]]))
    }
    pub(crate) fn sequence(self) -> i32 {
        self.int(36)
    }
    pub(crate) fn payload(self) -> i32 {
        self.int(40)
    }
    pub(crate) fn due(self) -> i64 {
        self.long(0)
    }
    pub(crate) fn sent(self) -> Option<i64> {
        (self.0[47] & SENT != 0).then(|| self.long(8))
    }
    pub(crate) fn received(self) -> Option<i64> {
        (self.0[47] & RECEIVED != 0).then(|| self.long(16))
    }
    pub(crate) fn reflected(self) -> Option<i64> {
        (self.0[47] & REFLECTED != 0).then(|| self.long(24))
    }
    /// The fate's number; of a journal that was damaged in spite of its checksum, `Lost`.
    pub(crate) fn fate(self) -> u8 {
        let fate = self.0[46];
        if usize::from(fate) < FATES.len() { fate } else { Fate::Lost as u8 }
    }

    fn int(self, at: usize) -> i32 {
        let b = self.0;
        i32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
    }
    fn long(self, at: usize) -> i64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        i64::from_le_bytes(bytes)
    }
}
