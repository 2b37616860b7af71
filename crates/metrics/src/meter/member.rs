//! Statistics of one of several members of a flow, for its bundle.

use hdrhistogram::Histogram;
use trunkline_core::{Duration, Time};

use crate::bundle::MemberDelay;
use crate::meter::activity::Activity;
use crate::moments::{LONGEST, Moments};
use crate::percentile::PerMille;
use crate::summary::Counts;

/// What is kept of one member: less than 16 KiB as long as no latency exceeds 17 s, and 22 KiB in any case.
#[derive(Debug)]
pub(super) struct MemberMeter {
    pub(super) counts: Counts,
    pub(super) activity: Activity,
    latency: Moments,
    longest: u64,
    /// Nanoseconds, to two significant digits. It grows with the longest.
    histogram: Histogram<u32>,
}

impl MemberMeter {
    pub(super) fn new() -> MemberMeter {
        MemberMeter {
            counts: Counts::default(),
            activity: Activity::default(),
            latency: Moments::default(),
            longest: 0,
            histogram: Histogram::new(2).expect("two significant digits are within HdrHistogram's 0 to 5"),
        }
    }

    /// Takes the first arrival of a message.
    pub(super) fn arrived(&mut self, at: Time, latency: Duration) {
        self.activity.arrived(at);
        let nanos = latency.as_nanos().min(LONGEST);
        self.latency.add(latency);
        self.longest = self.longest.max(nanos);
        // Fails only beyond 2^63 or on a histogram that may not grow.
        let counted = self.histogram.record(nanos);
        debug_assert!(counted.is_ok(), "a histogram that grows takes {nanos}");
    }

    /// Its latencies, of which p99.9 is at most 0.8 % too high; `None` if nothing arrived.
    pub(super) fn latency(&self) -> Option<MemberDelay> {
        let rank = PerMille(999).rank(self.latency.count());
        let mut at_most = 0;
        let bucket = self.histogram.iter_recorded().find(|bucket| {
            at_most += u64::from(bucket.count_at_value());
            at_most >= rank
        })?;
        let p999 = Duration::from_nanos(bucket.value_iterated_to().min(self.longest));
        Some(MemberDelay { mean: self.latency.mean(), p999 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_exact_and_p999_within_the_histogram() {
        let mut member = MemberMeter::new();
        assert_eq!(member.latency(), None);
        for micros in 1..=10_000 {
            member.arrived(Time::ZERO, Duration::from_micros(micros));
        }
        let latency = member.latency().unwrap();
        assert_eq!(latency.mean, Duration::from_nanos(5_000_500));
        let exact = Duration::from_micros(9_990);
        assert!(exact <= latency.p999 && latency.p999 <= exact + exact / 125, "{}", latency.p999);
    }

    #[test]
    fn no_percentile_exceeds_the_longest() {
        let mut member = MemberMeter::new();
        member.arrived(Time::ZERO, Duration::from_nanos(1_000_001));
        let latency = Duration::from_nanos(1_000_001);
        assert_eq!(member.latency(), Some(MemberDelay { mean: latency, p999: latency }));
    }

    #[test]
    fn a_member_takes_as_little_memory_as_is_said() {
        let mut member = MemberMeter::new();
        let size = |member: &MemberMeter| size_of::<MemberMeter>() + member.histogram.distinct_values() * 4;
        member.arrived(Time::ZERO, Duration::from_secs(17));
        assert!(size(&member) < 16 << 10, "{}", size(&member));
        member.arrived(Time::ZERO, Duration::MAX);
        assert!(size(&member) < 22 << 10, "{}", size(&member));
    }
}
