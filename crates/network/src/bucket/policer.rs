//! Policing by token buckets.

use trunkline_core::{Bytes, Time};

use super::TokenBucket;

/// The priority of a tagged packet: what the drop precedence of a DSCP is for, as far as priority queues go.
pub const LEAST_URGENT: u16 = u16::MAX;

/// Compares packets with what was promised: a committed rate with a burst, and perhaps a peak rate with one of its own.
///
/// With both it is the two rate three color marker of RFC 2698 in color-blind mode. With the committed rate alone nothing
/// is yellow, and what exceeds it is red.
#[derive(Clone, Debug)]
pub struct Policer {
    committed: TokenBucket,
    peak: Option<TokenBucket>,
    /// What becomes of packets that exceed the committed rate, but not the peak rate if there is one.
    excess: Excess,
}

/// What a policer finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Within the committed rate.
    Green,
    /// Beyond it, within the peak rate.
    Yellow,
    /// Beyond all that was promised.
    Red,
}

/// What a policer does with packets that exceed what was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Counts them.
    Pass,
    /// Makes them the [least urgent](LEAST_URGENT).
    Tag,
    /// Discards them.
    Discard,
}

impl Policer {
    /// A policer that has seen nothing for long.
    pub fn new(committed: TokenBucket, peak: Option<TokenBucket>, excess: Excess) -> Policer {
        Policer { committed, peak, excess }
    }

    /// Takes the terms of another; tokens that are there stay, as far as there is room for them.
    pub(crate) fn change(&mut self, at: Time, to: Policer) {
        self.committed.change(at, &to.committed);
        match (&mut self.peak, to.peak) {
            (Some(own), Some(new)) => own.change(at, &new),
            (own, new) => *own = new,
        }
        self.excess = to.excess;
    }

    /// Meters a packet: what color it has. Tokens are taken from the buckets that have enough only.
    #[inline]
    pub fn meter(&mut self, at: Time, size: Bytes) -> Color {
        if let Some(peak) = &mut self.peak {
            if !peak.has(at, size) {
                return Color::Red;
            }
            peak.take(at, size);
        }
        if self.committed.has(at, size) {
            self.committed.take(at, size);
            return Color::Green;
        }
        if self.peak.is_some() { Color::Yellow } else { Color::Red }
    }

    /// What is done with packets of a color: those beyond a peak rate are discarded whatever is done with the excess below
    /// it.
    pub fn action(&self, color: Color) -> Option<Excess> {
        match color {
            Color::Green => None,
            Color::Red if self.peak.is_some() => Some(Excess::Discard),
            Color::Yellow | Color::Red => Some(self.excess),
        }
    }
}
