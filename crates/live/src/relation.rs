//! The clock of a far end on another host, related to ours: what it observes is brought to our clock.
//!
//! The clocks are ones that nobody turns, where the systems have them ([`trunkline_io::clock`]): then a time server that sets
//! a host right disturbs neither a figure nor its bound. A clock that may be turned makes the bound as wide as that takes
//! ([`trunkline_metrics::clocks::Rates::between`]).
//!
//! Nothing here looks at a clock or a socket: it is given exchanges and reports, with their times, and gives corrected
//! reports and a bound. All times are raw readings of a monotonic clock in nanoseconds, unless they are [`Time`]s, which
//! count from the start.
//!
//! **The estimate** is that of [`trunkline_metrics::clocks::Offsets`] for clocks that do not step: the middle of what all exchanges together allow,
//! so it moves with the clocks and not with every queue. A report waits until an exchange that was asked after it has
//! come back: what surrounds a moment tells more of it than what came before.
//!
//! **The bound** is found at the end, for all that was corrected, and holds even if a clock has stepped once, by so little
//! that it could not be seen. At any moment either all exchanges before it hold or all after it do: the offset lies in
//! what the former allow together or in what the latter do. Where a step was seen, it lies there too. Besides, nothing
//! arrives before it was sent, nor after it was reported.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use trunkline_core::{Duration, Time};
use trunkline_metrics::Observation;
use trunkline_metrics::clocks::{Observed, Turning};
use trunkline_peer::clock::{ClockComparison, TimeReply};

use crate::events::Batch;

/// So many exchanges are awaited before anything is measured.
pub(crate) const FIRST_EXCHANGES: u32 = 20;

/// What is known of the far end's clock.
#[derive(Debug)]
pub(crate) struct Relation {
    clock: ClockComparison,
    known: Vec<Known>,
    /// The latest exchange that came back was asked then.
    asked: u64,
    /// Time zero, here and there.
    epoch: u64,
    far_epoch: u64,
    held: VecDeque<Held>,
    applied: Vec<Applied>,
}

/// What one exchange says of the offset (theirs minus ours) at the moment of its return.
#[derive(Clone, Copy, Debug)]
struct Known {
    at: u64,
    lower: i64,
    upper: i64,
}

/// A report that waits for an exchange asked after it.
#[derive(Debug)]
struct Held {
    heard: u64,
    batch: Batch,
}

/// What was corrected: reports heard between two exchanges.
#[derive(Clone, Copy, Debug)]
struct Applied {
    /// They have arrived between these moments of our clock, which is certain: they were not sent before, and known then.
    from: u64,
    to: u64,
    /// Their arrivals on the far end's clock.
    far: [u64; 2],
    /// The offsets by which they were corrected.
    offsets: [i64; 2],
    /// No corrected arrival is further than this from the moments between which it lies for certain.
    slack: u64,
}

/// A clock has stepped, by this much at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) by: Duration,
}

impl Relation {
    /// Nothing is known yet. `ours` is the discipline of our clock.
    pub(crate) fn new(ours: Turning) -> Relation {
        Relation {
            clock: ClockComparison::new(ours),
            known: Vec::new(),
            asked: 0,
            epoch: 0,
            far_epoch: 0,
            held: VecDeque::new(),
            applied: Vec::new(),
        }
    }

    /// Takes a reply that returned at this moment of our clock.
    ///
    /// # Errors
    /// [`Jump`] if it contradicts those before it. It counts all the same: what is brought over from now on is brought by
    /// the new relation.
    pub(crate) fn exchanged(&mut self, reply: TimeReply, returned: u64) -> Result<(), Jump> {
        let before = self.clock.offset(Time::from_nanos(returned));
        let observed = self.clock.take(reply, Time::from_nanos(returned));
        let [asked, received, replied] = [reply.sent, reply.received, reply.replied].map(Time::as_nanos);
        if observed == Observed::Impossible {
            return Ok(());
        }
        self.asked = self.asked.max(asked);
        let unsure = self.drift(returned - asked);
        let lower = replied as i64 - returned as i64 - unsure;
        let upper = received as i64 - asked as i64 + unsure;
        self.known.push(Known { at: returned, lower, upper });
        if observed == Observed::Bound {
            return Ok(());
        }
        let before = before.map_or(0, |offset| offset.estimate);
        let by = lower.saturating_sub(before).max(before.saturating_sub(upper)).max(0);
        Err(Jump { by: Duration::from_nanos(by.unsigned_abs()) })
    }

