//! The generic cell rate algorithm: which cells of a connection conform to a rate (ITU-T I.371; ATM Forum Traffic
//! Management 4.0, section 4.4.3).
//!
//! A policer asks it whether a cell conforms; a shaper runs it forwards and asks when the next one will; a line, on which
//! a cell leaves when the one before it has left, is one without tolerance; and a buffer in front of that line is one
//! whose tolerance is what may wait. Bytes instead of cells are counted by a [bucket](crate::bucket), the algorithm's
//! other form.

#[cfg(test)]
mod tests;

use trunkline_core::{Bytes, Duration, Rate, Time};

/// A cell with its header.
pub const CELL: Bytes = Bytes(53);

/// 1 s in nanoseconds, times the bits of a cell.
const SCALE: u64 = CELL.count() * 8 * 1_000_000_000;

/// GCRA(I, L) in its virtual scheduling form: the parameters, of one connection or of many alike.
///
/// A cell conforms if it does not come before its theoretical arrival time (TAT) minus L; the TAT of the next is then
/// max(t, TAT) + I. So the conforming cells are those for which `t_j - t_i >= (j - i) I - L` for all i < j of them.
///
/// An increment is rarely a whole number of nanoseconds: cells of 1 Gbit/s follow each other in 424 ns, those of
/// 1594 kbit/s in 265,997.49. The TAT is kept exactly and compared in whole nanoseconds, rounded down, so that no cell is
/// refused for a fraction of one, and whoever sends at the TAT stays at exactly that rate for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gcra {
    /// The increment in whole nanoseconds.
    increment: u64,
    /// The rest of it, in 1/rate nanoseconds.
    rest: u64,
    /// Bits per second.
    rate: u64,
    /// The limit in nanoseconds.
    limit: u64,
}

/// A connection's theoretical arrival time; by default that of one that has not sent for long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TheoreticalArrival {
    nanoseconds: u64,
    /// In 1/rate nanoseconds, below the rate.
    fraction: u64,
}

impl Gcra {
    /// Cells at `rate`, their headers included, with a tolerance of `limit`. A rate of zero is taken as 1 bit/s.
    pub fn new(rate: Rate, limit: Duration) -> Gcra {
        // So that two fractions add up in 64 bits.
        let rate = rate.bits_per_second().clamp(1, u64::MAX / 2);
        Gcra { increment: SCALE / rate, rest: SCALE % rate, rate, limit: limit.as_nanos() }
    }

    /// When the next cell conforms at the earliest.
    #[inline]
    pub fn earliest(&self, tat: &TheoreticalArrival) -> Time {
        Time::from_nanos(tat.nanoseconds.saturating_sub(self.limit))
    }

    /// Counts a cell if it conforms, and says whether it does.
    #[inline]
    pub fn admit(&self, tat: &mut TheoreticalArrival, at: Time) -> bool {
        let conforms = at >= self.earliest(tat);
        if conforms {
            self.count(tat, at);
        }
        conforms
    }

    /// Counts a cell that conforms.
    #[inline]
    pub fn count(&self, tat: &mut TheoreticalArrival, at: Time) {
        // Within the nanosecond of the TAT, the TAT is later.
        if at.as_nanos() > tat.nanoseconds {
            *tat = TheoreticalArrival { nanoseconds: at.as_nanos(), fraction: 0 };
        }
        let fraction = tat.fraction + self.rest;
        let carry = u64::from(fraction >= self.rate);
        tat.fraction = fraction - carry * self.rate;
        tat.nanoseconds = tat.nanoseconds.saturating_add(self.increment + carry);
    }

    /// How far ahead of the time the connection is.
    #[inline]
    pub fn ahead(&self, tat: &TheoreticalArrival, at: Time) -> Duration {
        Time::from_nanos(tat.nanoseconds).since(at)
    }

