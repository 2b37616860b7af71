//! The token, and the timers by which a station knows whether it is early.
//!
//! Every station has a token rotation timer (TRT) that runs for the TTRT. If the token comes before it expires, the token
//! is early by what is left: the timer is started anew, and asynchronous frames may begin for that long. If the timer
//! expires first, it is started anew at that moment and the late counter counts; the next token is late, clears the
//! counter and leaves the timer running, so that lateness is made up for (X3.139 section 8.3).

use trunkline_core::{Duration, Time};

use crate::queue::Sojourns;

/// Distances on the ring.
#[derive(Debug)]
pub(super) struct Ring {
    /// Nanoseconds from the first station to each, increasing, and back to the first.
    offsets: Vec<u64>,
}

impl Ring {
    /// Stations at equal distances, each of which delays what it repeats by at least 1 ns.
    pub(super) fn new(propagation: Duration, latencies: impl ExactSizeIterator<Item = Duration>) -> Ring {
        let stations = latencies.len() as u64;
        let (mut offsets, mut repeated) = (vec![0], 0);
        for (hops, latency) in (1..).zip(latencies) {
            repeated += latency.as_nanos().max(1);
            // Rounded from the whole length, so that no fractions add up.
            offsets.push(repeated + propagation.as_nanos() * hops / stations);
        }
        Ring { offsets }
    }

    pub(super) fn stations(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How long a bit takes around it.
    pub(super) fn latency(&self) -> Duration {
        Duration::from_nanos(self.whole())
    }

    /// How long a bit takes from one station to another; from a station to itself it goes round.
    pub(super) fn between(&self, from: usize, to: usize) -> Duration {
        Duration::from_nanos(self.nanos(from, to))
    }

    fn whole(&self) -> u64 {
        self.offsets[self.stations()]
    }

    #[inline]
    fn nanos(&self, from: usize, to: usize) -> u64 {
        let round = if to > from { 0 } else { self.whole() };
        round + self.offsets[to] - self.offsets[from]
    }
}

/// The token on its way, with every station's timer. Times are in nanoseconds.
#[derive(Debug)]
pub(super) struct Token {
    ring: Ring,
    ttrt: u64,
    /// The station that it reached last, and when its end left that.
    at: usize,
    left: u64,
    /// When each station's TRT expires next, unless the token comes and finds it early.
    expires: Vec<u64>,
    /// No timer expires before this time.
    all_early_until: u64,
    /// The most that each station's late counter has counted.
    late_max: Vec<u64>,
    rotations: Rotations,
}

impl Token {
    /// The token at the first station at time zero, as if it had gone round an idle ring before. The TTRT is at least
    /// twice the ring's latency.
    pub(super) fn new(ring: Ring, ttrt: Duration) -> Token {
        let (stations, ttrt) = (ring.stations(), ttrt.as_nanos());
        // The others saw it less than a rotation ago.
        let last_seen = |station: usize| (ttrt + ring.nanos(0, station)) - ring.whole();
        Token {
            expires: (0..stations).map(last_seen).collect(),
            all_early_until: 0,
            late_max: vec![0; stations],
            ring,
            ttrt,
            at: 0,
            left: 0,
            rotations: Rotations::default(),
        }
    }

    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(super) fn ttrt(&self) -> Duration {
        Duration::from_nanos(self.ttrt)
    }

    /// The station that it reached last.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// When it left that.
    pub(super) fn left(&self) -> Time {
        Time::from_nanos(self.left)
    }

    /// The most that a station's late counter has counted.
    pub(super) fn late_max(&self, station: usize) -> u64 {
        self.late_max[station]
    }

    /// The most that any has.
    pub(super) fn late_most(&self) -> u64 {
        self.late_max.iter().copied().max().unwrap_or(0)
    }

    /// When it comes to a station.
    #[inline]
    pub(super) fn arrival(&self, station: usize) -> Time {
        Time::from_nanos(self.left + self.ring.nanos(self.at, station))
    }

    /// When it first comes to a station at or after a time, if nobody keeps it.
    pub(super) fn arrival_from(&self, station: usize, not_before: Time) -> Time {
        let first = self.arrival(station);
        let rounds = not_before.since(first).as_nanos().div_ceil(self.ring.whole());
        first + Duration::from_nanos(rounds * self.ring.whole())
    }

    /// Lets it pass all stations that it reaches until then.
    pub(super) fn pass_until(&mut self, to: Time) {
        // No ring turns for 292 years, and so no sum of times overflows.
        let (to, whole) = (to.as_nanos().min(u64::MAX / 2), self.ring.whole());
        loop {
            if to.saturating_sub(self.left) >= whole && self.is_early_until(self.left + whole) {
                self.skip((to - self.left) / whole);
            }
            let reached = self.reached(to);
            if reached == self.at {
                return;
            }
            self.pass(reached);
        }
    }