    /// Whether enough is known to begin.
    pub(crate) fn is_known(&self) -> bool {
        self.clock.exchanges() >= FIRST_EXCHANGES
    }

    /// When an exchange last came back.
    pub(crate) fn returned(&self) -> u64 {
        self.known.last().map_or(0, |known| known.at)
    }

    /// Takes the start by our clock, and gives what the far end is to take for its time zero: earlier by more than the
    /// clocks can be unsure of, so that no arrival is before it.
    pub(crate) fn begin(&mut self, epoch: u64) -> u64 {
        let offset = self.offset(epoch).unwrap_or(0);
        let ahead = self.clock.offset(Time::from_nanos(epoch)).map_or(0, |offset| offset.bound.as_nanos());
        self.epoch = epoch;
        self.far_epoch =
            epoch.saturating_add_signed(offset).saturating_sub(ahead.saturating_add(EARLIER)).max(1);
        self.far_epoch
    }

    /// Takes a report that was heard at this moment; its times are the far end's.
    pub(crate) fn reported(&mut self, heard: u64, batch: Batch) {
        self.held.push_back(Held { heard, batch });
    }

    /// Gives a report, corrected, that need not wait any longer; with `all` also one that should.
    pub(crate) fn settled(&mut self, all: bool) -> Option<Batch> {
        let asked = self.asked;
        let Held { heard, mut batch } = self.held.pop_front_if(|held| all || held.heard <= asked)?;
        self.correct(heard, &mut batch);
        Some(batch)
    }

    /// Whether no report waits.
    pub(crate) fn is_settled(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the latest exchange was about as fast as any: what is bounded from it on is bounded well.
    pub(crate) fn is_calm(&self) -> bool {
        let width = |known: &Known| known.upper - known.lower;
        let fastest = self.known.iter().map(width).min().unwrap_or(0);
        self.known.last().is_none_or(|known| width(known) <= 2 * fastest + CALM)
    }

    /// Brings the moments over at which messages were reflected that have come back to us.
    pub(crate) fn correct_reflected(&self, batch: &mut Batch) {
        for event in &mut batch.events {
            if let Observation::Received { sent, reflected, .. } = &mut event.what
                && *reflected != Time::ZERO
            {
                let (at, _) = self.bring(self.far_raw(*reflected));
                // Never the time that means that it was not reflected.
                *reflected = self.time(at).max(*sent).min(event.at).max(Time::from_nanos(1));
            }
        }
    }

    /// How far what was corrected may be from the truth at most; `None` if nothing was.
    pub(crate) fn bound(&self) -> Option<Duration> {
        let ways = Ways::of(self);
        let bounds = self.applied.iter().map(|applied| {
            let (lower, upper) = ways.over(applied.from, applied.to);
            // Now that the offset is known roughly, so is when they arrived.
            let from =
                applied.far[0].saturating_add_signed(upper.saturating_neg()).clamp(applied.from, applied.to);
            let to = applied.far[1].saturating_add_signed(lower.saturating_neg()).clamp(from, applied.to);
            let (lower, upper) = ways.over(from, to);
            let of_clocks =
                upper.saturating_sub(applied.offsets[0]).max(applied.offsets[1].saturating_sub(lower));
            of_clocks.unsigned_abs().min(applied.slack)
        });
        bounds.max().map(Duration::from_nanos)
    }

    fn correct(&mut self, heard: u64, batch: &mut Batch) {
        let mut applied: Option<Applied> = None;
        for event in &mut batch.events {
            let far = self.far_raw(event.at);
            let (at, offset) = self.bring(far);
            let Observation::Received { sent, .. } = event.what else {
                event.at = self.time(at.min(heard));
                continue;
            };
            let sent = self.epoch.saturating_add(sent.as_nanos()).min(heard);
            let at = at.clamp(sent, heard);
            event.at = self.time(at);
            let slack = (at - sent).max(heard - at);
            let one = Applied { from: sent, to: heard, far: [far; 2], offsets: [offset; 2], slack };
            applied = Some(applied.map_or(one, |all| all.with(one)));
        }
        let Some(applied) = applied else { return };
        // One entry for all reports between two exchanges: the memory does not grow with the messages.
        let place = self.known.partition_point(|known| known.at <= heard);
        let since = place.checked_sub(1).map_or(0, |place| self.known[place].at);
        match self.applied.last_mut() {
            Some(last) if last.to >= since && last.to <= heard => *last = last.with(applied),
            _ => self.applied.push(applied),
        }
    }

    /// A moment of the far end's clock on ours, and the offset that was taken.
    fn bring(&self, far: u64) -> (u64, i64) {
        // The offset hardly changes within the time by which the first guess is wrong.
        let first = self.offset(self.returned()).unwrap_or(0);
        let guess = far.saturating_add_signed(-first);
        let offset = self.offset(guess).unwrap_or(first);
        (far.saturating_add_signed(-offset), offset)
    }

    fn offset(&self, at: u64) -> Option<i64> {
        self.clock.offset(Time::from_nanos(at)).map(|offset| offset.estimate)
    }

    fn far_raw(&self, far: Time) -> u64 {
        self.far_epoch.saturating_add(far.as_nanos())
    }

    fn time(&self, raw: u64) -> Time {
        Time::from_nanos(raw.saturating_sub(self.epoch))
    }

    /// How far the clocks drift apart in this time at most, rounded up.
    fn drift(&self, elapsed: u64) -> i64 {
        let drift =
            (u128::from(elapsed) * u128::from(self.clock.rates().most_difference)).div_ceil(1_000_000_000);
        i64::try_from(drift).unwrap_or(i64::MAX >> 2)
    }
}

/// The far end's time zero is earlier than ours by this, and by what is unsure.
const EARLIER: u64 = 1_000_000_000;

/// An exchange that takes no longer than the fastest twice, and this, is a fast one.
const CALM: i64 = 200_000;

impl Applied {
    fn with(self, other: Applied) -> Applied {
        Applied {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
            far: [self.far[0].min(other.far[0]), self.far[1].max(other.far[1])],
            offsets: [self.offsets[0].min(other.offsets[0]), self.offsets[1].max(other.offsets[1])],
            slack: self.slack.max(other.slack),
        }
    }
}

/// What the exchanges before a moment, and what those after it, allow together.
struct Ways<'r> {
    relation: &'r Relation,
    /// At each exchange: from it and those before it, and from it and those after it.
    before: Vec<(i64, i64)>,
    after: Vec<(i64, i64)>,
}

