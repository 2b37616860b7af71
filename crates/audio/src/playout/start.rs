//! Where a playout buffer begins: how long packets are on their way, out of the first of them.
//!
//! The first packets of a session are the least typical. A sender may have captured audio while it connected, and sends it
//! all at once; a network may hold the first packets back until it knows where to send them. A buffer that counted its delay
//! from the first packet would keep what these had too much, or too little. So the typical transit time is the median of
//! the later half of the packets that have come, and is looked at again after 100, 200, 400 and 800 ms. Then it is
//! established, unless it has still changed by much.

use trunkline_core::{Duration, Time};

/// The first moment at which the transit time is looked at again; each other one is twice as late.
const FIRST_CHECK: Duration = Duration::from_millis(100);
/// From this moment on it may be established.
const EARLIEST: Duration = Duration::from_millis(800);
/// At this moment it is, even if it still changes.
const LATEST: Duration = Duration::from_secs(6);
/// Packets that are looked at together.
const PACKETS: usize = 2048;
/// Fewer than this do not have a median that is worth its name.
const FEW: usize = 3;

/// How long packets are on their way, while that is being established.
#[derive(Clone, Debug)]
pub(super) struct Transits {
    /// The arrival of the first packet, and its transit time.
    first: Option<(Time, i128)>,
    /// The highest number that has come. Those that were overtaken do not count.
    highest: i64,
    /// Arrivals, and transit times less that of the first packet. Times are nanoseconds.
    samples: Vec<(Time, i64)>,
    /// Room to find a median in.
    sorted: Vec<i64>,
    /// Whether audio is heard already.
    is_heard: bool,
    /// When it is looked at again; `None` once it is established.
    check: Option<Time>,
}

/// What is typical of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Typical {
    /// Arrival less nominal time, in nanoseconds.
    pub(super) transit: i128,
    /// How far that may be from the truth, in nanoseconds: its standard error.
    pub(super) error: u64,
}

impl Transits {
    /// Nothing has arrived.
    pub(super) fn new() -> Transits {
        let (samples, sorted) = (Vec::with_capacity(PACKETS), Vec::with_capacity(PACKETS));
        Transits { first: None, highest: i64::MIN, samples, sorted, is_heard: false, check: None }
    }

    /// Begins anew, while audio is heard or before.
    pub(super) fn restart(&mut self, is_heard: bool) {
        self.samples.clear();
        (self.first, self.highest) = (None, i64::MIN);
        (self.is_heard, self.check) = (is_heard, Some(Time::MAX));
    }

    /// The packet of this number arrived at `now`, or another part of it, and was due `nominal` nanoseconds after number 0.
    /// A packet has come with its last part.
    pub(super) fn note(&mut self, now: Time, number: i64, nominal: i128) {
        if self.is_established() || number < self.highest {
            return;
        }
        if core::mem::replace(&mut self.highest, number) == number {
            self.samples.pop();
        }
        let transit = i128::from(now.as_nanos()) - nominal;
        let is_first = self.first.is_none();
        let (_, reference) = *self.first.get_or_insert((now, transit));
        if is_first && self.is_heard {
            self.plan(now);
        }
        if self.samples.len() < PACKETS {
            self.samples.push((now, i64::try_from(transit - reference).unwrap_or(i64::MAX)));
        }
    }

    /// Whether what is known no longer changes.
    pub(super) fn is_established(&self) -> bool {
        self.check.is_none()
    }

    /// Audio begins to be heard at `now`.
    pub(super) fn heard(&mut self, now: Time) {
        self.is_heard = true;
        self.plan(now);
    }

    /// Plans the next look after `now`.
    fn plan(&mut self, now: Time) {
        let Some((first, _)) = self.first else { return };
        let mut check = FIRST_CHECK;
        while first + check <= now && check < Duration::MAX {
            check = check * 2;
        }
        self.check = Some(first + check);
    }

    /// What is typical now, if it is time to look at it again; and whether this is an early look, of which less is believed.
    pub(super) fn check(&mut self, now: Time) -> Option<(Typical, bool)> {
        if now < self.check? {
            return None;
        }
        let (first, _) = self.first?;
        let typical = self.typical()?;
        // The next look is at what comes from now on.
        self.samples.clear();
        self.plan(now);
        Some((typical, now.since(first) < EARLIEST))
    }