    /// Lets it come to a station at the time that [`Self::arrival`] said, and tells until when it is early, if it is.
    pub(super) fn stop(&mut self, station: usize, at: Time) -> Option<Time> {
        self.pass_until(Time::from_nanos(at.as_nanos() - 1));
        debug_assert_eq!((self.at + 1) % self.ring.stations(), station, "the token stops where it comes");
        self.left = at.as_nanos();
        self.at = station;
        self.visit(station, self.left).map(Time::from_nanos)
    }

    /// Lets it leave the station that has kept it.
    pub(super) fn leave(&mut self, at: Time) {
        self.left = at.as_nanos();
    }

    /// Its rotations until then, if it left where it is at `left` and nobody keeps it any more.
    pub(super) fn rotations_until(&self, left: Time, until: Time) -> Rotations {
        let mut rotations = self.rotations.clone();
        let (first, until) = (left.as_nanos() + self.ring.nanos(self.at, 0), until.as_nanos());
        if first <= until {
            rotations.record(first);
            rotations.record_idle(self.ring.whole(), (until - first) / self.ring.whole());
        }
        rotations
    }

    /// The last station that it reaches until then on its way to the first one, which counts as one behind the last.
    #[inline]
    fn reached(&self, to: u64) -> usize {
        let ahead = &self.ring.offsets[self.at + 1..];
        // Nobody is reached before the next one is.
        let end = (to + self.ring.offsets[self.at]).saturating_sub(self.left);
        if ahead[0] > end { self.at } else { self.at + ahead.partition_point(|&offset| offset <= end) }
    }

    /// Lets it pass the stations up to one ahead.
    fn pass(&mut self, last: usize) {
        let (stations, lap) = (self.ring.stations(), self.left - self.ring.offsets[self.at]);
        let (first, arrival) = (self.at + 1, lap + self.ring.offsets[last]);
        let before_last = last.min(stations - 1);
        if self.is_early_until(arrival) {
            let expires = &mut self.expires[first..=before_last];
            for (expires, offset) in expires.iter_mut().zip(&self.ring.offsets[first..=before_last]) {
                *expires = lap + offset + self.ttrt;
            }
        } else {
            for station in first..=before_last {
                self.visit(station, lap + self.ring.offsets[station]);
            }
        }
        if last == stations {
            self.visit(0, arrival);
        }
        self.at = if last == stations { 0 } else { last };
        self.left = arrival;
    }

    /// Lets it go round so often, early everywhere.
    fn skip(&mut self, rounds: u64) {
        let (whole, offsets) = (self.ring.whole(), &self.ring.offsets);
        self.rotations.record(self.left + self.ring.nanos(self.at, 0));
        self.rotations.record_idle(whole, rounds - 1);
        self.left += rounds * whole;
        let lap = self.left - offsets[self.at];
        let (behind, ahead) = self.expires.split_at_mut(self.at + 1);
        for (expires, offset) in behind.iter_mut().zip(offsets) {
            *expires = lap + offset + self.ttrt;
        }
        for (expires, offset) in ahead.iter_mut().zip(&offsets[self.at + 1..]) {
            *expires = lap - whole + offset + self.ttrt;
        }
        self.all_early_until = self.left - whole + self.ttrt;
    }

    /// Whether it is early wherever it comes until then, even if it comes to all stations.
    #[inline]
    fn is_early_until(&mut self, then: u64) -> bool {
        if then >= self.all_early_until {
            self.all_early_until = self.expires.iter().copied().min().unwrap_or(0);
        }
        then < self.all_early_until
    }

    /// A station sees it, which sets its timer. Tells until when it is early.
    #[inline]
    fn visit(&mut self, station: usize, now: u64) -> Option<u64> {
        if station == 0 {
            self.rotations.record(now);
        }
        let expires = &mut self.expires[station];
        if now < *expires {
            return Some(core::mem::replace(expires, now + self.ttrt));
        }
        let late = (now - *expires) / self.ttrt + 1;
        *expires += late * self.ttrt;
        self.late_max[station] = self.late_max[station].max(late);
        None
    }
}

/// How long the token took around the ring, each time that it came back to the first station: what a monitor there sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Rotations {
    last: u64,
    total: u64,
    times: Sojourns,
}

impl Rotations {
    pub(super) fn count(&self) -> u64 {
        self.times.count()
    }

    pub(super) fn mean(&self) -> Duration {
        Duration::from_nanos(self.total) / self.count().max(1)
    }

    pub(super) fn longest(&self) -> Duration {
        self.times.longest()
    }

    /// The time that this number of thousandths of the rotations did not exceed, at most 0.8 % off; `None` if there was none.
    pub(super) fn quantile(&self, thousandths: u64) -> Option<Duration> {
        self.times.quantile(thousandths)
    }

    #[inline]
    fn record(&mut self, now: u64) {
        self.record_equal(now - self.last, 1);
    }

    fn record_idle(&mut self, rotation: u64, times: u64) {
        self.record_equal(rotation, times);
    }

    #[inline]
    fn record_equal(&mut self, rotation: u64, times: u64) {
        self.last += rotation * times;
        self.total += rotation * times;
        self.times.record_equal(Duration::from_nanos(rotation), times);
    }
}