    /// The TAT, rounded up: when a line of this rate is through with the cells that were counted.
    #[inline]
    pub fn due(&self, tat: &TheoreticalArrival) -> Time {
        Time::from_nanos(tat.nanoseconds.saturating_add(u64::from(tat.fraction > 0)))
    }

    /// The increment, rounded up: how long a cell takes on a line of this rate.
    pub fn increment(&self) -> Duration {
        Duration::from_nanos(self.increment + u64::from(self.rest > 0))
    }

    /// How many cells this time is enough for, rounded up.
    pub fn cells_in(&self, time: Duration) -> u64 {
        let scaled = u128::from(time.as_nanos()) * u128::from(self.rate);
        u64::try_from(scaled.div_ceil(u128::from(SCALE))).unwrap_or(u64::MAX)
    }

    /// How long `cells` take, rounded down.
    pub fn time_for(&self, cells: u64) -> Duration {
        let nanoseconds = u128::from(cells) * u128::from(SCALE) / u128::from(self.rate);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

/// What a virtual channel was promised: a peak cell rate, a sustainable one with a burst, both or neither.
///
/// A cell conforms to both or counts for neither (Traffic Management 4.0, section 4.4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contract {
    peak: Option<Gcra>,
    sustained: Option<Gcra>,
}

/// How much of its contract a channel has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    peak: TheoreticalArrival,
    sustained: TheoreticalArrival,
}

impl Contract {
    /// Nothing is limited.
    pub const NONE: Contract = Contract { peak: None, sustained: None };

    /// Cells at `pcr` at most, with the tolerance `cdvt`: CBR, or the first half of VBR.
    pub fn peak(pcr: Rate, cdvt: Duration) -> Contract {
        Contract { peak: Some(Gcra::new(pcr, cdvt)), sustained: None }
    }

    /// As well as what is promised already, cells at `scr` at most in the long run, and `mbs` of them at `pcr`:
    /// GCRA(1/SCR, BT + CDVT) with the burst tolerance BT = (MBS - 1)(1/SCR - 1/PCR).
    #[must_use]
    pub fn and_sustained(self, scr: Rate, mbs: u64, pcr: Rate, cdvt: Duration) -> Contract {
        Contract { sustained: Some(Gcra::new(scr, burst_tolerance(scr, mbs, pcr) + cdvt)), ..self }
    }

    /// When the next cell conforms at the earliest.
    #[inline]
    pub fn earliest(&self, usage: &Usage) -> Time {
        let of = |gcra: &Option<Gcra>, tat| gcra.map_or(Time::ZERO, |gcra| gcra.earliest(tat));
        of(&self.peak, &usage.peak).max(of(&self.sustained, &usage.sustained))
    }

    /// Counts a cell if it conforms, and says whether it does.
    #[inline]
    pub fn admit(&self, usage: &mut Usage, at: Time) -> bool {
        let conforms = at >= self.earliest(usage);
        if conforms {
            self.count(usage, at);
        }
        conforms
    }

    /// Counts a cell that conforms.
    #[inline]
    pub fn count(&self, usage: &mut Usage, at: Time) {
        if let Some(peak) = &self.peak {
            peak.count(&mut usage.peak, at);
        }
        if let Some(sustained) = &self.sustained {
            sustained.count(&mut usage.sustained, at);
        }
    }
}

/// (MBS - 1)(1/SCR - 1/PCR), rounded up to the nanosecond so that the whole burst conforms; nothing if SCR is not below
/// PCR.
fn burst_tolerance(scr: Rate, mbs: u64, pcr: Rate) -> Duration {
    let [scr, pcr] = [scr, pcr].map(|rate| u128::from(rate.bits_per_second().max(1)));
    // Rates are below 2^50 and bursts below 2^32: the product has less than 2^128.
    let cells = u128::from(mbs.saturating_sub(1)) * pcr.saturating_sub(scr);
    let nanoseconds = cells.saturating_mul(u128::from(SCALE)).div_ceil(scr * pcr);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
