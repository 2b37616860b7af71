//! Selective acknowledgements (RFC 2018) and reports of duplicates (RFC 2883).

use super::Sender;
use super::ack::Findings;
use crate::tcp::flow::{MAX_REORDERING, Phase};
use crate::tcp::scoreboard::{Id, mark};

/// A block in places: its first, and the one after its last.
type Block = (u64, u64);

impl Sender {
    /// Takes the blocks of an acknowledgement.
    pub(super) fn tag_blocks(&mut self, blocks: &[(i64, i64)], found: &mut Findings) {
        if blocks.is_empty() || !self.has_sack {
            return;
        }
        if self.flow.sacked_out == 0 {
            self.sacked_end = 0;
            self.seen_blocks = [(0, 0); 4];
        }
        let duplicate = self.take_duplicate(blocks, found);
        if self.flow.packets_out == 0 {
            return;
        }
        let mut valid = [(0, 0); 4];
        let mut count = 0;
        if let Some((from, to)) = duplicate.filter(|block| block.1 > found.prior_una as i64) {
            self.tag_duplicate((from.max(0) as u64, to as u64), found);
        }
        for &block in blocks.iter().take(4) {
            if let Some(block) = self.valid_block(block, found.prior_una) {
                valid[count] = block;
                count += 1;
            }
        }
        let valid = &mut valid[..count];
        valid.sort_unstable();
        for &block in valid.iter() {
            self.tag_new_parts(block, found);
        }
        self.seen_blocks = [(0, 0); 4];
        self.seen_blocks[..count].copy_from_slice(valid);
        if self.flow.phase != Phase::Loss || self.undo.marker.is_some() {
            self.note_reordering(found.overtaken);
        }
    }

    /// The end of what has arrived, with gaps before it or not.
    pub(super) fn arrived_end(&self) -> u64 {
        if self.flow.sacked_out == 0 { self.flow.una } else { self.sacked_end.max(self.flow.una) }
    }

    /// Reordering shows where a segment arrives after a later one and was sent only once. `place` is the lowest such.
    pub(super) fn note_reordering(&mut self, place: u64) {
        let end = self.arrived_end();
        if place >= end {
            return;
        }
        let distance =
            ((end - place).div_ceil(u64::from(self.flow.mss))).min(u64::from(MAX_REORDERING)) as u32;
        self.flow.reordering = self.flow.reordering.max(distance);
        self.rack.reordering_seen = self.rack.reordering_seen.saturating_add(1);
    }

    /// A report of a duplicate in the first block: it lies before the acknowledgement, or within the second block (RFC 2883
    /// section 4).
    fn take_duplicate(&mut self, blocks: &[(i64, i64)], found: &mut Findings) -> Option<(i64, i64)> {
        let first = *blocks.first()?;
        let una = self.flow.una as i64;
        let is_inside = blocks.get(1).is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
        if first.0 >= first.1 || !(first.0 < una || is_inside) {
            return None;
        }
        let length = (first.1 - first.0) as u64;
        if length > self.max_window {
            return None;
        }
        let mss = u64::from(self.flow.mss);
        let segments = length.div_ceil(mss) as u32;
        found.duplicate_of_probe |= segments == 1 && self.tlp_end > 0 && self.tlp_end as i64 == first.1;
        self.counters.spurious += u64::from(segments);
        // More duplicates than repetitions are the network's.
        if self.counters.spurious > self.counters.repeated() {
            self.counters.spurious -= u64::from(segments);
            return None;
        }
        if self.rack.reordering_seen > 0 && !found.duplicate_of_probe {
            self.rack.duplicate_seen = true;
        }
        found.duplicate = true;
        found.sacked_count += segments;
        let marker = self.undo.marker.map(|marker| marker as i64);
        if first.1 <= found.prior_una as i64 && marker.is_some_and(|marker| first.1 > marker) {
            self.forget_repetitions(segments);
        }
        Some(first)
    }

    /// The peer had these repetitions already.
    fn forget_repetitions(&mut self, count: u32) {
        if let Some(repetitions) = &mut self.undo.repetitions {
            *repetitions = repetitions.saturating_sub(count);
        }
    }

    /// A block that can be believed: within what is unacknowledged.
    fn valid_block(&self, (from, to): (i64, i64), prior_una: u64) -> Option<Block> {
        let (una, next) = (self.flow.una as i64, self.flow.next as i64);
        let is_valid = from < to && to <= next && from > una && to > prior_una as i64;
        is_valid.then_some((from as u64, to as u64))
    }

    /// The peer had segments in this block twice.
    fn tag_duplicate(&mut self, (from, to): Block, found: &mut Findings) {
        let marker = self.undo.marker;
        let mut id = self.board.find(from);
        while let Some(sent) = self.board.get(id).filter(|sent| sent.place < to).copied() {
            let is_inside = from <= sent.place && sent.end() <= to;
            if is_inside && sent.has(mark::EVER_REPEATED) {
                if marker.is_some_and(|marker| sent.end() > marker) {
                    self.forget_repetitions(1);
                }
                if sent.has(mark::SACKED) {
                    found.overtaken = found.overtaken.min(sent.place);
                }
            }
            id = id.wrapping_add(1);
        }
    }

    /// Looks at the parts of a block that the last acknowledgement's blocks did not have.
    fn tag_new_parts(&mut self, (mut from, to): Block, found: &mut Findings) {
        for (seen_from, seen_to) in self.seen_blocks {
            if seen_to <= from || seen_from >= to {
                continue;
            }
            if seen_from > from {
                self.tag_range((from, seen_from), found);
            }
            from = from.max(seen_to);
        }
        if from < to {
            self.tag_range((from, to), found);
        }
    }

    fn tag_range(&mut self, (from, to): Block, found: &mut Findings) {
        let mut id = self.board.find(from);
        while let Some(sent) = self.board.get(id).filter(|sent| sent.place < to) {
            if from <= sent.place && sent.end() <= to {
                self.tag(id, found);
            }
            id = id.wrapping_add(1);
        }
    }

    /// A segment has arrived out of order.
    fn tag(&mut self, id: Id, found: &mut Findings) {
        let (high, sacked_end) = (self.high, self.arrived_end());
        let Some(sent) = self.board.get_mut(id).filter(|sent| !sent.has(mark::SACKED)) else { return };
        let marks = sent.marks;
        let flow = &mut self.flow;
        if marks & mark::REPEATED != 0 {
            // A repetition that was not needed is still under way.
            if marks & mark::LOST != 0 {
                sent.marks &= !(mark::LOST | mark::REPEATED);
                flow.lost_out -= 1;
                flow.retrans_out -= 1;
            }
        } else {
            if marks & mark::EVER_REPEATED == 0 {
                if sent.place < sacked_end {
                    found.overtaken = found.overtaken.min(sent.place);
                }
                found.original_acked |= sent.end() <= high;
                let first = found.sacked_at.map_or(sent.sent_at, |(first, _)| first);
                found.sacked_at = Some((first, sent.sent_at));
            }
            if marks & mark::LOST != 0 {
                sent.marks &= !mark::LOST;
                flow.lost_out -= 1;
            }
        }
        sent.marks |= mark::SACKED;
        flow.sacked_out += 1;
        found.data_sacked = true;
        found.sacked_count += 1;
        self.rack.advance(flow, sent);
        self.sacked_end = self.sacked_end.max(sent.end());
        found.rate.take(flow, sent, true);
        self.board.unlist(id);
    }
}
