//! The host's side: packets become cells, which leave as the shaper and the line allow.

use trunkline_core::{Bytes, Duration, PacketId, Ratio, Time};

use super::config::AtmConfig;
use crate::busy::BusyTime;
use crate::gcra::{Contract, Gcra, TheoreticalArrival, Usage};

/// What a cell carries.
const PAYLOAD: u64 = 48;
/// The trailer of an AAL5 packet, at the end of its last cell.
const TRAILER: Bytes = Bytes(8);

/// What all channels of a host share: how packets are cut and shaped, and the line.
#[derive(Debug)]
pub(super) struct Adapter {
    overhead: Bytes,
    shaper: Contract,
    line: Gcra,
    free: TheoreticalArrival,
    sent: u64,
    busy: BusyTime,
}

impl Adapter {
    pub(super) fn new(config: &AtmConfig) -> Adapter {
        Adapter {
            overhead: config.overhead,
            shaper: config.shaper,
            line: Gcra::new(config.line, Duration::ZERO),
            free: TheoreticalArrival::default(),
            sent: 0,
            busy: BusyTime::default(),
        }
    }

    /// Busy time of the line.
    fn busy(&self) -> BusyTime {
        self.busy.with_total(self.line.time_for(self.sent))
    }

    /// Ends the measurement: cells sent from `at` on do not count as busy time.
    pub(super) fn end_measurement(&mut self, at: Time) {
        self.busy = self.busy();
        self.busy.end(at);
    }

    /// The last cells are this part of a packet.
    #[inline]
    pub(super) fn carries(&mut self, packet: PacketId, part: f64) {
        self.busy.carries(packet, part);
    }

    /// The packet whose cells are on the line at `at`, and the share of it that is still to come.
    pub(super) fn under_way(&self, at: Time) -> Option<(PacketId, f64)> {
        self.busy.under_way(at)
    }

    /// The share of a measurement of this length in which the line was busy.
    pub(super) fn utilisation(&self, over: Duration) -> Ratio {
        self.busy().share(over)
    }

    /// How many cells a packet takes.
    #[inline]
    pub(super) fn cells(&self, size: Bytes) -> u64 {
        (size + self.overhead + TRAILER).count().div_ceil(PAYLOAD)
    }

    /// When the line takes the next cell.
    #[inline]
    pub(super) fn line_free(&self) -> Time {
        self.line.earliest(&self.free)
    }

    /// When the shaper lets go the next cell of a channel.
    #[inline]
    pub(super) fn conforming(&self, shaped: &Usage) -> Time {
        self.shaper.earliest(shaped)
    }

    /// When the next cell of a channel can leave, if no other does.
    #[inline]
    pub(super) fn earliest(&self, shaped: &Usage) -> Time {
        self.line_free().max(self.conforming(shaped))
    }

    /// Sends a cell, not before [`Self::earliest`], and returns when it is through the line. What the shaper counts is
    /// when cells really leave: whatever else is on the line, a channel's cells conform. A cell that `follows` is of the same
    /// packet as the one before it, and was sent with it.
    #[inline]
    pub(super) fn send(&mut self, shaped: &mut Usage, at: Time, follows: bool) -> Time {
        self.line.count(&mut self.free, at);
        self.shaper.count(shaped, at);
        let through = at + self.line.increment();
        self.sent += 1;
        let increment = self.line.increment();
        if follows {
            self.busy.add_part(through, increment)
        } else {
            self.busy.add(through, increment)
        }
        through
    }
}
