//! Busy time of a line, of which only that within the measurement counts.

use trunkline_core::{Duration, PacketId, Ratio, Time};

/// How long a line was busy. A transmission is counted when it begins, so that the last one may reach beyond the moment at
/// which the measurement ends: that part is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusyTime {
    total: Duration,
    /// The busy time of the last transmissions without a gap between them, or of the parts of the last one, and when they begin.
    last: Duration,
    since: Time,
    /// When the last transmission begins, and when it ends.
    begun: Time,
    until: Time,
    /// The packet of the last transmission, and the part of it that this carries.
    carried: (PacketId, f64),
    /// What had passed of it when the measurement ended.
    measured: Option<Duration>,
}

impl BusyTime {
    /// Adds a transmission that ends at `until` and keeps the line busy for `busy` before that.
    pub fn add(&mut self, until: Time, busy: Duration) {
        self.total += busy;
        let follows = until.since(self.until) <= busy;
        self.begun = Time::from_nanos(until.as_nanos().saturating_sub(busy.as_nanos()));
        if follows {
            self.last += busy;
        } else {
            (self.last, self.since) = (busy, self.begun);
        }
        self.until = until;
    }

    /// Adds a part of the last transmission, perhaps after a pause.
    pub(crate) fn add_part(&mut self, until: Time, busy: Duration) {
        self.total += busy;
        self.last += busy;
        self.until = until;
    }

    /// The last transmission carries this part of a packet.
    #[inline]
    pub(crate) fn carries(&mut self, packet: PacketId, part: f64) {
        self.carried = (packet, part);
    }

    /// All of it, with the transmissions that have not ended yet.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The same with a total that is known more exactly than the sum of the transmissions.
    pub(crate) fn with_total(self, total: Duration) -> BusyTime {
        BusyTime { total, ..self }
    }

    /// The part of it that has passed at `at`. Transmissions that have begun and not ended by then stand without gaps, or have
    /// equal ones between their parts.
    pub fn by(&self, at: Time) -> Duration {
        let (left, span) = (self.until.since(at), self.until.since(self.since));
        let to_come = match self.last < span {
            true => Duration::from_nanos((self.last.as_nanos() as f64 * ratio(left, span)) as u64),
            false => left,
        };
        self.total.saturating_sub(self.last.min(to_come))
    }

    /// The packet of the transmission that is under way at `at`, and the share of the packet that is still to come.
    pub fn under_way(&self, at: Time) -> Option<(PacketId, f64)> {
        let (left, (packet, part)) = (self.until.since(at), self.carried);
        (left > Duration::ZERO).then(|| (packet, part * ratio(left, self.until.since(self.begun)).min(1.0)))
    }

    /// The measurement ends at `at`: later transmissions do not count. Only the first call does something.
    pub fn end(&mut self, at: Time) {
        self.measured = self.measured.or(Some(self.by(at)));
    }

    /// The busy time of a measurement of this length.
    pub fn measured(&self, over: Duration) -> Duration {
        self.measured.unwrap_or_else(|| self.by(Time::ZERO + over))
    }

    /// Its share of a measurement of this length.
    pub fn share(&self, over: Duration) -> Ratio {
        share(self.measured(over), over)
    }
}

/// The share that a part has of a time, at most 1.
pub(crate) fn share(part: Duration, of: Duration) -> Ratio {
    if of.is_zero() {
        return Ratio::ZERO;
    }
    Ratio::new(ratio(part, of).min(1.0)).unwrap_or_default()
}

fn ratio(part: Duration, of: Duration) -> f64 {
    part.as_secs_f64() / of.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Time {
        Time::ZERO + MS(ms)
    }

    #[test]
    fn the_part_of_a_transmission_beyond_the_end_does_not_count() {
        let mut busy = BusyTime::default();
        busy.add(at(10), MS(10));
        busy.add(at(30), MS(10));
        busy.carries(PacketId(7), 0.5);
        for (now, passed) in [(10, 10), (20, 10), (25, 15), (30, 20), (100, 20)] {
            assert_eq!(busy.by(at(now)), MS(passed), "after {now} ms");
        }
        assert_eq!(busy.total(), MS(20));
        assert_eq!((busy.under_way(at(25)), busy.under_way(at(30))), (Some((PacketId(7), 0.25)), None));
    }

    #[test]
    fn transmissions_known_in_advance_count_as_far_as_they_have_passed() {
        let mut busy = BusyTime::default();
        [10, 20, 30].into_iter().for_each(|end| busy.add(at(end), MS(10)));
        for (now, passed) in [(0, 0), (5, 5), (15, 15), (30, 30), (31, 30)] {
            assert_eq!(busy.by(at(now)), MS(passed), "after {now} ms");
        }
    }

    #[test]
    fn parts_with_gaps_count_as_far_as_they_have_passed() {
        let mut busy = BusyTime::default();
        busy.add(at(10), MS(10));
        busy.add(at(40), MS(10));
        [60, 80, 100].into_iter().for_each(|end| busy.add_part(at(end), MS(10)));
        busy.carries(PacketId(1), 1.0);
        assert_eq!((busy.by(at(30)), busy.by(at(65)), busy.by(at(100))), (MS(10), MS(30), MS(50)));
        assert_eq!(busy.under_way(at(65)), Some((PacketId(1), 0.5)));
    }

    #[test]
    fn the_share_is_of_the_measurement() {
        let mut busy = BusyTime::default();
        busy.add(at(50), MS(50));
        assert_eq!(busy.share(MS(100)), Ratio::new(0.5).unwrap());
        busy.end(at(100));
        // What is sent while the rest drains.
        busy.add(at(300), MS(200));
        busy.end(at(300));
        assert_eq!((busy.share(MS(100)), busy.total()), (Ratio::new(0.5).unwrap(), MS(250)));
        assert_eq!(BusyTime::default().share(Duration::ZERO), Ratio::ZERO);
    }
}