    /// It was looked at, and has changed by much or not.
    pub(super) fn settle(&mut self, now: Time, has_changed: bool) {
        let passed = self.first.map_or(Duration::ZERO, |(first, _)| now.since(first));
        if passed >= EARLIEST && (!has_changed || passed >= LATEST) {
            self.check = None;
        }
    }

    /// The median of the later half, or the fastest of a few.
    pub(super) fn typical(&mut self) -> Option<Typical> {
        let ((begin, reference), (end, _)) = (self.first?, *self.samples.last()?);
        let half = begin + end.since(begin) / 2;
        self.sorted.clear();
        let later = self.samples.iter().filter(|(arrival, _)| *arrival >= half && end > begin);
        self.sorted.extend(later.map(|(_, transit)| transit));
        if self.sorted.len() < FEW {
            let fastest = self.samples.iter().map(|(_, transit)| *transit).min()?;
            return Some(Typical { transit: reference + i128::from(fastest), error: 0 });
        }
        let count = self.sorted.len();
        let mut quartile = |of_four: usize| *self.sorted.select_nth_unstable(count * of_four / 4).1;
        let (lower, median, upper) = (quartile(1), quartile(2), quartile(3));
        // Of a normal distribution: 1.2533 standard deviations by the root of the count; the quartiles are 1.349 apart.
        let error = 0.929 * upper.saturating_sub(lower) as f64 / libm::sqrt(count as f64);
        Some(Typical { transit: reference + i128::from(median), error: error as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: i128 = 1_000_000;

    /// Packets of 10 ms with these transit times in milliseconds; each arrives when it does.
    fn after(transits: impl IntoIterator<Item = u64>) -> Transits {
        let mut known = Transits::new();
        known.restart(false);
        for (n, transit) in (0u64..).zip(transits) {
            let nominal = i128::from(n) * 10 * MILLISECOND;
            known.note(Time::ZERO + Duration::from_millis(n * 10 + transit), n as i64, nominal);
        }
        known
    }

    fn typical(known: &mut Transits) -> i128 {
        known.typical().unwrap().transit / MILLISECOND
    }

    #[test]
    fn nothing_is_typical_of_nothing() {
        assert_eq!(Transits::new().typical(), None);
    }

    #[test]
    fn one_packet_is_typical_of_itself() {
        assert_eq!(after([30]).typical(), Some(Typical { transit: 30 * MILLISECOND, error: 0 }));
    }

    #[test]
    fn old_audio_that_comes_at_once_does_not_count() {
        // 20 packets at 200 ms, then one by one after 10 ms.
        let mut burst = after((0..20).map(|n| 200 - 10 * n).chain([10; 30]));
        assert_eq!(typical(&mut burst), 10);
        assert_eq!(typical(&mut after((0..20).map(|n| 200 - 10 * n))), 10, "while nothing else is known");
    }

    #[test]
    fn a_stall_does_not_count() {
        // 15 of the later 50 are held up to 150 ms.
        let held = (0..70).map(|_| 20).chain((0..15).map(|n| 170 - 10 * n)).chain([20; 15]);
        assert_eq!(typical(&mut after(held)), 20);
    }

    #[test]
    fn the_error_is_that_of_the_median() {
        // Uniform over 40 ms: the quartiles are 20 ms apart, of 100 packets.
        let known = after((0..200).map(|n| n * 7919 % 41)).typical().unwrap();
        assert!((1_600_000..2_100_000).contains(&known.error), "{known:?}");
    }

    #[test]
    fn it_is_established_when_nothing_changes_after_the_first_second() {
        let mut known = after([20; 10]);
        known.heard(Time::ZERO + Duration::from_millis(120));
        let mut looks = Vec::new();
        for n in 10..200u64 {
            let now = Time::ZERO + Duration::from_millis(n * 10 + 20);
            known.note(now, n as i64, i128::from(n) * 10 * MILLISECOND);
            if let Some((typical, is_early)) = known.check(now) {
                assert_eq!(typical.transit, 20 * MILLISECOND);
                looks.push((n * 10, is_early));
                // The look after 800 ms had to change something.
                known.settle(now, n == 80);
            }
        }
        assert_eq!(looks, [(200, true), (400, true), (800, false), (1600, false)]);
        assert!(known.is_established());
    }
}