impl Ways<'_> {
    fn of(relation: &Relation) -> Ways<'_> {
        let known = &relation.known;
        let gather = |places: &mut dyn Iterator<Item = usize>| {
            let mut together = vec![(0, 0); known.len()];
            let mut last: Option<(u64, i64, i64)> = None;
            for place in places {
                let Known { at, mut lower, mut upper } = known[place];
                if let Some((then, low, high)) = last {
                    let drift = relation.drift(at.abs_diff(then));
                    let (low, high) = (low.saturating_sub(drift), high.saturating_add(drift));
                    // A step that was seen: nothing before it counts on this side of it.
                    if low <= upper && lower <= high {
                        (lower, upper) = (lower.max(low), upper.min(high));
                    }
                }
                together[place] = (lower, upper);
                last = Some((at, lower, upper));
            }
            together
        };
        let before = gather(&mut (0..known.len()));
        let after = gather(&mut (0..known.len()).rev());
        Ways { relation, before, after }
    }

    /// The offset at moments between these: at least, and at most.
    fn over(&self, from: u64, to: u64) -> (i64, i64) {
        let known = &self.relation.known;
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        let mut take = |(lower, upper): (i64, i64), distance: u64| {
            let drift = self.relation.drift(distance);
            least = least.min(lower.saturating_sub(drift));
            most = most.max(upper.saturating_add(drift));
        };
        // Between one exchange and the next, what is allowed is widest where it is furthest from that which allows it.
        let first = known.partition_point(|known| known.at <= from);
        let last = known.partition_point(|known| known.at < to);
        for next in first..=last.max(first) {
            let begin = next.checked_sub(1).map_or(from, |place| known[place].at.max(from));
            let end = known.get(next).map_or(to, |known| known.at.min(to)).max(begin);
            if let Some(place) = next.checked_sub(1) {
                take(self.before[place], end - known[place].at);
            }
            if let Some(known) = known.get(next) {
                take(self.after[next], known.at - begin);
            }
        }
        (least, most)
    }
}
